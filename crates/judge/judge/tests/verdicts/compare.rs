//! Comparisons of synthetic experiments: the headline, the reasons for a refusal, and the results.

use crate::fixtures::{PLAN, plan, run};
use plimsoll_evidence::Bundle;
use plimsoll_judge::compare::{Comparison, Outcome, Side, compare};
use plimsoll_judge::{Verdict, judge};

const MS: u64 = 1_000_000;

/// Creates five runs. Their rates have this mean and a standard deviation of 1 %.
fn five(plan_text: &str, rate_per_s: f64, latency_ns: u64) -> Vec<Bundle> {
    // Five values with mean 0 and standard deviation 1.
    let noise = [-1.264_9, -0.632_5, 0.0, 0.632_5, 1.264_9];
    let plan = plan(plan_text);
    let of = |(i, z): (usize, f64)| {
        run(&plan, &format!("r{i}"), rate_per_s * (1.0 + 0.01 * z), latency_ns)
    };
    noise.into_iter().enumerate().map(of).collect()
}

fn compared(a: &[Bundle], b: &[Bundle], accepted: &[&str]) -> Comparison {
    let verdicts = |runs: &[Bundle]| runs.iter().map(judge).collect::<Vec<Verdict>>();
    let (of_a, of_b) = (verdicts(a), verdicts(b));
    let side = |name: &str, runs, verdicts| Side {
        name: String::from(name),
        runs: Iterator::zip(<[Bundle]>::iter(runs), <[Verdict]>::iter(verdicts)).collect(),
    };
    let accepted: Vec<String> = accepted.iter().map(|word| String::from(*word)).collect();
    compare(&[side("A", a, &of_a), side("B", b, &of_b)], &accepted, &[])
}

#[test]
fn both_meet_it_with_headroom_comes_first_whatever_the_ratio() {
    let found = compared(&five(PLAN, 300.0, 5 * MS), &five(PLAN, 600.0, 5 * MS), &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::AllMeetWithHeadroom, None));
    assert!(found.reason.contains("should not decide"), "{}", found.reason);
    assert!(found.differences.is_empty(), "{:?}", found.differences);
}

#[test]
fn only_one_meets_it() {
    let found = compared(&five(PLAN, 300.0, 5 * MS), &five(PLAN, 300.0, 50 * MS), &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::OneMeets, Some("A")));
    let none = compared(&five(PLAN, 300.0, 50 * MS), &five(PLAN, 300.0, 50 * MS), &[]);
    assert_eq!(none.outcome, Outcome::NoneMeets);
}

#[test]
fn a_run_alone_is_told_how_well_it_knows_its_own_rate() {
    let (one, five) = (five(PLAN, 300.0, 5 * MS), five(PLAN, 600.0, 5 * MS));
    let found = compared(&one[2..3], &five, &[]);
    let within: Vec<&String> =
        found.remarks.iter().filter(|says| says.contains("block bootstrap")).collect();
    let [says] = within[..] else { panic!("{:?}", found.remarks) };
    assert!(says.starts_with("A: the mean rate of the only run is between "), "{says}");
    assert!(says.contains("over 60 intervals"), "{says}");
    let ends = says.split(' ').filter_map(|word| word.parse::<f64>().ok()).collect::<Vec<_>>();
    assert!((ends[0] - 300.0).abs() < 1.0 && (ends[1] - 300.0).abs() < 1.0, "{says}");
    // A remark says that there is only one run, and no difference is significant.
    assert!(
        found.remarks.iter().any(|says| says.contains("(runs-missing)")),
        "{:?}",
        found.remarks
    );
    assert_eq!(found.metrics[0].sides[1].significant, None);
}

/// Returns a plan without a requirement, so that the measured figures decide.
fn measured() -> String {
    PLAN.replace("[requirement]\n", "")
}

#[test]
fn five_percent_with_one_percent_noise_is_found_with_five_runs_and_not_with_three() {
    let (a, b) = (five(&measured(), 300.0, 5 * MS), five(&measured(), 315.0, 5 * MS));
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::Differ, Some("B")));
    let rate = &found.metrics[0];
    let [low, high] = rate.sides[1].ratio_interval.unwrap();
    assert!(low < 1.05 && high > 1.05 && low > 1.03 && high < 1.07, "{low} {high}");
    let three = compared(&a[1..4], &b[1..4], &[]);
    assert_eq!((three.outcome, three.winner), (Outcome::TooFewRuns, None));
    assert_eq!(three.metrics[0].sides[1].significant, None);
    let same = compared(&a, &five(&measured(), 300.5, 5 * MS), &[]);
    assert_eq!(same.outcome, Outcome::NotSignificant);
}

