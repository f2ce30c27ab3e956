//! Tests that a verdict is complete: every field of a requirement is judged, and nothing passes
//! without evidence.
#![allow(clippy::unwrap_used)]

use plimsoll_evidence::observed::Observed;
use plimsoll_evidence::run::{Instance, Phase, PhaseKind};
use plimsoll_plan::{Claim, LatencyClass, LatencyLimit, LatencyStatistic, LimitOrigin, Workload};
use proptest::prelude::*;

use super::*;
use crate::rules::fixtures::{self, SECOND_NS};
use crate::verdict::Quantity;

const MIB: u64 = 1 << 20;

/// Creates a valid run of reads with this requirement. The run reads 10,000 × 4 KiB = 40.96 MB per
/// second at 0.8 ms.
fn required(requirement: &str) -> Bundle {
    fixtures::reads_with("[target]", &format!("[requirement]\n{requirement}\n[target]"))
}

fn check<'v>(verdict: &'v Verdict, name: &str) -> &'v Check {
    verdict.checks.iter().find(|check| check.name == name).unwrap()
}

fn instance(name: &str, size_bytes: u64) -> Instance {
    Instance {
        name: name.into(),
        path: "/x".into(),
        log_path: None,
        size_bytes_initial: size_bytes,
        size_bytes_final: size_bytes,
        allocated_bytes: size_bytes,
    }
}

/// Adds a verification of all data at the end of a run.
fn verified(bundle: &mut Bundle, read_bytes: u64) {
    bundle.plan.phases.verify = true;
    bundle.run.checks.pages_checked = Some(read_bytes / 4096);
    bundle.run.phases.push(Phase {
        kind: PhaseKind::Verify,
        start_ns: 70 * SECOND_NS,
        duration_ns: SECOND_NS,
        read_bytes,
        written_bytes: 0,
        reached: true,
        note: String::new(),
        boundary_error_ns: None,
    });
}

#[test]
fn bandwidth_is_judged_with_its_interval() {
    let verdict = judge(&required("bandwidth = \"900GB/s\""));
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
    assert!(verdict.reason.contains("900000.00 MB/s"), "{}", verdict.reason);
    let verdict = judge(&required("bandwidth = \"40MB/s\""));
    assert_eq!(verdict.verdict, VerdictKind::Pass, "{}", verdict.reason);
    let bandwidth = check(&verdict, "bandwidth");
    let Quantity::Bandwidth { measured_bytes_per_s, .. } = bandwidth.quantity else { panic!() };
    assert!((measured_bytes_per_s.unwrap() - 40.96e6).abs() < 1.0, "{bandwidth:?}");
    let [low, high] = bandwidth.interval.unwrap();
    assert!(low > 40e6 && high < 42e6, "{low} to {high}");
}

#[test]
fn capacity_is_what_was_read_back_whole() {
    // Current versions reject a plan that could not show the capacity. Runs of earlier versions are
    // still judged.
    let mut bundle = required("iops = 5");
    let requirement = bundle.plan.requirement.as_mut().unwrap();
    (requirement.iops_per_s, requirement.capacity_bytes) = (None, Some(900 << 40));
    bundle.run.instances = vec![instance("matrix", 1 << 30)];
    let unchecked = judge(&bundle);
    assert_eq!(unchecked.verdict, VerdictKind::Inconclusive, "{}", unchecked.reason);
    assert_eq!(check(&unchecked, "capacity").ok, None);
    verified(&mut bundle, 1 << 30);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
    bundle.plan.requirement.as_mut().unwrap().capacity_bytes = Some(1 << 30);
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
    // At the end, the run reads back fewer bytes than it wrote at the start.
    bundle.run.phases.last_mut().unwrap().read_bytes = (1 << 30) - MIB;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Fail);
    bundle.run.phases.last_mut().unwrap().reached = false;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive);
}

