//! Advances a system's virtual time together with the clock.
//!
//! One task owns the system. It runs on the same thread that reads calls from the sockets and sends
//! the replies, because a switch between threads would add the time to wake a core to each read. A
//! request gets a time stamp when its call has been read. It is submitted at this virtual time even
//! if the task handles it late. Otherwise the delays of the task would count as think time of the
//! client. Events are never executed before their time, so that earlier requests find the right
//! state. The task sends a reply when it first runs after the time at which the reply is due, and
//! reports the delay as a metric. Sleeping threads wake late, so the task sleeps until shortly
//! before that time and then polls clock and sockets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::metrics::{Metrics, Sum, render};
use plimsoll_model::blocks::{Action, Request};
use plimsoll_model::system::{Event, System};

/// Id of the timer that advances virtual time to the time of the clock.
const NOW: u32 = (1 << 31) - 1;
/// Maximum sleep of the task.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Time before an event during which the task polls clock and sockets. The runtime rounds a sleep
/// up to a whole millisecond, and rounds up again when it waits for the sockets. It takes 0.1 ms to
/// wake a core.
const WATCH_NS: u64 = 2_200_000;
/// Interval between updates of the statistics.
const METRICS_EVERY_NS: u64 = 1_000_000_000;

/// A request, and the receiver that is notified when the reply is due.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) request: Request,
    /// Arrival time of the call.
    pub(super) arrived: Instant,
    /// Sender that reports the completion.
    pub(super) done: oneshot::Sender<()>,
}

struct PendingReply {
    done: oneshot::Sender<()>,
    action: usize,
}

/// Owns the system.
pub(super) struct Pacer {
    system: System,
    metrics: Arc<Metrics>,
    start: Instant,
    waiting: Vec<Option<PendingReply>>,
    free: Vec<usize>,
    sums: [Sum; 4],
    lag_ns_max: u64,
    next_metrics_ns: u64,
}

fn action_of(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Write => 1,
        Action::Flush => 2,
        Action::Meta => 3,
    }
}

impl Pacer {
    /// Creates a system that starts now.
    pub(super) fn new(system: System, metrics: Arc<Metrics>) -> Self {
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

    /// Handles requests until all senders have ended.
    pub(super) async fn run(mut self, mut inbox: UnboundedReceiver<QueuedRequest>) {
        loop {
            // A single thread stamps and sends requests, so they arrive in the order of their time
            // stamps.
            while let Ok(queued) = inbox.try_recv() {
                self.submit(queued);
            }
            let now_ns = self.clock_ns();
            if self.system.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                self.advance(now_ns);
            }
            if now_ns >= self.next_metrics_ns {
                render(&mut self.system, &self.sums, self.lag_ns_max, &self.metrics);
                self.next_metrics_ns = now_ns + METRICS_EVERY_NS;
            }
            match self.idle_for() {
                None => {
                    // This yields the core to other processes, such as a client on this machine.
                    std::thread::yield_now();
                    // This lets the runtime poll the sockets first.
                    tokio::task::yield_now().await;
                }
                Some(sleep) => match tokio::time::timeout(sleep, inbox.recv()).await {
                    Ok(Some(queued)) => self.submit(queued),
                    Ok(None) => return,
                    Err(_) => {}
                },
            }
        }
    }

    /// Returns the time until the next event is due; `None` if an event is due now or soon. During
    /// this time, only new requests can arrive.
    fn idle_for(&mut self) -> Option<Duration> {
        let due_ns = self.system.due_ns().unwrap_or(u64::MAX);
        let left_ns = due_ns.saturating_sub(self.clock_ns());
        let idle_ns = left_ns.checked_sub(WATCH_NS)?;
        (idle_ns > 0).then(|| Duration::from_nanos(idle_ns).min(SLEEP_MAX))
    }

    fn since_start_ns(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.start);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    fn clock_ns(&self) -> u64 {
        self.since_start_ns(Instant::now())
    }

    /// Executes all events that are due, and advances virtual time to `now_ns`, unless virtual time
    /// is already later.
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
        // This fails if the client has disconnected and no longer needs the reply.
        let _ = waiting.done.send(());
        let late_ns = self.clock_ns().saturating_sub(due_ns);
        self.lag_ns_max = self.lag_ns_max.max(late_ns);
    }

    /// Submits a request to the system at the time of its call.
    fn submit(&mut self, queued: QueuedRequest) {
        self.advance(self.since_start_ns(queued.arrived));
        let action = action_of(queued.request.action);
        let waiting = Some(PendingReply { done: queued.done, action });
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
        self.system.submit(tag as u64, action as u16, &queued.request);
    }
}
