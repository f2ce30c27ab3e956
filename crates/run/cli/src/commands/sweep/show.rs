//! Output of a sweep.

use clap::ValueEnum;
use plimsoll_report::{markdown, sweep_csv, sweep_document, text};
use plimsoll_runner::sweep::SweepProgress;

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Html,
    Markdown,
    Csv,
}

/// Shows the sweep.
///
/// # Errors
/// Stdout cannot be written.
pub fn show(sweeping: &SweepProgress, format: Format, common: &Globals) -> Result<(), CliError> {
    let sweep = &sweeping.sweep;
    if common.json {
        return bundle::print(&bundle::json(sweep)?);
    }
    let document = sweep_document(sweep);
    let out = match format {
        Format::Text => {
            let mut text = text::document(&document, &bundle::style(common));
            if let Some(experiment) = &sweeping.experiment {
                text.push_str(&format!("\nreport: {}\n", experiment.report().display()));
            }
            text
        }
        Format::Html => bundle::document_html(&document)?,
        Format::Markdown => markdown::document(&document),
        Format::Csv => sweep_csv(sweep),
    };
    bundle::print(&out)
}
