//! What one driving thread writes down: a cell per client and class, emptied every interval.

use crate::histogram::Tally;

/// Counters and histograms of one class of one client over one interval.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// From the intended start to the completion.
    pub latency: Tally,
    /// From the submission to the completion.
    pub service: Tally,
    /// Sums, exactly.
    pub sums: Sums,
}

/// Exact counters of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Operations that completed without error.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Sum of their latencies, and of the waits of those below.
    pub latency_ns: u64,
    /// Sum of their service times, and of the waits of those that were abandoned.
    pub service_ns: u64,
    /// Operations that had not come back when the thread ended. Their waits until then are counted as
    /// latencies: they took at least that long.
    pub abandoned: u64,
    /// Operations that were due before the stop and had not been started when the thread ended. Their
    /// waits are counted in the same way, as latencies but not as service times.
    pub never_started: u64,
    /// Operations that failed, moved too little or failed their check; they have no latency.
    pub errors: u64,
}

impl Sums {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.bytes += other.bytes;
        self.latency_ns += other.latency_ns;
        self.service_ns += other.service_ns;
        self.abandoned += other.abandoned;
        self.never_started += other.never_started;
        self.errors += other.errors;
    }
}

impl Sums {
    /// Operations that completed and those that did not come to an end: what the latencies count.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.operations + self.abandoned + self.never_started
    }
}

impl Cell {
    /// Writes a completed operation down.
    #[inline(always)]
    pub fn record(&mut self, latency_ns: u64, service_ns: u64, bytes: u32) {
        self.latency.record(latency_ns);
        self.service.record(service_ns);
        self.sums.operations += 1;
        self.sums.bytes += u64::from(bytes);
        self.sums.latency_ns += latency_ns;
        self.sums.service_ns += service_ns;
    }

    /// Writes an operation down that has not come back: it has waited so long since its intended start
    /// and since it was submitted.
    pub fn abandon(&mut self, latency_ns: u64, service_ns: u64) {
        self.latency.record(latency_ns);
        self.service.record(service_ns);
        self.sums.abandoned += 1;
        self.sums.latency_ns += latency_ns;
        self.sums.service_ns += service_ns;
    }

    /// Writes an operation down that was due and was never started: it has waited so long.
    pub fn leave(&mut self, latency_ns: u64) {
        self.latency.record(latency_ns);
        self.sums.never_started += 1;
        self.sums.latency_ns += latency_ns;
    }
}

/// Waits between the time at which an operation could start and its hand-over.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Each of them.
    pub times: Tally,
    /// Their sum.
    pub sum_ns: u64,
}

impl Waits {
    /// Counts one.
    #[inline(always)]
    pub fn record(&mut self, wait_ns: u64) {
        self.times.record(wait_ns);
        self.sum_ns += wait_ns;
    }
}

/// How long operations that could start stood in the generator.
#[derive(Clone, Debug, Default)]
pub struct Lag {
    /// Of operations that had a free place in the queue: the generator's own lateness, from the
    /// scheduled start, or from when the completion before it was there to be taken.
    pub own: Waits,
    /// Of operations that waited because the queue was full: the target's lateness.
    pub full: Waits,
}

/// Everything one thread wrote down in one interval.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Number of the interval on the run's grid; below 0 before the measurement starts.
    pub interval: i64,
    /// The thread's group.
    pub group: u32,
    /// When the thread began it.
    pub start_ns: u64,
    /// When the thread ended it.
    pub end_ns: u64,
    /// One per client and class: `client × classes + class`.
    pub cells: Vec<Cell>,
    /// Lateness.
    pub lag: Lag,
    /// Time for which the thread watched the clock, as a start was near.
    pub spun_ns: u64,
    /// Processor time of the thread in the interval, user and system.
    pub cpu_user_ns: u64,
    /// As above.
    pub cpu_system_ns: u64,
    /// Calls that handed operations over or waited.
    pub calls: u64,
    /// Whether it begins after the stop: what it holds was in flight, or late, then.
    pub drain: bool,
    /// Whether it is the thread's last.
    pub last: bool,
}

impl Snapshot {
    /// An empty one with `cells` cells.
    #[must_use]
    pub fn new(group: u32, cells: usize) -> Self {
        Self { group, cells: (0..cells).map(|_| Cell::default()).collect(), ..Self::default() }
    }
}
