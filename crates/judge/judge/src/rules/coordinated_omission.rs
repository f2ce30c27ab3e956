//! Estimates the latency that a closed loop hides during stalls.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{Arrival, Workload};

use super::{Rule, Weight, evidence, latencies, littles_law};
use crate::claim::Claim;
use crate::figures::measured;
use crate::finding::{Finding, Outcome};
use crate::stats::omission::{Bin, corrected, quantile};
use crate::stats::percentile_gate;

/// Maximum ratio of the corrected p99 to the recorded p99. In one test, the recorded p99 was 0.28
/// ms and the true p99 1.8 s.
const TIMES_MAX: f64 = 2.0;
const P: f64 = 0.99;

pub const RULE: Rule = Rule {
    id: "coordinated-omission",
    asks: "do the percentiles of a closed loop hide stalls?",
    explains: "A client that waits for a slow operation does not issue the operations that are due \
               during the wait. Their waiting time is missing from the record. In a test with a \
               stall of 2 s at 1,000/s, the recorded p99 was 0.28 ms, but the true p99 was 1.8 s. \
               The rule adds the missing operations (Gil Tene's correction), one per mean interval \
               of a client, and computes the p99 again. If the corrected p99 is more than twice the \
               recorded p99, the rule warns; if the load had a target rate, the claim \
               `tail-latency` is refuted. If a requirement limits a percentile, its check includes \
               the missing operations and says so. An open loop (`arrival = \"poisson\"`) measures \
               latency from the intended start and needs no correction.",
    bears_on: &[
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Requirement, Weight::Advisory),
        (Claim::Comparative, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    measured(bundle)?;
    if evidence::streams(bundle).iter().any(|stream| stream.arrival.is_open()) && !foreign(bundle) {
        let says = "open loop: latency is measured from the intended start";
        return Some(Finding::new(RULE.id, Outcome::Pass, says));
    }
    if !bundle.run.engine.closed_loop && !foreign(bundle) {
        return None;
    }
    [true, false].into_iter().filter_map(|is_read| of(bundle, is_read)).min_by_key(|f| f.outcome)
}

fn foreign(bundle: &Bundle) -> bool {
    bundle.run.driver == plimsoll_evidence::run::Driver::Foreign
}

fn of(bundle: &Bundle, is_read: bool) -> Option<Finding> {
    let histogram = latencies::merged(bundle, is_read)?;
    let total = histogram.len();
    percentile_gate(total as usize, total as f64, P).ok()?;
    let bins: Vec<Bin> = histogram
        .iter_recorded()
        .map(|step| Bin { latency_ns: step.value_iterated_to(), count: step.count_at_value() })
        .collect();
    let interval_ns = interval_ns(bundle, total)?;
    let (raw, put_back) = (quantile(&bins, P)?, quantile(&corrected(&bins, interval_ns).ok()?, P)?);
    let word = if is_read { "reads" } else { "writes" };
    let ms = |ns: u64| ns as f64 / 1e6;
    let finding = if put_back as f64 > raw as f64 * TIMES_MAX {
        let says = format!(
            "for {word}, the closed loop recorded a p99 latency of {:.2} ms; including the \
             operations that it did not issue during stalls, the p99 is {:.2} ms (coordinated \
             omission)",
            ms(raw),
            ms(put_back)
        );
        let outcome = if is_rate_limited(bundle) { Outcome::Fail } else { Outcome::Warn };
        Finding::new(RULE.id, outcome, says)
            .advise(format!("{}, or report the corrected figure", open_loop(bundle)))
    } else {
        let says =
            format!("stalls raise the p99 of {word} from {:.2} to {:.2} ms", ms(raw), ms(put_back));
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(
        finding
            .with("p99_recorded_ns", raw)
            .with("p99_corrected_ns", put_back)
            .with("interval_ns", interval_ns),
    )
}

/// Returns advice on how to turn this workload into an open loop. The advice contains the name of
/// the plan's field.
fn open_loop(bundle: &Bundle) -> &'static str {
    if foreign(bundle) {
        return "let the tool issue operations at a fixed rate, independent of completions";
    }
    match bundle.plan.workload {
        Workload::Mailbox(_) => "use an open loop (`pace = \"target\"` of the mail store)",
        _ => "use an open loop (`arrival = \"poisson\"`)",
    }
}

/// Returns true if the load had a target rate, so that operations were due during a stall.
fn is_rate_limited(bundle: &Bundle) -> bool {
    evidence::streams(bundle).iter().any(|stream| {
        stream.arrival.is_open() || stream.arrival != Arrival::Closed { rate_cap_per_s: None }
    })
}

/// Returns the mean time between two consecutive operations in one slot of the queue.
fn interval_ns(bundle: &Bundle, operations: u64) -> Option<u64> {
    let places = match littles_law::outstanding(bundle) {
        Some(places) => places,
        None => evidence::streams(bundle).iter().map(|s| u64::from(s.clients)).sum::<u64>(),
    };
    let places = places.max(u64::from(bundle.run.engine.sessions)).max(1);
    (measured(bundle)?.duration_ns.saturating_mul(places)).checked_div(operations)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    /// Sets the latencies of one client at 1,000 operations per second, with a stall of 2 s in
    /// every 20 s.
    fn stalled(bundle: &mut Bundle) {
        let mut histogram = plimsoll_evidence::latency::histogram();
        histogram.record_n(200_000, 58_000).unwrap();
        histogram.record_n(2_000_000_000, 3).unwrap();
        bundle.latency.insert("matrix.read".into(), histogram);
    }

    #[test]
    fn a_stall_at_a_rate_refutes_the_tail() {
        let to = "queue_depth = 1\nrate = 1000";
        let mut bundle = fixtures::reads_with("queue_depth = 8", to);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        stalled(&mut bundle);
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail, "{}", finding.says);
        assert!(finding.says.contains("0.20 ms"), "{}", finding.says);
    }

    #[test]
    fn as_fast_as_it_goes_it_is_a_warning() {
        let mut bundle = fixtures::reads_with("queue_depth = 8", "queue_depth = 1");
        stalled(&mut bundle);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn an_open_loop_has_nothing_to_correct() {
        let to = "arrival = \"poisson\"\nrate = 1000";
        let mut bundle = fixtures::reads_with("queue_depth = 8", to);
        stalled(&mut bundle);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    /// `arrival` is a field of streams. Plimsoll rejects a mail store's plan that contains this
    /// field.
    #[test]
    fn the_advice_fits_the_workload() {
        let mut bundle = fixtures::reads_with("queue_depth = 8", "queue_depth = 1");
        stalled(&mut bundle);
        assert!(check(&bundle).unwrap().advice.contains("`arrival = \"poisson\"`"));
        let store = "version = 1\nname = \"m\"\n[target]\npath = \
                     \"/x\"\n[workload.mailbox]\nmailboxes = 8\nmailbox_size = \"4MiB\"\ndatabases \
                     = 1\nthreads = 1\npace = \"target\"\n[requirement]\niops = 5\n";
        let plan = plimsoll_plan::Plan::parse(store, "m.toml").unwrap().resolve();
        bundle.plan.workload = plan.workload;
        assert_eq!(open_loop(&bundle), "use an open loop (`pace = \"target\"` of the mail store)");
    }
}
