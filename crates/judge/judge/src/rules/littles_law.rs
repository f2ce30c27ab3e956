//! Checks that rate, latency and concurrency agree.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::{self, bundle_key};
use plimsoll_evidence::run::{Driver, PhaseKind};
use plimsoll_plan::{Arrival, Stream};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::{self, NS_PER_S, measured};
use crate::finding::{Finding, Outcome};
use crate::stats::little;

/// Minimum ratios of the mean number of operations in flight to the depth. If the queue is refilled
/// slowly, or if latencies are published with a single digit, the ratio may be 0.9 or less. It
/// falls to one half only if the latency omits time or the depth is wrong. Measured: 7.99 of 8
/// operations in flight.
const SHARE_WARN: f64 = 0.9;
const SHARE_MIN: f64 = 0.5;
/// Maximum time that a tool at depth 1 spends between two operations. This time allows for a few
/// system calls and for scheduling on a busy host. Measured with fio on two shared cores: 3 to 17
/// us.
const BETWEEN_NS_MAX: f64 = 50_000.0;

pub const RULE: Rule = Rule {
    id: "littles-law",
    asks: "do the rate, the latency and the number of operations in flight agree?",
    explains: "In a closed loop, rate × mean latency is the mean number of operations in flight (J. \
               D. C. Little, 1961), which is at most clients × queue depth. A larger product is \
               impossible: the rate or the latency is wrong. If the product is smaller in another \
               tool's result, the latency omits part of the time or the depth was different. For a \
               table whose depth the reader declared, it is unknown which of the two is true. If a \
               result contains the duration of each job, each job is checked separately. For our \
               own engine, the rule `load-not-reached` judges a product that is too small.",
    bears_on: &[
        (Claim::Requirement, Weight::Mandatory),
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::CachedRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::BurstWrite, Weight::Mandatory),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
    ],
    check,
};

/// Returns clients × queue depth, the number of operations that closed loops keep in flight. `None`
/// if pauses, batches, rate caps or open loops change this number.
pub(super) fn outstanding(bundle: &Bundle) -> Option<u64> {
    let streams = evidence::streams(bundle);
    let plain = |stream: &Stream| {
        stream.arrival == Arrival::Closed { rate_cap_per_s: None }
            && stream.think_time_ns == 0
            && !stream.batch
    };
    if streams.is_empty() || !streams.iter().all(plain) {
        return None;
    }
    Some(streams.iter().map(Stream::outstanding).sum())
}

/// Returns the average number of operations in flight: the sum of latencies divided by the time.
/// `None` if no latency was measured.
pub(super) fn in_flight(bundle: &Bundle) -> Option<f64> {
    let jobs = jobs(bundle);
    if !jobs.is_empty() {
        // Each job has its own duration.
        let sum: f64 = jobs.iter().map(Loop::in_flight).sum();
        return (sum > 0.0).then_some(sum);
    }
    let law = whole(bundle)?;
    (law.latency_ns > 0.0).then(|| law.in_flight())
}

/// Operations and duration of one closed loop.
struct Loop {
    /// Name of the loop in findings; empty for the whole run.
    name: String,
    count: u64,
    latency_ns: f64,
    duration_ns: f64,
    outstanding: Option<f64>,
}

impl Loop {
    fn in_flight(&self) -> f64 {
        self.latency_ns / self.duration_ns
    }
}

/// Returns the whole run as one loop.
fn whole(bundle: &Bundle) -> Option<Loop> {
    // The latencies of operations that were in flight at the end of the measurement are counted in
    // full, so the duration includes the drain. Otherwise an outage at the end would look as if too
    // many operations were in flight. Durable writes are left out, because each one is already
    // counted as a write and as a flush.
    let classes =
        || bundle.run.classes.iter().filter(|class| !figures::is_counted_elsewhere(class));
    let drained = classes().any(|class| class.drained > 0);
    let close = bundle.run.phases.iter().find(|phase| phase.kind == PhaseKind::Close);
    let drain_ns = close.filter(|_| drained).map_or(0, |phase| phase.duration_ns);
    Some(Loop {
        name: String::new(),
        count: classes().map(|class| class.count).sum(),
        latency_ns: classes().map(|class| class.latency_ns_sum as f64).sum(),
        duration_ns: (measured(bundle)?.duration_ns + drain_ns) as f64,
        outstanding: outstanding(bundle).map(|count| count as f64),
    })
}

