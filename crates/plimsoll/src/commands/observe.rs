//! `plimsoll observe -- CMD…`: another benchmark under our eyes (tier T2).
//!
//! The command runs as it would alone; the devices beneath the paths, the host, other processes and the
//! command's own are sampled meanwhile. With `--result` the figures are those of the JSON that fio wrote;
//! without, there is what the system did and no figure.

mod result;

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use plimsoll_engine::urgency;
use plimsoll_evidence::environment::Environment;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::ledger::{Ledger, Question, Start};
use plimsoll_evidence::observed::{self, Observed, OpenedFile};
use plimsoll_evidence::run::{Driver, End, EndKind, LedgerPosition, Run, Tier};
use plimsoll_evidence::series::Row;
use plimsoll_evidence::{Bundle, BundleWriter};
use plimsoll_import::foreign;
use plimsoll_observe::Observer;
use plimsoll_observe::command::{CommandWatch, take_in_orphans};
use plimsoll_plan::Plan;
use plimsoll_sys::clock::{self, monotonic_ns};
use rustix::process::{Pid, Signal};
use signal_hook::consts::SIGINT;

use self::result::Ran;
use super::bundle;
use crate::common::Common;
use crate::custody;
use crate::error::CliError;
use crate::evidence_place;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::progress::StderrProgress;
use crate::run_id::RunId;
use crate::session::describe_torn;

/// Space held for the bundle: how long the command takes is not known.
const HOLD_BYTES: u64 = 16 << 20;
/// Time from one reading of the counters to the next.
const SAMPLE_NS: u64 = 1_000_000_000;
/// How often the command is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// What the command did not wait for has so many looks to end.
const SETTLE_LOOKS: u32 = 25;

/// A SIGINT that came to this process alone, and not from the terminal, is passed on after so long.
const TERMINAL_NS: u64 = 2_000_000_000;

/// Options of `observe`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll observe --path /mnt/san --result out.json -- fio --filename=/mnt/san/f \
    --size=10g \\\n      --rw=randread --direct=1 --output-format=json+ --output=out.json --name=a\n  plimsoll \
    observe --path /mnt/san -- ./my-benchmark\n\nThe exit code is that of the verdict; a command that fails makes \
    it 5. Signals are\npassed on to the command, a second one as SIGKILL."
)]
pub struct Options {
    /// What the command works on: a directory, file or device. Several may be named.
    #[arg(long, value_name = "PATH", default_value = ".")]
    path: Vec<PathBuf>,
    /// The JSON that fio writes: its figures are judged with what was observed.
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    /// Directory to make the bundle in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    /// The command with its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs the command, watches, judges.
///
/// # Errors
/// A path or command that is not there, a result that cannot be read, a bundle that cannot be written.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    for path in &options.path {
        std::fs::metadata(path).map_err(|error| {
            CliError::usage(format!("cannot observe {}: {error}", path.display()))
                .hint("name a directory, file or device that exists with --path")
        })?;
    }
    let progress = StderrProgress::new(common.quiet);
    let name = "observe";
    let id = RunId::now(name);
    let places = keys::places(&options.sign)?;
    let plan = Plan::parse(&plan_text(options), "observe")
        .map_err(|error| CliError::usage(error.to_string()))?;
    let sha = plan.resolve().sha256_hex().map_err(|error| CliError::usage(error.to_string()))?;
    let paths: Vec<PathBuf> =
        options.path.iter().map(|p| p.canonicalize().unwrap_or_else(|_| p.clone())).collect();
    let path_refs: Vec<&std::path::Path> = paths.iter().map(PathBuf::as_path).collect();
    let environment = plimsoll_observe::environment::collect(&path_refs);
    let mut observer = Observer::new(paths, 0);
    let bundles = places.bundles(options.out.as_deref())?;
    let ledger = Ledger::at(places.ledger());
    let begun = evidence_place::begin(&bundles, id.name(), HOLD_BYTES)?;
    let entry = Start {
        run_id: id.name(),
        name,
        plan_sha256: &sha,
        unix_ns: id.started_unix_ns(),
        question: Some(Question::of(&plan.resolve(), &environment)),
        known: &custody::witnesses(&places.runs),
        experiment: None,
    };
    let stop = interrupt::flag_on_signal()?;
    let (child, start_ns, position) = match begin(options, &entry, &ledger, &progress) {
        Ok(begun) => begun,
        Err(error) => {
            drop(begun.discard());
            return Err(error);
        }
    };
    let root = i32::try_from(child.id()).unwrap_or(0);
    observer.not_neighbours(vec![root]);
    let processes = CommandWatch::begin(root);
    observer.begin(0);
    let start_unix_ns = clock::realtime_ns().saturating_sub(monotonic_ns() - start_ns);
    let started = Started { child, start_ns, start_unix_ns };
    let watched = watch(started, observer, processes, options, &stop)?;
    let mut evidence = figures(&plan, &watched);
    evidence.run.tier = Tier::T2;
    evidence.run.driver = Driver::Foreign;
    evidence.run.run_id = id.name().to_owned();
    evidence.run.name = name.to_owned();
    evidence.run.started_unix_ns = id.started_unix_ns();
    evidence.run.build = Some(plimsoll_report::BUILD.to_owned());
    evidence.run.ledger = Some(position);
    evidence.run.signed_by = places.signer.as_ref().map(|signer| signer.public().to_owned());
    evidence.run.duration_ns = watched.ran.duration_ns;
    evidence.run.end = watched.end.clone();
    let others = evidence_place::others(&places, &bundles);
    let written = evidence_place::write(begun, id.name(), &others, |writer| {
        write(writer, &evidence, &environment, &watched)?;
        custody::seal_and_judge(writer, &places, id.name())
    })?;
    let (directory, judged) = (written.directory, written.given);
    if let Some(error) = written.elsewhere_because {
        let place = directory.display();
        progress.warn(&format!("{}\nthe bundle is in {place} instead", error.message));
    }
    judged.enter(&ledger, clock::realtime_ns())?;
    let (evidence, verdict) = (judged.evidence, judged.verdict?);
    bundle::show(&directory, &evidence, &verdict, common)?;
    Ok(Exit::of(&evidence.run, verdict.verdict))
}

