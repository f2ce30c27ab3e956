//! Loop of a driving thread. The thread reaps a completion, records it, starts every operation that
//! is due, and submits these operations. If no completion has arrived and no operation is due, the
//! thread waits.
//!
//! This thread must never make the device idle. After a wait, the loop therefore reaps one
//! completion, starts the next operation in the same slot and submits it. Only then does it reap
//! the next completion. If operations are complete when the submitting call returns, the loop reaps
//! them in batches (`Batch`). The system call that waits also submits the operation that was
//! started last.
//!
//! The loop reads the clock when it checks for completions and just before each call. In a closed
//! loop, the latency of an operation begins just before the call that submits it, and ends when the
//! loop first sees the completion. The time from then until the next submission in the same slot is
//! the generator's lag. The loop never allocates memory and takes no locks. It shares only one stop
//! flag with other threads. The loop is compiled separately for each kind of queue. `run/group.rs`
//! lists the sources and pacings for which it is compiled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_sys::cpu::{CpuTime, present_cpu, thread_time};
use plimsoll_sys::op::{OpKind, RingOp};

mod durable;
mod first_byte;
mod submission;
mod unfinished;

use self::durable::CompletedOperation;
use super::outbox::Outbox;
use super::pacing::{Pacing, Start};
use super::source::{Op, Source, SourceCallbacks, UNFOLLOWED};
use crate::EngineError;
use crate::backend::{Batch, Queue, Spin};
use crate::timer::Timer;
use plimsoll_record::drain::{OldestOperation, Silence};
use plimsoll_record::durable::DurableWrites;
use plimsoll_record::snapshot::IntervalRecorder;

/// Configuration of a driving thread.
#[derive(Clone, Copy, Debug)]
pub struct DriveConfig {
    /// Time at which the measurement starts. The interval boundaries are at multiples of the
    /// interval length after this time.
    pub measure_from_ns: u64,
    /// Time at which the schedule ends. Every intended start time is before this time.
    pub stop_ns: u64,
    /// Time for which the thread waits after the stop for operations in flight, in ns.
    pub drain_ns: u64,
    /// Time after the stop during which the thread still starts operations that were due before the
    /// stop, in ns.
    pub backlog_ns: u64,
    /// Length of an interval in ns.
    pub interval_ns: u64,
    /// How long before a scheduled start the thread stops sleeping and begins to poll the clock, in
    /// ns.
    pub spin_ns: u64,
    /// Maximum time for which a wait polls for completions before it sleeps, in ns. With 0, a wait
    /// sleeps immediately.
    pub wait_spin_ns: u64,
    /// Maximum number of operations in the group. After that, the group ends.
    pub operations_max: u64,
    /// Number of classes in which the source's operations are recorded.
    pub classes: u32,
    /// Distance in the arena between the starts of two neighbouring slots' buffers. It is at least
    /// as large as the largest operation.
    pub buffer_stride_bytes: u64,
    /// True if the thread continues after a failed operation.
    pub carry_on: bool,
    /// Time limit in ns. If operations are in flight and none of them completes in this time, the
    /// queue has failed.
    pub outage_max_ns: u64,
}

/// Minimum time after which a waiting thread wakes up, to send its interval and to check for a
/// stop. The next constant is the maximum time.
const TICK_NS_MIN: u64 = 10_000_000;
const TICK_NS_MAX: u64 = 1_000_000_000;

/// Flags that can end the work of a driving thread early.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    /// Time at which the threads must stop; `u64::MAX` if no stop was requested. The caller chooses
    /// a time slightly in the future, so that all threads of the run stop at the same time.
    pub at_ns: &'a AtomicU64,
    /// True if an operation failed in one of the threads. The other threads must then also end.
    pub failed: &'a AtomicBool,
    /// True if the threads must end without waiting for operations in flight.
    pub abort: &'a AtomicBool,
}

/// First operation of the thread that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub op: Op,
    /// Client that issued the operation.
    pub client: u32,
    /// Number of transferred bytes, or the `errno`. If all bytes were transferred, the operation
    /// failed because its content was wrong.
    pub result: Result<u32, i32>,
    /// Time at which the thread observed the failure.
    pub at_ns: u64,
}

