//! Lists runs.

use plimsoll_catalogue::{Entry, Filter};
use plimsoll_report::runs::{RunRow, runs_table};
use plimsoll_report::text;

use super::filter::RunFilter;
use crate::catalogue;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::session::describe_torn;

/// Number of runs that are listed by default.
const LISTED_DEFAULT: u32 = 50;

/// Lists runs in the order of their start.
///
/// # Errors
/// The ledger is damaged.
pub fn list(of: &RunFilter, common: &Globals) -> Result<Exit, CliError> {
    let catalogue = catalogue::open_with_others(&Places::from_environment()?)?;
    if let Some(torn) = &catalogue.torn {
        StderrProgress::new(common.quiet).warn(&describe_torn(torn));
    }
    let mut filter = of.filter();
    if common.json {
        let runs = catalogue.runs(&filter).map_err(catalogue::catalogue_error)?;
        bundle::print(&bundle::json(&runs)?)?;
        return Ok(Exit::Ok);
    }
    // Read one run more than the limit, to detect whether runs are omitted.
    let shown = of.limit.unwrap_or(LISTED_DEFAULT) as usize;
    filter.limit = Some(of.limit.unwrap_or(LISTED_DEFAULT).saturating_add(1));
    let mut runs = catalogue.runs(&filter).map_err(catalogue::catalogue_error)?;
    let more = runs.len().saturating_sub(shown) > 0;
    runs.drain(..runs.len().saturating_sub(shown));
    if runs.is_empty() {
        let is_all = filter == Filter { limit: filter.limit, ..Filter::default() };
        return match is_all {
            true => bundle::print("there are no runs yet; `plimsoll quickstart` starts one\n"),
            false => bundle::print("no run matches; `plimsoll runs` lists all runs\n"),
        }
        .map(|()| Exit::Ok);
    }
    let mut table = runs_table(runs.iter().map(row));
    if more {
        table.note = format!("the latest {shown} runs are shown; --limit shows more");
    }
    bundle::print(&text::grid(&table, &bundle::style(common)))?;
    Ok(Exit::Ok)
}

fn row(run: &Entry) -> RunRow {
    RunRow {
        position: run.position,
        run_id: run.run_id.clone(),
        verdict: run.verdict_label(),
        achieved_iops_per_s: run.achieved_iops_per_s,
        read_latency_ns_avg: run.read_latency_ns_avg,
        write_latency_ns_avg: run.write_latency_ns_avg,
        measured_ns: run.measured_ns,
        remarks: run.remarks(),
    }
}
