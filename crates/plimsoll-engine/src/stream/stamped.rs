//! A mix whose writes carry made content, and whose reads can be checked against what was written.
//!
//! Without [`Generations`] every write gets a number of its own as its generation, so that nothing is
//! ever written twice. With them, a unit's generation counts its writes, and every unit of a read is
//! compared with what it should hold, to the bit. A read that overlapped a write may have seen either:
//! what was expected is noted when the read starts, and again when it has ended.

use std::sync::Arc;

use plimsoll_sys::op::OpKind;
use plimsoll_workload::address::AddressError;
use plimsoll_workload::content::{Content, ContentError};
use plimsoll_workload::stamp::{
    Damage, DamageCounts, Expected, Finding, Generations, Ticket, Verdict, Verifier,
};

use super::mix::{CLASS_READ, Mix, MixConfig};
use super::source::{Op, Source, Wants};

/// Findings that are kept; all are counted.
const FINDINGS_MAX: usize = 64;

/// How often another place is looked for where a write can't be begun.
const ELSEWHERE_MAX: u32 = 16;

/// Content and what is known of it.
#[derive(Clone, Debug)]
pub struct Contents {
    /// What is written. Its targets are the files of the table.
    pub content: Arc<Content>,
    /// What each file's units should hold, by file; empty where it isn't tracked.
    pub generations: Arc<[Generations]>,
    /// Check what is read. Needs stamps and generations.
    pub verify: bool,
    /// Numbers of earlier runs that wrote to the same files.
    pub earlier_runs: Arc<[u64]>,
}

impl Contents {
    /// Content that isn't tracked.
    #[must_use]
    pub fn untracked(content: Content) -> Self {
        Self {
            content: Arc::new(content),
            generations: Arc::new([]),
            verify: false,
            earlier_runs: Arc::new([]),
        }
    }

    /// Whether every operation of `config` is whole units, and tracked where anything is.
    fn check(&self, config: &MixConfig) -> Result<(), StreamError> {
        let sizes = config.sizes.iter().chain(&config.write_sizes).map(|size| size.size_bytes);
        for size_bytes in sizes {
            self.content.first_unit(config.align_bytes, size_bytes as usize)?;
        }
        if self.verify && !self.content.has_stamps() {
            return Err(StreamError::NoStamps);
        }
        for region in &config.regions {
            self.content.first_unit(region.offset_bytes, 0)?;
            let end = (region.offset_bytes + region.size_bytes) / self.content.unit_bytes() as u64;
            let tracked = self.generations.get(region.file as usize).map(Generations::units);
            let enough = tracked.is_some_and(|units| units as u64 >= end);
            if !enough && (self.verify || !self.generations.is_empty()) {
                return Err(StreamError::Untracked { file: region.file, units: end });
            }
        }
        Ok(())
    }
}

/// Why a stream can't be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StreamError {
    /// Its operations don't fit.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Its content can't be made.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// Reads are to be checked, and nothing is stamped.
    #[error("reads can't be checked without stamps: switch stamps on, or the checks off")]
    NoStamps,
    /// Generations are tracked, but not for all that the operations reach.
    #[error("the generations of {units} units of file {file} must be tracked, and aren't")]
    Untracked {
        /// The file.
        file: u32,
        /// Units that operations reach.
        units: u64,
    },
}

/// An operation in flight: what it writes, or what was expected when it started.
#[derive(Debug)]
struct Flight {
    tickets: Vec<Ticket>,
    expected: Vec<Expected>,
}

/// See the module.
#[derive(Debug)]
pub struct Stamped {
    mix: Mix,
    class_read: u16,
    contents: Contents,
    flights: Vec<Flight>,
    free: Vec<u32>,
    /// Writes so far, where generations aren't tracked.
    writes: u32,
    counts: DamageCounts,
    findings: Vec<Finding>,
}

/// What the checks of a stream came to.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Units by verdict.
    pub counts: DamageCounts,
    /// The first damaged units.
    pub findings: Vec<Finding>,
}

impl Stamped {
    /// The operations of `config` with `contents`, at most `places` of them in flight.
    ///
    /// # Errors
    /// A [`StreamError`] where transfers don't fit their regions, aren't whole units, or reach units
    /// whose generations aren't tracked.
    pub fn new(config: &MixConfig, contents: Contents, places: u32) -> Result<Self, StreamError> {
        let mix = Mix::new(config)?;
        contents.check(config)?;
        let units = config.size_bytes_max() as usize / contents.content.unit_bytes() + 1;
        let tracked = !contents.generations.is_empty();
        let (tickets, checks) =
            (if tracked { units } else { 0 }, if contents.verify { units } else { 0 });
        let flight = || Flight {
            tickets: Vec::with_capacity(tickets),
            expected: Vec::with_capacity(checks),
        };
        Ok(Self {
            class_read: config.class_first + CLASS_READ,
            mix,
            contents,
            flights: (0..places).map(|_| flight()).collect(),
            free: (0..places).rev().collect(),
            writes: 0,
            counts: DamageCounts::default(),
            findings: Vec::with_capacity(FINDINGS_MAX),
        })
    }

    /// What the checks have come to so far.
    #[must_use]
    pub fn checks(&self) -> Checks {
        Checks { counts: self.counts, findings: self.findings.clone() }
    }

    fn units_of(&self, op: &Op) -> std::ops::Range<u64> {
        let unit_bytes = self.contents.content.unit_bytes() as u64;
        let first = op.offset_bytes / unit_bytes;
        first..first + u64::from(op.size_bytes) / unit_bytes
    }

