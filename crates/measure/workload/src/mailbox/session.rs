//! A session: one logical user of the store, who executes one operation after another.

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

/// One operation in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub kind: OperationKind,
    /// Position of the database in the group.
    pub place: usize,
    pub page: u32,
    pub slot_bits: u64,
    pub durable: bool,
    pub intended_ns: u64,
    /// True if the page was not in the cache when the operation first looked it up.
    pub sought: bool,
    /// `frame_stalled` and `log_stalled` are true if the operation already waited for a cache frame
    /// or for log space. A wait is therefore counted only once.
    pub frame_stalled: bool,
    pub log_stalled: bool,
}

/// A durable commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Id of the database with the record.
    pub database: u32,
    /// Page that contains the record.
    pub page: u32,
    /// Slot in the page that contains the record.
    pub slot: u8,
    /// Version of the slot after this commit.
    pub version: u32,
    /// True if the slot contains a record after this commit.
    pub live: bool,
    /// Log position at which the commit ends.
    pub lsn: u64,
}

/// Receives each durable commit when the store acknowledges it.
pub trait Witness: Send {
    /// Called when this commit is durable.
    fn acknowledged(&mut self, commit: &Commit);
}

/// State of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// The session is between two operations.
    Idle,
    /// The session executes an operation. The operation has not looked up its page yet, or waits
    /// for a page, a frame or log space.
    Working(Operation),
    /// The change is in the log. The session waits until the log is durable.
    Committing(Commit),
    /// The session has ended.
    Stopped,
}

/// Chooses random operations for a group, according to the configured mix and bias.
#[derive(Debug)]
pub(crate) struct Draw {
    mix: Mix,
    lazy_threshold: u64,
    /// Cumulative sums of the biases of the group's databases.
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
    /// Random numbers that choose the next operation.
    next: [u64; 5],
    pub phase: Phase,
    /// Page buffer in the arena.
    pub buffer_at: u64,
    /// Frame of the page that the session last read.
    pub frame: u32,
}

impl Session {
    pub fn new(load_seed: u64, number: u32, buffer_at: u64) -> Self {
        let mut choices = Choices::new(load_seed, u64::from(number));
        let next = std::array::from_fn(|_| choices.bits());
        Self { choices, next, phase: Phase::Idle, buffer_at, frame: 0 }
    }

    /// Returns the position of the database and the page that the next operation will use. If a
    /// page is added first, the page may differ.
    #[inline]
    pub fn peek(&self, draw: &Draw, pages_used: impl Fn(usize) -> u32) -> (usize, u32) {
        let place = draw.place(self.next[1]);
        (place, below(self.next[2], u64::from(pages_used(place))) as u32)
    }

    /// Chooses the next operation. Every operation uses five random numbers, regardless of its
    /// kind. A session's choices therefore do not depend on other sessions, except that its page
    /// depends on the current number of pages.
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