/// Starts the command and enters the run: a command that cannot be started is no run, and one that the
/// ledger does not know is not left running.
fn begin(
    options: &Options,
    entry: &Start<'_>,
    ledger: &Ledger,
    progress: &StderrProgress,
) -> Result<(Child, u64, LedgerPosition), CliError> {
    let mut child = start(options)?;
    let start_ns = monotonic_ns();
    match ledger.start(entry) {
        Ok((position, torn)) => {
            torn.iter().for_each(|torn| progress.warn(&describe_torn(torn)));
            Ok((child, start_ns, position))
        }
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error.into())
        }
    }
}

/// A command that runs.
struct Started {
    child: Child,
    start_ns: u64,
    start_unix_ns: u64,
}

/// What was seen while the command ran.
struct Watched {
    observed: Observed,
    rows: Vec<Row>,
    ran: Ran,
    end: End,
    /// The figures of its result.
    said: Option<Bundle>,
}

fn start(options: &Options) -> Result<Child, CliError> {
    let [program, arguments @ ..] = &options.command[..] else {
        return Err(CliError::usage("there is no command to observe"));
    };
    // What the command prints is its own; ours goes to stdout alone.
    take_in_orphans();
    let child = Command::new(program).args(arguments).stdout(std::io::stderr()).spawn();
    child.map_err(|error| {
        CliError::usage(format!("cannot start {program}: {error}"))
            .hint("write the command after -- as a shell would find it")
    })
}

