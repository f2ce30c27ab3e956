//! Report of a performance or stress test of Jetstress (Microsoft), as HTML or XML.
//!
//! Tables are identified by their column and row headings, because their order depends on the
//! version. The achieved rate is the sum of database reads and writes, without logs and
//! maintenance.

use plimsoll_evidence::tool_result::{
    Aggregate, Complaint, Figure, Formula, Kind, Operation, Part, Stage, ToolResult, Weight,
};

use crate::parts::{Digits, figure, latency, source};

const NS_PER_MS: f64 = 1e6;
/// Maximum relative deviation of the achieved rate from the sum of the databases' rates. These
/// rates are means of samples.
const ACHIEVED_SLACK: f64 = 0.005;

/// Returns true if the text is the HTML report.
#[must_use]
pub fn is(text: &str) -> bool {
    text.contains("Jetstress") && text.contains("<td") && text.contains("Transactional I/O")
}

/// Returns true if the text is the XML report. The report contains sections of named elements, and
/// the counters of each instance.
#[must_use]
pub fn is_xml(text: &str) -> bool {
    text.contains("<output") && text.contains("<disk-subsystem-total") && text.contains("counter")
}

/// Cells of a table row.
type Row = Vec<String>;

/// Returns the rows of all tables, each with the number of its table.
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

/// Parses a number, which may contain thousands separators.
fn number(text: &str, unit: f64, field: String) -> Option<Figure> {
    figure(&text.replace(',', ""), Digits::Rounded, unit, field)
}

/// Reads the HTML report.
///
/// # Errors
/// The report contains no table of transactional I/O.
pub fn read(text: &str, file: &str) -> Result<ToolResult, String> {
    let rows = rows(text);
    let mut reported = ToolResult::new(source("Jetstress", "Jetstress HTML", file));
    let named = |name: &str| {
        let found = rows.iter().find(|(_, row)| row.first().is_some_and(|cell| cell == name));
        found.and_then(|(_, row)| row.get(1)).cloned()
    };
    summary(&mut reported, named);
    instances(&mut reported, &rows);
    if reported.parts.is_empty() {
        return Err("it contains no table of transactional I/O with databases".into());
    }
    achieved(&mut reported, named);
    Ok(reported)
}

/// Reads the XML report.
///
/// # Errors
/// The text is not XML, or the report contains no database counters.
pub fn read_xml(text: &str, file: &str) -> Result<ToolResult, String> {
    let document = roxmltree::Document::parse(text).map_err(|error| error.to_string())?;
    let mut reported = ToolResult::new(source("Jetstress", "Jetstress XML", file));
    // The value of an element is an attribute or a child element.
    let of = |node: roxmltree::Node<'_, '_>, name: &str| -> Option<String> {
        let within = || node.children().find(|child| child.has_tag_name(name))?.text();
        node.attribute(name).or_else(within).map(|text| text.trim().to_owned())
    };
    let named = |name: &str| {
        let is = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name("element") && of(*node, "name").as_deref() == Some(name)
        };
        document.descendants().find(is).and_then(|node| of(node, "value"))
    };
    summary(&mut reported, named);
    // Maintenance and replication have separate sections, and are not part of these rates.
    let sections = document.descendants().filter(|node| node.has_tag_name("disk-subsystem-total"));
    for instance in sections
        .flat_map(|section| section.descendants())
        .filter(|node| node.has_tag_name("instance"))
    {
        let name = of(instance, "name").unwrap_or_default();
        let counters: Vec<(String, String)> = instance
            .children()
            .filter(|node| node.has_tag_name("counter"))
            .filter_map(|node| Some((of(node, "name")?, of(node, "average")?)))
            .collect();
        let is_total = name.eq_ignore_ascii_case("_total");
        let value = |required: &str| {
            counters
                .iter()
                .find(|(name, _)| name.contains(required))
                .map(|(_, average)| average.clone())
        };
        let before = reported.parts.len();
        instance_parts(&mut reported, &name, value);
        reported.parts[before..].iter_mut().for_each(|part| part.is_total = is_total);
    }
    // The report contains only the total of all databases.
    if reported.parts.iter().all(|part| part.is_total) {
        reported.parts.iter_mut().for_each(|part| part.is_total = false);
    }
    if reported.parts.is_empty() {
        return Err("it contains no database counters in disk-subsystem-total".into());
    }
    achieved(&mut reported, named);
    Ok(reported)
}

/// Reads the version, the test result and the settings.
fn summary(reported: &mut ToolResult, named: impl Fn(&str) -> Option<String>) {
    reported.source.version = named("Jetstress Version");
    let names = [
        "Overall Test Result",
        "Test Description",
        "Jetstress Version",
        "Thread count",
        "Thread Count",
    ];
    for name in names {
        reported.options.extend(named(name).map(|value| (name.to_owned(), value)));
    }
    if let Some(result) = named("Overall Test Result").filter(|word| word.contains("Fail")) {
        reported.complaints.push(Complaint {
            weight: Weight::Invalid,
            says: format!("Jetstress states that the test failed ({result})"),
            field: "Overall Test Result".into(),
        });
    }
}

/// Adds the achieved rate as the sum of the databases' rates.
fn achieved(reported: &mut ToolResult, named: impl Fn(&str) -> Option<String>) {
    let name = "Achieved Transactional I/O per Second";
    if let Some(total) = named(name).and_then(|text| number(&text, 1.0, name.to_owned())) {
        let database = reported
            .operations()
            .filter(|(part, _)| part.name.ends_with("database") && !part.is_total);
        let of: Vec<Figure> = database.filter_map(|(_, o)| o.rate_per_s.first().cloned()).collect();
        let what = "the achieved rate of all databases".to_owned();
        reported.combined.push(Aggregate {
            what,
            formula: Formula::Sum,
            total,
            of,
            slack: ACHIEVED_SLACK,
        });
    }
}

