//! The seal of an experiment's directory, its place in the ledger, and whether its runs are those that it
//! says.
//!
//! `SHA256SUMS` covers every file of the directory but the runs' own, and of each run and search its seal:
//! `sha256sum -c` reads it. It is written anew with the record, and entered in the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plimsoll_evidence::ledger::{Event, LedgerMatch, Link};
use plimsoll_evidence::run::ExperimentKind;
use plimsoll_evidence::seal::{FILE as SEAL, SIGNATURE, sha256_hex};

use super::{FILE, Membered, replace};
use crate::custody::Loaded;
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::fleet;

/// Doubts and remarks on an experiment, as of [`crate::custody::Custody`].
pub type Said = (Vec<String>, Vec<String>);

/// Seals the directory as it is; returns the SHA-256 of the seal.
///
/// # Errors
/// A file that cannot be read or written.
pub fn seal(directory: &Path) -> Result<String, RunnerError> {
    let text: String =
        sums(directory)?.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    replace(directory, SEAL, text.as_bytes())?;
    Ok(sha256_hex(text.as_bytes()))
}

/// What the seal covers, by name: files, and the seals of what has one of its own.
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

/// Names in a directory, in order, but for what a kill leaves of files that were being written.
fn names(directory: &Path) -> Result<BTreeSet<String>, RunnerError> {
    let entries = fs::read_dir(directory).map_err(|error| unread(directory, &error))?;
    let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    // A file that is not whole, and a fleet's evidence that is not.
    let half = |name: &String| name.ends_with(".new") || name.ends_with("-half");
    Ok(names.filter(|name| !(name.starts_with('.') && half(name))).collect())
}

fn sum(path: &Path) -> Result<String, RunnerError> {
    fs::read(path).map(|bytes| sha256_hex(&bytes)).map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &std::io::Error) -> RunnerError {
    RunnerError::environment(format!("cannot read {}: {error}", path.display()))
}

/// What the record of an experiment says of its runs.
#[derive(serde::Deserialize)]
struct Record {
    id: String,
    kind: ExperimentKind,
    runs: Vec<Membered>,
}

/// Checks that the runs of a directory are those that it says they are. A directory that is no experiment
/// of ours may hold any, but each once.
///
/// # Errors
/// Something that was changed, added or put in another's place.
pub fn check(
    directory: &Path,
    runs: &[Loaded],
    chain: Option<&[Link]>,
) -> Result<Said, RunnerError> {
    let refuse = |says: String| {
        RunnerError::new(Exit::NoVerdict, format!("{}: {says}", directory.display()))
    };
    let mut ids = BTreeSet::new();
    if let Some(twice) = runs.iter().find(|run| !ids.insert(run.bundle.run.run_id.as_str())) {
        return Err(refuse(format!("the run {} is there twice", twice.bundle.run.run_id)));
    }
    if !directory.join(FILE).exists() {
        return Ok(Said::default());
    }
    let record: Record = super::read(directory)?;
    let (mut doubts, mut remarks) = check_runs(&record, runs).map_err(refuse)?;
    match check_seal(directory)? {
        Sealed::Holds(sha256) => {
            let entered = chain.and_then(|chain| entered(chain, &record.id));
            if entered.is_some_and(|entered| entered != sha256) {
                doubts.push(format!(
                    "{FILE}, the report or the runs of this experiment are not those that the ledger \
                     has a seal of"
                ));
            }
        }
        Sealed::Not if chain.is_some_and(|chain| entered(chain, &record.id).is_some()) => {
            return Err(refuse(format!("its seal ({SEAL}) is missing")));
        }
        Sealed::Not => remarks.push(format!(
            "{FILE} and the report beside it are not sealed: an older version wrote them"
        )),
        Sealed::Broken(what) => return Err(refuse(format!("the seal is broken: {what}"))),
    }
    if let Some(chain) = chain {
        let gone = gone(chain, &record.id, &ids);
        if !gone.is_empty() {
            doubts.push(format!(
                "the ledger has {} of this experiment that ended and are not here: {}",
                counted(gone.len()),
                gone.join(", ")
            ));
        }
    }
    Ok((doubts, remarks))
}

