//! Operations in flight. Each operation has a slot and uses pages of the arena.
//!
//! The kernel (or a worker thread) accesses a buffer while its operation is in flight. Two rules
//! make this access sound behind a safe interface. A buffer's range is checked against the arena
//! when the operation starts. [`Flight::bytes`] never returns a page that an operation in flight
//! uses; it counts the users of each page, so that several writes may share a page. The slot also
//! contains the data that is needed to continue a short transfer and to retry an interrupted
//! transfer.

use std::sync::Arc;

use crate::arena::{AlignedBuffer, PAGE_BYTES};
use crate::interrupted::TRIES_MAX;
use crate::op::{PushError, RingOp};

const PAGE_SHIFT: u32 = PAGE_BYTES.trailing_zeros();

/// Direct I/O is at least sector-aligned. If a direct transfer stops inside a sector, it has
/// reached the end of the file.
const SECTOR_BYTES: u32 = 512;

/// Operation in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub op: RingOp,
    pub done_bytes: u32,
    pub tries: u16,
}

/// Effect of a completion on its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionAction {
    /// The operation has ended and its slot is free.
    Done { user_data: u64, result: Result<u32, i32> },
    /// The remaining bytes must be issued again from the same slot.
    Again,
}

/// Slots and arena of one queue.
#[derive(Debug)]
pub(crate) struct Flight {
    arena: Arc<AlignedBuffer>,
    /// For each page: number of operations in flight, at most `slots` ≤ 65,535.
    holders: Box<[u16]>,
    slots: Box<[Slot]>,
    free: Vec<u32>,
    files: u32,
}

impl Flight {
    pub fn new(arena: AlignedBuffer, entries: u32, files: usize) -> Self {
        let entries = entries.clamp(1, u32::from(u16::MAX));
        let idle = RingOp {
            kind: crate::op::OpKind::Flush,
            file: 0,
            offset_bytes: 0,
            size_bytes: 0,
            buffer_offset_bytes: 0,
            user_data: 0,
        };
        let pages = arena.len_bytes().div_ceil(PAGE_BYTES);
        Self {
            arena: Arc::new(arena),
            holders: vec![0; pages].into_boxed_slice(),
            slots: vec![Slot { op: idle, done_bytes: 0, tries: 0 }; entries as usize]
                .into_boxed_slice(),
            free: (0..entries).rev().collect(),
            files: u32::try_from(files).unwrap_or(u32::MAX),
        }
    }

    pub fn arena(&self) -> &Arc<AlignedBuffer> {
        &self.arena
    }

    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Assigns a slot to an operation, and marks its pages as used.
    #[inline]
    pub fn begin(&mut self, op: &RingOp) -> Result<u32, PushError> {
        let (offset_bytes, size_bytes) = (op.buffer_offset_bytes, op.size_bytes);
        if op.file >= self.files {
            return Err(PushError::UnknownFile(op.file));
        }
        let moves = op.kind.moves_bytes();
        if moves {
            let end = offset_bytes.checked_add(u64::from(size_bytes));
            if end.is_none_or(|end| end > self.arena.len_bytes() as u64) {
                return Err(PushError::OutsideArena { offset_bytes, size_bytes });
            }
            let end = op.offset_bytes.checked_add(u64::from(size_bytes));
            if end.is_none_or(|end| end > i64::MAX as u64) {
                let offset_bytes = op.offset_bytes;
                return Err(PushError::OffsetTooLarge { offset_bytes, size_bytes });
            }
        }
        let index = self.free.pop().ok_or(PushError::Full)?;
        let slot = &mut self.slots[index as usize];
        *slot = Slot { op: *op, done_bytes: 0, tries: 0 };
        if moves {
            for holders in self.pages(offset_bytes, size_bytes) {
                *holders += 1;
            }
        } else {
            slot.op.size_bytes = 0;
        }
        Ok(index)
    }

    #[inline]
    fn pages(&mut self, offset_bytes: u64, size_bytes: u32) -> &mut [u16] {
        let first = (offset_bytes >> PAGE_SHIFT) as usize;
        let end = (offset_bytes + u64::from(size_bytes) + (PAGE_BYTES as u64 - 1)) >> PAGE_SHIFT;
        // An empty range uses no page, whatever its offset.
        let end = if size_bytes == 0 { first } else { end as usize };
        &mut self.holders[first.min(end)..end]
    }

    #[inline]
    pub fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    /// Returns the address in the buffer at which the slot's transfer continues.
    #[inline]
    pub fn address(&self, slot: &Slot) -> *mut u8 {
        let at = slot.op.buffer_offset_bytes as usize + slot.done_bytes as usize;
        self.arena.base().as_ptr().wrapping_add(at)
    }

