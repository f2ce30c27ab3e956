//! `plimsoll verify PATH`: verifies the pages of a mail store, the blocks of a data set, or
//! evidence.

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
    a run left there with --keep\n  plimsoll verify ./bundle            whether a run's evidence \
    is unchanged\n\nReads only the data at PATH, no other place that its manifest names. Writes \
    nothing, so PATH may be\nread-only.\n\nExit code 4: damage was found; each damaged page, log \
    block and file is named. Exit code 3: no damage\nwas found, but the content of some pages is \
    unknown; or evidence was changed, contradicts itself, or\nis not confirmed."
)]
pub struct Options {
    /// A directory of a plan, a store's directory, a bundle, an experiment, or a run from `plimsoll
    /// runs`.
    path: PathBuf,
    /// File from a run's --witness: each commit in it must exist.
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// Public key that must have signed the evidence: a file, or its line. Either the bundle is
    /// signed, or the ledger after the run.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// Verifies the path.
///
/// # Errors
/// There is nothing to verify, the evidence was changed, or files cannot be read.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    if verify::is_evidence(&options.path) {
        return evidence(&options.path, options.key.as_deref(), common);
    }
    // A missing path may be the name of a run.
    let called = options.path.to_str().filter(|name| !name.contains('/') && !options.path.exists());
    if let Some(directory) = called.and_then(|name| bundle::find(name).ok()) {
        return evidence(&directory, options.key.as_deref(), common);
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

/// Checks a bundle, or an experiment with its bundles.
fn evidence(path: &Path, key: Option<&str>, common: &Globals) -> Result<Exit, CliError> {
    let reader = Reader::with_key(key)?;
    let (verified, exit) = verify::evidence(path, &reader).inspect_err(|error| {
        if common.json {
            let found = serde_json::json!({ "intact": false, "says": error.message });
            let _ = bundle::json(&found).and_then(|text| bundle::print(&text));
        }
    })?;
    bundle::print(&if common.json { bundle::json(&verified)? } else { verified.text() })?;
    Ok(exit)
}
