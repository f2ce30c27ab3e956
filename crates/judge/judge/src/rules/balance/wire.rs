//! Compares the bytes that this process's own clients (NFS, S3) report with the bytes that network
//! interfaces counted.
//!
//! Interfaces count the bytes of all programs in the namespace, with headers and retransmissions. A
//! high count therefore does not prove that the load's bytes crossed the interfaces. A low count
//! does not prove the opposite either, because a library may bypass the kernel and its counters
//! (RDMA, user-space TCP). If the count is low, the outcome is unknown.
//!
//! An interface is included only if it has no underlying interface in the namespace, because a
//! bridge, a bond or a VLAN counts the same bytes again. If the topmost interfaces have a higher
//! count (for example a synthetic interface over a virtual function), their count is used. If the
//! stacking is unknown, all interfaces are included. The sum may then be too high, but it never
//! causes a finding against the target.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::Device;
use plimsoll_evidence::observed::{Interface, IoBytes, LinkCounters, Links};
use plimsoll_evidence::run::{ClassTotals, Driver};

use super::{MEASURED_NS_MIN, REQUESTED_MIN, SHARE_MIN};
use crate::figures::measured;
use crate::links::{highest_interfaces, lowest_interfaces};
use crate::location::{self, Location};
use crate::rules::evidence;

/// Maximum age of a hardware counter. Network cards copy counters to memory once a second
/// (`stats-block-usecs` of ethtool(8)). Sampling adds another second.
const OLD_NS_MAX: u64 = 2_000_000_000;
/// Minimum share of the load's bytes that counts as most of them.
const MOST: f64 = 0.5;

/// Returns true if a real load used its own network client to access the target.
pub(crate) fn uses_own_client(bundle: &Bundle) -> bool {
    bundle.run.driver == Driver::Real && evidence::is_remote_target(bundle)
}

/// Returns true if the host's link to its storage may limit the load. This applies to network file
/// systems, network protocols and network disks. It also applies to Plimsoll's own clients, if
/// their bytes crossed the host's interfaces.
pub(crate) fn crosses_network(bundle: &Bundle) -> bool {
    let environment = &bundle.environment;
    let is_far = |device: &Device| location::locate(device, environment) == Location::Network;
    let is_remote = evidence::is_remote(bundle) || leaves_host(bundle);
    is_remote || environment.devices.iter().any(is_far)
}

/// Returns an upper bound of the bytes that crossed network interfaces during the measurement.
/// `None` if unknown.
pub(crate) fn interface_bytes(bundle: &Bundle) -> Option<IoBytes> {
    let servers = &bundle.observed.servers;
    let is_far = !servers.is_empty()
        && servers.iter().all(|server| server.local == Some(false) && !server.relays);
    sum_interfaces(bundle.observed.links.as_ref()?, !is_far)
}

/// Returns true if interfaces other than the loopback transferred most of the load's bytes.
pub(crate) fn leaves_host(bundle: &Bundle) -> bool {
    let outward = bundle.observed.links.as_ref().and_then(|links| sum_interfaces(links, false));
    let Some(outward) = outward.filter(|_| uses_own_client(bundle)) else { return false };
    let requested = completed_bytes(bundle, true).saturating_add(completed_bytes(bundle, false));
    let moved = outward.read_bytes.saturating_add(outward.written_bytes);
    requested >= REQUESTED_MIN && moved as f64 > requested as f64 * MOST
}

/// Returns the bytes of all operations in one direction that completed within the measured phase.
fn completed_bytes(bundle: &Bundle, is_read: bool) -> u64 {
    let classes = bundle.run.classes.iter().filter(|class| class.is_read == is_read);
    classes.map(ClassTotals::bytes_within).fold(0, u64::saturating_add)
}

/// Returns the number of bytes that crossed a namespace's interfaces, with or without the loopback.
fn sum_interfaces(links: &Links, with_loopback: bool) -> Option<IoBytes> {
    let outward = sum(lowest_interfaces(links))?;
    let highest = sum(highest_interfaces(links))?;
    let outward = IoBytes {
        read_bytes: outward.read_bytes.max(highest.read_bytes),
        written_bytes: outward.written_bytes.max(highest.written_bytes),
    };
    let loopback = links.interfaces.iter().filter(|one| one.loopback && with_loopback);
    Some(outward.plus(sum(loopback)?))
}

fn sum<'a>(interfaces: impl Iterator<Item = &'a Interface>) -> Option<IoBytes> {
    interfaces
        .map(|one| one.counters.as_ref().map(moved))
        .try_fold(IoBytes::default(), |all, one| Some(all.plus(one?)))
}

