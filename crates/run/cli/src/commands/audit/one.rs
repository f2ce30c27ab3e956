//! Judges one result as a run: fio's JSON and the tables of docs/audit.md. Uses the rules for runs,
//! and checks the consistency of the figures.

use std::path::Path;

use plimsoll_report::rows::rows_text;
use plimsoll_runner::audit::{self, AuditedFile, DeclaredSystem};

use super::super::bundle;
use super::declaration::claims;
use super::{Options, study};
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges the file.
///
/// # Errors
/// An unreadable file, or an unknown format.
pub fn carry_out(
    file: &Path,
    declared: &DeclaredSystem,
    options: &Options,
    common: &Globals,
) -> Result<Exit, CliError> {
    let judged = audit::audit_run_file(file, declared, &claims(&options.claim)?)?;
    show(&judged, common)?;
    if let (Some(path), [only], [verdict]) =
        (&options.html, &judged.bundles[..], &judged.verdicts[..])
    {
        study::write(path, &bundle::html(only, verdict)?)?;
    }
    Ok(judged.exit())
}

fn show(judged: &AuditedFile, common: &Globals) -> Result<(), CliError> {
    let AuditedFile { bundles, verdicts, figures } = judged;
    match (&bundles[..], &verdicts[..]) {
        ([_], [verdict]) if common.json => {
            let wrong = |error: serde_json::Error| CliError::new(Exit::Defect, error.to_string());
            let mut json = serde_json::to_value(verdict).map_err(wrong)?;
            if let (Some(object), Some(figures)) = (json.as_object_mut(), figures) {
                object.insert("figures".into(), serde_json::to_value(figures).map_err(wrong)?);
            }
            bundle::print(&bundle::json(&json)?)
        }
        _ if common.json => bundle::print(&bundle::json(&verdicts)?),
        ([only], [verdict]) => {
            let style = bundle::style(common);
            let mut text = plimsoll_report::text(only, verdict, &style);
            if let Some(figures) = figures {
                text.push_str(&plimsoll_report::reported::figures_text(figures, &style));
            }
            bundle::print(&text)
        }
        _ => bundle::print(&rows_text(bundles, verdicts)),
    }
}
