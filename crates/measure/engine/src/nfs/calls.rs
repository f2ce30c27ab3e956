//! Counters of the NFS calls in a run, and of restarts and outages of the servers.

use std::collections::BTreeMap;

use plimsoll_nfs::{Event, Procedure, Stats};

/// Period in which one connection to a server was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Time at which the connection was lost (`CLOCK_MONOTONIC`, in ns).
    pub start_ns: u64,
    /// Time until the connection was established again, in ns.
    pub duration_ns: u64,
}

/// Sums of the calls and events, over all clients of a run.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// For each procedure: the number of calls and the number of retransmissions. A retransmitted
    /// call is counted as one call.
    procedures: BTreeMap<&'static str, (u64, u64)>,
    /// Sums of all other counters, over all clients.
    others: BTreeMap<&'static str, u64>,
    /// Outages of connections, sorted by the time at which the outage ended.
    pub outages: Vec<Outage>,
    /// Number of times that a client observed a new write verifier from a server.
    pub restarts: u64,
    /// Number of writes that a server lost and that the client sent again.
    pub writes_resent: u64,
    /// Number of bytes in the writes that a client sent again.
    pub resent_bytes: u64,
    /// Number of COMMITs that a client sent after a restart of a server. They concern files with
    /// unstable writes.
    pub doubt_commits: u64,
    /// Number of reads that were not checked, because a restarted server might have lost their data
    /// at that time.
    pub reads_unsure: u64,
}

impl Calls {
    /// Records an event.
    pub fn note(&mut self, event: &Event) {
        match *event {
            Event::Reconnected { at_ns, outage_ns, .. } => self
                .outages
                .push(Outage { start_ns: at_ns.saturating_sub(outage_ns), duration_ns: outage_ns }),
            Event::VerifierChanged { .. } => self.restarts += 1,
            Event::WritesResent { writes, size_bytes, .. } => {
                self.writes_resent += u64::from(writes);
                self.resent_bytes += size_bytes;
            }
            Event::Disconnected { .. } => {}
        }
    }

    /// Adds the counters that a client had at its end.
    pub fn count(&mut self, stats: &Stats) {
        for procedure in Procedure::ALL {
            let own = stats.procedure(procedure);
            let sums = self.procedures.entry(procedure.name()).or_default();
            sums.0 += own.calls;
            sums.1 += own.retransmissions;
        }
        for (name, value) in [
            ("disconnects", stats.disconnects),
            ("duplicate_replies", stats.duplicate_replies),
            ("replays", stats.replays),
            ("jukebox_retries", stats.jukebox_retries),
            ("continuations", stats.continuations),
            ("room_commits", stats.room_commits),
            ("reply_pauses", stats.reap_pauses),
            ("reply_pause_ns", stats.reap_pause_ns),
        ] {
            *self.others.entry(name).or_default() += value;
        }
    }

    /// Adds the counters of `other` to these counters.
    pub fn merge(&mut self, other: &Self) {
        for (name, (calls, again)) in &other.procedures {
            let sums = self.procedures.entry(name).or_default();
            sums.0 += calls;
            sums.1 += again;
        }
        for (name, value) in &other.others {
            *self.others.entry(name).or_default() += value;
        }
        self.outages.extend(&other.outages);
        self.restarts += other.restarts;
        self.writes_resent += other.writes_resent;
        self.resent_bytes += other.resent_bytes;
        self.doubt_commits += other.doubt_commits;
        self.reads_unsure += other.reads_unsure;
    }

    /// Subtracts an earlier state of the counters of the same client. Events are not subtracted,
    /// because each event is reported only once.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        for (name, sums) in &mut self.procedures {
            let before = earlier.procedures.get(name).copied().unwrap_or_default();
            *sums = (sums.0.saturating_sub(before.0), sums.1.saturating_sub(before.1));
        }
        for (name, value) in &mut self.others {
            *value = value.saturating_sub(earlier.others.get(name).copied().unwrap_or(0));
        }
        self
    }

    /// Returns how many calls of a procedure were made. Retransmissions are not counted.
    #[must_use]
    pub fn calls(&self, procedure: Procedure) -> u64 {
        self.procedures.get(procedure.name()).map_or(0, |sums| sums.0)
    }

    /// Returns how long a connection was down in the longest outage.
    #[must_use]
    pub fn outage_ns_max(&self) -> u64 {
        self.outages.iter().map(|outage| outage.duration_ns).max().unwrap_or(0)
    }

    /// Adds the sums to the counters of a run, with names such as `nfs.calls.read` and
    /// `nfs.outages`. Procedures that were never called are omitted.
    pub fn counters(&self, into: &mut BTreeMap<String, u64>) {
        let mut put = |name: String, value: u64| {
            into.insert(format!("nfs.{name}"), value);
        };
        for (name, (calls, again)) in self.procedures.iter().filter(|(_, sums)| sums.0 > 0) {
            put(format!("calls.{name}"), *calls);
            put(format!("retransmissions.{name}"), *again);
        }
        for (name, value) in &self.others {
            put((*name).to_owned(), *value);
        }
        put("outages".to_owned(), self.outages.len() as u64);
        put("outage_ns_max".to_owned(), self.outage_ns_max());
        put("restarts".to_owned(), self.restarts);
        put("writes_resent".to_owned(), self.writes_resent);
        put("resent_bytes".to_owned(), self.resent_bytes);
        put("doubt_commits".to_owned(), self.doubt_commits);
        put("reads_unsure".to_owned(), self.reads_unsure);
    }
}
