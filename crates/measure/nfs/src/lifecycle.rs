//! The lifecycle of a call. A call is submitted, then queued on a connection or delayed, and
//! finally ended.

use crate::core::Core;
use crate::error::CallError;
use crate::op::{Completion, Procedure, Stability};
use crate::slot::{Owner, State};
use crate::stats::DisconnectReason;

impl Core {
    /// Sets the start time of the operations submitted since the last hand-over, and queues them on
    /// their connections.
    #[inline]
    pub fn hand_over(&mut self, now_ns: u64) {
        if self.fresh.is_empty() {
            return;
        }
        let fresh = std::mem::take(&mut self.fresh);
        for &index in &fresh {
            self.slots.get_mut(index).submitted_ns = now_ns;
            self.route(index, now_ns);
        }
        self.fresh = fresh;
        self.fresh.clear();
    }

    /// Returns true if there are submitted operations that were not yet passed to a connection.
    #[must_use]
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Queues a call on a connection, or delays it.
    pub(crate) fn route(&mut self, index: u32, now_ns: u64) {
        let slot = self.slots.get(index);
        let (procedure, owner, object) = (slot.procedure, slot.owner, slot.object);
        if procedure == Procedure::Write && owner == Owner::Caller {
            let logged = self.log_write(index);
            if !logged || self.retain.is_half_full() {
                // The COMMIT is sent before the log is full, so that later writes do not wait for
                // it.
                self.make_room(now_ns);
            }
            if !logged {
                self.hold(index);
                return;
            }
        }
        if procedure == Procedure::Commit {
            if self.objects[object as usize].recovering {
                self.hold(index);
                return;
            }
            let order = self.retain.next_order();
            self.slots.get_mut(index).order = order;
        }
        self.enqueue(index, now_ns);
    }

    /// Adds a WRITE to the log of uncommitted writes, if this is necessary. Returns false if the
    /// log has no space for it.
    #[inline]
    fn log_write(&mut self, index: u32) -> bool {
        let slot = self.slots.get(index);
        let object = &mut self.objects[slot.object as usize];
        if object.recovering {
            return false;
        }
        let unstable = slot.stability == Stability::Unstable;
        if slot.entry.is_some() || (!unstable && object.chain.first.is_none()) {
            return true;
        }
        let range = (slot.offset_bytes, slot.size_bytes);
        let entry = self.retain.add(&mut object.chain, slot.object, range, unstable);
        self.slots.get_mut(index).entry = entry;
        entry.is_some()
    }

    /// Appends a call to the queue of a connection. The connections of a server are used in
    /// rotation.
    pub(crate) fn enqueue(&mut self, index: u32, now_ns: u64) {
        let slot = self.slots.get_mut(index);
        let server = &mut self.servers[slot.server.0 as usize];
        let link = server.links[server.next_link];
        server.next_link = (server.next_link + 1) % server.links.len();
        slot.link = link;
        slot.state = State::Queued;
        slot.sent_ns = now_ns;
        slot.transmissions_on_link = 0;
        let xid = slot.xid;
        self.links[link as usize].queue.push_back((index, xid));
    }

    /// Ends an operation. Updates the counters and frees the slot of the operation.
    pub(crate) fn finish(
        &mut self,
        index: u32,
        result: Result<u32, CallError>,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        self.leave_link(index);
        let slot = self.slots.get(index);
        let (procedure, owner, moves_bytes) = (slot.procedure, slot.owner, slot.moves_bytes());
        match owner {
            Owner::Caller => {
                let result = match (result, procedure) {
                    (Ok(_), Procedure::Write | Procedure::Commit) => {
                        self.room_error.take().map_or(result, Err)
                    }
                    _ => result,
                };
                let completion = Completion {
                    token: slot.token,
                    procedure,
                    result,
                    submitted_ns: slot.submitted_ns,
                    completed_ns: now_ns,
                    retransmissions: slot.retransmissions,
                };
                let latency_ns = now_ns.saturating_sub(slot.submitted_ns);
                match result {
                    Ok(size) => {
                        let moved = matches!(procedure, Procedure::Read | Procedure::Write);
                        let size_bytes = if moved { size } else { 0 };
                        self.stats.succeeded(procedure, size_bytes, latency_ns);
                        self.latency_ns_mean =
                            self.latency_ns_mean - self.latency_ns_mean / 64 + latency_ns / 64;
                    }
                    Err(_) => self.stats.procedure_mut(procedure).failed += 1,
                }
                self.outstanding -= 1;
                self.outstanding_bytes -= moves_bytes;
                if self.outstanding == 0 {
                    self.arena_bytes_needed = 0;
                }
                self.slots.release(index);
                out.push(completion);
            }
            Owner::Resend { commit } => {
                self.slots.release(index);
                self.resend_done(commit, result.err(), now_ns, out);
            }
            Owner::Room => {
                self.slots.release(index);
                self.room_done(result.err(), now_ns, out);
            }
        }
    }

    /// Ends a call that is still queued, so that it is not sent. If a part of the call was sent,
    /// the connection must also be closed, because the caller then owns the payload again.
    #[inline]
    pub(crate) fn leave_link(&mut self, index: u32) {
        let slot = self.slots.get(index);
        if slot.state != State::Queued {
            return;
        }
        let link = &mut self.links[slot.link as usize];
        link.stale = true;
        if link.head_sent > 0 && link.queue.front() == Some(&(index, slot.xid)) {
            link.broken.get_or_insert(DisconnectReason::GivenUp);
        }
    }
}
