//! How soon whatever goes on is to end. Process-wide, as the signals are that say so.
//!
//! | signals so far | a run |
//! |---|---|
//! | none | goes on |
//! | one | stops its load, closes in order, removes its data; what does not answer is left after some seconds |
//! | two | leaves what is in flight, writes its evidence and removes its data as far as that answers at once |
//! | three | is no more: the process has ended in the signal's handler |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_sys::clock::monotonic_ns;

/// What does not answer for so long after the first signal is not waited for any more.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same after the second.
const PATIENCE_HURRIED: Duration = Duration::from_millis(300);

/// How long what is in flight is waited for by a thread that was told to leave, in ns.
pub(crate) const SETTLE_NS: u64 = 2_000_000_000;

/// How long such a thread is waited for, in ns: beyond what it waits, its queue waits another second
/// before it leaves its memory to the kernel.
pub(crate) const LEAVING_NS: u64 = 4_000_000_000;

/// What a server that has gone silent is still given to answer, once a run is over with it, in ns.
pub(crate) const LAST_WORDS_NS: u64 = 2_000_000_000;

/// When the first signal came (`CLOCK_MONOTONIC`), and the second; 0: not yet.
static ASKED_NS: AtomicU64 = AtomicU64::new(0);
static HURRIED_NS: AtomicU64 = AtomicU64::new(0);

/// The operator wants this process to end.
pub fn ask() {
    let _ = ASKED_NS.compare_exchange(0, monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
}

/// The operator wants it to end now.
pub fn hurry() {
    ask();
    let _ = HURRIED_NS.compare_exchange(0, monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether the operator wants this process to end.
#[must_use]
pub fn asked() -> bool {
    ASKED_NS.load(Ordering::Relaxed) != 0
}

/// Whether the operator wants this process to end now.
#[must_use]
pub fn hurried() -> bool {
    HURRIED_NS.load(Ordering::Relaxed) != 0
}

/// How long something that does not answer is waited for, since it last did or since the operator
/// asked: `otherwise_ns` where nobody asked.
#[must_use]
pub fn patience_ns(otherwise_ns: u64) -> u64 {
    let patience = match (hurried(), asked()) {
        (true, _) => PATIENCE_HURRIED,
        (false, true) => PATIENCE,
        (false, false) => return otherwise_ns,
    };
    otherwise_ns.min(patience.as_nanos() as u64)
}

/// The later of `since_ns` and the time at which the operator last asked for more haste: what does not
/// answer is waited for from then on.
#[must_use]
pub fn counted_from_ns(since_ns: u64) -> u64 {
    let asked_ns = ASKED_NS.load(Ordering::Relaxed).max(HURRIED_NS.load(Ordering::Relaxed));
    since_ns.max(asked_ns)
}

/// Whether a request of that age is not waited for any more: the operator has asked, and a moment has
/// passed since both.
#[must_use]
pub fn is_over(age_ns: u64) -> bool {
    if !asked() {
        return false;
    }
    let asked_ns = monotonic_ns().saturating_sub(counted_from_ns(0));
    age_ns.min(asked_ns) > patience_ns(u64::MAX)
}
