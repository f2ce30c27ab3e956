//! Checks that the load generator's host did not limit the figure.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Driver;

use super::{Rule, Weight};
use crate::checks;
use crate::claim::Claim;
use crate::figures::{Pick, measured, percentile_ns, totals};
use crate::finding::{Finding, Outcome};
use crate::links::{self, FULL_SHARE, Speed};
use crate::rules::balance::wire;

/// Maximum share of the time that a thread may be busy. fio users call a job CPU-bound if its user
/// and system time exceed 90 % of the run time.
const BUSY_SHARE_MAX: f64 = 0.9;
/// Maximum share of an operation's time spent in the generator. In a closed loop, the rate is too
/// low by this share. In an open loop, the latency is too high by this share.
const LAG_SHARE_MAX: f64 = 0.1;
/// Maximum share of the time for which a thread may wait for a CPU. This is our choice. On a virtual
/// machine with two idle CPUs, a load of 21,000 synchronous writes per second waited 16 %, because
/// each wake-up of an idle CPU takes microseconds. Beside four busy processes, it waited 41 % and
/// reached 11,800 per second; with a CPU quota of 7 %, it waited 84 % and reached 1,800.
const CPU_WAIT_SHARE_MAX: f64 = 0.3;

/// Minimum duration of a measurement whose CPU times are compared with its duration. In a shorter
/// measurement, the CPU time before and after it is a large share: a measurement of 0.1 ms "used"
/// 9,896 % of its CPUs.
const SHARE_NS_MIN: u64 = 100_000_000;

pub const RULE: Rule = Rule {
    id: "generator-limit",
    asks: "was the load generator the bottleneck?",
    explains: "Operations that are ready to start may wait in the generator. The rule compares this \
               wait with the measured latency. The generator limits the figure if the mean wait is \
               above 10 % of the mean latency. In an open loop, the 99th percentiles are compared \
               in the same way. The generator also limits the figure if the queue was not full, but \
               some due operations were never started. A thread that is busy more than 90 % of the \
               time (without clock polling) detects completions late, but this delay is not \
               recorded as a wait. The same is true for a thread that waits more than 30 % of the \
               time for a CPU, because of other processes or a quota. For storage behind a network, \
               the link of this host is the limit if the load uses 90 % of its reported speed or \
               more. In each of these cases the storage may sustain a higher load than it received: \
               a PASS remains valid, but a FAIL becomes INCONCLUSIVE. Use a faster host or link, \
               more threads or several hosts.",
    bears_on: &[
        (Claim::Requirement, Weight::Advisory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::MediaRead, Weight::Advisory),
        (Claim::SustainedWrite, Weight::Advisory),
    ],
    check,
};

/// Returns the duration of the measurement in ns; `None` if it is too short for shares of CPU time.
fn duration_ns(bundle: &Bundle) -> Option<f64> {
    let duration_ns = measured(bundle)?.duration_ns;
    (duration_ns >= SHARE_NS_MIN).then_some(duration_ns as f64)
}

/// Returns the share of the available CPU time that the generator used, without clock polling;
/// `None` if unknown.
pub fn busy_share(bundle: &Bundle) -> Option<f64> {
    let generator = &bundle.observed.generator;
    let spun_ns: u64 = generator.threads.iter().filter_map(|thread| thread.spun_ns).sum();
    let used_ns = (generator.user_ns? + generator.system_ns?).saturating_sub(spun_ns);
    let cpus = u64::from(bundle.run.engine.threads.max(1))
        .min(u64::from(bundle.environment.cpus.unwrap_or(u32::MAX)));
    Some(used_ns as f64 / (duration_ns(bundle)? * cpus as f64))
}

/// Returns the share of the time in which the busiest thread of the generator worked; `None` if
/// unknown.
fn thread_share(bundle: &Bundle) -> Option<f64> {
    let generator = &bundle.observed.generator;
    let duration_ns = duration_ns(bundle)?;
    let shares = generator.threads.iter().map(|thread| {
        let used_ns = thread.user_ns.saturating_add(thread.system_ns);
        used_ns.saturating_sub(thread.spun_ns.unwrap_or(0)) as f64 / duration_ns
    });
    // Bundles of older versions record only the busiest thread.
    shares.reduce(f64::max).or(generator.busiest_thread_share)
}

