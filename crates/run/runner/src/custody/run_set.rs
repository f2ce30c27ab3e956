//! A set of runs from one directory.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::LedgerMatch;
use plimsoll_judge::Verdict;

use super::{CustodyChecks, DerivedFileState, LoadedBundle, SignatureState};
use crate::error::RunnerError;
use crate::exit::Exit;

/// Runs of a directory. Also lists which evidence of the directory is not confirmed or was not
/// checked.
#[derive(Clone, Debug)]
pub struct RunSet {
    /// Bundles in the order of their start.
    pub runs: Vec<LoadedBundle>,
    /// Like [`CustodyChecks::doubts`], but about the directory.
    pub doubts: Vec<String>,
    /// Like [`CustodyChecks::remarks`], but about the directory.
    pub remarks: Vec<String>,
}

impl RunSet {
    /// Returns the bundles with their verdicts.
    pub fn judged(&self) -> Vec<(&Bundle, &Verdict)> {
        self.runs.iter().map(|run| (&run.bundle, &run.verdict)).collect()
    }

    /// Returns as lines of text which evidence is not confirmed, and which evidence was not
    /// checked. A line that applies to several runs appears once.
    pub fn lines(&self) -> Vec<String> {
        let own = CustodyChecks {
            seal_sha256: String::new(),
            place: LedgerMatch::Missing { says: String::new() },
            verdict: DerivedFileState::Same,
            report: DerivedFileState::Same,
            signed: SignatureState::Unsigned,
            doubts: self.doubts.clone(),
            remarks: self.remarks.clone(),
        };
        let mut grouped: Vec<(String, Vec<&str>)> = Vec::new();
        for run in &self.runs {
            for line in run.custody.lines() {
                let id = run.bundle.run.run_id.as_str();
                match grouped.iter_mut().find(|(known, _)| *known == line) {
                    Some((_, runs)) => runs.push(id),
                    None => grouped.push((line, vec![id])),
                }
            }
        }
        let of_runs = grouped.into_iter().map(|(line, runs)| match (&runs[..], self.runs.len()) {
            ([_], 1) => line,
            ([run], _) => format!("{line} ({run})"),
            (runs, all) => format!("{line} ({} of {all} runs)", runs.len()),
        });
        own.lines().into_iter().chain(of_runs).collect()
    }

    /// Changes exit codes 0 and 1 to 3 if some evidence is not confirmed.
    pub fn apply_doubts(&self, exit: Exit) -> Exit {
        let doubted =
            !self.doubts.is_empty() || self.runs.iter().any(|run| run.display_exit() != Exit::Ok);
        match exit {
            Exit::Ok | Exit::Fail if doubted => Exit::NoVerdict,
            exit => exit,
        }
    }

    /// Rejects runs whose evidence contradicts itself, because they cannot be compared.
    ///
    /// # Errors
    /// The evidence of a run contradicts itself.
    pub fn refuse_contradictions(&self) -> Result<(), RunnerError> {
        let found = self.runs.iter().find(|run| run.has_contradiction());
        let Some(run) = found else { return Ok(()) };
        let says = format!(
            "the evidence of {} contradicts itself: {}",
            run.bundle.run.run_id, run.verdict.reason
        );
        Err(RunnerError::new(Exit::NoVerdict, says)
            .hint(format!("plimsoll judge {}", run.directory.display())))
    }
}
