//! Where Plimsoll keeps its own files: the XDG base directories, never the working directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_evidence::external_directories;
use plimsoll_evidence::signature::Signer;

use crate::error::RunnerError;

/// Directories of this user.
#[derive(Clone, Debug)]
pub struct Places {
    /// Ledger, generation maps: what outlives a run and is not evidence.
    pub state: PathBuf,
    /// Bundles.
    pub runs: PathBuf,
    /// Where the quickstart's data goes when no path is given.
    pub cache: PathBuf,
    /// What evidence is signed with that is left there; `None`: it is not signed.
    pub signer: Option<Arc<Signer>>,
}

impl Places {
    /// From `XDG_STATE_HOME`, `XDG_DATA_HOME` and `XDG_CACHE_HOME`, or their defaults below `HOME`.
    ///
    /// # Errors
    /// None of them is set.
    pub fn from_environment() -> Result<Self, RunnerError> {
        Ok(Self {
            state: base("XDG_STATE_HOME", ".local/state")?,
            runs: base("XDG_DATA_HOME", ".local/share")?.join("runs"),
            cache: base("XDG_CACHE_HOME", ".cache")?,
            signer: None,
        })
    }

    /// Where bundles are made: `out` where it is given, else the catalogue. The last directory of `out` is
    /// made; its parents are not, so that a mistyped path, or one whose file system is not mounted, is
    /// told instead of filled.
    ///
    /// # Errors
    /// A parent that is missing, or something else of that name.
    pub fn bundles(&self, out: Option<&Path>) -> Result<PathBuf, RunnerError> {
        let Some(out) = out else { return Ok(self.runs.clone()) };
        let made = Self::made(out)?;
        // Whoever lists runs looks there too. A state directory that can't be written ends the run soon enough.
        let _ = external_directories::add(&self.noted(), &made);
        Ok(made)
    }

    fn made(out: &Path) -> Result<PathBuf, RunnerError> {
        if out.is_dir() {
            return Ok(out.to_path_buf());
        }
        std::fs::create_dir(out).map(|()| out.to_path_buf()).map_err(|error| {
            let shown = out.display();
            match error.kind() {
                std::io::ErrorKind::NotFound => RunnerError::usage(format!(
                    "--out {shown}: the directory above it does not exist"
                ))
                .hint("make it first (mkdir -p), or mend the path"),
                std::io::ErrorKind::AlreadyExists => {
                    RunnerError::usage(format!("--out {shown}: it is there and is no directory"))
                }
                _ => RunnerError::environment(format!("--out {shown}: {error}")),
            }
        })
    }

    /// Which directories beside [`Places::runs`] bundles were made in.
    pub fn noted(&self) -> PathBuf {
        self.state.join("bundle-directories")
    }

    /// Where bundles lie that came from another machine: none of this one's ledger.
    pub fn imported(&self) -> PathBuf {
        self.runs.with_file_name("imported")
    }

    /// The ledger.
    pub fn ledger(&self) -> PathBuf {
        self.state.join("ledger.jsonl")
    }

    /// Signed statements of the ledger.
    pub fn statements(&self) -> PathBuf {
        self.state.join("ledger-statements")
    }

    /// Generation maps of the stores.
    pub fn stores(&self) -> PathBuf {
        self.state.join("stores")
    }
}

fn base(variable: &str, below_home: &str) -> Result<PathBuf, RunnerError> {
    // The specification: a relative path is to be taken as not set.
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