/// Creates a run that requires 1 GiB and reads all of it back at the end. Replaces `from` with `to`
/// in its plan.
fn roomy(from: &str, to: &str) -> Bundle {
    let mut bundle = required("iops = 5");
    let text = bundle.plan_text.replace(from, to);
    let plan = plimsoll_plan::Plan::parse(&text, "p.toml").unwrap_or_else(|e| panic!("{e}"));
    bundle.plan = plan.resolve();
    bundle.plan.requirement.as_mut().unwrap().capacity_bytes = Some(1 << 30);
    bundle.run.instances = vec![instance("matrix", 1 << 30)];
    verified(&mut bundle, 1 << 30);
    bundle
}

fn capacity_of(bundle: &Bundle) -> (Option<bool>, String) {
    let verdict = judge(bundle);
    let check = check(&verdict, "capacity");
    (check.ok, check.note.clone())
}

#[test]
fn a_load_that_stays_in_a_corner_shows_no_capacity() {
    const SIZE: &str = "file_size = \"1GiB\"";
    let touching = |bundle: &mut Bundle, bytes: u64| {
        bundle.observed.workload.working_set_read_bytes = Some(bytes);
    };
    // The plan restricts the working set.
    for (set, bytes) in [("4KiB", 4096), ("64MiB", 64 << 20), ("512MiB", 512 << 20)] {
        let mut bundle = roomy(SIZE, &format!("{SIZE}\nworking_set = \"{set}\""));
        touching(&mut bundle, bytes);
        let (ok, note) = capacity_of(&bundle);
        assert_eq!(ok, Some(false), "{set}: {note}");
        assert!(note.contains("only"), "{note}");
        assert_eq!(judge(&bundle).verdict, VerdictKind::Fail);
    }
    // The operations use only a small region, although the plan does not restrict them.
    for bytes in [4096, 1 << 20, 32 << 20] {
        let mut bundle = roomy(SIZE, SIZE);
        touching(&mut bundle, bytes);
        assert_eq!(capacity_of(&bundle).0, Some(false), "{bytes}");
    }
    let mut bundle = roomy(SIZE, SIZE);
    touching(&mut bundle, 200 << 20);
    assert_eq!(capacity_of(&bundle).0, None, "neither a corner nor all of it");
    bundle.observed.workload.working_set_read_bytes = None;
    assert_eq!(capacity_of(&bundle).0, None, "nobody looked");
    let mut bundle = roomy(SIZE, &format!("{SIZE}\npatterns = [\"zipf\"]"));
    touching(&mut bundle, 100 << 20);
    bundle.observed.workload.reach_bytes = Some(4 << 20);
    assert_eq!(capacity_of(&bundle).0, None, "much, but all in one place");
}

#[test]
fn a_load_that_goes_everywhere_shows_the_capacity() {
    const SIZE: &str = "file_size = \"1GiB\"";
    assert_eq!(capacity_of(&roomy(SIZE, SIZE)).0, Some(true));
    let whole = format!("{SIZE}\nworking_set = \"1GiB\"");
    assert_eq!(capacity_of(&roomy(SIZE, &whole)).0, Some(true));
    // A short run accesses few blocks, each of them once.
    let mut bundle = roomy(SIZE, SIZE);
    bundle.run.classes[0].size_bytes = 10 << 20;
    bundle.observed.workload.working_set_read_bytes = Some(10 << 20);
    assert_eq!(capacity_of(&bundle).0, Some(true));
    // Case: a load that prefers some regions, but reaches all regions.
    let mut bundle = roomy(SIZE, &format!("{SIZE}\npatterns = [\"zipf\"]"));
    bundle.observed.workload.working_set_read_bytes = Some(100 << 20);
    bundle.observed.workload.reach_bytes = Some(1 << 30);
    assert_eq!(capacity_of(&bundle).0, Some(true));
    // Case: reads access one half, and writes the other half.
    let mut bundle = roomy(SIZE, SIZE);
    bundle.observed.workload.working_set_read_bytes = Some(400 << 20);
    bundle.observed.workload.working_set_bytes = Some(800 << 20);
    assert_eq!(capacity_of(&bundle).0, Some(true));
}

