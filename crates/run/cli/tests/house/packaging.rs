//! Contents of packages: man pages, completions, the manifest of a Kubernetes job.

use crate::support::{Sandbox, json};
use serde_json::Value;

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
    // Nested subcommands also have man pages.
    assert!(pages.join("plimsoll-model-run.1").exists());
    let missing = sandbox.run(&["man", "--to", sandbox.path("nowhere").to_str().unwrap()]);
    assert_eq!(missing.code, 5, "{}", missing.stderr);
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
}

/// Returns the candidates that bash would show for the last word.
fn candidates(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--", "plimsoll"];
    arguments.extend(words);
    let last = words.len().to_string();
    let requested = [
        ("PLIMSOLL_COMPLETE", "bash"),
        ("_CLAP_COMPLETE_INDEX", last.as_str()),
        ("_CLAP_COMPLETE_COMP_TYPE", "9"),
        ("_CLAP_COMPLETE_SPACE", "true"),
        ("_CLAP_IFS", "\n"),
    ];
    let ran = sandbox.command(&arguments).envs(requested).output().unwrap();
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
        "version = 1\nname = \"small\"\n[target]\npath = {target:?}\n[workload.matrix]\nsizes = \
         \"4KiB\"\nreads = 100\nfile_size = \"8MiB\"\n[phases]\nwarm_up = \"200ms\"\nmeasure = \
         \"1s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n"
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
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--verdict-to"), "{}", ran.stderr);
}

