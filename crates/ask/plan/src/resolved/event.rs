//! Events, and limits for the windows before, during and after the events.

use serde::{Deserialize, Serialize};

use super::limits::{LatencyClass, LatencyLimit, LatencyStatistic};
use super::words::words;

/// An event that affects the storage system during the measured phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Name of the event, which is unique in the plan.
    pub name: String,
    /// Time of the event, from the start of the measured phase. `None` if the event follows another
    /// event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    /// Name of the earlier event that this event follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Time between the end of the earlier event's command and this event.
    #[serde(default)]
    pub delay_ns: u64,
    /// Program and arguments of the event's command. The list is empty if the event has no command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Agent of the fleet that runs the commands; `None` for the host of `plimsoll run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Agents of the fleet that the event stops permanently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect_lost: Vec<String>,
    /// Time limit of a command. When the time is over, the command is killed.
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
    /// Program and arguments of the command that reverses the event. The list is empty if there is
    /// no such command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
    /// Time at which the event is reversed, from the start of the measured phase. `None` means the
    /// end of the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_at_ns: Option<u64>,
}

/// Component of a model that an event slows down, and the reduced speed of the component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// The component.
    pub component: String,
    /// Reduced speed, as a share of the normal speed. It is between 0 and 1.
    pub speed: f64,
}

impl Event {
    /// Returns true if the event runs a command, or if a command reverses the event.
    #[must_use]
    pub fn has_command(&self) -> bool {
        !self.run.is_empty() || !self.undo.is_empty()
    }

    /// Returns true if the event names an agent of a fleet.
    #[must_use]
    pub fn needs_fleet(&self) -> bool {
        self.host.is_some() || !self.expect_lost.is_empty()
    }
}

words! {
    /// Part of the measured phase. It is before, during or after the events.
    Window {
        /// The time before the first event.
        Before = "before",
        /// The time from the first event until the recovery. It does not end before the last event
        /// is reversed.
        During = "during",
        /// The time from the end of [`Self::During`] until the end of the phase.
        After = "after",
    }
}

/// A limit. It is an absolute value, or a share of the value that was measured before the event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The limit itself, as a number per second.
    PerS(f64),
    /// The limit is this factor times the value that was measured before the event.
    OfBefore(f64),
}

/// A latency limit that is a share of the latency that was measured before the event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelativeLimit {
    /// Class of operations to which the limit applies.
    pub class: LatencyClass,
    /// Statistic to which the limit applies, such as the mean.
    pub statistic: LatencyStatistic,
    /// The limit is this factor times the latency that was measured before the event.
    pub of_before: f64,
}

/// Limits of a window, or of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Minimum number of I/Os per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<Bound>,
    /// Minimum bandwidth, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bound>,
    /// Maximum time during which no operation completes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_max_ns: Option<u64>,
    /// Maximum time until the rate and the p99 latency have recovered. The time starts at the last
    /// event or at the last undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_max_ns: Option<u64>,
    /// Maximum number of failed I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_max: Option<u64>,
    /// Latency limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencyLimit>,
    /// Latency limits that are shares of the latencies that were measured before the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relative: Vec<RelativeLimit>,
}

/// A window and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowLimits {
    /// The window.
    pub window: Window,
    /// Limits for the operations in the window.
    #[serde(flatten)]
    pub limits: Limits,
}

/// A stream of a matrix, and the limits that apply while the stream runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamLimits {
    /// Index of the stream in the matrix.
    pub stream: u32,
    /// Limits for the operations of the stream.
    #[serde(flatten)]
    pub limits: Limits,
}
