//! Contents of packages: man pages, completions, the manifest of a Kubernetes job.

use crate::support::{Sandbox, json};

const JOB: &str = include_str!("../../../../../packaging/kubernetes/job.yaml");

#[test]
fn every_command_has_a_manual_page() {
    let sandbox = Sandbox::new();
    let pages = sandbox.path("man");
    std::fs::create_dir(&pages).unwrap();
    let ran = sandbox.run(&["man", "--to", pages.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let help = sandbox.run(&["--help"]).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut seen = 0;
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let command = line.split_whitespace().next().unwrap();
        if command == "help" {
            continue;
        }
        let page = pages.join(format!("plimsoll-{command}.1"));
        let text =
            std::fs::read_to_string(&page).unwrap_or_else(|_| panic!("no page for {command}"));
        assert!(text.contains(".SH SYNOPSIS"), "{command}: {text}");
        seen += 1;
    }
    assert!(seen >= 15, "{help}");
    // Also for subcommands of subcommands.
    assert!(pages.join("plimsoll-model-run.1").exists());
    let missing = sandbox.run(&["man", "--to", sandbox.path("nowhere").to_str().unwrap()]);
    assert_eq!(missing.code, 5, "{}", missing.stderr);
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
}

/// Returns bash's candidates for the last word.
fn candidates(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--", "plimsoll"];
    arguments.extend(words);
    let last = words.len().to_string();
    let asked = [
        ("PLIMSOLL_COMPLETE", "bash"),
        ("_CLAP_COMPLETE_INDEX", last.as_str()),
        ("_CLAP_COMPLETE_COMP_TYPE", "9"),
        ("_CLAP_COMPLETE_SPACE", "true"),
        ("_CLAP_IFS", "\n"),
    ];
    let ran = sandbox.command(&arguments).envs(asked).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn models_experiments_runs_and_options_are_completed() {
    let sandbox = Sandbox::new();
    assert!(candidates(&sandbox, &["qui"]).contains(&"quickstart".to_owned()));
    assert!(
        candidates(&sandbox, &["model", "run", "x.toml", "--model", "vs"])
            .contains(&"vsan-hybrid".to_owned())
    );
    assert!(candidates(&sandbox, &["model", "show", "zfs"]).contains(&"zfs-flash".to_owned()));
    for command in ["run", "tune", "sweep"] {
        assert!(candidates(&sandbox, &[command, "olt"]).contains(&"oltp".to_owned()), "{command}");
    }
    assert!(candidates(&sandbox, &["plan", "show", "vdi"]).len() >= 2);
    assert!(candidates(&sandbox, &["run", "--kee"]).contains(&"--keep".to_owned()));
    let experiments = candidates(&sandbox, &["experiment", "run", ""]);
    let listed = sandbox.run(&["experiment", "list"]).stdout;
    let known = experiments.iter().filter(|name| listed.contains(name.as_str())).count();
    assert!(known >= 6, "{experiments:?}");

    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, small(&sandbox)).unwrap();
    let ran = sandbox.run(&["run", plan.to_str().unwrap(), "-q"]);
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);
    let run = sandbox.bundle().file_name().unwrap().to_str().unwrap().to_owned();
    for command in [&["judge", ""][..], &["report", ""], &["runs", "show", ""], &["compare", ""]] {
        let offered = candidates(&sandbox, command);
        assert!(offered.contains(&run) && offered.contains(&"last".to_owned()), "{command:?}");
    }
}

#[test]
fn each_shell_gets_its_script_and_an_unknown_one_an_error() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = sandbox.run(&["completions", shell]);
        assert_eq!(ran.code, 0, "{shell}: {}", ran.stderr);
        assert!(ran.stdout.contains("PLIMSOLL_COMPLETE"), "{shell}: {}", ran.stdout);
    }
    assert_eq!(sandbox.run(&["completions", "tcsh"]).code, 2);
}

fn small(sandbox: &Sandbox) -> String {
    let target = sandbox.path("target");
    std::fs::create_dir(&target).unwrap();
    format!(
        "version = 1\nname = \"small\"\n[target]\npath = {target:?}\n[workload.matrix]\nsizes = \"4KiB\"\n\
         reads = 100\nfile_size = \"8MiB\"\n[phases]\nwarm_up = \"200ms\"\nmeasure = \"1s\"\n\
         [evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n"
    )
}

#[test]
fn the_verdict_is_written_where_a_container_leaves_its_last_words() {
    let sandbox = Sandbox::new();
    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, small(&sandbox)).unwrap();
    let words = sandbox.path("termination-log");
    let arguments = ["run", plan.to_str().unwrap(), "-q", "--verdict-to", words.to_str().unwrap()];
    let ran = sandbox.run(&arguments);
    let text = std::fs::read_to_string(&words).unwrap();
    assert!(text.len() <= 4096 && text.ends_with('\n'), "{text}");
    let verdict = json(&sandbox.bundle().join("verdict.json"));
    assert!(text.starts_with(verdict["verdict"].as_str().unwrap()), "{text}");
    assert!([0, 3].contains(&ran.code), "{}", ran.stderr);

    let nowhere = sandbox.path("no/such/file");
    let ran = sandbox.run(&[
        "run",
        plan.to_str().unwrap(),
        "-q",
        "--verdict-to",
        nowhere.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("--verdict-to"), "{}", ran.stderr);
}

#[test]
fn the_plan_of_the_kubernetes_job_resolves_and_its_arguments_are_understood() {
    let sandbox = Sandbox::new();
    let after = JOB.split("  plan.toml: |\n").nth(1).unwrap();
    let text: String = after
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, text).unwrap();
    let plan = plan.to_str().unwrap();
    let checked = sandbox.run(&["plan", "check", plan]);
    // The volume claim is mounted at /data there; here the directory does not exist.
    assert!([0, 5].contains(&checked.code), "{}", checked.stderr);

    let given = JOB.split("args: [").nth(1).unwrap().split(']').next().unwrap();
    let mut arguments: Vec<&str> = given.split(", ").collect();
    assert_eq!(arguments[..2], ["run", "/plan/plan.toml"]);
    arguments.push("--help");
    let ran = sandbox.run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for option in given.split(", ").filter(|word| word.starts_with("--")) {
        assert!(ran.stdout.contains(option), "{option}");
    }
}
