//! What all hosts read and wrote, held against what their network mounts moved, each mount of a machine counted once.
//!
//! Agents of one machine that share a mount see each other's bytes in its counters: each seems to have moved what it
//! asked for, where one's bytes stood in for another's. The sum shows it.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::fleet::Fleet;
use plimsoll_evidence::observed::NetworkMount;

use super::NETWORK;
use crate::finding::{Finding, Outcome};
use crate::rules::balance::SHARE_MIN;
use crate::rules::seen;

/// Below this nothing is said: metadata and read-ahead are of this size.
const ASKED_MIN: u64 = 8 << 20;

/// `None` where no host reaches its target through a mount that counts what goes over the wire.
pub(super) fn check(fleet: &Fleet, bundles: &BTreeMap<String, &Bundle>) -> Option<Finding> {
    let seen_mounts = |bundle: &&Bundle| !bundle.observed.network_mounts.is_empty();
    if !bundles.values().any(seen_mounts) {
        return None;
    }
    let unseen: Vec<&str> = fleet
        .hosts
        .iter()
        .filter(|host| !bundles.get(&host.name).is_some_and(seen_mounts))
        .map(|host| host.name.as_str())
        .collect();
    if !unseen.is_empty() {
        let says = format!(
            "what went over the network is not known of {}, and so not of all hosts",
            unseen.join(", ")
        );
        return Some(
            Finding::new(NETWORK, Outcome::Warn, says)
                .advise("have each host reach the target through a mount of its kernel"),
        );
    }
    let asked = |of: fn(&Bundle) -> u64| bundles.values().map(|bundle| of(bundle)).sum::<u64>();
    let (read, written) = (asked(seen::read_bytes), asked(seen::written_bytes));
    let wire_read = wire(fleet, bundles, |mount| mount.server_read_bytes);
    let wire_written = wire(fleet, bundles, |mount| mount.server_written_bytes);
    let is_short =
        |asked: u64, wire: u64| asked >= ASKED_MIN && (wire as f64) < asked as f64 * SHARE_MIN;
    let sides = [("read", read, wire_read), ("written", written, wire_written)];
    let short: Vec<String> = sides
        .iter()
        .filter(|(_, asked, wire)| is_short(*asked, *wire))
        .map(|(word, asked, wire)| {
            let (asked, wire) = (seen::size(*asked), seen::size(*wire));
            format!("of {asked} {word} by all hosts, {wire} went over the network")
        })
        .collect();
    let finding = match short.is_empty() {
        true => Finding::new(NETWORK, Outcome::Pass, "what all hosts asked went over the network"),
        false => {
            let says = format!("{}: the hosts' caches answered the rest", short.join("; "));
            Finding::new(NETWORK, Outcome::Warn, says)
                .advise("use direct I/O, or data much larger than the hosts' memory")
        }
    };
    let numbers = finding.with("read_asked_bytes", read).with("read_network_bytes", wire_read);
    Some(numbers.with("written_asked_bytes", written).with("written_network_bytes", wire_written))
}

/// What the mounts moved. Of a mount that several agents of one machine have, the largest count is taken: it holds what
/// the others saw of it too, but for the time that they measured apart.
fn wire(fleet: &Fleet, bundles: &BTreeMap<String, &Bundle>, of: fn(&NetworkMount) -> u64) -> u64 {
    let mut mounts: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for host in &fleet.hosts {
        let Some(bundle) = bundles.get(&host.name) else { continue };
        // Without the boot's identity each host counts as a machine of its own.
        let machine = if host.boot_id.is_empty() { &host.name } else { &host.boot_id };
        for mount in &bundle.observed.network_mounts {
            let key = (machine.as_str(), mount.mount_point.as_str(), mount.source.as_str());
            let most = mounts.entry(key).or_default();
            *most = (*most).max(of(mount));
        }
    }
    mounts.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}
