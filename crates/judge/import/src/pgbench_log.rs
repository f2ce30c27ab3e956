//! Transaction log of pgbench (`pgbench -l`). It has a line for each transaction: `client
//! transaction time_us script epoch_s epoch_us [lag_us] [retries]`. The epoch time is the time at
//! which the transaction ended.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    Claim, Figure, Formula, Kind, Membership, Operation, Outstanding, Part, Point, Population,
    Quantity, Series, Setting, Stage, ToolResult, Unit,
};

use crate::parts::{latency, percentile, source};

const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;
/// Number of lines from which the format is detected.
const LINES_SNIFFED: usize = 16;
/// Maximum relative deviation of a log's mean from the printed mean. Without `--rate` and
/// `--progress`, pgbench prints the mean time of a client for a transaction, which includes the
/// overhead of pgbench.
const MEAN_SLACK: f64 = 0.10;
/// Maximum number of clients in a log. A file with more clients is not a pgbench log.
const CLIENTS_MAX: u64 = 1 << 20;

/// The log of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Path of the file.
    pub file: String,
    ns: Vec<f64>,
    /// End of each transaction, in seconds since 1970.
    ends_s: Vec<f64>,
    /// Highest transaction number of each client, and the number of its lines.
    clients: BTreeMap<u64, (u64, u64)>,
    failed: usize,
    cut_off: bool,
}

/// Returns the fields of a line, or `None` if the line is not a transaction.
struct Line {
    client: u64,
    number: u64,
    us: Option<f64>,
    end_s: f64,
}

fn line(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split(' ').collect();
    let [client, number, us, script, seconds, micros, rest @ ..] = &words[..] else { return None };
    let whole = |word: &str| word.parse::<u64>().ok();
    let (client, number) = (whole(client)?, whole(number)?);
    let (_, seconds, micros) = (whole(script)?, whole(seconds)?, whole(micros)?);
    // The line of a failed transaction contains a word instead of a time.
    let us = match *us {
        "failed" | "skipped" | "serialization" | "deadlock" => None,
        us => Some(whole(us)? as f64),
    };
    let sound = client < CLIENTS_MAX && micros < 1_000_000 && seconds > 500_000_000;
    (sound && rest.len() <= 2).then(|| Line {
        client,
        number,
        us,
        end_s: seconds as f64 + micros as f64 / 1e6,
    })
}

/// Returns true if the text is pgbench's transaction log.
#[must_use]
pub fn is(text: &str) -> bool {
    let mut lines = text.lines().take(LINES_SNIFFED).peekable();
    let mut seen = 0;
    while let Some(text) = lines.next() {
        // The last line may be truncated.
        if lines.peek().is_none() && seen > 0 {
            break;
        }
        if line(text).is_none() {
            return false;
        }
        seen += 1;
    }
    seen > 0
}

/// Reads a log.
///
/// # Errors
/// A line is not a transaction. However, a truncated last line is ignored.
pub fn read(text: &str, file: &str) -> Result<Log, String> {
    // Text after the last line feed may be only a part of a line, even if it looks complete.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let cut_off = whole.len() + 1 < text.len();
    let mut log = Log { file: file.to_owned(), cut_off, ..Log::default() };
    for (index, text) in whole.lines().enumerate() {
        let line = line(text).ok_or_else(|| format!("line {} is not a transaction", index + 1))?;
        let client = log.clients.entry(line.client).or_default();
        *client = (client.0.max(line.number), client.1 + 1);
        match line.us {
            Some(us) => {
                log.ns.push(us * NS_PER_US);
                log.ends_s.push(line.end_s);
            }
            None => log.failed += 1,
        }
    }
    if log.ns.is_empty() { Err("it contains no successful transaction".into()) } else { Ok(log) }
}

impl Log {
    /// Adds the log that another thread of the same run wrote.
    fn join(&mut self, other: Self) {
        self.ns.extend(other.ns);
        self.ends_s.extend(other.ends_s);
        self.clients.extend(other.clients);
        self.failed += other.failed;
        self.cut_off |= other.cut_off;
    }

    /// Returns true if transaction numbers are missing, because the run logged only a sample
    /// (`--sampling-rate`).
    fn sampled(&self) -> bool {
        // The first transaction has the number 0 or 1.
        self.clients.values().any(|(highest, lines)| *highest > *lines)
    }

