//! One run from its lock to its verdict: what `run`, `quickstart` and repeats share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_engine::mailbox::{self, Home, MailRun};
use plimsoll_engine::matrix::condition::random_overwrite;
use plimsoll_engine::matrix::{self, DataHome, HomeRequest, MatrixRun};
use plimsoll_engine::{aside, defect, memory};
use plimsoll_evidence::BundleWriter;
use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::ledger::{Ledger, Question, Start, TornTail};
use plimsoll_evidence::run::{Driver, LedgerPosition, Membership, Run, SCHEMA_VERSION, Tier};
use plimsoll_plan::{Condition, Mailbox, Matrix, ResolvedPlan, Target, TargetKind, Workload};
use plimsoll_record::recording::Recording;
use plimsoll_sys::{clock, inject};

use crate::asked::{Request, of_one_host};
use crate::ceilings;
use crate::custody;
use crate::error::{RunnerError, engine_error};
use crate::evidence_place;
use crate::finished::Finished;
use crate::kept_data::{Data, Held};
use crate::listener::Listener;
use crate::modelled;
use crate::run_id::RunId;
use crate::trace;
use crate::until_steady::UntilSteady;

/// Carries one run out. From the moment that its data is begun it leaves a bundle, whatever happens.
///
/// # Errors
/// A workload or target that cannot be run, a target that cannot be used, a bundle or ledger that
/// cannot be written.
pub fn run_once(
    request: &Request<'_>,
    progress: &mut dyn Listener,
) -> Result<Finished, RunnerError> {
    let what = what_to_run(request.asked.resolved)?;
    for target in &request.asked.resolved.targets {
        memory::check(request.asked.resolved, target).map_err(|error| engine_error(&error))?;
    }
    match what {
        What::Model(kind) => run_model(request, kind, progress),
        What::Mail(target, mailbox) => run_mail(request, target, mailbox, progress),
        What::Matrix(target, matrix) => run_matrix(request, target, matrix, progress),
    }
}

const REPLACED: &str = "the data that an earlier run kept there is replaced";

/// What a plan asks to be run.
enum What<'p> {
    /// Any workload on a model.
    Model(&'p TargetKind),
    /// A mail store in directories.
    Mail(&'p Target, &'p Mailbox),
    /// Streams on files, a device or nothing.
    Matrix(&'p Target, &'p Matrix),
}

fn run_model(
    request: &Request<'_>,
    kind: &TargetKind,
    progress: &mut dyn Listener,
) -> Result<Finished, RunnerError> {
    let model = modelled::load(request.asked.resolved, kind)?;
    let trace = trace::of_plan(request.asked.resolved)?;
    let id = RunId::now(&request.asked.resolved.name);
    let session = Session::begin(request, &[], id, None, progress)?;
    let recording = match defect::caught(|| modelled::carry_out(request, &model, trace, progress)) {
        Ok(recording) => recording?,
        Err(defect) => {
            let mut recording = Recording::new(clock::monotonic_ns());
            recording.engine.kind = "model".to_owned();
            recording.fail_with(&defect);
            recording
        }
    };
    session.end(recording, DataEnd::default(), progress)
}

fn run_mail(
    request: &Request<'_>,
    target: &Target,
    mailbox: &Mailbox,
    progress: &mut dyn Listener,
) -> Result<Finished, RunnerError> {
    let resolved = request.asked.resolved;
    let mut ending = UntilSteady::new(resolved)?;
    let id = RunId::now(&resolved.name);
    let held = request.data.take();
    let data_of_run = held.as_ref().map(|held| held.run_id.clone());
    let home = match held {
        Some(Held { data: Data::Mail(home), .. }) => home.reuse(mailbox),
        _ => {
            let stores = request.asked.places.stores();
            let allowed = request.asked.driver.allowed();
            Home::create(resolved, target, mailbox, &stores, id.store_id(), allowed)
        }
    };
    let home = home.map_err(|error| engine_error(&error))?;
    if home.replaced {
        progress.say(REPLACED);
    }
    let places = home.directories();
    let drive = |home: Home, progress: &mut dyn Listener| {
        let (recording, home) = mailbox::run(MailRun {
            plan: resolved,
            target,
            mailbox,
            home,
            interrupt: request.asked.interrupt,
            watcher: progress,
            witness: request.asked.witness,
            ending: &mut ending,
        });
        let is_prepared = home.is_prepared();
        (recording, home, is_prepared)
    };
    let begun = Begun { id, home, data_of_run, places };
    begun.carry_out(request, Data::Mail, drive, progress)
}