fn counted(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

/// The runs against the record.
fn check_runs(record: &Record, runs: &[Loaded]) -> Result<Said, String> {
    let (mut doubts, mut remarks) = Said::default();
    for loaded in runs {
        let run = &loaded.bundle.run;
        let own = run.experiment.as_ref();
        if own.is_none_or(|own| own.id != record.id || own.kind != record.kind) {
            let of = own.map_or("none".to_owned(), |own| own.id.clone());
            return Err(format!("the run {} is not of this experiment, but of {of}", run.run_id));
        }
        let listed = record.runs.iter().find(|listed| listed.run_id == run.run_id);
        match listed {
            Some(listed) if own.is_some_and(|own| own.arm != listed.arm) => {
                return Err(format!("the run {} is of another arm than {FILE} says", run.run_id));
            }
            Some(_) => {}
            // It ended after the record was written last.
            None if matches!(loaded.custody.place, LedgerMatch::Recorded(_)) => {
                remarks.push(format!(
                    "{FILE} was written before the run {} ended: the experiment was interrupted",
                    run.run_id
                ))
            }
            None => doubts.push(format!("{FILE} does not have the run {}", run.run_id)),
        }
    }
    let here = |id: &str| runs.iter().any(|loaded| loaded.bundle.run.run_id == id);
    let missing: Vec<&str> =
        record.runs.iter().map(|one| one.run_id.as_str()).filter(|id| !here(id)).collect();
    if !missing.is_empty() {
        doubts.push(format!(
            "{} of this experiment {} not here: {}",
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
        doubts.push(format!("run {of} of this experiment is not here, and run {last} is"));
    }
    if in_order && numbers.len() < runs.len() {
        return Err("two of its runs have the same number".to_owned());
    }
    Ok((doubts, remarks))
}

/// Whether a directory's seal holds.
enum Sealed {
    Holds(String),
    Not,
    Broken(String),
}

fn check_seal(directory: &Path) -> Result<Sealed, RunnerError> {
    let path = directory.join(SEAL);
    let text = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Sealed::Not),
        Err(error) => return Err(unread(&path, &error)),
    };
    let now = sums(directory)?;
    let mut wrong = Vec::new();
    let (mut sealed, mut last) = (BTreeSet::new(), "");
    for line in text.lines() {
        let Some((sum, name)) = line.split_once("  ").filter(|(_, name)| *name > last) else {
            wrong.push(format!("{SEAL} is not in the form in which it is written"));
            break;
        };
        match now.get(name) {
            // Whether all runs are here is asked elsewhere.
            None if name.ends_with(&format!("/{SEAL}")) => {}
            None => wrong.push(format!("{name} is missing")),
            Some(is) if is != sum => wrong.push(format!("{name} was changed")),
            Some(_) => {}
        }
        (last, _) = (name, sealed.insert(name));
    }
    if !text.ends_with('\n') {
        wrong.push(format!("{SEAL} is not in the form in which it is written"));
    }
    // A run may have ended after the seal was written: whether it belongs here is asked elsewhere.
    let added = now.keys().filter(|name| !sealed.contains(name.as_str()));
    let added = added.filter(|name| !name.ends_with(&format!("/{SEAL}")));
    wrong.extend(added.map(|name| format!("{name} was added")));
    wrong.extend(links(directory)?.into_iter().map(|name| format!("{name} is a link")));
    wrong.dedup();
    Ok(match wrong.is_empty() {
        true => Sealed::Holds(sha256_hex(text.as_bytes())),
        false => Sealed::Broken(wrong.join(", ")),
    })
}

fn links(directory: &Path) -> Result<Vec<String>, RunnerError> {
    let entries = fs::read_dir(directory).map_err(|error| unread(directory, &error))?;
    let links = entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_symlink()));
    Ok(links.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// The seal of an experiment that was entered last.
fn entered<'a>(chain: &'a [Link], id: &str) -> Option<&'a str> {
    chain.iter().rev().filter(|link| link.entry.run_id == id).find_map(|link| {
        match &link.entry.event {
            Event::Together { seal_sha256 } => Some(seal_sha256.as_str()),
            _ => None,
        }
    })
}

/// Runs of an experiment that ended, by the ledger, and are not among those that are here.
fn gone(chain: &[Link], id: &str, here: &BTreeSet<&str>) -> Vec<String> {
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
