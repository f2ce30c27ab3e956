//! Holds a system's virtual time to the clock.
//!
//! One thread owns the system. A request that arrives at time t is submitted at virtual time t; events are
//! carried out when their time has come, never before, so that requests which arrive meanwhile meet the
//! system as it then is. An answer is given at the first moment at which the thread runs after it is due;
//! how late that is, is a metric.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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
/// Statistics are made this often.
const METRICS_EVERY_NS: u64 = 1_000_000_000;

/// A request with whom to tell when it is due.
#[derive(Debug)]
pub struct Ask {
    /// The request.
    pub request: Request,
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
        while !stop.load(Ordering::Relaxed) {
            let now_ns = self.clock_ns();
            self.advance(now_ns);
            while let Ok(ask) = inbox.try_recv() {
                self.submit(ask);
            }
            if now_ns >= self.next_metrics_ns {
                render(&mut self.system, &self.sums, self.lag_ns_max, &self.metrics);
                self.next_metrics_ns = now_ns + METRICS_EVERY_NS;
            }
            let now_ns = self.clock_ns();
            let sleep = match self.system.due_ns() {
                Some(due_ns) if due_ns <= now_ns => continue,
                Some(due_ns) => Duration::from_nanos(due_ns - now_ns).min(SLEEP_MAX),
                None => SLEEP_MAX,
            };
            match inbox.recv_timeout(sleep) {
                Ok(ask) => {
                    let now_ns = self.clock_ns();
                    self.advance(now_ns);
                    self.submit(ask);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn clock_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Carries out everything that is due.
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
