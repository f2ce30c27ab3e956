//! Rule `fleet-together`: all hosts measured at the same time.

use plimsoll_evidence::fleet::{CommonWindow, Fleet, Host};
use plimsoll_evidence::run::PhaseKind;

use super::TOGETHER;
use crate::finding::{Finding, Outcome};

/// A start skew above this limit causes a warning. The phases of a storage load take at least a few
/// seconds. A hypervisor's scheduler routinely pauses a host for a few milliseconds.
const SKEW_NS_TOLD: u64 = 5_000_000;
/// All hosts must have measured at the same time for at least this share of the planned time.
const COMMON_SHARE_MIN: f64 = 0.9;

/// Returns the host whose measured phase started last.
fn last_to_start(fleet: &Fleet) -> Option<&Host> {
    let began = |host: &&Host| host.run.as_ref()?.phase_start_ns(PhaseKind::Measure);
    fleet.hosts.iter().filter(|host| began(host).is_some()).max_by_key(|host| began(host))
}

/// Returns true if the host that started last started its load later than the coordinator had
/// scheduled. The start time then reached it late.
fn is_scheduled_late(fleet: &Fleet) -> bool {
    let Some(run) = last_to_start(fleet).and_then(|host| host.run.as_ref()) else { return false };
    run.starts.iter().any(|start| {
        let began_ns = run.phase_start_ns(start.kind);
        began_ns.is_some_and(|ns| ns.saturating_sub(start.scheduled_ns) > SKEW_NS_TOLD)
    })
}

pub(super) fn check(fleet: &Fleet) -> Finding {
    let late = last_to_start(fleet).map_or("an unknown host", |host| host.name.as_str());
    let Some(window) = fleet.window else {
        let says = "there was no time at which all hosts measured";
        // A run that was ended early is incomplete, but not wrong.
        let outcome = match fleet.ended_early.is_empty() {
            true => Outcome::Fail,
            false => Outcome::Unknown,
        };
        return Finding::new(TOGETHER, outcome, says)
            .advise("the other findings name the host and the reason");
    };
    let CommonWindow { duration_ns, start_skew_ns, start_skew_error_ns, end_skew_ns, .. } = window;
    let ms = |ns: u64| format!("{:.2} ms", ns as f64 / 1e6);
    let apart = format!(
        "the starts of the measured phases differ by {} (accurate to {}); the last host to start \
         was {late}",
        ms(start_skew_ns),
        ms(start_skew_error_ns)
    );
    let finding = |outcome, says: String| {
        Finding::new(TOGETHER, outcome, says)
            .with("start_skew_ns", start_skew_ns)
            .with("start_skew_error_ns", start_skew_error_ns)
            .with("end_skew_ns", end_skew_ns)
            .with("common_ns", duration_ns)
    };
    let planned_ns = fleet.planned_measure_ns;
    // Another finding reports a run that was ended early.
    let is_short = (duration_ns as f64) < planned_ns as f64 * COMMON_SHARE_MIN;
    if is_short && fleet.ended_early.is_empty() && window.cut {
        let says = format!(
            "all hosts measured at the same time for only {:.1} s of {:.1} s: {apart}",
            duration_ns as f64 / 1e9,
            planned_ns as f64 / 1e9
        );
        return finding(Outcome::Fail, says).advise(match is_scheduled_late(fleet) {
            true => {
                "that host started after its scheduled time: check its connection to the NATS \
                 server, and that it has free CPUs"
            }
            false => {
                "find out why an earlier phase took longer on that host than on the other hosts"
            }
        });
    }
    if window.cut {
        let says = format!(
            "intervals in which not all hosts measured were removed from the sums: {apart}"
        );
        return finding(Outcome::Unknown, says).advise(
            "start all hosts at the same time; the sums include only the remaining intervals",
        );
    }
    if start_skew_ns.saturating_sub(start_skew_error_ns) > SKEW_NS_TOLD {
        return finding(Outcome::Warn, apart)
            .advise("check that the host that started last has free CPUs and a steady clock");
    }
    if start_skew_error_ns > SKEW_NS_TOLD {
        return finding(Outcome::Warn, apart).advise(
            "the connection to an agent is slow or busy, so the clock of its host cannot be \
             compared more exactly",
        );
    }
    finding(Outcome::Pass, apart)
}
