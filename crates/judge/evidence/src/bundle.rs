//! The bundle on disk. A run writes the bundle file by file, and seals the bundle at the end. The
//! judge reads the bundle.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use plimsoll_plan::ResolvedPlan;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::environment::Environment;
use crate::error::EvidenceError;
use crate::latency::{self, Interval, Window};
use crate::observed::Observed;
use crate::reserve::{self, Reserve};
use crate::run::{Phase, PhaseKind, Run, SCHEMA_VERSION};
use crate::seal::{self, SealedFiles, sha256_hex};
use crate::series::{self, Row};
use crate::strict;

/// Maximum size of the seal file, in bytes.
const SEAL_BYTES_MAX: u64 = 4096;

/// The evidence of one run, in memory.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// `run.json`.
    pub run: Run,
    /// `plan.toml`, as the user wrote it.
    pub plan_text: String,
    /// `job.fio`: the fio job to which the plan refers; `None` if it refers to no job.
    pub job_text: Option<String>,
    /// `resolved.toml`: the plan with all defaults.
    pub plan: ResolvedPlan,
    /// `environment.json`.
    pub environment: Environment,
    /// `series.csv`.
    pub series: Vec<Row>,
    /// `observed.json`.
    pub observed: Observed,
    /// For each tag, the latency histogram of the measured phase. It is merged over all intervals
    /// of the phase.
    pub latency: BTreeMap<String, Histogram<u64>>,
    /// Latency histograms of each class in each interval. The judge derives the autocorrelation
    /// from these histograms. Empty if a result is not divided into intervals.
    pub latency_spans: Vec<Interval>,
    /// SHA-256 that the seal had when the bundle was read. `None` if the bundle was not read from
    /// disk, but was built in memory from a new measurement or an imported result.
    pub seal_sha256: Option<String>,
}

impl Bundle {
    /// Reads the bundle in `directory`, and checks the bytes that it reads against the seal.
    ///
    /// # Errors
    /// The directory is not a bundle, the seal is broken, a file is missing or malformed, or a
    /// later version wrote the bundle.
    pub fn read(directory: &Path) -> Result<Self, EvidenceError> {
        let run_path = directory.join("run.json");
        if fs::symlink_metadata(&run_path).is_err() {
            return Err(EvidenceError::NotABundle { path: directory.to_path_buf() });
        }
        let sealed = seal::open(directory)?;
        check_version(directory, &run_path, sealed.text("run.json")?)?;
        if let Some(name) = sealed.names().find(|name| !FILES.contains(name)) {
            let reason = "bundles of this version do not contain this file".to_owned();
            return Err(malformed(&directory.join(name), reason));
        }
        let run: Run = json(directory, &sealed, "run.json")?;
        let resolved_path = directory.join("resolved.toml");
        let resolved = sealed.text("resolved.toml")?;
        if sha256_hex(resolved.as_bytes()) != run.plan_sha256 {
            let reason = "its SHA-256 differs from the plan_sha256 in run.json".to_owned();
            return Err(malformed(&resolved_path, reason));
        }
        let plan = ResolvedPlan::from_toml(resolved)
            .map_err(|e| malformed(&resolved_path, e.to_string()))?;
        let has_job = sealed.names().any(|name| name == JOB);
        let job_text = has_job.then(|| sealed.text(JOB).map(str::to_owned)).transpose()?;
        let series = series::read(sealed.bytes("series.csv")?)
            .map_err(|reason| malformed(&directory.join("series.csv"), reason))?;
        let latency = read_latency(directory, sealed.bytes("latency.hlog")?, &run)?;
        Ok(Self {
            plan_text: sealed.text("plan.toml")?.to_owned(),
            job_text,
            plan,
            environment: json(directory, &sealed, "environment.json")?,
            series,
            observed: json(directory, &sealed, "observed.json")?,
            latency: latency.merged,
            latency_spans: latency.spans,
            run,
            seal_sha256: Some(sealed.sha256),
        })
    }
}

fn read_latency(
    directory: &Path,
    text: &[u8],
    run: &Run,
) -> Result<latency::MeasuredLatency, EvidenceError> {
    let Some(measure) = run.measure() else { return Ok(latency::MeasuredLatency::default()) };
    let is_class = |tag: &str| run.classes.iter().any(|class| class.name == tag);
    latency::read_measured(text, Window::new(measure.start_ns, measure.duration_ns), is_class)
        .map_err(|reason| malformed(&directory.join("latency.hlog"), reason))
}

fn check_version(directory: &Path, path: &Path, text: &str) -> Result<(), EvidenceError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let Version { schema_version } =
        serde_json::from_str(text).map_err(|error| malformed(path, error.to_string()))?;
    if schema_version > SCHEMA_VERSION {
        return Err(EvidenceError::TooNew {
            path: directory.to_path_buf(),
            found: schema_version,
            known: SCHEMA_VERSION,
        });
    }
    Ok(())
}