#[test]
fn without_a_check_there_is_no_pass() {
    let mut bundle = required("iops = 5");
    bundle.plan.requirement.as_mut().unwrap().iops_per_s = None;
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
    assert!(verdict.reason.contains("so the verdict cannot be PASS"), "{}", verdict.reason);
}

#[test]
fn a_claim_beside_a_requirement_takes_none_of_its_rules_away() {
    let mut bundle = required("iops = 5");
    bundle.run.engine.paths[0].direct = false;
    bundle.observed.devices[0].read_bytes /= 1000;
    bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
    for claims in [vec![Claim::BurstWrite], vec![Claim::DurableWrite], vec![Claim::CachedRead]] {
        bundle.plan.claims = claims;
        let verdict = judge(&bundle);
        assert_eq!(verdict.verdict, VerdictKind::Invalid, "{}", verdict.reason);
        assert_eq!(verdict.claims["requirement"], ClaimStatus::Refuted);
    }
}

#[test]
fn a_claim_that_nothing_shows_is_no_pass() {
    let mut bundle = required("iops = 5");
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
    bundle.plan.claims = vec![Claim::MediaRead, Claim::Requirement];
    bundle.environment.virtualisation = Some("kvm".into());
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{}", verdict.reason);
    // The plan accepts the unknown rule by name, and the verdict mentions the rule.
    bundle.plan.evidence.accept_unknown = vec!["served-from-cache-below".into()];
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Pass, "{}", verdict.reason);
    assert_eq!(verdict.accepted, ["served-from-cache-below"]);
    assert!(verdict.reason.contains("accepts these rules as unknown: served-from-cache-below"));
    assert_eq!(verdict.claims["media-read"], ClaimStatus::NotShown, "accepted is not shown");
}

#[test]
fn what_failed_or_was_not_carried_out_is_not_accepted() {
    let mut bundle = required("iops = 5");
    let all = rules::ALL.iter().map(|rule| rule.id.to_owned());
    bundle.plan.evidence.accept_unknown = all.collect();
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
    let mut short = bundle.clone();
    short.plan.evidence.min_measure_ns = 3600 * SECOND_NS;
    assert_eq!(judge(&short).verdict, VerdictKind::Inconclusive);
    let mut hung = bundle.clone();
    hung.run.classes[0].abandoned = Some(8);
    assert_eq!(judge(&hung).verdict, VerdictKind::Invalid);
    bundle.run.classes[0].never_started = Some(8);
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive);
}

#[test]
fn a_short_result_of_another_tool_is_inconclusive_only_with_a_claim() {
    let mut bundle = fixtures::reads();
    bundle.plan.evidence.min_measure_ns = 3600 * SECOND_NS;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive, "its own plan asks for an hour");
    bundle.run.driver = Driver::Foreign;
    bundle.plan.claims_assumed = true;
    let short = judge(&bundle);
    assert_eq!(short.verdict, VerdictKind::Measured, "{}", short.reason);
    assert!(short.findings.iter().any(|finding| finding.rule == "measured-too-short"));
    bundle.plan.claims_assumed = false;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive);
    bundle.plan.claims_assumed = true;
    bundle.run.classes.clear();
    let uncounted = judge(&bundle);
    assert_ne!(uncounted.verdict, VerdictKind::Measured, "nothing was measured");
    assert_eq!(uncounted.achieved_iops_per_s, None, "unknown is not zero");
    let finding = uncounted.findings.iter().find(|finding| finding.rule == "measured-too-short");
    assert!(!finding.is_some_and(|finding| finding.evidence.contains_key("operations")));
}

