//! Verdicts on synthetic evidence: both outcomes of each rule, each check, and the order of the
//! reasons.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Environment, Mount, Transport};
use plimsoll_evidence::observed::{Extents, Observed};
use plimsoll_evidence::run::{
    Checks, ClassTotals, Damage, Driver, End, EndKind, Engine, Instance, PathEngine, Phase,
    PhaseKind, Run, Tier,
};
use plimsoll_evidence::series::{Data, Row};
use plimsoll_judge::claim::ClaimStatus;
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::{Verdict, VerdictKind, judge};
use plimsoll_plan::Plan;

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 60;

const PLAN: &str = "version = 1\nname = \"made-up\"\n[requirement]\n[target]\npath = \
                    \"/x\"\n[workload.mailbox]\nmailboxes = 500\niops_per_mailbox = \
                    0.2\nmailbox_size = \"1MiB\"\ndatabases = 1\nthreads = 4\ncache = \
                    \"8MiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \"30s\"\n";

/// Class of I/O with a constant number of I/Os a second. Its latency depends only on the second.
struct Shape {
    name: &'static str,
    group: &'static str,
    is_read: bool,
    per_second: fn(u64) -> u64,
    latency_ns: fn(u64) -> u64,
}

fn shapes() -> [Shape; 3] {
    let shape = |name, group, is_read, per_second, latency_ns| Shape {
        name,
        group,
        is_read,
        per_second,
        latency_ns,
    };
    // Varies the latency a little, so that the samples are not all equal.
    [
        shape(
            "db0.read",
            "transactional",
            true,
            |s| 90 + s * 7 % 5,
            |s| 5_000_000 + s * 13 % 7 * 10_000,
        ),
        shape("db0.write", "transactional", false, |s| 60 + s * 5 % 3, |_| 2_000_000),
        shape("db0.log_write", "log", false, |_| 40, |s| 1_000_000 + s * 11 % 5 * 10_000),
    ]
}

