//! `plimsoll mark RUN`: answers the prompt of a running plan.

use clap::Args;
use plimsoll_runner::places::Places;
use plimsoll_runner::prompt;
use serde_json::json;

use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `mark`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll mark 20261126-101500-failover-1a2b3c4d    the run prints \
        this name\n\nAn event with `prompt` waits until the operator presses Enter in the \
        terminal of the run, runs\nthis command, or clicks the button on the page of `plimsoll \
        serve`. The time of the answer is the\ntime of the event. If several prompts wait, the \
        command answers the oldest.\n\nExit code 2: the run does \
        not wait for an operator."
)]
pub struct Options {
    /// Name of the run, or the directory of its bundle.
    run: String,
}

/// Answers the prompt.
///
/// # Errors
/// The run is unknown, or does not wait for an operator.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    // While a fleet run is running, its bundle does not exist yet.
    let waits = prompt::all(&places).iter().any(|prompt| prompt.run_id == options.run);
    let directory = if waits { None } else { Some(bundle::find(&options.run)?) };
    let name = directory.as_ref().and_then(|directory| directory.file_name()?.to_str());
    let run_id = name.unwrap_or(&options.run);
    let text = prompt::answer(&places, run_id, None)?;
    if common.json {
        bundle::print(&bundle::json(&json!({"run": options.run, "prompt": text}))?)?;
    } else {
        bundle::print(&format!("answered: {text}\n"))?;
        for next in prompt::all(&places).iter().filter(|prompt| prompt.run_id == run_id) {
            bundle::print(&format!("not answered yet: {}\n", next.text))?;
        }
    }
    Ok(Exit::Ok)
}
