//! A run that has ended.

use std::path::PathBuf;

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;

use crate::error::RunnerError;
use crate::exit::Exit;

/// A run that has ended, judged.
pub struct Finished {
    /// The bundle.
    pub directory: PathBuf,
    /// Its evidence.
    pub evidence: Bundle,
    /// Its verdict.
    pub verdict: Verdict,
    /// Where the data was kept, if it was.
    pub kept: Vec<String>,
    /// Why the data could not be removed, where it was to be and could not; told already.
    pub not_removed: Option<RunnerError>,
    /// Why its end does not stand in the ledger, where it could not be entered; told already.
    pub not_entered: Option<RunnerError>,
    /// The exit code, where the run was carried by several hosts, each with an end of its own.
    pub of_hosts: Option<Exit>,
}

impl Finished {
    /// The exit code of this run.
    pub fn exit(&self) -> Exit {
        let own = || Exit::of(&self.evidence.run, self.verdict.verdict);
        let exit = self.of_hosts.unwrap_or_else(own);
        match self.not_removed.as_ref().or(self.not_entered.as_ref()) {
            Some(error) if matches!(exit, Exit::Ok | Exit::Fail | Exit::NoVerdict) => error.kind,
            _ => exit,
        }
    }
}

/// The exit code of several runs: 70, 130, 4, 5, 3, 1, whichever of them comes first.
pub fn worst(finished: &[Finished]) -> Exit {
    finished.iter().map(Finished::exit).fold(Exit::Ok, Exit::worse)
}
