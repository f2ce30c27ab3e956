//! Executes one run, from the lock on its target to its verdict, for `run`, `quickstart` and
//! repeats.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_engine::mailbox::{self, MailRun, StoreDirectories};
use plimsoll_engine::matrix::condition::random_overwrite;
use plimsoll_engine::matrix::{self, DataSet, DataSetRequest, MatrixRun};
use plimsoll_engine::{EngineError, ErrorKind, blocking_call, defect, leftovers, memory};
use plimsoll_evidence::BundleWriter;
use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::ledger::{Ledger, Question, Start, TornTail};
use plimsoll_evidence::run::{Driver, LedgerPosition, Membership, Run, SCHEMA_VERSION, Tier};
use plimsoll_plan::{Condition, Mailbox, Matrix, ResolvedPlan, Target, TargetKind, Workload};
use plimsoll_record::recording::Recording;
use plimsoll_record::spool::Spool;
use plimsoll_sys::{clock, inject};

use crate::bundle_location;
use crate::ceilings;
use crate::custody;
use crate::data_slot::{Data, SlotData};
use crate::durability;
use crate::error::{RunnerError, engine_error};
use crate::events::{self, EventListener, StreamGates};
use crate::finished_run::FinishedRun;
use crate::listener::Listener;
use crate::model_run;
use crate::prompt::Operator;
use crate::run_id::RunId;
use crate::run_request::{RunRequest, reject_fleet_plan};
use crate::trace;
use crate::until_steady::UntilSteady;

/// Executes one run. Once its data exists, the run writes a bundle in all cases.
///
/// # Errors
/// The workload or target is unusable, or the bundle or ledger cannot be written.
pub fn run_once(
    request: &RunRequest<'_>,
    progress: &mut dyn Listener,
) -> Result<FinishedRun, RunnerError> {
    check_plan(request.config.resolved)?;
    durability::check_phase(request)?;
    let has_page = request.config.driver.allowed().is_some();
    events::check_operator(request.config.resolved, has_page)?;
    match run_kind(request.config.resolved)? {
        RunKind::Model(model) => run_model(request, model, progress),
        RunKind::Mail(target, mailbox) => run_mail(request, target, mailbox, progress),
        RunKind::Matrix(target, matrix) => run_matrix(request, target, matrix, progress),
    }
}

/// Checks whether this version can run a plan that has one target and one point. Does not access
/// the target. A dry run makes the same checks as a run.
///
/// # Errors
/// The plan cannot be run because of its kind of target, its memory, phases, streams or model.
pub fn check_plan(plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let kind = run_kind(plan)?;
    for target in &plan.targets {
        memory::check(plan, target).map_err(|error| engine_error(&error))?;
    }
    UntilSteady::new(plan)?;
    plan.sha256_hex().map_err(|error| RunnerError::usage(error.to_string()))?;
    match kind {
        RunKind::Model(model) => model_run::load(plan, model).map(drop),
        RunKind::Mail(..) => Ok(()),
        RunKind::Matrix(target, matrix) => {
            matrix::check_plan(plan, target, matrix).map_err(|error| engine_error(&error))
        }
    }
}

const REPLACED: &str = "replacing the data that an earlier run left there";

/// Kind of a run. Each variant contains the parts of the plan that this kind uses.
enum RunKind<'p> {
    /// Any workload whose target is a model.
    Model(&'p TargetKind),
    /// A mail store in directories.
    Mail(&'p Target, &'p Mailbox),
    /// Streams whose target is files, a device or the null target.
    Matrix(&'p Target, &'p Matrix),
}

fn run_model(
    request: &RunRequest<'_>,
    kind: &TargetKind,
    progress: &mut dyn Listener,
) -> Result<FinishedRun, RunnerError> {
    let model = model_run::load(request.config.resolved, kind)?;
    let trace = trace::of_plan(request.config.resolved)?;
    let id = RunId::now(&request.config.resolved.name);
    let session = Session::begin(request, &[], id, None, progress)?;
    let recording =
        match defect::catch_panic(|| model_run::carry_out(request, &model, trace, progress)) {
            Ok(recording) => recording?,
            Err(defect) => {
                let mut recording = Recording::new(clock::monotonic_ns());
                recording.engine.kind = "model".to_owned();
                recording.fail_with(&defect);
                recording
            }
        };
    session.end(recording, DataOutcome::default(), progress)
}

