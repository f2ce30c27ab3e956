//! elbencho's live statistics (`--livecsv`). Each row describes an interval: the work since the
//! start, and the rates during the interval.
//!
//! The last row of a phase contains the result of the phase; the earlier rows show its progress.
//! Rows of single workers are skipped, because the row `Total` contains their sum. Rates and
//! latencies are truncated to whole numbers.

use plimsoll_evidence::tool_result::{
    Figure, Kind, Latency, Operation, Part, Point, Quantity, Series, Stage, ToolResult,
};

use crate::parts::{Columns, Digits, source, unix_s};

const MIB: f64 = 1024.0 * 1024.0;
const NS_PER_MS: f64 = 1e6;
const NS_PER_US: f64 = 1e3;
/// Columns that identify the format.
const COLUMNS: [&str; 7] =
    ["ISO Date", "Phase", "RuntimeMS", "Rank", "DoneBytes", "MiB/s", "Lat IO us"];
/// Maximum relative error of an interval's length, because elbencho does not write the rows at
/// exact times.
const INTERVAL_SLACK: f64 = 0.02;

/// Returns true if the text is a table of elbencho's live statistics.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(is_header)
}

fn is_header(line: &str) -> bool {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    COLUMNS.iter().all(|name| cells.contains(name))
}

/// A row of the table.
struct Row {
    ms: f64,
    done_bytes: Option<f64>,
    mib_per_s: Option<f64>,
    iops: Option<f64>,
    latency_us: Option<f64>,
    line: usize,
    taken_unix_s: Option<f64>,
}

/// Reads all phases of a file.
///
/// # Errors
/// The file contains no row of a phase.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut header: Vec<&str> = Vec::new();
    let mut phases: Vec<(String, Vec<Row>)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if is_header(line) {
            header = cells;
            continue;
        }
        if header.is_empty() || line.trim().is_empty() {
            continue;
        }
        if cells.len() < header.len() {
            let (is, should) = (cells.len(), header.len());
            return Err(format!(
                "line {} contains {is} cells, but the header has {should}",
                index + 1
            ));
        }
        let row = Columns::of(&header, cells, index + 1);
        if row.text("Rank").is_some_and(|rank| rank != "Total") {
            continue;
        }
        let number = |name: &str| row.figure(name, Digits::Exact, 1.0).map(|figure| figure.value);
        let Some(ms) = number("RuntimeMS").filter(|ms| *ms > 0.0) else { continue };
        let words = ["Label", "Phase", "MixType"].map(|name| row.text(name).unwrap_or_default());
        let phase = words.join(" ").trim().to_owned();
        let row = Row {
            ms,
            done_bytes: number("DoneBytes"),
            mib_per_s: number("MiB/s"),
            iops: number("IOPS"),
            latency_us: number("Lat IO us"),
            line: index + 1,
            taken_unix_s: row.text("ISO Date").and_then(unix_s),
        };
        match phases.last_mut() {
            Some((last, rows)) if *last == phase && rows.last().is_some_and(|r| r.ms < ms) => {
                rows.push(row);
            }
            _ => phases.push((phase, vec![row])),
        }
    }
    if phases.is_empty() {
        return Err("it contains a header but no rows".into());
    }
    Ok(phases.iter().map(|(phase, rows)| of_phase(phase, rows, file)).collect())
}

fn of_phase(phase: &str, rows: &[Row], file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("elbencho", "elbencho live CSV", file));
    let words = phase.to_ascii_uppercase();
    let kind = match () {
        () if words.contains("WRITE") => Kind::Write,
        () if words.contains("READ") => Kind::Read,
        () => Kind::Name(phase.to_ascii_lowercase()),
    };
    let mut part = Part { name: phase.to_owned(), ..Part::default() };
    let mut operation = Operation::of(kind.clone());
    if let [first, .., last] | [first @ last] = rows {
        reported.source.place = Some(format!("line {}", first.line));
        reported.source.taken_unix_s = last.taken_unix_s;
        let place = |name: &str| format!("line {} ({name})", last.line);
        part.window_ns = Some(Figure::exact(last.ms * NS_PER_MS, place("RuntimeMS")));
        let done = last.done_bytes.filter(|bytes| *bytes > 0.0);
        operation.bytes.extend(done.map(|bytes| Figure::exact(bytes, place("DoneBytes"))));
        let span = |name: &str| format!("lines {} to {} ({name})", first.line, last.line);
        let bytes = summed(rows, MIB, &span("MiB/s"), |row| row.mib_per_s);
        operation.bytes.extend(bytes.filter(|_| done.is_some()));
        operation.count.extend(summed(rows, 1.0, &span("IOPS"), |row| row.iops));
        operation.latencies.extend(mean_latency(rows, &span("Lat IO us")));
    }
    for (quantity, unit, name, of) in [
        (Quantity::BandwidthPerS, MIB, "MiB/s", (|row| row.mib_per_s) as fn(&Row) -> Option<f64>),
        (Quantity::RatePerS, 1.0, "IOPS", |row| row.iops),
        (Quantity::LatencyNs, NS_PER_US, "Lat IO us", |row| row.latency_us),
    ] {
        let points: Vec<Point> = rows
            .iter()
            .filter_map(|row| Some(Point { at_s: row.ms / 1e3, value: of(row)? * unit }))
            .collect();
        let interval_s = rows.windows(2).map(|pair| (pair[1].ms - pair[0].ms) / 1e3).next();
        if points.len() > 1 && points.iter().any(|point| point.value > 0.0) {
            part.series.push(Series {
                quantity,
                kind: kind.clone(),
                stage: Stage::Total,
                field: name.to_owned(),
                interval_s,
                points,
                partial: false,
                understates: false,
            });
        }
    }
    part.operations.push(operation);
    reported.parts.push(part);
    reported
}

