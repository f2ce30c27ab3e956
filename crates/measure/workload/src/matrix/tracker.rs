//! Generates the content of writes, and checks reads.
//!
//! The generation of a unit increases when a write starts. The content of the unit is then
//! uncertain until the write completes. When a read is issued, the oldest possible generation of
//! each unit is recorded. When the read completes, this generation, the newest generation that was
//! started, and all between them are correct. Reads can therefore be checked while writes are in
//! flight.

use std::sync::Arc;

use super::{InFlight, Sample};
use crate::content::{Content, ContentError};
use crate::stamp::{DamageCounts, Finding, Generations, ReadStart, Ticket, Verdict, Verifier};

/// State of an operation in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    file: u32,
    offset_bytes: u64,
    units: usize,
}

/// Generates and checks the content of one thread's operations. All threads share the generations.
#[derive(Debug)]
pub struct Tracker {
    content: Content,
    files: Arc<[Generations]>,
    slots: Box<[Slot]>,
    free: Vec<u32>,
    /// For each slot: the tickets of a write, one for each unit.
    tickets: Box<[Option<Ticket>]>,
    /// For each slot: the state of each unit at the start of a read.
    starts: Box<[ReadStart]>,
    units_max: usize,
    /// Number of untracked writes. An untracked write uses the current number as its generation.
    untracked_writes: u32,
    counts: DamageCounts,
    first_finding: Option<Finding>,
}

impl Tracker {
    /// Creates a tracker for up to `in_flight_max` concurrent operations of up to `size_max_bytes`
    /// each. `files` contains the generations of the files, in the order of the file table.
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

    /// Returns the results of all completed reads.
    #[must_use]
    pub fn counts(&self) -> DamageCounts {
        self.counts
    }

    /// Returns the first damaged unit, if any.
    #[must_use]
    pub fn first_finding(&self) -> Option<Finding> {
        self.first_finding
    }

    /// Allocates a slot for a transfer. Returns `None` if all slots are in use, or if the transfer
    /// does not consist of whole units.
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

    /// Records the start of a write. Returns `None`, and stops tracking the units, if the write
    /// cannot be tracked. This happens if too many writes are in flight (in total, or 14 on one
    /// unit), or if the write does not consist of whole units of a known file.
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

    /// Stops tracking the units of a transfer.
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
                // For the preceding units, a write was already recorded, but it is never issued. An
                // older generation may have the same content as this write, so the content of these
                // units stays uncertain until the next write.
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
    /// [`ContentError::Misaligned`] if the buffer does not consist of whole units.
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

    /// Fills the buffer of a started write.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the buffer does not consist of whole units.
    #[inline]
    pub fn fill(&self, write: InFlight, out: &mut [u8]) -> Result<(), ContentError> {
        let Some(slot) = self.slots.get(write.0 as usize) else { return Ok(()) };
        let base = write.0 as usize * self.units_max;
        let mut tickets = self.tickets[base..base + slot.units].iter();
        let generation = |_| tickets.next().copied().flatten().map_or(0, |t| t.generation);
        self.content.fill(slot.file, slot.offset_bytes, generation, out)
    }

    /// Records the end of a write, which was acknowledged or failed.
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

    /// Records the generations that a read may return. Returns `None` if the read cannot be tracked
    /// (see [`Tracker::begin_write`]); it is then not checked.
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

    /// Discards a read that failed.
    pub fn drop_read(&mut self, read: InFlight) {
        if (read.0 as usize) < self.slots.len() {
            self.release(read);
        }
    }

    /// Checks every byte of a read. Returns `false` if a unit is damaged; see [`Tracker::counts`]
    /// and [`Tracker::first_finding`]. Content without stamps is not checked.
    #[must_use]
    pub fn end_read(&mut self, read: InFlight, data: &[u8]) -> bool {
        self.end_parts(read, data, |slot, first| std::iter::once((first, slot.units as u64)))
    }

    /// Like [`Tracker::end_read`], but checks only sampled units, because a check of a whole large
    /// read takes more CPU time than the read itself.
    #[must_use]
    pub fn end_sampled_read(&mut self, read: InFlight, data: &[u8], sample: &Sample) -> bool {
        self.end_parts(read, data, |slot, first| {
            sample.units_within(slot.file, first, slot.units as u64).map(|unit| (unit, 1))
        })
    }

    /// Checks ranges of the units of a read. A range consists of its first unit and its number of
    /// units.
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
