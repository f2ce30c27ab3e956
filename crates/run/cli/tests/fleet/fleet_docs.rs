//! Runs the five commands of `docs/fleet.md` word for word, in separate namespaces. There, the host
//! names of the page are names of the loopback address, and scripts that access directories replace
//! `ssh` and `scp`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::fleet_secure::runs;
use crate::fleets::was_disturbed;
use crate::support::{CommandOutput, Sandbox, json};

/// Text of the documentation page.
fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/fleet.md");
    fs::read_to_string(path).unwrap()
}

/// Returns the commands of the first block below a heading, without their comments.
fn commands(heading: &str) -> Vec<String> {
    let page = page();
    let section = page.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let block = section.split("```").nth(1).expect("a block of commands");
    let lines = block.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| line.split("   #").next().unwrap().trim().to_owned()).collect()
}

/// Copies files to `HOSTS/HOST`, as `scp FILE HOST:` does.
const SCP: &str = "#!/bin/sh\ncp \"$1\" \"$HOSTS/${2%:}/\"\n";
/// Runs a command in `HOSTS/HOST`, which is also the home directory of the host's user.
const SSH: &str = "#!/bin/sh\nhost=$1; shift; cd \"$HOSTS/$host\" || exit 1\nexport \
                   XDG_DATA_HOME=$PWD/data XDG_STATE_HOME=$PWD/state \
                   XDG_CACHE_HOME=$PWD/cache\nexec sh -c \"$*\"\n";

/// Sets up loopback, the host names of the page, and `/mnt/test` on the sandbox's file system.
const NAMESPACE: &str = "set -e\nip link set lo up\nprintf '127.0.0.1 localhost nats.example\\n' > \
                         hosts.txt\nmount --bind hosts.txt /etc/hosts\nmount --bind mnt /mnt\n";

#[test]
fn the_five_commands_lead_from_nothing_to_a_secure_verdict() {
    let commands = commands("Set up");
    assert_eq!(commands.len(), 5, "{commands:#?}");
    let sandbox = Sandbox::new();
    let at = |path: &str| sandbox.path(path);
    for directory in ["bin", "mnt/test", "hosts/node1", "hosts/node2"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    let program = PathBuf::from(env!("CARGO_BIN_EXE_plimsoll"));
    std::os::unix::fs::symlink(program, at("bin/plimsoll")).unwrap();
    for (name, text) in [("scp", SCP), ("ssh", SSH)] {
        fs::write(at("bin").join(name), text).unwrap();
        fs::set_permissions(at("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    // Servers and agents run in the background. A command that the page shows for `node1` also runs
    // for `node2`.
    let mut script = NAMESPACE.to_owned();
    for (number, command) in commands.iter().enumerate() {
        let for_hosts = match command.contains("node1") && number > 0 {
            true => vec![command.clone(), command.replace("node1", "node2")],
            false => vec![command.clone()],
        };
        for (host, command) in for_hosts.iter().enumerate() {
            let serves = command.contains("nats-server") || command.contains("plimsoll agent");
            script.push_str(&match serves {
                true => format!("({command}) > log-{number}-{host} 2>&1 &\nsleep 1\n"),
                false => format!("{command}\n"),
            });
        }
    }
    // The script ends the servers and agents, and exits with the exit code of the run.
    script = script.replacen("plimsoll run", "set +e\nplimsoll run", 1);
    script.push_str("code=$?\nkill $(jobs -p)\nexit $code\n");
    let mut shell = Command::new("unshare");
    shell.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    shell.args(["bash", "-c", &script]).current_dir(at("")).stdin(Stdio::null());
    let mut path = std::ffi::OsString::from(at("bin"));
    path.push(":/usr/sbin:/sbin:");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    shell.env("PATH", path).env("HOSTS", at("hosts")).env("PLIMSOLL_CALIBRATE", "never");
    for (name, directory) in [("DATA", "share"), ("STATE", "state"), ("CACHE", "cache")] {
        shell.env(format!("XDG_{name}_HOME"), at(directory));
    }
    let ran = CommandOutput::from(shell.output().unwrap());
    let logs = || {
        let entries = fs::read_dir(at("")).unwrap().flatten().map(|entry| entry.path());
        let logs = entries.filter(|path| path.to_string_lossy().contains("log-"));
        logs.map(|path| fs::read_to_string(path).unwrap()).collect::<String>()
    };
    assert!([0, 3].contains(&ran.code), "{script}\n{}\n{}\n{}", ran.stdout, ran.stderr, logs());
    let fleet = json(&runs(&sandbox)[0].join("all/fleet.json"));
    assert_eq!(fleet["hosts"].as_array().unwrap().len(), 2, "{fleet:#}");
    assert!(fleet["hosts"].as_array().unwrap().iter().all(|host| host["end"] == "reported"));
    let verdict = json(&runs(&sandbox)[0].join("verdict.json"));
    let said = verdict["verdict"].as_str().unwrap();
    assert!(
        ["MEASURED", "PASS"].contains(&said) || was_disturbed(&runs(&sandbox)[0]),
        "{verdict:#}"
    );
    // Each agent connected over TLS and needed only a single file.
    assert!(logs().contains("waits for plans at tls://nats.example:4222"), "{}", logs());
    assert_eq!(fs::read_dir(at("fleet/agents")).unwrap().count(), 2);
}

/// For each failure that the page lists, the program prints the words on the page.
#[test]
fn the_page_quotes_what_the_program_says() {
    let sources = ["agent.rs", "broker.rs", "coordinator.rs", "coordinator/selection.rs"];
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut program: String = sources
        .iter()
        .map(|file| fs::read_to_string(crates.join("fleet/src").join(file)).unwrap())
        .collect();
    program.push_str(&fs::read_to_string(crates.join("runner/src/private_file.rs")).unwrap());
    let page = page();
    let table = page.split("| message |").nth(1).unwrap().split("\n\n").next().unwrap();
    let quoted = table.lines().filter_map(|line| line.strip_prefix("| \"")?.split('"').next());
    let quoted: Vec<&str> = quoted.collect();
    assert!(quoted.len() >= 4, "{quoted:?}");
    for text in quoted {
        assert!(program.contains(text), "the program does not say {text:?}");
    }
}
