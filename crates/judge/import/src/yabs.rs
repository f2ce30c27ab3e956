//! Table of fio's rates that YABS prints (M. Rowe, "Yet-Another-Bench-Script"). It has a column for
//! each block size.
//!
//! YABS shortens fio's KiB/s by powers of 1000, so `201.04 MB/s` is 201,040 KiB/s. Each block size
//! is a separate run of fio with half reads and half writes.

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Pattern, Setting, ToolResult};

use crate::number;
use crate::parts::source;

const KIB: f64 = 1024.0;

/// Returns true if the text is the output of YABS.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("fio Disk Speed Tests"))
}

/// Reads the table, and returns a result for each block size.
///
/// # Errors
/// The text contains no such table.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut all: Vec<ToolResult> = Vec::new();
    // Indices of the results to which the current rows belong.
    let mut columns: Vec<usize> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut cells = line.split('|').map(str::trim);
        let word = cells.next().unwrap_or_default();
        let cells: Vec<&str> = cells.collect();
        if word == "Block Size" {
            columns.clear();
            for cell in cells.iter().filter(|cell| cell.contains("(IOPS)")) {
                let size = cell.split_whitespace().next().unwrap_or_default();
                columns.push(all.len());
                all.push(of_size(size, index + 1, file)?);
            }
            continue;
        }
        let kind = match word {
            "Read" => Kind::Read,
            "Write" => Kind::Write,
            _ => continue,
        };
        for (cell, column) in cells.iter().zip(&columns) {
            let Some(result) = all.get_mut(*column) else { continue };
            let size = result.parts.first().and_then(|part| part.operations.first());
            let size_bytes = size.and_then(|operation| operation.size_bytes.clone());
            let operation = rates(cell, kind.clone(), index + 1);
            if let (Some(operation), Some(part)) = (operation, result.parts.first_mut()) {
                part.operations.push(Operation { size_bytes, ..operation });
            }
        }
    }
    // The first operation is a placeholder that contains only the size.
    for part in all.iter_mut().flat_map(|result| &mut result.parts) {
        part.operations.remove(0);
    }
    all.retain(|result| result.operations().next().is_some());
    if all.is_empty() { Err("it contains no rates of fio".into()) } else { Ok(all) }
}

fn of_size(size: &str, line: usize, file: &str) -> Result<ToolResult, String> {
    let bytes = crate::fio_job::size_bytes(size)
        .ok_or_else(|| format!("line {line}: {size:?} is not a block size"))?;
    let mut reported = ToolResult::new(source("fio", "YABS text", file));
    reported.source.place = Some(format!("{size} blocks"));
    let size_bytes = Some(Figure::exact(bytes as f64, format!("line {line} (Block Size)")));
    let operations = vec![Operation { size_bytes, ..Operation::default() }];
    let setting = Setting {
        pattern: Some(Pattern::Random),
        read_percent: Some(Figure::exact(50.0, "Mixed R/W 50/50")),
        ..Setting::default()
    };
    reported.parts.push(Part { setting, operations, ..Part::default() });
    Ok(reported)
}

/// Parses `201.04 MB/s  (50.2k)`.
fn rates(cell: &str, kind: Kind, line: usize) -> Option<Operation> {
    let (speed, rate) = cell.split_once('(')?;
    let (digits, unit) = speed.trim().split_once(' ')?;
    let kib = match unit.trim() {
        "KB/s" => 1.0,
        "MB/s" => 1e3,
        "GB/s" => 1e6,
        _ => return None,
    };
    let speed = number::plain(digits)?;
    let rate = rate.trim().trim_end_matches(')');
    let (digits, factor) = rate.strip_suffix('k').map_or((rate, 1.0), |digits| (digits, 1e3));
    let rate = number::plain(digits.trim())?;
    let mut operation = Operation::of(kind);
    // fio truncates bandwidth and rate to whole numbers before YABS rounds them.
    let speed = Figure::within(speed.value, speed.step, format!("line {line} (speed)"));
    let rate = Figure::within(rate.value, rate.step, format!("line {line} (IOPS)"));
    operation.bandwidth_per_s.push(speed.scaled(kib * KIB));
    operation.rate_per_s.push(rate.scaled(factor));
    Some(operation)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const YABS: &str = "fio Disk Speed Tests (Mixed R/W 50/50) (Partition /dev/sda1):\n\
        ---------------------------------\n\
        Block Size | 4k            (IOPS) | 64k           (IOPS)\n\
        \x20 ------   | ---            ----  | ----           ---- \n\
        Read       | 201.04 MB/s  (50.2k) | 2.09 GB/s    (32.7k)\n\
        Write      | 201.57 MB/s  (50.3k) | 2.10 GB/s    (32.8k)\n\
        Total      | 402.61 MB/s (100.6k) | 4.19 GB/s    (65.5k)\n";

    #[test]
    fn a_column_is_a_run() {
        assert!(is(YABS));
        let all = read(YABS, "yabs.txt").unwrap();
        assert_eq!(all.len(), 2);
        let reads = &all[0].parts[0].operations[0];
        assert_eq!((&reads.kind, reads.rate_per_s[0].value), (&Kind::Read, 50_200.0));
        assert!((reads.bandwidth_per_s[0].value - 201_040.0 * 1024.0).abs() < 1.0);
        assert_eq!(reads.size_bytes.as_ref().unwrap().value, 4096.0);
        assert_eq!(all[1].parts[0].operations.len(), 2);
        assert!(read("fio Disk Speed Tests\n", "yabs.txt").is_err());
    }
}
