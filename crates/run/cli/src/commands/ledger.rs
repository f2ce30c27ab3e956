//! `plimsoll ledger`: creates keys and signed statements about the ledger, and checks the ledger.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_evidence::signature::make_keys;
use plimsoll_runner::ledger;
use serde::Serialize;
use serde_json::json;

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
        secret key elsewhere\n  plimsoll ledger sign --key ~/plimsoll.key     a statement for \
        others to store\n  plimsoll ledger check --key ~/plimsoll.key.pub\n  plimsoll ledger stamp \
        token.tsr   attach a timestamp token (RFC 3161) to the latest statement\n\nStatements are \
        text files.\nTo check a signature: minisign -V -p plimsoll.key.pub -m \
        ledger-000057.txt\nFor a token: openssl ts -query -data ledger-000057.txt -sha256 -cert \
        -out request.tsq\nExit code 3: the ledger is broken, or differs from a statement."
)]
pub struct Options {
    #[command(subcommand)]
    what: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    /// Create a key pair: FILE and FILE.pub.
    Key {
        /// File for the secret key.
        file: PathBuf,
        /// Protect the key with the password in PLIMSOLL_KEY_PASSWORD.
        #[arg(long)]
        password: bool,
    },
    /// Sign a statement that contains the ledger's length and last line.
    Sign {
        /// The secret key, from `ledger key` or minisign.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Also write the statement to this directory.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Check the ledger's hash chain, and compare the ledger with all statements.
    Check {
        /// Public key (a file or the key itself) that must match the signatures of the statements.
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// Also check this statement, for example one that another person stored.
        #[arg(long, value_name = "FILE")]
        statement: Vec<PathBuf>,
    },
    /// Attach a timestamp token to the latest statement.
    Stamp {
        /// The token that a timestamp authority returned.
        token: PathBuf,
    },
}

/// Runs a subcommand.
///
/// # Errors
/// A key, the ledger or a statement cannot be read, or is invalid.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        LedgerCommand::Key { file, password } => make(file, *password, common),
        LedgerCommand::Sign { key, out } => sign(key, out.as_deref(), common),
        LedgerCommand::Check { key, statement } => check(key.as_deref(), statement, common),
        LedgerCommand::Stamp { token } => stamp(token, common),
    }
}

fn make(file: &Path, with_password: bool, common: &Globals) -> Result<Exit, CliError> {
    let password = keys::password();
    if with_password && password.is_none() {
        return Err(CliError::usage("PLIMSOLL_KEY_PASSWORD is not set")
            .hint("set it, or create the key with `minisign -G`, which prompts for a password"));
    }
    let public = make_keys(file, password.filter(|_| with_password));
    let public = public.map_err(CliError::of_named_file)?;
    let [secret, beside] = ["", ".pub"].map(|end| format!("{}{end}", file.display()));
    let text = format!("secret key: {secret}\npublic key: {beside}\n{public}\n");
    print(&json!({ "secret_key": secret, "public_key": beside, "key": public }), text, common)
}

fn sign(key: &Path, out: Option<&Path>, common: &Globals) -> Result<Exit, CliError> {
    let Some(signer) = keys::signer(Some(key))? else { return Ok(Exit::Ok) };
    let signed = ledger::sign_statement(&Places::from_environment()?, &signer, out)?;
    print(&signed, signed.text(), common)
}

fn check(key: Option<&str>, given: &[PathBuf], common: &Globals) -> Result<Exit, CliError> {
    let checked = ledger::check(&Places::from_environment()?, key, given)?;
    print(&checked, checked.text(), common)?;
    Ok(if checked.is_whole() { Exit::Ok } else { Exit::NoVerdict })
}

fn stamp(token: &Path, common: &Globals) -> Result<Exit, CliError> {
    let path = ledger::stamp(&Places::from_environment()?, token)?;
    let [token, statement] =
        [path.clone(), path.with_extension("")].map(|p| p.display().to_string());
    let text = format!(
        "token: {token}\nTo check the authority's signature: openssl ts -verify -in {token} -data \
         {statement} -CAfile CA.pem\n"
    );
    print(&json!({ "token": token, "statement": statement }), text, common)
}

fn print(result: &impl Serialize, text: String, common: &Globals) -> Result<Exit, CliError> {
    bundle::print(&if common.json { bundle::json(result)? } else { text }).map(|()| Exit::Ok)
}
