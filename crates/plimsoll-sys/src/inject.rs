//! Faults that tests make: a thread that panics, or one that hangs. Builds without debug assertions, as
//! releases are, have none of this.
//!
//! `PLIMSOLL_INJECT=panic:PLACE` makes the first thread that comes to PLACE panic, `hang:PLACE` has it
//! wait for ever; `panic:PLACE:7` does so the seventh time. A test of the same process can have every thread
//! that comes to a place do something first ([`on`]).

/// A place where a fault can be made. Does nothing unless a test asked for one here.
///
/// # Panics
/// Where a test asked for that.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_place: &str) {}

/// A place where a fault can be made. Does nothing unless a test asked for one here.
///
/// # Panics
/// Where a test asked for that.
#[cfg(debug_assertions)]
pub fn point(place: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    if let Some(each) = action_at(place) {
        each();
    }
    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let asked = || Fault::parse(&std::env::var("PLIMSOLL_INJECT").ok()?);
    let Some(fault) = FAULT.get_or_init(asked) else { return };
    if fault.place != place || PASSED.fetch_add(1, Ordering::Relaxed) + 1 != fault.number {
        return;
    }
    assert!(fault.hangs, "injected at {place}");
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3_600));
    }
}

/// What a test has done at a place.
#[cfg(debug_assertions)]
type Action = std::sync::Arc<dyn Fn() + Send + Sync>;

#[cfg(debug_assertions)]
static ACTION: std::sync::RwLock<Option<(&str, Action)>> = std::sync::RwLock::new(None);

/// Has each thread that comes to `place` do this before it goes on. The last call holds, for all places.
#[cfg(debug_assertions)]
pub fn on(place: &'static str, each: impl Fn() + Send + Sync + 'static) {
    let mut action = ACTION.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    *action = Some((place, std::sync::Arc::new(each)));
}

/// Taken out, so that a thread that waits in it holds nothing up.
#[cfg(debug_assertions)]
fn action_at(place: &str) -> Option<Action> {
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
    fn what_is_asked_for_is_understood() {
        let fault = Fault::parse("hang:driver:7").unwrap();
        assert!(fault.hangs && fault.place == "driver" && fault.number == 7);
        assert_eq!(Fault::parse("panic:driver").unwrap().number, 1);
        assert!(Fault::parse("burn:driver").is_none());
        // Nothing is asked for here.
        point("driver");
    }

    #[test]
    fn a_test_acts_where_it_said_and_nowhere_else() {
        let (out, came) = std::sync::mpsc::channel();
        on("here", move || out.send(()).unwrap());
        point("there");
        point("here");
        assert_eq!(came.try_iter().count(), 1);
    }
}
