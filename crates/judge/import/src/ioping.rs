//! Final statistics of ioping (K. Khlebnikov, version 1.0 and later).

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Setting, Stage, ToolResult};

use crate::parts::{Digits, figure, latency, source};
use crate::{number, runs};

/// Text before and after the target in the header of the statistics.
const HEAD: (&str, &str) = ("--- ", " ioping statistics ---");
/// Names in the last line.
const LATENCIES: &str = "min/avg/max/mdev = ";

/// Returns true if the text is ioping's final statistics.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| target(line).is_some())
}

/// Returns the target: `--- /data (ext4 /dev/sda1 98.3 GiB) ioping statistics ---`.
fn target(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix(HEAD.0)?.strip_suffix(HEAD.1)?;
    Some(inner.rsplit_once(" (").map_or(inner, |(target, _)| target))
}

/// Reads all statistics in a text.
///
/// # Errors
/// The statistics contain no requests, or were printed by a version before 1.0.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    runs::read_each(text, |line| target(line).is_some(), |text| one(text, file))
}

fn one(text: &str, file: &str) -> Result<ToolResult, String> {
    let lines = || text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let mut reported = ToolResult::new(source("ioping", "ioping", file));
    let (at, completed) = lines()
        .find_map(|(at, line)| Some((at, line.split_once(" requests completed in ")?)))
        .ok_or("it contains no requests: the run did not finish")?;
    let mut done = operation(completed, at).ok_or("its rate cannot be read")?;
    let generated = lines().find_map(|(at, line)| {
        let requested = line.strip_prefix("generated ")?.split_once(" requests in ")?;
        operation(requested, at)
    });
    // Before version 1.0, the printed time was the run time, but the rate was computed from only
    // the times of requests.
    let mut generated = generated.ok_or(
        "it does not state the number of generated requests, so it is from a version before 1.0",
    )?;
    if done.is_idle() {
        // A run with only the warm-up request has no result.
        let operations = vec![done];
        reported.parts.push(Part { operations, ..Part::default() });
        return Ok(reported);
    }
    let moved = completed.1;
    done.kind = match (moved.contains(" read,"), moved.contains(" written,")) {
        (true, false) => Kind::Read,
        (false, true) => Kind::Write,
        _ => Kind::All,
    };
    let spent = done.window_ns.clone();
    done.latencies.extend(lines().find_map(|(at, line)| {
        let times: Vec<&str> = line.strip_prefix(LATENCIES)?.split(" / ").collect();
        let time = |index: usize, name: &str| time_ns(times.get(index)?, place(at, name));
        latency(Stage::Total, |l| {
            (l.min_ns, l.mean_ns, l.max_ns) = (time(0, "min"), time(1, "avg"), time(2, "max"));
            l.stddev_ns = time(3, "mdev");
            l.sum_ns = spent.clone();
            l.count = done.count.first().cloned();
        })
    }));
    // The first request is a warm-up. ioping generates it, but does not count it.
    generated.kind = Kind::Other("generated".into());
    let part = Part {
        window_ns: generated.window_ns.take(),
        setting: Setting {
            target: lines().find_map(|(_, line)| target(line)).map(str::to_owned),
            ..Setting::default()
        },
        operations: vec![done, generated],
        ..Part::default()
    };
    reported.parts.push(part);
    Ok(reported)
}

fn place(line: usize, name: &str) -> String {
    format!("line {line} ({name})")
}

/// Parses a number of requests, and their time, amount and rates, such as `5` and `943.8 us, 20 KiB
/// read, 5.30 k iops, 20.7 MiB/s`.
fn operation((count, rest): (&str, &str), at: usize) -> Option<Operation> {
    let mut operation = Operation::of(Kind::All);
    operation.count.extend(counted(count, place(at, "requests")));
    let mut parts = rest.split(", ");
    operation.window_ns = time_ns(parts.next()?, place(at, "time"));
    for part in parts {
        if let Some(rate) = part.strip_suffix(" iops") {
            operation.rate_per_s.extend(counted(rate, place(at, "iops")));
        } else if let Some(rate) = part.strip_suffix("/s") {
            operation.bandwidth_per_s.extend(bytes(rate, place(at, "bandwidth")));
        } else {
            let amount = part.trim_end_matches(" read").trim_end_matches(" written");
            operation.bytes.extend(bytes(amount, place(at, "amount")));
        }
    }
    (!operation.count.is_empty() && !operation.rate_per_s.is_empty()).then_some(operation)
}