/// A run whose data has its place.
struct Begun<H> {
    id: RunId,
    home: H,
    data_of_run: Option<String>,
    places: Vec<PathBuf>,
}

impl<H> Begun<H> {
    /// Drives the run with `drive`, which gives the data back and says whether it is prepared; leaves the bundle, and
    /// the data to the next run, to the operator or to nobody.
    fn carry_out(
        self,
        request: &Request<'_>,
        data: fn(H) -> Data,
        drive: impl FnOnce(H, &mut dyn Listener) -> (Recording, H, bool),
        progress: &mut dyn Listener,
    ) -> Result<Finished, RunnerError> {
        let Self { id, home, data_of_run, places } = self;
        let session = match Session::begin(request, &places, id, data_of_run, progress) {
            Ok(session) => session,
            Err(error) => return Err(not_begun(data(home), error)),
        };
        let (recording, home, is_prepared) = drive(home, progress);
        let can_be_used_again = is_prepared && recording.is_well();
        let ended = session.give_back(data(home), can_be_used_again, recording.left_behind);
        session.end(recording, ended, progress)
    }
}

fn run_matrix(
    request: &Request<'_>,
    target: &Target,
    matrix: &Matrix,
    progress: &mut dyn Listener,
) -> Result<Finished, RunnerError> {
    let mut ending = UntilSteady::new(request.asked.resolved)?;
    // A trace that is not the plan's is told before anything is written.
    let trace = trace::of_plan(request.asked.resolved)?;
    let overwriting = random_overwrite(matrix);
    let id = RunId::now(&request.asked.resolved.name);
    let held = request.data.take();
    let data_of_run = held.as_ref().map(|held| held.run_id.clone());
    let home = match held {
        Some(Held { data: Data::Matrix(home), .. }) => home,
        _ => data_set(request, target, matrix, &id)?,
    };
    if home.replaced && data_of_run.is_none() {
        progress.say(REPLACED);
    }
    let places = home.places();
    let drive = |home: DataHome, progress: &mut dyn Listener| {
        let (recording, home) = matrix::run(MatrixRun {
            plan: request.asked.resolved,
            matrix,
            trace,
            home,
            interrupt: request.asked.interrupt,
            watcher: progress,
            ending: &mut ending,
            overwriting: &overwriting,
        });
        let is_made = home.is_made;
        (recording, home, is_made)
    };
    let begun = Begun { id, home, data_of_run, places };
    begun.carry_out(request, Data::Matrix, drive, progress)
}

/// Takes a target for the data of a plan's matrix; the run makes the data itself. The points of a
/// sweep share it, so it is that of the whole plan.
fn data_set(
    request: &Request<'_>,
    target: &Target,
    matrix: &Matrix,
    id: &RunId,
) -> Result<DataHome, RunnerError> {
    let plan = request.asked.resolved;
    let whole = request.asked.plan.resolve();
    let whole = whole.workload.matrix().filter(|whole| whole.streams.len() == matrix.streams.len());
    let verified = matrix.streams.iter().any(|stream| stream.verify_reads);
    let home = DataHome::create(&HomeRequest {
        plan,
        target,
        matrix: whole.unwrap_or(matrix),
        state_directory: &request.asked.places.stores(),
        data_id: id.store_id(),
        follow: plan.phases.verify || verified || request.asked.keep,
        destroy: &request.data.given_up(request.asked.destroy),
        allowed: request.asked.driver.allowed(),
    });
    let home = home.map_err(|error| engine_error(&error))?;
    if let TargetKind::Device { device } = &target.kind {
        request.data.wrote(device.into());
    }
    Ok(home)
}

/// The target and workload of a plan that can be run.
fn what_to_run(plan: &ResolvedPlan) -> Result<What<'_>, RunnerError> {
    of_one_host(plan)?;
    let [target] = &plan.targets[..] else {
        return Err(RunnerError::usage("the plan names several targets: they are to be compared")
            .hint("name one [target]"));
    };
    let kind = target.kind_word();
    let is_model = matches!(target.kind, TargetKind::Model { .. });
    match &plan.workload {
        Workload::Mailbox(mailbox) if mailbox.threads_auto => {
            Err(RunnerError::usage("`threads = \"auto\"` cannot be run by this version")
                .hint("state the number of threads"))
        }
        _ if is_model && plan.phases.condition != Condition::None => {
            let says = "a model is not conditioned: its devices have no fresh state to leave";
            Err(RunnerError::usage(says).hint("leave `condition` out"))
        }
        Workload::Mailbox(_) if is_model => Ok(What::Model(&target.kind)),
        Workload::Mailbox(_) if target.database_directories().is_empty() => {
            let says = format!("a mail store cannot be run on a target of kind {kind}");
            Err(RunnerError::usage(says)
                .hint("name directories: `path`, or `databases` and `logs`"))
        }
        Workload::Mailbox(_) if plan.phases.condition != Condition::None => {
            let says = "a mail store is not conditioned: making its databases writes them";
            Err(RunnerError::usage(says)
                .hint("leave `condition` out, or run [workload.matrix] on the device first"))
        }
        Workload::Mailbox(mailbox) => Ok(What::Mail(target, mailbox)),
        Workload::Matrix(matrix) if matrix.point_count() > 1 => {
            let points = matrix.point_count();
            Err(RunnerError::usage(format!("the plan is a sweep of {points} points"))
                .hint("give one size, read share, pattern and queue depth to run one point"))
        }
        Workload::Matrix(_) if is_model => Ok(What::Model(&target.kind)),
        Workload::Matrix(matrix) => Ok(What::Matrix(target, matrix)),
    }
}

