//! `plimsoll report BUNDLE`: the report again, or in another form.

use clap::{Args, ValueEnum};
use plimsoll_evidence::Bundle;
use plimsoll_judge::judge;

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll report RUN --format markdown > result.md\n  \
    plimsoll report RUN --format html > result.html")]
pub struct Options {
    /// A bundle's directory, or a run as `plimsoll runs` lists them.
    bundle: String,
    /// In which form it is printed.
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Html,
    Markdown,
    Csv,
    FioJson,
}

/// Prints the report.
///
/// # Errors
/// No bundle, or one of a later version.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let directory = bundle::find(&options.bundle)?;
    let evidence = Bundle::read(&directory)?;
    let verdict = judge(&evidence);
    let text = match options.format {
        _ if common.json => bundle::json(&verdict)?,
        Format::Text => plimsoll_report::text(&evidence, &verdict, &bundle::style(common)),
        Format::Html => bundle::html(&evidence, &verdict)?,
        Format::Markdown => plimsoll_report::markdown(&evidence, &verdict),
        Format::Csv => plimsoll_report::csv(&evidence, &verdict),
        Format::FioJson => plimsoll_report::fio_json(&evidence),
    };
    bundle::print(&text)?;
    Ok(Exit::Ok)
}
