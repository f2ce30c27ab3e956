//! Directories of Plimsoll's own files: Plimsoll uses the XDG base directories, never the working
//! directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_evidence::external_directories;
use plimsoll_evidence::signature::Signer;

use crate::error::RunnerError;

/// This user's directories and signing key.
#[derive(Clone, Debug)]
pub struct Places {
    /// Ledger and generation maps: files that outlive a run and are not evidence.
    pub state: PathBuf,
    /// Catalogue of bundles.
    pub runs: PathBuf,
    /// Data directory of the quickstart, used if no path is given.
    pub cache: PathBuf,
    /// Key that signs evidence; `None` if evidence is not signed.
    pub signer: Option<Arc<Signer>>,
}

impl Places {
    /// Uses `XDG_STATE_HOME`, `XDG_DATA_HOME` and `XDG_CACHE_HOME`, or their defaults in `HOME`.
    ///
    /// # Errors
    /// Neither a variable nor `HOME` is set.
    pub fn from_environment() -> Result<Self, RunnerError> {
        Ok(Self {
            state: base("XDG_STATE_HOME", ".local/state")?,
            runs: base("XDG_DATA_HOME", ".local/share")?.join("runs"),
            cache: base("XDG_CACHE_HOME", ".cache")?,
            signer: None,
        })
    }

    /// Returns the directory for bundles: `out`, or otherwise the catalogue. Creates the last
    /// component of `out` but not its parents: a mistyped path, or one on an unmounted file system,
    /// is an error.
    ///
    /// # Errors
    /// The parent is missing, or a file with this name exists.
    pub fn bundles(&self, out: Option<&Path>) -> Result<PathBuf, RunnerError> {
        let Some(out) = out else { return Ok(self.runs.clone()) };
        let directory = Self::create(out)?;
        // This makes the catalogue also list the bundles in this directory. An error is ignored
        // here, because errors of the state directory are reported when the run uses it.
        let _ = external_directories::add(&self.bundle_directory_list(), &directory);
        Ok(directory)
    }

    fn create(out: &Path) -> Result<PathBuf, RunnerError> {
        if out.is_dir() {
            return Ok(out.to_path_buf());
        }
        std::fs::create_dir(out).map(|()| out.to_path_buf()).map_err(|error| {
            let shown = out.display();
            match error.kind() {
                std::io::ErrorKind::NotFound => RunnerError::usage(format!(
                    "--out {shown}: its parent directory does not exist"
                ))
                .hint("create the parent directory first (mkdir -p), or correct the path"),
                std::io::ErrorKind::AlreadyExists => {
                    RunnerError::usage(format!("--out {shown}: it exists and is not a directory"))
                }
                _ => RunnerError::environment(format!("--out {shown}: {error}")),
            }
        })
    }

    /// File with the list of directories that contain bundles but are outside of [`Places::runs`].
    pub fn bundle_directory_list(&self) -> PathBuf {
        self.state.join("bundle-directories")
    }

    /// Directory of bundles from other machines, which are not in this ledger.
    pub fn imported(&self) -> PathBuf {
        self.runs.with_file_name("imported")
    }

    /// File of the ledger.
    pub fn ledger(&self) -> PathBuf {
        self.state.join("ledger.jsonl")
    }

    /// Directory of signed statements about the ledger.
    pub fn statements(&self) -> PathBuf {
        self.state.join("ledger-statements")
    }

    /// Directory of generation maps.
    pub fn stores(&self) -> PathBuf {
        self.state.join("stores")
    }
}

fn base(variable: &str, below_home: &str) -> Result<PathBuf, RunnerError> {
    // According to the XDG specification, a variable with a relative path counts as not set.
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        home.map(|home| home.join(below_home))
    };
    let base = set.or_else(home).ok_or_else(|| {
        RunnerError::environment(format!("neither {variable} nor HOME is set to an absolute path"))
            .hint(format!("set {variable} to a directory that you may write to"))
    })?;
    Ok(base.join("plimsoll"))
}
