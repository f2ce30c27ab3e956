//! `[requirement]`.
//!
//! Besides its fields it accepts latency limits named `CLASS_latency_STATISTIC`. These names are
//! generated from the classes and statistics.

use toml::de::DeValue;

use crate::read::list::List;
use crate::read::section::{Section, read_optional, reject_unknown_with, section};
use crate::read::value::{NotNegative, ReadValue};
use crate::read::{Cx, Located, Position};
use crate::resolved::{Claim, LatencyClass, LatencyLimit, LatencyStatistic};
use crate::units::{BytesPerS, DurationNs, OpsPerS, SizeBytes};

section! {
    /// Requirement of the application, against which the run is judged.
    RequirementFields {
        /// Minimum I/Os per second: database reads and writes of a mail store, or reads and writes
        /// of a matrix. Metadata operations do not count.
        iops: OpsPerS | "mailboxes × iops_per_mailbox × (1 + margin); none for a matrix";
        /// Minimum metadata operations per second (streams with `metadata`).
        metadata_ops: OpsPerS | "none";
        /// Minimum bytes per second, of reads and writes together.
        bandwidth: BytesPerS | "none";
        /// Minimum data on the target. The run writes it and reads all of it back at the end. It
        /// needs `phases.verify` and data of that size.
        capacity: SizeBytes | "none";
        /// Interval length for maximum latencies: the maximum is the largest interval mean.
        latency_max_of: DurationNs = "15s", "Jetstress 2013 configuration, LogInterval 15000; \
            unconfirmed that it forms maxima like this";
        /// Maximum mean page-fault stalls per second (mail store). In a stall, a thread waits
        /// because no cache page can be freed.
        page_fault_stalls_max: NotNegative = 1.0, "Jetstress fails above 1 per second";
        /// Claims that the run should support. A stated requirement is always a claim too; other
        /// claims add their rules.
        claims: List<Claim> | "`requirement` if stated, else `media-read` and `sustained-write` \
            by the operations; `comparative` too with several targets; always `trace-replay` for \
            a trace";
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

/// Returns every class and statistic with the name of its limit.
pub(crate) fn latency_fields() -> Vec<(LatencyClass, LatencyStatistic, String)> {
    let classes = LatencyClass::ALL.iter();
    classes
        .flat_map(|class| {
            let statistics = LatencyStatistic::ALL.iter();
            statistics.map(|s| (*class, *s, LatencyLimit::field(*class, *s)))
        })
        .collect()
}

/// Returns the hint for a short form of a latency limit: `p99` means `read_latency_p99`.
fn latency_hint(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let mut statistic = None;
    let mut class = None;
    let (mut is_database, mut is_log) = (false, false);
    for word in lower.split(['_', '-', '.', ' ']) {
        match word {
            "latency" | "lat" | "clat" => {}
            "db" | "database" => is_database = true,
            "avg" | "mean" | "average" => statistic = Some(LatencyStatistic::Avg),
            "median" => statistic = Some(LatencyStatistic::P50),
            "read" | "reads" => class = Some(LatencyClass::Read),
            "write" | "writes" => class = Some(LatencyClass::Write),
            "log" => is_log = true,
            "fsync" | "fdatasync" | "flush" | "sync" => class = Some(LatencyClass::Sync),
            "metadata" => class = Some(LatencyClass::Metadata),
            "all" => class = Some(LatencyClass::All),
            word => statistic = Some(LatencyStatistic::from_word(word)?),
        }
    }
    let class = match (class.unwrap_or(LatencyClass::Read), is_database) {
        _ if is_log => LatencyClass::LogWrite,
        (LatencyClass::Read, true) => LatencyClass::DbRead,
        (LatencyClass::Write, true) => LatencyClass::DbWrite,
        (class, _) => class,
    };
    let field = |class| LatencyLimit::field(class, statistic.unwrap_or(LatencyStatistic::P99));
    let meant = field(class);
    let other = match class {
        LatencyClass::Write => LatencyClass::Read,
        _ => LatencyClass::Write,
    };
    // A name that only lacks a letter has a better hint: the most similar field.
    statistic
        .map(|_| format!("did you mean `{meant}`? (also `{}`; see docs/plan.md)", field(other)))
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
        let ceilings = latency_fields();
        let fields = RequirementFields::FIELDS.iter().map(|f| f.name);
        let names: Vec<&str> = fields.chain(ceilings.iter().map(|(_, _, n)| n.as_str())).collect();
        reject_unknown_with(table, &names, at, cx, latency_hint);
        let mut limits = Vec::new();
        for (class, statistic, name) in &ceilings {
            if let Some(limit) = read_optional(table, name, at, cx) {
                limits.push((*class, *statistic, limit));
            }
        }
        Some(Self { fields: RequirementFields::read_table(table, at, cx)?, limits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_of_a_latency_limit_name_the_field() {
        for (typed, meant) in [
            ("p99", "read_latency_p99"),
            ("P99", "read_latency_p99"),
            ("latency-p99", "read_latency_p99"),
            ("p999_latency", "read_latency_p999"),
            ("write_p99", "write_latency_p99"),
            ("mean", "read_latency_avg"),
            ("fdatasync_p99", "sync_latency_p99"),
            ("db_p95", "db_read_latency_p95"),
            ("log_p99", "log_write_latency_p99"),
            ("log_write_p99", "log_write_latency_p99"),
        ] {
            let hint = latency_hint(typed).unwrap_or_default();
            assert!(hint.contains(&format!("did you mean `{meant}`?")), "{typed}: {hint}");
            assert!(latency_fields().iter().any(|(_, _, name)| name == meant), "{meant}");
        }
        // Other names keep the hint by similarity.
        for other in ["iosp", "latency", "read", "p98", "bandwith"] {
            assert_eq!(latency_hint(other), None, "{other}");
        }
    }
}
