//! Every command of docs/first-hour.md runs, ends with the documented exit code and prints the
//! documented text.

use std::process::Command;

use crate::support::{CommandOutput, Sandbox};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/first-hour.md");

/// A command of the document.
#[derive(Debug)]
struct Example {
    command: String,
    codes: Vec<i32>,
    says: Vec<String>,
}

/// The commands in console blocks, each with its output and the exit codes in its comment (0
/// without a comment).
fn shown(document: &str) -> Vec<Example> {
    let mut all: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            let (command, comment) = command.split_once("  # ").unwrap_or((command, ""));
            let mut codes: Vec<i32> = comment
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|number| number.parse().ok())
                .collect();
            if codes.is_empty() {
                codes.push(0);
            }
            all.push(Example { command: command.trim().to_owned(), codes, says: Vec::new() });
        } else if inside && !line.trim().is_empty() && line.trim() != "..." {
            all.last_mut().expect("a command before its output").says.push(line.to_owned());
        }
    }
    all
}

/// A line without its figures, which differ between runs and hosts.
fn shape(line: &str) -> String {
    let masked: String = line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let mut words: Vec<String> = Vec::new();
    for word in masked.split_whitespace() {
        let mut word = word.replace(',', "");
        while word.contains("00") || word.contains("0.0") {
            word = word.replace("00", "0").replace("0.0", "0");
        }
        words.push(word);
    }
    // Units follow the figures.
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let is_unit = |word: &String| units.contains(&word.as_str());
    words.into_iter().filter(|word| !is_unit(word)).collect::<Vec<_>>().join(" ")
}

/// Splits a command into words like a shell, as far as the document needs it: double quotes group
/// words, and a final `> FILE` redirects the output.
fn words(command: &str) -> (Vec<String>, Option<String>) {
    let (command, into) = match command.split_once(" > ") {
        Some((command, file)) => (command, Some(file.trim().to_owned())),
        None => (command, None),
    };
    let mut words: Vec<String> = Vec::new();
    for (at, part) in command.split('"').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    (words, into)
}

#[test]
fn every_command_runs_and_says_what_stands_there() {
    let sandbox = Sandbox::new();
    let (db, logs) = (sandbox.path("db"), sandbox.path("log"));
    std::fs::create_dir(&db).unwrap();
    std::fs::create_dir(&logs).unwrap();
    let here = |text: &str| {
        text.replace("/mnt/db", db.to_str().unwrap()).replace("/mnt/log", logs.to_str().unwrap())
    };
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let commands = shown(&document);
    assert!(commands.len() >= 25, "{commands:?}");
    for Example { command, codes, says } in commands {
        let given = here(&command);
        let (words, into) = words(&given);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = match words.split_first() {
            Some((&"plimsoll", words)) => sandbox.run(words),
            Some((&"fio", words)) => {
                let mut fio = Command::new("fio");
                CommandOutput::from(
                    fio.args(words).current_dir(sandbox.root.path()).output().unwrap(),
                )
            }
            _ => panic!("{command}: neither plimsoll nor fio"),
        };
        if let Some(file) = into {
            assert!(!ran.stdout.is_empty(), "{command}");
            std::fs::write(sandbox.path(&file), &ran.stdout).unwrap();
        }
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(codes.contains(&ran.code), "{command}: {}\n{all}", ran.code);
        // Line breaks depend on the length of paths.
        let lines: String = all.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = shape(&lines);
        for line in says {
            assert!(lines.contains(&shape(&here(&line))), "{command}: {line:?} is not in\n{all}");
        }
    }
}