fn watch(
    mut started: Started,
    mut observer: Observer,
    mut processes: CommandWatch,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Watched, CliError> {
    let (mut rows, mut next_ns) = (Vec::new(), SAMPLE_NS);
    let mut passing = PassingOn::default();
    let status: ExitStatus = loop {
        let ended = started.child.try_wait().map_err(|error| {
            CliError::environment(format!("cannot wait for the command: {error}"))
        })?;
        if let Some(status) = ended {
            break status;
        }
        passing.look(&mut started.child);
        let now_ns = monotonic_ns() - started.start_ns;
        processes.look_when_due(now_ns);
        if now_ns >= next_ns {
            observer.sample(now_ns, 0, &mut rows);
            next_ns = now_ns + SAMPLE_NS;
        }
        std::thread::sleep(LOOK);
    };
    let ran = Ran {
        start_unix_ns: started.start_unix_ns,
        end_unix_ns: clock::realtime_ns(),
        duration_ns: monotonic_ns() - started.start_ns,
    };
    settle(&mut processes);
    observer.sample(monotonic_ns() - started.start_ns, 0, &mut rows);
    observer.not_neighbours(processes.pids());
    let said = options.result.as_deref().map(result::read).transpose()?;
    let result = options.result.as_deref().zip(said.as_ref());
    let result = result.map(|(file, said)| result::describe(file, said, ran));
    let measured_ns = result.as_ref().and_then(|result| result.measured_ns);
    let command = observed::Command { result, ..processes.end(ran.duration_ns, measured_ns) };
    let observed = total(observer, command, ran);
    let end = if stop.load(Ordering::Relaxed) {
        End { kind: EndKind::Interrupted, says: "interrupted by the operator".into() }
    } else if status.success() {
        End { kind: EndKind::Completed, says: String::new() }
    } else {
        let says = format!("the command ended with {status}");
        End { kind: EndKind::Environment, says }
    };
    Ok(Watched { observed, rows, ran, end, said })
}

/// Lets what the command started, and did not wait for, end: what does not is told.
fn settle(processes: &mut CommandWatch) {
    for _ in 0..SETTLE_LOOKS {
        processes.look();
        if processes.pids().is_empty() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// What was observed, with the command and the files that it worked on as they are now.
fn total(mut observer: Observer, command: observed::Command, ran: Ran) -> Observed {
    let is_data = |file: &&OpenedFile| {
        let result = command.result.as_ref();
        file.there && !file.device && result.is_none_or(|result| result.is_about(file))
    };
    let files: Vec<PathBuf> =
        command.files.iter().filter(is_data).map(|file| PathBuf::from(&file.path)).collect();
    observer.look_at_files(&files);
    let mut observed = observer.end(ran.duration_ns);
    if let Some((size, resident)) = plimsoll_observe::files::resident(&files) {
        observed.page_cache.files_bytes = Some(size);
        observed.page_cache.resident_bytes_after = Some(resident);
    }
    observed.command = Some(command);
    observed
}

/// Passes the operator's signals on to the command: the first as it came, the second as SIGKILL.
#[derive(Default)]
struct PassingOn {
    first_ns: Option<u64>,
    passed: bool,
    killed: bool,
}

impl PassingOn {
    fn look(&mut self, child: &mut Child) {
        let Some(signal) = interrupt::latest() else { return };
        let now_ns = monotonic_ns();
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        let at_once = signal != SIGINT || !is_in_foreground();
        if !self.passed && (at_once || now_ns - first_ns > TERMINAL_NS) {
            self.passed = true;
            let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(signal)) {
                // One that has just ended needs none.
                let _ = rustix::process::kill_process(process, signal);
            }
        }
        if urgency::hurried() && !self.killed {
            self.killed = true;
            let _ = child.kill();
        }
    }
}

/// Whether a Ctrl-C on the terminal reaches the command as well as this process: two would end many a
/// tool without its result.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let foreground = terminal.and_then(|tty| Ok(rustix::termios::tcgetpgrp(tty)?));
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// What stands for a plan. It names the command: another job is another plan, and no earlier run of this one.
fn plan_text(options: &Options) -> String {
    let path = options.path.first().map_or(".".to_owned(), |path| path.display().to_string());
    let quoted = toml_text(&path);
    let command = toml_text(&options.command.join(" "));
    format!(
        "version = 1\nname = \"observe\"\ndescription = {command}\n[target]\npath = {quoted}\n[workload.matrix]\n[evidence]\nmin_measure = \"60s\"\n"
    )
}

/// A TOML basic string; JSON's escapes are a subset of TOML's.
fn toml_text(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// The figures of the result, with what was observed beside them.
fn figures(plan: &Plan, watched: &Watched) -> Bundle {
    let ran_ns = watched.ran.duration_ns;
    let mut evidence = match &watched.said {
        Some(said) => said.clone(),
        None => foreign::unfigured("observe", plan.text(), plan.resolve(), ran_ns),
    };
    let said = std::mem::replace(&mut evidence.observed, watched.observed.clone());
    let observed = &mut evidence.observed;
    // What only the tool knows of itself; our own process was not the generator.
    observed.generator = said.generator;
    observed.issuers = said.issuers;
    observed.workload = said.workload;
    observed.said_devices = said.devices;
    if let Some(command) = &observed.command {
        let moved = command.moved_measured.or(command.moved);
        observed.generator.storage_read_bytes = moved.map(|moved| moved.read_bytes);
        observed.generator.storage_written_bytes = moved.map(|moved| moved.written_bytes);
        let taken_back = command.cancelled_bytes.filter(|_| command.moved_measured.is_none());
        observed.generator.storage_cancelled_bytes = taken_back;
    }
    if let Some(phase) = evidence.run.phases.first_mut() {
        // A tool prepares first and measures last.
        phase.start_ns = ran_ns.saturating_sub(phase.duration_ns);
    }
    evidence.series.clone_from(&watched.rows);
    evidence
}

fn write(
    writer: &BundleWriter,
    evidence: &Bundle,
    environment: &Environment,
    watched: &Watched,
) -> Result<(), CliError> {
    let run: &Run = &evidence.run;
    writer.plan(&evidence.plan_text, None, &evidence.plan)?;
    writer.environment(environment)?;
    let phase = run.measure();
    let interval = |(tag, histogram): (&String, &hdrhistogram::Histogram<u64>)| Interval {
        tag: tag.clone(),
        start_ns: phase.map_or(0, |phase| phase.start_ns),
        duration_ns: phase.map_or(0, |phase| phase.duration_ns),
        histogram: histogram.into(),
    };
    let intervals: Vec<Interval> = evidence.latency.iter().map(interval).collect();
    writer.latency(run.started_unix_ns, &intervals, &run.phases)?;
    writer.series(&watched.rows)?;
    writer.observed(&evidence.observed)?;
    writer.run(run)?;
    Ok(())
}