    /// Returns the number of transactions in each second of the run, except the last second.
    fn series(&self) -> Option<Series> {
        let (from, to) = self.times()?;
        let seconds = (to - from).floor();
        if !(2.0..1e6).contains(&seconds) || self.sampled() {
            return None;
        }
        let mut counts = vec![0.0; seconds as usize];
        for end in &self.ends_s {
            if let Some(count) = counts.get_mut((end - from) as usize) {
                *count += 1.0;
            }
        }
        let point = |(index, value)| Point { at_s: (index + 1) as f64, value };
        Some(Series {
            quantity: Quantity::RatePerS,
            kind: transactions(),
            stage: Stage::Total,
            field: self.file.clone(),
            interval_s: Some(1.0),
            points: counts.into_iter().enumerate().map(point).collect(),
            partial: false,
            understates: false,
        })
    }

    /// Returns the start of the first transaction and the end of the last.
    fn times(&self) -> Option<(f64, f64)> {
        let begins = self.ends_s.iter().zip(&self.ns).map(|(end, ns)| end - ns / NS_PER_S);
        Some((begins.reduce(f64::min)?, self.ends_s.iter().copied().reduce(f64::max)?))
    }

    fn mean_ns(&self) -> f64 {
        self.ns.iter().sum::<f64>() / self.ns.len().max(1) as f64
    }

    /// Converts a log that belongs to no report to a result.
    fn alone(mut self) -> ToolResult {
        let mut reported = ToolResult::new(source("pgbench", "pgbench log", &self.file));
        let (series, mean) = (self.series(), self.mean_ns());
        let window_ns = self.times().map(|(from, to)| {
            let field = "from the start of the first to the end of the last transaction";
            Figure::within((to - from) * NS_PER_S, 2.0 * NS_PER_US, field)
        });
        self.ns.sort_by(f64::total_cmp);
        let count = self.ns.len();
        let at = |quantile: f64| {
            let index = ((count as f64 * quantile).ceil() as usize).clamp(1, count) - 1;
            self.ns.get(index).map(|ns| Figure::exact(*ns, "time"))
        };
        let mut operation = Operation::of(transactions());
        operation.count.push(Figure::exact(count as f64, "lines"));
        operation.latencies.extend(latency(Stage::Total, |latency| {
            latency.count = Some(Figure::exact(count as f64, "lines"));
            latency.mean_ns = Some(Figure::rounded(mean, 1.0, "time"));
            (latency.min_ns, latency.max_ns) = (at(0.0), at(1.0));
            for percent in [50.0, 90.0, 99.0, 99.9] {
                latency.percentiles.extend(percentile(percent, at(percent / 100.0)));
            }
        }));
        let clients = Figure::exact(self.clients.len() as f64, "client_id");
        let outstanding = Some(Outstanding { most: clients, kept: false });
        let setting = Setting { outstanding, ..Setting::default() };
        let failed = Figure::exact(self.failed as f64, "lines that contain no time");
        reported.parts.push(Part {
            window_ns: window_ns.filter(|window| window.least > 0.0),
            setting,
            operations: vec![operation],
            series: series.into_iter().collect(),
            errors: Some(failed),
            ..Part::default()
        });
        self.remark(&mut reported);
        reported
    }

    fn remark(&self, reported: &mut ToolResult) {
        if self.sampled() {
            reported.remarks.push(format!(
                "{} does not contain all transactions, because it is a sample",
                self.file
            ));
        }
        if self.cut_off {
            reported.remarks.push(format!("the last line of {} is truncated", self.file));
        }
    }
}

fn transactions() -> Kind {
    Kind::Other("transactions".into())
}

/// Attaches each log to the report in the same directory. A log without a report becomes a separate
/// result.
pub fn attach(results: &mut Vec<ToolResult>, logs: Vec<Log>) {
    let directory = |file: &str| file.rsplit_once('/').map_or("", |(dir, _)| dir).to_owned();
    let mut homes: BTreeMap<String, Vec<Log>> = BTreeMap::new();
    for log in logs {
        homes.entry(directory(&log.file)).or_default().push(log);
    }
    for (home, logs) in homes {
        let beside = |result: &&mut ToolResult| {
            result.source.format == "pgbench" && directory(&result.source.file) == home
        };
        let mut reports: Vec<&mut ToolResult> = results.iter_mut().filter(beside).collect();
        match &mut reports[..] {
            [report] => {
                if let Some(log) = logs.into_iter().reduce(|mut all, log| {
                    all.join(log);
                    all
                }) {
                    put(report, &log);
                }
            }
            _ => results.extend(logs.into_iter().map(Log::alone)),
        }
    }
}

