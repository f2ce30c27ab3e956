//! `[requirement]`.
//!
//! Beside its fields it takes latency ceilings by name, `CLASS_latency_STATISTIC`: the names are
//! made from the classes and statistics, not listed by hand.

use toml::de::DeValue;

use crate::read::list::List;
use crate::read::section::{Section, read_optional, refuse_unknown, section};
use crate::read::value::{NotNegative, ReadValue};
use crate::read::{At, Cx, Given};
use crate::resolved::{Claim, LatencyClass, LatencyLimit, LatencyStatistic};
use crate::units::{BytesPerS, DurationNs, OpsPerS, SizeBytes};

section! {
    /// What the application needs: the run is judged by it.
    RequirementFields {
        /// Minimum I/Os per second: database reads and writes of a mail store, reads and writes of a
        /// matrix. Operations on names and attributes are not I/Os.
        iops: OpsPerS | "mailboxes × iops_per_mailbox × (1 + margin); none for a matrix";
        /// Minimum operations on names and attributes per second (streams with `metadata`).
        metadata_ops: OpsPerS | "none";
        /// Least bytes per second: of the operations that `iops` counts, reads and writes together.
        bandwidth: BytesPerS | "none";
        /// Least data that the target holds: what the run lays out, and reads back whole at the end. It
        /// needs `phases.verify` and data of that size.
        capacity: SizeBytes | "none";
        /// A maximum latency is the largest mean of intervals this long.
        latency_max_of: DurationNs = "15s", "Jetstress 2013 configuration, LogInterval 15000; unconfirmed that maxima are formed so";
        /// Most page-fault stalls per second on average (mail store): a thread waits because no
        /// cache page can be freed.
        page_fault_stalls_max: NotNegative = 1.0, "Jetstress fails above 1 per second";
        /// What the run is said to show. A stated requirement is always claimed too: other claims add their rules
        /// to its own.
        claims: List<Claim> | "`requirement` if one is stated, else `media-read` and `sustained-write` by the operations; `comparative` too with several targets; of a trace `trace-replay`, in any case";
    }
}

/// `[requirement]` with its latency ceilings.
#[derive(Clone, Debug)]
pub(crate) struct RequirementRaw {
    /// The named fields.
    pub(crate) fields: RequirementFields,
    /// The ceilings that are written.
    pub(crate) limits: Vec<(LatencyClass, LatencyStatistic, Given<DurationNs>)>,
}

/// Every class and statistic with the name of its ceiling.
pub(crate) fn latency_fields() -> Vec<(LatencyClass, LatencyStatistic, String)> {
    let classes = LatencyClass::ALL.iter();
    classes
        .flat_map(|class| {
            let statistics = LatencyStatistic::ALL.iter();
            statistics.map(|s| (*class, *s, LatencyLimit::field(*class, *s)))
        })
        .collect()
}

impl ReadValue for RequirementRaw {
    fn kind() -> String {
        "table".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let Some(table) = value.as_table() else {
            cx.fail(at, "is not a table", "write [requirement]");
            return None;
        };
        let ceilings = latency_fields();
        let fields = RequirementFields::FIELDS.iter().map(|f| f.name);
        let names: Vec<&str> = fields.chain(ceilings.iter().map(|(_, _, n)| n.as_str())).collect();
        refuse_unknown(table, &names, at, cx);
        let mut limits = Vec::new();
        for (class, statistic, name) in &ceilings {
            if let Some(limit) = read_optional(table, name, at, cx) {
                limits.push((*class, *statistic, limit));
            }
        }
        Some(Self { fields: RequirementFields::read_table(table, at, cx)?, limits })
    }
}
