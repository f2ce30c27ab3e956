//! `plimsoll verify PATH`: the pages of a mail store, the blocks of a data set, or evidence ([`verify_evidence`]).

use std::path::PathBuf;

use clap::Args;
use plimsoll_engine::mailbox::{StoreCheck, StoreState, check_store, is_mail_store};
use plimsoll_engine::matrix::{DataCheck, check_data, is_data_set};
use plimsoll_evidence::run::Damage;
use serde::Serialize;

use super::{bundle, verify_evidence};
use crate::common::Common;
use crate::error::{CliError, engine_error};
use crate::exit::Exit;
use crate::interrupt;
use crate::progress::StderrProgress;

/// Options of `verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll verify /mnt/db1            the mail store or data set that \
    a run left there with --keep\n  plimsoll verify ./bundle            whether a run's evidence is as it \
    was left\n\nWhat lies at PATH is read, never what its manifest points to elsewhere; nothing is written, \
    and PATH may\nbe read-only.\n\nExit code 4 means that damage was found: each damaged page, log block and \
    file is named. Exit code 3\nmeans that nothing is damaged but what some pages should hold is not known, \
    or that evidence was\nchanged, contradicts itself, or that nothing vouches for it."
)]
pub struct Options {
    /// A directory that a plan named, a store's own directory, a bundle, or an experiment.
    path: PathBuf,
    /// What a run's --witness wrote: each commit in it must be there.
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// The public key that evidence has to be signed with: a file, or its one line. Signed may be the
    /// bundle, or the ledger after the run was entered.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Found<'a> {
    /// `None`: nothing is damaged, but what some pages should hold is not known.
    intact: Option<bool>,
    closed_cleanly: bool,
    pages_checked: u64,
    pages_proved_by_log: u64,
    pages_proved_by_map: u64,
    pages_unknown: u64,
    log_blocks_checked: u64,
    log_changes_to_replay: u64,
    pages_recoverable_from_log: u64,
    commits_witnessed: u64,
    damage_count: u64,
    damage: &'a [Damage],
    unknown: &'a [String],
}

/// Verifies.
///
/// # Errors
/// Nothing to verify there, or something that cannot be read.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    if let Some(given) = options.path.to_str()
        && (given.starts_with("nfs://") || given.starts_with("s3://"))
    {
        let says =
            format!("{given}: data on NFS exports and in buckets is checked within its run only");
        return Err(CliError::usage(says).hint("set verify = true in [phases], and run the plan"));
    }
    if verify_evidence::is_evidence(&options.path) {
        return verify_evidence::carry_out(&options.path, options.key.as_deref(), common);
    }
    let interrupt = interrupt::flag_on_signal()?;
    let mut progress = StderrProgress::new(common.quiet);
    let is_data_set = is_data_set(&options.path);
    if is_data_set && is_mail_store(&options.path) {
        let path = options.path.display();
        let says = format!("{path} holds a data set and a mail store: nothing was read");
        return Err(CliError::usage(says).hint("name one of the directories plimsoll-NAME in it"));
    }
    if is_data_set {
        let check = check_data(&options.path, &interrupt, &mut progress)
            .map_err(|error| engine_error(&error))?;
        return told(&check, common);
    }
    let check = check_store(&options.path, options.witness.as_deref(), &interrupt, &mut progress)
        .map_err(|error| engine_error(&error))?;
    let unknown = unknown(&check);
    if common.json {
        bundle::print(&bundle::json(&found(&check, &unknown))?)?;
    } else {
        bundle::print(&describe(&check, &unknown))?;
    }
    if let Some(error) = check.io_error {
        return Err(CliError::environment(error).hint("look at the kernel's log (dmesg)"));
    }
    Ok(match check {
        _ if check.damage_count > 0 => Exit::Corruption,
        StoreCheck { complete: false, .. } => Exit::Interrupted,
        StoreCheck { pages_unknown: 1.., .. } => Exit::NoVerdict,
        _ => Exit::Ok,
    })
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

