//! Fault injection for tests: makes a thread panic or hang. Builds without debug assertions, such
//! as releases, do not contain it.
//!
//! `PLIMSOLL_INJECT=panic:PLACE` makes the first thread that reaches PLACE panic, and `hang:PLACE`
//! makes it wait forever. `panic:PLACE:7` takes effect when PLACE is reached for the seventh time.
//! A test in the same process can register an action for all threads that reach a place ([`on`]).

/// Injection point. Does nothing unless a test requested a fault at this place.
///
/// # Panics
/// Panics if a test requested it.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_place: &str) {}

/// Injection point. Does nothing unless a test requested a fault at this place.
///
/// # Panics
/// Panics if a test requested it.
#[cfg(debug_assertions)]
pub fn point(place: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    if let Some(each) = registered_action(place) {
        each();
    }
    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let requested = || Fault::parse(&std::env::var("PLIMSOLL_INJECT").ok()?);
    let Some(fault) = FAULT.get_or_init(requested) else { return };
    if fault.place != place || PASSED.fetch_add(1, Ordering::Relaxed) + 1 != fault.number {
        return;
    }
    assert!(fault.hangs, "injected at {place}");
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3_600));
    }
}

/// Action that a test registered.
#[cfg(debug_assertions)]
type Action = std::sync::Arc<dyn Fn() + Send + Sync>;

#[cfg(debug_assertions)]
static ACTION: std::sync::RwLock<Option<(&str, Action)>> = std::sync::RwLock::new(None);

/// Registers an action for each thread that reaches `place`. It replaces the previous action, even
/// if that action was for another place.
#[cfg(debug_assertions)]
pub fn on(place: &'static str, each: impl Fn() + Send + Sync + 'static) {
    let mut action = ACTION.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    *action = Some((place, std::sync::Arc::new(each)));
}

/// Returns a clone of the action, so that the lock is not held while a thread waits in the action.
#[cfg(debug_assertions)]
fn registered_action(place: &str) -> Option<Action> {
    let action = ACTION.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    action.as_ref().filter(|(at, _)| *at == place).map(|(_, each)| Action::clone(each))
}

#[cfg(debug_assertions)]
struct Fault {
    hangs: bool,
    place: String,
    number: u64,
}

#[cfg(debug_assertions)]
impl Fault {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let hangs = match parts.next()? {
            "panic" => false,
            "hang" => true,
            _ => return None,
        };
        let place = parts.next()?.to_owned();
        let number = parts.next().map_or(Some(1), |number| number.parse().ok())?;
        Some(Self { hangs, place, number })
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn parses_fault_requests() {
        let fault = Fault::parse("hang:driver:7").unwrap();
        assert!(fault.hangs && fault.place == "driver" && fault.number == 7);
        assert_eq!(Fault::parse("panic:driver").unwrap().number, 1);
        assert!(Fault::parse("burn:driver").is_none());
        // No fault is requested at this point, so nothing happens.
        point("driver");
    }

    #[test]
    fn runs_an_action_only_at_its_place() {
        let (out, came) = std::sync::mpsc::channel();
        on("here", move || out.send(()).unwrap());
        point("there");
        point("here");
        assert_eq!(came.try_iter().count(), 1);
    }
}
