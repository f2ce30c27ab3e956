//! `[requirement]`.
//!
//! Besides its fields it accepts latency limits named `CLASS_latency_STATISTIC`. These names are
//! generated from the classes and statistics.

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
    /// Requirement of the application. Without this section the run is measured but not judged.
    RequirementFields {
        /// Minimum I/Os per second: database reads and writes of a mail store, or reads and writes
        /// of a matrix. Metadata operations do not count.
        iops: OpsPerS | "mailboxes × iops_per_mailbox × (1 + margin); none for a matrix";
        /// Minimum metadata operations per second (streams with `metadata`).
        metadata_ops: OpsPerS | "none";
        /// Minimum bytes per second, of reads and writes together.
        bandwidth: BytesPerS | "none";
        /// Minimum data that the run writes to the target and reads back at the end. It needs
        /// `phases.verify` and data of that size.
        capacity: SizeBytes | "none";
        /// Interval length for `max` latencies: each is the largest mean of an interval.
        latency_max_of: DurationNs = "15s", "Jetstress 2013, LogInterval 15000; unconfirmed \
            whether it computes maxima like this";
        /// Maximum mean page-fault stalls per second (mail store): waits of a thread because no
        /// cache page can be freed.
        page_fault_stalls_max: NotNegative = 1.0, "Jetstress fails above 1 per second";
        /// Claims that the run should support; each adds its rules. A stated requirement is always
        /// a claim.
        claims: List<Claim> | "`requirement` if stated, else `media-read` and `sustained-write` \
            by the operations; `comparative` too with several targets; always `trace-replay` for \
            a trace";
        /// Limits before the first event.
        before: WindowRaw | "none";
        /// Limits from the first event until the recovery.
        during: WindowRaw | "none";
        /// Limits after that.
        after: WindowRaw | "none";
    }
}

/// `[requirement]` with its latency limits.
#[derive(Clone, Debug)]
pub(crate) struct RequirementRaw {
    /// Fields with fixed names.
    pub(crate) fields: RequirementFields,
    /// Latency limits in the plan.
    pub(crate) limits: Vec<(LatencyClass, LatencyStatistic, Located<DurationNs>)>,
}

impl ReadValue for RequirementRaw {
    fn kind() -> String {
        "table".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let Some(table) = value.as_table() else {
            cx.fail(at, "is not a table", "write [requirement]");
            return None;
        };
        let limits = read_limits(table, RequirementFields::FIELDS, at, cx);
        Some(Self { fields: RequirementFields::read_table(table, at, cx)?, limits })
    }
}