/// What became of a run's data.
#[derive(Default)]
struct DataEnd {
    kept: Vec<String>,
    not_removed: Option<RunnerError>,
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
    /// Begins the bundle of a run on `places`: directories or devices.
    fn begin(
        request: &'a Request<'a>,
        places: &[PathBuf],
        id: RunId,
        data_of_run: Option<String>,
        progress: &mut dyn Listener,
    ) -> Result<Self, RunnerError> {
        let begun =
            defect::caught(|| Self::begin_bundle(request, places, id, data_of_run, progress));
        begun.map_err(|error| engine_error(&error)).flatten()
    }

    fn begin_bundle(
        request: &'a Request<'a>,
        places: &[PathBuf],
        id: RunId,
        data_of_run: Option<String>,
        progress: &mut dyn Listener,
    ) -> Result<Self, RunnerError> {
        inject::point("begin");
        let resolved = request.asked.resolved;
        let plan_sha256 = resolved.sha256_hex().map_err(|e| RunnerError::usage(e.to_string()))?;
        let ledger = Ledger::at(request.asked.places.ledger());
        let started = id.started_unix_ns();
        let experiment =
            request.experiment.clone().map(|place| Membership { data_of_run, ..place });
        // A model's run takes no time of its own: its space need not be held.
        let modelled = matches!(resolved.targets[..], [ref t] if is_model(t));
        let hold_bytes = if modelled { 0 } else { evidence_place::expected_bytes(resolved) };
        let writer = evidence_place::begin(request.asked.bundles, id.name(), hold_bytes)?;
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
            known: &custody::witnesses(&request.asked.places.runs),
        };
        let position = match ledger.start(&entry) {
            Ok((position, torn)) => {
                torn.iter().for_each(|torn| progress.warn(&describe_torn(torn)));
                position
            }
            Err(error) => {
                // A run that the ledger does not know has not begun.
                drop(writer.discard());
                return Err(error.into());
            }
        };
        writer.plan(request.asked.plan.text(), request.asked.plan.job(), resolved)?;
        ceilings::enter(&mut environment, request.asked.places, progress);
        writer.environment(&environment)?;
        Ok(Self { request, plan_sha256, ledger, position, writer, environment, id, experiment })
    }

    /// Leaves the data to the next run, or to the operator, or removes it. What lies on a target that does
    /// not answer is left there, and named.
    fn give_back(&self, data: Data, can_be_used_again: bool, left_behind: bool) -> DataEnd {
        let request = self.request;
        if request.data.hands_on() && can_be_used_again {
            request.data.put(Held { data, run_id: self.id.name().to_owned() });
            return DataEnd::default();
        }
        if request.asked.keep {
            return DataEnd { kept: data.directories(), not_removed: None };
        }
        if left_behind {
            let places = data.places();
            // Its locks are files on the target, which would have to be removed.
            std::mem::forget(data);
            let says =
                format!("a call to the target does not return: the data was left in {places}");
            let hint = "once the target answers again, run the plan again: it replaces the data";
            let error = RunnerError::environment(says).hint(hint);
            return DataEnd { kept: Vec::new(), not_removed: Some(error) };
        }
        DataEnd { kept: Vec::new(), not_removed: remove(data).err() }
    }

    /// Writes the evidence, seals it, judges it, enters its end in the ledger.
    fn end(
        self,
        recording: Recording,
        data: DataEnd,
        progress: &mut dyn Listener,
    ) -> Result<Finished, RunnerError> {
        let directory = self.writer.directory().display().to_string();
        let ended = defect::caught(|| self.write_end(recording, data, progress));
        ended.unwrap_or_else(|error| {
            let says = format!("what was written of the evidence is in {directory}");
            Err(engine_error(&error).hint(says))
        })
    }

    fn write_end(
        self,
        recording: Recording,
        data: DataEnd,
        progress: &mut dyn Listener,
    ) -> Result<Finished, RunnerError> {
        inject::point("bundle");
        let Self { request, plan_sha256, ledger, position, writer, environment, id, experiment } =
            self;
        let modelled = recording.observed.inside.is_some() || recording.engine.kind == "model";
        let virtual_ns = recording.phases.last().map_or(0, |last| last.start_ns + last.duration_ns);
        let real_ns = clock::monotonic_ns().saturating_sub(recording.start_ns);
        let Recording { intervals, series, observed, .. } = &recording;
        let run = Run {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            build: Some(plimsoll_report::BUILD.to_owned()),
            run_id: id.name().to_owned(),
            name: request.asked.resolved.name.clone(),
            plan_sha256,
            driver: if modelled { Driver::Model } else { Driver::Real },
            tier: Tier::T1,
            started_unix_ns: id.started_unix_ns(),
            duration_ns: if modelled { virtual_ns } else { real_ns },
            end: recording.end.clone(),
            ledger: Some(position),
            signed_by: request.asked.places.signer.as_ref().map(|s| s.public().to_owned()),
            experiment,
            engine: recording.engine.clone(),
            phases: recording.phases.clone(),
            classes: recording.classes.clone(),
            instances: recording.instances.clone(),
            counters: recording.counters.clone(),
            checks: recording.checks.clone(),
        };
        let others = evidence_place::others(request.asked.places, request.asked.bundles);
        let written = evidence_place::write(writer, id.name(), &others, |writer| {
            writer.plan(
                request.asked.plan.text(),
                request.asked.plan.job(),
                request.asked.resolved,
            )?;
            writer.latency(id.started_unix_ns(), intervals, &run.phases)?;
            writer.series(series)?;
            writer.observed(observed)?;
            writer.run(&run)?;
            writer.environment(&environment)?;
            custody::seal_and_judge(writer, request.asked.places, id.name())
        })?;
        let (directory, judged) = (written.directory, written.given);
        if let Some(error) = written.elsewhere_because {
            let place = directory.display();
            progress.warn(&format!("{}\nthe bundle is in {place} instead", error.message));
        }
        let entered = judged.enter(&ledger, clock::realtime_ns());
        let custody::Judged { evidence, verdict, .. } = judged;
        let DataEnd { kept, not_removed } = data;
        let not_entered = entered.err().map(RunnerError::from);
        if let Some(error) = &not_entered {
            let says = "the end of the run could not be entered in the ledger";
            progress.warn(&format!("{says}: {error}"));
        }
        if let Some(error) = &not_removed {
            progress.warn(&format!("the data could not be removed: {error}"));
        }
        let verdict = verdict.map_err(|error| {
            let place = directory.display();
            error.hint(format!("the evidence is whole, in {place}: judge it again"))
        })?;
        Ok(Finished {
            directory,
            evidence,
            verdict,
            kept,
            not_removed,
            not_entered,
            of_hosts: None,
        })
    }
}

