//! Implements the protocol without sockets and a clock. It manages the calls in flight, their
//! order, the replies and the timers.
//!
//! A [`Core`] does no I/O. The caller submits operations and calls [`Core::hand_over`] with the
//! current time, which becomes their start time. It then collects the slices of each link
//! (connection) and sends them. It copies received bytes to the link's [`Inbound`], and calls the
//! core to deliver them. [`Client`](crate::Client) does this with real sockets. The tests and the
//! fuzzer do it without sockets.

use std::collections::VecDeque;

use crate::config::Config;
use crate::credential::Credential;
use crate::error::CallError;
use crate::handle::{Handle, ObjectId, ServerId};
use crate::inbound::Inbound;
use crate::retain::{Chain, Retain};
use crate::rpc::CallTemplate;
use crate::slot::SlotTable;
use crate::stats::{DisconnectReason, Stats};

/// Number of slots in addition to those for the caller's operations. The client uses them for lost
/// writes that it sends again, and for COMMITs that free space.
const INTERNAL_SLOTS: u32 = 8;
/// Minimum of the limit for the size of records, in bytes. It applies even if all transfers are
/// small.
const RECORD_BYTES_MIN: usize = 128 * 1024;
/// Maximum size of the record of a READ reply without the data, in bytes. It is the longest header
/// (528 bytes), rounded up.
const RECORD_OVERHEAD_BYTES: usize = 1024;
/// Minimum number of outstanding operations at which the client pauses before it checks for
/// replies. With fewer operations, replies rarely arrive in batches.
const REAP_PAUSE_DEPTH: u32 = 16;
/// Maximum outstanding payload in bytes at which the client pauses. With more payload, it must
/// serve the sockets immediately, because otherwise the socket buffers limit the throughput.
const REAP_PAUSE_BYTES: u64 = 1 << 20;
/// Minimum length of a pause, in ns. A shorter pause requires more CPU time than it saves.
const REAP_PAUSE_NS_MIN: u64 = 10_000;
/// Maximum length of a pause, in ns. With 1 ms there are only 1,000 checks a second, so a longer
/// pause would hardly save more CPU time.
const REAP_PAUSE_NS_MAX: u64 = 1_000_000;

/// State of a server.
#[derive(Debug)]
pub(crate) struct Server {
    pub template: CallTemplate,
    pub links: Vec<u32>,
    pub next_link: usize,
    /// The write verifier that was last reported as new.
    pub verifier: Option<[u8; 8]>,
}

/// A registered file or directory.
#[derive(Debug)]
pub(crate) struct Object {
    pub server: ServerId,
    pub handle: Handle,
    pub chain: Chain,
    /// True while the client sends lost writes to this file again.
    pub recovering: bool,
    /// Write verifier that the server last sent for this object.
    pub verifier: Option<[u8; 8]>,
}

/// State of a connection, without the socket.
#[derive(Debug)]
pub(crate) struct Link {
    pub server: ServerId,
    /// Index of the connection among those of its server.
    pub number: u32,
    /// Queue of calls to send, as (slot, XID).
    pub queue: VecDeque<(u32, u32)>,
    /// Number of bytes that were already sent of the first call in the queue.
    pub head_sent: usize,
    /// True if the queue contains an obsolete entry, because the reply to a queued call has
    /// arrived.
    pub stale: bool,
    pub inbound: Option<Inbound>,
    /// Number of duplicate replies that may arrive because of retransmissions on this connection.
    pub strays_allowed: u32,
    /// True if the connection must be replaced.
    pub broken: Option<DisconnectReason>,
    /// True if a reply was received on the current connection.
    pub proven: bool,
    /// The READ whose payload is currently received into the arena.
    pub streaming: Option<Streaming>,
}

/// A READ reply whose head has been parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming {
    pub xid: u32,
    pub count: u32,
    pub eof: bool,
}

/// Part of a lost write that must be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resend {
    pub commit: u32,
    pub object: u32,
    pub offset_bytes: u64,
    pub size_bytes: u32,
    pub position: usize,
}

/// State machine of the protocol. The documentation of the module describes its use.
#[derive(Debug)]
pub struct Core {
    pub(crate) config: Config,
    pub(crate) slots: SlotTable,
    pub(crate) servers: Vec<Server>,
    pub(crate) objects: Vec<Object>,
    pub(crate) links: Vec<Link>,
    pub(crate) retain: Retain,
    pub(crate) stats: Stats,
    /// Submitted operations that have no start time yet and are not yet queued.
    pub(crate) fresh: Vec<u32>,
    /// Delayed calls; see [`State::Held`].
    pub(crate) held: VecDeque<u32>,
    pub(crate) resends: VecDeque<Resend>,
    /// True while a COMMIT that frees space is in flight.
    pub(crate) room_commit: bool,
    /// Error of a COMMIT that frees space. It is kept until an operation reports it.
    pub(crate) room_error: Option<CallError>,
    pub(crate) outstanding: u32,
    /// Total payload of the caller's outstanding READs and WRITEs, in bytes.
    pub(crate) outstanding_bytes: u64,
    pub(crate) sequence: u64,
    pub(crate) arena_bytes_needed: u64,
    /// Moving average of the latency of successful operations. The weight of the latest operation
    /// is about 1/64.
    pub(crate) latency_ns_mean: u64,
    /// Results in the last reply to a call for which the caller requested them.
    pub(crate) kept: Vec<u8>,
    /// Function that returns true if a call of this age in ns has timed out.
    pub(crate) is_over: Option<fn(u64) -> bool>,
}

