//! Tests of the section `[durability]`: its defaults and the combinations that are rejected.
#![allow(clippy::unwrap_used)]

use plimsoll_plan::{DurabilityPhase, Plan, ResolvedPlan, SyncMethod};

const PATH: &str = "path = \"/mnt/x\"";

fn resolved(target: &str, section: &str, more: &str) -> Result<ResolvedPlan, String> {
    let text = format!("[target]\n{target}\n[workload.matrix]\n[durability]\n{section}\n{more}\n");
    Plan::parse(&text, "p.toml").map(|plan| plan.resolve()).map_err(|errors| errors.to_string())
}

#[test]
fn an_empty_section_has_the_defaults_of_the_command_line() {
    let plan = resolved(PATH, "", "").unwrap();
    assert_eq!(plan.durability, Some(DurabilityPhase::default()));
    assert_eq!(ResolvedPlan::from_toml(&plan.to_toml().unwrap()).unwrap(), plan);
    let bucket = "s3 = \"s3://bucket\"\nendpoint = \"http://127.0.0.1:9000\"";
    let phase = resolved(bucket, "", "").unwrap().durability.unwrap();
    assert_eq!(phase.sync, SyncMethod::Dsync);
    let unflushed = resolved(PATH, "sync = \"direct-only\"", "").unwrap().durability.unwrap();
    assert!(unflushed.direct);
}

#[test]
fn a_phase_that_cannot_be_executed_is_rejected() {
    let two = "[[target]]\nname = \"a\"\npath = \"/a\"\n[[target]]\nname = \"b\"\npath = \"/b\"\n";
    let text = format!("{two}[workload.matrix]\n[durability]\n");
    let said = Plan::parse(&text, "p.toml").unwrap_err().to_string();
    assert!(said.contains("is only possible in a plan with a single run"), "{said}");
    for (target, section, more, says) in [
        ("model = \"single-hdd\"", "", "", "requires a target that stores data"),
        (PATH, "", "[repeat]\nruns = 2", "is only possible in a plan with a single run"),
        (PATH, "restore = [\"true\"]", "", "has an effect only with `cut`"),
        (PATH, "size = \"64KiB\"", "", "is too small"),
        (PATH, "size = \"2TiB\"", "", "is too large"),
        (PATH, "threads = 300", "", "300 exceeds the maximum"),
        (PATH, "load = \"0s\"", "", "is 0"),
        (PATH, "cuts = 0", "", "durability.cuts"),
        (PATH, "kind = \"pover\"", "", "did you mean \"power\"?"),
        ("nfs = \"nfs://h/e\"", "direct = true", "", "requires direct I/O"),
        (
            "s3 = \"s3://bucket\"\nendpoint = \"http://127.0.0.1:9000\"",
            "sync = \"fsync\"",
            "",
            "has no effect on S3",
        ),
    ] {
        let said = resolved(target, section, more).unwrap_err();
        assert!(said.contains(says), "{target} {section} {more}: expected {says:?} in:\n{said}");
    }
}
