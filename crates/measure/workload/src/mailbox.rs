//! The mail store: a database engine's I/O with real data, a log and recovery, and no I/O of its
//! own.
//!
//! A store has several databases. Each is a file of 32 KiB pages with a page cache, and a
//! log of its own in a ring of preallocated files. Logical sessions do operations on records:
//! insert, delete, replace, read; each is one commit. What the numbers mean and where they come
//! from is said at [`MailboxConfig`].
//!
//! Everything is a state machine under the contract of [`crate::step`]:
//!
//! | machine | does |
//! |---|---|
//! | [`Create`] | writes the first database |
//! | [`Format`] | writes the logs full, so that the measured phase recycles them |
//! | [`Duplicate`] | reads the first database and writes it, re-stamped, as the others |
//! | [`Group`] | the load |
//! | [`Scan`] | reads and checks every page: the checksum phase, and streaming backup |
//! | [`Recover`] | replays the log from the checkpoint, and writes what was lost |
//! | [`Verify`] | proves that every durably committed change is there, and names what is not |
//!
//! A [`Store`] goes from machine to machine. A driver without data ([`crate::step::NoBytes`]) gets
//! the same I/Os: what a page holds is then kept as 16 bits of occupancy per page.

mod arrivals;
mod attention;
mod cache;
mod cleaner;
mod config;
mod context;
mod counters;
mod database;
mod generation;
mod geometry;
mod group;
mod log;
mod maintenance;
mod occupancy;
mod page;
mod phase;
mod poison;
mod pool;
mod queue;
mod record;
mod replication;
mod rng;
mod session;
mod store;
#[cfg(test)]
mod tests;
mod work;

pub use config::{
    BLOCK_BYTES, ConfigError, DatabaseConfig, Durability, MailboxConfig, Mix, Pace, SLOTS_MAX,
};
pub use generation::{GenerationMap, Mark, MemoryGenerationMap};
pub use geometry::{Geometry, SECTOR_BYTES};
pub use group::{Group, WarmUp};
pub use page::{Damage, Directory, Fault, PageHead, check, parse, render};
pub use phase::{
    Create, Duplicate, ExpectedCommits, Format, Phase, PhaseIo, Progress, Recover, ReplayFrom,
    Report, Scan, ScanKind, Verify,
};
pub use poison::{Failure, Finding, Place, Poison};
pub use record::LogFault;
pub use session::{Commit, OperationKind, Witness};
pub use store::{DatabaseState, GroupPart, LogPosition, Store, spread};

/// Ways in which a store can be wrong on purpose, to show that the crash tests would notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// Right.
    None,
    /// Acknowledges commits without waiting for the log.
    AcknowledgeBeforeFlush,
    /// Writes pages before the log that their changes are in.
    PageBeforeLog,
    /// Overwrites log that the checkpoint in the last durable block still needs.
    RingBeyondCheckpoint,
    /// Goes on in the old epoch after a recovery.
    EpochKept,
    /// Counts a completed page write as durable before the file is flushed.
    CheckpointBeforeFlush,
}
