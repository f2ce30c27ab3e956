//! Messages between agents and coordinator during a run. Times are on the agent's monotonic clock
//! (`CLOCK_MONOTONIC`), which the agent's driver also uses. The coordinator knows the offset
//! between this clock and its own clock.

use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::run::{Phase, PhaseKind};
use plimsoll_plan::foreign;
use serde::{Deserialize, Serialize};

/// Maximum number of logical units of a host.
const UNITS_MAX: usize = 1_000;

/// Maximum number of arguments of an event's command.
const ARGUMENTS_MAX: usize = 1_000;

/// Message of an agent to the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "kebab-case")]
pub enum AgentMessage {
    /// The agent accepts the plan and runs it.
    Accepted {
        /// Logical units of the plan's devices, if their names are unique across hosts.
        #[serde(default)]
        units: Vec<String>,
    },
    /// The agent refuses the plan, for this reason.
    Refused {
        reason: String,
        /// Id of the run with which the agent is busy, if it refuses the plan because of that run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busy_with: Option<String>,
    },
    /// A phase is ready and waits for its start time.
    Ready {
        kind: PhaseKind,
        /// Number of this phase, counted from 1. Only phases that wait for a start time are
        /// counted.
        number: u32,
        run_start_ns: u64,
        /// Time at which the phase was ready.
        ready_ns: u64,
    },
    /// The agent would accept the plan. This is the response to an acceptance check.
    #[serde(rename = "would-take")]
    Acceptable,
    /// The agent has removed the data that it retained for a next run.
    Released {
        /// Error message; empty if all data was removed.
        #[serde(rename = "says")]
        error: String,
    },
    PhaseEnded {
        /// A phase has ended. Its times are on the clock of the run.
        phase: Phase,
    },
    /// A command or undo of an event that the agent executes has started or ended.
    Event {
        /// Record of the event. If a step has not happened yet, its fields are empty.
        record: EventRecord,
    },
    /// A warning for the user.
    Warning {
        #[serde(rename = "says")]
        text: String,
    },
    Ended(RunOutcome),
}

impl AgentMessage {
    /// Parses a message; `None` if it is not valid. An agent may be hostile, so its texts are
    /// shortened and converted to single lines.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let mut message: Self = serde_json::from_slice(payload).ok()?;
        let clean = |text: &mut String| *text = foreign(text);
        match &mut message {
            Self::Refused { reason, busy_with } => {
                clean(reason);
                busy_with.iter_mut().for_each(clean);
            }
            Self::Warning { text } | Self::Released { error: text } => clean(text),
            Self::Ended(outcome) => clean(&mut outcome.error),
            Self::Accepted { units } => {
                units.truncate(UNITS_MAX);
                units.iter_mut().for_each(clean);
            }
            Self::PhaseEnded { phase } => clean(&mut phase.note),
            Self::Event { record } => {
                clean(&mut record.name);
                clean(&mut record.missed);
                for command in [&mut record.command, &mut record.undo].into_iter().flatten() {
                    command.argv.truncate(ARGUMENTS_MAX);
                    let texts = [&mut command.failure, &mut command.stdout, &mut command.stderr];
                    texts.into_iter().chain(&mut command.argv).for_each(clean);
                }
            }
            Self::Ready { .. } | Self::Acceptable => {}
        }
        Some(message)
    }
}

/// Outcome of an agent's run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Start time of the run; `None` if the run ended before a phase was ready.
    pub run_start_ns: Option<u64>,
    /// Run id of the bundle.
    pub run_id: Option<String>,
    /// SHA-256 of the bundle's seal.
    pub seal_sha256: Option<String>,
    /// Name of the object that contains the bundle.
    pub object: Option<String>,
    /// Reason why no bundle exists, why the bundle could not be sent, or why the agent stopped the
    /// run. Empty otherwise.
    #[serde(rename = "says")]
    pub error: String,
    /// Start times of the phases that the coordinator started.
    pub starts: Vec<PhaseStart>,
}

/// Start of a phase, as scheduled by the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseStart {
    pub kind: PhaseKind,
    /// Time at which the phase was ready.
    pub ready_ns: u64,
    /// Start time set by the coordinator.
    pub scheduled_ns: u64,
}

/// Message of the coordinator to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "go", rename_all = "kebab-case")]
pub enum CoordinatorMessage {
    /// Start time of a waiting phase.
    Begin {
        /// Number of this phase. Only phases that wait for a start time are counted.
        number: u32,
        /// Start time.
        at_ns: u64,
    },
    /// Keepalive message, sent while the coordinator waits for other hosts.
    Wait {
        /// Number of this keepalive.
        number: u64,
    },
    /// The agent must stop the run.
    Stop {
        #[serde(rename = "says")]
        reason: String,
    },
}

/// Progress of a phase on one host.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HostProgress {
    pub kind: PhaseKind,
    /// I/Os per second.
    pub ops_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub latency_ns_avg: Option<u64>,
    /// Time since the start of the phase; 0 if the phase is limited by bytes.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Planned duration of the phase; 0 if it is limited by bytes.
    #[serde(default)]
    pub total_ns: u64,
    /// Bytes completed; 0 if the phase is limited by time.
    #[serde(default)]
    pub done_bytes: u64,
    /// Planned bytes of the phase; 0 if it is limited by time.
    #[serde(default)]
    pub total_bytes: u64,
}

/// Response to a request for the agent's clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClockReply {
    /// Time at which the request arrived.
    pub received_ns: u64,
    /// Time at which the response was sent.
    pub sent_ns: u64,
    /// Time of day when the request arrived, in nanoseconds since 1970; 0 if it is not known.
    #[serde(default)]
    pub realtime_ns: u64,
    /// Identifies the running process of the agent that responds. The agent's card may still be
    /// from an earlier process.
    #[serde(default)]
    pub instance: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::events::CommandRecord;

    use super::*;

    #[test]
    fn texts_of_an_agent_are_short_single_lines() {
        let hostile = format!("\x1b[2J\nPASS  forged\r{}", "x".repeat(3_000_000));
        let clean =
            |text: &str| text.len() < 4_000 && !text.chars().any(plimsoll_plan::is_unprintable);
        let sent = |message: &AgentMessage| {
            AgentMessage::parse(&serde_json::to_vec(message).unwrap()).unwrap()
        };
        let warning = AgentMessage::Warning { text: hostile.clone() };
        assert!(matches!(sent(&warning), AgentMessage::Warning { text } if clean(&text)));
        let refused = AgentMessage::Refused { reason: hostile.clone(), busy_with: None };
        assert!(matches!(sent(&refused), AgentMessage::Refused { reason, .. } if clean(&reason)));
        let ended = RunOutcome { error: hostile, ..RunOutcome::default() };
        let ended = sent(&AgentMessage::Ended(ended));
        assert!(matches!(ended, AgentMessage::Ended(outcome) if clean(&outcome.error)));
        let stderr = "\x1b[2J".to_owned();
        let command = CommandRecord { argv: vec![stderr.clone()], stderr, ..Default::default() };
        let record = EventRecord { command: Some(command), ..EventRecord::default() };
        let AgentMessage::Event { record } = sent(&AgentMessage::Event { record }) else {
            panic!()
        };
        let command = record.command.unwrap();
        assert!(clean(&command.stderr) && clean(&command.argv[0]), "{command:?}");
        assert!(AgentMessage::parse(b"\x1b[2J").is_none());
    }
}
