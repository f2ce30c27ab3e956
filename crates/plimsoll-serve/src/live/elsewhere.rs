//! Runs of this user's other processes, as these tell of them. One that is watched is asked by a thread of its own, for as
//! long as somebody watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use minijinja::Environment;
use plimsoll_runner::live::feed::{self, Unheard};
use plimsoll_runner::live::state::State;
use plimsoll_runner::places::Places;
use tokio::sync::watch;

use super::{CHARTS_EVERY, DRAWN_EVERY, tell};
use crate::answer::Problem;
use crate::watched::Frames;

/// Processes that are listed.
const LISTED_MAX: usize = 32;
/// The longest that a process may take to answer for a list.
const LISTED_WITHIN: Duration = Duration::from_millis(300);
/// And one that did not the last time.
const SILENT_WITHIN: Duration = Duration::from_millis(20);

/// Runs of other processes.
#[derive(Debug)]
pub struct Elsewhere {
    places: Places,
    watched: Arc<Mutex<Watched>>,
    heard: Arc<Mutex<Heard>>,
}

/// Those that are watched, by their processes.
type Watched = BTreeMap<u32, watch::Sender<Frames>>;
/// What each process told last.
type Heard = BTreeMap<u32, State>;

impl Elsewhere {
    /// Of the user whose places these are.
    pub fn new(places: Places) -> Self {
        Self { places, watched: Arc::default(), heard: Arc::default() }
    }

    /// What each process knows of its run, without charts. All are asked at once: one that is stopped holds nobody up.
    pub fn all(&self) -> Vec<State> {
        let processes: Vec<u32> =
            feed::processes(&self.places).into_iter().take(LISTED_MAX).collect();
        lock(&self.heard).retain(|process, _| processes.contains(process));
        let ask = |process: u32| {
            let was_silent = lock(&self.heard).get(&process).is_some_and(|last| last.is_silent);
            let patience = if was_silent { SILENT_WITHIN } else { LISTED_WITHIN };
            asked(&self.places, &self.heard, process, false, patience)
        };
        // Most users have one at most.
        if let [one] = processes[..] {
            return ask(one).into_iter().collect();
        }
        std::thread::scope(|scope| {
            let ask = &ask;
            let threads = processes.iter().map(|process| {
                let process = *process;
                let thread = std::thread::Builder::new();
                thread.spawn_scoped(scope, move || ask(process)).ok()
            });
            let threads: Vec<_> = threads.collect();
            // A panic of one is a defect that was told.
            threads
                .into_iter()
                .flatten()
                .filter_map(|thread| thread.join().ok().flatten())
                .collect()
        })
    }

    /// What a process knows of its run.
    ///
    /// # Errors
    /// A process that tells of no run.
    pub fn one(&self, process: u32) -> Result<State, Problem> {
        asked(&self.places, &self.heard, process, true, feed::PATIENCE)
            .ok_or_else(|| nothing(process))
    }

    /// What is sent to those who watch it.
    ///
    /// # Errors
    /// A process that tells nothing, a thread that can't be started.
    pub fn watch(
        &self,
        process: u32,
        templates: &Arc<Environment<'static>>,
    ) -> Result<watch::Receiver<Frames>, Problem> {
        let known = |watched: &Watched| {
            let known = watched.get(&process).filter(|known| known.borrow().end.is_none());
            known.map(watch::Sender::subscribe)
        };
        if let Some(frames) = known(&lock(&self.watched)) {
            return Ok(frames);
        }
        // Others are not held up by one that does not answer.
        let first = self.one(process)?;
        let mut watched = lock(&self.watched);
        if let Some(frames) = known(&watched) {
            return Ok(frames);
        }
        let (sender, frames) = watch::channel(Frames::default());
        tell(&first, templates, &sender, true);
        let follow = Follow {
            places: self.places.clone(),
            process,
            templates: Arc::clone(templates),
            sender: sender.clone(),
            watched: Arc::clone(&self.watched),
            heard: Arc::clone(&self.heard),
        };
        let thread = std::thread::Builder::new().name("elsewhere".to_owned());
        thread.spawn(move || follow.until_nobody_watches(first)).map_err(|error| {
            let says = format!("cannot start a thread: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, says)
        })?;
        watched.insert(process, sender);
        Ok(frames)
    }
}

fn nothing(process: u32) -> Problem {
    Problem::nothing(format!("process {process} of this user tells of no run"))
        .hint("one that has ended is in the list of runs")
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a process; `None`: it has ended. Of one that does not answer it is what it told last, which says so.
fn asked(
    places: &Places,
    heard: &Mutex<Heard>,
    process: u32,
    with_charts: bool,
    patience: Duration,
) -> Option<State> {
    match feed::ask(places, process, with_charts, patience) {
        Ok(state) => {
            let mut heard = lock(heard);
            let last = heard.entry(process).or_default();
            // A later process may have its number; charts are asked for less often.
            let charts = match with_charts || last.started_unix_ns != state.started_unix_ns {
                true => state.charts.clone(),
                false => std::mem::take(&mut last.charts),
            };
            *last = state.clone();
            last.charts = charts;
            Some(state)
        }
        Err(Unheard::Silent) => {
            let mut heard = lock(heard);
            let last = heard.entry(process).or_default();
            // Nothing is known of it but that it is there.
            last.is_under_way |= last.process.is_none();
            (last.process, last.is_silent) = (Some(process), true);
            Some(last.clone())
        }
        Err(Unheard::Gone) => {
            lock(heard).remove(&process);
            None
        }
    }
}

/// Asks a process, and draws what is sent.
struct Follow {
    places: Places,
    process: u32,
    templates: Arc<Environment<'static>>,
    sender: watch::Sender<Frames>,
    watched: Arc<Mutex<Watched>>,
    heard: Arc<Mutex<Heard>>,
}

impl Follow {
    fn until_nobody_watches(self, first: State) {
        let (mut known, mut charts) = (first, Instant::now());
        loop {
            std::thread::sleep(Duration::min(DRAWN_EVERY, CHARTS_EVERY));
            {
                // Whoever comes next holds this lock too, and finds it watched or not.
                let mut watched = lock(&self.watched);
                if self.sender.receiver_count() == 0 || !known.is_under_way {
                    // A later process may have its number.
                    if watched.get(&self.process).is_some_and(|of| of.same_channel(&self.sender)) {
                        watched.remove(&self.process);
                    }
                    return;
                }
            }
            let with_charts = charts.elapsed() >= CHARTS_EVERY;
            match asked(&self.places, &self.heard, self.process, with_charts, feed::PATIENCE) {
                Some(state) => known = state,
                None => known.is_under_way = false,
            }
            tell(&known, &self.templates, &self.sender, with_charts && known.is_under_way);
            if with_charts {
                charts = Instant::now();
            }
        }
    }
}