#[test]
fn an_instance_that_cannot_be_judged_leaves_its_row_open() {
    let mut bundle = required("read_latency_avg = \"5ms\"\nread_latency_p9999 = \"5ms\"");
    bundle.run.instances = vec![instance("one", 1 << 30), instance("two", 1 << 30)];
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
    // The plan has a second stream that should read, but this stream did not run.
    let plimsoll_plan::Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!() };
    matrix.streams.push(matrix.streams[0].clone());
    let verdict = judge(&bundle);
    let row = check(&verdict, "read_latency_avg");
    assert_eq!((row.ok, row.quantity.is_measured()), (None, false), "{row:?}");
    assert!(row.note.contains("two"), "{row:?}");
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
    // The row is also undecided if there are too few samples for the percentile.
    let mut second = bundle.run.classes[0].clone();
    (second.name, second.instance, second.count) = ("two.read".into(), 1, 50_000);
    second.latency_ns_sum = 50_000 * fixtures::LATENCY_NS;
    second.size_bytes = 50_000 * 4096;
    let mut histogram = plimsoll_evidence::latency::histogram();
    histogram.record_n(800_000, 50_000).unwrap();
    bundle.latency.insert("two.read".into(), histogram);
    bundle.run.classes.push(second);
    let verdict = judge(&bundle);
    assert_eq!(check(&verdict, "read_latency_p9999").ok, None);
    assert!(check(&verdict, "read_latency_p9999").note.contains("too few for the p9999"));
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
}

#[test]
fn operations_that_came_back_after_the_end_count_for_the_maximum() {
    let mut bundle = required("read_latency_max = \"100ms\"\nlatency_max_of = \"15s\"");
    assert_eq!(judge(&bundle).verdict, VerdictKind::Pass);
    // Eight operations hung for eight seconds. The totals include them, but no interval does.
    let class = &mut bundle.run.classes[0];
    (class.drained, class.latency_ns_max) = (8, 8 * SECOND_NS);
    let sum_ns: u64 = bundle
        .series
        .iter()
        .map(|row| match row.data {
            plimsoll_evidence::series::Data::Class { sum_ns, .. } => sum_ns,
            _ => 0,
        })
        .sum();
    class.latency_ns_sum = sum_ns + 64 * SECOND_NS;
    bundle.run.phases.push(Phase {
        kind: PhaseKind::Close,
        start_ns: 65 * SECOND_NS,
        duration_ns: 8 * SECOND_NS,
        read_bytes: 0,
        written_bytes: 0,
        reached: true,
        note: String::new(),
        boundary_error_ns: None,
    });
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
    assert!(verdict.reason.contains("8000.00 ms"), "{}", verdict.reason);
}

#[test]
fn more_offered_than_required_has_to_be_carried() {
    let open = |rate: u32, iops: u32| {
        let from = "[target]";
        let mut bundle =
            fixtures::reads_with(from, &format!("[requirement]\niops = {iops}\n[target]"));
        let plimsoll_plan::Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!() };
        matrix.streams[0].arrival =
            plimsoll_plan::Arrival::Poisson { rate_per_s: f64::from(rate), ramp_ns: 0 };
        bundle.run.engine.closed_loop = false;
        judge(&bundle).verdict
    };
    // The storage achieved 10,000 operations per second.
    assert_eq!(open(10_050, 10_050), VerdictKind::Pass);
    assert_eq!(open(20_000, 10_050), VerdictKind::Fail);
    assert_eq!(open(20_000, 9_999), VerdictKind::Pass);
}

/// Creates evidence in which random parts are missing.
fn any_bundle() -> impl Strategy<Value = Bundle> {
    let requirement = prop::sample::subsequence(
        vec![
            "iops = 5",
            "bandwidth = \"1MB/s\"",
            "read_latency_avg = \"5ms\"",
            "read_latency_p999 = \"9ms\"",
            "write_latency_avg = \"5ms\"",
            "latency_max = \"50ms\"",
            "metadata_latency_avg = \"5ms\"",
        ],
        1..7,
    );
    (requirement, any::<[bool; 12]>(), 0u64..40).prop_map(|(lines, drop, seconds)| {
        let mut bundle = required(&lines.join("\n"));
        let [
            latency,
            series,
            classes,
            devices,
            environment,
            observed,
            extents,
            ring,
            capacity,
            sampled,
            cache,
            claims,
        ] = drop;
        let clear = |yes: bool, what: &mut dyn FnMut()| {
            if yes {
                what()
            }
        };
        clear(latency, &mut || bundle.latency.clear());
        clear(series, &mut || bundle.series.clear());
        clear(classes, &mut || bundle.run.classes.clear());
        clear(devices, &mut || bundle.observed.devices.clear());
        clear(environment, &mut || bundle.environment = Default::default());
        clear(observed, &mut || bundle.observed = Observed::default());
        clear(extents, &mut || bundle.observed.extents = None);
        clear(ring, &mut || bundle.run.engine.paths.clear());
        clear(sampled, &mut || bundle.run.checks.sampled = None);
        clear(cache, &mut || bundle.run.engine.paths.iter_mut().for_each(|p| p.direct = false));
        clear(claims, &mut || bundle.plan.claims = vec![Claim::TailLatency]);
        if capacity {
            bundle.plan.requirement.as_mut().unwrap().capacity_bytes = Some(1);
        }
        if seconds < 30 {
            bundle.run.phases[1].duration_ns = seconds * SECOND_NS;
        }
        bundle
    })
}

