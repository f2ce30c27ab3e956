//! Tests of the resolved plan: defaults, text, hash, sweep and required space.

use plimsoll_plan::{
    Claim, Condition, DurationNs, LatencyClass, LatencyLimit, LimitOrigin, LimitSet, Pattern, Plan,
    RESOLVED_VERSION, ResolvedError, ResolvedPlan, SizeBytes, SweepRequest, TargetKind,
    merge_plans, sizes_from_text, sweep_plan,
};
use proptest::prelude::*;

const EVERYTHING: &str = include_str!("../plans/everything.toml");
const STREAMS: &str = include_str!("../plans/streams.toml");
/// Text that version 1 wrote for the plan `everything`. This file and the next never change.
const EVERYTHING_V1: &str = include_str!("../fixtures/everything.resolved-v1.toml");
const STREAMS_V1: &str = include_str!("../fixtures/streams.resolved-v1.toml");

fn resolve(text: &str) -> ResolvedPlan {
    Plan::parse(text, "plan.toml").unwrap_or_else(|e| panic!("{text}\n{e}")).resolve()
}

fn mailbox(requirement: &str, fields: &str, rest: &str) -> String {
    format!(
        "{requirement}\n[target]\npath = \"/mnt/x\"\n[workload.mailbox]\nmailboxes = \
         100\nmailbox_size = \"100MiB\"\n{fields}\n{rest}"
    )
}

#[test]
fn the_text_is_what_version_1_wrote() {
    assert_eq!(RESOLVED_VERSION, 1);
    for (plan, written) in [(EVERYTHING, EVERYTHING_V1), (STREAMS, STREAMS_V1)] {
        // Version 1 accepted a capacity that no run could show. It is now rejected in plans, but
        // still readable.
        let written = written.replace("capacity_bytes = 1099511627776\n", "");
        assert_eq!(resolve(plan).to_toml().expect("writable"), written);
    }
}

#[test]
fn older_forms_are_read() {
    for written in [EVERYTHING_V1, STREAMS_V1] {
        let plan = ResolvedPlan::from_toml(written).expect("readable");
        assert_eq!(plan.to_toml().expect("writable"), written);
        let json = serde_json::to_string(&plan).expect("JSON");
        assert_eq!(serde_json::from_str::<ResolvedPlan>(&json).expect("JSON"), plan);
    }
}

#[test]
fn rejects_newer_versions_and_damage() {
    let newer = EVERYTHING_V1.replace("resolved_version = 1", "resolved_version = 999");
    let error = ResolvedPlan::from_toml(&newer).expect_err("newer");
    assert!(matches!(error, ResolvedError::TooNew { found: 999 }), "{error}");
    let damaged = EVERYTHING_V1.replacen("[phases]", "[phrases]", 1);
    let error = ResolvedPlan::from_toml(&damaged).expect_err("damaged");
    assert!(matches!(error, ResolvedError::Unreadable(_)), "{error}");
}

#[test]
fn the_first_example_holds() {
    let plan = resolve(include_str!("../plans/first.toml"));
    let heavy =
        Plan::parse(include_str!("../../../../../plans/exchange-1000-heavy.toml"), "heavy.toml");
    let heavy = heavy.unwrap_or_else(|e| panic!("{e}")).resolve();
    assert_eq!(plan.workload, heavy.workload);
    assert_eq!(plan.targets, heavy.targets);
    assert_eq!((plan.repeat.runs, plan.repeat.fresh), (3, true));
    assert_eq!(plan.phases.warm_up_ns, 60_000_000_000);
}

#[test]
fn the_hash_is_that_of_the_text() {
    // Computed with `sha256sum tests/fixtures/everything.resolved-v1.toml`.
    let hash = include_str!("../fixtures/everything.sha256").split(' ').next().unwrap_or_default();
    let written = || ResolvedPlan::from_toml(EVERYTHING_V1).expect("readable");
    assert_eq!(written().sha256_hex().expect("writable"), hash);
    let mut other = written();
    other.seed += 1;
    assert_ne!(other.sha256_hex().expect("writable"), hash);
}

