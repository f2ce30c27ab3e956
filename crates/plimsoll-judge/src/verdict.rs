//! The verdict: what `verdict.json` holds.

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_evidence::run::Tier;
use serde::{Deserialize, Serialize};

use crate::claim::Standing;
use crate::finding::Finding;

/// Version of the rules and thresholds. The same bundle under the same version gives the same
/// verdict to the letter.
pub const RULES_VERSION: u32 = 17;

/// The judgement of a run (DESIGN §1), in order of precedence where several hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum VerdictKind {
    /// A mandatory rule of the claim failed: the figure is not what it claims to be.
    Invalid,
    /// The requirement is not met.
    Fail,
    /// A mandatory rule is unknown, there are too few or too unsteady samples, or the interval
    /// straddles the requirement.
    Inconclusive,
    /// The requirement is met.
    Pass,
    /// No requirement was stated.
    Measured,
}

impl VerdictKind {
    /// In capitals, as shown.
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

/// Limit and measured value of a check. Which way is better follows from the kind: a rate has to be
/// at least its limit where `at_least` is set, everything else at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A latency.
    Latency {
        /// At most this.
        limit_ns: u64,
        /// `None`: not measured.
        measured_ns: Option<u64>,
    },
    /// A rate.
    Rate {
        /// At least or at most this ([`Check::at_least`]).
        limit_per_s: f64,
        /// `None`: not measured.
        measured_per_s: Option<f64>,
    },
    /// A count.
    Count {
        /// At most this.
        limit_count: u64,
        /// `None`: not counted.
        measured_count: Option<u64>,
    },
    /// A bandwidth.
    Bandwidth {
        /// At least this.
        limit_bytes_per_s: u64,
        /// `None`: not measured.
        measured_bytes_per_s: Option<f64>,
    },
    /// An amount of data.
    Capacity {
        /// At least this.
        limit_bytes: u64,
        /// `None`: not measured.
        measured_bytes: Option<u64>,
    },
}

impl Quantity {
    /// Whether there is a measured value.
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

/// One judged figure: a row of limit, measured, pass or fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Such as `db_read_latency_avg`.
    pub name: String,
    /// Limit and measured.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// True where the measured value has to be at least the limit.
    pub at_least: bool,
    /// Whether the limit is kept; `None` where that cannot be told. Nothing is kept or broken without a
    /// measured value.
    pub ok: Option<bool>,
    /// Which instance the measured value is of, and what else a reader needs.
    pub note: String,
    /// 95 % interval of the measured value in its own unit, where the samples allow one.
    pub interval: Option<[f64; 2]>,
}

impl Check {
    /// A check that nothing decides yet.
    pub(crate) fn open(name: &str, quantity: Quantity, at_least: bool) -> Self {
        let name = name.to_owned();
        Self { name, quantity, at_least, ok: None, note: String::new(), interval: None }
    }

    /// Decided, where there is a measured value to decide by.
    pub(crate) fn decided(mut self, ok: Option<bool>) -> Self {
        self.ok = ok.filter(|_| self.quantity.is_measured());
        self
    }

    /// With a remark for the reader.
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// The verdict on a run, with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The judgement.
    pub verdict: VerdictKind,
    /// The one sentence why.
    pub reason: String,
    /// True where the run was a short demonstration.
    pub demonstration: bool,
    /// Required transactional rate.
    pub required_iops_per_s: Option<f64>,
    /// Achieved transactional rate.
    pub achieved_iops_per_s: Option<f64>,
    /// Achieved over required, minus one; `None` in an open loop, which cannot exceed its target.
    pub headroom: Option<f64>,
    /// Each judged figure.
    pub checks: Vec<Check>,
    /// Which claims the evidence supports.
    pub claims: BTreeMap<String, Standing>,
    /// How far the evidence can be trusted.
    pub tier: Tier,
    /// Outcomes other than `pass`, worst first.
    pub findings: Vec<Finding>,
    /// Identifiers of the rules that passed.
    pub passed: Vec<String>,
    /// Rules that stayed unknown and that the plan accepts so (`evidence.accept_unknown`).
    #[serde(default)]
    pub accepted: Vec<String>,
    /// What the user declared and the verdict rests on, such as `array cache 1.00 GiB`.
    #[serde(default)]
    pub declared: Vec<String>,
    /// Version of the rules.
    pub rules_version: u32,
    /// The bundle.
    pub run_id: String,
}