/// Final state of a driving thread, and its totals.
#[derive(Clone, Debug, Default)]
pub struct DriveEnd {
    /// Number of operations that were submitted to the target.
    pub started: u64,
    /// Number of operations that completed. Failed operations are included.
    pub ended: u64,
    /// Number of operations that were still in flight when the drain ended. The last snapshot
    /// contains how long each of them had been in flight.
    pub abandoned: u64,
    /// Number of operations that were due before the stop but never started. The last snapshot
    /// contains how long each of them had waited.
    pub never_started: u64,
    /// Number of intervals that became longer because the writer was late.
    pub intervals_merged: u64,
    /// First operation of the thread that failed; `None` if no operation failed.
    pub failure: Option<Failure>,
    /// How long after its due time the last operation was submitted, in ns. If some due operations
    /// never started, this is how long the first of them had waited at the end.
    pub lag_end_ns: u64,
    /// Time after which the thread started no more operations. It is the time of the planned stop,
    /// of a requested stop or of the thread's first failure.
    pub stop_ns: u64,
    /// Time at which the thread ended.
    pub end_ns: u64,
    /// CPUs on which the thread ran. One CPU is recorded at the end of each interval. The CPUs are
    /// in the order of their first use.
    pub ran_on: Vec<u32>,
}

/// State of an operation in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    intended_ns: u64,
    /// Time of submission. It is `u64::MAX` before the submission.
    submitted_ns: u64,
    op: Op,
    client: u32,
    held: bool,
    in_flight: bool,
}

const IDLE: InFlight = InFlight {
    intended_ns: 0,
    submitted_ns: 0,
    op: Op { kind: OpKind::Nop, class: 0, file: 0, offset_bytes: 0, size_bytes: 0, tag: 0 },
    client: 0,
    held: false,
    in_flight: false,
};

/// State of a driving thread. See the module documentation.
struct Driver<'a, Q, S: ?Sized, P, T> {
    queue: &'a mut Q,
    source: &'a mut S,
    pacing: &'a mut P,
    clock: &'a mut T,
    config: DriveConfig,
    callbacks: SourceCallbacks,
    /// See [`Pacing::is_scheduled`].
    scheduled: bool,
    /// State of the operation in each slot.
    in_flight: Box<[InFlight]>,
    /// Slots whose operations were started after the last call that submitted operations.
    fresh: Vec<u32>,
    batch: Batch,
    spin: Spin,
    /// Number of completions that had arrived at the latest check and that have not been reaped.
    seen: usize,
    /// Time of the latest check for completions.
    seen_ns: u64,
    /// Completions of reads whose content the source will check.
    to_check: Vec<(u32, Result<u32, i32>)>,
    end: DriveEnd,
    stopping: bool,
    interval_end_ns: u64,
    interval: i64,
    cpu: CpuTime,
    /// Time at which the latest completion arrived, or at which the queue was empty for the last
    /// time.
    silence: Silence,
    oldest: OldestOperation,
    /// Writes that are not durable until a flush completes; `None` if no flush follows the writes.
    durable: Option<Box<DurableWrites>>,
}

/// Drives operations from `source` through `queue` until the stop. `pacing` determines the start
/// times. Sends snapshots to `outbox`.
///
/// Returns the final state of the thread. Also returns an error if the queue itself failed or
/// rejected an operation of the source, or if no operation completed for
/// [`DriveConfig::outage_max_ns`]. If an operation fails, this function returns no error, and
/// [`DriveEnd::failure`] contains the operation.
pub fn drive<Q: Queue, S: Source + ?Sized, P: Pacing, T: Timer>(
    queue: &mut Q,
    source: &mut S,
    pacing: &mut P,
    clock: &mut T,
    config: DriveConfig,
    mut outbox: Outbox,
    stop: Stop<'_>,
) -> (DriveEnd, Result<(), EngineError>) {
    let (callbacks, scheduled) = (source.callbacks(), pacing.is_scheduled());
    let (places, together) = (queue.capacity(), queue.submit_batch_len());
    queue.tick_every(config.interval_ns.clamp(TICK_NS_MIN, TICK_NS_MAX));
    let now_ns = clock.now_ns();
    let mut driver = Driver {
        queue,
        source,
        pacing,
        clock,
        config,
        callbacks,
        scheduled,
        in_flight: vec![IDLE; places].into_boxed_slice(),
        fresh: Vec::with_capacity(places),
        batch: Batch::new(together, places),
        spin: Spin::new(config.wait_spin_ns),
        seen: 0,
        seen_ns: 0,
        to_check: Vec::with_capacity(places),
        end: DriveEnd::default(),
        stopping: false,
        interval_end_ns: 0,
        interval: 0,
        cpu: thread_time(),
        silence: Silence::from(now_ns),
        oldest: OldestOperation::default(),
        durable: durable::pending_writes(
            callbacks,
            outbox.current().snapshot.totals.len(),
            config.classes,
            places,
        ),
    };
    driver.align_intervals(now_ns);
    let snapshot = &mut outbox.current().snapshot;
    (snapshot.interval, snapshot.start_ns) = (driver.interval, now_ns);
    // If the process was suspended before the measurement started, it may resume only after the end
    // of the measurement. Nothing is measured in this case.
    snapshot.drained = now_ns >= driver.config.stop_ns;
    let result = driver.run(&mut outbox, stop);
    driver.end_measurement(&mut outbox);
    driver.record_cpu_time(outbox.current());
    driver.record_cpu();
    let ended_ns = driver.clock.now_ns();
    driver.record_unfinished(outbox.current(), ended_ns);
    if result.is_err() || driver.has_failed() {
        stop.failed.store(true, Ordering::Relaxed);
    }
    if let Err(EngineError::NoAnswer { .. }) = result {
        // If the target does not respond to one thread, it does not respond to the other threads
        // either.
        stop.abort.store(true, Ordering::Relaxed);
    }
    driver.end.stop_ns = driver.config.stop_ns.min(driver.clock.now_ns());
    let mut end = driver.end;
    end.end_ns = ended_ns;
    end.intervals_merged = outbox.finish(end.end_ns);
    (end, result)
}

