//! Warns if a run is one of many runs that tested the same question.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{LedgerPosition, Tier};

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// A figure counts as one of many after at least this number of earlier runs that tested the same
/// question.
const EARLIER_MIN: u64 = 5;
/// Minimum age of the ledger at the start of a run. About a hundred runs of ten minutes fit into a
/// day.
const AGE_NS_MIN: u64 = 86_400_000_000_000;

pub const RULE: Rule = Rule {
    id: "best-of-many",
    asks: "how many earlier runs on this system tested the same question, and how many of them were \
           aborted?",
    explains: "In one test, the best of seven runs was 40 % above their median. Every run, even an \
               aborted run, adds a line to an append-only ledger. A hash chains each line to the \
               previous line. The bundle records this line. Two runs are alike if they have the \
               same kind of workload, with numbers that differ by at most 10 %, on the same file \
               system or device and with the same requirement. The plan's name, the directory and \
               size differences of a few KiB are ignored. If there is a requirement, the load is \
               ignored too. The rule warns if there were at least five earlier runs of this kind, \
               or if any earlier run of this kind was aborted. It also warns if the same workload \
               ran earlier with a different requirement, because the requirement may have been \
               changed after a look at the result. Publish all of these runs (`plimsoll runs`), not \
               only this one. If the ledger is less than a day old, or lacks runs whose bundles are \
               in the catalogue, earlier attempts are unknown.",
    bears_on: &[(Claim::Requirement, Weight::Advisory), (Claim::Comparative, Weight::Advisory)],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    let Some(ledger) = &bundle.run.ledger else {
        let says = "this run is in no ledger, so earlier attempts are unknown";
        return (bundle.run.tier == Tier::T1 && bundle.seal_sha256.is_some())
            .then(|| Finding::new(RULE.id, Outcome::Unknown, says).advise(SHOW));
    };
    // Older bundles contain only the number of earlier runs of the same plan. The repeats that a
    // plan requests do not count as earlier runs, because they are reported together.
    let repeats = u64::from(bundle.plan.repeat.runs.max(1)) - 1;
    let of_plan = ledger.earlier_runs_of_plan.saturating_sub(repeats);
    let earlier = ledger.earlier_runs_alike.unwrap_or(of_plan);
    let given_up = ledger.earlier_alike_not_completed.unwrap_or(ledger.earlier_runs_not_completed);
    let alike = match ledger.earlier_runs_alike {
        Some(_) => "of the same workload",
        None => "of this plan",
    };
    let otherwise = ledger.earlier_required_otherwise.unwrap_or(0);
    let came = match earlier {
        0 => format!("this machine's ledger has no earlier run {alike}"),
        1 => format!("this machine's ledger has 1 earlier run {alike}"),
        n => format!("this machine's ledger has {n} earlier runs {alike}"),
    };
    let finding = if earlier >= EARLIER_MIN || given_up > 0 {
        let says = format!("{came}, of which {given_up} did not complete");
        Finding::new(RULE.id, Outcome::Warn, says).advise(SHOW)
    } else if otherwise > 0 {
        let runs = if otherwise == 1 { "1 run" } else { &format!("{otherwise} runs") };
        let says = format!(
            "{runs} of the same workload had a different requirement: the requirement may have been \
             changed after a look at the result"
        );
        let advice = "state the requirement before the first run, or publish those runs too";
        Finding::new(RULE.id, Outcome::Warn, says).advise(advice)
    } else if let Some(says) = unknown_before(bundle, ledger) {
        Finding::new(RULE.id, Outcome::Unknown, says).advise(SHOW)
    } else {
        Finding::new(RULE.id, Outcome::Pass, came)
    };
    let finding = match ledger.earlier_required_otherwise {
        Some(count) if count > 0 => finding.with("earlier_runs_required_otherwise", count),
        _ => finding,
    };
    Some(finding.with("earlier_runs", earlier).with("earlier_runs_not_completed", given_up))
}

const SHOW: &str = "publish all of these runs, or their median: `plimsoll runs` lists them";

