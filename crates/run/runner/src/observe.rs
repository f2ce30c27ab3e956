//! Observes the command of another benchmark (tier T2).
//!
//! The command runs unchanged. While it runs, Plimsoll samples the devices below its paths, the
//! host, and the processes. If the command writes a result file, its figures are used. Otherwise
//! the bundle has only the observations of the system.

mod command;
pub mod detection;
mod evidence;
mod result;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::ledger::{Ledger, Question, Start};
use plimsoll_evidence::run::{Driver, Tier};
use plimsoll_observe::Observer;
use plimsoll_observe::command::CommandWatch;
use plimsoll_plan::Plan;
use plimsoll_record::spool::Spool;
use plimsoll_sys::clock;

use self::command::RunningCommand;
use crate::bundle_location;
use crate::custody;
use crate::error::RunnerError;
use crate::finished_run::FinishedRun;
use crate::listener::Listener;
use crate::places::Places;
use crate::run_id::RunId;

/// Space reserved for the bundle. The duration of the command is unknown.
const RESERVE_BYTES: u64 = 16 << 20;
/// Plan name of observed runs.
const NAME: &str = "observe";

/// Command to observe, with options.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Command with arguments.
    pub command: Vec<String>,
    /// Directories, files or devices that it uses.
    pub paths: Vec<PathBuf>,
    /// Result file that it writes, if any.
    pub result: Option<PathBuf>,
    /// Directory for the bundle; `None` for the catalogue.
    pub bundles: Option<PathBuf>,
    /// Ledger, catalogue and signing key.
    pub places: Places,
}

/// A signal that Plimsoll received from the operator.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedSignal {
    pub number: i32,
    /// True if the terminal may also have sent the signal to the command.
    pub by_terminal: bool,
}

/// Access to the signals that the operator sent.
pub struct Signals<'a> {
    /// Set to true by the first signal.
    pub stop: &'a AtomicBool,
    pub latest: &'a dyn Fn() -> Option<ReceivedSignal>,
}

/// Runs and observes the command, judges the evidence and writes a bundle. Forwards the operator's
/// signals to the command.
///
/// # Errors
/// A path or command is missing, the result cannot be read, or the bundle or ledger cannot be
/// written.
pub fn carry_out(
    observation: &Observation,
    signals: &Signals<'_>,
    listener: &mut dyn Listener,
) -> Result<FinishedRun, RunnerError> {
    for path in &observation.paths {
        std::fs::metadata(path).map_err(|error| {
            RunnerError::usage(format!("cannot observe {}: {error}", path.display()))
                .hint("specify an existing directory, file or device with --path")
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
    let writer = bundle_location::create(&bundles, id.name(), RESERVE_BYTES)?;
    let entry = Start {
        run_id: id.name(),
        name: NAME,
        plan_sha256: &sha,
        unix_ns: id.started_unix_ns(),
        question: Some(Question::from_plan(&plan.resolve(), &environment)),
        known: &custody::witnesses(&places.runs),
        experiment: None,
    };
    // The counters are read before the command starts. Later, a command on a busy host could
    // already have transferred all its data.
    observer.begin(0, || 0, None);
    let (running, position) = match RunningCommand::begin(observation, &entry, &ledger, listener) {
        Ok(started) => started,
        Err(error) => {
            drop(writer.discard());
            return Err(error);
        }
    };
    observer.exclude_neighbours(vec![running.pid()]);
    let processes = CommandWatch::begin(running.pid());
    // If there is no spool file, all rows of the run stay in memory.
    let spool = Spool::create(writer.directory()).ok();
    let record = running.observe(observer, processes, spool, observation, signals, listener)?;
    let mut bundle = evidence::combine(&plan, &record);
    bundle.run.tier = Tier::T2;
    bundle.run.driver = Driver::Foreign;
    bundle.run.run_id = id.name().to_owned();
    bundle.run.name = NAME.to_owned();
    bundle.run.started_unix_ns = id.started_unix_ns();
    bundle.run.build = Some(plimsoll_report::BUILD.to_owned());
    bundle.run.ledger = Some(position);
    bundle.run.signed_by = places.signer.as_ref().map(|signer| signer.public().to_owned());
    bundle.run.duration_ns = record.times.duration_ns;
    bundle.run.end = record.end.clone();
    let fallbacks = bundle_location::fallback_directories(places, &bundles);
    let written = bundle_location::write(writer, id.name(), &fallbacks, |writer| {
        evidence::write(writer, &bundle, &environment, &record.rows)?;
        custody::seal_and_judge(writer, places, id.name())
    })?;
    let (directory, judged) = (written.directory, written.output);
    if let Some(error) = written.fallback_reason {
        let path = directory.display();
        listener.warn(&format!("{}\nthe bundle is in {path} instead", error.message));
    }
    judged.record_end(&ledger, clock::realtime_ns())?;
    let (evidence, verdict) = (judged.evidence, judged.verdict?);
    let kept = Vec::new();
    let finished = FinishedRun {
        directory,
        evidence,
        verdict,
        kept,
        removal_error: None,
        ledger_error: None,
        hosts_exit: None,
    };
    listener.finished(&finished);
    Ok(finished)
}
