//! Tests the windows before, during and after an event, with synthetic runs.
#![allow(clippy::unwrap_used)]

use plimsoll_evidence::events::{CommandRecord, EventRecord};

use super::*;
use crate::judge;
use crate::rules::fixtures::{self, LATENCY_NS, RATE, SECOND_NS};
use crate::verdict::{Verdict, VerdictKind};

/// The measured phase starts at 5 s and takes 60 s. The event follows 20 s later, at 25 s.
const EVENT: &str = "[[event]]\nname = \"cut\"\nat = \"20s\"\nrun = [\"cut\"]\n";
const AT_NS: u64 = 25 * SECOND_NS;

/// Returns a run with these limits and an outage of `outage_s` that starts at the event.
fn run(outage_s: f64, limits: &str) -> Bundle {
    let plan = "[workload.matrix]\nfile_size";
    let with = format!("[requirement]\n{limits}{EVENT}{plan}");
    let mut bundle = fixtures::reads_with(plan, &with);
    let silent_tenths = (outage_s * 10.0) as u64;
    let is_silent = |tenth: u64| (200..200 + silent_tenths).contains(&tenth);
    fixtures::rates(&mut bundle, |tenth| match is_silent(tenth) {
        true => (0, LATENCY_NS),
        false => (RATE / 10 + tenth * 7 % 11, LATENCY_NS),
    });
    bundle.series.retain(|row| !matches!(row.data, Data::Class { count: 0, .. }));
    let seconds = outage_s as u64;
    bundle.latency_spans.retain(|span| {
        !(AT_NS..AT_NS + seconds * SECOND_NS).contains(&(span.start_ns + span.duration_ns / 2))
    });
    let command = CommandRecord {
        argv: vec!["cut".to_owned()],
        start_ns: AT_NS,
        end_ns: AT_NS + SECOND_NS / 10,
        exit_code: Some(0),
        ..CommandRecord::default()
    };
    bundle.run.events = vec![EventRecord {
        name: "cut".to_owned(),
        at_ns: Some(AT_NS),
        command: Some(command),
        ..EventRecord::default()
    }];
    bundle
}

fn part(bundle: &Bundle, window: Window) -> Part {
    Windows::of(bundle).unwrap().part(window).unwrap()
}

fn check<'v>(verdict: &'v Verdict, name: &str) -> &'v crate::verdict::Check {
    let found = verdict.checks.iter().find(|check| check.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", verdict.checks))
}

#[test]
fn the_stations_of_a_model_are_compared_by_window() {
    let mut bundle = run(10.0, "[requirement.during]\noutage_max = \"12s\"\n");
    let phase = bundle.series[0].phase;
    for second in 0..60 {
        for (name, before, during) in [("node0.hdd.0", 0.2, 0.3), ("node1.hdd.0", 0.4, 0.9)] {
            bundle.series.push(plimsoll_evidence::series::Row {
                phase,
                start_ns: (5 + second) * SECOND_NS,
                duration_ns: SECOND_NS,
                name: format!("model.{name}.utilisation"),
                data: Data::Gauge(if second < 20 { before } else { during }),
            });
        }
    }
    // An idle station has no rows. Before the event, this station worked in every second interval.
    for second in (0..20).step_by(2) {
        bundle.series.push(plimsoll_evidence::series::Row {
            phase,
            start_ns: (5 + second) * SECOND_NS,
            duration_ns: SECOND_NS,
            name: "model.cpu.utilisation".to_owned(),
            data: Data::Gauge(0.8),
        });
    }
    let windows = Windows::of(&bundle).unwrap();
    let stations = station_windows(&bundle, &windows);
    let [disks, cpu] = &stations[..] else { panic!("{stations:?}") };
    assert_eq!(disks.name, "node*.hdd.*");
    let near = |share: Option<f64>, expected: f64| (share.unwrap() - expected).abs() < 1e-9;
    assert!(near(disks.before, 0.3) && near(disks.during, 0.6), "{disks:?}");
    assert_eq!(disks.busiest, "node1.hdd.0");
    assert!(near(disks.busiest_during, 0.9) && disks.after.is_none());
    assert!(near(cpu.before, 0.4) && near(cpu.during, 0.0), "{cpu:?}");
}

