//! A run of streams: one thread per group of clients, all on one schedule, one writer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use plimsoll_record::collect::{Collector, Interval};
use plimsoll_record::drain;
use plimsoll_sys::arena::{AlignedBuffer, PAGE_BYTES};
use plimsoll_sys::clock::{Clock, monotonic_ns, sleep_until_ns};
use plimsoll_sys::cpu::{
    CpuTime, pin_to, process_time, ring_workers, set_timer_slack_ns, thread_id,
};
use plimsoll_sys::inject;
use plimsoll_workload::planned::pace::{CapTurns, Pace};

pub use super::collect::Event;
use super::collect::collect;
use super::crew::{Crew, Flags};
use super::drive::{DriveConfig, DriveEnd, Failure, Stop, drive};
use super::handover::{Outbox, connect};
use super::pacing::{Barrier, Capped, Closed, Open, Pacing, Thinking};
use super::source::Source;
use crate::backend::{AnyQueue, BackendConfig, BackendKind, BackendReport, NullQueue, Queue, open};
use crate::issue::OUTAGE_NS_MAX;
use crate::nfs::{self, NfsQueue, NfsTarget};
use crate::placement::Place;
use crate::s3::{self, S3Queue, S3Target};
use crate::{EngineError, urgency};

/// How often it is looked whether threads that open their targets are to go on.
const LOOK: Duration = Duration::from_millis(20);

/// How often a queue that settles looks at the time, in ns, and what it takes at a time.
const SETTLE_TICK_NS: u64 = 100_000_000;
const SETTLED_MAX: usize = 64;

/// What measures for so long is a pass over data, and ends when all of it is done.
pub(crate) const UNTIL_DONE_NS: u64 = u64::MAX / 4;

/// Time between the last thread's being ready and the start, in which all of them wake up.
const LEAD_NS: u64 = 5_000_000;

/// How long a cap's schedule may be caught up with after a stall.
const CREDIT_NS: u64 = 100_000_000;

/// What a group's operations go to.
#[derive(Debug)]
pub enum Target {
    /// Nothing: every operation completes at once.
    Null,
    /// Files; depth and arena are set by the run.
    Files(BackendConfig),
    /// NFS exports.
    Nfs(NfsTarget),
    /// An S3 bucket.
    S3(Box<S3Target>),
}

/// Clients that one thread drives.
#[derive(Debug)]
pub struct Group<S> {
    /// Its name.
    pub name: String,
    /// Where its thread runs.
    pub place: Place,
    /// What its operations go to.
    pub target: Target,
    /// Its operations.
    pub source: S,
    /// Number of clients.
    pub clients: u32,
    /// When they start operations.
    pub pace: Pace,
    /// No start before its turn here (closed loops).
    pub cap: Option<CapTurns>,
    /// Largest operation.
    pub size_bytes_max: u32,
    /// Operations after which the group ends.
    pub operations_max: u64,
    /// How long before a scheduled start the thread stops sleeping and watches the clock.
    pub spin_ns: u64,
}

/// Lengths and habits of a run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Names of the classes; [`super::source::Op::class`] indexes this.
    pub classes: Vec<String>,
    /// Driven and recorded apart before the measurement.
    pub warm_up_ns: u64,
    /// Length of the measurement.
    pub measure_ns: u64,
    /// Length of an interval; 10 ms at least.
    pub interval_ns: u64,
    /// How long operations in flight are waited for after the stop ([`drain`]).
    pub drain_ns: u64,
    /// How long after the stop arrivals that were due before it are still started.
    pub backlog_ns: u64,
    /// Keep totals per client too (memory: some hundred KiB per client and class).
    pub per_client: bool,
    /// Go on after a failed operation.
    pub carry_on: bool,
    /// Storage of this host that answers nothing for so long has failed.
    pub outage_max_ns: u64,
}

