//! Open loop of the mail store. It schedules operations so that the database I/Os reach a target
//! rate.
//!
//! The target rate is in I/Os per second, but the scheduler starts operations. It measures how many
//! I/Os an operation caused in the past seconds, and sets the mean interval between arrivals
//! accordingly. A slow target does not slow down the arrivals. The ratio only includes operations
//! that have finished. For an operation that is waiting, the scheduler assumes the expected number
//! of I/Os.

use super::rng::Choices;

/// Time over which the ratio of I/Os to operations is measured before the scheduler uses it.
const WINDOW_NS: u64 = 500_000_000;
/// Fraction of the difference between required and completed I/Os that is corrected in the next
/// window.
const GAIN: f64 = 0.2;
/// Maximum correction, as a fraction of the arrival rate.
const CORRECTION_MAX: f64 = 0.25;
/// Assumed number of I/Os for each operation until the number is measured. Each operation causes
/// one read, and 65 % of the operations cause a write.
const RATIO_FIRST: f64 = 1.65;

/// Arrivals of operations as a Poisson process.
#[derive(Debug)]
pub(crate) struct Arrivals {
    choices: Choices,
    rate_ios_per_ns: f64,
    ratio: f64,
    /// Number of I/Os that are due so far. The I/Os of completed and of waiting operations have
    /// been subtracted.
    owed_ios: f64,
    next_ns: f64,
    /// Same value as `next_ns`, in whole nanoseconds. It is cached, because it is read several
    /// times in every step.
    due_ns: u64,
    window_start_ns: u64,
    window_ios: u64,
    window_operations: u64,
    drawn: u64,
    window_drawn: u64,
    correction: f64,
}

impl Arrivals {
    pub fn new(choices: Choices, rate_ios_per_s: f64) -> Self {
        Self {
            choices,
            rate_ios_per_ns: rate_ios_per_s / 1e9,
            ratio: RATIO_FIRST,
            owed_ios: 0.0,
            next_ns: -1.0,
            due_ns: 0,
            window_start_ns: 0,
            window_ios: 0,
            window_operations: 0,
            drawn: 0,
            window_drawn: 0,
            correction: 1.0,
        }
    }

    /// Returns the time at which the next operation arrives.
    pub fn next_ns(&mut self, now_ns: u64) -> u64 {
        if self.next_ns < 0.0 {
            self.window_start_ns = now_ns;
            self.next_ns = now_ns as f64 + self.distance_ns();
            self.due_ns = self.next_ns as u64;
        }
        self.due_ns
    }

    fn distance_ns(&mut self) -> f64 {
        let mean_ns = self.ratio / (self.rate_ios_per_ns * self.correction);
        self.choices.exponential_ns(mean_ns)
    }

    /// Records that an operation has arrived, and draws the random time of the next arrival.
    pub fn take(&mut self) -> u64 {
        let arrived = self.due_ns;
        self.next_ns += self.distance_ns();
        self.due_ns = self.next_ns as u64;
        self.drawn += 1;
        arrived
    }

    /// Returns true if enough time has passed to update the ratio; see [`Self::learn`].
    pub fn learns(&self, now_ns: u64) -> bool {
        self.next_ns >= 0.0 && now_ns.saturating_sub(self.window_start_ns) >= WINDOW_NS
    }

    /// Updates the ratio. The arguments are the number of database I/Os that were issued, and the
    /// number of operations that ended, since the start.
    pub fn learn(&mut self, now_ns: u64, ios: u64, operations: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.window_start_ns);
        let done_ios = (ios - self.window_ios) as f64;
        let done = operations - self.window_operations;
        if done >= 16 {
            self.ratio += 0.3 * (done_ios / done as f64 - self.ratio);
        }
        // `waiting` is the number of operations that have arrived and that no session has started.
        // `pending_ios` is the number of I/Os that operations in progress will still cause.
        let behind_ns = (now_ns as f64 - self.next_ns).max(0.0);
        let waiting = behind_ns * self.rate_ios_per_ns / self.ratio;
        let drawn = (self.drawn - self.window_drawn) as f64;
        let pending_ios = (drawn - done as f64) * self.ratio;
        let requested = elapsed_ns as f64 * self.rate_ios_per_ns;
        let backlog_ios = waiting * self.ratio;
        self.owed_ios = self.owed_ios * 0.9 + requested - done_ios - pending_ios - backlog_ios;
        let per_window = requested.max(1.0);
        let part = (GAIN * self.owed_ios / per_window).clamp(-CORRECTION_MAX, CORRECTION_MAX);
        self.correction = 1.0 + part;
        self.window_start_ns = now_ns;
        self.window_ios = ios;
        self.window_operations = operations;
        self.window_drawn = self.drawn;
    }
}
