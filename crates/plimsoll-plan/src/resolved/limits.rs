//! Latency ceilings: which latency, which statistic of it, and where the limit comes from.
//!
//! The strict and lenient sets are the thresholds of Jetstress 2013 as its configuration file
//! states them: average and maximum database read latency 20 and 100 ms, average and maximum log
//! write latency 10 and 100 ms; in its stress runs (longer than 6 hours) the maxima are 200 ms.

use serde::{Deserialize, Serialize};

use super::words::words;

words! {
    /// Whose latency a ceiling is for.
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
        /// Metadata operations of a matrix.
        Metadata = "metadata",
        /// All operations of a matrix.
        All = "all",
    }
}

words! {
    /// Which statistic of the latency a ceiling is for.
    LatencyStatistic {
        /// Mean over the measured phase.
        Avg = "avg",
        /// Largest of the interval means; see [`super::Requirement::latency_max_of_ns`].
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
    /// The percentile as a share, such as 0.999; `None` for average and maximum.
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
    /// Which set of mail store limits was taken.
    LimitSet {
        /// 20/100/10/100 ms: runs up to 6 hours.
        Strict = "strict",
        /// 20/200/10/200 ms: longer runs.
        Lenient = "lenient",
        /// None: the workload has no set of its own, and only the plan's limits hold.
        Plan = "plan",
    }
}

words! {
    /// Where a limit comes from.
    LimitOrigin {
        /// The strict set.
        Strict = "strict",
        /// The lenient set.
        Lenient = "lenient",
        /// The plan states it.
        Plan = "plan",
    }
}

/// One latency ceiling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyLimit {
    /// Name of the plan field and of the check in `verdict.json`, such as `db_read_latency_avg`.
    pub name: String,
    /// Whose latency.
    pub class: LatencyClass,
    /// Which statistic of it.
    pub statistic: LatencyStatistic,
    /// The most that passes.
    pub limit_ns: u64,
    /// Where it comes from.
    pub origin: LimitOrigin,
}

impl LatencyLimit {
    /// A limit, named after its class and statistic.
    #[must_use]
    pub fn new(
        class: LatencyClass,
        statistic: LatencyStatistic,
        limit_ns: u64,
        origin: LimitOrigin,
    ) -> Self {
        Self { name: Self::field(class, statistic), class, statistic, limit_ns, origin }
    }

    /// Name of the plan field of a ceiling: `read_latency_p99`, or `latency_p99` for all operations.
    #[must_use]
    pub fn field(class: LatencyClass, statistic: LatencyStatistic) -> String {
        match class {
            LatencyClass::All => format!("latency_{statistic}"),
            _ => format!("{class}_latency_{statistic}"),
        }
    }
}