/// Returns the time of a row's interval, in seconds.
fn interval_s(rows: &[Row], index: usize) -> f64 {
    let before = index.checked_sub(1).map_or(0.0, |before| rows[before].ms);
    (rows[index].ms - before) / 1e3
}

/// Returns the sum of rate × time over the intervals. Returns `None` if a row lacks the rate, or if
/// no work was done.
fn summed(
    rows: &[Row],
    unit: f64,
    field: &str,
    of: impl Fn(&Row) -> Option<f64>,
) -> Option<Figure> {
    let (mut least, mut most, mut sum) = (0.0, 0.0, 0.0);
    for (index, row) in rows.iter().enumerate() {
        let (rate, seconds) = (of(row)?, interval_s(rows, index));
        sum += rate * seconds;
        least += rate * seconds * (1.0 - INTERVAL_SLACK);
        most += (rate + 1.0) * seconds * (1.0 + INTERVAL_SLACK);
    }
    let figure = Figure { value: sum, least, most, field: field.to_owned() };
    (sum > 0.0).then(|| figure.scaled(unit))
}

/// Returns the mean of the intervals' latencies, weighted by the operations of each interval.
fn mean_latency(rows: &[Row], field: &str) -> Option<Latency> {
    let (mut sum_us, mut operations) = (0.0, 0.0);
    for (index, row) in rows.iter().enumerate() {
        let count = row.iops? * interval_s(rows, index);
        sum_us += row.latency_us? * count;
        operations += count;
    }
    let mean_us = (operations > 0.0 && sum_us > 0.0).then(|| sum_us / operations)?;
    let mean_ns = Figure::within(mean_us, 1.0 + mean_us * INTERVAL_SLACK, field).scaled(NS_PER_US);
    Some(Latency { stage: Stage::Total, mean_ns: Some(mean_ns), ..Latency::default() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LIVE: &str = "ISO \
                        Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,Lat \
                        Ent us,Lat IO \
                        us,Active,CPU,Service,\n2025-12-20T12:08:01.821-0600,,READ,1000,Total,,30,104857600,100,200,0,0,0,10000,8,5,,\n2025-12-20T12:08:01.821-0600,,READ,1000,0,,30,52428800,50,100,0,0,0,10000,8,5,,\n2025-12-20T12:08:02.821-0600,,READ,2000,Total,,100,314572800,200,400,0,0,0,20000,8,5,,\n";

    #[test]
    fn the_last_row_of_a_phase_is_its_result() {
        assert!(is(LIVE));
        let all = read(LIVE, "live.csv").unwrap();
        let part = &all[0].parts[0];
        let reads = &part.operations[0];
        assert_eq!((all.len(), &reads.kind), (1, &Kind::Read));
        assert_eq!((reads.bytes[0].value, reads.bytes[1].value), (314_572_800.0, 314_572_800.0));
        assert_eq!(part.window_ns.as_ref().unwrap().value, 2e9);
        assert!((reads.count[0].value - 600.0).abs() < 1e-6);
        let mean = reads.latencies[0].mean_ns.as_ref().unwrap().value;
        assert!((mean - 16_666_666.7).abs() < 1.0, "{mean}");
        assert_eq!(part.series.len(), 3);
    }

    #[test]
    fn a_shorter_run_time_begins_another_phase() {
        let twice = LIVE.replace("READ,2000", "READ,900");
        assert_eq!(read(&twice, "live.csv").unwrap().len(), 2);
        assert!(read(LIVE.lines().next().unwrap(), "live.csv").is_err());
        assert!(read(&LIVE.replace(",8,5,,", ""), "live.csv").is_err());
    }
}
