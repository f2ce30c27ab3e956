//! Finds the file and the byte offset of a damaged part of a store.

use std::path::PathBuf;

use plimsoll_evidence::run::Damage;
use plimsoll_workload::mailbox::{Failure, Finding, MailboxConfig, Place};

/// Paths and configuration of a store, from which the file of each part of the store is computed.
#[derive(Clone, Debug)]
pub struct Locator {
    /// Directories of the store, in the order in which the store numbers them.
    pub directories: Vec<PathBuf>,
    /// Configuration of the store.
    pub config: MailboxConfig,
}

impl Locator {
    /// Returns the file of a finding. If the finding concerns a single position, also returns its
    /// byte offset in the file.
    pub fn locate(&self, finding: &Finding) -> Option<(PathBuf, Option<u64>)> {
        let config = &self.config;
        let database = config.databases.iter().find(|d| d.id == finding.database)?;
        let id = database.id;
        let directory = |number: u32| self.directories.get(number as usize);
        let (path, at) = match finding.place {
            Place::Log(lsn) => {
                let file_bytes = u64::from(config.log_file_bytes).max(1);
                let within = lsn % (u64::from(config.log_files).max(1) * file_bytes);
                let name = format!("db{id:02}-log/{:04}.log", within / file_bytes);
                (directory(database.log_directory)?.join(name), Some(within % file_bytes))
            }
            Place::Page(page) => {
                let at = u64::from(page) * u64::from(config.page_bytes);
                (directory(database.directory)?.join(format!("db{id:02}.edb")), Some(at))
            }
            Place::File => (directory(database.directory)?.join(format!("db{id:02}.edb")), None),
        };
        Some((path, at))
    }

    /// Describes a finding and names its file.
    pub fn describe(&self, finding: &Finding) -> String {
        match self.locate(finding) {
            Some((path, Some(at))) => format!("{finding} ({} at byte {at})", path.display()),
            Some((path, None)) => format!("{finding} ({})", path.display()),
            None => finding.to_string(),
        }
    }

    /// Converts a finding to an entry for the bundle.
    pub fn damage(&self, finding: &Finding) -> Damage {
        let page = match finding.place {
            Place::Page(page) => u64::from(page),
            Place::Log(lsn) => lsn,
            Place::File => 0,
        };
        let kind = match finding.trouble {
            Failure::Page(fault) => fault.damage.name(),
            Failure::LogBlock(fault) => fault.damage.name(),
            Failure::NoLog => "corrupt",
            Failure::LogEnds { .. } | Failure::PageAhead { .. } => "lost",
            Failure::CommitMissing { .. } => "lost",
            Failure::FileEnds { .. } => "truncated",
            Failure::Io(_) | Failure::Short { .. } => "unreadable",
            Failure::Stuck => "defect",
        };
        Damage {
            target: format!("db{}", finding.database),
            page,
            kind: kind.to_owned(),
            says: self.describe(finding),
        }
    }
}