#[test]
fn an_outage_and_its_recovery_are_measured() {
    let bundle = run(10.0, "[requirement.during]\noutage_max = \"12s\"\n");
    let windows = Windows::of(&bundle).unwrap();
    assert_eq!((windows.action.as_str(), windows.action_ns), ("cut", AT_NS));
    assert_eq!(windows.recovery_ns, Ok(10 * SECOND_NS));
    let before = part(&bundle, Window::Before);
    assert_eq!((before.from_ns, before.to_ns), (5 * SECOND_NS, AT_NS));
    // The run must stay recovered for a minute, but it ends earlier.
    assert_eq!(windows.part(Window::After), None);
    let found = outage(&bundle, part(&bundle, Window::During)).unwrap();
    assert_eq!((found.low_ns, found.high_ns), (10 * SECOND_NS, 10 * SECOND_NS + SECOND_NS / 5));
    assert_eq!(outage(&bundle, before).unwrap().low_ns, 0);
}

#[test]
fn a_planned_pause_is_no_outage() {
    let mut bundle = run(10.0, "[requirement.during]\noutage_max = \"3s\"\n");
    let matrix = match &mut bundle.plan.workload {
        plimsoll_plan::Workload::Matrix(matrix) => matrix,
        other => panic!("{other:?}"),
    };
    let (on_ns, off_ns) = (20 * SECOND_NS, 10 * SECOND_NS);
    matrix.streams[0].arrival =
        plimsoll_plan::Arrival::Bursts { rate_per_s: 10_000.0, on_ns, off_ns };
    let low_ns = |bundle: &Bundle| outage(bundle, part(bundle, Window::During)).unwrap().low_ns;
    assert_eq!(low_ns(&bundle), 0);
    // The first operation after the pause was waiting for 9 s.
    let mut waited = bundle.clone();
    let first = waited.series.iter_mut().find(|row| row.start_ns >= AT_NS + 10 * SECOND_NS);
    if let Data::Class { max_ns, .. } = &mut first.unwrap().data {
        *max_ns = 9 * SECOND_NS;
    }
    assert!(low_ns(&waited) >= 8 * SECOND_NS, "{}", low_ns(&waited));
    // Operations that never completed may have waited throughout.
    bundle.run.classes[0].abandoned = None;
    assert_eq!(low_ns(&bundle), 10 * SECOND_NS);
}

#[test]
fn without_an_effect_nothing_is_found() {
    let bundle = run(0.0, "[requirement.during]\noutage_max = \"1s\"\n");
    assert_eq!(Windows::of(&bundle).unwrap().recovery_ns, Ok(0));
    assert_eq!(outage(&bundle, part(&bundle, Window::During)).unwrap().duration_ns, 0);
    let verdict = judge(&bundle);
    assert_eq!(check(&verdict, "during_outage").ok, Some(true), "{verdict:?}");
    let rule = "event-without-effect";
    let warned = verdict.findings.iter().find(|finding| finding.rule == rule).unwrap();
    assert!(warned.says.starts_with("\"cut\" changed no figure: the rate was 100 %"), "{warned:?}");
    assert_eq!(verdict.verdict, VerdictKind::Pass, "a system that absorbs a failure passes");
    // The rule detects effects of all kinds: an outage, a single long operation, a failed
    // operation.
    let seen = |bundle: &Bundle| judge(bundle).passed.iter().any(|passed| passed == rule);
    assert!(!seen(&bundle) && seen(&run(2.0, "[requirement.during]\noutage_max = \"1s\"\n")));
    let mut slow = bundle.clone();
    let at = slow.series.iter_mut().find(|row| row.start_ns >= AT_NS + SECOND_NS).unwrap();
    if let Data::Class { max_ns, .. } = &mut at.data {
        *max_ns *= 5;
    }
    assert!(seen(&slow));
    // If an event starts streams or stops hosts, these count as its effect.
    let mut lost = bundle;
    lost.plan.events[0].expect_lost = vec!["c".to_owned()];
    let verdict = judge(&lost);
    assert!(!verdict.findings.iter().any(|finding| finding.rule == rule) && !seen(&lost));
}

