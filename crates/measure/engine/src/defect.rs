//! Handles panics, so that a defect in Plimsoll ends a run in an orderly way.
//!
//! [`catch_panic`] catches a panic at the end of a thread or a run and converts it to an error.
//! [`record_panics`] also records panics of threads that the run does not join. A run polls
//! [`has_panicked`] together with the operator's stop request.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use plimsoll_evidence::run::EndKind;
use plimsoll_record::recording::Recording;

use crate::EngineError;

/// True if a thread of this process has panicked since [`record_panics`] was called.
static SEEN: AtomicBool = AtomicBool::new(false);
/// First panic since [`record_panics`] was called.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// Latest panic of this thread, with its location.
    static LATEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records each later panic of this process, before the previous hook reports it.
pub fn record_panics() {
    let previous_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name").to_owned();
        let place = panic.location().map_or(String::new(), |at| format!(" at {at}"));
        let says = format!("thread {name} panicked{place}: {}", message(panic.payload()));
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(says.clone());
        // This thread-local variable may no longer exist in a thread that is ending.
        let _ = LATEST.try_with(|latest| latest.replace(Some(says)));
        SEEN.store(true, Ordering::Relaxed);
        previous_hook(panic);
    }));
}

/// Returns true if any thread has panicked since [`record_panics`] was called.
#[must_use]
pub fn has_panicked() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// Returns the first panic since [`record_panics`] was called: thread, location and message.
#[must_use]
pub fn first_panic() -> Option<String> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// If this process panicked, records the panic as the reason why a run ends.
pub fn note_panic(recording: &mut Recording) {
    if let Some(says) = first_panic() {
        recording.fail(EndKind::Defect, says);
    }
}

/// Calls a closure, and converts a panic in it to an error.
///
/// # Errors
/// [`EngineError::Defect`]. The values that the closure borrowed mutably may then be in an
/// inconsistent state: only report, remove or drop them.
pub fn catch_panic<T>(of: impl FnOnce() -> T) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(of)).map_err(|panic| {
        let noted = LATEST.with(|latest| latest.take());
        EngineError::Defect(noted.unwrap_or_else(|| format!("panic: {}", message(&*panic))))
    })
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        let error = catch_panic(|| panic!("seven is {}", 7)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Defect);
        assert!(error.to_string().contains("seven is 7"), "{error}");
        assert_eq!(catch_panic(|| 7), Ok(7));
    }
}
