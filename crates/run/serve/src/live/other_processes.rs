//! Runs of the user's other processes. Each process that has viewers is polled by a thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use minijinja::Environment;
use plimsoll_live::process_status::{self, StatusError};
use plimsoll_live::state::State;
use plimsoll_runner::places::Places;
use tokio::sync::watch;

use super::{CHARTS_EVERY, DRAWN_EVERY, Drawing, publish};
use crate::events::Frames;
use crate::response::Problem;

/// Maximum number of processes in the list.
const LISTED_MAX: usize = 32;
/// Timeout for the response of a process when the list of processes is created.
const LIST_TIMEOUT: Duration = Duration::from_millis(300);
/// Timeout for a process that did not respond to the last request.
const SILENT_TIMEOUT: Duration = Duration::from_millis(20);

/// Runs of other processes.
#[derive(Debug)]
pub struct OtherProcesses {
    places: Places,
    streams: Arc<Mutex<StreamsByProcess>>,
    last_states: Arc<Mutex<LastStates>>,
}

/// Event streams, with the process id as key.
type StreamsByProcess = BTreeMap<u32, watch::Sender<Frames>>;
/// Last state received from each process.
type LastStates = BTreeMap<u32, State>;

impl OtherProcesses {
    /// Creates the list of processes for the user of these directories.
    pub fn new(places: Places) -> Self {
        Self { places, streams: Arc::default(), last_states: Arc::default() }
    }

    /// Returns the state of every process, without charts. Polls all processes in parallel, so that
    /// a stopped process does not delay the responses of other processes.
    pub fn all(&self) -> Vec<State> {
        let processes: Vec<u32> =
            process_status::processes(&self.places).into_iter().take(LISTED_MAX).collect();
        lock(&self.last_states).retain(|process, _| processes.contains(process));
        let poll_one = |process: u32| {
            let was_silent =
                lock(&self.last_states).get(&process).is_some_and(|last| last.is_silent);
            let timeout = if was_silent { SILENT_TIMEOUT } else { LIST_TIMEOUT };
            poll(&self.places, &self.last_states, process, false, timeout)
        };
        // Most users have at most one other process.
        if let [one] = processes[..] {
            return poll_one(one).into_iter().collect();
        }
        std::thread::scope(|scope| {
            let poll_one = &poll_one;
            let threads = processes.iter().map(|process| {
                let process = *process;
                let thread = std::thread::Builder::new();
                thread.spawn_scoped(scope, move || poll_one(process)).ok()
            });
            let threads: Vec<_> = threads.collect();
            // A panic in this thread is a defect, which the panic hook has already reported.
            threads
                .into_iter()
                .flatten()
                .filter_map(|thread| thread.join().ok().flatten())
                .collect()
        })
    }

    /// Returns the state of a process.
    ///
    /// # Errors
    /// The process does not report a run.
    pub fn one(&self, process: u32) -> Result<State, Problem> {
        poll(&self.places, &self.last_states, process, true, process_status::REQUEST_TIMEOUT)
            .ok_or_else(|| no_run(process))
    }

    /// Subscribes to the events of a process.
    ///
    /// # Errors
    /// The process does not respond, or a thread cannot be started.
    pub fn watch(
        &self,
        process: u32,
        templates: &Arc<Environment<'static>>,
    ) -> Result<watch::Receiver<Frames>, Problem> {
        let known = |streams: &StreamsByProcess| {
            let known = streams.get(&process).filter(|known| known.borrow().end.is_none());
            known.map(watch::Sender::subscribe)
        };
        if let Some(frames) = known(&lock(&self.streams)) {
            return Ok(frames);
        }
        // The lock is not held during this request, so that a process that does not respond does
        // not delay requests to other processes.
        let first = self.one(process)?;
        let mut streams = lock(&self.streams);
        if let Some(frames) = known(&streams) {
            return Ok(frames);
        }
        let (sender, frames) = watch::channel(Frames::default());
        publish(&first, &Drawing { templates, places: &self.places }, &sender, true);
        let poller = Poller {
            places: self.places.clone(),
            process,
            templates: Arc::clone(templates),
            sender: sender.clone(),
            streams: Arc::clone(&self.streams),
            last_states: Arc::clone(&self.last_states),
        };
        let thread = std::thread::Builder::new().name("poller".to_owned());
        thread.spawn(move || poller.run(first)).map_err(|error| {
            let says = format!("cannot start a thread: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, says)
        })?;
        streams.insert(process, sender);
        Ok(frames)
    }
}

fn no_run(process: u32) -> Problem {
    Problem::not_found(format!(
        "process {process} does not belong to this user or has no run in progress"
    ))
    .hint("see /runs for finished runs")
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls a process. Returns `None` if the process has ended, and its last state, marked as
/// outdated, if it does not respond.
fn poll(
    places: &Places,
    last_states: &Mutex<LastStates>,
    process: u32,
    with_charts: bool,
    timeout: Duration,
) -> Option<State> {
    match process_status::request_state(places, process, with_charts, timeout) {
        Ok(state) => {
            let mut states = lock(last_states);
            let last = states.entry(process).or_default();
            // Charts are fetched less often than the other data, so the last charts are kept. If
            // the start time differs, another process may have the same id, so the charts are
            // replaced.
            let charts = match with_charts || last.started_unix_ns != state.started_unix_ns {
                true => state.charts.clone(),
                false => std::mem::take(&mut last.charts),
            };
            *last = state.clone();
            last.charts = charts;
            Some(state)
        }
        Err(StatusError::Silent) => {
            let mut states = lock(last_states);
            let last = states.entry(process).or_default();
            // It is only known that the process exists; its state is unknown.
            last.is_under_way |= last.process.is_none();
            (last.process, last.is_silent) = (Some(process), true);
            Some(last.clone())
        }
        Err(StatusError::Gone) => {
            lock(last_states).remove(&process);
            None
        }
    }
}

/// Polls a process, and renders its state.
struct Poller {
    places: Places,
    process: u32,
    templates: Arc<Environment<'static>>,
    sender: watch::Sender<Frames>,
    streams: Arc<Mutex<StreamsByProcess>>,
    last_states: Arc<Mutex<LastStates>>,
}

impl Poller {
    fn run(self, first: State) {
        let (mut known, mut charts) = (first, Instant::now());
        loop {
            std::thread::sleep(Duration::min(DRAWN_EVERY, CHARTS_EVERY));
            {
                // New viewers also acquire this lock. They therefore either find this stream or
                // start another stream.
                let mut streams = lock(&self.streams);
                if self.sender.receiver_count() == 0 || !known.is_under_way {
                    // Another stream is not removed: it may belong to a later process with the same
                    // id.
                    if streams.get(&self.process).is_some_and(|of| of.same_channel(&self.sender)) {
                        streams.remove(&self.process);
                    }
                    return;
                }
            }
            let with_charts = charts.elapsed() >= CHARTS_EVERY;
            match poll(
                &self.places,
                &self.last_states,
                self.process,
                with_charts,
                process_status::REQUEST_TIMEOUT,
            ) {
                Some(state) => known = state,
                None => known.is_under_way = false,
            }
            let drawing = Drawing { templates: &self.templates, places: &self.places };
            publish(&known, &drawing, &self.sender, with_charts && known.is_under_way);
            if with_charts {
                charts = Instant::now();
            }
        }
    }
}
