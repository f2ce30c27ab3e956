//! The loop of one driving thread: step the workload with a completion, hand over what it wants, record;
//! where nothing is there, wait.
//!
//! As in the driver of streams, the device must never be idle because of this thread: what was waited
//! for is taken and handed over one by one, and only where operations are back at once do they go in
//! batches (`Batch`). An I/O without a schedule has its latency from just before the call that hands it
//! over; what it waited for in this thread is the generator's lag: from when the completion that led to
//! it was there to be taken, or from the time that the workload waited for.

use std::sync::mpsc::Sender;

use plimsoll_record::drain::{OldestOperation, Silence};
use plimsoll_record::late::LateRecorder;
use plimsoll_record::recorder::{Recorder, Snapshot};
use plimsoll_sys::clock::Clock;
use plimsoll_sys::cpu::present_cpu;
use plimsoll_workload::step::{Arena, Completion, Io, IoKind, StepWorkload, Wait};

use super::control::Control;
use crate::EngineError;
use crate::backend::{AnyQueue, Backend, Batch, Queue};
use crate::timer::Timer;

/// A driving thread looks at its [`Control`] at least this often.
const LOOK_NS: u64 = 100_000_000;

/// What is worth knowing of a workload between two intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Bytes done of the phase's total.
    pub done_bytes: u64,
    /// The phase's total; 0 where it has none.
    pub total_bytes: u64,
    /// Whether what the phase waits for has come about.
    pub ready: bool,
}

/// What to drive with.
pub struct Driven<'a, W, Q = AnyQueue, T = Clock> {
    /// The part of the workload that this thread owns.
    pub workload: &'a mut W,
    /// Its files, buffers and queue.
    pub backend: &'a mut Backend<Q, T>,
    /// Phase and stop.
    pub control: &'a Control,
    /// Where snapshots go. A receiver that is gone is not an error: nobody wants them any more.
    pub snapshots: Sender<Snapshot>,
    /// Number of this thread.
    pub thread: u32,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Length of the interval of histograms.
    pub histogram_interval_ns: u64,
    /// With I/Os in flight and none answered for so long, it fails.
    pub outage_max_ns: u64,
    /// Looks at the workload once per interval.
    pub glance: fn(&W) -> Glance,
    /// CPUs that the thread was seen on at the ends of intervals.
    pub ran_on: &'a mut Vec<u32>,
}

/// An I/O between issue and completion.
#[derive(Clone, Copy)]
struct InFlight {
    token: u64,
    class: u16,
    is_flush: bool,
    size_bytes: u32,
    /// When a schedule wanted it; `None`: as soon as it could be.
    intended_ns: Option<u64>,
    /// When it could have been handed over at the earliest.
    ready_ns: u64,
    /// When it was queued, to be handed over at once.
    queued_ns: u64,
    /// Whether it was in flight, or due, when the measured phase ended.
    is_late: bool,
}

/// Drives until the workload is done.
///
/// An I/O that fails is counted and handed to the workload, which decides; only a queue that fails
/// as a whole, or that answers nothing any more, ends the loop here.
///
/// # Errors
/// [`EngineError`] where the queue fails or refuses an operation that the workload asked for, where
/// nothing is answered for [`Driven::outage_max_ns`] or one I/O not for
/// [`one_max_ns`](plimsoll_record::drain::one_max_ns), and [`EngineError::Stopped`] after [`Control::abort`].
pub fn drive<W: StepWorkload, Q: Queue, T: Timer>(
    driven: Driven<'_, W, Q, T>,
) -> Result<(), EngineError> {
    let classes = driven.workload.classes().len();
    let depth = driven.workload.depth_max();
    let (phase, start_ns) = driven.control.first();
    let began_ns = driven.backend.now_ns();
    let recorder = Recorder::new(classes, start_ns, driven.histogram_interval_ns);
    let mut thread = Thread {
        phase,
        stage: Stage::Before,
        recorder,
        late: None,
        in_flight: Vec::with_capacity(depth),
        batch: Batch::new(1, depth),
        seen: 0,
        seen_ns: 0,
        silence: Silence::from(began_ns),
        look_at_oldest_ns: began_ns,
        oldest: OldestOperation::default(),
        driven,
    };
    let result = thread.run();
    let now_ns = thread.driven.backend.now_ns();
    thread.hand_over(now_ns, true);
    thread.leave(now_ns);
    result
}

