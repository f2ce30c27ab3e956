//! Whether the evidence supports a claim. The claims themselves are words of the plan.

pub use plimsoll_plan::Claim;
use serde::{Deserialize, Serialize};

/// Whether the evidence supports a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Every mandatory rule of the claim passed.
    #[serde(rename = "believable")]
    Believable,
    /// Every mandatory rule passed, and one of them rests on what the user declared and nobody measured.
    #[serde(rename = "believable, as declared")]
    AsDeclared,
    /// A mandatory rule is unknown: the evidence does not reach that far.
    #[serde(rename = "not shown")]
    NotShown,
    /// A mandatory rule failed: the figure is not that.
    #[serde(rename = "refuted")]
    Refuted,
}

impl Standing {
    /// Whether it can be believed, by what was measured or by what was declared.
    pub fn is_believable(self) -> bool {
        matches!(self, Self::Believable | Self::AsDeclared)
    }

    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Believable => "believable",
            Self::AsDeclared => "believable, as declared",
            Self::NotShown => "not shown",
            Self::Refuted => "refuted",
        }
    }
}
