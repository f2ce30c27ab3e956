#![allow(clippy::unwrap_used)]

use plimsoll_evidence::observed::{Lag, TraceDue, TraceFile, TraceMapping};
use plimsoll_evidence::run::{End, EndKind};
use plimsoll_plan::{Claim, Plan};

use super::super::fixtures::{self, RATE, SECOND_NS, SECONDS};
use super::*;
use crate::claim::ClaimStatus;
use crate::finding::Outcome;
use crate::judge;
use crate::verdict::VerdictKind;

const MS: u64 = 1_000_000;

/// Returns a run that replays one minute of reads. Each read started shortly after its scheduled
/// time.
fn replayed(pace: &str) -> Bundle {
    let operations = RATE * SECONDS;
    let plan = format!(
        "version = 1\nname = \"t\"\n[target]\npath = \"/x\"\n[workload.trace]\nfile = \
         \"/t.iolog\"\nsha256 = \"5a\"\noperations = {operations}\nspan = \"60s\"\nreads = \
         100\nsize_mix = [{{ size = \"4KiB\", share = 100 }}]\nfile_size = \"1GiB\"\npace = \
         \"{pace}\"\n"
    );
    let plan = Plan::parse(&plan, "t.toml").unwrap_or_else(|errors| panic!("{errors}")).resolve();
    let mut bundle = fixtures::reads();
    (bundle.plan, bundle.run.engine.closed_loop) = (plan, false);
    let (lag, speed) = match pace {
        "as-fast" => (None, None),
        _ => (
            Some(Lag {
                operations,
                wait_ns_sum: operations * 20_000,
                wait_ns_p50: 15_000,
                wait_ns_p99: 90_000,
                wait_ns_max: 4 * MS,
            }),
            Some(1.0),
        ),
    };
    bundle.observed.replay = Some(Box::new(Replay {
        trace: TraceFile {
            file: "/t.iolog".into(),
            sha256: "5a".into(),
            format: "fio iolog version 3".into(),
            ..TraceFile::default()
        },
        operations,
        span_ns: SECONDS * SECOND_NS,
        speed,
        mapping: TraceMapping { rule: "keep".into(), ..TraceMapping::default() },
        due: TraceDue {
            flushes: 0,
            operations,
            reads: operations,
            size_bytes: operations * 4096,
            span_ns: SECONDS * SECOND_NS,
        },
        begun: Some(TraceBegun {
            operations,
            never: 0,
            threads: 1,
            took_ns: Some(SECONDS * SECOND_NS + 20_000),
            lag_end_ns: lag.as_ref().map(|_| 20_000),
            lag,
        }),
    }));
    bundle
}

fn started_part(bundle: &mut Bundle) -> &mut TraceBegun {
    bundle.observed.replay.as_mut().unwrap().begun.as_mut().unwrap()
}

fn outcomes(bundle: &Bundle) -> [Option<Outcome>; 4] {
    [&not_replayed::RULE, &other::RULE, &late::RULE, &left_out::RULE]
        .map(|rule| (rule.check)(bundle).map(|finding| finding.outcome))
}

#[test]
fn runs_without_a_trace_are_not_asked() {
    let bundle = fixtures::reads();
    assert_eq!(outcomes(&bundle), [None; 4]);
    assert!(checks(&bundle).is_empty());
}

#[test]
fn a_replay_in_time_is_measured_and_shown() {
    let bundle = replayed("recorded");
    assert_eq!(outcomes(&bundle), [Some(Outcome::Pass); 4]);
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Measured, "{}", verdict.reason);
    assert!(verdict.reason.contains("followed the trace"), "{}", verdict.reason);
    assert_eq!(verdict.claims["trace-replay"], ClaimStatus::Believable);
    assert_eq!(verdict.checks.len(), 3);
    assert!(verdict.checks.iter().all(|check| check.ok == Some(true)));
}

#[test]
fn a_target_that_falls_behind_fails_and_says_by_how_much() {
    let mut bundle = replayed("recorded");
    let begun = started_part(&mut bundle);
    begun.lag.as_mut().unwrap().wait_ns_p99 = 55 * SECOND_NS;
    (begun.lag_end_ns, begun.took_ns) = (Some(60 * SECOND_NS), Some(120 * SECOND_NS));
    let finding = fixtures::finding(&late::RULE, &bundle);
    assert_eq!(finding.outcome, Outcome::Fail);
    assert!(
        finding.says.contains("the trace that is 60.00 s long took 120.00 s"),
        "{}",
        finding.says
    );
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
    assert!(verdict.checks.iter().all(|check| check.ok == Some(false)), "{:?}", verdict.checks);
}

#[test]
fn what_never_began_is_late_and_its_mix_is_not_known() {
    let mut bundle = replayed("recorded");
    started_part(&mut bundle).never = 10;
    started_part(&mut bundle).lag_end_ns = Some(30 * SECOND_NS);
    let [_, other, late, _] = outcomes(&bundle);
    assert_eq!((other, late), (Some(Outcome::Unknown), Some(Outcome::Fail)));
    assert_eq!(judge(&bundle).verdict, VerdictKind::Fail);
}

#[test]
fn a_generator_that_was_late_itself_refutes_the_replay() {
    let mut bundle = replayed("recorded");
    started_part(&mut bundle).lag.as_mut().unwrap().wait_ns_p99 = 300 * MS;
    let lag = started_part(&mut bundle).lag.clone();
    bundle.observed.generator.lag = lag;
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Invalid, "{}", verdict.reason);
    assert!(verdict.reason.contains("although a slot was free"), "{}", verdict.reason);
    assert_eq!(verdict.claims["trace-replay"], ClaimStatus::Refuted);
}

