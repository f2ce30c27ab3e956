//! Calls in flight. One slot holds one call from its submission to its completion: what it is, where
//! its payload lies, its encoded header (kept for retransmission), its times. All slots are made at
//! the start; nothing is allocated per call.
//!
//! An XID is a slot's index below and a generation above, so that a reply finds its slot without a
//! search, and a reply to an earlier call of the same slot is known as such.

use crate::handle::ServerId;
use crate::op::{Procedure, Stability};

/// Room for one encoded call without its payload: the longest is RENAME with two handles and two
/// names of 255 bytes (848 bytes with the largest credential).
pub(crate) const HEADER_BYTES: usize = 1024;
/// "No object", "no slot".
pub(crate) const NONE: u32 = u32::MAX;

/// Where a call is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not in use.
    Free,
    /// Submitted, not yet handed over.
    Fresh,
    /// In the send queue of its link.
    Queued,
    /// Sent whole; waiting for the reply.
    Sent,
    /// The server asked to try again later; sent again at this time.
    Waiting {
        /// Time of the next attempt, on the monotonic clock.
        until_ns: u64,
    },
    /// Delayed, because its file is being recovered or its data cannot be retained yet.
    Held,
    /// A COMMIT whose lost writes are being sent again.
    Recovering,
}

/// For whom a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// For the caller: completes with a completion.
    Caller,
    /// A lost write, sent again on behalf of the COMMIT in this slot.
    Resend {
        /// Slot of the COMMIT.
        commit: u32,
    },
    /// A COMMIT that makes room for retained data.
    Room,
}

/// Where the payload of a WRITE lies, or of a READ goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// In the caller's arena, at this offset.
    Arena(u64),
    /// In the store of uncommitted writes, at this offset.
    Retained(usize),
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub state: State,
    pub owner: Owner,
    pub procedure: Procedure,
    pub stability: Stability,
    pub keep_reply: bool,
    pub xid: u32,
    pub token: u64,
    pub server: ServerId,
    pub link: u32,
    /// The object operated on, and where a handle that comes back is stored.
    pub object: u32,
    pub into: u32,
    /// Data of the current part: another call transfers the rest after a short transfer.
    pub offset_bytes: u64,
    pub payload: Payload,
    pub size_bytes: u32,
    pub done_bytes: u32,
    /// Of the whole operation.
    pub total_bytes: u32,
    /// Length of the encoded call without payload, record mark included.
    pub header_bytes: u32,
    /// Entry in the log of uncommitted writes.
    pub entry: Option<u64>,
    /// Ordering of first hand-overs and acknowledgements; see [`crate::retain`].
    pub order: u64,
    /// Order of submission, for sending again in the same order.
    pub sequence: u64,
    pub submitted_ns: u64,
    pub sent_ns: u64,
    /// Of the present XID, in all, and on the present connection.
    pub transmissions: u32,
    pub transmissions_on_link: u32,
    pub retransmissions: u32,
    /// Of a COMMIT in recovery: calls still out, and the first error.
    pub resends_left: u32,
    pub resend_error: Option<crate::error::CallError>,
}

impl Slot {
    fn unused(xid: u32) -> Self {
        Self {
            state: State::Free,
            owner: Owner::Caller,
            procedure: Procedure::Null,
            stability: Stability::Unstable,
            keep_reply: false,
            xid,
            token: 0,
            server: ServerId(0),
            link: NONE,
            object: NONE,
            into: NONE,
            offset_bytes: 0,
            payload: Payload::Arena(0),
            size_bytes: 0,
            done_bytes: 0,
            total_bytes: 0,
            header_bytes: 0,
            entry: None,
            order: 0,
            sequence: 0,
            submitted_ns: 0,
            sent_ns: 0,
            transmissions: 0,
            transmissions_on_link: 0,
            retransmissions: 0,
            resends_left: 0,
            resend_error: None,
        }
    }