fn evidence(plan: &str, shapes: &[Shape]) -> Bundle {
    let plan = Plan::parse(plan, "made-up.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let (mut series, mut classes) = (Vec::new(), Vec::new());
    for shape in shapes {
        let (mut count_all, mut sum_all, mut max_all) = (0, 0, 0);
        for second in 0..SECONDS {
            let (count, latency_ns) = ((shape.per_second)(second), (shape.latency_ns)(second));
            let data = Data::Class {
                count,
                sum_ns: count * latency_ns,
                bytes: count * 32_768,
                max_ns: latency_ns,
            };
            series.push(Row {
                phase: 1,
                start_ns: (10 + second) * SECOND_NS,
                duration_ns: SECOND_NS,
                name: shape.name.into(),
                data,
            });
            count_all += count;
            sum_all += count * latency_ns;
            max_all = max_all.max(latency_ns);
        }
        classes.push(ClassTotals {
            name: shape.name.into(),
            group: shape.group.into(),
            instance: 0,
            is_read: shape.is_read,
            count: count_all,
            size_bytes: count_all * 32_768,
            latency_ns_sum: sum_all,
            latency_ns_max: max_all,
            service_ns_sum: sum_all,
            service_ns_max: max_all,
            errors: 0,
            drained: 0,
            drained_bytes: 0,
            abandoned: Some(0),
            never_started: Some(0),
        });
    }
    let phase = |kind, start_s: u64, seconds: u64| Phase {
        kind,
        start_ns: start_s * SECOND_NS,
        duration_ns: seconds * SECOND_NS,
        read_bytes: 0,
        written_bytes: 0,
        reached: true,
        note: String::new(),
        boundary_error_ns: (kind == PhaseKind::Measure).then_some(0),
    };
    let mut observed = Observed::default();
    (observed.generator.user_ns, observed.generator.system_ns) = (Some(SECOND_NS), Some(SECOND_NS));
    (observed.generator.storage_read_bytes, observed.generator.storage_written_bytes) =
        (Some(u64::MAX), Some(u64::MAX));
    (observed.memory.dirty_bytes_after, observed.clock.stopped_ns) = (Some(0), Some(0));
    observed.interposition = Some(Vec::new());
    let run = Run {
        schema_version: 1,
        tool_version: "0".into(),
        build: None,
        run_id: "run".into(),
        name: "made-up".into(),
        plan_sha256: plan.resolve().sha256_hex().unwrap(),
        driver: Driver::Real,
        tier: Tier::T1,
        started_unix_ns: 0,
        duration_ns: 80 * SECOND_NS,
        end: End { kind: EndKind::Completed, says: String::new() },
        ledger: None,
        signed_by: None,
        experiment: None,
        engine: Engine {
            threads: 1,
            closed_loop: true,
            paths: vec![PathEngine { path: "/x".into(), direct: true, ..PathEngine::default() }],
            ..Engine::default()
        },
        phases: vec![phase(PhaseKind::WarmUp, 0, 10), phase(PhaseKind::Measure, 10, SECONDS)],
        classes,
        instances: vec![Instance {
            name: "db0".into(),
            path: "/x".into(),
            log_path: None,
            size_bytes_initial: 500 << 20,
            size_bytes_final: 500 << 20,
            allocated_bytes: 625 << 20,
        }],
        counters: [("page_fault_stalls".to_owned(), 0)].into(),
        checks: Checks { pages_checked: Some(16_000), ..Checks::default() },
        events: Vec::new(),
        durability: None,
    };
    Bundle {
        run,
        plan_text: plan.text().to_owned(),
        job_text: None,
        plan: plan.resolve(),
        environment: Environment {
            cpus: Some(2),
            mounts: vec![Mount {
                path: "/x".into(),
                file_system: Some("ext4".into()),
                ..Mount::default()
            }],
            devices: vec![Device {
                name: "sda".into(),
                kind: "disk".into(),
                transport: Some(Transport::Iscsi),
                ..Device::default()
            }],
            ..Environment::default()
        },
        series,
        observed,
        latency: std::collections::BTreeMap::new(),
        latency_spans: Vec::new(),
        seal_sha256: None,
    }
}

fn good() -> Bundle {
    evidence(PLAN, &shapes())
}

fn outcome(verdict: &Verdict, rule: &str) -> Option<Outcome> {
    let found = verdict.findings.iter().find(|finding| finding.rule == rule);
    let passed = verdict.passed.iter().any(|name| name == rule).then_some(Outcome::Pass);
    found.map(|finding| finding.outcome).or(passed)
}

#[track_caller]
fn assert_check(verdict: &Verdict, name: &str, ok: Option<bool>) {
    let check = verdict.checks.iter().find(|check| check.name == name).unwrap();
    assert_eq!(check.ok, ok, "{check:?}");
}

#[test]
fn a_good_run_passes_with_headroom_and_shows_no_more_than_it_can() {
    let verdict = judge(&good());
    assert_eq!(verdict.verdict, VerdictKind::Pass, "{verdict:#?}");
    assert_eq!(verdict.required_iops_per_s, Some(100.0));
    let achieved = verdict.achieved_iops_per_s.unwrap();
    assert!((150.0..160.0).contains(&achieved), "{achieved}");
    assert!((verdict.headroom.unwrap() - (achieved / 100.0 - 1.0)).abs() < 1e-12);
    assert_eq!(verdict.claims["requirement"], ClaimStatus::Believable);
    for claim in ["media-read", "durable-write", "sustained-write", "tail-latency"] {
        assert_eq!(verdict.claims[claim], ClaimStatus::NotShown, "{claim}");
    }
    // The only findings are rules that are unknown; no rule fails.
    assert!(
        verdict.findings.iter().all(|f| f.outcome == Outcome::Unknown),
        "{:?}",
        verdict.findings
    );
}

#[test]
fn the_same_evidence_gives_the_same_verdict() {
    assert_eq!(judge(&good()), judge(&good()));
}

#[test]
fn what_no_device_moved_is_invalid_and_what_cannot_be_told_is_undecided() {
    let mut bundle = good();
    bundle.observed.generator.storage_read_bytes = None;
    let unknown = judge(&bundle);
    assert_eq!(unknown.verdict, VerdictKind::Inconclusive);
    assert_eq!(outcome(&unknown, "bytes-balance"), Some(Outcome::Unknown));
    let read = bundle.run.classes[0].size_bytes;
    bundle.observed.generator.storage_read_bytes = Some(read * 79 / 100);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Invalid);
    assert_eq!(outcome(&verdict, "bytes-balance"), Some(Outcome::Fail));
    assert_eq!(verdict.claims["requirement"], ClaimStatus::Refuted);
    bundle.observed.generator.storage_read_bytes = Some(read * 81 / 100);
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
}

