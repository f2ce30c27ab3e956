//! `plimsoll run PLAN`: prepare, measure, verify, judge, report.

use std::path::PathBuf;

use clap::Args;
use plimsoll_engine::mailbox::{self, Home, MailRun};
use plimsoll_engine::recording::Recording;
use plimsoll_engine::{EngineError, ErrorKind};
use plimsoll_evidence::ledger::Ledger;
use plimsoll_evidence::run::{Driver, EndKind, LedgerPosition, Run, SCHEMA_VERSION, Tier};
use plimsoll_evidence::{Bundle, BundleWriter};
use plimsoll_plan::{Mailbox, Plan, ResolvedPlan, Target, Workload};
use plimsoll_sys::clock;

use super::bundle;
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::run_id::RunId;

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll run exchange-1000-heavy.toml\n  plimsoll run plan.toml \
    --keep --json")]
pub struct Options {
    /// The plan.
    plan: PathBuf,
    #[command(flatten)]
    keep: Keep,
    #[command(flatten)]
    out: Out,
}

/// What becomes of the data.
#[derive(Clone, Debug, Args)]
pub struct Keep {
    /// Keep the data after the run: `plimsoll verify` can check it.
    #[arg(long)]
    pub keep: bool,
    /// Write each durable commit that is acknowledged to this file or pipe, for tests of durability:
    /// `plimsoll verify --witness` then asks after each.
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
}

/// Where the bundle goes.
#[derive(Clone, Debug, Args)]
pub struct Out {
    /// Directory to make the bundle in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Runs a plan.
///
/// # Errors
/// A plan that is wrong, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = super::plan::load(&options.plan)?;
    let mut progress = StderrProgress::new(common.quiet);
    carry_out_plan(&plan, &options.keep, &options.out, common, &mut progress)
}

/// Runs a plan that was read or made.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn carry_out_plan(
    plan: &Plan,
    keep: &Keep,
    out: &Out,
    common: &Common,
    progress: &mut StderrProgress,
) -> Result<Exit, CliError> {
    let resolved = plan.resolve();
    let places = Places::from_environment()?;
    let (target, mailbox) = what_to_run(&resolved)?;
    let interrupt = interrupt::flag_on_signal()?;
    let id = RunId::now(&resolved.name);
    let home = Home::create(&resolved, target, mailbox, &places.stores(), id.store_id())
        .map_err(|error| engine_error(&error))?;
    let session = Session::begin(plan, &resolved, &places, out, id)?;
    let paths: Vec<PathBuf> = home.directories();
    let mut environment =
        plimsoll_observe::environment::collect(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    environment.mounts.dedup_by(|a, b| a.path == b.path);
    session.writer.environment(&environment)?;
    let (recording, home) = mailbox::run(MailRun {
        plan: &resolved,
        target,
        mailbox,
        home,
        interrupt: &interrupt,
        watcher: progress,
        witness: keep.witness.as_deref(),
    });
    let kept = keep.keep.then(|| home.manifest.directories.clone());
    let removal = if keep.keep { Ok(()) } else { home.remove() };
    let exit = session.end(recording, environment, common)?;
    if let Some(directories) = kept {
        progress.say(&format!("the data was kept in {}", directories.join(", ")));
    }
    removal.map_err(|error| engine_error(&error))?;
    Ok(exit)
}

/// The target and workload of a plan that this command can run.
fn what_to_run(plan: &ResolvedPlan) -> Result<(&Target, &Mailbox), CliError> {
    let Workload::Mailbox(mailbox) = &plan.workload else {
        let kind = plan.workload.kind();
        return Err(CliError::usage(format!("`plimsoll run` cannot run the workload {kind} yet"))
            .hint("plans with [workload.mailbox] can be run"));
    };
    let [target] = &plan.targets[..] else {
        return Err(CliError::usage("the plan names several targets: they are to be compared")
            .hint("name one [target]"));
    };
    if target.database_directories().is_empty() {
        let kind = target.kind_word();
        return Err(CliError::usage(format!("a mail store cannot be run on a target of kind {kind}"))
            .hint("name directories: `path`, or `databases` and `logs`"));
    }
    Ok((target, mailbox))
}

/// The bundle and ledger entry of a run under way.
struct Session<'a> {
    plan: &'a ResolvedPlan,
    plan_text: &'a str,
    plan_sha256: String,
    ledger: Ledger,
    position: Option<LedgerPosition>,
    writer: BundleWriter,
    id: RunId,
}

impl<'a> Session<'a> {
    fn begin(
        plan: &'a Plan,
        resolved: &'a ResolvedPlan,
        places: &Places,
        out: &Out,
        id: RunId,
    ) -> Result<Self, CliError> {
        let plan_sha256 = resolved.sha256_hex().map_err(|e| CliError::usage(e.to_string()))?;
        let ledger = Ledger::at(places.ledger());
        let position = ledger.start(id.name(), &resolved.name, &plan_sha256, id.started_unix_ns())?;
        let parent = out.out.as_deref().unwrap_or(&places.runs);
        let writer = BundleWriter::create(parent, id.name())?;
        writer.plan(plan.text(), resolved)?;
        let position = Some(position);
        let plan_text = plan.text();
        Ok(Self { plan: resolved, plan_text, plan_sha256, ledger, position, writer, id })
    }

    /// Writes the evidence, judges it, shows the verdict.
    fn end(
        self,
        recording: Recording,
        environment: plimsoll_evidence::environment::Environment,
        common: &Common,
    ) -> Result<Exit, CliError> {
        let started_unix_ns = self.id.started_unix_ns();
        self.writer.latency(started_unix_ns, &recording.intervals)?;
        self.writer.series(&recording.series)?;
        self.writer.observed(&recording.observed)?;
        let duration_ns = clock::monotonic_ns().saturating_sub(recording.start_ns);
        let run = Run {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            run_id: self.id.name().to_owned(),
            name: self.plan.name.clone(),
            plan_sha256: self.plan_sha256,
            driver: Driver::Real,
            tier: Tier::T1,
            started_unix_ns,
            duration_ns,
            end: recording.end,
            ledger: self.position,
            engine: recording.engine,
            phases: recording.phases,
            classes: recording.classes,
            instances: recording.instances,
            counters: recording.counters,
            checks: recording.checks,
        };
        self.writer.run(&run)?;
        self.writer.environment(&environment)?;
        let seal = self.writer.seal()?;
        // What is judged is what was written, so that judging it again gives the same.
        let evidence = Bundle::read(self.writer.directory())?;
        debug_assert_eq!(evidence.plan_text, self.plan_text);
        let verdict = bundle::judge_and_report(self.writer.directory(), &evidence)?;
        let end = end_word(evidence.run.end.kind);
        let word = verdict.verdict.label();
        self.ledger.end(self.id.name(), clock::realtime_ns(), end, word, &seal)?;
        bundle::show(self.writer.directory(), &evidence, &verdict, common)?;
        Ok(Exit::of(&evidence.run, verdict.verdict))
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

/// An error before the run began, with the exit code: what a plan names wrongly is the plan's fault.
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