impl Core {
    /// Creates a core without servers.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let depth_max = config.depth_max.clamp(1, 60_000);
        let retain_bytes = config.retain_bytes.max(config.size_bytes_max as usize * 2);
        Self {
            slots: SlotTable::new(depth_max + INTERNAL_SLOTS, config.xid_seed),
            retain: Retain::new(retain_bytes, retain_bytes / 4096 + depth_max as usize * 2),
            stats: Stats::new(config.histograms),
            config: Config { depth_max, ..config },
            servers: Vec::new(),
            objects: Vec::new(),
            links: Vec::new(),
            fresh: Vec::with_capacity(depth_max as usize),
            held: VecDeque::new(),
            resends: VecDeque::new(),
            room_commit: false,
            room_error: None,
            outstanding: 0,
            outstanding_bytes: 0,
            sequence: 0,
            arena_bytes_needed: 0,
            latency_ns_mean: 0,
            kept: Vec::new(),
            is_over: None,
        }
    }

    /// Adds a server with `connections` links. Returns the server, and the index of its first link.
    pub fn add_server(&mut self, credential: &Credential, connections: u32) -> (ServerId, usize) {
        use nfs3_types::nfs3::{PROGRAM, VERSION};
        let id = ServerId(self.servers.len() as u32);
        let first = self.links.len();
        let limit =
            RECORD_BYTES_MIN.max(self.config.size_bytes_max as usize + RECORD_OVERHEAD_BYTES);
        for number in 0..connections.max(1) {
            self.links.push(Link {
                server: id,
                number,
                queue: VecDeque::with_capacity(self.config.depth_max as usize),
                head_sent: 0,
                stale: false,
                inbound: Some(Inbound::new(limit)),
                strays_allowed: 0,
                broken: None,
                proven: false,
                streaming: None,
            });
        }
        self.servers.push(Server {
            template: CallTemplate::new(PROGRAM, VERSION, credential, self.config.xid_seed),
            links: (first as u32..self.links.len() as u32).collect(),
            next_link: 0,
            verifier: None,
        });
        (id, first)
    }

    /// Registers a handle. Use [`Handle::EMPTY`] for an object whose handle a LOOKUP or CREATE will
    /// return.
    pub fn register(&mut self, server: ServerId, handle: Handle) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        self.objects.push(Object {
            server,
            handle,
            chain: Chain::default(),
            recovering: false,
            verifier: None,
        });
        id
    }

    /// Returns the handle of an object, or [`Handle::EMPTY`] if the handle is not yet known.
    #[must_use]
    pub fn handle(&self, object: ObjectId) -> Handle {
        self.objects.get(object.0 as usize).map_or(Handle::EMPTY, |object| object.handle)
    }

    /// Returns the server of an object, or `None` if the object is not registered.
    #[must_use]
    pub fn server_of(&self, object: ObjectId) -> Option<ServerId> {
        self.objects.get(object.0 as usize).map(|object| object.server)
    }

    /// Returns the number of the caller's operations that have not completed.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Returns the required length of the arena in bytes. It is 0 if no operation is outstanding.
    #[must_use]
    pub fn arena_bytes_needed(&self) -> u64 {
        self.arena_bytes_needed
    }

    /// Returns the length of the pause between two checks for replies; see
    /// [`Config::reap_pause_divisor`].
    #[must_use]
    pub fn reap_pause_ns(&self) -> u64 {
        if self.outstanding < REAP_PAUSE_DEPTH || self.outstanding_bytes > REAP_PAUSE_BYTES {
            return 0;
        }
        match self.latency_ns_mean.checked_div(u64::from(self.config.reap_pause_divisor)) {
            Some(pause_ns @ REAP_PAUSE_NS_MIN..) => pause_ns.min(REAP_PAUSE_NS_MAX),
            _ => 0,
        }
    }

    /// Returns the number of bytes in acknowledged unstable writes that are not yet committed.
    #[must_use]
    pub fn uncommitted_bytes(&self) -> u64 {
        self.retain.uncommitted_bytes()
    }

    /// Returns the counters and events, for changes.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the counters and events.
    pub fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
