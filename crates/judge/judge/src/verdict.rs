//! Verdict: the contents of `verdict.json`.

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_evidence::run::Tier;
use serde::{Deserialize, Serialize};

use crate::claim::ClaimStatus;
use crate::finding::Finding;

/// Version of the rules and thresholds. With the same version, the same bundle results in the same
/// verdict, byte for byte.
pub const RULES_VERSION: u32 = 17;

/// Kind of verdict on a run. If several kinds apply, the kind that is listed first is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VerdictKind {
    /// A mandatory rule of a claim failed: the figure does not measure what is claimed.
    Invalid,
    /// The requirement is not met.
    Fail,
    /// The outcome of a mandatory rule is unknown, the samples are too few or unsteady, or the
    /// interval includes the required value.
    #[default]
    Inconclusive,
    /// The requirement is met.
    Pass,
    /// No requirement was stated.
    Measured,
}

impl VerdictKind {
    /// Returns the label in capitals.
    pub fn label(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Pass => "PASS",
            Self::Measured => "MEASURED",
        }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Limit and measured value of a check. The limit of a rate is a lower limit if [`Check::at_least`]
/// is set. The other limits are upper limits, unless the comment of the field states otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    Latency {
        /// Upper limit.
        limit_ns: u64,
        /// `None` if not measured.
        measured_ns: Option<u64>,
    },
    Rate {
        /// Lower limit if [`Check::at_least`] is set, otherwise upper limit.
        limit_per_s: f64,
        /// `None` if not measured.
        measured_per_s: Option<f64>,
    },
    Count {
        /// Upper limit.
        limit_count: u64,
        /// `None` if not counted.
        measured_count: Option<u64>,
    },
    Bandwidth {
        /// Lower limit.
        limit_bytes_per_s: u64,
        /// `None` if not measured.
        measured_bytes_per_s: Option<f64>,
    },
    /// Amount of data.
    Capacity {
        /// Lower limit.
        limit_bytes: u64,
        /// `None` if not measured.
        measured_bytes: Option<u64>,
    },
}

impl Quantity {
    /// Returns true if there is a measured value.
    pub fn is_measured(&self) -> bool {
        match self {
            Self::Latency { measured_ns, .. } => measured_ns.is_some(),
            Self::Rate { measured_per_s, .. } => measured_per_s.is_some(),
            Self::Count { measured_count, .. } => measured_count.is_some(),
            Self::Bandwidth { measured_bytes_per_s, .. } => measured_bytes_per_s.is_some(),
            Self::Capacity { measured_bytes, .. } => measured_bytes.is_some(),
        }
    }
}

/// A limit of the requirement with the measured value and the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Name such as `db_read_latency_avg`.
    pub name: String,
    /// Limit and measured value.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// True if the measured value must be at least the limit; false if it must be at most the
    /// limit.
    pub at_least: bool,
    /// True if the limit is met; `None` if undecided. A check without a measured value is always
    /// undecided.
    pub ok: Option<bool>,
    /// Remarks for the reader, such as the name of the instance that has the measured value.
    pub note: String,
    /// 95 % confidence interval of the measured value, in the same unit. `None` if there are too
    /// few samples.
    pub interval: Option<[f64; 2]>,
}

impl Check {
    pub(crate) fn undecided(name: &str, quantity: Quantity, at_least: bool) -> Self {
        let name = name.to_owned();
        Self { name, quantity, at_least, ok: None, note: String::new(), interval: None }
    }

    /// Sets the result. Without a measured value, the check remains undecided.
    pub(crate) fn with_result(mut self, ok: Option<bool>) -> Self {
        self.ok = ok.filter(|_| self.quantity.is_measured());
        self
    }

    /// Adds a remark for the reader.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Verdict on a run, with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The judgement.
    pub verdict: VerdictKind,
    /// Reason in one sentence.
    pub reason: String,
    /// True if the run was a short demonstration.
    pub demonstration: bool,
    /// Required rate of transactional I/Os, per second.
    pub required_iops_per_s: Option<f64>,
    /// Achieved rate of transactional I/Os, per second.
    pub achieved_iops_per_s: Option<f64>,
    /// Achieved rate divided by the required rate, minus one. `None` in an open loop, which cannot
    /// exceed its target.
    pub headroom: Option<f64>,
    /// Checks, one per limit.
    pub checks: Vec<Check>,
    /// Claims, and whether the evidence supports each of them.
    pub claims: BTreeMap<String, ClaimStatus>,
    /// Level of trust in the evidence.
    pub tier: Tier,
    /// Findings whose outcome is not `pass`, with the worst finding first.
    pub findings: Vec<Finding>,
    /// Identifiers of the rules that passed.
    pub passed: Vec<String>,
    /// Rules whose outcome is unknown and accepted by the plan (`evidence.accept_unknown`).
    #[serde(default)]
    pub accepted: Vec<String>,
    /// Declarations of the user that the verdict relies on, such as `array cache 1.00 GiB`.
    #[serde(default)]
    pub declared: Vec<String>,
    pub rules_version: u32,
    /// Identifier of the run.
    pub run_id: String,
}
