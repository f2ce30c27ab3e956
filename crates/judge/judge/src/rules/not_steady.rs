//! Checks that the rate was steady.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::series::Data;

use super::{Rule, Weight};
use crate::claim::Claim;
use crate::figures::{self, Pick, measured};
use crate::finding::{Finding, Outcome};
use crate::stats::{Refusal, warm_up};

/// Maximum change of the least-squares line over the window, as a fraction of the mean (SNIA SSS
/// PTS 2.0.2).
const RISE_MAX: f64 = 0.10;
/// Maximum shift of the mean that a warm-up may cause: half of SNIA's tolerance.
const WARM_UP_TOLERANCE: f64 = 0.05;
/// Minimum number of intervals for this test.
const INTERVALS_MIN: usize = 20;
/// Maximum number of intervals for this test.
const INTERVALS_MAX: u64 = 600;

pub const RULE: Rule = Rule {
    id: "not-steady",
    asks: "was the rate steady, neither warming up nor drifting?",
    explains: "The rule divides the measured phase into intervals. The outcome is unknown if a \
               warm-up is still visible (a change of level that moves the mean by more than 5 %). \
               It is also unknown if the least-squares line through the rates rises or falls by \
               more than 10 % of the mean (SNIA SSS PTS 2.0.2). In both cases, the mean describes a \
               system that is still changing. Use a longer warm-up and a longer measurement, or \
               `measure = \"until-steady\"`. For flash, a steady rate alone is not enough: see the \
               rule `conditioned`.",
    bears_on: &[
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::MediaRead, Weight::Advisory),
        (Claim::Requirement, Weight::Advisory),
        (Claim::TailLatency, Weight::Advisory),
    ],
    check,
};

/// Divides the measured phase into intervals of equal length and returns the rate in each interval.
/// The list is empty if the bundle has no series.
pub(super) fn rates(bundle: &Bundle) -> Vec<f64> {
    let known = bundle.series.iter().any(|row| matches!(row.data, Data::Class { .. }));
    let Some(phase) = measured(bundle).filter(|_| known) else { return Vec::new() };
    let width_ns = bundle.plan.evidence.interval_ns.max(phase.duration_ns / INTERVALS_MAX).max(1);
    figures::rates_per_s(bundle, Pick::Transactional, width_ns)
}

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let rates = rates(bundle);
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    if rates.len() < INTERVALS_MIN || mean <= 0.0 {
        let says = match rates.len() {
            0 => "the rate over time is unknown".to_owned(),
            1 => "one interval is too few to tell whether the rate was steady".to_owned(),
            n => format!("{n} intervals are too few to tell whether the rate was steady"),
        };
        return Some(
            Finding::new(RULE.id, Outcome::Unknown, says)
                .advise("measure longer, or set a shorter `evidence.interval`"),
        );
    }
    let rise = rise(&rates) / mean;
    let finding = match warm_up::settled_within(&rates, WARM_UP_TOLERANCE) {
        _ if rise.abs() > RISE_MAX => {
            let way = if rise > 0.0 { "rose" } else { "fell" };
            let says = format!(
                "the rate {way} by {:.0} % of its mean during the measurement: it was not steady",
                rise.abs() * 100.0
            );
            Finding::new(RULE.id, Outcome::Unknown, says)
        }
        Ok(0) => {
            let says = format!("the rate was steady: it changed by {:.1} %", rise.abs() * 100.0);
            return Some(Finding::new(RULE.id, Outcome::Pass, says).with("rise", rise));
        }
        Ok(cut) | Err(Refusal::WarmUpTooLong { cut, .. }) => {
            let says = format!(
                "the level of the rate changed after {:.0} % of the measured phase",
                cut as f64 / rates.len() as f64 * 100.0
            );
            Finding::new(RULE.id, Outcome::Unknown, says)
        }
        Err(refusal) => Finding::new(RULE.id, Outcome::Unknown, refusal.to_string()),
    };
    Some(finding.with("rise", rise).advise("use a longer warm-up and a longer measurement"))
}

/// Returns the change of the least-squares line from the first interval to the last.
fn rise(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let (middle, mean) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
    let (mut moment, mut square) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        moment += x * (value - mean);
        square += x * x;
    }
    if square > 0.0 { moment / square * (n - 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn a_drift_of_eleven_percent_is_not_steady_and_one_of_nine_is() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        fixtures::rates(&mut bundle, |t| (10_550 - t * 1100 / 599 + t * 7 % 11, 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        fixtures::rates(&mut bundle, |t| (10_450 - t * 880 / 599 + t * 7 % 211, 800_000));
        assert_ne!(fixtures::finding(&RULE, &bundle).says.find("by 8"), None);
    }

    #[test]
    fn a_warm_up_that_still_shows_is_not_steady() {
        let mut bundle = fixtures::reads();
        let slow = |t: u64| if t < 150 { 700 + t * 7 % 11 } else { 1000 + t * 7 % 11 };
        fixtures::rates(&mut bundle, |t| (slow(t), 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_few_intervals_do_not_tell() {
        let mut bundle = fixtures::reads();
        bundle.plan.evidence.interval_ns = 10 * fixtures::SECOND_NS;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }
}
