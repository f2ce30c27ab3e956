//! Runs streams. Each group of clients has one thread. All threads share one schedule and one
//! writer.

mod group;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use plimsoll_record::collect::{Collector, Interval};
use plimsoll_record::drain;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::cpu::{CpuTime, process_time};
use plimsoll_workload::planned::pace::{CapTurns, Pace};

pub use self::report::{GroupReport, RemoteCalls, RunReport};
pub use super::collect::Event;
use super::collect::collect;
use super::driving_threads::DrivingThreads;
use super::outbox::connect;
use super::source::Source;
use crate::backend::BackendConfig;
use crate::issue::OUTAGE_NS_MAX;
use crate::nfs::NfsTarget;
use crate::placement::Placement;
use crate::s3::S3Target;
use crate::{EngineError, stop_request};
use group::{ReadySignal, run_group};

/// Interval at which the coordinator checks the threads while they open their targets.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Length of the measurement if the run is a pass over data. It is practically unlimited, because
/// the pass ends when all data is processed.
pub(crate) const UNTIL_DONE_NS: u64 = u64::MAX / 4;

/// Time from the moment at which all threads are ready until the load starts, in ns.
const LEAD_NS: u64 = 5_000_000;

/// Target on which a group executes its operations.
#[derive(Debug)]
pub enum Target {
    /// Null target: every operation completes immediately.
    Null,
    /// Files on this host. The run itself sets the queue depth and the arena.
    Files(BackendConfig),
    /// NFS exports.
    Nfs(NfsTarget),
    /// S3 bucket.
    S3(Box<S3Target>),
}

/// A group: the clients that one thread drives.
#[derive(Debug)]
pub struct Group<S> {
    pub name: String,
    /// CPU on which the thread is placed, and the reason.
    pub place: Placement,
    /// Target on which the thread executes its operations.
    pub target: Target,
    /// Source that chooses the operations.
    pub source: S,
    pub clients: u32,
    /// Pacing that determines when operations start.
    pub pace: Pace,
    /// Rate cap for closed loops: each operation starts at its time on this schedule or later.
    /// `None` if the rate is not limited.
    pub cap: Option<CapTurns>,
    /// Size of the largest operation in bytes.
    pub size_bytes_max: u32,
    /// Maximum number of operations in the group. After that, the group ends.
    pub operations_max: u64,
    /// Time in ns before a scheduled start at which the thread stops sleeping and begins to poll
    /// the clock.
    pub spin_ns: u64,
}

impl<S> Group<S> {
    /// Replaces the source of the group. Returns the new group and the old source.
    fn replace_source<T>(self, source: T) -> (Group<T>, S) {
        let Self { name, place, target, clients, pace, cap, .. } = self;
        let (size_bytes_max, operations_max) = (self.size_bytes_max, self.operations_max);
        let spin_ns = self.spin_ns;
        let group = Group {
            name,
            place,
            target,
            source,
            clients,
            pace,
            cap,
            size_bytes_max,
            operations_max,
            spin_ns,
        };
        (group, self.source)
    }
}

/// Durations and options of a run of streams.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Names of all classes. [`super::source::Op::class`] is an index into this list.
    pub classes: Vec<String>,
    /// Length of the warm-up before the measurement, in ns. The warm-up is recorded separately.
    pub warm_up_ns: u64,
    /// Length of the measurement in ns.
    pub measure_ns: u64,
    /// Length of an interval in ns. It is at least 10 ms.
    pub interval_ns: u64,
    /// Time for which the threads wait after the stop for operations in flight, in ns ([`drain`]).
    pub drain_ns: u64,
    /// Time after the stop during which the threads still start operations that were due before the
    /// stop, in ns.
    pub backlog_ns: u64,
    /// True if the run also records totals for each client. This takes some hundred KiB of memory
    /// for each client and class.
    pub per_client: bool,
    /// True if the run continues after a failed operation.
    pub carry_on: bool,
    /// Maximum time for which a thread polls for completions before it sleeps, in ns.
    pub spin_ns: u64,
    /// Time limit in ns. If no operation completes in this time, the run treats the storage of this
    /// host as failed.
    pub outage_max_ns: u64,
}

impl RunConfig {
    /// Creates a configuration with the given classes, a measurement of `measure_ns` and intervals
    /// of one second.
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
            spin_ns: 0,
            outage_max_ns: OUTAGE_NS_MAX,
        }
    }
}

/// Shortest interval.
pub const INTERVAL_NS_MIN: u64 = 10_000_000;

/// Runs `groups` until the measurement is over, until `stop` becomes true, or until an operation
/// fails. For each complete interval, calls `each` on the calling thread with the row of this
/// interval.
///
/// # Errors
/// Fails if a target can't be opened or if a queue fails. If only an operation fails, this function
/// returns no error, and [`GroupReport::failure`] contains the operation.
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
    let (mut report, _) = run_with_events(config, groups, stop, &mut rows)?;
    report.error.take().map_or(Ok(report), Err)
}