/// Returns the jobs of another tool's result, if it states their durations. The law applies to each
/// job, but not to the sum of jobs with different durations.
fn jobs(bundle: &Bundle) -> Vec<Loop> {
    let counter = |name: String| bundle.run.counters.get(&name).copied();
    let mut instances: Vec<u32> = bundle.run.classes.iter().map(|class| class.instance).collect();
    instances.sort_unstable();
    instances.dedup();
    let job = |instance: u32| {
        let duration_ns = counter(bundle_key::runtime_ns(instance)).filter(|ns| *ns > 0)? as f64;
        let classes = || bundle.run.classes.iter().filter(move |c| c.instance == instance);
        Some(Loop {
            name: format!("job {instance}: "),
            count: classes().map(|class| class.count).sum(),
            latency_ns: classes().map(|class| class.latency_ns_sum as f64).sum(),
            duration_ns,
            outstanding: counter(bundle_key::outstanding(instance)).map(|count| count as f64),
        })
    };
    instances.into_iter().filter_map(job).collect()
}

fn check(bundle: &Bundle) -> Option<Finding> {
    // Pauses, rate caps, batches and open loops change the number of operations in flight.
    outstanding(bundle)?;
    let jobs = jobs(bundle);
    let loops = if jobs.is_empty() { vec![whole(bundle)?] } else { jobs };
    let judged = loops.iter().filter_map(|one| judge(bundle, one));
    judged.min_by_key(|finding| finding.outcome)
}

