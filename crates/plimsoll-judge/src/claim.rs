//! Whether the evidence supports a claim. The claims themselves are words of the plan.

pub use plimsoll_plan::Claim;
use serde::{Deserialize, Serialize};

/// Whether the evidence supports a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Every mandatory rule of the claim passed.
    #[serde(rename = "believable")]
    Believable,
    /// A mandatory rule is unknown: the evidence does not reach that far.
    #[serde(rename = "not shown")]
    NotShown,
    /// A mandatory rule failed: the figure is not that.
    #[serde(rename = "refuted")]
    Refuted,
}

impl Standing {
    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Believable => "believable",
            Self::NotShown => "not shown",
            Self::Refuted => "refuted",
        }
    }
}
