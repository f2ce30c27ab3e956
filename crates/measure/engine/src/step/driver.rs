//! Loop of one driving thread. The thread passes a completion to the workload, submits the I/Os
//! that the workload then issues, and records the completion. If no completion has arrived, the
//! thread waits.
//!
//! Like the driver of streams, this thread must never make the device idle. After a wait, it
//! therefore reaps and submits operations one by one. It processes operations in batches (`Batch`)
//! only if they are complete when the submitting call returns.
//!
//! If an I/O has no scheduled time, its latency starts just before the call that submits it. The
//! time that the I/O waits in this thread before that call is the generator's lag. The lag starts
//! when the thread first saw the completion that led to the I/O. If a timed wait of the workload
//! led to the I/O, the lag starts at the end of this wait.

use std::sync::mpsc::Sender;

use plimsoll_record::drain::{OldestOperation, Silence};
use plimsoll_record::histogram::WaitKind;
use plimsoll_record::recorder::Recorder;
use plimsoll_record::snapshot::{IntervalSnapshot, LateRecorder};
use plimsoll_sys::clock::Clock;
use plimsoll_sys::cpu::present_cpu;
use plimsoll_workload::step::{Arena, Completion, Io, IoKind, StepWorkload, Wait};

use super::control::Control;
use crate::EngineError;
use crate::backend::{AnyQueue, Backend, Batch, Queue};
use crate::timer::Timer;

/// Maximum time after which a driving thread checks [`Control`] again.
const POLL_INTERVAL_NS: u64 = 100_000_000;

/// Progress of a workload, as measured at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadProgress {
    /// Number of bytes that the phase has processed.
    pub done_bytes: u64,
    /// Number of bytes that the phase must process; 0 if this number is not known.
    pub total_bytes: u64,
    /// True if the workload has reached the goal of the phase.
    pub ready: bool,
}

/// Arguments for [`drive`].
pub struct DriveArgs<'a, W, Q = AnyQueue, T = Clock> {
    /// Part of the workload that this thread drives.
    pub workload: &'a mut W,
    /// Files, buffers and queue that belong to this part.
    pub backend: &'a mut Backend<Q, T>,
    /// Current phase, and the signals to stop.
    pub control: &'a Control,
    /// Channel to which the thread sends its snapshots. If the receiver was dropped, this is not an
    /// error, because the run no longer needs the snapshots.
    pub snapshots: Sender<IntervalSnapshot>,
    pub thread: u32,
    /// Length of an interval in ns.
    pub interval_ns: u64,
    /// Interval in ns at which the thread sends histograms.
    pub histogram_interval_ns: u64,
    /// Time limit in ns. If I/Os are in flight and none of them completes in this time, the thread
    /// fails.
    pub outage_max_ns: u64,
    /// Function that reads the progress of the workload. It is called once in each interval.
    pub read_progress: fn(&W) -> WorkloadProgress,
    /// CPUs on which the thread ran. One CPU is recorded at the end of each interval.
    pub ran_on: &'a mut Vec<u32>,
}

/// I/O that was issued and has not completed yet.
#[derive(Clone, Copy)]
struct InFlight {
    token: u64,
    class: u16,
    is_flush: bool,
    size_bytes: u32,
    /// Scheduled start time; `None` if the I/O starts as soon as possible.
    intended_ns: Option<u64>,
    /// Earliest time at which the thread could have submitted the I/O.
    ready_ns: u64,
    /// Time at which the I/O was passed to the queue.
    queued_ns: u64,
    /// True if the I/O was in flight, or due, when the measured phase ended.
    is_late: bool,
}

/// Drives the workload until it is done.
///
/// The thread counts a failed I/O and passes it to the workload, which then decides how to
/// continue. The loop ends with an error only if the queue as a whole fails or does not respond.
///
/// # Errors
/// [`EngineError`] if the queue fails or rejects an operation of the workload. Also fails if no I/O
/// completes for [`DriveArgs::outage_max_ns`], or if a single I/O does not complete for
/// [`one_max_ns`](plimsoll_record::drain::one_max_ns). [`EngineError::Stopped`] after
/// [`Control::abort`].
pub fn drive<W: StepWorkload, Q: Queue, T: Timer>(
    args: DriveArgs<'_, W, Q, T>,
) -> Result<(), EngineError> {
    let classes = args.workload.classes().len();
    let depth = args.workload.depth_max();
    let (phase, start_ns) = args.control.first();
    let began_ns = args.backend.now_ns();
    let recorder = Recorder::new(args.thread, classes, start_ns, args.histogram_interval_ns);
    let mut thread = Thread {
        phase,
        drive_phase: DrivePhase::Before,
        recorder,
        late: None,
        in_flight: Vec::with_capacity(depth),
        batch: Batch::new(1, depth),
        seen: 0,
        seen_ns: 0,
        silence: Silence::from(began_ns),
        next_oldest_check_ns: began_ns,
        oldest: OldestOperation::default(),
        flushed_ns: began_ns,
        args,
    };
    let result = thread.run();
    let now_ns = thread.args.backend.now_ns();
    thread.hand_over_interval(now_ns, true);
    thread.hand_over_unfinished(now_ns);
    result
}

