//! The mail store: a database engine with real data, a log and recovery. It only determines the
//! I/O, and does not execute it.
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
//! | [`Format`] | writes the logs full, so that the measured phase recycles them |
//! | [`Duplicate`] | reads the first database and writes it, re-stamped, as the others |
//! | [`Group`] | the load |
//! | [`Scan`] | reads and checks every page: the checksum phase, and streaming backup |
//! | [`Recover`] | replays the log from the checkpoint, and writes what was lost |
//! | [`Verify`] | proves that every durably committed change is there, and names what is not |
//!
//! Each machine passes the [`Store`] to the next machine. A driver without data
//! ([`crate::step::NoBytes`]) issues the same I/Os. The store then records only 16 bits of
//! occupancy for each page instead of the content.

mod arrivals;
mod attention;
mod bursts;
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

/// Deliberate defects of a store, which show that the crash tests detect them.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// No defect.
    None,
    /// Acknowledges commits without waiting for the log.
    AcknowledgeBeforeFlush,
    /// Writes pages before the log records of their changes are durable.
    PageBeforeLog,
    /// Overwrites log blocks that are still needed according to the checkpoint in the last durable
    /// block.
    RingBeyondCheckpoint,
    /// Continues the log in the old epoch after a recovery.
    EpochKept,
    /// Counts a completed page write as durable before the file is flushed.
    CheckpointBeforeFlush,
}