    /// Begins the write of every unit of `op`. `false` where one can't be begun.
    fn begin(&mut self, op: &Op, flight: u32) -> bool {
        let units = self.units_of(op);
        let Some(generations) = self.contents.generations.get(op.file as usize) else {
            return false;
        };
        let tickets = &mut self.flights[flight as usize].tickets;
        tickets.clear();
        for unit in units {
            if let Some(ticket) = generations.begin(unit) {
                tickets.push(ticket);
            } else {
                for ticket in tickets.drain(..) {
                    generations.fail(ticket);
                }
                return false;
            }
        }
        true
    }

    fn expect(&mut self, op: &Op, flight: u32) {
        let units = self.units_of(op);
        let expected = &mut self.flights[flight as usize].expected;
        expected.clear();
        if let Some(generations) = self.contents.generations.get(op.file as usize) {
            expected.extend(units.map(|unit| generations.expected(unit)));
        }
    }

    fn end_write(&mut self, op: &Op, acknowledged: bool) {
        let Some(flight) = self.flights.get_mut(op.tag as usize) else { return };
        let Some(generations) = self.contents.generations.get(op.file as usize) else { return };
        for ticket in flight.tickets.drain(..) {
            if acknowledged {
                generations.end(ticket);
            } else {
                generations.fail(ticket);
            }
        }
    }

    /// Checks what was read and returns whether none of it is damaged.
    fn check(&mut self, op: &Op, buffer: &[u8]) -> bool {
        let Self { contents, flights, counts, findings, .. } = self;
        let Some(verifier) = Verifier::new(&contents.content, &contents.earlier_runs) else {
            return true;
        };
        let Some(generations) = contents.generations.get(op.file as usize) else { return true };
        let Some(flight) = flights.get(op.tag as usize) else { return true };
        let unit_bytes = contents.content.unit_bytes() as u64;
        let first = op.offset_bytes / unit_bytes;
        let expected = |unit: u64| {
            let before = flight.expected.get((unit - first) as usize).copied();
            either(before.unwrap_or_default(), generations.expected(unit))
        };
        let mut damaged = 0u32;
        let good = verifier.check(op.file, op.offset_bytes, buffer, expected, |unit, verdict| {
            counts.add(&verdict);
            if let Verdict::Damaged(damage) = verdict {
                damaged += 1;
                note(findings, op.file, unit * unit_bytes, expected(unit), damage);
            }
        });
        let Ok(good) = good else { return true };
        counts.good += good;
        if damaged == 0 && good == u64::from(op.size_bytes) / unit_bytes {
            for (at, before) in flight.expected.iter().enumerate() {
                if !before.seen {
                    generations.saw(first + at as u64, before.generation);
                }
            }
        }
        damaged == 0
    }
}

/// What a read may have seen that started when `before` was expected and ended when `after` was.
fn either(before: Expected, after: Expected) -> Expected {
    if before == after {
        return after;
    }
    let oldest = before.oldest().min(after.oldest());
    Expected { back: after.generation - oldest.min(after.generation), seen: false, ..after }
}

#[cold]
fn note(findings: &mut Vec<Finding>, target: u32, at: u64, expected: Expected, damage: Damage) {
    if findings.len() < FINDINGS_MAX {
        findings.push(Finding { target, offset_bytes: at, expected, damage });
    }
}

impl Source for Stamped {
    fn wants(&self) -> Wants {
        Wants { fill: true, completions: !self.contents.generations.is_empty() }
    }

    #[inline]
    fn next(&mut self, client: u32) -> Option<Op> {
        let mut op = self.mix.take(client)?;
        if self.contents.generations.is_empty() || !op.kind.moves_bytes() {
            return Some(op);
        }
        let flight = self.free.pop()?;
        let mut tries = 0;
        while op.kind != OpKind::Read && !self.begin(&op, flight) {
            // Six writes of a unit are in flight already: another place, or a read of this one.
            tries += 1;
            if tries == ELSEWHERE_MAX {
                (op.kind, op.class) = (OpKind::Read, self.class_read);
                break;
            }
            op = self.mix.take(client)?;
            if !op.kind.moves_bytes() {
                self.free.push(flight);
                return Some(op);
            }
        }
        op.tag = flight;
        if op.kind == OpKind::Read && self.contents.verify {
            self.expect(&op, flight);
        }
        Some(op)
    }

    #[inline]
    fn fill(&mut self, _: u32, op: &Op, buffer: &mut [u8]) {
        let content = &self.contents.content;
        let filled = if self.contents.generations.is_empty() {
            self.writes = self.writes.wrapping_add(1).max(1);
            let generation = self.writes;
            content.fill(op.file, op.offset_bytes, |_| generation, buffer)
        } else {
            let tickets = &self.flights[op.tag as usize].tickets;
            let mut tickets = tickets.iter();
            let next = |_| tickets.next().map_or(1, |ticket| ticket.generation);
            content.fill(op.file, op.offset_bytes, next, buffer)
        };
        debug_assert!(filled.is_ok(), "sizes and offsets were checked to be whole units");
    }

    fn completed(&mut self, _: u32, op: &Op, buffer: &mut [u8]) -> bool {
        let fine = match op.kind {
            OpKind::Read if self.contents.verify => self.check(op, buffer),
            OpKind::Write | OpKind::WriteDurable => {
                self.end_write(op, true);
                true
            }
            _ => true,
        };
        self.release(op);
        fine
    }

    fn failed(&mut self, _: u32, op: &Op) {
        if matches!(op.kind, OpKind::Write | OpKind::WriteDurable) {
            self.end_write(op, false);
        }
        self.release(op);
    }
}

impl Stamped {
    fn release(&mut self, op: &Op) {
        if op.kind.moves_bytes() {
            self.free.push(op.tag);
        }
    }
}

#[cfg(test)]
mod tests;
