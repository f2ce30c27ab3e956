//! Sample of the blocks. Every run tracks and checks the content of the blocks in the sample.
//!
//! Tracking a block takes five bytes of memory, and checking every read takes CPU time that the
//! generator may need for its load. Tracking and checking of all blocks is therefore optional
//! ([`super::Tracker`]). However, one unit in each group of 256 consecutive units is always
//! tracked. A hash of its address selects this unit. If a share `p` of the data is damaged, `n`
//! checks all miss the damage with a probability of `(1 - p)^n`. For example, if one block in a
//! hundred is damaged, 300 checks detect the damage with a probability of 95 %. Every run has a
//! different sample, which the storage cannot predict.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::InFlight;
use crate::address::mix;
use crate::content::{Content, ContentError};
use crate::stamp::{DamageCounts, Finding, Generations, ReadStart, Ticket, Verdict, Verifier};

/// Maximum number of units in a group, as a power of two. Each group contains one sampled unit.
const PERIOD_BITS_MAX: u32 = 8;
/// Minimum number of units that the sample should contain. If operations access fewer units than
/// this number of groups contains, the groups become smaller.
const SAMPLED_MIN: u64 = 64;

/// The sampled units and their expected content. All threads share one sample.
#[derive(Debug)]
pub struct Sample {
    seed: u64,
    /// Number of units in each group, as a power of two.
    period_bits: u32,
    /// For each file: the number of its first unit. The units of all files are numbered
    /// consecutively. The last entry is the total number of units.
    first_units: Box<[u64]>,
    /// Generation of the sampled unit in each group.
    generations: Generations,
    /// True if the layout wrote every unit. In this case, the first write of each unit was before
    /// the run.
    laid_out: AtomicBool,
}

/// A unit of the sample. It is identified by its group and by its number in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampledUnit {
    group: u64,
    unit: u64,
}

impl Sample {
    /// Creates a sample of the units of several files. `units` contains the number of units of each
    /// file. Operations access `reached_units` units in total. The sample is selected with `seed`.
    #[must_use]
    pub fn new(units: impl Iterator<Item = u64>, reached_units: u64, seed: u64) -> Self {
        let period_bits = (reached_units / SAMPLED_MIN).max(1).ilog2().min(PERIOD_BITS_MAX);
        let mut first_units = vec![0];
        let mut all = 0u64;
        for units in units {
            all = all.saturating_add(units);
            first_units.push(all);
        }
        let generations = Generations::new(all.div_ceil(1 << period_bits) as usize);
        let laid_out = AtomicBool::new(false);
        Self { seed, period_bits, first_units: first_units.into(), generations, laid_out }
    }

    /// Records that every unit was written once, which is the state after a layout.
    pub fn written_once(&self) {
        self.generations.written_once();
        self.laid_out.store(true, Ordering::Relaxed);
    }

    /// Returns the number of the unit that is sampled in a group. The units of all files are
    /// numbered consecutively. The last group may be so short that it does not contain this unit.
    #[inline]
    fn picked(&self, group: u64) -> u64 {
        let within = mix(self.seed, group) & ((1 << self.period_bits) - 1);
        (group << self.period_bits) + within
    }

    /// Returns the sampled units in a range of a file. The range starts with unit `first` and
    /// contains `units` units.
    #[inline]
    fn within(&self, file: u32, first: u64, units: u64) -> impl Iterator<Item = SampledUnit> + '_ {
        let bounds = self.first_units.get(file as usize..file as usize + 2);
        let (file_first, file_end) = bounds.map_or((0, 0), |bounds| (bounds[0], bounds[1]));
        let range = file_first + first..(file_first + first + units).min(file_end);
        let last_group = range.end.saturating_sub(1) >> self.period_bits;
        let groups = range.start >> self.period_bits..=last_group;
        groups.filter_map(move |group| {
            let picked = self.picked(group);
            range.contains(&picked).then(|| SampledUnit { group, unit: picked - file_first })
        })
    }

    /// Returns the numbers of the sampled units that a transfer touches. The transfer starts with
    /// unit `first` of the file and has `units` units.
    pub fn units_within(
        &self,
        file: u32,
        first: u64,
        units: u64,
    ) -> impl Iterator<Item = u64> + '_ {
        self.within(file, first, units).map(|picked| picked.unit)
    }

    /// Returns true if a transfer contains a sampled unit. The first unit of the transfer is
    /// `first`, and the transfer has `units` units.
    #[must_use]
    #[inline]
    pub fn touches(&self, file: u32, first: u64, units: u64) -> bool {
        self.within(file, first, units).next().is_some()
    }

    /// Returns the sampled units that were written after the layout. Each result consists of a file
    /// and a unit number. If there are more than `most` such units, returns an evenly distributed
    /// selection.
    #[must_use]
    pub fn written(&self, most: usize) -> Vec<(u32, u64)> {
        let first = if self.laid_out.load(Ordering::Relaxed) { 2 } else { 1 };
        let end = self.first_units.last().copied().unwrap_or(0);
        let groups = 0..self.generations.units() as u64;
        let all: Vec<u64> = groups
            .filter(|group| self.generations.expected(*group).generation >= first)
            .map(|group| self.picked(group))
            .filter(|unit| *unit < end)
            .collect();
        let step = all.len().div_ceil(most.max(1)).max(1);
        let place = |unit: u64| {
            let file = self.first_units.partition_point(|first| *first <= unit) - 1;
            (file as u32, unit - self.first_units[file])
        };
        all.into_iter().step_by(step).map(place).collect()
    }
}

