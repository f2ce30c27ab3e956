//! `plimsoll ledger`: keys, signed statements of the ledger, and whether it still is what was stated.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll_evidence::EvidenceError;
use plimsoll_evidence::ledger::statement::statements;
use plimsoll_evidence::ledger::{Event, HeadFound, Ledger, Link, Statement};
use plimsoll_evidence::signature::{make_keys, public_key};
use plimsoll_report::time;
use plimsoll_sys::clock;
use serde::Serialize;

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
    bundle::print(&format!(
        "secret key: {}\npublic key: {}.pub\n{public}\n",
        file.display(),
        file.display()
    ))?;
    Ok(Exit::Ok)
}

fn sign(key: &Path, out: Option<&Path>) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let ledger = Ledger::at(places.ledger());
    let Some(signer) = keys::signer(Some(key))? else { return Ok(Exit::Ok) };
    let chain = ledger.read_chain()?;
    // A ledger that is not what was stated before is not to be stated anew.
    holds(&chain, &places.statements(), None, &[])?;
    let now = clock::realtime_ns();
    let write = |to: &Path| Statement::sign(&chain, ledger.path(), to, &signer, now);
    let statement = write(&places.statements())?;
    let told = match out {
        Some(out) => write(out)?.path,
        None => statement.path.clone(),
    };
    bundle::print(&format!(
        "signed: {} lines of {}\nstatement: {}\nGive the statement and its signature to somebody who keeps \
         them: from then on the ledger can't be cut short or rewritten up to that line unnoticed.\n",
        statement.lines,
        ledger.path().display(),
        told.display()
    ))?;
    Ok(Exit::Ok)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Checked {
    ledger: String,
    lines: u64,
    began_unix_ns: Option<u64>,
    runs: u64,
    /// Lines whose writers found a ledger that was not what its head said.
    changed_before: Vec<Changed>,
    statements: Vec<CheckedStatement>,
}

#[derive(Serialize)]
struct Changed {
    line: u64,
    says: String,
}

#[derive(Serialize)]
struct CheckedStatement {
    file: String,
    lines: u64,
    signed_unix_ns: u64,
    key: String,
    /// `None`: no key was given to hold it against.
    of_given_key: Option<bool>,
    timestamp_token: Option<String>,
}

fn check(key: Option<&str>, given: &[PathBuf], common: &Common) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let ledger = Ledger::at(places.ledger());
    let chain = ledger.read_chain().map_err(|error| {
        let broken = matches!(error, EvidenceError::LedgerBroken { .. });
        let error = CliError::from(error);
        if broken { CliError { kind: Exit::NoVerdict, ..error } } else { error }
    })?;
    let key = key.map(public_key).transpose()?;
    let all = holds(&chain, &places.statements(), key.as_deref(), given)?;
    let runs = chain.iter().filter(|link| matches!(link.entry.event, Event::Started { .. }));
    let checked = Checked {
        ledger: ledger.path().display().to_string(),
        lines: chain.len() as u64,
        began_unix_ns: chain.first().map(|first| first.entry.unix_ns),
        runs: runs.count() as u64,
        changed_before: chain.iter().filter_map(changed).collect(),
        statements: all.iter().map(|statement| told(statement, key.as_deref())).collect(),
    };
    // A key was named, so something was to be signed with it.
    let signed = key.is_none() || checked.statements.iter().any(|s| s.of_given_key == Some(true));
    let whole = signed && checked.changed_before.is_empty();
    let exit = if whole { Exit::Ok } else { Exit::NoVerdict };
    if common.json {
        bundle::print(&bundle::json(&checked)?)?;
    } else {
        bundle::print(&describe(&checked, signed))?;
    }
    Ok(exit)
}

fn changed(link: &Link) -> Option<Changed> {
    match &link.entry.head {
        Some(HeadFound::Differed(says)) => {
            Some(Changed { line: link.entry.position, says: says.clone() })
        }
        _ => None,
    }
}

fn told(statement: &Statement, key: Option<&str>) -> CheckedStatement {
    CheckedStatement {
        file: statement.path.display().to_string(),
        lines: statement.lines,
        signed_unix_ns: statement.signed_unix_ns,
        key: statement.key.clone(),
        of_given_key: key.map(|key| statement.is_signed_by(key)),
        timestamp_token: statement.token().map(|token| token.display().to_string()),
    }
}

/// Every statement that is kept or given, once each was found to hold.
fn holds(
    chain: &[Link],
    kept: &Path,
    key: Option<&str>,
    given: &[PathBuf],
) -> Result<Vec<Statement>, CliError> {
    let mut all = Vec::new();
    for statement in statements(kept).into_iter().chain(given.iter().map(|p| Statement::read(p))) {
        let statement = statement?;
        statement.holds_for(chain).map_err(|says| {
            let says =
                format!("the ledger is not what {} states: {says}", statement.path.display());
            CliError::new(Exit::NoVerdict, says)
        })?;
        if key.is_none_or(|key| statement.is_signed_by(key)) {
            all.push(statement);
        }
    }
    Ok(all)
}

fn describe(checked: &Checked, signed: bool) -> String {
    let mut text = match (signed, checked.statements.is_empty()) {
        _ if !checked.changed_before.is_empty() => {
            "CHANGED: it was not as its last run had left it when a later one began\n\n".to_owned()
        }
        (false, _) => {
            "NOT SIGNED: no statement of this ledger is signed with that key\n\n".to_owned()
        }
        (true, true) => {
            "WHOLE: each line holds the hash of the one before, and the head that of the last; nothing was \
             signed\n\n".to_owned()
        }
        (true, false) => {
            "WHOLE: each line holds the hash of the one before, and every statement holds\n\n"
                .to_owned()
        }
    };
    let began = checked.began_unix_ns.map_or("it is empty".to_owned(), time::utc);
    text.push_str(&format!("  ledger  {}\n", checked.ledger));
    let runs =
        if checked.runs == 1 { "1 run".to_owned() } else { format!("{} runs", checked.runs) };
    text.push_str(&format!("  lines   {}, of {runs}\n", checked.lines));
    text.push_str(&format!("  began   {began}\n"));
    for Changed { line, says } in &checked.changed_before {
        text.push_str(&format!("  before line {line}: {says}\n"));
    }
    for statement in &checked.statements {
        let token = statement.timestamp_token.as_ref().map_or("", |_| ", with a timestamp token");
        text.push_str(&format!(
            "  signed  {} lines on {} with {}{token}\n",
            statement.lines,
            time::utc(statement.signed_unix_ns),
            statement.key
        ));
    }
    text
}

fn stamp(token: &Path) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let Some(latest) = statements(&places.statements()).pop() else {
        return Err(CliError::usage("no statement of the ledger was signed yet")
            .hint("plimsoll ledger sign --key FILE"));
    };
    let path = latest?.stamp(token)?;
    bundle::print(&format!(
        "token: {}\nThe authority's signature is checked with: openssl ts -verify -in {} -data {} -CAfile \
         CA.pem\n",
        path.display(),
        path.display(),
        path.with_extension("").display()
    ))?;
    Ok(Exit::Ok)
}