proptest! {
    #[test]
    fn nothing_is_kept_without_a_value_and_no_pass_has_a_gap(bundle in any_bundle()) {
        let verdict = judge(&bundle);
        for check in &verdict.checks {
            prop_assert!(check.ok.is_none() || check.quantity.is_measured(), "{check:?}");
        }
        if verdict.verdict == VerdictKind::Pass {
            prop_assert!(!verdict.checks.is_empty());
            prop_assert!(verdict.checks.iter().all(|check| check.ok == Some(true)));
            prop_assert_eq!(verdict.claims["requirement"], ClaimStatus::Believable);
            prop_assert!(bundle.run.measure().unwrap().duration_ns >= 30 * SECOND_NS);
        }
    }
}

/// Creates streams with metadata operations: 99.5 % of the operations are on metadata and count as
/// no I/O.
fn mostly_metadata(requirement: &str) -> Bundle {
    let mut bundle = required(requirement);
    let Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!() };
    matrix.streams[0].metadata_percent = 99.5;
    let mut names = bundle.run.classes[0].clone();
    (names.name, names.group) = ("matrix.metadata".into(), "metadata".into());
    (names.count, names.size_bytes) = (names.count * 199, 0);
    (names.latency_ns_sum, names.latency_ns_max) = (names.count * 50, 50);
    let mut quick = plimsoll_evidence::latency::histogram();
    quick.record_n(50, names.count).unwrap();
    let spans = fixtures::spans("matrix.metadata", &quick);
    bundle.latency.insert(names.name.clone(), quick);
    bundle.latency_spans.extend(spans);
    bundle.run.classes.push(names);
    bundle
}

#[test]
fn operations_on_names_are_no_ios() {
    // 10,000 reads and 1,990,000 metadata operations per second.
    let verdict = judge(&mostly_metadata("iops = 20000"));
    assert_eq!(check(&verdict, "achieved_iops").ok, Some(false), "{}", verdict.reason);
    assert_eq!(verdict.achieved_iops_per_s.map(f64::round), Some(10_000.0));
    assert_eq!(check(&judge(&mostly_metadata("iops = 9000")), "achieved_iops").ok, Some(true));
    let mut bundle = mostly_metadata("iops = 9000");
    bundle.plan.requirement.as_mut().unwrap().metadata_ops_per_s = Some(1_000_000.0);
    let verdict = judge(&bundle);
    let measured = check(&verdict, "achieved_metadata_ops").quantity;
    assert!(
        matches!(measured, Quantity::Rate { measured_per_s: Some(rate), .. } if rate > 1.9e6),
        "{measured:?}"
    );
}

#[test]
fn each_class_keeps_a_common_latency_limit() {
    // All operations together have a p99 of 50 ns, but the reads alone have a p99 of 1.2 ms.
    let verdict = judge(&mostly_metadata("latency_p99 = \"500us\""));
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
    let verdict = judge(&mostly_metadata("latency_p99 = \"50ms\""));
    assert_eq!(check(&verdict, "latency_p99").ok, Some(true), "{verdict:?}");
}

