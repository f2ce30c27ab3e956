//! State of one host during a fleet run, as known to the coordinator.

use std::time::{Duration, Instant};

use plimsoll_evidence::fleet::{Offset, UntilLost};
use plimsoll_evidence::run::PhaseKind;
use plimsoll_sys::clock::monotonic_ns;

use crate::card::Card;
use crate::evidence::HostResult;
use crate::message::{AgentMessage, HostProgress, RunOutcome};

/// If other hosts wait for a host that has been silent for this time, the coordinator declares it
/// lost.
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A phase that waits for its start time.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingPhase {
    pub(super) kind: PhaseKind,
    pub(super) number: u32,
}

#[derive(Debug)]
pub(super) struct HostState {
    pub(super) card: Card,
    /// Offsets of the host's clock, measured before and after the run.
    pub(super) offsets: Vec<Offset>,
    pub(super) accepted: bool,
    pub(super) refused: Option<String>,
    /// True if the host refused the plan because it executes another run.
    pub(super) is_busy: bool,
    /// True if the user was informed that the host is silent.
    pub(super) is_silent: bool,
    pub(super) pending: Option<PendingPhase>,
    pub(super) ended: Option<RunOutcome>,
    /// Reason for declaring the host lost.
    pub(super) lost: Option<String>,
    /// Event that stopped the lost host, if the plan expects this event to stop the host.
    pub(super) lost_with: Option<String>,
    /// Figures of the measured phase up to the host's last message. The times are on this host's
    /// clock.
    pub(super) until_lost: UntilLost,
    /// Error that occurred while the host's evidence was fetched; empty if there was no error.
    pub(super) evidence_error: String,
    /// The host's bundle, as an archive.
    pub(super) archive: Option<Vec<u8>>,
    /// Logical units of the devices that the host uses.
    units: Vec<String>,
    /// Latest phase that a message of the host states, and true if the host has finished it.
    last_phase: Option<(PhaseKind, bool)>,
    last_heard: Instant,
}

/// Returns an error message if two hosts use the same logical unit. Each host would overwrite the
/// data of the other host, which would look like corruption by the storage.
pub(super) fn shared_unit_error(hosts: &[HostState]) -> Option<String> {
    hosts.iter().enumerate().find_map(|(at, host)| {
        let of = |unit: &&String| hosts[..at].iter().find(|other| other.units.contains(unit));
        let (unit, other) = host.units.iter().find_map(|unit| Some((unit, of(&unit)?)))?;
        let (one, two) = (&other.card.name, &host.card.name);
        Some(format!(
            "{one} and {two} would overwrite each other's data: both use the logical unit {unit}; \
             assign a different device to each host ([[fleet.host]] set)"
        ))
    })
}

impl HostState {
    /// Creates the state of a host whose clock has been measured.
    pub(super) fn new(card: Card, offset: Offset) -> Self {
        Self {
            card,
            offsets: vec![offset],
            accepted: false,
            refused: None,
            is_busy: false,
            is_silent: false,
            pending: None,
            ended: None,
            lost: None,
            lost_with: None,
            until_lost: UntilLost::default(),
            evidence_error: String::new(),
            archive: None,
            units: Vec::new(),
            last_phase: None,
            last_heard: Instant::now(),
        }
    }

    /// Returns the clock offset that was measured before the run.
    pub(super) fn initial_offset(&self) -> Offset {
        self.offsets.first().copied().unwrap_or(Offset { offset_ns: 0, error_ns: 0, at_ns: 0 })
    }

    /// Returns true if the host has finished, has refused the plan or is lost.
    pub(super) fn is_finished(&self) -> bool {
        self.ended.is_some() || self.lost.is_some() || self.refused.is_some()
    }

    /// Returns true if the host waits for other hosts.
    pub(super) fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the time since the host's last message or heartbeat.
    pub(super) fn silence(&self) -> Duration {
        self.last_heard.elapsed()
    }

    /// Restarts the time of silence, for example after an outage.
    pub(super) fn reset_silence(&mut self) {
        self.last_heard = Instant::now();
    }