impl RunConfig {
    /// A measurement of `measure_ns` under the given classes, at one-second intervals.
    #[must_use]
    pub fn new(classes: &[&str], measure_ns: u64) -> Self {
        Self {
            classes: classes.iter().map(|name| (*name).to_owned()).collect(),
            warm_up_ns: 0,
            measure_ns,
            interval_ns: 1_000_000_000,
            drain_ns: drain::IN_FLIGHT_NS,
            backlog_ns: drain::BACKLOG_NS,
            per_client: false,
            carry_on: false,
            outage_max_ns: OUTAGE_NS_MAX,
        }
    }
}

/// Shortest interval.
pub const INTERVAL_NS_MIN: u64 = 10_000_000;

/// How one group ran.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Where its thread ran, and why.
    pub place: Place,
    /// What its queue was.
    pub backend: BackendReport,
    /// How it ended.
    pub end: DriveEnd,
    /// Kernel workers that carried operations for it, at the end.
    pub punt_workers: usize,
    /// Their processor time, as far as they still lived.
    pub punt_cpu: CpuTime,
    /// What was said over the network, where the target lies there.
    pub remote: Option<Remote>,
    /// What ended it early, or what went wrong when it was closed; [`RunReport::error`] has the first.
    pub error: Option<EngineError>,
}

/// What a group said over the network.
#[derive(Clone, Debug)]
pub enum Remote {
    /// NFS.
    Nfs {
        /// Calls, and what the servers did meanwhile.
        calls: nfs::Calls,
        /// The first call that failed, by its name, with the server's answer.
        first_error: Option<String>,
    },
    /// S3.
    S3 {
        /// Requests.
        calls: s3::Calls,
        /// As above.
        first_error: Option<String>,
    },
}

impl Remote {
    /// The first call that failed, by its name, with the server's answer.
    #[must_use]
    pub fn first_error(&self) -> Option<&str> {
        match self {
            Self::Nfs { first_error, .. } | Self::S3 { first_error, .. } => first_error.as_deref(),
        }
    }
}

impl GroupReport {
    /// The first operation that failed, as an error with path and place.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        let Failure { op, result, .. } = self.end.failure?;
        let path = self.backend.files.get(op.file as usize);
        let path = path.map_or_else(PathBuf::new, |file| PathBuf::from(&file.path));
        let says = self.remote.as_ref().and_then(Remote::first_error);
        if let (Some(says), Err(errno)) = (says, result) {
            let doing = format!("file {} at byte {}", op.file, op.offset_bytes);
            let says = says.to_owned();
            return Some(EngineError::Remote { doing, says, errno: Some(errno) });
        }
        Some(super::failure::describe(path, &op, result))
    }
}

/// What a run measured.
#[derive(Debug)]
pub struct RunReport {
    /// Totals by class, client and group.
    pub collected: Collector,
    /// The groups, in order.
    pub groups: Vec<GroupReport>,
    /// When the measurement started (`CLOCK_MONOTONIC`).
    pub measure_from_ns: u64,
    /// When it stopped: as planned, or when it was told to, or at the first failure.
    pub stop_ns: u64,
    /// By how much the stop may be off in some threads: 0, unless it was asked for and the threads heard
    /// of it too late.
    pub stop_error_ns: u64,
    /// Processor time of the whole process, kernel workers too, from start to end of the threads.
    pub process_cpu: CpuTime,
    /// What ended the run early, other than a failed operation: a queue that failed or answered nothing, a
    /// thread that panicked or was left behind.
    pub error: Option<EngineError>,
}

impl RunReport {
    /// Length of the measurement.
    #[must_use]
    pub fn measured_ns(&self) -> u64 {
        self.stop_ns.saturating_sub(self.measure_from_ns)
    }
}

