//! Counters per procedure, and events that the report of a run must include.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

use crate::error::Violation;
use crate::handle::{ObjectId, ServerId};
use crate::op::Procedure;

/// Events kept until they are taken; beyond that only their number is.
const EVENTS_MAX: usize = 4096;
/// Longest latency that a histogram resolves: one hour, in ns. Longer ones count as this.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The server closed it.
    Closed,
    /// The socket failed with this `errno`.
    Error(i32),
    /// The server broke the protocol; all calls on it failed.
    Violation(Violation),
    /// No reply in time, also not to a retransmission.
    NoReply,
    /// A call timed out while its payload was being transferred.
    GivenUp,
}

/// Something that happened to a server or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection was lost.
    Disconnected {
        /// Which server.
        server: ServerId,
        /// Which of its connections, from 0.
        connection: u32,
        /// When it was noticed.
        at_ns: u64,
        /// Reason.
        why: DisconnectReason,
        /// Calls that were on it.
        calls: u32,
    },
    /// A connection was made again.
    Reconnected {
        /// Which server.
        server: ServerId,
        /// Which of its connections, from 0.
        connection: u32,
        /// Time of the event.
        at_ns: u64,
        /// How long it was down.
        outage_ns: u64,
        /// Calls that are sent again on it.
        calls: u32,
    },
    /// The write verifier changed: the server has restarted, and what was not committed may be lost.
    VerifierChanged {
        /// Which server.
        server: ServerId,
        /// When it was noticed.
        at_ns: u64,
    },
    /// A COMMIT found that acknowledged unstable writes may be lost; they are sent again.
    WritesResent {
        /// Which server.
        server: ServerId,
        /// Which file.
        file: ObjectId,
        /// Time of the event.
        at_ns: u64,
        /// Number of writes lost.
        writes: u32,
        /// Bytes sent again: what no later write has replaced.
        size_bytes: u64,
    },
}

/// Counters and latency of one procedure.
#[derive(Clone, Debug, Default)]
pub struct ProcedureStats {
    /// Calls sent, each XID once.
    pub calls: u64,
    /// Further transmissions of the same calls.
    pub retransmissions: u64,
    /// Operations of the caller that succeeded.
    pub succeeded: u64,
    /// Operations of the caller that failed.
    pub failed: u64,
    /// Bytes read or written by operations that succeeded.
    pub size_bytes: u64,
    /// From first hand-over to reply, of operations that succeeded, in ns, three significant digits.
    /// `None` until the first, or when histograms are off.
    pub latency_ns: Option<Histogram<u64>>,
}

/// Counters of a client since its start.
#[derive(Clone, Debug)]
pub struct Stats {
    procedures: Vec<ProcedureStats>,
    histograms: bool,
    /// Second replies to a retransmitted call, dropped.
    pub duplicate_replies: u64,
    /// CREATE, MKDIR, REMOVE, RMDIR and RENAME that were sent more than once and whose answer (EXIST or
    /// NOENT) says that an earlier transmission was executed; counted as successes.
    pub replays: u64,
    /// Times that NFS3ERR_JUKEBOX was answered and the call made again.
    pub jukebox_retries: u64,
    /// Calls for the rest of a transfer that the server cut short.
    pub continuations: u64,
    /// COMMITs that the client made by itself, for lack of room for uncommitted data.
    pub room_commits: u64,
    /// Unstable writes that were lost and sent again.
    pub writes_resent: u64,
    /// Connections lost.
    pub disconnects: u64,
    /// Sum of the outages of all connections, in ns.
    pub outage_ns: u64,
    /// System calls that sent: `calls` over this is the batch.
    pub sends: u64,
    /// System calls that received.
    pub receives: u64,
    /// System calls that waited.
    pub waits: u64,
    /// Pauses before looking for replies: see [`Config`](crate::Config).
    pub reap_pauses: u64,
    /// Sum of the pauses, in ns.
    pub reap_pause_ns: u64,
    /// Events dropped because the queue was full.
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

    /// One procedure's.
    #[must_use]
    pub fn procedure(&self, procedure: Procedure) -> &ProcedureStats {
        &self.procedures[procedure as usize]
    }

    #[inline]
    pub(crate) fn procedure_mut(&mut self, procedure: Procedure) -> &mut ProcedureStats {
        &mut self.procedures[procedure as usize]
    }

    /// Takes the events since the last time, in order.
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
