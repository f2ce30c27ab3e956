//! `plimsoll ledger`: keys, signed statements about the ledger, and checks against them.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_evidence::signature::make_keys;
use plimsoll_runner::ledger;

use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys;
use crate::places::Places;

/// Options of `ledger`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll ledger key ~/plimsoll.key            a key pair; store the \
    secret key elsewhere\n  plimsoll ledger sign --key ~/plimsoll.key     a statement for others \
    to store\n  plimsoll ledger check --key ~/plimsoll.key.pub\n  plimsoll ledger stamp \
    token.tsr   attach a timestamp token (RFC 3161) to the latest statement\n\nStatements are \
    text files that minisign checks: minisign -V -p plimsoll.key.pub -m ledger-000057.txt\nCreate \
    a token of a statement with: openssl ts -query -data ledger-000057.txt -sha256 -cert -out \
    request.tsq\nExit code 3: the ledger is broken, or differs from a statement."
)]
pub struct Options {
    #[command(subcommand)]
    what: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// Create a pair of keys: FILE and FILE.pub.
    Key {
        /// File for the secret key.
        file: PathBuf,
        /// Protect it with the password in PLIMSOLL_KEY_PASSWORD.
        #[arg(long)]
        password: bool,
    },
    /// Sign a statement with the ledger's length and last line.
    Sign {
        /// The secret key, as `ledger key` or minisign writes it.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Additional directory for the statement.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Check the chain, and the ledger against all statements.
    Check {
        /// Public key that must have signed the statements: a file, or its line.
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// An additional statement, such as one that somebody else stored.
        #[arg(long, value_name = "FILE")]
        statement: Vec<PathBuf>,
    },
    /// Attach a timestamp token to the latest statement.
    Stamp {
        /// The token from a timestamp authority.
        token: PathBuf,
    },
}

/// Runs a subcommand.
///
/// # Errors
/// An unreadable or invalid key, ledger or statement.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        LedgerCommand::Key { file, password } => make(file, *password),
        LedgerCommand::Sign { key, out } => sign(key, out.as_deref()),
        LedgerCommand::Check { key, statement } => check(key.as_deref(), statement, common),
        LedgerCommand::Stamp { token } => stamp(token),
    }
}

fn make(file: &Path, with_password: bool) -> Result<Exit, CliError> {
    let password = keys::password();
    if with_password && password.is_none() {
        return Err(CliError::usage("PLIMSOLL_KEY_PASSWORD is not set")
            .hint("set it, or create the key with `minisign -G`, which prompts for a password"));
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
        "signed: {} lines of {}\nstatement: {}\nGive the statement and its signature to somebody \
         who stores them: then a later change of the ledger up to that line can be detected.\n",
        stated.lines,
        stated.ledger.display(),
        stated.statement.display()
    ))?;
    Ok(Exit::Ok)
}

fn check(key: Option<&str>, given: &[PathBuf], common: &Globals) -> Result<Exit, CliError> {
    let checked = ledger::check(&Places::from_environment()?, key, given)?;
    bundle::print(&if common.json { bundle::json(&checked)? } else { checked.text() })?;
    Ok(if checked.is_whole() { Exit::Ok } else { Exit::NoVerdict })
}

fn stamp(token: &Path) -> Result<Exit, CliError> {
    let path = ledger::stamp(&Places::from_environment()?, token)?;
    let (stamped, statement) = (path.display(), path.with_extension(""));
    let statement = statement.display();
    bundle::print(&format!(
        "token: {stamped}\nCheck the authority's signature with: openssl ts -verify -in {stamped} -data \
         {statement} -CAfile CA.pem\n"
    ))?;
    Ok(Exit::Ok)
}