#[test]
fn limits_are_strict_up_to_six_hours_and_lenient_beyond() {
    let limits = |measure: &str| {
        let text = mailbox("[requirement]", "", &format!("[phases]\nmeasure = {measure}"));
        let requirement = resolve(&text).requirement.expect("a requirement");
        let ms: Vec<u64> = requirement.limits.iter().map(|l| l.limit_ns / 1_000_000).collect();
        (requirement.limit_set, ms)
    };
    assert_eq!(limits("\"6h\""), (LimitSet::Strict, vec![20, 100, 10, 100]));
    assert_eq!(limits("\"21600001ms\""), (LimitSet::Lenient, vec![20, 200, 10, 200]));
    assert_eq!(limits("\"until-steady\"").0, LimitSet::Strict);
    assert_eq!(limits("\"until-steady\"\nmeasure_max = \"24h\"").0, LimitSet::Lenient);
}

#[test]
fn a_limit_of_the_plan_replaces_that_of_the_set() {
    let text = mailbox(
        "[requirement]\ndb_read_latency_avg = \"12ms\"\ndb_read_latency_p99 = \"50ms\"",
        "",
        "",
    );
    let requirement = resolve(&text).requirement.expect("a requirement");
    let own: Vec<(&str, u64)> = requirement
        .limits
        .iter()
        .filter(|l| l.origin == LimitOrigin::Plan)
        .map(|l| (l.name.as_str(), l.limit_ns))
        .collect();
    assert_eq!(own, [("db_read_latency_avg", 12_000_000), ("db_read_latency_p99", 50_000_000)]);
    assert_eq!(requirement.limits.len(), 5);
}

#[test]
fn a_matrix_has_the_limits_that_it_states() {
    let text = "[requirement]\niops = 5000\nread_latency_p999 = \"5ms\"\nlatency_avg = \
                \"1ms\"\n[target]\npath = \"/x\"\n[workload.matrix]\nfile_size = \"1GiB\"";
    let requirement = resolve(text).requirement.expect("a requirement");
    assert_eq!(requirement.limit_set, LimitSet::Plan);
    assert_eq!(requirement.page_fault_stalls_max_per_s, None);
    let classes: Vec<LatencyClass> = requirement.limits.iter().map(|l| l.class).collect();
    assert_eq!(classes, [LatencyClass::Read, LatencyClass::All]);
    let names: Vec<&str> = requirement.limits.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["read_latency_p999", "latency_avg"]);
    for LatencyLimit { class, statistic, name, .. } in &requirement.limits {
        assert_eq!(&LatencyLimit::field(*class, *statistic), name);
    }
}

#[test]
fn plans_without_a_requirement_have_none() {
    let plan = resolve(&mailbox("", "", ""));
    assert_eq!(plan.requirement, None);
    assert_eq!(plan.claims, [Claim::MediaRead, Claim::SustainedWrite]);
    let claims =
        "[requirement]\nclaims = [\"cached-read\"]\n[target]\nnull = true\n[workload.matrix]";
    let plan = resolve(claims);
    assert_eq!(plan.requirement, None);
    assert_eq!(plan.claims, [Claim::CachedRead]);
}

#[test]
fn claims_follow_the_operations() {
    let claims = |reads: &str| {
        resolve(&format!("[target]\npath = \"/x\"\n[workload.matrix]\nreads = {reads}")).claims
    };
    assert_eq!(claims("100"), [Claim::MediaRead]);
    assert_eq!(claims("0"), [Claim::SustainedWrite]);
    assert_eq!(claims("[100, 50]"), [Claim::MediaRead, Claim::SustainedWrite]);
    assert_eq!(resolve("[target]\nnull = true\n[workload.matrix]").claims, []);
    let two = "[[target]]\nname = \"a\"\nnull = true\n[[target]]\nname = \"b\"\npath = \
               \"/x\"\n[workload.matrix]";
    assert_eq!(resolve(two).claims, [Claim::MediaRead, Claim::Comparative]);
}

#[test]
fn threads_and_cache_follow_the_target() {
    let store = |fields: &str| {
        let plan = resolve(&mailbox("", fields, ""));
        plan.workload.mailbox().expect("a mail store").clone()
    };
    // 100 mailboxes × 9 IOPS × 1.5 / 135 = 10 threads.
    assert_eq!(store("iops_per_mailbox = 9").threads, 10);
    assert_eq!(store("iops_per_mailbox = 9.1").threads, 11);
    assert_eq!(store("").threads, 1);
    assert_eq!(store("databases = 4").threads, 4);
    let eight = store("databases = 4\nthreads_per_database = 2");
    assert_eq!((eight.threads, eight.cache_bytes), (8, 256 << 20));
    let auto = store("iops_per_mailbox = 9\nthreads = \"auto\"");
    assert!(auto.threads_auto && auto.cache_from_threads);
    let twice = auto.with_threads(20);
    assert_eq!((twice.threads, twice.cache_bytes), (20, 640 << 20));
    assert!(!twice.threads_auto);
    let fixed = store("cache = \"100MiB\"").with_threads(20);
    assert_eq!(fixed.cache_bytes, 100 << 20);
}

