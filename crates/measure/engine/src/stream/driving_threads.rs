//! The coordinator's access to the threads that drive streams: the flags that these threads read,
//! the results of the threads, and their time limits.
//!
//! The threads own the objects that they use. If a thread waits in a system call that never
//! returns, the run can therefore abandon this thread and still end with a report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use plimsoll_record::drain;
use plimsoll_sys::SysError;
use plimsoll_sys::clock::monotonic_ns;

use super::drive::Stop;
use crate::{EngineError, defect, stop_request};

/// Interval at which the coordinator checks which threads have ended.
const TICK: Duration = Duration::from_millis(20);

/// Maximum time that is counted between two checks, in ns. A longer time is reduced to this value:
/// while the whole process is suspended, the threads cannot send messages.
const POLL_NS_MAX: u64 = 2 * TICK.as_nanos() as u64;

/// Flags that the driving threads read.
#[derive(Debug)]
pub(super) struct Flags {
    /// Time at which the run must stop; `u64::MAX` if no stop was requested.
    pub at_ns: AtomicU64,
    /// How long after the time of the stop the threads could read it, in ns.
    pub late_ns: AtomicU64,
    /// True if a thread has failed.
    pub failed: AtomicBool,
    /// True if the threads must end immediately, even if operations are in flight.
    pub abort: AtomicBool,
}

impl Flags {
    fn new() -> Self {
        Self {
            at_ns: AtomicU64::new(u64::MAX),
            late_ns: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            abort: AtomicBool::new(false),
        }
    }

    /// Returns the flags that a driving thread reads.
    pub fn stop(&self) -> Stop<'_> {
        Stop { at_ns: &self.at_ns, failed: &self.failed, abort: &self.abort }
    }

    /// If a stop was requested, sets the time at which the threads stop.
    pub fn forward_stop(&self, stop: &AtomicBool) {
        if !stop.load(Ordering::Relaxed) || self.at_ns.load(Ordering::Relaxed) != u64::MAX {
            return;
        }
        let at_ns = monotonic_ns() + drain::AHEAD_NS;
        self.at_ns.store(at_ns, Ordering::SeqCst);
        self.late_ns.store(monotonic_ns().saturating_sub(at_ns), Ordering::Relaxed);
    }
}

/// Driving threads of a run. If this value is dropped before they end, the drop aborts the threads
/// and waits for them.
pub(super) struct DrivingThreads<L> {
    pub flags: Arc<Flags>,
    sender: Sender<(usize, Result<L, EngineError>)>,
    results: Receiver<(usize, Result<L, EngineError>)>,
    finished: Vec<Option<Result<L, EngineError>>>,
    abort_ns: Option<u64>,
    silence: ThreadSilence,
    /// True if the abort was caused by a silent thread.
    was_silent: bool,
}

/// Detects silent threads. A thread that waits in a system call sends no messages. Silence is only
/// counted while the coordinator itself is running.
#[derive(Debug, Default)]
struct ThreadSilence {
    max_ns: u64,
    polled_ns: u64,
    running_ns: u64,
    /// For each thread: value of `running_ns` when its last message arrived; `None` after its final
    /// message. The list is empty if the silence of threads is not limited.
    last_message_ns: Vec<Option<u64>>,
}

impl ThreadSilence {
    /// Returns true if a running thread has been silent for too long.
    fn poll(&mut self, now_ns: u64, is_running: impl Fn(usize) -> bool) -> bool {
        self.running_ns += now_ns.saturating_sub(self.polled_ns).min(POLL_NS_MAX);
        self.polled_ns = self.polled_ns.max(now_ns);
        let mut threads = self.last_message_ns.iter().enumerate();
        threads.any(|(thread, last_ns)| {
            last_ns.is_some_and(|last_ns| self.running_ns - last_ns > self.max_ns)
                && is_running(thread)
        })
    }
}

impl<L: Send + 'static> DrivingThreads<L> {
    pub fn new() -> Self {
        let (sender, results) = channel();
        Self {
            flags: Arc::new(Flags::new()),
            sender,
            results,
            finished: Vec::new(),
            abort_ns: None,
            silence: ThreadSilence::default(),
            was_silent: false,
        }
    }

    /// Starts a thread. If the thread panics, its result is an error.
    pub fn start(
        &mut self,
        name: &str,
        work: impl FnOnce(&Flags) -> Result<L, EngineError> + Send + 'static,
    ) {
        let (index, flags) = (self.finished.len(), Arc::clone(&self.flags));
        let sender = self.sender.clone();
        let all = move || {
            let finished = defect::catch_panic(|| work(&flags)).and_then(|finished| finished);
            if let Err(error) = &finished {
                flags.failed.store(true, Ordering::Relaxed);
                flags.abort.fetch_or(matches!(error, EngineError::Defect(_)), Ordering::Relaxed);
            }
            // If the run has abandoned this thread, nobody receives the result.
            let _ = sender.send((index, finished));
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(all);
        self.finished.push(thread.err().map(|error| {
            self.flags.abort.store(true, Ordering::Relaxed);
            Err(EngineError::system("starting a thread", SysError::from_io("clone", &error)))
        }));
    }
}

