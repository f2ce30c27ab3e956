//! Expected content and findings.

use core::fmt;

use super::{Origin, Stamp};

/// Expected content of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedContent {
    /// Newest started generation; 0 means that the unit was not written in this run and has no
    /// expected content.
    pub generation: u32,
    /// Number of older generations that are also possible, because a write was in flight, failed or
    /// overlapped with another.
    pub back: u32,
    /// Whether a write of the unit is in flight.
    pub in_flight: bool,
    /// Whether a read already returned this generation intact.
    pub seen: bool,
}

impl ExpectedContent {
    #[must_use]
    pub fn exactly(generation: u32) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Returns the oldest possible generation.
    #[must_use]
    pub fn oldest(&self) -> u32 {
        self.generation.saturating_sub(self.back)
    }

    /// Returns the state that a read needs at its end, if this is the expectation at its start.
    #[must_use]
    pub fn read_start(&self) -> ReadStart {
        ReadStart { oldest: self.oldest(), settled: (!self.in_flight).then_some(self.generation) }
    }
}

/// State of a unit when a read of it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadStart {
    /// Oldest generation that the read may return.
    oldest: u32,
    /// Newest generation; `None` if a write was in flight.
    settled: Option<u32>,
}

impl ReadStart {
    /// Returns what the read may return, given the expectation at its end.
    #[must_use]
    pub fn expected(self, now: ExpectedContent) -> ExpectedContent {
        ExpectedContent { back: now.generation - self.oldest.min(now.oldest()), ..now }
    }

    /// Returns true if no write overlapped the read. Only then does its data remain on the target:
    /// of two writes in flight, the older one may reach the target after the read.
    #[must_use]
    pub fn was_alone(self, now: ExpectedContent) -> bool {
        !now.in_flight && self.settled == Some(now.generation)
    }
}

/// Kind of damage to a unit. The kinds exclude each other; each describes how it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Every sector has the generation before the expected one, and no read has returned the
    /// expected one yet: the last acknowledged write did not reach the target. Content of an
    /// earlier run counts as generation 0.
    Lost {
        /// Its generation.
        found: u32,
    },
    /// Every sector has the same older generation: at least two before the expected one, or any
    /// older one if a read already returned the expected one. Old data is visible again.
    Stale {
        /// Generation of the old data; 0 is content of an earlier run.
        found: u32,
    },
    /// Each sector is intact and has the correct address, but the sectors are from different
    /// writes.
    Torn {
        /// Sectors of the expected generation.
        sectors_new: u8,
        /// Sectors of older generations.
        sectors_old: u8,
        sectors_zero: u8,
    },
    /// At least one sector is from a write to another address (of this run), and the origin of
    /// every sector is known.
    Misdirected {
        /// Stamp of the write to that other address.
        meant: Stamp,
        sectors: u8,
    },
    /// At least one sector was never written at this address, and is not zeroes.
    Corrupt {
        /// Number of sectors with this damage.
        sectors: u8,
        /// First byte of the unit that differs from the best matching generation.
        first_byte: u16,
        /// Number of differing bits.
        bits: u32,
    },
    /// Every byte is zero.
    Unwritten,
    /// Every sector has a generation that was not started yet: the record of generations is older
    /// than the data, or another program writes to the target under this run's number.
    Ahead {
        /// Its generation.
        found: u32,
    },
}

impl Damage {
    /// Returns the word for the kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "lost",
            Self::Stale { .. } => "stale",
            Self::Torn { .. } => "torn",
            Self::Misdirected { .. } => "misdirected",
            Self::Corrupt { .. } => "corrupt",
            Self::Unwritten => "unwritten",
            Self::Ahead { .. } => "ahead",
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { found: 0 } => f.write_str("lost: it holds data of an earlier run"),
            Self::Lost { found } => {
                write!(f, "lost: it holds generation {found}, the previous one")
            }
            Self::Stale { found: 0 } => f.write_str("stale: it holds data of an earlier run"),
            Self::Stale { found } => write!(f, "stale: it holds generation {found}"),
            Self::Torn { sectors_new, sectors_old, sectors_zero } => write!(
                f,
                "torn: {sectors_new} sectors are new, {sectors_old} old, {sectors_zero} zero"
            ),
            Self::Misdirected { meant, sectors } => match meant.origin {
                Origin::Place(offset_bytes) => write!(
                    f,
                    "misdirected: {sectors} sectors belong at byte {offset_bytes} of target {} \
                     (generation {})",
                    meant.target, meant.generation
                ),
                Origin::Shared(id) => {
                    write!(f, "misdirected: {sectors} sectors are of duplicate content {id}")
                }
            },
            Self::Corrupt { sectors, first_byte, bits } => write!(
                f,
                "corrupt: {bits} bits differ in {sectors} sectors, the first in byte {first_byte}"
            ),
            Self::Unwritten => f.write_str("unwritten: it holds zeros"),
            Self::Ahead { found } => {
                write!(f, "ahead: it holds generation {found}, which is not recorded")
            }
        }
    }
}

/// Result of checking a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Exactly the expected generation.
    Good,
    /// One of several possible generations, or a mixture of generations that an unfinished write
    /// may leave.
    Possible,
    /// There was no expectation.
    Unknown,
    /// The unit is damaged.
    Damaged(Damage),
}

/// A damaged unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub target: u32,
    /// Offset of the unit in it.
    pub offset_bytes: u64,
    pub expected: ExpectedContent,
    /// Kind of damage.
    pub damage: Damage,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, at, generation) = (self.target, self.offset_bytes, self.expected.generation);
        let damage = self.damage;
        write!(f, "target {target}, byte {at}: {damage}; generation {generation} was expected")
    }
}

/// Number of units of each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// As expected.
    pub good: u64,
    /// Units that have one of several possible generations.
    pub possible: u64,
    /// Without an expectation.
    pub unknown: u64,
    /// [`Damage::Lost`].
    pub lost: u64,
    /// [`Damage::Stale`].
    pub stale: u64,
    /// [`Damage::Torn`].
    pub torn: u64,
    /// [`Damage::Misdirected`].
    pub misdirected: u64,
    /// [`Damage::Corrupt`].
    pub corrupt: u64,
    /// [`Damage::Unwritten`].
    pub unwritten: u64,
    /// [`Damage::Ahead`].
    pub ahead: u64,
}

impl DamageCounts {
    pub fn add(&mut self, verdict: &Verdict) {
        let field = match verdict {
            Verdict::Good => &mut self.good,
            Verdict::Possible => &mut self.possible,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Damaged(damage) => match damage {
                Damage::Lost { .. } => &mut self.lost,
                Damage::Stale { .. } => &mut self.stale,
                Damage::Torn { .. } => &mut self.torn,
                Damage::Misdirected { .. } => &mut self.misdirected,
                Damage::Corrupt { .. } => &mut self.corrupt,
                Damage::Unwritten => &mut self.unwritten,
                Damage::Ahead { .. } => &mut self.ahead,
            },
        };
        *field += 1;
    }

    /// Adds other counts.
    pub fn merge(&mut self, other: &Self) {
        self.good += other.good;
        self.possible += other.possible;
        self.unknown += other.unknown;
        self.lost += other.lost;
        self.stale += other.stale;
        self.torn += other.torn;
        self.misdirected += other.misdirected;
        self.corrupt += other.corrupt;
        self.unwritten += other.unwritten;
        self.ahead += other.ahead;
    }

    /// Returns the damaged units of any kind.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.lost
            + self.stale
            + self.torn
            + self.misdirected
            + self.corrupt
            + self.unwritten
            + self.ahead
    }
}
