//! Copies the team's runs to the local index, so that lists also work while the server is
//! unavailable.

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use super::{Catalogue, RunWriter, index_error, parse_entry};
use crate::entry::Entry;
use crate::error::CatalogueError;

impl Catalogue {
    /// Returns this user's runs that have a bundle, each with the stamp of its files.
    pub(crate) fn own_bundles(&self) -> Result<Vec<(Entry, String)>, CatalogueError> {
        let of = "SELECT entry, stamp FROM runs WHERE origin = '' AND bundle IS NOT NULL ORDER BY started";
        let mut statement = self.connection.prepare(of).map_err(index_error)?;
        let rows = statement
            .query_map([], |row| Ok((parse_entry(&row.get::<_, String>(0)?)?, row.get(1)?)))
            .map_err(index_error)?;
        rows.collect::<Result<_, _>>().map_err(index_error)
    }

    /// Starts a transaction that acquires the write lock immediately. A transaction that reads
    /// first and acquires the lock later fails if another process writes in between.
    fn begin_write(&mut self) -> Result<Transaction<'_>, CatalogueError> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(index_error)
    }

    /// Returns the number of the last change that was copied from this database. Deletes runs that
    /// were copied from a different database.
    pub(crate) fn begin_mirror(&mut self, identity: &str) -> Result<i64, CatalogueError> {
        let work = self.begin_write()?;
        let known: Option<i64> = work
            .query_row("SELECT change FROM mirrors WHERE identity = ?1", [identity], |row| {
                row.get(0)
            })
            .optional()
            .map_err(index_error)?;
        if known.is_none() {
            work.execute("DELETE FROM mirrors", []).map_err(index_error)?;
            work.execute("DELETE FROM runs WHERE origin <> ''", []).map_err(index_error)?;
            work.execute("INSERT INTO mirrors VALUES (?1, 0)", [identity]).map_err(index_error)?;
        }
        work.commit().map_err(index_error)?;
        Ok(known.unwrap_or(0))
    }

    /// Writes runs of other users to the index, and the number of the last change that these runs
    /// include.
    pub(crate) fn mirror(
        &mut self,
        others: &[(String, Entry)],
        change: i64,
    ) -> Result<(), CatalogueError> {
        let work = self.begin_write()?;
        let mut runs = RunWriter::new(&work).map_err(index_error)?;
        for (origin, entry) in others {
            let mut entry = Entry {
                origin: Some(origin.clone()),
                bundle: None,
                position: None,
                is_under_way: false,
                ..entry.clone()
            };
            // The runs of other users are not in this host's ledger.
            entry.mark_unverified();
            runs.put(origin, &entry.run_id, &entry, "").map_err(index_error)?;
        }
        drop(runs);
        work.execute("UPDATE mirrors SET change = ?1", params![change]).map_err(index_error)?;
        work.commit().map_err(index_error)
    }

    /// Returns other users' runs of an experiment.
    ///
    /// # Errors
    /// The index was damaged after it was opened.
    pub fn remote_runs_of(&self, experiment: &str) -> Result<Vec<Entry>, CatalogueError> {
        let of =
            "SELECT entry FROM runs WHERE origin <> '' AND ?2 AND experiment = ?1 ORDER BY started";
        self.query_entries(of, params![experiment, self.is_shared])
    }
}
