//! Work of the thread of one group. It opens its target, waits for the start, drives the
//! operations, and closes the target.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

use plimsoll_sys::arena::{AlignedBuffer, PAGE_BYTES};
use plimsoll_sys::clock::{Clock, monotonic_ns, sleep_until_ns};
use plimsoll_sys::cpu::{pin_thread, ring_workers, set_timer_slack_ns, thread_id};
use plimsoll_sys::inject;
use plimsoll_workload::planned::pace::Pace;

use super::report::{GroupReport, RemoteCalls};
use super::{Group, INTERVAL_NS_MIN, RunConfig, Target, UNTIL_DONE_NS};
use crate::backend::{AnyQueue, BackendConfig, BackendKind, BackendReport, NullQueue, Queue, open};
use crate::nfs::NfsQueue;
use crate::placement::Placement;
use crate::s3::S3Queue;
use crate::stream::drive::{DriveConfig, DriveEnd, Stop, drive};
use crate::stream::driving_threads::Flags;
use crate::stream::matrix::MatrixSource;
use crate::stream::outbox::Outbox;
use crate::stream::pacing::AnyPacing;
use crate::stream::source::Source;
use crate::stream::uniform::Uniform;
use crate::{EngineError, stop_request};

/// While a queue waits for its last operations, it reads the clock at this interval, in ns. In each
/// step, it reaps at most as many completions as the next constant permits.
const SETTLE_TICK_NS: u64 = 100_000_000;
const SETTLED_MAX: usize = 64;

/// Sender with which a thread reports that it is ready. If it is dropped before the thread is
/// ready, it reports that the thread will never be ready.
pub(super) struct ReadySignal(pub(super) Option<Sender<bool>>);

impl ReadySignal {
    fn send(&mut self, ready: bool) {
        // The coordinator expects one message from each group. If the coordinator has ended, nobody
        // receives the message.
        let _ = self.0.take().map(|sender| sender.send(ready));
    }
}

impl Drop for ReadySignal {
    fn drop(&mut self) {
        self.send(false);
    }
}

/// Runs the thread of one group. Returns `None` if the failure of another group prevented the
/// start.
pub(super) fn run_group(
    group: Group<&mut (dyn Source + 'static)>,
    config: &RunConfig,
    outbox: Outbox,
    mut ready: ReadySignal,
    gate: &Receiver<u64>,
    flags: &Flags,
) -> Result<Option<GroupReport>, EngineError> {
    let Group { name, mut place, target, source, clients, pace, cap, .. } = group;
    let opened = open_target(&mut place, target, places(&pace, clients), group.size_bytes_max);
    ready.send(opened.is_ok());
    let (mut queue, backend) = opened?;
    let clock = Clock::new();
    let Ok(start_ns) = gate.recv() else { return Ok(None) };
    let measure_from_ns = start_ns + config.warm_up_ns;
    let is_remote = matches!(queue, GroupQueue::Nfs(_) | GroupQueue::S3(_));
    let drive_config = DriveConfig {
        measure_from_ns,
        stop_ns: measure_from_ns.saturating_add(config.measure_ns),
        drain_ns: config.drain_ns,
        backlog_ns: config.backlog_ns,
        interval_ns: config.interval_ns.max(INTERVAL_NS_MIN),
        spin_ns: group.spin_ns,
        wait_spin_ns: config.spin_ns,
        operations_max: group.operations_max,
        classes: config.classes.len().max(1) as u32,
        buffer_stride_bytes: stride_bytes(group.size_bytes_max),
        carry_on: config.carry_on,
        // If a server does not respond, the client of this server ends the wait itself, with a more
        // detailed error.
        outage_max_ns: if is_remote { u64::MAX } else { config.outage_max_ns },
    };
    sleep_until_ns(start_ns);
    inject::point(if config.measure_ns < UNTIL_DONE_NS { "stream-thread" } else { "pass-thread" });
    let stop = flags.stop();
    let pacing = AnyPacing::new(pace, cap, clients, start_ns);
    let job = DriveJob { source, pacing, clock, config: drive_config, outbox, stop };
    let (end, outcome) = match &mut queue {
        GroupQueue::Null(queue) => job.drive(queue),
        GroupQueue::Nfs(queue) => job.drive(queue.as_mut()),
        GroupQueue::S3(queue) => job.drive(queue.as_mut()),
        GroupQueue::Files(AnyQueue::Ring(ring)) => job.drive(ring.as_mut()),
        GroupQueue::Files(AnyQueue::Threads(pool)) => job.drive(pool.as_mut()),
    };
    let mut error = outcome.err();
    if !is_remote && drain_queue(&mut queue) > 0 {
        error.get_or_insert(EngineError::Abandoned {
            what: backend.files.first().map_or_else(|| "the target".to_owned(), |f| f.path.clone()),
            after_ns: stop_request::SETTLE_NS,
        });
    }
    // The kernel workers must be counted before the queue is closed, because the close ends them.
    let (punt_workers, punt_cpu) = ring_workers(thread_id());
    let remote = match queue {
        GroupQueue::Nfs(queue) => {
            let (calls, first_error, unclean) = queue.close(stop.abort.load(Ordering::Relaxed));
            error = error.or(unclean);
            Some(RemoteCalls::Nfs { calls, first_error })
        }
        GroupQueue::S3(queue) => {
            let (calls, first_error) = queue.close();
            Some(RemoteCalls::S3 { calls, first_error })
        }
        _ => None,
    };
    let report = GroupReport { name, place, backend, end, punt_workers, punt_cpu, remote, error };
    Ok(Some(report))
}

/// Waits a short time for operations in flight. Returns how many operations have not completed.
fn drain_queue(queue: &mut GroupQueue) -> usize {
    let GroupQueue::Files(queue) = queue else { return 0 };
    let until_ns = monotonic_ns() + stop_request::SETTLE_NS;
    while queue.in_flight() > 0 && monotonic_ns() < until_ns {
        if queue.submit_and_wait(1, Some(SETTLE_TICK_NS)).is_err() {
            break;
        }
        while queue.arrived() > 0 {
            queue.reap(SETTLED_MAX, &mut |_, _| ());
        }
    }
    queue.in_flight()
}

enum GroupQueue {
    Null(NullQueue),
    Nfs(Box<NfsQueue>),
    S3(Box<S3Queue>),
    Files(AnyQueue),
}

fn stride_bytes(size_bytes_max: u32) -> u64 {
    u64::from(size_bytes_max.max(1)).next_multiple_of(PAGE_BYTES as u64)
}

/// Returns the maximum number of operations that the group has in flight.
fn places(pace: &Pace, clients: u32) -> u32 {
    match pace {
        Pace::Closed { depth } | Pace::Barrier { depth, .. } | Pace::Thinking { depth, .. } => {
            depth.saturating_mul(clients)
        }
        Pace::Open { places, .. } => *places,
        Pace::Gated { pace, .. } => places(pace, clients),
    }
    .max(1)
}

/// Pins the thread to the CPU on which it is placed.
fn pin(place: &Placement) -> Result<(), EngineError> {
    let Some(cpu) = place.cpu else { return Ok(()) };
    pin_thread(cpu).map_err(|source| EngineError::system(format!("pinning to {cpu}"), source))
}

/// Opens the target of the group and pins the thread.
fn open_target(
    place: &mut Placement,
    target: Target,
    depth: u32,
    size_bytes_max: u32,
) -> Result<(GroupQueue, BackendReport), EngineError> {
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
            return Ok((GroupQueue::Nfs(Box::new(queue)), report));
        }
        Target::S3(s3) => {
            let queue = S3Queue::open(*s3, depth, arena(arena_bytes)?)?;
            let report = BackendReport::without_files(
                BackendKind::S3,
                "the target is an S3 bucket",
                depth,
                arena_bytes,
            );
            return Ok((GroupQueue::S3(Box::new(queue)), report));
        }
    };
    let (mut queue, _, report) = open(BackendConfig { arena_bytes, depth, ..files })?;
    match report.worker_threads {
        0 => pin(place)?,
        // If a pinned thread starts other threads, they stay on its CPU.
        workers => *place = Placement::with_workers(workers),
    }
    // No buffer contains only zeros, and no two buffers are equal. If a source does not fill its
    // buffers, it therefore still writes usable data.
    for place in 0..u64::from(depth) {
        let stride = stride_bytes(size_bytes_max);
        if let Some(bytes) = queue.bytes(place * stride, stride as u32) {
            plimsoll_sys::simd::fill([0, 0], monotonic_ns() ^ place << 48, bytes);
        }
    }
    if queue.capacity() < depth as usize {
        let can = queue.capacity();
        let says = format!("a depth of {depth} was requested, but one thread supports only {can}");
        return Err(EngineError::Config(says));
    }
    Ok((GroupQueue::Files(queue), report))
}

