//! Network interfaces and TCP in the network namespace of the process.

use serde::{Deserialize, Serialize};

/// Counters of interfaces and TCP over the measured phase. They include the traffic of all programs
/// in the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Name of the network namespace, such as `net:[4026531840]`. On one machine, all processes in
    /// the same namespace use the same interfaces.
    pub namespace: Option<String>,
    /// Time of the first reading, relative to the start of the run. The reading is made shortly
    /// after the start of the phase.
    pub from_ns: u64,
    /// Time of the last reading, relative to the start of the run. The reading is made shortly
    /// after the end of the phase, so the counters include I/O that was in flight at the end.
    pub to_ns: u64,
    /// Interfaces, sorted by name. Virtual interfaces without traffic are omitted.
    pub interfaces: Vec<Interface>,
    /// TCP counters, summed over all interfaces; `None` if they were not readable.
    pub tcp: Option<Tcp>,
}

/// Network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Name of the interface, such as `eth0`.
    pub name: String,
    /// True for the loopback interface, whose traffic never leaves the host.
    pub loopback: bool,
    /// True if the interface belongs to a physical device, or to a device that the hypervisor
    /// provides; `None` if `/sys` shows a different namespace.
    pub hardware: Option<bool>,
    /// Underlying interfaces in this namespace (slaves of a bond, ports of a bridge, parent of a
    /// VLAN). The bytes of this interface are also counted at its underlying interfaces. `None` if
    /// `/sys` shows a different namespace.
    pub below: Option<Vec<String>>,
    /// Speed in each direction at the end of the phase; `None` if the kernel does not report the
    /// speed, which is usual for virtual interfaces.
    pub speed_bits_per_s: Option<u64>,
    /// Duplex mode: `full` or `half`; `None` if the kernel does not report it.
    pub duplex: Option<String>,
    /// Number of changes of the link state; `None` if the kernel does not count them.
    pub carrier_changes: Option<u64>,
    /// Increase of the counters during the phase; `None` if the interface appeared, vanished or was
    /// reset during the phase.
    pub counters: Option<LinkCounters>,
}

/// Counters of an interface (`/proc/net/dev`). Bytes include link-layer headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Number of received packets. The kernel may count several packets that arrived together as
    /// one packet.
    pub received_packets: u64,
    /// Number of received packets that had errors.
    pub received_errors: u64,
    /// Received packets that were dropped because there was no space or no receiver.
    pub received_drops: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Send errors.
    pub sent_errors: u64,
    /// Number of packets that were dropped before they were sent, because there was no space.
    pub sent_drops: u64,
}

/// TCP segments (`/proc/net/snmp`; RFC 4022).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Segments received.
    pub received_segments: u64,
    /// Number of segments that were sent, including retransmissions.
    pub sent_segments: u64,
    /// Retransmitted segments.
    pub sent_again_segments: u64,
    /// Number of segments that arrived out of order, because an earlier segment was lost or late
    /// (`TCPOFOQueue` in `/proc/net/netstat`). `None` if the kernel does not count such segments.
    pub early_segments: Option<u64>,
}
