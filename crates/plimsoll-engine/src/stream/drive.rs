//! The loop that a driving thread runs: take a completion, record it, start what is due, hand it over;
//! where nothing is there and nothing is due, wait.
//!
//! The device must never be idle because of this thread, so what was waited for goes one by one: one
//! completion is taken, its place starts again and is handed over before the next completion is
//! looked at. Where operations are back at once they go in batches (`Batch`). The last
//! operation before a wait is handed over by the call that waits.
//!
//! The clock is read when completions are looked for and just before each call. In a closed loop latency
//! begins just before the operation's own call and ends when its completion was first there to be taken;
//! from then until the next is handed over it stood ready in this thread: the generator's lag. Nothing
//! here allocates, locks or looks at anything shared but one stop flag. The loop is
//! compiled for each kind of queue; see `run/group.rs` for which sources and pacings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_sys::cpu::{CpuTime, present_cpu, thread_time};
use plimsoll_sys::op::{OpKind, RingOp};

mod durable;
mod hand_over;
mod unfinished;

use self::durable::Completed;
use super::handover::Outbox;
use super::pacing::{Pacing, Start};
use super::source::{Op, Source, UNFOLLOWED, Wants};
use crate::EngineError;
use crate::backend::{Batch, Queue, Spin};
use crate::timer::Timer;
use plimsoll_record::cells::{Cell, Snapshot};
use plimsoll_record::drain::{OldestOperation, Silence};
use plimsoll_record::durable::DurableWrites;

/// What a driving thread is told.
#[derive(Clone, Copy, Debug)]
pub struct DriveConfig {
    /// Origin of the interval grid: when the measurement starts.
    pub measure_from_ns: u64,
    /// No operation is intended from here on.
    pub stop_ns: u64,
    /// How long after the stop operations in flight are waited for.
    pub drain_ns: u64,
    /// How long after the stop arrivals that were due before it are still started.
    pub backlog_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// How long before a scheduled start the thread stops sleeping and watches the clock.
    pub spin_ns: u64,
    /// Longest time that a wait polls for completions before it sleeps; 0: it sleeps at once.
    pub wait_spin_ns: u64,
    /// Operations after which the group ends.
    pub operations_max: u64,
    /// Classes that the source uses.
    pub classes: u32,
    /// Distance of the places' buffers in the arena: at least the largest operation.
    pub buffer_stride_bytes: u64,
    /// Go on after a failed operation.
    pub carry_on: bool,
    /// With operations in flight and none answered for so long, the queue has failed.
    pub outage_max_ns: u64,
}

/// Shortest and longest time after which a waiting thread looks up: it hands its interval over and
/// sees that it was stopped.
const TICK_NS_MIN: u64 = 10_000_000;
const TICK_NS_MAX: u64 = 1_000_000_000;

/// Who may end a drive early.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    /// Set by the caller, a little ahead of the present, so that all threads of the run stop at the same
    /// time; `u64::MAX`: not asked.
    pub at_ns: &'a AtomicU64,
    /// Set by a thread of the run whose operation failed, so that the others end too.
    pub failed: &'a AtomicBool,
    /// Set where what is in flight is not waited for any more either.
    pub cut: &'a AtomicBool,
}

/// The first operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The operation.
    pub op: Op,
    /// Its client.
    pub client: u32,
    /// Bytes moved, or the `errno`. All bytes moved: its content failed its check.
    pub result: Result<u32, i32>,
    /// When it was seen.
    pub at_ns: u64,
}

/// How a driving thread ended.
#[derive(Clone, Debug, Default)]
pub struct DriveEnd {
    /// Operations handed to the target.
    pub started: u64,
    /// Operations that came back, failed ones too.
    pub ended: u64,
    /// Operations still in flight when the drain time was over. Their waits until then are in the last
    /// snapshot.
    pub abandoned: u64,
    /// Starts that were due before the stop and never given; their waits, too.
    pub never_started: u64,
    /// Intervals that were lengthened because the writer was late.
    pub intervals_merged: u64,
    /// The first operation that failed.
    pub failure: Option<Failure>,
    /// How long after its time the last operation was handed over; where some that were due never were, how long the
    /// first of them had waited at the end.
    pub lag_end_ns: u64,
    /// When it stopped starting operations: as planned, when it was told to, or at its first failure.
    pub stop_ns: u64,
    /// When the thread ended.
    pub end_ns: u64,
    /// CPUs that the thread was seen on at the ends of intervals, in the order in which it came there.
    pub ran_on: Vec<u32>,
}

