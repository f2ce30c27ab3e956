//! Verifies stored data (pages of a mail store, blocks of a data set) and evidence.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::mailbox::{StoreCheck, StoreState, check_store, is_mail_store};
use plimsoll_engine::matrix::{DataCheck, check_data, is_data_set};
use plimsoll_engine::{EngineError, ErrorKind};
use plimsoll_evidence::ledger::LedgerMatch;
use plimsoll_evidence::seal;
use plimsoll_report::verified::{
    DataVerification, EvidenceVerification, RunVerification, StoreVerification,
};

use crate::custody::{DerivedFileState, LoadedBundle, Reader, RunSet, SignatureState};
use crate::error::{RunnerError, engine_error};
use crate::exit::Exit;
use crate::experiment;
use crate::fleet;
use crate::listener::Listener;

/// Result of verifying stored data.
#[derive(Clone, Debug)]
pub enum VerifiedData {
    /// A mail store.
    Store(StoreVerification),
    Data(DataVerification),
}

/// Result of verifying stored data, with the exit code.
#[derive(Debug)]
pub struct Verified {
    /// The result.
    pub found: VerifiedData,
    /// Exit code, or the I/O error that ended verification. An I/O error does not count as
    /// corruption.
    pub exit: Result<Exit, RunnerError>,
}

/// Returns true if the directory is a bundle or an experiment.
pub fn is_evidence(path: &Path) -> bool {
    let files = [seal::FILE, "run.json", experiment::FILE];
    files.iter().any(|name| path.join(name).is_file()) || fleet::is_fleet(path)
}

/// Verifies the mail store or data set at `path`. `witness`: file that the run wrote with
/// `--witness`.
///
/// # Errors
/// There is no data to verify, both kinds of data exist, or files cannot be opened.
pub fn data(
    path: &Path,
    witness: Option<&Path>,
    interrupt: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Verified, RunnerError> {
    if let Some(given) = path.to_str()
        && (given.starts_with("nfs://") || given.starts_with("s3://"))
    {
        let says = format!(
            "{given}: data on NFS exports and in buckets can be verified only by the run that \
             writes it"
        );
        return Err(
            RunnerError::usage(says).hint("set verify = true in [phases], and run the plan")
        );
    }
    if fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device()) {
        let says = format!(
            "{}: data on a device can be verified only by the run that writes it",
            path.display()
        );
        return Err(
            RunnerError::usage(says).hint("set verify = true in [phases], and run the plan")
        );
    }
    let is_data_set = is_data_set(path);
    if is_data_set && is_mail_store(path) {
        let path = path.display();
        let says = format!("{path} contains a data set and a mail store, so nothing was verified");
        return Err(
            RunnerError::usage(says).hint("specify one of its subdirectories plimsoll-NAME")
        );
    }
    if is_data_set && witness.is_some() {
        let says =
            format!("{} is a data set, but --witness applies only to mail stores", path.display());
        return Err(RunnerError::usage(says).hint("repeat the command without --witness"));
    }
    if is_data_set {
        let check = check_data(path, interrupt, listener).map_err(|error| data_error(&error))?;
        return Ok(data_result(check));
    }
    let check = check_store(path, witness, interrupt, listener).map_err(|error| {
        let error = data_error(&error);
        match crate::error::hint_of_runs(path) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })?;
    Ok(store_result(check))
}

/// Converts an error. If the data cannot be checked, the hints do not suggest another plan.
fn data_error(error: &EngineError) -> RunnerError {
    let converted = engine_error(error);
    if error.kind() != ErrorKind::Config {
        return converted;
    }
    RunnerError { hints: Vec::new(), ..converted }.hint(
        "specify the data directory of a run that ended and was started with --keep; for --witness, \
         specify the file that the same run wrote",
    )
}

fn exit_or_error(io_error: Option<String>, exit: Exit) -> Result<Exit, RunnerError> {
    match io_error {
        Some(error) => Err(RunnerError::environment(error).hint("check the kernel's log (dmesg)")),
        None => Ok(exit),
    }
}

fn data_result(check: DataCheck) -> Verified {
    let exit = match &check {
        _ if check.damage_count > 0 => Exit::Corruption,
        DataCheck { complete: false, .. } => Exit::Interrupted,
        _ => Exit::Ok,
    };
    let found = DataVerification {
        intact: check.damage_count == 0 && check.complete,
        blocks_checked: check.blocks_checked,
        damage_count: check.damage_count,
        damage: check.damage,
        complete: check.complete,
    };
    Verified { found: VerifiedData::Data(found), exit: exit_or_error(check.io_error, exit) }
}