fn judge(bundle: &Bundle, one: &Loop) -> Option<Finding> {
    let outstanding = one.outstanding?;
    if one.latency_ns <= 0.0 || one.count == 0 {
        return None;
    }
    let seconds = one.duration_ns / NS_PER_S;
    let rate = one.count as f64 / seconds;
    let law = little(rate, one.latency_ns / one.count as f64, outstanding).ok()?;
    let made_elsewhere = bundle.run.driver == Driver::Foreign;
    let numbers = format!(
        "{}{rate:.0} operations/s with a mean latency of {:.3} ms imply {:.2} operations in flight; \
         clients × depth is {outstanding:.0}",
        one.name,
        one.latency_ns / one.count as f64 / 1e6,
        law.in_flight
    );
    let between_ns = (one.duration_ns - one.latency_ns) / one.count as f64;
    let own_time = outstanding <= 1.0 && between_ns <= BETWEEN_NS_MAX;
    let short = made_elsewhere && law.deviation < SHARE_MIN - 1.0 && !own_time;
    let guessed = bundle.run.engine.kind == foreign::TABLE_KIND;
    let advice = "the latency, the rate or the depth is wrong";
    // The latencies of operations that were in flight at the start are counted in full. If the
    // storage is stalled at the start, the sum of latencies is therefore too large. For each slot,
    // the excess is at most the length of the stall.
    let classes = bundle.run.classes.iter().filter(|class| !figures::is_counted_elsewhere(class));
    let longest_ns = classes.map(|class| class.latency_ns_max).max().unwrap_or(0);
    let edge = if made_elsewhere { 0.0 } else { longest_ns as f64 / one.duration_ns };
    let finding = if law.deviation > little::TOLERANCE + edge || short && !guessed {
        Finding::new(RULE.id, Outcome::Fail, numbers).advise(advice)
    } else if short {
        Finding::new(RULE.id, Outcome::Unknown, numbers).advise(
            "find out how many operations were in flight, and whether the latency includes the \
             whole operation",
        )
    } else if made_elsewhere && law.deviation < SHARE_WARN - 1.0 {
        Finding::new(RULE.id, Outcome::Warn, numbers).advise(advice)
    } else {
        Finding::new(RULE.id, Outcome::Pass, numbers)
    };
    Some(finding.with("in_flight", law.in_flight).with("outstanding", outstanding))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn eight_in_flight_are_eight_and_nine_are_impossible() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let sum = bundle.run.classes[0].latency_ns_sum;
        bundle.run.classes[0].latency_ns_sum = sum / 8 * 9;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn a_stall_across_the_start_explains_as_much_as_it_was_long() {
        let mut bundle = fixtures::reads();
        let class = &mut bundle.run.classes[0];
        class.latency_ns_sum = class.latency_ns_sum / 8 * 9;
        let measured_ns = measured(&bundle).unwrap().duration_ns;
        bundle.run.classes[0].latency_ns_max = measured_ns / 16;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.run.classes[0].latency_ns_max = measured_ns / 7;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn what_was_in_flight_at_the_stop_took_the_time_of_the_drain_too() {
        let mut bundle = fixtures::reads();
        let sum = bundle.run.classes[0].latency_ns_sum;
        bundle.run.classes[0].latency_ns_sum = sum / 8 * 9;
        bundle.run.classes[0].drained = 8;
        let mut close = bundle.run.phases[0].clone();
        (close.kind, close.duration_ns) = (PhaseKind::Close, 0);
        let measured_ns = measured(&bundle).unwrap().duration_ns;
        bundle.run.phases.retain(|phase| phase.kind != PhaseKind::Close);
        bundle.run.phases.push(close);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
        bundle.run.phases.last_mut().unwrap().duration_ns = measured_ns / 4;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }

    #[test]
    fn a_foreign_latency_that_leaves_out_a_quarter_fails_and_ours_is_the_generators() {
        let mut bundle = fixtures::reads();
        bundle.run.classes[0].latency_ns_sum = bundle.run.classes[0].latency_ns_sum / 4 * 3;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.run.driver = Driver::Foreign;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
        bundle.run.classes[0].latency_ns_sum = bundle.run.classes[0].latency_ns_sum / 30 * 19;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn one_at_a_time_leaves_the_tool_a_few_microseconds_between() {
        let mut bundle = fixtures::reads_with("queue_depth = 8", "queue_depth = 1");
        bundle.run.driver = Driver::Foreign;
        let duration_ns = measured(&bundle).unwrap().duration_ns;
        let mut of = |gap_ns: u64, latency_ns: u64| {
            let class = &mut bundle.run.classes[0];
            class.count = duration_ns / (gap_ns + latency_ns);
            class.latency_ns_sum = class.count * latency_ns;
            fixtures::outcome(&RULE, &bundle)
        };
        assert_eq!(of(17_000, 15_000), Some(Outcome::Warn));
        assert_eq!(of(70_000, 15_000), Some(Outcome::Fail));
    }

    #[test]
    fn half_of_what_was_declared_for_a_table_is_unknown_and_more_of_it_fails() {
        let mut bundle = fixtures::reads();
        bundle.run.driver = Driver::Foreign;
        bundle.run.engine.kind = foreign::TABLE_KIND.into();
        let sum = bundle.run.classes[0].latency_ns_sum;
        bundle.run.classes[0].latency_ns_sum = sum / 30 * 14;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.classes[0].latency_ns_sum = sum / 8 * 9;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Fail));
    }

    #[test]
    fn pauses_and_open_loops_are_not_asked() {
        let to = "queue_depth = 8\nthink_time = \"1ms\"";
        assert_eq!(fixtures::outcome(&RULE, &fixtures::reads_with("queue_depth = 8", to)), None);
    }

    #[test]
    fn jobs_that_ran_for_different_times_are_each_held_to_the_law() {
        let mut bundle = fixtures::reads();
        bundle.run.driver = Driver::Foreign;
        // The second job has the same rate, but runs for only a quarter of the time. On average,
        // fewer than 16 operations are in flight.
        let mut second = bundle.run.classes[0].clone();
        (second.instance, second.name) = (1, "job1.read".into());
        second.count /= 4;
        second.latency_ns_sum /= 4;
        bundle.run.classes.push(second);
        let plimsoll_plan::Workload::Matrix(matrix) = &mut bundle.plan.workload else { panic!() };
        matrix.streams[0].clients = 2;
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Warn, "{}", finding.says);
        for (instance, seconds) in [(0, 60), (1, 15)] {
            let counters = &mut bundle.run.counters;
            counters.insert(bundle_key::runtime_ns(instance), seconds * fixtures::SECOND_NS);
            counters.insert(bundle_key::outstanding(instance), 8);
        }
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        assert_eq!(in_flight(&bundle), Some(16.0));
        // The rule fails if the figures of one job contradict each other.
        bundle.run.classes[1].latency_ns_sum /= 3;
        let finding = fixtures::finding(&RULE, &bundle);
        assert_eq!(finding.outcome, Outcome::Fail);
        assert!(finding.says.starts_with("job 1: "), "{}", finding.says);
        // If the depth of a job is unknown, the rule does not judge this job.
        bundle.run.counters.remove(&bundle_key::outstanding(1));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
    }
}