    /// Bytes of payload that follow the header on the wire.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        if self.procedure == Procedure::Write { self.size_bytes as usize } else { 0 }
    }

    /// Bytes that a READ or WRITE is to move in all, its earlier parts included.
    #[inline]
    pub fn moves_bytes(&self) -> u64 {
        match self.procedure {
            Procedure::Read | Procedure::Write => u64::from(self.total_bytes),
            _ => 0,
        }
    }

    /// True while it is the link's business: queued or awaiting its reply.
    pub fn is_on_link(&self) -> bool {
        matches!(self.state, State::Queued | State::Sent)
    }
}

/// All slots of a client.
#[derive(Debug)]
pub(crate) struct SlotTable {
    slots: Box<[Slot]>,
    headers: Box<[u8]>,
    free: Vec<u32>,
    index_bits: u32,
}

impl SlotTable {
    /// `count` slots (at most 2^16); `seed` sets where XIDs start.
    pub fn new(count: u32, seed: u32) -> Self {
        let count = count.clamp(1, 1 << 16);
        let index_bits = count.next_power_of_two().trailing_zeros().max(1);
        let slots: Box<[Slot]> =
            (0..count).map(|index| Slot::unused((seed << index_bits) | index)).collect();
        Self {
            headers: vec![0; count as usize * HEADER_BYTES].into_boxed_slice(),
            free: (0..count).rev().collect(),
            slots,
            index_bits,
        }
    }

    /// A free slot with a new XID, or `None`.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let index = self.free.pop()?;
        self.renew_xid(index);
        Some(index)
    }

    /// How many are free.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Gives a slot back. Its XID stays as it is, so that a late reply finds a slot that is not in
    /// use.
    #[inline]
    pub fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        debug_assert_ne!(slot.state, State::Free);
        slot.state = State::Free;
        slot.transmissions = 0;
        self.free.push(index);
    }

    /// Gives a slot its next XID: a new call, not a retransmission.
    #[inline]
    pub fn renew_xid(&mut self, index: u32) {
        let step = 1u32 << self.index_bits;
        let slot = &mut self.slots[index as usize];
        slot.xid = slot.xid.wrapping_add(step);
        slot.transmissions = 0;
        slot.transmissions_on_link = 0;
    }

    /// The slot whose call has this XID and awaits a reply.
    #[inline]
    pub fn find(&self, xid: u32) -> Option<u32> {
        let index = xid & ((1 << self.index_bits) - 1);
        let slot = self.slots.get(index as usize)?;
        let outstanding = slot.is_on_link() && slot.transmissions > 0;
        (slot.xid == xid && outstanding).then_some(index)
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    /// Indices of all slots.
    pub fn indices(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    #[inline]
    pub fn header(&self, index: u32) -> &[u8] {
        let start = index as usize * HEADER_BYTES;
        &self.headers[start..start + HEADER_BYTES]
    }

    /// A slot and the room for its header.
    #[inline]
    pub fn parts_mut(&mut self, index: u32) -> (&mut Slot, &mut [u8]) {
        let start = index as usize * HEADER_BYTES;
        (&mut self.slots[index as usize], &mut self.headers[start..start + HEADER_BYTES])
    }

    #[inline]
    pub fn header_mut(&mut self, index: u32) -> &mut [u8] {
        let start = index as usize * HEADER_BYTES;
        &mut self.headers[start..start + HEADER_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xids_lead_back_to_their_slot_and_never_repeat_soon() {
        let mut table = SlotTable::new(48, 0xffff_ff00);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..10_000 {
            let index = table.take().unwrap();
            let slot = table.get_mut(index);
            slot.state = State::Sent;
            slot.transmissions = 1;
            let xid = slot.xid;
            assert!(seen.insert(xid));
            assert_eq!(table.find(xid), Some(index));
            assert_eq!(table.find(xid.wrapping_add(64)), None);
            table.release(index);
            assert_eq!(table.find(xid), None);
        }
        assert_eq!(table.find(63), None, "an index beyond the table");
    }

    #[test]
    fn a_call_that_was_not_sent_has_no_reply() {
        let mut table = SlotTable::new(1, 0);
        let index = table.take().unwrap();
        let xid = table.get(index).xid;
        table.get_mut(index).state = State::Queued;
        assert_eq!(table.find(xid), None);
        assert!(table.take().is_none());
    }
}
