//! `[requirement]`.
//!
//! Apart from its fields, it accepts latency limits named `CLASS_latency_STATISTIC`. These names
//! are generated from the classes and statistics.

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
    /// Requirement of the application. Without this section, the run is measured but not judged.
    RequirementFields {
        /// Minimum I/Os per second: database reads and writes of a mail store, or reads and writes
        /// of a matrix. Metadata operations do not count.
        iops: OpsPerS | "mailboxes × iops_per_mailbox × (1 + margin); none for a matrix";
        /// Minimum metadata operations per second (streams with `metadata`).
        metadata_ops: OpsPerS | "none";
        /// Minimum bytes per second, for reads and writes together.
        bandwidth: BytesPerS | "none";
        /// Minimum amount of data that the run writes to the target and reads back at the end. It
        /// requires `phases.verify` and files with this total size.
        capacity: SizeBytes | "none";
        /// Length of the intervals for `max` latencies. A `max` latency is the largest of the
        /// interval means.
        latency_max_of: DurationNs = "15s", "Jetstress 2013, LogInterval 15000; unconfirmed \
            whether Jetstress computes maxima in this way";
        /// Maximum rate of page-fault stalls per second, as a mean (mail store). In a stall, a
        /// thread waits because no cache page can be freed.
        page_fault_stalls_max: NotNegative = 1.0, "Jetstress fails a run above 1 per second";
        /// Claims that the run should support; each claim adds rules that check it. A stated
        /// requirement is always one of the claims.
        claims: List<Claim> | "`requirement` if one is stated, else `media-read` for reads and \
            `sustained-write` for writes; also `comparative` if there are several targets; always \
            `trace-replay` for a trace";
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
            cx.fail(at, "is not a table", "use a section [requirement]");
            return None;
        };
        let limits = read_limits(table, RequirementFields::FIELDS, at, cx);
        Some(Self { fields: RequirementFields::read_table(table, at, cx)?, limits })
    }
}