/// Returns the reason why earlier attempts are unknown; `None` if the ledger shows all of them.
fn unknown_before(bundle: &Bundle, ledger: &LedgerPosition) -> Option<String> {
    if let Some(differed) = &ledger.head_differed {
        return Some(format!(
            "the ledger was changed after its last run ({differed}), so earlier attempts are unknown"
        ));
    }
    match ledger.bundles_not_held {
        Some(1) => {
            return Some("the ledger lacks a run whose bundle is in the catalogue".to_owned());
        }
        Some(n) if n > 1 => {
            return Some(format!("the ledger lacks {n} runs whose bundles are in the catalogue"));
        }
        _ => {}
    }
    let age_ns = bundle.run.started_unix_ns.saturating_sub(ledger.began_unix_ns?);
    let began = match age_ns / 60_000_000_000 {
        _ if age_ns >= AGE_NS_MIN => return None,
        _ if ledger.position == 1 => "with this run".to_owned(),
        0 => "less than a minute before this run".to_owned(),
        1 => "a minute before this run".to_owned(),
        minutes if minutes < 120 => format!("{minutes} minutes before this run"),
        minutes => format!("{} hours before this run", minutes / 60),
    };
    Some(format!("the ledger was started {began}, so earlier attempts cannot be ruled out"))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn at(change: impl FnOnce(&mut LedgerPosition)) -> Option<Outcome> {
        let mut bundle = fixtures::reads();
        bundle.run.started_unix_ns = 10 * AGE_NS_MIN;
        let mut ledger = LedgerPosition {
            position: 9,
            earlier_runs_alike: Some(0),
            earlier_alike_not_completed: Some(0),
            began_unix_ns: Some(AGE_NS_MIN),
            bundles_not_held: Some(0),
            ..LedgerPosition::default()
        };
        change(&mut ledger);
        bundle.run.ledger = Some(ledger);
        fixtures::outcome(&RULE, &bundle)
    }

    #[test]
    fn five_earlier_runs_or_one_given_up_warn() {
        assert_eq!(at(|ledger| ledger.earlier_runs_alike = Some(4)), Some(Outcome::Pass));
        assert_eq!(at(|ledger| ledger.earlier_runs_alike = Some(5)), Some(Outcome::Warn));
        assert_eq!(at(|ledger| ledger.earlier_alike_not_completed = Some(1)), Some(Outcome::Warn));
    }

    #[test]
    fn a_requirement_that_was_changed_warns() {
        assert_eq!(at(|ledger| ledger.earlier_required_otherwise = Some(0)), Some(Outcome::Pass));
        assert_eq!(at(|ledger| ledger.earlier_required_otherwise = Some(1)), Some(Outcome::Warn));
        assert_eq!(at(|ledger| ledger.earlier_required_otherwise = None), Some(Outcome::Pass));
    }

    #[test]
    fn a_ledger_that_does_not_reach_back_can_not_tell() {
        let began = |age_ns: u64| Some(10 * AGE_NS_MIN - age_ns);
        assert_eq!(at(|ledger| ledger.began_unix_ns = began(AGE_NS_MIN)), Some(Outcome::Pass));
        assert_eq!(at(|ledger| ledger.began_unix_ns = began(1)), Some(Outcome::Unknown));
        assert_eq!(at(|ledger| ledger.bundles_not_held = Some(2)), Some(Outcome::Unknown));
        let cut = |ledger: &mut LedgerPosition| ledger.head_differed = Some("it was cut".into());
        assert_eq!(at(cut), Some(Outcome::Unknown));
        let many = |ledger: &mut LedgerPosition| {
            (ledger.began_unix_ns, ledger.earlier_runs_alike) = (began(1), Some(5));
        };
        assert_eq!(at(many), Some(Outcome::Warn));
    }

    #[test]
    fn an_older_bundle_knows_runs_of_the_same_plan() {
        let older = |earlier, given_up| {
            at(|ledger| {
                *ledger = LedgerPosition {
                    position: earlier + 1,
                    earlier_runs_of_plan: earlier,
                    earlier_runs_not_completed: given_up,
                    ..LedgerPosition::default()
                };
            })
        };
        assert_eq!(older(4, 0), Some(Outcome::Pass));
        assert_eq!(older(5, 0), Some(Outcome::Warn));
        assert_eq!(older(1, 1), Some(Outcome::Warn));
        let mut read = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &read), None, "made in memory");
        read.seal_sha256 = Some(String::new());
        assert_eq!(fixtures::outcome(&RULE, &read), Some(Outcome::Unknown), "in no ledger");
    }
}
