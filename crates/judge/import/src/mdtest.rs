//! Tables of rates and times that mdtest prints (versions 1.9 to 4, alone or within IO500).

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    Aggregate, Figure, Formula, Kind, Operation, Part, Setting, ToolResult,
};

use crate::parts::{Digits, figure, source};
use crate::runs;

const NS_PER_S: f64 = 1e9;
/// Names of operations in the first column.
const OPERATIONS: &[&str] = &[
    "Directory creation",
    "Directory stat",
    "Directory read",
    "Directory removal",
    "Directory rename",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];

/// Returns true if the text is mdtest's output.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| parse_launch_line(line).is_some())
}

/// Parses version, tasks and nodes: `mdtest-3.4.0 was launched with 16 total task(s) on 2 node(s)`.
fn parse_launch_line(line: &str) -> Option<(&str, &str, &str)> {
    let (version, rest) = line.trim().strip_prefix("mdtest-")?.split_once(" was launched with ")?;
    let (tasks, rest) = rest.split_once(" total task")?;
    let nodes = rest.split_once(" on ")?.1.split_whitespace().next()?;
    Some((version, tasks.trim(), nodes))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Neither,
    Rates,
    Times,
}

/// Columns with the maximum, minimum and mean of a row. The standard deviation in the next column
/// is not used: depending on the version, it is over iterations or over ranks.
struct Row([Figure; 3]);

/// Reads the output of all runs in a file.
///
/// # Errors
/// No run finished.
pub fn read_all(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    runs::read_each(text, |line| parse_launch_line(line).is_some(), |text| read(text, file))
}

/// Reads the output of a run. The result has a part for each kind of operation.
///
/// # Errors
/// The output contains no rate, because the run did not finish.
fn read(text: &str, file: &str) -> Result<ToolResult, String> {
    let mut reported = ToolResult::new(source("mdtest", "mdtest", file));
    let mut tasks = None;
    let mut table = Table::Neither;
    let (mut rates, mut times) = (BTreeMap::new(), BTreeMap::new());
    for (index, line) in text.lines().enumerate() {
        let place = |name: &str| format!("line {} ({name})", index + 1);
        if let Some((version, count, nodes)) = parse_launch_line(line) {
            reported.source.version = Some(version.to_owned());
            reported.options.insert("nodes".into(), nodes.to_owned());
            tasks = figure(count, Digits::Exact, 1.0, place("total tasks"));
        } else if let Some(command) = line.trim().strip_prefix("Command line used:") {
            reported.options.insert("command".into(), command.trim().to_owned());
        } else if line.starts_with("SUMMARY") {
            table = if line.contains("time") { Table::Times } else { Table::Rates };
            let iterations = line.split_once("(of ").and_then(|(_, rest)| rest.split(' ').next());
            let known = iterations.map(|count| ("iterations".to_owned(), count.to_owned()));
            reported.options.extend(known);
        } else if let Some((name, row)) = row(line, index + 1, table) {
            match table {
                Table::Rates => drop(rates.insert(name, row)),
                Table::Times => drop(times.insert(name, row)),
                Table::Neither => {}
            }
        }
    }
    let one = reported.options.get("iterations").is_some_and(|count| count == "1");
    let zero = |rows: &BTreeMap<_, Row>| rows.values().all(|Row([max, ..])| max.value <= 0.0);
    let rates_are_zero = !rates.is_empty() && zero(&rates);
    let idle = zero(&rates) && zero(&times);
    for (name, Row([max, min, mean])) in rates {
        // mdtest prints a row of zeroes for an operation that did not run.
        if max.value <= 0.0 && !idle {
            continue;
        }
        let mut operation = Operation::of(Kind::Name(name.to_lowercase()));
        operation.rate_per_s.push(mean.clone());
        let what = format!("the mean rate of {}", name.to_lowercase());
        let (formula, of) = (Formula::Between, vec![min, max.clone()]);
        reported.combined.push(Aggregate { what, formula, total: mean.clone(), of, slack: 0.0 });
        // The values are always in seconds. In version 4 the heading incorrectly states
        // milliseconds or operations per second.
        let window_ns = times.remove(name).filter(|_| one).map(|row: Row| {
            let Row([max, ..]) = row;
            max.scaled(NS_PER_S)
        });
        let setting = Setting { threads: tasks.clone(), ..Setting::default() };
        reported.parts.push(Part {
            name: name.to_lowercase(),
            setting,
            window_ns: window_ns.filter(|window| window.least > 0.0),
            operations: vec![operation],
            ..Part::default()
        });
    }
    if reported.parts.is_empty() {
        let reason = if rates_are_zero {
            "all rates are zero but the times are not, because this version of mdtest did not \
             compute the rates"
        } else {
            "it contains no rate: the run did not finish"
        };
        return Err(reason.into());
    }
    Ok(reported)
}

