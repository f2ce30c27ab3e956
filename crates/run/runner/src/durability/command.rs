//! The user's commands that cut the target off and restore it.

use std::fs::OpenOptions;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::DurabilityRequest;
use crate::error::RunnerError;

/// Name of the file with the commands' output, in the witness's directory.
const LOG: &str = "commands.log";
/// Polling interval of the wait.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a command with the shell. Its output goes to a file, because a server that the command
/// starts may keep the output open.
///
/// # Errors
/// Fails if the command cannot start, fails, or exceeds the time limit.
pub(super) fn run_command(
    what: &str,
    command: &str,
    cut: u64,
    request: &DurabilityRequest,
) -> Result<(), RunnerError> {
    let path = request.witness.join(LOG);
    let failed = |says: String| {
        RunnerError::environment(format!("the {what} command {says}: {command}"))
            .hint(format!("its output is in {}", path.display()))
    };
    let log = || OpenOptions::new().create(true).append(true).open(&path);
    let start = || {
        Command::new("sh")
            .args(["-c", command])
            .env("PLIMSOLL_CUT", cut.to_string())
            .stdin(Stdio::null())
            .stdout(log()?)
            .stderr(log()?)
            .spawn()
    };
    let mut child = start().map_err(|error| failed(format!("cannot start ({error})")))?;
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(describe(status))),
            Ok(None) if began.elapsed() >= request.timeout => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("did not end within {:?}", request.timeout)));
            }
            Ok(None) => std::thread::sleep(POLL_INTERVAL),
            Err(error) => return Err(failed(format!("cannot be waited for ({error})"))),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("failed with code {code}"),
        None => "was killed by a signal".to_owned(),
    }
}
