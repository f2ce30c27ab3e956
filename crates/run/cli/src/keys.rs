//! Keys for signing evidence, and their passwords.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use plimsoll_evidence::signature::Signer;
use plimsoll_runner::private_file;

use crate::error::CliError;
use crate::places::Places;

/// Environment variable that contains the password of a secret key, for runs without a terminal.
const PASSWORD: &str = "PLIMSOLL_KEY_PASSWORD";

/// Option that every command that creates evidence accepts.
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

/// Returns the password from the environment. If this is `None`, callers ask for it on the
/// terminal.
pub fn password() -> Option<String> {
    std::env::var(PASSWORD).ok()
}

/// Reads the signing key before any run starts. If the key has a password and the environment does
/// not contain it, asks for it on the terminal.
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
