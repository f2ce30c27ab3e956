//! Finds out why one host achieved a lower rate than the other hosts, by comparing its evidence
//! with theirs.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{DeviceTotals, NetworkMount};

use super::{TIMES_MIN, link};
use crate::figures::{NS_PER_S, Pick, measured, totals};
use crate::rules::balance::wire;
use crate::rules::evidence;

/// A host's CPU frequency counts as low if it is below this share of the other hosts' lowest
/// frequency. The rule `cpu-frequency` uses the same share within one run.
const FREQUENCY_SHARE_MIN: f64 = 0.8;

const OTHERS: &str = "other programs moved bytes to and from its storage:";

/// Possible cause of a slow host.
struct Cause {
    /// Text that precedes the value in the report.
    says: &'static str,
    /// Minimum value that counts as a cause.
    least: f64,
    show: fn(f64) -> String,
    /// Function that returns the value; `None` if unknown.
    of: fn(&Bundle) -> Option<f64>,
}

/// Causes, in the order of the report. The minimum values are the same as in the rules `cpu-steal`,
/// `generator-limit` and `memory-pressure`.
const CAUSES: [Cause; 9] = [
    Cause {
        says: "a CPU quota withheld CPU time:",
        least: 0.01,
        show: evidence::percent,
        of: |bundle| {
            let throttled_ns = bundle.observed.cpu.throttled_ns? as f64;
            Some(throttled_ns / measured(bundle)?.duration_ns.max(1) as f64)
        },
    },
    Cause {
        says: "the hypervisor took CPU time from it:",
        least: 0.02,
        show: evidence::percent,
        of: |bundle| bundle.observed.cpu.steal_avg,
    },
    Cause {
        says: "its CPUs were busy:",
        least: 0.9,
        show: evidence::percent,
        of: |bundle| bundle.observed.cpu.busy_avg,
    },
    Cause {
        says: "its busiest load thread used a CPU for",
        least: 0.9,
        show: evidence::percent,
        of: |bundle| bundle.observed.generator.busiest_thread_share,
    },
    Cause {
        says: "its programs waited for memory:",
        least: 0.05,
        show: evidence::percent,
        of: |bundle| bundle.observed.pressure.memory_some_share,
    },
    Cause {
        says: "its kernel logged I/O errors of the devices:",
        least: 1.0,
        show: |count| format!("{count:.0}"),
        of: |bundle| Some(bundle.observed.device_errors.as_ref()?.values().sum::<u64>() as f64),
    },
    Cause {
        says: "its network client sent calls again:",
        least: 0.1,
        show: |rate| format!("{rate:.1}/s"),
        of: |bundle| {
            let mounts = &bundle.observed.network_mounts;
            let sent_again: u64 = mounts.iter().map(|m: &NetworkMount| m.retransmissions).sum();
            let seconds = measured(bundle)?.duration_ns.max(1) as f64 / NS_PER_S;
            (!mounts.is_empty()).then_some(sent_again as f64 / seconds)
        },
    },
    Cause {
        says: OTHERS,
        least: (1u64 << 20) as f64,
        show: |rate| format!("{}/s", evidence::size(rate as u64)),
        of: |bundle| {
            let others = &bundle.observed.neighbours;
            let bytes = others.storage_read_bytes?.saturating_add(others.storage_written_bytes?);
            Some(bytes as f64 / (measured(bundle)?.duration_ns.max(1) as f64 / NS_PER_S))
        },
    },
    Cause { says: "its device took more time per I/O:", least: 0.0, show: ms, of: device_ns },
];

fn ms(ns: f64) -> String {
    format!("{:.2} ms", ns / 1e6)
}

/// Returns the mean time of an I/O on the target's devices.
fn device_ns(bundle: &Bundle) -> Option<f64> {
    let devices = evidence::top_devices(bundle)?;
    let sum =
        |of: fn(&DeviceTotals) -> u64| -> u64 { devices.iter().map(|device| of(device)).sum() };
    let ios = sum(|device| device.reads + device.writes);
    let ns = sum(|device| device.read_ns + device.write_ns);
    // Some devices do not measure how long I/Os take.
    (ios > 0 && ns > 0).then(|| ns as f64 / ios as f64)
}

