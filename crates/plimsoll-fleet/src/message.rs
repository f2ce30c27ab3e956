//! What agents and coordinator tell each other during a run. Times are of the agent's own clock (`CLOCK_MONOTONIC`,
//! which its driver goes by): the coordinator knows how far it is from its own.

use plimsoll_evidence::run::{Phase, PhaseKind};
use serde::{Deserialize, Serialize};

/// What an agent tells the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "kebab-case")]
pub enum AgentMessage {
    /// It carries the plan out.
    Accepted {
        /// The logical units that the plan's devices are, as far as their names are unique beyond the host.
        #[serde(default)]
        units: Vec<String>,
    },
    /// It does not.
    Refused {
        /// Why.
        reason: String,
    },
    /// A phase could begin, and waits for leave.
    Ready {
        /// Which.
        kind: PhaseKind,
        /// Which of the phases that wait, from 1.
        number: u32,
        /// Start of its run.
        run_start_ns: u64,
        /// From when on it could.
        ready_ns: u64,
    },
    /// It would take the plan: it was only asked.
    #[serde(rename = "would-take")]
    Acceptable,
    /// Data that stayed for another run was removed.
    Released {
        /// What could not be; empty where all was.
        #[serde(rename = "says")]
        error: String,
    },
    /// A phase has ended.
    PhaseEnded {
        /// Which, on the run's clock.
        phase: Phase,
    },
    /// What has to be told.
    Warning {
        /// The sentence.
        #[serde(rename = "says")]
        text: String,
    },
    /// Its run has ended.
    Ended(RunOutcome),
}

/// The end of an agent's run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Start of the run; `None` where no phase came to wait.
    pub run_start_ns: Option<u64>,
    /// The bundle's run.
    pub run_id: Option<String>,
    /// SHA-256 of its seal.
    pub seal_sha256: Option<String>,
    /// The object that holds it.
    pub object: Option<String>,
    /// What went wrong, where there is no bundle or it could not be sent.
    #[serde(rename = "says")]
    pub error: String,
    /// The phases that waited.
    pub starts: Vec<PhaseStart>,
}

/// A phase that waited for leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseStart {
    /// Which.
    pub kind: PhaseKind,
    /// From when on it could begin.
    pub ready_ns: u64,
    /// When it was to.
    pub scheduled_ns: u64,
}

/// What the coordinator tells an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "go", rename_all = "kebab-case")]
pub enum CoordinatorMessage {
    /// A phase that waits may begin.
    Begin {
        /// Which of those that wait.
        number: u32,
        /// When.
        at_ns: u64,
    },
    /// Whoever coordinates is there, and waits for other hosts.
    Wait {
        /// How often that was said.
        number: u64,
    },
    /// The run is to end.
    Stop {
        /// Why.
        #[serde(rename = "says")]
        reason: String,
    },
}

/// How a host's phase goes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HostProgress {
    /// Which phase.
    pub kind: PhaseKind,
    /// I/Os per second.
    pub ops_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency.
    pub latency_ns_avg: Option<u64>,
    /// Since the phase began, and how long it lasts; 0 where time is not what it goes by.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// As above.
    #[serde(default)]
    pub total_ns: u64,
    /// Bytes done, and of how many; 0 where bytes are not what it goes by.
    #[serde(default)]
    pub done_bytes: u64,
    /// As above.
    #[serde(default)]
    pub total_bytes: u64,
}

/// An answer to the question for the time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClockReply {
    /// When the question came.
    pub received_ns: u64,
    /// When the answer left.
    pub sent_ns: u64,
    /// The agent's start: its card may still be an earlier one's.
    #[serde(default)]
    pub instance: String,
}
