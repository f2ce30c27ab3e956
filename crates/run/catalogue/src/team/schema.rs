//! Tables of a team's catalogue, and migrations from earlier versions.

use super::connection::{Connection, ConnectionError};
use super::failed;
use crate::error::CatalogueError;

/// Number of the advisory lock for migrations, which is needed because two hosts may connect at the
/// same time. Its bytes are the text "plimsoll".
pub(super) const LOCK: i64 = i64::from_be_bytes(*b"plimsoll");

/// Each step migrates the tables to the next version. A released step is never changed.
const STEPS: [&str; 2] = [
    // Version 1 contains runs and their bundles.
    "CREATE TABLE plimsoll.runs (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        origin TEXT NOT NULL,
        run_id TEXT NOT NULL,
        name TEXT NOT NULL,
        started BIGINT NOT NULL,
        verdict TEXT,
        stamp TEXT NOT NULL,
        entry TEXT NOT NULL,
        UNIQUE (origin, run_id)
    );
    CREATE TABLE plimsoll.parts (
        run BIGINT NOT NULL REFERENCES plimsoll.runs ON DELETE CASCADE,
        number INTEGER NOT NULL,
        bytes BYTEA NOT NULL,
        PRIMARY KEY (run, number)
    );",
    // Version 2 adds checksums of bundles, and numbers of changes, so that clients can read only
    // new changes.
    "CREATE SEQUENCE plimsoll.changes;
    ALTER TABLE plimsoll.runs ADD COLUMN change BIGINT, ADD COLUMN archive_sha256 TEXT;
    UPDATE plimsoll.runs SET change = nextval('plimsoll.changes'), archive_sha256 = (
        SELECT encode(sha256(coalesce(string_agg(bytes, ''::bytea ORDER BY number), ''::bytea)), 'hex')
        FROM plimsoll.parts WHERE run = plimsoll.runs.id);
    CREATE INDEX runs_change ON plimsoll.runs (change);
    CREATE INDEX runs_started ON plimsoll.runs (started);",
];

/// Migrates the tables to this version, and returns the identity of the database.
///
/// # Errors
/// A later version wrote the tables, the user has no permission to create tables, or the connection
/// is lost.
pub(super) fn migrate(
    connection: &mut Connection,
    address: &str,
) -> Result<String, CatalogueError> {
    let outcome: Result<Result<String, String>, ConnectionError> = connection.transaction(steps);
    match outcome {
        Ok(Ok(identity)) => Ok(identity),
        Ok(Err(reason)) => Err(CatalogueError::Team { address: address.to_owned(), reason }),
        Err(error) => Err(failed(address, &error)),
    }
}

/// Returns the identity of the database, or the reason why it is not usable.
fn steps(connection: &mut Connection) -> Result<Result<String, String>, ConnectionError> {
    let version = STEPS.len();
    connection.rows("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
    // Tables are created only if they do not exist, so that a user without the right to create
    // tables can also connect.
    let is_there: bool =
        connection.row("SELECT to_regclass('plimsoll.about') IS NOT NULL", &[])?.try_get(0)?;
    if !is_there {
        connection.execute_all(
            "CREATE SCHEMA IF NOT EXISTS plimsoll;
            CREATE TABLE plimsoll.about (version INTEGER NOT NULL, identity TEXT NOT NULL);
            INSERT INTO plimsoll.about VALUES (0, gen_random_uuid()::text);",
        )?;
    }
    let row = connection.row("SELECT version, identity FROM plimsoll.about", &[])?;
    let (found, identity): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    let found = usize::try_from(found).unwrap_or(usize::MAX);
    if found > version {
        return Ok(Err(format!(
            "its tables have version {found}, but this build supports only versions up to \
             {version}: install a newer Plimsoll"
        )));
    }
    for step in STEPS.iter().skip(found) {
        connection.execute_all(step)?;
    }
    if found < version {
        let version = i32::try_from(version).unwrap_or(i32::MAX);
        connection.execute("UPDATE plimsoll.about SET version = $1", &[&version])?;
    }
    Ok(Ok(identity))
}