#[test]
fn a_percentile_that_a_closed_loop_kept_small_is_not_passed() {
    let mut bundle = required("read_latency_p99 = \"10ms\"");
    let Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!() };
    matrix.streams[0].queue_depth = 1;
    // In every fifth second, there are only four reads, and each takes 250 ms.
    let (mut merged, mut stalled) =
        (plimsoll_evidence::latency::histogram(), plimsoll_evidence::latency::histogram());
    stalled.record_n(250_000_000, 4).unwrap();
    for (second, span) in bundle.latency_spans.iter_mut().enumerate() {
        if second % 5 == 4 {
            span.histogram = (&stalled).into();
        }
        span.histogram.add_to(&mut merged);
    }
    bundle.run.classes[0].count = merged.len();
    bundle.run.classes[0].latency_ns_max = merged.max();
    bundle.latency.insert("matrix.read".into(), merged);
    let verdict = judge(&bundle);
    let limit = check(&verdict, "read_latency_p99");
    assert_eq!(limit.ok, Some(false), "{limit:?}");
    assert!(limit.note.contains("20.0 % of the time"), "{}", limit.note);
}

/// Reads take 0.8 ms, and their first bytes arrive after 0.2 ms.
#[test]
fn a_limit_on_first_bytes_is_checked_against_them_alone() {
    let limited = |limit_ns| {
        let mut bundle = required("read_latency_p99 = \"10ms\"");
        let (class, statistic) = (LatencyClass::FirstByte, LatencyStatistic::P99);
        let limit = LatencyLimit::new(class, statistic, limit_ns, LimitOrigin::Plan);
        bundle.plan.requirement.as_mut().unwrap().limits = vec![limit];
        bundle
    };
    let ok = |bundle: &Bundle| check(&judge(bundle), "first_byte_latency_p99").ok;
    assert_eq!(ok(&limited(500_000)), None, "no first byte was recorded");
    let with_class = |limit_ns| {
        let mut bundle = limited(limit_ns);
        let mut first = bundle.run.classes[0].clone();
        (first.name, first.group) = ("matrix.first_byte".into(), figures::FIRST_BYTE.into());
        (first.size_bytes, first.latency_ns_sum) = (0, first.count * 200_000);
        first.latency_ns_max = 200_000;
        let mut spans = bundle.latency_spans.clone();
        for span in &mut spans {
            let mut early = plimsoll_evidence::latency::histogram();
            early.record_n(200_000, 10_000).unwrap();
            (span.tag, span.histogram) = (first.name.clone(), (&early).into());
        }
        bundle.latency_spans.extend(spans);
        let mut all = plimsoll_evidence::latency::histogram();
        all.record_n(200_000, first.count).unwrap();
        bundle.latency.insert(first.name.clone(), all);
        bundle.run.classes.push(first);
        bundle
    };
    assert_eq!(ok(&with_class(500_000)), Some(true), "the whole reads take longer");
    assert_eq!(ok(&with_class(100_000)), Some(false));
    // First bytes do not count as operations: rates and Little's law do not change.
    let verdict = judge(&with_class(500_000));
    assert_eq!(verdict.achieved_iops_per_s, judge(&limited(500_000)).achieved_iops_per_s);
    assert!(verdict.passed.iter().any(|rule| *rule == "littles-law"), "{:?}", verdict.findings);
}

#[test]
fn a_limit_missed_by_a_factor_fails_whatever_is_unknown() {
    // The median exceeds the limit for the p99, and the spans are too few for an interval.
    let mut bundle = required("read_latency_p99 = \"700us\"");
    bundle.latency_spans.truncate(6);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
}

