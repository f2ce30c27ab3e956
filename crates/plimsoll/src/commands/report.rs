//! `plimsoll report BUNDLE`: the report again, or in another form.

use clap::{Args, ValueEnum};

use super::bundle;
use crate::common::Common;
use crate::custody::{Loaded, Reader};
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
/// No bundle, one of a later version, or one that was changed.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let directory = bundle::find(&options.bundle)?;
    let loaded = Reader::new().load(&directory)?;
    let Loaded { bundle: evidence, verdict, custody, .. } = &loaded;
    let text = match options.format {
        _ if common.json => bundle::json(verdict)?,
        Format::Text => plimsoll_report::text(evidence, verdict, &bundle::style(common)),
        Format::Html => bundle::html(evidence, verdict)?,
        Format::Markdown => plimsoll_report::markdown(evidence, verdict),
        Format::Csv => plimsoll_report::csv(evidence, verdict),
        Format::FioJson => plimsoll_report::fio_json(evidence),
    };
    bundle::print(&text)?;
    let for_programs = options.format != Format::Text || common.json;
    let common = Common { json: for_programs, ..common.clone() };
    bundle::print_custody(&custody.lines(), &common)?;
    Ok(loaded.exit_shown())
}
