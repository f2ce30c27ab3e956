//! A sample of all blocks, whose content is followed and checked in every run.
//!
//! To follow every block takes five bytes of memory for each, and to check every read takes CPU that a
//! generator may need; so both are done where a plan asks for it ([`super::Tracker`]). Of each group of 256
//! consecutive units one, picked by a hash of its place, is followed always. Whatever replaces a share `p` of
//! the data is missed by `n` checks with the chance `(1 - p)^n`: 300 of them find one block in a hundred with
//! 95 %. Which units are in the sample depends on the run, so that no storage can know them.

use std::sync::Arc;

use super::InFlight;
use crate::address::mix;
use crate::content::{Content, ContentError};
use crate::stamp::{DamageCounts, Expected, Finding, Generations, Ticket, Verdict, Verifier};

/// Units of which one is sampled, as a power of two.
const PERIOD_BITS_MAX: u32 = 8;
/// Where operations reach fewer units than this times the period, the period is shorter.
const SAMPLED_MIN: u64 = 64;
/// The generation of a unit that is followed no longer.
const GIVEN_UP: u32 = u32::MAX;

/// Which units are sampled, and what each of them should hold. Shared by all threads.
#[derive(Debug)]
pub struct Sample {
    seed: u64,
    /// Units of a group, as a power of two.
    period_bits: u32,
    units: Box<[u64]>,
    /// By file, one entry a group.
    files: Box<[Generations]>,
}

/// A unit of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Picked {
    group: u64,
    unit: u64,
}

impl Sample {
    /// A sample of files of so many units each, of which operations reach `reached_units` in all. `seed`
    /// picks it.
    #[must_use]
    pub fn new(units: &[u64], reached_units: u64, seed: u64) -> Self {
        let most = (reached_units / SAMPLED_MIN).max(1).ilog2();
        let period_bits = most.min(PERIOD_BITS_MAX);
        let groups = |units: &u64| units.div_ceil(1 << period_bits) as usize;
        Self {
            seed,
            period_bits,
            units: units.into(),
            files: units.iter().map(|units| Generations::new(groups(units))).collect(),
        }
    }

    /// Says that every unit was written once, as after a layout.
    pub fn written_once(&self) {
        self.files.iter().for_each(Generations::written_once);
    }

    /// The sampled unit of a group; the last group of a file may be short.
    #[inline]
    fn picked(&self, file: u32, group: u64) -> Option<Picked> {
        let first = group << self.period_bits;
        let here = self.units.get(file as usize)?.checked_sub(first)?.min(1 << self.period_bits);
        let bits = mix(self.seed ^ (u64::from(file) << 40), group);
        (here > 0).then(|| Picked { group, unit: first + bits % here })
    }

    /// The sampled ones of `units` units from `first` on.
    #[inline]
    fn within(&self, file: u32, first: u64, units: u64) -> impl Iterator<Item = Picked> + '_ {
        let end = first + units;
        let groups = (first >> self.period_bits)..=(end.saturating_sub(1) >> self.period_bits);
        groups
            .filter_map(move |group| self.picked(file, group))
            .filter(move |picked| (first..end).contains(&picked.unit))
    }

    /// Whether a transfer of `units` units from `first` on holds a sampled one.
    #[must_use]
    #[inline]
    pub fn touches(&self, file: u32, first: u64, units: u64) -> bool {
        self.within(file, first, units).next().is_some()
    }

    /// The sampled units that were written more than once, by file and number, at most `most` of them,
    /// spread over all.
    #[must_use]
    pub fn rewritten(&self, most: usize) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        for (file, generations) in (0u32..).zip(&self.files) {
            for group in 0..generations.units() as u64 {
                if (2..GIVEN_UP).contains(&generations.expected(group).generation) {
                    all.extend(self.picked(file, group).map(|picked| (file, picked.unit)));
                }
            }
        }
        let step = all.len().div_ceil(most.max(1)).max(1);
        all.into_iter().step_by(step).collect()
    }
}

/// One sampled unit of an operation in flight.
#[derive(Clone, Copy, Debug)]
struct Entry {
    picked: Picked,
    ticket: Option<Ticket>,
    /// The oldest generation that a read may find.
    oldest: u32,
}

/// What is kept of an operation in flight.
#[derive(Clone, Debug, Default)]
struct Slot {
    file: u32,
    first: u64,
    entries: Vec<Entry>,
}

/// What checks of sampled units came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampled {
    /// Reads that held at least one.
    pub reads: u64,
    /// Units that were checked, by verdict.
    pub counts: DamageCounts,
    /// The first damaged one.
    pub first_finding: Option<Finding>,
}

/// Follows and checks the sampled units of one thread's operations.
#[derive(Debug)]
pub struct Sampler {
    content: Content,
    sample: Arc<Sample>,
    slots: Box<[Slot]>,
    free: Vec<u32>,
    found: Sampled,
}

