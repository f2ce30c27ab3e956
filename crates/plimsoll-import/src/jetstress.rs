//! Jetstress (Microsoft): the HTML report of a performance or stress test.
//!
//! Tables are told by the headings of their columns and rows, as their order differs between versions. The
//! achieved rate is the sum of the reads and writes of all databases; those of logs and of maintenance
//! are not in it.

use plimsoll_evidence::reported::{
    Combined, Complaint, Figure, How, Kind, Operation, Part, Reported, Stage, Weight,
};

use crate::parts::{Digits, figure, latency, source};

const NS_PER_MS: f64 = 1e6;
/// Share by which the achieved rate may lie off the sum of the rates: they are means of samples.
const ACHIEVED_SLACK: f64 = 0.005;

/// True for such a report.
#[must_use]
pub fn is(text: &str) -> bool {
    text.contains("Jetstress") && text.contains("<t") && text.contains("Transactional I/O")
}

/// A row of a table: the texts of its cells.
type Row = Vec<String>;

/// Rows of all tables, each with the number of its table.
fn rows(text: &str) -> Vec<(usize, Row)> {
    let (mut rows, mut table, mut cell): (Vec<(usize, Row)>, usize, Option<String>) =
        (Vec::new(), 0, None);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        if let Some(cell) = &mut cell {
            cell.push_str(&rest[..at]);
        }
        let Some(end) = rest[at..].find('>') else { break };
        let tag = rest[at + 1..at + end].trim().to_ascii_lowercase();
        rest = &rest[at + end + 1..];
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name {
            "table" => table += 1,
            "tr" => rows.push((table, Row::new())),
            "td" | "th" => cell = Some(String::new()),
            "/td" | "/th" => {
                if let (Some(text), Some((_, row))) = (cell.take(), rows.last_mut()) {
                    row.push(plain(&text));
                }
            }
            _ => {}
        }
    }
    rows
}

