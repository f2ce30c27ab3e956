//! Checks evidence when it is read. A bundle is read together with its seal, ledger entry,
//! signature and derived files. Any mismatch is reported before the bundle is used.
//!
//! | check | if it fails |
//! |---|---|
//! | each file against the seal | the bundle is refused |
//! | the seal, start and end against the ledger | refused if the ledger has other values |
//! | the recorded ledger position | refused if the ledger was truncated or rewritten |
//! | verdict and report against the evidence | refused if this build wrote them |
//! | the plan as written against the plan as run | refused if this build resolved it |
//! | the signature against the key named in the bundle | refused |
//! | contradictions within the evidence | INVALID, by the rule `evidence-consistent` |
//!
//! If something cannot be checked (a bundle from another machine, a report of another version),
//! this is reported, but the bundle is accepted. If a bundle of this catalogue is missing from its
//! ledger, the exit code is 3.

mod checks;
mod derived_files;
mod reader;
mod run_set;
mod witnesses;

use std::path::PathBuf;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::LedgerMatch;
use plimsoll_judge::Verdict;
use plimsoll_judge::finding::Outcome;

use crate::exit::Exit;

pub use derived_files::{DerivedFiles, SealedRun, derive, seal_and_judge, sign};
pub use reader::Reader;
pub use run_set::RunSet;
pub use witnesses::witnesses;

/// A bundle with its verdict and the results of the checks.
#[derive(Clone, Debug)]
pub struct LoadedBundle {
    pub directory: PathBuf,
    /// The evidence.
    pub bundle: Bundle,
    /// Verdict derived from the evidence.
    pub verdict: Verdict,
    pub custody: CustodyChecks,
}

/// Results of all checks of a bundle, except the check of its seal.
#[derive(Clone, Debug)]
pub struct CustodyChecks {
    /// SHA-256 of the seal file.
    pub seal_sha256: String,
    /// Entry in this machine's ledger.
    pub place: LedgerMatch,
    /// State of `verdict.json`.
    pub verdict: DerivedFileState,
    /// State of `report.html`.
    pub report: DerivedFileState,
    /// Signature of the seal.
    pub signed: SignatureState,
    /// Confirmations that are missing, for example because the run is not in the ledger. If this
    /// list is not empty, exit codes 0 and 1 become 3.
    pub doubts: Vec<String>,
    /// Checks that were impossible on this host.
    pub remarks: Vec<String>,
}

/// Result of a comparison: the derived file in the bundle, and the file that this build derives
/// from the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DerivedFileState {
    /// Identical.
    Same,
    /// The file does not exist.
    Missing,
    /// The file was written by another build, and its hash is in the ledger.
    InLedger,
    /// The file was either written by another build or changed. These two cases cannot be
    /// distinguished.
    Other,
    /// The file was changed after it was written.
    Changed,
}

/// Signature of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureState {
    /// Not signed.
    Unsigned,
    /// Signed with the key pair whose public key is in the evidence. The owner of the key is
    /// unknown.
    ByDeclaredKey(String),
    /// Signed with the key pair whose public key the user required.
    ByRequiredKey(String),
    /// The ledger was signed with the required key after it had recorded the run.
    ByLedgerStatement(String),
    /// A signature file exists, but the evidence does not mention it.
    Undeclared,
}

impl LoadedBundle {
    /// Exit code of a command that shows this bundle.
    pub fn exit(&self) -> Exit {
        self.custody.apply_doubts(Exit::of(&self.bundle.run, self.verdict.verdict))
    }

    /// Exit code of a command that only displays the bundle: 0, or 3 if it is unreliable.
    pub fn display_exit(&self) -> Exit {
        match self.has_contradiction() {
            true => Exit::NoVerdict,
            false => self.custody.apply_doubts(Exit::Ok),
        }
    }

    /// Returns true if the evidence contradicts itself.
    pub fn has_contradiction(&self) -> bool {
        self.contradiction().is_some()
    }

    /// Returns a description of the contradiction in the evidence; `None` if there is none.
    pub fn contradiction(&self) -> Option<&str> {
        let is_contradiction = |f: &&plimsoll_judge::finding::Finding| {
            f.rule == plimsoll_judge::rules::evidence_consistent::RULE.id
                && f.outcome == Outcome::Fail
        };
        self.verdict.findings.iter().find(is_contradiction).map(|finding| finding.says.as_str())
    }
}

impl CustodyChecks {
    /// Changes exit codes 0 and 1 to 3 if some evidence is not confirmed.
    pub fn apply_doubts(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Ok | Exit::Fail if !self.doubts.is_empty() => Exit::NoVerdict,
            exit => exit,
        }
    }

    /// Returns as text lines which evidence is not confirmed, and which evidence was not checked.
    pub fn lines(&self) -> Vec<String> {
        let doubts = self.doubts.iter().map(|doubt| format!("not confirmed: {doubt}"));
        doubts.chain(self.remarks.iter().map(|remark| format!("not checked: {remark}"))).collect()
    }
}
