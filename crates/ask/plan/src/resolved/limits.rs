//! Latency limits. Each has a class, a statistic and an origin.
//!
//! The strict and lenient sets are the thresholds in the configuration file of Jetstress 2013.
//! Average and maximum database read latency are 20 and 100 ms; average and maximum log write
//! latency are 10 and 100 ms. In its stress runs (longer than 6 hours) the maxima are 200 ms.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Operations that a limit applies to.
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
        /// Reads of a matrix from an object store, each measured until its first byte.
        FirstByte = "first_byte",
        /// Metadata operations of a matrix.
        Metadata = "metadata",
        /// All operations of a matrix.
        All = "all",
    }
}

words! {
    /// Statistic that a limit applies to.
    LatencyStatistic {
        /// Mean over the measured phase.
        Avg = "avg",
        /// Largest interval mean; see [`super::Requirement::latency_max_of_ns`].
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
    /// Returns the quantile, such as 0.999; `None` for average and maximum.
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
    /// Set of mail store limits.
    LimitSet {
        /// 20/100/10/100 ms, for runs up to 6 hours.
        Strict = "strict",
        /// 20/200/10/200 ms, for longer runs.
        Lenient = "lenient",
        /// No set: only the limits stated in the plan apply.
        Plan = "plan",
    }
}

words! {
    /// Origin of a limit.
    LimitOrigin {
        /// The strict set.
        Strict = "strict",
        /// The lenient set.
        Lenient = "lenient",
        /// Stated in the plan.
        Plan = "plan",
    }
}

/// Latency limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyLimit {
    /// Name of the plan field and of the check in `verdict.json`, such as `db_read_latency_avg`.
    pub name: String,
    /// Operations that the limit applies to.
    pub class: LatencyClass,
    /// Statistic that the limit applies to.
    pub statistic: LatencyStatistic,
    /// Maximum in nanoseconds.
    pub limit_ns: u64,
    /// Origin.
    pub origin: LimitOrigin,
}

impl LatencyLimit {
    /// Creates a limit named after its class and statistic.
    #[must_use]
    pub fn new(
        class: LatencyClass,
        statistic: LatencyStatistic,
        limit_ns: u64,
        origin: LimitOrigin,
    ) -> Self {
        Self { name: Self::field(class, statistic), class, statistic, limit_ns, origin }
    }

    /// Returns the plan field of a limit: `read_latency_p99`, or `latency_p99` for all operations.
    #[must_use]
    pub fn field(class: LatencyClass, statistic: LatencyStatistic) -> String {
        match class {
            LatencyClass::All => format!("latency_{statistic}"),
            _ => format!("{class}_latency_{statistic}"),
        }
    }
}