/// Runs `groups` until the measurement is over, `stop` is set or an operation fails; `each` gets a row
/// per interval as it becomes complete, on the calling thread.
///
/// # Errors
/// Where a target can't be opened or a queue fails. A failed operation is in [`GroupReport::failure`].
pub fn run<S: Source + Send + 'static>(
    config: &RunConfig,
    groups: Vec<Group<S>>,
    stop: &AtomicBool,
    each: &mut dyn FnMut(&Interval),
) -> Result<RunReport, EngineError> {
    let mut rows = |event: Event<'_>| {
        if let Event::Row(row) = event {
            each(row);
        }
    };
    let (mut report, _) = watch(config, groups, stop, &mut rows)?;
    report.error.take().map_or(Ok(report), Err)
}

/// As [`run`], and gives the sources back as their threads leave them: none of a thread that panicked or
/// was left behind. `hear` is told what happens. What ended the run early once it had started is in
/// [`RunReport::error`].
///
/// # Errors
/// Where a target can't be opened.
pub fn watch<S: Source + Send + 'static>(
    config: &RunConfig,
    groups: Vec<Group<S>>,
    stop: &AtomicBool,
    hear: &mut dyn FnMut(Event<'_>),
) -> Result<(RunReport, Vec<Option<S>>), EngineError> {
    let classes = config.classes.len().max(1);
    let cells: Vec<usize> = groups.iter().map(|group| group.clients as usize * classes).collect();
    let (inbox, ends) = connect(&cells);
    let mut collected = Collector::new(classes, &cells, config.per_client);
    let cpu = process_time();
    let (ready_out, ready_in) = channel();
    let (mut crew, mut returns, mut gates) = (Crew::new(), Vec::new(), Vec::new());
    for (group, (outbox, back)) in groups.into_iter().zip(ends) {
        let (gate, at_gate) = channel();
        let (ready, config) = (ready_out.clone(), config.clone());
        crew.start(&group.name.clone(), move |flags| {
            let ready = Ready(Some(ready));
            run_group(group, &config, outbox, ready, &at_gate, flags)
        });
        returns.push(back);
        gates.push(gate);
    }
    drop(ready_out);
    let flags = Arc::clone(&crew.flags);
    let is_ready = are_ready(&ready_in, gates.len(), stop, &mut crew, hear);
    let start_ns = monotonic_ns() + LEAD_NS;
    let measure_from_ns = start_ns + config.warm_up_ns;
    if is_ready {
        hear(Event::Starts { measure_from_ns });
        for gate in &gates {
            // A thread that is gone has said why in its result.
            let _ = gate.send(start_ns);
        }
        let mut hear_on = |event: Event<'_>| {
            hear(event);
            flags.pass_on(stop);
        };
        collect(&mut collected, &inbox, &returns, &mut hear_on, &mut || crew.is_over());
    }
    drop(gates);
    let left = crew.end();
    let (mut report, sources) = account(left, is_ready, measure_from_ns, collected)?;
    report.process_cpu = process_time().since(&cpu);
    report.stop_error_ns = flags.late_ns.load(Ordering::Relaxed);
    Ok((report, sources))
}

/// Whether all threads have opened what they work on. Those that are not ready are not waited for once
/// the operator has asked and a moment has passed.
fn are_ready<L: Send + 'static>(
    ready: &Receiver<bool>,
    threads: usize,
    stop: &AtomicBool,
    crew: &mut Crew<L>,
    hear: &mut dyn FnMut(Event<'_>),
) -> bool {
    let mut answers = 0;
    while answers < threads {
        match ready.recv_timeout(LOOK) {
            Ok(true) => answers += 1,
            Ok(false) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => {
                hear(Event::Tick);
                crew.flags.pass_on(stop);
                // A thread that is over has said so: it was never ready, or has panicked since.
                if crew.is_over() || crew.flags.cut.load(Ordering::Relaxed) {
                    return false;
                }
            }
        }
    }
    true
}