/// Does the same as [`run`], but sends events to `on_event`. Also returns the sources of the
/// threads. If a thread panicked or was abandoned, its source is missing. If a run that has started
/// ends early because of an error, [`RunReport::error`] contains this error.
///
/// # Errors
/// Fails if a target can't be opened.
pub fn run_with_events<S: Source + Send + 'static>(
    config: &RunConfig,
    groups: Vec<Group<S>>,
    stop: &AtomicBool,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<(RunReport, Vec<Option<S>>), EngineError> {
    let classes = config.classes.len().max(1);
    let cells: Vec<usize> = groups.iter().map(|group| group.clients as usize * classes).collect();
    let (inbox, ends) = connect(&cells);
    let mut collected = Collector::new(classes, &cells, config.per_client);
    let cpu = process_time();
    let (ready_out, ready_in) = channel();
    let silence_max_ns = silence_max_ns(config, &groups);
    let (mut threads, mut returns, mut gates) = (DrivingThreads::new(), Vec::new(), Vec::new());
    for (group, (outbox, back)) in groups.into_iter().zip(ends) {
        let (gate, at_gate) = channel();
        let (ready, config) = (ready_out.clone(), config.clone());
        threads.start(&group.name.clone(), move |flags| {
            let ready = ReadySignal(Some(ready));
            let (group, mut source) = group.replace_source(());
            let (group, ()) = group.replace_source(&mut source as &mut (dyn Source + 'static));
            let report = run_group(group, &config, outbox, ready, &at_gate, flags)?;
            Ok(report.map(|report| (report, source)))
        });
        returns.push(back);
        gates.push(gate);
    }
    drop(ready_out);
    let flags = Arc::clone(&threads.flags);
    let is_ready = wait_until_ready(&ready_in, gates.len(), stop, &mut threads, on_event);
    let mut start_ns = monotonic_ns() + LEAD_NS;
    if is_ready {
        on_event(Event::Ready { start_ns: &mut start_ns });
    }
    let measure_from_ns = start_ns + config.warm_up_ns;
    if is_ready {
        on_event(Event::Starts { measure_from_ns });
        for gate in &gates {
            // If a thread has ended, its result states the reason.
            let _ = gate.send(start_ns);
        }
        if let Some(silence_max_ns) = silence_max_ns {
            threads.limit_silence(silence_max_ns, start_ns);
        }
        let mut forward = |event: Event<'_>| {
            on_event(event);
            flags.forward_stop(stop);
        };
        collect(&mut collected, &inbox, &returns, &mut threads, &mut forward);
    }
    drop(gates);
    let results = threads.end();
    let (mut report, sources) = assemble_report(results, is_ready, measure_from_ns, collected)?;
    report.process_cpu = process_time().since(&cpu);
    report.stop_error_ns = flags.late_ns.load(Ordering::Relaxed);
    Ok((report, sources))
}

/// Returns the maximum time between two messages of a thread. Returns `None` if the target is a
/// server, because the client of the server has its own time limit.
fn silence_max_ns<S>(config: &RunConfig, groups: &[Group<S>]) -> Option<u64> {
    let is_remote = |group: &Group<S>| matches!(group.target, Target::Nfs(_) | Target::S3(_));
    let interval_ns = config.interval_ns.max(INTERVAL_NS_MIN);
    let silence_max_ns = stop_request::silence_max_ns(interval_ns, config.outage_max_ns);
    (!groups.iter().any(is_remote)).then_some(silence_max_ns)
}

/// Waits until all threads have opened their targets, and then returns true. Returns false if a
/// thread failed. Also returns false shortly after the operator has requested a stop.
fn wait_until_ready<L: Send + 'static>(
    ready: &Receiver<bool>,
    thread_count: usize,
    stop: &AtomicBool,
    threads: &mut DrivingThreads<L>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> bool {
    let mut answers = 0;
    while answers < thread_count {
        match ready.recv_timeout(POLL_INTERVAL) {
            Ok(true) => answers += 1,
            Ok(false) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => {
                on_event(Event::Tick);
                threads.flags.forward_stop(stop);
                // A thread that has ended either was never ready, or has panicked after it was
                // ready.
                if threads.poll_finished() || threads.flags.abort.load(Ordering::Relaxed) {
                    return false;
                }
            }
        }
    }
    true
}

/// Creates the report from the results of all threads.
fn assemble_report<S>(
    results: Vec<Result<Option<(GroupReport, S)>, EngineError>>,
    started: bool,
    measure_from_ns: u64,
    collected: Collector,
) -> Result<(RunReport, Vec<Option<S>>), EngineError> {
    let (mut groups, mut sources, mut error) = (Vec::new(), Vec::new(), None);
    for result in results {
        let source = match result {
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

#[cfg(test)]
mod tests;
