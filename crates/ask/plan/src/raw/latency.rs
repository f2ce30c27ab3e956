//! Fields that are latency limits. Their names have the form `CLASS_latency_STATISTIC`.

use toml::de::DeTable;

use crate::read::section::{FieldDoc, read_optional, reject_unknown_with};
use crate::read::value::ReadValue;
use crate::read::{Cx, Located, Position};
use crate::resolved::{LatencyClass, LatencyLimit, LatencyStatistic};

/// Returns every combination of a latency class and a statistic, with the name of its limit.
pub(crate) fn latency_fields() -> Vec<(LatencyClass, LatencyStatistic, String)> {
    let classes = LatencyClass::ALL.iter();
    classes
        .flat_map(|class| {
            let statistics = LatencyStatistic::ALL.iter();
            statistics.map(|s| (*class, *s, LatencyLimit::field(*class, *s)))
        })
        .collect()
}

/// Reads the latency limits of a table. The table may also contain the fields that `fields` names.
/// The function rejects every other name.
pub(crate) fn read_limits<T: ReadValue>(
    table: &DeTable<'_>,
    fields: &[FieldDoc],
    at: &Position,
    cx: &mut Cx,
) -> Vec<(LatencyClass, LatencyStatistic, Located<T>)> {
    let latencies = latency_fields();
    let fields = fields.iter().map(|field| field.name);
    let names: Vec<&str> = fields.chain(latencies.iter().map(|(_, _, n)| n.as_str())).collect();
    reject_unknown_with(table, &names, at, cx, latency_hint);
    let limit = |(class, statistic, name): (LatencyClass, LatencyStatistic, String)| {
        Some((class, statistic, read_optional(table, &name, at, cx)?))
    };
    latencies.into_iter().filter_map(limit).collect()
}

/// Returns the hint for an abbreviated latency limit. For example, `p99` means `read_latency_p99`.
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
            "ttfb" | "first" | "byte" => class = Some(LatencyClass::FirstByte),
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
    // A name that contains no statistic is probably a misspelt field. The hint therefore names the
    // most similar field.
    statistic.map(|_| {
        format!(
            "did you mean `{meant}`? (docs/plan.md lists all latency limits, also `{}`)",
            field(other)
        )
    })
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
            ("ttfb_p99", "first_byte_latency_p99"),
            ("first_byte_p95", "first_byte_latency_p95"),
        ] {
            let hint = latency_hint(typed).unwrap_or_default();
            assert!(hint.contains(&format!("did you mean `{meant}`?")), "{typed}: {hint}");
            assert!(latency_fields().iter().any(|(_, _, name)| name == meant), "{meant}");
        }
        // For other names, the error suggests the most similar field instead.
        for other in ["iosp", "latency", "read", "p98", "bandwith"] {
            assert_eq!(latency_hint(other), None, "{other}");
        }
    }
}
