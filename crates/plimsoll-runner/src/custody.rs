//! The one way to evidence: a bundle is read with its seal, its place in the ledger, its signature and
//! what was derived from it, and whatever does not agree is said before anything is made of it.
//!
//! | what is held against what | where it does not agree |
//! |---|---|
//! | each file against the seal | the bundle is refused |
//! | the seal, start and end against the ledger | refused, where the ledger has another |
//! | the place in the ledger against the ledger | refused, where it was cut short or rewritten |
//! | verdict and report against what the evidence gives | refused, where this build wrote them |
//! | the plan as given against the plan as run | refused, where this build resolved it |
//! | a signature against the key that the bundle names | refused |
//! | the evidence against itself | INVALID, by the rule `evidence-consistent` |
//!
//! What can't be checked (a bundle of another machine, a report of another version) is said, and refuses
//! nothing; a bundle of this catalogue that its ledger does not hold is shown with exit code 3.

mod derived;
mod held;
mod reader;
mod together;
mod witnesses;

use std::path::PathBuf;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::LedgerMatch;
use plimsoll_judge::Verdict;
use plimsoll_judge::finding::Outcome;

use crate::exit::Exit;

pub use derived::{Judged, Made, derive, seal_and_judge, sign};
pub use reader::Reader;
pub use together::Together;
pub use witnesses::witnesses;

/// A bundle that was read, with what is known of how it came here.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Where it lies.
    pub directory: PathBuf,
    /// Its evidence.
    pub bundle: Bundle,
    /// The verdict that the evidence gives.
    pub verdict: Verdict,
    /// What was held against it.
    pub custody: Custody,
}

/// What was held against a bundle, beyond its seal.
#[derive(Clone, Debug)]
pub struct Custody {
    /// SHA-256 of the seal.
    pub seal_sha256: String,
    /// What the ledger here says.
    pub place: LedgerMatch,
    /// `verdict.json`.
    pub verdict: Standing,
    /// `report.html`.
    pub report: Standing,
    /// Who signed the seal.
    pub signed: Signed,
    /// What nothing vouches for, though it should: each makes exit code 3 of a plain one.
    pub doubts: Vec<String>,
    /// What could not be checked here.
    pub remarks: Vec<String>,
}

/// How a derived file stands to what this build derives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the same to the byte.
    Same,
    /// It is not there.
    Missing,
    /// Another build wrote it, and the ledger knows it.
    AsEntered,
    /// Another build wrote it, or it was changed: nothing here tells.
    Other,
    /// It was changed.
    Changed,
}

/// Who signed a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signed {
    /// Nobody.
    No,
    /// This public key, which the evidence names: whose it is has to be known from elsewhere.
    ByItsOwnWord(String),
    /// The public key that it was asked for.
    ByTheKey(String),
    /// The ledger was signed with the public key that was asked for, after the run was entered.
    ByTheLedger(String),
    /// A signature lies there which the evidence does not speak of.
    Unknown,
}

impl Loaded {
    /// How the command ends that showed it.
    pub fn exit(&self) -> Exit {
        self.custody.weigh(Exit::of(&self.bundle.run, self.verdict.verdict))
    }

    /// How a command ends that only shows what is there: 0, unless it can't be relied on.
    pub fn exit_shown(&self) -> Exit {
        match self.contradicts_itself() {
            true => Exit::NoVerdict,
            false => self.custody.weigh(Exit::Ok),
        }
    }

    /// Whether the evidence does not agree with itself.
    pub fn contradicts_itself(&self) -> bool {
        self.contradiction().is_some()
    }

    /// What of the evidence does not agree.
    pub fn contradiction(&self) -> Option<&str> {
        let is_it = |f: &&plimsoll_judge::finding::Finding| {
            f.rule == plimsoll_judge::rules::evidence_consistent::RULE.id
                && f.outcome == Outcome::Fail
        };
        self.verdict.findings.iter().find(is_it).map(|finding| finding.says.as_str())
    }
}

impl Custody {
    /// The exit code with what is in doubt.
    pub fn weigh(&self, exit: Exit) -> Exit {
        match exit {
            Exit::Ok | Exit::Fail if !self.doubts.is_empty() => Exit::NoVerdict,
            exit => exit,
        }
    }

    /// What is to be said with whatever is shown of the bundle, a line each.
    pub fn lines(&self) -> Vec<String> {
        let doubts = self.doubts.iter().map(|doubt| format!("not vouched for: {doubt}"));
        doubts.chain(self.remarks.iter().map(|remark| format!("not checked: {remark}"))).collect()
    }
}
