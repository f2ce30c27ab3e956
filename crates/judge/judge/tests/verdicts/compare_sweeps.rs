//! Comparisons of synthetic sweeps: the ratio of each cell, significant cells, and skipped cells.

use crate::fixtures::{plan, run_of};
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, ExperimentKind, Membership};
use plimsoll_judge::compare::{
    CellOutcome, IntervalOf, Outcome, Side, SweepComparison, compare_sweeps,
};
use plimsoll_judge::{Verdict, judge};

const MS: u64 = 1_000_000;
const SIZES: [&str; 2] = ["4KiB", "32KiB"];
const READS: [u32; 3] = [100, 50, 0];

/// Creates a sweep of two sizes and three read shares. `rate(size, reads)` is the rate of each
/// cell.
fn sweep(rate: impl Fn(usize, usize) -> f64, more: &str) -> Vec<Bundle> {
    let mut points = Vec::new();
    for (i, size) in SIZES.iter().enumerate() {
        for (k, reads) in READS.iter().enumerate() {
            let text = format!(
                "version = 1\nname = \"swept\"\n[target]\npath = \"/x\"\n[workload.matrix]\nsizes = \
                 [\"{size}\"]\nreads = [{reads}]\nfile_size = \"500MiB\"\n{more}\n[phases]\nmeasure \
                 = \"60s\"\n[evidence]\nmin_measure = \"30s\"\n"
            );
            let share = f64::from(*reads) / 100.0;
            let (group, rate, bytes) = ("transactional", rate(i, k), [4096, 32_768][i]);
            let shapes = [
                ("s.read", group, true, rate * share, 5 * MS, bytes),
                ("s.write", group, false, rate * (1.0 - share), 5 * MS, bytes),
            ];
            let carried: Vec<_> = shapes.into_iter().filter(|shape| shape.3 > 0.0).collect();
            let mut bundle = run_of(&plan(&text), &format!("p{i}{k}"), &carried);
            bundle.run.experiment = Some(Membership {
                id: "s".into(),
                kind: ExperimentKind::Sweep,
                arm: format!("random {size} r{reads} q4"),
                number: points.len() as u32 + 1,
                data_of_run: None,
            });
            points.push(bundle);
        }
    }
    points
}

fn compared(a: &[Bundle], b: &[Bundle], accepted: &[&str]) -> SweepComparison {
    let verdicts = |runs: &[Bundle]| runs.iter().map(judge).collect::<Vec<Verdict>>();
    let (of_a, of_b) = (verdicts(a), verdicts(b));
    fn side<'a>(name: &str, runs: &'a [Bundle], verdicts: &'a [Verdict]) -> Side<'a> {
        Side { name: name.into(), runs: runs.iter().zip(verdicts).collect() }
    }
    let accepted: Vec<String> = accepted.iter().map(|word| String::from(*word)).collect();
    compare_sweeps(&[side("A", a, &of_a), side("B", b, &of_b)], &accepted)
}

#[test]
fn one_sweep_a_side_has_ratios_and_nothing_is_called() {
    let found = compared(&sweep(|_, _| 300.0, ""), &sweep(|i, _| [300.0, 600.0][i], ""), &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::TooFewRuns, None));
    assert_eq!((found.cells.len(), found.sweeps), (6, [1, 1]));
    let ratios: Vec<f64> = found.cells.iter().map(|cell| cell.rate_per_s.ratio.unwrap()).collect();
    for (at, ratio) in ratios.iter().enumerate() {
        assert!((ratio / [1.0, 2.0][at / 3] - 1.0).abs() < 2e-3, "{ratios:?}");
    }
    // Three cells have a ratio of 1 and three a ratio of 2. This is their geometric mean.
    assert!((found.rate.ratio_mean.unwrap() - 2f64.sqrt()).abs() < 2e-3, "{:?}", found.rate);
    assert_eq!(found.rate.cells, 6);
    let cell = &found.cells[5];
    let [low, high] = cell.rate_ratio_interval.unwrap();
    assert!(low < 2.0 && high > 2.0 && high - low < 0.1, "{low} {high}");
    assert_eq!(
        (cell.interval_of, cell.outcome),
        (Some(IntervalOf::WithinPoint), CellOutcome::TooFewSweeps)
    );
    assert!(found.remarks.iter().any(|says| says.contains("within each point")));
    assert!((cell.latency_ns_avg.ratio.unwrap() - 1.0).abs() < 1e-9);
}

/// Creates five sweeps whose rates have a standard deviation of 1 %.
fn five(rate: impl Fn(usize, usize) -> f64) -> Vec<Bundle> {
    let noise = [-1.264_9, -0.632_5, 0.0, 0.632_5, 1.264_9];
    noise.iter().flat_map(|z| sweep(|i, k| rate(i, k) * (1.0 + 0.01 * z), "")).collect()
}