/// For 12 s, a disk takes 100 ms per flush. 121 flushes are too few for a p99, but each of them
/// exceeds a limit of 10 ms.
#[test]
fn operations_too_few_for_a_percentile_still_break_its_limit() {
    let mut bundle = required("read_latency_p99 = \"10ms\"");
    let mut merged = plimsoll_evidence::latency::histogram();
    let mut slow = plimsoll_evidence::latency::histogram();
    slow.record_n(100_000_000, 2).unwrap();
    for span in &mut bundle.latency_spans {
        span.histogram = (&slow).into();
        span.histogram.add_to(&mut merged);
    }
    bundle.run.classes[0].count = merged.len();
    bundle.run.classes[0].latency_ns_max = merged.max();
    bundle.latency.insert("matrix.read".into(), merged);
    let verdict = judge(&bundle);
    let limit = check(&verdict, "read_latency_p99");
    assert_eq!(limit.ok, Some(false), "{limit:?}");
    assert!(limit.note.contains("100 % of"), "{}", limit.note);
    // 60 operations are also too few for a p99. Because all are fast, the limit is undecided.
    let mut bundle = required("read_latency_p99 = \"200ms\"");
    bundle.run.classes[0].count = 60;
    let mut few = plimsoll_evidence::latency::histogram();
    few.record_n(1_000_000, 60).unwrap();
    bundle.latency.insert("matrix.read".into(), few);
    let verdict = judge(&bundle);
    assert_eq!(check(&verdict, "read_latency_p99").ok, None);
}

#[test]
fn an_open_limit_is_named_before_another_unknown() {
    let mut bundle = required("read_latency_p99 = \"1200us\"");
    bundle.plan.claims = vec![Claim::MediaRead, Claim::Requirement];
    bundle.environment.virtualisation = Some("kvm".into());
    bundle.latency_spans.clear();
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{}", verdict.reason);
    assert!(verdict.reason.starts_with("read latency p99"), "{}", verdict.reason);
}

#[test]
fn the_line_that_would_decide_is_printed() {
    let mut bundle = required("iops = 5");
    bundle.plan.claims = vec![Claim::MediaRead, Claim::Requirement];
    bundle.environment.virtualisation = Some("kvm".into());
    let verdict = judge(&bundle);
    assert!(
        verdict.reason.contains("accept_unknown = [\"served-from-cache-below\"] in [evidence]"),
        "{}",
        verdict.reason
    );
}

#[test]
fn a_pass_names_the_figure_that_is_closest_to_its_limit() {
    let latency = |name: &str, limit_ns, ns| {
        let quantity = Quantity::Latency { limit_ns, measured_ns: Some(ns) };
        Check::undecided(name, quantity, false).with_result(Some(true))
    };
    let write = latency("write_latency_p99", 10_000_000, 1_400_000);
    assert_eq!(figure_with_limit(&write), "write p99 1.4 ms (limit 10 ms)");
    let read = latency("read_latency_avg", 1_000_000, 62_000);
    assert_eq!(figure_with_limit(&read), "read avg 62 µs (limit 1 ms)");
    assert!(slack(&write) < slack(&read));
    let rate = Quantity::Rate { limit_per_s: 5.0, measured_per_s: Some(9183.6) };
    let rate = Check::undecided("iops", rate, true).with_result(Some(true));
    assert_eq!(figure_with_limit(&rate), "iops 9184/s (at least 5/s)");
    let near = Quantity::Rate { limit_per_s: 9184.2, measured_per_s: Some(9184.0) };
    let near = Check::undecided("iops", near, true);
    assert_eq!(figure_with_limit(&near), "iops 9184.0/s (at least 9184.2/s)");
    let near = Quantity::Latency { limit_ns: 91_500, measured_ns: Some(91_600) };
    let says = describe_failed(&Check::undecided("read_latency_avg", near, false));
    assert_eq!(says, "read latency avg 0.092 ms is above its limit of 0.0915 ms");
    let none = Quantity::Count { limit_count: 0, measured_count: Some(0) };
    assert_eq!(slack(&Check::undecided("io_errors", none, false)), f64::INFINITY);
}

#[test]
fn each_rule_that_decides_a_verdict_is_a_rule_of_the_audit() {
    let lists: [&[&str]; 5] =
        [&NOT_ACCEPTED, &OUTSIDE_EVENTS, &ALWAYS_DECIDE, &ONLY_WITH_CLAIM, &ALWAYS_REFUTE];
    let specific = Claim::ALL.iter().map(|claim| claims::specific_rules(*claim));
    for id in lists.into_iter().chain(specific).flatten() {
        assert!(rules::ALL.iter().any(|rule| rule.id == *id), "{id}");
    }
}