fn run_mail(
    request: &RunRequest<'_>,
    target: &Target,
    mailbox: &Mailbox,
    progress: &mut dyn Listener,
) -> Result<FinishedRun, RunnerError> {
    let resolved = request.config.resolved;
    let mut end_condition = UntilSteady::new(resolved)?;
    let id = RunId::now(&resolved.name);
    let slot_data = request.data.take();
    let data_of_run = slot_data.as_ref().map(|data| data.run_id.clone());
    let store_directories = match slot_data {
        Some(SlotData { data: Data::Mail(store_directories), .. }) => {
            store_directories.reuse(mailbox)
        }
        _ => {
            let stores = request.config.places.stores();
            let allowed = request.config.driver.allowed();
            StoreDirectories::create(resolved, target, mailbox, &stores, id.store_id(), allowed)
        }
    };
    let store_directories = store_directories.map_err(|error| not_created(&error, resolved))?;
    if store_directories.replaced {
        progress.say(REPLACED);
    }
    let places = store_directories.directories();
    let drive = |store_directories: StoreDirectories, spool, progress: &mut dyn Listener| {
        let (recording, store_directories) = mailbox::run(MailRun {
            plan: resolved,
            target,
            mailbox,
            store_directories,
            interrupt: request.config.interrupt,
            watcher: progress,
            witness: request.config.witness,
            end_condition: &mut end_condition,
            spool,
        });
        let is_prepared = store_directories.is_prepared();
        (recording, store_directories, is_prepared)
    };
    let prepared =
        PreparedRun { id, run_data: store_directories, data_of_run, places, gates: Vec::new() };
    prepared.carry_out(request, Data::Mail, drive, progress)
}

/// A run whose target is already reserved.
struct PreparedRun<H> {
    id: RunId,
    run_data: H,
    data_of_run: Option<String>,
    places: Vec<PathBuf>,
    gates: StreamGates,
}