/// Returns the share of the time in which a thread of the generator was runnable but had no CPU, for
/// the thread that waited longest; `None` if unknown.
fn cpu_wait_share(bundle: &Bundle) -> Option<f64> {
    let duration_ns = duration_ns(bundle)?;
    let waits = bundle.observed.generator.threads.iter().filter_map(|thread| thread.cpu_wait_ns);
    waits.max().map(|wait_ns| wait_ns as f64 / duration_ns)
}

/// Returns the mean wait in the generator, as a fraction of the mean time of an operation. In an
/// open loop, returns the fraction at the 99th percentile if this is larger. `None` if the waits
/// were not recorded.
fn lag_share(bundle: &Bundle) -> Option<f64> {
    let lag = bundle.observed.generator.lag.as_ref().filter(|lag| lag.operations > 0)?;
    let wait_ns = lag.wait_ns_sum as f64 / lag.operations as f64;
    let latency_ns = totals(bundle, Pick::Issued).mean_ns()? as f64;
    if !checks::open_loop(bundle) {
        return Some(wait_ns / (wait_ns + latency_ns));
    }
    // Latency is measured from the intended start, so it includes the lag.
    let of = |wait_ns: f64, latency_ns: f64| (wait_ns / latency_ns.max(1.0)).min(1.0);
    let p99_ns = percentile_ns(bundle, Pick::Issued, 0.99);
    let p99 = p99_ns.map_or(0.0, |latency_ns| of(lag.wait_ns_p99 as f64, latency_ns as f64));
    Some(of(wait_ns, latency_ns).max(p99))
}

/// Returns the number of due operations that never started although slots were free.
fn missed_starts(bundle: &Bundle) -> u64 {
    let generator = &bundle.observed.generator;
    let held = generator.held.as_ref().is_some_and(|held| held.operations > 0);
    generator.starts_never_given.filter(|_| !held).unwrap_or(0)
}

/// Returns true if the generator was at its limit.
pub fn at_limit(bundle: &Bundle) -> bool {
    bundle.run.driver == Driver::Real && fault(bundle).is_some()
}

/// Describes how the generator limited the load; `None` if it did not.
fn fault(bundle: &Bundle) -> Option<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if let Some(share) = lag_share(bundle).filter(|share| *share > LAG_SHARE_MAX) {
        let share = percent(share);
        return Some(format!("operations spent {share} of their time in the load generator"));
    }
    let missed = missed_starts(bundle);
    if missed > 0 {
        return Some(format!("the load generator never started {missed} operations that were due"));
    }
    if let Some(share) = busy_share(bundle).filter(|share| *share > BUSY_SHARE_MAX) {
        let share = percent(share);
        return Some(format!("the load generator used {share} of its CPUs: it was the bottleneck"));
    }
    if let Some(share) = thread_share(bundle).filter(|share| *share > BUSY_SHARE_MAX) {
        let share = percent(share);
        return Some(format!(
            "one thread of the load generator used {share} of a CPU: it was the bottleneck"
        ));
    }
    if let Some(share) = cpu_wait_share(bundle).filter(|share| *share > CPU_WAIT_SHARE_MAX) {
        let share = percent(share);
        return Some(format!(
            "one thread of the load generator waited {share} of the time for a CPU, which other \
             threads or a quota used up"
        ));
    }
    let speed = link(bundle).filter(|speed| speed.used_share >= FULL_SHARE)?;
    Some(format!(
        "this host's link ({}, {}) was used to {} of its speed: it was the bottleneck",
        links::names(bundle.observed.links.as_ref()?),
        links::rate(speed.bits_per_s),
        percent(speed.used_share)
    ))
}

/// Returns the speed and the utilisation of this host's links if the load crossed the network.
fn link(bundle: &Bundle) -> Option<Speed> {
    wire::crosses_network(bundle).then(|| links::speed(bundle))?
}

