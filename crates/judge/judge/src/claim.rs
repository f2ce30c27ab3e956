//! Degree to which the evidence supports a claim. The plan's vocabulary defines the claims.

pub use plimsoll_plan::Claim;
use serde::{Deserialize, Serialize};

/// Degree to which the evidence supports a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimStatus {
    /// All mandatory rules of the claim passed.
    #[serde(rename = "believable")]
    Believable,
    /// All mandatory rules passed, but at least one of them relies on a declaration by the user
    /// that was not measured.
    #[serde(rename = "believable, as declared")]
    AsDeclared,
    /// A mandatory rule is unknown, so the evidence is not sufficient.
    #[serde(rename = "not shown")]
    NotShown,
    /// A mandatory rule failed: the claim is false.
    #[serde(rename = "refuted")]
    Refuted,
}

impl ClaimStatus {
    /// Returns the label for reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Believable => "believable",
            Self::AsDeclared => "believable, as declared",
            Self::NotShown => "not shown",
            Self::Refuted => "refuted",
        }
    }
}
