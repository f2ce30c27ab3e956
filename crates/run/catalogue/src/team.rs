//! A team's catalogue: one PostgreSQL database with the runs of many hosts and their bundles.
//!
//! - [`Address`]: address of the database. `schema`: its tables and their migrations.
//! - [`Team`]: a connection. It uploads runs, returns changes and downloads bundles.
//! - `client`: synchronises the local catalogue with the team's catalogue. It uploads new runs. It
//!   also copies other users' runs to the local index, so that lists work while the server is
//!   unavailable.
//!
//! The database contains the bundles, divided into parts of 4 MiB. A run and its bundle are written
//! in one transaction, and backups and replicas of the database include the bundles. Hosts
//! therefore do not need a shared directory.

mod address;
mod client;
mod connect;
mod connection;
mod schema;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokio_postgres::Row;

use crate::archive::import;
use crate::entry::Entry;
use crate::error::CatalogueError;

use connection::{Connection, ConnectionError};

pub use address::Address;
pub use client::{SyncReport, TeamClient};

/// Size of the parts into which a bundle's archive is divided. An upload or download uses this much
/// memory.
const PART_BYTES: usize = 4 << 20;
/// Maximum number of changes that a query returns.
const CHANGES_PER_QUERY: i64 = 500;
/// Number of the advisory lock that is acquired before a change gets its number. Readers thus see
/// the changes in the order of their numbers. Any number is possible, except that of the lock for
/// migrations.
const CHANGE_LOCK: i64 = schema::LOCK + 1;

/// A run that was added to the team's catalogue or changed in it.
#[derive(Clone, Debug)]
pub struct Change {
    /// Number of the change. Each later change of the catalogue has a higher number.
    pub number: i64,
    /// Owner of the run, which is one user on one host.
    pub origin: String,
    /// Entry of the run; `None` if this version cannot read it.
    pub entry: Option<Entry>,
}

/// A connection to the team's catalogue.
pub struct Team {
    connection: Connection,
    /// Address without the password, for messages.
    address: String,
    /// Identity of the database, which stays the same if its address changes.
    identity: String,
}

impl Team {
    /// Connects, and migrates the tables to this version.
    ///
    /// # Errors
    /// The server cannot be reached or refuses this user, or a later version wrote the tables.
    pub fn connect(address: &Address) -> Result<Self, CatalogueError> {
        let mut connection = connect::connect(address)?;
        let address = address.without_password();
        let identity = schema::migrate(&mut connection, &address)?;
        Ok(Self { connection, address, identity })
    }

    /// Returns true if the connection is lost. If so, it is unknown whether the last operation took
    /// effect.
    pub fn is_disconnected(&mut self) -> bool {
        self.connection.is_disconnected()
    }

