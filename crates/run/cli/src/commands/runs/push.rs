//! Copies runs to the team's catalogue.

use std::collections::BTreeSet;

use serde_json::json;

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;
use crate::sharing;

/// Copies the given runs, or all runs that are new or changed.
///
/// # Errors
/// A run is unknown, or the team's catalogue cannot be written.
pub fn push(called: &[String], common: &Globals) -> Result<Exit, CliError> {
    let mut required = BTreeSet::new();
    for one in called {
        let directory = bundle::find(one)?;
        required.extend(directory.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    let is_wanted = |run_id: &str, within: Option<&str>| {
        required.is_empty()
            || required.contains(run_id)
            || within.is_some_and(|within| required.contains(within))
    };
    let sharing = sharing::put(&Places::from_environment()?, &|entry| {
        is_wanted(&entry.run_id, entry.experiment.as_deref())
    })?;
    if common.json {
        bundle::print(&bundle::json(&json!({"put": sharing.pushed}))?)?;
        return Ok(Exit::Ok);
    }
    match &sharing.pushed[..] {
        [] => bundle::print("all runs are in the team's catalogue already\n")?,
        put => put.iter().try_for_each(|run| bundle::print(&format!("put: {run}\n")))?,
    }
    Ok(Exit::Ok)
}