fn put(report: &mut ToolResult, log: &Log) {
    log.remark(report);
    let Some(part) = report.parts.first_mut() else { return };
    part.series.extend(log.series());
    let Some(operation) = part.operations.first() else { return };
    if let Some(count) = operation.count.first().filter(|_| !log.sampled()) {
        report.memberships.push(Membership {
            of: "transactions".into(),
            stated: count.clone(),
            found: log.ns.len() as u64,
            missing: Vec::new(),
            place: format!("in {}", log.file),
        });
    }
    let mean = operation.latencies.first().and_then(|latency| latency.mean_ns.clone());
    if let Some(total) = mean {
        report.populations.push(Population {
            of: "transactions".into(),
            what: "times".into(),
            unit: Unit::Ns,
            field: log.file.clone(),
            values: log.ns.clone(),
            alike: false,
            claims: vec![Claim { formula: Formula::Mean, total, slack: MEAN_SLACK }],
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::terminal;

    /// Returns the log of two clients for 3 s. Each transaction takes 4 ms.
    fn text() -> String {
        let line = |i: u32| {
            let (client, number) = (i % 2, i / 2 + 1);
            let end_us = number * 4_000;
            let (s, us) = (1_700_000_000 + end_us / 1_000_000, end_us % 1_000_000);
            format!("{client} {number} 4000 0 {s} {us}\n")
        };
        (0..1500).map(line).collect()
    }

    const REPORT: &str = "pgbench (15.4)\ntransaction type: <builtin: TPC-B>\nnumber of clients: \
                          2\nnumber of threads: 1\nduration: 3 s\nnumber of transactions actually \
                          processed: 1500\nnumber of failed transactions: 0 (0.000%)\nlatency \
                          average = 4.010 ms\ntps = 499.100000 (without initial connection time)\n";

    #[test]
    fn a_log_without_a_report_is_a_result() {
        let text = text();
        assert!(is(&text));
        let mut results = Vec::new();
        attach(&mut results, vec![read(&text, "pgbench_log.1").unwrap()]);
        let part = &results[0].parts[0];
        assert_eq!(part.operations[0].count[0].value, 1500.0);
        assert_eq!(part.operations[0].latencies[0].mean_ns.as_ref().unwrap().value, 4e6);
        assert!((part.window_ns.as_ref().unwrap().value - 3e9).abs() < 1e4);
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 2.0);
    }

    #[test]
    fn a_log_has_as_many_transactions_as_its_report() {
        let whole = text();
        let found = |text: &str| {
            let mut results = terminal::read_pgbench(REPORT, "a/out.txt").unwrap();
            attach(&mut results, vec![read(text, "a/pgbench_log.1").unwrap()]);
            assert_eq!(results.len(), 1);
            (results[0].memberships[0].found, results[0].remarks.len())
        };
        assert_eq!(found(&whole), (1500, 0));
        assert_eq!(found(&whole[..whole.len() - 3000]).1, 1, "it ends within a line");
        assert!(found(&whole[..whole.len() - 3000]).0 < 1500);
    }

    #[test]
    fn a_sampled_log_has_no_lost_transactions() {
        let sample: String = text().lines().step_by(7).map(|line| format!("{line}\n")).collect();
        let mut results = terminal::read_pgbench(REPORT, "a/out.txt").unwrap();
        attach(&mut results, vec![read(&sample, "a/pgbench_log.1").unwrap()]);
        assert!(results[0].memberships.is_empty());
        assert!(results[0].remarks[0].contains("sample"));
    }

    #[test]
    fn other_numbers_are_not_a_log() {
        for text in
            ["", "1 2 3\n", "1 2 3 4 5 6\n", "a b c d e f\n", "0 1 9 0 1700000000 1000000\n"]
        {
            assert!(!is(text), "{text}");
        }
        assert!(read("0 1 9 0 1700000000 1\nnothing\n0 2 9 0 1700000000 2\n", "x").is_err());
    }
}
