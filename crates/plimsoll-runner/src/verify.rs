//! Whether what a run left is as it left it: the pages of a mail store, the blocks of a data set, or evidence.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::mailbox::{StoreCheck, StoreState, check_store, is_mail_store};
use plimsoll_engine::matrix::{DataCheck, check_data, is_data_set};
use plimsoll_evidence::ledger::LedgerMatch;
use plimsoll_evidence::seal;
use plimsoll_report::verified::{DataVerified, EvidenceVerified, RunVerified, StoreVerified};

use crate::custody::{Loaded, Reader, Signed, Standing, Together};
use crate::error::{RunnerError, engine_error};
use crate::exit::Exit;
use crate::experiment;
use crate::fleet;
use crate::listener::Listener;

/// What was found of stored data.
#[derive(Clone, Debug)]
pub enum Found {
    /// A mail store.
    Store(StoreVerified),
    /// A data set.
    Data(DataVerified),
}

/// Stored data that was read, with how the command ends.
#[derive(Debug)]
pub struct Verified {
    /// What was found.
    pub found: Found,
    /// How it ends: an I/O error that cut it short is none of the storage's contents.
    pub exit: Result<Exit, RunnerError>,
}

/// Whether a directory is a bundle, or an experiment with its bundles.
pub fn is_evidence(path: &Path) -> bool {
    let files = [seal::FILE, "run.json", experiment::FILE];
    files.iter().any(|name| path.join(name).is_file()) || fleet::is_fleet(path)
}