#[test]
fn a_slice_has_the_operations_of_its_window_only() {
    let bundle = run(10.0, "[requirement.during]\noutage_max = \"12s\"\n");
    let before = slice_window(&bundle, Window::Before).unwrap();
    let class = &before.run.classes[0];
    let rows = class_rows(&before).filter_map(|(_, _, _, data)| match data {
        Data::Class { count, .. } => Some(count),
        Data::Gauge(_) => None,
    });
    assert_eq!(class.count, rows.sum::<u64>());
    assert!((class.count as f64 / 20.0 / RATE as f64 - 1.0).abs() < 0.1, "{}", class.count);
    assert_eq!(before.latency[&class.name].len(), 20 * RATE);
    assert_eq!(before.run.measure().unwrap().duration_ns, 20 * SECOND_NS);
}

#[test]
fn limits_of_windows_decide_the_verdict() {
    for (outage_s, limits, name, ok) in [
        (10.0, "[requirement.during]\noutage_max = \"12s\"\n", "during_outage", true),
        (10.0, "[requirement.during]\noutage_max = \"9s\"\n", "during_outage", false),
        (10.0, "[requirement.during]\niops = \"70% of before\"\n", "during_iops", true),
        (10.0, "[requirement.during]\niops = \"80% of before\"\n", "during_iops", false),
        (10.0, "[requirement.during]\niops = 7000\n", "during_iops", true),
        (10.0, "[requirement.before]\niops = 9000\n", "before_iops", true),
        (
            10.0,
            "[requirement.before]\nread_latency_p99 = \"2ms\"\n",
            "before_read_latency_p99",
            true,
        ),
        (
            10.0,
            "[requirement.before]\nread_latency_p99 = \"1ms\"\n",
            "before_read_latency_p99",
            false,
        ),
        (10.0, "[requirement.after]\nrecovery_max = \"11s\"\n", "after_recovery", true),
        (10.0, "[requirement.after]\nrecovery_max = \"9s\"\n", "after_recovery", false),
        (40.0, "[requirement.after]\nrecovery_max = \"30s\"\n", "after_recovery", false),
    ] {
        let verdict = judge(&run(outage_s, limits));
        assert_eq!(check(&verdict, name).ok, Some(ok), "{limits}{:?}", check(&verdict, name));
        if !ok {
            assert_eq!(verdict.verdict, VerdictKind::Fail, "{}", verdict.reason);
        }
    }
}

#[test]
fn a_system_that_does_not_recover_in_the_run_fails_or_stays_open() {
    let bundle = run(40.0, "[requirement.after]\nrecovery_max = \"5m\"\n");
    let windows = Windows::of(&bundle).unwrap();
    assert_eq!(windows.recovery_ns, Err(NoRecovery::NotWithinRun(40 * SECOND_NS)));
    let verdict = judge(&bundle);
    let check = check(&verdict, "after_recovery");
    assert_eq!(check.ok, None);
    assert!(check.note.contains("did not recover in the 40 s"), "{}", check.note);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive);
}

