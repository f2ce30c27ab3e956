//! `plimsoll ledger`: keys, signed statements of the ledger, and whether it still is what was stated.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_evidence::signature::make_keys;
use plimsoll_runner::ledger;

use super::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys;
use crate::places::Places;

/// Options of `ledger`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll ledger key ~/plimsoll.key            a key pair; keep the secret \
    one off the machine\n  plimsoll ledger sign --key ~/plimsoll.key     state what the ledger is, and give \
    the statement away\n  plimsoll ledger check --key ~/plimsoll.key.pub\n  plimsoll ledger stamp token.tsr   \
    attach a timestamp token (RFC 3161) to the latest statement\n\nStatements are text files that minisign \
    checks: minisign -V -p plimsoll.key.pub -m ledger-000057.txt\nA token is made of one with: openssl ts \
    -query -data ledger-000057.txt -sha256 -cert -out request.tsq\nExit code 3 means that the ledger is broken, \
    or not what was stated."
)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a pair of keys: FILE, and FILE.pub.
    Key {
        /// Where the secret key goes.
        file: PathBuf,
        /// Protect it with the password in PLIMSOLL_KEY_PASSWORD.
        #[arg(long)]
        password: bool,
    },
    /// State how long the ledger is and what its last line is, and sign that.
    Sign {
        /// The secret key, as `ledger key` or minisign writes it.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Directory to write the statement to, besides the one that is kept.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Check the chain, and the ledger against all statements.
    Check {
        /// The public key that statements have to be signed with: a file, or its one line.
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// A statement that was given away, besides those that are kept.
        #[arg(long, value_name = "FILE")]
        statement: Vec<PathBuf>,
    },
    /// Attach a timestamp token to the latest statement.
    Stamp {
        /// The token, as a timestamp authority answers.
        token: PathBuf,
    },
}

/// Carries a subcommand out.
///
/// # Errors
/// A key, ledger or statement that can't be read or does not hold.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        What::Key { file, password } => make(file, *password),
        What::Sign { key, out } => sign(key, out.as_deref()),
        What::Check { key, statement } => check(key.as_deref(), statement, common),
        What::Stamp { token } => stamp(token),
    }
}

fn make(file: &Path, with_password: bool) -> Result<Exit, CliError> {
    let password = keys::password();
    if with_password && password.is_none() {
        return Err(CliError::usage("PLIMSOLL_KEY_PASSWORD is not set")
            .hint("set it, or make the key with `minisign -G`, which asks for a password"));
    }
    let public = make_keys(file, password.filter(|_| with_password))?;
    let file = file.display();
    bundle::print(&format!("secret key: {file}\npublic key: {file}.pub\n{public}\n"))?;
    Ok(Exit::Ok)
}

fn sign(key: &Path, out: Option<&Path>) -> Result<Exit, CliError> {
    let Some(signer) = keys::signer(Some(key))? else { return Ok(Exit::Ok) };
    let stated = ledger::sign_statement(&Places::from_environment()?, &signer, out)?;
    bundle::print(&format!(
        "signed: {} lines of {}\nstatement: {}\nGive the statement and its signature to somebody who keeps \
         them: from then on the ledger can't be cut short or rewritten up to that line unnoticed.\n",
        stated.lines,
        stated.ledger.display(),
        stated.statement.display()
    ))?;
    Ok(Exit::Ok)
}

fn check(key: Option<&str>, given: &[PathBuf], common: &Common) -> Result<Exit, CliError> {
    let checked = ledger::check(&Places::from_environment()?, key, given)?;
    bundle::print(&if common.json { bundle::json(&checked)? } else { checked.text() })?;
    Ok(if checked.is_whole() { Exit::Ok } else { Exit::NoVerdict })
}

fn stamp(token: &Path) -> Result<Exit, CliError> {
    let path = ledger::stamp(&Places::from_environment()?, token)?;
    let (stamped, statement) = (path.display(), path.with_extension(""));
    let statement = statement.display();
    bundle::print(&format!(
        "token: {stamped}\nThe authority's signature is checked with: openssl ts -verify -in {stamped} -data \
         {statement} -CAfile CA.pem\n"
    ))?;
    Ok(Exit::Ok)
}