#[test]
fn the_first_side_can_be_ahead_too() {
    let (a, b) = (five(&measured(), 315.0, 5 * MS), five(&measured(), 300.0, 5 * MS));
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::Differ, Some("A")));
}

#[test]
fn no_winner_across_unlike_conditions_unless_each_is_accepted() {
    let other = measured().replace("threads = 4", "threads = 8");
    let a = five(&measured(), 300.0, 5 * MS);
    let mut b = five(&other, 400.0, 5 * MS);
    b.iter_mut().for_each(|bundle| bundle.environment.kernel = Some("6.9.9".into()));
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::UnlikeConditions, None));
    let names: Vec<&str> = found.differences.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["kernel", "plan.workload.mailbox.threads"]);
    assert_eq!(found.differences[1].values, ["4", "8"]);
    let one = compared(&a, &b, &["plan"]);
    assert_eq!(one.outcome, Outcome::UnlikeConditions);
    let both = compared(&a, &b, &["plan", "kernel"]);
    assert_eq!((both.outcome, both.winner.as_deref()), (Outcome::Differ, Some("B")));
    assert!(both.differences.iter().all(|one| one.accepted));
    // An accepted name that matches no condition is reported.
    let stray = compared(&a, &b, &["colour"]);
    assert!(stray.remarks.iter().any(|says| says.contains("--accept colour")));
}

#[test]
fn whose_a_plan_is_is_no_condition() {
    let owned = measured().replace("version = 1\n", "version = 1\nowner = \"mail team\"\n");
    let found = compared(&five(&measured(), 300.0, 5 * MS), &five(&owned, 400.0, 5 * MS), &[]);
    assert_eq!((found.outcome, found.differences.len()), (Outcome::Differ, 0));
}

#[test]
fn best_practice_on_both_sides_takes_each_sides_settings_as_they_are() {
    let practice =
        |text: &str| text.replace("version = 1\n", "version = 1\npractice = \"best practice\"\n");
    let a = five(&practice(&measured()), 300.0, 5 * MS);
    let b = five(&practice(&measured().replace("threads = 4", "threads = 8")), 400.0, 5 * MS);
    let found = compared(&a, &b, &[]);
    assert_eq!(found.outcome, Outcome::Differ);
    assert!(found.remarks.iter().any(|says| says.contains("declare best practice")));
    // The workload does not count as a setting, so the runs are not comparable.
    let other = practice(&measured().replace("mailboxes = 500", "mailboxes = 400"));
    let found = compared(&a, &five(&other, 400.0, 5 * MS), &[]);
    assert_eq!(found.outcome, Outcome::UnlikeConditions);
    // Both sides must declare best practice.
    let found = compared(&five(&measured(), 300.0, 5 * MS), &b, &[]);
    assert_eq!(found.outcome, Outcome::UnlikeConditions);
}

#[test]
fn a_faster_cpu_is_taken_out_as_an_estimate_beside_the_raw_ratio() {
    let a = five(&measured(), 300.0, 5 * MS);
    let mut b = five(&measured(), 360.0, 5 * MS);
    b.iter_mut().for_each(|bundle| bundle.environment.cpu_score = Some(1200.0));
    let found = compared(&a, &b, &[]);
    let ratio = |key: &str| {
        let metric = found.metrics.iter().find(|metric| metric.key == key).unwrap();
        (metric.sides[1].ratio.unwrap(), metric.estimate)
    };
    let (raw, estimate) = ratio("achieved_iops_per_s");
    assert!((raw - 1.2).abs() < 1e-3 && !estimate, "{raw}");
    let (adjusted, estimate) = ratio("achieved_iops_per_s_cpu_adjusted_estimate");
    assert!((adjusted - 1.0).abs() < 1e-3 && estimate, "{adjusted}");
    // On a core that is 1.2 times as fast, the same CPU time is enough for 1.2 times as many I/Os.
    // So the adjusted CPU time per I/O is equal.
    let (adjusted, _) = ratio("cpu_ns_per_op_cpu_adjusted_estimate");
    assert!((adjusted - 1.0).abs() < 1e-3, "{adjusted}");
    b.iter_mut().for_each(|bundle| bundle.environment.cpu_score = None);
    let unknown = compared(&a, &b, &[]);
    assert!(unknown.metrics.iter().all(|metric| !metric.estimate), "no score, no estimate");
}

