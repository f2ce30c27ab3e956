//! Error type of this crate. An error has a kind, a message and hints.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use plimsoll_engine::{EngineError, ErrorKind};
use plimsoll_evidence::{EvidenceError, seal};

use crate::exit::Exit;

/// Error with a message for the operator and an exit code.
#[derive(Debug)]
pub struct RunnerError {
    /// Exit code.
    pub kind: Exit,
    /// Text that states what failed, and why.
    pub message: String,
    /// Hints, one line each.
    pub hints: Vec<String>,
}

impl RunnerError {
    pub fn new(kind: Exit, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Creates an error for wrong usage or a wrong plan.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates an error for a failed target or environment.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Exit::Environment, message)
    }

    /// Creates the error for a file or directory that the user named. A wrong name is a usage
    /// error.
    pub fn named_path(doing: &str, path: &Path, error: &io::Error) -> Self {
        use io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory, NotFound};
        let says = format!("cannot {doing} {}: {error}", path.display());
        match error.kind() {
            AlreadyExists => Self::usage(says).hint("specify a file that does not exist yet"),
            NotFound | NotADirectory | IsADirectory => Self::usage(says).hint("check the path"),
            _ => Self::environment(says),
        }
    }

    /// Converts an error about a file that the user named.
    pub fn of_named_file(error: EvidenceError) -> Self {
        match error {
            EvidenceError::Io { doing, path, source } => Self::named_path(doing, &path, &source),
            error => error.into(),
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns message and hints in one line, for use inside another message.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let message = self.message.trim_start_matches("error: ");
        let all = std::iter::once(message).chain(self.hints.iter().map(String::as_str));
        let lines = all.flat_map(str::lines).map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for RunnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A message from another program may already begin with this prefix.
        write!(f, "error: {}", self.message.trim_start_matches("error: "))?;
        self.hints.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl From<EvidenceError> for RunnerError {
    fn from(error: EvidenceError) -> Self {
        let kind = match &error {
            // Converts an error that occurred before a run started. A wrong name in the plan is a
            // usage error.
            EvidenceError::Io { .. } | EvidenceError::LedgerBroken { .. } => Exit::Environment,
            EvidenceError::NotABundle { .. }
            | EvidenceError::TooNew { .. }
            | EvidenceError::Key { .. } => Exit::Usage,
            // The evidence or the ledger was changed.
            EvidenceError::SealBroken { .. }
            | EvidenceError::Signature { .. }
            | EvidenceError::Malformed { .. } => Exit::NoVerdict,
        };
        let message = error.to_string();
        match error {
            EvidenceError::NotABundle { path } => {
                let error = Self::new(kind, message);
                match hint_of_runs(&path) {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            }
            EvidenceError::LedgerBroken { path, .. } => Self::new(kind, message).hint(format!(
                "move {} to another directory to start a new ledger; earlier runs will no longer be \
                 listed",
                path.display()
            )),
            _ => Self::new(kind, message),
        }
    }
}

fn is_run(path: &Path) -> bool {
    [seal::FILE, "run.json"].iter().any(|name| path.join(name).is_file())
}

/// Returns a hint that names a run in a directory, such as the directory of `--out`.
pub(crate) fn hint_of_runs(directory: &Path) -> Option<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    runs.sort();
    let first = runs.first()?.display();
    Some(match runs.len() {
        1 => format!("it contains the run {first}"),
        several => format!("it contains {several} runs; specify one, such as {first}"),
    })
}

/// Converts an error that occurred before a run started. A wrong name in the plan is a usage error.
pub fn engine_error(error: &EngineError) -> RunnerError {
    let kind = match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::TooSmall
        | ErrorKind::Memory
        | ErrorKind::FileLimit
        | ErrorKind::Config
        | ErrorKind::HasData
        | ErrorKind::Exists => Exit::Usage,
        ErrorKind::Defect => Exit::Defect,
        ErrorKind::Stopped => Exit::Interrupted,
        _ => Exit::Environment,
    };
    RunnerError::new(kind, error.to_string()).hint(error.hint())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_of_runs_is_no_bundle_but_its_run_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_path_buf();
        let error = || RunnerError::from(EvidenceError::NotABundle { path: path.clone() });
        assert!(error().hints.is_empty());
        for name in ["r1", "r2"] {
            std::fs::create_dir(path.join(name)).unwrap();
            std::fs::write(path.join(name).join("run.json"), "{}").unwrap();
            let run = path.join("r1").display().to_string();
            assert!(error().hints[0].ends_with(&run), "{:?}", error().hints);
        }
        assert!(error().hints[0].contains("2 runs"), "{:?}", error().hints);
    }

    #[test]
    fn an_error_says_once_that_it_is_one() {
        let error = RunnerError::usage("error: plan.toml: is empty").hint("write one");
        assert_eq!(error.to_string(), "error: plan.toml: is empty\n  hint: write one");
    }
}