/// Reads the mail store or data set at `path`: what lies there, and nothing else. `witness`: what a run's `--witness`
/// wrote.
///
/// # Errors
/// Nothing to verify there, both at once, or files that can't be opened.
pub fn data(
    path: &Path,
    witness: Option<&Path>,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Verified, RunnerError> {
    if let Some(given) = path.to_str()
        && (given.starts_with("nfs://") || given.starts_with("s3://"))
    {
        let says =
            format!("{given}: data on NFS exports and in buckets is checked within its run only");
        return Err(
            RunnerError::usage(says).hint("set verify = true in [phases], and run the plan")
        );
    }
    let is_data_set = is_data_set(path);
    if is_data_set && is_mail_store(path) {
        let path = path.display();
        let says = format!("{path} holds a data set and a mail store: nothing was read");
        return Err(
            RunnerError::usage(says).hint("name one of the directories plimsoll-NAME in it")
        );
    }
    if is_data_set {
        let check = check_data(path, interrupt, listener).map_err(|error| engine_error(&error))?;
        return Ok(of_data(check));
    }
    let check =
        check_store(path, witness, interrupt, listener).map_err(|error| engine_error(&error))?;
    Ok(of_store(check))
}

fn ended(io_error: Option<String>, exit: Exit) -> Result<Exit, RunnerError> {
    match io_error {
        Some(error) => {
            Err(RunnerError::environment(error).hint("look at the kernel's log (dmesg)"))
        }
        None => Ok(exit),
    }
}

fn of_data(check: DataCheck) -> Verified {
    let exit = match &check {
        _ if check.damage_count > 0 => Exit::Corruption,
        DataCheck { complete: false, .. } => Exit::Interrupted,
        _ => Exit::Ok,
    };
    let found = DataVerified {
        intact: check.damage_count == 0 && check.complete,
        blocks_checked: check.blocks_checked,
        damage_count: check.damage_count,
        damage: check.damage,
        complete: check.complete,
    };
    Verified { found: Found::Data(found), exit: ended(check.io_error, exit) }
}

fn of_store(check: StoreCheck) -> Verified {
    let exit = match &check {
        _ if check.damage_count > 0 => Exit::Corruption,
        StoreCheck { complete: false, .. } => Exit::Interrupted,
        StoreCheck { pages_unknown: 1.., .. } => Exit::NoVerdict,
        _ => Exit::Ok,
    };
    let is_unknown = check.damage_count == 0 && check.complete && check.pages_unknown > 0;
    let found = StoreVerified {
        intact: (!is_unknown).then_some(check.damage_count == 0 && check.complete),
        closed_cleanly: check.state == StoreState::Clean,
        pages_checked: check.pages_checked,
        pages_proved_by_log: check.pages_by_log,
        pages_proved_by_map: check.pages_by_map,
        pages_unknown: check.pages_unknown,
        log_blocks_checked: check.log_blocks_checked,
        log_changes_to_replay: check.log_changes,
        pages_recoverable_from_log: check.pages_recoverable,
        commits_witnessed: check.commits_expected,
        damage_count: check.damage_count,
        unknown: unknown(&check),
        damage: check.damage,
        complete: check.complete,
        state: match check.state {
            StoreState::Clean => "closed cleanly",
            StoreState::InUse => "not closed: its run was killed",
            StoreState::Creating => "not complete",
        },
    };
    Verified { found: Found::Store(found), exit: ended(check.io_error, exit) }
}

/// What could not be checked, in sentences.
fn unknown(check: &StoreCheck) -> Vec<String> {
    let mut unknown = Vec::new();
    if check.pages_unknown > 0 {
        unknown.push(format!(
            "{} of {} pages are whole and in their place; whether they hold what was acknowledged last is \
             not known: the generation maps of {} databases are missing, or may be older than the data \
             (the host was restarted, or this is a copy)",
            check.pages_unknown, check.pages_checked, check.maps_untrusted
        ));
    }
    unknown.extend(check.unconfirmed.iter().map(|finding| format!("by such a map: {finding}")));
    if check.commits_of_others > 0 {
        let others = check.commits_of_others;
        unknown
            .push(format!("{others} commits of other stores were witnessed, and not asked after"));
    }
    unknown
}

/// Checks a bundle, or an experiment with all of its.
///
/// # Errors
/// Evidence that was changed.
pub fn evidence(path: &Path, reader: &Reader) -> Result<(EvidenceVerified, Exit), RunnerError> {
    let together = reader.load_all(path)?;
    let exit = together.weigh(Exit::Ok);
    Ok((of_evidence(&together, exit == Exit::Ok), exit))
}

fn of_evidence(together: &Together, intact: bool) -> EvidenceVerified {
    let custody = || together.runs.iter().map(|run| &run.custody);
    let doubts = custody().flat_map(|custody| custody.doubts.clone());
    let remarks = custody().flat_map(|custody| custody.remarks.clone());
    EvidenceVerified {
        intact,
        runs: together.runs.iter().map(of_run).collect(),
        doubts: together.doubts.iter().cloned().chain(doubts).collect(),
        not_checked: together.remarks.iter().cloned().chain(remarks).collect(),
        lines: together.lines(),
    }
}

fn of_run(run: &Loaded) -> RunVerified {
    let held = match &run.custody.place {
        LedgerMatch::Recorded(held) => Some(held),
        _ => None,
    };
    RunVerified {
        run_id: run.bundle.run.run_id.clone(),
        seal_sha256: run.custody.seal_sha256.clone(),
        verdict: run.verdict.verdict.label().to_owned(),
        agrees_with_itself: !run.contradicts_itself(),
        verdict_json: word(run.custody.verdict),
        report_html: word(run.custody.report),
        signed_by: match &run.custody.signed {
            Signed::ByItsOwnWord(key) | Signed::ByTheKey(key) | Signed::ByTheLedger(key) => {
                Some(key.clone())
            }
            Signed::No | Signed::Unknown => None,
        },
        ledger_position: held.map(|held| held.position),
        ledger_began_unix_ns: held.map(|held| held.began_unix_ns),
        contradiction: run.contradiction().map(str::to_owned),
        ledger: in_ledger(&run.custody.place),
        signature: signed(&run.custody.signed),
    }
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Same => "as the evidence gives it",
        Standing::Missing => "missing",
        Standing::AsEntered => "of another build, as the ledger has it",
        Standing::Other => "of another build, or changed",
        Standing::Changed => "changed",
    }
}

fn in_ledger(place: &LedgerMatch) -> String {
    match place {
        LedgerMatch::Recorded(held) => {
            let later = match held.later_witnesses {
                0 => "no later bundle here stands for that line".to_owned(),
                1 => "1 later bundle stands for it".to_owned(),
                n => format!("{n} later bundles stand for it"),
            };
            format!("line {} of {} has this seal; {later}", held.position, held.lines)
        }
        LedgerMatch::Missing { .. } | LedgerMatch::Contradicted { .. } => {
            "does not hold this run".to_owned()
        }
    }
}

fn signed(signed: &Signed) -> String {
    match signed {
        Signed::No => {
            "none: whoever has the machine could have made this (docs/evidence.md)".to_owned()
        }
        Signed::ByItsOwnWord(key) => {
            format!(
                "holds, by the key that the bundle names: {key}; --key tells whether it is the right one"
            )
        }
        Signed::ByTheKey(key) => format!("holds, by the key that was asked for: {key}"),
        Signed::ByTheLedger(key) => {
            format!("the ledger was signed after this run, by the key that was asked for: {key}")
        }
        Signed::Unknown => "one that the bundle does not speak of; --key checks it".to_owned(),
    }
}