impl<H> PreparedRun<H> {
    /// Executes the run with `drive`, which returns the data and states whether the data is usable.
    /// Then writes the bundle, and keeps or removes the data.
    fn carry_out(
        self,
        request: &RunRequest<'_>,
        data: fn(H) -> Data,
        drive: impl FnOnce(H, Option<Spool>, &mut dyn Listener) -> (Recording, H, bool),
        progress: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError> {
        let Self { id, run_data, data_of_run, places, gates } = self;
        let operator = Operator::of_run(request.config.places, id.name());
        let session = match Session::begin(request, &places, id, data_of_run, progress) {
            Ok(session) => session,
            Err(error) => return Err(start_failed(data(run_data), error, request.config.resolved)),
        };
        let mut listener = EventListener::new(request.config, gates, operator, progress);
        // If there is no spool file, all rows of the run stay in memory.
        let spool = Spool::create(session.writer.directory()).ok();
        let (mut recording, run_data, is_prepared) = drive(run_data, spool, &mut listener);
        recording.events = listener.finish(recording.start_ns);
        let is_reusable = is_prepared && recording.is_well();
        let ended = session.release_data(data(run_data), is_reusable, recording.left_behind);
        session.end(recording, ended, progress)
    }
}

fn run_matrix(
    request: &RunRequest<'_>,
    target: &Target,
    matrix: &Matrix,
    progress: &mut dyn Listener,
) -> Result<FinishedRun, RunnerError> {
    let mut end_condition = UntilSteady::new(request.config.resolved)?;
    // An invalid trace is reported before anything is written.
    let trace = trace::of_plan(request.config.resolved)?;
    let overwriting = random_overwrite(matrix);
    let id = RunId::now(&request.config.resolved.name);
    let slot_data = request.data.take();
    let data_of_run = slot_data.as_ref().map(|data| data.run_id.clone());
    let data_set = match slot_data {
        Some(SlotData { data: Data::Matrix(data_set), .. }) => data_set,
        _ => data_set(request, target, matrix, &id)?,
    };
    if data_set.replaced && data_of_run.is_none() {
        progress.say(REPLACED);
    }
    let places = data_set.places();
    let gates = events::gates(request.config.resolved);
    let gates_of_run = gates.clone();
    let drive = |data_set: DataSet, spool, progress: &mut dyn Listener| {
        let (recording, data_set) = matrix::run(MatrixRun {
            plan: request.config.resolved,
            matrix,
            trace,
            data_set,
            interrupt: request.config.interrupt,
            watcher: progress,
            end_condition: &mut end_condition,
            overwriting: &overwriting,
            gates: gates_of_run,
            spool,
        });
        let is_created = data_set.is_created;
        (recording, data_set, is_created)
    };
    let prepared = PreparedRun { id, run_data: data_set, data_of_run, places, gates };
    prepared.carry_out(request, Data::Matrix, drive, progress)
}

/// Reserves a target for the data of a plan's matrix. The run creates the data later. All points of
/// a sweep share the data, so the data must be large enough for the whole plan.
fn data_set(
    request: &RunRequest<'_>,
    target: &Target,
    matrix: &Matrix,
    id: &RunId,
) -> Result<DataSet, RunnerError> {
    let plan = request.config.resolved;
    let whole = request.config.plan.resolve();
    let whole = whole.workload.matrix().filter(|whole| whole.streams.len() == matrix.streams.len());
    let verified = matrix.streams.iter().any(|stream| stream.verify_reads);
    let data_set = DataSet::create(&DataSetRequest {
        plan,
        target,
        matrix: whole.unwrap_or(matrix),
        state_directory: &request.config.places.stores(),
        data_id: id.store_id(),
        follow: plan.phases.verify || verified || request.config.keep,
        destroy: &request.data.overwritable_devices(request.config.destroy),
        allowed: request.config.driver.allowed(),
    });
    let data_set = data_set.map_err(|error| not_created(&error, plan))?;
    if let TargetKind::Device { device } = &target.kind {
        request.data.record_device(device.into());
    }
    Ok(data_set)
}

/// Returns the kind of run that a plan requires, or rejects the plan.
fn run_kind(plan: &ResolvedPlan) -> Result<RunKind<'_>, RunnerError> {
    reject_fleet_plan(plan)?;
    let [target] = &plan.targets[..] else {
        return Err(RunnerError::usage(
            "the plan has several targets, so they can only be compared with each other",
        )
        .hint("use a plan with one [target]"));
    };
    let kind = target.kind_word();
    let is_model = matches!(target.kind, TargetKind::Model { .. });
    match &plan.workload {
        Workload::Mailbox(mailbox) if mailbox.threads_auto => {
            Err(RunnerError::usage("`threads = \"auto\"` cannot be run by this version")
                .hint("state the number of threads"))
        }
        _ if is_model && plan.phases.condition != Condition::None => {
            let says = "`condition` cannot be used with a model: the modelled devices have no fresh \
                        state";
            Err(RunnerError::usage(says).hint("remove `condition`"))
        }
        Workload::Mailbox(_) if is_model => Ok(RunKind::Model(&target.kind)),
        Workload::Mailbox(_) if target.database_directories().is_empty() => {
            let says = format!("a mail store cannot be run on a target of kind {kind}");
            Err(RunnerError::usage(says)
                .hint("set `path`, or `databases` and `logs`, to directories"))
        }
        Workload::Mailbox(_) if plan.phases.condition != Condition::None => {
            let says = "`condition` cannot be used with a mail store: creating its databases \
                        already writes all of their data";
            Err(RunnerError::usage(says)
                .hint("remove `condition`, or run [workload.matrix] on the device first"))
        }
        Workload::Mailbox(mailbox) => Ok(RunKind::Mail(target, mailbox)),
        Workload::Matrix(matrix) if matrix.point_count() > 1 => {
            let points = matrix.point_count();
            Err(RunnerError::usage(format!("the plan is a sweep of {points} points")).hint(
                "set a single size, read share, pattern and queue depth to run only one point",
            ))
        }
        Workload::Matrix(_) if is_model => Ok(RunKind::Model(&target.kind)),
        Workload::Matrix(matrix) => Ok(RunKind::Matrix(target, matrix)),
    }
}

