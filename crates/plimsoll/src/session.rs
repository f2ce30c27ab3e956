//! One run from its lock to its verdict: what `run`, `quickstart` and repeats share.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use plimsoll_engine::mailbox::{self, Home, MailRun};
use plimsoll_engine::recording::Recording;
use plimsoll_engine::{EngineError, ErrorKind};
use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::ledger::Ledger;
use plimsoll_evidence::run::{
    Driver, EndKind, LedgerPosition, Membership, Run, SCHEMA_VERSION, Tier,
};
use plimsoll_evidence::{Bundle, BundleWriter};
use plimsoll_judge::Verdict;
use plimsoll_plan::{Mailbox, Plan, ResolvedPlan, Target, Workload};
use plimsoll_sys::clock;

use crate::commands::bundle;
use crate::error::CliError;
use crate::exit::Exit;
use crate::kept_data::{DataSlot, Held};
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::run_id::RunId;

/// What to run, and what becomes of it.
pub struct Request<'a> {
    /// The plan as given.
    pub plan: &'a Plan,
    /// As resolved, with one target.
    pub resolved: &'a ResolvedPlan,
    /// Whether the data stays.
    pub keep: bool,
    /// Where acknowledged commits are written, if anywhere.
    pub witness: Option<&'a Path>,
    /// Where the bundle is made.
    pub bundles: &'a Path,
    /// Ledger and generation maps.
    pub places: &'a Places,
    /// Turns true when the operator wants it to end.
    pub interrupt: &'a AtomicBool,
    /// Its place in an experiment, if it has one.
    pub experiment: Option<Membership>,
    /// Data that an earlier run left for this one, and this one may leave for the next.
    pub data: &'a DataSlot,
}

/// A run that has ended, judged.
pub struct Finished {
    /// The bundle.
    pub directory: PathBuf,
    /// Its evidence.
    pub evidence: Bundle,
    /// Its verdict.
    pub verdict: Verdict,
    /// Where the data was kept, if it was.
    pub kept: Vec<String>,
    /// Why the data could not be removed, where it was to be and could not: on a target that failed, the
    /// verdict comes first.
    pub not_removed: Option<CliError>,
}

impl Finished {
    /// The exit code of this run.
    pub fn exit(&self) -> Exit {
        let exit = Exit::of(&self.evidence.run, self.verdict.verdict);
        match &self.not_removed {
            Some(error) if matches!(exit, Exit::Ok | Exit::Fail | Exit::NoVerdict) => error.kind,
            _ => exit,
        }
    }
}

/// Carries one run out. From the moment that its data is begun it leaves a bundle, whatever happens.
///
/// # Errors
/// A workload or target that cannot be run, a target that cannot be used, a bundle or ledger that
/// cannot be written.
pub fn run_once(
    request: &Request<'_>,
    progress: &mut StderrProgress,
) -> Result<Finished, CliError> {
    let Request { resolved, keep, .. } = *request;
    let (target, mailbox) = what_to_run(resolved)?;
    let id = RunId::now(&resolved.name);
    let held = request.data.take();
    let data_of_run = held.as_ref().map(|held| held.run_id.clone());
    let home = match held {
        Some(held) => held.home.reuse(mailbox),
        None => {
            let stores = request.places.stores();
            Home::create(resolved, target, mailbox, &stores, id.store_id())
        }
    };
    let home = home.map_err(|error| engine_error(&error))?;
    if home.replaced {
        progress.say("the data that an earlier run kept there is replaced");
    }
    let session = match Session::begin(request, &home, id, data_of_run) {
        Ok(session) => session,
        Err(error) => {
            home.remove().map_err(|error| engine_error(&error))?;
            return Err(error);
        }
    };
    let (recording, home) = mailbox::run(MailRun {
        plan: resolved,
        target,
        mailbox,
        home,
        interrupt: request.interrupt,
        watcher: progress,
        witness: request.witness,
    });
    let hands_on = request.data.hands_on() && home.is_prepared() && recording.is_well();
    let kept = if keep && !hands_on { home.manifest.directories.clone() } else { Vec::new() };
    let mut removal = Ok(());
    if hands_on {
        request.data.put(Held { home, run_id: session.id.name().to_owned() });
    } else if !keep {
        removal = home.remove();
    }
    let mut finished = session.end(recording, kept)?;
    finished.not_removed = removal.err().map(|error| engine_error(&error));
    Ok(finished)
}

