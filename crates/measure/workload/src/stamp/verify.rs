//! Verifies data that was read from a target.
//!
//! Usually, the expected unit is generated again and compared in one pass. Only if a unit differs,
//! it is examined sector by sector.

use super::evidence::Evidence;
use super::{Damage, ExpectedContent, Finding, Origin, Stamp, Verdict};
use crate::content::{Content, ContentError};

/// Compares units with their expected content.
#[derive(Clone, Copy, Debug)]
pub struct Verifier<'a> {
    content: &'a Content,
    earlier_runs: &'a [u64],
}

/// Result of examining a unit without knowing its expected content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// The unit is undamaged: it has exactly the content that its stamp identifies.
    Whole(Stamp),
    /// The unit has a valid stamp, but some of its sectors do not match the stamp.
    Broken {
        stamp: Stamp,
        /// Number of sectors that do not match the stamp.
        sectors: u8,
    },
    /// The unit contains only zeros.
    Zero,
    /// The unit has no valid stamp. Either another program wrote its data, or the stamp is damaged.
    Foreign,
}

/// Compares one unit with the content that its own stamp identifies. `unit` must contain the whole
/// unit, starting with its first byte. A truncated unit counts as damaged.
#[must_use]
pub fn inspect(unit: &[u8]) -> Inspection {
    let Some(stamp) = Stamp::decode(unit) else {
        let zero = unit.iter().all(|byte| *byte == 0);
        return if zero { Inspection::Zero } else { Inspection::Foreign };
    };
    let unit = &unit[..stamp.unit_bytes().min(unit.len())];
    let mut evidence = Evidence::new(unit);
    evidence.consider(stamp);
    let matching = evidence.explanations.first().map_or(0, |e| e.sectors.count_ones() as u8);
    if matching == stamp.sectors {
        Inspection::Whole(stamp)
    } else {
        Inspection::Broken { stamp, sectors: stamp.sectors - matching }
    }
}

impl<'a> Verifier<'a> {
    /// Creates a verifier for `content`. Returns `None` if the content has no stamps.
    ///
    /// `earlier_runs` contains the numbers of earlier runs that wrote content with the same
    /// specification to the same targets. With these numbers, the verifier recognises a torn write
    /// that replaced data of an earlier run. Without them, it reports such a unit as corrupt,
    /// unless the first sector is from the earlier run.
    #[must_use]
    pub fn new(content: &'a Content, earlier_runs: &'a [u64]) -> Option<Self> {
        content.has_stamps().then_some(Self { content, earlier_runs })
    }

    /// Returns the size of a unit in bytes.
    #[must_use]
    pub fn unit_bytes(&self) -> usize {
        self.content.unit_bytes()
    }

    /// Checks every byte of `bytes`, which was read from `target` at `offset_bytes`. `expected`
    /// returns the expected content of a unit; its argument is the number of the unit in the
    /// target. `each` is called for every unit whose verdict is not [`Verdict::Good`]. Returns the
    /// number of units whose verdict is [`Verdict::Good`].
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the data is not a multiple of the unit size. In this case,
    /// nothing was checked.
    pub fn check(
        &self,
        target: u32,
        offset_bytes: u64,
        data: &[u8],
        mut expected: impl FnMut(u64) -> ExpectedContent,
        mut each: impl FnMut(u64, Verdict),
    ) -> Result<u64, ContentError> {
        let unit_bytes = self.content.unit_bytes();
        let first = self.content.first_unit(offset_bytes, data.len())?;
        let mut cursor = self.content.cursor(target);
        let mut good = 0;
        for (unit, bytes) in (first..).zip(data.chunks_exact(unit_bytes)) {
            let should = expected(unit);
            let is_good = should.generation > 0
                && self.content.is_unit(&cursor.stamp(unit, should.generation), bytes);
            if is_good {
                good += 1;
            } else {
                each(unit, self.judge(target, unit, bytes, should));
            }
        }
        Ok(good)
    }