#[test]
fn rate_is_stated_once() {
    let target = |requirement: &str, fields: &str| {
        let plan = resolve(&mailbox(requirement, fields, ""));
        let required = plan.requirement.as_ref().and_then(|r| r.iops_per_s);
        (plan.workload.mailbox().expect("a mail store").target_iops_per_s, required)
    };
    assert_eq!(target("", ""), (20.0, None));
    assert_eq!(target("[requirement]", "margin = 0.05"), (21.0, Some(21.0)));
    assert_eq!(target("[requirement]\niops = 216", ""), (216.0, Some(216.0)));
    assert_eq!(target("[requirement]\niops = \"20/s\"", "iops_per_mailbox = 0.2").0, 20.0);
}

#[test]
fn databases_are_alike_and_whole_pages() {
    let plan = resolve(&mailbox("", "databases = 3", ""));
    let store = plan.workload.mailbox().expect("a mail store");
    // Each of the three databases has a third of 10,000 MiB, rounded up to pages of 32 KiB, plus a
    // quarter.
    assert_eq!(store.database_initial_pages(), 106_667);
    assert_eq!(store.database_capacity_pages(), 106_667 + 26_667);
    let need = plan.required_bytes(&plan.targets[0]);
    assert_eq!(need.len(), 1);
    assert_eq!(need[0].bytes, 3 * (store.database_capacity_bytes + (44 << 20)));
}

#[test]
fn space_is_dealt_to_directories() {
    let text = "[target]\ndatabases = [\"/a\", \"/b\"]\nlogs = [\"/b\", \
                \"/l\"]\n[workload.mailbox]\nmailboxes = 96\nmailbox_size = \"10MiB\"\ndatabases = \
                3\ngrowth_reserve = 0";
    let plan = resolve(text);
    let figures: Vec<(String, u64)> = plan
        .required_bytes(&plan.targets[0])
        .into_iter()
        .map(|n| (n.directory, n.bytes >> 20))
        .collect();
    let expected = [("/a".to_owned(), 640), ("/b".to_owned(), 320 + 88), ("/l".to_owned(), 44)];
    assert_eq!(figures, expected);
}

#[test]
fn a_sweep_has_a_point_for_each_combination() {
    let text = "[target]\nnfs = [\"nfs://h/a\", \"nfs://h/b\"]\n[workload.matrix]\nsizes = \
                \"4KiB..128KiB\"\nreads = [100, 75, 50, 25, 0]\npatterns = [\"random\", \
                \"sequential\"]\nqueue_depth = 4\nfiles = 15\nfile_size = \"20GB\"\nmetadata = \
                5\n[repeat]\nruns = 2\n";
    let plan = resolve(text);
    let points = plan.points();
    assert_eq!((points.len(), plan.point_count()), (60, 60));
    // Each of the 60 points takes ten minutes and ten seconds, and the plan runs twice.
    assert_eq!(plan.measuring_ns(), DurationNs::s(60 * 2 * 610).0);
    assert_eq!(points[0].label, "random 4KiB r100 q4");
    assert_eq!(points[1].label, "random 4KiB r75 q4");
    assert_eq!(points[59].label, "sequential 128KiB r0 q4");
    let mut labels: Vec<&str> = points.iter().map(|p| p.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), 60);
    for (i, point) in points.iter().enumerate() {
        assert_eq!(point.index, i);
        let stream = &point.plan.workload.matrix().expect("a matrix").streams[0];
        assert_eq!(point.plan.points().len(), 1);
        assert_eq!(point.plan.points()[0].label, point.label);
        assert_eq!((stream.clients, stream.files.shares), (2, 2));
        assert_eq!(stream.files.total_bytes(), Some(600_000_000_000));
        assert_eq!(stream.sizes.len(), 1);
    }
    let last = &points[59].plan.workload.matrix().expect("a matrix").streams[0];
    assert_eq!((last.pattern, last.read_percent), (Pattern::Sequential, 0.0));
    assert!(resolve(&mailbox("", "", "")).points().is_empty());
}

