//! Detects a fall from one steady rate to a lower steady rate. Such a fall is typical of exhausted
//! burst credit.

use plimsoll_evidence::Bundle;

use super::not_steady::rates;
use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::stats::{Segment, moments, segments};

/// Minimum fall, as a fraction of the first rate. Volumes with burst credit start at several times
/// their base rate.
const FALL_MIN: f64 = 1.5;
/// Maximum variation of a capped level. The measured variation was 0.0 % on a volume with a limit
/// in the kernel, and 10 % or more on a shared disk. The value is the limit of `rate-capped` plus a
/// margin, because the ticks of a cap and the intervals can start at different times.
const HELD_MAX: f64 = 0.01;
/// Maximum variation of a capped level on a busy host, which issues late operations in the next
/// intervals. The measured variation was 4 % between seconds and 50 % between tenths of a second.
const CAUGHT_UP_MAX: f64 = 0.05;
/// Number of intervals in each batch.
const TEN: usize = 10;
/// Maximum ratio of the variance of batch means to a tenth of the variance of single intervals. The
/// ratio is 1 for independent intervals and higher on a shared device. The ratio measured under a
/// cap was 0.1. By chance, the ratio is below 0.25 in 1.3 % of cases (chi-square, 9 degrees of
/// freedom).
const VARIANCE_RATIO_MAX: f64 = 0.25;
/// Minimum duration of one level of the rate, as a fraction of the phase.
const PLATEAU_MIN: f64 = 0.1;
/// If the ratio of device bytes to application bytes exceeds this value, another process used the
/// device.
const NEIGHBOUR_RATIO: f64 = 1.05;

pub const RULE: Rule = Rule {
    id: "burst-credit",
    asks: "did the rate fall to a lower level, as when burst credit runs out?",
    explains: "Cloud volumes and arrays with quality-of-service limits run above their base rate \
               until a credit is used up. Write caches run faster than their media until they are \
               full. The rule splits the measured phase wherever the rate changes in a step. It \
               fails if the rate fell by a third or more to a steady level. A level is steady if it \
               varies by less than 1 %, or by less than 5 % if the load issues missed operations \
               later. Only a limit makes a rate so constant. The mean rate then depends on the \
               credit, and only the lower level is sustained. The outcome is unknown if the lower \
               level varies more, or if the device moved more bytes than this run requested: \
               another process may have started, or a cache may be full.",
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
    // There are too few intervals to detect levels. The rule `not-steady` reports this.
    if rates.len() < 40 {
        return None;
    }
    let long = (rates.len() as f64 * PLATEAU_MIN) as usize;
    let plateaus = segments(&rates);
    let plateaus: Vec<_> = plateaus.iter().filter(|s| s.end - s.start >= long).collect();
    let falls: Vec<_> =
        plateaus.windows(2).filter(|pair| pair[0].mean >= pair[1].mean * FALL_MIN).collect();
    let of = |low: &Segment| inner_rates(&rates, low);
    let held = falls.iter().find(|pair| is_capped(of(pair[1])));
    let Some([high, low]) = held.or(falls.first()) else {
        let says = "the rate did not fall from one steady level to a lower level";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    };
    let after_s =
        measured(bundle)?.duration_ns as f64 / 1e9 * low.start as f64 / rates.len() as f64;
    let says = format!(
        "the rate fell from {:.0}/s to {:.0}/s after {after_s:.1} s and did not recover: only the \
         lower rate is sustained",
        high.mean, low.mean
    );
    let certain = held.is_some() && !neighbour_on_device(bundle);
    let outcome = if certain { Outcome::Fail } else { Outcome::Unknown };
    Some(
        Finding::new(RULE.id, outcome, says)
            .with("before_per_s", high.mean)
            .with("after_per_s", low.mean)
            .with("after_variation", variation(of(low)))
            .advise("measure for a long time after the fall, and use only the lower rate"),
    )
}

/// Returns the two levels if the rate rose from a capped level by half of it or more.
pub(super) fn lifted(rates: &[f64]) -> Option<[Segment; 2]> {
    let long = ((rates.len() as f64 * PLATEAU_MIN) as usize).max(TEN);
    let plateaus = segments(rates);
    let plateaus: Vec<_> = plateaus.iter().filter(|s| s.end - s.start >= long).collect();
    let mut rises = plateaus.windows(2).filter(|pair| pair[1].mean >= pair[0].mean * FALL_MIN);
    let pair = rises.find(|pair| is_capped(inner_rates(rates, pair[0])))?;
    Some([*pair[0], *pair[1]])
}

/// Returns true if the device moved more bytes than this run requested.
fn neighbour_on_device(bundle: &Bundle) -> bool {
    let ratios = [evidence::read_ratio(bundle), evidence::write_ratio(bundle)];
    ratios.into_iter().flatten().any(|ratio| ratio > NEIGHBOUR_RATIO)
}

/// Returns the rates of a level, except those of its first and last interval: the rate changes
/// within the first interval, and the phase ends within the last one. In one run, a single partial
/// interval among a hundred raised the variation to 1.4 %.
fn inner_rates<'a>(rates: &'a [f64], plateau: &Segment) -> &'a [f64] {
    let all = &rates[plateau.start..plateau.end];
    match all {
        [_, inner @ .., _] if inner.len() >= TEN => inner,
        _ => all,
    }
}

