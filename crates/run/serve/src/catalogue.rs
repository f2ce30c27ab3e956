//! The catalogue. This is the only module that converts names in requests to files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_catalogue::{Catalogue, CatalogueError, Entry, Lookup, Roots};
use plimsoll_evidence::ledger::{CachedLedger, Ledger};

use crate::FindRoots;
use crate::response::Problem;
use crate::team::Team;

/// Time for which a cached snapshot is used without checking whether the catalogue has changed.
const RECHECK_AFTER: Duration = Duration::from_secs(1);
/// Maximum age of a snapshot whose ledger and directories look unchanged. The time is long, because
/// reading the catalogue again opens every bundle.
const REREAD_AFTER: Duration = Duration::from_secs(30);
/// Maximum length of a run's name in a request.
const NAME_LENGTH_MAX: usize = 200;

/// The runs of one user.
pub struct CachedCatalogue {
    roots: FindRoots,
    team: Option<Arc<Team>>,
    fetching: Mutex<()>,
    snapshot: Mutex<Option<Snapshot>>,
    /// The ledger, with a cache of its lines.
    ledger: Mutex<Option<Arc<CachedLedger>>>,
}

struct Snapshot {
    at: Instant,
    looked: Instant,
    catalogue: Catalogue,
    /// Rendered texts that are derived from the catalogue, with their names as keys.
    cached: BTreeMap<&'static str, Arc<str>>,
}

impl CachedCatalogue {
    /// The catalogue has not been read yet.
    pub fn new(roots: FindRoots, team: Option<Arc<Team>>) -> Self {
        let (fetching, snapshot, ledger) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { roots, team, fetching, snapshot, ledger }
    }

    /// Locations of runs.
    pub fn roots(&self) -> Roots {
        (self.roots)()
    }

    /// Returns the ledger of these runs. Each of its lines is checked only once.
    pub fn ledger(&self) -> Arc<CachedLedger> {
        self.ledger_at(&self.roots().ledger)
    }

    fn ledger_at(&self, at: &Path) -> Arc<CachedLedger> {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = ledger.as_ref().filter(|kept| kept.path() == at) {
            return Arc::clone(kept);
        }
        Arc::clone(ledger.insert(Arc::new(CachedLedger::new(Ledger::at(at)))))
    }

    /// Returns the team's catalogue, if one is configured.
    pub fn team(&self) -> Option<&Arc<Team>> {
        self.team.as_ref()
    }

    /// Unpacks the bundles of other users' runs. Returns the location of the last bundle.
    fn fetch_bundles(&self, runs: &[Entry]) -> Result<PathBuf, Problem> {
        let nothing = || Problem::not_found("the bundle no longer exists");
        let team = self.team.as_ref().ok_or_else(nothing)?;
        // Without this lock, two concurrent requests for the same bundle would unpack it twice.
        let _one = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fetched = None;
        for run in runs {
            fetched = Some(team.shared().fetch(run)?);
        }
        fetched.ok_or_else(nothing)
    }

    /// Runs a query on a snapshot of the catalogue that is at most a second old.
    ///
    /// # Errors
    /// The ledger is broken, or the query failed.
    pub fn with<T>(
        &self,
        query: impl FnOnce(&Catalogue) -> Result<T, CatalogueError>,
    ) -> Result<T, Problem> {
        self.read(|read| Ok(query(&read.catalogue)?))
    }

    /// Returns a text that depends only on the catalogue. The text is cached until the catalogue
    /// changes.
    ///
    /// # Errors
    /// The errors of [`Self::with`].
    pub fn cached(
        &self,
        name: &'static str,
        make: impl FnOnce(&Catalogue) -> Result<String, Problem>,
    ) -> Result<Arc<str>, Problem> {
        self.read(|read| {
            if let Some(known) = read.cached.get(name) {
                return Ok(Arc::clone(known));
            }
            let made: Arc<str> = make(&read.catalogue)?.into();
            read.cached.insert(name, Arc::clone(&made));
            Ok(made)
        })
    }

    fn read<T>(
        &self,
        query: impl FnOnce(&mut Snapshot) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut read = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match read.take() {
            Some(known) if known.looked.elapsed() < RECHECK_AFTER => known,
            known => {
                let (roots, looked) = ((self.roots)(), Instant::now());
                let current = |known: &Snapshot| {
                    known.at.elapsed() < REREAD_AFTER && known.catalogue.is_current(&roots)
                };
                match known.filter(current) {
                    Some(known) => Snapshot { looked, ..known },
                    None => {
                        let catalogue =
                            Catalogue::open_with(&roots, &self.ledger_at(&roots.ledger))?;
                        Snapshot { at: looked, looked, catalogue, cached: BTreeMap::new() }
                    }
                }
            }
        };
        query(read.insert(now))
    }

    /// Drops the snapshot, so that the next query reads the catalogue again.
    pub fn invalidate(&self) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the directory of the run or experiment with this name.
    ///
    /// # Errors
    /// No run or experiment has this name, several match it, or the bundle was removed.
    pub fn directory(&self, called: &str) -> Result<PathBuf, Problem> {
        if called.len() > NAME_LENGTH_MAX {
            return Err(Problem::not_found("the run's name is too long"));
        }
        match self.with(|catalogue| catalogue.find(called))? {
            Lookup::Local(directory) => Ok(directory),
            Lookup::Remote(entry) => self.fetch_bundles(&[*entry]),
            Lookup::RemoteExperiment(runs) => {
                let one = self.fetch_bundles(&runs)?;
                Ok(one.parent().map_or(one.clone(), Path::to_path_buf))
            }
            Lookup::Removed(entry) if self.team.is_some() => self.fetch_bundles(&[*entry]),
            Lookup::Removed(entry) => Err(Problem::not_found(entry.missing_bundle())),
            Lookup::Missing => Err(Problem::not_found(format!("there is no run {called}"))
                .hint("see /runs for the existing runs")),
        }
    }
}