/// Parses a number such as `12.4 k`. It may have been truncated or rounded, so the range of the
/// result includes both cases.
fn counted(text: &str, field: String) -> Option<Figure> {
    let (digits, prefix) = number::split_unit(text);
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    figure(digits, Digits::Either, factor, field)
}

fn bytes(text: &str, field: String) -> Option<Figure> {
    let (digits, unit) = number::split_unit(text);
    let unit = number::unit(unit).filter(|unit| unit.measure == number::Measure::Bytes)?;
    figure(digits, Digits::Either, unit.factor, field)
}

fn time_ns(text: &str, field: String) -> Option<Figure> {
    let (digits, unit) = number::split_unit(text);
    let unit = number::unit(unit).filter(|unit| unit.measure == number::Measure::Time)?;
    figure(digits, Digits::Either, unit.factor, field)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // These texts have the format of ioping 1.3.
    const READS: &str = "4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=1 time=99.0 us (warmup)\n4 \
                         KiB <<< . (ext4 /dev/vda 252.0 GiB): request=2 time=192.9 us\n\n--- . \
                         (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n5 requests completed in \
                         943.8 us, 20 KiB read, 5.30 k iops, 20.7 MiB/s\ngenerated 6 requests in \
                         1.00 s, 24 KiB, 5 iops, 24.0 KiB/s\nmin/avg/max/mdev = 126.4 us / 188.8 us \
                         / 264.3 us / 45.9 us\n";
    const WRITES: &str = "--- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n2.00 k requests \
                          completed in 3.00 s, 31.2 MiB written, 665 iops, 10.4 MiB/s\ngenerated 2 \
                          k requests in 3.02 s, 31.2 MiB, 661 iops, 10.3 MiB/s\nmin/avg/max/mdev = \
                          71.4 us / 1.50 ms / 25.7 ms / 2.27 ms\n";
    const NONE: &str = "--- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n0 requests completed \
                        in 0 ns, 0 B read, 0 iops, 0 B/s\ngenerated 1 requests in 2.01 ms, 4 KiB, \
                        498 iops, 1.95 MiB/s\nmin/avg/max/mdev = 0 ns / 0 ns / 0 ns / 0 ns\n";

    #[test]
    fn statistics_are_read_run_after_run() {
        assert!(is(READS) && is(WRITES));
        let both = read(&format!("{READS}\n{WRITES}"), "x").unwrap();
        assert_eq!(both.len(), 2);
        let (reads, writes) = (&both[0].parts[0], &both[1].parts[0]);
        let read = &reads.operations[0];
        assert_eq!((read.kind.clone(), read.rate_per_s[0].value), (Kind::Read, 5300.0));
        assert_eq!((read.count[0].value, read.bytes[0].value), (5.0, 20480.0));
        assert_eq!(read.latencies[0].max_ns.as_ref().unwrap().value.round(), 264_300.0);
        // The window of the rate is the sum of the request times, not the run time.
        assert_eq!(read.window_ns.as_ref().unwrap().value.round(), 943_800.0);
        assert_eq!(reads.window_ns.as_ref().unwrap().value, 1e9);
        assert_eq!(reads.setting.target.as_deref(), Some("."));
        let write = &writes.operations[0];
        assert_eq!((write.kind.clone(), write.count[0].value), (Kind::Write, 2000.0));
        assert_eq!(write.bandwidth_per_s[0].value, 10.4 * 1024.0 * 1024.0);
    }

    #[test]
    fn rejects_a_result_without_statistics_of_requests() {
        let none = &read(NONE, "x").unwrap()[0].parts[0];
        assert!(none.operations.len() == 1 && none.operations[0].is_idle());
        let old = READS.lines().filter(|line| !line.starts_with("generated"));
        let old = old.collect::<Vec<_>>().join("\n");
        assert!(read(&old, "x").unwrap_err().contains("before 1.0"));
        assert!(read("--- x ioping statistics ---\n", "x").is_err());
    }
}
