//! The index: an SQLite file that is built from the bundles and the ledger. If the index is
//! unusable, it is deleted and rebuilt. If the file cannot be written, the index is in memory.

mod mirror;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll_evidence::ledger::{CachedLedger, Event, Ledger, Link, TornTail};
use plimsoll_evidence::reserve;
use rusqlite::{Connection, Row, Statement, params};

use crate::entry::{Entry, ExperimentEntry};
use crate::error::CatalogueError;
use crate::fleet_runs;
use crate::scan::{self, Fingerprint, Roots, ScannedDirectory};
use crate::verification::LedgerRecord;

/// Version of the tables. An index with a different version is rebuilt.
const VERSION: i32 = 6;

const TABLES: &str = "
    CREATE TABLE runs (
        origin TEXT NOT NULL, run_id TEXT NOT NULL, position INTEGER, name TEXT NOT NULL, started INTEGER NOT NULL,
        ended TEXT, verdict TEXT, experiment TEXT, bundle TEXT, tags TEXT NOT NULL, entry TEXT NOT NULL,
        stamp TEXT NOT NULL, PRIMARY KEY (origin, run_id)
    ) WITHOUT ROWID;
    CREATE INDEX runs_started ON runs (started);
    CREATE TABLE experiments (id TEXT PRIMARY KEY, directory TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE mirrors (identity TEXT PRIMARY KEY, change INTEGER NOT NULL) WITHOUT ROWID;";

/// Conditions that a run must meet to be listed. A condition that is `None` accepts every run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub verdict: Option<String>,
    /// Text that the plan's name must contain.
    pub plan: Option<String>,
    /// Text that the name of the target, file system or device must contain.
    pub target: Option<String>,
    /// Minimum achieved rate, in transactional I/Os per second.
    pub rate_min_per_s: Option<f64>,
    /// Maximum mean latency of reads.
    pub read_latency_max_ns: Option<u64>,
    pub tag: Option<String>,
    /// Runs that started at this time or later.
    pub since_unix_ns: Option<u64>,
    /// Runs that started before this time.
    pub until_unix_ns: Option<u64>,
    /// Only runs whose bundle exists.
    pub with_bundle: bool,
    /// Only runs that have no end and no bundle.
    pub is_open: bool,
    /// Maximum number of runs. If more runs match, the latest are returned.
    pub limit: Option<u32>,
}

/// The runs of one user.
#[derive(Debug)]
pub struct Catalogue {
    connection: Connection,
    /// Directories of bundles. If two directories contain a bundle with the same name, the bundle
    /// in the first directory is used.
    directories: Vec<PathBuf>,
    /// State of the files from which the index was built.
    fingerprint: Fingerprint,
    /// Directory of the ledger.
    state: PathBuf,
    /// True to also list runs of other users from the team's catalogue.
    is_shared: bool,
    /// Incomplete last line of the ledger, left by a killed writer.
    pub torn: Option<TornTail>,
}

impl Catalogue {
    /// Opens or creates the index, and updates it from bundles and ledger.
    ///
    /// # Errors
    /// The ledger is broken, or the index cannot be created even in memory.
    pub fn open(roots: &Roots) -> Result<Self, CatalogueError> {
        Self::open_with(roots, &CachedLedger::new(Ledger::at(&roots.ledger)))
    }

    /// Like [`Self::open`], but with a ledger that caches lines from earlier reads.
    ///
    /// # Errors
    /// The errors of [`Self::open`].
    pub fn open_with(roots: &Roots, ledger: &CachedLedger) -> Result<Self, CatalogueError> {
        let started = SystemTime::now();
        let (links, torn) = ledger.read()?;
        let scanned = scan::scan(roots);
        let experiments = scanned.iter().filter(|one| one.is_experiment);
        let fingerprint = Fingerprint::take(
            roots,
            experiments.map(|one| one.directory.clone()).collect(),
            started,
        );
        let refreshed = |mut connection: Connection| {
            refresh(&mut connection, &links, &scanned).map(|()| connection)
        };
        let tries: [&dyn Fn() -> rusqlite::Result<Connection>; 3] = [
            &|| open_index(&roots.index),
            &|| {
                delete_index(&roots.index);
                open_index(&roots.index)
            },
            &|| create_tables(Connection::open_in_memory()?),
        ];
        let mut reason = String::new();
        for open in tries {
            match open().and_then(refreshed) {
                Ok(connection) => {
                    return Ok(Self {
                        connection,
                        directories: roots.directories.clone(),
                        fingerprint,
                        state: roots.ledger.parent().map(Path::to_path_buf).unwrap_or_default(),
                        is_shared: roots.is_shared,
                        torn,
                    });
                }
                Err(error) => reason = error.to_string(),
            }
        }
        Err(CatalogueError::Index { path: roots.index.clone(), reason })
    }

