//! fio's distribution of completion latencies over fixed ranges (`lat (usec) : 50=0.02%`). It
//! includes all directions of a job.

use plimsoll_evidence::tool_result::Bin;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_start_at_the_end_of_the_previous_range() {
        let bins = of_line("lat (msec)   : 2=1.24%, 4=0.84%, >=2000=15.55%").unwrap();
        let ranges: Vec<_> = bins.iter().map(|bin| (bin.from_ns, bin.to_ns)).collect();
        assert_eq!(ranges, [(1e6, 2e6), (2e6, 4e6), (2e9, UNBOUNDED_NS)]);
        assert!((bins[2].count - 0.1555).abs() < 1e-12);
        assert_eq!(of_line("lat (usec): min=44, max=5037, avg=3134.11, stdev=714.47"), None);
    }
}