/// Outcome of the removal of a run's data.
#[derive(Default)]
struct DataOutcome {
    kept: Vec<String>,
    removal_error: Option<RunnerError>,
}

/// Bundle and ledger entry of a running plan.
struct Session<'a> {
    request: &'a RunRequest<'a>,
    plan_sha256: String,
    ledger: Ledger,
    position: LedgerPosition,
    writer: BundleWriter,
    environment: Environment,
    id: RunId,
    experiment: Option<Membership>,
}

impl<'a> Session<'a> {
    /// Starts the bundle of a run on `places`: directories or devices.
    fn begin(
        request: &'a RunRequest<'a>,
        places: &[PathBuf],
        id: RunId,
        data_of_run: Option<String>,
        progress: &mut dyn Listener,
    ) -> Result<Self, RunnerError> {
        let begun =
            defect::catch_panic(|| Self::begin_bundle(request, places, id, data_of_run, progress));
        begun.map_err(|error| engine_error(&error)).flatten()
    }

    fn begin_bundle(
        request: &'a RunRequest<'a>,
        places: &[PathBuf],
        id: RunId,
        data_of_run: Option<String>,
        progress: &mut dyn Listener,
    ) -> Result<Self, RunnerError> {
        inject::point("begin");
        let resolved = request.config.resolved;
        let plan_sha256 = resolved.sha256_hex().map_err(|e| RunnerError::usage(e.to_string()))?;
        let ledger = Ledger::at(request.config.places.ledger());
        let started = id.started_unix_ns();
        let experiment =
            request.experiment.clone().map(|place| Membership { data_of_run, ..place });
        // A run on a model takes little real time, so no space is reserved.
        let modelled = matches!(resolved.targets[..], [ref t] if is_model(t));
        let reserve_bytes = if modelled { 0 } else { bundle_location::expected_bytes(resolved) };
        let writer = bundle_location::create(request.config.bundles, id.name(), reserve_bytes)?;
        let mut paths: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
        paths.sort();
        paths.dedup();
        let mut environment = plimsoll_observe::environment::collect(&paths);
        let entry = Start {
            run_id: id.name(),
            name: &resolved.name,
            plan_sha256: &plan_sha256,
            unix_ns: started,
            experiment: experiment.as_ref().map(|place| place.id.as_str()),
            question: Some(Question::from_plan(resolved, &environment)),
            known: &custody::witnesses(&request.config.places.runs),
        };
        let position = match ledger.start(&entry) {
            Ok((position, torn)) => {
                torn.iter().for_each(|torn| progress.warn(&describe_torn(torn)));
                position
            }
            Err(error) => {
                // Without a ledger entry, the run does not start.
                drop(writer.discard());
                return Err(error.into());
            }
        };
        writer.plan(request.config.plan.text(), request.config.plan.job(), resolved)?;
        ceilings::add_to(&mut environment, request.config.places, progress);
        writer.environment(&environment)?;
        Ok(Self { request, plan_sha256, ledger, position, writer, environment, id, experiment })
    }

    /// Keeps the data for the next run or the operator, or removes it. If the target does not
    /// respond, the data stays on it and is reported.
    fn release_data(&self, data: Data, is_reusable: bool, left_behind: bool) -> DataOutcome {
        let request = self.request;
        if request.data.reuses_data() && is_reusable {
            request.data.put(SlotData { data, run_id: self.id.name().to_owned() });
            return DataOutcome::default();
        }
        if request.config.keep {
            return DataOutcome { kept: data.directories(), removal_error: None };
        }
        if left_behind {
            let places = data.places();
            // Dropping `data` would remove lock files on the target, and the target does not
            // respond.
            std::mem::forget(data);
            let says = format!("the target does not respond: the data was left in {places}");
            let hint =
                "once the target responds, run the plan again: the new run replaces the data";
            let error = RunnerError::environment(says).hint(hint);
            let clean = |directory| {
                format!("or run `plimsoll clean {directory}` to remove the data and the lock")
            };
            let directories = target_directories(request.config.resolved).into_iter();
            let error = with_hints(error, directories.map(clean).collect());
            return DataOutcome { kept: Vec::new(), removal_error: Some(error) };
        }
        let kept = data.kept_device().into_iter().collect();
        DataOutcome { kept, removal_error: remove(data, request.config.resolved).err() }
    }

