//! Handles COMMITs, and writes that a restarted server lost.
//!
//! The reply to an unstable write contains a write verifier, and so does the reply to a COMMIT. If
//! both verifiers are equal, the write is durable. Otherwise the server restarted after it had
//! acknowledged the write. The client then sends such writes again with FILE_SYNC, except parts
//! that a later write replaced. The COMMIT completes after these repeated writes. Until then, new
//! writes to the file wait, so that old data never overwrites new data.

use crate::core::{Core, Resend};
use crate::error::CallError;
use crate::handle::ObjectId;
use crate::op::{Completion, Procedure, Stability};
use crate::reply::committed;
use crate::retain::EntryState;
use crate::slot::{NONE, Owner, Payload, State};
use crate::stats::Event;
use crate::xdr::Reader;

impl Core {
    pub(crate) fn on_commit(
        &mut self,
        index: u32,
        results: Reader<'_>,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) -> Result<(), CallError> {
        let verifier = committed(results)?;
        self.note_verifier(index, verifier, now_ns);
        if self.objects[self.slots.get(index).object as usize].recovering {
            // The client is sending lost writes again for another COMMIT. It repeats this COMMIT
            // after those writes.
            self.slots.renew_xid(index);
            self.patch_xid(index);
            self.hold(index);
            return Ok(());
        }
        let lost = self.settle_confirmed(index, verifier);
        if lost.is_empty() {
            self.prune(index);
            self.finish(index, Ok(0), now_ns, out);
            self.release_held(now_ns);
        } else {
            self.recover(index, &lost, now_ns, out);
        }
        Ok(())
    }

    /// Marks as settled the writes that the COMMIT in slot `index` confirms. Returns the lost
    /// writes.
    fn settle_confirmed(&mut self, index: u32, verifier: [u8; 8]) -> Vec<u64> {
        let slot = self.slots.get(index);
        let start = slot.offset_bytes;
        let end = match slot.size_bytes {
            0 => u64::MAX, // RFC 1813, 3.3.21: from the offset to the end of the file
            size => start.saturating_add(u64::from(size)),
        };
        let (order, object) = (slot.order, slot.object as usize);
        let mut lost = Vec::new();
        let mut next = self.objects[object].chain.first;
        while let Some(sequence) = next {
            let entry = self.retain.get_mut(sequence);
            next = entry.next;
            let EntryState::Acknowledged { order: acknowledged } = entry.state else { continue };
            if acknowledged >= order || entry.end_bytes() <= start || entry.offset_bytes >= end {
                continue;
            }
            if entry.mixed || entry.verifier != verifier {
                lost.push(sequence);
            } else if entry.offset_bytes >= start && entry.end_bytes() <= end {
                entry.state = EntryState::Settled;
            }
        }
        lost
    }

    /// Queues the lost writes of the COMMIT in slot `commit`.
    fn recover(&mut self, commit: u32, lost: &[u64], now_ns: u64, out: &mut Vec<Completion>) {
        let object = self.slots.get(commit).object;
        let mut parts = Vec::new();
        for &sequence in lost {
            parts.extend(self.retain.untouched(sequence));
        }
        let size_bytes = parts.iter().map(|(_, size, _)| u64::from(*size)).sum();
        self.stats.writes_resent += lost.len() as u64;
        self.stats.event(Event::WritesResent {
            server: self.slots.get(commit).server,
            file: ObjectId(object),
            at_ns: now_ns,
            writes: lost.len() as u32,
            size_bytes,
        });
        for &sequence in lost {
            self.retain.get_mut(sequence).state = EntryState::Resending;
        }
        self.objects[object as usize].recovering = true;
        let slot = self.slots.get_mut(commit);
        slot.state = State::Recovering;
        slot.resends_left = parts.len() as u32;
        slot.resend_error = None;
        if parts.is_empty() {
            self.recovered(commit, now_ns, out);
            return;
        }
        self.resends.extend(parts.into_iter().map(|(offset_bytes, size_bytes, position)| Resend {
            commit,
            object,
            offset_bytes,
            size_bytes,
            position,
        }));
        self.pump_resends(now_ns);
    }

    /// Sends lost writes again until no slot is free.
    fn pump_resends(&mut self, now_ns: u64) {
        while !self.resends.is_empty() {
            let Some(index) = self.take_internal() else { return };
            let Some(resend) = self.resends.pop_front() else { return };
            let server = self.objects[resend.object as usize].server;
            let slot = self.slots.get_mut(index);
            slot.owner = Owner::Resend { commit: resend.commit };
            slot.procedure = Procedure::Write;
            slot.stability = Stability::FileSync;
            slot.server = server;
            slot.object = resend.object;
            slot.offset_bytes = resend.offset_bytes;
            slot.size_bytes = resend.size_bytes;
            slot.payload = Payload::Retained(resend.position);
            slot.submitted_ns = now_ns;
            self.encode_again(index);
            self.enqueue(index, now_ns);
        }
    }