fn malformed(path: &Path, reason: String) -> EvidenceError {
    EvidenceError::Malformed { path: path.to_path_buf(), reason }
}

fn json<T: DeserializeOwned + Serialize>(
    directory: &Path,
    sealed: &SealedFiles,
    name: &str,
) -> Result<T, EvidenceError> {
    strict::read(sealed.text(name)?).map_err(|reason| malformed(&directory.join(name), reason))
}

/// Name of the file that contains the fio job. Only bundles whose plan refers to a fio job contain
/// this file.
pub const JOB: &str = "job.fio";

/// Names of all files that can be in a bundle, including files that the seal does not protect.
/// Plimsoll did not create any other file in the directory.
pub const FILES: [&str; 12] = [
    "plan.toml",
    JOB,
    "resolved.toml",
    "environment.json",
    "latency.hlog",
    "series.csv",
    "observed.json",
    "run.json",
    "verdict.json",
    "report.html",
    seal::FILE,
    seal::SIGNATURE,
];

/// Writer of a bundle. It writes each file under a temporary name and then renames it. All files of
/// the bundle are therefore complete, even if the process is killed.
#[derive(Debug)]
pub struct BundleWriter {
    directory: PathBuf,
    reserve: Option<Reserve>,
}

impl BundleWriter {
    /// Creates the directory `run_id` in `parent`.
    ///
    /// # Errors
    /// The directory exists already or cannot be created.
    pub fn create(parent: &Path, run_id: &str) -> Result<Self, EvidenceError> {
        fs::create_dir_all(parent).map_err(|e| EvidenceError::io("create", parent, e))?;
        let directory = parent.join(run_id);
        fs::create_dir(&directory).map_err(|e| EvidenceError::io("create", &directory, e))?;
        Ok(Self { directory, reserve: None })
    }

    /// Opens an existing bundle, to write its derived files.
    pub fn open(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), reserve: None }
    }

    /// Reserves disk space for the files that are not yet written. The reserve exists until the
    /// bundle is sealed or the writer is dropped.
    ///
    /// # Errors
    /// The file system has too little free space.
    pub fn reserve(&mut self, size_bytes: u64) -> Result<(), EvidenceError> {
        self.reserve = Some(Reserve::create(&self.directory, size_bytes)?);
        Ok(())
    }

    /// Removes the files of the bundle. Also removes the directory if it contains no other files.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn discard(self) -> Result<(), EvidenceError> {
        let directory = self.directory.clone();
        drop(self);
        remove(&directory).map(|_| ())
    }

    /// Directory of the bundle.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the plan as the user wrote it, the fio job to which it refers, and the resolved plan.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn plan(
        &self,
        as_given: &str,
        job: Option<&str>,
        resolved: &ResolvedPlan,
    ) -> Result<(), EvidenceError> {
        self.file("plan.toml", as_given.as_bytes())?;
        if let Some(job) = job {
            self.file(JOB, job.as_bytes())?;
        }
        let text = resolved
            .to_toml()
            .map_err(|e| malformed(&self.directory.join("resolved.toml"), e.to_string()))?;
        self.file("resolved.toml", text.as_bytes())
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn run(&self, run: &Run) -> Result<(), EvidenceError> {
        self.json("run.json", run)
    }

    /// Writes `environment.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn environment(&self, environment: &Environment) -> Result<(), EvidenceError> {
        self.json("environment.json", environment)
    }

    /// Writes `observed.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn observed(&self, observed: &Observed) -> Result<(), EvidenceError> {
        self.json("observed.json", observed)
    }

    /// Writes `series.csv`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn series(&self, rows: &[Row]) -> Result<(), EvidenceError> {
        let mut text = Vec::new();
        series::write(&mut text, rows)
            .map_err(|e| EvidenceError::io("write", &self.directory.join("series.csv"), e))?;
        self.file("series.csv", &text)
    }

    /// Writes `latency.hlog`. `phases` determines which intervals belong to the measured phase.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn latency(
        &self,
        started_unix_ns: u64,
        intervals: &[Interval],
        phases: &[Phase],
    ) -> Result<(), EvidenceError> {
        let mut text = Vec::new();
        let measured = phases.iter().find(|phase| phase.kind == PhaseKind::Measure);
        let measured = measured.map(|phase| Window::new(phase.start_ns, phase.duration_ns));
        latency::write(&mut text, started_unix_ns, intervals, measured)
            .map_err(|reason| malformed(&self.directory.join("latency.hlog"), reason))?;
        self.file("latency.hlog", &text)
    }

    /// Writes a derived file, which the seal does not protect.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn derived(&self, name: &'static str, bytes: &[u8]) -> Result<(), EvidenceError> {
        debug_assert!(seal::DERIVED.contains(&name));
        self.file(name, bytes)
    }

    /// Seals the bundle, and returns the SHA-256 of the seal.
    ///
    /// # Errors
    /// See [`seal::seal`].
    pub fn seal(&self) -> Result<String, EvidenceError> {
        self.make_room(SEAL_BYTES_MAX);
        let seal = seal::seal(&self.directory)?;
        if let Some(reserve) = &self.reserve {
            reserve.release();
        }
        Ok(seal)
    }

    fn make_room(&self, size_bytes: u64) {
        if let Some(reserve) = &self.reserve {
            reserve.make_room(size_bytes);
        }
    }

    fn json(&self, name: &str, value: &impl Serialize) -> Result<(), EvidenceError> {
        let mut text = serde_json::to_string_pretty(value)
            .map_err(|e| malformed(&self.directory.join(name), e.to_string()))?;
        text.push('\n');
        self.file(name, text.as_bytes())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<(), EvidenceError> {
        self.make_room(bytes.len() as u64);
        let temporary = self.directory.join(temporary_name(name));
        let path = self.directory.join(name);
        let write = || {
            fs::write(&temporary, bytes)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|e| {
            // Removes the partial file: it is useless, and the disk may be full.
            let _ = fs::remove_file(&temporary);
            EvidenceError::io("write", &path, e)
        })
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        if let Some(reserve) = &self.reserve {
            reserve.release();
        }
    }
}