    /// Writes, seals and judges the evidence, and records the end in the ledger.
    fn end(
        self,
        recording: Recording,
        data: DataOutcome,
        progress: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError> {
        let directory = self.writer.directory().display().to_string();
        let ended = defect::catch_panic(|| self.write_end(recording, data, progress));
        ended.unwrap_or_else(|error| {
            let says = format!("the evidence written so far is in {directory}");
            Err(engine_error(&error).hint(says))
        })
    }

    fn write_end(
        self,
        recording: Recording,
        data: DataOutcome,
        progress: &mut dyn Listener,
    ) -> Result<FinishedRun, RunnerError> {
        inject::point("bundle");
        let Self { request, plan_sha256, ledger, position, writer, environment, id, experiment } =
            self;
        let modelled = recording.observed.inside.is_some() || recording.engine.kind == "model";
        let virtual_ns = recording.phases.last().map_or(0, |last| last.start_ns + last.duration_ns);
        let real_ns = || clock::monotonic_ns().saturating_sub(recording.start_ns);
        let mut run = Run {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            build: Some(plimsoll_report::BUILD.to_owned()),
            run_id: id.name().to_owned(),
            name: request.config.resolved.name.clone(),
            plan_sha256,
            driver: if modelled { Driver::Model } else { Driver::Real },
            tier: Tier::T1,
            started_unix_ns: id.started_unix_ns(),
            duration_ns: if modelled { virtual_ns } else { real_ns() },
            end: recording.end.clone(),
            ledger: Some(position),
            signed_by: request.config.places.signer.as_ref().map(|s| s.public().to_owned()),
            experiment,
            engine: recording.engine.clone(),
            phases: recording.phases.clone(),
            classes: recording.classes.clone(),
            instances: recording.instances.clone(),
            counters: recording.counters.clone(),
            checks: recording.checks.clone(),
            events: recording.events.clone(),
            durability: None,
        };
        let write_files = |writer: &BundleWriter, run: &Run| {
            writer.plan(
                request.config.plan.text(),
                request.config.plan.job(),
                request.config.resolved,
            )?;
            writer.latency(id.started_unix_ns(), &recording.intervals, &run.phases)?;
            writer.series(&recording.series)?;
            writer.observed(&recording.observed)?;
            writer.run(run)?;
            writer.environment(&environment)
        };
        if request.config.resolved.durability.is_some() && recording.is_well() {
            // A cut may also power this host off. The evidence of the load is then already on disk,
            // but not sealed. Errors are reported when the bundle is written.
            let _ = write_files(&writer, &run);
            run.durability = durability::run_phase(request, id.name(), progress);
            run.duration_ns = real_ns();
        }
        let fallbacks =
            bundle_location::fallback_directories(request.config.places, request.config.bundles);
        let written = bundle_location::write(writer, id.name(), &fallbacks, |writer| {
            write_files(writer, &run)?;
            custody::seal_and_judge(writer, request.config.places, id.name())
        })?;
        let (directory, judged) = (written.directory, written.output);
        if let Some(error) = written.fallback_reason {
            let place = directory.display();
            progress.warn(&format!("{}\nthe bundle is in {place} instead", error.message));
        }
        let recorded = judged.record_end(&ledger, clock::realtime_ns());
        let custody::SealedRun { evidence, verdict, .. } = judged;
        let DataOutcome { kept, removal_error } = data;
        let ledger_error = recorded.err().map(RunnerError::from);
        if let Some(error) = &ledger_error {
            let says = "cannot record the end of the run in the ledger";
            progress.warn(&format!("{says}: {error}"));
        }
        if let Some(error) = &removal_error {
            progress.warn(&format!("cannot remove the data: {}", error.in_one_line()));
        }
        let verdict = verdict.map_err(|error| {
            let place = directory.display();
            error.hint(format!("the evidence in {place} is complete: judge it again"))
        })?;
        Ok(FinishedRun {
            directory,
            evidence,
            verdict,
            kept,
            removal_error,
            ledger_error,
            hosts_exit: None,
        })
    }
}

/// Time limit for removing data after the operator stopped the process. A file system takes some
/// time to free terabytes.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Removes the data of a run. If the data cannot be removed within the time limit, it is left on
/// the target.
fn remove(data: Data, plan: &ResolvedPlan) -> Result<(), RunnerError> {
    let places = data.places();
    let plan = plan.clone();
    let removed = blocking_call::run_until_stop(&places, REMOVAL_TIMEOUT, move || {
        inject::point("removal");
        let removed = data.remove().map_err(|error| engine_error(&error));
        // Removing the data has also removed the lock.
        let hints = leftover_hints(&plan);
        match removed {
            Ok(()) if hints.is_empty() => Ok(()),
            Ok(()) => Err(with_hints(
                RunnerError::environment("some of the data could not be removed"),
                hints,
            )),
            Err(error) => Err(with_hints(error, hints)),
        }
    });
    removed.map_err(|error| engine_error(&error)).flatten().map_err(|error| {
        let is_named = error.hints.iter().any(|hint| hint.contains("plimsoll clean"));
        if is_named {
            error
        } else {
            error.hint(format!("the data that was not removed is in {places}"))
        }
    })
}

/// Converts an error that occurred while data was created. Adds hints about files that could not be
/// removed again.
fn not_created(error: &EngineError, plan: &ResolvedPlan) -> RunnerError {
    // If the target is in use, the data and the lock belong to the other run.
    let is_others = error.kind() == ErrorKind::InUse;
    let hints = if is_others { Vec::new() } else { leftover_hints(plan) };
    with_hints(engine_error(error), hints)
}

fn with_hints(error: RunnerError, hints: Vec<String>) -> RunnerError {
    hints.into_iter().fold(error, RunnerError::hint)
}

/// Returns the target directories of a plan, without duplicates.
fn target_directories(plan: &ResolvedPlan) -> BTreeSet<&String> {
    plan.targets
        .iter()
        .flat_map(|target| target.database_directories().iter().chain(target.log_directories()))
        .collect()
}

/// Returns hints about the target directories that contain files of this run or cannot be listed.
fn leftover_hints(plan: &ResolvedPlan) -> Vec<String> {
    let hint = |directory: &String| match leftovers(Path::new(directory), &plan.name) {
        Ok(names) if names.is_empty() => None,
        Ok(names) => Some(format!("`plimsoll clean {directory}` removes {}", names.join(", "))),
        // No files were created in this directory.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Denied) => None,
        Err(_) => Some(format!("`plimsoll clean {directory}` removes the data that is left there")),
    };
    target_directories(plan).into_iter().filter_map(hint).collect()
}

/// Removes the data of a run that could not start. Returns the error that prevented the run from
/// starting.
fn start_failed(data: Data, error: RunnerError, plan: &ResolvedPlan) -> RunnerError {
    match remove(data, plan) {
        Ok(()) => error,
        Err(left) => error.hint(format!("also, the data could not be removed: {}", left.message)),
    }
}

/// Describes a torn line at the end of the ledger.
pub fn describe_torn(torn: &TornTail) -> String {
    let TornTail { line, size_bytes, moved_to } = torn;
    let says = format!(
        "line {line} of the ledger is incomplete: {size_bytes} bytes, written by a run that was \
         interrupted"
    );
    match moved_to {
        Some(path) => format!("{says}; these bytes were moved to {}", path.display()),
        None => format!("{says}; the next run moves these bytes to a separate file"),
    }
}

fn is_model(target: &Target) -> bool {
    matches!(target.kind, TargetKind::Model { .. })
}
