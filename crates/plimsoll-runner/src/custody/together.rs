//! The runs of a directory.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::LedgerMatch;
use plimsoll_judge::Verdict;

use super::{Custody, Loaded, Signed, Standing};
use crate::error::RunnerError;
use crate::exit::Exit;

/// The runs of a directory, and what is to be said of them together.
#[derive(Clone, Debug)]
pub struct Together {
    /// The bundles, in the order in which their runs were started.
    pub runs: Vec<Loaded>,
    /// As [`Custody::doubts`], of the directory.
    pub doubts: Vec<String>,
    /// As [`Custody::remarks`].
    pub remarks: Vec<String>,
}

impl Together {
    /// The bundles with their verdicts.
    pub fn judged(&self) -> Vec<(&Bundle, &Verdict)> {
        self.runs.iter().map(|run| (&run.bundle, &run.verdict)).collect()
    }

    /// What is to be said with whatever is shown of them. What is to be said of several runs in the same
    /// words is said once.
    pub fn lines(&self) -> Vec<String> {
        let own = Custody {
            seal_sha256: String::new(),
            place: LedgerMatch::Missing { says: String::new() },
            verdict: Standing::Same,
            report: Standing::Same,
            signed: Signed::No,
            doubts: self.doubts.clone(),
            remarks: self.remarks.clone(),
        };
        let mut of: Vec<(String, Vec<&str>)> = Vec::new();
        for run in &self.runs {
            for line in run.custody.lines() {
                let id = run.bundle.run.run_id.as_str();
                match of.iter_mut().find(|(known, _)| *known == line) {
                    Some((_, runs)) => runs.push(id),
                    None => of.push((line, vec![id])),
                }
            }
        }
        let told = of.into_iter().map(|(line, runs)| match (&runs[..], self.runs.len()) {
            ([_], 1) => line,
            ([run], _) => format!("{line} ({run})"),
            (runs, all) => format!("{line} ({} of {all} runs)", runs.len()),
        });
        own.lines().into_iter().chain(told).collect()
    }

    /// The exit code with what is in doubt.
    pub fn weigh(&self, exit: Exit) -> Exit {
        let doubted =
            !self.doubts.is_empty() || self.runs.iter().any(|run| run.exit_shown() != Exit::Ok);
        match exit {
            Exit::Ok | Exit::Fail if doubted => Exit::NoVerdict,
            exit => exit,
        }
    }

    /// Refuses evidence that does not agree with itself: nothing can be compared with it.
    ///
    /// # Errors
    /// Such a run.
    pub fn refuse_contradictions(&self) -> Result<(), RunnerError> {
        let found = self.runs.iter().find(|run| run.contradicts_itself());
        let Some(run) = found else { return Ok(()) };
        let says = format!(
            "the evidence of {} does not agree with itself: {}",
            run.bundle.run.run_id, run.verdict.reason
        );
        Err(RunnerError::new(Exit::NoVerdict, says)
            .hint(format!("plimsoll judge {}", run.directory.display())))
    }
}
