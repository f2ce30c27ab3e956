//! The current or last run of this server, the runs of this user's other processes
//! ([`other_processes`]), and the viewers of these runs.
//!
//! A thread receives the run's events (`plimsoll_live`). At most twice a second, it renders them
//! ([`render`]) once for all viewers.

pub mod other_processes;
pub mod render;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use minijinja::Environment;
use plimsoll_live::state::State;
use plimsoll_live::state_listener::StateListener;
use plimsoll_runner::listener::Listener;
use plimsoll_runner::places::Places;
use plimsoll_runner::run::{Event, Options, RunHandle, Runner, Work};
use tokio::sync::Semaphore;
use tokio::sync::watch;

use self::other_processes::OtherProcesses;
use crate::events::{Frames, Viewer, event};
use crate::request::quoted;
use crate::response::Problem;

/// Maximum concurrent viewers. Any further viewer sees a page that is not updated.
pub const VIEWERS_MAX: usize = 100;
/// Minimum interval between updates of status and tables.
const DRAWN_EVERY: Duration = Duration::from_millis(500);
/// Minimum interval between updates of charts.
const CHARTS_EVERY: Duration = Duration::from_secs(2);
/// The run.
pub struct Live {
    /// Directories of the ledger and bundles of runs on this host.
    pub places: Places,
    templates: Arc<Environment<'static>>,
    current: Mutex<Option<CurrentRun>>,
    viewers: Arc<Semaphore>,
    /// Runs of other processes.
    pub others: OtherProcesses,
}

struct CurrentRun {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    frames: watch::Receiver<Frames>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub struct LiveHtml {
    /// The phase, its remaining time, and rates.
    pub now: String,
    /// Tables.
    pub more: String,
    pub charts: String,
}

impl Live {
    /// No run has been started yet.
    pub fn new(places: Places, templates: Arc<Environment<'static>>) -> Self {
        let viewers = Arc::new(Semaphore::new(VIEWERS_MAX));
        let others = OtherProcesses::new(places.clone());
        Self { places, templates, current: Mutex::new(None), viewers, others }
    }