impl<Q: Queue, S: Source + ?Sized, P: Pacing, T: Timer> Driver<'_, Q, S, P, T> {
    fn run(&mut self, outbox: &mut Outbox, stop: Stop<'_>) -> Result<(), EngineError> {
        loop {
            let arrived = if self.seen == 0 { self.queue.arrived() } else { 0 };
            let now_ns = self.clock.now_ns();
            self.adopt_stop(stop, now_ns);
            if now_ns >= self.interval_end_ns {
                self.close_interval(outbox, now_ns);
                self.check_oldest(now_ns)?;
            }
            let records = outbox.current();
            self.note_arrivals(arrived, now_ns);
            self.reap(records, now_ns)?;
            if now_ns >= self.config.stop_ns {
                self.begin_stop(now_ns);
            }
            self.start(now_ns)?;
            if self.queue.in_flight() == 0 && self.due_ns(now_ns).is_none() {
                // Either every client has ended, or the run has stopped and no operation is in
                // flight.
                return Ok(());
            }
            if self.stopping && (self.is_over(now_ns) || stop.abort.load(Ordering::Relaxed)) {
                return Ok(());
            }
            self.submit(records, now_ns)?;
        }
    }

    /// If operations are still in flight, ends the measurement early, at the current time. These
    /// operations complete after its end or never.
    fn end_measurement(&mut self, outbox: &mut Outbox) {
        if self.queue.in_flight() > 0 && !outbox.current().snapshot.drained {
            let now_ns = self.clock.now_ns();
            self.begin_stop(now_ns);
            self.close_interval(outbox, now_ns);
        }
    }

    /// Uses the requested stop time if it is earlier than the planned stop time.
    #[inline(always)]
    fn adopt_stop(&mut self, stop: Stop<'_>, now_ns: u64) {
        let mut at_ns = stop.at_ns.load(Ordering::Relaxed);
        if stop.failed.load(Ordering::Relaxed) || stop.abort.load(Ordering::Relaxed) {
            at_ns = at_ns.min(now_ns);
        }
        if at_ns < self.config.stop_ns {
            self.config.stop_ns = at_ns;
            self.interval_end_ns = self.interval_end_ns.min(at_ns);
        }
    }

    /// Computes the number of the interval that contains `now_ns`.
    fn align_intervals(&mut self, now_ns: u64) {
        let since = i128::from(now_ns) - i128::from(self.config.measure_from_ns);
        let length = i128::from(self.config.interval_ns.max(1));
        let interval = since.div_euclid(length);
        self.interval = interval as i64;
        let next = i128::from(self.config.measure_from_ns) + (interval + 1) * length;
        let next_ns = u64::try_from(next).unwrap_or(0);
        // An interval also ends at the stop, because operations after the stop are not part of the
        // achieved rate.
        let stop_ns = self.config.stop_ns;
        self.interval_end_ns = if now_ns < stop_ns { next_ns.min(stop_ns) } else { next_ns };
    }

    #[cold]
    fn close_interval(&mut self, outbox: &mut Outbox, now_ns: u64) {
        self.record_cpu_time(outbox.current());
        self.record_cpu();
        let was_warming_up = self.interval < 0;
        self.align_intervals(now_ns);
        if was_warming_up && self.interval >= 0 {
            self.source.begin_measurement();
        }
        outbox.close_interval(now_ns, self.interval, now_ns >= self.config.stop_ns);
    }

    /// Records the CPU on which the thread is running.
    fn record_cpu(&mut self) {
        if let Some(cpu) = present_cpu()
            && !self.end.ran_on.contains(&cpu)
        {
            self.end.ran_on.push(cpu);
        }
    }

    /// Adds the processor time that the thread used since the previous call to the snapshot.
    fn record_cpu_time(&mut self, records: &mut IntervalRecorder) {
        let cpu = thread_time();
        let used = cpu.since(&self.cpu);
        self.cpu = cpu;
        records.snapshot.cpu.add(&used);
        records.snapshot.spun_ns += std::mem::take(&mut self.spin.spun_ns);
    }

    #[cold]
    fn begin_stop(&mut self, now_ns: u64) {
        if !self.stopping {
            self.stopping = true;
            if now_ns < self.config.stop_ns {
                (self.config.stop_ns, self.interval_end_ns) = (now_ns, now_ns);
            }
            self.pacing.stop(self.config.stop_ns);
        }
    }

    fn has_failed(&self) -> bool {
        self.end.failure.is_some() && !self.config.carry_on
    }

    fn is_over(&self, now_ns: u64) -> bool {
        (self.has_failed() && self.queue.in_flight() == 0)
            || now_ns >= self.config.stop_ns.saturating_add(self.config.drain_ns)
    }

    /// If all earlier completions have been reaped, records how many completions had arrived just
    /// before `now_ns`. The caller reads the clock after its check for completions. The recorded
    /// time is therefore never earlier than the arrival.
    #[inline(always)]
    fn note_arrivals(&mut self, arrived: usize, now_ns: u64) {
        if self.seen == 0 {
            (self.seen, self.seen_ns) = (arrived, now_ns);
        }
    }

    /// Returns the time at which a slot became ready for its next operation, after its previous
    /// operation was reaped at `now_ns`. With a schedule, this is the time of the reaping. Without
    /// a schedule, this is the time at which the thread first saw the completion. The thread itself
    /// caused any later delay, because it was still processing earlier completions.
    #[inline(always)]
    fn ready_ns(&self, now_ns: u64) -> u64 {
        if self.scheduled { now_ns } else { self.seen_ns }
    }

    /// Returns true if operations that were due before the stop must no longer start.
    fn is_too_late(&self, now_ns: u64) -> bool {
        now_ns >= self.config.stop_ns.saturating_add(self.config.backlog_ns)
    }

    /// Returns the time at which the next operation is due. Returns `None` if the next operation
    /// can only start after a completion, or if no more operations will start.
    #[inline(always)]
    fn due_ns(&self, now_ns: u64) -> Option<u64> {
        if self.stopping && self.is_too_late(now_ns) {
            return None;
        }
        self.pacing.due_ns()
    }

    /// Processes a batch of operations that have completed.
    #[inline(always)]
    fn reap(&mut self, records: &mut IntervalRecorder, now_ns: u64) -> Result<(), EngineError> {
        let ready_ns = self.ready_ns(now_ns);
        let reaped = if self.callbacks.completions {
            self.reap_with_content(records, now_ns)?
        } else {
            let (most, completed_ns) = (self.batch.len().min(self.seen), self.seen_ns);
            let scheduled = self.scheduled;
            let Self {
                queue,
                source,
                pacing,
                in_flight,
                config,
                callbacks,
                end,
                to_check,
                durable,
                ..
            } = self;
            let mut read_to_sample = None;
            let taken = queue.reap(most, &mut |place, result| {
                let Some(issued) = in_flight.get_mut(place as usize) else { return };
                issued.in_flight = false;
                let cell = cell_of(issued.client, issued.op.class, config);
                let is_followed = callbacks.followed && issued.op.tag != UNFOLLOWED;
                let has_first_byte = callbacks.first_byte.is_some() && is_read(&issued.op);
                if is_followed || has_first_byte {
                    to_check.push((place as u32, result));
                } else {
                    record(records, cell, issued, result, completed_ns, scheduled, end);
                    if let Some(durable) = durable {
                        let place = place as u32;
                        let completed =
                            CompletedOperation { place, result, completed_ns, scheduled };
                        durable::record(durable, records, issued, completed, config, *callbacks);
                    }
                }
                if callbacks.read_samples
                    && is_whole_read(&issued.op, result)
                    && source.wants_read_sample()
                {
                    read_to_sample = Some((place as u32, issued.op));
                }
                pacing.completed(place as u32, ready_ns);
            });
            // The count includes entries of the ring's timer, which complete no operation. The next
            // completion is newer than the entries in this count.
            self.seen -= most;
            // The content must be checked before the next operation in the same slot starts.
            if let Some((place, op)) = read_to_sample {
                let buffer = buffer(self.queue, &self.config, place, op.size_bytes)?;
                self.source.sample_read(&op, buffer);
            }
            if !self.to_check.is_empty() {
                self.check_completions(records, completed_ns)?;
            }
            taken
        };
        self.spin.count_reaped(reaped, self.queue.in_flight());
        if reaped > 0 || self.queue.in_flight() == 0 {
            self.silence = Silence::from(now_ns);
        } else if self.silence.is_outage(now_ns, self.config.outage_max_ns) {
            return Err(self.no_answer(self.silence.since_ns(), now_ns));
        }
        if self.has_failed() {
            self.begin_stop(now_ns);
        }
        Ok(())
    }

    /// Does the same as `reap`, for a source that checks each operation together with its buffer.
    fn reap_with_content(
        &mut self,
        records: &mut IntervalRecorder,
        now_ns: u64,
    ) -> Result<usize, EngineError> {
        let ready_ns = self.ready_ns(now_ns);
        let (most, completed_ns) = (self.batch.len().min(self.seen), self.seen_ns);
        let Self { queue, pacing, to_check, .. } = self;
        let taken = queue.reap(most, &mut |place, result| {
            to_check.push((place as u32, result));
            pacing.completed(place as u32, ready_ns);
        });
        self.seen -= most;
        self.check_completions(records, completed_ns)?;
        Ok(taken)
    }

    /// Records the completions in `to_check`. Passes them to the source before the next operations
    /// in the same slots start.
    #[inline(never)]
    fn check_completions(
        &mut self,
        records: &mut IntervalRecorder,
        completed_ns: u64,
    ) -> Result<(), EngineError> {
        let scheduled = self.scheduled;
        let Self { queue, source, in_flight, config, callbacks, end, to_check, durable, .. } = self;
        let read_samples = callbacks.read_samples && callbacks.completions;
        for (place, result) in to_check.drain(..) {
            let Some(issued) = in_flight.get_mut(place as usize) else { continue };
            issued.in_flight = false;
            let cell = cell_of(issued.client, issued.op.class, config);
            let op = &issued.op;
            let whole = result == Ok(op.size_bytes);
            let sure = !is_read(op) || queue.is_verifiable(u64::from(place));
            let buffer = buffer(*queue, config, place, op.size_bytes)?;
            if read_samples && sure && is_whole_read(op, result) && source.wants_read_sample() {
                source.sample_read(op, buffer);
            }
            if whole && sure && !source.completed(issued.client, op, buffer) {
                end.ended += 1;
                records.record_error(cell);
                fail(end, issued, result, completed_ns);
            } else {
                if !(whole && sure) {
                    source.failed(issued.client, op);
                }
                record(records, cell, issued, result, completed_ns, scheduled, end);
                if let Some(class) = callbacks.first_byte.filter(|_| whole && is_read(op)) {
                    let at_ns = queue.first_byte_ns(u64::from(place)).unwrap_or(completed_ns);
                    first_byte::record(class, records, issued, at_ns, scheduled, config);
                }
                if let Some(durable) = durable {
                    let completed = CompletedOperation { place, result, completed_ns, scheduled };
                    durable::record(durable, records, issued, completed, config, *callbacks);
                }
            }
        }
        Ok(())
    }

    /// Detects an outage that affects a single operation while other operations complete. After the
    /// stop, the time limit of the drain also ends the wait for this operation.
    ///
    /// # Errors
    /// [`EngineError::NoAnswer`] if a single operation has been in flight for
    /// [`one_max_ns`](plimsoll_record::drain::one_max_ns).
    #[cold]
    fn check_oldest(&mut self, now_ns: u64) -> Result<(), EngineError> {
        let in_flight = self.in_flight.iter().filter(|issued| issued.in_flight && !self.stopping);
        let oldest_ns = in_flight.map(|issued| issued.submitted_ns).min();
        match self.oldest.is_lost(oldest_ns, now_ns, self.config.outage_max_ns) {
            true => Err(self.no_answer(oldest_ns.unwrap_or(now_ns), now_ns)),
            false => Ok(()),
        }
    }

    #[cold]
    fn no_answer(&self, since_ns: u64, now_ns: u64) -> EngineError {
        EngineError::NoAnswer {
            what: "the target".to_owned(),
            in_flight: self.queue.in_flight(),
            after_ns: now_ns.saturating_sub(since_ns),
        }
    }

    /// Starts a batch of operations that are due.
    #[inline(always)]
    fn start(&mut self, now_ns: u64) -> Result<(), EngineError> {
        if self.stopping && self.is_too_late(now_ns) {
            return Ok(());
        }
        while self.fresh.len() < self.batch.len() {
            let Some(start) = self.pacing.next(now_ns) else { return Ok(()) };
            if self.end.started >= self.config.operations_max || self.has_failed() {
                self.begin_stop(now_ns);
                return Ok(());
            }
            let Some(op) = self.source.next(start.client) else {
                self.pacing.retire(start);
                continue;
            };
            let Start { place, client, intended_ns, held } = start;
            if self.callbacks.fill && matches!(op.kind, OpKind::Write | OpKind::WriteDurable) {
                let buffer = buffer(self.queue, &self.config, place, op.size_bytes)?;
                self.source.fill(client, &op, buffer);
            }
            let Some(in_flight) = self.in_flight.get_mut(place as usize) else {
                return Err(EngineError::Config(format!("there is no slot {place} at this depth")));
            };
            *in_flight =
                InFlight { intended_ns, submitted_ns: u64::MAX, op, client, held, in_flight: true };
            let names = if self.callbacks.names && op.kind == OpKind::Nop {
                self.source.names()
            } else {
                None
            };
            match names {
                Some(names) => self.queue.push_names(&names, u64::from(place))?,
                None => self.queue.push(&RingOp {
                    kind: op.kind,
                    file: op.file,
                    offset_bytes: op.offset_bytes,
                    size_bytes: op.size_bytes,
                    buffer_offset_bytes: u64::from(place) * self.config.buffer_stride_bytes,
                    user_data: u64::from(place),
                })?,
            }
            if let Some(durable) = &mut self.durable
                && matches!(op.kind, OpKind::Sync | OpKind::Flush)
            {
                durable.flush_begins(place, client);
            }
            self.end.started += 1;
            self.fresh.push(place);
        }
        Ok(())
    }
}