/// What a thread leaves, of all threads.
fn account<S>(
    left: Vec<Result<Option<(GroupReport, S)>, EngineError>>,
    started: bool,
    measure_from_ns: u64,
    collected: Collector,
) -> Result<(RunReport, Vec<Option<S>>), EngineError> {
    let (mut groups, mut sources, mut error) = (Vec::new(), Vec::new(), None);
    for left in left {
        let source = match left {
            Ok(Some((mut report, source))) => {
                error = error.or(report.error.take());
                groups.push(report);
                Some(source)
            }
            Ok(None) => None,
            Err(why) => {
                error = error.or(Some(why));
                None
            }
        };
        sources.push(source);
    }
    if !started {
        return Err(error.unwrap_or(EngineError::Stopped));
    }
    let stop_ns = groups.iter().map(|report| report.end.stop_ns).min();
    let stop_ns = stop_ns.unwrap_or(measure_from_ns);
    let (stop_error_ns, process_cpu) = (0, CpuTime::default());
    let report = RunReport {
        collected,
        groups,
        measure_from_ns,
        stop_ns,
        stop_error_ns,
        process_cpu,
        error,
    };
    Ok((report, sources))
}

/// Says once that a thread is ready, or, dropped before, that it will not be.
struct Ready(Option<Sender<bool>>);

impl Ready {
    fn say(&mut self, ready: bool) {
        // The coordinator counts one answer per group, and may be gone.
        let _ = self.0.take().map(|sender| sender.send(ready));
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.say(false);
    }
}

/// One group's thread. `None` where another group's failure kept all from starting.
fn run_group<S: Source + Send>(
    group: Group<S>,
    config: &RunConfig,
    outbox: Outbox,
    mut ready: Ready,
    gate: &Receiver<u64>,
    flags: &Flags,
) -> Result<Option<(GroupReport, S)>, EngineError> {
    let Group { name, mut place, target, mut source, clients, pace, cap, .. } = group;
    let opened = prepare(&mut place, target, places(&pace, clients), group.size_bytes_max);
    ready.say(opened.is_ok());
    let (mut queue, backend) = opened?;
    let mut clock = Clock::new();
    let Ok(start_ns) = gate.recv() else { return Ok(None) };
    let measure_from_ns = start_ns + config.warm_up_ns;
    let is_remote = matches!(queue, Either::Nfs(_) | Either::S3(_));
    let drive_config = DriveConfig {
        measure_from_ns,
        stop_ns: measure_from_ns.saturating_add(config.measure_ns),
        drain_ns: config.drain_ns,
        backlog_ns: config.backlog_ns,
        interval_ns: config.interval_ns.max(INTERVAL_NS_MIN),
        spin_ns: group.spin_ns,
        operations_max: group.operations_max,
        classes: config.classes.len().max(1) as u32,
        buffer_stride_bytes: stride_bytes(group.size_bytes_max),
        carry_on: config.carry_on,
        // What a server does not answer, its client gives up by itself, and says more of it.
        outage_max_ns: if is_remote { u64::MAX } else { config.outage_max_ns },
    };
    sleep_until_ns(start_ns);
    inject::point(if config.measure_ns < UNTIL_DONE_NS { "stream-thread" } else { "pass-thread" });
    let stop = flags.stop();
    let mut job = Job { source: &mut source, clock: &mut clock, config: drive_config, stop };
    let (end, outcome) = match &mut queue {
        Either::Null(queue) => job.paced(queue, pace, cap, clients, start_ns, outbox),
        Either::Nfs(queue) => job.paced(queue.as_mut(), pace, cap, clients, start_ns, outbox),
        Either::S3(queue) => job.paced(queue.as_mut(), pace, cap, clients, start_ns, outbox),
        Either::Files(AnyQueue::Ring(ring)) => {
            job.paced(ring.as_mut(), pace, cap, clients, start_ns, outbox)
        }
        Either::Files(AnyQueue::Threads(pool)) => {
            job.paced(pool.as_mut(), pace, cap, clients, start_ns, outbox)
        }
    };
    let mut error = outcome.err();
    if !is_remote && in_flight(&mut queue) > 0 {
        error.get_or_insert(EngineError::Stuck {
            what: backend.files.first().map_or_else(|| "the target".to_owned(), |f| f.path.clone()),
            after_ns: urgency::SETTLE_NS,
        });
    }
    // Before the queue is closed: its workers end with it.
    let (punt_workers, punt_cpu) = ring_workers(thread_id());
    let remote = match queue {
        Either::Nfs(queue) => {
            let (calls, first_error, unclean) = queue.close(stop.cut.load(Ordering::Relaxed));
            error = error.or(unclean);
            Some(Remote::Nfs { calls, first_error })
        }
        Either::S3(queue) => {
            let (calls, first_error) = queue.close();
            Some(Remote::S3 { calls, first_error })
        }
        _ => None,
    };
    let report = GroupReport { name, place, backend, end, punt_workers, punt_cpu, remote, error };
    Ok(Some((report, source)))
}

