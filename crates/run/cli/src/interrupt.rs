//! Handlers for SIGINT, SIGTERM and SIGHUP. After the first signal, the run stops and writes its
//! evidence. After the second signal, it does not wait for unresponsive storage. The third signal
//! ends the process immediately, in the signal handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use plimsoll_engine::stop_request;
use plimsoll_runner::observe::ReceivedSignal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::error::CliError;
use crate::exit::Exit;
use crate::notes;

/// Latest signal; 0 if there was no signal.
static LATEST: AtomicI32 = AtomicI32::new(0);

/// Registers the handlers. The returned flag becomes true at the first signal.
///
/// # Errors
/// The system rejects a signal handler or a thread.
pub fn flag_on_signal() -> Result<Arc<AtomicBool>, CliError> {
    flag_on_signal_with("stopping the run and writing its evidence")
}

/// Like [`flag_on_signal`]. `reaction`: what the process does at the first signal. An agent or a
/// server may have no run.
///
/// # Errors
/// The errors of [`flag_on_signal`].
pub fn flag_on_signal_with(reaction: &'static str) -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let hurried = Arc::new(AtomicBool::new(false));
    let signals = signals();
    for signal in &signals {
        // The order of the handlers matters. The shutdown handler must check its flag before this
        // signal sets it.
        flag::register_conditional_shutdown(
            *signal,
            Exit::Interrupted.code().into(),
            hurried.clone(),
        )
        .and_then(|_| flag::register(*signal, stop.clone()))
        .map_err(|error| failed(&format!("cannot handle signal {signal}: {error}")))?;
    }
    let mut each = Signals::new(&signals).map_err(|error| failed(&error.to_string()))?;
    let count = move || {
        for (number, signal) in each.forever().enumerate() {
            LATEST.store(signal, Ordering::Relaxed);
            if number == 0 {
                stop_request::request_stop();
                notes::tell(&format!(
                    "interrupted: {reaction}; a second signal stops without waiting for the \
                     storage, a third signal ends the process immediately"
                ));
            } else {
                stop_request::request_urgent_stop();
                hurried.store(true, Ordering::Relaxed);
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(count);
    thread.map_err(|error| {
        CliError::environment(format!("cannot start a thread: {error}"))
            .hint("raise the limit of processes and threads (ulimit -u)")
    })?;
    Ok(stop)
}

/// Reaction of an agent or a server, for [`flag_on_signal_with`].
pub const STOPS_SERVING: &str = "stopping, after the evidence of a running plan is written";

/// Catches SIGXFSZ, so that writes above `ulimit -f` fail (EFBIG) instead of ending the process.
/// Child processes still use the signal's original handling.
pub fn ignore_file_limit() {
    // If the signal cannot be caught, a write above the limit ends the process.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Returns the latest signal; `None` if there was no signal.
pub fn latest() -> Option<ReceivedSignal> {
    let number = Some(LATEST.load(Ordering::Relaxed)).filter(|signal| *signal != 0)?;
    Some(ReceivedSignal { number, by_terminal: number == SIGINT && is_in_foreground() })
}

/// Returns true if Ctrl-C on the terminal also reaches child processes.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let foreground = terminal.and_then(|tty| Ok(rustix::termios::tcgetpgrp(tty)?));
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

fn failed(says: &str) -> CliError {
    CliError::new(Exit::Defect, says)
}

/// Returns the signals that stop a run. If the command runs under `nohup`, SIGHUP is not one of
/// them.
fn signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Returns true if a process with this `/proc/PID/status` ignores the signal.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(is_ignored(status, 13));
        assert!(!is_ignored(status, SIGTERM));
        assert!(!is_ignored("", SIGHUP));
    }
}
