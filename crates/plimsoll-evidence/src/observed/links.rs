//! Network interfaces and TCP of the network namespace that the process is in.

use serde::{Deserialize, Serialize};

/// Interfaces and TCP over the measured phase. They count what every program of the namespace moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// The namespace, such as `net:[4026531840]`: what processes of one machine have in common that see the same
    /// interfaces.
    pub namespace: Option<String>,
    /// When the counters were first read, from the start of the run: a moment after the phase began.
    pub from_ns: u64,
    /// When they were last read: a moment after it ended, with what was in flight then.
    pub to_ns: u64,
    /// The interfaces, by name. Virtual ones that moved nothing are left out.
    pub interfaces: Vec<Interface>,
    /// TCP, of all interfaces together; `None` where it could not be read.
    pub tcp: Option<Tcp>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Whether it is the loopback: what it counts never left this host.
    pub loopback: bool,
    /// Whether a device of the hardware or of a hypervisor is behind it; `None` where `/sys` shows another
    /// namespace.
    pub hardware: Option<bool>,
    /// Interfaces of this namespace that it hands its packets to (slaves of a bond, ports of a bridge, what a VLAN
    /// lies on): these count its bytes too. `None` where `/sys` shows another namespace.
    pub below: Option<Vec<String>>,
    /// Speed when the phase ended, each way; `None` where the kernel does not tell, as of most virtual ones.
    pub speed_bits_per_s: Option<u64>,
    /// `full` or `half`; `None` where the kernel does not tell.
    pub duplex: Option<String>,
    /// Times that the link came up or went down; `None` where the kernel does not count.
    pub carrier_changes: Option<u64>,
    /// What it counted; `None` where it came, went or was set back in the phase.
    pub counters: Option<LinkCounters>,
}

/// What an interface counted (`/proc/net/dev`), link-layer headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received; several that arrived together may count as one.
    pub received_packets: u64,
    /// Packets that arrived damaged.
    pub received_errors: u64,
    /// Packets that arrived and found no room, or that nobody took.
    pub received_drops: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that could not be sent.
    pub sent_errors: u64,
    /// Packets that were to be sent and found no room.
    pub sent_drops: u64,
}

/// Segments of TCP (`/proc/net/snmp`; RFC 4022).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// Segments received.
    pub received_segments: u64,
    /// Segments sent, those that were sent again included.
    pub sent_segments: u64,
    /// Segments sent again: those before did not arrive, or seemed not to.
    pub sent_again_segments: u64,
    /// Segments that came before one that was due (`TCPOFOQueue` of `/proc/net/netstat`): one was lost on the way
    /// here, or overtaken. `None` where the kernel does not count.
    pub early_segments: Option<u64>,
}
