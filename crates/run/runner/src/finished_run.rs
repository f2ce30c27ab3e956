//! A finished run.

use std::path::PathBuf;

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;

use crate::error::RunnerError;
use crate::exit::Exit;

/// A run that has finished and was judged.
pub struct FinishedRun {
    /// Directory of the bundle.
    pub directory: PathBuf,
    pub evidence: Bundle,
    pub verdict: Verdict,
    /// Directories in which the data was kept.
    pub kept: Vec<String>,
    /// Error that prevented the removal of the data. It has already been reported.
    pub removal_error: Option<RunnerError>,
    /// Error that prevented the ledger entry for the end of the run. It has already been reported.
    pub ledger_error: Option<RunnerError>,
    /// Exit code of a fleet run, from the exit codes of its hosts.
    pub hosts_exit: Option<Exit>,
}

impl FinishedRun {
    /// Returns the exit code of the run.
    pub fn exit(&self) -> Exit {
        let own = || Exit::of(&self.evidence.run, self.verdict.verdict);
        let exit = self.hosts_exit.unwrap_or_else(own);
        match self.removal_error.as_ref().or(self.ledger_error.as_ref()) {
            Some(error) if matches!(exit, Exit::Ok | Exit::Fail | Exit::NoVerdict) => error.kind,
            _ => exit,
        }
    }
}

/// Returns the exit code of several runs: the code that comes first in the order 70, 130, 4, 5, 3,
/// 1.
pub fn worst(finished: &[FinishedRun]) -> Exit {
    finished.iter().map(FinishedRun::exit).fold(Exit::Ok, Exit::worse)
}
