//! A bundle on disk: written file by file while a run goes on, sealed at its end, read for judging.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use plimsoll_plan::ResolvedPlan;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::environment::Environment;
use crate::error::EvidenceError;
use crate::latency::{self, Interval};
use crate::observed::Observed;
use crate::run::{Run, SCHEMA_VERSION};
use crate::seal;
use crate::series::{self, Row};

/// The evidence of one run, in memory.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// `run.json`.
    pub run: Run,
    /// `plan.toml`, as given.
    pub plan_text: String,
    /// `resolved.toml`, as run.
    pub plan: ResolvedPlan,
    /// `environment.json`.
    pub environment: Environment,
    /// `series.csv`.
    pub series: Vec<Row>,
    /// `observed.json`.
    pub observed: Observed,
    /// Latencies of the measured phase by tag, merged over its intervals.
    pub latency: BTreeMap<String, Histogram<u64>>,
}

impl Bundle {
    /// Reads the bundle in `directory`, without checking its seal ([`seal::check`]).
    ///
    /// # Errors
    /// A directory that is no bundle, a file that is missing or malformed, a later version.
    pub fn read(directory: &Path) -> Result<Self, EvidenceError> {
        let run_path = directory.join("run.json");
        if !run_path.is_file() {
            return Err(EvidenceError::NotABundle { path: directory.to_path_buf() });
        }
        check_version(directory, &run_path)?;
        let run: Run = read_json(&run_path)?;
        let resolved_path = directory.join("resolved.toml");
        let plan = ResolvedPlan::from_toml(&read_text(&resolved_path)?)
            .map_err(|e| malformed(&resolved_path, e.to_string()))?;
        let series_path = directory.join("series.csv");
        let file =
            fs::File::open(&series_path).map_err(|e| EvidenceError::io("read", &series_path, e))?;
        let series =
            series::read(BufReader::new(file)).map_err(|reason| malformed(&series_path, reason))?;
        let latency = read_latency(directory, &run)?;
        Ok(Self {
            plan_text: read_text(&directory.join("plan.toml"))?,
            plan,
            environment: read_json(&directory.join("environment.json"))?,
            series,
            observed: read_json(&directory.join("observed.json"))?,
            latency,
            run,
        })
    }
}

fn read_latency(
    directory: &Path,
    run: &Run,
) -> Result<BTreeMap<String, Histogram<u64>>, EvidenceError> {
    let Some(measure) = run.measure() else { return Ok(BTreeMap::new()) };
    let path = directory.join("latency.hlog");
    let text = fs::read(&path).map_err(|e| EvidenceError::io("read", &path, e))?;
    let end_ns = measure.start_ns.saturating_add(measure.duration_ns);
    latency::read_merged(&text, measure.start_ns, end_ns.saturating_add(1_000_000))
        .map_err(|reason| malformed(&path, reason))
}

fn check_version(directory: &Path, run_path: &Path) -> Result<(), EvidenceError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let Version { schema_version } = read_json(run_path)?;
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

fn read_text(path: &Path) -> Result<String, EvidenceError> {
    fs::read_to_string(path).map_err(|e| EvidenceError::io("read", path, e))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, EvidenceError> {
    serde_json::from_str(&read_text(path)?).map_err(|e| malformed(path, e.to_string()))
}

/// Writes a bundle. Each file replaces its earlier form at once (write, then rename), so that a
/// kill at any moment leaves whole files.
#[derive(Clone, Debug)]
pub struct BundleWriter {
    directory: PathBuf,
}

impl BundleWriter {
    /// Makes the directory `run_id` below `parent`.
    ///
    /// # Errors
    /// A directory that cannot be made, or that is there already.
    pub fn create(parent: &Path, run_id: &str) -> Result<Self, EvidenceError> {
        fs::create_dir_all(parent).map_err(|e| EvidenceError::io("create", parent, e))?;
        let directory = parent.join(run_id);
        fs::create_dir(&directory).map_err(|e| EvidenceError::io("create", &directory, e))?;
        Ok(Self { directory })
    }

    /// A writer for a bundle that is there already: for its derived files.
    pub fn open(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf() }
    }

    /// The bundle's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the plan as given and as resolved.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn plan(&self, as_given: &str, resolved: &ResolvedPlan) -> Result<(), EvidenceError> {
        self.file("plan.toml", as_given.as_bytes())?;
        let text = resolved
            .to_toml()
            .map_err(|e| malformed(&self.directory.join("resolved.toml"), e.to_string()))?;
        self.file("resolved.toml", text.as_bytes())
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn run(&self, run: &Run) -> Result<(), EvidenceError> {
        self.json("run.json", run)
    }

    /// Writes `environment.json`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn environment(&self, environment: &Environment) -> Result<(), EvidenceError> {
        self.json("environment.json", environment)
    }

    /// Writes `observed.json`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn observed(&self, observed: &Observed) -> Result<(), EvidenceError> {
        self.json("observed.json", observed)
    }

    /// Writes `series.csv`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn series(&self, rows: &[Row]) -> Result<(), EvidenceError> {
        let mut text = Vec::new();
        series::write(&mut text, rows)
            .map_err(|e| EvidenceError::io("write", &self.directory.join("series.csv"), e))?;
        self.file("series.csv", &text)
    }

    /// Writes `latency.hlog`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn latency(
        &self,
        started_unix_ns: u64,
        intervals: &[Interval],
    ) -> Result<(), EvidenceError> {
        let mut text = Vec::new();
        latency::write(&mut text, started_unix_ns, intervals)
            .map_err(|reason| malformed(&self.directory.join("latency.hlog"), reason))?;
        self.file("latency.hlog", &text)
    }

    /// Writes a derived file, which lies outside the seal.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn derived(&self, name: &'static str, bytes: &[u8]) -> Result<(), EvidenceError> {
        debug_assert!(seal::DERIVED.contains(&name));
        self.file(name, bytes)
    }

    /// Seals the bundle; returns the SHA-256 of its seal.
    ///
    /// # Errors
    /// As [`seal::seal`].
    pub fn seal(&self) -> Result<String, EvidenceError> {
        seal::seal(&self.directory)
    }

    fn json(&self, name: &str, value: &impl Serialize) -> Result<(), EvidenceError> {
        let mut text = serde_json::to_string_pretty(value)
            .map_err(|e| malformed(&self.directory.join(name), e.to_string()))?;
        text.push('\n');
        self.file(name, text.as_bytes())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<(), EvidenceError> {
        let temporary = self.directory.join(format!(".{name}.new"));
        let path = self.directory.join(name);
        let write = || {
            fs::write(&temporary, bytes)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|e| EvidenceError::io("write", &path, e))
    }
}
