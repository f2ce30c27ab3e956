//! `plimsoll verify PATH`: checks the pages of a mail store, the blocks of a data set, or the
//! evidence of a run.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_runner::verify::{self, VerifiedData};

use super::bundle;
use crate::common::Globals;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::StderrProgress;

/// Options of `verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll verify /mnt/db1            the mail store or data set that \
        a run left there with --keep\n  plimsoll verify ./bundle            whether a run's \
        evidence is unchanged\n\nThe command reads only the data at PATH, even if its manifest \
        refers to other paths. It writes\nnothing, so PATH may be read-only.\n\nExit code 4: data \
        is damaged; each damaged page, log block and file is listed. For data, exit\ncode 3 \
        means that no damage was found, but the content of some pages is unknown, or\nthe witness \
        contains no commit of the store. For evidence, it means that the evidence was\nchanged, \
        contradicts itself, or is not confirmed."
)]
pub struct Options {
    /// A target directory of a plan, the directory of a mail store, a bundle, an experiment, or a
    /// run from `plimsoll runs`.
    path: PathBuf,
    /// File that a run wrote with --witness: each commit in this file must exist.
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// Public key (a file or the key itself). The matching secret key must have signed the bundle,
    /// or must have signed the ledger after the run.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// Verifies the path.
///
/// # Errors
/// There is nothing to verify, the evidence was changed, or files cannot be read.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    if verify::is_evidence(&options.path) {
        return evidence(&options.path, options, common);
    }
    // If the path does not exist, it may be the name of a run.
    let called = options.path.to_str().filter(|name| !name.contains('/') && !options.path.exists());
    if let Some(directory) = called.and_then(|name| bundle::find(name).ok()) {
        return evidence(&directory, options, common);
    }
    if options.key.is_some() {
        let says = format!("{} is not evidence; only evidence is signed", options.path.display());
        return Err(CliError::usage(says).hint("repeat the command without --key"));
    }
    let interrupt = interrupt::flag_on_signal()?;
    let mut progress = StderrProgress::new(common.quiet);
    let verified =
        verify::data(&options.path, options.witness.as_deref(), &interrupt, &mut progress)?;
    bundle::print(&match &verified.found {
        VerifiedData::Store(store) if common.json => bundle::json(store)?,
        VerifiedData::Store(store) => store.text(),
        VerifiedData::Data(data) if common.json => bundle::json(data)?,
        VerifiedData::Data(data) => data.text(),
    })?;
    verified.exit
}

/// Checks a bundle, or an experiment and its bundles.
fn evidence(path: &Path, options: &Options, common: &Globals) -> Result<Exit, CliError> {
    if options.witness.is_some() {
        let says = format!(
            "{} is evidence, but --witness is only valid for the directory of a mail store",
            path.display()
        );
        return Err(
            CliError::usage(says).hint("specify the directory of the store, or omit --witness")
        );
    }
    let reader = Reader::with_key(options.key.as_deref())?;
    let (verified, exit) = verify::evidence(path, &reader).inspect_err(|error| {
        if common.json {
            let found = serde_json::json!({ "intact": false, "says": error.message });
            let _ = bundle::json(&found).and_then(|text| bundle::print(&text));
        }
    })?;
    bundle::print(&if common.json { bundle::json(&verified)? } else { verified.text() })?;
    Ok(exit)
}
