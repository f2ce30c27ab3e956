//! Starts the command, observes it until it ends, and forwards the operator's signals to it.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_engine::stop_request;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::{Ledger, Start};
use plimsoll_evidence::observed::{self, Observed, OpenedFile};
use plimsoll_evidence::run::{End, EndKind, LedgerPosition};
use plimsoll_evidence::series::Row;
use plimsoll_observe::command::{CommandWatch, adopt_orphans};
use plimsoll_observe::{Observer, TargetFacts};
use plimsoll_record::recording::Recording;
use plimsoll_record::spool::Spool;
use plimsoll_sys::clock::{self, monotonic_ns};
use rustix::process::{Pid, Signal};

use super::result::{self, CommandTimes};
use super::{Observation, ReceivedSignal, Signals};
use crate::error::RunnerError;
use crate::listener::Listener;
use crate::session::describe_torn;

/// Interval of samples.
const SAMPLE_NS: u64 = 1_000_000_000;
/// Interval at which the thread checks whether the command has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of polls during which child processes may still exit after the command.
const SETTLE_POLLS: u32 = 25;
/// Delay before a signal from the terminal is forwarded. The terminal has usually sent it to the
/// command, too.
const TERMINAL_DELAY_NS: u64 = 2_000_000_000;

pub(super) struct RunningCommand {
    child: Child,
    start_ns: u64,
}

/// Observations of a finished command.
pub(super) struct CommandRecord {
    pub(super) observed: Observed,
    pub(super) rows: Vec<Row>,
    pub(super) times: CommandTimes,
    pub(super) end: End,
    /// Contents of its result file.
    pub(super) result: Option<Bundle>,
}

