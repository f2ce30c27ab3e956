//! Runs of this user's other processes, as these tell of them. One that is watched is asked by a thread of its own, for as
//! long as somebody watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use minijinja::Environment;
use plimsoll_runner::live::feed;
use plimsoll_runner::live::state::State;
use plimsoll_runner::places::Places;
use tokio::sync::watch;

use super::{CHARTS_EVERY, DRAWN_EVERY, tell};
use crate::answer::Problem;
use crate::watched::Frames;

/// Processes that are listed.
const LISTED_MAX: usize = 32;

/// Runs of other processes.
#[derive(Debug)]
pub struct Elsewhere {
    places: Places,
    watched: Arc<Mutex<Watched>>,
}

/// Those that are watched, by their processes.
type Watched = BTreeMap<u32, watch::Sender<Frames>>;

impl Elsewhere {
    /// Of the user whose places these are.
    pub fn new(places: Places) -> Self {
        Self { places, watched: Arc::default() }
    }

    /// What each process knows of its run, without charts.
    pub fn all(&self) -> Vec<State> {
        let processes = feed::processes(&self.places).into_iter().take(LISTED_MAX);
        processes.filter_map(|process| feed::ask(&self.places, process, false).ok()).collect()
    }

    /// What a process knows of its run.
    ///
    /// # Errors
    /// A process that tells nothing.
    pub fn one(&self, process: u32) -> Result<State, Problem> {
        feed::ask(&self.places, process, true).map_err(|_| nothing(process))
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
        let mut watched = lock(&self.watched);
        if let Some(known) = watched.get(&process).filter(|known| known.borrow().end.is_none()) {
            return Ok(known.subscribe());
        }
        let first = self.one(process)?;
        let (sender, frames) = watch::channel(Frames::default());
        tell(&first, templates, &sender, true);
        let follow = Follow {
            places: self.places.clone(),
            process,
            templates: Arc::clone(templates),
            sender: sender.clone(),
            watched: Arc::clone(&self.watched),
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

fn lock(watched: &Mutex<Watched>) -> std::sync::MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks a process, and draws what is sent.
struct Follow {
    places: Places,
    process: u32,
    templates: Arc<Environment<'static>>,
    sender: watch::Sender<Frames>,
    watched: Arc<Mutex<Watched>>,
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
            match feed::ask(&self.places, self.process, with_charts) {
                Ok(state) => known = state,
                Err(_) => known.is_under_way = false,
            }
            tell(&known, &self.templates, &self.sender, with_charts && known.is_under_way);
            if with_charts {
                charts = Instant::now();
            }
        }
    }
}
