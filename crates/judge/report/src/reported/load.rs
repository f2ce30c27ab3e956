//! Load with which a result was measured (block size, mix and queue depth), for tables.

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Pattern, ToolResult};

use crate::number::{Letters, Unit};
use crate::table::Cell;

/// Sizes are shown as a single size if their relative difference is at most this.
const ONE_SIZE: f64 = 0.01;

/// Load of a result. The result states it, or it is derived from the result's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TestedLoad {
    /// Smallest and largest size of an operation, in bytes.
    pub size_bytes: Option<(f64, f64)>,
    /// Percentage of reads among reads and writes.
    pub read_percent: Option<f64>,
    /// Access pattern; `None` if parts of the result have different patterns.
    pub pattern: Option<Pattern>,
    /// Number of operations in flight, summed over all parts of the result.
    pub outstanding: Option<f64>,
}

impl TestedLoad {
    /// Derives the load of a result.
    pub fn of(result: &ToolResult) -> Self {
        let parts: Vec<&Part> = result.parts.iter().filter(|part| !part.is_total).collect();
        // If a result contains only totals, the totals are its only part.
        let parts = if parts.is_empty() { result.parts.iter().collect() } else { parts };
        let moves = |operation: &&Operation| match operation.kind {
            Kind::Read | Kind::Write => true,
            Kind::All => operation.size_bytes.is_some(),
            _ => false,
        };
        let sizes = || parts.iter().flat_map(|part| &part.operations).filter(moves).map(size);
        let known: Option<Vec<f64>> = sizes().collect();
        let known = known.filter(|sizes| !sizes.is_empty());
        Self {
            size_bytes: known.map(|sizes| {
                let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
                (least, sizes.iter().copied().fold(0.0, f64::max))
            }),
            read_percent: read_percent(&parts),
            pattern: same(parts.iter().map(|part| part.setting.pattern)),
            outstanding: outstanding(&parts),
        }
    }

    /// Returns the block size, or the smallest and the largest block size.
    pub fn size_cell(&self) -> Cell {
        let show = |bytes: f64| Unit::Size.show(bytes, Letters::Ascii);
        match self.size_bytes {
            None => Cell::not_applicable(),
            Some((least, most)) if most <= least * (1.0 + ONE_SIZE) => Cell::text(show(most)),
            Some((least, most)) => Cell::text(format!("{} to {}", show(least), show(most))),
        }
    }

    /// Returns access pattern and mix, such as `random 70 % reads`.
    pub fn mix_cell(&self) -> Cell {
        let pattern = self.pattern.map(|pattern| match pattern {
            Pattern::Random => "random".to_owned(),
            Pattern::Sequential => "sequential".to_owned(),
        });
        let share = self.read_percent.map(|percent| match percent.round() {
            p if p <= 0.0 => "writes".to_owned(),
            p if p >= 100.0 => "reads".to_owned(),
            p => format!("{p} % reads"),
        });
        let words: Vec<String> = pattern.into_iter().chain(share).collect();
        if words.is_empty() { Cell::not_applicable() } else { Cell::text(words.join(" ")) }
    }
}

fn first(figures: &[Figure]) -> Option<f64> {
    figures.first().map(|figure| figure.value).filter(|value| value.is_finite() && *value > 0.0)
}

/// Returns the stated size of an operation, or the mean of its figures.
fn size(operation: &Operation) -> Option<f64> {
    let stated = operation.size_bytes.as_ref().map(|size| size.value).filter(|size| *size > 0.0);
    let quotient = |bytes: &[Figure], count: &[Figure]| Some(first(bytes)? / first(count)?);
    stated
        .or_else(|| quotient(&operation.bytes, &operation.count))
        .or_else(|| quotient(&operation.bandwidth_per_s, &operation.rate_per_s))
}

/// Returns the measured share of reads. If the result has no separate figures for reads and writes,
/// returns the share that it states.
fn read_percent(parts: &[&Part]) -> Option<f64> {
    let operations = || parts.iter().flat_map(|part| &part.operations);
    let amount = |kind: Kind, of: fn(&Operation) -> Option<f64>| -> Option<f64> {
        let alike: Vec<&Operation> = operations().filter(|o| o.kind == kind).collect();
        alike.into_iter().map(of).sum()
    };
    let measured = |of: fn(&Operation) -> Option<f64>| {
        let (reads, writes) = (amount(Kind::Read, of)?, amount(Kind::Write, of)?);
        (reads + writes > 0.0).then(|| 100.0 * reads / (reads + writes))
    };
    measured(|o| first(&o.count))
        .or_else(|| measured(|o| first(&o.rate_per_s)))
        .or_else(|| same(parts.iter().map(|p| p.setting.read_percent.as_ref().map(|f| f.value))))
}

/// Returns the sum of a number over all parts; `None` if the number is missing for one of them.
fn outstanding(parts: &[&Part]) -> Option<f64> {
    let of = |part: &&Part| part.setting.outstanding.as_ref().map(|o| o.most.value);
    let known: Option<Vec<f64>> = parts.iter().map(of).collect();
    known.filter(|depths| !depths.is_empty()).map(|depths| depths.iter().sum())
}

/// Returns the common value of all elements; `None` if they differ.
fn same<T: PartialEq + Copy>(mut values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Outstanding, Setting};

    use super::*;

    fn part(kind: Kind, rate: f64, bytes: f64) -> Part {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(rate, "iops")],
            bandwidth_per_s: vec![Figure::exact(rate * bytes, "bw")],
            ..Operation::of(kind)
        };
        let most = Figure::exact(8.0, "iodepth");
        let setting = Setting {
            outstanding: Some(Outstanding { most, kept: true }),
            pattern: Some(Pattern::Random),
            ..Setting::default()
        };
        Part { operations: vec![operation], setting, ..Part::default() }
    }

    fn of(parts: Vec<Part>) -> TestedLoad {
        TestedLoad::of(&ToolResult { parts, ..ToolResult::default() })
    }

    #[test]
    fn size_mix_and_depth_follow_from_the_figures() {
        let load = of(vec![part(Kind::Read, 700.0, 4096.0), part(Kind::Write, 300.0, 16384.0)]);
        assert_eq!(load.size_cell(), Cell::text("4 KiB to 16 KiB"));
        assert_eq!(load.mix_cell(), Cell::text("random 70 % reads"));
        assert_eq!(load.outstanding, Some(16.0));
        let load = of(vec![part(Kind::Write, 300.0, 4096.0)]);
        assert_eq!(
            (load.size_cell(), load.mix_cell()),
            (Cell::text("4 KiB"), Cell::text("random writes"))
        );
    }

    #[test]
    fn what_a_result_does_not_state_stays_open() {
        let mut unstated = part(Kind::All, 10.0, 4096.0);
        unstated.setting = Setting::default();
        let load = of(vec![unstated, part(Kind::Read, 1.0, 1.0)]);
        assert_eq!((load.pattern, load.outstanding), (None, None));
        let load = of(Vec::new());
        assert_eq!(
            (load.size_cell(), load.mix_cell()),
            (Cell::not_applicable(), Cell::not_applicable())
        );
    }
}