impl RunningCommand {
    /// Starts the command and records the run in the ledger. If the command does not start, no run
    /// is recorded. If the ledger cannot be written, the command is killed.
    pub(super) fn begin(
        observation: &Observation,
        entry: &Start<'_>,
        ledger: &Ledger,
        listener: &mut dyn Listener,
    ) -> Result<(Self, LedgerPosition), RunnerError> {
        let mut child = start(&observation.command)?;
        let start_ns = monotonic_ns();
        match ledger.start(entry) {
            Ok((position, torn)) => {
                torn.iter().for_each(|torn| listener.warn(&describe_torn(torn)));
                Ok((Self { child, start_ns }, position))
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// Process id.
    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }

    /// Observes the command until it exits.
    pub(super) fn observe(
        mut self,
        mut observer: Observer,
        mut processes: CommandWatch,
        spool: Option<Spool>,
        observation: &Observation,
        signals: &Signals<'_>,
        listener: &mut dyn Listener,
    ) -> Result<CommandRecord, RunnerError> {
        let start_unix_ns = clock::realtime_ns().saturating_sub(monotonic_ns() - self.start_ns);
        let mut next_ns = SAMPLE_NS;
        let mut recording = Recording::new(self.start_ns).with_spool(spool);
        let mut sample = |observer: &mut Observer, recording: &mut Recording, now_ns: u64| {
            observer.sample(now_ns, 0, &mut recording.series);
            recording.tell(listener);
        };
        let mut forwarder = SignalForwarder::default();
        let status: ExitStatus = loop {
            let ended = self.child.try_wait().map_err(|error| {
                RunnerError::environment(format!("cannot wait for the command: {error}"))
            })?;
            if let Some(status) = ended {
                break status;
            }
            forwarder.look(&mut self.child, (signals.latest)());
            let now_ns = monotonic_ns() - self.start_ns;
            processes.sample_when_due(now_ns);
            if now_ns >= next_ns {
                sample(&mut observer, &mut recording, now_ns);
                next_ns = now_ns + SAMPLE_NS;
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        let times = CommandTimes {
            start_unix_ns,
            end_unix_ns: clock::realtime_ns(),
            duration_ns: monotonic_ns() - self.start_ns,
        };
        settle(&mut processes);
        sample(&mut observer, &mut recording, monotonic_ns() - self.start_ns);
        recording.recall();
        observer.exclude_neighbours(processes.pids());
        let writes = processes.writes_data(&observation.paths);
        let parsed = observation.result.as_deref();
        let parsed = parsed.map(|file| result::read(file, writes)).transpose()?;
        let result = observation.result.as_deref().zip(parsed.as_ref());
        let result = result.map(|(file, parsed)| result::describe(file, parsed, times));
        // A result without times may describe any part of the command's runtime, so all I/O of the
        // command counts.
        let timed = parsed.as_ref().is_some_and(|parsed| parsed.run.started_unix_ns > 0);
        let measured_ns = result.as_ref().and_then(|result| result.measured_ns);
        let measured_ns = measured_ns.filter(|_| timed);
        let command = observed::Command { result, ..processes.end(times.duration_ns, measured_ns) };
        let observed = finish(observer, command, times);
        let end = if !recording.is_well() {
            recording.end
        } else if signals.stop.load(Ordering::Relaxed) {
            End { kind: EndKind::Interrupted, says: "interrupted by the operator".into() }
        } else if status.success() {
            End { kind: EndKind::Completed, says: String::new() }
        } else {
            let says = format!("the command ended with {status}");
            End { kind: EndKind::Environment, says }
        };
        let rows = recording.series;
        Ok(CommandRecord { observed, rows, times, end, result: parsed })
    }
}

fn start(command: &[String]) -> Result<Child, RunnerError> {
    let [program, arguments @ ..] = command else {
        return Err(RunnerError::usage("the command to observe is missing"));
    };
    // The command's output goes to stderr; stdout is reserved for Plimsoll's output.
    adopt_orphans();
    let child = Command::new(program).args(arguments).stdout(std::io::stderr()).spawn();
    child.map_err(|error| {
        RunnerError::usage(format!("cannot start {program}: {error}")).hint(
            "append the command after --, with its full path, or with a name that is found in PATH",
        )
    })
}

/// Waits for child processes that are still running after the command has ended. Processes that
/// still do not end are reported.
fn settle(processes: &mut CommandWatch) {
    for _ in 0..SETTLE_POLLS {
        processes.look();
        if processes.pids().is_empty() {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Ends the observation and adds data about the command and its files.
fn finish(mut observer: Observer, command: observed::Command, times: CommandTimes) -> Observed {
    let is_data = |file: &&OpenedFile| {
        let result = command.result.as_ref();
        // A result without file names is assumed to describe all files.
        let all = result.is_none_or(|result| result.about.is_empty());
        file.there && !file.device && (all || result.is_some_and(|result| result.is_about(file)))
    };
    let files: Vec<PathBuf> =
        command.files.iter().filter(is_data).map(|file| PathBuf::from(&file.path)).collect();
    observer.use_target_facts(TargetFacts::examine(observer.paths(), &files));
    let mut observed = observer.end(times.duration_ns);
    if let Some((size, resident)) = plimsoll_observe::files::resident(&files) {
        observed.page_cache.files_bytes = Some(size);
        observed.page_cache.resident_bytes_after = Some(resident);
    }
    observed.command = Some(command);
    observed
}

/// Forwards the operator's signals to the command: the first unchanged, the second as SIGKILL. A
/// signal from the terminal is delayed, because many tools end without a result when they receive a
/// second signal.
#[derive(Default)]
struct SignalForwarder {
    first_ns: Option<u64>,
    forwarded: bool,
    killed: bool,
}

impl SignalForwarder {
    fn look(&mut self, child: &mut Child, signalled: Option<ReceivedSignal>) {
        let Some(ReceivedSignal { number, by_terminal }) = signalled else { return };
        let now_ns = monotonic_ns();
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        if !self.forwarded && (!by_terminal || now_ns - first_ns > TERMINAL_DELAY_NS) {
            self.forwarded = true;
            let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(number)) {
                // This fails if the command has just exited.
                let _ = rustix::process::kill_process(process, signal);
            }
        }
        if stop_request::is_urgent() && !self.killed {
            self.killed = true;
            let _ = child.kill();
        }
    }
}
