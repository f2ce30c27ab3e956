//! Slots for calls in flight. A slot contains the state of a call from submission to completion.
//! The state includes the operation, the location of the payload, the encoded header (for
//! retransmission) and times. All slots are allocated at the start.
//!
//! An XID consists of the index of a slot (low bits) and a generation (high bits). The client
//! therefore finds the slot for a reply without a search. It also recognises a reply to an earlier
//! call that used the same slot.

use crate::handle::ServerId;
use crate::op::{Procedure, Stability};

/// Space for an encoded call without payload, in bytes. The longest call is a RENAME with two
/// handles and two names of 255 bytes, which has 848 bytes with the largest credential.
pub(crate) const HEADER_BYTES: usize = 1024;
/// Index that represents no object or no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The slot is free.
    Free,
    /// The call is submitted, but not yet passed to a connection.
    Fresh,
    /// The call is in the send queue of its link.
    Queued,
    /// The call was sent completely, and waits for the reply.
    Sent,
    /// The server requested a retry, which is due at `at_ns`.
    Waiting {
        /// Time of the next attempt, on the monotonic clock.
        until_ns: u64,
    },
    /// The call is delayed, because lost writes to its file are sent again, or because the log has
    /// no space for its data.
    Held,
    /// The call is a COMMIT that waits until lost writes have been sent again.
    Recovering,
}

/// Reason why a call exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The caller submitted the call. It ends with a completion.
    Caller,
    /// The call sends a lost write again for a COMMIT.
    Resend {
        /// Slot of the COMMIT.
        commit: u32,
    },
    /// The call is a COMMIT that frees space in the log of uncommitted writes.
    Room,
}

/// Location of the payload of a WRITE or READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// The payload is in the caller's arena, at this offset.
    Arena(u64),
    /// The payload is in the log of uncommitted writes, at this offset.
    Retained(usize),
}

/// A call.
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
    /// The object of the operation, and the entry of the handle table in which a returned handle is
    /// stored.
    pub object: u32,
    pub into: u32,
    /// Data range that the current call transfers. After a short transfer, another call transfers
    /// the remaining bytes.
    pub offset_bytes: u64,
    pub payload: Payload,
    pub size_bytes: u32,
    pub done_bytes: u32,
    /// Data range of the whole operation.
    pub total_bytes: u32,
    /// Length of the encoded call without payload, including the record mark.
    pub header_bytes: u32,
    /// Number of the write's entry in the log of uncommitted writes.
    pub entry: Option<u64>,
    /// For a COMMIT, its number among the acknowledgements of writes; see [`crate::retain`].
    pub order: u64,
    /// Position in the order of submissions, which retransmissions preserve.
    pub sequence: u64,
    pub submitted_ns: u64,
    pub sent_ns: u64,
    /// Number of times that the call with the current XID was sent: in total, and on the current
    /// connection.
    pub transmissions: u32,
    pub transmissions_on_link: u32,
    pub retransmissions: u32,
    /// For a COMMIT whose lost writes are sent again, the number of repeated writes that have not
    /// completed, and their first error.
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

    /// Returns the bytes of payload after the header on the wire.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        if self.procedure == Procedure::Write { self.size_bytes as usize } else { 0 }
    }

    /// Returns the total number of bytes that a READ or WRITE transfers, including earlier parts.
    #[inline]
    pub fn moves_bytes(&self) -> u64 {
        match self.procedure {
            Procedure::Read | Procedure::Write => u64::from(self.total_bytes),
            _ => 0,
        }
    }

    /// Returns true if the call is queued on a link or waits for its reply.
    pub fn is_on_link(&self) -> bool {
        matches!(self.state, State::Queued | State::Sent)
    }
}

/// Table with all slots of a client.
#[derive(Debug)]
pub(crate) struct SlotTable {
    slots: Box<[Slot]>,
    headers: Box<[u8]>,
    free: Vec<u32>,
    index_bits: u32,
}

impl SlotTable {
    /// Creates `count` slots (at most 2^16). `seed` determines the first XID.
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

    /// Allocates a slot with a new XID. Returns `None` if all slots are in use.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        let index = self.free.pop()?;
        self.renew_xid(index);
        Some(index)
    }

    /// Returns the number of free slots.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Frees a slot. The XID remains in the slot until the slot is used again. A late reply
    /// therefore matches a free slot and is dropped.
    #[inline]
    pub fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        debug_assert_ne!(slot.state, State::Free);
        slot.state = State::Free;
        slot.transmissions = 0;
        self.free.push(index);
    }

    /// Assigns a new XID to a slot, because its next transmission is a new call and not a
    /// retransmission.
    #[inline]
    pub fn renew_xid(&mut self, index: u32) {
        let step = 1u32 << self.index_bits;
        let slot = &mut self.slots[index as usize];
        slot.xid = slot.xid.wrapping_add(step);
        slot.transmissions = 0;
        slot.transmissions_on_link = 0;
    }

    /// Returns the slot whose call has this XID and waits for its reply.
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

    /// Returns the indices of all slots.
    pub fn indices(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    #[inline]
    pub fn header(&self, index: u32) -> &[u8] {
        let start = index as usize * HEADER_BYTES;
        &self.headers[start..start + HEADER_BYTES]
    }

    /// Returns a slot and the buffer for its encoded header.
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