/// Returns the temporary name of a file, under which it is written.
fn temporary_name(name: &str) -> String {
    format!(".{name}.new")
}

/// Removes the bundle's files in `directory`, and the directory if it is then empty. Files that do
/// not belong to the bundle are not removed. Returns the names of these files.
///
/// # Errors
/// The directory cannot be read, or a file cannot be removed.
pub fn remove(directory: &Path) -> Result<Vec<String>, EvidenceError> {
    let gone = |result: std::io::Result<()>, path: &Path| match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EvidenceError::io("remove", path, error))
        }
        _ => Ok(()),
    };
    let temporary = FILES.iter().map(|name| temporary_name(name));
    let names = FILES.iter().map(|name| (*name).to_owned()).chain(temporary);
    for name in names.chain([reserve::FILE.to_owned()]) {
        let path = directory.join(name);
        // A subdirectory with the name of a bundle file does not belong to the bundle.
        if fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_dir()) {
            gone(fs::remove_file(&path), &path)?;
        }
    }
    let entries = fs::read_dir(directory).map_err(|e| EvidenceError::io("read", directory, e))?;
    let mut left: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    left.sort();
    if left.is_empty() {
        gone(fs::remove_dir(directory), directory)?;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserves_space_until_the_seal_and_gives_it_to_files() {
        let parent = tempfile::tempdir().unwrap();
        let mut writer = BundleWriter::create(parent.path(), "run").unwrap();
        writer.reserve(1 << 20).unwrap();
        let reserve = parent.path().join("run/.reserve");
        let held = || fs::metadata(&reserve).map_or(0, |metadata| metadata.len());
        assert_eq!(held(), 1 << 20);
        assert!(reserve::is_held(&parent.path().join("run")), "its run lives");
        writer.file("series.csv", &[7; 100_000]).unwrap();
        assert_eq!(held(), (1 << 20) - 100_000 - (16 << 10));
        writer.seal().unwrap();
        assert_eq!(held(), 0);
        assert!(seal::open(&parent.path().join("run")).is_ok());
    }

    #[test]
    fn cannot_reserve_more_than_the_free_space() {
        let parent = tempfile::tempdir().unwrap();
        let mut writer = BundleWriter::create(parent.path(), "run").unwrap();
        assert!(writer.reserve(1 << 60).is_err());
        assert!(!parent.path().join("run/.reserve").exists());
    }

    #[test]
    fn only_the_files_of_a_bundle_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join("run").join(name);
        let writer = BundleWriter::create(parent.path(), "run").unwrap();
        for name in FILES {
            fs::write(at(name), "x").unwrap();
        }
        fs::write(at(".series.csv.new"), "x").unwrap();
        fs::write(at("notes.txt"), "mine").unwrap();
        fs::create_dir(at("figures")).unwrap();
        drop(writer);
        assert_eq!(remove(&parent.path().join("run")).unwrap(), ["figures", "notes.txt"]);
        assert_eq!(fs::read_to_string(at("notes.txt")).unwrap(), "mine");
        fs::remove_file(at("notes.txt")).unwrap();
        fs::remove_dir(at("figures")).unwrap();
        assert!(remove(&parent.path().join("run")).unwrap().is_empty());
        assert!(!parent.path().join("run").exists());
    }
}
