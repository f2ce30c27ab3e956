//! Exit codes, for scripts.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | PASS, MEASURED, or the command succeeded |
//! | 1 | FAIL |
//! | 2 | wrong usage or plan |
//! | 3 | INVALID or INCONCLUSIVE |
//! | 4 | data corruption found |
//! | 5 | the target or environment failed: I/O error, disk full |
//! | 70 | a defect in Plimsoll |
//! | 130 | interrupted (SIGINT, SIGTERM, SIGHUP); the evidence is kept |
//!
//! If several codes apply, the first of 70, 130, 4, 5, 3, 1 is used.

use plimsoll_evidence::durability::DurabilityTest;
use plimsoll_evidence::run::{EndKind, Run};
use plimsoll_judge::durability::judge;
use plimsoll_judge::verdict::VerdictKind;

/// Exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// PASS, MEASURED, or the command succeeded.
    Ok = 0,
    Fail = 1,
    /// Wrong usage or plan.
    Usage = 2,
    /// INVALID or INCONCLUSIVE.
    NoVerdict = 3,
    /// Data corruption found.
    Corruption = 4,
    /// The target or environment failed.
    Environment = 5,
    /// A defect in Plimsoll.
    Defect = 70,
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupted = 130,
}

impl Exit {
    /// Returns the exit code of a judged run.
    pub fn of(run: &Run, verdict: VerdictKind) -> Self {
        let durability = run.durability.as_ref().map(|test| match Self::of_durability(test) {
            // The verdict already takes into account how often the target was interrupted.
            Self::NoVerdict => Self::Ok,
            exit => exit,
        });
        Self::of_load(run, verdict).worse(durability.unwrap_or(Self::Ok))
    }

    /// Returns the exit code of a durability test.
    pub fn of_durability(test: &DurabilityTest) -> Self {
        let is_missing = test.cuts.iter().any(|cut| cut.not_restored.is_some());
        match judge(test).verdict {
            _ if test.interrupted => Self::Interrupted,
            VerdictKind::Fail => Self::Corruption,
            _ if is_missing || test.failure.is_some() => Self::Environment,
            VerdictKind::Pass => Self::Ok,
            _ => Self::NoVerdict,
        }
    }

    fn of_load(run: &Run, verdict: VerdictKind) -> Self {
        match run.end.kind {
            EndKind::Defect => Self::Defect,
            EndKind::Interrupted => Self::Interrupted,
            _ if run.checks.errors > 0 => Self::Corruption,
            EndKind::Corruption => Self::Corruption,
            EndKind::IoError | EndKind::NoSpace | EndKind::Environment => Self::Environment,
            EndKind::Completed => match verdict {
                VerdictKind::Invalid | VerdictKind::Inconclusive => Self::NoVerdict,
                VerdictKind::Fail => Self::Fail,
                VerdictKind::Pass | VerdictKind::Measured => Self::Ok,
            },
        }
    }

    /// Returns the code that comes first in the order 70, 130, 4, 5, 3, 1.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.rank() < self.rank() { other } else { self }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Defect => 0,
            Self::Interrupted => 1,
            Self::Corruption => 2,
            Self::Environment => 3,
            Self::NoVerdict => 4,
            Self::Fail => 5,
            Self::Usage => 6,
            Self::Ok => 7,
        }
    }

    pub fn code(self) -> u8 {
        self as u8
    }
}