#[test]
fn room_that_a_store_reserves_is_no_hole_that_is_read() {
    let mut bundle = good();
    bundle.observed.extents =
        Some(Extents { size_bytes: 1000, unwritten_bytes: Some(200), ..Extents::default() });
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
}

#[test]
fn one_failed_io_is_enough() {
    let mut bundle = good();
    bundle.run.classes[0].errors = 1;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Invalid);
    let mut bundle = good();
    bundle.run.end = End { kind: EndKind::NoSpace, says: "the disk is full".into() };
    let verdict = judge(&bundle);
    assert_eq!(
        (verdict.verdict, verdict.reason.as_str()),
        (VerdictKind::Invalid, "the disk is full")
    );
}

#[test]
fn a_failed_check_of_data_goes_before_a_failed_limit() {
    let mut bundle = good();
    bundle.run.classes[0].latency_ns_sum *= 100;
    bundle.run.checks.errors = 1;
    bundle.run.checks.damage =
        vec![Damage { target: "db0".into(), page: 7, kind: "torn".into(), says: "page 7".into() }];
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Invalid);
    assert_eq!(outcome(&verdict, "check-failed"), Some(Outcome::Fail));
    assert_check(&verdict, "checksum_errors", Some(false));
}

#[test]
fn an_interrupted_run_is_inconclusive_even_where_a_limit_failed() {
    let mut bundle = good();
    bundle.run.end = End { kind: EndKind::Interrupted, says: "asked".into() };
    bundle.run.checks.pages_checked = None;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive);
}

#[test]
fn a_check_that_found_nothing_to_check_is_no_check() {
    let mut bundle = good();
    bundle.run.checks.pages_checked = Some(0);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
    assert_check(&verdict, "checksum_errors", None);
}

#[test]
fn less_than_the_plans_own_minimum_is_inconclusive() {
    let mut bundle = good();
    bundle.plan.evidence.min_measure_ns = 60 * SECOND_NS;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
    bundle.plan.evidence.min_measure_ns = 61 * SECOND_NS;
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
    assert_eq!(outcome(&verdict, "measured-too-short"), Some(Outcome::Unknown));
}

#[test]
fn too_little_load_fails_and_a_generator_at_its_limit_takes_that_back() {
    let mut shapes = shapes();
    shapes[0].per_second = |s| 30 + s * 7 % 5;
    let mut bundle = evidence(PLAN, &shapes);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
    assert!(verdict.headroom.unwrap() < 0.0);
    bundle.observed.generator.user_ns = Some(55 * SECOND_NS);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
    assert_eq!(outcome(&verdict, "generator-limit"), Some(Outcome::Warn));
    // A PASS does not change: the storage achieved the required rate even with a busy generator.
    let mut passing = good();
    passing.observed.generator.user_ns = Some(59 * SECOND_NS);
    assert_eq!(judge(&passing).verdict, VerdictKind::Pass);
}