#[test]
fn a_command_that_failed_or_came_late_refutes_the_run() {
    let limits = "[requirement.during]\noutage_max = \"12s\"\n";
    let honest = run(10.0, limits);
    assert!(judge(&honest).verdict != VerdictKind::Invalid, "{}", judge(&honest).reason);
    let changed = |change: &dyn Fn(&mut EventRecord)| {
        let mut bundle = honest.clone();
        change(&mut bundle.run.events[0]);
        let verdict = judge(&bundle);
        (verdict.verdict, verdict.reason)
    };
    let failed = changed(&|event| {
        event.command.as_mut().unwrap().failure = "it exited with code 1".to_owned();
    });
    assert_eq!(failed.0, VerdictKind::Invalid);
    assert!(failed.1.contains("its command failed: it exited with code 1"), "{}", failed.1);
    let failed = changed(&|event| {
        let failure = "it exited with code 1".to_owned();
        event.undo = Some(CommandRecord { failure, ..CommandRecord::default() });
    });
    assert!(failed.1.contains("its undo command failed: it exited"), "{}", failed.1);
    let other = changed(&|event| event.command.as_mut().unwrap().argv = vec!["true".to_owned()]);
    assert!(
        other.0 == VerdictKind::Invalid && other.1.contains("a different command"),
        "{other:?}"
    );
    let late = changed(&|event| event.at_ns = Some(66 * SECOND_NS));
    assert!(
        late.0 == VerdictKind::Invalid && late.1.contains("outside the measurement"),
        "{late:?}"
    );
    let missed = changed(&|event| {
        (event.at_ns, event.command) = (None, None);
        event.missed = "the measurement ended before its time".to_owned();
    });
    assert!(
        missed.0 == VerdictKind::Inconclusive && missed.1.contains("did not happen"),
        "{missed:?}"
    );
    let mut bundle = honest.clone();
    bundle.run.events.clear();
    assert!(judge(&bundle).reason.contains("no record of event"), "{}", judge(&bundle).reason);
}

#[test]
fn an_unsteady_rate_before_the_event_leaves_the_run_open() {
    let mut bundle = run(10.0, "[requirement.during]\noutage_max = \"12s\"\n");
    fixtures::rates(&mut bundle, |tenth| (500 + tenth.min(200) * 5, LATENCY_NS));
    let verdict = judge(&bundle);
    assert_eq!(verdict.verdict, VerdictKind::Inconclusive, "{}", verdict.reason);
    let findings = verdict.findings.iter().map(|finding| finding.rule.as_str());
    assert!(findings.collect::<Vec<_>>().contains(&"before-unsteady"));
}

#[test]
fn failed_operations_count_in_the_window_that_allows_them() {
    let with_errors = |limits: &str, at_s: u64| {
        let mut bundle = run(10.0, limits);
        let start_ns = at_s * SECOND_NS;
        let name = plimsoll_evidence::series::errors_name(&bundle.run.classes[0].name);
        let (phase, duration_ns, data) = (1, SECOND_NS / 10, Data::Gauge(7.0));
        let row = plimsoll_evidence::series::Row { phase, start_ns, duration_ns, name, data };
        bundle.series.push(row);
        bundle.run.classes[0].errors = 7;
        judge(&bundle)
    };
    let allowed = with_errors("[requirement.during]\nerrors_max = 7\n", 26);
    assert_eq!(check(&allowed, "during_errors").ok, Some(true));
    assert_ne!(allowed.verdict, VerdictKind::Invalid, "{}", allowed.reason);
    let more = with_errors("[requirement.during]\nerrors_max = 6\n", 26);
    assert_eq!((check(&more, "during_errors").ok, more.verdict), (Some(false), VerdictKind::Fail));
    let before = with_errors("[requirement.during]\nerrors_max = 7\n", 10);
    assert_eq!(before.verdict, VerdictKind::Invalid, "before the event nothing may fail");
    let unlimited = with_errors("[requirement.during]\noutage_max = \"20s\"\n", 26);
    assert_eq!(unlimited.verdict, VerdictKind::Invalid);
}

