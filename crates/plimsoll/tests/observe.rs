//! `plimsoll observe -- CMD…`: another benchmark under our eyes.

mod support;

use support::{Sandbox, json};

#[test]
fn what_a_command_writes_shows_at_the_device() {
    let sandbox = Sandbox::new();
    let data = sandbox.data().display().to_string();
    let file = format!("of={data}/file");
    let command = ["dd", "if=/dev/urandom", &file, "bs=1M", "count=8", "conv=fsync"];
    let arguments = [&["observe", "--path", &data, "--json", "--"][..], &command].concat();
    let ran = sandbox.run(&arguments).expect(3);
    // Nothing was measured: no figure, no claim, and that is said.
    assert_eq!(ran.json()["verdict"], "INCONCLUSIVE", "{}", ran.stdout);
    assert_eq!(ran.json()["tier"], "T2");
    let bundle = sandbox.bundle();
    let run = json(&bundle.join("run.json"));
    assert_eq!((run["driver"].as_str(), run["tier"].as_str()), (Some("foreign"), Some("T2")));
    let observed = json(&bundle.join("observed.json"));
    for device in observed["devices"].as_array().unwrap().iter().filter(|d| d["top"] == true) {
        assert!(device["written_bytes"].as_u64().unwrap() >= 8 << 20, "{device}");
    }
    assert_eq!(observed["file_systems"].as_array().unwrap().len(), 1);
    sandbox.run(&["judge", &bundle.display().to_string(), "-q"]).expect(3);
}

#[test]
fn a_command_that_fails_or_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    sandbox.run(&["observe", "--", "/no/such/program"]).expect(2).says("cannot start /no/such");
    sandbox
        .run(&["observe", "--", "false"])
        .expect(5)
        .says("The command ended with exit status: 1");
    sandbox.run(&["observe", "--path", "/nowhere", "--", "true"]).expect(2).says("cannot observe");
    let arguments = ["observe", "--result", "none.json", "--", "true"];
    sandbox.run(&arguments).expect(5).says("cannot read the result");
}