fn store_result(check: StoreCheck) -> Verified {
    let exit = match &check {
        _ if check.damage_count > 0 => Exit::Corruption,
        StoreCheck { complete: false, .. } => Exit::Interrupted,
        StoreCheck { pages_unknown: 1.., .. } | StoreCheck { commits_expected: Some(0), .. } => {
            Exit::NoVerdict
        }
        _ => Exit::Ok,
    };
    let is_unknown = exit == Exit::NoVerdict;
    let found = StoreVerification {
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
    Verified { found: VerifiedData::Store(found), exit: exit_or_error(check.io_error, exit) }
}

/// Describes the parts of the data that could not be checked.
fn unknown(check: &StoreCheck) -> Vec<String> {
    let mut unknown = Vec::new();
    if check.pages_unknown > 0 {
        unknown.push(format!(
            "{} of {} pages are intact and at their correct position, but are possibly not the \
             latest acknowledged version: the generation maps of {} databases are missing, or may \
             be older than the data (because the host was restarted, or the data is a copy)",
            check.pages_unknown, check.pages_checked, check.maps_untrusted
        ));
    }
    unknown.extend(check.unconfirmed.iter().map(|finding| {
        format!("according to a generation map that may be older than the data: {finding}")
    }));
    if check.commits_expected == Some(0) {
        unknown.push(
            "the witness contains no commit of this mail store, so it proves nothing about the \
             store; pass the witness of the run that wrote this store"
                .to_owned(),
        );
    }
    if check.commits_of_others > 0 {
        let others = check.commits_of_others;
        unknown.push(format!(
            "{others} commits in the witness belong to other mail stores, and were not checked"
        ));
    }
    unknown
}

/// Checks a bundle, or an experiment with its bundles.
///
/// # Errors
/// The evidence was changed.
pub fn evidence(path: &Path, reader: &Reader) -> Result<(EvidenceVerification, Exit), RunnerError> {
    let run_set = reader.load_all(path)?;
    let exit = run_set.apply_doubts(Exit::Ok);
    Ok((evidence_result(&run_set, exit == Exit::Ok), exit))
}

fn evidence_result(run_set: &RunSet, intact: bool) -> EvidenceVerification {
    let custody = || run_set.runs.iter().map(|run| &run.custody);
    let doubts = custody().flat_map(|custody| custody.doubts.clone());
    let remarks = custody().flat_map(|custody| custody.remarks.clone());
    EvidenceVerification {
        intact,
        runs: run_set.runs.iter().map(run_result).collect(),
        doubts: run_set.doubts.iter().cloned().chain(doubts).collect(),
        not_checked: run_set.remarks.iter().cloned().chain(remarks).collect(),
        lines: run_set.lines(),
    }
}

fn run_result(run: &LoadedBundle) -> RunVerification {
    let held = match &run.custody.place {
        LedgerMatch::Recorded(held) => Some(held),
        _ => None,
    };
    RunVerification {
        run_id: run.bundle.run.run_id.clone(),
        seal_sha256: run.custody.seal_sha256.clone(),
        verdict: run.verdict.verdict.label().to_owned(),
        agrees_with_itself: !run.has_contradiction(),
        verdict_json: state_text(run.custody.verdict),
        report_html: state_text(run.custody.report),
        signed_by: match &run.custody.signed {
            SignatureState::ByDeclaredKey(key)
            | SignatureState::ByRequiredKey(key)
            | SignatureState::ByLedgerStatement(key) => Some(key.clone()),
            SignatureState::Unsigned | SignatureState::Undeclared => None,
        },
        ledger_position: held.map(|held| held.position),
        ledger_began_unix_ns: held.map(|held| held.began_unix_ns),
        contradiction: run.contradiction().map(str::to_owned),
        ledger: ledger_text(&run.custody.place),
        signature: signature_text(&run.custody.signed),
    }
}

fn state_text(standing: DerivedFileState) -> &'static str {
    match standing {
        DerivedFileState::Same => "matches the evidence",
        DerivedFileState::Missing => "missing",
        DerivedFileState::InLedger => "written by another build, as recorded in the ledger",
        DerivedFileState::Other => "written by another build, or changed",
        DerivedFileState::Changed => "changed",
    }
}

fn ledger_text(place: &LedgerMatch) -> String {
    match place {
        LedgerMatch::Recorded(held) => {
            let later = match held.later_witnesses {
                0 => "no later bundle in this catalogue confirms this line".to_owned(),
                1 => "1 later bundle confirms it".to_owned(),
                n => format!("{n} later bundles confirm it"),
            };
            format!("line {} of {} records this seal; {later}", held.position, held.lines)
        }
        LedgerMatch::Missing { .. } | LedgerMatch::Contradicted { .. } => {
            "does not contain this run".to_owned()
        }
    }
}

fn signature_text(signed: &SignatureState) -> String {
    match signed {
        SignatureState::Unsigned => {
            "none: anyone with access to the machine could have forged this bundle \
             (docs/evidence.md)"
                .to_owned()
        }
        SignatureState::ByDeclaredKey(key) => {
            format!(
                "valid for the key that is stated in the bundle: {key}; pass --key to check that \
                 this is the expected key"
            )
        }
        SignatureState::ByRequiredKey(key) => format!("valid, with the required key: {key}"),
        SignatureState::ByLedgerStatement(key) => {
            format!("the ledger was signed after this run, with the required key: {key}")
        }
        SignatureState::Undeclared => {
            "a signature exists, but the bundle does not mention it; pass --key to check it"
                .to_owned()
        }
    }
}