    /// Records that a message of the host has just arrived.
    fn hear(&mut self) {
        self.last_heard = Instant::now();
        self.until_lost.heard_ns = monotonic_ns();
    }

    /// Adds a progress report. `number`: number of the report in its phase.
    pub(super) fn apply_progress(&mut self, live: &HostProgress, number: u32) {
        self.hear();
        // A progress report may arrive after the message about the end of its phase.
        if self.last_phase.is_none_or(|(kind, _)| kind != live.kind) {
            self.last_phase = Some((live.kind, false));
        }
        // The first report does not contain a whole interval.
        if live.kind == PhaseKind::Measure && number > 1 {
            let UntilLost { reports, ops_per_s, bytes_per_s, .. } = &mut self.until_lost;
            let count = f64::from(*reports);
            let mean = |old: Option<f64>, new: f64| {
                Some((old.unwrap_or(0.0) * count + new) / (count + 1.0))
            };
            *ops_per_s = mean(*ops_per_s, live.ops_per_s);
            *bytes_per_s = mean(*bytes_per_s, live.bytes_per_s);
            *reports += 1;
        }
    }

    /// Describes the last known step of the host, for messages.
    pub(super) fn last_step(&self) -> String {
        match (self.last_phase, self.accepted) {
            (Some((kind, is_finished)), _) => {
                let step = if is_finished { "finished" } else { "reached" };
                format!("after it {step} the phase {}", kind.label())
            }
            (None, true) => "after it accepted the plan".to_owned(),
            (None, false) => "before it accepted or refused the plan".to_owned(),
        }
    }

    /// Marks the host as lost. If there are several reasons, the first is stored.
    pub(super) fn mark_lost(&mut self, why: String) {
        self.lost.get_or_insert(why);
    }

    /// Updates the state from a message of the agent.
    pub(super) fn apply_message(&mut self, message: AgentMessage) {
        self.hear();
        match message {
            AgentMessage::Accepted { units } => {
                self.accepted = true;
                self.units = units;
            }
            AgentMessage::Acceptable | AgentMessage::Released { .. } => {}
            AgentMessage::Refused { reason, busy_with } => {
                self.is_busy = busy_with.is_some();
                self.refused = Some(reason);
            }
            AgentMessage::Ready { kind, number, .. } => {
                self.last_phase = Some((kind, false));
                self.pending = Some(PendingPhase { kind, number });
            }
            // If a lost host reconnects, it has not run together with the other hosts. Its evidence
            // is therefore not collected.
            AgentMessage::Ended(ended) if self.lost.is_none() => {
                self.pending = None;
                self.ended = Some(ended);
            }
            AgentMessage::PhaseEnded { phase } => {
                self.last_phase = Some((phase.kind, true));
                // The coordinator that was killed had already started this phase.
                self.pending = self.pending.filter(|pending| pending.kind != phase.kind);
            }
            AgentMessage::Ended(_) | AgentMessage::Event { .. } | AgentMessage::Warning { .. } => {}
        }
    }

    /// Updates the state from a heartbeat.
    pub(super) fn apply_heartbeat(&mut self, card: &Card, run_id: &str) {
        if card.instance == self.card.instance {
            self.hear();
        }
        // The heartbeat can arrive before the response to the plan.
        self.accepted |= card.busy_with.as_deref() == Some(run_id);
        if card.instance != self.card.instance && !self.is_finished() {
            let last_step = self.last_step();
            self.mark_lost(format!("its agent was restarted, {last_step}"));
        }
    }

