//! Detects a network link that is the bottleneck of one host, by comparing its speed, utilisation
//! and losses with those of the other hosts.
//!
//! We chose the thresholds for the following reason. A loss of 0.1 % slows TCP down: according to
//! the formula of Mathis et al. (The macroscopic behavior of the TCP congestion avoidance
//! algorithm, 1997), a connection with segments of 1,460 bytes and a round trip of 1 ms then
//! transfers at most 56 MB/s.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Interface, LinkCounters, Links, Tcp};

use super::TIMES_MIN;
use crate::links::{self, FULL_SHARE, Speed, active_interfaces, bytes, rate, seconds};
use crate::rules::evidence;

/// Minimum utilisation at which a slower link counts as a cause. At a lower utilisation, the link
/// adds less than a tenth to an I/O's time and reduces the rate by less than a tenth.
const SLOWED_SHARE_MIN: f64 = 0.1;
/// Minimum share of lost packets or segments. There must also be at least one loss per second.
/// Rarer losses are ignored.
const LOST_SHARE_MIN: f64 = 0.001;
const LOST_PER_S_MIN: f64 = 1.0;
/// After one lost segment, the later segments of its window are out of order, often several tens of
/// segments.
const EARLY_SHARE_MIN: f64 = 0.01;

/// Kind of loss on the network.
struct Loss {
    says: &'static str,
    least: f64,
    /// Number of losses, and total number of packets or segments.
    of: fn(&Bundle) -> Option<(u64, u64)>,
}

const LOSSES: [Loss; 4] = [
    Loss {
        says: "its network interfaces counted damaged packets:",
        least: LOST_SHARE_MIN,
        of: |bundle| packets(bundle, |c| c.received_errors.saturating_add(c.sent_errors)),
    },
    Loss {
        says: "its network interfaces dropped packets:",
        least: LOST_SHARE_MIN,
        of: |bundle| packets(bundle, |c| c.received_drops.saturating_add(c.sent_drops)),
    },
    Loss {
        says: "it retransmitted TCP segments:",
        least: LOST_SHARE_MIN,
        of: |bundle| tcp(bundle).map(|tcp| (tcp.sent_again_segments, tcp.sent_segments)),
    },
    Loss {
        says: "it received TCP segments out of order, so earlier segments were lost or delayed:",
        least: EARLY_SHARE_MIN,
        of: |bundle| tcp(bundle).and_then(|tcp| Some((tcp.early_segments?, tcp.received_segments))),
    },
];

/// Returns possible causes on the slow host's link that do not exist on the other hosts.
pub(super) fn causes(slow: &Bundle, others: &[&Bundle]) -> Vec<String> {
    let found = LOSSES.iter().filter_map(|loss| describe_loss(loss, slow, others));
    speed(slow, others)
        .into_iter()
        .chain(duplex(slow, others))
        .chain(flaps(slow, others))
        .chain(found)
        .collect()
}

/// Describes the traffic of the busiest interface: `eth0 received 11.2 MiB/s and sent 20 KiB/s`.
pub(super) fn says(bundle: &Bundle) -> Option<String> {
    let links = observed(bundle)?;
    let (one, counters) =
        active_interfaces(links).into_iter().max_by_key(|(_, counters)| bytes(counters))?;
    let rate = |bytes: u64| evidence::size((bytes as f64 / seconds(links)) as u64);
    Some(format!(
        "{} received {}/s and sent {}/s",
        one.name,
        rate(counters.received_bytes),
        rate(counters.sent_bytes)
    ))
}

fn observed(bundle: &Bundle) -> Option<&Links> {
    bundle.observed.links.as_ref()
}

fn tcp(bundle: &Bundle) -> Option<&Tcp> {
    observed(bundle)?.tcp.as_ref()
}

fn packets(bundle: &Bundle, of: fn(&LinkCounters) -> u64) -> Option<(u64, u64)> {
    let used = active_interfaces(observed(bundle)?);
    let sum = |of: &dyn Fn(&LinkCounters) -> u64| -> u64 {
        used.iter().map(|(_, counters)| of(counters)).fold(0, u64::saturating_add)
    };
    let all = sum(&|c| c.received_packets.saturating_add(c.sent_packets));
    (!used.is_empty()).then(|| (sum(&of), all))
}

fn describe_loss(loss: &Loss, slow: &Bundle, others: &[&Bundle]) -> Option<String> {
    let share = |(lost, all): (u64, u64)| (all > 0).then(|| lost as f64 / all as f64);
    let (lost, all) = (loss.of)(slow)?;
    let own = share((lost, all))?;
    let most = others.iter().filter_map(|other| share((loss.of)(other)?)).reduce(f64::max)?;
    let per_s = lost as f64 / seconds(observed(slow)?);
    let stands_out = own >= loss.least && per_s >= LOST_PER_S_MIN && own >= most * TIMES_MIN;
    stands_out.then(|| {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        format!(
            "{} {lost} of {all} ({}), but at most {} on the other hosts",
            loss.says,
            percent(own),
            percent(most)
        )
    })
}

fn speed(slow: &Bundle, others: &[&Bundle]) -> Option<String> {
    let Speed { bits_per_s: own, used_share: share } = links::speed(slow)?;
    let known: Vec<Speed> = others.iter().filter_map(|other| links::speed(other)).collect();
    let least = known.iter().map(|speed| speed.bits_per_s).min()?;
    let most = known.iter().map(|speed| speed.used_share).fold(0.0, f64::max);
    let (names, used) = (links::names(observed(slow)?), evidence::percent(share));
    if own as f64 * TIMES_MIN <= least as f64 && share >= SLOWED_SHARE_MIN {
        return Some(format!(
            "its link ({names}) has a speed of {} and was used to {used} of it, while the links \
             of the other hosts have at least {}",
            rate(own),
            rate(least)
        ));
    }
    (share >= FULL_SHARE && most < FULL_SHARE).then(|| {
        let (own, most) = (rate(own), evidence::percent(most));
        format!(
            "its link ({names}, {own}) was used to {used} of its speed, but the links of the \
             other hosts at most to {most}"
        )
    })
}

fn duplex(slow: &Bundle, others: &[&Bundle]) -> Option<String> {
    let half = |bundle: &Bundle| {
        let known: Vec<(&str, &str)> = active_interfaces(observed(bundle)?)
            .iter()
            .filter_map(|(one, _)| Some((one.name.as_str(), one.duplex.as_deref()?)))
            .collect();
        let half = known.iter().find(|(_, duplex)| *duplex == "half");
        (!known.is_empty()).then(|| half.map(|(name, _)| (*name).to_owned()))
    };
    let name = half(slow)??;
    let others: Vec<Option<String>> = others.iter().filter_map(|other| half(other)).collect();
    let is_alone = !others.is_empty() && others.iter().all(Option::is_none);
    is_alone.then(|| {
        format!(
            "its link ({name}) uses half duplex, while the other hosts use full \
        duplex"
        )
    })
}

fn flaps(slow: &Bundle, others: &[&Bundle]) -> Option<String> {
    let changes = |bundle: &Bundle| {
        let used = active_interfaces(observed(bundle)?);
        let of = |(one, _): &(&Interface, &LinkCounters)| one.carrier_changes;
        used.iter().map(of).collect::<Option<Vec<u64>>>().map(|all| all.iter().sum::<u64>())
    };
    let own = changes(slow)?;
    let most = others.iter().filter_map(|other| changes(other)).max()?;
    (own > 0 && most == 0).then(|| {
        format!(
            "its link went down or came up {own} times, but the links of the other \
         hosts never did"
        )
    })
}

#[cfg(test)]
mod tests;
