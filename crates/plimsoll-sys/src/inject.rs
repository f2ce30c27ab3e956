//! Faults that tests make: a thread that panics, or one that hangs. Builds without debug assertions, as
//! releases are, have none of this.
//!
//! `PLIMSOLL_INJECT=panic:PLACE` makes the first thread that comes to PLACE panic, `hang:PLACE` has it
//! wait for ever; `panic:PLACE:7` does so the seventh time.

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
}
