//! A run or experiment by what people call it: `last`, a number of `plimsoll runs`, a name, the beginning of one,
//! or the name of a plan (its latest run).

use std::path::PathBuf;

use crate::entry::Entry;
use crate::error::CatalogueError;
use crate::index::Catalogue;

/// Names that are told where several are meant.
const TOLD_MAX: usize = 5;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A bundle or an experiment, in this directory.
    At(PathBuf),
    /// A run that is known, without its bundle.
    Removed(Box<Entry>),
    /// A run of another's, whose bundle the team's catalogue holds ([`crate::Shared::fetch`]).
    Away(Box<Entry>),
    /// An experiment of another's: its runs.
    AwayTogether(Vec<Entry>),
    /// Nothing.
    Nothing,
}

impl Catalogue {
    /// What is called so.
    ///
    /// # Errors
    /// Several are.
    pub fn find(&self, called: &str) -> Result<Found, CatalogueError> {
        if called == "last" {
            return Ok(self.latest(None)?.map_or(Found::Nothing, at));
        }
        let is_number = !called.is_empty() && called.bytes().all(|byte| byte.is_ascii_digit());
        if is_number
            && let Ok(number) = called.parse()
            && let Some(entry) = self.numbered(number)?
        {
            return Ok(at(entry));
        }
        if called.is_empty() {
            return Ok(Found::Nothing);
        }
        let (runs, experiments) = (self.named(called)?, self.experiments(called)?);
        if let Some(run) = runs.iter().find(|run| run.run_id == called) {
            return Ok(at(run.clone()));
        }
        if let Some(one) = experiments.iter().find(|one| one.id == called) {
            return Ok(Found::At(one.directory.clone()));
        }
        if let Some(run) = self.latest(Some(called))? {
            return Ok(at(run));
        }
        let away = self.of_experiment(called)?;
        if !away.is_empty() {
            return Ok(Found::AwayTogether(away));
        }
        // An experiment's runs begin with its name: who says that much means the experiment.
        match (&experiments[..], &runs[..]) {
            ([one], runs) if runs.iter().all(|run| run.experiment.as_ref() == Some(&one.id)) => {
                Ok(Found::At(one.directory.clone()))
            }
            ([], [run]) => Ok(at(run.clone())),
            ([], []) => Ok(Found::Nothing),
            (experiments, runs) => {
                let names =
                    experiments.iter().map(|one| &one.id).chain(runs.iter().map(|run| &run.run_id));
                let names: Vec<&str> = names.map(String::as_str).take(TOLD_MAX).collect();
                let more =
                    if experiments.len() + runs.len() > TOLD_MAX { " and others" } else { "" };
                let number = if is_number { "is the number of no run, and " } else { "" };
                let says = format!(
                    "{called} {number}may be {}{more}: say more of the name",
                    names.join(", ")
                );
                Err(CatalogueError::Name(says))
            }
        }
    }
}

fn at(entry: Entry) -> Found {
    match &entry.bundle {
        Some(bundle) => Found::At(PathBuf::from(bundle)),
        None if entry.origin.is_some() => Found::Away(Box::new(entry)),
        None => Found::Removed(Box::new(entry)),
    }
}