    /// Applies a completion to a slot: transferred bytes, or a negative `errno`.
    #[inline]
    pub fn settle(&mut self, index: u32, answer: i32, direct: bool) -> CompletionAction {
        let slot = &mut self.slots[index as usize];
        let op = slot.op;
        let result = if answer < 0 {
            let retry = matches!(-answer, libc::EINTR | libc::EAGAIN);
            if retry && slot.tries < TRIES_MAX {
                slot.tries += 1;
                return CompletionAction::Again;
            }
            Err(-answer)
        } else {
            slot.done_bytes += answer as u32;
            let short = slot.done_bytes < op.size_bytes && answer > 0;
            if short && (!direct || slot.done_bytes.is_multiple_of(SECTOR_BYTES)) {
                return CompletionAction::Again;
            }
            Ok(slot.done_bytes)
        };
        self.free.push(index);
        if op.kind.moves_bytes() {
            for holders in self.pages(op.buffer_offset_bytes, op.size_bytes) {
                *holders -= 1;
            }
        }
        CompletionAction::Done { user_data: op.user_data, result }
    }

    /// Returns the bytes of a range if it is inside the arena and no operation in flight uses it.
    #[inline]
    pub fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        let end = offset_bytes.checked_add(u64::from(size_bytes))?;
        if end > self.arena.len_bytes() as u64 {
            return None;
        }
        if self.pages(offset_bytes, size_bytes).iter().any(|holders| *holders != 0) {
            return None;
        }
        // SAFETY: the range is inside the arena's mapping, which lives as long as `self`. No
        // operation in flight uses any of these pages, and none can start while `self` is borrowed,
        // so neither the kernel nor a worker thread accesses the range. `&mut self` excludes other
        // borrows.
        Some(unsafe {
            core::slice::from_raw_parts_mut(
                self.arena.base().as_ptr().add(offset_bytes as usize),
                size_bytes as usize,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::OpKind;

    fn op(buffer_offset_bytes: u64, size_bytes: u32) -> RingOp {
        let kind = OpKind::Read;
        RingOp { kind, file: 0, offset_bytes: 0, size_bytes, buffer_offset_bytes, user_data: 9 }
    }

    fn flight() -> Flight {
        Flight::new(AlignedBuffer::new(8 * PAGE_BYTES).unwrap(), 2, 1)
    }

    #[test]
    fn returns_no_page_in_flight() {
        let mut flight = flight();
        assert!(flight.bytes(0, 100).is_some());
        let first = flight.begin(&op(100, 8192)).unwrap();
        let second = flight.begin(&op(0, 50)).unwrap();
        assert!(flight.bytes(4096, 1).is_none() && flight.bytes(8292, 1).is_none());
        assert!(flight.bytes(12288, 4096).is_some());
        assert_eq!(
            flight.settle(first, 8192, false),
            CompletionAction::Done { user_data: 9, result: Ok(8192) }
        );
        assert!(flight.bytes(4096, 1).is_some(), "freed with its operation");
        assert!(flight.bytes(0, 1).is_none(), "the other operation still holds this page");
        flight.settle(second, 0, false);
        assert!(flight.bytes(0, 8 * 4096).is_some());
    }

    #[test]
    fn rejects_ranges_outside_the_arena() {
        let mut flight = flight();
        assert!(matches!(flight.begin(&op(0, 32769)), Err(PushError::OutsideArena { .. })));
        assert!(matches!(flight.begin(&op(u64::MAX, 2)), Err(PushError::OutsideArena { .. })));
        let far = RingOp { offset_bytes: u64::MAX, ..op(0, 1) };
        assert!(matches!(flight.begin(&far), Err(PushError::OffsetTooLarge { .. })));
        let unknown = RingOp { file: 1, ..op(0, 1) };
        assert_eq!(flight.begin(&unknown), Err(PushError::UnknownFile(1)));
        assert!(flight.bytes(32768, 1).is_none() && flight.bytes(u64::MAX, 1).is_none());
        flight.begin(&op(0, 1)).unwrap();
        flight.begin(&op(0, 1)).unwrap();
        assert_eq!(flight.begin(&op(0, 1)), Err(PushError::Full));
        assert_eq!(flight.in_flight(), 2);
    }

    #[test]
    fn continues_short_transfers_and_retries_interrupted_ones() {
        let mut flight = flight();
        let slot = flight.begin(&op(0, 8192)).unwrap();
        assert_eq!(flight.settle(slot, 1024, true), CompletionAction::Again);
        assert_eq!(flight.slot(slot).unwrap().done_bytes, 1024);
        assert_eq!(flight.settle(slot, -libc::EINTR, true), CompletionAction::Again);
        assert_eq!(
            flight.settle(slot, 100, true),
            CompletionAction::Done { user_data: 9, result: Ok(1124) },
            "a direct transfer that stops inside a sector met the end of the file"
        );
        let slot = flight.begin(&op(0, 8192)).unwrap();
        assert_eq!(flight.settle(slot, 100, false), CompletionAction::Again);
        let end = CompletionAction::Done { user_data: 9, result: Ok(100) };
        assert_eq!(flight.settle(slot, 0, false), end);
        let slot = flight.begin(&op(0, 8192)).unwrap();
        for _ in 0..TRIES_MAX {
            assert_eq!(flight.settle(slot, -libc::EAGAIN, false), CompletionAction::Again);
        }
        let end = CompletionAction::Done { user_data: 9, result: Err(libc::EAGAIN) };
        assert_eq!(flight.settle(slot, -libc::EAGAIN, false), end);
    }
}