    /// Returns true if the ledger, bundles and labels seem unchanged. Compares only sizes and
    /// modification times of the ledger and of directories. It therefore does not detect that
    /// another program changed a file in a bundle.
    #[must_use]
    pub fn is_current(&self, roots: &Roots) -> bool {
        self.fingerprint.is_unchanged(roots)
    }

    /// Returns the runs that match a filter, in the order of their start.
    ///
    /// # Errors
    /// The index was damaged after it was opened.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<Entry>, CatalogueError> {
        let part =
            |part: &Option<String>| part.as_ref().map(|part| format!("%{}%", escape_like(part)));
        let time = |ns: Option<u64>| ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let verdict = filter.verdict.as_ref().map(|verdict| verdict.to_uppercase());
        self.query_entries(
            "SELECT entry FROM (SELECT * FROM runs
             WHERE (?1 IS NULL OR verdict = ?1) AND (?2 IS NULL OR name LIKE ?2 ESCAPE '\\')
             AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?3))
             AND (?4 IS NULL OR started >= ?4) AND (?5 IS NULL OR started < ?5)
             AND (origin = '' OR ?9)
             AND (?10 IS NULL OR json_extract(entry, '$.target') LIKE ?10 ESCAPE '\\')
             AND (?11 IS NULL OR json_extract(entry, '$.achieved_iops_per_s') >= ?11)
             AND (?12 IS NULL OR json_extract(entry, '$.read_latency_ns_avg') <= ?12)
             AND (NOT ?6 OR bundle IS NOT NULL OR origin <> '')
             AND (NOT ?8 OR (bundle IS NULL AND ended IS NULL))
             ORDER BY started DESC, run_id DESC LIMIT ?7) ORDER BY started, run_id",
            params![
                verdict,
                part(&filter.plan),
                filter.tag,
                time(filter.since_unix_ns),
                time(filter.until_unix_ns),
                filter.with_bundle,
                filter.limit.map_or(-1, i64::from),
                filter.is_open,
                self.is_shared,
                part(&filter.target),
                filter.rate_min_per_s,
                time(filter.read_latency_max_ns),
            ],
        )
    }

    /// Returns the run that starts at this line of the ledger.
    pub(crate) fn run_at_position(&self, position: u64) -> Result<Option<Entry>, CatalogueError> {
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        let found = self.query_entries(
            "SELECT entry FROM runs WHERE position = ?1 AND origin = ''",
            [position],
        )?;
        Ok(found.into_iter().next())
    }

    /// Returns the runs whose names start with `prefix`, the latest first.
    pub(crate) fn runs_with_prefix(&self, prefix: &str) -> Result<Vec<Entry>, CatalogueError> {
        let like = format!("{}%", escape_like(prefix));
        let of = "SELECT entry FROM runs WHERE run_id LIKE ?1 ESCAPE '\\' AND (origin = '' OR ?2)
                  ORDER BY origin <> '', started DESC LIMIT 20";
        self.query_entries(of, params![like, self.is_shared])
    }

    /// Returns this user's latest run whose bundle exists. If `plan` is not `None`, only runs of
    /// that plan count.
    pub(crate) fn latest_run(&self, plan: Option<&str>) -> Result<Option<Entry>, CatalogueError> {
        let of = "SELECT entry FROM runs WHERE bundle IS NOT NULL AND (?1 IS NULL OR name = ?1)
                  ORDER BY started DESC, run_id DESC LIMIT 1";
        Ok(self.query_entries(of, params![plan])?.into_iter().next())
    }

    /// Returns the experiments whose names start with `prefix`.
    pub(crate) fn experiments_with_prefix(
        &self,
        prefix: &str,
    ) -> Result<Vec<ExperimentEntry>, CatalogueError> {
        let of = "SELECT id, directory FROM experiments WHERE id LIKE ?1 ESCAPE '\\' ORDER BY id DESC LIMIT 20";
        let read = |row: &Row<'_>| {
            Ok(ExperimentEntry {
                id: row.get(0)?,
                directory: PathBuf::from(row.get::<_, String>(1)?),
            })
        };
        let mut statement = self.connection.prepare(of).map_err(index_error)?;
        let rows = statement
            .query_map([format!("{}%", escape_like(prefix))], read)
            .map_err(index_error)?;
        rows.collect::<Result<_, _>>().map_err(index_error)
    }

    fn query_entries(
        &self,
        of: &str,
        with: impl rusqlite::Params,
    ) -> Result<Vec<Entry>, CatalogueError> {
        let mut statement = self.connection.prepare(of).map_err(index_error)?;
        let rows = statement.query_map(with, |row| row.get::<_, String>(0)).map_err(index_error)?;
        let mut entries = Vec::new();
        for text in rows {
            let entry = parse_entry(&text.map_err(index_error)?).map_err(index_error)?;
            entries.push(self.with_activity(entry)?);
        }
        Ok(entries)
    }

    /// Sets whether the run is still running, or can be resumed.
    fn with_activity(&self, mut entry: Entry) -> Result<Entry, CatalogueError> {
        let is_open = entry.end.is_none() && entry.bundle.is_none() && entry.origin.is_none();
        let fleet = is_open.then(|| fleet_runs::is_followed(&self.state, &entry.run_id)).flatten();
        entry.is_under_way = fleet == Some(true) || self.is_under_way(&entry)?;
        entry.is_resumable = fleet == Some(false);
        Ok(entry)
    }

    /// Returns true if the run's process still exists. The process locks the directory of the run's
    /// bundle, which is in a directory of the catalogue or in the directory of the run's
    /// experiment.
    fn is_under_way(&self, entry: &Entry) -> Result<bool, CatalogueError> {
        if entry.end.is_some() || entry.bundle.is_some() {
            return Ok(false);
        }
        let is_held = |parent: &Path| reserve::is_held(&parent.join(&entry.run_id));
        let Some(id) = &entry.experiment else {
            return Ok(self.directories.iter().any(|parent| is_held(parent)));
        };
        let known = self.experiments_with_prefix(id)?;
        let known = known.iter().filter(|one| one.id == *id).map(|one| one.directory.clone());
        // If the first run of an experiment has not finished, the experiment is not in the index
        // yet.
        let mut all = self.directories.iter().map(|parent| parent.join(id)).chain(known);
        Ok(all.any(|parent| is_held(&parent)))
    }
}