/// What `--json` prints of a data set.
#[derive(Debug, Serialize)]
struct FoundInData<'a> {
    intact: bool,
    blocks_checked: u64,
    damage_count: u64,
    damage: &'a [Damage],
}

/// Tells what the check of a data set found.
fn told(check: &DataCheck, common: &Common) -> Result<Exit, CliError> {
    let intact = check.damage_count == 0 && check.complete;
    if common.json {
        bundle::print(&bundle::json(&FoundInData {
            intact,
            blocks_checked: check.blocks_checked,
            damage_count: check.damage_count,
            damage: &check.damage,
        })?)?;
    } else {
        let mut text = match (check.damage_count, check.complete) {
            (0, true) => "INTACT: every block holds what was written last\n\n".to_owned(),
            (0, false) => "NOT COMPLETE: nothing damaged in what was checked\n\n".to_owned(),
            (damaged, _) => format!("DAMAGED: {damaged} blocks or files\n\n"),
        };
        for damage in &check.damage {
            text.push_str(&format!("  {}\n", damage.says));
        }
        text.push_str(&format!("  blocks checked  {}\n", check.blocks_checked));
        bundle::print(&text)?;
    }
    if let Some(error) = &check.io_error {
        return Err(CliError::environment(error).hint("look at the kernel's log (dmesg)"));
    }
    Ok(match check {
        _ if check.damage_count > 0 => Exit::Corruption,
        DataCheck { complete: false, .. } => Exit::Interrupted,
        _ => Exit::Ok,
    })
}

fn found<'a>(check: &'a StoreCheck, unknown: &'a [String]) -> Found<'a> {
    let is_unknown = check.damage_count == 0 && check.complete && check.pages_unknown > 0;
    Found {
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
        damage: &check.damage,
        unknown,
    }
}

fn describe(check: &StoreCheck, unknown: &[String]) -> String {
    let mut text = String::new();
    let state = match check.state {
        StoreState::Clean => "closed cleanly",
        StoreState::InUse => "not closed: its run was killed",
        StoreState::Creating => "not complete",
    };
    if check.damage_count > 0 {
        text.push_str(&format!("DAMAGED: {} pages, log blocks or files\n\n", check.damage_count));
        for damage in &check.damage {
            text.push_str(&format!("  {}\n", damage.says));
        }
        let more = check.damage_count.saturating_sub(check.damage.len() as u64);
        if more > 0 {
            text.push_str(&format!("  and {more} more\n"));
        }
        text.push('\n');
    } else if check.complete && check.pages_unknown > 0 {
        text.push_str(
            "NOT DAMAGED, NOT ALL KNOWN: nothing is damaged; some pages can't be proved\n\n",
        );
    } else if check.complete {
        text.push_str("INTACT: every durably committed change is there\n\n");
    } else {
        text.push_str("NOT COMPLETE: nothing damaged in what was checked\n\n");
    }
    text.push_str(&format!("  pages checked               {}\n", check.pages_checked));
    text.push_str(&format!("    proved by the log         {}\n", check.pages_by_log));
    text.push_str(&format!("    proved by generation maps {}\n", check.pages_by_map));
    text.push_str(&format!("    unknown                   {}\n", check.pages_unknown));
    text.push_str(&format!("  log blocks checked          {}\n", check.log_blocks_checked));
    text.push_str(&format!("  store                       {state}\n"));
    text.push_str(&format!("  changes to replay           {}\n", check.log_changes));
    text.push_str(&format!("  pages the log makes again   {}\n", check.pages_recoverable));
    if check.commits_expected > 0 {
        text.push_str(&format!("  commits witnessed           {}\n", check.commits_expected));
    }
    for unknown in unknown {
        text.push_str(&format!("  unknown: {unknown}\n"));
    }
    text
}
