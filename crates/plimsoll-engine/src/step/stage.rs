//! Drives several parts of a workload side by side, one thread each.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use plimsoll_evidence::observed::GeneratorThread;
use plimsoll_sys::cpu;
use plimsoll_workload::step::StepWorkload;

use super::{Control, Driven, Glance, Snapshot, drive};
use crate::EngineError;
use crate::backend::{Backend, BackendConfig, BackendReport, Direct, FileSource, Prefer};
use crate::own::NOTHING;
use crate::placement::{self, Place};

/// The coordinating thread looks around this often.
const TICK: Duration = Duration::from_millis(100);

/// How the parts are driven.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Directories that `FileSpec::directory` counts.
    pub directories: Vec<PathBuf>,
    /// Files that are missing and from which nothing is read.
    pub missing: Vec<PathBuf>,
    /// io_uring or threads.
    pub prefer: Prefer,
    /// Whether to bypass the page cache.
    pub direct: Direct,
    /// Poll the device for completions.
    pub poll_completions: bool,
    /// Let a kernel thread fetch submissions.
    pub poll_submissions: bool,
    /// Whether files are written.
    pub write: bool,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Length of the interval of histograms.
    pub histogram_interval_ns: u64,
}

/// What the coordinating thread hears.
pub enum Event {
    /// A thread hands over an interval.
    Snapshot(Box<Snapshot>),
    /// Time has passed.
    Tick,
}

/// A part after it was driven.
pub struct Ended<W> {
    /// The part.
    pub workload: W,
    /// How its I/O was issued, or what stopped it.
    pub outcome: Result<BackendReport, EngineError>,
    /// Where its thread ran, and why. Its CPU time is in its snapshots.
    pub thread: GeneratorThread,
}

/// Drives `parts` until each is done. The first that fails asks the others to end.
pub fn run_stage<W: StepWorkload + Send>(
    parts: Vec<W>,
    stage: &Stage,
    control: &Control,
    glance: fn(&W) -> Glance,
    mut on_event: impl FnMut(Event),
) -> Vec<Ended<W>> {
    let cpus = cpu::allowed().unwrap_or_default();
    let waits_for = placement::waits_for(&stage.directories);
    let places = placement::place(&waits_for, parts.len(), &cpus);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .into_iter()
            .zip(places)
            .enumerate()
            .map(|(index, (mut workload, place))| {
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut thread = GeneratorThread {
                        name: format!("group-{index}"),
                        spun_ns: Some(0),
                        ..GeneratorThread::default()
                    };
                    let part = Part { index, place, stage, control, glance };
                    let outcome = part.run(&mut workload, sender, &mut thread);
                    if outcome.is_err() {
                        control.stop();
                    }
                    Ended { workload, outcome, thread }
                })
            })
            .collect();
        drop(sender);
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(snapshot) => on_event(Event::Snapshot(Box::new(snapshot))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            on_event(Event::Tick);
        }
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// What one thread drives its part with.
struct Part<'a, W> {
    index: usize,
    place: Place,
    stage: &'a Stage,
    control: &'a Control,
    glance: fn(&W) -> Glance,
}

impl<W: StepWorkload> Part<'_, W> {
    fn run(
        self,
        workload: &mut W,
        snapshots: mpsc::Sender<Snapshot>,
        thread: &mut GeneratorThread,
    ) -> Result<BackendReport, EngineError> {
        let stage = self.stage;
        let mut backend = Backend::open(config(workload, stage)?)?;
        let mut place = self.place;
        match backend.describe().worker_threads {
            // A thread that can't be pinned still works, if less steadily.
            0 => place.cpu = place.cpu.filter(|cpu| cpu::pin_to(*cpu).is_ok()),
            workers => place = Place::with_workers(workers),
        }
        (thread.cpu, thread.why) = (place.cpu.and_then(|cpu| u32::try_from(cpu).ok()), place.why);
        let driven = drive(Driven {
            workload,
            backend: &mut backend,
            control: self.control,
            snapshots,
            thread: u32::try_from(self.index).unwrap_or(u32::MAX),
            interval_ns: stage.interval_ns,
            histogram_interval_ns: stage.histogram_interval_ns,
            glance: self.glance,
            ran_on: &mut thread.ran_on,
        });
        thread.ran_on.sort_unstable();
        driven?;
        Ok(backend.describe().clone())
    }
}

fn config<W: StepWorkload>(workload: &W, stage: &Stage) -> Result<BackendConfig, EngineError> {
    let source = |file: &plimsoll_workload::step::FileSpec| {
        let directory = stage.directories.get(file.directory as usize).ok_or_else(|| {
            EngineError::Config(format!("{} lies in a directory that is not named", file.name))
        })?;
        let path = directory.join(&file.name);
        let path = if stage.missing.contains(&path) { NOTHING.into() } else { path };
        Ok(if stage.write { FileSource::existing(path) } else { FileSource::read_only(path) })
    };
    Ok(BackendConfig {
        files: workload.files().iter().map(source).collect::<Result<_, EngineError>>()?,
        arena_bytes: workload.arena_size_bytes(),
        depth: u32::try_from(workload.depth_max()).unwrap_or(u32::MAX),
        prefer: stage.prefer,
        direct: stage.direct,
        poll_completions: stage.poll_completions,
        poll_submissions: stage.poll_submissions,
        ..BackendConfig::default()
    })
}
