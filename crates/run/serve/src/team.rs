//! The team's catalogue. A separate thread synchronises with it every few seconds, so pages never
//! wait for the database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_catalogue::{Catalogue, Roots, TeamClient};
use plimsoll_report::time::utc;

/// Synchronisation interval.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// Interval between checks of the stop flag.
const STOP_POLL: Duration = Duration::from_millis(100);

/// State of the connection to the team's catalogue.
pub struct Team {
    shared: TeamClient,
    /// Time of the last successful synchronisation, and the last error since then.
    state: Mutex<State>,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    read_unix_ns: Option<u64>,
    error: Option<String>,
}

impl Team {
    /// No synchronisation has taken place yet.
    pub fn new(shared: TeamClient) -> Self {
        Self { shared, state: Mutex::default(), stop: AtomicBool::new(false) }
    }

    /// Address of the catalogue.
    pub fn shared(&self) -> &TeamClient {
        &self.shared
    }

    /// Warning about missing or outdated runs of other users; `None` if the last synchronisation
    /// succeeded.
    pub fn status_message(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let error = state.error.as_ref()?;
        Some(match state.read_unix_ns {
            Some(at) => format!("Runs of other users were last updated at {}: {error}", utc(at)),
            None => format!("Runs of other users may be missing: {error}"),
        })
    }

    /// Synchronises until it is stopped: uploads local runs, and calls `on_new_runs` after runs of
    /// other users have arrived.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn share(
        self: &Arc<Self>,
        roots: impl Fn() -> Roots + Send + 'static,
        on_new_runs: impl Fn() + Send + 'static,
    ) -> std::io::Result<JoinHandle<()>> {
        let team = Arc::clone(self);
        std::thread::Builder::new().name("team".to_owned()).spawn(move || {
            while !team.stop.load(Ordering::Relaxed) {
                if team.sync(&roots()) {
                    on_new_runs();
                }
                let began = Instant::now();
                while began.elapsed() < SYNC_INTERVAL && !team.stop.load(Ordering::Relaxed) {
                    std::thread::sleep(STOP_POLL);
                }
            }
        })
    }

    /// Requests that the thread stops.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Synchronises once. Returns true if new runs of other users arrived.
    fn sync(&self, roots: &Roots) -> bool {
        // A separate index is opened, because the pages use the other index at the same time.
        let shared = Catalogue::open(roots)
            .and_then(|mut catalogue| self.shared.sync(&mut catalogue, &|_| true));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match shared {
            Ok(sharing) => {
                state.read_unix_ns = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .ok()
                    .map(|since| since.as_nanos() as u64);
                state.error = (sharing.unreadable > 0).then(|| {
                    format!(
                        "{} of these runs were stored by another version of Plimsoll",
                        sharing.unreadable
                    )
                });
                sharing.received > 0
            }
            Err(error) => {
                state.error = Some(error.to_string());
                false
            }
        }
    }
}
