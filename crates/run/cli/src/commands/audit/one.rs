//! Judges one result like a run of Plimsoll. The result is fio's JSON or a table as described in
//! `docs/audit.md`. The judgement uses the rules for runs, and checks whether the figures are
//! consistent.

use std::path::Path;

use plimsoll_report::rows::rows_text;
use plimsoll_report::{reported, text};
use plimsoll_runner::audit::{self, AuditedFile, AuditedText, DeclaredSystem};

use super::super::bundle;
use super::declaration::claims;
use super::{Options, study};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges the file.
///
/// # Errors
/// The file cannot be read, or its format is unknown.
pub fn carry_out(
    file: &Path,
    declared: &DeclaredSystem,
    options: &Options,
    common: &Globals,
) -> Result<Exit, CliError> {
    let judged = match audit::audit_run_file(file, declared, &claims(&options.claim)?)? {
        AuditedText::Run(judged) => judged,
        AuditedText::Figures(figures) => {
            return study::show_study(&figures, &declared.reported(), options, common);
        }
    };
    match &judged.figures {
        Some((result, audit)) => study::write_rows(&[(result, audit.clone())], options)?,
        None if options.csv.is_some() => {
            return Err(CliError::usage("this file has no rows for --csv")
                .hint("pass --table to judge only the figures of its results"));
        }
        None => {}
    }
    show(&judged, common)?;
    if let (Some(path), [only], [verdict]) =
        (&options.html, &judged.bundles[..], &judged.verdicts[..])
    {
        let document = reported::run_and_figures(only, verdict, judged.figures.as_ref());
        study::write(path, &bundle::document_html(&reported::merge(document))?)?;
    }
    Ok(judged.exit())
}

fn show(judged: &AuditedFile, common: &Globals) -> Result<(), CliError> {
    let AuditedFile { bundles, verdicts, figures } = judged;
    match (&bundles[..], &verdicts[..]) {
        ([_], [verdict]) if common.json => {
            let wrong = |error: serde_json::Error| CliError::new(Exit::Defect, error.to_string());
            let json = reported::verdict_json(verdict, figures.as_ref().map(|(_, audit)| audit))
                .map_err(wrong)?;
            bundle::print(&bundle::json(&json)?)
        }
        _ if common.json => bundle::print(&bundle::json(&verdicts)?),
        ([only], [verdict]) => {
            let style = bundle::style(common);
            let documents = reported::run_and_figures(only, verdict, figures.as_ref());
            let text = documents.iter().map(|document| text::document(document, &style));
            bundle::print(&text.collect::<String>())
        }
        _ => bundle::print(&rows_text(bundles, verdicts)),
    }
}
