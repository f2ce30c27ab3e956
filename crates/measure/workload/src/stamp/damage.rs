//! Expected content of units, and kinds of damage to units.

use core::fmt;

use super::{Origin, Stamp};

/// Expected content of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedContent {
    /// Newest generation whose write was started. If it is 0, this run has not written the unit,
    /// and the content of the unit is not known.
    pub generation: u32,
    /// Number of older generations that the unit may also have. The reason is that a write was in
    /// flight, failed, or overlapped with another write.
    pub back: u32,
    /// True if a write of the unit is in flight.
    pub in_flight: bool,
    /// True if a read has already returned the newest generation undamaged.
    pub seen: bool,
}

impl ExpectedContent {
    #[must_use]
    pub fn exactly(generation: u32) -> Self {
        Self { generation, ..Self::default() }
    }

    /// Returns the oldest generation that the unit may have.
    #[must_use]
    pub fn oldest(&self) -> u32 {
        self.generation.saturating_sub(self.back)
    }

    /// Returns the state of the unit at the start of a read. The caller needs this state when the
    /// read ends.
    #[must_use]
    pub fn read_start(&self) -> ReadStart {
        ReadStart { oldest: self.oldest(), settled: (!self.in_flight).then_some(self.generation) }
    }
}

/// State of a unit at the time at which a read of the unit started.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadStart {
    /// Oldest generation that the read may return.
    oldest: u32,
    /// Newest generation at the start of the read; `None` if a write was in flight at that time.
    settled: Option<u32>,
}

impl ReadStart {
    /// Returns the content that the read may return. `now` is the expected content at the end of
    /// the read.
    #[must_use]
    pub fn expected(self, now: ExpectedContent) -> ExpectedContent {
        ExpectedContent { back: now.generation - self.oldest.min(now.oldest()), ..now }
    }

    /// Returns true if no write overlapped the read. Only then will the target certainly keep the
    /// data that the read returned. If two writes are in flight, the older write may reach the
    /// target after the read.
    #[must_use]
    pub fn was_alone(self, now: ExpectedContent) -> bool {
        !now.in_flight && self.settled == Some(now.generation)
    }
}

/// Kind of damage to a unit. A unit has only one kind of damage. The comment of each kind describes
/// how the damage is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The last acknowledged write did not reach the target. Every sector has the generation before
    /// the expected generation, and no read has returned the expected generation yet. Content from
    /// an earlier run is treated as generation 0.
    Lost {
        /// Generation that every sector of the unit has.
        found: u32,
    },
    /// Old data is visible again. Every sector has the same older generation, which is at least two
    /// generations before the expected generation. If a read has already returned the expected
    /// generation, any older generation counts as stale.
    Stale {
        /// Generation of the old data. It is 0 for content from an earlier run.
        found: u32,
    },
    /// Each sector is undamaged and has the correct address, but the sectors are from different
    /// writes.
    Torn {
        /// Number of sectors that have the expected generation.
        sectors_new: u8,
        /// Number of sectors that have an older generation.
        sectors_old: u8,
        sectors_zero: u8,
    },
    /// At least one sector is from a write of this run to another address. The origin of every
    /// sector is known.
    Misdirected {
        /// Stamp of the write to the other address.
        meant: Stamp,
        sectors: u8,
    },
    /// At least one sector has content that was never written to this address and that is not only
    /// zeros.
    Corrupt {
        /// Number of sectors whose content was never written to this address.
        sectors: u8,
        /// Position of the first wrong byte in the unit. The content is compared with the
        /// generation that matches best.
        first_byte: u16,
        /// Number of bits that differ from the generation that the unit matches best.
        bits: u32,
    },
    /// Every byte of the unit is zero.
    Unwritten,
    /// Every sector has a generation whose write was not started. Either the record of generations
    /// is older than the data, or another process writes to the target with the number of this run.
    Ahead {
        /// Generation that every sector of the unit has.
        found: u32,
    },
}

impl Damage {
    /// Returns the word for this kind of damage.
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
            Self::Lost { found: 0 } => f.write_str("lost: the unit has data of an earlier run"),
            Self::Lost { found } => {
                write!(f, "lost: the unit still has the previous generation, {found}")
            }
            Self::Stale { found: 0 } => f.write_str("stale: the unit has data of an earlier run"),
            Self::Stale { found } => write!(f, "stale: the unit has generation {found}"),
            Self::Torn { sectors_new, sectors_old, sectors_zero } => write!(
                f,
                "torn: {sectors_new} sectors are new, {sectors_old} are old, and {sectors_zero} are \
                 zero"
            ),
            Self::Misdirected { meant, sectors } => match meant.origin {
                Origin::Place(offset_bytes) => write!(
                    f,
                    "misdirected: {sectors} sectors were written for byte {offset_bytes} of target \
                     {} (generation {})",
                    meant.target, meant.generation
                ),
                Origin::Shared(id) => {
                    write!(f, "misdirected: {sectors} sectors contain duplicate content {id}")
                }
            },
            Self::Corrupt { sectors, first_byte, bits } => write!(
                f,
                "corrupt: {bits} bits differ in {sectors} sectors; the first of these bits is in \
                 byte {first_byte}"
            ),
            Self::Unwritten => f.write_str("unwritten: the unit contains only zeros"),
            Self::Ahead { found } => {
                write!(f, "ahead: the unit has generation {found}, newer than any recorded write")
            }
        }
    }
}

/// Result of checking a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The unit has exactly the expected generation, and no other generation is possible.
    Good,
    /// The unit has one of several possible generations, or a mixture of generations that an
    /// unfinished write can cause.
    Possible,
    /// The expected content of the unit is not known, so any content is accepted.
    Unknown,
    /// The unit is damaged.
    Damaged(Damage),
}

/// A damaged unit that was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    pub target: u32,
    /// Byte offset of the unit in the target.
    pub offset_bytes: u64,
    pub expected: ExpectedContent,
    pub damage: Damage,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, at, generation) = (self.target, self.offset_bytes, self.expected.generation);
        let damage = self.damage;
        write!(f, "target {target}, byte {at}: {damage}; generation {generation} was expected")
    }
}

/// Number of units, counted by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// Number of units that have exactly the expected content.
    pub good: u64,
    /// Number of units that have one of several possible generations, or a permitted mixture of
    /// them.
    pub possible: u64,
    /// Number of units whose content was not predictable.
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

    /// Adds the counts in `other` to these counts.
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

    /// Returns the number of units that have any kind of damage.
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
