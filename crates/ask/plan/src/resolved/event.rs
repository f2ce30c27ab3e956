//! Events, and limits of the windows around them.

use serde::{Deserialize, Serialize};

use super::limits::{LatencyClass, LatencyLimit, LatencyStatistic};
use super::words::words;

/// Event that affects the storage system during the measured phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Name, unique in the plan.
    pub name: String,
    /// Time in the measured phase; `None` if the event follows another event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Earlier event that this event follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Delay after the end of the earlier event.
    #[serde(default)]
    pub delay_ns: u64,
    /// Command: program and arguments; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Agent of the fleet that runs the commands; `None` for the host of `plimsoll run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Agents of the fleet that the event stops permanently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_lost: Vec<String>,
    /// Time limit for a command, which is then killed.
    pub timeout_ns: u64,
    /// Instruction for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Component of a model that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<String>,
    /// Component of a model that is slowed down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<Throttle>,
    /// Command that reverses the event; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
    /// Time of the undo in the measured phase; `None` for the end of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_at_ns: Option<u64>,
}

/// Component of a model, and its reduced speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// The component.
    pub component: String,
    /// Share of the normal speed, between 0 and 1.
    pub speed: f64,
}

impl Event {
    /// Returns true if the event or its undo is a command.
    #[must_use]
    pub fn has_command(&self) -> bool {
        !self.run.is_empty() || !self.undo.is_empty()
    }

    /// Returns true if the event refers to a host of a fleet.
    #[must_use]
    pub fn needs_fleet(&self) -> bool {
        self.host.is_some() || !self.expect_lost.is_empty()
    }
}

words! {
    /// Part of the measured phase, relative to the events.
    Window {
        /// Before the first event.
        Before = "before",
        /// From the first event until the recovery, but at least until the last undo.
        During = "during",
        /// From the end of [`Self::During`] until the end of the phase.
        After = "after",
    }
}

/// Limit as a value with a unit, or as a share of the value measured before the event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Value with its unit, per second.
    PerS(f64),
    /// Factor of the value measured before the event.
    OfBefore(f64),
}

/// Latency limit as a share of the latency measured before the event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelativeLimit {
    /// Operations that the limit applies to.
    pub class: LatencyClass,
    /// Statistic that the limit applies to.
    pub statistic: LatencyStatistic,
    /// Factor of the value measured before the event.
    pub of_before: f64,
}

/// Limits of a window, or of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Minimum I/Os per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Bound>,
    /// Minimum bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bound>,
    /// Longest time without a completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_max_ns: Option<u64>,
    /// Maximum time until the load performs again as it did before the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_max_ns: Option<u64>,
    /// Maximum number of failed I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_max: Option<u64>,
    /// Latency limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencyLimit>,
    /// Latency limits as shares of the latencies measured before the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relative: Vec<RelativeLimit>,
}

/// Limits of one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowLimits {
    /// The window.
    pub window: Window,
    /// Limits on the operations of that window.
    #[serde(flatten)]
    pub limits: Limits,
}

/// Limits of one stream of a matrix, while that stream runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamLimits {
    /// Index of the stream.
    pub stream: u32,
    /// Limits on the operations of that stream.
    #[serde(flatten)]
    pub limits: Limits,
}
