//! Compares the hosts' reads and writes with the network traffic. If the kernel is the network
//! client, the network mounts count the traffic. If Plimsoll is the client, the interfaces count
//! it. If several agents on one machine share a counter, it is included only once.
//!
//! If agents on one machine share a mount or an interface, its counters include the bytes of all
//! these agents. Each agent then seems to have transferred its own bytes over the network, even if
//! this traffic belongs to another agent. The sum over all agents reveals this.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::{Fleet, Host};
use plimsoll_evidence::observed::IoBytes;

use super::NETWORK;
use crate::finding::{Finding, Outcome};
use crate::rules::balance::{SHARE_MIN, wire};
use crate::rules::evidence;

/// Minimum number of bytes for the comparison. Metadata and read-ahead alone can reach this number.
const REQUESTED_MIN: u64 = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrafficSource {
    Mounts,
    Interfaces,
}

fn traffic_source(bundle: &Bundle) -> Option<TrafficSource> {
    match bundle.observed.network_mounts.is_empty() {
        false => Some(TrafficSource::Mounts),
        true if wire::uses_own_client(bundle) && wire::interface_bytes(bundle).is_some() => {
            Some(TrafficSource::Interfaces)
        }
        true => None,
    }
}

/// Traffic of all hosts in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct DirectionTraffic {
    requested: u64,
    /// Minimum number of the requested bytes that the network counters must show.
    least: u64,
    /// Bytes that the hosts sent or received over the network.
    wire: u64,
}

/// Compares the bytes. `None` if no host reaches its target through a mount or interface with such
/// counters.
pub(super) fn check(fleet: &Fleet, bundles: &BTreeMap<String, &Bundle>) -> Option<Finding> {
    let source_of = |host: &Host| traffic_source(bundles.get(&host.name)?);
    let sources: Vec<TrafficSource> = fleet.counted().filter_map(source_of).collect();
    if sources.is_empty() {
        return None;
    }
    let unseen = fleet.counted().filter(|host| source_of(host).is_none());
    let unseen: Vec<&str> = unseen.map(|host| host.name.as_str()).collect();
    if !unseen.is_empty() {
        let says = format!(
            "the network traffic of {} is unknown, so the total of all hosts is unknown too",
            unseen.join(", ")
        );
        return Some(Finding::new(NETWORK, Outcome::Warn, says).advise(
            "on each host, access the target through a kernel mount, or through Plimsoll's own \
             clients and interfaces that do not change during the run",
        ));
    }
    let moved = network_bytes(fleet, bundles);
    let sides = [
        ("read", side(bundles, true, moved.read_bytes)),
        ("written", side(bundles, false, moved.written_bytes)),
    ];
    let short =
        sides.iter().filter(|(_, side)| side.requested >= REQUESTED_MIN && side.wire < side.least);
    let short: Vec<String> = short
        .map(|(word, side)| {
            let (requested, wire) = (evidence::size(side.requested), evidence::size(side.wire));
            format!("of {requested} {word} by all hosts, only {wire} crossed the network")
        })
        .collect();
    let by_interfaces = sources.contains(&TrafficSource::Interfaces);
    let finding = match (short.is_empty(), by_interfaces) {
        (true, _) => Finding::new(
            NETWORK,
            Outcome::Pass,
            "the bytes that all hosts requested crossed the network",
        ),
        (false, false) => {
            let says = format!("{}: the hosts' caches served the other bytes", short.join("; "));
            Finding::new(NETWORK, Outcome::Warn, says)
                .advise("use direct I/O, or data much larger than the hosts' memory")
        }
        (false, true) => {
            let says =
                format!("{}: it is unknown how the other bytes were transferred", short.join("; "));
            Finding::new(NETWORK, Outcome::Warn, says).advise(
                "let the hosts use their kernels' network connections, without a library that \
                 bypasses the kernel",
            )
        }
    };
    Some(sides.iter().fold(finding, |finding, (word, side)| {
        let finding = finding.with(&format!("{word}_asked_bytes"), side.requested);
        finding.with(&format!("{word}_network_bytes"), side.wire)
    }))
}

fn side(bundles: &BTreeMap<String, &Bundle>, is_read: bool, wire: u64) -> DirectionTraffic {
    let mut side = DirectionTraffic { wire, ..DirectionTraffic::default() };
    for bundle in bundles.values() {
        let requested =
            if is_read { evidence::read_bytes(bundle) } else { evidence::written_bytes(bundle) };
        let least = match traffic_source(bundle) {
            Some(TrafficSource::Interfaces) => wire::bytes_min(bundle, is_read).unwrap_or(0),
            _ => (requested as f64 * SHARE_MIN) as u64,
        };
        side.requested = side.requested.saturating_add(requested);
        side.least = side.least.saturating_add(least);
    }
    side
}

/// Returns the traffic of the mounts and interfaces. If several agents on one machine share a mount
/// or an interface, the largest of their counts is used. This count includes the bytes of the other
/// agents, except for bytes at times when only one agent measured.
fn network_bytes(fleet: &Fleet, bundles: &BTreeMap<String, &Bundle>) -> IoBytes {
    let mut all: BTreeMap<(&str, &str, &str), IoBytes> = BTreeMap::new();
    let mut note = |key, moved: IoBytes| {
        let most = all.entry(key).or_default();
        most.read_bytes = most.read_bytes.max(moved.read_bytes);
        most.written_bytes = most.written_bytes.max(moved.written_bytes);
    };
    for host in &fleet.hosts {
        let Some(bundle) = bundles.get(&host.name) else { continue };
        // Without a boot ID, each host counts as a separate machine.
        let machine = if host.boot_id.is_empty() { &host.name } else { &host.boot_id };
        for mount in &bundle.observed.network_mounts {
            let moved = IoBytes {
                read_bytes: mount.server_read_bytes,
                written_bytes: mount.server_written_bytes,
            };
            note((machine.as_str(), mount.mount_point.as_str(), mount.source.as_str()), moved);
        }
        if traffic_source(bundle) == Some(TrafficSource::Interfaces)
            && let Some(moved) = wire::interface_bytes(bundle)
        {
            // Agents in separate network namespaces have separate interfaces.
            let namespace = bundle.observed.links.as_ref().and_then(|l| l.namespace.as_deref());
            let key = match namespace {
                Some(namespace) => (machine.as_str(), namespace, ""),
                None => (host.name.as_str(), "", ""),
            };
            note(key, moved);
        }
    }
    all.values().fold(IoBytes::default(), |sum, moved| sum.plus(*moved))
}
