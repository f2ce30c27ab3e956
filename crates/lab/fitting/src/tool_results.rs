//! Converts results of other tools to the table to which a model is fitted. It has one row for each
//! job, or for all jobs that ran at the same time.
//!
//! A model is fitted to the behaviour of storage under a closed loop. Jobs with a rate limit, think
//! time, buffered I/O, separate flushes or errors are therefore left out, and the reason is
//! reported.

use plimsoll_evidence::tool_result::{
    Durability, Kind, Latency, Operation, Part, Pattern as ToolPattern, Stage, ToolResult,
};
use plimsoll_model::fit::{DEPTH_MAX, Row, Table, implausible};
use plimsoll_model::run::Pattern;

/// Maximum difference between the measured and the stated share of reads. They differ because fio
/// chooses each operation at random.
const READ_SHARE_TOLERANCE: f64 = 0.02;
/// Minimum run time of jobs that ran at the same time, relative to the longest of them.
const COMMON_TIME_MIN: f64 = 0.9;
/// Number of steps of the binary search for a percentile. The remaining range is a billionth of the
/// first range.
const HALVINGS: u32 = 60;

/// Returns the rows of results. The second value has a sentence for each job or group of jobs that
/// was left out.
pub fn table(results: &[ToolResult]) -> (Table, Vec<String>) {
    let mut table = Table::default();
    let mut left_out: Vec<String> = Vec::new();
    for result in results {
        // A total becomes a row only if its parts are missing.
        let has_parts = result.parts.iter().any(|part| !part.is_total);
        let parts = result.parts.iter().filter(|part| !has_parts || !part.is_total);
        for parts in concurrent(parts) {
            match row_of_group(&parts, table.rows.len() + 1) {
                Ok(row) => table.rows.push(row),
                Err(why) => left_out.push(format!("{}: {why}", name(result, &parts))),
            }
        }
    }
    table.rows_left_out = left_out.len();
    (table, left_out)
}

/// Groups parts that ran at the same time: jobs of one group, or clients and ranks of one job.
fn concurrent<'p>(parts: impl Iterator<Item = &'p Part>) -> Vec<Vec<&'p Part>> {
    let mut groups: Vec<Vec<&Part>> = Vec::new();
    for part in parts {
        let is_client = |part: &Part| part.host.is_some() || part.rank.is_some();
        let together = |group: &&mut Vec<&Part>| match (&part.group, &group[0].group) {
            (Some(own), Some(other)) => own == other,
            (None, None) => is_client(part) && is_client(group[0]) && part.name == group[0].name,
            _ => false,
        };
        match groups.iter_mut().find(together) {
            Some(group) => group.push(part),
            None => groups.push(vec![part]),
        }
    }
    groups
}

fn name(result: &ToolResult, parts: &[&Part]) -> String {
    let first = parts.first().map_or("", |part| part.name.as_str());
    let mut name = result.label();
    if !first.is_empty() {
        name = format!("{name} {first}");
    }
    match parts.len() {
        0 | 1 => name,
        2 => format!("{name} and the job that ran at the same time"),
        n => format!("{name} and {} jobs that ran at the same time", n - 1),
    }
}

