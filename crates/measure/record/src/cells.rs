//! Records of one thread of streams: a cell per client and class, emptied every interval.

use crate::histogram::Tally;

/// Counters and histograms of one class of one client over one interval.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Times from the intended start to the completion.
    pub latency: Tally,
    /// Times from the submission to the completion.
    pub service: Tally,
    /// Exact sums.
    pub sums: Sums,
}

/// Exact counters of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Operations that completed without error.
    pub operations: u64,
    /// Bytes that the operations moved.
    pub bytes: u64,
    /// Sum of latencies, including waits of abandoned and never started operations.
    pub latency_ns: u64,
    /// Sum of service times, including waits of abandoned operations.
    pub service_ns: u64,
    /// Operations that had not completed when the thread ended. Their waiting times until then
    /// count as latencies, which are lower bounds.
    pub abandoned: u64,
    /// Operations that were due before the stop and not started when the thread ended. Their
    /// waiting times count as latencies but not as service times.
    pub never_started: u64,
    /// Operations that failed, transferred too few bytes, or whose check failed. They have no
    /// latency.
    pub errors: u64,
}

impl Sums {
    /// Adds other counts.
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
    /// Returns the number of operations in the latencies: completed, abandoned and never started.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.operations + self.abandoned + self.never_started
    }
}

impl Cell {
    /// Records a completed operation.
    #[inline(always)]
    pub fn record(&mut self, latency_ns: u64, service_ns: u64, bytes: u32) {
        self.latency.record(latency_ns);
        self.service.record(service_ns);
        self.sums.operations += 1;
        self.sums.bytes += u64::from(bytes);
        self.sums.latency_ns += latency_ns;
        self.sums.service_ns += service_ns;
    }

    /// Records an operation that has not completed, with its waits since the intended start and
    /// since submission.
    pub fn abandon(&mut self, latency_ns: u64, service_ns: u64) {
        self.latency.record(latency_ns);
        self.service.record(service_ns);
        self.sums.abandoned += 1;
        self.sums.latency_ns += latency_ns;
        self.sums.service_ns += service_ns;
    }

    /// Records an operation that was due and never started, with its wait.
    pub fn leave(&mut self, latency_ns: u64) {
        self.latency.record(latency_ns);
        self.sums.never_started += 1;
        self.sums.latency_ns += latency_ns;
    }
}

/// Waits between the time at which an operation could start and its submission.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Histogram.
    pub times: Tally,
    /// Sum.
    pub sum_ns: u64,
}

impl Waits {
    /// Records a wait.
    #[inline(always)]
    pub fn record(&mut self, wait_ns: u64) {
        self.times.record(wait_ns);
        self.sum_ns += wait_ns;
    }
}

/// Delays of operations in the generator.
#[derive(Clone, Debug, Default)]
pub struct Lag {
    /// Delays of operations with a free slot in the queue: the generator's own lateness, from the
    /// scheduled start, or from when the previous completion was available.
    pub own: Waits,
    /// Delays of operations that waited for a full queue: the target's lateness.
    pub full: Waits,
}

/// Records of one thread over one interval.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Number of the interval; negative during the warm-up.
    pub interval: i64,
    /// Group of the thread.
    pub group: u32,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Cells by `client × classes + class`.
    pub cells: Vec<Cell>,
    /// Delays in the generator.
    pub lag: Lag,
    /// Time spent spinning on the clock before a start.
    pub spun_ns: u64,
    /// User processor time of the thread in the interval.
    pub cpu_user_ns: u64,
    /// System processor time of the thread in the interval.
    pub cpu_system_ns: u64,
    /// System calls that submitted or waited.
    pub calls: u64,
    /// The interval begins after the stop: its operations were in flight or late at that time.
    pub drain: bool,
    /// Last interval of the thread.
    pub last: bool,
}

impl Snapshot {
    /// Creates an empty snapshot with `cells` cells.
    #[must_use]
    pub fn new(group: u32, cells: usize) -> Self {
        Self { group, cells: (0..cells).map(|_| Cell::default()).collect(), ..Self::default() }
    }
}
