//! Writes that wait for a flush. A write is durable after a flush of its file that began after the
//! write completed. Each write that a flush makes durable waits for the end of this flush.
//!
//! A driver reports each write and flush of its clients. No memory is allocated while a client has
//! at most [`PENDING_MAX`] waiting writes.

/// Maximum number of individual waiting writes of a client. Further writes to a file are merged
/// with the oldest waiting write to this file. The merge can only increase their recorded latency.
pub const PENDING_MAX: usize = 16_384;

/// One or more completed writes that are not durable yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    file: u32,
    count: u32,
    /// Sequence number of the last of these writes, among all writes of the client.
    number: u64,
    at: WriteTimes,
}

/// Writes of one client that are not yet durable.
#[derive(Clone, Debug, Default)]
struct Client {
    written: u64,
    pending: Vec<Pending>,
}

/// Times of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTimes {
    /// Intended start.
    pub intended_ns: u64,
    /// Submission.
    pub submitted_ns: u64,
    /// Completion of the write itself, before the flush.
    pub completed_ns: u64,
}

impl WriteTimes {
    /// Returns the times without the delay from the flush schedule. This delay is the time from the
    /// write's completion to `due_ns`.
    fn without_schedule_delay(self, due_ns: u64) -> Self {
        let held_ns = due_ns.saturating_sub(self.completed_ns);
        Self {
            intended_ns: self.intended_ns + held_ns,
            submitted_ns: self.submitted_ns + held_ns,
            completed_ns: self.completed_ns,
        }
    }
}

/// Waiting writes of all clients.
#[derive(Clone, Debug, Default)]
pub struct DurableWrites {
    clients: Vec<Client>,
    /// For each slot with a flush: the number of the client's writes that had completed when the
    /// flush began.
    covered: Vec<u64>,
}

impl DurableWrites {
    /// Creates the table for these numbers of clients and slots, with space for `each` waiting
    /// writes of each client.
    #[must_use]
    pub fn new(clients: usize, slots: usize, each: usize) -> Self {
        let client = || Client { written: 0, pending: Vec::with_capacity(each.min(PENDING_MAX)) };
        Self { clients: (0..clients).map(|_| client()).collect(), covered: vec![0; slots] }
    }

    /// Records a completed write.
    #[inline]
    pub fn written(&mut self, client: u32, file: u32, at: WriteTimes) {
        let Some(client) = self.clients.get_mut(client as usize) else { return };
        client.written += 1;
        let number = client.written;
        if client.pending.len() >= PENDING_MAX
            && let Some(oldest) = client.pending.iter_mut().find(|pending| pending.file == file)
        {
            (oldest.number, oldest.count) = (number, oldest.count.saturating_add(1));
            oldest.at.completed_ns = at.completed_ns;
            return;
        }
        client.pending.push(Pending { file, count: 1, number, at });
    }

    /// Records that a flush of a client starts now, in slot `slot`.
    #[inline]
    pub fn flush_begins(&mut self, slot: u32, client: u32) {
        let written = self.clients.get(client as usize).map_or(0, |client| client.written);
        let slot = slot as usize;
        if slot >= self.covered.len() {
            self.covered.resize(slot + 1, 0);
        }
        if let Some(covered) = self.covered.get_mut(slot) {
            *covered = written;
        }
    }

    /// Removes each write that the flush of `file` in `slot` made durable, and passes the write to
    /// `each`. A scheduled flush was due at `due_ns`. The target did not cause the wait until this
    /// time.
    #[inline]
    pub fn flushed(
        &mut self,
        (slot, client, file): (u32, u32, u32),
        due_ns: Option<u64>,
        each: &mut dyn FnMut(WriteTimes),
    ) {
        let Some(covered) = self.covered.get(slot as usize).copied() else { return };
        let Some(client) = self.clients.get_mut(client as usize) else { return };
        client.pending.retain(|pending| {
            let is_durable = pending.file == file && pending.number <= covered;
            if is_durable {
                let held =
                    |at: WriteTimes| due_ns.map_or(at, |due_ns| at.without_schedule_delay(due_ns));
                give(pending, &mut |at| each(held(at)));
            }
            !is_durable
        });
    }

    /// Removes each write that is still waiting, and passes it to `each`.
    pub fn left(&mut self, each: &mut dyn FnMut(u32, WriteTimes)) {
        for (number, client) in (0u32..).zip(&mut self.clients) {
            for pending in client.pending.drain(..) {
                give(&pending, &mut |written| each(number, written));
            }
        }
    }
}

fn give(pending: &Pending, each: &mut dyn FnMut(WriteTimes)) {
    (0..pending.count).for_each(|_| each(pending.at));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(ns: u64) -> WriteTimes {
        WriteTimes { intended_ns: ns, submitted_ns: ns, completed_ns: ns }
    }

    fn flushed(writes: &mut DurableWrites, slot: u32, file: u32) -> Vec<u64> {
        let mut all = Vec::new();
        writes.flushed((slot, 0, file), None, &mut |written| all.push(written.intended_ns));
        all
    }

    #[test]
    fn every_write_before_a_flush_of_its_file_waits_for_it() {
        let mut writes = DurableWrites::new(1, 2, 4);
        (1..=3).for_each(|ns| writes.written(0, 7, at(ns)));
        writes.written(0, 8, at(4));
        writes.flush_begins(0, 0);
        writes.written(0, 7, at(5));
        assert_eq!(flushed(&mut writes, 0, 7), [1, 2, 3], "the last came after the flush began");
        writes.flush_begins(1, 0);
        assert_eq!(flushed(&mut writes, 1, 7), [5]);
        let mut left = Vec::new();
        writes.left(&mut |client, written| left.push((client, written.intended_ns)));
        assert_eq!(left, [(0, 4)], "no flush of its file came");
    }

    #[test]
    fn a_schedule_that_holds_a_flush_back_is_no_wait_for_the_target() {
        let mut writes = DurableWrites::new(1, 1, 1);
        writes.written(0, 0, WriteTimes { intended_ns: 10, submitted_ns: 12, completed_ns: 15 });
        writes.flush_begins(0, 0);
        let mut given = None;
        writes.flushed((0, 0, 0), Some(115), &mut |at| given = Some(at));
        let at = given.unwrap();
        assert_eq!((at.intended_ns, at.submitted_ns), (110, 112));
    }

    #[test]
    fn writes_beyond_those_remembered_wait_as_long_as_the_oldest() {
        let mut writes = DurableWrites::new(1, 1, PENDING_MAX);
        let all = PENDING_MAX as u64 + 10;
        (1..=all).for_each(|ns| writes.written(0, 0, at(ns)));
        writes.flush_begins(0, 0);
        let durable = flushed(&mut writes, 0, 0);
        assert_eq!(durable.len() as u64, all);
        assert_eq!(durable.iter().filter(|ns| **ns == 1).count(), 11);
    }
}