/// Operations that do not come back within a moment.
fn in_flight(queue: &mut Either) -> usize {
    let Either::Files(queue) = queue else { return 0 };
    let until_ns = monotonic_ns() + urgency::SETTLE_NS;
    while queue.in_flight() > 0 && monotonic_ns() < until_ns {
        if queue.submit_and_wait(1, Some(SETTLE_TICK_NS)).is_err() {
            break;
        }
        while queue.reap(SETTLED_MAX, &mut |_, _| ()) == SETTLED_MAX {}
    }
    queue.in_flight()
}

enum Either {
    Null(NullQueue),
    Nfs(Box<NfsQueue>),
    S3(Box<S3Queue>),
    Files(AnyQueue),
}

fn stride_bytes(size_bytes_max: u32) -> u64 {
    u64::from(size_bytes_max.max(1)).next_multiple_of(PAGE_BYTES as u64)
}

/// Most operations in flight of a group.
fn places(pace: &Pace, clients: u32) -> u32 {
    match pace {
        Pace::Closed { depth } | Pace::Barrier { depth } | Pace::Thinking { depth, .. } => {
            depth.saturating_mul(clients)
        }
        Pace::Open { places, .. } => *places,
    }
    .max(1)
}

/// Pins the thread where it is to be.
fn pin(place: &Place) -> Result<(), EngineError> {
    let Some(cpu) = place.cpu else { return Ok(()) };
    pin_to(cpu).map_err(|source| EngineError::system(format!("pinning to {cpu}"), source))
}

/// Opens what the group works on, and pins the thread.
fn prepare(
    place: &mut Place,
    target: Target,
    depth: u32,
    size_bytes_max: u32,
) -> Result<(Either, BackendReport), EngineError> {
    set_timer_slack_ns(1);
    if !matches!(target, Target::Files(_)) {
        pin(place)?;
    }
    let arena_bytes = stride_bytes(size_bytes_max) * u64::from(depth);
    let files = match target {
        Target::Files(files) => files,
        Target::Null => return null(depth, arena_bytes),
        Target::Nfs(nfs) => {
            let arena = arena(arena_bytes)?;
            let huge_pages_advised = arena.is_huge_advised();
            let queue = NfsQueue::open(&nfs, depth, arena, size_bytes_max)?;
            let report = BackendReport {
                huge_pages_advised,
                ..BackendReport::without_files(
                    BackendKind::Nfs,
                    "the target is NFS exports",
                    depth,
                    arena_bytes,
                )
            };
            return Ok((Either::Nfs(Box::new(queue)), report));
        }
        Target::S3(s3) => {
            let queue = S3Queue::open(*s3, depth, arena(arena_bytes)?)?;
            let report = BackendReport::without_files(
                BackendKind::S3,
                "the target is an S3 bucket",
                depth,
                arena_bytes,
            );
            return Ok((Either::S3(Box::new(queue)), report));
        }
    };
    let (mut queue, _, report) = open(BackendConfig { arena_bytes, depth, ..files })?;
    match report.worker_threads {
        0 => pin(place)?,
        // They would have stayed with a thread that was pinned before it started them.
        workers => *place = Place::with_workers(workers),
    }
    // Never zeros, and never the same in two buffers: a source that fills nothing still writes data.
    for place in 0..u64::from(depth) {
        let stride = stride_bytes(size_bytes_max);
        if let Some(bytes) = queue.bytes(place * stride, stride as u32) {
            plimsoll_sys::simd::fill([0, 0], monotonic_ns() ^ place << 48, bytes);
        }
    }
    if queue.capacity() < depth as usize {
        let can = queue.capacity();
        let says = format!("a depth of {depth} was asked for; one thread carries {can}");
        return Err(EngineError::Config(says));
    }
    Ok((Either::Files(queue), report))
}