fn arena(arena_bytes: u64) -> Result<AlignedBuffer, EngineError> {
    AlignedBuffer::new(arena_bytes as usize).map_err(|source| {
        EngineError::system(format!("reserving {arena_bytes} bytes of buffers"), source)
    })
}

fn null(depth: u32, arena_bytes: u64) -> Result<(GroupQueue, BackendReport), EngineError> {
    let arena = arena(arena_bytes)?;
    let huge_pages_advised = arena.is_huge_advised();
    let report = BackendReport {
        huge_pages_advised,
        ..BackendReport::without_files(BackendKind::Null, "the target is null", depth, arena_bytes)
    };
    Ok((GroupQueue::Null(NullQueue::new(depth, arena)), report))
}

/// Arguments for `drive`, except the queue.
struct DriveJob<'a> {
    source: &'a mut (dyn Source + 'static),
    pacing: AnyPacing,
    clock: Clock,
    config: DriveConfig,
    outbox: Outbox,
    stop: Stop<'a>,
}

impl DriveJob<'_> {
    /// Drives the operations. The loop is compiled separately in three cases: for a plan's streams
    /// in closed loops, for a plan's streams with other pacing, and for the source of calibrations.
    /// All other sources share one loop, which calls them through a pointer. On the null target,
    /// such calls would reduce the rate of a plan by a tenth.
    fn drive<Q: Queue>(self, queue: &mut Q) -> (DriveEnd, Result<(), EngineError>) {
        let Self { source, mut pacing, mut clock, config, outbox, stop } = self;
        let any: &mut dyn Any = source;
        let clock = &mut clock;
        if let Some(matrix) = any.downcast_mut::<MatrixSource>() {
            return match &mut pacing {
                AnyPacing::Closed(closed) => {
                    drive(queue, matrix, closed, clock, config, outbox, stop)
                }
                pacing => drive(queue, matrix, pacing, clock, config, outbox, stop),
            };
        }
        if let (Some(uniform), AnyPacing::Closed(closed)) =
            (any.downcast_mut::<Uniform>(), &mut pacing)
        {
            return drive(queue, uniform, closed, clock, config, outbox, stop);
        }
        drive(queue, source, &mut pacing, clock, config, outbox, stop)
    }
}