/// The target and workload of a plan that can be run.
fn what_to_run(plan: &ResolvedPlan) -> Result<(&Target, &Mailbox), CliError> {
    let Workload::Mailbox(mailbox) = &plan.workload else {
        let kind = plan.workload.kind();
        return Err(CliError::usage(format!("the workload {kind} cannot be run by this version"))
            .hint("plans with [workload.mailbox] can be run"));
    };
    let [target] = &plan.targets[..] else {
        return Err(CliError::usage("the plan names several targets: they are to be compared")
            .hint("name one [target]"));
    };
    if target.database_directories().is_empty() {
        let kind = target.kind_word();
        let says = format!("a mail store cannot be run on a target of kind {kind}");
        return Err(
            CliError::usage(says).hint("name directories: `path`, or `databases` and `logs`")
        );
    }
    Ok((target, mailbox))
}

/// The bundle and ledger entry of a run under way.
struct Session<'a> {
    request: &'a Request<'a>,
    plan_sha256: String,
    ledger: Ledger,
    position: LedgerPosition,
    writer: BundleWriter,
    environment: Environment,
    id: RunId,
    experiment: Option<Membership>,
}

impl<'a> Session<'a> {
    fn begin(
        request: &'a Request<'a>,
        home: &Home,
        id: RunId,
        data_of_run: Option<String>,
    ) -> Result<Self, CliError> {
        let resolved = request.resolved;
        let plan_sha256 = resolved.sha256_hex().map_err(|e| CliError::usage(e.to_string()))?;
        let ledger = Ledger::at(request.places.ledger());
        let started = id.started_unix_ns();
        let experiment =
            request.experiment.clone().map(|place| Membership { data_of_run, ..place });
        let together = experiment.as_ref().map(|place| place.id.as_str());
        let position =
            ledger.start_in(id.name(), &resolved.name, &plan_sha256, started, together)?;
        let writer = BundleWriter::create(request.bundles, id.name())?;
        writer.plan(request.plan.text(), resolved)?;
        let directories = home.directories();
        let mut paths: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        paths.sort();
        paths.dedup();
        let environment = plimsoll_observe::environment::collect(&paths);
        writer.environment(&environment)?;
        Ok(Self { request, plan_sha256, ledger, position, writer, environment, id, experiment })
    }

    /// Writes the evidence, seals it, judges it, enters its end in the ledger.
    fn end(self, recording: Recording, kept: Vec<String>) -> Result<Finished, CliError> {
        let started_unix_ns = self.id.started_unix_ns();
        self.writer.latency(started_unix_ns, &recording.intervals)?;
        self.writer.series(&recording.series)?;
        self.writer.observed(&recording.observed)?;
        let duration_ns = clock::monotonic_ns().saturating_sub(recording.start_ns);
        self.writer.run(&Run {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            run_id: self.id.name().to_owned(),
            name: self.request.resolved.name.clone(),
            plan_sha256: self.plan_sha256,
            driver: Driver::Real,
            tier: Tier::T1,
            started_unix_ns,
            duration_ns,
            end: recording.end,
            ledger: Some(self.position),
            experiment: self.experiment,
            engine: recording.engine,
            phases: recording.phases,
            classes: recording.classes,
            instances: recording.instances,
            counters: recording.counters,
            checks: recording.checks,
        })?;
        self.writer.environment(&self.environment)?;
        let seal = self.writer.seal()?;
        // What is judged is what was written, so that judging it again gives the same.
        let directory = self.writer.directory().to_path_buf();
        let evidence = Bundle::read(&directory)?;
        let verdict = bundle::judge_and_report(&directory, &evidence)?;
        let (end, word) = (end_word(evidence.run.end.kind), verdict.verdict.label());
        self.ledger.end(self.id.name(), clock::realtime_ns(), end, word, &seal)?;
        Ok(Finished { directory, evidence, verdict, kept, not_removed: None })
    }
}

fn end_word(kind: EndKind) -> &'static str {
    match kind {
        EndKind::Completed => "completed",
        EndKind::Interrupted => "interrupted",
        EndKind::IoError => "io-error",
        EndKind::NoSpace => "no-space",
        EndKind::Corruption => "corruption",
        EndKind::Environment => "environment",
    }
}

/// An error before a run began, with the exit code: what a plan names wrongly is the plan's fault.
pub fn engine_error(error: &EngineError) -> CliError {
    let kind = match error.kind() {
        ErrorKind::NotFound | ErrorKind::TooSmall | ErrorKind::Config | ErrorKind::Exists => {
            Exit::Usage
        }
        ErrorKind::Defect => Exit::Defect,
        _ => Exit::Environment,
    };
    CliError::new(kind, error.to_string()).hint(error.hint())
}
