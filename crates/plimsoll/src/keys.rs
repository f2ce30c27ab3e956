//! Keys that evidence is signed with, and their passwords.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_evidence::signature::Signer;

use crate::error::CliError;

/// The environment variable that holds a secret key's password, for runs without a terminal.
const PASSWORD: &str = "PLIMSOLL_KEY_PASSWORD";

/// The option of every command that leaves evidence.
#[derive(Clone, Debug, Default, Args)]
pub struct Sign {
    /// Sign the evidence with this secret key, as `plimsoll ledger key` or minisign writes it.
    #[arg(long = "sign", value_name = "KEY")]
    pub key: Option<PathBuf>,
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
