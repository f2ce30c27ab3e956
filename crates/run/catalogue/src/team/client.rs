//! Synchronises this host's catalogue with the team's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::address::Address;
use super::{Team, hex, is_name};
use crate::archive::export;
use crate::entry::Entry;
use crate::error::CatalogueError;
use crate::index::Catalogue;

/// Maximum time to wait for a server that became unavailable during an upload. A restart of the
/// server takes less time.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Client that a user on this host uses to access a team's catalogue.
#[derive(Clone, Debug)]
pub struct TeamClient {
    address: Address,
    /// File with the identity under which this user's runs are uploaded.
    origin: PathBuf,
    /// Directory in which bundles of other users are unpacked.
    cache: PathBuf,
}

/// Result of a synchronisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Names of the uploaded runs.
    pub pushed: Vec<String>,
    /// Number of other users' runs that were added or changed since the last synchronisation.
    pub received: u64,
    /// Number of runs that this version cannot read.
    pub unreadable: u64,
}

impl TeamClient {
    /// Creates a client. Its identity is in the directory `state`, and unpacked bundles are in
    /// `cache`.
    pub fn new(address: Address, state: &Path, cache: &Path) -> Self {
        Self { address, origin: state.join("origin"), cache: cache.join("team") }
    }

    /// Returns the address without the password, for messages.
    pub fn display_address(&self) -> String {
        self.address.without_password()
    }

    /// Uploads runs of this host that are missing or outdated in the team's catalogue, if `select`
    /// accepts them. Then copies other users' runs to the index.
    ///
    /// # Errors
    /// The server cannot be reached or stays unavailable for more than 30 s, or a bundle cannot be
    /// read. Runs that were uploaded before the error stay in the team's catalogue.
    pub fn sync(
        &self,
        catalogue: &mut Catalogue,
        select: &dyn Fn(&Entry) -> bool,
    ) -> Result<SyncReport, CatalogueError> {
        let mut team = Team::connect(&self.address)?;
        let origin = self.own_origin()?;
        let there: BTreeMap<String, String> =
            self.retry_while_down(&mut team, |team| team.stamps(&origin))?.into_iter().collect();
        let mut report = SyncReport::default();
        for (entry, stamp) in catalogue.own_bundles()? {
            let is_there = there.get(&entry.run_id).is_some_and(|there| *there == stamp);
            if is_there || entry.doubt.is_some() || !select(&entry) || !is_name(&entry.run_id) {
                continue;
            }
            let Some(bundle) = entry.bundle.clone() else { continue };
            let archive = self.archive_path(&entry.run_id)?;
            let put = export(Path::new(&bundle), &archive).and_then(|()| {
                self.retry_while_down(&mut team, |team| {
                    team.upload(&origin, &entry, &stamp, &archive)
                })
            });
            // The archive is no longer needed: the run has been uploaded, or the next upload
            // creates a new archive.
            let _ = fs::remove_file(&archive);
            put?;
            report.pushed.push(entry.run_id);
        }
        self.receive_changes(&mut team, &origin, catalogue, &mut report)?;
        Ok(report)
    }

    /// Returns the directory of a run's bundle, and downloads the bundle if it is not in the cache.
    ///
    /// # Errors
    /// The errors of [`Team::fetch`].
    pub fn fetch(&self, entry: &Entry) -> Result<PathBuf, CatalogueError> {
        let origin = match &entry.origin {
            Some(origin) => origin.clone(),
            None => self.own_origin()?,
        };
        let mut into = self.cache.join(&origin);
        into.extend(&entry.experiment);
        let at = into.join(&entry.run_id);
        if at.is_dir() {
            return Ok(at);
        }
        Team::connect(&self.address)?.fetch(&origin, &entry.run_id, &into)
    }

    /// Repeats an operation while the server is unavailable. It can do this because all operations
    /// are idempotent, even uploads.
    fn retry_while_down<T>(
        &self,
        team: &mut Team,
        mut ask: impl FnMut(&mut Team) -> Result<T, CatalogueError>,
    ) -> Result<T, CatalogueError> {
        let started = Instant::now();
        loop {
            let error = match ask(team) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !team.is_disconnected() || started.elapsed() > RETRY_TIMEOUT {
                return Err(error);
            }
            std::thread::sleep(RETRY_INTERVAL);
            match Team::connect(&self.address) {
                Ok(again) if again.identity() == team.identity() => *team = again,
                // The address now refers to a different database.
                Ok(_) => return Err(error),
                Err(_) => {}
            }
        }
    }

    fn receive_changes(
        &self,
        team: &mut Team,
        own: &str,
        catalogue: &mut Catalogue,
        report: &mut SyncReport,
    ) -> Result<(), CatalogueError> {
        let mut after = catalogue.begin_mirror(team.identity())?;
        loop {
            let changes = self.retry_while_down(team, |team| team.changes(after))?;
            let Some(last) = changes.last().map(|change| change.number) else { return Ok(()) };
            let others: Vec<(String, Entry)> = changes
                .into_iter()
                .filter(|change| change.origin != own)
                .filter_map(|change| {
                    report.unreadable += u64::from(change.entry.is_none());
                    Some((change.origin, change.entry?))
                })
                .collect();
            for (origin, entry) in &others {
                let mut old = self.cache.join(origin);
                old.extend(&entry.experiment);
                // The unpacked copy is outdated, because the run was judged again or tagged.
                let _ = fs::remove_dir_all(old.join(&entry.run_id));
            }
            report.received += others.len() as u64;
            catalogue.mirror(&others, last)?;
            after = last;
        }
    }

    fn archive_path(&self, run_id: &str) -> Result<PathBuf, CatalogueError> {
        let io = |error| CatalogueError::io("create", &self.cache, error);
        fs::create_dir_all(&self.cache).map_err(io)?;
        let archive = self.cache.join(format!(".{run_id}-{}.tar.gz", std::process::id()));
        // An earlier process with the same id, which was killed, may have left this file.
        let _ = fs::remove_file(&archive);
        Ok(archive)
    }

    /// Returns the identity under which this user's runs are uploaded. It is a random value that is
    /// created on first use.
    fn own_origin(&self) -> Result<String, CatalogueError> {
        let read = || fs::read_to_string(&self.origin).map(|text| text.trim().to_owned());
        match read() {
            Ok(origin) if is_name(&origin) => return Ok(origin),
            Ok(_) => {
                let reason = std::io::Error::other(
                    "the file has no valid name; delete it, and Plimsoll will create a new file",
                );
                return Err(CatalogueError::io("use", &self.origin, reason));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(CatalogueError::io("read", &self.origin, error)),
        }
        let io = |error| CatalogueError::io("create", &self.origin, error);
        if let Some(parent) = self.origin.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        let mut random = [0_u8; 16];
        fs::File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut random)).map_err(io)?;
        let half = self.origin.with_extension(std::process::id().to_string());
        let mut file = fs::File::create(&half).map_err(io)?;
        file.write_all(hex(&random).as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
        // If another process created the file first, its identity is used.
        let linked = fs::hard_link(&half, &self.origin);
        let _ = fs::remove_file(&half);
        match linked {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(io(error)),
            _ => read().map_err(io),
        }
    }
}
