//! An experiment: a directory of bundles that belong together, with `experiment.json` and
//! `report.html` beside them.
//!
//! | file | what |
//! |---|---|
//! | `RUN/` | the bundle of each run; `run.json` says which arm it is of |
//! | `experiment.json` | kind, runs in their order, and what follows from them |
//! | `report.html` | the same to look at |
//!
//! | `SHA256SUMS` | the seal over both, and over the seals of the bundles ([`seal`]) |
//!
//! All three are derived from the bundles, and written anew after each run: an experiment that is
//! interrupted keeps what it has found so far. The directory may be moved; any directory that holds
//! bundles can be compared as one experiment.

mod seal;

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::{Event, Ledger};
use plimsoll_evidence::run::{ExperimentKind, Membership};
use plimsoll_judge::tuning::Range;
use plimsoll_sys::clock;
use serde::{Deserialize, Serialize};

pub use seal::check;

use crate::error::RunnerError;
use crate::places::Places;
use crate::render;
use crate::run_id::RunId;

/// Name of the file that makes a directory an experiment of ours.
pub const FILE: &str = "experiment.json";

/// Version of that file's form.
const SCHEMA_VERSION: u32 = 1;

/// An experiment under way.
pub struct Experiment {
    id: String,
    kind: ExperimentKind,
    name: String,
    directory: PathBuf,
    runs: Vec<Membered>,
    ledger: Ledger,
}

/// A run of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Membered {
    run_id: String,
    arm: String,
}

/// `experiment.json`.
#[derive(Serialize)]
struct Record<'a, T: Serialize> {
    schema_version: u32,
    id: &'a str,
    kind: ExperimentKind,
    name: &'a str,
    runs: &'a [Membered],
    result: &'a T,
}

impl Experiment {
    /// A new one below `bundles`, for a plan of this name.
    ///
    /// # Errors
    /// A directory that cannot be made.
    pub fn begin(
        kind: ExperimentKind,
        name: &str,
        bundles: &Path,
        places: &Places,
    ) -> Result<Self, RunnerError> {
        let id = RunId::now(&format!("{name}-{}", kind.word())).name().to_owned();
        let directory = bundles.join(&id);
        fs::create_dir_all(&directory).map_err(|error| unwritten(&directory, &error))?;
        let ledger = Ledger::at(places.ledger());
        Ok(Self { id, kind, name: name.to_owned(), directory, runs: Vec::new(), ledger })
    }

    /// One that was interrupted, in its directory; the runs that it has are to be noted again.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn resume(
        kind: ExperimentKind,
        name: &str,
        directory: &Path,
        places: &Places,
    ) -> Result<Self, RunnerError> {
        #[derive(Deserialize)]
        struct Id {
            id: String,
        }
        let Id { id } = read(directory)?;
        let (directory, ledger) = (directory.to_path_buf(), Ledger::at(places.ledger()));
        Ok(Self { id, kind, name: name.to_owned(), directory, runs: Vec::new(), ledger })
    }

    /// Where its bundles are made.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The place of its next run.
    pub fn next(&self, arm: &str) -> Membership {
        Membership {
            id: self.id.clone(),
            kind: self.kind,
            arm: arm.to_owned(),
            number: self.runs.len() as u32 + 1,
            data_of_run: None,
        }
    }

    /// Notes a run that has ended.
    pub fn note(&mut self, bundle: &Bundle) {
        let arm = bundle.run.experiment.as_ref().map_or(String::new(), |place| place.arm.clone());
        self.runs.push(Membered { run_id: bundle.run.run_id.clone(), arm });
    }

    /// Writes what follows from the runs so far, seals it and enters the seal in the ledger.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, result: &impl Serialize, html: &str) -> Result<(), RunnerError> {
        let record = Record {
            schema_version: SCHEMA_VERSION,
            id: &self.id,
            kind: self.kind,
            name: &self.name,
            runs: &self.runs,
            result,
        };
        replace(&self.directory, FILE, render::json(&record)?.as_bytes())?;
        replace(&self.directory, "report.html", html.as_bytes())?;
        let seal_sha256 = seal::seal(&self.directory)?;
        let event = Event::Together { seal_sha256 };
        Ok(self.ledger.enter(&self.id, clock::realtime_ns(), event)?)
    }

    /// Path of its report.
    pub fn report(&self) -> PathBuf {
        self.directory.join("report.html")
    }
}

