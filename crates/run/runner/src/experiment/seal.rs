//! Seals an experiment's directory, and checks the seal, the ledger and the list of runs.
//!
//! `SHA256SUMS` has the hash of every file in the directory, and of the seal of each run and
//! search. It has no hashes of other files of runs and searches. `sha256sum -c` can check it. It is
//! rewritten with each new record, and its own hash is then added to the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plimsoll_evidence::ledger::{Event, LedgerMatch, Link};
use plimsoll_evidence::run::ExperimentKind;
use plimsoll_evidence::seal::{FILE as SEAL, SIGNATURE, sha256_hex};

use super::{FILE, RunEntry, replace};
use crate::custody::LoadedBundle;
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::fleet;

/// Doubts and remarks, with the same meaning as in [`crate::custody::CustodyChecks`].
pub type DoubtsAndRemarks = (Vec<String>, Vec<String>);

/// Seals the directory. Returns the SHA-256 of the seal.
///
/// # Errors
/// A file cannot be read or written.
pub fn seal(directory: &Path) -> Result<String, RunnerError> {
    let text: String =
        sums(directory)?.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    replace(directory, SEAL, text.as_bytes())?;
    Ok(sha256_hex(text.as_bytes()))
}

/// Returns the hash of each sealed file, with the name of the file as key.
fn sums(directory: &Path) -> Result<BTreeMap<String, String>, RunnerError> {
    let mut sums = BTreeMap::new();
    for name in names(directory)? {
        let path = directory.join(&name);
        if path.is_dir() {
            if fleet::is_fleet(&path) {
                let own = format!("{}/{SEAL}", fleet::ALL);
                sums.insert(format!("{name}/{own}"), sum(&path.join(own))?);
            } else if path.join(SEAL).is_file() {
                sums.insert(format!("{name}/{SEAL}"), sum(&path.join(SEAL))?);
            } else if !path.join("plan.toml").is_file() {
                for file in names(&path)? {
                    if path.join(&file).is_file() {
                        sums.insert(format!("{name}/{file}"), sum(&path.join(&file))?);
                    }
                }
            }
        } else if name != SEAL && name != SIGNATURE {
            sums.insert(name, sum(&path)?);
        }
    }
    Ok(sums)
}

/// Returns the sorted names of the files in a directory, except those of partly written files.
fn names(directory: &Path) -> Result<BTreeSet<String>, RunnerError> {
    let entries = fs::read_dir(directory).map_err(|error| read_error(directory, &error))?;
    let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    // Such names belong to partly written files, and to partly written evidence of a fleet.
    let is_partial = |name: &String| name.ends_with(".new") || name.ends_with("-half");
    Ok(names.filter(|name| !(name.starts_with('.') && is_partial(name))).collect())
}

fn sum(path: &Path) -> Result<String, RunnerError> {
    fs::read(path).map(|bytes| sha256_hex(&bytes)).map_err(|error| read_error(path, &error))
}

fn read_error(path: &Path, error: &std::io::Error) -> RunnerError {
    RunnerError::environment(format!("cannot read {}: {error}", path.display()))
}

/// The part of the experiment's record that lists runs.
#[derive(serde::Deserialize)]
struct Record {
    id: String,
    kind: ExperimentKind,
    runs: Vec<RunEntry>,
}

/// Checks that the runs of a directory are those in its record. A directory without a record may
/// contain any runs, but each only once.
///
/// # Errors
/// A file was changed, added or swapped.
pub fn check(
    directory: &Path,
    runs: &[LoadedBundle],
    chain: Option<&[Link]>,
) -> Result<DoubtsAndRemarks, RunnerError> {
    let refuse = |says: String| {
        RunnerError::new(Exit::NoVerdict, format!("{}: {says}", directory.display()))
    };
    let mut ids = BTreeSet::new();
    if let Some(twice) = runs.iter().find(|run| !ids.insert(run.bundle.run.run_id.as_str())) {
        return Err(refuse(format!(
            "the directory contains the run {} twice",
            twice.bundle.run.run_id
        )));
    }
    if !directory.join(FILE).exists() {
        return Ok(DoubtsAndRemarks::default());
    }
    let record: Record = super::read(directory)?;
    let (mut doubts, mut remarks) = check_runs(&record, runs).map_err(refuse)?;
    match check_seal(directory)? {
        SealState::Holds(sha256) => {
            let recorded = chain.and_then(|chain| sealed_in_ledger(chain, &record.id));
            if recorded.is_some_and(|recorded| recorded != sha256) {
                doubts.push(format!(
                    "{FILE}, the report or the runs of this experiment do not match the seal \
                     recorded in the ledger"
                ));
            }
        }
        SealState::Missing
            if chain.is_some_and(|chain| sealed_in_ledger(chain, &record.id).is_some()) =>
        {
            return Err(refuse(format!("the seal of the experiment ({SEAL}) is missing")));
        }
        SealState::Missing => remarks.push(format!(
            "{FILE} and the report are not sealed: they were written by an older version of \
             Plimsoll"
        )),
        SealState::Broken(what) => return Err(refuse(format!("the seal is broken: {what}"))),
    }
    if let Some(chain) = chain {
        let missing_runs = missing_runs(chain, &record.id, &ids);
        if !missing_runs.is_empty() {
            doubts.push(format!(
                "{} of this experiment finished according to the ledger, but cannot be found in \
                 this directory: {}",
                counted(missing_runs.len()),
                missing_runs.join(", ")
            ));
        }
    }
    Ok((doubts, remarks))
}

