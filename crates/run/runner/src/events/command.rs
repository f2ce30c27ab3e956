//! Runs a command of the user, without a shell and with a timeout.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use plimsoll_evidence::events::CommandRecord;
use plimsoll_sys::clock::monotonic_ns;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

/// The evidence contains at most this number of bytes of stdout, and at most this number of bytes
/// of stderr.
const OUTPUT_BYTES_MAX: u64 = 4096;
/// Interval at which the thread checks whether the command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Effect of a request to stop the run on a running command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopEffect {
    /// The command and its children are killed.
    Kill,
    /// The run no longer waits for the command.
    Leave,
}

/// Failure of a command that the run killed because it was stopped.
pub(crate) const STOPPED: &str = "it was killed because the run was stopped";

/// End of the wait for a command.
enum End {
    Exited(ExitStatus),
    TimedOut,
    Stopped(StopEffect),
}

/// Runs a command until it ends or `timeout_ns` have passed. Times are on the driver's clock.
pub(crate) fn run(argv: &[String], timeout_ns: u64) -> CommandRecord {
    run_until_stopped(argv, timeout_ns, &|| None)
}

/// Like [`run`], but ends the wait as soon as `stop` returns the effect of a request to stop.
pub(crate) fn run_until_stopped(
    argv: &[String],
    timeout_ns: u64,
    stop: &dyn Fn() -> Option<StopEffect>,
) -> CommandRecord {
    let start_ns = monotonic_ns();
    let mut record = CommandRecord { argv: argv.to_vec(), start_ns, ..CommandRecord::default() };
    match try_run(argv, timeout_ns, stop, &mut record) {
        Ok(End::Exited(status)) => {
            record.exit_code = status.code();
            record.failure = match (status.code(), status.signal()) {
                (Some(0), _) => String::new(),
                (Some(code), _) => format!("it exited with code {code}"),
                (None, Some(signal)) => format!("signal {signal} killed it"),
                (None, None) => "it ended without an exit code".to_owned(),
            };
        }
        Ok(End::TimedOut) => {
            record.failure = format!("it was killed after {} s", timeout_ns as f64 / 1e9);
        }
        Ok(End::Stopped(StopEffect::Kill)) => STOPPED.clone_into(&mut record.failure),
        Ok(End::Stopped(StopEffect::Leave)) => {
            record.failure = "the run was stopped by a second signal, so it did not wait for the \
                              command, which may still be running"
                .to_owned();
        }
        Err(error) => record.failure = format!("it could not be started: {error}"),
    }
    record.end_ns = monotonic_ns();
    record
}

fn try_run(
    argv: &[String],
    timeout_ns: u64,
    stop: &dyn Fn() -> Option<StopEffect>,
    record: &mut CommandRecord,
) -> io::Result<End> {
    let [program, arguments @ ..] = argv else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    // Files in memory, not pipes: a server that the command starts may keep them open forever.
    let output = || memfd_create("event", MemfdFlags::CLOEXEC).map(File::from);
    let (stdout, stderr) = (output()?, output()?);
    // The command runs in a separate process group, so that an interrupt from the terminal does not
    // end an undo.
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .process_group(0)
        .spawn()?;
    let end = wait(&mut child, monotonic_ns().saturating_add(timeout_ns), stop)?;
    (record.stdout, record.stderr) = (tail(&stdout), tail(&stderr));
    Ok(end)
}

fn wait(
    child: &mut Child,
    until_ns: u64,
    stop: &dyn Fn() -> Option<StopEffect>,
) -> io::Result<End> {
    let end = loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        match stop() {
            Some(StopEffect::Leave) => return Ok(End::Stopped(StopEffect::Leave)),
            Some(StopEffect::Kill) => break End::Stopped(StopEffect::Kill),
            None if monotonic_ns() >= until_ns => break End::TimedOut,
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let killed = group.map(|group| kill_process_group(group, Signal::KILL));
    if !matches!(killed, Some(Ok(()))) {
        child.kill()?;
    }
    child.wait()?;
    Ok(end)
}

/// Returns the last part of an output.
fn tail(file: &File) -> String {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(OUTPUT_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(0)];
    let read = file.read_at(&mut bytes, from).unwrap_or(0);
    bytes.truncate(read);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ran(argv: &[&str], timeout_ns: u64) -> CommandRecord {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        run(&argv, timeout_ns)
    }

    const LONG_NS: u64 = 60_000_000_000;

    #[test]
    fn records_exit_code_and_the_end_of_both_outputs() {
        let ok = ran(&["sh", "-c", "seq 1 9999; echo no >&2"], LONG_NS);
        assert_eq!((ok.exit_code, ok.failure.as_str()), (Some(0), ""));
        assert!(ok.stdout.ends_with("9999\n") && ok.stdout.len() == 4096, "{}", ok.stdout.len());
        assert_eq!(ok.stderr, "no\n");
        assert!(ok.end_ns > ok.start_ns);
        let failed = ran(&["sh", "-c", "exit 3"], LONG_NS);
        assert_eq!((failed.exit_code, failed.failure.as_str()), (Some(3), "it exited with code 3"));
        let missing = ran(&["/no/such/program"], LONG_NS);
        assert!(missing.failure.starts_with("it could not be started"), "{}", missing.failure);
    }

    #[test]
    fn no_shell_interprets_the_arguments() {
        assert_eq!(ran(&["echo", "$HOME; true | cat"], LONG_NS).stdout, "$HOME; true | cat\n");
    }

    #[test]
    fn is_killed_with_its_children_after_the_timeout() {
        let late = ran(&["sh", "-c", "sleep 300 & sleep 300"], 100_000_000);
        assert_eq!((late.exit_code, late.failure.as_str()), (None, "it was killed after 0.1 s"));
        assert!(late.end_ns - late.start_ns < 5_000_000_000);
    }

    #[test]
    fn is_killed_or_left_when_the_run_is_stopped() {
        let argv = ["sleep".to_owned(), "5".to_owned()];
        let stopped = |effect| run_until_stopped(&argv, LONG_NS, &|| Some(effect));
        let killed = stopped(StopEffect::Kill);
        assert_eq!(killed.failure, STOPPED);
        assert!(killed.end_ns - killed.start_ns < 2_000_000_000);
        let left = stopped(StopEffect::Leave);
        assert!(left.failure.contains("may still be running"), "{}", left.failure);
    }

    #[test]
    fn a_server_that_it_leaves_behind_does_not_delay_its_end() {
        let start = ran(&["sh", "-c", "sleep 3 & echo started"], LONG_NS);
        assert_eq!((start.failure.as_str(), start.stdout.as_str()), ("", "started\n"));
        assert!(start.end_ns - start.start_ns < 2_000_000_000);
    }
}
