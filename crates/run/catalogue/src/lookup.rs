//! Finds the run or experiment that a user specifies. Users can specify `last`, a number from
//! `plimsoll runs`, a name or the beginning of one, or the name of a plan, which means the plan's
//! latest run.

use std::path::PathBuf;

use crate::entry::Entry;
use crate::error::CatalogueError;
use crate::index::Catalogue;

/// Maximum number of matching names in the error message about an ambiguous name.
const CANDIDATES_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// Directory of a bundle or an experiment.
    Local(PathBuf),
    /// A known run whose bundle does not exist on this host.
    Removed(Box<Entry>),
    /// Another user's run whose bundle is in the team's catalogue ([`crate::TeamClient::fetch`]).
    Remote(Box<Entry>),
    /// The runs of another user's experiment.
    RemoteExperiment(Vec<Entry>),
    /// No run or experiment matches.
    Missing,
}

impl Catalogue {
    /// Finds the run or experiment that `name` refers to.
    ///
    /// # Errors
    /// Several match.
    pub fn find(&self, name: &str) -> Result<Lookup, CatalogueError> {
        if name == "last" {
            return Ok(self.latest_run(None)?.map_or(Lookup::Missing, lookup_of));
        }
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if is_number
            && let Ok(number) = name.parse()
            && let Some(entry) = self.run_at_position(number)?
        {
            return Ok(lookup_of(entry));
        }
        if name.is_empty() {
            return Ok(Lookup::Missing);
        }
        let (runs, experiments) =
            (self.runs_with_prefix(name)?, self.experiments_with_prefix(name)?);
        if let Some(run) = runs.iter().find(|run| run.run_id == name) {
            return Ok(lookup_of(run.clone()));
        }
        if let Some(one) = experiments.iter().find(|one| one.id == name) {
            return Ok(Lookup::Local(one.directory.clone()));
        }
        if let Some(run) = self.latest_run(Some(name))? {
            return Ok(lookup_of(run));
        }
        let remote = self.remote_runs_of(name)?;
        if !remote.is_empty() {
            return Ok(Lookup::RemoteExperiment(remote));
        }
        // The names of an experiment's runs start with the name of the experiment. A prefix that
        // matches the experiment and only its own runs therefore means the experiment.
        match (&experiments[..], &runs[..]) {
            ([one], runs) if runs.iter().all(|run| run.experiment.as_ref() == Some(&one.id)) => {
                Ok(Lookup::Local(one.directory.clone()))
            }
            ([], [run]) => Ok(lookup_of(run.clone())),
            ([], []) => Ok(Lookup::Missing),
            (experiments, runs) => {
                let names =
                    experiments.iter().map(|one| &one.id).chain(runs.iter().map(|run| &run.run_id));
                let names: Vec<&str> = names.map(String::as_str).take(CANDIDATES_MAX).collect();
                let more = if experiments.len() + runs.len() > CANDIDATES_MAX {
                    " and others"
                } else {
                    ""
                };
                let names = names.join(", ");
                let message = match is_number {
                    true => {
                        format!(
                            "no run has the number {name}, but several names begin with it: \
                             {names}{more}"
                        )
                    }
                    false => format!("{name} is ambiguous: it matches {names}{more}"),
                };
                Err(CatalogueError::Name(message))
            }
        }
    }
}

fn lookup_of(entry: Entry) -> Lookup {
    match &entry.bundle {
        Some(bundle) => Lookup::Local(PathBuf::from(bundle)),
        None if entry.origin.is_some() => Lookup::Remote(Box::new(entry)),
        None => Lookup::Removed(Box::new(entry)),
    }
}
