//! The table to which a model is fitted: CSV, or results of another tool.

use std::io::ErrorKind;
use std::path::Path;

use plimsoll_fitting::tool_results;
use plimsoll_import::Format;
use plimsoll_import::detect::detect;
use plimsoll_model::fit::Table as Measured;

use crate::common::Globals;
use crate::error::CliError;
use crate::notes;

/// Contents of a file or a directory with measurements.
pub(super) enum Source {
    /// Text of a CSV table.
    Text(String),
    /// Results of another tool.
    Results(Measured),
}

/// Reads a table to which a model can be fitted.
pub(super) fn read(path: &Path, common: &Globals) -> Result<Measured, CliError> {
    match read_source(path, common)? {
        Source::Text(text) => Measured::parse(&text)
            .map_err(|error| CliError::usage(format!("{}: {error}", path.display()))),
        Source::Results(table) => Ok(table),
    }
}

/// Reads a table, or the results of another tool: a file, a directory or an archive.
pub(super) fn read_source(path: &Path, common: &Globals) -> Result<Source, CliError> {
    let wrong = |why: String| CliError::usage(format!("{}: {why}", path.display()));
    match std::fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) if detect(text.as_bytes()).is_none_or(|format| format == Format::Table) => {
                return Ok(Source::Text(text));
            }
            _ => (),
        },
        Err(error) if error.kind() == ErrorKind::IsADirectory => (),
        Err(error) => {
            return Err(CliError::usage(format!("cannot read {}: {error}", path.display())));
        }
    }
    let study =
        plimsoll_import::read(&[path]).map_err(|error| CliError::usage(error.to_string()))?;
    let (table, mut left_out) = tool_results::table(&study.results);
    left_out.extend(study.unreadable.iter().map(ToString::to_string));
    if table.rows.is_empty() {
        let why = left_out.into_iter().next().unwrap_or_else(|| "it contains no result".to_owned());
        return Err(wrong(format!("no row can be fitted; {why}")));
    }
    if !common.quiet {
        left_out.iter().for_each(|line| notes::tell(&format!("not used: {line}")));
    }
    Ok(Source::Results(table))
}
