//! `plimsoll report BUNDLE`: prints the report in any format.

mod export;

use std::path::Path;

use clap::{Args, ValueEnum};
use plimsoll_experiments::directory_report;
use plimsoll_report::{markdown, text};

use self::export::Export;
use super::bundle;
use crate::common::Globals;
use crate::custody::{LoadedBundle, Reader};
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll report RUN --format markdown > result.md\n  plimsoll \
    report last --format html > result.html\n  plimsoll report SWEEP --format csv > points.csv\n  \
    plimsoll report RUN --export junit > result.xml            for continuous integration\n  \
    plimsoll report RUN --export fio > result.json             for fio-plot and similar tools\n  \
    plimsoll report RUN --export hdr > latency.hlog            for HdrHistogram's tools\n  \
    plimsoll report RUN --export prometheus > plimsoll.prom    for node_exporter's textfile \
    collector"
)]
pub struct Options {
    /// The directory of a run or experiment, or a run or experiment in the list of `plimsoll runs`.
    /// To select it, use its number, its name, a prefix of its name, or `last`.
    bundle: String,
    /// Format of the report.
    #[arg(long, default_value = "text")]
    format: Format,
    /// Print the run in the format of another tool, instead of a report.
    #[arg(long, value_name = "FORM", conflicts_with_all = ["format", "json"])]
    export: Option<Export>,
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
/// The directory is not a bundle, a later version of Plimsoll created it, or it was changed.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let directory = bundle::find(&options.bundle)?;
    if directory_report::is_experiment(&directory) {
        if options.export.is_some() {
            let says = format!(
                "{} contains several runs, and only one can be exported at a time",
                options.bundle
            );
            return Err(CliError::usage(says).hint("use a run from `plimsoll runs`"));
        }
        return of_experiment(&directory, options.format, common);
    }
    let loaded = Reader::new().load(&directory)?;
    let LoadedBundle { bundle: evidence, verdict, custody, .. } = &loaded;
    let text = match (options.export, options.format) {
        (Some(export), _) => export.text(&directory, evidence, verdict)?,
        _ if common.json => bundle::verdict_json(evidence, verdict)?,
        (_, Format::Text) => plimsoll_report::text(evidence, verdict, &bundle::style(common)),
        (_, Format::Html) => bundle::html(evidence, verdict)?,
        (_, Format::Markdown) => plimsoll_report::markdown(evidence, verdict),
        (_, Format::Csv) => plimsoll_report::csv(evidence, verdict),
        (_, Format::FioJson) => plimsoll_report::fio_json(evidence),
    };
    bundle::print(&text)?;
    let for_programs = options.format != Format::Text || options.export.is_some() || common.json;
    let common = Globals { json: for_programs, ..common.clone() };
    bundle::print_custody(&custody.lines(), &common)?;
    Ok(loaded.display_exit())
}

/// Prints the report of several runs: a sweep, comparison, search, published experiment or repeated
/// runs.
fn of_experiment(directory: &Path, format: Format, common: &Globals) -> Result<Exit, CliError> {
    let reported = directory_report::build_report(directory)?;
    let text = match format {
        _ if common.json => reported.json,
        Format::Text => text::document(&reported.document, &bundle::style(common)),
        Format::Html => bundle::document_html(&reported.document)?,
        Format::Markdown => markdown::document(&reported.document),
        Format::Csv | Format::FioJson => match reported.csv.filter(|_| format == Format::Csv) {
            Some(csv) => csv,
            None => {
                let says = format!("{} has no table for this format", directory.display());
                return Err(CliError::usage(says)
                    .hint("use one of its runs, or the formats html, markdown or --json"));
            }
        },
    };
    bundle::print(&text)?;
    let for_programs = format != Format::Text || common.json;
    let common = Globals { json: for_programs, ..common.clone() };
    bundle::print_custody(&reported.together.lines(), &common)?;
    Ok(reported.together.apply_doubts(Exit::Ok))
}
