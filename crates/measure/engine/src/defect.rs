//! Handles panics. A defect in Plimsoll then ends a run in an orderly way.
//!
//! [`catch_panic`] catches a panic at the end of a thread or a run and converts it to an error.
//! [`record_panics`] also records the panics of threads that the run does not join. In the loop in
//! which a run checks for the operator's stop request, it also checks [`has_panicked`].

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
/// Message of the first panic since [`record_panics`] was called.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// Message of the latest panic of this thread, with the location of the panic.
    static LATEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook that records each panic of this process and then calls the previous hook.
pub fn record_panics() {
    let previous_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name").to_owned();
        let place = panic.location().map_or(String::new(), |at| format!(" at {at}"));
        let says = format!("thread {name} panicked{place}: {}", message(panic.payload()));
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(says.clone());
        // If the thread is ending, this thread-local variable may no longer exist.
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

/// Returns the first panic since [`record_panics`] was called, as a text with the thread, the
/// location and the message.
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

/// Calls a closure. If the closure panics, converts the panic to an error.
///
/// # Errors
/// [`EngineError::Defect`] if the closure panicked. The values that the closure borrowed mutably
/// may then be in an inconsistent state. The caller may only report, remove or drop them.
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
