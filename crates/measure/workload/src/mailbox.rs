//! The mail store: a database engine with real data, a log and recovery. This module decides which
//! I/O to do; a driver executes it.
//!
//! A store has several databases. Each database is a file of 32 KiB pages with a page cache, and
//! has a log in a ring of preallocated files. Logical sessions execute operations on records:
//! insert, delete, replace, read. Each operation is one commit. [`MailboxConfig`] explains the
//! numbers and their sources.
//!
//! Every phase is a state machine with the interface of [`crate::step`]:
//!
//! | machine | does |
//! |---|---|
//! | [`Create`] | writes the first database |
//! | [`Format`] | fills all log files, so that the measured phase only overwrites existing blocks |
//! | [`Duplicate`] | reads the first database, and writes its pages with new stamps to all other databases |
//! | [`Group`] | executes the load |
//! | [`Scan`] | reads and checks every page: the checksum phase, and streaming backup |
//! | [`Recover`] | replays the log from the checkpoint, and rewrites pages that a crash lost |
//! | [`Verify`] | proves that every durably committed change exists, and lists missing changes |
//!
//! Each machine passes the [`Store`] to the next machine. A driver without data
//! ([`crate::step::NoBytes`]) issues the same I/Os. In this case, the store records 16 bits for
//! each page, one for each occupied slot, instead of the content.

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

/// Deliberate defects of a store. They show that the crash tests detect defects.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// No defect.
    None,
    /// Acknowledges commits without waiting for the log.
    AcknowledgeBeforeFlush,
    /// Writes pages before the log records of their changes are durable.
    PageBeforeLog,
    /// Overwrites log blocks that recovery still needs, according to the checkpoint in the last
    /// durable block.
    RingBeyondCheckpoint,
    /// Continues the log in the old epoch after a recovery.
    EpochKept,
    /// Counts a completed page write as durable before the file is flushed.
    CheckpointBeforeFlush,
}