/// Reads the table that has a column for database reads per second. This table has a row for each
/// instance.
fn instances(reported: &mut ToolResult, rows: &[(usize, Row)]) {
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
        instance_parts(reported, &instance, |name| {
            let column = header.iter().position(|cell| cell.contains(name))?;
            row.get(column).cloned()
        });
    }
}

/// Adds the figures of the database and the log of an instance. They are identified by the names of
/// the counters.
fn instance_parts(
    reported: &mut ToolResult,
    instance: &str,
    value: impl Fn(&str) -> Option<String>,
) {
    for scope in ["Database", "Log"] {
        let name = format!("{instance} {}", scope.to_lowercase());
        // All instances run at the same time.
        let mut part = Part { name, group: Some("instances".into()), ..Part::default() };
        for (kind, word) in [(Kind::Read, "Reads"), (Kind::Write, "Writes")] {
            let take = |measure: &str, unit: f64| {
                let name = format!("{scope} {word}{measure}");
                number(&value(&name)?, unit, format!("{instance}, {name}"))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // This page has the layout of Jetstress 2013, with invented figures.
    const HTML: &str = "<html><h1>Microsoft Exchange Jetstress 2013</h1><fieldset><legend>Test \
                        Summary</legend><table><tr><td class=\"grid_row_header\">Overall Test \
                        Result</td><td class=\"success\">Pass</td></tr><tr><td>Jetstress \
                        Version</td><td>15.00.0775.000</td></tr></table></fieldset><fieldset><legend>Database \
                        Sizing and Throughput</legend><table><tr><td>Achieved Transactional I/O per \
                        Second</td><td>1,300.500</td></tr></table></fieldset><fieldset><legend>Transactional \
                        I/O Performance</legend><table><tr><th>MSExchange Database ==&gt; \
                        Instances</th><th>I/O Database Reads Average Latency (msec)</th><th>I/O \
                        Database Writes Average Latency (msec)</th><th>I/O Database \
                        Reads/sec</th><th>I/O Database Writes/sec</th><th>I/O Database Reads \
                        Average Bytes</th><th>I/O Log \
                        Writes/sec</th></tr><tr><td>Instance1.1</td><td>12.500</td><td>0.900</td><td>400.250</td><td>250.000</td><td>33120.500</td><td>60.1</td></tr><tr><td>Instance2.1</td><td>13.0</td><td>0.8</td><td>400.250</td><td>250.000</td><td>33120.500</td><td>60.0</td></tr></table></fieldset></html>";

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
    fn rejects_a_report_without_the_table() {
        assert!(
            read("<html>Jetstress <table><tr><td>Transactional I/O</td></tr></table>", "x")
                .is_err()
        );
        assert!(read("<html>Jetstress <td <table", "x").is_err());
    }

    // This report has the layout of Jetstress 2013, with invented figures.
    const XML: &str = "<?xml version=\"1.0\"?><output><test-summary><element name=\"Overall Test \
                       Result\" value=\"Fail\"/><element><name>Jetstress \
                       Version</name><value>15.00.0775.000</value></element></test-summary><database-sizing><element \
                       name=\"Achieved Transactional I/O per Second\" \
                       value=\"1300.5\"/></database-sizing><disk-subsystem-total><object \
                       name=\"MSExchange Database\"><instance name=\"Instance1.1\"><counter \
                       name=\"I/O Database Reads Average Latency\" average=\"12.5\"/><counter \
                       name=\"I/O Database Reads/sec\" average=\"800.5\"/><counter name=\"I/O \
                       Database Writes/sec\" average=\"500\"/><counter name=\"I/O Log Writes/sec\" \
                       average=\"60\"/></instance><instance name=\"_Total\"><counter name=\"I/O \
                       Database Reads/sec\" \
                       average=\"800.5\"/></instance></object></disk-subsystem-total><disk-subsystem-of-dbmaintenance><object><instance \
                       name=\"Instance1.1\"><counter name=\"I/O Database Reads/sec\" \
                       average=\"9\"/></instance></object></disk-subsystem-of-dbmaintenance></output>";

    #[test]
    fn the_xml_report_says_the_same() {
        assert!(is_xml(XML) && !is_xml(HTML) && !is(XML));
        let reported = read_xml(XML, "Performance.xml").unwrap();
        assert_eq!(reported.source.version.as_deref(), Some("15.00.0775.000"));
        assert_eq!(reported.complaints.len(), 1);
        let names: Vec<(&str, bool)> =
            reported.parts.iter().map(|part| (part.name.as_str(), part.is_total)).collect();
        let expected = [
            ("Instance1.1 database", false),
            ("Instance1.1 log", false),
            ("_Total database", true),
        ];
        assert_eq!(names, expected, "maintenance is none of them");
        assert_eq!(
            reported.parts[0].operations[0].latencies[0].mean_ns.as_ref().unwrap().value,
            12.5e6
        );
        let sum = &reported.combined[0];
        assert_eq!((sum.total.value, sum.of.len()), (1300.5, 2));
        assert!(read_xml("<output><disk-subsystem-total/></output>", "x").is_err());
        assert!(read_xml("<output>", "x").is_err());
    }
}
