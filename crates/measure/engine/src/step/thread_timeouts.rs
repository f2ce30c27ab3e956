//! Time limits for the driving threads of a stage.

use plimsoll_sys::clock::monotonic_ns;

use super::Control;
use crate::{defect, stop_request};

/// Progress of the threads, and the time limits that apply to them.
#[derive(Debug)]
pub(super) struct ThreadTimeouts {
    /// For each thread: the time at which its latest message arrived.
    last_progress_ns: Vec<u64>,
    silence_max_ns: u64,
    outage_max_ns: u64,
    completions: u64,
    /// Time of the latest completion after a stop request; initially, the time at which the stop
    /// request was noticed.
    stopping_ns: Option<u64>,
    aborted_ns: Option<u64>,
}

impl ThreadTimeouts {
    /// Creates time limits for threads that send a message in each interval of `interval_ns` and
    /// wait at most `outage_max_ns` for storage.
    pub(super) fn new(threads: usize, interval_ns: u64, outage_max_ns: u64) -> Self {
        Self {
            last_progress_ns: vec![monotonic_ns(); threads],
            silence_max_ns: stop_request::silence_max_ns(interval_ns, outage_max_ns),
            outage_max_ns,
            completions: 0,
            stopping_ns: None,
            aborted_ns: None,
        }
    }

    pub(super) fn record_progress(&mut self, thread: usize, now_ns: u64) {
        if let Some(last_progress_ns) = self.last_progress_ns.get_mut(thread) {
            *last_progress_ns = now_ns;
        }
    }

    /// Aborts the threads in four cases: a thread is stalled, the close makes no progress, a thread
    /// has panicked, or the stop is urgent. Returns true when the grace period is over. The stage
    /// then abandons the threads that have not ended.
    pub(super) fn abort_stalled_threads(
        &mut self,
        control: &Control,
        now_ns: u64,
        mut is_running: impl FnMut(usize) -> bool,
    ) -> bool {
        let silent = |(thread, last_progress_ns): (usize, &u64)| {
            is_running(thread) && now_ns.saturating_sub(*last_progress_ns) > self.silence_max_ns
        };
        if defect::has_panicked()
            || stop_request::is_urgent()
            || self.last_progress_ns.iter().enumerate().any(silent)
        {
            control.abort();
        }
        if control.stopped(now_ns) {
            let completions = control.completions();
            let progressed = self.stopping_ns.is_none() || completions != self.completions;
            self.completions = completions;
            let since_ns = if progressed { now_ns } else { self.stopping_ns.unwrap_or(now_ns) };
            self.stopping_ns = Some(since_ns);
            let still_ns = now_ns.saturating_sub(stop_request::timeout_start_ns(since_ns));
            if still_ns > stop_request::timeout_ns(self.outage_max_ns) {
                control.abort();
            }
        }
        if !control.aborted() {
            return false;
        }
        now_ns.saturating_sub(*self.aborted_ns.get_or_insert(now_ns)) > stop_request::THREAD_EXIT_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn timeouts() -> ThreadTimeouts {
        ThreadTimeouts::new(2, SECOND_NS, 30 * SECOND_NS)
    }

    #[test]
    fn a_thread_that_is_silent_for_too_long_is_left_behind_and_one_that_has_ended_is_not_missed() {
        let (control, mut timeouts) = (Control::new(0, 0), timeouts());
        let start_ns = monotonic_ns();
        assert!(!timeouts.abort_stalled_threads(&control, start_ns + 60 * SECOND_NS, |_| false));
        assert!(!control.aborted());
        timeouts.record_progress(0, start_ns + 60 * SECOND_NS);
        assert!(!timeouts.abort_stalled_threads(
            &control,
            start_ns + 60 * SECOND_NS,
            |thread| thread == 0
        ));
        assert!(!control.aborted());
        assert!(!timeouts.abort_stalled_threads(&control, start_ns + 60 * SECOND_NS, |_| true));
        assert!(control.aborted(), "thread 1 was not heard of for a minute");
        assert!(timeouts.abort_stalled_threads(&control, start_ns + 65 * SECOND_NS, |_| true));
    }

    #[test]
    fn a_close_that_moves_on_is_waited_for_and_one_that_stands_still_is_not() {
        let (control, mut timeouts) = (Control::new(0, 0), timeouts());
        let start_ns = monotonic_ns();
        control.stop();
        for second in 0..100 {
            control.count_completion();
            let now_ns = start_ns + second * SECOND_NS;
            (0..2).for_each(|thread| timeouts.record_progress(thread, now_ns));
            assert!(!timeouts.abort_stalled_threads(&control, now_ns, |_| true));
        }
        assert!(!control.aborted());
        let later_ns = start_ns + 140 * SECOND_NS;
        (0..2).for_each(|thread| timeouts.record_progress(thread, later_ns));
        assert!(!timeouts.abort_stalled_threads(&control, later_ns, |_| true));
        assert!(control.aborted());
    }
}