fn counted(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

/// Compares the runs with the record.
fn check_runs(record: &Record, runs: &[LoadedBundle]) -> Result<DoubtsAndRemarks, String> {
    let (mut doubts, mut remarks) = DoubtsAndRemarks::default();
    for loaded in runs {
        let run = &loaded.bundle.run;
        let own = run.experiment.as_ref();
        if own.is_none_or(|own| own.id != record.id || own.kind != record.kind) {
            let of = own.map_or("none".to_owned(), |own| own.id.clone());
            return Err(format!(
                "the run {} does not belong to this experiment (its experiment: {of})",
                run.run_id
            ));
        }
        let listed = record.runs.iter().find(|listed| listed.run_id == run.run_id);
        match listed {
            Some(listed) if own.is_some_and(|own| own.arm != listed.arm) => {
                return Err(format!(
                    "{FILE} and the run's own evidence state different arms of the experiment for \
                     the run {}",
                    run.run_id
                ));
            }
            Some(_) => {}
            // This run ended after the last update of the record.
            None if matches!(loaded.custody.place, LedgerMatch::Recorded(_)) => {
                remarks.push(format!(
                    "{FILE} was written before the run {} ended: the experiment was interrupted",
                    run.run_id
                ))
            }
            None => doubts.push(format!("{FILE} does not list the run {}", run.run_id)),
        }
    }
    let here = |id: &str| runs.iter().any(|loaded| loaded.bundle.run.run_id == id);
    let missing: Vec<&str> =
        record.runs.iter().map(|one| one.run_id.as_str()).filter(|id| !here(id)).collect();
    if !missing.is_empty() {
        doubts.push(format!(
            "{} of this experiment {} missing: {}",
            counted(missing.len()),
            if missing.len() == 1 { "is" } else { "are" },
            missing.join(", ")
        ));
    }
    let in_order = matches!(
        record.kind,
        ExperimentKind::Repeat
            | ExperimentKind::Tune
            | ExperimentKind::Compare
            | ExperimentKind::Stages
    );
    let numbers: BTreeSet<u32> = runs
        .iter()
        .filter_map(|loaded| loaded.bundle.run.experiment.as_ref())
        .map(|own| own.number)
        .collect();
    let last = numbers.last().copied().unwrap_or(0);
    if in_order && missing.is_empty() && numbers.len() < last as usize {
        let of = (1..=last).find(|number| !numbers.contains(number)).unwrap_or(last);
        doubts.push(format!(
            "run {of} of this experiment is missing, although the later run {last} exists"
        ));
    }
    // Before rules version 17, an interrupted run and its repetition had the same number, and only
    // the repetition was listed.
    let listed = record.runs.iter().filter(|one| here(&one.run_id)).count();
    if in_order && numbers.len() < listed {
        return Err("two runs have the same number".to_owned());
    }
    Ok((doubts, remarks))
}

/// State of a directory's seal.
enum SealState {
    Holds(String),
    Missing,
    Broken(String),
}

fn check_seal(directory: &Path) -> Result<SealState, RunnerError> {
    let path = directory.join(SEAL);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(SealState::Missing);
        }
        Err(error) => return Err(read_error(&path, &error)),
    };
    let now = sums(directory)?;
    let mut wrong = Vec::new();
    let (mut sealed, mut last) = (BTreeSet::new(), "");
    for line in text.lines() {
        let Some((sum, name)) = line.split_once("  ").filter(|(_, name)| *name > last) else {
            wrong.push(format!("{SEAL} is not in the format that Plimsoll writes"));
            break;
        };
        match now.get(name) {
            // Missing runs are reported by the caller.
            None if name.ends_with(&format!("/{SEAL}")) => {}
            None => wrong.push(format!("{name} is missing")),
            Some(is) if is != sum => wrong.push(format!("{name} was changed")),
            Some(_) => {}
        }
        (last, _) = (name, sealed.insert(name));
    }
    if !text.ends_with('\n') {
        wrong.push(format!("{SEAL} is not in the format that Plimsoll writes"));
    }
    // A run may have ended after the seal was written. The caller checks whether the file belongs
    // to the experiment.
    let added = now.keys().filter(|name| !sealed.contains(name.as_str()));
    let added = added.filter(|name| !name.ends_with(&format!("/{SEAL}")));
    wrong.extend(added.map(|name| format!("{name} was added")));
    wrong.extend(links(directory)?.into_iter().map(|name| format!("{name} is a symbolic link")));
    wrong.dedup();
    Ok(match wrong.is_empty() {
        true => SealState::Holds(sha256_hex(text.as_bytes())),
        false => SealState::Broken(wrong.join(", ")),
    })
}

fn links(directory: &Path) -> Result<Vec<String>, RunnerError> {
    let entries = fs::read_dir(directory).map_err(|error| read_error(directory, &error))?;
    let links = entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_symlink()));
    Ok(links.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Returns the last seal of an experiment in the ledger.
fn sealed_in_ledger<'a>(chain: &'a [Link], id: &str) -> Option<&'a str> {
    chain.iter().rev().filter(|link| link.entry.run_id == id).find_map(|link| {
        match &link.entry.event {
            Event::Together { seal_sha256 } => Some(seal_sha256.as_str()),
            _ => None,
        }
    })
}

/// Returns the runs of an experiment that finished according to the ledger but are not in its
/// directory.
fn missing_runs(chain: &[Link], id: &str, here: &BTreeSet<&str>) -> Vec<String> {
    let ended: BTreeSet<&str> = chain
        .iter()
        .filter(|link| matches!(link.entry.event, Event::Ended { .. }))
        .map(|link| link.entry.run_id.as_str())
        .collect();
    let of = chain.iter().filter(|link| match &link.entry.event {
        Event::Started { experiment, .. } => experiment.as_deref() == Some(id),
        _ => false,
    });
    of.map(|link| link.entry.run_id.as_str())
        .filter(|run| ended.contains(run) && !here.contains(run))
        .map(str::to_owned)
        .collect()
}
