//! Driving threads of a run of streams, for the coordinator: the flags that they read, their
//! results, and the timeout for each.
//!
//! The threads own the objects that they work on. If one waits in a system call that never returns,
//! the run can abandon it and still end with a report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use plimsoll_record::drain;
use plimsoll_sys::SysError;
use plimsoll_sys::clock::monotonic_ns;

use super::drive::Stop;
use crate::{EngineError, defect, stop_request};

/// Polling interval for threads that have ended.
const TICK: Duration = Duration::from_millis(20);

/// Flags that the threads read.
#[derive(Debug)]
pub(super) struct Flags {
    /// Time at which the run must end; `u64::MAX` if no stop was requested.
    pub at_ns: AtomicU64,
    /// Delay from that time until the stop was known.
    pub late_ns: AtomicU64,
    /// True if one of the threads failed.
    pub failed: AtomicBool,
    /// True if the threads must leave, even if operations are in flight.
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

    /// Sets the time of the stop once a stop has been requested.
    pub fn forward_stop(&self, stop: &AtomicBool) {
        if !stop.load(Ordering::Relaxed) || self.at_ns.load(Ordering::Relaxed) != u64::MAX {
            return;
        }
        let at_ns = monotonic_ns() + drain::AHEAD_NS;
        self.at_ns.store(at_ns, Ordering::SeqCst);
        self.late_ns.store(monotonic_ns().saturating_sub(at_ns), Ordering::Relaxed);
    }
}

/// Driving threads. Dropping this value early makes the threads leave, and waits for them.
pub(super) struct DrivingThreads<L> {
    pub flags: Arc<Flags>,
    sender: Sender<(usize, Result<L, EngineError>)>,
    results: Receiver<(usize, Result<L, EngineError>)>,
    /// Results by thread.
    finished: Vec<Option<Result<L, EngineError>>>,
    abort_ns: Option<u64>,
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
        }
    }

    /// Starts a thread. A panic in it becomes its error.
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
            // If the run has abandoned this thread, the channel has no receiver.
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
    /// Collects results. Returns true if all threads have ended, or the grace period of the others
    /// is over. A panic in any thread abandons operations in flight, and so does the operator's
    /// request to stop after its timeout.
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
        if is_timed_out || defect::has_panicked() {
            self.flags.abort.store(true, Ordering::Relaxed);
        }
        if !self.flags.abort.load(Ordering::Relaxed) {
            return false;
        }
        now_ns.saturating_sub(*self.abort_ns.get_or_insert(now_ns)) > stop_request::THREAD_EXIT_NS
    }

    /// Waits for the threads and returns their results. An abandoned thread yields
    /// [`EngineError::Abandoned`].
    pub fn end(mut self) -> Vec<Result<L, EngineError>> {
        self.wait_for_all();
        let abandoned = || EngineError::Abandoned {
            what: "the target".to_owned(),
            after_ns: stop_request::THREAD_EXIT_NS,
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
