//! Converts a published table (CSV) to evidence. Each row becomes a bundle.
//!
//! The table is parsed by [`plimsoll_evidence::cells`]. The order of columns does not matter. These
//! columns are used: the transfer size (`io_bytes`, `io_kib`, `size`), the rate (`ops_per_s`,
//! `iops`), the bandwidth (`bandwidth_bytes_per_s`, `bandwidth_mb_per_s` of 1,000,000 bytes,
//! `bandwidth_mib_per_s`), the mean latency (`latency_ns`, `latency_us`, `latency_ms`), `pattern`
//! (random or sequential), the operations in flight (`outstanding`), and the length (`seconds`).
//! The mix is either `read_percent`, or the rates of data reads and writes (`read_ops_per_s`,
//! `write_ops_per_s`). In the second case, the remaining operations are metadata operations. All
//! other columns are ignored.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::cells::{Cells, Line, TableError};
use plimsoll_evidence::foreign::{DEPTH_NOT_STATED_PAUSE_NS, PATTERN_NOT_STATED, TABLE_KIND};
use plimsoll_plan::Plan;

use super::{ForeignError, bundle, class};

/// Assumed length of the measurement if a row does not state it. Only ratios are derived from this
/// length.
const LENGTH_NS: u64 = 1_000_000_000;

const SECTOR_BYTES: f64 = 512.0;

/// Properties of all rows in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TableDefaults {
    /// Total number of operations that all clients have in flight.
    pub outstanding: Option<u64>,
}

/// Reads a table. The name of each bundle contains its line number.
///
/// # Errors
/// A row is not valid, or a column is missing. The error states the line number and the reason.
pub fn read(text: &str, name: &str, declared: TableDefaults) -> Result<Vec<Bundle>, ForeignError> {
    let cells = Cells::read(text)?;
    let rates = RATES.into_iter().chain(BANDWIDTHS.map(|(name, _)| name));
    if !rates.into_iter().any(|name| cells.has(name)) {
        let columns = cells.names().collect::<Vec<_>>().join(", ");
        let says = format!("it contains neither a rate nor a bandwidth; its columns are {columns}");
        return Err(ForeignError(says));
    }
    cells.lines().map(|line| Row { line }.bundle(name, declared)).collect()
}

impl From<TableError> for ForeignError {
    fn from(error: TableError) -> Self {
        Self(error.to_string())
    }
}

const RATES: [&str; 2] = ["ops_per_s", "iops"];
const BANDWIDTHS: [(&str, f64); 3] = [
    ("bandwidth_bytes_per_s", 1.0),
    ("bandwidth_mb_per_s", 1e6),
    ("bandwidth_mib_per_s", 1048576.0),
];
const SIZES: [(&str, f64); 2] = [("io_bytes", 1.0), ("io_kib", 1024.0)];
const LATENCIES: [(&str, f64); 3] = [("latency_ns", 1.0), ("latency_us", 1e3), ("latency_ms", 1e6)];

/// Operations per second in a row, for each kind of operation.
struct Parts {
    read_per_s: f64,
    write_per_s: f64,
    /// Rate of metadata operations, which transfer no data.
    names_per_s: f64,
}

struct Row<'t> {
    line: Line<'t>,
}