/// Returns true if only a limit explains the low variation of these rates.
fn is_capped(values: &[f64]) -> bool {
    // A rate of zero is an outage, not a limit.
    if values.iter().all(|rate| *rate == 0.0) {
        return false;
    }
    let variation = variation(values);
    variation <= HELD_MAX || variation <= CAUGHT_UP_MAX && catches_up(values)
}

/// Returns true if later intervals compensate for the operations that an interval lacks.
fn catches_up(values: &[f64]) -> bool {
    let (whole, _) = values.as_chunks::<TEN>();
    let means: Vec<f64> = whole.iter().map(|ten| ten.iter().sum::<f64>() / TEN as f64).collect();
    let (single, together) = (moments::variance(values), moments::variance(&means));
    let ratio = single.zip(together).map(|(single, ten)| ten * TEN as f64 / single);
    whole.len() >= TEN && ratio.is_some_and(|ratio| ratio <= VARIANCE_RATIO_MAX)
}

/// Combines up to ten intervals into a batch, and returns the coefficient of variation of the
/// batches. There are at least five batches, which limits the weight of a single interval.
fn variation(values: &[f64]) -> f64 {
    let together = (values.len() / 5).clamp(1, TEN);
    let means: Vec<f64> = values
        .chunks(together)
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let square = means.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / means.len() as f64;
    square.sqrt() / mean.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    /// Returns a run whose rate falls to `low` after 25 s. The rate of each later second differs
    /// from `low` by up to `wobble` percent.
    fn falls_to(low: u64, wobble: u64) -> Bundle {
        let mut bundle = fixtures::reads();
        let second = move |t: u64| low * wobble * (t / 10 * 37 % 7) / 600;
        let rate = move |t: u64| {
            if t < 250 { 3000 + t * 37 % 111 } else { low + second(t) + t * 7 % 11 }
        };
        fixtures::rates(&mut bundle, |t| (rate(t), 800_000));
        bundle
    }

    #[test]
    fn a_fall_by_a_third_to_a_rate_that_is_held_fails_and_a_smaller_one_is_drift() {
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads()), Some(Outcome::Pass));
        let finding = fixtures::finding(&RULE, &falls_to(1000, 0));
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.contains("after 25.0 s"), "{}", finding.says);
        assert_eq!(fixtures::outcome(&RULE, &falls_to(2400, 0)), Some(Outcome::Pass));
    }

    #[test]
    fn the_interval_of_the_step_does_not_make_a_plateau_vary() {
        let mut bundle = fixtures::reads();
        let rate = |t: u64| match t {
            ..250 => 3000 + t * 37 % 111,
            250 => 300,
            _ => 1000,
        };
        fixtures::rates(&mut bundle, |t| (rate(t), 800_000));
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail, "{}", finding.says);
    }

    #[test]
    fn what_stands_still_is_held_by_no_limit() {
        let mut bundle = fixtures::reads();
        fixtures::rates(&mut bundle, |t| (if t < 250 { 3000 + t * 37 % 111 } else { 0 }, 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn a_limit_is_told_from_others_by_how_flat_it_holds_the_rate() {
        // Rates that deviate by up to 2 % have a variation of 0.7 %. Rates that deviate by up to 4
        // % have a variation of 1.3 %.
        assert_eq!(fixtures::outcome(&RULE, &falls_to(1000, 2)), Some(Outcome::Fail));
        assert_eq!(fixtures::outcome(&RULE, &falls_to(1000, 4)), Some(Outcome::Unknown));
        // On a busy host, later intervals issue the missed operations, but a deviation above 5 % is
        // too large.
        let jitter = |bundle: &mut Bundle, low: u64, wobble: u64| {
            let late = move |t: u64| if t.is_multiple_of(2) { low / 2 } else { 0 };
            let second = move |t: u64| low * wobble * (t / 10 * 37 % 7) / 600;
            let rate = move |t: u64| {
                if t < 250 { 3000 + t * 37 % 111 } else { low - low / 4 + second(t) + late(t) }
            };
            fixtures::rates(bundle, |t| (rate(t), 800_000));
        };
        let mut busy = fixtures::reads();
        jitter(&mut busy, 1000, 8);
        assert_eq!(fixtures::outcome(&RULE, &busy), Some(Outcome::Fail));
        jitter(&mut busy, 1000, 20);
        assert_eq!(fixtures::outcome(&RULE, &busy), Some(Outcome::Unknown));
        // A busy host does not cause a flat rate.
        let mut bundle = falls_to(1000, 0);
        bundle.observed.pressure.cpu_some_share = Some(0.9);
        bundle.observed.neighbours.storage_written_bytes = Some(evidence::read_bytes(&bundle));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        // Another process may use the device after that moment.
        bundle.observed.devices[0].read_bytes = evidence::read_bytes(&bundle) / 100 * 106;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.observed.devices[0].read_bytes = evidence::read_bytes(&bundle) / 100 * 104;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn a_rise_is_a_warm_up() {
        let mut bundle = fixtures::reads();
        let rate = |t: u64| if t < 250 { 1000 + t * 7 % 11 } else { 3000 + t * 7 % 11 };
        fixtures::rates(&mut bundle, |t| (rate(t), 800_000));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
