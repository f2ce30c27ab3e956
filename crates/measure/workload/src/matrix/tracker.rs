//! Generates the content of writes, and checks the content that reads return.
//!
//! The generation of a unit increases when a write starts. The content of the unit is then
//! uncertain until the write completes. When a read starts, the oldest possible generation of each
//! unit is recorded. When the read completes, a unit is correct if it has this generation, the
//! newest generation that was started, or any generation between them. Reads can therefore be
//! checked while writes are in flight.

use std::sync::Arc;

use super::{InFlight, Sample};
use crate::content::{Content, ContentError};
use crate::stamp::{DamageCounts, Finding, Generations, ReadStart, Ticket, Verdict, Verifier};

/// Location of an operation in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    file: u32,
    offset_bytes: u64,
    units: usize,
}

/// Generates and checks the content of one thread's operations. All threads share the generations
/// of the units.
#[derive(Debug)]
pub struct Tracker {
    content: Content,
    files: Arc<[Generations]>,
    slots: Box<[Slot]>,
    free: Vec<u32>,
    /// For each slot: the tickets of its write, with one ticket for each unit.
    tickets: Box<[Option<Ticket>]>,
    /// For each slot: the state that each unit had when the slot's read started.
    starts: Box<[ReadStart]>,
    units_max: usize,
    /// Number of writes that were not tracked. The generation of such a write is this number.
    untracked_writes: u32,
    counts: DamageCounts,
    first_finding: Option<Finding>,
}

impl Tracker {
    /// Creates a tracker. Up to `in_flight_max` operations may be in flight, and each may have up
    /// to `size_max_bytes` bytes. `files` contains the generations of the files, in the order of
    /// the file table.
    #[must_use]
    pub fn new(
        content: Content,
        files: Arc<[Generations]>,
        in_flight_max: u32,
        size_max_bytes: u32,
    ) -> Self {
        let units_max = (size_max_bytes as usize).div_ceil(content.unit_bytes());
        let all = in_flight_max as usize * units_max;
        Self {
            content,
            files,
            slots: vec![Slot::default(); in_flight_max as usize].into(),
            free: (0..in_flight_max).rev().collect(),
            tickets: vec![None; all].into(),
            starts: vec![ReadStart::default(); all].into(),
            units_max,
            untracked_writes: 0,
            counts: DamageCounts::default(),
            first_finding: None,
        }
    }

    /// Returns the counts for all reads that have completed.
    #[must_use]
    pub fn counts(&self) -> DamageCounts {
        self.counts
    }

    /// Returns the first damaged unit that was detected; `None` if no damage was detected.
    #[must_use]
    pub fn first_finding(&self) -> Option<Finding> {
        self.first_finding
    }

    /// Allocates a slot for a transfer. Returns `None` if all slots are in use, or if the transfer
    /// is not a multiple of the unit size.
    fn take(&mut self, file: u32, offset_bytes: u64, size_bytes: u32) -> Option<(u32, u64)> {
        let size = size_bytes as usize;
        let first = self.content.first_unit(offset_bytes, size).ok()?;
        let units = size / self.content.unit_bytes();
        if units > self.units_max || file as usize >= self.files.len() {
            return None;
        }
        let number = self.free.pop()?;
        self.slots[number as usize] = Slot { file, offset_bytes, units };
        Some((number, first))
    }

    /// Records the start of a write. If the write cannot be tracked, returns `None` and stops
    /// tracking its units. This happens if too many writes are in flight (in total, or 14 on one
    /// unit). It also happens if the write does not consist of whole units of a known file.
    #[must_use]
    #[inline]
    pub fn begin_write(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
    ) -> Option<InFlight> {
        let begun = self.begin_tracked(file, offset_bytes, size_bytes);
        if begun.is_none() {
            self.give_up(file, offset_bytes, size_bytes);
        }
        begun
    }

    /// Stops tracking the units that a transfer contains.
    #[cold]
    fn give_up(&self, file: u32, offset_bytes: u64, size_bytes: u32) {
        let unit_bytes = self.content.unit_bytes() as u64;
        let end = (offset_bytes + u64::from(size_bytes)).div_ceil(unit_bytes);
        if let Some(generations) = self.files.get(file as usize) {
            (offset_bytes / unit_bytes..end).for_each(|unit| generations.give_up(unit));
        }
    }

    fn begin_tracked(&mut self, file: u32, offset_bytes: u64, size_bytes: u32) -> Option<InFlight> {
        let (number, first) = self.take(file, offset_bytes, size_bytes)?;
        let base = number as usize * self.units_max;
        let units = self.slots[number as usize].units;
        for i in 0..units {
            let ticket = self.files[file as usize].begin(first + i as u64);
            self.tickets[base + i] = ticket;
            if ticket.is_none() {
                // For the units before this unit, a write was already recorded, but it is never
                // issued. An older generation may have the same content as this write. The content
                // of these units therefore stays uncertain until their next write.
                self.slots[number as usize].units = i;
                self.end_write(InFlight::from_number(number), false);
                return None;
            }
        }
        Some(InFlight::from_number(number))
    }

    /// Fills the buffer of a write that is not tracked.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the buffer is not a multiple of the unit size.
    pub fn fill_untracked(
        &mut self,
        file: u32,
        offset_bytes: u64,
        out: &mut [u8],
    ) -> Result<(), ContentError> {
        self.untracked_writes = self.untracked_writes.wrapping_add(1).max(1);
        let generation = self.untracked_writes;
        self.content.fill(file, offset_bytes, |_| generation, out)
    }