impl Sampler {
    /// For up to `in_flight_max` operations at once of up to `size_max_bytes` each.
    #[must_use]
    pub fn new(
        content: Content,
        sample: Arc<Sample>,
        in_flight_max: u32,
        size_max_bytes: u32,
    ) -> Self {
        let units_max = (size_max_bytes as usize).div_ceil(content.unit_bytes());
        // No allocation per operation: a transfer touches one group more than it fills.
        let entries_max = (units_max >> sample.period_bits) + 2;
        let slot = || Slot { entries: Vec::with_capacity(entries_max), ..Slot::default() };
        Self {
            content,
            sample,
            slots: (0..in_flight_max).map(|_| slot()).collect(),
            free: (0..in_flight_max).rev().collect(),
            found: Sampled::default(),
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn found(&self) -> Sampled {
        self.found
    }

    /// Counts anew: the measured phase begins. What was damaged before stays.
    pub fn measure_begins(&mut self) {
        self.found.reads = 0;
        self.found.counts.good = 0;
    }

    /// Begins an operation; `None` where it holds no sampled unit.
    #[inline]
    fn begin(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
        begin: impl Fn(&Generations, u64) -> Option<(Option<Ticket>, u32)>,
    ) -> Option<InFlight> {
        let Self { content, sample, slots, free, .. } = self;
        let first = content.first_unit(offset_bytes, size_bytes as usize).ok()?;
        let units = size_bytes as usize / content.unit_bytes();
        let mut picked = sample.within(file, first, units as u64).peekable();
        picked.peek()?;
        let generations = sample.files.get(file as usize)?;
        let slot = free.last().and_then(|number| slots.get_mut(*number as usize));
        let Some(slot) = slot else {
            // More in flight than was said: what a write leaves in these units is not known.
            picked.for_each(|picked| generations.give_up(picked.group));
            return None;
        };
        (slot.file, slot.first) = (file, first);
        slot.entries.clear();
        for picked in picked {
            if let Some((ticket, oldest)) = begin(generations, picked.group) {
                slot.entries.push(Entry { picked, ticket, oldest });
            }
        }
        if slot.entries.is_empty() {
            return None;
        }
        free.pop().map(InFlight::from_number)
    }

    /// Counts a write; `None` where it holds no sampled unit. One that can't be followed, as too many writes
    /// of it are in flight, is followed no longer.
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
            Some((Some(ticket?), 0))
        })
    }

    /// Notes what a read may find; `None` where it holds no sampled unit.
    #[must_use]
    #[inline]
    pub fn begin_read(
        &mut self,
        file: u32,
        offset_bytes: u64,
        size_bytes: u32,
    ) -> Option<InFlight> {
        self.begin(file, offset_bytes, size_bytes, |generations, group| {
            Some((None, generations.expected(group).oldest()))
        })
    }

    /// Fills the buffer of a write: sampled units that were begun with their generation, all others with
    /// `other`.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] when the buffer isn't whole units.
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

    /// Settles a write: acknowledged or failed.
    #[inline]
    pub fn end_write(&mut self, write: InFlight, acknowledged: bool) {
        let Some(slot) = self.slots.get_mut(write.number() as usize) else { return };
        if let Some(generations) = self.sample.files.get(slot.file as usize) {
            for ticket in slot.entries.iter().filter_map(|entry| entry.ticket) {
                if acknowledged { generations.end(ticket) } else { generations.fail(ticket) }
            }
        }
        slot.entries.clear();
        self.free.push(write.number());
    }

    /// Forgets a read that failed.
    pub fn drop_read(&mut self, read: InFlight) {
        if let Some(slot) = self.slots.get_mut(read.number() as usize) {
            slot.entries.clear();
            self.free.push(read.number());
        }
    }

    /// Checks the sampled units of what a read brought, every byte of them. `false` when one is damaged.
    #[must_use]
    pub fn end_read(&mut self, read: InFlight, data: &[u8]) -> bool {
        let Self { content, sample, slots, found, .. } = self;
        let mut good = true;
        if let (Some(slot), Some(verifier)) =
            (slots.get_mut(read.number() as usize), Verifier::new(content, &[]))
        {
            found.reads += 1;
            for entry in &slot.entries {
                let Some(generations) = sample.files.get(slot.file as usize) else { continue };
                good &= check(&verifier, generations, slot, entry, data, found);
            }
        }
        self.drop_read(read);
        good
    }
}

/// Checks one unit.
fn check(
    verifier: &Verifier<'_>,
    generations: &Generations,
    slot: &Slot,
    entry: &Entry,
    data: &[u8],
    found: &mut Sampled,
) -> bool {
    let (Picked { group, unit }, unit_bytes) = (entry.picked, verifier.unit_bytes());
    let at = (unit - slot.first) as usize * unit_bytes;
    let Some(bytes) = data.get(at..at + unit_bytes) else { return true };
    let now = generations.expected(group);
    if now.generation == GIVEN_UP {
        return true;
    }
    let back = now.generation - entry.oldest.min(now.oldest());
    let expected = Expected { back, ..now };
    let mut verdict = Verdict::Good;
    let offset_bytes = unit * unit_bytes as u64;
    let checked =
        verifier.check(slot.file, offset_bytes, bytes, |_| expected, |_, other| verdict = other);
    debug_assert!(checked.is_ok(), "a sampled unit is whole");
    found.counts.add(&verdict);
    match verdict {
        Verdict::Good => {
            if !now.seen {
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
