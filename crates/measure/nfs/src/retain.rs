//! Log of uncommitted writes. A server that restarts may lose these writes.
//!
//! An acknowledged UNSTABLE write is durable only after a later COMMIT with the same write verifier
//! (RFC 1813, 3.3.7 and 3.3.21). Until then, this log stores the data of the write. The log
//! consists of a ring of entries and a ring of data bytes, both in the order of submission. The
//! oldest entries are freed first. If a file has entries, a stable write to the file is also
//! entered, but without data. A lost write that is sent again must not overwrite the data of this
//! later write.
//!
//! A counter (`order`) numbers the acknowledgements of writes and the submissions of COMMITs. A
//! COMMIT applies to the writes whose number is smaller than its own number.

/// State of a write in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// The write was passed to a connection, but is not yet acknowledged.
    InFlight,
    /// The write was acknowledged as UNSTABLE.
    Acknowledged {
        /// Value of `order` at the acknowledgement.
        order: u64,
    },
    /// The write was lost, and the client is sending it again.
    Resending,
    /// The write is durable or has failed, so it is not sent again.
    Settled,
}

/// A write in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub object: u32,
    pub offset_bytes: u64,
    pub size_bytes: u32,
    /// Virtual position of the write's data in the byte ring.
    data: Option<u64>,
    pub verifier: [u8; 8],
    /// True if the server restarted after it had acknowledged a part of the write, and before it
    /// acknowledged another part.
    pub mixed: bool,
    /// True if a part of the write was acknowledged as UNSTABLE.
    pub unstable: bool,
    pub state: EntryState,
    /// Sequence number of the next entry of the same object.
    pub next: Option<u64>,
}

impl Entry {
    /// Returns the offset in the file after the last byte of the write.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(u64::from(self.size_bytes))
    }
}

/// First and last entry of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub first: Option<u64>,
    pub last: Option<u64>,
}

/// Log of uncommitted writes.
#[derive(Debug)]
pub(crate) struct Retain {
    entries: Vec<Entry>,
    capacity: u64,
    /// Sequence number of the oldest entry, and the sequence number for the next entry.
    oldest: u64,
    next: u64,
    data: Vec<u8>,
    data_capacity: u64,
    data_oldest: u64,
    data_next: u64,
    order: u64,
}

impl Retain {
    /// Creates a log for `data_bytes` of data and `entries` writes. The memory is allocated when it
    /// is first used.
    pub fn new(data_bytes: usize, entries: usize) -> Self {
        Self {
            entries: Vec::new(),
            capacity: entries.max(1) as u64,
            oldest: 0,
            next: 0,
            data: Vec::new(),
            data_capacity: data_bytes as u64,
            data_oldest: 0,
            data_next: 0,
            order: 0,
        }
    }

