//! Counters for each procedure, and events that the report of a run must include.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use crate::error::Violation;
use crate::handle::{ObjectId, ServerId};
use crate::op::Procedure;

/// Maximum number of queued events. If the queue is full, further events are only counted.
const EVENTS_MAX: usize = 4096;
/// Longest latency that a histogram can record: one hour, in ns. Latencies above one hour are
/// counted as one hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The server closed the connection.
    Closed,
    /// The socket failed with this `errno`.
    Error(i32),
    /// The server violated the protocol. All calls on the connection failed.
    Violation(Violation),
    /// No reply arrived within the timeout, even after a retransmission.
    NoReply,
    /// A call timed out while its payload was being transferred.
    GivenUp,
}

/// Event of a server or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was lost.
    Disconnected {
        /// Index of the server.
        server: ServerId,
        /// Index of the connection, from 0.
        connection: u32,
        /// Time when the client detected the loss.
        at_ns: u64,
        /// Reason for the loss.
        why: DisconnectReason,
        /// Number of calls that were outstanding on the connection.
        calls: u32,
    },
    /// A connection was opened again.
    Reconnected {
        /// Index of the server.
        server: ServerId,
        /// Index of the connection, from 0.
        connection: u32,
        /// Time of the event.
        at_ns: u64,
        /// Time during which the connection was not open.
        outage_ns: u64,
        /// Number of calls that are sent again on the new connection.
        calls: u32,
    },
    /// The write verifier changed, because the server restarted. Uncommitted writes may be lost.
    VerifierChanged {
        /// Index of the server.
        server: ServerId,
        /// Time when the client detected the change.
        at_ns: u64,
    },
    /// A COMMIT detected that acknowledged unstable writes may be lost. The client sends them
    /// again.
    WritesResent {
        /// Index of the server.
        server: ServerId,
        /// The file.
        file: ObjectId,
        /// Time of the event.
        at_ns: u64,
        /// Number of lost writes.
        writes: u32,
        /// Number of bytes that the client sends again. Bytes that a later write replaced are not
        /// included.
        size_bytes: u64,
    },
}

/// Counters and latencies of a procedure.
#[derive(Clone, Debug, Default)]
pub struct ProcedureStats {
    /// Number of calls that were sent. Each XID counts once.
    pub calls: u64,
    /// Number of retransmissions of these calls.
    pub retransmissions: u64,
    /// Number of the caller's operations that succeeded.
    pub succeeded: u64,
    /// Number of the caller's operations that failed.
    pub failed: u64,
    /// Number of bytes that successful operations read or wrote.
    pub size_bytes: u64,
    /// Latencies of successful operations from the first transmission to the reply, in ns with
    /// three significant digits. `None` before the first operation, or if histograms are off.
    pub latency_ns: Option<Histogram<u64>>,
}

/// Counters of a client since its start.
#[derive(Clone, Debug)]
pub struct Stats {
    procedures: Vec<ProcedureStats>,
    histograms: bool,
    /// Number of duplicate replies to retransmitted calls. They were dropped.
    pub duplicate_replies: u64,
    /// Number of CREATE, MKDIR, REMOVE, RMDIR and RENAME calls that were sent more than once, and
    /// whose reply was EXIST or NOENT. The server had executed an earlier transmission of such a
    /// call, so the call counts as a success.
    pub replays: u64,
    /// Number of retries after NFS3ERR_JUKEBOX.
    pub jukebox_retries: u64,
    /// Number of calls that continue a transfer of which the server transferred only a part.
    pub continuations: u64,
    /// Number of COMMITs that the client itself sent because the space for uncommitted data was
    /// full.
    pub room_commits: u64,
    /// Number of unstable writes that were lost and sent again.
    pub writes_resent: u64,
    /// Number of lost connections.
    pub disconnects: u64,
    /// Total time for which connections were down, summed over all connections, in ns.
    pub outage_ns: u64,
    /// Number of system calls that sent data. The batch size is `calls` divided by this number.
    pub sends: u64,
    /// Number of system calls that received data.
    pub receives: u64,
    /// Number of system calls that waited for events.
    pub waits: u64,
    /// Number of pauses between checks for replies; see [`Config`](crate::Config).
    pub reap_pauses: u64,
    /// Total length of these pauses, in ns.
    pub reap_pause_ns: u64,
    /// Number of events that were dropped because the queue was full.
    pub events_lost: u64,
    events: VecDeque<Event>,
}

impl Stats {
    pub(crate) fn new(histograms: bool) -> Self {
        Self {
            procedures: vec![ProcedureStats::default(); 22],
            histograms,
            duplicate_replies: 0,
            replays: 0,
            jukebox_retries: 0,
            continuations: 0,
            room_commits: 0,
            writes_resent: 0,
            disconnects: 0,
            outage_ns: 0,
            sends: 0,
            receives: 0,
            waits: 0,
            reap_pauses: 0,
            reap_pause_ns: 0,
            events_lost: 0,
            events: VecDeque::new(),
        }
    }

    /// Returns the counters of a procedure.
    #[must_use]
    pub fn procedure(&self, procedure: Procedure) -> &ProcedureStats {
        &self.procedures[procedure as usize]
    }

    #[inline]
    pub(crate) fn procedure_mut(&mut self, procedure: Procedure) -> &mut ProcedureStats {
        &mut self.procedures[procedure as usize]
    }

    /// Returns the events since the last call of this function, in the order of time.
    pub fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    pub(crate) fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push_back(event);
        } else {
            self.events_lost += 1;
        }
    }

    #[inline]
    pub(crate) fn succeeded(&mut self, procedure: Procedure, size_bytes: u32, latency_ns: u64) {
        let histograms = self.histograms;
        let stats = self.procedure_mut(procedure);
        stats.succeeded += 1;
        stats.size_bytes += u64::from(size_bytes);
        if !histograms {
            return;
        }
        if stats.latency_ns.is_none() {
            stats.latency_ns = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).ok();
        }
        if let Some(histogram) = &mut stats.latency_ns {
            histogram.saturating_record(latency_ns.max(1));
        }
    }
}
