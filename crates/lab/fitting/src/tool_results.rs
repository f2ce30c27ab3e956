//! Results of other tools as the table that a model is fitted to: one row for each job.
//!
//! A model is fitted to what storage does with a closed loop, so jobs with a rate limit, think time,
//! buffered I/O, separate flushes or errors are left out, with the reason.

use plimsoll_evidence::tool_result::{
    Durability, Kind, Latency, Operation, Part, Pattern as ToolPattern, Stage, ToolResult,
};
use plimsoll_model::fit::{Row, Table};
use plimsoll_model::run::Pattern;

/// Returns the rows of results. The second value has one sentence for each job without a row.
pub fn table(results: &[ToolResult]) -> (Table, Vec<String>) {
    let mut table = Table::default();
    let mut left_out: Vec<String> = Vec::new();
    for result in results {
        // A total is only a row of its own if its parts are not there.
        let has_parts = result.parts.iter().any(|part| !part.is_total);
        for part in result.parts.iter().filter(|part| !has_parts || !part.is_total) {
            match row(part, table.rows.len() + 1) {
                Ok(row) => table.rows.push(row),
                Err(why) => left_out.push(format!("{}: {why}", name(result, part))),
            }
        }
    }
    table.rows_left_out = left_out.len();
    (table, left_out)
}

fn name(result: &ToolResult, part: &Part) -> String {
    match part.name.as_str() {
        "" => result.label(),
        name => format!("{} {name}", result.label()),
    }
}

fn row(part: &Part, line: usize) -> Result<Row, String> {
    let setting = &part.setting;
    if setting.performs_nothing {
        return Err("its engine performs no I/O".into());
    }
    if setting.rate_limit_per_s.is_some() || setting.bandwidth_limit_per_s.is_some() {
        return Err("its rate was limited".into());
    }
    if setting.direct == Some(false) {
        return Err("it was buffered, so the page cache is part of its figures".into());
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
        return Err("its writes waited for flushes, whose time is not part of their latency".into());
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
        Some(_) => return Err("its block size is not one known size".into()),
    };
    let rate = |operation: Option<&Operation>| match operation {
        None => Ok(0.0),
        Some(operation) => {
            let window_ns = operation.window_ns.as_ref().or(part.window_ns.as_ref());
            let counted = operation.count.first().zip(window_ns);
            let counted = counted.map(|(count, window)| count.value / (window.value / 1e9));
            let rate = operation.rate_per_s.first().map(|f| f.value).or(counted);
            rate.filter(|rate| rate.is_finite()).ok_or("a rate is not known")
        }
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
        return Err("it did not always have its queue depth in flight".into());
    }
    if ops_per_s <= 0.0 || sum_ns <= 0.0 {
        return Err("its rate or its latency is 0".into());
    }
    Ok(Row {
        line,
        io_bytes: Some(io_bytes),
        pattern,
        read_share: Some(reads_per_s / ops_per_s),
        durable: setting.durability == Some(Durability::EachWrite),
        depth: Some(outstanding.most.value as u32),
        bandwidth_mb_per_s: None,
        ops_per_s,
        latency_ms: sum_ns / ops_per_s / 1e6,
        read_ops_per_s: reads.map(|_| reads_per_s),
        write_ops_per_s: writes.map(|_| writes_per_s),
    })
}

/// Returns the mean latency from the submission, or from the next best stage.
fn mean_ns(operation: &Operation) -> Option<f64> {
    let of = |stage: Stage| {
        let at = |latency: &&Latency| latency.stage == stage && latency.mean_ns.is_some();
        operation.latencies.iter().find(at)?.mean_ns.as_ref().map(|f| f.value)
    };
    [Stage::Total, Stage::Completion, Stage::Unstated].into_iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Outstanding};

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

    #[test]
    fn jobs_that_are_no_closed_loop_are_left_out() {
        let changes: [(fn(&mut Part), &str); 10] = [
            (|p| p.setting.durability = Some(Durability::Flushed), "flushes"),
            (|p| p.setting.rate_limit_per_s = Some(figure(100.0)), "limited"),
            (|p| p.setting.direct = Some(false), "buffered"),
            (|p| p.setting.performs_nothing = true, "no I/O"),
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