/// How far a thread is through the phases of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before,
    Measured,
    Closing,
}

struct Thread<'a, W, Q, T> {
    driven: Driven<'a, W, Q, T>,
    recorder: Recorder,
    phase: u32,
    stage: Stage,
    /// Once the measured phase has ended: what belongs to it and had not completed.
    late: Option<LateRecorder>,
    in_flight: Vec<InFlight>,
    batch: Batch,
    /// Completions that were there when they were last looked for, and are not taken yet.
    seen: usize,
    /// When that was.
    seen_ns: u64,
    /// Since something last came back, or nothing was in flight.
    silence: Silence,
    /// When the oldest I/O in flight is looked at again.
    look_at_oldest_ns: u64,
    oldest: OldestOperation,
}

impl<W: StepWorkload, Q: Queue, T: Timer> Thread<'_, W, Q, T> {
    fn run(&mut self) -> Result<(), EngineError> {
        let depth = self.driven.workload.depth_max();
        let mut out: Vec<Io> = Vec::with_capacity(depth);
        let mut completions: Vec<Completion> = Vec::with_capacity(depth);
        let mut stopping = false;
        // What the workload waited for until it was stepped.
        let mut ready_ns = self.driven.backend.now_ns();
        loop {
            let now_ns = self.driven.backend.now_ns();
            if self.driven.control.aborted() {
                return Err(EngineError::Stopped);
            }
            if !stopping && self.driven.control.stopped(now_ns) {
                self.driven.workload.stop();
                stopping = true;
            }
            out.clear();
            let arena: &mut dyn Arena = self.driven.backend;
            let wait = self.driven.workload.step(now_ns, &completions, arena, &mut out);
            completions.clear();
            self.issue(&out, now_ns, ready_ns.min(now_ns))?;
            let until_ns = match wait {
                Wait::Done => return Ok(()),
                Wait::Completion => u64::MAX,
                Wait::Until(ns) => ns,
            };
            self.wait(now_ns, until_ns)?;
            let seen_ns = self.take(&mut completions);
            ready_ns = if completions.is_empty() { until_ns } else { self.seen_ns };
            self.heed_silence(now_ns, !completions.is_empty())?;
            if stopping && !completions.is_empty() {
                self.driven.control.beat();
            }
            // Before recording: what completed after an interval or phase belongs to the next.
            self.look(seen_ns.max(now_ns));
            for completion in &completions {
                self.record(completion);
            }
        }
    }

    /// Queues what the workload wants, and hands over all of it but the last batch.
    fn issue(&mut self, out: &[Io], now_ns: u64, ready_ns: u64) -> Result<(), EngineError> {
        let late_before_ns = self.late.as_ref().map_or(0, LateRecorder::end_ns);
        for io in out {
            if self.driven.backend.queued() >= self.batch.len() {
                self.submit()?;
            }
            self.driven.backend.push(io)?;
            self.in_flight.push(InFlight {
                token: io.token,
                class: io.class,
                is_flush: io.kind == IoKind::Flush,
                size_bytes: io.size_bytes,
                intended_ns: (io.intended_ns < now_ns).then_some(io.intended_ns),
                ready_ns,
                queued_ns: now_ns,
                is_late: io.intended_ns < late_before_ns,
            });
        }
        Ok(())
    }

    /// Hands over what is queued, and learns whether it is back at once.
    fn submit(&mut self) -> Result<(), EngineError> {
        let backend = &mut *self.driven.backend;
        backend.hand_over()?;
        let (arrived, in_flight) = (backend.arrived(), backend.in_flight());
        self.batch.learn(arrived, in_flight);
        Ok(())
    }

    /// Hands over what is left. Where no completion is there, waits for one, or until `until_ns`.
    fn wait(&mut self, now_ns: u64, until_ns: u64) -> Result<(), EngineError> {
        let is_queued = self.driven.backend.queued() > 0;
        if is_queued && (self.batch.is_grown() || self.driven.backend.arrived() > 0) {
            self.submit()?;
        }
        if self.driven.backend.arrived() > 0 {
            return Ok(());
        }
        let look_ns = now_ns.saturating_add(LOOK_NS);
        let timeout_ns = until_ns.min(look_ns).saturating_sub(self.driven.backend.now_ns());
        self.driven.backend.wait(timeout_ns)
    }

    /// Takes a batch of completions. Returns when they were taken.
    fn take(&mut self, completions: &mut Vec<Completion>) -> u64 {
        let backend = &mut *self.driven.backend;
        if self.seen == 0 {
            (self.seen, self.seen_ns) = (backend.arrived(), backend.now_ns());
        }
        let most = self.batch.len().min(self.seen);
        backend.reap(most, self.seen_ns, completions);
        // Whether or not they ended an operation: the next is not as old as they are.
        self.seen -= most;
        backend.now_ns()
    }

    /// Notes whether something has come back.
    ///
    /// # Errors
    /// [`EngineError::Unanswered`] where nothing has for [`Driven::outage_max_ns`].
    fn heed_silence(&mut self, now_ns: u64, answered: bool) -> Result<(), EngineError> {
        if answered || self.in_flight.is_empty() {
            self.silence = Silence::from(now_ns);
        } else if self.silence.is_outage(now_ns, self.driven.outage_max_ns) {
            return Err(self.unanswered(self.silence.since_ns(), now_ns));
        }
        if now_ns >= self.look_at_oldest_ns {
            self.look_at_oldest_ns = now_ns.saturating_add(self.driven.interval_ns);
            self.heed_oldest(now_ns)?;
        }
        Ok(())
    }

    /// One I/O that does not come back, while others do, is an outage too: a file system that takes no writes
    /// still answers reads.
    ///
    /// # Errors
    /// [`EngineError::Unanswered`] where one has been out for [`one_max_ns`](plimsoll_record::drain::one_max_ns).
    #[cold]
    fn heed_oldest(&mut self, now_ns: u64) -> Result<(), EngineError> {
        let oldest_ns = self.in_flight.iter().map(|io| io.queued_ns).min();
        match self.oldest.is_lost(oldest_ns, now_ns, self.driven.outage_max_ns) {
            true => Err(self.unanswered(oldest_ns.unwrap_or(now_ns), now_ns)),
            false => Ok(()),
        }
    }

    #[cold]
    fn unanswered(&self, since_ns: u64, now_ns: u64) -> EngineError {
        let first = self.driven.backend.paths().first();
        EngineError::Unanswered {
            what: first.map_or_else(|| "the target".to_owned(), |path| path.display().to_string()),
            in_flight: self.in_flight.len(),
            after_ns: now_ns.saturating_sub(since_ns),
        }
    }

    /// Records a completion under the class that its I/O was issued with.
    fn record(&mut self, completion: &Completion) {
        // Few are in flight, and those that complete were mostly issued early: a scan is short.
        let Some(at) = self.in_flight.iter().position(|f| f.token == completion.token) else {
            return;
        };
        let io = self.in_flight.swap_remove(at);
        let class = usize::from(io.class);
        let late = self.late.as_mut().filter(|_| io.is_late);
        let moved = match completion.result {
            Ok(moved) if io.is_flush || moved >= io.size_bytes => u64::from(moved),
            _ => match late {
                Some(late) => return late.record_error(class),
                None => return self.recorder.record_error(class),
            },
        };
        let service_ns = completion.completed_ns.saturating_sub(completion.submitted_ns);
        let latency_ns = io
            .intended_ns
            .map_or(service_ns, |intended_ns| completion.completed_ns.saturating_sub(intended_ns));
        match late {
            Some(late) => late.record(class, moved, latency_ns, service_ns),
            None => {
                self.recorder.record(class, moved, latency_ns, service_ns);
                self.recorder.record_wait(completion.submitted_ns.saturating_sub(io.ready_ns));
            }
        }
    }

    /// Changes over to another phase, or to the next interval, where it is time. Intervals count from
    /// the start of their phase in all threads alike. A thread that was held up for long goes through
    /// what it missed.
    fn look(&mut self, now_ns: u64) {
        if self.stage == Stage::Before
            && let Some((phase, at_ns)) = self.driven.control.measured(now_ns)
        {
            self.change(phase, at_ns, Stage::Measured);
        }
        if self.stage != Stage::Closing
            && let Some((phase, at_ns)) = self.driven.control.closing(now_ns)
        {
            if self.stage == Stage::Measured {
                self.hold(at_ns);
            }
            self.change(phase, at_ns, Stage::Closing);
        }
        self.cut_up_to(now_ns);
    }

    /// Has what is in flight at the end of the measured phase count in it.
    fn hold(&mut self, end_ns: u64) {
        let classes = self.driven.workload.classes().len();
        let histogram_start_ns = self.recorder.histogram_start_ns();
        self.late = Some(LateRecorder::new(classes, self.phase, end_ns, histogram_start_ns));
        self.in_flight.iter_mut().for_each(|io| io.is_late = true);
    }

    fn change(&mut self, phase: u32, at_ns: u64, stage: Stage) {
        self.cut_up_to(at_ns);
        self.hand_over(at_ns, true);
        (self.phase, self.stage) = (phase, stage);
    }

    /// Hands over the intervals that are complete.
    fn cut_up_to(&mut self, now_ns: u64) {
        while now_ns.saturating_sub(self.recorder.start_ns()) >= self.driven.interval_ns {
            self.hand_over(self.recorder.start_ns() + self.driven.interval_ns, false);
        }
    }

    /// Hands over what belongs to the measured phase and had not completed at its end, at the end of the
    /// thread.
    fn leave(&mut self, now_ns: u64) {
        let Some(mut late) = self.late.take() else { return };
        for io in self.in_flight.iter().filter(|io| io.is_late) {
            let waited_ns = |from_ns: u64| now_ns.saturating_sub(from_ns);
            let intended_ns = io.intended_ns.unwrap_or(io.queued_ns);
            late.abandon(io.class.into(), waited_ns(intended_ns), waited_ns(io.queued_ns));
        }
        self.driven.workload.never_started(&mut |class, intended_ns| {
            late.leave(class.into(), now_ns.saturating_sub(intended_ns));
        });
        // Nobody listening is fine, as below.
        let _ = self.driven.snapshots.send(late.into_snapshot(self.driven.thread, now_ns));
    }

    /// Hands over what was recorded up to `end_ns`, which is never before the interval began.
    fn hand_over(&mut self, end_ns: u64, all: bool) {
        if let Some(cpu) = present_cpu()
            && !self.driven.ran_on.contains(&cpu)
        {
            self.driven.ran_on.push(cpu);
        }
        let end_ns = end_ns.max(self.recorder.start_ns());
        let mut snapshot = self.recorder.take(self.driven.thread, self.phase, end_ns, all);
        let workload = &*self.driven.workload;
        workload.counters(&mut |name, instance, value| {
            snapshot.counters.push((name, instance, value));
        });
        let glance = (self.driven.glance)(workload);
        snapshot.progress_bytes = (glance.done_bytes, glance.total_bytes);
        snapshot.ready = glance.ready;
        snapshot.spun_ns = self.driven.backend.take_spun_ns();
        // Nobody listening is fine: the run is being given up.
        let _ = self.driven.snapshots.send(snapshot);
    }
}

#[cfg(test)]
mod tests;
