//! `plimsoll calibrate`, and the figures of the host in the bundle of a run.

use crate::support::{self, Sandbox, json};

#[test]
fn a_host_is_measured_once_and_each_bundle_says_it() {
    let sandbox = Sandbox::new();
    let ran = support::CommandOutput::from(
        sandbox
            .command(&["calibrate", "--json"])
            .env_remove("PLIMSOLL_CALIBRATE")
            .output()
            .unwrap(),
    )
    .expect(0);
    let found = ran.json();
    let rate = found["calibration"]["null"]["operations_per_s"].as_u64().unwrap();
    assert!(rate > 10_000, "{found}");
    assert!(found["score"]["score"].as_f64().unwrap() > 0.0);
    let plan = "version = 1\nname = \"null\"\n[target]\nnull = true\n[workload.matrix]\nsizes = \
                \"4KiB\"\n[phases]\nwarm_up = \"100ms\"\nmeasure = \"200ms\"\n\
                [evidence]\nmin_measure = \"100ms\"\ninterval = \"100ms\"\n";
    let path = sandbox.path("null.toml");
    std::fs::write(&path, plan).unwrap();
    let mut command = sandbox.command(&["run", path.to_str().unwrap(), "--json"]);
    let ran =
        support::CommandOutput::from(command.env_remove("PLIMSOLL_CALIBRATE").output().unwrap());
    assert!(!ran.stderr.contains("ceilings"), "it was measured a moment ago: {}", ran.stderr);
    let environment = json(&sandbox.bundle().join("environment.json"));
    assert_eq!(environment["calibration"]["null_rate_ops_per_s"].as_f64(), Some(rate as f64));
    assert!(environment["cpu_score"].as_f64().unwrap() > 0.0);
}

#[test]
fn where_nothing_was_measured_it_is_unknown() {
    let sandbox = Sandbox::new();
    let plan = "version = 1\nname = \"null\"\n[target]\nnull = true\n[workload.matrix]\nsizes = \
                \"4KiB\"\n[phases]\nwarm_up = \"100ms\"\nmeasure = \"200ms\"\n\
                [evidence]\nmin_measure = \"100ms\"\ninterval = \"100ms\"\n";
    let path = sandbox.path("null.toml");
    std::fs::write(&path, plan).unwrap();
    sandbox.run(&["run", path.to_str().unwrap(), "-q"]);
    let environment = json(&sandbox.bundle().join("environment.json"));
    assert!(environment["calibration"].is_null() && environment["cpu_score"].is_null());
    let unknown = environment["unknown"].as_array().unwrap();
    assert!(unknown.iter().any(|u| u["would_show"] == "plimsoll calibrate"), "{unknown:?}");
}
