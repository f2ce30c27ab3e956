//! fio's distribution of completion latencies over fixed ranges (`lat (usec) : 50=0.02%`). It
//! includes all directions of a job.

use plimsoll_evidence::tool_result::{Bin, ToolResult};

/// Ranges of a unit. Each has a label and an end. A range starts at the end of the previous range.
pub(super) const RANGES: [(&str, f64); 12] = [
    ("2", 2.0),
    ("4", 4.0),
    ("10", 10.0),
    ("20", 20.0),
    ("50", 50.0),
    ("100", 100.0),
    ("250", 250.0),
    ("500", 500.0),
    ("750", 750.0),
    ("1000", 1000.0),
    ("2000", 2000.0),
    (">=2000", f64::INFINITY),
];
/// End of the last range, which must be finite.
const UNBOUNDED_NS: f64 = 1e18;

/// Returns the range with this label and its share, or `None` if the range is empty.
pub(super) fn share(label: &str, unit_ns: f64, percent: f64) -> Option<Bin> {
    let index = RANGES.iter().position(|(name, _)| *name == label)?;
    let from = match index.checked_sub(1).and_then(|before| RANGES.get(before)) {
        Some((_, end)) => *end,
        // The ranges of the smaller unit contain the shorter latencies. fio 2 has no unit smaller
        // than us.
        None if unit_ns > 1e3 => 1.0,
        None => 0.0,
    };
    let to_ns =
        RANGES.get(index).map_or(UNBOUNDED_NS, |(_, end)| (end * unit_ns).min(UNBOUNDED_NS));
    (percent > 0.0).then_some(Bin { from_ns: from * unit_ns, to_ns, count: percent / 100.0 })
}

/// Parses a line such as `lat (usec)   : 50=0.02%, 100=0.03%`.
pub(super) fn of_line(line: &str) -> Option<Vec<Bin>> {
    let (unit, list) = line.strip_prefix("lat (")?.split_once(')')?;
    let unit_ns = super::printed::unit_of(unit)?;
    let cells = list.trim_start().strip_prefix(':')?.split(',');
    let bin = |cell: &str| {
        let (label, percent) = cell.trim().strip_suffix('%')?.rsplit_once('=')?;
        Some(share(label.trim(), unit_ns, percent.trim().parse().ok()?))
    };
    let bins: Option<Vec<Option<Bin>>> = cells.map(bin).collect();
    Some(bins?.into_iter().flatten().collect())
}

/// Adds a range for the latencies that fio 3.4 to 3.13 do not print. These versions, and possibly a
/// result without a version, lose all latencies of 1 s or more: `sum_thread_stats` adds up only ten
/// of the twelve ranges of milliseconds (repaired by fio's commit c5daece6).
pub(super) fn add_lost(reported: &mut ToolResult) {
    let version = reported.source.version.as_deref().unwrap_or_default();
    let mut numbers = version.trim_start_matches("fio-").split(['.', '-']).map(str::parse::<u32>);
    let complete = match (numbers.next(), numbers.next()) {
        (Some(Ok(3)), Some(Ok(minor))) => !(4..=13).contains(&minor),
        (Some(Ok(_)), _) => true,
        _ => false,
    };
    for part in reported.parts.iter_mut().filter(|_| !complete) {
        let sum: f64 = part.latency_shares.iter().map(|bin| bin.count).sum();
        let Some(last) = part.latency_shares.last().filter(|last| last.to_ns <= 1e9) else {
            continue;
        };
        let (from_ns, count) = (last.from_ns, (1.0 - sum).max(0.0));
        part.latency_shares.push(Bin { from_ns, to_ns: UNBOUNDED_NS, count });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::{Part, Source};

    use super::*;

    #[test]
    fn versions_that_lose_long_latencies_have_an_open_range() {
        let ranges = |version: Option<&str>, line| {
            let version = version.map(str::to_owned);
            let mut reported = ToolResult::new(Source { version, ..Source::default() });
            let latency_shares = of_line(line).unwrap();
            reported.parts = vec![Part { latency_shares, ..Part::default() }];
            add_lost(&mut reported);
            let bins = &reported.parts[0].latency_shares;
            bins.iter().map(|bin| (bin.from_ns, bin.to_ns)).collect::<Vec<_>>()
        };
        let line = "lat (msec)   : 750=97.00%, 1000=1.91%";
        let printed = vec![(5e8, 7.5e8), (7.5e8, 1e9)];
        for version in ["fio-3.3", "fio-3.14", "fio-3.33", "fio-2.16"] {
            assert_eq!(ranges(Some(version), line), printed, "{version}");
        }
        let open = [&printed[..], &[(7.5e8, UNBOUNDED_NS)]].concat();
        for version in [Some("fio-3.4"), Some("fio-3.7"), Some("fio-3.13-25-gabc"), None] {
            assert_eq!(ranges(version, line), open, "{version:?}");
        }
        let whole = "lat (msec)   : 1000=97.00%, >=2000=3.00%";
        assert_eq!(ranges(None, whole).len(), 2, "this version printed the long latencies");
    }

    #[test]
    fn ranges_start_at_the_end_of_the_previous_range() {
        let bins = of_line("lat (msec)   : 2=1.24%, 4=0.84%, >=2000=15.55%").unwrap();
        let ranges: Vec<_> = bins.iter().map(|bin| (bin.from_ns, bin.to_ns)).collect();
        assert_eq!(ranges, [(1e6, 2e6), (2e6, 4e6), (2e9, UNBOUNDED_NS)]);
        assert!((bins[2].count - 0.1555).abs() < 1e-12);
        assert_eq!(of_line("lat (usec): min=44, max=5037, avg=3134.11, stdev=714.47"), None);
    }
}
