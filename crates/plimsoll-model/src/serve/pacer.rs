//! Holds a system's virtual time to the clock.
//!
//! One thread owns the system. A request is stamped by the thread that took its call off the socket, and
//! submitted at that virtual time, in the order of the stamps, however late this thread comes to it: a
//! stamp of this thread's own would count its being busy as think time of the client. Events are carried
//! out when their time has come, never before, so that requests which arrive meanwhile meet the system as
//! it then is. An answer is given at the first moment at which the thread runs after it is due; how late
//! that is, is a metric. Kernels wake a sleeper some 50 us late, so the thread sleeps until shortly before
//! and watches the clock for the rest.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::metrics::{Metrics, render};
use crate::blocks::{Action, Request};
use crate::system::{Event, System};

/// The timer that brings virtual time up to the clock.
const NOW: u32 = (1 << 31) - 1;
/// The longest that the thread sleeps.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// For so long before an event the thread watches the clock: the default timer slack of Linux (prctl(2),
/// PR_SET_TIMERSLACK), which a switch between threads costs about, too.
const WATCH_NS: u64 = 50_000;
/// Statistics are made this often.
const METRICS_EVERY_NS: u64 = 1_000_000_000;

/// A request with whom to tell when it is due.
#[derive(Debug)]
pub struct Ask {
    /// The request.
    pub request: Request,
    /// When its call was there.
    pub arrived: Instant,
    /// Told when it is done.
    pub done: oneshot::Sender<()>,
}

/// The thread that owns the system.
#[derive(Debug)]
pub struct Pacer {
    asks: Sender<Ask>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Pacer {
    /// Starts the thread.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(system: System, metrics: Arc<Metrics>) -> io::Result<Self> {
        let (asks, inbox) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("pacer".to_owned())
            .spawn(move || Loop::new(system, metrics).run(&inbox, &stopped))?;
        Ok(Self { asks, thread: Some(thread), stop })
    }

    /// Where requests are put.
    pub fn asks(&self) -> Sender<Ask> {
        self.asks.clone()
    }

    /// Ends the thread; what was not answered never is.
    pub fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to undo.
            let _ = thread.join();
        }
    }
}

struct Waiting {
    done: oneshot::Sender<()>,
    action: usize,
}

struct Loop {
    system: System,
    metrics: Arc<Metrics>,
    start: Instant,
    waiting: Vec<Option<Waiting>>,
    free: Vec<usize>,
    sums: [Sum; 4],
    lag_ns_max: u64,
    next_metrics_ns: u64,
}

/// Operations of one kind and the sum of their modelled latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) latency_ns: u64,
}

/// Names of the sums.
pub(super) const ACTIONS: [&str; 4] = ["read", "write", "flush", "metadata"];

fn action_of(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Write => 1,
        Action::Flush => 2,
        Action::Meta => 3,
    }
}

impl Loop {
    fn new(system: System, metrics: Arc<Metrics>) -> Self {
        Self {
            system,
            metrics,
            start: Instant::now(),
            waiting: Vec::new(),
            free: Vec::new(),
            sums: [Sum::default(); 4],
            lag_ns_max: 0,
            next_metrics_ns: 0,
        }
    }

    fn run(mut self, inbox: &Receiver<Ask>, stop: &AtomicBool) {
        // Where the kernel refuses, sleeps end up to 50 us late, as they do by default.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut batch: Vec<Ask> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            // The clock is read before the inbox: what is put there later has arrived later, but for
            // calls that are between stamp and inbox at this very moment.
            let now_ns = self.clock_ns();
            batch.extend(inbox.try_iter());
            batch.sort_by_key(|ask| ask.arrived);
            for ask in batch.drain(..) {
                self.advance(self.since_start_ns(ask.arrived));
                self.submit(ask);
            }
            if self.system.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                self.advance(now_ns);
            }
            if now_ns >= self.next_metrics_ns {
                render(&mut self.system, &self.sums, self.lag_ns_max, &self.metrics);
                self.next_metrics_ns = now_ns + METRICS_EVERY_NS;
            }
            match self.pause(inbox) {
                Ok(ask) => batch.extend(ask),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    /// Waits for a request, or until an event is due.
    fn pause(&mut self, inbox: &Receiver<Ask>) -> Result<Option<Ask>, TryRecvError> {
        let due_ns = self.system.due_ns().unwrap_or(u64::MAX);
        let left_ns = due_ns.saturating_sub(self.clock_ns());
        if left_ns > WATCH_NS {
            let sleep = Duration::from_nanos(left_ns - WATCH_NS).min(SLEEP_MAX);
            return match inbox.recv_timeout(sleep) {
                Ok(ask) => Ok(Some(ask)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(TryRecvError::Disconnected),
            };
        }
        while self.clock_ns() < due_ns {
            match inbox.try_recv() {
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                other => return other.map(Some),
            }
        }
        Ok(None)
    }

    fn since_start_ns(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.start);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    fn clock_ns(&self) -> u64 {
        self.since_start_ns(Instant::now())
    }

    /// Carries out everything that is due, and brings virtual time to `now_ns` unless it is beyond.
    fn advance(&mut self, now_ns: u64) {
        let now_ns = now_ns.max(self.system.now_ns());
        self.system.set_timer(now_ns, NOW);
        loop {
            match self.system.next() {
                Some(Event::Done { tag, submitted_ns }) => self.answer(tag, submitted_ns),
                Some(Event::Timer { tag: NOW }) | None => return,
                Some(Event::Timer { .. }) => {}
            }
        }
    }

    fn answer(&mut self, tag: u64, submitted_ns: u64) {
        let Some(waiting) = self.waiting.get_mut(tag as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(tag as usize);
        let due_ns = self.system.now_ns();
        let sum = &mut self.sums[waiting.action];
        sum.count += 1;
        sum.latency_ns += due_ns - submitted_ns;
        // A client that went away is no longer interested.
        let _ = waiting.done.send(());
        let late_ns = self.clock_ns().saturating_sub(due_ns);
        self.lag_ns_max = self.lag_ns_max.max(late_ns);
    }

    fn submit(&mut self, ask: Ask) {
        let action = action_of(ask.request.action);
        let waiting = Some(Waiting { done: ask.done, action });
        let tag = match self.free.pop() {
            Some(tag) => {
                self.waiting[tag] = waiting;
                tag
            }
            None => {
                self.waiting.push(waiting);
                self.waiting.len() - 1
            }
        };
        self.system.submit(tag as u64, action as u16, &ask.request);
    }
}
