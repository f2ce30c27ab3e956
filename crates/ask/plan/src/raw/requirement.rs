//! `[requirement]`.
//!
//! In addition to the fields below, the section accepts latency limits with names
//! `CLASS_latency_STATISTIC`. These names are generated from the lists of classes and statistics.

use toml::de::DeValue;

use super::latency::read_limits;
use super::window::WindowRaw;
use crate::read::list::List;
use crate::read::section::{Section, section};
use crate::read::value::{NotNegative, ReadValue};
use crate::read::{Cx, Located, Position};
use crate::resolved::{Claim, LatencyClass, LatencyStatistic};
use crate::units::{BytesPerS, DurationNs, OpsPerS, SizeBytes};

section! {
    /// Rates and latencies that the application requires. Without this section, the run is measured
    /// but not judged.
    RequirementFields {
        /// Minimum number of reads and writes per second. For a mail store, only database reads and
        /// writes count.
        iops: OpsPerS | "mailboxes × iops_per_mailbox × (1 + margin) for a mail store; none for a \
                         matrix";
        /// Minimum number of metadata operations per second. Requires a stream with `metadata`.
        metadata_ops: OpsPerS | "none";
        /// Minimum bandwidth of reads and writes together.
        bandwidth: BytesPerS | "none";
        /// Minimum amount of data that the run must write to the target, and read back at the end.
        /// Requires `phases.verify`, and files of at least this total size.
        capacity: SizeBytes | "none";
        /// Length of the intervals for `max` latencies: `max` is the largest of the intervals' mean
        /// latencies.
        latency_max_of: DurationNs = "15s", "Jetstress 2013, LogInterval 15000; unconfirmed whether \
                                             Jetstress computes maxima in this way";
        /// Maximum mean number of page-fault stalls per second (mail store). In such a stall, a
        /// thread waits because no cache page can be freed.
        page_fault_stalls_max: NotNegative = 1.0, "Jetstress fails a run with more than 1 stall per \
                                                   second";
        /// Claims that the run should prove. Each claim adds audit rules. If the plan states a
        /// requirement, `requirement` is always one of the claims.
        claims: List<Claim> | "`requirement` if the plan states limits, otherwise `media-read` for \
                               reads and `sustained-write` for writes; also `comparative` for several \
                               targets, and `trace-replay` for a trace";
        /// Limits for the time before the first event.
        before: WindowRaw | "none";
        /// Limits for the time from the first event until the recovery.
        during: WindowRaw | "none";
        /// Limits for the time after the recovery.
        after: WindowRaw | "none";
    }
}

/// The section `[requirement]`, with its latency limits.
#[derive(Clone, Debug)]
pub(crate) struct RequirementRaw {
    /// Fields other than the latency limits.
    pub(crate) fields: RequirementFields,
    /// Latency limits that the plan states.
    pub(crate) limits: Vec<(LatencyClass, LatencyStatistic, Located<DurationNs>)>,
}

impl ReadValue for RequirementRaw {
    fn kind() -> String {
        "table".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let Some(table) = value.as_table() else {
            cx.fail(at, "is not a table", "use a section [requirement]");
            return None;
        };
        let limits = read_limits(table, RequirementFields::FIELDS, at, cx);
        Some(Self { fields: RequirementFields::read_table(table, at, cx)?, limits })
    }
}
