//! The plans in `plans/` are valid and state their purpose.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Job, JobFault, Plan, ResolvedPlan};

/// Panics if a plan names a fio job: none of these plans does.
fn no_job(_: &str, name: &str, _: &[String]) -> Result<Job, JobFault> {
    panic!("a job {name}")
}

fn ready_plans() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans");
    let entries = std::fs::read_dir(folder).expect("plans/ exists");
    let files = entries.map(|e| e.expect("an entry").path());
    let mut plans: Vec<PathBuf> =
        files.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    plans.sort();
    plans
}

fn load(name: &str) -> ResolvedPlan {
    let plans = ready_plans();
    let path = plans.iter().find(|p| p.file_stem().is_some_and(|s| s == name)).expect(name);
    Plan::load(path, &no_job).unwrap_or_else(|e| panic!("{e}")).resolve()
}

#[test]
fn every_ready_plan_parses_and_says_what_it_is_for() {
    let plans = ready_plans();
    assert!(plans.len() >= 5, "{plans:?}");
    for path in plans {
        let plan = Plan::load(&path, &no_job).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(Some(plan.name()), path.file_stem().and_then(|s| s.to_str()));
        assert!(plan.text().starts_with("# "), "{} has no comment", path.display());
        assert!(!plan.resolve().description.is_empty(), "{}", path.display());
        let resolved = plan.resolve();
        let text = resolved.to_toml().expect("writable");
        assert_eq!(ResolvedPlan::from_toml(&text).expect("readable"), resolved, "{text}");
    }
}

#[test]
fn heavy_is_a_thousand_mailboxes_of_one_gibibyte_at_200_iops() {
    let plan = load("exchange-1000-heavy");
    let store = plan.workload.mailbox().expect("a mail store");
    assert_eq!((store.mailboxes, store.mailbox_size_bytes), (1000, 1 << 30));
    assert_eq!((store.databases, store.threads), (8, 32));
    let requirement = plan.requirement.as_ref().expect("a requirement");
    assert_eq!(requirement.iops_per_s, Some(200.0));
    let limits: Vec<(&str, u64)> =
        requirement.limits.iter().map(|l| (l.name.as_str(), l.limit_ns / 1_000_000)).collect();
    assert_eq!(
        limits,
        [
            ("db_read_latency_avg", 20),
            ("db_read_latency_max", 100),
            ("log_write_latency_avg", 10),
            ("log_write_latency_max", 100)
        ]
    );
    // Each database has 125 GiB plus a quarter. Its log has 44 files of 1 MiB.
    assert_eq!(store.database_initial_bytes, 125 << 30);
    assert_eq!(store.database_capacity_bytes, (125 << 30) / 4 * 5);
    let needs = plan.required_bytes(&plan.targets[0]);
    let figures: Vec<(&str, u64)> = needs.iter().map(|n| (n.directory.as_str(), n.bytes)).collect();
    let database = store.database_capacity_bytes * 4;
    assert_eq!(
        figures,
        [
            ("/mnt/db1", database),
            ("/mnt/log1", (44 * 4) << 20),
            ("/mnt/db2", database),
            ("/mnt/log2", (44 * 4) << 20)
        ]
    );
}

#[test]
fn profiles_differ_by_their_rate_alone() {
    for (name, iops) in [("exchange-1000-light", 130.0), ("exchange-1000-medium", 170.0)] {
        let plan = load(name);
        let stated = plan.requirement.as_ref().and_then(|r| r.iops_per_s).expect("a rate");
        assert!((stated - iops).abs() < 1e-9, "{stated}");
        let heavy = load("exchange-1000-heavy");
        assert_eq!(plan.targets, heavy.targets);
        assert_eq!(plan.phases, heavy.phases);
    }
}

#[test]
fn ten_thousand_users_need_216_iops_for_two_hours() {
    let plan = load("exchange-10k-users");
    assert_eq!(plan.requirement.as_ref().and_then(|r| r.iops_per_s), Some(216.0));
    assert_eq!(plan.phases.measure_ns, 7200 * 1_000_000_000);
}

#[test]
fn quickstart_is_a_demonstration_of_about_a_minute() {
    let plan = load("quickstart");
    assert!(plan.demonstration);
    assert_eq!(plan.evidence.min_measure_ns, 30 * 1_000_000_000);
    let requirement = plan.requirement.as_ref().expect("a requirement");
    assert_eq!(requirement.latency_max_of_ns, 5 * 1_000_000_000);
    assert!(requirement.iops_from_workload);
    assert!(requirement.iops_per_s.is_some_and(|iops| (iops - 10.0).abs() < 1e-9));
    assert!(plan.phases.measure_ns + plan.phases.warm_up_ns <= 60 * 1_000_000_000);
}
