//! Messages that fio prints beside a result if a job ended without reporting its figures.
//!
//! A job adds its bytes and its run time to the result only when it finishes, but its operations
//! and latencies at once (`thread_main` in fio's backend.c). The figures of a killed job are
//! therefore incomplete.

use std::ops::Range;

use plimsoll_evidence::tool_result::{Complaint, Figure, Operation, Part, Weight};

use super::printed;

/// Reads the messages in a range of a text.
pub(super) fn of_lost_jobs(text: &str, range: Range<usize>) -> Vec<Complaint> {
    let lines = text[range.clone()].lines().enumerate();
    let found: Vec<(usize, String)> =
        lines.filter_map(|(index, line)| Some((index, lost_job(line)?))).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let first_line = 1 + text[..range.start].matches('\n').count();
    let complaint = |(index, says)| {
        let field = format!("line {}", first_line + index);
        Complaint { weight: Weight::Invalid, says, field }
    };
    found.into_iter().map(complaint).collect()
}

/// Parses a message of fio's `reap_threads`, `run_threads` (backend.c) or
/// `fio_check_clients_timed_out` (client.c). A terminal's progress may follow it without a space.
fn lost_job(line: &str) -> Option<String> {
    const MISSING: &str = "its bytes and run time are missing";
    let (_, message) = line.split_once("fio: ")?;
    let starts = |word: &str| message.starts_with(word);
    if let Some((_, signal)) = message.split_once(", got signal=").filter(|_| starts("pid=")) {
        let whole = !signal.is_empty() && signal.trim_end().bytes().all(|c| c.is_ascii_digit());
        let signal =
            if whole { format!("signal {}", signal.trim_end()) } else { "a signal".to_owned() };
        return Some(format!("a job process was killed by {signal}; {MISSING}"));
    }
    if starts("pid=") && message.contains(" disappeared ") {
        return Some(format!("a job process disappeared; {MISSING}"));
    }
    if starts("job '") && message.contains("forceful exit of this job") {
        return Some(format!("fio gave up a job that did not end; {MISSING}"));
    }
    if starts("job startup hung") {
        return Some("a job did not start".into());
    }
    if let Some((jobs, _)) = message.split_once(" failed to start") {
        return Some(format!("{jobs} failed to start"));
    }
    let (host, _) = message.strip_prefix("client ")?.split_once(" timed out")?;
    Some(format!("client {host} timed out, and its figures are missing"))
}

/// A run time is printed as zero if it is shorter than this.
const RUN_TIME_NS_MIN: f64 = 1e6;

/// Returns true if an operation has a count or latencies, but neither bytes nor a run time.
pub(super) fn is_unreported(operation: &Operation) -> bool {
    let zero = |figure: &Figure| figure.value <= 0.0;
    let counted = operation.count.first().is_some_and(|count| !zero(count));
    let mut longest = operation.latencies.iter().filter_map(|latency| latency.max_ns.as_ref());
    operation.kind.moves_data()
        && operation.bytes.first().is_some_and(zero)
        && operation.window_ns.as_ref().is_none_or(zero)
        && (counted || longest.any(|max| max.least > RUN_TIME_NS_MIN))
}

/// Returns the complaint about a job with an unreported operation.
pub(super) fn unreported(job: &str, field: &str) -> Complaint {
    Complaint {
        weight: Weight::Invalid,
        says: format!(
            "job {job:?} has operations but neither bytes nor run time: it ended without reporting \
             them"
        ),
        field: field.to_owned(),
    }
}

/// Adds complaints to the front of a list. The figures of the parts may then be incomplete.
pub(super) fn add<'p>(
    complaints: &mut Vec<Complaint>,
    parts: impl IntoIterator<Item = &'p mut Part>,
    found: impl IntoIterator<Item = Complaint>,
) {
    let before = complaints.len();
    complaints.splice(..0, found);
    if complaints.len() > before {
        parts.into_iter().for_each(printed::include_failed);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Kind, Latency};

    use super::*;

    #[test]
    fn operations_without_bytes_and_time_were_not_reported() {
        let exact = |value| Figure::exact(value, "x");
        let operation = |bytes, window, count: Option<f64>, max| Operation {
            bytes: vec![exact(bytes)],
            count: count.map(exact).into_iter().collect(),
            window_ns: Some(exact(window)),
            latencies: vec![Latency { max_ns: Some(exact(max)), ..Latency::default() }],
            ..Operation::of(Kind::Read)
        };
        for (bytes, window, count, max, unreported) in [
            (0.0, 0.0, Some(161.0), 0.0, true),
            (0.0, 0.0, None, 2e6, true),
            (0.0, 0.0, None, 1e3, false),
            (0.0, 0.0, Some(0.0), 0.0, false),
            (4096.0, 0.0, Some(1.0), 0.0, false),
            (0.0, 1e6, Some(1.0), 0.0, false),
        ] {
            let operation = operation(bytes, window, count, max);
            assert_eq!(is_unreported(&operation), unreported, "{operation:?}");
        }
    }

    #[test]
    fn messages_about_lost_jobs_are_read() {
        let killed = "fio: pid=25279, got signal=9";
        for (line, words) in [
            (killed, "killed by signal 9;"),
            (&format!("<host> {killed}"), "killed by signal 9;"),
            (&format!("{killed}1.9%][r=812KiB/s]"), "killed by a signal;"),
            ("fio: pid=25279 disappeared 5", "disappeared"),
            (
                "fio: job 'j' (state=5) hasn't exited in 300 seconds, it appears to be stuck. \
                 Doing forceful exit of this job.",
                "gave up a job",
            ),
            ("fio: job startup hung? exiting.", "did not start"),
            ("fio: 2 jobs failed to start", "2 jobs failed to start"),
            ("fio: client host-a timed out", "client host-a timed out"),
        ] {
            let text = format!("{{\n}}\n{line}\n");
            let found = of_lost_jobs(&text, 4..text.len());
            assert!(found.len() == 1 && found[0].says.contains(words), "{line}: {found:?}");
            assert_eq!(found[0].field, "line 3");
        }
        for line in ["fio: terminating on signal 2", "fio-3.33", "fio: pid=7, err=28/file:x"] {
            assert!(of_lost_jobs(line, 0..line.len()).is_empty(), "{line}");
        }
    }
}