fn plain(text: &str) -> String {
    let text =
        text.replace("&nbsp;", " ").replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A number with or without commas between thousands.
fn number(text: &str, unit: f64, field: String) -> Option<Figure> {
    figure(&text.replace(',', ""), Digits::Rounded, unit, field)
}

/// Reads it.
///
/// # Errors
/// A report without the table of transactional I/O.
pub fn read(text: &str, file: &str) -> Result<Reported, String> {
    let rows = rows(text);
    let mut reported = Reported::of(source("Jetstress", "Jetstress HTML", file));
    let named = |name: &str| {
        let found = rows.iter().find(|(_, row)| row.first().is_some_and(|cell| cell == name));
        found.and_then(|(_, row)| row.get(1)).map(String::as_str)
    };
    reported.source.version = named("Jetstress Version").map(str::to_owned);
    for name in ["Overall Test Result", "Test Description", "Jetstress Version", "Thread count"] {
        let value = named(name).map(|value| (name.to_owned(), value.to_owned()));
        reported.options.extend(value);
    }
    if let Some(result) = named("Overall Test Result").filter(|word| word.contains("Fail")) {
        reported.complaints.push(Complaint {
            weight: Weight::Invalid,
            says: format!("Jetstress calls the test failed ({result})"),
            field: "Overall Test Result".into(),
        });
    }
    instances(&mut reported, &rows);
    if reported.parts.is_empty() {
        return Err("it has no table of transactional I/O with databases".into());
    }
    let achieved = named("Achieved Transactional I/O per Second");
    let name = "Achieved Transactional I/O per Second";
    if let Some(total) = achieved.and_then(|text| number(text, 1.0, name.to_owned())) {
        let database = reported.operations().filter(|(part, _)| part.name.ends_with("database"));
        let of: Vec<Figure> = database.filter_map(|(_, o)| o.rate_per_s.first().cloned()).collect();
        let what = "the achieved rate of all databases".to_owned();
        reported.combined.push(Combined { what, how: How::Sum, total, of, slack: ACHIEVED_SLACK });
    }
    Ok(reported)
}

/// The table that has a column of reads per second of databases: a row an instance.
fn instances(reported: &mut Reported, rows: &[(usize, Row)]) {
    let heading = |row: &Row| {
        let has = |word: &str| row.iter().any(|cell| cell.contains(word));
        has("Database Reads/sec") && has("Database Writes/sec") && has("Log Writes/sec")
    };
    let Some((table, header)) = rows.iter().find(|(_, row)| heading(row)) else { return };
    for (_, row) in rows.iter().filter(|(of, row)| of == table && row.len() == header.len()) {
        if row == header {
            continue;
        }
        let instance = row.first().cloned().unwrap_or_default();
        for scope in ["Database", "Log"] {
            let mut part =
                Part { name: format!("{instance} {}", scope.to_lowercase()), ..Part::default() };
            for (kind, word) in [(Kind::Read, "Reads"), (Kind::Write, "Writes")] {
                let take = |measure: &str, unit: f64| {
                    let name = format!("{scope} {word}{measure}");
                    let column = header.iter().position(|cell| cell.contains(&name))?;
                    number(row.get(column)?, unit, format!("{instance}, {name}"))
                };
                let mut operation = Operation::of(kind);
                operation.rate_per_s.extend(take("/sec", 1.0));
                operation.size_bytes = take(" Average Bytes", 1.0).filter(|size| size.value > 0.0);
                let mean = take(" Average Latency", NS_PER_MS).filter(|mean| mean.value > 0.0);
                operation.latencies.extend(latency(Stage::Total, |l| l.mean_ns = mean));
                if !operation.is_idle() && !operation.rate_per_s.is_empty() {
                    part.operations.push(operation);
                }
            }
            if !part.operations.is_empty() {
                reported.parts.push(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // The layout of Jetstress 2013, with figures of our own.
    const HTML: &str = "<html><h1>Microsoft Exchange Jetstress 2013</h1><fieldset><legend>Test Summary</legend><table>\
        <tr><td class=\"grid_row_header\">Overall Test Result</td><td class=\"success\">Pass</td></tr>\
        <tr><td>Jetstress Version</td><td>15.00.0775.000</td></tr></table></fieldset><fieldset><legend>Database Sizing \
        and Throughput</legend><table><tr><td>Achieved Transactional I/O per Second</td><td>1,300.500</td></tr></table>\
        </fieldset><fieldset><legend>Transactional I/O Performance</legend><table><tr><th>MSExchange Database ==&gt; \
        Instances</th><th>I/O Database Reads Average Latency (msec)</th><th>I/O Database Writes Average Latency (msec)</th>\
        <th>I/O Database Reads/sec</th><th>I/O Database Writes/sec</th><th>I/O Database Reads Average Bytes</th><th>I/O \
        Log Writes/sec</th></tr><tr><td>Instance1.1</td><td>12.500</td><td>0.900</td><td>400.250</td><td>250.000</td><td>\
        33120.500</td><td>60.1</td></tr><tr><td>Instance2.1</td><td>13.0</td><td>0.8</td><td>400.250</td><td>250.000</td>\
        <td>33120.500</td><td>60.0</td></tr></table></fieldset></html>";

    #[test]
    fn a_report_has_its_instances_and_their_sum() {
        assert!(is(HTML));
        let reported = read(HTML, "Performance.html").unwrap();
        assert_eq!(reported.source.version.as_deref(), Some("15.00.0775.000"));
        let names: Vec<&str> = reported.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names[..2], ["Instance1.1 database", "Instance1.1 log"]);
        let read_of_one = &reported.parts[0].operations[0];
        assert_eq!(read_of_one.latencies[0].mean_ns.as_ref().unwrap().value, 12.5e6);
        assert_eq!(read_of_one.size_bytes.as_ref().unwrap().value, 33120.5);
        let sum = &reported.combined[0];
        assert_eq!((sum.total.value, sum.of.len()), (1300.5, 4));
        assert!(reported.complaints.is_empty());
        let failed = read(&HTML.replace(">Pass<", ">Fail<"), "x").unwrap();
        assert_eq!(failed.complaints.len(), 1);
    }

    #[test]
    fn a_report_without_the_table_is_refused() {
        assert!(
            read("<html>Jetstress <table><tr><td>Transactional I/O</td></tr></table>", "x")
                .is_err()
        );
        assert!(read("<html>Jetstress <td <table", "x").is_err());
    }
}