    /// Does the same as [`Verifier::check`], but returns the damaged units as findings. Units whose
    /// verdict is possible or unknown are not damaged.
    ///
    /// # Errors
    /// See [`Verifier::check`].
    pub fn findings(
        &self,
        target: u32,
        offset_bytes: u64,
        data: &[u8],
        expected: impl Fn(u64) -> ExpectedContent,
    ) -> Result<Vec<Finding>, ContentError> {
        let unit_bytes = self.content.unit_bytes() as u64;
        let mut found = Vec::new();
        self.check(target, offset_bytes, data, &expected, |unit, verdict| {
            if let Verdict::Damaged(damage) = verdict {
                let (offset_bytes, expected) = (unit * unit_bytes, expected(unit));
                found.push(Finding { target, offset_bytes, expected, damage });
            }
        })?;
        Ok(found)
    }

    /// Determines the verdict for one unit. This function is slow. Use it only for units that
    /// differ from the expected content.
    #[must_use]
    pub fn judge(
        &self,
        target: u32,
        unit: u64,
        bytes: &[u8],
        expected: ExpectedContent,
    ) -> Verdict {
        if expected.generation == 0 {
            return Verdict::Unknown;
        }
        // Before the first write of a unit has completed, the content of the unit is unknown. Any
        // content is therefore accepted until then.
        if expected.oldest() == 0 {
            let newest = self.content.stamp(target, unit, expected.generation);
            let is_good = self.content.is_unit(&newest, bytes);
            return if is_good { Verdict::Good } else { Verdict::Possible };
        }
        let (content, earlier_runs) = (self.content, self.earlier_runs);
        let case = Case { content, earlier_runs, target, unit, expected };
        case.judge(bytes)
    }
}

/// A unit that is being examined.
struct Case<'a> {
    content: &'a Content,
    earlier_runs: &'a [u64],
    target: u32,
    unit: u64,
    expected: ExpectedContent,
}

/// Number of older generations that are tried although the data contains no hint of them. They are
/// the generations just before the possible generations.
const LOOK_BACK: u32 = 8;
/// Maximum number of overlapping writes whose mixtures are examined. If more writes of a unit
/// overlap, the verdict for the unit is unknown.
const MIXTURE_MAX: u32 = 16;