#[test]
fn sizes_of_a_flag_are_lists_or_doubling_ranges() {
    let kib = |sizes: &[u64]| Ok(sizes.iter().map(|s| SizeBytes::kib(*s)).collect());
    assert_eq!(sizes_from_text("4KiB..32KiB"), kib(&[4, 8, 16, 32]));
    assert_eq!(sizes_from_text("4KiB..4KiB"), kib(&[4]));
    assert_eq!(sizes_from_text("4KiB, 64KiB"), kib(&[4, 64]));
    for text in ["4KiB..100KiB", "8KiB..4KiB", "0B..4KiB", "4k..8k", "", "4KiB,"] {
        assert!(sizes_from_text(text).is_err(), "{text}");
    }
}

#[test]
fn flags_make_a_sweep() {
    let request = SweepRequest { targets: vec!["/mnt/x".into()], ..SweepRequest::default() };
    let plan = sweep_plan(&request).unwrap_or_else(|e| panic!("{e}"));
    insta::assert_snapshot!(plan.text());
    let resolved = plan.resolve();
    assert_eq!((resolved.point_count(), resolved.demonstration), (60, false));
    let quick = SweepRequest { quick: true, ..request.clone() };
    let resolved = sweep_plan(&quick).unwrap_or_else(|e| panic!("{e}")).resolve();
    assert_eq!((resolved.phases.measure_ns, resolved.demonstration), (5_000_000_000, true));
    for (targets, kind) in [
        (vec!["/dev/sdb"], "device"),
        (vec!["nfs://h/a", "nfs://h/b"], "nfs"),
        (vec!["model:zfs-flash"], "model"),
        (vec!["null"], "null"),
    ] {
        let targets = targets.into_iter().map(str::to_owned).collect();
        let plan = sweep_plan(&SweepRequest { targets, ..request.clone() });
        let resolved = plan.unwrap_or_else(|e| panic!("{e}")).resolve();
        assert_eq!(resolved.targets[0].kind_word(), kind);
    }
    assert!(sweep_plan(&SweepRequest::default()).is_err(), "no target");
}

#[test]
fn arms_are_plans_with_changes() {
    let base = mailbox("[requirement]\niops = 20", "", "");
    let change = |changes: &str| {
        let text = merge_plans((&base, "base.toml"), (changes, "arm.toml"));
        resolve(&text.unwrap_or_else(|e| panic!("{e}")))
    };
    let threads = change("[workload.mailbox]\nthreads = 7");
    assert_eq!(threads.workload.mailbox().map(|m| (m.threads, m.mailboxes)), Some((7, 100)));
    let model = change("[target]\nmodel = \"adsf-hybrid\"\n[target.set]\n\"tier.up\" = 3");
    let TargetKind::Model { model, set } = &model.targets[0].kind else { panic!("{model:?}") };
    assert_eq!((model.as_str(), set["tier.up"].as_str()), ("adsf-hybrid", "3"));
    let matrix = change("[requirement]\niops = 9\n[workload.matrix]\nreads = 50");
    assert_eq!(matrix.workload.kind(), "matrix");
    let error = merge_plans((&base, "base.toml"), ("a = ", "arm.toml")).expect_err("no TOML");
    assert!(error.to_string().contains("arm.toml:1"), "{error}");
}

#[test]
fn a_check_is_an_object_for_scripts() {
    let text = mailbox("[requirement]", "", "[repeat]\nruns = 3");
    let plan = Plan::parse(&text, "plan.toml").unwrap_or_else(|e| panic!("{e}"));
    let check = serde_json::to_value(plan.check().expect("writable")).expect("JSON");
    assert_eq!(check["ok"], true);
    assert_eq!(check["sha256"], plan.resolve().sha256_hex().expect("writable"));
    assert_eq!(check["points"], 1);
    assert_eq!(check["measuring_ns"], 3 * (600 + 7200) * 1_000_000_000u64);
    assert_eq!(check["needs"][0]["directory"], "/mnt/x");
    assert_eq!(check["resolved"]["workload"]["mailbox"]["mailboxes"], 100);
}