    /// Fills the buffer of a write whose start was recorded.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the buffer is not a multiple of the unit size.
    #[inline]
    pub fn fill(&self, write: InFlight, out: &mut [u8]) -> Result<(), ContentError> {
        let Some(slot) = self.slots.get(write.0 as usize) else { return Ok(()) };
        let base = write.0 as usize * self.units_max;
        let mut tickets = self.tickets[base..base + slot.units].iter();
        let generation = |_| tickets.next().copied().flatten().map_or(0, |t| t.generation);
        self.content.fill(slot.file, slot.offset_bytes, generation, out)
    }

    /// Records the end of a write. The write was acknowledged, or it failed.
    #[inline]
    pub fn end_write(&mut self, write: InFlight, acknowledged: bool) {
        let Some(slot) = self.slots.get(write.0 as usize).copied() else { return };
        let base = write.0 as usize * self.units_max;
        for ticket in &mut self.tickets[base..base + slot.units] {
            let generations = &self.files[slot.file as usize];
            match ticket.take() {
                Some(ticket) if acknowledged => generations.end(ticket),
                Some(ticket) => generations.fail(ticket),
                None => {}
            }
        }
        self.release(write);
    }

    fn release(&mut self, op: InFlight) {
        self.slots[op.0 as usize].units = 0;
        self.free.push(op.0);
    }

    /// Records which generations a read may return. Returns `None` if the read cannot be tracked,
    /// for the reasons in [`Tracker::begin_write`]. The read is then not checked.
    #[must_use]
    #[inline]
    pub fn begin_read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
    ) -> Option<InFlight> {
        let (number, first) = self.take(file, offset_bytes, size_bytes)?;
        let base = number as usize * self.units_max;
        for i in 0..self.slots[number as usize].units {
            let expected = self.files[file as usize].expected(first + i as u64);
            self.starts[base + i] = expected.read_start();
        }
        Some(InFlight::from_number(number))
    }

    /// Discards a read that has failed.
    pub fn drop_read(&mut self, read: InFlight) {
        if (read.0 as usize) < self.slots.len() {
            self.release(read);
        }
    }

    /// Checks every byte that a read returned. Returns `false` if a unit is damaged; see
    /// [`Tracker::counts`] and [`Tracker::first_finding`]. If the content has no stamps, it is not
    /// checked.
    #[must_use]
    pub fn end_read(&mut self, read: InFlight, data: &[u8]) -> bool {
        self.end_parts(read, data, |slot, first| std::iter::once((first, slot.units as u64)))
    }

    /// Does the same as [`Tracker::end_read`], but checks only the sampled units. Checking all
    /// bytes of a large read would take more CPU time than the read itself.
    #[must_use]
    pub fn end_sampled_read(&mut self, read: InFlight, data: &[u8], sample: &Sample) -> bool {
        self.end_parts(read, data, |slot, first| {
            sample.units_within(slot.file, first, slot.units as u64).map(|unit| (unit, 1))
        })
    }

    /// Checks some of the units that a read returned. Each range consists of the number of its
    /// first unit and its number of units.
    fn end_parts<P: Iterator<Item = (u64, u64)>>(
        &mut self,
        read: InFlight,
        data: &[u8],
        parts: impl FnOnce(Slot, u64) -> P,
    ) -> bool {
        let Some(slot) = self.slots.get(read.0 as usize).copied() else { return true };
        let base = read.0 as usize * self.units_max;
        let Some(verifier) = Verifier::new(&self.content, &[]) else {
            self.release(read);
            return true;
        };
        let unit_bytes = self.content.unit_bytes() as u64;
        let first = slot.offset_bytes / unit_bytes;
        let generations = &self.files[slot.file as usize];
        let starts = &self.starts[base..base + slot.units];
        let start = |unit: u64| starts.get((unit - first) as usize).copied().unwrap_or_default();
        let expected = |unit: u64| start(unit).expected(generations.expected(unit));
        let (mut all, mut found, mut is_good) = (DamageCounts::default(), None, true);
        for (from, units) in parts(slot, first) {
            let mut counts = DamageCounts::default();
            let note = |unit, verdict| {
                counts.add(&verdict);
                if let Verdict::Damaged(damage) = verdict {
                    let offset_bytes = unit * unit_bytes;
                    let (target, expected) = (slot.file, expected(unit));
                    found.get_or_insert(Finding { target, offset_bytes, expected, damage });
                }
            };
            let at = ((from - first) * unit_bytes) as usize;
            let bytes = data.get(at..at + (units * unit_bytes) as usize).unwrap_or(data);
            let good = verifier.check(slot.file, from * unit_bytes, bytes, expected, note);
            counts.good = good.unwrap_or(0);
            if counts.good == units {
                for unit in from..from + units {
                    let now = generations.expected(unit);
                    if !now.seen && start(unit).was_alone(now) {
                        generations.saw(unit, now.generation);
                    }
                }
            }
            is_good &= good.is_ok() && counts.damaged() == 0;
            all.merge(&counts);
        }
        self.counts.merge(&all);
        self.first_finding = self.first_finding.or(found);
        self.release(read);
        is_good
    }
}

#[cfg(test)]
mod tests;
