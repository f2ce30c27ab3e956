//! Network interfaces and TCP in the network namespace of the process.

use serde::{Deserialize, Serialize};

/// Counters of interfaces and TCP over the measured phase. They include all programs in the
/// namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// Network namespace, such as `net:[4026531840]`. On one machine, all processes in the same
    /// namespace use the same interfaces.
    pub namespace: Option<String>,
    /// Time of the first reading, relative to the start of the run. It is shortly after the start
    /// of the phase.
    pub from_ns: u64,
    /// Time of the last reading, shortly after the end of the phase. The counters thus include I/O
    /// that was in flight at the end of the phase.
    pub to_ns: u64,
    /// Interfaces by name. Virtual interfaces without traffic are omitted.
    pub interfaces: Vec<Interface>,
    /// TCP counters over all interfaces; `None` if they were not readable.
    pub tcp: Option<Tcp>,
}

/// Network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// True for the loopback interface, whose traffic never leaves the host.
    pub loopback: bool,
    /// True if the interface belongs to a physical device or to a device of the hypervisor; `None`
    /// if `/sys` shows a different namespace.
    pub hardware: Option<bool>,
    /// Underlying interfaces in this namespace (slaves of a bond, ports of a bridge, parent of a
    /// VLAN). The same bytes are also counted at these interfaces. `None` if `/sys` shows a
    /// different namespace.
    pub below: Option<Vec<String>>,
    /// Speed of each direction at the end of the phase; `None` if the kernel does not report it,
    /// which is usual for virtual interfaces.
    pub speed_bits_per_s: Option<u64>,
    /// `full` or `half`; `None` if the kernel does not report it.
    pub duplex: Option<String>,
    /// Number of link state changes; `None` if the kernel does not count them.
    pub carrier_changes: Option<u64>,
    /// Increase of the counters during the phase; `None` if the interface appeared, vanished or was
    /// reset in this time.
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
    /// Received packets with errors.
    pub received_errors: u64,
    /// Received packets that were dropped because there was no space or no receiver.
    pub received_drops: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Send errors.
    pub sent_errors: u64,
    /// Packets that were dropped before they were sent, because there was no space.
    pub sent_drops: u64,
}

/// TCP segments (`/proc/net/snmp`; RFC 4022).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Segments received.
    pub received_segments: u64,
    /// Segments sent, including retransmissions.
    pub sent_segments: u64,
    /// Retransmitted segments.
    pub sent_again_segments: u64,
    /// Number of segments that arrived before an earlier segment, which was lost or is late
    /// (`TCPOFOQueue` in `/proc/net/netstat`). `None` if the kernel does not count them.
    pub early_segments: Option<u64>,
}