#[test]
fn five_sweeps_a_side_tell_cells_apart_that_differ_and_no_others() {
    // Side B is 10 % faster at 32 KiB, and both sides are equal at 4 KiB.
    let found = compared(&five(|_, _| 300.0), &five(|i, _| [300.0, 330.0][i]), &[]);
    assert_eq!(
        (found.outcome, found.winner.as_deref()),
        (Outcome::Differ, Some("B")),
        "{}",
        found.reason
    );
    let outcomes: Vec<CellOutcome> = found.cells.iter().map(|cell| cell.outcome).collect();
    let (same, more) = (CellOutcome::NotSignificant, CellOutcome::Higher);
    assert_eq!(outcomes, [same, same, same, more, more, more]);
    assert!(found.cells.iter().all(|cell| cell.interval_of == Some(IntervalOf::Sweeps)));
    // If a side is faster in some cells and slower in others, there is no winner.
    let mixed = compared(&five(|_, _| 300.0), &five(|i, _| [270.0, 330.0][i]), &[]);
    assert_eq!((mixed.outcome, mixed.winner), (Outcome::Differ, None));
    assert!(mixed.reason.contains("higher in 3 cells and lower in 3"), "{}", mixed.reason);
    let equal = compared(&five(|_, _| 300.0), &five(|_, _| 300.5), &[]);
    assert_eq!(equal.outcome, Outcome::NotSignificant);
}

#[test]
fn a_cell_that_is_not_what_it_claims_or_does_not_show_is_no_cell_that_is_higher() {
    let a = five(|_, _| 300.0);
    let mut b = five(|_, _| 600.0);
    b[0].observed.interposition = None;
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::NotShown, None));
    assert_eq!(found.cells[0].outcome, CellOutcome::NotShown);
    assert_eq!(found.cells[0].note, "stands-between is unknown on the second side");
    assert_eq!(found.cells[1].outcome, CellOutcome::Higher);
    let taken = compared(&a, &b, &["stands-between"]);
    assert_eq!((taken.outcome, taken.winner.as_deref()), (Outcome::Differ, Some("B")));
    // The run makes no claim, so its verdict is MEASURED, although the hypervisor withheld half of
    // the CPU time.
    b[0].observed.cpu.steal_avg = Some(0.5);
    assert_eq!(judge(&b[0]).verdict.label(), "MEASURED");
    let found = compared(&a, &b, &[]);
    assert_eq!(
        (found.cells[0].outcome, found.cells[0].rate_per_s.ratio),
        (CellOutcome::NotCompared, None)
    );
    assert_eq!(found.cells[0].note, "cpu-steal failed on the second side");
}

#[test]
fn unlike_conditions_are_named_and_no_winner_is_called() {
    let (a, b) = (sweep(|_, _| 300.0, "clients = 2"), sweep(|_, _| 600.0, "clients = 3"));
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::UnlikeConditions, None));
    let names: Vec<&str> = found.differences.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["plan.workload.matrix.streams.0.clients"]);
    assert_eq!(found.differences[0].values, ["2", "3"], "{:?}", found.differences);
    let accepted = compared(&a, &b, &["plan", "colour"]);
    assert_eq!(accepted.outcome, Outcome::TooFewRuns);
    assert!(accepted.remarks.iter().any(|says| says.contains("--accept colour")));
    // If only one side has a size or mix, its cells are skipped. This does not count as unlike
    // conditions.
    let fewer = compared(&a[..3], &sweep(|_, _| 600.0, "clients = 2"), &[]);
    assert_eq!((fewer.cells.len(), fewer.outcome), (3, Outcome::TooFewRuns));
    assert!(fewer.differences.is_empty(), "{:?}", fewer.differences);
    assert!(fewer.remarks.iter().any(|says| says.contains("3 points exist only on the side B")));
}

#[test]
fn what_is_invalid_or_did_not_complete_is_not_compared() {
    let (a, mut b) = (sweep(|_, _| 300.0, ""), sweep(|_, _| 600.0, ""));
    b[0].run.classes[0].errors = 3;
    b[1].run.end.kind = EndKind::Interrupted;
    let found = compared(&a, &b, &[]);
    assert_eq!(found.cells.len(), 5);
    assert_eq!(
        (found.cells[0].outcome, found.cells[0].rate_per_s.ratio),
        (CellOutcome::NotCompared, None)
    );
    assert_eq!(found.cells[0].note, "INVALID on the second side");
    assert_eq!(found.rate.cells, 4, "it is in no mean");
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    for part in ["1 points of B did not complete", "1 cells are not compared"] {
        assert!(found.remarks.iter().any(|says| says.contains(part)), "{:?}", found.remarks);
    }
    let nothing = compared(&a[..1], &b[2..], &[]);
    assert!(nothing.cells.is_empty() && nothing.reason.contains("no common point"));
}
