//! Keys that evidence is signed with, and their passwords.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use plimsoll_evidence::signature::Signer;

use crate::error::CliError;
use crate::places::Places;

/// The environment variable that holds a secret key's password, for runs without a terminal.
const PASSWORD: &str = "PLIMSOLL_KEY_PASSWORD";

/// The option of every command that leaves evidence.
#[derive(Clone, Debug, Default, Args)]
pub struct Sign {
    /// Sign the evidence with this secret key, as `plimsoll ledger key` or minisign writes it.
    #[arg(long = "sign", value_name = "KEY")]
    pub key: Option<PathBuf>,
}

/// Where Plimsoll keeps its own files, with the key that evidence is to be signed with. The key is read before
/// anything is run.
///
/// # Errors
/// As [`Places::from_environment`], or a key that can't be read.
pub fn places(sign: &Sign) -> Result<Places, CliError> {
    let signer = signer(sign.key.as_deref())?.map(Arc::new);
    Ok(Places { signer, ..Places::from_environment()? })
}

/// The password in the environment, if there is one. Without it a terminal is asked.
pub fn password() -> Option<String> {
    std::env::var(PASSWORD).ok()
}

/// Reads the key that evidence is to be signed with, before anything is run. A key with a password asks for
/// it here.
///
/// # Errors
/// A file that is no secret key, or a wrong password.
pub fn signer(key: Option<&Path>) -> Result<Option<Signer>, CliError> {
    let read = |path: &Path| {
        Signer::read(path, password).map_err(|error| {
            CliError::from(error).hint(
                "`plimsoll ledger key FILE` makes one; `minisign -G` does too. A password is taken \
                 from PLIMSOLL_KEY_PASSWORD, or asked for on the terminal",
            )
        })
    };
    key.map(read).transpose()
}