    /// Increments `order` and returns it.
    #[inline]
    pub fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Adds a write. Returns `None` if the log is full; the caller must then commit the oldest
    /// write first.
    pub fn add(
        &mut self,
        chain: &mut Chain,
        object: u32,
        (offset_bytes, size_bytes): (u64, u32),
        with_data: bool,
    ) -> Option<u64> {
        if self.next - self.oldest >= self.capacity {
            return None;
        }
        let data = if with_data { Some(self.room(u64::from(size_bytes))?) } else { None };
        let sequence = self.next;
        let entry = Entry {
            object,
            offset_bytes,
            size_bytes,
            data,
            verifier: [0; 8],
            mixed: false,
            unstable: false,
            state: EntryState::InFlight,
            next: None,
        };
        if self.entries.is_empty() {
            self.entries.reserve_exact(usize::try_from(self.capacity).unwrap_or(0));
        }
        let index = self.index(sequence);
        if index == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[index] = entry;
        }
        self.next += 1;
        match chain.last {
            Some(last) => self.get_mut(last).next = Some(sequence),
            None => chain.first = Some(sequence),
        }
        chain.last = Some(sequence);
        Some(sequence)
    }

    /// Allocates contiguous space in the byte ring. Returns the virtual position of the space.
    fn room(&mut self, size: u64) -> Option<u64> {
        if self.data.is_empty() {
            self.data = vec![0; usize::try_from(self.data_capacity).ok()?];
        }
        if self.oldest == self.next {
            // If the ring is empty, the front is used again, so that the log touches little memory.
            self.data_oldest = 0;
            self.data_next = 0;
        }
        let physical = self.data_next % self.data_capacity.max(1);
        let skip =
            if physical + size > self.data_capacity { self.data_capacity - physical } else { 0 };
        let start = self.data_next + skip;
        if start + size - self.data_oldest > self.data_capacity {
            return None;
        }
        self.data_next = start + size;
        Some(start)
    }

    fn index(&self, sequence: u64) -> usize {
        (sequence % self.capacity) as usize
    }

    pub fn get(&self, sequence: u64) -> &Entry {
        &self.entries[self.index(sequence)]
    }

    pub fn get_mut(&mut self, sequence: u64) -> &mut Entry {
        let index = self.index(sequence);
        &mut self.entries[index]
    }

    /// Returns the oldest entry, which must be freed before all later entries.
    pub fn oldest(&self) -> Option<&Entry> {
        (self.oldest < self.next).then(|| self.get(self.oldest))
    }

    /// Returns the offset of an entry's data in [`Retain::bytes`].
    pub fn position(&self, sequence: u64) -> Option<usize> {
        let start = self.get(sequence).data?;
        usize::try_from(start % self.data_capacity.max(1)).ok()
    }

    /// Returns the byte ring.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Records that a write was acknowledged as UNSTABLE. The log keeps a copy of its data.
    pub fn acknowledge(&mut self, sequence: u64, data: &[u8]) {
        let order = self.next_order();
        if let Some(at) = self.position(sequence)
            && let Some(into) = self.data.get_mut(at..at + data.len())
        {
            into.copy_from_slice(data);
        }
        self.get_mut(sequence).state = EntryState::Acknowledged { order };
    }

    /// Marks a write as settled, so that it is not sent again.
    pub fn settle(&mut self, sequence: u64) {
        self.get_mut(sequence).state = EntryState::Settled;
    }

    /// Removes settled entries from the front of an object's chain and from the front of the log.
    /// Returns true if this freed space in the log.
    pub fn prune(&mut self, chain: &mut Chain) -> bool {
        while let Some(first) = chain.first
            && self.get(first).state == EntryState::Settled
        {
            chain.first = self.get(first).next;
        }
        if chain.first.is_none() {
            chain.last = None;
        }
        let before = self.oldest;
        while self.oldest < self.next && self.get(self.oldest).state == EntryState::Settled {
            let entry = self.get(self.oldest);
            if let Some(data) = entry.data {
                self.data_oldest = data + u64::from(entry.size_bytes);
            }
            self.oldest += 1;
        }
        self.oldest != before
    }

    /// Returns true if more than half of the entries or of the data bytes are in use.
    #[inline]
    pub fn is_half_full(&self) -> bool {
        self.next - self.oldest > self.capacity / 2
            || self.data_next - self.data_oldest > self.data_capacity / 2
    }

    /// Returns the number of bytes in acknowledged unstable writes that are not committed.
    pub fn uncommitted_bytes(&self) -> u64 {
        (self.oldest..self.next)
            .map(|sequence| self.get(sequence))
            .filter(|entry| matches!(entry.state, EntryState::Acknowledged { .. }))
            .map(|entry| u64::from(entry.size_bytes))
            .sum()
    }

    /// Returns the parts of a write that no later write to the same object overlaps. Each part is
    /// an (offset, size, position of the data).
    pub fn untouched(&self, sequence: u64) -> Vec<(u64, u32, usize)> {
        let entry = self.get(sequence);
        let Some(position) = self.position(sequence) else { return Vec::new() };
        let mut parts = vec![(entry.offset_bytes, entry.end_bytes())];
        let mut later = entry.next;
        while let Some(other) = later {
            let other = self.get(other);
            let (from, to) = (other.offset_bytes, other.end_bytes());
            later = other.next;
            // Thousands of writes may follow, but only a few of them overlap with this write.
            if parts.iter().all(|(start, end)| to <= *start || *end <= from) {
                continue;
            }
            parts = parts
                .into_iter()
                .flat_map(|(start, end)| [(start, end.min(from)), (start.max(to), end)])
                .filter(|(start, end)| start < end)
                .collect();
        }
        parts
            .into_iter()
            .map(|(start, end)| {
                let within = (start - entry.offset_bytes) as usize;
                (start, (end - start) as u32, position + within)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn room_is_found_again_after_the_oldest_is_settled() {
        let mut retain = Retain::new(100, 8);
        let mut chain = Chain::default();
        let first = retain.add(&mut chain, 0, (0, 60), true).unwrap();
        assert_eq!(retain.add(&mut chain, 0, (60, 60), true), None, "no contiguous room");
        let second = retain.add(&mut chain, 0, (60, 30), true).unwrap();
        retain.acknowledge(first, &[1; 60]);
        retain.acknowledge(second, &[2; 30]);
        assert_eq!(retain.uncommitted_bytes(), 90);
        retain.settle(second);
        assert!(!retain.prune(&mut chain), "the oldest is still there");
        retain.settle(first);
        assert!(retain.prune(&mut chain));
        assert_eq!(chain, Chain::default());
        assert!(retain.add(&mut chain, 0, (0, 100), true).is_some());
    }

    proptest! {
        /// Compares the log with a simple model, in which the newest write of each byte counts.
        /// After a loss, the log must resend exactly those lost bytes that no later write has
        /// overwritten, with the right data.
        #[test]
        fn what_is_sent_again_is_what_no_later_write_touched(
            writes in proptest::collection::vec((0u64..200, 1u32..40), 1..20),
        ) {
            let mut retain = Retain::new(4096, 64);
            let mut chain = Chain::default();
            let mut newest = vec![None; 300];
            for (number, (offset, size)) in writes.iter().enumerate() {
                let sequence = retain.add(&mut chain, 0, (*offset, *size), true).unwrap();
                retain.acknowledge(sequence, &vec![number as u8; *size as usize]);
                for at in *offset..*offset + u64::from(*size) {
                    newest[at as usize] = Some(number as u8);
                }
            }
            let mut resent = vec![None; 300];
            let mut next = chain.first;
            while let Some(sequence) = next {
                for (offset, size, position) in retain.untouched(sequence) {
                    for i in 0..size as usize {
                        prop_assert_eq!(resent[offset as usize + i], None, "sent twice");
                        resent[offset as usize + i] = Some(retain.bytes()[position + i]);
                    }
                }
                next = retain.get(sequence).next;
            }
            prop_assert_eq!(resent, newest);
        }

        /// The rings never assign the space of an entry that is still needed to another entry.
        #[test]
        fn live_data_is_never_overwritten(
            steps in proptest::collection::vec((1u32..50, 0u8..3), 1..200),
        ) {
            let mut retain = Retain::new(256, 10);
            let mut chain = Chain::default();
            let mut live: std::collections::VecDeque<(u64, Vec<u8>)> = Default::default();
            for (number, (size, action)) in steps.into_iter().enumerate() {
                if action == 0 && let Some((sequence, data)) = live.pop_front() {
                    let at = retain.position(sequence).unwrap();
                    prop_assert_eq!(&retain.bytes()[at..at + data.len()], &data[..]);
                    retain.settle(sequence);
                    retain.prune(&mut chain);
                } else if let Some(sequence) = retain.add(&mut chain, 0, (0, size), true) {
                    let data = vec![number as u8; size as usize];
                    retain.acknowledge(sequence, &data);
                    live.push_back((sequence, data));
                }
                for (sequence, data) in &live {
                    let at = retain.position(*sequence).unwrap();
                    prop_assert_eq!(&retain.bytes()[at..at + data.len()], &data[..]);
                }
            }
        }
    }
}