impl<L> DrivingThreads<L> {
    /// After `start_ns`, aborts the run if any thread sends no message for more than `max_ns`.
    pub fn limit_silence(&mut self, max_ns: u64, start_ns: u64) {
        let last_message_ns = vec![Some(0); self.finished.len()];
        self.silence =
            ThreadSilence { max_ns, polled_ns: start_ns, running_ns: 0, last_message_ns };
    }

    pub fn record_message(&mut self, thread: usize, is_final: bool) {
        let now_ns = self.silence.running_ns;
        if let Some(last_ns) = self.silence.last_message_ns.get_mut(thread) {
            *last_ns = last_ns.filter(|_| !is_final).map(|_| now_ns);
        }
    }

    /// Collects the results of threads that have ended. Returns true if all threads have ended, or
    /// if the grace period is over. Aborts the threads in three cases, so that they abandon
    /// operations in flight. A thread has panicked, a thread has been silent for too long, or the
    /// time limit after the operator's request to stop has passed.
    pub fn poll_finished(&mut self) -> bool {
        for (index, finished) in self.results.try_iter() {
            self.finished[index] = Some(finished);
        }
        if self.finished.iter().all(Option::is_some) {
            return true;
        }
        let now_ns = monotonic_ns();
        let since_request_ns = now_ns.saturating_sub(stop_request::timeout_start_ns(0));
        let is_timed_out =
            stop_request::is_requested() && since_request_ns > stop_request::timeout_ns(u64::MAX);
        let is_running = |thread: usize| self.finished[thread].is_none();
        self.was_silent |= self.silence.poll(now_ns, is_running);
        if self.was_silent || is_timed_out || defect::has_panicked() {
            self.flags.abort.store(true, Ordering::Relaxed);
        }
        if !self.flags.abort.load(Ordering::Relaxed) {
            return false;
        }
        now_ns.saturating_sub(*self.abort_ns.get_or_insert(now_ns)) > stop_request::THREAD_EXIT_NS
    }

    /// Waits for the threads and returns their results. The result of an abandoned thread is
    /// [`EngineError::Abandoned`].
    pub fn end(mut self) -> Vec<Result<L, EngineError>> {
        self.wait_for_all();
        let silence_ns = if self.was_silent { self.silence.max_ns } else { 0 };
        let abandoned = || EngineError::Abandoned {
            what: "the target".to_owned(),
            after_ns: silence_ns + stop_request::THREAD_EXIT_NS,
        };
        let all = std::mem::take(&mut self.finished).into_iter();
        all.map(|finished| finished.unwrap_or_else(|| Err(abandoned()))).collect()
    }

    fn wait_for_all(&mut self) {
        while !self.poll_finished() {
            match self.results.recv_timeout(TICK) {
                Ok((index, finished)) => self.finished[index] = Some(finished),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }
}

impl<L> Drop for DrivingThreads<L> {
    fn drop(&mut self) {
        if self.finished.iter().any(Option::is_none) {
            self.flags.abort.store(true, Ordering::Relaxed);
            self.wait_for_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Simulates a check every 20 ms in this range of seconds. Returns true if a thread was silent
    /// for too long.
    fn poll(threads: &mut DrivingThreads<()>, seconds: std::ops::Range<u64>) -> bool {
        let mut times = (seconds.start * 50..seconds.end * 50).map(|tick| tick * SECOND_NS / 50);
        times
            .any(|now_ns| threads.silence.poll(now_ns, |thread| threads.finished[thread].is_none()))
    }

    fn two_threads() -> DrivingThreads<()> {
        let mut threads = DrivingThreads::new();
        threads.finished = vec![None, None];
        threads.limit_silence(40 * SECOND_NS, 100 * SECOND_NS);
        threads
    }

    #[test]
    fn a_silent_thread_is_detected_from_the_start_on() {
        let mut threads = two_threads();
        assert!(!poll(&mut threads, 0..139), "the silence before the start does not count");
        threads.record_message(0, false);
        assert!(poll(&mut threads, 139..142), "thread 1 has sent nothing for 41 s");
        threads.finished.clear();
    }

    #[test]
    fn finished_threads_and_stopped_processes_are_not_silent() {
        let mut threads = two_threads();
        threads.finished[0] = Some(Ok(()));
        threads.record_message(1, false);
        assert!(!poll(&mut threads, 100..130));
        assert!(!poll(&mut threads, 1000..1005), "a process that was stopped for 870 s");
        threads.record_message(1, true);
        assert!(!poll(&mut threads, 1005..2000), "a thread may take long to close its files");
        threads.finished.clear();
    }
}