/// What is remembered of an operation in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    intended_ns: u64,
    /// `u64::MAX`: not handed over yet.
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

/// A driving thread's state. See the module.
struct Driver<'a, Q, S: ?Sized, P, T> {
    queue: &'a mut Q,
    source: &'a mut S,
    pacing: &'a mut P,
    clock: &'a mut T,
    config: DriveConfig,
    wants: Wants,
    /// See [`Pacing::is_scheduled`].
    scheduled: bool,
    /// By place.
    in_flight: Box<[InFlight]>,
    /// Places started since the last call.
    fresh: Vec<u32>,
    batch: Batch,
    spin: Spin,
    /// Completions that were there when they were last looked for, and are not taken yet.
    seen: usize,
    /// When that was.
    seen_ns: u64,
    /// Completions whose content is to be looked at.
    came: Vec<(u32, Result<u32, i32>)>,
    end: DriveEnd,
    stopping: bool,
    next_cut_ns: u64,
    interval: i64,
    cpu: CpuTime,
    /// Since something last came back, or nothing was in flight.
    silence: Silence,
    oldest: OldestOperation,
    /// Writes that wait for a flush, where flushes follow the writes.
    durable: Option<Box<DurableWrites>>,
}

/// Drives `source` at `pacing` through `queue` until the stop, and hands what it measures to `outbox`.
/// How it ended comes back with what ended it early, where something did: the queue itself failed, or
/// refused what the source gave, or answered nothing for [`DriveConfig::outage_max_ns`]. A failed
/// operation isn't an error here: it is in [`DriveEnd::failure`].
pub fn drive<Q: Queue, S: Source + ?Sized, P: Pacing, T: Timer>(
    queue: &mut Q,
    source: &mut S,
    pacing: &mut P,
    clock: &mut T,
    config: DriveConfig,
    mut outbox: Outbox,
    stop: Stop<'_>,
) -> (DriveEnd, Result<(), EngineError>) {
    let (wants, scheduled) = (source.wants(), pacing.is_scheduled());
    let (places, together) = (queue.capacity(), queue.together());
    queue.tick_every(config.interval_ns.clamp(TICK_NS_MIN, TICK_NS_MAX));
    let now_ns = clock.now_ns();
    let mut driver = Driver {
        queue,
        source,
        pacing,
        clock,
        config,
        wants,
        scheduled,
        in_flight: vec![IDLE; places].into_boxed_slice(),
        fresh: Vec::with_capacity(places),
        batch: Batch::new(together, places),
        spin: Spin::new(config.wait_spin_ns),
        seen: 0,
        seen_ns: 0,
        came: Vec::with_capacity(places),
        end: DriveEnd::default(),
        stopping: false,
        next_cut_ns: 0,
        interval: 0,
        cpu: thread_time(),
        silence: Silence::from(now_ns),
        oldest: OldestOperation::default(),
        durable: durable::waiting(wants, outbox.current().cells.len(), config.classes, places),
    };
    driver.locate(now_ns);
    outbox.current().interval = driver.interval;
    outbox.current().start_ns = now_ns;
    // A process that was stopped before it could begin may do so after its end: nothing of it is measured.
    outbox.current().drain = now_ns >= driver.config.stop_ns;
    let result = driver.run(&mut outbox, stop);
    driver.end_measurement(&mut outbox);
    driver.charge(outbox.current());
    driver.note_cpu();
    let ended_ns = driver.clock.now_ns();
    driver.leave(outbox.current(), ended_ns);
    if result.is_err() || driver.has_failed() {
        stop.failed.store(true, Ordering::Relaxed);
    }
    if let Err(EngineError::Unanswered { .. }) = result {
        // What does not answer one thread answers the others no more.
        stop.cut.store(true, Ordering::Relaxed);
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
            let there = if self.seen == 0 { self.queue.arrived() } else { 0 };
            let now_ns = self.clock.now_ns();
            self.listen(stop, now_ns);
            if now_ns >= self.next_cut_ns {
                self.cut(outbox, now_ns);
                self.heed_oldest(now_ns)?;
            }
            let snapshot = outbox.current();
            self.look(there, now_ns);
            self.reap(snapshot, now_ns)?;
            if now_ns >= self.config.stop_ns {
                self.begin_stop(now_ns);
            }
            self.start(now_ns)?;
            if self.queue.in_flight() == 0 && self.due_ns(now_ns).is_none() {
                // Every client has ended, or the stop has come and nothing is left.
                return Ok(());
            }
            if self.stopping && (self.is_over(now_ns) || stop.cut.load(Ordering::Relaxed)) {
                return Ok(());
            }
            self.hand_over(snapshot, now_ns)?;
        }
    }

    /// What ended before its time ends where it stands: what is still in flight came back after it, or never.
    fn end_measurement(&mut self, outbox: &mut Outbox) {
        if self.queue.in_flight() > 0 && !outbox.current().drain {
            let now_ns = self.clock.now_ns();
            self.begin_stop(now_ns);
            self.cut(outbox, now_ns);
        }
    }

    /// Takes an earlier stop over.
    #[inline(always)]
    fn listen(&mut self, stop: Stop<'_>, now_ns: u64) {
        let mut at_ns = stop.at_ns.load(Ordering::Relaxed);
        if stop.failed.load(Ordering::Relaxed) || stop.cut.load(Ordering::Relaxed) {
            at_ns = at_ns.min(now_ns);
        }
        if at_ns < self.config.stop_ns {
            self.config.stop_ns = at_ns;
            self.next_cut_ns = self.next_cut_ns.min(at_ns);
        }
    }

    /// Places the grid around `now_ns`.
    fn locate(&mut self, now_ns: u64) {
        let since = i128::from(now_ns) - i128::from(self.config.measure_from_ns);
        let length = i128::from(self.config.interval_ns.max(1));
        let interval = since.div_euclid(length);
        self.interval = interval as i64;
        let next = i128::from(self.config.measure_from_ns) + (interval + 1) * length;
        let next_ns = u64::try_from(next).unwrap_or(0);
        // The stop is a cut as well: what comes after it isn't part of the achieved rate.
        let stop_ns = self.config.stop_ns;
        self.next_cut_ns = if now_ns < stop_ns { next_ns.min(stop_ns) } else { next_ns };
    }

    #[cold]
    fn cut(&mut self, outbox: &mut Outbox, now_ns: u64) {
        self.charge(outbox.current());
        self.note_cpu();
        let was_warming_up = self.interval < 0;
        self.locate(now_ns);
        if was_warming_up && self.interval >= 0 {
            self.source.measure_begins();
        }
        outbox.cut(now_ns, self.interval, now_ns >= self.config.stop_ns);
    }

    /// Notes which CPU this runs on.
    fn note_cpu(&mut self) {
        if let Some(cpu) = present_cpu()
            && !self.end.ran_on.contains(&cpu)
        {
            self.end.ran_on.push(cpu);
        }
    }

    /// Charges the processor time since the last call to the snapshot.
    fn charge(&mut self, snapshot: &mut Snapshot) {
        let cpu = thread_time();
        let used = cpu.since(&self.cpu);
        self.cpu = cpu;
        snapshot.cpu_user_ns += used.user_ns;
        snapshot.cpu_system_ns += used.system_ns;
        snapshot.spun_ns += std::mem::take(&mut self.spin.spun_ns);
    }

    #[cold]
    fn begin_stop(&mut self, now_ns: u64) {
        if !self.stopping {
            self.stopping = true;
            if now_ns < self.config.stop_ns {
                (self.config.stop_ns, self.next_cut_ns) = (now_ns, now_ns);
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

    /// Notes which completions were there just before `now_ns`, once those that were there before are taken.
    /// The clock is read after they were looked for: none is said to have come before it did.
    #[inline(always)]
    fn look(&mut self, there: usize, now_ns: u64) {
        if self.seen == 0 {
            (self.seen, self.seen_ns) = (there, now_ns);
        }
    }

    /// When a place whose operation was taken at `now_ns` is ready for its next. By a schedule, when
    /// it was taken; otherwise when its completion was first there to be taken: what it waited for
    /// since was this thread, with completions before it.
    #[inline(always)]
    fn ready_ns(&self, now_ns: u64) -> u64 {
        if self.scheduled { now_ns } else { self.seen_ns }
    }

    /// Whether arrivals from before the stop are no longer started.
    fn is_too_late(&self, now_ns: u64) -> bool {
        now_ns >= self.config.stop_ns.saturating_add(self.config.backlog_ns)
    }

    /// When the next start is due; `None` where only a completion can make one, or nothing is started
    /// any more.
    #[inline(always)]
    fn due_ns(&self, now_ns: u64) -> Option<u64> {
        if self.stopping && self.is_too_late(now_ns) {
            return None;
        }
        self.pacing.due_ns()
    }

    /// Ends a batch of the operations that have come back.
    #[inline(always)]
    fn reap(&mut self, snapshot: &mut Snapshot, now_ns: u64) -> Result<(), EngineError> {
        let ready_ns = self.ready_ns(now_ns);
        let reaped = if self.wants.completions {
            self.reap_with_content(snapshot, now_ns)?
        } else {
            let (most, came_ns) = (self.batch.len().min(self.seen), self.seen_ns);
            let scheduled = self.scheduled;
            let Self {
                queue, source, pacing, in_flight, config, wants, end, came, durable, ..
            } = self;
            let mut look_at = None;
            let taken = queue.reap(most, &mut |place, result| {
                let Some(flown) = in_flight.get_mut(place as usize) else { return };
                flown.in_flight = false;
                let cell = cell_of(flown.client, flown.op.class, config);
                if wants.followed && flown.op.tag != UNFOLLOWED {
                    came.push((place as u32, result));
                } else if let Some(cell) = snapshot.cells.get_mut(cell) {
                    record(cell, flown, result, came_ns, scheduled, end);
                    if let Some(durable) = durable {
                        let place = place as u32;
                        let completed = Completed { place, result, came_ns, scheduled };
                        durable::note(durable, snapshot, flown, completed, config, *wants);
                    }
                }
                if wants.looks && is_whole_read(&flown.op, result) && source.wants_look() {
                    look_at = Some((place as u32, flown.op));
                }
                pacing.completed(place as u32, ready_ns);
            });
            // Whether or not they were operations (the ring's own timer is none): the next is not as old as they are.
            self.seen -= most;
            // Before anything starts in that place again.
            if let Some((place, op)) = look_at {
                let buffer = buffer(self.queue, &self.config, place, op.size_bytes)?;
                self.source.look(&op, buffer);
            }
            if !self.came.is_empty() {
                self.settle(snapshot, came_ns)?;
            }
            taken
        };
        if reaped > 0 || self.queue.in_flight() == 0 {
            self.silence = Silence::from(now_ns);
        } else if self.silence.is_outage(now_ns, self.config.outage_max_ns) {
            return Err(self.unanswered(self.silence.since_ns(), now_ns));
        }
        if self.has_failed() {
            self.begin_stop(now_ns);
        }
        Ok(())
    }

    /// As `reap`, where the source looks at each operation and its buffer.
    fn reap_with_content(
        &mut self,
        snapshot: &mut Snapshot,
        now_ns: u64,
    ) -> Result<usize, EngineError> {
        let ready_ns = self.ready_ns(now_ns);
        let (most, came_ns) = (self.batch.len().min(self.seen), self.seen_ns);
        let Self { queue, pacing, came, .. } = self;
        let taken = queue.reap(most, &mut |place, result| {
            came.push((place as u32, result));
            pacing.completed(place as u32, ready_ns);
        });
        self.seen -= most;
        self.settle(snapshot, came_ns)?;
        Ok(taken)
    }

    /// Hands what has come back and is followed to the source, before anything starts in its places again.
    #[inline(never)]
    fn settle(&mut self, snapshot: &mut Snapshot, came_ns: u64) -> Result<(), EngineError> {
        let scheduled = self.scheduled;
        let Self { queue, source, in_flight, config, wants, end, came, durable, .. } = self;
        let looks = wants.looks && wants.completions;
        for (place, result) in came.drain(..) {
            let Some(flown) = in_flight.get_mut(place as usize) else { continue };
            flown.in_flight = false;
            let cell = cell_of(flown.client, flown.op.class, config);
            let Some(cell) = snapshot.cells.get_mut(cell) else { continue };
            let op = &flown.op;
            let whole = result == Ok(op.size_bytes);
            let sure = op.kind != OpKind::Read || queue.is_sure(u64::from(place));
            let buffer = buffer(*queue, config, place, op.size_bytes)?;
            if looks && sure && is_whole_read(op, result) && source.wants_look() {
                source.look(op, buffer);
            }
            if whole && sure && !source.completed(flown.client, op, buffer) {
                end.ended += 1;
                cell.sums.errors += 1;
                fail(end, flown, result, came_ns);
            } else {
                if !(whole && sure) {
                    source.failed(flown.client, op);
                }
                record(cell, flown, result, came_ns, scheduled, end);
                if let Some(durable) = durable {
                    let completed = Completed { place, result, came_ns, scheduled };
                    durable::note(durable, snapshot, flown, completed, config, *wants);
                }
            }
        }
        Ok(())
    }

    /// One operation that does not come back, while others do, is an outage too. After the stop the drain
    /// bounds what it is waited for.
    ///
    /// # Errors
    /// [`EngineError::Unanswered`] where one has been out for [`one_max_ns`](plimsoll_record::drain::one_max_ns).
    #[cold]
    fn heed_oldest(&mut self, now_ns: u64) -> Result<(), EngineError> {
        let in_flight = self.in_flight.iter().filter(|flown| flown.in_flight && !self.stopping);
        let oldest_ns = in_flight.map(|flown| flown.submitted_ns).min();
        match self.oldest.is_lost(oldest_ns, now_ns, self.config.outage_max_ns) {
            true => Err(self.unanswered(oldest_ns.unwrap_or(now_ns), now_ns)),
            false => Ok(()),
        }
    }

    #[cold]
    fn unanswered(&self, since_ns: u64, now_ns: u64) -> EngineError {
        EngineError::Unanswered {
            what: "the target".to_owned(),
            in_flight: self.queue.in_flight(),
            after_ns: now_ns.saturating_sub(since_ns),
        }
    }

    /// Starts a batch of what is due.
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
            if self.wants.fill && matches!(op.kind, OpKind::Write | OpKind::WriteDurable) {
                let buffer = buffer(self.queue, &self.config, place, op.size_bytes)?;
                self.source.fill(client, &op, buffer);
            }
            let Some(in_flight) = self.in_flight.get_mut(place as usize) else {
                return Err(EngineError::Config(format!("place {place} is beyond the depth")));
            };
            *in_flight =
                InFlight { intended_ns, submitted_ns: u64::MAX, op, client, held, in_flight: true };
            let names =
                if self.wants.names && op.kind == OpKind::Nop { self.source.names() } else { None };
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
fn is_whole_read(op: &Op, result: Result<u32, i32>) -> bool {
    op.kind == OpKind::Read && result == Ok(op.size_bytes)
}

#[inline(always)]
fn record(
    cell: &mut Cell,
    flown: &InFlight,
    result: Result<u32, i32>,
    now_ns: u64,
    scheduled: bool,
    end: &mut DriveEnd,
) {
    end.ended += 1;
    if result == Ok(flown.op.size_bytes) {
        let service_ns = now_ns.saturating_sub(flown.submitted_ns);
        // Without a schedule nothing says when it should have started but that it was handed over.
        let latency_ns =
            if scheduled { now_ns.saturating_sub(flown.intended_ns) } else { service_ns };
        cell.record(latency_ns, service_ns, flown.op.size_bytes);
    } else {
        cell.sums.errors += 1;
        fail(end, flown, result, now_ns);
    }
}

#[cold]
fn fail(end: &mut DriveEnd, flown: &InFlight, result: Result<u32, i32>, at_ns: u64) {
    let (op, client) = (flown.op, flown.client);
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
        EngineError::Config(format!("the buffer of place {place} is outside the arena or in use"))
    })
}

#[cfg(test)]
mod tests;
