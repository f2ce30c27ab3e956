//! Results of any known form: one in detail, or many as rows.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use plimsoll_evidence::reported::Reported;
use plimsoll_import::Study;
use plimsoll_judge::conservation::{Audit, Credibility, Declared, audit, headline};
use plimsoll_report::document::Document;
use plimsoll_report::{reported, text};
use serde_json::json;

use super::super::bundle;
use super::Options;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Worst first.
    Verdict,
    /// By file.
    Name,
    /// Highest rate first.
    Rate,
    /// Highest bandwidth first.
    Bandwidth,
    /// Highest mean latency first.
    Latency,
}

/// Reads files, directories and archives.
///
/// # Errors
/// A path that is not there.
pub fn read(paths: &[PathBuf]) -> Result<Study, CliError> {
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    plimsoll_import::read(&paths).map_err(|error| {
        CliError::usage(format!("cannot read {error}"))
            .hint("name a result's file, or a directory or archive of results")
    })
}

/// Judges all results below the paths.
///
/// # Errors
/// A path that is not there, or holds no result.
pub fn carry_out(
    paths: &[PathBuf],
    declared: &Declared,
    options: &Options,
    common: &Common,
) -> Result<Exit, CliError> {
    let study = read(paths)?;
    if study.results.is_empty() {
        return Err(nothing(paths, &study));
    }
    if let ([only], [], false) = (&study.results[..], &study.unreadable[..], options.table) {
        return one(only, declared, options, common);
    }
    let mut judged: Vec<(&Reported, Audit)> =
        study.results.iter().map(|result| (result, audit(result, declared))).collect();
    sort(&mut judged, options.sort);
    let unreadable: Vec<String> = study.unreadable.iter().map(ToString::to_string).collect();
    let document = reported::study_document(&judged, &unreadable, study.passed_over);
    if let Some(path) = &options.csv {
        write(path, &reported::study_table(&judged).csv())?;
    }
    if common.json {
        let rows: Vec<_> = judged.iter().map(|(result, audit)| as_json(result, audit)).collect();
        bundle::print(&bundle::json(&json!({
            "results": rows,
            "unreadable": unreadable,
            "passed_over": study.passed_over,
        }))?)?;
        page(&document, options)?;
    } else {
        show(&document, options, common)?;
    }
    let sound = judged.iter().all(|(_, audit)| audit.verdict == Credibility::Consistent);
    Ok(if sound && study.unreadable.is_empty() { Exit::Ok } else { Exit::NoVerdict })
}

/// Judges one result, in detail.
///
/// # Errors
/// Output that cannot be written.
pub fn one(
    result: &Reported,
    declared: &Declared,
    options: &Options,
    common: &Common,
) -> Result<Exit, CliError> {
    let audit = audit(result, declared);
    let document = reported::result_document(result, &audit);
    if common.json {
        bundle::print(&bundle::json(&as_json(result, &audit))?)?;
        page(&document, options)?;
    } else {
        show(&document, options, common)?;
    }
    let sound = audit.verdict == Credibility::Consistent;
    Ok(if sound { Exit::Ok } else { Exit::NoVerdict })
}

fn nothing(paths: &[PathBuf], study: &Study) -> CliError {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut error = match &study.unreadable[..] {
        [only] => CliError::usage(only.to_string()),
        several => CliError::usage(format!(
            "there is no result in {} ({} files of no known form, {} that cannot be read)",
            names.join(", "),
            study.passed_over,
            several.len()
        )),
    };
    if study.logs_alone > 0 {
        error = error.hint("there are interval logs; name the result that they belong to as well");
    }
    error.hint("see docs/audit.md for the forms that are known")
}

fn as_json(result: &Reported, audit: &Audit) -> serde_json::Value {
    let figures = headline(result);
    json!({
        "result": result.label(),
        "tool": result.source.tool,
        "version": result.source.version,
        "format": result.source.format,
        "rate_per_s": figures.rate_per_s,
        "bandwidth_bytes_per_s": figures.bandwidth_per_s,
        "latency_ns_mean": figures.latency_ns,
        "audit": audit,
        "remarks": result.remarks,
    })
}

fn sort(judged: &mut [(&Reported, Audit)], by: Sort) {
    let label = |result: &Reported| result.label();
    let falling = |a: Option<f64>, b: Option<f64>| {
        b.unwrap_or(f64::NEG_INFINITY).total_cmp(&a.unwrap_or(f64::NEG_INFINITY))
    };
    judged.sort_by(|(a, judged_a), (b, judged_b)| {
        let (x, y) = (headline(a), headline(b));
        let first = match by {
            Sort::Verdict => judged_a.verdict.cmp(&judged_b.verdict),
            Sort::Name => std::cmp::Ordering::Equal,
            Sort::Rate => falling(x.rate_per_s, y.rate_per_s),
            Sort::Bandwidth => falling(x.bandwidth_per_s, y.bandwidth_per_s),
            Sort::Latency => falling(x.latency_ns, y.latency_ns),
        };
        first.then_with(|| label(a).cmp(&label(b)))
    });
}

fn show(document: &Document, options: &Options, common: &Common) -> Result<(), CliError> {
    bundle::print(&text::document(document, &bundle::style(common)))?;
    page(document, options)
}

fn page(document: &Document, options: &Options) -> Result<(), CliError> {
    match &options.html {
        Some(path) => write(path, &bundle::document_html(document)?),
        None => Ok(()),
    }
}

/// Writes a file.
///
/// # Errors
/// One that cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text)
        .map_err(|error| CliError::environment(format!("cannot write {}: {error}", path.display())))
}
