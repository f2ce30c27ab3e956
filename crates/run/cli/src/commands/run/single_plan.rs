//! Runs a plan on one target, as often as the plan requires.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_plan::Plan;
use plimsoll_report::text::Style;
use plimsoll_runner::repeat::{self, RepeatedRuns};
use plimsoll_runner::run_request::RunConfig;
use plimsoll_runner::search::{ThreadSearch, resolve_threads};

use super::show::show;
use crate::commands::arms;
use crate::commands::run_options::RunOptions;
use crate::common::{Globals, check_output};
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::StderrProgress;

/// Maximum size of the termination message of a container in Kubernetes.
const TERMINATION_MESSAGE_BYTES: usize = 4096;

/// Runs a plan and shows its verdict, or the summary of its runs.
///
/// # Errors
/// The target cannot be used, or a bundle cannot be written.
pub fn run_plan(
    plan: &Plan,
    after: &RunOptions,
    common: &Globals,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    let resolved = plan.resolve();
    if let Some(file) = &after.verdict_to {
        check_output("--verdict-to", file)?;
    }
    if resolved.targets.len() > 1 {
        if after.verdict_to.is_some() {
            return Err(CliError::usage(
                "--verdict-to: a plan with several targets has no single verdict",
            )
            .hint("use a plan with one target"));
        }
        return arms::run_arms(plan, after, &[], common, progress, interrupt);
    }
    after.refuse_with_fleet()?;
    let runs = after.preflight(&resolved);
    if !after.hosts.check(&resolved, &runs, common, progress)? {
        return Ok(Exit::Ok);
    }
    let carried = after.hosts.select(&resolved, &after.sign, progress, interrupt)?;
    let bundles = carried.places.bundles(after.out.as_deref())?;
    let requested = after.config(plan, &resolved, &carried, &bundles, interrupt);
    let with_threads = match resolve_threads(&requested, progress)? {
        ThreadSearch::Known(plan) => plan,
        ThreadSearch::None(exit) => return Ok(exit),
    };
    let repeated =
        repeat::carry_out(&RunConfig { resolved: &with_threads, ..requested }, progress)?;
    show(&repeated, common)?;
    write_verdict(after.verdict_to.as_deref(), &repeated)?;
    for directory in repeated.kept() {
        progress.say(&format!("the data was kept in {directory}"));
    }
    Ok(repeated.exit())
}

/// Writes as many complete lines of the output as fit into 4 KiB to the file in `--verdict-to`.
///
/// # Errors
/// The file cannot be written.
fn write_verdict(file: Option<&Path>, repeated: &RepeatedRuns) -> Result<(), CliError> {
    let Some(file) = file else { return Ok(()) };
    let style = Style { colour: false, width: 80, ..Style::default() };
    let text = match (&repeated.finished[..], &repeated.experiment) {
        ([only], None) => plimsoll_report::text(&only.evidence, &only.verdict, &style),
        _ => plimsoll_report::experiment(&repeated.summary(), &style),
    };
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        if kept.len() + line.len() > TERMINATION_MESSAGE_BYTES {
            break;
        }
        kept.push_str(line);
    }
    std::fs::write(file, kept).map_err(|error| {
        CliError::environment(format!("--verdict-to {}: {error}", file.display()))
            .hint("the verdict is in the bundle: `plimsoll judge RUN` shows it")
    })
}
