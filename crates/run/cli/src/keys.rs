//! Keys for signing evidence, and their passwords.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use plimsoll_evidence::signature::Signer;
use plimsoll_runner::private_file;

use crate::error::CliError;
use crate::places::Places;

/// Environment variable with a secret key's password, for runs without a terminal.
const PASSWORD: &str = "PLIMSOLL_KEY_PASSWORD";

/// Option of every command that creates evidence.
#[derive(Clone, Debug, Default, Args)]
pub struct Sign {
    /// Sign the evidence with this secret key, which `plimsoll ledger key` or minisign created.
    #[arg(long = "sign", value_name = "KEY")]
    pub key: Option<PathBuf>,
}

/// Returns Plimsoll's directories with the signing key. The key is read before any run starts.
///
/// # Errors
/// [`Places::from_environment`] failed, or the key cannot be read.
pub fn places(sign: &Sign) -> Result<Places, CliError> {
    let signer = signer(sign.key.as_deref())?.map(Arc::new);
    Ok(Places { signer, ..Places::from_environment()? })
}

/// Returns the password from the environment; without it, the function for the terminal asks for
/// it.
pub fn password() -> Option<String> {
    std::env::var(PASSWORD).ok()
}

/// Reads the signing key before any run starts. If the key has a password, the function asks for
/// it.
///
/// # Errors
/// The file is not a secret key, or the password is wrong.
pub fn signer(key: Option<&Path>) -> Result<Option<Signer>, CliError> {
    let read = |path: &Path| {
        private_file::check(path)?;
        Signer::read(path, password).map_err(|error| {
            CliError::from(error).hint(
                "`plimsoll ledger key FILE` or `minisign -G` creates a key. The password is read \
                 from PLIMSOLL_KEY_PASSWORD or from the terminal",
            )
        })
    };
    key.map(read).transpose()
}