fn moved(counters: &LinkCounters) -> IoBytes {
    IoBytes { read_bytes: counters.received_bytes, written_bytes: counters.sent_bytes }
}

/// Returns the minimum number of bytes that the interfaces must have counted in one direction. This
/// number is lower than the measured bytes for three reasons: I/O may have started before the
/// counters were read, bytes after the end of the phase are excluded, and a card's counters may be
/// old. `None` if no bytes remain after these deductions.
pub(crate) fn bytes_min(bundle: &Bundle, is_read: bool) -> Option<u64> {
    let (phase, links) = (measured(bundle)?, bundle.observed.links.as_ref()?);
    let classes = bundle.run.classes.iter().filter(|class| class.is_read == is_read);
    let longest_ns = classes.map(|class| class.service_ns_max.max(class.latency_ns_max)).max()?;
    let late_ns = links.from_ns.saturating_sub(phase.start_ns);
    let is_virtual = links.interfaces.iter().all(|one| one.hardware == Some(false));
    let old_ns = if is_virtual { 0 } else { OLD_NS_MAX };
    let missed_ns = longest_ns.saturating_add(late_ns).saturating_add(old_ns);
    let share = SHARE_MIN - missed_ns as f64 / phase.duration_ns.max(1) as f64;
    let bytes = completed_bytes(bundle, is_read);
    let is_enough = bytes >= REQUESTED_MIN && phase.duration_ns >= MEASURED_NS_MIN;
    (is_enough && share > 0.0).then_some((bytes as f64 * share) as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn one(name: &str, below: &[&str], received_bytes: u64) -> Interface {
        Interface {
            name: name.into(),
            loopback: name == "lo",
            hardware: Some(true),
            below: Some(below.iter().map(|&name| name.to_owned()).collect()),
            counters: Some(LinkCounters { received_bytes, ..LinkCounters::default() }),
            ..Interface::default()
        }
    }

    fn received(interfaces: Vec<Interface>, with_loopback: bool) -> Option<u64> {
        let links = Links { interfaces, ..Links::default() };
        sum_interfaces(&links, with_loopback).map(|moved| moved.read_bytes)
    }

    #[test]
    fn bytes_that_pass_several_interfaces_count_once() {
        let bond =
            vec![one("bond0", &["eth0", "eth1"], 30), one("eth0", &[], 10), one("eth1", &[], 20)];
        assert_eq!(received(bond, false), Some(30));
        let vlans =
            vec![one("eth0", &[], 30), one("eth0.5", &["eth0"], 10), one("eth0.6", &["eth0"], 12)];
        assert_eq!(received(vlans, false), Some(30));
        let bridge =
            vec![one("br0", &["eth0", "veth1"], 50), one("eth0", &[], 50), one("veth1", &[], 0)];
        assert_eq!(received(bridge, false), Some(50));
        let nested =
            vec![one("br0", &["bond0"], 7), one("bond0", &["eth0"], 7), one("eth0", &[], 7)];
        assert_eq!(received(nested, false), Some(7));
    }

    #[test]
    fn a_synthetic_interface_counts_what_its_function_does_not() {
        let azure = vec![one("eth0", &["enP1"], 90), one("enP1", &[], 60)];
        assert_eq!(received(azure, false), Some(90));
    }

    #[test]
    fn the_loopback_counts_where_it_is_asked_for() {
        let both = || vec![one("lo", &[], 5), one("eth0", &[], 10)];
        assert_eq!((received(both(), false), received(both(), true)), (Some(10), Some(15)));
    }

    #[test]
    fn what_is_not_counted_is_unknown_and_what_lies_on_what_is_no_matter() {
        let lost = Interface { counters: None, ..one("eth1", &[], 0) };
        assert_eq!(received(vec![one("eth0", &[], 10), lost.clone()], false), None);
        let beneath = Interface { counters: None, ..one("lo", &[], 0) };
        assert_eq!(received(vec![one("eth0", &[], 10), beneath], false), Some(10));
        let blind = |name, bytes| Interface { below: None, ..one(name, &[], bytes) };
        assert_eq!(received(vec![blind("br0", 10), blind("eth0", 10)], false), Some(20));
        // The bytes of a container with its own interface also crossed eth0, but their number is
        // unknown.
        assert_eq!(
            received(vec![one("br0", &["eth0", "eth1"], 9), one("eth0", &[], 9), lost], false),
            None
        );
    }
}
