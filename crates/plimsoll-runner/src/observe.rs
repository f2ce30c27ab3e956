//! Another benchmark under our eyes (tier T2).
//!
//! The command runs as it would alone; the devices beneath the paths, the host, other processes and the
//! command's own are sampled meanwhile. With a result the figures are those of the JSON that fio wrote;
//! without, there is what the system did and no figure.

mod command;
mod evidence;
pub mod found;
mod result;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::ledger::{Ledger, Question, Start};
use plimsoll_evidence::run::{Driver, Tier};
use plimsoll_observe::Observer;
use plimsoll_observe::command::CommandWatch;
use plimsoll_plan::Plan;
use plimsoll_sys::clock;

use self::command::Started;
use crate::custody;
use crate::error::RunnerError;
use crate::evidence_place;
use crate::finished::Finished;
use crate::listener::Listener;
use crate::places::Places;
use crate::run_id::RunId;

/// Space held for the bundle: how long the command takes is not known.
const HOLD_BYTES: u64 = 16 << 20;
/// The name of such runs.
const NAME: &str = "observe";

/// What is to be observed.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The command with its arguments.
    pub command: Vec<String>,
    /// What it works on: directories, files or devices.
    pub paths: Vec<PathBuf>,
    /// The result that the command writes, where it does.
    pub result: Option<PathBuf>,
    /// Directory to make the bundle in, instead of the catalogue.
    pub bundles: Option<PathBuf>,
    /// Ledger, catalogue, and what evidence is signed with.
    pub places: Places,
}

/// A signal that the operator sent.
#[derive(Clone, Copy, Debug)]
pub struct Signalled {
    /// Its number.
    pub number: i32,
    /// Whether the terminal may have sent it to the command as well.
    pub by_terminal: bool,
}

/// How the operator's signals are learnt of.
pub struct Signals<'a> {
    /// Turns true at the first.
    pub asked: &'a AtomicBool,
    /// The latest, if one came.
    pub latest: &'a dyn Fn() -> Option<Signalled>,
}

/// Runs the command, watches it, judges what was seen and leaves a bundle. The operator's signals are passed on to the
/// command.
///
/// # Errors
/// A path or command that is not there, a result that cannot be read, a bundle or ledger that cannot be written.
pub fn carry_out(
    observation: &Observation,
    signals: &Signals<'_>,
    listener: &mut dyn Listener,
) -> Result<Finished, RunnerError> {
    for path in &observation.paths {
        std::fs::metadata(path).map_err(|error| {
            RunnerError::usage(format!("cannot observe {}: {error}", path.display()))
                .hint("name a directory, file or device that exists with --path")
        })?;
    }
    let places = &observation.places;
    let id = RunId::now(NAME);
    let plan = Plan::parse(&evidence::plan_text(observation), NAME)
        .map_err(|error| RunnerError::usage(error.to_string()))?;
    let sha = plan.resolve().sha256_hex().map_err(|error| RunnerError::usage(error.to_string()))?;
    let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let paths: Vec<PathBuf> = observation.paths.iter().map(canonical).collect();
    let path_refs: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let environment = plimsoll_observe::environment::collect(&path_refs);
    let mut observer = Observer::new(paths, 0);
    let bundles = places.bundles(observation.bundles.as_deref())?;
    let ledger = Ledger::at(places.ledger());
    let begun = evidence_place::begin(&bundles, id.name(), HOLD_BYTES)?;
    let entry = Start {
        run_id: id.name(),
        name: NAME,
        plan_sha256: &sha,
        unix_ns: id.started_unix_ns(),
        question: Some(Question::from_plan(&plan.resolve(), &environment)),
        known: &custody::witnesses(&places.runs),
        experiment: None,
    };
    // The counters are read before the command starts: on a busy host it may have moved all its data
    // before they could be read afterwards.
    observer.begin(0, || 0, None);
    let (started, position) = match Started::begin(observation, &entry, &ledger, listener) {
        Ok(begun) => begun,
        Err(error) => {
            drop(begun.discard());
            return Err(error);
        }
    };
    observer.exclude_neighbours(vec![started.pid()]);
    let processes = CommandWatch::begin(started.pid());
    let watched = started.watch(observer, processes, observation, signals, listener)?;
    let mut bundle = evidence::of(&plan, &watched);
    bundle.run.tier = Tier::T2;
    bundle.run.driver = Driver::Foreign;
    bundle.run.run_id = id.name().to_owned();
    bundle.run.name = NAME.to_owned();
    bundle.run.started_unix_ns = id.started_unix_ns();
    bundle.run.build = Some(plimsoll_report::BUILD.to_owned());
    bundle.run.ledger = Some(position);
    bundle.run.signed_by = places.signer.as_ref().map(|signer| signer.public().to_owned());
    bundle.run.duration_ns = watched.ran.duration_ns;
    bundle.run.end = watched.end.clone();
    let others = evidence_place::others(places, &bundles);
    let written = evidence_place::write(begun, id.name(), &others, |writer| {
        evidence::write(writer, &bundle, &environment, &watched.rows)?;
        custody::seal_and_judge(writer, places, id.name())
    })?;
    let (directory, judged) = (written.directory, written.given);
    if let Some(error) = written.elsewhere_because {
        let place = directory.display();
        listener.warn(&format!("{}\nthe bundle is in {place} instead", error.message));
    }
    judged.enter(&ledger, clock::realtime_ns())?;
    let (evidence, verdict) = (judged.evidence, judged.verdict?);
    let kept = Vec::new();
    let finished = Finished {
        directory,
        evidence,
        verdict,
        kept,
        not_removed: None,
        not_entered: None,
        of_hosts: None,
    };
    listener.finished(&finished);
    Ok(finished)
}