fn index_error(error: rusqlite::Error) -> CatalogueError {
    CatalogueError::Index { path: PathBuf::new(), reason: error.to_string() }
}

fn parse_entry(text: &str) -> rusqlite::Result<Entry> {
    let wrong = |error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    };
    serde_json::from_str(text).map_err(wrong)
}

/// Escapes the wildcards of LIKE.
fn escape_like(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

fn open_index(path: &Path) -> rusqlite::Result<Connection> {
    if let Some(parent) = path.parent() {
        // If this fails, opening the file will report the error.
        let _ = std::fs::create_dir_all(parent);
    }
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    match version(&connection)? {
        VERSION => Ok(connection),
        0 => create_tables(connection),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

fn create_tables(mut connection: Connection) -> rusqlite::Result<Connection> {
    // Another process may have created the tables in the meantime.
    let work = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if version(&work)? == 0 {
        work.execute_batch(TABLES)?;
        work.pragma_update(None, "user_version", VERSION)?;
    }
    work.commit()?;
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn delete_index(path: &Path) {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        // If the file cannot be removed, the index stays in memory.
        let _ = std::fs::remove_file(name);
    }
}

/// Updates the index. It reads only bundles whose files have changed.
fn refresh(
    connection: &mut Connection,
    ledger: &[Link],
    scanned: &[ScannedDirectory],
) -> rusqlite::Result<()> {
    let work = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let known: HashMap<String, (String, Option<i64>)> = {
        let mut all = work.prepare("SELECT run_id, stamp, position FROM runs WHERE origin = ''")?;
        let rows = all.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let starts = LedgerRuns::of(ledger);
    let records = LedgerRecord::of_runs(ledger);
    let mut runs = RunWriter::new(&work)?;
    let (mut there, mut damaged) = (HashSet::new(), HashMap::new());
    for one in scanned.iter().filter(|one| !one.is_experiment) {
        let Some(id) = one.directory.file_name().and_then(|name| name.to_str()) else { continue };
        let record = records.get(id);
        let line = record.map_or("-", |record| record.last_line_sha256);
        let stamp = format!("{} {} {line}", one.directory.display(), one.stamp);
        // The run's name is the name of its directory, so bundles that have not changed do not have
        // to be parsed.
        let position = starts.positions.get(id).and_then(|at| i64::try_from(*at).ok());
        if known.get(id).is_some_and(|known| *known == (stamp.clone(), position)) {
            there.insert(id.to_owned());
            continue;
        }
        let Some(mut entry) = Entry::read(one, record) else {
            damaged.insert(id, one);
            continue;
        };
        there.insert(id.to_owned());
        entry.position = starts.positions.get(entry.run_id.as_str()).copied();
        runs.put("", id, &entry, &stamp)?;
    }
    for start in ledger {
        let id = start.entry.run_id.as_str();
        let Some((mut entry, mut stamp)) = starts.without_bundle(start, &there) else { continue };
        if let Some(one) = damaged.get(id) {
            entry.mark_damaged(&one.directory);
            stamp.push_str(&one.stamp);
        }
        let position = entry.position.and_then(|at| i64::try_from(at).ok());
        there.insert(id.to_owned());
        if known.get(id).is_none_or(|known| *known != (stamp.clone(), position)) {
            runs.put("", id, &entry, &stamp)?;
        }
    }
    let gone = known.keys().filter(|id| !there.contains(*id));
    gone.map(|id| work.execute("DELETE FROM runs WHERE origin = '' AND run_id = ?1", [id]))
        .try_for_each(|n| n.map(drop))?;
    drop(runs);
    put_experiments(&work, scanned)?;
    work.commit()
}

/// Updates the table of experiments. Writes only if the table has changed.
fn put_experiments(work: &Connection, scanned: &[ScannedDirectory]) -> rusqlite::Result<()> {
    let known: BTreeMap<String, String> = {
        let mut all = work.prepare("SELECT id, directory FROM experiments")?;
        let rows = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut there = BTreeMap::new();
    for one in scanned.iter().filter(|one| one.is_experiment) {
        let Some(id) = one.directory.file_name() else { continue };
        let directory = one.directory.display().to_string();
        there.entry(id.to_string_lossy().into_owned()).or_insert(directory);
    }
    if there == known {
        return Ok(());
    }
    work.execute("DELETE FROM experiments", [])?;
    for (id, directory) in &there {
        work.execute("INSERT INTO experiments VALUES (?1, ?2)", [id, directory])?;
    }
    Ok(())
}

/// Prepared statement that writes runs to the index.
struct RunWriter<'a>(Statement<'a>);

impl<'a> RunWriter<'a> {
    fn new(work: &'a Connection) -> rusqlite::Result<Self> {
        let put = "INSERT OR REPLACE INTO runs
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        work.prepare(put).map(Self)
    }

    fn put(&mut self, origin: &str, id: &str, entry: &Entry, stamp: &str) -> rusqlite::Result<()> {
        let json = |value: serde_json::Result<String>| {
            value.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
        };
        let values = params![
            origin,
            id,
            entry.position.and_then(|position| i64::try_from(position).ok()),
            entry.name,
            i64::try_from(entry.started_unix_ns).unwrap_or(i64::MAX),
            entry.end,
            entry.verdict,
            entry.experiment,
            entry.bundle,
            json(serde_json::to_string(&entry.tags))?,
            json(serde_json::to_string(entry))?,
            stamp,
        ];
        self.0.execute(values).map(drop)
    }
}

/// Lines of the ledger that record the start and the end of each run.
struct LedgerRuns<'a> {
    positions: HashMap<&'a str, u64>,
    ends: HashMap<&'a str, &'a Link>,
}

impl<'a> LedgerRuns<'a> {
    fn of(ledger: &'a [Link]) -> Self {
        let (mut positions, mut ends) = (HashMap::new(), HashMap::new());
        for link in ledger {
            let run = link.entry.run_id.as_str();
            match &link.entry.event {
                Event::Started { .. } => {
                    positions.entry(run).or_insert(link.entry.position);
                }
                Event::Ended { .. } => drop(ends.insert(run, link)),
                Event::Judged { .. } | Event::Together { .. } => {}
            }
        }
        Self { positions, ends }
    }

    /// Creates the entry and the stamp of a run that has no bundle, from the run's lines in the
    /// ledger. Returns `None` if the line is not the start of such a run.
    fn without_bundle(&self, start: &Link, there: &HashSet<String>) -> Option<(Entry, String)> {
        let line = &start.entry;
        let Event::Started { name, experiment, .. } = &line.event else { return None };
        if there.contains(line.run_id.as_str()) {
            return None;
        }
        let end = self.ends.get(line.run_id.as_str());
        let ended = end.and_then(|link| match &link.entry.event {
            Event::Ended { end, verdict, .. } => Some((end.clone(), verdict.clone())),
            _ => None,
        });
        let stamp = format!("{} {}", start.sha256, end.map_or("-", |link| link.sha256.as_str()));
        let (end, verdict) = ended.unzip();
        let entry = Entry {
            position: Some(line.position),
            run_id: line.run_id.clone(),
            name: name.clone(),
            started_unix_ns: line.unix_ns,
            end,
            verdict,
            experiment: experiment.clone(),
            ..Entry::default()
        };
        Some((entry, stamp))
    }
}
