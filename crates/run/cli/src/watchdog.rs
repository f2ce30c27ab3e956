//! Runs a command on its own thread. The main thread can therefore act on signals while the command
//! waits in a system call. It ends the process if a file-system call does not return, for example
//! because an NFS server is lost. Such a call cannot be cancelled. The threads of a load have
//! separate limits.

use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plimsoll_engine::blocking_call::BlockedCall;
use plimsoll_engine::stop_request;

use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::{failure, notes};

/// Time after which a note shows the system call that blocks the command.
const NOTE_AFTER: Duration = Duration::from_secs(10);
/// Time limit of a file-system call.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit of a file-system call after the operator requested to stop. A flush of the evidence
/// to a busy disk may take some seconds.
const TIMEOUT_AFTER_STOP: Duration = Duration::from_secs(60);
/// Time limit of a file-system call after the operator requested to stop without waiting for the
/// storage.
const TIMEOUT_AFTER_URGENT_STOP: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Stack size of the command's thread. Main threads have the same size (`ulimit -s`) on most
/// systems.
const STACK_BYTES: usize = 8 << 20;

/// Runs a command on its own thread, and returns its result.
///
/// # Errors
/// The thread cannot be started, or it ended without a result.
pub fn run_command<T: Send + 'static>(
    common: &Globals,
    command: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    let thread_id = Arc::new(AtomicU32::new(0));
    let own_id = Arc::clone(&thread_id);
    let (sender, results) = channel();
    let work = move || {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        own_id.store(id.unsigned_abs(), Ordering::Relaxed);
        // The receiver waits for this result.
        let _ = sender.send(command());
    };
    let thread = std::thread::Builder::new().name("command".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|error| {
        CliError::environment(format!("cannot start a thread: {error}"))
            .hint("raise the limit of processes and threads (ulimit -u)")
    })?;
    let mut waiting: Option<(BlockedCall, Instant)> = None;
    let mut noted = None;
    loop {
        match results.recv_timeout(POLL_INTERVAL) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(CliError::new(Exit::Defect, "the command ended without a result"));
            }
        }
        let call = BlockedCall::of_thread(thread_id.load(Ordering::Relaxed));
        waiting = call.map(|call| match waiting.take() {
            Some((before, since)) if before == call => (call, since),
            _ => (call, Instant::now()),
        });
        let Some((call, since)) = &waiting else { continue };
        let after = since.elapsed();
        if after >= NOTE_AFTER && noted != Some(*since) {
            noted = Some(*since);
            notes::tell(&format!("waiting for the file system: {}", describe(call, after)));
        }
        if after >= timeout() {
            failure::report(&error(call, after), common);
            exit(exit_code().code().into());
        }
    }
}

/// Returns the current time limit of a file-system call.
fn timeout() -> Duration {
    match (stop_request::is_urgent(), stop_request::is_requested()) {
        (true, _) => TIMEOUT_AFTER_URGENT_STOP,
        (false, true) => TIMEOUT_AFTER_STOP,
        (false, false) => TIMEOUT,
    }
}

fn exit_code() -> Exit {
    if stop_request::is_requested() { Exit::Interrupted } else { Exit::Environment }
}

fn describe(call: &BlockedCall, after: Duration) -> String {
    let path = call.path.as_ref().map(|path| format!(" of {}", path.display()));
    let (name, path, seconds) = (call.name, path.unwrap_or_default(), after.as_secs());
    format!("{name}{path} has not returned for {seconds} s")
}

fn error(call: &BlockedCall, after: Duration) -> CliError {
    let says = format!("no response from the file system: {}", describe(call, after));
    CliError::new(exit_code(), says).hint(
        "check the mount and its server; `plimsoll runs` lists interrupted runs, and `plimsoll \
         clean DIR` removes their data",
    )
}