/// Otherwise, an event without an effect early in a run would hide a later loss.
#[test]
fn the_time_after_the_recovery_must_be_steady_too() {
    let lost_from = [None, Some(2000)];
    let failed = lost_from.map(|lost_from| {
        let mut bundle = run(0.0, "iops = 1000\n");
        bundle.run.phases[1].duration_ns = 300 * SECOND_NS;
        let rows: Vec<_> = bundle.series.iter().filter(|row| row.phase == 1).cloned().collect();
        let first = rows.into_iter().find(|row| matches!(row.data, Data::Class { .. })).unwrap();
        bundle.series = (0..3000u64)
            .map(|tenth| {
                let is_lost = lost_from.is_some_and(|from| tenth >= from);
                let count = if is_lost { RATE / 40 } else { RATE / 10 + tenth * 7 % 11 };
                let sum_ns = count * LATENCY_NS;
                let data = Data::Class { count, sum_ns, bytes: count * 4096, max_ns: LATENCY_NS };
                let start_ns = 5 * SECOND_NS + tenth * SECOND_NS / 10;
                plimsoll_evidence::series::Row { start_ns, data, ..first.clone() }
            })
            .collect();
        let windows = Windows::of(&bundle).unwrap();
        assert_eq!(windows.recovery_ns, Ok(0), "{lost_from:?}");
        assert!(windows.part(Window::After).is_some());
        let findings = judge(&bundle).findings.into_iter();
        let late = findings.filter(|f| f.outcome == crate::finding::Outcome::Fail);
        late.filter(|f| f.says.starts_with("after the recovery")).count()
    });
    assert_eq!(failed[0], 0);
    assert!(failed[1] > 0, "{failed:?}");
}

/// Compares four runs that have the first outage with four runs that have the second outage.
fn compare(outages_s: [f64; 2]) -> crate::compare::Comparison {
    let sides = outages_s.map(|outage_s| {
        let run = |at: u32| {
            run(outage_s + f64::from(at) / 10.0, "[requirement.during]\noutage_max = \"50s\"\n")
        };
        let runs: Vec<Bundle> = (0..4).map(run).collect();
        let verdicts: Vec<Verdict> = runs.iter().map(judge).collect();
        (runs, verdicts)
    });
    let side = |at: usize| crate::compare::Side {
        name: ["one", "two"][at].to_owned(),
        runs: sides[at].0.iter().zip(&sides[at].1).collect(),
    };
    crate::compare::compare(&[side(0), side(1)], &[], &[])
}

#[test]
fn systems_are_compared_window_by_window() {
    let comparison = compare([5.0, 10.0]);
    let ratio = |key: &str| {
        let metric = comparison.metrics.iter().find(|metric| metric.key == key);
        metric.unwrap_or_else(|| panic!("{key}")).sides[1].ratio.unwrap()
    };
    assert!((ratio("before_iops_per_s") - 1.0).abs() < 0.01);
    assert!((ratio("outage_ns") - 10.15 / 5.15).abs() < 0.05, "{}", ratio("outage_ns"));
    // The recovery is located to within one second.
    assert!((ratio("recovery_ns") - 10.15 / 5.15).abs() < 0.2, "{}", ratio("recovery_ns"));
    assert!((ratio("during_iops_per_s") - 29.85 / 34.85).abs() < 0.02);
    let allowances = crate::compare::Allowances::parse(&["outage=50%".to_owned()]).unwrap();
    let gate = crate::compare::gate(&comparison, &allowances).unwrap();
    assert_eq!(gate.figures[0].outcome, crate::compare::GateOutcome::Worse, "{gate:?}");
}

#[test]
fn a_missing_recovery_counts_as_the_time_that_the_run_waited() {
    let comparison = compare([5.0, 39.0]);
    let recovery = comparison.metrics.iter().find(|metric| metric.key == "recovery_ns").unwrap();
    assert_eq!(recovery.sides[1].values, [40e9; 4]);
    let says =
        "two: 4 of 4 runs had not recovered at the end of the run, at least 40 s after the event";
    assert!(comparison.remarks.iter().any(|r| r.starts_with(says)), "{:?}", comparison.remarks);
}

#[test]
fn runs_without_an_outage_have_a_ratio_too() {
    let comparison = compare([0.0, 0.0]);
    let outage = comparison.metrics.iter().find(|metric| metric.key == "outage_ns").unwrap();
    assert_eq!(outage.sides[0].values[0], 1e8, "one interval");
}
