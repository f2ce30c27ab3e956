//! Waits until a phase has permission to begin ([`Watcher::begins_at`]). In this way, all hosts of
//! a fleet start together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use plimsoll_evidence::run::PhaseKind;
use plimsoll_record::progress::Watcher;
use plimsoll_record::recording::Recording;
use plimsoll_sys::clock::monotonic_ns;

/// Interval at which a waiting phase asks for permission.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waits until a phase has permission to begin, and returns its start time. The start is never
/// earlier than `ready_ns`, the time at which the phase was ready, and never in the past. A fleet's
/// start time may arrive late, and the operator may request the end of the run after a long wait.
/// If the phase then started in the past, its rate would include a time without load, and all
/// operations of this time would be due immediately. The late start is recorded, so that the judge
/// finds it (`fleet-together`).
fn begins_at(
    watcher: &mut dyn Watcher,
    interrupt: &AtomicBool,
    kind: PhaseKind,
    run_start_ns: u64,
    ready_ns: u64,
) -> u64 {
    loop {
        let permission = watcher.begins_at(kind, run_start_ns, ready_ns);
        if interrupt.load(Ordering::Relaxed) {
            return ready_ns.max(monotonic_ns());
        }
        if let Some(at_ns) = permission {
            return at_ns.max(ready_ns).max(monotonic_ns());
        }
        sleep(POLL_INTERVAL);
    }
}

/// Waits until a phase has permission to begin, and postpones its start until then. Returns true if
/// the start was postponed. The wait is not part of the phase.
pub(crate) fn delay_start(
    watcher: &mut dyn Watcher,
    interrupt: &AtomicBool,
    recording: &mut Recording,
    (kind, phase): (PhaseKind, u32),
    start_ns: &mut u64,
) -> bool {
    let at_ns = begins_at(watcher, interrupt, kind, recording.start_ns, *start_ns);
    let is_late = at_ns > *start_ns;
    if is_late {
        *start_ns = at_ns;
        recording.put_off(phase, at_ns);
    }
    is_late
}

/// Waits until a phase has permission to begin, and returns its start time. The phase starts as
/// soon as the thread drives it.
pub(crate) fn wait_for_start(
    watcher: &mut dyn Watcher,
    interrupt: &AtomicBool,
    kind: PhaseKind,
    run_start_ns: u64,
) -> u64 {
    let ready_ns = monotonic_ns();
    let at_ns = begins_at(watcher, interrupt, kind, run_start_ns, ready_ns);
    while at_ns > monotonic_ns() && !interrupt.load(Ordering::Relaxed) {
        sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())).min(POLL_INTERVAL * 20));
    }
    at_ns.min(monotonic_ns())
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::run::Phase;
    use plimsoll_record::progress::Progress;

    use super::*;

    /// Watcher that permits the next phase to begin at a given time. If no time is given, it
    /// requests the end of the run.
    struct StubWatcher<'a>(Option<u64>, &'a AtomicBool);

    impl Watcher for StubWatcher<'_> {
        fn begins_at(&mut self, _: PhaseKind, _: u64, ready_ns: u64) -> Option<u64> {
            self.1.store(self.0.is_none(), Ordering::Relaxed);
            // If the watcher has requested the end of the run, every phase may begin.
            Some(self.0.unwrap_or(ready_ns))
        }
        fn begin(&mut self, _: PhaseKind) {}
        fn progress(&mut self, _: PhaseKind, _: &Progress) {}
        fn end(&mut self, _: &Phase) {}
    }

    #[test]
    fn a_phase_that_waited_until_its_run_is_ended_does_not_begin_in_the_past() {
        let stop = AtomicBool::new(false);
        let long_ago_ns = monotonic_ns() - 1_000_000;
        let begins = |permission: Option<u64>| {
            begins_at(
                &mut StubWatcher(permission, &stop),
                &stop,
                PhaseKind::Measure,
                0,
                long_ago_ns,
            )
        };
        let later_ns = monotonic_ns() + 60_000_000_000;
        assert_eq!(begins(Some(later_ns)), later_ns);
        let now_ns = monotonic_ns();
        assert!(begins(None) >= now_ns);
    }

    #[test]
    fn a_phase_whose_permission_arrives_late_begins_when_it_arrives() {
        let stop = AtomicBool::new(false);
        let now_ns = monotonic_ns();
        let mut watcher = StubWatcher(Some(now_ns - 4_000_000), &stop);
        let at_ns = begins_at(&mut watcher, &stop, PhaseKind::Measure, 0, now_ns - 4_300_000);
        assert!(at_ns >= now_ns);
        assert!(wait_for_start(&mut watcher, &stop, PhaseKind::Create, 0) >= now_ns);
    }
}