#[test]
fn runs_that_did_not_complete_are_left_out_and_invalid_ones_stand_in_the_way() {
    let a = five(&measured(), 300.0, 5 * MS);
    let mut b = five(&measured(), 400.0, 5 * MS);
    b[0].run.end.kind = plimsoll_evidence::run::EndKind::Interrupted;
    b[0].run.end.says = "interrupted by the operator".into();
    let found = compared(&a, &b, &[]);
    assert_eq!(found.metrics[0].sides[1].values.len(), 4);
    assert!(found.remarks.iter().any(|says| says.contains("is excluded")), "{:?}", found.remarks);
    b[1].run.classes[0].errors = 3;
    let found = compared(&a, &b, &[]);
    assert_eq!(found.outcome, Outcome::UnlikeConditions);
    assert!(
        found.differences.iter().any(|one| one.name == "invalid-runs"),
        "{:?}",
        found.differences
    );
}

#[test]
fn a_run_that_is_not_what_it_claims_wins_nothing_on_either_side() {
    let a = five(&measured(), 300.0, 5 * MS);
    let mut b = five(&measured(), 900.0, 5 * MS);
    let from_memory = |bundle: &mut plimsoll_evidence::Bundle| {
        bundle.run.engine.paths[0].direct = false;
        bundle.observed.generator.storage_read_bytes = Some(0);
    };
    b.iter_mut().for_each(from_memory);
    let found = compared(&a, &b, &["interface", "invalid-runs"]);
    assert_eq!(found.outcome, Outcome::Differ, "{}", found.reason);
    assert_eq!(compared(&a, &b, &[]).outcome, Outcome::UnlikeConditions);
    // If both sides have the same problem, there is still no winner.
    let mut a = a;
    a.iter_mut().for_each(from_memory);
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner), (Outcome::NotBelieved, None));
    assert!(found.reason.contains("--accept bytes-balance"), "{}", found.reason);
    // `--accept` accepts the rule's current name and its earlier name.
    for name in ["bytes-balance", "page-cache-served"] {
        let taken = compared(&a, &b, &[name]);
        assert_eq!(taken.outcome, Outcome::Differ, "{}", taken.reason);
    }
}

#[test]
fn an_undecided_run_does_not_fail_its_requirement() {
    let a = five(PLAN, 300.0, 5 * MS);
    let mut b = five(PLAN, 300.0, 5 * MS);
    b.iter_mut().for_each(|bundle| bundle.run.checks.pages_checked = None);
    let found = compared(&a, &b, &[]);
    assert_ne!(found.outcome, Outcome::OneMeets, "{}", found.reason);
    assert_eq!((found.requirement_results[0].passed, found.requirement_results[1].failed), (5, 0));
}

#[test]
fn nothing_is_unknown_of_the_made_up_runs_that_a_comparison_has_to_know() {
    let found = compared(&five(&measured(), 300.0, 5 * MS), &five(&measured(), 315.0, 5 * MS), &[]);
    let open: Vec<&String> =
        found.remarks.iter().filter(|says| says.contains("unknown in")).collect();
    assert!(open.is_empty(), "{open:#?}");
}

#[test]
fn what_has_to_be_known_and_is_not_calls_no_winner() {
    let a = five(&measured(), 300.0, 5 * MS);
    let mut b = five(&measured(), 600.0, 5 * MS);
    b[2].observed.interposition = None;
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner.as_deref()), (Outcome::NotShown, None));
    for part in ["run r2 of B", "--accept stands-between", "B divided by A is 2.000"] {
        assert!(found.reason.contains(part), "{}", found.reason);
    }
    let remark = "B: unknown in 1 of 5 runs: the Plimsoll version of this run did not check";
    assert!(found.remarks.iter().any(|says| says.starts_with(remark)), "{:?}", found.remarks);
    let taken = compared(&a, &b, &["stands-between"]);
    assert_eq!((taken.outcome, taken.winner.as_deref()), (Outcome::Differ, Some("B")));
    assert!(!taken.remarks.iter().any(|says| says.contains("unknown in")), "{:?}", taken.remarks);
    // If both plans accept the unknown rule by name, the comparison accepts it too.
    let accepts =
        measured().replace("[evidence]\n", "[evidence]\naccept_unknown = [\"stands-between\"]\n");
    let mut b = five(&accepts, 600.0, 5 * MS);
    b[2].observed.interposition = None;
    let taken = compared(&five(&accepts, 300.0, 5 * MS), &b, &[]);
    assert_eq!(taken.winner.as_deref(), Some("B"), "{}", taken.reason);
}