#[test]
fn a_comparison_is_run_target_by_target() {
    let text = "[[target]]\nname = \"ext4\"\npath = \"/e\"\n[[target]]\nname = \"btrfs\"\npath = \
                \"/b\"\n[workload.matrix]\n[phases]\ncondition = \"fill-twice\"";
    let plan = resolve(text);
    assert_eq!(plan.phases.condition, Condition::FillTwice);
    let second = plan.for_target(1).expect("two targets");
    assert_eq!(second.targets.len(), 1);
    assert_eq!(second.targets[0].name, "btrfs");
    assert_eq!(second.workload, plan.workload);
    assert!(plan.for_target(2).is_none());
}

proptest! {
    /// For all sizes, the databases have room for the mailboxes, and all divisors are above 0.
    #[test]
    fn stores_hold_their_mailboxes(
        mailboxes in 1u64..1 << 24,
        size in 1u64..1 << 34,
        databases in 1u64..1 << 10,
        reserve in 0u32..=100,
    ) {
        let text = format!(
            "[target]\npath = \"/x\"\n[workload.mailbox]\nmailboxes = {mailboxes}\nmailbox_size = \
             \"{size}B\"\ndatabases = {databases}\ngrowth_reserve = \"{reserve}%\"\n"
        );
        let plan = Plan::parse(&text, "p.toml");
        prop_assume!(plan.is_ok());
        let resolved = plan.expect("assumed").resolve();
        let store = resolved.workload.mailbox().expect("a mail store");
        let held = u128::from(store.database_initial_bytes) * u128::from(store.databases);
        let requested = u128::from(mailboxes) * u128::from(size);
        prop_assert!(held >= requested && held < requested + (u128::from(databases) << 15));
        prop_assert!(store.database_capacity_bytes >= store.database_initial_bytes);
        prop_assert_eq!(store.database_capacity_bytes % (32 << 10), 0);
        prop_assert!(store.threads >= 1 && store.cache_bytes > 0);
        let needs = resolved.required_bytes(&resolved.targets[0]);
        prop_assert!(u128::from(needs[0].bytes) >= held);
        let text = resolved.to_toml().expect("writable");
        prop_assert_eq!(ResolvedPlan::from_toml(&text).expect("readable"), resolved);
    }
}

#[test]
fn claims_add_to_a_requirement_and_unknown_rules_are_accepted_by_name() {
    let text = mailbox(
        "[requirement]\nclaims = [\"durable-write\"]",
        "",
        "[evidence]\naccept_unknown = [\"memory-target\", \"data-reduced\", \"memory-target\"]",
    );
    let plan = resolve(&text);
    assert_eq!(plan.claims, [Claim::DurableWrite, Claim::Requirement]);
    assert_eq!(plan.evidence.accept_unknown, ["data-reduced", "memory-target"]);
    // Absent fields are not written, so that plans without them keep their hash.
    let none = resolve(&mailbox("[requirement]", "", ""));
    assert!(!none.to_toml().expect("writable").contains("accept_unknown"));
}

#[test]
fn only_plans_with_an_owner_contain_it() {
    let text = "[target]\npath = \"/x\"\n[workload.matrix]\nreads = 70\n";
    let plan = |top: &str| Plan::parse(&format!("{top}{text}"), "t").map(|plan| plan.resolve());
    let owned = plan("owner = \"mail team\"\n").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(owned.owner.as_deref(), Some("mail team"));
    let written = owned.to_toml().expect("writable");
    assert_eq!(ResolvedPlan::from_toml(&written).expect("readable"), owned);
    let plain = plan("").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plain.owner, None);
    assert!(!plain.to_toml().expect("writable").contains("owner"));
    assert!(plan("owner = \" \"\n").is_err(), "an empty name");
}

#[test]
fn only_plans_with_a_comparison_question_contain_it() {
    let text = "[target]\npath = \"/x\"\n[workload.matrix]\nreads = 70\n";
    let plan = |more: &str| {
        let text = format!("{text}{more}");
        Plan::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).resolve()
    };
    let (plain, requested) =
        (plan(""), plan("[compare]\nfactor = [\"kernel\", \"mount-options\"]\n"));
    assert_eq!(requested.compare_factors, ["kernel", "mount-options"]);
    assert_eq!(plan("[compare]\nfactor = \"kernel\"\n").compare_factors, ["kernel"]);
    // Empty factors are not written, so that such plans keep their hash.
    assert!(!plain.to_toml().expect("a plan").contains("compare"));
    assert_eq!(plan("[compare]\n").sha256_hex().ok(), plain.sha256_hex().ok());
    assert_ne!(requested.sha256_hex().ok(), plain.sha256_hex().ok());
}