/// Sampled unit that an operation in flight reads or writes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    picked: SampledUnit,
    ticket: Option<Ticket>,
    /// For a read: state of the unit when the read started.
    start: ReadStart,
}

/// State of an operation in flight.
#[derive(Clone, Debug, Default)]
struct Slot {
    file: u32,
    first: u64,
    entries: Vec<Entry>,
}

/// Results of checking the sampled units.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleCounts {
    /// Number of reads that contained at least one sampled unit.
    pub reads: u64,
    /// Number of checked units, counted by verdict.
    pub counts: DamageCounts,
    /// First damaged unit that was detected; `None` if no damage was detected.
    pub first_finding: Option<Finding>,
}

/// Tracks and checks the sampled units in the operations of one thread.
#[derive(Debug)]
pub struct Sampler {
    content: Content,
    sample: Arc<Sample>,
    slots: Box<[Slot]>,
    free: Vec<u32>,
    found: SampleCounts,
}

impl Sampler {
    /// Creates a sampler. Up to `in_flight_max` operations may be in flight, and each may have up
    /// to `size_max_bytes` bytes.
    #[must_use]
    pub fn new(
        content: Content,
        sample: Arc<Sample>,
        in_flight_max: u32,
        size_max_bytes: u32,
    ) -> Self {
        let units_max = (size_max_bytes as usize).div_ceil(content.unit_bytes());
        // With this capacity, an operation needs no memory allocation. A transfer can touch one
        // group more than the number of groups that it fills.
        let entries_max = (units_max >> sample.period_bits) + 2;
        let slot = || Slot { entries: Vec::with_capacity(entries_max), ..Slot::default() };
        Self {
            content,
            sample,
            slots: (0..in_flight_max).map(|_| slot()).collect(),
            free: (0..in_flight_max).rev().collect(),
            found: SampleCounts::default(),
        }
    }

    /// Returns the results of all checks so far.
    #[must_use]
    pub fn found(&self) -> SampleCounts {
        self.found
    }

    /// Resets the counts when the measured phase starts. Damage that was detected earlier stays
    /// recorded.
    pub fn measure_begins(&mut self) {
        self.found.reads = 0;
        self.found.counts.good = 0;
    }

    /// Starts an operation. Returns `None` if the operation contains no sampled unit.
    #[inline]
    fn begin(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
        begin: impl Fn(&Generations, u64) -> Option<(Option<Ticket>, ReadStart)>,
    ) -> Option<InFlight> {
        let Self { content, sample, slots, free, .. } = self;
        let first = content.first_unit(offset_bytes, size_bytes as usize).ok()?;
        let units = size_bytes as usize / content.unit_bytes();
        let mut picked = sample.within(file, first, units as u64).peekable();
        picked.peek()?;
        let generations = &sample.generations;
        let slot = free.last().and_then(|number| slots.get_mut(*number as usize));
        let Some(slot) = slot else {
            // More operations are in flight than `in_flight_max` permits. The content of these
            // units after the write is therefore unknown.
            picked.for_each(|picked| generations.give_up(picked.group));
            return None;
        };
        (slot.file, slot.first) = (file, first);
        slot.entries.clear();
        for picked in picked {
            if let Some((ticket, start)) = begin(generations, picked.group) {
                slot.entries.push(Entry { picked, ticket, start });
            }
        }
        if slot.entries.is_empty() {
            return None;
        }
        free.pop().map(InFlight::from_number)
    }