#[test]
fn beside_a_requirement_that_both_meet_no_side_is_called_ahead_either_where_it_is_not_shown() {
    let a = five(PLAN, 300.0, 5 * MS);
    let mut b = five(PLAN, 600.0, 5 * MS);
    assert!(compared(&a, &b, &[]).reason.contains("B is significantly better by"));
    // The comparison requires this rule to be known, but the requirement does not.
    b[0].observed.cpu.steal_avg = None;
    let found = compared(&a, &b, &[]);
    assert_eq!(found.outcome, Outcome::AllMeetWithHeadroom);
    assert!(!found.reason.contains("significantly better"), "{}", found.reason);
    assert!(found.reason.contains("(cpu-steal)"), "{}", found.reason);
    b[0].observed.cpu.steal_avg = Some(0.5);
    let found = compared(&a, &b, &[]);
    assert!(found.reason.contains("not a valid measurement"), "{}", found.reason);
}

#[test]
fn copies_of_a_run_are_no_repeats_of_it() {
    let a = five(&measured(), 300.0, 5 * MS);
    let mut b = vec![five(&measured(), 600.0, 5 * MS).swap_remove(2); 5];
    for (at, bundle) in b.iter_mut().enumerate() {
        bundle.run.run_id = format!("run{at}");
    }
    let found = compared(&a, &b, &[]);
    assert_eq!((found.outcome, found.winner), (Outcome::NotBelieved, None));
    assert!(
        found.reason.contains("B: run0 and run1 are identical in every interval"),
        "{}",
        found.reason
    );
    assert!(found.remarks.iter().any(|says| says.contains("(runs-copied)")), "{:?}", found.remarks);
}

fn gated(compared: &Comparison, allowance: &str) -> plimsoll_judge::compare::Gate {
    use plimsoll_judge::compare::{Allowances, gate};
    gate(compared, &Allowances::parse(&[allowance.to_owned()]).unwrap()).unwrap()
}

#[test]
fn a_gate_decides_after_conditions_are_accepted_and_not_before() {
    use plimsoll_judge::compare::GateOutcome::{NotWorse, Undecided, Worse};
    let base = five(&measured(), 300.0, 5 * MS);
    let mut slow = five(&measured(), 90.0, 5 * MS);
    slow.iter_mut().for_each(|bundle| bundle.environment.kernel = Some("6.9.9".into()));
    let refused = gated(&compared(&base, &slow, &[]), "rate=10%");
    assert_eq!(refused.outcome, Undecided);
    assert!(refused.reason.starts_with("A condition differs (kernel)"), "{}", refused.reason);
    // Accepting the different kernel must not turn a regression of 70 % into a pass.
    let accepted = gated(&compared(&base, &slow, &["kernel"]), "rate=10%");
    assert_eq!(accepted.outcome, Worse, "{}", accepted.reason);
    assert_eq!(accepted.figures[0].figure, "rate");
    let same = five(&measured(), 299.0, 5 * MS);
    assert_eq!(gated(&compared(&base, &same, &[]), "10%").outcome, NotWorse);
}

#[test]
fn headroom_on_both_sides_hides_no_regression_from_a_gate() {
    use plimsoll_judge::compare::GateOutcome::{Undecided, Worse};
    let (base, slow) = (five(PLAN, 600.0, 5 * MS), five(PLAN, 300.0, 5 * MS));
    let found = compared(&base, &slow, &[]);
    assert_eq!(found.outcome, Outcome::AllMeetWithHeadroom);
    assert_eq!(gated(&found, "10%").outcome, Worse);
    // One run did not complete, so its figures are missing.
    let mut stopped = five(PLAN, 600.0, 5 * MS);
    stopped[4].run.end.kind = plimsoll_evidence::run::EndKind::IoError;
    let stopped = gated(&compared(&base, &stopped, &[]), "10%");
    assert_eq!(stopped.outcome, Undecided);
    assert!(stopped.reason.contains("did not complete"), "{}", stopped.reason);
}
