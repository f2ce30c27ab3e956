//! Errors that end a run. An error is an I/O error or the result of a failed check.

use core::fmt;

use super::page::{Damage, Fault};
use super::record::LogFault;

/// Location at which a failure occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A page of the database file.
    Page(u32),
    /// A position in the log.
    Log(u64),
    /// The whole database file. This location is used if a flush failed.
    File,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(page) => write!(f, "page {page}"),
            Self::Log(lsn) => write!(f, "log position {lsn}"),
            Self::File => f.write_str("the database file"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The target returned an error. The value is the `errno`.
    Io(i32),
    /// The target transferred fewer bytes than requested.
    Short {
        /// Bytes transferred.
        got_bytes: u32,
        /// Bytes requested.
        wanted_bytes: u32,
    },
    /// A page is damaged.
    Page(Fault),
    /// The ring contains no log. It has no blocks, or its blocks only record checkpoints that do
    /// not exist.
    NoLog,
    /// An acknowledged log block is damaged.
    LogBlock(LogFault),
    /// The log ends too early. Some commits after its end were acknowledged as durable, and their
    /// changes are missing.
    LogEnds {
        /// Log position at which the log ends.
        end_lsn: u64,
        /// Log position up to which commits were acknowledged.
        acknowledged_lsn: u64,
    },
    /// A page contains changes whose log positions are after the end of the log, so the page was
    /// written before its log records.
    PageAhead {
        /// Log position of the latest change in the page.
        page_lsn: u64,
        /// Log position at which the log ends.
        end_lsn: u64,
    },
    /// A file is too short: it does not contain all of its pages.
    FileEnds {
        /// Number of pages in the file.
        pages: u32,
        /// Number of pages that the file should contain.
        pages_used: u32,
    },
    /// The store does not contain a commit that a witness recorded as acknowledged.
    CommitMissing {
        /// Slot of the page in which the commit changed a record.
        slot: u8,
        /// Acknowledged version.
        version: u32,
        /// Version of the slot on the target.
        found_version: u32,
    },
    /// A session waits for an event that cannot occur. This is a defect in Plimsoll.
    Stuck,
}

/// Failure and the location at which it occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Id of the database in which the failure occurred.
    pub database: u32,
    /// Location.
    pub place: Place,
    pub trouble: Failure,
}

/// First failure of a run. After this failure, the machine issues no more I/Os. It waits for the
/// I/Os in flight, and then ends.
pub type Poison = Finding;

impl Finding {
    /// Returns the kind of damage, if the failure concerns a damaged page or log block.
    pub fn damage(&self) -> Option<Damage> {
        match self.trouble {
            Failure::Page(fault) => Some(fault.damage),
            Failure::LogBlock(fault) => Some(fault.damage),
            _ => None,
        }
    }

    /// Returns true if the failure is wrong data (exit code 4), and false if it is an I/O error
    /// (exit code 5).
    pub fn is_corruption(&self) -> bool {
        !matches!(self.trouble, Failure::Io(_) | Failure::Short { .. } | Failure::Stuck)
    }

    /// Returns the `errno`, if the target has returned one.
    pub fn errno(&self) -> Option<i32> {
        match self.trouble {
            Failure::Io(errno) => Some(errno),
            _ => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "database {}, {}: ", self.database, self.place)?;
        match self.trouble {
            Failure::Io(errno) => write!(f, "I/O error {errno}"),
            Failure::Short { got_bytes, wanted_bytes } => {
                write!(f, "short transfer: only {got_bytes} of {wanted_bytes} bytes")
            }
            Failure::Page(fault) => fault.fmt(f),
            Failure::NoLog => f.write_str("there is no log"),
            Failure::LogBlock(fault) => fault.fmt(f),
            Failure::FileEnds { pages, pages_used } => {
                write!(f, "truncated: the file contains only {pages} of {pages_used} pages")
            }
            Failure::LogEnds { end_lsn, acknowledged_lsn } => write!(
                f,
                "lost: the log ends at {end_lsn}, but commits up to {acknowledged_lsn} were \
                 acknowledged as durable"
            ),
            Failure::PageAhead { page_lsn, end_lsn } => write!(
                f,
                "lost: the page contains changes up to log position {page_lsn}, but the log ends at \
                 {end_lsn}"
            ),
            Failure::CommitMissing { slot, version, found_version } => write!(
                f,
                "lost: a commit to slot {slot} with version {version} was acknowledged, but the \
                 slot has version {found_version}"
            ),
            Failure::Stuck => {
                f.write_str("a session waits for an event that cannot occur (a defect in Plimsoll)")
            }
        }
    }
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.damage, self.found_lsn) {
            (Damage::Corrupt, _) => f.write_str("corrupt: the log block's checksum is wrong"),
            (Damage::Unwritten, _) => f.write_str("unwritten: the log block is all zero"),
            (Damage::Lost, Some(lsn)) => write!(
                f,
                "lost: the write of the log block is missing: the block still contains log position \
                 {lsn}, from an earlier round of the ring"
            ),
            (Damage::Lost, None) => f.write_str(
                "lost: the write of the log block is missing: the block was never written",
            ),
            (Damage::Misdirected, Some(lsn)) => {
                write!(f, "misdirected: the block contains the data of log position {lsn}")
            }
            (Damage::Stale, _) => f.write_str("stale: the block is from the log of another store"),
            (damage, _) => write!(f, "{damage}: the log block is damaged"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = self.expected_generation;
        if expected == 0 && self.damage == Damage::Unwritten {
            return f.write_str("unwritten: the page is all zero");
        }
        match (self.damage, self.found) {
            (Damage::Corrupt, None) => f.write_str("corrupt: the checksum is wrong"),
            (Damage::Corrupt, Some(head)) => write!(
                f,
                "corrupt: the page has generation {}, but the last written generation is {expected}",
                head.generation
            ),
            (Damage::Torn, _) => f.write_str("torn: sectors of different writes are mixed"),
            (Damage::Unwritten, _) => {
                write!(f, "unwritten: the page is all zero, but generation {expected} was expected")
            }
            (Damage::Lost, Some(head)) => write!(
                f,
                "lost: the last acknowledged write is missing (the page has the older generation \
                 {}, but generation {expected} was expected)",
                head.generation
            ),
            (Damage::Stale, Some(head)) => write!(
                f,
                "stale: the page has the older generation {}, but generation {expected} was \
                 expected",
                head.generation
            ),
            (Damage::Misdirected, Some(head)) => write!(
                f,
                "misdirected: the block contains page {} of database {} (generation {})",
                head.page, head.database, head.generation
            ),
            (damage, None) => write!(f, "{damage}"),
        }
    }
}
