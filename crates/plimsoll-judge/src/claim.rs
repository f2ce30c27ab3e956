//! Claims: what a figure is said to show.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a figure is said to show (DESIGN §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// The storage carries the load that the requirement describes.
    Requirement,
    /// Reads came from the media, not from a cache.
    MediaRead,
    /// Reads came from a cache, and are said to.
    CachedRead,
    /// Writes were taken at this rate for a short while.
    BurstWrite,
    /// Writes were taken at this rate for as long as one likes.
    SustainedWrite,
    /// Acknowledged writes survive a loss of power.
    DurableWrite,
    /// The high percentiles of latency are what users would see.
    TailLatency,
    /// This is faster or slower than that.
    Comparative,
}

impl Claim {
    /// All claims.
    pub const ALL: [Self; 8] = [
        Self::Requirement,
        Self::MediaRead,
        Self::CachedRead,
        Self::BurstWrite,
        Self::SustainedWrite,
        Self::DurableWrite,
        Self::TailLatency,
        Self::Comparative,
    ];

    /// The name in plans, `verdict.json` and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requirement => "requirement",
            Self::MediaRead => "media-read",
            Self::CachedRead => "cached-read",
            Self::BurstWrite => "burst-write",
            Self::SustainedWrite => "sustained-write",
            Self::DurableWrite => "durable-write",
            Self::TailLatency => "tail-latency",
            Self::Comparative => "comparative",
        }
    }

    /// The claim of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|claim| claim.name() == name)
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