    /// Starts accepted work. Each of its runs checks the allowed targets in `options` again. The
    /// work is stopped after `time_max`. When the work has ended, `after` is called before the
    /// viewers are notified.
    ///
    /// # Errors
    /// Another run is in progress, or a thread cannot be started.
    pub fn start(
        &self,
        work: Work,
        options: Options,
        time_max: Option<Duration>,
        after: impl FnOnce() + Send + 'static,
    ) -> Result<(), Problem> {
        let mut current = self.lock();
        if let Some(known) = current.as_ref().map(|one| lock(&one.state)).filter(|s| s.is_under_way)
        {
            let says = format!(
                "a run of {} is in progress, and this server executes only one run at a time",
                known.plan
            );
            return Err(Problem::new(StatusCode::CONFLICT, says)
                .hint("wait until this run has finished, or stop it on /live"));
        }
        let name = work.name().to_owned();
        let handle = Runner::carry_out(work, options)?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let state = Arc::new(Mutex::new(State::new(&name, now)));
        let stop = handle.stop_flag();
        let (sender, frames) = watch::channel(Frames::default());
        let (of, templates) = (Arc::clone(&state), Arc::clone(&self.templates));
        let places = self.places.clone();
        let follow = move || {
            let drawing = Drawing { templates: &templates, places: &places };
            follow(handle, time_max, &of, &drawing, &sender);
            // This must happen before viewers are notified of the end, because the notification
            // makes them load the report.
            after();
            let mut known = lock(&of);
            known.end();
            publish(&known, &drawing, &sender, true);
        };
        let thread = std::thread::Builder::new().name("live".to_owned()).spawn(follow);
        let thread = thread.map_err(|error| {
            let says = format!("cannot start a thread: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, says)
        })?;
        *current = Some(CurrentRun { state, stop, frames, thread: Some(thread) });
        Ok(())
    }

    /// Requests that the run stops. Results that were already measured are preserved.
    ///
    /// # Errors
    /// No run is in progress.
    pub fn stop(&self) -> Result<(), Problem> {
        let current = self.lock();
        let known = current.as_ref().filter(|one| lock(&one.state).is_under_way);
        let Some(known) = known else {
            return Err(Problem::new(StatusCode::CONFLICT, "no run of this server is in progress")
                .hint("stop a run of another process in the terminal where it was started"));
        };
        known.stop.store(true, Ordering::Relaxed);
        lock(&known.state).is_stopping = true;
        Ok(())
    }

    /// Stops the run and waits until it has ended. Called when the server ends.
    pub fn end(&self) {
        let mut current = self.lock();
        let Some(known) = current.as_mut() else { return };
        known.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = known.thread.take() {
            // Panics of the run have already been caught by the runner.
            drop(thread.join());
        }
    }

    /// Returns the state of the run; `None` if this server has started none.
    pub fn with<T>(&self, query: impl FnOnce(&State) -> T) -> Option<T> {
        let state = self.lock().as_ref().map(|one| Arc::clone(&one.state));
        state.map(|state| query(&lock(&state)))
    }

    /// Returns the HTML of the server's run; `None` if the server has not started a run.
    ///
    /// # Errors
    /// The template has a defect.
    pub fn render(&self) -> Result<Option<LiveHtml>, Problem> {
        self.with(|state| self.render_state(state)).transpose()
    }

    /// Returns the HTML of a run's state.
    ///
    /// # Errors
    /// The template has a defect.
    pub fn render_state(&self, state: &State) -> Result<LiveHtml, Problem> {
        let (now, more) = render::status_and_tables(state, &self.templates, &self.places)?;
        Ok(LiveHtml { now, more, charts: render::charts(state) })
    }

    /// Adds a viewer of this server's run, or of a run of another process of this user.
    ///
    /// # Errors
    /// No run has been started, or there are too many viewers.
    pub fn watch(&self, process: Option<u32>) -> Result<Viewer, Problem> {
        let slot = Arc::clone(&self.viewers).try_acquire_owned().map_err(|_| {
            let says = format!("the limit of {VIEWERS_MAX} viewers has been reached");
            Problem::new(StatusCode::TOO_MANY_REQUESTS, says)
                .hint("reload the page to see the current state")
        })?;
        let frames = match process {
            Some(process) => self.others.watch(process, &self.templates)?,
            None => {
                let frames = self.lock().as_ref().map(|one| one.frames.clone());
                frames.ok_or_else(|| Problem::not_found("this server has not started a run yet"))?
            }
        };
        Ok(Viewer::new(frames, slot))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<CurrentRun>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes events until the last has arrived, and renders the state at intervals.
fn follow(
    handle: RunHandle,
    time_max: Option<Duration>,
    state: &Arc<Mutex<State>>,
    drawing: &Drawing<'_>,
    frames: &watch::Sender<Frames>,
) {
    let (mut drawn, mut charts) = (None::<Instant>, None::<Instant>);
    let is_due =
        |last: Option<Instant>, every: Duration| last.is_none_or(|at| at.elapsed() >= every);
    let (began, stop) = (Instant::now(), handle.stop_flag());
    let mut hosts = StateListener::of(Arc::clone(state));
    for event in handle {
        if let Event::Fleet(now) = &event {
            hosts.fleet(now);
        }
        let mut known = lock(state);
        known.apply(event);
        let is_over = time_max.is_some_and(|most| began.elapsed() >= most);
        if is_over && !stop.swap(true, Ordering::Relaxed) {
            known.is_stopping = true;
            let says = "the run is being stopped, because it reached the time limit for runs on a \
                        model";
            known.apply(Event::Warning(says.to_owned()));
        }
        if is_due(drawn, DRAWN_EVERY) {
            let with_charts = is_due(charts, CHARTS_EVERY);
            publish(&known, drawing, frames, with_charts);
            drop(known);
            drawn = Some(Instant::now());
            if with_charts {
                charts = drawn;
            }
        }
    }
}

/// Parameters for rendering the fragments of a run's live page.
struct Drawing<'a> {
    templates: &'a Environment<'static>,
    /// Directories of the user whose prompts are shown.
    places: &'a Places,
}

fn publish(
    state: &State,
    drawing: &Drawing<'_>,
    frames: &watch::Sender<Frames>,
    with_charts: bool,
) {
    // A defect in a template is ignored here. It is visible on the page itself, which uses the same
    // template.
    let drawn = render::status_and_tables(state, drawing.templates, drawing.places);
    let (now, more) = drawn.unwrap_or_default();
    let charts = with_charts.then(|| event("charts", &render::charts(state)));
    frames.send_modify(|frames| {
        frames.now = [event("now", &now), event("more", &more)].concat().into();
        if let Some(charts) = charts {
            (frames.charts, frames.charts_number) = (charts, frames.charts_number + 1);
        }
        if !state.is_under_way {
            let path = state.report().map(|id| format!("/runs/{}", quoted(id)));
            frames.end = Some(event("end", &path.unwrap_or_default()));
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_plan::Plan;

    use super::*;

    #[test]
    fn what_takes_longer_than_it_may_is_stopped_in_order_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (state, runs, cache) = (at("state"), at("runs"), at("cache"));
        let live =
            Live::new(Places { state, runs, cache, signer: None }, Arc::new(Environment::new()));
        let text = "version = 1\n[target]\nmodel = \"single-hdd\"\n[workload.matrix]\nfile_size = \
                    \"1MiB\"\n[phases]\nmeasure = \"1h\"\n[evidence]\ninterval = \"1s\"\n";
        let work = Work::Plan(Plan::parse(text, "plan.toml").unwrap());
        let options = Options::new(live.places.clone());
        live.start(work, options, Some(Duration::ZERO), || {}).unwrap();
        while live.with(|state| state.is_under_way).unwrap() {
            std::thread::sleep(Duration::from_millis(20));
        }
        live.with(|state| {
            assert_eq!(state.ended[0].verdict, "INCONCLUSIVE");
            assert!(
                state.notes.iter().any(|note| note.is_warning && note.says.contains("time limit"))
            );
        });
    }
}