    /// Returns the identity of the database.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the names and stamps of all runs in the team's catalogue that have this origin.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn stamps(&mut self, origin: &str) -> Result<Vec<(String, String)>, CatalogueError> {
        let sql = "SELECT run_id, stamp FROM plimsoll.runs WHERE origin = $1";
        let rows = self.connection.rows(sql, &[&origin]);
        let rows = rows.map_err(|error| failed(&self.address, &error))?;
        let pair = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        let pairs: Result<_, tokio_postgres::Error> = rows.iter().map(pair).collect();
        pairs.map_err(|error| failed(&self.address, &error.into()))
    }

    /// Uploads a run with its bundle in one transaction. If the run already exists with a different
    /// stamp, because it was judged again or tagged, it is replaced. An unchanged run is skipped.
    ///
    /// # Errors
    /// The connection is lost, or the archive cannot be read.
    pub fn upload(
        &mut self,
        origin: &str,
        entry: &Entry,
        stamp: &str,
        archive: &Path,
    ) -> Result<(), CatalogueError> {
        let address = self.address.clone();
        let team = |reason: String| CatalogueError::Team { address: address.clone(), reason };
        let read = |error| CatalogueError::io("read", archive, error);
        let mut file = File::open(archive).map_err(read)?;
        // The path and the ledger number of a bundle are valid only on this host.
        let published = Entry { bundle: None, position: None, origin: None, ..entry.clone() };
        let text = serde_json::to_string(&published).map_err(|error| team(error.to_string()))?;
        let put = self.connection.transaction(|connection| {
            let put = "INSERT INTO plimsoll.runs (origin, run_id, name, started, verdict, stamp, entry)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT (origin, run_id) DO UPDATE SET name = excluded.name, started = excluded.started,
                    verdict = excluded.verdict, stamp = excluded.stamp, entry = excluded.entry
                WHERE plimsoll.runs.stamp <> excluded.stamp
                RETURNING id";
            let started = i64::try_from(entry.started_unix_ns).unwrap_or(i64::MAX);
            let (run_id, name) = (replace_nul(&entry.run_id), replace_nul(&entry.name));
            let verdict = entry.verdict.as_deref().map(replace_nul);
            let row = connection.row_if_any(
                put,
                &[&origin, &run_id, &name, &started, &verdict, &stamp, &text],
            )?;
            // Another process of this user has already uploaded the same run.
            let Some(row) = row else { return Ok(()) };
            let id: i64 = row.try_get(0).map_err(ConnectionError::from)?;
            connection.execute("DELETE FROM plimsoll.parts WHERE run = $1", &[&id])?;
            let digest = put_parts(connection, id, &mut file)?;
            connection.rows("SELECT pg_advisory_xact_lock($1)", &[&CHANGE_LOCK])?;
            let numbered =
                "UPDATE plimsoll.runs SET change = nextval('plimsoll.changes'), archive_sha256 = $2
                WHERE id = $1";
            connection.execute(numbered, &[&id, &digest])?;
            Ok(())
        });
        put.map_err(|error| match error {
            UploadError::Read(error) => read(error),
            UploadError::Connection(error) => failed(&self.address, &error),
        })
    }

    /// Returns the first `CHANGES_PER_QUERY` changes with a higher number than `after`, in
    /// ascending order.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn changes(&mut self, after: i64) -> Result<Vec<Change>, CatalogueError> {
        let sql = "SELECT change, origin, run_id, entry FROM plimsoll.runs WHERE change > $1
            ORDER BY change LIMIT $2";
        let rows = self.connection.rows(sql, &[&after, &CHANGES_PER_QUERY]);
        let rows = rows.map_err(|error| failed(&self.address, &error))?;
        let read = |row: &Row| -> Result<Change, tokio_postgres::Error> {
            let (origin, run_id): (String, String) = (row.try_get(1)?, row.try_get(2)?);
            let text: String = row.try_get(3)?;
            let entry = serde_json::from_str::<Entry>(&text).ok();
            // The names are used in paths on this host, so they are checked.
            let entry = entry.filter(|entry| {
                replace_nul(&entry.run_id) == run_id
                    && is_name(&entry.run_id)
                    && entry.experiment.as_deref().is_none_or(is_name)
                    && is_name(&origin)
            });
            Ok(Change { number: row.try_get(0)?, origin, entry })
        };
        let changes: Result<_, tokio_postgres::Error> = rows.iter().map(read).collect();
        changes.map_err(|error| failed(&self.address, &error.into()))
    }

    /// Downloads and unpacks a run's bundle, and returns its directory.
    ///
    /// # Errors
    /// The run does not exist, its bundle does not match its checksum, or the directory cannot be
    /// written.
    pub fn fetch(
        &mut self,
        origin: &str,
        run_id: &str,
        into: &Path,
    ) -> Result<PathBuf, CatalogueError> {
        let address = self.address.clone();
        let failed = |error: ConnectionError| failed(&address, &error);
        let sql = "SELECT id, archive_sha256 FROM plimsoll.runs WHERE origin = $1 AND run_id = $2";
        let row = self.connection.row_if_any(sql, &[&origin, &run_id]).map_err(failed)?;
        let row = row.ok_or_else(|| {
            CatalogueError::Name(format!(
                "cannot fetch {run_id}: it is no longer in the team's catalogue"
            ))
        })?;
        let of = |error: tokio_postgres::Error| failed(error.into());
        let (id, stated): (i64, String) =
            (row.try_get(0).map_err(of)?, row.try_get(1).map_err(of)?);
        fs::create_dir_all(into).map_err(|error| CatalogueError::io("create", into, error))?;
        let packed = into.join(format!(".{run_id}-{}.tar.gz", std::process::id()));
        let found = self.write_parts(id, &packed).and_then(|digest| {
            if digest == stated {
                return import(&packed, into);
            }
            let reason =
                format!("cannot fetch {run_id}: the stored bundle does not match its checksum");
            Err(CatalogueError::Team { address: address.clone(), reason })
        });
        // The archive is no longer needed: it has been unpacked, or is not usable.
        let _ = fs::remove_file(&packed);
        let found = found?;
        if found.file_name().is_some_and(|name| name == run_id) {
            return Ok(found);
        }
        let _ = fs::remove_dir_all(&found);
        let reason = format!("cannot fetch {run_id}: the stored bundle belongs to another run");
        Err(CatalogueError::Team { address, reason })
    }

    fn write_parts(&mut self, id: i64, to: &Path) -> Result<String, CatalogueError> {
        let write = |error| CatalogueError::io("write", to, error);
        let mut file = File::create(to).map_err(write)?;
        let mut digest = Sha256::new();
        // Parts are read one by one, so that only a single part is in memory.
        let sql = "SELECT bytes FROM plimsoll.parts WHERE run = $1 AND number = $2";
        for number in 0_i32.. {
            let part = self.connection.row_if_any(sql, &[&id, &number]);
            let Some(part) = part.map_err(|error| failed(&self.address, &error))? else { break };
            let bytes = part.try_get(0).map_err(|error| failed(&self.address, &error.into()));
            let bytes: &[u8] = bytes?;
            digest.update(bytes);
            file.write_all(bytes).map_err(write)?;
        }
        Ok(hex(&digest.finalize()))
    }
}

/// Reason why an upload failed.
enum UploadError {
    /// The archive cannot be read.
    Read(std::io::Error),
    /// The server rejected the run, or the connection is lost.
    Connection(ConnectionError),
}

impl From<ConnectionError> for UploadError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

fn put_parts(connection: &mut Connection, id: i64, file: &mut File) -> Result<String, UploadError> {
    let mut digest = Sha256::new();
    let mut part = Vec::with_capacity(PART_BYTES);
    for number in 0_i32.. {
        part.clear();
        let read = (&mut *file).take(PART_BYTES as u64).read_to_end(&mut part);
        if read.map_err(UploadError::Read)? == 0 {
            break;
        }
        digest.update(&part);
        let put = "INSERT INTO plimsoll.parts (run, number, bytes) VALUES ($1, $2, $3)";
        connection.execute(put, &[&id, &number, &part])?;
    }
    Ok(hex(&digest.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces zero characters, which PostgreSQL cannot store in a text.
fn replace_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns true if a name can be a component of a path.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c != '/' && c != '\\' && !c.is_control();
    (1..=200).contains(&name.len()) && !name.starts_with('.') && name.chars().all(plain)
}

fn failed(address: &str, error: &ConnectionError) -> CatalogueError {
    CatalogueError::Team { address: address.to_owned(), reason: error.message() }
}
