//! The operator's requests to stop a run. The state applies to the whole process, like the signals
//! that set it.
//!
//! | signals received | effect on a run |
//! |---|---|
//! | none | continues |
//! | one | stops its load, closes and removes its data; abandons requests that do not complete for some seconds |
//! | two | abandons operations in flight, writes its evidence; removes its data if the target responds immediately |
//! | three | has ended: the signal handler ends the process |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_sys::clock::monotonic_ns;

/// Timeout of outstanding requests after the first signal.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of outstanding requests after the second signal.
const URGENT_TIMEOUT: Duration = Duration::from_millis(300);

/// Time for which an aborted thread waits for operations in flight, in ns.
pub(crate) const SETTLE_NS: u64 = 2_000_000_000;

/// Time for which the run waits for an aborted thread, in ns. After the thread itself has waited,
/// its queue waits for one more second and then leaks its memory, because the kernel may still use
/// it.
pub(crate) const THREAD_EXIT_NS: u64 = 4_000_000_000;

/// Additional time for which a thread may be silent, after the plan's limit for storage, in ns. A
/// thread sends a message in each interval, but may get no CPU for some time.
const STARVED_NS: u64 = 10_000_000_000;

/// Time limit for a server's response at the end of a run, in ns.
pub(crate) const FINAL_REPLY_NS: u64 = 2_000_000_000;

/// Times of the first and the second signal (`CLOCK_MONOTONIC`); 0 before the signal.
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

/// Returns the maximum time between two messages of a thread that sends a message in each interval
/// and waits at most `outage_max_ns` for storage.
pub(crate) fn silence_max_ns(interval_ns: u64, outage_max_ns: u64) -> u64 {
    outage_max_ns.saturating_add(interval_ns.saturating_mul(2)).saturating_add(STARVED_NS)
}

/// Returns the timeout for a target that does not respond, counted from its last response or from
/// the operator's request to stop. Returns `otherwise_ns` if no stop was requested, and never
/// returns more than that.
#[must_use]
pub fn timeout_ns(otherwise_ns: u64) -> u64 {
    let timeout = match (is_urgent(), is_requested()) {
        (true, _) => URGENT_TIMEOUT,
        (false, true) => TIMEOUT,
        (false, false) => return otherwise_ns,
    };
    otherwise_ns.min(timeout.as_nanos() as u64)
}

/// Returns the later of `since_ns` and the operator's last request to stop. The timeout for a
/// target that does not respond starts at this time.
#[must_use]
pub fn timeout_start_ns(since_ns: u64) -> u64 {
    let requested_ns = REQUESTED_NS.load(Ordering::Relaxed).max(URGENT_NS.load(Ordering::Relaxed));
    since_ns.max(requested_ns)
}

/// Returns true if the run must abandon a request of this age. This is the case if the operator has
/// requested a stop, and the timeout has passed both since the stop request and since the start of
/// the request.
#[must_use]
pub fn has_timed_out(age_ns: u64) -> bool {
    if !is_requested() {
        return false;
    }
    let requested_ns = monotonic_ns().saturating_sub(timeout_start_ns(0));
    age_ns.min(requested_ns) > timeout_ns(u64::MAX)
}
