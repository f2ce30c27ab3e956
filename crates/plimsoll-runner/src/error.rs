//! The one error type at the edge: a kind, a message and hints.

use std::fmt;

use plimsoll_engine::{EngineError, ErrorKind};
use plimsoll_evidence::EvidenceError;

use crate::exit::Exit;

/// What the operator is told, and the exit code.
#[derive(Debug)]
pub struct RunnerError {
    /// Decides the exit code.
    pub kind: Exit,
    /// What happened, to what.
    pub message: String,
    /// What to do, one line each.
    pub hints: Vec<String>,
}

impl RunnerError {
    /// An error of this kind.
    pub fn new(kind: Exit, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Wrong usage or plan.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// The target or environment failed.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(Exit::Environment, message)
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// All of it in one line, for a place within a sentence of somebody else's.
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
        // What was read elsewhere may say already what it is.
        write!(f, "error: {}", self.message.trim_start_matches("error: "))?;
        self.hints.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl From<EvidenceError> for RunnerError {
    fn from(error: EvidenceError) -> Self {
        let kind = match &error {
            // What can't be read says nothing of any storage.
            EvidenceError::Io { .. }
            | EvidenceError::Malformed { .. }
            | EvidenceError::LedgerBroken { .. } => Exit::Environment,
            EvidenceError::NotABundle { .. }
            | EvidenceError::TooNew { .. }
            | EvidenceError::Key { .. } => Exit::Usage,
            // What can be read is not what the run left.
            EvidenceError::SealBroken { .. } | EvidenceError::Signature { .. } => Exit::NoVerdict,
        };
        let message = error.to_string();
        match error {
            EvidenceError::LedgerBroken { path, .. } => Self::new(kind, message).hint(format!(
                "move {} aside to begin a new ledger; earlier runs then no longer show",
                path.display()
            )),
            _ => Self::new(kind, message),
        }
    }
}

/// An error before a run began, with the exit code: what a plan names wrongly is the plan's fault.
pub fn engine_error(error: &EngineError) -> RunnerError {
    let kind = match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::TooSmall
        | ErrorKind::Memory
        | ErrorKind::FileLimit
        | ErrorKind::Config
        | ErrorKind::Precious
        | ErrorKind::Exists => Exit::Usage,
        ErrorKind::Defect => Exit::Defect,
        ErrorKind::Stopped => Exit::Interrupted,
        _ => Exit::Environment,
    };
    RunnerError::new(kind, error.to_string()).hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_once_that_it_is_one() {
        let error = RunnerError::usage("error: plan.toml: is empty").hint("write one");
        assert_eq!(error.to_string(), "error: plan.toml: is empty\n  hint: write one");
    }
}