impl Row<'_> {
    fn first_of(&self, names: &[(&str, f64)]) -> Result<Option<f64>, ForeignError> {
        for (name, unit) in names {
            if let Some(value) = self.line.number(name)? {
                return Ok(Some(value * unit));
            }
        }
        Ok(None)
    }

    fn bundle(&self, name: &str, declared: TableDefaults) -> Result<Bundle, ForeignError> {
        let size = match self.first_of(&SIZES)? {
            Some(bytes) => Some(bytes),
            None => self.line.text("size").map(|text| self.size(text)).transpose()?,
        };
        let bandwidth = self.first_of(&BANDWIDTHS)?;
        let rate = self.first_of(&RATES.map(|name| (name, 1.0)))?;
        let reads = self.line.share("read_percent")?.unwrap_or(1.0) * 100.0;
        let seconds = self.line.number("seconds")?;
        let length_ns = seconds.map_or(LENGTH_NS, |s| (s * 1e9) as u64).max(1);
        let length_s = length_ns as f64 / 1e9;
        // If one of the three columns is missing, it is derived from the other two columns, so it
        // cannot contradict them.
        let (rate, bandwidth) = match (rate, bandwidth, size) {
            (Some(rate), Some(bandwidth), _) => (rate, bandwidth),
            (Some(rate), None, Some(size)) => (rate, rate * size),
            (None, Some(bandwidth), Some(size)) if size > 0.0 => (bandwidth / size, bandwidth),
            _ => {
                let says = "contains neither a rate nor a bandwidth with a transfer size";
                return Err(self.line.error(says).into());
            }
        };
        let outstanding =
            self.line.number("outstanding")?.map(|n| n as u64).or(declared.outstanding);
        let parts = self.parts(rate, reads)?;
        let data_rate = parts.read_per_s + parts.write_per_s;
        // The mean of several sizes may include a fraction of a sector, but a plan requires whole
        // sectors.
        let whole = |bytes: f64| (bytes / SECTOR_BYTES).round().max(1.0) * SECTOR_BYTES;
        let size = size.or((data_rate > 0.0).then(|| whole(bandwidth / data_rate)));
        let reads = if data_rate > 0.0 { parts.read_per_s / data_rate * 100.0 } else { reads };
        let plan_text = self.plan(size, reads, outstanding);
        let plan = Plan::parse(&plan_text, name)
            .map_err(|errors| ForeignError(format!("line {}: {errors}", self.line.number)))?;
        let mut bundle =
            bundle(&format!("{name}:{}", self.line.number), &plan_text, plan.resolve(), length_ns);
        let latency_ns = self.first_of(&LATENCIES)?;
        let kinds = [
            ("read", true, parts.read_per_s, parts.read_per_s / data_rate),
            ("write", false, parts.write_per_s, parts.write_per_s / data_rate),
            ("names", false, parts.names_per_s, 0.0),
        ];
        for (word, is_read, per_s, share) in kinds {
            let mut totals = class(format!("table.{word}"), is_read, 0);
            totals.count = (per_s * length_s).round() as u64;
            totals.size_bytes = (bandwidth * share * length_s).round() as u64;
            if let Some(ns) = latency_ns {
                totals.latency_ns_sum = (ns * totals.count as f64) as u64;
            }
            if totals.count > 0 {
                bundle.run.classes.push(totals);
            }
        }
        if self.line.text("pattern").is_none() {
            bundle.run.counters.insert(PATTERN_NOT_STATED.into(), 1);
        }
        bundle.run.engine.kind = TABLE_KIND.into();
        if seconds.is_none() {
            bundle.run.phases[0].note = "its length is not stated".into();
        }
        if outstanding.is_none() {
            bundle.run.engine.closed_loop = false;
        }
        Ok(bundle)
    }

    /// Divides the rate into reads and writes. It uses the columns for reads and writes or, if
    /// these are absent, the read percentage.
    fn parts(&self, rate: f64, read_percent: f64) -> Result<Parts, ForeignError> {
        let [read, write] =
            [self.line.number("read_ops_per_s")?, self.line.number("write_ops_per_s")?];
        if read.is_none() && write.is_none() {
            let read_per_s = rate * read_percent / 100.0;
            return Ok(Parts { read_per_s, write_per_s: rate - read_per_s, names_per_s: 0.0 });
        }
        let (read_per_s, write_per_s) = (read.unwrap_or(0.0), write.unwrap_or(0.0));
        let names_per_s = (rate - read_per_s - write_per_s).max(0.0);
        Ok(Parts { read_per_s, write_per_s, names_per_s })
    }

    /// Parses `4KiB`, `64k` (1024, as usual in tables), or `4096`.
    fn size(&self, text: &str) -> Result<f64, ForeignError> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kb" | "kib" => 1024.0,
            "m" | "mb" | "mib" => 1048576.0,
            _ => f64::NAN,
        };
        let bytes = digits.trim().parse::<f64>().unwrap_or(f64::NAN) * unit;
        if bytes.is_finite() && bytes > 0.0 {
            return Ok(bytes);
        }
        Err(self.line.error(format!("size is {text:?}")).into())
    }

    fn plan(&self, size: Option<f64>, reads: f64, outstanding: Option<u64>) -> String {
        let pattern = match self.line.text("pattern").map(str::to_lowercase) {
            Some(text) if text.starts_with("seq") => "sequential",
            _ => "random",
        };
        let size = size.map_or(String::new(), |bytes| format!("sizes = \"{}B\"\n", bytes as u64));
        // If the number of operations in flight is unknown, the plan contains pauses, so that
        // Little's law is not applied.
        let load = match outstanding {
            Some(count) => format!("queue_depth = {}\n", count.max(1)),
            None => format!("think_time = \"{DEPTH_NOT_STATED_PAUSE_NS}ns\"\n"),
        };
        format!(
            "version = 1\nname = \"line {}\"\n[target]\npath = \
             \"/\"\n[workload.matrix]\n{size}reads = {reads}\npatterns = \"{pattern}\"\n{load}",
            self.line.number
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TABLE: &str = "# a \
                         remark\nio_kib,pattern,read_percent,bandwidth_mb_per_s,ops_per_s,latency_ms\n4,random,100,40.96,10000,0.8\n64,sequential,50,655.36,10000,3.2\n";

    #[test]
    fn each_row_is_a_bundle() {
        let rows = read(TABLE, "t.csv", TableDefaults { outstanding: Some(8) }).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].run.run_id, "t.csv:3");
        assert_eq!(rows[0].run.classes.len(), 1);
        assert_eq!(rows[0].run.classes[0].size_bytes, 40_960_000);
        assert_eq!(rows[1].run.classes[1].count, 5000);
        let stream = &rows[1].plan.workload.matrix().unwrap().streams[0];
        assert_eq!((stream.queue_depth, stream.sizes[0].size_bytes), (8, 65_536));
    }

    #[test]
    fn the_rest_of_a_rate_is_metadata_operations() {
        let text = "size,iops,bandwidth_mb_per_s,latency_ms,read_ops_per_s,write_ops_per_s\n4k,1000,3.8912,1,700,250\n,500,32.768,1,,500\n";
        let rows = read(text, "t", TableDefaults::default()).unwrap();
        let counts = |row: &Bundle| row.run.classes.iter().map(|c| c.count).collect::<Vec<_>>();
        assert_eq!(counts(&rows[0]), [700, 250, 50]);
        assert_eq!(rows[0].run.classes[2].size_bytes, 0);
        // This row has no size, so the size is computed from the rate and the bandwidth. The row
        // contains only writes.
        let stream = &rows[1].plan.workload.matrix().unwrap().streams[0];
        assert_eq!((stream.sizes[0].size_bytes, stream.read_percent), (65_536, 0.0));
        assert_eq!(counts(&rows[1]), [500]);
    }

    #[test]
    fn sizes_may_be_written_as_people_do() {
        let rows =
            read("size,iops\n8k,100\n1MiB,5\n512,7\n", "t", TableDefaults::default()).unwrap();
        let bytes: Vec<u64> = rows.iter().map(|row| row.run.classes[0].size_bytes).collect();
        assert_eq!(bytes, [819_200, 5 << 20, 3584]);
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let error = |text: &str| read(text, "t", TableDefaults::default()).unwrap_err().to_string();
        assert!(error("iops,size\n100,4k\nx,4k\n").starts_with("line 3"));
        assert!(error("iops,size\n100\n").contains("1 cell, but the header has 2"));
        assert!(error("a,b\n1,2\n").contains("neither a rate nor a bandwidth"));
        assert!(error("# only\n").contains("empty"));
        assert!(error("iops,size\n1,huge\n").contains("size is \"huge\""));
    }
}