/// Returns causes in the slow host's evidence that do not exist on the other hosts. If no other
/// host recorded a value, this value is not compared. `is_alone` is true if no other agent runs on
/// the machine. If another agent runs there, other programs are not reported as a cause, because
/// that agent is one of them.
pub(super) fn causes(slow: &Bundle, others: &[&Bundle], is_alone: bool) -> Vec<String> {
    let mut found: Vec<String> = CAUSES
        .iter()
        .filter(|cause| is_alone || cause.says != OTHERS)
        .filter_map(|cause| {
            let own = (cause.of)(slow)?;
            let most = largest(others, cause.of)?;
            let stands_out = own >= cause.least && own > 0.0 && stands_out(cause, own, most);
            let (own, most) = ((cause.show)(own), (cause.show)(most));
            stands_out
                .then(|| format!("{} {own}, but at most {most} on the other hosts", cause.says))
        })
        .collect();
    let lowest = |bundle: &Bundle| bundle.observed.cpu.frequency_hz_min;
    if let (Some(own), Some(least)) =
        (lowest(slow), others.iter().filter_map(|other| lowest(other)).min())
        && (own as f64) < least as f64 * FREQUENCY_SHARE_MIN
    {
        let ghz = |hz: u64| hz as f64 / 1e9;
        found.push(format!(
            "its CPUs fell to {:.2} GHz, but those of the other hosts never below {:.2} GHz",
            ghz(own),
            ghz(least)
        ));
    }
    found.extend(io_limit_cause(slow, others));
    if wire::crosses_network(slow) {
        found.extend(link::causes(slow, others));
    }
    if found.is_empty() {
        found.extend(network_cause(slow, others));
    }
    found
}

/// Returns the block-I/O limits of the slow host's control group, if no other host has such limits.
/// Device numbers differ between hosts, so limits of two hosts cannot be compared.
fn io_limit_cause(slow: &Bundle, others: &[&Bundle]) -> Option<String> {
    let limits = |bundle: &Bundle| {
        let limits = bundle.observed.limits.as_ref().filter(|limits| limits.groups_read)?;
        Some(limits.io.clone())
    };
    let own = limits(slow)?;
    let are_free = !others.is_empty()
        && others.iter().all(|other| limits(other).is_some_and(|limits| limits.is_empty()));
    (!own.is_empty() && are_free).then(|| {
        format!(
            "its control group limits block I/O ({}), but not on the other hosts",
            own.join(", ")
        )
    })
}

/// A share cannot exceed 1, so it cannot be a multiple of another large share. It is enough if the
/// other hosts' shares are below the minimum.
fn stands_out(cause: &Cause, own: f64, most: f64) -> bool {
    own >= most * TIMES_MIN || cause.least == 0.9 && most < cause.least
}

fn largest(others: &[&Bundle], of: impl Fn(&Bundle) -> Option<f64>) -> Option<f64> {
    others.iter().filter_map(|other| of(other)).reduce(f64::max)
}