/// How long removing data is waited for once the operator wants the process to end: a file system takes
/// its time to free terabytes.
const REMOVAL: Duration = Duration::from_secs(20);

/// Removes the data of a run. What does not return once the operator has asked is left behind.
fn remove(data: Data) -> Result<(), RunnerError> {
    let places = data.places();
    let removed = aside::patiently(&places, REMOVAL, move || {
        inject::point("removal");
        data.remove()
    });
    removed.flatten().map_err(|error| {
        engine_error(&error).hint(format!("what is left of the data is in {places}"))
    })
}

/// Removes data of a run that could not begin, and gives the error that kept it from beginning.
fn not_begun(data: Data, error: RunnerError) -> RunnerError {
    match remove(data) {
        Ok(()) => error,
        Err(left) => error.hint(format!("and the data could not be removed: {}", left.message)),
    }
}

/// What is said of a torn tail that was put aside.
pub fn describe_torn(torn: &TornTail) -> String {
    let TornTail { line, size_bytes, moved_to } = torn;
    let says = format!(
        "line {line} of the ledger is torn: {size_bytes} bytes of a line that a run was cut off from \
         writing"
    );
    match moved_to {
        Some(path) => format!("{says}; they are now in {}", path.display()),
        None => format!("{says}; the next run puts them aside"),
    }
}

fn is_model(target: &Target) -> bool {
    matches!(target.kind, TargetKind::Model { .. })
}