fn arena(arena_bytes: u64) -> Result<AlignedBuffer, EngineError> {
    AlignedBuffer::new(arena_bytes as usize).map_err(|source| {
        EngineError::system(format!("reserving {arena_bytes} bytes of buffers"), source)
    })
}

fn null(depth: u32, arena_bytes: u64) -> Result<(Either, BackendReport), EngineError> {
    let arena = arena(arena_bytes)?;
    let huge_pages_advised = arena.is_huge_advised();
    let report = BackendReport {
        huge_pages_advised,
        ..BackendReport::without_files(BackendKind::Null, "the target is null", depth, arena_bytes)
    };
    Ok((Either::Null(NullQueue::new(depth, arena)), report))
}

struct Job<'a, S> {
    source: &'a mut S,
    clock: &'a mut Clock,
    config: DriveConfig,
    stop: Stop<'a>,
}

impl<S: Source> Job<'_, S> {
    fn paced<Q: Queue>(
        &mut self,
        queue: &mut Q,
        pace: Pace,
        cap: Option<CapTurns>,
        clients: u32,
        start_ns: u64,
        outbox: Outbox,
    ) -> (DriveEnd, Result<(), EngineError>) {
        let depths = |depth: u32| vec![depth; clients as usize];
        match pace {
            Pace::Closed { depth } => {
                self.capped(queue, Closed::new(&depths(depth), start_ns), cap, start_ns, outbox)
            }
            Pace::Barrier { depth } => {
                self.capped(queue, Barrier::new(&depths(depth), start_ns), cap, start_ns, outbox)
            }
            Pace::Thinking { depth, think_ns } => {
                let think = vec![think_ns; clients as usize];
                let pacing = Thinking::new(&depths(depth), &think, start_ns);
                self.capped(queue, pacing, cap, start_ns, outbox)
            }
            Pace::Open { arrivals, places } => {
                self.drive(queue, &mut Open::new(arrivals, places, start_ns), outbox)
            }
        }
    }

    fn capped<Q: Queue, P: Pacing>(
        &mut self,
        queue: &mut Q,
        mut pacing: P,
        cap: Option<CapTurns>,
        start_ns: u64,
        outbox: Outbox,
    ) -> (DriveEnd, Result<(), EngineError>) {
        match cap {
            None => self.drive(queue, &mut pacing, outbox),
            Some(CapTurns(turns)) => {
                self.drive(queue, &mut Capped::new(pacing, turns, start_ns, CREDIT_NS), outbox)
            }
        }
    }

    fn drive<Q: Queue, P: Pacing>(
        &mut self,
        queue: &mut Q,
        pacing: &mut P,
        outbox: Outbox,
    ) -> (DriveEnd, Result<(), EngineError>) {
        drive(queue, self.source, pacing, self.clock, self.config, outbox, self.stop)
    }
}

#[cfg(test)]
mod tests;
