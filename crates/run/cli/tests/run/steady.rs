//! Conditioning, and measurements that end at steady state, on real files.

use crate::support::{Sandbox, SmallPlan, found, json};
use serde_json::Value;

/// Writes a plan for a load on files of 16 MiB, with these lines in `[workload.matrix]` and
/// `[phases]`.
fn matrix(sandbox: &Sandbox, workload: &str, phases: &str) -> String {
    let text = format!(
        "version = 1\nname = \"small\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nsizes = \"16KiB\"\nfile_size = \
         \"16MiB\"\n{workload}\n[phases]\nwarm_up = \"100ms\"\n{phases}\n[evidence]\nmin_measure = \
         \"500ms\"\ninterval = \"100ms\"\n",
        sandbox.data().display().to_string()
    );
    let path = sandbox.path("matrix.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn phase<'a>(run: &'a Value, kind: &str) -> Vec<&'a Value> {
    run["phases"].as_array().unwrap().iter().filter(|phase| phase["kind"] == kind).collect()
}

#[test]
fn fill_twice_writes_all_data_twice_and_has_its_chart() {
    let sandbox = Sandbox::new();
    let phases = "measure = \"1s\"\ncondition = \"fill-twice\"\nverify = true";
    let plan = matrix(&sandbox, "reads = 50", phases);
    sandbox.run(&["run", &plan, "-q"]);
    let bundle = sandbox.bundle();
    let run = json(&bundle.join("run.json"));
    let written: u64 =
        phase(&run, "condition").iter().map(|p| p["written_bytes"].as_u64().unwrap()).sum();
    assert_eq!(written, 2 * (16 << 20), "{run}");
    assert_eq!((&run["end"]["kind"], &run["checks"]["errors"]), (&"completed".into(), &0.into()));
    let verdict = json(&bundle.join("verdict.json"));
    assert_eq!(found(&verdict, "conditioned"), "pass", "{verdict}");
    let page = std::fs::read_to_string(bundle.join("report.html")).unwrap();
    assert!(page.contains("Conditioning"));
}

#[test]
fn random_overwrites_end_when_steady_or_say_why_not_and_the_data_stays_whole() {
    let sandbox = Sandbox::new();
    let phases = "measure = \"until-steady\"\nmeasure_max = \"4s\"\nround = \"200ms\"\nverify = \
                  true\ncondition = \"random-overwrite:until-steady\"\ncondition_max = \"4s\"";
    let plan = matrix(&sandbox, "reads = 50", phases);
    sandbox.run(&["run", &plan, "-q"]);
    let bundle = sandbox.bundle();
    let run = json(&bundle.join("run.json"));
    assert_eq!((&run["end"]["kind"], &run["checks"]["errors"]), (&"completed".into(), &0.into()));
    let verdict = json(&bundle.join("verdict.json"));
    for kind in ["condition", "measure"] {
        let [phase] = phase(&run, kind)[..] else { panic!("{run}") };
        let says = phase["note"].as_str().unwrap();
        // The machine determines whether the rate became steady. The verdict must state the result
        // in either case.
        if phase["reached"] == true {
            assert!(says.starts_with("steady from"), "{says}");
        } else {
            assert!(says.starts_with("never became steady"), "{says}");
            assert!(phase["duration_ns"].as_u64().unwrap() >= 3_900_000_000, "{phase}");
        }
        assert!(phase["written_bytes"].as_u64().unwrap() > 0);
    }
    // The judge derives the same result as the driver from the bundle alone.
    let settled = phase(&run, "measure")[0]["reached"] == true;
    let expected = if settled { "pass" } else { "unknown" };
    assert_eq!(found(&verdict, "never-settled"), expected, "{verdict}");
    if !settled {
        assert_eq!(verdict["verdict"], "INCONCLUSIVE", "{verdict}");
    }
}

#[test]
fn a_mail_store_is_measured_until_steady_too_and_is_not_conditioned() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.mailboxes = 8;
    plan.phases = "measure_max = \"4s\"\nround = \"200ms\"".into();
    plan.measure = "until-steady".into();
    sandbox.run(&["run", &sandbox.plan(&plan), "-q"]);
    let bundle = sandbox.bundle();
    let run = json(&bundle.join("run.json"));
    let measure = phase(&run, "measure")[0].clone();
    let expected = if measure["reached"] == true { "pass" } else { "unknown" };
    assert_eq!(found(&json(&bundle.join("verdict.json")), "never-settled"), expected, "{measure}");
    assert!(measure["note"].as_str().unwrap().contains("steady"), "{measure}");

    plan.phases.push_str("\ncondition = \"fill-twice\"");
    sandbox.run(&["run", &sandbox.plan(&plan)]).expect(2).says("`condition` cannot be used with");
    plan.phases = "measure_max = \"1s\"\nround = \"1s\"".into();
    sandbox.run(&["run", &sandbox.plan(&plan)]).expect(2).says("can never become steady");
}

/// In virtual time, the run measures until the maximum, and the judge states whether the rate
/// became steady.
#[test]
fn a_model_is_measured_until_steady_and_is_not_conditioned() {
    let sandbox = Sandbox::new();
    let run = |phases: &str| {
        let text = format!(
            "version = 1\nname = \"volume\"\ndemonstration = true\n[target]\nmodel = \
             \"cloud-volume\"\n[workload.matrix]\nsizes = \"4KiB\"\nfile_size = \
             \"64MiB\"\nqueue_depth = 8\n[phases]\nwarm_up = \
             \"1s\"\n{phases}\n[evidence]\nmin_measure = \"1s\"\ninterval = \"200ms\"\n"
        );
        let path = sandbox.path("volume.toml");
        std::fs::write(&path, text).unwrap();
        sandbox.run(&["run", path.to_str().unwrap(), "-q", "--json"])
    };
    let until = "measure = \"until-steady\"\nmeasure_max = \"20s\"\nround = \"1s\"";
    let steady = run(until).expect(0).json();
    assert_eq!(found(&steady, "never-settled"), "pass", "{steady}");
    run("measure = \"5s\"\ncondition = \"fill-twice\"")
        .expect(2)
        .says("`condition` cannot be used with a model");
}

#[test]
fn a_matrix_is_tuned_by_its_queue_depth() {
    let sandbox = Sandbox::new();
    let plan = matrix(&sandbox, "direct = \"off\"", "measure = \"2s\"\ncache = \"warm\"");
    let ran = sandbox.run(&["tune", &plan, "--max", "4", "--steps", "3", "--json"]);
    let tuning = ran.json();
    assert_eq!(tuning["knob"], "queue-depth", "{}", ran.stderr);
    let steps = tuning["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    let latency = |step: &Value| step["latencies_ns"][0].as_f64().unwrap();
    // The figures of an INVALID run do not show that a limit was met.
    let within = |step: &Value| match step["verdict"] == "INVALID" {
        true => step["within"].is_null(),
        false => step["within"] == true,
    };
    assert!(steps.iter().all(|step| latency(step) > 0.0 && within(step)), "{tuning}");
    assert!(sandbox.left_in_data().is_empty(), "{:?}", sandbox.left_in_data());
}
