//! The command: started, watched until it ends, with the operator's signals passed on to it.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_engine::urgency;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::ledger::{Ledger, Start};
use plimsoll_evidence::observed::{self, Observed, OpenedFile};
use plimsoll_evidence::run::{End, EndKind, LedgerPosition};
use plimsoll_evidence::series::Row;
use plimsoll_observe::Observer;
use plimsoll_observe::command::{CommandWatch, adopt_orphans};
use plimsoll_sys::clock::{self, monotonic_ns};
use rustix::process::{Pid, Signal};

use super::result::{self, Ran};
use super::{Observation, Signalled, Signals};
use crate::error::RunnerError;
use crate::listener::Listener;
use crate::session::describe_torn;

/// Time from one reading of the counters to the next.
const SAMPLE_NS: u64 = 1_000_000_000;
/// How often the command is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// What the command did not wait for has so many looks to end.
const SETTLE_LOOKS: u32 = 25;
/// A signal that came to this process alone, and not from the terminal, is passed on after so long.
const TERMINAL_NS: u64 = 2_000_000_000;

/// A command that runs.
pub(super) struct Started {
    child: Child,
    start_ns: u64,
}

/// What was seen while the command ran.
pub(super) struct Watched {
    pub(super) observed: Observed,
    pub(super) rows: Vec<Row>,
    pub(super) ran: Ran,
    pub(super) end: End,
    /// The figures of its result.
    pub(super) said: Option<Bundle>,
}

impl Started {
    /// Starts the command and enters the run: a command that cannot be started is no run, and one that the
    /// ledger does not know is not left running.
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

    /// Its process.
    pub(super) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }

    /// Watches it until it ends.
    pub(super) fn watch(
        mut self,
        mut observer: Observer,
        mut processes: CommandWatch,
        observation: &Observation,
        signals: &Signals<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Watched, RunnerError> {
        let start_unix_ns = clock::realtime_ns().saturating_sub(monotonic_ns() - self.start_ns);
        let (mut rows, mut next_ns) = (Vec::new(), SAMPLE_NS);
        let mut sample = |observer: &mut Observer, now_ns: u64, rows: &mut Vec<Row>| {
            let before = rows.len();
            observer.sample(now_ns, 0, rows);
            listener.rows(&rows[before..]);
        };
        let mut passing = PassingOn::default();
        let status: ExitStatus = loop {
            let ended = self.child.try_wait().map_err(|error| {
                RunnerError::environment(format!("cannot wait for the command: {error}"))
            })?;
            if let Some(status) = ended {
                break status;
            }
            passing.look(&mut self.child, (signals.latest)());
            let now_ns = monotonic_ns() - self.start_ns;
            processes.sample_when_due(now_ns);
            if now_ns >= next_ns {
                sample(&mut observer, now_ns, &mut rows);
                next_ns = now_ns + SAMPLE_NS;
            }
            std::thread::sleep(LOOK);
        };
        let ran = Ran {
            start_unix_ns,
            end_unix_ns: clock::realtime_ns(),
            duration_ns: monotonic_ns() - self.start_ns,
        };
        settle(&mut processes);
        sample(&mut observer, monotonic_ns() - self.start_ns, &mut rows);
        observer.exclude_neighbours(processes.pids());
        let writes = processes.writes_data(&observation.paths);
        let said = observation.result.as_deref();
        let said = said.map(|file| result::read(file, writes)).transpose()?;
        let result = observation.result.as_deref().zip(said.as_ref());
        let result = result.map(|(file, said)| result::describe(file, said, ran));
        // A result without a time of its own may be of any part of the command: all that was moved counts for it.
        let timed = said.as_ref().is_some_and(|said| said.run.started_unix_ns > 0);
        let measured_ns = result.as_ref().and_then(|result| result.measured_ns);
        let measured_ns = measured_ns.filter(|_| timed);
        let command = observed::Command { result, ..processes.end(ran.duration_ns, measured_ns) };
        let observed = total(observer, command, ran);
        let end = if signals.asked.load(Ordering::Relaxed) {
            End { kind: EndKind::Interrupted, says: "interrupted by the operator".into() }
        } else if status.success() {
            End { kind: EndKind::Completed, says: String::new() }
        } else {
            let says = format!("the command ended with {status}");
            End { kind: EndKind::Environment, says }
        };
        Ok(Watched { observed, rows, ran, end, said })
    }
}

fn start(command: &[String]) -> Result<Child, RunnerError> {
    let [program, arguments @ ..] = command else {
        return Err(RunnerError::usage("there is no command to observe"));
    };
    // What the command prints is its own; ours goes to stdout alone.
    adopt_orphans();
    let child = Command::new(program).args(arguments).stdout(std::io::stderr()).spawn();
    child.map_err(|error| {
        RunnerError::usage(format!("cannot start {program}: {error}"))
            .hint("write the command after -- as a shell would find it")
    })
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
        // A result that names no file is of all of them.
        let all = result.is_none_or(|result| result.about.is_empty());
        file.there && !file.device && (all || result.is_some_and(|result| result.is_about(file)))
    };
    let files: Vec<PathBuf> =
        command.files.iter().filter(is_data).map(|file| PathBuf::from(&file.path)).collect();
    observer.examine_files(&files);
    let mut observed = observer.end(ran.duration_ns);
    if let Some((size, resident)) = plimsoll_observe::files::resident(&files) {
        observed.page_cache.files_bytes = Some(size);
        observed.page_cache.resident_bytes_after = Some(resident);
    }
    observed.command = Some(command);
    observed
}

/// Passes the operator's signals on to the command: the first as it came, the second as SIGKILL. One that the
/// terminal sent to both is not passed on at once: two would end many a tool without its result.
#[derive(Default)]
struct PassingOn {
    first_ns: Option<u64>,
    passed: bool,
    killed: bool,
}

impl PassingOn {
    fn look(&mut self, child: &mut Child, signalled: Option<Signalled>) {
        let Some(Signalled { number, by_terminal }) = signalled else { return };
        let now_ns = monotonic_ns();
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        if !self.passed && (!by_terminal || now_ns - first_ns > TERMINAL_NS) {
            self.passed = true;
            let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(number)) {
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
