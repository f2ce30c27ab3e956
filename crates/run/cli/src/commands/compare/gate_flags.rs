//! Flags of the gate: `--fail-if-worse` and its output files for continuous integration.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_judge::compare::{AllowanceError, Allowances, Comparison, Gate, GateOutcome, gate};
use plimsoll_report::document::Document;
use plimsoll_report::exports::junit;
use plimsoll_report::{comparison_document, gate_document, gated_document, markdown, text};
use serde::Serialize;

use crate::commands::{audit, bundle, sides};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Flags of the gate.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gate for continuous integration")]
pub struct GateFlags {
    /// How much worse than the baseline a figure may be: `10%` for all figures, or `rate=5%,read_p99=20%`. Figures:
    /// rate, bandwidth, latency, p99, read, read_p99, write, write_p99, log_write; for events also
    /// before_rate, before_p99, during_rate, during_p99, outage, recovery, after_rate, after_p99.
    #[arg(long, value_name = "ALLOWANCE")]
    fail_if_worse: Vec<String>,
    /// Write the gate's result to this file as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "fail_if_worse")]
    pub junit: Option<PathBuf>,
    /// Write the gate's result to this file as Markdown, for a pull request.
    #[arg(long, value_name = "FILE", requires = "fail_if_worse")]
    pub markdown: Option<PathBuf>,
}

/// Comparison and the result of its gate, as JSON.
#[derive(Serialize)]
struct Gated<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    gate: &'a Gate,
}

impl GateFlags {
    /// Parses the allowances; `None` if no gate was requested.
    ///
    /// # Errors
    /// An unknown figure or an invalid percentage.
    fn allowances(&self) -> Result<Option<Allowances>, CliError> {
        if self.fail_if_worse.is_empty() {
            return Ok(None);
        }
        Allowances::parse(&self.fail_if_worse).map(Some).map_err(|error| usage(&error, None))
    }

    /// Checks the allowances before results are read or runs are started.
    ///
    /// # Errors
    /// An allowance is invalid, or there are not exactly two targets.
    pub fn check(&self, targets: Option<usize>) -> Result<(), CliError> {
        match (self.allowances()?, targets) {
            (Some(_), Some(count)) if count != 2 => Err(usage(&AllowanceError::Sides(count), None)),
            _ => Ok(()),
        }
    }

    /// Rejects `--fail-if-worse` if the results are not runs of one plan.
    ///
    /// # Errors
    /// `--fail-if-worse` was given.
    pub fn refuse_for(&self, what: &str) -> Result<(), CliError> {
        if self.fail_if_worse.is_empty() {
            return Ok(());
        }
        Err(CliError::usage(format!("--fail-if-worse cannot be used with {what}"))
            .hint("pass two runs or experiments, or a plan with two targets"))
    }

    /// Shows a comparison, writes the requested output files, and returns the exit code.
    ///
    /// # Errors
    /// A figure was not measured, or a file cannot be written.
    pub fn show(
        &self,
        compared: &Comparison,
        html: Option<&Path>,
        common: &Globals,
    ) -> Result<Exit, CliError> {
        let Some(allowances) = self.allowances()? else {
            write_html(html, || comparison_document(compared))?;
            sides::show(compared, common)?;
            return Ok(sides::exit_of(compared));
        };
        let gate = gate(compared, &allowances).map_err(|error| usage(&error, Some(compared)))?;
        write_html(html, || gated_document(compared, &gate))?;
        if let Some(path) = &self.junit {
            audit::write(path, &junit::gate_xml(&gate))?;
        }
        if let Some(path) = &self.markdown {
            audit::write(path, &markdown::document(&gate_document(compared, &gate)))?;
        }
        if common.json {
            bundle::print(&bundle::json(&Gated { comparison: compared, gate: &gate })?)?;
        } else {
            let document = gated_document(compared, &gate);
            bundle::print(&text::document(&document, &bundle::style(common)))?;
        }
        Ok(match gate.outcome {
            GateOutcome::Worse => Exit::Fail,
            GateOutcome::NotWorse => Exit::Ok,
            GateOutcome::Undecided => Exit::NoVerdict,
        })
    }
}

fn write_html(path: Option<&Path>, document: impl FnOnce() -> Document) -> Result<(), CliError> {
    path.map_or(Ok(()), |path| audit::write(path, &bundle::document_html(&document())?))
}

fn usage(error: &AllowanceError, compared: Option<&Comparison>) -> CliError {
    CliError::usage(format!("--fail-if-worse: {error}")).hint(error.hint(compared))
}