/// State of a thread that drives a load through its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DrivePhase {
    Before,
    Measured,
    Closing,
}

struct Thread<'a, W, Q, T> {
    args: DriveArgs<'a, W, Q, T>,
    recorder: Recorder,
    phase: u32,
    drive_phase: DrivePhase,
    /// Recorder that is used after the measured phase. It records the I/Os that had not completed
    /// when this phase ended.
    late: Option<LateRecorder>,
    in_flight: Vec<InFlight>,
    batch: Batch,
    /// Number of completions that had arrived at the latest check and that have not been reaped.
    seen: usize,
    /// Time of the latest check for completions.
    seen_ns: u64,
    /// Time at which the latest completion arrived, or at which no I/O was in flight for the last
    /// time.
    silence: Silence,
    /// Time at which the oldest I/O in flight will be checked next.
    next_oldest_check_ns: u64,
    oldest: OldestOperation,
    /// Time at which the latest flush completed.
    flushed_ns: u64,
}

impl<W: StepWorkload, Q: Queue, T: Timer> Thread<'_, W, Q, T> {
    fn run(&mut self) -> Result<(), EngineError> {
        let depth = self.args.workload.depth_max();
        let mut out: Vec<Io> = Vec::with_capacity(depth);
        let mut completions: Vec<Completion> = Vec::with_capacity(depth);
        let mut stopping = false;
        // Earliest time at which the thread could have submitted the workload's next I/O.
        let mut ready_ns = self.args.backend.now_ns();
        loop {
            let now_ns = self.args.backend.now_ns();
            if self.args.control.aborted() {
                return Err(EngineError::Stopped);
            }
            if !stopping && self.args.control.stopped(now_ns) {
                self.args.workload.stop();
                stopping = true;
            }
            out.clear();
            let arena: &mut dyn Arena = self.args.backend;
            let wait = self.args.workload.step(now_ns, &completions, arena, &mut out);
            self.record_durable();
            completions.clear();
            self.issue(&out, now_ns, ready_ns.min(now_ns))?;
            let until_ns = match wait {
                Wait::Done => return Ok(()),
                Wait::Completion => u64::MAX,
                Wait::Until(ns) => ns,
            };
            self.wait(now_ns, until_ns)?;
            let seen_ns = self.take_completions(&mut completions);
            ready_ns = if completions.is_empty() { until_ns } else { self.seen_ns };
            self.check_silence(now_ns, !completions.is_empty())?;
            if stopping && !completions.is_empty() {
                self.args.control.count_completion();
            }
            // The phase must advance before the completions are recorded. I/Os that completed after
            // the end of an interval or a phase belong to the next interval or phase.
            self.advance_phase(seen_ns.max(now_ns));
            for completion in &completions {
                self.record(completion);
            }
        }
    }

    /// Passes the I/Os of the workload to the queue. Submits all of these I/Os except the last
    /// batch.
    fn issue(&mut self, out: &[Io], now_ns: u64, ready_ns: u64) -> Result<(), EngineError> {
        let late_before_ns = self.late.as_ref().map_or(0, LateRecorder::phase_end_ns);
        for io in out {
            if self.args.backend.queued() >= self.batch.len() {
                self.submit()?;
            }
            self.args.backend.push(io)?;
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

    /// Submits queued I/Os. Adapts the length of the batch if these I/Os are complete when the call
    /// returns.
    fn submit(&mut self) -> Result<(), EngineError> {
        let backend = &mut *self.args.backend;
        backend.hand_over()?;
        let (arrived, in_flight) = (backend.arrived(), backend.in_flight());
        self.batch.learn(arrived, in_flight);
        Ok(())
    }

    /// Submits the remaining I/Os. If no completion has arrived, waits for a completion, but not
    /// longer than until `until_ns`.
    fn wait(&mut self, now_ns: u64, until_ns: u64) -> Result<(), EngineError> {
        let is_queued = self.args.backend.queued() > 0;
        if is_queued && (self.batch.is_grown() || self.args.backend.arrived() > 0) {
            self.submit()?;
        }
        if self.args.backend.arrived() > 0 {
            return Ok(());
        }
        let poll_ns = now_ns.saturating_add(POLL_INTERVAL_NS);
        let deadline_ns = until_ns.min(poll_ns);
        if self.in_flight.is_empty() {
            return self.args.backend.wait_idle(deadline_ns);
        }
        let timeout_ns = deadline_ns.saturating_sub(self.args.backend.now_ns());
        self.args.backend.wait(timeout_ns)
    }

    /// Reaps a batch of completions. Returns the time at which the thread reaped them.
    fn take_completions(&mut self, completions: &mut Vec<Completion>) -> u64 {
        let backend = &mut *self.args.backend;
        if self.seen == 0 {
            (self.seen, self.seen_ns) = (backend.arrived(), backend.now_ns());
        }
        let most = self.batch.len().min(self.seen);
        backend.reap(most, self.seen_ns, completions);
        // The count includes entries that completed no operation, because the next completion is
        // newer than these entries.
        self.seen -= most;
        backend.now_ns()
    }

    /// Updates how long the thread has waited since the latest completion.
    ///
    /// # Errors
    /// [`EngineError::NoAnswer`] if no I/O has completed for [`DriveArgs::outage_max_ns`].
    fn check_silence(&mut self, now_ns: u64, answered: bool) -> Result<(), EngineError> {
        if answered || self.in_flight.is_empty() {
            self.silence = Silence::from(now_ns);
        } else if self.silence.is_outage(now_ns, self.args.outage_max_ns) {
            return Err(self.no_answer(self.silence.since_ns(), now_ns));
        }
        if now_ns >= self.next_oldest_check_ns {
            self.next_oldest_check_ns = now_ns.saturating_add(self.args.interval_ns);
            self.check_oldest(now_ns)?;
        }
        Ok(())
    }

    /// Detects an outage that affects a single I/O while other I/Os complete. For example, a file
    /// system that blocks writes may still complete reads.
    ///
    /// # Errors
    /// [`EngineError::NoAnswer`] if a single I/O has been in flight for
    /// [`one_max_ns`](plimsoll_record::drain::one_max_ns).
    #[cold]
    fn check_oldest(&mut self, now_ns: u64) -> Result<(), EngineError> {
        let oldest_ns = self.in_flight.iter().map(|io| io.queued_ns).min();
        match self.oldest.is_lost(oldest_ns, now_ns, self.args.outage_max_ns) {
            true => Err(self.no_answer(oldest_ns.unwrap_or(now_ns), now_ns)),
            false => Ok(()),
        }
    }

    #[cold]
    fn no_answer(&self, since_ns: u64, now_ns: u64) -> EngineError {
        let first = self.args.backend.paths().first();
        EngineError::NoAnswer {
            what: first.map_or_else(|| "the target".to_owned(), |path| path.display().to_string()),
            in_flight: self.in_flight.len(),
            after_ns: now_ns.saturating_sub(since_ns),
        }
    }

    /// Records a completion in the class in which its I/O was issued.
    fn record(&mut self, completion: &Completion) {
        // Few I/Os are in flight, and the completed I/O is usually near the start of the list. The
        // search therefore takes little time.
        let Some(at) = self.in_flight.iter().position(|f| f.token == completion.token) else {
            return;
        };
        let io = self.in_flight.swap_remove(at);
        if io.is_flush {
            self.flushed_ns = completion.completed_ns;
        }
        let class = usize::from(io.class);
        let late = self.late.as_mut().filter(|_| io.is_late);
        let moved = match completion.result {
            Ok(moved) if io.is_flush || moved >= io.size_bytes => u64::from(moved),
            _ => match late {
                Some(late) => return late.record_error(class),
                None => return self.recorder.interval.record_error(class),
            },
        };
        let service_ns = completion.completed_ns.saturating_sub(completion.submitted_ns);
        let latency_ns = io
            .intended_ns
            .map_or(service_ns, |intended_ns| completion.completed_ns.saturating_sub(intended_ns));
        match late {
            Some(late) => late.record(class, moved, latency_ns, service_ns),
            None => {
                let interval = &mut self.recorder.interval;
                interval.record(class, moved, latency_ns, service_ns);
                let wait_ns = completion.submitted_ns.saturating_sub(io.ready_ns);
                interval.record_wait(WaitKind::Own, wait_ns);
            }
        }
    }

    /// Records the writes that the latest flush made durable. The record of the write itself
    /// already contains their bytes.
    #[inline]
    fn record_durable(&mut self) {
        let Self { args, recorder, late, flushed_ns, .. } = self;
        args.workload.durable(&mut |class, intended_ns, submitted_ns| {
            let (class, latency_ns) = (class.into(), flushed_ns.saturating_sub(intended_ns));
            let service_ns = flushed_ns.saturating_sub(submitted_ns);
            match late.as_mut().filter(|late| intended_ns < late.phase_end_ns()) {
                Some(late) => late.record(class, 0, latency_ns, service_ns),
                None => recorder.interval.record(class, 0, latency_ns, service_ns),
            }
        });
    }

    /// Switches to another phase, or to the next interval, if this is due. All threads number the
    /// intervals from the start of the phase. If a thread was delayed for a long time, it sends
    /// every interval that it missed.
    fn advance_phase(&mut self, now_ns: u64) {
        if self.drive_phase == DrivePhase::Before
            && let Some((phase, at_ns)) = self.args.control.measured(now_ns)
        {
            self.switch_phase(phase, at_ns, DrivePhase::Measured);
        }
        if self.drive_phase != DrivePhase::Closing
            && let Some((phase, at_ns)) = self.args.control.closing(now_ns)
        {
            if self.drive_phase == DrivePhase::Measured {
                self.mark_late(at_ns);
            }
            self.switch_phase(phase, at_ns, DrivePhase::Closing);
        }
        self.hand_over_intervals(now_ns);
    }

    /// Marks the I/Os that are in flight when the measured phase ends, because they belong to this
    /// phase.
    fn mark_late(&mut self, end_ns: u64) {
        let classes = self.args.workload.classes().len();
        let histogram_start_ns = self.recorder.histogram_start_ns();
        self.late = Some(LateRecorder::late(classes, self.phase, end_ns, histogram_start_ns));
        self.in_flight.iter_mut().for_each(|io| io.is_late = true);
    }

    fn switch_phase(&mut self, phase: u32, at_ns: u64, drive_phase: DrivePhase) {
        self.hand_over_intervals(at_ns);
        self.hand_over_interval(at_ns, true);
        (self.phase, self.drive_phase) = (phase, drive_phase);
    }

    /// Sends all intervals that are complete.
    fn hand_over_intervals(&mut self, now_ns: u64) {
        while now_ns.saturating_sub(self.recorder.start_ns()) >= self.args.interval_ns {
            self.hand_over_interval(self.recorder.start_ns() + self.args.interval_ns, false);
        }
    }

    /// Sends the records of the I/Os that had not completed when the measured phase ended. The
    /// thread calls this function at its own end.
    fn hand_over_unfinished(&mut self, now_ns: u64) {
        let Some(mut late) = self.late.take() else { return };
        for io in self.in_flight.iter().filter(|io| io.is_late) {
            let waited_ns = |from_ns: u64| now_ns.saturating_sub(from_ns);
            let intended_ns = io.intended_ns.unwrap_or(io.queued_ns);
            late.abandon(io.class.into(), waited_ns(intended_ns), waited_ns(io.queued_ns));
        }
        self.args.workload.never_durable(&mut |class, intended_ns, submitted_ns| {
            if intended_ns < late.phase_end_ns() {
                let waited_ns = |from_ns: u64| now_ns.saturating_sub(from_ns);
                late.abandon(class.into(), waited_ns(intended_ns), waited_ns(submitted_ns));
            }
        });
        self.args.workload.never_started(&mut |class, intended_ns| {
            late.never_start(class.into(), now_ns.saturating_sub(intended_ns));
        });
        // If the receiver is missing, this is not an error: the run is being aborted.
        let _ = self.args.snapshots.send(late.into_snapshot(self.args.thread, now_ns));
    }

    /// Sends the records up to `end_ns`. This time is never earlier than the start of the interval.
    fn hand_over_interval(&mut self, end_ns: u64, all: bool) {
        if let Some(cpu) = present_cpu()
            && !self.args.ran_on.contains(&cpu)
        {
            self.args.ran_on.push(cpu);
        }
        let end_ns = end_ns.max(self.recorder.start_ns());
        let mut snapshot = self.recorder.take(self.phase, end_ns, all);
        let workload = &*self.args.workload;
        workload.counters(&mut |name, instance, value| {
            snapshot.counters.push((name, instance, value));
        });
        let progress = (self.args.read_progress)(workload);
        snapshot.progress_bytes = (progress.done_bytes, progress.total_bytes);
        snapshot.ready = progress.ready;
        snapshot.spun_ns = self.args.backend.take_spun_ns();
        // If the receiver is missing, this is not an error: the run is being aborted.
        let _ = self.args.snapshots.send(snapshot);
    }
}

#[cfg(test)]
mod tests;
