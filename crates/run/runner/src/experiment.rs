//! An experiment: a directory of related bundles, with `experiment.json` and `report.html`.
//!
//! | file | contents |
//! |---|---|
//! | `RUN/` | the bundle of each run; `run.json` names its arm |
//! | `experiment.json` | kind, runs in order, and the result |
//! | `report.html` | the result as a page |
//! | `SHA256SUMS` | the hashes of the other two files and of the bundles' seals ([`seal`]) |
//!
//! The last three files are derived from the bundles, and are rewritten after each run. If an
//! experiment is interrupted, the results of its finished runs are preserved. The directory may be
//! moved. Any directory of bundles can be compared as one experiment.

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

/// File that marks a directory as an experiment.
pub const FILE: &str = "experiment.json";

/// Format version of that file.
const SCHEMA_VERSION: u32 = 1;

/// A running experiment.
pub struct Experiment {
    id: String,
    kind: ExperimentKind,
    name: String,
    directory: PathBuf,
    runs: Vec<RunEntry>,
    /// Highest number of a run.
    last_number: u32,
    ledger: Ledger,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunEntry {
    run_id: String,
    arm: String,
}

/// Contents of `experiment.json`.
#[derive(Serialize)]
struct Record<'a, T: Serialize> {
    schema_version: u32,
    id: &'a str,
    kind: ExperimentKind,
    name: &'a str,
    runs: &'a [RunEntry],
    result: &'a T,
}

impl Experiment {
    /// Creates an experiment in `bundles`, for a plan of this name.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn begin(
        kind: ExperimentKind,
        name: &str,
        bundles: &Path,
        places: &Places,
    ) -> Result<Self, RunnerError> {
        let id = RunId::now(&format!("{name}-{}", kind.word())).name().to_owned();
        let directory = bundles.join(&id);
        fs::create_dir_all(&directory).map_err(|error| write_error(&directory, &error))?;
        let ledger = Ledger::at(places.ledger());
        Ok(Self::new(id, kind, name, directory, ledger))
    }

    fn new(
        id: String,
        kind: ExperimentKind,
        name: &str,
        directory: PathBuf,
        ledger: Ledger,
    ) -> Self {
        let runs = Vec::new();
        Self { id, kind, name: name.to_owned(), directory, runs, last_number: 0, ledger }
    }

    /// Resumes an interrupted experiment. The caller adds its earlier runs again with
    /// [`Self::note`], including incomplete runs, whose numbers must not be used again.
    ///
    /// # Errors
    /// The directory cannot be read.
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
        Ok(Self::new(id, kind, name, directory, ledger))
    }

    /// Directory of the bundles.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the record that makes the next run a member of this experiment.
    pub fn next_membership(&self, arm: &str) -> Membership {
        Membership {
            id: self.id.clone(),
            kind: self.kind,
            arm: arm.to_owned(),
            number: self.last_number + 1,
            data_of_run: None,
        }
    }

    /// Adds a finished run.
    pub fn note(&mut self, bundle: &Bundle) {
        let place = bundle.run.experiment.as_ref();
        let arm = place.map_or(String::new(), |place| place.arm.clone());
        self.last_number = self.last_number.max(place.map_or(0, |place| place.number));
        self.runs.push(RunEntry { run_id: bundle.run.run_id.clone(), arm });
    }

    /// Writes the result of all finished runs, seals it and records the seal in the ledger.
    ///
    /// # Errors
    /// A file cannot be written.
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

    pub fn report(&self) -> PathBuf {
        self.directory.join("report.html")
    }
}

/// Rejects a directory whose record was not written by Plimsoll.
///
/// # Errors
/// The record is missing, its version is later than this build's, or the file is not a record.
pub fn check_record(directory: &Path) -> Result<(), RunnerError> {
    let path = directory.join(FILE);
    let no_record = |says: &str| {
        RunnerError::usage(format!("{} is not a valid experiment record: {says}", path.display()))
            .hint("nothing was removed")
    };
    let text = fs::read_to_string(&path).map_err(|error| no_record(&error.to_string()))?;
    let record: Identity =
        serde_json::from_str(&text).map_err(|error| no_record(&error.to_string()))?;
    if record.schema_version > SCHEMA_VERSION {
        return Err(no_record(&format!(
            "its format version is {}, which is newer than this build",
            record.schema_version
        )));
    }
    if record.id.is_empty() || record.runs.iter().any(|run| run.run_id.is_empty()) {
        return Err(no_record("the id of the experiment or of a run is missing"));
    }
    Ok(())
}

/// Fields that are present in every record.
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

/// Returns the latest experiment of a kind in `bundles` that can be resumed. `accepts` decides this
/// from the result in the experiment's record.
pub fn find_resumable(
    bundles: &Path,
    kind: ExperimentKind,
    accepts: impl Fn(&serde_json::Value) -> bool,
) -> Option<PathBuf> {
    let entries = fs::read_dir(bundles).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|directory| {
            let Ok(text) = fs::read_to_string(directory.join(FILE)) else { return false };
            let Ok(record) = serde_json::from_str::<serde_json::Value>(&text) else { return false };
            record["kind"] == kind.word() && accepts(&record["result"])
        })
        .collect();
    found.sort();
    found.pop()
}

/// Replaces a file atomically: writes a temporary file and renames it.
fn replace(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), RunnerError> {
    let (path, temporary) = (directory.join(name), directory.join(format!(".{name}.new")));
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, &path))
        .map_err(|error| write_error(&path, &error))
}

fn write_error(path: &Path, error: &std::io::Error) -> RunnerError {
    RunnerError::environment(format!("cannot write {}: {error}", path.display()))
}

/// Returns the kind of an experiment from its `experiment.json`.
///
/// # Errors
/// The file is missing, or Plimsoll did not write it.
pub fn kind_of(directory: &Path) -> Result<ExperimentKind, RunnerError> {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: ExperimentKind,
    }
    read(directory).map(|Kind { kind }| kind)
}

/// Reads `experiment.json`, and returns the range of loads that the search covers.
///
/// # Errors
/// The file is missing, or the experiment is not a search.
pub fn range_of(directory: &Path) -> Result<Range, RunnerError> {
    #[derive(serde::Deserialize)]
    struct SearchResult {
        range: Range,
    }
    #[derive(serde::Deserialize)]
    struct SearchRecord {
        result: SearchResult,
    }
    read(directory).map(|SearchRecord { result }| result.range)
}

/// Returns the result in `experiment.json`.
///
/// # Errors
/// The file is missing, or has another format.
pub fn result_of<T: serde::de::DeserializeOwned>(directory: &Path) -> Result<T, RunnerError> {
    #[derive(serde::Deserialize)]
    struct ResultRecord<T> {
        result: T,
    }
    read(directory).map(|ResultRecord { result }| result)
}

fn read<T: serde::de::DeserializeOwned>(directory: &Path) -> Result<T, RunnerError> {
    let path = directory.join(FILE);
    let unreadable =
        |error: String| RunnerError::usage(format!("cannot read {}: {error}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}
