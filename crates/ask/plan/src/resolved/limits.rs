//! Latency limits. A limit consists of a class of operations, a statistic, a maximum value and an
//! origin.
//!
//! The strict and lenient sets are the thresholds in the configuration file of Jetstress 2013. In
//! the strict set, database reads may take 20 ms on average and 100 ms at most; log writes may take
//! 10 ms on average and 100 ms at most. The lenient set is for stress runs that are longer than 6
//! hours. In the lenient set, both maxima are 200 ms.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Class of operations to which a latency limit applies.
    LatencyClass {
        /// Database reads of the mail store.
        DbRead = "db_read",
        /// Database writes of the mail store.
        DbWrite = "db_write",
        /// Log writes of the mail store.
        LogWrite = "log_write",
        /// Reads of a matrix.
        Read = "read",
        /// Writes of a matrix.
        Write = "write",
        /// Flushes of a matrix (`fsync`, `fdatasync`).
        Sync = "sync",
        /// Reads of a matrix from an object store. Each read is measured until the first byte
        /// arrives.
        FirstByte = "first_byte",
        /// Metadata operations of a matrix.
        Metadata = "metadata",
        /// All operations of a matrix.
        All = "all",
    }
}

words! {
    /// Statistic of the latencies to which a limit applies.
    LatencyStatistic {
        /// Mean over the measured phase.
        Avg = "avg",
        /// Largest interval mean: the mean latency of the interval with the highest mean. See
        /// [`super::Requirement::latency_max_of_ns`].
        Max = "max",
        /// Median.
        P50 = "p50",
        /// 90th percentile.
        P90 = "p90",
        /// 95th percentile.
        P95 = "p95",
        /// 99th percentile.
        P99 = "p99",
        /// 99.9th percentile.
        P999 = "p999",
        /// 99.99th percentile.
        P9999 = "p9999",
    }
}

impl LatencyStatistic {
    /// Returns the quantile of the statistic, such as 0.999. Returns `None` for the average and the
    /// maximum.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Avg | Self::Max => None,
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::P9999 => Some(0.9999),
        }
    }
}

words! {
    /// A set of default limits for a mail store.
    LimitSet {
        /// Limits for runs of up to 6 hours. Database reads may take 20 ms on average and 100 ms at
        /// most; log writes may take 10 ms on average and 100 ms at most.
        Strict = "strict",
        /// Limits for longer runs. Database reads may take 20 ms on average and 200 ms at most; log
        /// writes may take 10 ms on average and 200 ms at most.
        Lenient = "lenient",
        /// There are no default limits; only the limits in the plan apply.
        Plan = "plan",
    }
}

words! {
    /// Origin of a limit.
    LimitOrigin {
        /// The limit is part of the strict default set.
        Strict = "strict",
        /// The limit is part of the lenient default set.
        Lenient = "lenient",
        /// The plan states the limit.
        Plan = "plan",
    }
}

/// Latency limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyLimit {
    /// Name of the limit in the plan and in `verdict.json`, such as `db_read_latency_avg`.
    pub name: String,
    /// Class of operations to which the limit applies.
    pub class: LatencyClass,
    /// Statistic of the latencies to which the limit applies.
    pub statistic: LatencyStatistic,
    /// Maximum value of the statistic, in nanoseconds.
    pub limit_ns: u64,
    /// Origin.
    pub origin: LimitOrigin,
}

impl LatencyLimit {
    /// Creates a limit whose name consists of its class and statistic.
    #[must_use]
    pub fn new(
        class: LatencyClass,
        statistic: LatencyStatistic,
        limit_ns: u64,
        origin: LimitOrigin,
    ) -> Self {
        Self { name: Self::field(class, statistic), class, statistic, limit_ns, origin }
    }

    /// Returns the name of the plan field that states a limit, such as `read_latency_p99`, or
    /// `latency_p99` for all operations.
    #[must_use]
    pub fn field(class: LatencyClass, statistic: LatencyStatistic) -> String {
        match class {
            LatencyClass::All => format!("latency_{statistic}"),
            _ => format!("{class}_latency_{statistic}"),
        }
    }
}