    /// Allocates a slot for a call that the client itself issues, and sets the common fields.
    fn take_internal(&mut self) -> Option<u32> {
        // The slots for the caller's operations are reserved, so that these always find a free
        // slot.
        let reserved = (self.config.depth_max - self.outstanding) as usize;
        if self.slots.free_count() <= reserved {
            return None;
        }
        let index = self.slots.take()?;
        let slot = self.slots.get_mut(index);
        slot.keep_reply = false;
        slot.into = NONE;
        slot.done_bytes = 0;
        slot.entry = None;
        slot.retransmissions = 0;
        Some(index)
    }

    /// Handles the end of a repeated write.
    pub(crate) fn resend_done(
        &mut self,
        commit: u32,
        error: Option<CallError>,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        let mut gone = 1;
        if error.is_some() {
            // The COMMIT fails in any case, so its remaining lost writes are not sent.
            let before = self.resends.len();
            self.resends.retain(|resend| resend.commit != commit);
            gone += (before - self.resends.len()) as u32;
        }
        let slot = self.slots.get_mut(commit);
        slot.resends_left -= gone;
        slot.resend_error = slot.resend_error.or(error);
        if slot.resends_left == 0 {
            self.recovered(commit, now_ns, out);
        }
        self.pump_resends(now_ns);
    }

    fn recovered(&mut self, commit: u32, now_ns: u64, out: &mut Vec<Completion>) {
        let slot = self.slots.get_mut(commit);
        let result = slot.resend_error.map_or(Ok(0), Err);
        let object = &mut self.objects[slot.object as usize];
        object.recovering = false;
        let mut next = object.chain.first;
        while let Some(sequence) = next {
            let entry = self.retain.get_mut(sequence);
            next = entry.next;
            if entry.state == EntryState::Resending {
                entry.state = EntryState::Settled;
            }
        }
        self.prune(commit);
        self.finish(commit, result, now_ns, out);
        self.release_held(now_ns);
    }

    /// Frees the settled writes of the file to which the call in slot `index` refers.
    pub(crate) fn prune(&mut self, index: u32) {
        let object = &mut self.objects[self.slots.get(index).object as usize];
        self.retain.prune(&mut object.chain);
    }

    /// Delays a call until [`Core::release_held`] is called.
    pub(crate) fn hold(&mut self, index: u32) {
        self.slots.get_mut(index).state = State::Held;
        self.held.push_back(index);
    }

    /// Handles the end of a COMMIT that frees space. If the COMMIT failed, the writes that wait for
    /// space also fail. If no write waits, the caller's next write or COMMIT fails instead.
    /// Otherwise the error would be lost, because a server may report a loss of data only once.
    pub(crate) fn room_done(
        &mut self,
        error: Option<CallError>,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        self.room_commit = false;
        if let Some(error) = error {
            if self.held.is_empty() {
                self.room_error = Some(error);
            }
            for index in std::mem::take(&mut self.held) {
                self.fail(index, error, now_ns, out);
            }
        }
        self.release_held(now_ns);
    }

    /// Sends a COMMIT for the file of the oldest entry, to free space for the data of a write.
    pub(crate) fn make_room(&mut self, now_ns: u64) {
        let Some(oldest) = self.retain.oldest().copied() else { return };
        if self.room_commit || !matches!(oldest.state, EntryState::Acknowledged { .. }) {
            return;
        }
        let Some(index) = self.take_internal() else { return };
        let server = self.objects[oldest.object as usize].server;
        let slot = self.slots.get_mut(index);
        slot.owner = Owner::Room;
        slot.procedure = Procedure::Commit;
        slot.server = server;
        slot.object = oldest.object;
        slot.offset_bytes = 0;
        slot.size_bytes = 0;
        slot.submitted_ns = now_ns;
        self.room_commit = true;
        self.stats.room_commits += 1;
        self.encode_again(index);
        self.route(index, now_ns);
    }

    /// Retries delayed calls.
    pub(crate) fn release_held(&mut self, now_ns: u64) {
        for _ in 0..self.held.len() {
            let Some(index) = self.held.pop_front() else { return };
            self.route(index, now_ns);
        }
    }
}
