//! The mail store: a database engine with real data, a log and recovery. This module decides which
//! I/Os to do. A driver executes them.
//!
//! A store has several databases. Each database is a file of 32 KiB pages with a page cache. Each
//! database also has a log in a ring of preallocated files. Logical sessions execute operations on
//! records: insert, delete, replace and read. Each operation is one commit. [`MailboxConfig`]
//! explains the default values and states their sources.
//!
//! Every phase is a state machine, which implements the interface of [`crate::step`]:
//!
//! | machine | what it does |
//! |---|---|
//! | [`Create`] | writes the first database |
//! | [`Format`] | fills all log files, so that the measured phase only overwrites existing blocks |
//! | [`Duplicate`] | reads the first database, and writes its pages with new stamps into all other databases |
//! | [`Group`] | executes the load |
//! | [`Scan`] | reads and checks every page, for the checksum phase or for streaming backup |
//! | [`Recover`] | replays the log from the checkpoint, and writes again the pages that a crash lost |
//! | [`Verify`] | proves that every durably committed change exists, and lists changes that are missing |
//!
//! When a machine has finished, the next machine gets the [`Store`]. A driver without data
//! ([`crate::step::NoBytes`]) issues the same I/Os. In this case, the store does not have the
//! content of the pages. For each page, it stores 16 bits instead, which show which slots are
//! occupied.

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

pub use config::{BLOCK_BYTES, ConfigError, DatabaseConfig, MailboxConfig, Mix, Pace, SLOTS_MAX};
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

/// Defects that a test deliberately causes in a store. They prove that the crash tests detect such
/// defects.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// No defect.
    None,
    /// The store acknowledges commits without waiting for the log.
    AcknowledgeBeforeFlush,
    /// The store writes pages before the log records of their changes are durable.
    PageBeforeLog,
    /// The store overwrites log blocks that recovery still needs according to the checkpoint in the
    /// last durable block.
    RingBeyondCheckpoint,
    /// After a recovery, the store continues the log in the old epoch.
    EpochKept,
    /// The store treats a completed page write as durable before the file is flushed.
    CheckpointBeforeFlush,
}