#[test]
fn another_mix_another_file_another_order_and_operations_left_out_are_no_replay() {
    let changes: [fn(&mut Bundle); 6] = [
        |bundle| bundle.observed.replay.as_mut().unwrap().due.reads /= 2,
        |bundle| bundle.observed.replay.as_mut().unwrap().due.size_bytes /= 2,
        |bundle| bundle.observed.replay.as_mut().unwrap().trace.sha256 = "5b".into(),
        |bundle| started_part(bundle).threads = 2,
        |bundle| bundle.observed.replay.as_mut().unwrap().mapping.outside = RATE * 2,
        |bundle| bundle.run.classes[0].count = RATE * SECONDS * 97 / 100,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut bundle = replayed("recorded");
        change(&mut bundle);
        assert_eq!(outcomes(&bundle)[1], Some(Outcome::Fail), "change {at}");
        assert_eq!(judge(&bundle).verdict, VerdictKind::Invalid, "change {at}");
    }
    let mut bundle = replayed("recorded");
    bundle.run.classes[0].count = RATE * SECONDS * 99 / 100;
    assert_eq!(outcomes(&bundle)[1], Some(Outcome::Pass), "within 2 %");
}

#[test]
fn errors_refute_it_and_an_interruption_leaves_it_open() {
    let mut bundle = replayed("recorded");
    bundle.run.classes[0].errors = 1;
    assert_eq!(outcomes(&bundle)[0], Some(Outcome::Fail));
    assert_eq!(judge(&bundle).verdict, VerdictKind::Invalid);
    let mut bundle = replayed("recorded");
    bundle.run.end = End { kind: EndKind::Interrupted, says: "interrupted".into() };
    bundle.run.phases[1].reached = false;
    assert_eq!(outcomes(&bundle)[0], Some(Outcome::Unknown));
    assert!(checks(&bundle).is_empty());
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive);
}

#[test]
fn flushes_that_were_left_out_are_said() {
    let mut bundle = replayed("recorded");
    let trace = &mut bundle.observed.replay.as_mut().unwrap().trace;
    trace.left_out.insert("flushes".into(), 42);
    let finding = fixtures::finding(&left_out::RULE, &bundle);
    assert_eq!(finding.outcome, Outcome::Warn);
    assert!(finding.says.contains("42 flushes"), "{}", finding.says);
}

#[test]
fn one_that_goes_as_fast_as_the_target_has_no_times_to_keep() {
    let mut bundle = replayed("as-fast");
    started_part(&mut bundle).took_ns = Some(30 * SECOND_NS);
    let finding = fixtures::finding(&late::RULE, &bundle);
    assert_eq!(finding.outcome, Outcome::Pass);
    assert!(finding.says.contains("2.00 times as fast"), "{}", finding.says);
    assert!(checks(&bundle).is_empty());
}

#[test]
fn a_requirement_is_judged_beside_the_trace() {
    let mut bundle = replayed("recorded");
    assert_eq!(bundle.plan.claims, [Claim::TraceReplay]);
    bundle.observed.replay = None;
    assert_eq!(judge(&bundle).verdict, VerdictKind::Inconclusive, "nothing of the replay is known");
}

fn mapped(rule: &str, touched: u64, target: u64, mapped: Option<u64>) -> Bundle {
    let mut bundle = replayed("recorded");
    let replay = bundle.observed.replay.as_mut().unwrap();
    replay.mapping = TraceMapping {
        rule: rule.into(),
        target_bytes: target,
        extent_bytes: touched,
        touched_bytes: touched,
        mapped_bytes: mapped,
        folded: if mapped == Some(touched) { 0 } else { replay.operations / 2 },
        ..TraceMapping::default()
    };
    bundle
}

#[test]
fn a_trace_that_is_folded_onto_few_places_is_not_replayed() {
    const GIB: u64 = 1 << 30;
    for (rule, mapped_bytes) in
        [("wrap", 1 << 20), ("compact and wrap", GIB), ("scale", 4 * GIB), ("wrap", 4096)]
    {
        let bundle = mapped(rule, 100 * GIB, 8 * GIB, Some(mapped_bytes));
        let finding = fixtures::finding(&other::RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail, "{rule}: {}", finding.says);
        assert!(finding.says.contains("100.00 GiB"), "{}", finding.says);
        assert_eq!(judge(&bundle).verdict, VerdictKind::Invalid, "{rule}");
    }
    // Bundles of earlier Plimsoll versions do not record the mapped bytes. The rule then uses the
    // size of the target as an upper bound.
    let earlier = mapped("wrap", 100 * GIB, 8 * GIB, None);
    assert_eq!(outcomes(&earlier)[1], Some(Outcome::Fail));
    let earlier = mapped("scale", 7 * GIB, 8 * GIB, None);
    assert_eq!(outcomes(&earlier)[1], Some(Outcome::Unknown));
}

#[test]
fn a_trace_that_keeps_its_places_apart_is_replayed() {
    const GIB: u64 = 1 << 30;
    for (rule, extent, reached) in [
        ("keep", GIB, GIB),
        ("compact", 4 * GIB, 4 * GIB),
        ("wrap", 8 * GIB, 8 * GIB - (64 << 20)),
        ("scale", 8 * GIB, 8 * GIB / 100 * 95),
    ] {
        let bundle = mapped(rule, extent, 8 * GIB, Some(reached));
        assert_eq!(outcomes(&bundle)[1], Some(Outcome::Pass), "{rule}");
    }
}
