//! Did the rate fall from one plateau to a lower one, as where credit runs out?

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::DeviceTotals;

use super::not_steady::rates;
use super::{Rule, Weight, seen};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::stats::segments;

/// A fall by a third: volumes with credit burst at several times their base rate.
const FALL_MIN: f64 = 1.5;
/// A capped plateau is flat; what contention leaves is not.
const FLAT_MAX: f64 = 0.05;
/// So flat is a plateau only where a clock holds it: whoever else was at work does not explain it. As of
/// `rate-capped`, with room for a cap whose ticks are not those of the stretches.
const HELD_MAX: f64 = 0.01;
/// Length of a plateau, of the phase.
const PLATEAU_MIN: f64 = 0.1;
/// Device bytes over application bytes above which somebody else was on the device.
const NEIGHBOUR_RATIO: f64 = 1.05;
/// Others' storage I/O against ours above which a fall may be theirs.
const OTHERS_SHARE_MAX: f64 = 0.1;
/// Share of the time in which tasks waited for a CPU above which a fall may be the host's.
const CPU_PRESSURE_MAX: f64 = 0.3;

/// The rule.
pub const RULE: Rule = Rule {
    id: "burst-credit",
    asks: "did the rate fall to a lower plateau, as where burst credit runs out?",
    explains: "Cloud volumes, and arrays with quality-of-service limits, carry more than their base \
        rate until a credit is used up; write caches do so until they are full. The rates of the \
        measured phase are divided at their steps: a fall from one plateau to another that is flat, \
        and lower by a third or more, is a failure: the mean is of the credit, and what lasts is the \
        lower plateau. Where other counters show somebody else at work (on the device, on the host's \
        storage, on its CPUs) it is not decided, unless the lower plateau varies by less than 1 %: \
        a limit holds it then, and no neighbour.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::Requirement, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    let rates = rates(bundle);
    // Too few stretches to divide: `not-steady` says so.
    if rates.len() < 40 {
        return None;
    }
    let long = (rates.len() as f64 * PLATEAU_MIN) as usize;
    let plateaus = segments(&rates);
    let plateaus: Vec<_> = plateaus.iter().filter(|s| s.end - s.start >= long).collect();
    let fall = plateaus.windows(2).find(|pair| pair[0].mean >= pair[1].mean * FALL_MIN);
    let Some([high, low]) = fall else {
        let says = "the rate did not fall from one plateau to another";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    };
    let after_s =
        measured(bundle)?.duration_ns as f64 / 1e9 * low.start as f64 / rates.len() as f64;
    let says = format!(
        "the rate fell from {:.0} to {:.0} a second after {after_s:.1} s and stayed there: what lasts is \
         the lower one",
        high.mean, low.mean
    );
    let variation = variation(&rates[low.start..low.end]);
    let held = variation <= HELD_MAX && !neighbour_on_device(bundle);
    let certain = held || variation <= FLAT_MAX && !contended(bundle);
    let outcome = if certain { Outcome::Fail } else { Outcome::Unknown };
    Some(
        Finding::new(RULE.id, outcome, says)
            .with("before_per_s", high.mean)
            .with("after_per_s", low.mean)
            .with("after_variation", variation)
            .advise("measure for longer than the credit lasts; judge by the lower rate"),
    )
}

/// Whether the device moved more than was asked of it here.
fn neighbour_on_device(bundle: &Bundle) -> bool {
    let ratios = [seen::read_ratio(bundle), seen::write_ratio(bundle)];
    ratios.into_iter().flatten().any(|ratio| ratio > NEIGHBOUR_RATIO)
}

/// Whether counters other than the rate show somebody else at work: on the device, on the devices below
/// it, anywhere on the host's storage, or on its CPUs.
fn contended(bundle: &Bundle) -> bool {
    let moved = |d: &DeviceTotals| d.read_bytes + d.written_bytes;
    let sum = |devices: Option<Vec<&DeviceTotals>>| {
        devices.map(|devices| devices.into_iter().map(moved).sum::<u64>() as f64)
    };
    let below = sum(seen::bottom_devices(bundle)).zip(sum(seen::top_devices(bundle)));
    let others = &bundle.observed.neighbours;
    let theirs = others.storage_read_bytes.unwrap_or(0) + others.storage_written_bytes.unwrap_or(0);
    let ours = (seen::read_bytes(bundle) + seen::written_bytes(bundle)).max(1);
    neighbour_on_device(bundle)
        || below.is_some_and(|(below, top)| below > top * NEIGHBOUR_RATIO)
        || theirs as f64 > ours as f64 * OTHERS_SHARE_MAX
        || bundle.observed.pressure.cpu_some_share.is_some_and(|share| share > CPU_PRESSURE_MAX)
}

/// Coefficient of variation of stretches ten to one, so that single intervals do not decide.
fn variation(values: &[f64]) -> f64 {
    let means: Vec<f64> =
        values.chunks(10).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let square = means.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / means.len() as f64;
    square.sqrt() / mean.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;

    /// Falls after 25 s; each second of the lower plateau is off by up to `wobble` hundredths of it.
    fn falls_to(low: u64, wobble: u64) -> Bundle {
        let mut bundle = made_up::reads();
        let second = move |t: u64| low * wobble * (t / 10 * 37 % 7) / 600;
        let rate = move |t: u64| {
            if t < 250 { 3000 + t * 37 % 111 } else { low + second(t) + t * 7 % 11 }
        };
        made_up::rates(&mut bundle, |t| (rate(t), 800_000));
        bundle
    }

    #[test]
    fn a_fall_by_a_third_fails_and_a_smaller_one_is_drift() {
        assert_eq!(made_up::outcome(&RULE, &made_up::reads()), Some(Outcome::Pass));
        let finding = made_up::finding(&RULE, &falls_to(1000, 5));
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("after 25.0 s"), "{}", finding.says);
        assert_eq!(made_up::outcome(&RULE, &falls_to(2400, 5)), Some(Outcome::Pass));
        // Not flat: something else than a limit is at work.
        assert_eq!(made_up::outcome(&RULE, &falls_to(1000, 20)), Some(Outcome::Unknown));
    }

    #[test]
    fn a_neighbour_that_came_leaves_it_undecided_unless_a_limit_holds_the_rate() {
        let outcomes = |change: &dyn Fn(&mut Bundle)| {
            [5, 0].map(|wobble| {
                let mut bundle = falls_to(1000, wobble);
                change(&mut bundle);
                made_up::finding(&RULE, &bundle).outcome
            })
        };
        let on_device = |bundle: &mut Bundle| bundle.observed.devices[0].read_bytes *= 2;
        assert_eq!(outcomes(&on_device), [Outcome::Unknown; 2]);
        let on_host = |bundle: &mut Bundle| {
            bundle.observed.neighbours.storage_written_bytes = Some(seen::read_bytes(bundle) / 9);
        };
        assert_eq!(outcomes(&on_host), [Outcome::Unknown, Outcome::Fail]);
        let waiting = |share: f64| {
            move |bundle: &mut Bundle| bundle.observed.pressure.cpu_some_share = Some(share)
        };
        assert_eq!(outcomes(&waiting(0.29)), [Outcome::Fail; 2]);
        assert_eq!(outcomes(&waiting(0.31)), [Outcome::Unknown, Outcome::Fail]);
    }

    #[test]
    fn a_rise_is_a_warm_up() {
        let mut bundle = made_up::reads();
        let rate = |t: u64| if t < 250 { 1000 + t * 7 % 11 } else { 3000 + t * 7 % 11 };
        made_up::rates(&mut bundle, |t| (rate(t), 800_000));
        assert_eq!(made_up::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