/// Returns the objects in the manifests that `plimsoll k8s` writes. Each object is checked against
/// the fields of the Kubernetes API.
fn kubernetes(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let schema: Value = serde_json::from_str(include_str!("kubernetes.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let ran = sandbox.run(&[&["k8s", "--json"], arguments].concat()).expect(0);
    let items = ran.json()["items"].as_array().unwrap().clone();
    for item in &items {
        let errors: Vec<String> = schema.iter_errors(item).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{item:#}");
    }
    // The volumes and objects that a Job uses exist, and the evidence is not on the volume under
    // test.
    for job in items.iter().filter(|item| item["kind"] == "Job") {
        let pod = &job["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let names = |list: &Value| -> Vec<String> {
            let all = list.as_array().into_iter().flatten();
            all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        let mut used = names(&container["volumeMounts"]);
        used.extend(names(&container["volumeDevices"]));
        used.sort();
        let mut volumes = names(&pod["volumes"]);
        volumes.sort();
        assert_eq!(used, volumes, "{job:#}");
        let evidence = container["env"].as_array().unwrap();
        assert!(evidence.iter().all(|one| one["value"].as_str().unwrap().starts_with("/evidence")));
        let volume = |name: &str| {
            pod["volumes"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
        };
        let plan = &volume("plan")["configMap"]["name"];
        assert!(items.iter().any(|item| item["metadata"]["name"] == *plan), "{plan}");
        assert_ne!(
            volume("evidence")["persistentVolumeClaim"],
            volume("volume")["persistentVolumeClaim"]
        );
    }
    items
}

#[test]
fn jobs_of_kubernetes_have_only_the_fields_of_its_api_and_restricted_pods() {
    let sandbox = Sandbox::new();
    let all = ["--storage-class", "fast", "--storage-class", "gp3.slow", "--plan", "etcd"];
    let items = kubernetes(&sandbox, &all);
    let named = |kind: &str| -> Vec<&str> {
        let own = items.iter().filter(|item| item["kind"] == kind);
        own.map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
    };
    assert_eq!(named("Job"), ["plimsoll-fast", "plimsoll-gp3-slow"]);
    assert_eq!(named("PersistentVolumeClaim"), named("Job"));
    let claim = items.iter().find(|item| item["kind"] == "PersistentVolumeClaim").unwrap();
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    let pod = |items: &[Value]| {
        let job = items.iter().find(|item| item["kind"] == "Job").unwrap();
        job["spec"]["template"]["spec"].clone()
    };
    assert!(pod(&items).to_string().contains("{\"emptyDir\":{},\"name\":\"evidence\"}"));
    let more = ["--namespace", "perf", "--evidence-claim", "keep", "--image", "registry.local/p:1"];
    let kept = kubernetes(&sandbox, &[&all[..], &more].concat());
    assert!(kept.iter().all(|item| item["metadata"]["namespace"] == "perf"));
    assert!(pod(&kept).to_string().contains("\"claimName\":\"keep\""));
    // The plan tests a raw block device.
    let plan = sandbox.path("device.toml");
    std::fs::write(&plan, "[target]\npath = \"/x\"\n[workload.matrix]\nsizes = \"4KiB\"\n")
        .unwrap();
    let block = ["--storage-class", "fast", "--block", "--plan", plan.to_str().unwrap()];
    sandbox.run(&[&["k8s"], &block[..]].concat()).expect(2).says("--claim-size 100GiB");
    let block = kubernetes(&sandbox, &[&block[..], &["--claim-size", "10GiB"]].concat());
    let claim = block.iter().find(|item| item["kind"] == "PersistentVolumeClaim").unwrap();
    assert_eq!(claim["spec"]["volumeMode"], "Block");
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "10Gi");
    assert_eq!(pod(&block)["containers"][0]["volumeDevices"][0]["devicePath"], "/dev/plimsoll");
    assert!(block[0]["data"]["plan.toml"].as_str().unwrap().contains("device = \"/dev/plimsoll\""));
    // A plan is rejected if it needs a file that the Job would not have. A name that Kubernetes
    // does not accept is rejected, too.
    std::fs::write(sandbox.path("a.fio"), "[a]\nrw=read\nsize=1m\n").unwrap();
    std::fs::write(&plan, "[target]\npath = \"/x\"\n[workload.fio]\njob = \"a.fio\"\n").unwrap();
    let with = ["k8s", "--storage-class", "fast", "--plan", plan.to_str().unwrap()];
    sandbox.run(&with).expect(2).says("uses a file");
    sandbox
        .run(&["k8s", "--storage-class", "Fast", "--plan", "etcd"])
        .expect(2)
        .says("not a valid name");
    let out = sandbox.path("jobs");
    let ran = sandbox.run(&[&["k8s"], &all[..], &["--out", out.to_str().unwrap()]].concat());
    ran.expect(0).says("plimsoll-gp3-slow.yaml was written");
    let text = std::fs::read_to_string(out.join("plimsoll-fast.yaml")).unwrap();
    assert!(text.contains("grep -Eq 'Complete|Failed'"), "a wait that ends on failure too: {text}");
}

#[test]
fn the_job_in_the_package_is_what_the_generator_writes() {
    let sandbox = Sandbox::new();
    let after = JOB.split("  plan.toml: |\n").nth(1).unwrap();
    let text: String = after
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line)))
        .collect();
    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, text).unwrap();
    let plan = plan.to_str().unwrap();
    let checked = sandbox.run(&["plan", "check", plan]);
    // In the Job, the volume claim is mounted at /data; on this machine, that directory does not
    // exist.
    assert!([0, 5].contains(&checked.code), "{}", checked.stderr);
    let ran = sandbox.run(&["k8s", "--claim", "your-claim", "--plan", plan]).expect(0);
    assert_eq!(ran.stdout, JOB, "plimsoll k8s --claim your-claim --plan PLAN > job.yaml");
    let items = kubernetes(&sandbox, &["--claim", "your-claim", "--plan", plan]);
    let job = items.iter().find(|item| item["kind"] == "Job").unwrap();
    let args = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let mut arguments: Vec<&str> = args.iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(arguments[..2], ["run", "/plan/plan.toml"]);
    arguments.push("--help");
    let help = sandbox.run(&arguments).expect(0).stdout;
    for option in args.iter().filter_map(Value::as_str).filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "{option}");
    }
}
