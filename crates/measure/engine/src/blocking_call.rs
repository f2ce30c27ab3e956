//! Executes system calls on a separate thread, because they may never return. If a file system is
//! frozen or its server is lost, a single `stat` or `unlink` waits forever and cannot be cancelled.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use plimsoll_sys::SysError;
pub use plimsoll_sys::blocked_call::BlockedCall;
use plimsoll_sys::clock::monotonic_ns;

use crate::{EngineError, defect, stop_request};

/// Interval at which the waiting thread checks whether the work is finished.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs `work` on a separate thread, and waits until the work is finished or `is_expired` returns
/// true. `is_expired` receives the elapsed time in ns. `what` names the target of the work for
/// messages. If the wait ends first, the work continues on its thread, but its result is lost.
fn run_on_thread<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
    is_expired: impl Fn(u64) -> bool,
) -> Result<T, EngineError> {
    let (sender, receiver) = channel();
    let all = move || {
        // If the caller has stopped waiting, the channel has no receiver.
        let _ = sender.send(defect::catch_panic(work));
    };
    let thread = std::thread::Builder::new().name("aside".to_owned()).spawn(all);
    thread.map_err(|error| {
        EngineError::system("starting a thread", SysError::from_io("clone", &error))
    })?;
    let start_ns = monotonic_ns();
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Disconnected) => return Err(EngineError::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let after_ns = monotonic_ns().saturating_sub(start_ns);
        if is_expired(after_ns) {
            return Err(EngineError::Abandoned { what: what.to_owned(), after_ns });
        }
    }
}

/// Runs `work` on a separate thread, without a time limit. If the operator requests a stop, the
/// function abandons the work after `timeout`, or sooner if the stop is urgent. `what` names the
/// target of the work for messages.
///
/// # Errors
/// [`EngineError::Abandoned`] if the work was abandoned, [`EngineError::Defect`] if it panicked.
pub fn run_until_stop<T: Send + 'static>(
    what: &str,
    timeout: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    run_with_limits(what, Duration::MAX, timeout, work)
}

/// Does the same as [`run_until_stop`], but also abandons the work if it takes longer than
/// `timeout`.
///
/// # Errors
/// [`EngineError::Abandoned`] if the work was abandoned, [`EngineError::Defect`] if it panicked.
pub fn run_with_limits<T: Send + 'static>(
    what: &str,
    timeout: Duration,
    timeout_after_stop: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    let nanoseconds = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let (limit_ns, after_stop_ns) = (nanoseconds(timeout), nanoseconds(timeout_after_stop));
    run_on_thread(what, work, |after_ns| {
        let after_stop_ns = if stop_request::is_urgent() {
            stop_request::timeout_ns(after_stop_ns)
        } else {
            after_stop_ns
        };
        let since_request_ns = monotonic_ns().saturating_sub(stop_request::timeout_start_ns(0));
        let is_stopped =
            stop_request::is_requested() && after_ns.min(since_request_ns) > after_stop_ns;
        is_stopped || after_ns > limit_ns
    })
}

/// Runs optional `work`: its result is useful for a run but not necessary. Returns `None` if the
/// work does not finish within `timeout`. After the operator's request to stop, a shorter timeout
/// applies.
pub fn run_with_timeout<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    let timeout_ns = timeout.as_nanos() as u64;
    run_on_thread("the target", work, |after_ns| after_ns > stop_request::timeout_ns(timeout_ns))
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_return_is_left_behind_and_what_returns_is_given() {
        assert_eq!(run_with_timeout(Duration::from_secs(60), || Some(7)), Some(7));
        let (_held, never) = channel::<()>();
        let waits = move || never.recv().ok();
        assert_eq!(run_with_timeout(Duration::from_millis(30), waits), None);
        assert_eq!(run_until_stop("it", Duration::ZERO, || 7), Ok(7));
        let (_held, never) = channel::<()>();
        let abandoned =
            run_with_limits("it", Duration::ZERO, Duration::MAX, move || never.recv().ok());
        assert!(matches!(abandoned, Err(EngineError::Abandoned { .. })));
        let panicked = run_until_stop("it", Duration::ZERO, || panic!("on purpose"));
        assert!(matches!(panicked, Err::<(), _>(EngineError::Defect(_))));
    }
}
