//! The end of a phase: how long what it began is waited for.
//!
//! One policy holds for every driver. An operation that is in flight when the measurement ends counts
//! with all of its latency, and so does an arrival of an open loop that was due before the end: a stall
//! weighs the same across the end as in the middle. Rates leave these out, as they completed later.
//! What has not come back by the end of the drain is *abandoned*: it is counted, and enters every
//! latency with the time that it had waited, which is the least that it can have taken.
//!
//! | what does not come back | is waited for |
//! |---|---|
//! | anything at all | the plan's `target.outage_max`: then the run has failed |
//! | one operation, while others do, during a phase | [`one_max_ns`]: then the run has failed |
//! | what is in flight at the end, as long as something comes back | [`IN_FLIGHT_NS`]: then it is abandoned |

/// How long operations in flight are waited for after the stop. Linux gives a request of a SCSI disk up
/// after 180 s (30 s for each of six tries, `SD_TIMEOUT` and `SD_MAX_RETRIES`), one of an NVMe device
/// after at most as long, and the S3 client of this workspace after 60 s: what is still out then has no
/// end in sight.
pub const IN_FLIGHT_NS: u64 = 180_000_000_000;

/// How long after the stop arrivals of an open loop that were due before it are still started.
/// [`plimsoll_workload::step::BACKLOG_NS`], for the mail store as well.
pub const BACKLOG_NS: u64 = plimsoll_workload::step::BACKLOG_NS;

/// How far ahead of the present a phase's start or end is set, so that every thread knows of it when it
/// comes: threads look after each completion and before they record it, and a store reaches another
/// processor within a microsecond.
pub const AHEAD_NS: u64 = 1_000_000;

/// How long one operation is waited for while others come back: what a phase's end gives it, and never
/// less than silence is given.
#[must_use]
pub fn one_max_ns(outage_max_ns: u64) -> u64 {
    outage_max_ns.max(IN_FLIGHT_NS)
}

/// What is known of the operation that has been in flight for longest, from looks at it now and then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oldest {
    too_old_since_ns: Option<u64>,
}

impl Oldest {
    /// Whether the oldest operation, which has been out since `since_ns`, was out for [`one_max_ns`] at this look
    /// and at the one before. One look is not enough: a process that was stopped meanwhile finds what came back
    /// long ago, and was not taken yet.
    pub fn is_lost(&mut self, since_ns: Option<u64>, now_ns: u64, outage_max_ns: u64) -> bool {
        let max_ns = one_max_ns(outage_max_ns);
        let too_old = since_ns.filter(|since_ns| now_ns.saturating_sub(*since_ns) >= max_ns);
        let before = std::mem::replace(&mut self.too_old_since_ns, too_old);
        too_old.is_some() && too_old == before
    }
}

/// How long after a silence was found too long it has to go on: what came back while the process was stopped is
/// taken by then.
const SECOND_LOOK_NS: u64 = 500_000_000;

/// What is known of a target that answers nothing, from looks at it now and then.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    since_ns: u64,
    too_long_at_ns: Option<u64>,
}

impl Silence {
    /// Begins now: nothing is awaited for longer.
    #[must_use]
    pub fn from(now_ns: u64) -> Self {
        Self { since_ns: now_ns, too_long_at_ns: None }
    }

    /// When something came back last, or nothing was awaited.
    #[must_use]
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Whether it has lasted for `outage_max_ns`, and for half a second more from when that was first seen: a
    /// process that was stopped for that long finds answers that came long ago, and the target is not to blame.
    pub fn is_outage(&mut self, now_ns: u64, outage_max_ns: u64) -> bool {
        if now_ns.saturating_sub(self.since_ns) < outage_max_ns {
            return false;
        }
        let seen_ns = *self.too_long_at_ns.get_or_insert(now_ns);
        now_ns.saturating_sub(seen_ns) >= SECOND_LOOK_NS
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
        // Stopped for ten minutes: what came meanwhile is taken right after the first look.
        assert!(!silence.is_outage(602 * SECOND, 60 * SECOND));
        assert!(!silence.is_outage(602 * SECOND + 1_000, 60 * SECOND));
        silence = Silence::from(602 * SECOND + 2_000);
        assert!(!silence.is_outage(603 * SECOND, 60 * SECOND));
        // A target that is silent in truth stays so.
        assert!(!silence.is_outage(663 * SECOND, 60 * SECOND));
        assert!(silence.is_outage(664 * SECOND, 60 * SECOND));
        assert_eq!(silence.since_ns(), 602 * SECOND + 2_000);
    }

    #[test]
    fn what_came_back_while_the_process_was_stopped_is_not_lost() {
        const SECOND: u64 = 1_000_000_000;
        let mut oldest = Oldest::default();
        assert!(!oldest.is_lost(Some(SECOND), 2 * SECOND, 0));
        // Stopped for five minutes: it is taken before the next look.
        assert!(!oldest.is_lost(Some(SECOND), 302 * SECOND, 0));
        assert!(!oldest.is_lost(Some(302 * SECOND), 303 * SECOND, 0));
        // And this one is not.
        assert!(!oldest.is_lost(Some(302 * SECOND), 482 * SECOND, 0));
        assert!(oldest.is_lost(Some(302 * SECOND), 483 * SECOND, 0));
        assert!(!oldest.is_lost(None, 484 * SECOND, 0));
        // Silence may last longer, and one operation too.
        assert!(!oldest.is_lost(Some(0), 500 * SECOND, 600 * SECOND));
        assert!(!oldest.is_lost(Some(0), 501 * SECOND, 600 * SECOND));
    }
}