    /// Converts the state into the host's result.
    pub(super) fn into_result(self) -> HostResult {
        HostResult {
            card: self.card,
            offsets: self.offsets,
            refused: self.refused,
            lost: self.lost,
            until_lost: self.lost_with.as_ref().map(|_| self.until_lost),
            lost_with: self.lost_with,
            ended: self.ended,
            evidence_error: self.evidence_error,
            archive: self.archive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_host() -> HostState {
        let card = Card {
            name: "a".into(),
            instance: "1".into(),
            host: String::new(),
            address: String::new(),
            boot_id: String::new(),
            version: String::new(),
            build: String::new(),
            cpus: 1,
            kernel: String::new(),
            allows: Vec::new(),
            labels: Vec::new(),
            trusts: Vec::new(),
            busy_with: None,
        };
        HostState::new(card, Offset { offset_ns: 5, error_ns: 1, at_ns: 0 })
    }

    #[test]
    fn a_restarted_agent_is_lost_and_stays_lost() {
        let mut host = new_host();
        host.apply_message(AgentMessage::Accepted { units: Vec::new() });
        host.apply_message(AgentMessage::Ready {
            kind: PhaseKind::WarmUp,
            number: 1,
            run_start_ns: 0,
            ready_ns: 1,
        });
        assert!(host.is_waiting() && !host.is_finished());
        let again = Card { instance: "2".into(), ..host.card.clone() };
        host.apply_heartbeat(&again, "r");
        assert_eq!(
            host.lost.as_deref(),
            Some("its agent was restarted, after it reached the phase warm-up")
        );
        host.apply_message(AgentMessage::Ended(RunOutcome::default()));
        assert!(host.ended.is_none(), "what comes of it afterwards is not of this run");
    }

    #[test]
    fn the_last_step_is_the_latest_phase_that_the_host_reported() {
        let mut host = new_host();
        let live = |kind| HostProgress {
            kind,
            ops_per_s: 1.0,
            bytes_per_s: 1.0,
            latency_ns_avg: None,
            elapsed_ns: 0,
            total_ns: 0,
            done_bytes: 0,
            total_bytes: 0,
        };
        let (kind, number) = (PhaseKind::WarmUp, 1);
        host.apply_message(AgentMessage::Ready { kind, number, run_start_ns: 0, ready_ns: 1 });
        host.apply_progress(&live(PhaseKind::Measure), 1);
        assert_eq!(host.last_step(), "after it reached the phase measure");
        let phase = plimsoll_evidence::run::Phase {
            kind: PhaseKind::Measure,
            start_ns: 0,
            duration_ns: 1,
            read_bytes: 0,
            written_bytes: 0,
            reached: true,
            note: String::new(),
            boundary_error_ns: None,
        };
        host.apply_message(AgentMessage::PhaseEnded { phase });
        host.apply_progress(&live(PhaseKind::Measure), 2);
        assert_eq!(host.last_step(), "after it finished the phase measure");
        assert!(host.is_waiting(), "for another phase");
    }

    #[test]
    fn hosts_that_share_a_logical_unit_are_reported() {
        let of = |name: &str, units: &[&str]| {
            let mut host = new_host();
            host.card.name = name.into();
            host.apply_message(AgentMessage::Accepted {
                units: units.iter().map(|u| (*u).to_owned()).collect(),
            });
            host
        };
        assert_eq!(
            shared_unit_error(&[of("a", &["naa.1"]), of("b", &["naa.2"]), of("c", &[])]),
            None
        );
        let message =
            shared_unit_error(&[of("a", &["naa.1"]), of("b", &[]), of("c", &["naa.2", "naa.1"])]);
        let message = message.unwrap();
        assert!(message.starts_with("a and c would overwrite each other's data"), "{message}");
        assert!(message.contains("naa.1;"), "{message}");
    }

    #[test]
    fn a_heartbeat_of_the_same_agent_keeps_the_host() {
        let mut host = new_host();
        let same = host.card.clone();
        host.apply_heartbeat(&same, "r");
        assert!(!host.is_finished() && host.initial_offset().offset_ns == 5);
        assert!(!host.accepted);
        host.apply_heartbeat(&Card { busy_with: Some("r".into()), ..same }, "r");
        assert!(host.accepted, "it carries the plan out, whatever it has said yet");
        host.apply_message(AgentMessage::Refused { reason: "no".into(), busy_with: None });
        assert!(host.is_finished());
    }
}
