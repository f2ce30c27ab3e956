//! Network interfaces that a host used for its traffic, with their speeds and utilisation.
//!
//! Only the speeds of hardware are trusted: virtual interfaces (veth, tap) report a fixed number.

use std::collections::BTreeSet;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Interface, LinkCounters, Links};

use crate::figures::NS_PER_S;

/// An interface counts as used if it transferred at least this share of the traffic of all
/// interfaces of its kind.
const USED_SHARE_MIN: f64 = 0.1;
/// Minimum utilisation at which a link counts as full (`generator-limit` has the same threshold for
/// CPUs).
pub(crate) const FULL_SHARE: f64 = 0.9;
/// If the utilisation is higher than this limit, the kernel reports a wrong link speed.
const NOMINAL_SHARE: f64 = 1.1;

/// Minimum observation time for a link's utilisation, in seconds. Network cards update their
/// counters once a second.
const SECONDS_MIN: f64 = 10.0;

/// Returns the interfaces that have no underlying interface in the namespace, such as hardware
/// interfaces.
pub(crate) fn lowest_interfaces(links: &Links) -> impl Iterator<Item = &Interface> {
    let lies_on_none = |one: &&Interface| one.below.as_ref().is_none_or(Vec::is_empty);
    links.interfaces.iter().filter(|one| !one.loopback).filter(lies_on_none)
}

/// Returns the interfaces on which no other interface of the namespace is built.
pub(crate) fn highest_interfaces(links: &Links) -> impl Iterator<Item = &Interface> {
    let below: BTreeSet<&String> =
        links.interfaces.iter().filter_map(|one| one.below.as_ref()).flatten().collect();
    links.interfaces.iter().filter(move |one| !one.loopback && !below.contains(&one.name))
}

/// Returns the interfaces that the host used for its traffic. These are hardware interfaces, or
/// virtual interfaces if no hardware is visible.
pub(crate) fn active_interfaces(links: &Links) -> Vec<(&Interface, &LinkCounters)> {
    let counted = || lowest_interfaces(links).filter_map(|one| Some((one, one.counters.as_ref()?)));
    let moved = |one: &(&Interface, &LinkCounters)| bytes(one.1) > 0;
    let is_hardware = |one: &(&Interface, &LinkCounters)| one.0.hardware == Some(true);
    let has_hardware = counted().any(|one| is_hardware(&one) && moved(&one));
    let of_kind = || counted().filter(|one| moved(one) && is_hardware(one) == has_hardware);
    let all: u64 = of_kind().map(|(_, counters)| bytes(counters)).fold(0, u64::saturating_add);
    of_kind().filter(|one| bytes(one.1) as f64 >= all as f64 * USED_SHARE_MIN).collect()
}

/// Speed and utilisation of the links that the host used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    /// Sum of the speeds of all used links, in one direction.
    pub(crate) bits_per_s: u64,
    /// Largest utilisation of a used link, in either direction.
    pub(crate) used_share: f64,
}

/// Returns the speed of the used links. `None` if the speed or the traffic of a link is unknown, if
/// the traffic exceeded the speed that the kernel reports, or if the observation was too short.
pub(crate) fn speed(bundle: &Bundle) -> Option<Speed> {
    let links = bundle.observed.links.as_ref()?;
    let is_lost = |one: &Interface| one.hardware != Some(false) && one.counters.is_none();
    if seconds(links) < SECONDS_MIN || lowest_interfaces(links).any(is_lost) {
        return None;
    }
    let (mut bits_per_s, mut used_share) = (0u64, 0.0f64);
    for (one, counters) in &active_interfaces(links) {
        let speed = one.speed_bits_per_s.filter(|_| one.hardware == Some(true))?;
        let moved = counters.received_bytes.max(counters.sent_bytes);
        used_share = used_share.max(moved as f64 * 8.0 / seconds(links) / speed as f64);
        bits_per_s = bits_per_s.saturating_add(speed);
    }
    let is_known = bits_per_s > 0 && used_share <= NOMINAL_SHARE;
    is_known.then_some(Speed { bits_per_s, used_share })
}

/// Returns the names of the links that the host used.
pub(crate) fn names(links: &Links) -> String {
    let names: Vec<&str> =
        active_interfaces(links).iter().map(|(one, _)| one.name.as_str()).collect();
    names.join(", ")
}

/// Returns the observation time of the interfaces in seconds.
pub(crate) fn seconds(links: &Links) -> f64 {
    links.to_ns.saturating_sub(links.from_ns).max(1) as f64 / NS_PER_S
}

/// Returns the number of bytes received plus the number of bytes sent.
pub(crate) fn bytes(counters: &LinkCounters) -> u64 {
    counters.received_bytes.saturating_add(counters.sent_bytes)
}

/// Formats a speed in the usual unit of links.
pub(crate) fn rate(bits_per_s: u64) -> String {
    match bits_per_s {
        b if b >= 1_000_000_000 => format!("{} Gb/s", b as f64 / 1e9),
        b => format!("{} Mb/s", b as f64 / 1e6),
    }
}