/// Returns the network path as the cause. This cause is used only if no value of the host is
/// unusual. The additional time of its I/Os was then probably spent on the network.
fn network_cause(slow: &Bundle, others: &[&Bundle]) -> Option<String> {
    let latency_ns =
        |bundle: &Bundle| totals(bundle, Pick::Transactional).mean_ns().map(|n| n as f64);
    let (own, most) = (latency_ns(slow)?, largest(others, latency_ns)?);
    (wire::crosses_network(slow) && own >= most * TIMES_MIN).then(|| {
        format!(
            "its I/Os took {}, but at most {} on the other hosts, and no counter of the host \
             explains this: check its link to the storage{}",
            ms(own),
            ms(most),
            link::says(slow).map_or(String::new(), |says| format!(" ({says})"))
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use plimsoll_evidence::observed::Limits;

    use super::*;
    use crate::rules::fixtures::{self, SECOND_NS, SECONDS};

    /// Changes the evidence of one host, and returns the causes in comparison with an unchanged
    /// host.
    fn found(change: impl Fn(&mut Bundle)) -> Vec<String> {
        let mut other = fixtures::reads();
        other.observed.pressure.memory_some_share = Some(0.0);
        other.observed.limits = Some(Limits { groups_read: true, ..Limits::default() });
        other.observed.cpu.throttled_ns = Some(0);
        other.observed.cpu.frequency_hz_min = Some(3_000_000_000);
        other.observed.device_errors = Some(BTreeMap::new());
        other.observed.neighbours.storage_read_bytes = Some(0);
        other.observed.neighbours.storage_written_bytes = Some(0);
        other.observed.devices[0].read_ns = other.observed.devices[0].reads * 100_000;
        let mut slow = other.clone();
        change(&mut slow);
        causes(&slow, &[&other, &other], true)
    }

    #[test]
    fn alike_hosts_have_no_cause() {
        assert_eq!(found(|_| ()), Vec::<String>::new());
    }

    #[test]
    fn each_cause_is_named_alone() {
        type Change = fn(&mut Bundle);
        let cases: [(&str, Change); 10] = [
            ("limits block I/O (8:0 reads-per-s 100)", |b| {
                let io = vec!["8:0 reads-per-s 100".to_owned()];
                b.observed.limits = Some(Limits { groups_read: true, io, ..Limits::default() });
            }),
            ("quota", |b| b.observed.cpu.throttled_ns = Some(SECONDS * SECOND_NS / 4)),
            ("hypervisor", |b| b.observed.cpu.steal_avg = Some(0.2)),
            ("CPUs were busy", |b| b.observed.cpu.busy_avg = Some(0.97)),
            ("busiest load thread", |b| b.observed.generator.busiest_thread_share = Some(0.99)),
            ("memory", |b| b.observed.pressure.memory_some_share = Some(0.3)),
            ("I/O errors", |b| b.observed.device_errors = Some([("sda".into(), 3)].into())),
            ("other programs", |b| b.observed.neighbours.storage_read_bytes = Some(60 << 30)),
            ("its device took more time", |b| b.observed.devices[0].read_ns *= 2),
            ("fell to 2.00 GHz", |b| b.observed.cpu.frequency_hz_min = Some(2_000_000_000)),
        ];
        for (word, change) in cases {
            let found = found(change);
            assert_eq!(found.len(), 1, "{word}: {found:?}");
            assert!(found[0].contains(word), "{word}: {found:?}");
        }
    }

    #[test]
    fn what_all_hosts_share_or_is_not_known_is_no_cause() {
        let mut slow = fixtures::reads();
        slow.observed.cpu.steal_avg = Some(0.2);
        assert!(causes(&slow, &[&slow.clone()], true).is_empty());
        let mut blind = fixtures::reads();
        blind.observed.cpu.steal_avg = None;
        assert!(causes(&slow, &[&blind], true).is_empty(), "unknown is not zero");
        let io = vec!["8:0 reads-per-s 100".to_owned()];
        let limited = Limits { groups_read: true, io, ..Limits::default() };
        let mut limited_host = fixtures::reads();
        limited_host.observed.limits = Some(limited);
        assert!(causes(&limited_host, &[&limited_host.clone()], true).is_empty());
        let mut unread = fixtures::reads();
        unread.observed.limits = Some(Limits::default());
        assert!(causes(&limited_host, &[&unread], true).is_empty(), "unknown is not unlimited");
        let mut calm = fixtures::reads();
        calm.observed.neighbours.storage_read_bytes = Some(0);
        calm.observed.neighbours.storage_written_bytes = Some(0);
        let mut beside = calm.clone();
        beside.observed.neighbours.storage_read_bytes = Some(60 << 30);
        assert_eq!(causes(&beside, &[&calm], true).len(), 1);
        assert!(causes(&beside, &[&calm], false).is_empty(), "the other agent of its machine");
    }

    #[test]
    fn over_a_network_calls_sent_again_or_else_the_link_are_named() {
        let far = |retransmissions, times| {
            let mut bundle = fixtures::reads();
            bundle.environment.mounts[0].file_system = Some("nfs4".into());
            bundle.observed.devices.clear();
            bundle.observed.network_mounts =
                vec![NetworkMount { retransmissions, ..NetworkMount::default() }];
            bundle.run.classes[0].latency_ns_sum *= times;
            bundle
        };
        let (well, lossy, slow) = (far(0, 1), far(600, 5), far(0, 5));
        let of_lossy = causes(&lossy, &[&well], true);
        assert_eq!(of_lossy.len(), 1, "{of_lossy:?}");
        assert!(of_lossy[0].contains("sent calls again: 10.0/s"), "{of_lossy:?}");
        let of_slow = causes(&slow, &[&well], true);
        assert!(of_slow[0].contains("check its link"), "{of_slow:?}");
        assert!(causes(&fixtures::reads(), &[&well], true).is_empty(), "not over a network");
    }

    #[test]
    fn a_link_is_a_cause_where_the_storage_is_behind_it() {
        use plimsoll_evidence::environment::Transport;
        use plimsoll_evidence::observed::{Links, Tcp};
        let with = |sent_again_segments| {
            let mut bundle = fixtures::reads();
            let tcp = Tcp { sent_segments: 1_000_000, sent_again_segments, ..Tcp::default() };
            let to_ns = SECONDS * SECOND_NS;
            bundle.observed.links = Some(Links { to_ns, tcp: Some(tcp), ..Links::default() });
            bundle
        };
        let (mut lossy, well) = (with(50_000), with(0));
        assert!(causes(&lossy, &[&well], true).is_empty(), "its disk is its own");
        lossy.environment.devices[0].transport = Some(Transport::NvmeTcp);
        assert!(causes(&lossy, &[&well], true)[0].contains("TCP segments: 50000 of 1000000"));
        lossy.environment.devices.clear();
        lossy.environment.mounts[0].file_system = Some("nfs4".into());
        assert!(causes(&lossy, &[&well], true)[0].contains("TCP segments: 50000 of 1000000"));
    }
}
