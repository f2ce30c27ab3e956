//! Data for charts of a run over time, in bounded memory.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::Interval;
use serde::{Deserialize, Serialize};

/// Maximum number of columns of a chart. If it is exceeded, the width of all columns is doubled.
pub(crate) const COLUMNS_MAX: usize = 300;
/// Number of rows of the heat map for each factor of ten in latency.
pub const PER_DECADE: f64 = 5.0;
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Data of charts over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Charts {
    /// Latency of each kind of operation (`read`), over all databases and streams.
    pub series: Series,
    /// Number of I/Os for each time and latency (heat map).
    pub heat: HeatMap,
    /// Bytes that the load requested and that devices transferred: `load read`, `load written`,
    /// `sda read`, `sda written`. All counts are in bytes.
    pub moved: Series,
    /// Number of reads from each source, if the target reports it: `dram`, `ssd`, `hdd`, `zero`.
    #[serde(default)]
    pub read_of: Series,
    /// Number of writes to each destination, if the target reports it.
    #[serde(default)]
    pub written_to: Series,
    /// Number of I/Os that each host of a fleet has completed.
    #[serde(default)]
    pub hosts: Series,
    /// Distinct bytes read and written. Each column stores the sum of its samples and the number of
    /// samples.
    #[serde(default)]
    pub working_set: Series,
    /// Share of random I/Os, in billionths. Each column stores the sum of its samples and the
    /// number of samples.
    #[serde(default)]
    pub random: Series,
}

/// Sums over intervals, for each column of time and each kind of operation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Width of a column; 0 if there are no columns yet.
    pub width_ns: u64,
    /// Columns, with their start time as key.
    pub columns: BTreeMap<u64, BTreeMap<String, Sums>>,
}

/// Sums over an interval.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sums {
    /// Number of operations.
    pub count: u64,
    /// Sum of latencies.
    pub sum_ns: u64,
}

/// Number of operations for each column of time and each row of latency.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HeatMap {
    /// Width of a column; 0 if there are no columns yet.
    pub width_ns: u64,
    /// Columns, with their start time as key. Each column contains a count for each row number.
    pub columns: BTreeMap<u64, BTreeMap<i32, u64>>,
}

pub(crate) fn entry<V: Default>(
    all: &mut BTreeMap<String, V>,
    name: String,
    most: usize,
) -> Option<&mut V> {
    if all.len() >= most && !all.contains_key(&name) {
        return None;
    }
    Some(all.entry(name).or_default())
}

impl Series {
    pub(crate) fn add(&mut self, start_ns: u64, duration_ns: u64, kind: String, sums: Sums) {
        if self.width_ns == 0 {
            self.width_ns = duration_ns.max(1);
        }
        let column = self.columns.entry(start_ns / self.width_ns * self.width_ns).or_default();
        if let Some(known) = entry(column, kind, 8) {
            known.count += sums.count;
            known.sum_ns = known.sum_ns.saturating_add(sums.sum_ns);
        }
        if self.columns.len() > COLUMNS_MAX {
            self.width_ns *= 2;
            for (start_ns, column) in std::mem::take(&mut self.columns) {
                let into =
                    self.columns.entry(start_ns / self.width_ns * self.width_ns).or_default();
                for (kind, sums) in column {
                    let known = into.entry(kind).or_default();
                    known.count += sums.count;
                    known.sum_ns = known.sum_ns.saturating_add(sums.sum_ns);
                }
            }
        }
    }
}

impl HeatMap {
    /// Adds a histogram of latencies.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let column = self.column(interval.start_ns, interval.duration_ns);
        for (ns, count) in interval.histogram.buckets() {
            let row = ((ns.max(1) as f64).log10() * PER_DECADE).floor() as i32;
            *column.entry(row).or_default() += count;
        }
    }

    fn column(&mut self, start_ns: u64, duration_ns: u64) -> &mut BTreeMap<i32, u64> {
        if self.width_ns == 0 {
            self.width_ns = duration_ns.max(SECOND_NS);
        }
        if self.columns.len() >= COLUMNS_MAX {
            self.width_ns *= 2;
            for (start_ns, column) in std::mem::take(&mut self.columns) {
                let into =
                    self.columns.entry(start_ns / self.width_ns * self.width_ns).or_default();
                column.into_iter().for_each(|(row, n)| *into.entry(row).or_default() += n);
            }
        }
        self.columns.entry(start_ns / self.width_ns * self.width_ns).or_default()
    }
}