/// Returns the row for jobs that ran at the same time. It is the sum of these jobs.
fn row_of_group(parts: &[&Part], line: usize) -> Result<Row, String> {
    let mut rows = Vec::new();
    for part in parts {
        rows.push(row(part, line)?);
    }
    let first = rows.first().ok_or("the result has no job")?;
    let windows = parts.iter().map(|part| part.window_ns.as_ref().map(|window| window.value));
    let windows: Vec<f64> = windows.flatten().collect();
    let longest = windows.iter().copied().fold(0.0, f64::max);
    if parts.len() > 1 && windows.iter().any(|window| *window < COMMON_TIME_MIN * longest) {
        return Err("the jobs that ran at the same time did not end at the same time".into());
    }
    if rows.iter().any(|row| (row.io_bytes, row.pattern) != (first.io_bytes, first.pattern)) {
        return Err("jobs with other block sizes or patterns ran at the same time".into());
    }
    let mut writers = rows.iter().filter(|row| row.write_ops_per_s.is_some());
    let durable = writers.next().is_some_and(|row| row.durable);
    if writers.any(|row| row.durable != durable) {
        return Err("only some of the jobs that ran at the same time have durable writes".into());
    }
    let sum = |of: fn(&Row) -> Option<f64>| -> Option<f64> {
        let values: Vec<f64> = rows.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    let ops_per_s: f64 = rows.iter().map(|row| row.ops_per_s).sum();
    let read_ops_per_s = sum(|row| row.read_ops_per_s);
    let measured = read_ops_per_s.unwrap_or(0.0) / ops_per_s;
    let stated = parts[0].setting.read_percent.as_ref().map(|percent| percent.value / 100.0);
    let stated = stated.filter(|stated| (stated - measured).abs() <= READ_SHARE_TOLERANCE);
    let depth: f64 = rows.iter().filter_map(|row| row.depth).map(f64::from).sum();
    if depth > DEPTH_MAX {
        return Err(format!("it had more than {DEPTH_MAX} operations in flight"));
    }
    let in_flight_ms: f64 = rows.iter().map(|row| row.ops_per_s * row.latency_ms).sum();
    Ok(Row {
        durable,
        read_share: Some(stated.unwrap_or(measured)),
        depth: Some(depth as u32),
        ops_per_s,
        latency_ms: in_flight_ms / ops_per_s,
        latency_p99_ms: percentile_ns(parts, 0.99).map(|ns| ns / 1e6),
        read_ops_per_s,
        write_ops_per_s: sum(|row| row.write_ops_per_s),
        ..first.clone()
    })
}

/// Returns a latency percentile over all reads and writes of all parts. Between the percentiles
/// that the tool states, the logarithm of the latency is interpolated linearly. `None` if an
/// operation has no percentiles.
fn percentile_ns(parts: &[&Part], quantile: f64) -> Option<f64> {
    let mut curves = Vec::new();
    for part in parts {
        for operation in &part.operations {
            if operation.is_idle() || !matches!(operation.kind, Kind::Read | Kind::Write) {
                continue;
            }
            let weight = rate(operation, part)?;
            let latency = latency_of(operation, |latency| !latency.percentiles.is_empty())?;
            let points = latency.percentiles.iter().map(|p| (p.quantile, p.ns.value.max(1.0)));
            let mut points: Vec<(f64, f64)> = points.collect();
            points.extend(latency.min_ns.as_ref().map(|min| (0.0, min.value.max(1.0))));
            points.extend(latency.max_ns.as_ref().map(|max| (1.0, max.value.max(1.0))));
            points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            curves.push((weight, points));
        }
    }
    let total: f64 = curves.iter().map(|(weight, _)| weight).sum();
    let ends = curves.iter().flat_map(|(_, points)| points.iter().map(|(_, ns)| *ns));
    let (mut low, mut high) =
        ends.fold((f64::INFINITY, 0.0), |(low, high), ns| (ns.min(low), ns.max(high)));
    if total <= 0.0 || high <= 0.0 {
        return None;
    }
    for _ in 0..HALVINGS {
        let middle = libm::sqrt(low * high);
        let below: f64 = curves.iter().map(|(weight, p)| weight * share_below(p, middle)).sum();
        if below < quantile * total { low = middle } else { high = middle }
    }
    Some(high)
}

/// Returns the share of operations that took at most `ns`. `points`: shares and their percentiles,
/// in ascending order.
fn share_below(points: &[(f64, f64)], ns: f64) -> f64 {
    let at = points.partition_point(|(_, point)| *point <= ns);
    match (at.checked_sub(1).and_then(|before| points.get(before)), points.get(at)) {
        (Some((from, low)), Some((to, high))) => {
            from + (to - from) * libm::log(ns / low) / libm::log(high / low)
        }
        (Some(_), None) => 1.0,
        (None, _) => 0.0,
    }
}

fn row(part: &Part, line: usize) -> Result<Row, String> {
    let setting = &part.setting;
    if let Some(reason) = &setting.no_storage {
        return Err(reason.clone());
    }
    if setting.rate_limit_per_s.is_some() || setting.bandwidth_limit_per_s.is_some() {
        return Err("its rate was limited by an option".into());
    }
    if setting.direct == Some(false) {
        return Err("it was buffered, so the page cache affects its figures".into());
    }
    let of = |kind: &Kind| part.operations.iter().find(|o| o.kind == *kind && !o.is_idle());
    let (reads, writes) = (of(&Kind::Read), of(&Kind::Write));
    let all: Vec<&Operation> = reads.into_iter().chain(writes).collect();
    let failed = |errors: Option<f64>| errors.is_some_and(|count| count > 0.0);
    if failed(part.errors.as_ref().map(|f| f.value))
        || all.iter().any(|o| failed(o.errors.as_ref().map(|f| f.value)))
    {
        return Err("operations failed".into());
    }
    if writes.is_some() && setting.durability == Some(Durability::Flushed) {
        return Err(
            "its writes waited for flushes, but their latency does not include the time of the \
             flushes"
                .into(),
        );
    }
    let pattern = match setting.pattern {
        Some(ToolPattern::Random) => Pattern::Random,
        Some(ToolPattern::Sequential) => Pattern::Sequential,
        None => return Err("its access pattern is not known".into()),
    };
    let mut sizes = all.iter().map(|o| o.size_bytes.as_ref().map(|f| f.value as u64));
    let io_bytes = match sizes.next() {
        None => return Err("it has no reads or writes".into()),
        Some(Some(size)) if size > 0 && sizes.all(|other| other == Some(size)) => size,
        Some(_) => return Err("its block size is unknown, or it has several block sizes".into()),
    };
    let rate = |operation: Option<&Operation>| match operation {
        None => Ok(0.0),
        Some(operation) => rate(operation, part).ok_or("a rate is not known"),
    };
    let (reads_per_s, writes_per_s) = (rate(reads)?, rate(writes)?);
    let ops_per_s = reads_per_s + writes_per_s;
    let mut sum_ns = 0.0;
    for (operation, per_s) in [(reads, reads_per_s), (writes, writes_per_s)] {
        let Some(operation) = operation else { continue };
        sum_ns += per_s * mean_ns(operation).ok_or("a mean latency is not known")?;
    }
    let outstanding = setting.outstanding.as_ref().filter(|o| o.most.value >= 1.0);
    let outstanding = outstanding.ok_or("its queue depth is not known")?;
    if !outstanding.kept {
        return Err("it did not always have as many operations in flight as its queue depth".into());
    }
    if ops_per_s <= 0.0 || sum_ns <= 0.0 {
        return Err("its rate or its latency is 0".into());
    }
    let latency_ms = sum_ns / ops_per_s / 1e6;
    if let Some(reason) = implausible(Some(io_bytes), ops_per_s, latency_ms) {
        return Err(reason);
    }
    Ok(Row {
        line,
        io_bytes: Some(io_bytes),
        pattern,
        read_share: Some(reads_per_s / ops_per_s),
        durable: setting.durability == Some(Durability::EachWrite),
        clients: None,
        depth: Some(outstanding.most.value as u32),
        bandwidth_mb_per_s: None,
        ops_per_s,
        latency_ms,
        latency_p99_ms: None,
        read_ops_per_s: reads.map(|_| reads_per_s),
        write_ops_per_s: writes.map(|_| writes_per_s),
    })
}

/// Returns the operations per second, as stated by the tool or computed from counts.
fn rate(operation: &Operation, part: &Part) -> Option<f64> {
    let window_ns = operation.window_ns.as_ref().or(part.window_ns.as_ref());
    let counted = operation.count.first().zip(window_ns);
    let counted = counted.map(|(count, window)| count.value / (window.value / 1e9));
    let stated = operation.rate_per_s.first().map(|figure| figure.value);
    stated.or(counted).filter(|rate| rate.is_finite())
}

/// Returns the mean latency since the submission. If the tool did not state it, returns the mean
/// latency since the next best stage.
fn mean_ns(operation: &Operation) -> Option<f64> {
    let latency = latency_of(operation, |latency| latency.mean_ns.is_some())?;
    latency.mean_ns.as_ref().map(|figure| figure.value)
}

/// Returns the latencies since the submission if the tool stated them, otherwise those since the
/// next best stage.
fn latency_of(operation: &Operation, has: impl Fn(&Latency) -> bool) -> Option<&Latency> {
    [Stage::Total, Stage::Completion, Stage::Unstated].into_iter().find_map(|stage| {
        operation.latencies.iter().find(|latency| latency.stage == stage && has(latency))
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Outstanding, Percentile};

    use super::*;

    fn figure(value: f64) -> Figure {
        Figure::exact(value, "field")
    }

    fn operation(kind: Kind, rate_per_s: f64, mean_ns: f64) -> Operation {
        let latency = Latency { mean_ns: Some(figure(mean_ns)), ..Latency::default() };
        Operation {
            size_bytes: Some(figure(4096.0)),
            rate_per_s: vec![figure(rate_per_s)],
            latencies: vec![latency],
            ..Operation::of(kind)
        }
    }

    fn job() -> Part {
        let mut part = Part { name: "mixed".into(), ..Part::default() };
        part.setting.pattern = Some(ToolPattern::Random);
        part.setting.outstanding = Some(Outstanding { most: figure(8.0), kept: true });
        part.operations =
            vec![operation(Kind::Read, 3000.0, 1e6), operation(Kind::Write, 1000.0, 3e6)];
        part
    }

    fn result(parts: Vec<Part>) -> ToolResult {
        ToolResult { parts, ..ToolResult::default() }
    }

    #[test]
    fn a_job_is_a_row_with_the_mean_of_its_operations() {
        let total = Part { is_total: true, ..job() };
        let (table, left_out) = table(&[result(vec![job(), total])]);
        assert_eq!((table.rows.len(), left_out), (1, vec![]), "a total is not added to its parts");
        let row = &table.rows[0];
        assert!(!row.durable);
        assert_eq!((row.io_bytes, row.depth, row.read_share), (Some(4096), Some(8), Some(0.75)));
        assert_eq!((row.ops_per_s, row.latency_ms), (4000.0, 1.5));
        let mut part = job();
        part.setting.durability = Some(Durability::EachWrite);
        assert!(super::table(&[result(vec![part])]).0.rows[0].durable);
    }

    /// Returns a clone of `job` in a group, with the given run time.
    fn clone_of(group: &str, seconds: f64) -> Part {
        let window_ns = Some(figure(seconds * 1e9));
        Part { group: Some(group.to_owned()), window_ns, ..job() }
    }

    #[test]
    fn jobs_that_ran_at_the_same_time_are_one_row() {
        let mut slow = clone_of("0", 60.0);
        slow.operations[0].rate_per_s = vec![figure(1500.0)];
        slow.operations[0].latencies[0].mean_ns = Some(figure(2e6));
        let parts = vec![clone_of("0", 59.0), slow, clone_of("1", 10.0)];
        let (table, left_out) = table(&[result(parts)]);
        assert_eq!((table.rows.len(), left_out), (2, vec![]));
        let row = &table.rows[0];
        assert_eq!(
            (row.depth, row.ops_per_s, row.read_ops_per_s),
            (Some(16), 6500.0, Some(4500.0))
        );
        // 3,000 reads of 1 ms, 1,500 of 2 ms and 2,000 writes of 3 ms in a second.
        assert!((row.latency_ms - 12.0 / 6.5).abs() < 1e-9, "{row:?}");
        assert_eq!(row.read_share, Some(4500.0 / 6500.0), "no share of reads is stated");
        // Clients of one job are also parts of the job.
        let client = |host: &str| Part { host: Some(host.to_owned()), ..job() };
        let table = super::table(&[result(vec![client("a"), client("b")])]).0;
        assert_eq!((table.rows.len(), table.rows[0].ops_per_s), (1, 8000.0));
    }

    #[test]
    fn jobs_that_differ_from_those_beside_them_are_left_out() {
        let changes: [(fn(&mut Part), &str); 5] = [
            (|p| p.window_ns = Some(figure(40e9)), "end at the same time"),
            (
                |p| p.operations.iter_mut().for_each(|o| o.size_bytes = Some(figure(8192.0))),
                "sizes",
            ),
            (|p| p.setting.pattern = Some(ToolPattern::Sequential), "patterns"),
            (|p| p.setting.durability = Some(Durability::EachWrite), "durable"),
            (|p| p.setting.rate_limit_per_s = Some(figure(100.0)), "limited"),
        ];
        for (change, word) in changes {
            let mut other = clone_of("0", 60.0);
            change(&mut other);
            let (table, left_out) = table(&[result(vec![clone_of("0", 60.0), other])]);
            assert!(table.rows.is_empty() && left_out[0].contains(word), "{word}: {left_out:?}");
            assert!(
                left_out[0].contains("mixed and the job that ran at the same time"),
                "{left_out:?}"
            );
        }
        let mut deep = job();
        deep.setting.outstanding = Some(Outstanding { most: figure(4e9), kept: true });
        let (table, left_out) = table(&[result(vec![deep])]);
        assert!(table.rows.is_empty() && left_out[0].contains("in flight"), "{left_out:?}");
    }

    #[test]
    fn a_percentile_of_all_operations_is_between_those_of_its_parts() {
        let with = |percentiles: &[(f64, f64)], part: &mut Part, at: usize| {
            let one =
                |(quantile, ns): &(f64, f64)| Percentile { quantile: *quantile, ns: figure(*ns) };
            part.operations[at].latencies[0].percentiles = percentiles.iter().map(one).collect();
        };
        let mut part = job();
        with(&[(0.5, 1e5), (0.99, 1e6), (1.0, 1e7)], &mut part, 0);
        assert_eq!(percentile_ns(&[&part], 0.99), None, "the writes have no percentiles");
        part.operations.truncate(1);
        let alone = percentile_ns(&[&part], 0.99).unwrap();
        assert!((alone / 1e6 - 1.0).abs() < 1e-6, "{alone}");
        // A quarter of the operations are writes that take at least 20 ms, so the 99th percentile
        // of all operations is the 96th percentile of the writes.
        let mut part = job();
        with(&[(0.5, 1e5), (1.0, 1e6)], &mut part, 0);
        with(&[(0.0, 2e7), (0.96, 4e7), (1.0, 8e7)], &mut part, 1);
        let all = percentile_ns(&[&part], 0.99).unwrap();
        assert!((all / 4e7 - 1.0).abs() < 1e-6, "{all}");
    }

    #[test]
    fn jobs_that_are_no_closed_loop_are_left_out() {
        let changes: [(fn(&mut Part), &str); 10] = [
            (|p| p.setting.durability = Some(Durability::Flushed), "flushes"),
            (|p| p.setting.rate_limit_per_s = Some(figure(100.0)), "limited"),
            (|p| p.setting.direct = Some(false), "buffered"),
            (|p| p.setting.no_storage = Some("no I/O".into()), "no I/O"),
            (|p| p.setting.pattern = None, "pattern"),
            (|p| p.setting.outstanding = None, "queue depth is not known"),
            (|p| p.setting.outstanding.as_mut().unwrap().kept = false, "not always"),
            (|p| p.operations[1].size_bytes = Some(figure(8192.0)), "block size"),
            (|p| p.operations[0].latencies.clear(), "latency"),
            (|p| p.errors = Some(figure(1.0)), "failed"),
        ];
        for (change, word) in changes {
            let mut part = job();
            change(&mut part);
            let (table, left_out) = table(&[result(vec![part])]);
            assert!(table.rows.is_empty() && left_out[0].contains(word), "{word}: {left_out:?}");
        }
    }
}
