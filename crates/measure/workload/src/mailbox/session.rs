//! A session represents one user of the store. It executes one operation after another.

use super::config::{MailboxConfig, Mix};
use super::rng::{Choices, below};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Inserts a record.
    Insert,
    /// Deletes a record.
    Delete,
    /// Replaces a record.
    Replace,
    /// Reads a record.
    Read,
}

/// Operation that a session is executing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub kind: OperationKind,
    /// Position in the group of the database on which the operation works.
    pub place: usize,
    pub page: u32,
    pub slot_bits: u64,
    pub durable: bool,
    pub intended_ns: u64,
    /// True if the page was not in the cache at the first lookup of the operation.
    pub sought: bool,
    /// True if the operation has already waited for a cache frame. The next field is true if it has
    /// already waited for log space. With these fields, each wait is counted only once.
    pub frame_stalled: bool,
    pub log_stalled: bool,
}

/// A commit that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Id of the database that contains the record.
    pub database: u32,
    /// Page that contains the record.
    pub page: u32,
    /// Slot of the page in which the record is stored.
    pub slot: u8,
    /// Version that the slot has after this commit.
    pub version: u32,
    /// True if the slot contains a record after this commit.
    pub live: bool,
    /// Log position at which the record of the commit ends.
    pub lsn: u64,
}

/// Receives each durable commit at the time at which the store acknowledges it.
pub trait Witness: Send {
    /// Called when the store acknowledges this commit as durable.
    fn acknowledged(&mut self, commit: &Commit);
}

/// State of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// The session has no operation at present.
    Idle,
    /// The session executes an operation. The operation has not yet looked up its page, or it waits
    /// for a page, for a frame or for log space.
    Working(Operation),
    /// The change of the operation is in the log. The session waits until the log is durable.
    Committing(Commit),
    /// The session has ended.
    Stopped,
}

/// Chooses the operations of a group at random, according to the mix and the weights (biases) in
/// the configuration.
#[derive(Debug)]
pub(crate) struct Draw {
    mix: Mix,
    lazy_threshold: u64,
    /// Cumulative sums of the weights (biases) of the group's databases.
    bias_sums: Vec<u64>,
}

impl Draw {
    pub fn new(config: &MailboxConfig, biases: impl Iterator<Item = u32>) -> Self {
        let mut sum = 0;
        let bias_sums: Vec<u64> = biases
            .map(|bias| {
                sum += u64::from(bias);
                sum
            })
            .collect();
        let lazy_threshold = (config.lazy_commit_share * (1u64 << 32) as f64) as u64;
        Self { mix: config.mix, lazy_threshold, bias_sums }
    }

    #[inline(always)]
    fn place(&self, bits: u64) -> usize {
        let total = self.bias_sums.last().copied().unwrap_or(0);
        if total == 0 {
            return below(bits, self.bias_sums.len() as u64) as usize;
        }
        let at = below(bits, total);
        self.bias_sums.partition_point(|&sum| sum <= at)
    }

    #[inline(always)]
    fn kind(&self, bits: u64) -> OperationKind {
        let Mix { insert, delete, replace, .. } = self.mix;
        let at = below(bits, u64::from(self.mix.total()));
        let (insert, delete, replace) = (u64::from(insert), u64::from(delete), u64::from(replace));
        match at {
            at if at < insert => OperationKind::Insert,
            at if at < insert + delete => OperationKind::Delete,
            at if at < insert + delete + replace => OperationKind::Replace,
            _ => OperationKind::Read,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    choices: Choices,
    /// Random numbers from which the next operation is chosen.
    next: [u64; 5],
    pub phase: Phase,
    /// Offset in the arena of the buffer for one page.
    pub buffer_at: u64,
    /// Frame of the page that the session read most recently.
    pub frame: u32,
}

impl Session {
    pub fn new(load_seed: u64, number: u32, buffer_at: u64) -> Self {
        let mut choices = Choices::new(load_seed, u64::from(number));
        let next = std::array::from_fn(|_| choices.bits());
        Self { choices, next, phase: Phase::Idle, buffer_at, frame: 0 }
    }

    /// Returns the database (its position) and the page that the next operation will use. If the
    /// database grows before that, the operation may use another page.
    #[inline]
    pub fn peek(&self, draw: &Draw, pages_used: impl Fn(usize) -> u32) -> (usize, u32) {
        let place = draw.place(self.next[1]);
        (place, below(self.next[2], u64::from(pages_used(place))) as u32)
    }

    /// Chooses the next operation. Every operation uses five random numbers, even if its kind needs
    /// fewer. The choices of a session therefore do not depend on other sessions. There is one
    /// exception: the page also depends on the current number of pages.
    #[inline(always)]
    pub fn draw(
        &mut self,
        draw: &Draw,
        intended_ns: u64,
        pages_used: impl Fn(usize) -> u32,
    ) -> Operation {
        let (place, page) = self.peek(draw, pages_used);
        let [kind, _, _, slot_bits, lazy] = self.next;
        let (kind, durable) = (draw.kind(kind), lazy >> 32 >= draw.lazy_threshold);
        self.next = std::array::from_fn(|_| self.choices.bits());
        Operation {
            kind,
            place,
            page,
            slot_bits,
            durable,
            intended_ns,
            sought: false,
            frame_stalled: false,
            log_stalled: false,
        }
    }
}
