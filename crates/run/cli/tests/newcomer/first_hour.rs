//! Runs every command in docs/first-hour.md. Each command must end with the documented exit code
//! and print the documented text.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::port::free_port;
use crate::support::{CommandOutput, Sandbox};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/first-hour.md");

/// A command in the document.
#[derive(Debug)]
struct Example {
    command: String,
    codes: Vec<i32>,
    says: Vec<String>,
}

/// Returns the commands in console blocks, each with its output and with the exit codes in its
/// comment. The exit code of a command without a comment is 0.
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

/// Returns a line without its figures, which differ between runs and hosts.
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
    // Units change with the figures, so they are removed, too.
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let is_unit = |word: &String| units.contains(&word.as_str());
    words.into_iter().filter(|word| !is_unit(word)).collect::<Vec<_>>().join(" ")
}

/// Programs that the commands in the document may use.
const PROGRAMS: [&str; 6] = ["plimsoll", "fio", "timeout", "printf", "sleep", "curl"];

/// Runs a command in a shell, with this build's program first in the path.
fn in_shell(sandbox: &Sandbox, command: &str) -> CommandOutput {
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let paths = std::env::var("PATH").unwrap_or_default();
    let own = sandbox.command(&[]);
    let mut shell = Command::new("sh");
    // The shell must not replace itself with the command: the shell returns an exit code even if
    // the command is killed.
    shell.args(["-c", &format!("{command}\nexit $?")]);
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
        .env("PATH", format!("{}:{paths}", program.parent().unwrap().display()))
        .current_dir(sandbox.root.path())
        .stdin(Stdio::null());
    CommandOutput::from(shell.output().unwrap())
}

#[test]
fn every_command_runs_and_says_what_stands_there() {
    let sandbox = Sandbox::new();
    let mut places: Vec<(String, String)> = Vec::new();
    for name in ["db", "log", "ext4", "xfs"] {
        let path = sandbox.path(name);
        std::fs::create_dir(&path).unwrap();
        places.push((format!("/mnt/{name}"), path.display().to_string()));
    }
    places.extend(["20490", "7460"].map(|port| (port.to_owned(), free_port().to_string())));
    let here = |text: &str| {
        places.iter().fold(text.to_owned(), |text, (named, real)| text.replace(named, real))
    };
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let jobs = document.lines().filter(|line| line.starts_with("## ") && line.contains(". "));
    assert_eq!(jobs.count(), 12);
    let commands = shown(&document);
    assert!(commands.len() >= 40, "{commands:?}");
    for Example { command, codes, says } in commands {
        let program = command.split_whitespace().next().unwrap_or_default();
        assert!(PROGRAMS.contains(&program), "{command}");
        let ran = in_shell(&sandbox, &here(&command));
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(codes.contains(&ran.code), "{command}: {}\n{all}", ran.code);
        if let Some((_, file)) = command.split_once(" > ").filter(|_| !command.ends_with('&')) {
            let written = std::fs::read_to_string(sandbox.path(file.trim())).unwrap();
            assert!(!written.is_empty(), "{command}");
        }
        // Line breaks depend on the length of paths.
        let lines: String = all.split_whitespace().collect::<Vec<_>>().join(" ");
        let (unwrapped, lines) = (lines.clone(), shape(&lines));
        for line in says {
            assert!(lines.contains(&shape(&here(&line))), "{command}: {line:?} is not in\n{all}");
            // The figures of a model are the same on every host.
            let is_exact = !command.starts_with("plimsoll model size") || unwrapped.contains(&line);
            assert!(is_exact, "{command}: {line:?} is not in\n{all}");
        }
    }
}
