//! Timeouts for operations that do not complete, during a phase and at its end.
//!
//! The policy is the same for every driver. An operation in flight at the end of the measurement
//! counts with its full latency. The same applies to an operation of an open loop that was due
//! before the end. A stall at the end therefore has the same weight as a stall in the middle. Rates
//! exclude these operations, because they complete after the measurement. An operation that has not
//! completed at the end of the drain is *abandoned*: it is counted, and its waiting time is
//! recorded as a lower bound of its latency.
//!
//! | operation that does not complete | timeout |
//! |---|---|
//! | any operation | the plan's `target.outage_max`; then the run fails |
//! | a single operation during a phase, while others complete | [`one_max_ns`]; then the run fails |
//! | operations in flight at the end of a phase, while some complete | [`IN_FLIGHT_NS`]; then they are abandoned |

/// Time for which operations may stay in flight after the end of a phase. Linux aborts a request to
/// a SCSI disk after 180 s (six tries of 30 s, `SD_TIMEOUT` and `SD_MAX_RETRIES`), and a request to
/// an NVMe device after this time or earlier. The S3 client of this workspace aborts after 60 s. An
/// operation that has been outstanding for more than 180 s is unlikely to complete.
pub const IN_FLIGHT_NS: u64 = 180_000_000_000;

/// Time after the end of a phase during which an open loop still starts operations that were due
/// before this end. The mail store also uses [`plimsoll_workload::step::BACKLOG_NS`].
pub const BACKLOG_NS: u64 = plimsoll_workload::step::BACKLOG_NS;

/// Time by which the start or end of a phase is set in advance, so that every thread can read it in
/// time. Threads check it after each completion, before they record the completion, and a store is
/// visible to other processors within a microsecond.
pub const AHEAD_NS: u64 = 1_000_000;

/// Returns the timeout of a single operation while other operations complete. It is the larger of
/// the timeout at the end of a phase and the timeout of an outage.
#[must_use]
pub fn one_max_ns(outage_max_ns: u64) -> u64 {
    outage_max_ns.max(IN_FLIGHT_NS)
}

/// Tracks the operation that has been in flight for the longest time.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestOperation {
    too_old_since_ns: Option<u64>,
}

impl OldestOperation {
    /// Returns true if the oldest operation, submitted at `since_ns`, had exceeded [`one_max_ns`]
    /// at this check and at the previous check. A single check is not sufficient, because
    /// completions may be queued if the process was stopped.
    pub fn is_lost(&mut self, since_ns: Option<u64>, now_ns: u64, outage_max_ns: u64) -> bool {
        let max_ns = one_max_ns(outage_max_ns);
        let too_old = since_ns.filter(|since_ns| now_ns.saturating_sub(*since_ns) >= max_ns);
        let before = std::mem::replace(&mut self.too_old_since_ns, too_old);
        too_old.is_some() && too_old == before
    }
}

/// Additional time without a completion that must pass after an outage was detected. In this time,
/// completions that were queued while the process was stopped are processed.
const CONFIRMATION_NS: u64 = 500_000_000;

/// Tracks the time without any completion.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    since_ns: u64,
    too_long_at_ns: Option<u64>,
}

impl Silence {
    /// Starts now, without an outstanding operation.
    #[must_use]
    pub fn from(now_ns: u64) -> Self {
        Self { since_ns: now_ns, too_long_at_ns: None }
    }

    /// Returns the later of two times: the last completion, and the last moment at which no
    /// operation was outstanding.
    #[must_use]
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Returns true if no operation has completed for `outage_max_ns`, and then for another half
    /// second. If the process was stopped, its queued completions are processed in this half
    /// second. They show that the target did not cause the silence.
    pub fn is_outage(&mut self, now_ns: u64, outage_max_ns: u64) -> bool {
        if now_ns.saturating_sub(self.since_ns) < outage_max_ns {
            return false;
        }
        let seen_ns = *self.too_long_at_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(seen_ns) >= CONFIRMATION_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_stopped_does_not_blame_the_target() {
        const SECOND: u64 = 1_000_000_000;
        let mut silence = Silence::from(SECOND);
        assert!(!silence.is_outage(2 * SECOND, 60 * SECOND));
        // The process was stopped for ten minutes. After it resumes, it processes completions right
        // after the first check.
        assert!(!silence.is_outage(602 * SECOND, 60 * SECOND));
        assert!(!silence.is_outage(602 * SECOND + 1_000, 60 * SECOND));
        silence = Silence::from(602 * SECOND + 2_000);
        assert!(!silence.is_outage(603 * SECOND, 60 * SECOND));
        // If the target really does not respond, the silence lasts.
        assert!(!silence.is_outage(663 * SECOND, 60 * SECOND));
        assert!(silence.is_outage(664 * SECOND, 60 * SECOND));
        assert_eq!(silence.since_ns(), 602 * SECOND + 2_000);
    }

    #[test]
    fn what_came_back_while_the_process_was_stopped_is_not_lost() {
        const SECOND: u64 = 1_000_000_000;
        let mut oldest = OldestOperation::default();
        assert!(!oldest.is_lost(Some(SECOND), 2 * SECOND, 0));
        // The process was stopped for five minutes. It processes the completion before the next
        // check.
        assert!(!oldest.is_lost(Some(SECOND), 302 * SECOND, 0));
        assert!(!oldest.is_lost(Some(302 * SECOND), 303 * SECOND, 0));
        // The next operation never completes.
        assert!(!oldest.is_lost(Some(302 * SECOND), 482 * SECOND, 0));
        assert!(oldest.is_lost(Some(302 * SECOND), 483 * SECOND, 0));
        assert!(!oldest.is_lost(None, 484 * SECOND, 0));
        // If the outage limit is longer, so is the limit for a single operation.
        assert!(!oldest.is_lost(Some(0), 500 * SECOND, 600 * SECOND));
        assert!(!oldest.is_lost(Some(0), 501 * SECOND, 600 * SECOND));
    }
}