fn check(bundle: &Bundle) -> Option<Finding> {
    if bundle.run.driver != Driver::Real {
        return None;
    }
    measured(bundle)?;
    let (busy, thread, lag) = (busy_share(bundle), thread_share(bundle), lag_share(bundle));
    let mut finding = if let Some(says) = fault(bundle) {
        Finding::new(RULE.id, Outcome::Warn, says).advise(
            "use a faster host or link, more threads, or several hosts; stop other processes, and \
             remove CPU quotas",
        )
    } else if let Some(share) = busy {
        let mut says = format!("the load generator used {:.0} % of its CPUs", share * 100.0);
        if let Some(lag) = lag {
            let share = lag * 100.0;
            says.push_str(&format!(", and operations spent {share:.1} % of their time in it"));
        }
        Finding::new(RULE.id, Outcome::Pass, says)
    } else {
        let says = "the load generator's CPU time is unknown";
        return Some(Finding::new(RULE.id, Outcome::Unknown, says).advise("mount /proc"));
    };
    let link = link(bundle).map(|speed| speed.used_share);
    let shares = [
        ("busy_share", busy),
        ("thread_share", thread),
        ("cpu_wait_share", cpu_wait_share(bundle)),
        ("lag_share", lag),
        ("link_share", link),
    ];
    for (name, share) in shares {
        if let Some(share) = share {
            finding = finding.with(name, share);
        }
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::{GeneratorThread, Lag};

    use super::super::fixtures::{self, SECOND_NS, SECONDS};
    use super::*;

    fn thread(used_s: u64, spun_s: u64) -> GeneratorThread {
        let spun_ns = Some(spun_s * SECOND_NS);
        GeneratorThread { user_ns: used_s * SECOND_NS, spun_ns, ..GeneratorThread::default() }
    }

    fn lag(wait_ns: u64) -> Option<Lag> {
        let operations = fixtures::RATE * SECONDS;
        let wait_ns_sum = operations * wait_ns;
        Some(Lag { operations, wait_ns_sum, wait_ns_p99: 3 * wait_ns, ..Lag::default() })
    }

    #[test]
    fn one_thread_at_its_limit_is_enough() {
        let mut bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        bundle.observed.generator.busiest_thread_share = Some(0.9);
        assert!(!at_limit(&bundle));
        bundle.observed.generator.busiest_thread_share = Some(0.91);
        assert!(at_limit(&bundle));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Warn));
    }

    #[test]
    fn the_cpu_time_of_a_very_short_measurement_is_not_compared_with_its_duration() {
        let mut bundle = fixtures::reads();
        bundle.observed.generator.threads = vec![thread(100, 0)];
        bundle.observed.generator.threads[0].cpu_wait_ns = Some(100 * SECOND_NS);
        (bundle.observed.generator.user_ns, bundle.observed.generator.system_ns) =
            (Some(100 * SECOND_NS), Some(0));
        assert!(at_limit(&bundle));
        for phase in &mut bundle.run.phases {
            phase.duration_ns = SHARE_NS_MIN - 1;
        }
        assert_eq!((busy_share(&bundle), thread_share(&bundle)), (None, None));
        assert!(!at_limit(&bundle));
    }

    /// A lag of 90 µs limits a load of short I/Os, but not a load that also contains long flushes.
    #[test]
    fn flushes_are_operations_too() {
        let mut bundle = fixtures::reads();
        bundle.observed.generator.lag = lag(90_000);
        assert!(at_limit(&bundle));
        let flushes = plimsoll_evidence::run::ClassTotals {
            name: "matrix.sync".into(),
            group: "sync".into(),
            latency_ns_sum: 1000 * bundle.run.classes[0].latency_ns_sum,
            ..bundle.run.classes[0].clone()
        };
        bundle.run.classes.push(flushes);
        assert!(!at_limit(&bundle));
    }

    #[test]
    fn a_thread_that_watches_the_clock_is_busy_and_not_at_its_limit() {
        let mut bundle = fixtures::reads();
        bundle.run.engine.closed_loop = false;
        let generator = &mut bundle.observed.generator;
        (generator.user_ns, generator.system_ns) = (Some(60 * SECOND_NS), Some(0));
        generator.busiest_thread_share = Some(1.0);
        generator.threads = vec![thread(60, 50)];
        generator.lag = lag(2_000);
        assert!(!at_limit(&bundle));
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        // The thread uses the same CPU time, but spends only 3 s of it polling the clock.
        bundle.observed.generator.threads = vec![thread(60, 3)];
        assert!(at_limit(&bundle));
    }

    #[test]
    fn a_thread_that_had_no_cpu_is_at_its_limit() {
        let mut bundle = fixtures::reads();
        let waited = |share: f64| GeneratorThread {
            cpu_wait_ns: Some((share * (SECONDS * SECOND_NS) as f64) as u64),
            ..thread(1, 0)
        };
        bundle.observed.generator.threads = vec![waited(0.0), waited(0.29)];
        assert!(!at_limit(&bundle));
        bundle.observed.generator.threads = vec![waited(0.0), waited(0.4)];
        assert!(at_limit(&bundle));
        let finding = fixtures::finding(&RULE, &bundle);
        assert!(finding.says.contains("waited 40 % of the time for a CPU"), "{finding:?}");
    }

    #[test]
    fn lag_is_judged_against_the_latency_measured() {
        let mut bundle = fixtures::reads();
        // The limit is a lag of 89 µs, which is a tenth of the sum of the lag and the latency of
        // 800 µs.
        bundle.observed.generator.lag = lag(88_000);
        assert!(!at_limit(&bundle));
        bundle.observed.generator.lag = lag(90_000);
        assert!(at_limit(&bundle));
        let finding = fixtures::finding(&RULE, &bundle);
        assert!(finding.says.contains("of their time in the load generator"), "{finding:?}");
        // In an open loop, the 99th percentiles are compared: a lag of 3 × 45 µs is 11 % of the
        // latency of 1.2 ms.
        bundle.observed.generator.lag = lag(45_000);
        assert!(!at_limit(&bundle));
        bundle.run.engine.closed_loop = false;
        assert!(at_limit(&bundle));
        bundle.observed.generator.lag = lag(35_000);
        assert!(!at_limit(&bundle));
    }

    #[test]
    fn starts_that_were_never_given_are_its_fault_unless_every_place_was_taken() {
        let mut bundle = fixtures::reads();
        bundle.observed.generator.starts_never_given = Some(7);
        assert!(at_limit(&bundle));
        bundle.observed.generator.held = lag(1_000_000);
        assert!(!at_limit(&bundle));
    }

    #[test]
    fn a_full_link_is_the_limit_where_the_storage_is_behind_it() {
        use plimsoll_evidence::observed::{Interface, LinkCounters, Links};
        let with = |share: f64, hardware| {
            let mut bundle = fixtures::reads_with("path = \"/x\"", "nfs = [\"nfs://h/e\"]");
            let to_ns = fixtures::SECONDS * fixtures::SECOND_NS;
            let received_bytes = (share * (125_000_000 * fixtures::SECONDS) as f64) as u64;
            let one = Interface {
                name: "eth0".into(),
                hardware: Some(hardware),
                speed_bits_per_s: Some(1_000_000_000),
                counters: Some(LinkCounters { received_bytes, ..LinkCounters::default() }),
                ..Interface::default()
            };
            bundle.observed.links =
                Some(Links { to_ns, interfaces: vec![one], ..Links::default() });
            bundle
        };
        let full = with(0.97, true);
        let found = fixtures::finding(&RULE, &full);
        let says =
            "this host's link (eth0, 1 Gb/s) was used to 97 % of its speed: it was the bottleneck";
        assert_eq!((found.outcome, found.says.as_str()), (Outcome::Warn, says));
        assert!(at_limit(&full) && !at_limit(&with(0.6, true)));
        assert!(!at_limit(&with(0.97, false)), "a virtual interface's speed is none");
        assert!(!at_limit(&with(1.5, true)), "nor is one that is exceeded");
        let mut near = full.clone();
        near.plan = fixtures::reads().plan;
        assert!(!at_limit(&near), "its disk is its own");
        let mut brief = full.clone();
        brief.observed.links.as_mut().unwrap().from_ns = 55 * fixtures::SECOND_NS;
        assert!(!at_limit(&brief));
        let mut lost = full.clone();
        let gone = Interface { hardware: Some(true), ..Interface::default() };
        lost.observed.links.as_mut().unwrap().interfaces.push(gone);
        assert!(!at_limit(&lost), "what another card moved is not known");
    }
}
