//! Timeouts for the driving threads of a stage.

use plimsoll_sys::clock::monotonic_ns;

use super::Control;
use crate::{defect, urgency};

/// Silence of a thread beyond the plan's limit for storage, in ns. A thread hands each interval
/// over, and may be starved of its processor for a while.
const STARVED_NS: u64 = 10_000_000_000;

/// Progress of the threads.
#[derive(Debug)]
pub(super) struct Patience {
    /// By thread, time of its last sign of life.
    heard_ns: Vec<u64>,
    silence_max_ns: u64,
    outage_max_ns: u64,
    beats: u64,
    /// Time at which the stop was noticed, or of the last completion since.
    stopping_ns: Option<u64>,
    aborted_ns: Option<u64>,
}

impl Patience {
    /// Creates timeouts for threads that hand an interval over each `interval_ns` and wait at most
    /// `outage_max_ns` for storage.
    pub(super) fn new(threads: usize, interval_ns: u64, outage_max_ns: u64) -> Self {
        let silence_max_ns =
            outage_max_ns.saturating_add(2 * interval_ns).saturating_add(STARVED_NS);
        Self {
            heard_ns: vec![monotonic_ns(); threads],
            silence_max_ns,
            outage_max_ns,
            beats: 0,
            stopping_ns: None,
            aborted_ns: None,
        }
    }

    pub(super) fn heard_of(&mut self, thread: usize, now_ns: u64) {
        if let Some(heard_ns) = self.heard_ns.get_mut(thread) {
            *heard_ns = now_ns;
        }
    }

    /// Aborts the threads if one is stalled, if a close makes no progress, after a panic, or if the
    /// stop is urgent. Returns true once their time to leave is over: the stage then abandons the
    /// missing ones.
    pub(super) fn is_over(
        &mut self,
        control: &Control,
        now_ns: u64,
        mut works: impl FnMut(usize) -> bool,
    ) -> bool {
        let silent = |(thread, heard_ns): (usize, &u64)| {
            works(thread) && now_ns.saturating_sub(*heard_ns) > self.silence_max_ns
        };
        if defect::seen() || urgency::hurried() || self.heard_ns.iter().enumerate().any(silent) {
            control.abort();
        }
        if control.stopped(now_ns) {
            let beats = control.beats();
            let moved = self.stopping_ns.is_none() || beats != self.beats;
            self.beats = beats;
            let since_ns = if moved { now_ns } else { self.stopping_ns.unwrap_or(now_ns) };
            self.stopping_ns = Some(since_ns);
            let still_ns = now_ns.saturating_sub(urgency::counted_from_ns(since_ns));
            if still_ns > urgency::patience_ns(self.outage_max_ns) {
                control.abort();
            }
        }
        if !control.aborted() {
            return false;
        }
        now_ns.saturating_sub(*self.aborted_ns.get_or_insert(now_ns)) > urgency::LEAVING_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn patience() -> Patience {
        Patience::new(2, SECOND_NS, 30 * SECOND_NS)
    }

    #[test]
    fn a_thread_that_is_silent_for_too_long_is_left_behind_and_one_that_has_ended_is_not_missed() {
        let (control, mut patience) = (Control::new(0, 0), patience());
        let start_ns = monotonic_ns();
        assert!(!patience.is_over(&control, start_ns + 60 * SECOND_NS, |_| false));
        assert!(!control.aborted());
        patience.heard_of(0, start_ns + 60 * SECOND_NS);
        assert!(!patience.is_over(&control, start_ns + 60 * SECOND_NS, |thread| thread == 0));
        assert!(!control.aborted());
        assert!(!patience.is_over(&control, start_ns + 60 * SECOND_NS, |_| true));
        assert!(control.aborted(), "thread 1 was not heard of for a minute");
        assert!(patience.is_over(&control, start_ns + 65 * SECOND_NS, |_| true));
    }

    #[test]
    fn a_close_that_moves_on_is_waited_for_and_one_that_stands_still_is_not() {
        let (control, mut patience) = (Control::new(0, 0), patience());
        let start_ns = monotonic_ns();
        control.stop();
        for second in 0..100 {
            control.beat();
            let now_ns = start_ns + second * SECOND_NS;
            (0..2).for_each(|thread| patience.heard_of(thread, now_ns));
            assert!(!patience.is_over(&control, now_ns, |_| true));
        }
        assert!(!control.aborted());
        let later_ns = start_ns + 140 * SECOND_NS;
        (0..2).for_each(|thread| patience.heard_of(thread, later_ns));
        assert!(!patience.is_over(&control, later_ns, |_| true));
        assert!(control.aborted());
    }
}