impl Case<'_> {
    /// Returns the stamp of this unit's address for one generation.
    fn own(&self, generation: u32) -> Stamp {
        self.content.stamp(self.target, self.unit, generation)
    }

    fn judge(&self, bytes: &[u8]) -> Verdict {
        let mut evidence = Evidence::new(bytes);
        let all = evidence.all();
        if evidence.zero == all {
            return Verdict::Damaged(Damage::Unwritten);
        }
        self.collect(&mut evidence, bytes);
        if let Some(whole) = evidence.explanations.iter().find(|e| e.sectors == all) {
            return self.whole(whole.stamp);
        }
        if self.is_mixture(bytes) {
            return Verdict::Possible;
        }
        match self.parts(&evidence) {
            Verdict::Damaged(Damage::Corrupt { .. } | Damage::Torn { .. })
                if self.expected.back >= MIXTURE_MAX =>
            {
                Verdict::Unknown
            }
            verdict => verdict,
        }
    }

    /// Returns true if each byte of the unit is from one of the possible writes. Linux does not
    /// isolate buffered operations on the same bytes. A read may copy a page while a write changes
    /// it. Also, io_uring may interrupt a write and complete it after another write. The boundary
    /// between the data of two writes may therefore be at any byte of the unit.
    fn is_mixture(&self, bytes: &[u8]) -> bool {
        if !(1..MIXTURE_MAX).contains(&self.expected.back) {
            return false;
        }
        let possible = self.expected.oldest()..=self.expected.generation;
        let writes: Vec<Vec<u8>> =
            possible.filter_map(|generation| self.own(generation).render(bytes.len())).collect();
        let is_written = |(at, byte): (usize, &u8)| writes.iter().any(|write| write[at] == *byte);
        bytes.iter().enumerate().all(is_written)
    }

    /// Tries the writes that may have produced the bytes of the unit: the expected write, earlier
    /// writes, and the writes that the stamp and the sectors indicate. The order matters, because
    /// the first write that explains the whole unit is the result.
    fn collect(&self, evidence: &mut Evidence<'_>, bytes: &[u8]) {
        let newest = self.expected.generation;
        let oldest = self.expected.oldest().max(newest.saturating_sub(LOOK_BACK));
        for generation in (oldest.saturating_sub(LOOK_BACK).max(1)..=newest).rev() {
            evidence.consider(self.own(generation));
        }
        if let Some(stamp) = Stamp::decode(bytes) {
            evidence.consider(stamp);
        }
        let unit_bytes = self.content.unit_bytes() as u64;
        let this_run = self.content.run();
        for run in [this_run].iter().chain(self.earlier_runs) {
            for counter in evidence.counters(*run) {
                if let Some((target, generation, origin)) = Stamp::from_counter(counter, unit_bytes)
                {
                    let stamp = self.content.stamp_of(target, generation, origin);
                    evidence.consider(Stamp { run: *run, ..stamp });
                }
            }
        }
    }

    /// Returns the generation of a write to this address. Returns 0 if another run made the write,
    /// and `None` if the write was to another address.
    fn generation_here(&self, stamp: &Stamp) -> Option<u32> {
        let here = match stamp.origin {
            Origin::Place(offset_bytes) => {
                stamp.target == self.target
                    && offset_bytes == self.unit * self.content.unit_bytes() as u64
            }
            Origin::Shared(_) => stamp.run == self.content.run(),
        };
        if !here {
            return None;
        }
        if stamp.run != self.content.run() {
            return Some(0);
        }
        match stamp.origin {
            Origin::Place(_) => Some(stamp.generation),
            // The two contents of a duplicate alternate, so many generations have this content.
            // This function returns the newest of these generations.
            Origin::Shared(_) => {
                let newest = self.expected.generation;
                (newest.saturating_sub(1)..=newest).rev().find(|g| self.own(*g) == *stamp)
            }
        }
    }

    /// Determines the verdict for a unit whose sectors are all from one write.
    fn whole(&self, stamp: Stamp) -> Verdict {
        let expected = &self.expected;
        let Some(found) = self.generation_here(&stamp) else {
            let sectors = stamp.sectors;
            return Verdict::Damaged(Damage::Misdirected { meant: stamp, sectors });
        };
        if found == expected.generation {
            return Verdict::Good;
        }
        if found > expected.generation {
            return Verdict::Damaged(Damage::Ahead { found });
        }
        if found >= expected.oldest() {
            return Verdict::Possible;
        }
        // The unit is lost if exactly one acknowledged write is missing. Writes whose result is
        // uncertain are not counted.
        let is_last = found + 1 == expected.oldest() && !expected.seen;
        Verdict::Damaged(if is_last { Damage::Lost { found } } else { Damage::Stale { found } })
    }

    /// Determines the verdict for a unit whose sectors are from several writes, or that contains
    /// sectors from no known write.
    fn parts(&self, evidence: &Evidence<'_>) -> Verdict {
        let unexplained = evidence.all() & !evidence.explained();
        if unexplained != 0 {
            let (first_byte, bits) = evidence.difference(self.own(self.expected.generation));
            let sectors = unexplained.count_ones() as u8;
            return Verdict::Damaged(Damage::Corrupt { sectors, first_byte, bits });
        }
        let (mut new, mut old) = (0u8, 0u8);
        for e in &evidence.explanations {
            match self.generation_here(&e.stamp) {
                Some(found) if found == self.expected.generation => new |= e.sectors,
                Some(_) => old |= e.sectors,
                None => {}
            }
        }
        let zero = evidence.zero;
        let strangers = evidence.all() & !(new | old | zero);
        if strangers != 0 {
            let most = evidence
                .explanations
                .iter()
                .filter(|e| self.generation_here(&e.stamp).is_none())
                .max_by_key(|e| (e.sectors & strangers).count_ones());
            if let Some(most) = most {
                let sectors = strangers.count_ones() as u8;
                return Verdict::Damaged(Damage::Misdirected { meant: most.stamp, sectors });
            }
        }
        Verdict::Damaged(Damage::Torn {
            sectors_new: new.count_ones() as u8,
            sectors_old: (old & !new).count_ones() as u8,
            sectors_zero: (zero & !new & !old).count_ones() as u8,
        })
    }
}

#[cfg(test)]
mod tests;
