//! Signed statements about the ledger: signing, timestamping and checking.

use std::path::{Path, PathBuf};

use plimsoll_evidence::EvidenceError;
use plimsoll_evidence::ledger::statement::statements;
use plimsoll_evidence::ledger::{Event, HeadState, Ledger, Link, Statement};
use plimsoll_evidence::signature::{Signer, public_key};
use plimsoll_report::ledger::{HeadChange, LedgerCheck, StatementCheck};
use plimsoll_sys::clock;
use serde::Serialize;

use crate::error::RunnerError;
use crate::exit::Exit;
use crate::places::Places;

#[derive(Clone, Debug, Serialize)]
pub struct SignedStatement {
    pub ledger: PathBuf,
    /// Number of ledger lines at the time of signing.
    pub lines: u64,
    pub statement: PathBuf,
}

impl SignedStatement {
    /// Returns a text with the paths and instructions for the user.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "signed: {} lines of {}\nstatement: {}\nGive the statement and its signature to \
             somebody who stores them. Any later change of these lines can then be detected.\n",
            self.lines,
            self.ledger.display(),
            self.statement.display()
        )
    }
}

/// Signs a statement that contains the ledger's length and last line. `out`: an additional path for
/// the statement.
///
/// # Errors
/// The ledger is broken or contradicts an earlier statement, or the statement cannot be written.
pub fn sign_statement(
    places: &Places,
    signer: &Signer,
    out: Option<&Path>,
) -> Result<SignedStatement, RunnerError> {
    let ledger = Ledger::at(places.ledger());
    let chain = ledger.read_chain()?;
    // A ledger that contradicts an earlier statement must not be signed.
    checked_statements(&chain, &places.statements(), None, &[])?;
    let now = clock::realtime_ns();
    let write = |to: &Path| Statement::sign(&chain, ledger.path(), to, signer, now);
    let kept = write(&places.statements())?;
    let statement = match out {
        Some(out) => write(out)?.path,
        None => kept.path.clone(),
    };
    Ok(SignedStatement { ledger: ledger.path().to_path_buf(), lines: kept.lines, statement })
}

/// Checks the ledger's chain of hashes, and compares the ledger with all stored statements and with
/// those in `extra`. `key`: if present, statements signed with other keys are ignored.
///
/// # Errors
/// The ledger is broken or contradicts a statement, or files cannot be read.
pub fn check(
    places: &Places,
    key: Option<&str>,
    extra: &[PathBuf],
) -> Result<LedgerCheck, RunnerError> {
    let ledger = Ledger::at(places.ledger());
    let chain = ledger.read_chain().map_err(|error| {
        let broken = matches!(error, EvidenceError::LedgerBroken { .. });
        let error = RunnerError::from(error);
        if broken { RunnerError { kind: Exit::NoVerdict, ..error } } else { error }
    })?;
    let key = key.map(public_key).transpose()?;
    let all = checked_statements(&chain, &places.statements(), key.as_deref(), extra)?;
    let runs = chain.iter().filter(|link| matches!(link.entry.event, Event::Started { .. }));
    Ok(LedgerCheck {
        ledger: ledger.path().display().to_string(),
        lines: chain.len() as u64,
        began_unix_ns: chain.first().map(|first| first.entry.unix_ns),
        runs: runs.count() as u64,
        changed_before: chain.iter().filter_map(head_change).collect(),
        statements: all.iter().map(|statement| statement_row(statement, key.as_deref())).collect(),
        asks_for_key: key.is_some(),
    })
}

/// Attaches a timestamp token to the latest statement. Returns the path of the token.
///
/// # Errors
/// There is no statement, or the token belongs to another text.
pub fn stamp(places: &Places, token: &Path) -> Result<PathBuf, RunnerError> {
    let Some(latest) = statements(&places.statements()).pop() else {
        return Err(RunnerError::usage("no signed statement about the ledger exists")
            .hint("create one: plimsoll ledger sign --key FILE"));
    };
    latest?.stamp(token).map_err(RunnerError::of_named_file)
}

fn head_change(link: &Link) -> Option<HeadChange> {
    match &link.entry.head {
        Some(HeadState::Differed(says)) => {
            Some(HeadChange { line: link.entry.position, says: says.clone() })
        }
        _ => None,
    }
}

fn statement_row(statement: &Statement, key: Option<&str>) -> StatementCheck {
    StatementCheck {
        file: statement.path.display().to_string(),
        lines: statement.lines,
        signed_unix_ns: statement.signed_unix_ns,
        key: statement.key.clone(),
        of_given_key: key.map(|key| statement.is_signed_by(key)),
        timestamp_token: statement.token().map(|token| token.display().to_string()),
    }
}

/// Returns all stored and extra statements, after comparing each with the chain.
fn checked_statements(
    chain: &[Link],
    kept: &Path,
    key: Option<&str>,
    extra: &[PathBuf],
) -> Result<Vec<Statement>, RunnerError> {
    let mut all = Vec::new();
    let kept = statements(kept).into_iter().map(|read| read.map_err(RunnerError::from));
    let extra = extra.iter().map(|path| Statement::read(path).map_err(RunnerError::of_named_file));
    for statement in kept.chain(extra) {
        let statement = statement?;
        statement.holds_for(chain).map_err(|says| {
            let says = format!("the ledger contradicts {}: {says}", statement.path.display());
            RunnerError::new(Exit::NoVerdict, says)
        })?;
        if key.is_none_or(|key| statement.is_signed_by(key)) {
            all.push(statement);
        }
    }
    Ok(all)
}