/// Refuses a directory whose record is none of ours.
///
/// # Errors
/// No record, one of a newer version, or something else of that name.
pub fn check_record(directory: &Path) -> Result<(), RunnerError> {
    let path = directory.join(FILE);
    let no_record = |says: &str| {
        RunnerError::usage(format!("{} is not the record of an experiment: {says}", path.display()))
            .hint("nothing was removed")
    };
    let text = fs::read_to_string(&path).map_err(|error| no_record(&error.to_string()))?;
    let record: Identity =
        serde_json::from_str(&text).map_err(|error| no_record(&error.to_string()))?;
    if record.schema_version > SCHEMA_VERSION {
        return Err(no_record(&format!("it has version {}", record.schema_version)));
    }
    if record.id.is_empty() || record.runs.iter().any(|run| run.run_id.is_empty()) {
        return Err(no_record("it has no id"));
    }
    Ok(())
}

/// What every record has.
#[derive(Deserialize)]
struct Identity {
    schema_version: u32,
    id: String,
    #[serde(rename = "kind")]
    _kind: ExperimentKind,
    runs: Vec<RunIdentity>,
}

#[derive(Deserialize)]
struct RunIdentity {
    run_id: String,
}

/// The latest experiment of a kind below `bundles` whose result `takes` says is to be gone on with.
pub fn unfinished(
    bundles: &Path,
    kind: ExperimentKind,
    takes: impl Fn(&serde_json::Value) -> bool,
) -> Option<PathBuf> {
    let entries = fs::read_dir(bundles).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|directory| {
            let Ok(text) = fs::read_to_string(directory.join(FILE)) else { return false };
            let Ok(record) = serde_json::from_str::<serde_json::Value>(&text) else { return false };
            record["kind"] == kind.word() && takes(&record["result"])
        })
        .collect();
    found.sort();
    found.pop()
}

/// Writes a file beside its old form and puts it in its place at once.
fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), RunnerError> {
    let (path, temporary) = (directory.join(name), directory.join(format!(".{name}.new")));
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, &path))
        .map_err(|error| unwritten(&path, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> RunnerError {
    RunnerError::environment(format!("cannot write {}: {error}", path.display()))
}

/// Why the runs of an experiment belong together, from its `experiment.json`.
///
/// # Errors
/// A file that is not there, or none of ours.
pub fn kind_of(directory: &Path) -> Result<ExperimentKind, RunnerError> {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: ExperimentKind,
    }
    read(directory).map(|Kind { kind }| kind)
}

/// The range of loads that a search went over, from its `experiment.json`.
///
/// # Errors
/// A file that is not there, or not that of a search.
pub fn range_of(directory: &Path) -> Result<Range, RunnerError> {
    #[derive(serde::Deserialize)]
    struct Searched {
        range: Range,
    }
    #[derive(serde::Deserialize)]
    struct Searches {
        result: Searched,
    }
    read(directory).map(|Searches { result }| result.range)
}

/// What follows from an experiment's runs, as its `experiment.json` has it.
///
/// # Errors
/// A file that is not there, or not of that form.
pub fn result_of<T: serde::de::DeserializeOwned>(directory: &Path) -> Result<T, RunnerError> {
    #[derive(serde::Deserialize)]
    struct Found<T> {
        result: T,
    }
    read(directory).map(|Found { result }| result)
}

fn read<T: serde::de::DeserializeOwned>(directory: &Path) -> Result<T, RunnerError> {
    let path = directory.join(FILE);
    let unreadable =
        |error: String| RunnerError::usage(format!("cannot read {}: {error}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}