fn row(line: &str, number: usize, table: Table) -> Option<(&'static str, Row)> {
    if table == Table::Neither {
        return None;
    }
    let trimmed = line.trim_start();
    let name = OPERATIONS.iter().find(|name| trimmed.starts_with(**name))?;
    let cells: Vec<&str> =
        trimmed[name.len()..].split_whitespace().filter(|cell| *cell != ":").collect();
    let [max, min, mean, _] = cells[..] else { return None };
    let of = |text: &str, column: &str| {
        figure(text, Digits::Rounded, 1.0, format!("line {number} ({name}, {column})"))
    };
    Some((name, Row([of(max, "Max")?, of(min, "Min")?, of(mean, "Mean")?])))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    pub const TEXT: &str = "-- started at 11/02/2023 18:10:05 --\n\nmdtest-3.4.0+dev was launched with 16 total task(s) on \
        2 node(s)\nCommand line used: ./mdtest '-n' '1000' '-F'\n16 tasks, 16000 files\n\nSUMMARY rate: (of 1 \
        iterations)\n   Operation                     Max            Min           Mean        Std Dev\n   ---------       \
        ---            ---           ----        -------\n   File creation               20000.500      20000.500      \
        20000.500          0.000\n   File stat                       0.000          0.000          0.000          0.000\n\n\
        SUMMARY time: (of 1 iterations)\n   File creation                   0.800          0.800          0.800    0.000\n\
        -- finished at 11/02/2023 18:40:11 --\n";

    #[test]
    fn skips_rows_of_zeroes() {
        assert!(is(TEXT));
        let reported = read(TEXT, "x").unwrap();
        assert_eq!(reported.source.version.as_deref(), Some("3.4.0+dev"));
        let [part] = &reported.parts[..] else { panic!("{}", reported.parts.len()) };
        assert_eq!(part.name, "file creation");
        assert_eq!(part.operations[0].rate_per_s[0].value, 20000.5);
        assert_eq!(part.window_ns.as_ref().unwrap().value, 0.8e9);
        assert_eq!(part.setting.threads.as_ref().unwrap().value, 16.0);
        assert_eq!(reported.combined.len(), 1);
    }

    #[test]
    fn appended_runs_do_not_replace_each_other() {
        let all =
            read_all(&format!("{TEXT}{}", TEXT.replace("20000.500", "400.500")), "x").unwrap();
        let rate = |run: &ToolResult| run.parts[0].operations[0].rate_per_s[0].value;
        assert_eq!(all.iter().map(rate).collect::<Vec<_>>(), [20000.5, 400.5]);
        assert_eq!(read_all(TEXT, "x").unwrap()[0].source.place, None);
    }

    #[test]
    fn rates_that_were_not_computed_are_not_zero() {
        let text = TEXT.replace("20000.500", "0.000");
        assert!(read(&text, "x").unwrap_err().contains("did not compute"));
    }

    #[test]
    fn a_run_that_did_not_finish_is_not_a_result() {
        let cut = &TEXT[..TEXT.find("SUMMARY").unwrap()];
        assert!(is(cut));
        assert!(read(cut, "x").is_err());
        assert!(!is("mdtest was launched"));
    }
}