#[test]
fn a_row_shows_the_slowest_database_and_names_the_one_that_leaves_it_open() {
    let plan = PLAN
        .replace("databases = 1", "databases = 2")
        .replace("[requirement]\n", "[requirement]\ndb_write_latency_avg = \"2.2ms\"\n");
    let [reads, writes, log] = shapes();
    let again = |shape: &Shape, name, latency_ns| Shape { name, latency_ns, ..*shape };
    // One database is slow and steady. The other is faster, but so unsteady that its mean is
    // uncertain.
    let slow = |_| 2_100_000;
    let unsteady = |s: u64| if s % 20 == 7 { 15_000_000 } else { 1_300_000 };
    let both = |first, second| {
        let mut bundle = evidence(
            &plan,
            &[
                again(&reads, "db0.read", reads.latency_ns),
                again(&reads, "db1.read", reads.latency_ns),
                again(&writes, "db0.write", first),
                again(&writes, "db1.write", second),
                again(&log, "db0.log_write", log.latency_ns),
                again(&log, "db1.log_write", log.latency_ns),
            ],
        );
        for class in &mut bundle.run.classes {
            class.instance = u32::from(class.name.starts_with("db1"));
        }
        let mut two = bundle.run.instances[0].clone();
        two.name = "db1".into();
        bundle.run.instances.push(two);
        let verdict = judge(&bundle);
        verdict.checks.iter().find(|check| check.name == "db_write_latency_avg").unwrap().clone()
    };
    let row = both(slow, unsteady);
    let reported = serde_json::to_value(&row).unwrap();
    assert_eq!((row.ok, reported["measured_ns"].as_u64()), (None, Some(2_100_000)), "{row:?}");
    for part in ["worst: db0", "db1 has 1.98", "the confidence interval includes the limit"] {
        assert!(row.note.contains(part), "{row:?}");
    }
    // If one database certainly exceeds the limit, the check fails. If another database has the
    // larger mean, the note also names the database that decides.
    let above = |_| 2_300_000;
    let higher = |s: u64| if s % 20 == 7 { 23_000_000 } else { 1_300_000 };
    let row = both(above, higher);
    let reported = serde_json::to_value(&row).unwrap();
    assert_eq!(
        (row.ok, reported["measured_ns"].as_u64()),
        (Some(false), Some(2_385_000)),
        "{row:?}"
    );
    for part in ["worst: db1", "db0 has 2.300 ms, above the limit of 2.200 ms"] {
        assert!(row.note.contains(part), "{row:?}");
    }
    let row = both(slow, above);
    assert_eq!((row.ok, row.note.as_str()), (Some(false), "worst: db1"));
}

#[test]
fn the_maximum_is_the_largest_interval_mean_and_not_the_largest_io() {
    let mut shapes = shapes();
    // One second in an interval of fifteen is slow: the mean is (1,200 + 14 x 5) / 15 = 84.7 ms.
    shapes[0].latency_ns = |s| if s == 20 { 1_200_000_000 } else { 5_000_000 };
    let verdict = judge(&evidence(PLAN, &shapes));
    assert_check(&verdict, "db_read_latency_max", Some(true));
    shapes[0].latency_ns = |s| if s == 20 { 1_600_000_000 } else { 5_000_000 };
    let verdict = judge(&evidence(PLAN, &shapes));
    assert_check(&verdict, "db_read_latency_max", Some(false));
    assert_eq!(verdict.verdict, VerdictKind::Fail);
}

#[test]
fn a_hang_across_the_end_is_in_the_largest_of_interval_means() {
    // Four sessions hang for 90 s. The hang starts a second before the end. The driver would record
    // this evidence.
    let mut bundle = good();
    let hung_ns = 90 * SECOND_NS;
    let class = bundle.run.classes.iter_mut().find(|class| class.name == "db0.read").unwrap();
    (class.count, class.drained) = (class.count + 4, 4);
    class.latency_ns_sum += 4 * hung_ns;
    class.latency_ns_max = hung_ns;
    let measure = bundle.run.measure().unwrap();
    let data = Data::Class { count: 4, sum_ns: 4 * hung_ns, bytes: 0, max_ns: hung_ns };
    bundle.series.push(Row {
        phase: 1,
        start_ns: measure.start_ns + measure.duration_ns,
        duration_ns: 89 * SECOND_NS,
        name: plimsoll_evidence::series::drained_name("db0.read"),
        data,
    });
    let rate_per_s = judge(&good()).achieved_iops_per_s;
    let verdict = judge(&bundle);
    assert_check(&verdict, "db_read_latency_max", Some(false));
    assert_eq!(verdict.verdict, VerdictKind::Fail);
    assert_eq!(verdict.achieved_iops_per_s, rate_per_s, "no rate counts them");
}

