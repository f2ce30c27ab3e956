//! Checks that the run itself was never stopped.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Pause, PauseKind};
use plimsoll_evidence::run::{Driver, Phase};

use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::figures::{NS_PER_S, measured};
use crate::finding::{Finding, Outcome};

/// Maximum fraction of the measured phase during which the run may be stopped. A 99.9th percentile
/// ignores the same fraction of the operations. The value is a convention of this project.
const SHARE_FAIL: f64 = 0.001;

pub const RULE: Rule = Rule {
    id: "was-stopped",
    asks: "was the run active during the whole measurement, without a stop?",
    explains: "While a run is stopped (SIGSTOP, Ctrl-Z, a freezer, a debugger) or suspended with \
               its machine, it issues no operations. Meanwhile the storage empties its caches, and \
               the latencies of operations in flight include the pause. To detect this, a thread \
               reads the clocks 20 times a second and sleeps in between. A pause of a second or \
               more counts as a stop in three cases: SIGCONT ended it; the boot clock advanced \
               without the monotonic clock; or that thread neither ran nor waited for a CPU (run \
               delay, stolen time, a quota). If the thread waited for a CPU, the host was busy, and \
               the run was not stopped. Shorter pauses of at least a fifth of a second also count \
               if they add up to one second. If the run was stopped for more than 0.1 % of the \
               measured phase, the rule fails for all figures that depend on time; otherwise it \
               warns. The outcome is unknown if the kernel or the hypervisor does not distinguish \
               waiting from being stopped. Run again without stopping the process or its machine.",
    bears_on: &[
        (Claim::Requirement, Weight::Refuting),
        (Claim::TailLatency, Weight::Mandatory),
        (Claim::Comparative, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Refuting),
        (Claim::BurstWrite, Weight::Refuting),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if !evidence::is_real(bundle) {
        return None;
    }
    let phase = measured(bundle)?;
    let Some(all_stopped_ns) = bundle.observed.clock.stopped_ns else {
        // Runs of other tools are observed only with `plimsoll observe`.
        let ours = bundle.run.driver == Driver::Real;
        return ours.then(|| {
            let says =
                "the Plimsoll version of this run did not record whether the run was stopped";
            Finding::new(RULE.id, Outcome::Unknown, says).advise("repeat the run with this version")
        });
    };
    let within: Vec<(Pause, u64)> = bundle
        .observed
        .clock
        .pauses
        .iter()
        .copied()
        .filter_map(|pause| part(&pause, phase))
        .collect();
    let since_ns = |pause: &Pause| pause.at_ns.saturating_sub(phase.start_ns);
    let stops = || within.iter().filter(|(pause, _)| pause.kind.is_stop());
    let stopped_ns = stops().map(|(_, part_ns)| *part_ns).fold(0, u64::saturating_add);
    let finding = if let Some((first, _)) = stops().next() {
        let share = stopped_ns as f64 / phase.duration_ns.max(1) as f64;
        let outcome = if share > SHARE_FAIL { Outcome::Fail } else { Outcome::Warn };
        let times = match stops().count() {
            1 => String::new(),
            times => format!(" in {times} pauses"),
        };
        let says = format!(
            "the run was stopped for {:.1} s{times} during a measurement of {:.1} s, the first time \
             after {:.1} s: {}",
            stopped_ns as f64 / NS_PER_S,
            phase.duration_ns as f64 / NS_PER_S,
            since_ns(first) as f64 / NS_PER_S,
            reason(first.kind),
        );
        Finding::new(RULE.id, outcome, says)
            .advise("run again, without stopping the process or its machine")
            .with("stopped_share", share)
            .with("first_after_ns", since_ns(first))
    } else if let Some((pause, _)) = within.iter().find(|(p, _)| p.kind == PauseKind::Unknown) {
        let says = format!(
            "no thread of the run was active for {:.1} s, beginning {:.1} s after the start of the \
             measurement; it is unknown whether the run was stopped or the host was busy",
            pause.duration_ns as f64 / NS_PER_S,
            since_ns(pause) as f64 / NS_PER_S,
        );
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("run on a dedicated host, or on a host that reports stolen time")
    } else if listed_ns(bundle) < all_stopped_ns {
        let says = "the run was stopped at further times that the bundle does not list";
        Finding::new(RULE.id, Outcome::Unknown, says)
            .advise("run again, without stopping the process or its machine")
    } else {
        Finding::new(RULE.id, Outcome::Pass, "the run was never stopped during the measurement")
    };
    Some(finding.with("stopped_ns", stopped_ns))
}

/// Returns the total duration of the listed stops, inside and outside the measured phase.
fn listed_ns(bundle: &Bundle) -> u64 {
    let stops = bundle.observed.clock.pauses.iter().filter(|pause| pause.kind.is_stop());
    stops.map(|pause| pause.duration_ns).fold(0, u64::saturating_add)
}

/// Returns the pause, and how much of its duration is inside the phase. Returns `None` if the pause
/// is outside the phase. For another tool, the phase is the whole run of its command.
fn part(pause: &Pause, phase: &Phase) -> Option<(Pause, u64)> {
    let end_ns = phase.start_ns.saturating_add(phase.duration_ns);
    if pause.kind == PauseKind::Suspended {
        // During a suspension, the clock that measures the phase does not advance.
        let is_within = (phase.start_ns..=end_ns).contains(&pause.at_ns);
        return is_within.then_some((*pause, pause.duration_ns));
    }
    let pause_end_ns = pause.at_ns.saturating_add(pause.duration_ns).min(end_ns);
    let part_ns = pause_end_ns.saturating_sub(pause.at_ns.max(phase.start_ns));
    (part_ns > 0).then_some((*pause, part_ns))
}

fn reason(kind: PauseKind) -> &'static str {
    match kind {
        PauseKind::Signalled => "a signal stopped it until SIGCONT",
        PauseKind::Suspended => "the machine was suspended",
        _ => "a freezer, a debugger or the machine itself stopped it",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn with(at_ns: u64, duration_ns: u64, kind: PauseKind) -> Finding {
        let mut bundle = fixtures::reads();
        let start_ns = bundle.run.measure().map_or(0, |phase| phase.start_ns);
        bundle.observed.clock.stopped_ns = Some(if kind.is_stop() { duration_ns } else { 0 });
        let at_ns = start_ns + at_ns;
        bundle.observed.clock.pauses.push(Pause { at_ns, duration_ns, kind, withheld_ns: Some(0) });
        (RULE.check)(&bundle).unwrap_or_else(|| Finding::new("", Outcome::Warn, ""))
    }

    #[test]
    fn a_stop_fails_a_short_one_warns_and_a_busy_host_is_not_accused() {
        let bundle = fixtures::reads();
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Pass));
        let phase_ns = fixtures::SECONDS * fixtures::SECOND_NS;
        for kind in [PauseKind::Signalled, PauseKind::Frozen, PauseKind::Suspended] {
            assert_eq!(with(0, phase_ns / 500, kind).outcome, Outcome::Fail);
            assert_eq!(with(0, phase_ns / 2_000, kind).outcome, Outcome::Warn);
            assert_eq!(with(phase_ns + 1, phase_ns, kind).outcome, Outcome::Pass, "after it");
        }
        assert_eq!(with(0, phase_ns / 2, PauseKind::Busy).outcome, Outcome::Pass);
        assert_eq!(with(0, phase_ns / 2, PauseKind::Unknown).outcome, Outcome::Unknown);
        assert!(with(0, phase_ns, PauseKind::Signalled).says.contains("a signal stopped it"));
    }

    #[test]
    fn what_nobody_watched_is_unknown() {
        let mut bundle = fixtures::reads();
        bundle.observed.clock.stopped_ns = None;
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
        bundle.run.driver = Driver::Foreign;
        assert_eq!(fixtures::outcome(&RULE, &bundle), None);
    }

    #[test]
    fn stops_that_are_not_listed_are_not_taken_for_none() {
        let mut bundle = fixtures::reads();
        bundle.observed.clock.stopped_ns = Some(fixtures::SECOND_NS);
        assert_eq!(fixtures::outcome(&RULE, &bundle), Some(Outcome::Unknown));
    }

    #[test]
    fn only_the_part_within_the_measured_phase_counts() {
        let phase_ns = fixtures::SECONDS * fixtures::SECOND_NS;
        let finding = with(phase_ns - phase_ns / 2_000, phase_ns, PauseKind::Frozen);
        assert_eq!(finding.outcome, Outcome::Warn, "{}", finding.says);
        assert_eq!(finding.evidence["stopped_ns"], phase_ns / 2_000);
    }
}
