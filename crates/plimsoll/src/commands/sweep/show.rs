//! What a sweep found, in the form that was asked for.

use std::path::Path;

use clap::ValueEnum;
use plimsoll_report::{markdown, sweep_csv, sweep_document, text};
use plimsoll_runner::sweep::{self, Sweeping};

use crate::commands::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// In which form it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Html,
    Markdown,
    Csv,
}

/// Shows a sweep's directory again, its points judged anew.
///
/// # Errors
/// A directory without bundles, or with one that cannot be read.
pub fn show_again(directory: &Path, common: &Common) -> Result<Exit, CliError> {
    let (sweep, together) = sweep::again(directory)?;
    if common.json {
        bundle::print(&bundle::json(&sweep)?)?;
    } else {
        bundle::print(&text::document(&sweep_document(&sweep), &bundle::style(common)))?;
    }
    bundle::print_custody(&together.lines(), common)?;
    Ok(together.weigh(Exit::Ok))
}

/// Shows it.
///
/// # Errors
/// Stdout that cannot be written.
pub fn show(sweeping: &Sweeping, format: Format, common: &Common) -> Result<(), CliError> {
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