#[test]
fn what_never_came_back_refutes_a_requirement_and_what_never_began_leaves_it_open() {
    let mut bundle = good();
    bundle.run.classes[0].abandoned = Some(1);
    let verdict = judge(&bundle);
    assert_eq!(outcome(&verdict, "operations-lost"), Some(Outcome::Fail));
    assert_eq!(verdict.verdict, VerdictKind::Invalid, "{}", verdict.reason);
    let class = &mut bundle.run.classes[0];
    (class.abandoned, class.never_started) = (Some(0), Some(1));
    let verdict = judge(&bundle);
    assert_eq!(outcome(&verdict, "operations-lost"), Some(Outcome::Unknown));
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{}", verdict.reason);
}

#[test]
fn a_mean_whose_interval_straddles_the_limit_is_not_decided() {
    let mut shapes = shapes();
    shapes[2].latency_ns = |s| if s * 7 % 13 < 6 { 4_000_000 } else { 15_500_000 };
    let verdict = judge(&evidence(PLAN, &shapes));
    assert_check(&verdict, "log_write_latency_avg", None);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{}", verdict.reason);
}

#[test]
fn stalls_are_judged_per_second() {
    let mut bundle = good();
    bundle.run.counters.insert("page_fault_stalls".into(), 60);
    assert_check(&judge(&bundle), "page_fault_stalls", Some(true));
    bundle.run.counters.insert("page_fault_stalls".into(), 61);
    assert_eq!(judge(&bundle).verdict, VerdictKind::Fail);
    bundle.run.counters.clear();
    // A value that was not counted is unknown, not zero.
    assert_check(&judge(&bundle), "page_fault_stalls", None);
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive);
}

#[test]
fn less_data_than_stated_is_invalid() {
    let mut bundle = good();
    bundle.run.instances[0].size_bytes_initial = 490 << 20;
    assert_eq!(outcome(&judge(&bundle), "working-set-stated"), Some(Outcome::Fail));
    assert_eq!(judge(&bundle).verdict, VerdictKind::Invalid);
    bundle.run.instances[0].size_bytes_initial = 499 << 20;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
}

#[test]
fn warnings_change_nothing() {
    let mut bundle = good();
    bundle.run.phases[0].reached = false;
    bundle.plan = {
        let text = PLAN.replace("threads = 4", "threads = 4\ncompressibility = 4.0");
        Plan::parse(&text, "made-up.toml").unwrap().resolve()
    };
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Pass);
    assert_eq!(outcome(&verdict, "warm-up-short"), Some(Outcome::Unknown), "it is advice here");
    assert_eq!(outcome(&verdict, "data-content"), Some(Outcome::Warn));
}

#[test]
fn an_open_loop_has_no_headroom_and_is_held_to_its_target() {
    let text = PLAN.replace("threads = 4", "threads = 4\npace = \"target\"");
    let mut shapes = shapes();
    shapes[0].per_second = |_| 60;
    shapes[1].per_second = |_| 39;
    let verdict = judge(&evidence(&text, &shapes));
    assert_eq!(
        (verdict.verdict, verdict.headroom),
        (VerdictKind::Pass, None),
        "{}",
        verdict.reason
    );
    shapes[1].per_second = |_| 38;
    assert_eq!(judge(&evidence(&text, &shapes)).verdict, VerdictKind::Fail);
}

#[test]
fn without_a_requirement_it_is_measured() {
    let text = PLAN.replace("[requirement]\n", "");
    let verdict = judge(&evidence(&text, &shapes()));
    assert_eq!(verdict.verdict, VerdictKind::Measured, "{}", verdict.reason);
    assert_eq!(verdict.checks, []);
}
