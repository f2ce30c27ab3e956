//! The ledger's signed statements: made, stamped, and the ledger held against them.

use std::path::{Path, PathBuf};

use plimsoll_evidence::EvidenceError;
use plimsoll_evidence::ledger::statement::statements;
use plimsoll_evidence::ledger::{Event, HeadState, Ledger, Link, Statement};
use plimsoll_evidence::signature::{Signer, public_key};
use plimsoll_report::ledger::{Changed, CheckedStatement, LedgerChecked};
use plimsoll_sys::clock;

use crate::error::RunnerError;
use crate::exit::Exit;
use crate::places::Places;

/// A statement that was signed.
#[derive(Clone, Debug)]
pub struct Stated {
    /// The ledger's file.
    pub ledger: PathBuf,
    /// How many of its lines it stands for.
    pub lines: u64,
    /// Where it lies, to be given away.
    pub statement: PathBuf,
}

/// States how long the ledger is and what its last line is, and signs that. `out`: where the statement is written
/// to besides the place where it is kept.
///
/// # Errors
/// A ledger that is broken, or not what was stated of it before; a statement that can't be written.
pub fn state(places: &Places, signer: &Signer, out: Option<&Path>) -> Result<Stated, RunnerError> {
    let ledger = Ledger::at(places.ledger());
    let chain = ledger.read_chain()?;
    // A ledger that is not what was stated before is not to be stated anew.
    holding(&chain, &places.statements(), None, &[])?;
    let now = clock::realtime_ns();
    let write = |to: &Path| Statement::sign(&chain, ledger.path(), to, signer, now);
    let kept = write(&places.statements())?;
    let statement = match out {
        Some(out) => write(out)?.path,
        None => kept.path.clone(),
    };
    Ok(Stated { ledger: ledger.path().to_path_buf(), lines: kept.lines, statement })
}

/// Checks the chain, and the ledger against all statements: those that are kept, and those of `given`. `key` is the
/// public key that they have to be signed with.
///
/// # Errors
/// A ledger that is broken or not what was stated, files that can't be read.
pub fn check(
    places: &Places,
    key: Option<&str>,
    given: &[PathBuf],
) -> Result<LedgerChecked, RunnerError> {
    let ledger = Ledger::at(places.ledger());
    let chain = ledger.read_chain().map_err(|error| {
        let broken = matches!(error, EvidenceError::LedgerBroken { .. });
        let error = RunnerError::from(error);
        if broken { RunnerError { kind: Exit::NoVerdict, ..error } } else { error }
    })?;
    let key = key.map(public_key).transpose()?;
    let all = holding(&chain, &places.statements(), key.as_deref(), given)?;
    let runs = chain.iter().filter(|link| matches!(link.entry.event, Event::Started { .. }));
    Ok(LedgerChecked {
        ledger: ledger.path().display().to_string(),
        lines: chain.len() as u64,
        began_unix_ns: chain.first().map(|first| first.entry.unix_ns),
        runs: runs.count() as u64,
        changed_before: chain.iter().filter_map(changed).collect(),
        statements: all.iter().map(|statement| checked(statement, key.as_deref())).collect(),
        asks_for_key: key.is_some(),
    })
}

/// Attaches a timestamp token to the latest statement; returns where it lies.
///
/// # Errors
/// No statement, or a token that is none of it.
pub fn stamp(places: &Places, token: &Path) -> Result<PathBuf, RunnerError> {
    let Some(latest) = statements(&places.statements()).pop() else {
        return Err(RunnerError::usage("no statement of the ledger was signed yet")
            .hint("plimsoll ledger sign --key FILE"));
    };
    Ok(latest?.stamp(token)?)
}

fn changed(link: &Link) -> Option<Changed> {
    match &link.entry.head {
        Some(HeadState::Differed(says)) => {
            Some(Changed { line: link.entry.position, says: says.clone() })
        }
        _ => None,
    }
}

fn checked(statement: &Statement, key: Option<&str>) -> CheckedStatement {
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
fn holding(
    chain: &[Link],
    kept: &Path,
    key: Option<&str>,
    given: &[PathBuf],
) -> Result<Vec<Statement>, RunnerError> {
    let mut all = Vec::new();
    for statement in statements(kept).into_iter().chain(given.iter().map(|p| Statement::read(p))) {
        let statement = statement?;
        statement.holds_for(chain).map_err(|says| {
            let says =
                format!("the ledger is not what {} states: {says}", statement.path.display());
            RunnerError::new(Exit::NoVerdict, says)
        })?;
        if key.is_none_or(|key| statement.is_signed_by(key)) {
            all.push(statement);
        }
    }
    Ok(all)
}