    /// Records the start of a write. Returns `None` if the write contains no sampled unit. If a
    /// unit has too many writes in flight, the unit is no longer tracked.
    #[must_use]
    #[inline]
    pub fn begin_write(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
    ) -> Option<InFlight> {
        self.begin(file, offset_bytes, size_bytes, |generations, group| {
            let ticket = generations.begin(group);
            if ticket.is_none() {
                generations.give_up(group);
            }
            Some((Some(ticket?), ReadStart::default()))
        })
    }

    /// Records which generations a read may return. Returns `None` if the read contains no sampled
    /// unit.
    #[must_use]
    #[inline]
    pub fn begin_read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
    ) -> Option<InFlight> {
        self.begin(file, offset_bytes, size_bytes, |generations, group| {
            Some((None, generations.expected(group).read_start()))
        })
    }

    /// Fills the buffer of a write. Sampled units that are tracked in this write get their own
    /// generation. All other units get the generation `other`.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the buffer is not a multiple of the unit size.
    #[inline]
    pub fn fill(&self, write: InFlight, other: u32, out: &mut [u8]) -> Result<(), ContentError> {
        let Some(slot) = self.slots.get(write.number() as usize) else { return Ok(()) };
        let offset_bytes = slot.first * self.content.unit_bytes() as u64;
        let mut entries = slot.entries.iter().peekable();
        let generation = |unit| {
            let entry = entries.next_if(|entry| entry.picked.unit == unit);
            entry.and_then(|entry| entry.ticket).map_or(other, |ticket| ticket.generation)
        };
        self.content.fill(slot.file, offset_bytes, generation, out)
    }

    /// Records the end of a write. The write was acknowledged, or it failed.
    #[inline]
    pub fn end_write(&mut self, write: InFlight, acknowledged: bool) {
        let Some(slot) = self.slots.get_mut(write.number() as usize) else { return };
        let generations = &self.sample.generations;
        for ticket in slot.entries.iter().filter_map(|entry| entry.ticket) {
            if acknowledged { generations.end(ticket) } else { generations.fail(ticket) }
        }
        slot.entries.clear();
        self.free.push(write.number());
    }

    /// Discards a read that has failed.
    pub fn drop_read(&mut self, read: InFlight) {
        if let Some(slot) = self.slots.get_mut(read.number() as usize) {
            slot.entries.clear();
            self.free.push(read.number());
        }
    }

    /// Checks every byte of the sampled units in the data that a read returned. Returns `false` if
    /// a unit is damaged.
    #[must_use]
    pub fn end_read(&mut self, read: InFlight, data: &[u8]) -> bool {
        let Self { content, sample, slots, found, .. } = self;
        let mut good = true;
        if let (Some(slot), Some(verifier)) =
            (slots.get_mut(read.number() as usize), Verifier::new(content, &[]))
        {
            found.reads += 1;
            for entry in &slot.entries {
                good &= check(&verifier, &sample.generations, slot, entry, data, found);
            }
        }
        self.drop_read(read);
        good
    }
}

/// Checks one sampled unit in the data that a read returned.
fn check(
    verifier: &Verifier<'_>,
    generations: &Generations,
    slot: &Slot,
    entry: &Entry,
    data: &[u8],
    found: &mut SampleCounts,
) -> bool {
    let (SampledUnit { group, unit }, unit_bytes) = (entry.picked, verifier.unit_bytes());
    let at = (unit - slot.first) as usize * unit_bytes;
    let Some(bytes) = data.get(at..at + unit_bytes) else { return true };
    let now = generations.expected(group);
    let expected = entry.start.expected(now);
    let mut verdict = Verdict::Good;
    let offset_bytes = unit * unit_bytes as u64;
    let checked =
        verifier.check(slot.file, offset_bytes, bytes, |_| expected, |_, other| verdict = other);
    debug_assert!(checked.is_ok(), "a sampled unit is whole");
    found.counts.add(&verdict);
    match verdict {
        Verdict::Good => {
            if !now.seen && entry.start.was_alone(now) {
                generations.saw(group, now.generation);
            }
            true
        }
        Verdict::Damaged(damage) => {
            let finding = Finding { target: slot.file, offset_bytes, expected, damage };
            found.first_finding.get_or_insert(finding);
            false
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