#[inline(always)]
fn cell_of(client: u32, class: u16, config: &DriveConfig) -> usize {
    (client * config.classes + u32::from(class)) as usize
}

#[inline(always)]
fn is_read(op: &Op) -> bool {
    op.kind == OpKind::Read
}

#[inline(always)]
fn is_whole_read(op: &Op, result: Result<u32, i32>) -> bool {
    is_read(op) && result == Ok(op.size_bytes)
}

#[inline(always)]
fn record(
    records: &mut IntervalRecorder,
    cell: usize,
    issued: &InFlight,
    result: Result<u32, i32>,
    now_ns: u64,
    scheduled: bool,
    end: &mut DriveEnd,
) {
    end.ended += 1;
    if result == Ok(issued.op.size_bytes) {
        let service_ns = now_ns.saturating_sub(issued.submitted_ns);
        // Without a schedule, the submission time is also the intended start time.
        let latency_ns =
            if scheduled { now_ns.saturating_sub(issued.intended_ns) } else { service_ns };
        records.record(cell, issued.op.size_bytes.into(), latency_ns, service_ns);
    } else {
        records.record_error(cell);
        fail(end, issued, result, now_ns);
    }
}

#[cold]
fn fail(end: &mut DriveEnd, issued: &InFlight, result: Result<u32, i32>, at_ns: u64) {
    let (op, client) = (issued.op, issued.client);
    end.failure.get_or_insert(Failure { op, client, result, at_ns });
}

fn buffer<'a, Q: Queue>(
    queue: &'a mut Q,
    config: &DriveConfig,
    place: u32,
    size_bytes: u32,
) -> Result<&'a mut [u8], EngineError> {
    let offset_bytes = u64::from(place) * config.buffer_stride_bytes;
    queue.bytes(offset_bytes, size_bytes).ok_or_else(|| {
        EngineError::Config(format!("the buffer of slot {place} is outside the arena or in use"))
    })
}

#[cfg(test)]
mod tests;
