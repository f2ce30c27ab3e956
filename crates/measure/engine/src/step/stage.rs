//! Drives the parts of a workload in parallel. Each part has its own thread.
//!
//! The threads own the objects that they use. If a thread waits in a system call that never
//! returns, for example on a frozen file system, the run can therefore abandon this thread and
//! still end with a report.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use plimsoll_evidence::observed::GeneratorThread;
use plimsoll_record::snapshot::IntervalSnapshot;
use plimsoll_sys::clock::monotonic_ns;
use plimsoll_sys::{cpu, inject};
use plimsoll_workload::step::StepWorkload;

use super::thread_timeouts::ThreadTimeouts;
use super::{Control, DriveArgs, WorkloadProgress, drive};
use crate::backend::{Backend, BackendConfig, BackendReport, Direct, FileSource, Prefer};
use crate::open_target::{DEV_NULL, HeldTarget};
use crate::placement::{self, Placement};
use crate::{EngineError, defect, stop_request};

/// Interval at which the coordinating thread checks the driving threads.
const TICK: Duration = Duration::from_millis(100);

/// Configuration of a stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Paths of the directories. `FileSpec::directory` is an index into this list.
    pub directories: Vec<PathBuf>,
    /// Open handles of these directories. The stage opens files relative to them.
    pub held: HeldTarget,
    /// Files that are missing. No operation reads these files.
    pub missing: Vec<PathBuf>,
    /// Form of queue that the stage uses if possible: io_uring or threads.
    pub prefer: Prefer,
    /// Direct I/O mode, which determines whether I/O bypasses the page cache.
    pub direct: Direct,
    /// True to poll the device for completions.
    pub poll_completions: bool,
    /// True to let a kernel thread fetch submissions.
    pub poll_submissions: bool,
    /// Maximum time for which a thread polls for completions before it sleeps, in ns.
    pub spin_ns: u64,
    /// True if the workload writes files.
    pub write: bool,
    /// Length of an interval in ns.
    pub interval_ns: u64,
    /// Interval in ns at which threads send histograms.
    pub histogram_interval_ns: u64,
    /// Time limit in ns. If I/Os are in flight and none of them completes in this time, the stage
    /// treats the storage as failed.
    pub outage_max_ns: u64,
}

/// Event that the coordinating thread receives.
pub enum Event {
    /// A thread has sent its records of an interval.
    Snapshot(Box<IntervalSnapshot>),
    /// A short time has passed since the previous event.
    Tick,
}

/// Result of a thread that drove one part.
pub struct PartResult<W> {
    /// Part of the workload that the thread drove; `None` if the thread panicked or was abandoned.
    pub workload: Option<W>,
    /// Report of the backend that the part used, or the error that stopped the thread.
    pub outcome: Result<BackendReport, EngineError>,
    /// CPU on which the thread was placed, and the reason. The CPU time of the thread is in its
    /// snapshots.
    pub thread: GeneratorThread,
}

impl<W> PartResult<W> {
    /// Creates the result of a thread that only returned an error.
    fn without(index: usize, error: EngineError) -> Self {
        Self { workload: None, outcome: Err(error), thread: unknown_thread(index) }
    }

    /// Returns true if the stage abandoned an I/O before it completed.
    pub fn is_abandoned(&self) -> bool {
        matches!(self.outcome, Err(EngineError::Abandoned { .. } | EngineError::NoAnswer { .. }))
    }
}

