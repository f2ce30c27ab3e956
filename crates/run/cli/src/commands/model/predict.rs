//! `plimsoll model predict DATA.csv`: predicts cells that are missing in a measured table.

use std::path::PathBuf;

use clap::Args;
use plimsoll_fitting::prediction::{self, MeasuredTable};

use super::show;
use super::table::{Source, read_source};
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Options of `model predict`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  plimsoll model predict measured.csv --cell io_kib=16,read_percent=70
  plimsoll model predict fio.csv --axis numjobs --cell 'block_kib=8,numjobs=3,pattern=random'

A table is CSV. Axes are columns such as io_kib, pattern, read_percent, depth, clients and threads;
figures are columns whose names end with _per_s, iops, _ms, _us or _ns, or contain latency_ms_.
In results of other tools, axes are io_kib, pattern, read_percent, sync and depth (operations in
flight). The prediction interpolates
between rows, never outside their range. To compute an interval, each row is predicted from the
rows that have another value on an axis. Nine of ten of these rows lie inside their predicted
intervals. See docs/models.md.

Exit codes: 0 PREDICTED; 3 NOT PREDICTED: a cell is outside the measured range,
or lies between two values of an axis that has only these two values.")]
pub struct Options {
    /// The measured table, or results of another tool: a file or a directory.
    data: PathBuf,
    /// Cell to predict: a value for each axis.
    #[arg(long, value_name = "AXIS=VALUE,...", required = true)]
    cell: Vec<String>,
    /// Another column of the table to use as an axis.
    #[arg(long, value_name = "COLUMN")]
    axis: Vec<String>,
}

/// Predicts the cells.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let table = match read_source(&options.data, common)? {
        Source::Text(text) => MeasuredTable::parse(&text, &options.axis)?,
        Source::Results(rows) => MeasuredTable::of_rows(&rows, &options.axis)?,
    };
    let note = |text: &str| {
        if !common.quiet {
            notes::tell(text);
        }
    };
    let outcome = prediction::predict(&table, &options.cell, &note)?;
    match common.json {
        true => bundle::print(&bundle::json(&outcome)?)?,
        false => show(&outcome.document(), common)?,
    }
    Ok(if outcome.is_complete() { Exit::Ok } else { Exit::NoVerdict })
}
