//! System calls that may never return, on a thread of their own. On a frozen file system, or one
//! with a lost server, a single `stat` or `unlink` waits for ever and can't be cancelled.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use plimsoll_sys::SysError;
use plimsoll_sys::clock::monotonic_ns;

use crate::{EngineError, defect, urgency};

/// Polling interval of the wait.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `work` on `what` and waits for it until `is_over` returns true. `is_over` receives the
/// elapsed time in ns. Abandoned work continues by itself, and its result is lost.
fn on_a_thread<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
    is_over: impl Fn(u64) -> bool,
) -> Result<T, EngineError> {
    let (sender, receiver) = channel();
    let all = move || {
        // If the caller has stopped waiting, the receiver is gone.
        let _ = sender.send(defect::caught(work));
    };
    let thread = std::thread::Builder::new().name("aside".to_owned()).spawn(all);
    thread.map_err(|error| {
        EngineError::system("starting a thread", SysError::from_io("clone", &error))
    })?;
    let start_ns = monotonic_ns();
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Disconnected) => return Err(EngineError::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let after_ns = monotonic_ns().saturating_sub(start_ns);
        if is_over(after_ns) {
            return Err(EngineError::Stuck { what: what.to_owned(), after_ns });
        }
    }
}

/// Runs `work` on `what`, without a time limit at first. Abandons it `patience` after the
/// operator's request to stop, and sooner if the stop is urgent.
///
/// # Errors
/// [`EngineError::Stuck`] if the work was abandoned, [`EngineError::Defect`] if it panicked.
pub fn patiently<T: Send + 'static>(
    what: &str,
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    let patience_ns = patience.as_nanos() as u64;
    on_a_thread(what, work, |after_ns| {
        let limit_ns =
            if urgency::hurried() { urgency::patience_ns(patience_ns) } else { patience_ns };
        let asked_ns = monotonic_ns().saturating_sub(urgency::counted_from_ns(0));
        urgency::asked() && after_ns.min(asked_ns) > limit_ns
    })
}

/// Runs `work` that only adds information to a run. Returns `None` if it does not finish within
/// `patience`, or within the shorter timeout after the operator's request to stop.
pub fn at_most<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    let patience_ns = patience.as_nanos() as u64;
    on_a_thread("the target", work, |after_ns| after_ns > urgency::patience_ns(patience_ns))
        .ok()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_return_is_left_behind_and_what_returns_is_given() {
        assert_eq!(at_most(Duration::from_secs(60), || Some(7)), Some(7));
        let (_held, never) = channel::<()>();
        let waits = move || never.recv().ok();
        assert_eq!(at_most(Duration::from_millis(30), waits), None);
        assert_eq!(patiently("it", Duration::ZERO, || 7), Ok(7));
        let panicked = patiently("it", Duration::ZERO, || panic!("on purpose"));
        assert!(matches!(panicked, Err::<(), _>(EngineError::Defect(_))));
    }
}