/// Drives `parts` until every part is done. After the first failure, the other threads end too. If
/// `on_event` panics, the threads are ended before the panic continues.
pub fn run_stage<W: StepWorkload + Send + 'static>(
    parts: Vec<W>,
    stage: &Stage,
    control: &Arc<Control>,
    read_progress: fn(&W) -> WorkloadProgress,
    mut on_event: impl FnMut(Event),
) -> Vec<PartResult<W>> {
    let (sender, receiver) = mpsc::channel();
    let mut threads = StageThreads::start(parts, stage, control, read_progress, &sender);
    drop(sender);
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(snapshot) => {
                threads.timeouts.record_progress(snapshot.thread as usize, monotonic_ns());
                on_event(Event::Snapshot(Box::new(snapshot)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        on_event(Event::Tick);
        if threads.poll_finished() {
            break;
        }
    }
    threads.end()
}

/// Driving threads of a stage. If this value is dropped before they end, the drop aborts the
/// threads and waits for them.
struct StageThreads<W> {
    control: Arc<Control>,
    results: Receiver<(usize, PartResult<W>)>,
    finished: Vec<Option<PartResult<W>>>,
    timeouts: ThreadTimeouts,
    what: String,
}

impl<W: StepWorkload + Send + 'static> StageThreads<W> {
    fn start(
        parts: Vec<W>,
        stage: &Stage,
        control: &Arc<Control>,
        read_progress: fn(&W) -> WorkloadProgress,
        snapshots: &mpsc::Sender<IntervalSnapshot>,
    ) -> Self {
        let cpus = cpu::allowed().unwrap_or_default();
        let places = placement::place_threads(
            &placement::wake_source(&stage.directories),
            parts.len(),
            &cpus,
        );
        let (sender, results) = mpsc::channel();
        let what = stage.directories.first().map(|path| path.display().to_string());
        let what = what.unwrap_or_else(|| "the target".to_owned());
        let timeouts = ThreadTimeouts::new(parts.len(), stage.interval_ns, stage.outage_max_ns);
        let control = Arc::clone(control);
        let mut threads = Self { control, results, finished: Vec::new(), timeouts, what };
        for (index, (workload, place)) in parts.into_iter().zip(places).enumerate() {
            threads.finished.push(None);
            let (stage, control) = (stage.clone(), Arc::clone(&threads.control));
            let (snapshots, sender) = (snapshots.clone(), sender.clone());
            let work = move || {
                let part = Part { index, place, stage: &stage, control: &control, read_progress };
                let ended = part.work(workload, snapshots);
                if ended.outcome.is_err() {
                    control.stop();
                }
                // If the target does not respond to one thread, it does not respond to the other
                // threads either.
                if let Err(EngineError::Defect(_) | EngineError::NoAnswer { .. }) = ended.outcome {
                    control.abort();
                }
                // If the stage has abandoned this thread, nobody receives the result.
                let _ = sender.send((index, ended));
            };
            let thread = std::thread::Builder::new().name(thread_name(index)).spawn(work);
            if let Err(error) = thread {
                let source = plimsoll_sys::SysError::from_io("clone", &error);
                let error = EngineError::system("starting a thread", source);
                threads.finished[index] = Some(PartResult::without(index, error));
                threads.control.abort();
            }
        }
        threads
    }
}

/// Returns a record of a thread of which only the name is known.
fn unknown_thread(index: usize) -> GeneratorThread {
    GeneratorThread { name: thread_name(index), spun_ns: Some(0), ..GeneratorThread::default() }
}

fn thread_name(index: usize) -> String {
    format!("group-{index}")
}

impl<W> StageThreads<W> {
    /// Collects the parts that are finished. Returns true when the grace period of the remaining
    /// threads is over.
    fn poll_finished(&mut self) -> bool {
        for (index, ended) in self.results.try_iter() {
            self.finished[index] = Some(ended);
        }
        let ended = &self.finished;
        let is_running = |thread: usize| ended.get(thread).is_some_and(Option::is_none);
        self.timeouts.abort_stalled_threads(&self.control, monotonic_ns(), is_running)
    }

    /// Waits for the threads as long as they make progress.
    fn wait_for_all(&mut self) {
        while !self.poll_finished() && self.finished.iter().any(Option::is_none) {
            match self.results.recv_timeout(TICK) {
                Ok((index, ended)) => self.finished[index] = Some(ended),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn end(mut self) -> Vec<PartResult<W>> {
        self.wait_for_all();
        let what = self.what.clone();
        let abandoned = || EngineError::Abandoned {
            what: what.clone(),
            after_ns: stop_request::THREAD_EXIT_NS,
        };
        let all = std::mem::take(&mut self.finished).into_iter().enumerate();
        all.map(|(index, ended)| ended.unwrap_or_else(|| PartResult::without(index, abandoned())))
            .collect()
    }
}

impl<W> Drop for StageThreads<W> {
    fn drop(&mut self) {
        if !self.finished.is_empty() {
            self.control.abort();
            self.wait_for_all();
        }
    }
}

/// Arguments for the thread that drives one part.
struct Part<'a, W> {
    index: usize,
    place: Placement,
    stage: &'a Stage,
    control: &'a Control,
    read_progress: fn(&W) -> WorkloadProgress,
}

impl<W: StepWorkload> Part<'_, W> {
    /// Drives the part until all its I/Os are done.
    fn work(self, mut workload: W, snapshots: mpsc::Sender<IntervalSnapshot>) -> PartResult<W> {
        let index = self.index;
        let mut thread = unknown_thread(index);
        let result = defect::catch_panic(|| {
            inject::point("step-thread");
            self.run(&mut workload, snapshots, &mut thread)
        });
        match result {
            Ok(outcome) => PartResult { workload: Some(workload), outcome, thread },
            // The panic may have happened in the middle of a change, so the part may be
            // inconsistent and must not be read.
            Err(defect) => PartResult::without(index, defect),
        }
    }

    fn run(
        self,
        workload: &mut W,
        snapshots: mpsc::Sender<IntervalSnapshot>,
        thread: &mut GeneratorThread,
    ) -> Result<BackendReport, EngineError> {
        let stage = self.stage;
        // In an open loop, a late wake-up would delay an operation.
        cpu::set_timer_slack_ns(1);
        let mut backend = Backend::open(config(workload, stage)?)?;
        let mut place = self.place;
        match backend.describe().worker_threads {
            // If the thread can't be pinned, it still works, but its rate varies more than the rate
            // of a pinned thread.
            0 => place.cpu = place.cpu.filter(|cpu| cpu::pin_thread(*cpu).is_ok()),
            workers => place = Placement::with_workers(workers),
        }
        (thread.cpu, thread.why) = (place.cpu.and_then(|cpu| u32::try_from(cpu).ok()), place.why);
        let result = drive(DriveArgs {
            workload,
            backend: &mut backend,
            control: self.control,
            snapshots,
            thread: u32::try_from(self.index).unwrap_or(u32::MAX),
            interval_ns: stage.interval_ns,
            histogram_interval_ns: stage.histogram_interval_ns,
            outage_max_ns: stage.outage_max_ns,
            read_progress: self.read_progress,
            ran_on: &mut thread.ran_on,
        });
        thread.ran_on.sort_unstable();
        if result == Err(EngineError::Stopped) && backend.settle(stop_request::SETTLE_NS) > 0 {
            let what = backend.paths().first().map(|path| path.display().to_string());
            let what = what.unwrap_or_else(|| "the target".to_owned());
            return Err(EngineError::Abandoned { what, after_ns: stop_request::SETTLE_NS });
        }
        result.map(|()| backend.describe().clone())
    }
}

fn config<W: StepWorkload>(workload: &W, stage: &Stage) -> Result<BackendConfig, EngineError> {
    let source = |file: &plimsoll_workload::step::FileSpec| {
        let directory = stage.directories.get(file.directory as usize).ok_or_else(|| {
            EngineError::Config(format!(
                "{} is in a directory that the plan does not list",
                file.name
            ))
        })?;
        let path = directory.join(&file.name);
        let path = if stage.missing.contains(&path) { DEV_NULL.into() } else { path };
        Ok(if stage.write { FileSource::existing(path) } else { FileSource::read_only(path) })
    };
    Ok(BackendConfig {
        files: workload.files().iter().map(source).collect::<Result<_, EngineError>>()?,
        arena_bytes: workload.arena_size_bytes(),
        depth: u32::try_from(workload.depth_max()).unwrap_or(u32::MAX),
        prefer: stage.prefer,
        direct: stage.direct,
        held: stage.held.clone(),
        poll_completions: stage.poll_completions,
        poll_submissions: stage.poll_submissions,
        spin_ns: stage.spin_ns,
        ..BackendConfig::default()
    })
}
