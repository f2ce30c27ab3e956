//! Requests of the operator to stop a run. They apply to the whole process, like the signals that
//! cause them.
//!
//! | signals received | effect on a run |
//! |---|---|
//! | none | the run continues |
//! | one | the run stops its load, closes its data and removes it; it abandons requests that do not complete in some seconds |
//! | two | the run abandons operations in flight and writes its evidence; it removes its data only if the target responds immediately |
//! | three | the signal handler ends the process |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_sys::clock::monotonic_ns;

/// After the first signal, the run waits for outstanding requests for this time.
const TIMEOUT: Duration = Duration::from_secs(3);
/// After the second signal, the run waits for outstanding requests for this time.
const URGENT_TIMEOUT: Duration = Duration::from_millis(300);

/// Time for which an aborted thread waits for its operations in flight, in ns.
pub(crate) const SETTLE_NS: u64 = 2_000_000_000;

/// Time for which the run waits for an aborted thread, in ns. The thread itself waits first. Then
/// its queue waits for one more second and leaks its memory, because the kernel may still use this
/// memory.
pub(crate) const THREAD_EXIT_NS: u64 = 4_000_000_000;

/// Time that is added to the plan's limit for storage, in ns, before a silent thread counts as
/// stalled. A thread sends a message in each interval, but for some time it may get no CPU.
const STARVED_NS: u64 = 10_000_000_000;

/// Time for which a run waits for a server's response when it ends, in ns.
pub(crate) const FINAL_REPLY_NS: u64 = 2_000_000_000;

/// Time at which the first signal arrived (`CLOCK_MONOTONIC`); 0 before it arrives. The next
/// variable contains the time of the second signal.
static REQUESTED_NS: AtomicU64 = AtomicU64::new(0);
static URGENT_NS: AtomicU64 = AtomicU64::new(0);

/// Records a request to end this process.
pub fn request_stop() {
    let _ = REQUESTED_NS.compare_exchange(0, monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Records a request to end this process immediately.
pub fn request_urgent_stop() {
    request_stop();
    let _ = URGENT_NS.compare_exchange(0, monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Returns true if a request to end this process was received.
#[must_use]
pub fn is_requested() -> bool {
    REQUESTED_NS.load(Ordering::Relaxed) != 0
}

/// Returns true if a request to end this process immediately was received.
#[must_use]
pub fn is_urgent() -> bool {
    URGENT_NS.load(Ordering::Relaxed) != 0
}

/// Returns the maximum time between two messages of a thread. The thread sends a message in each
/// interval, and waits at most `outage_max_ns` for storage.
pub(crate) fn silence_max_ns(interval_ns: u64, outage_max_ns: u64) -> u64 {
    outage_max_ns.saturating_add(interval_ns.saturating_mul(2)).saturating_add(STARVED_NS)
}

/// Returns how long the run waits for a target that does not respond. The wait starts at the latest
/// response of the target, or at the operator's request to stop. Returns `otherwise_ns` if no stop
/// was requested; the result is never larger.
#[must_use]
pub fn timeout_ns(otherwise_ns: u64) -> u64 {
    let timeout = match (is_urgent(), is_requested()) {
        (true, _) => URGENT_TIMEOUT,
        (false, true) => TIMEOUT,
        (false, false) => return otherwise_ns,
    };
    otherwise_ns.min(timeout.as_nanos() as u64)
}

/// Returns `since_ns`, or the time of the operator's latest request to stop if that is later. The
/// wait for a target that does not respond starts at this time.
#[must_use]
pub fn timeout_start_ns(since_ns: u64) -> u64 {
    let requested_ns = REQUESTED_NS.load(Ordering::Relaxed).max(URGENT_NS.load(Ordering::Relaxed));
    since_ns.max(requested_ns)
}

/// Returns true if the run must abandon a request of this age. The operator must have requested a
/// stop. The time limit must have passed since the stop request, and also since the start of the
/// request.
#[must_use]
pub fn has_timed_out(age_ns: u64) -> bool {
    if !is_requested() {
        return false;
    }
    let requested_ns = monotonic_ns().saturating_sub(timeout_start_ns(0));
    age_ns.min(requested_ns) > timeout_ns(u64::MAX)
}
