//! The catalogue: the only way from a name in a request to a file.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_catalogue::{Catalogue, CatalogueError, Found};

use crate::FindRoots;
use crate::answer::Problem;

/// What was read of the catalogue is taken for true so long: each reading looks at every bundle's directory.
const FRESH: Duration = Duration::from_secs(1);
/// A name is no longer than that.
const NAME_LENGTH_MAX: usize = 200;

/// The runs of one user.
pub struct Known {
    roots: FindRoots,
    read: Mutex<Option<(Instant, Catalogue)>>,
}

impl Known {
    /// Not read yet.
    pub fn new(roots: FindRoots) -> Self {
        Self { roots, read: Mutex::new(None) }
    }

    /// Asks the catalogue as it is now, or was a moment ago.
    ///
    /// # Errors
    /// A broken ledger, and what is asked for.
    pub fn with<T>(
        &self,
        ask: impl FnOnce(&Catalogue) -> Result<T, CatalogueError>,
    ) -> Result<T, Problem> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = read.take().filter(|(at, _)| at.elapsed() < FRESH);
        let now = match fresh {
            Some(fresh) => fresh,
            None => (Instant::now(), Catalogue::open(&(self.roots)())?),
        };
        let (_, catalogue) = read.insert(now);
        Ok(ask(catalogue)?)
    }

    /// Has it read anew the next time: something was changed.
    pub fn forget(&self) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The directory of a run or experiment that is called so.
    ///
    /// # Errors
    /// Nothing is called so, several are, or its bundle was removed.
    pub fn directory(&self, called: &str) -> Result<PathBuf, Problem> {
        if called.len() > NAME_LENGTH_MAX {
            return Err(Problem::nothing("no run has so long a name"));
        }
        match self.with(|catalogue| catalogue.find(called))? {
            Found::At(directory) => Ok(directory),
            Found::Removed(entry) => Err(Problem::nothing(format!(
                "the bundle of {} is not there any more",
                entry.run_id
            ))),
            Found::Nothing => Err(Problem::nothing(format!("there is no run {called}"))
                .hint("the list of runs holds what there is")),
        }
    }
}
