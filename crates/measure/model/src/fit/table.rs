//! A measured table: one row for each I/O size and read share.
//!
//! The format is that of [`plimsoll_evidence::cells`]. Columns: `io_kib`, `pattern` (`random` or
//! `sequential`), `read_percent`, `ops_per_s`, `latency_ms`, and optionally `depth` (outstanding
//! operations of each client, if different from the model's load; `queue_depth` and `outstanding`
//! are synonyms), `bandwidth_mb_per_s`, `read_ops_per_s`, `write_ops_per_s`. A row without an I/O
//! size, such as a fill, is used for the checks but not fitted.

use plimsoll_evidence::cells::{Cells, Line, TableError};

use super::FitError;
use crate::run::Pattern;

/// A row of a measured table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Line in the file, from 1.
    pub line: usize,
    /// Size of the I/Os; `None` for a row that is not part of the matrix.
    pub io_bytes: Option<u64>,
    /// Access pattern.
    pub pattern: Pattern,
    /// Share of reads among data operations.
    pub read_share: Option<f64>,
    /// Outstanding operations of each client; `None` for that of the model's load.
    pub depth: Option<u32>,
    /// Published bandwidth in MB/s, in the unit of the table (some tables mean MiB/s).
    pub bandwidth_mb_per_s: Option<f64>,
    /// Operations per second, metadata included.
    pub ops_per_s: f64,
    /// Mean latency.
    pub latency_ms: f64,
    /// Reads per second.
    pub read_ops_per_s: Option<f64>,
    /// Writes per second.
    pub write_ops_per_s: Option<f64>,
}

impl Row {
    /// Returns the data operations per second, if the table has them.
    pub fn data_ops_per_s(&self) -> Option<f64> {
        match (self.read_ops_per_s, self.write_ops_per_s) {
            (None, None) => None,
            (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
        }
    }

    /// Returns a short name, such as `32 KiB, 75 % read`.
    pub fn label(&self) -> String {
        match (self.io_bytes, self.read_share) {
            (Some(io), Some(read)) => {
                let mut label = format!("{} KiB, {:.0} % read", io as f64 / 1024.0, 100.0 * read);
                if self.pattern == Pattern::Sequential {
                    label.push_str(", sequential");
                }
                if let Some(depth) = self.depth {
                    label.push_str(&format!(", {depth} outstanding"));
                }
                label
            }
            _ => format!("line {}", self.line),
        }
    }
}

/// A measured table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Rows of the table.
    pub rows: Vec<Row>,
    /// Columns that a fit does not use.
    pub passed_over: Vec<String>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// [`FitError::Table`] with the line and the error.
    pub fn parse(text: &str) -> Result<Self, FitError> {
        let cells = Cells::read(text)?;
        let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !cells.has(name)).collect();
        if !missing.is_empty() {
            let has = cells.names().collect::<Vec<_>>().join(", ");
            let reason = format!("has no column {}; it has {has}", missing.join(", "));
            return Err(TableError::new(cells.header_line(), reason).into());
        }
        // If there are several, the first is used: audits use `outstanding` together with `depth`
        // for all clients together.
        let depth = DEPTHS.into_iter().find(|name| cells.has(name));
        let known = |name: &&str| NEEDED.iter().chain(&OTHERS).chain(&depth).any(|k| k == name);
        let passed_over = cells.names().filter(|name| !known(name)).map(str::to_owned).collect();
        let rows: Result<Vec<Row>, TableError> =
            cells.lines().map(|line| row(&line, depth)).collect();
        Ok(Self { rows: rows?, passed_over })
    }

    /// Returns the rows of the matrix.
    pub fn matrix(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.io_bytes.is_some() && r.read_share.is_some())
    }
}

/// Required columns.
const NEEDED: [&str; 4] = ["io_kib", "read_percent", "ops_per_s", "latency_ms"];
/// Optional columns.
const OTHERS: [&str; 4] = ["pattern", "bandwidth_mb_per_s", "read_ops_per_s", "write_ops_per_s"];
/// Column names for the outstanding operations of each client.
const DEPTHS: [&str; 3] = ["depth", "queue_depth", "outstanding"];
const DEPTH_MAX: f64 = 65_536.0;

fn row(line: &Line<'_>, depth_name: Option<&str>) -> Result<Row, TableError> {
    let pattern = match line.text("pattern").map(str::to_lowercase).as_deref() {
        None | Some("random") => Pattern::Random,
        Some("sequential") => Pattern::Sequential,
        Some(other) => {
            let reason = format!("`pattern` is {other:?}, neither random nor sequential");
            return Err(line.error(reason));
        }
    };
    let depth = match depth_name.map(|name| Ok((name, line.number(name)?))).transpose()? {
        None | Some((_, None)) => None,
        Some((_, Some(n))) if n >= 1.0 && n.fract() == 0.0 && n <= DEPTH_MAX => Some(n as u32),
        Some((name, Some(n))) => {
            let reason = format!("a {name} of {n} is not a count from 1 to {DEPTH_MAX}");
            return Err(line.error(reason));
        }
    };
    Ok(Row {
        line: line.number,
        depth,
        io_bytes: line.number("io_kib")?.map(|k| (k * 1024.0) as u64).filter(|b| *b > 0),
        pattern,
        read_share: line.share("read_percent")?,
        bandwidth_mb_per_s: line.number("bandwidth_mb_per_s")?,
        ops_per_s: line.positive("ops_per_s")?,
        latency_ms: line.positive("latency_ms")?,
        read_ops_per_s: line.number("read_ops_per_s")?,
        write_ops_per_s: line.number("write_ops_per_s")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_published_tables() {
        for text in [
            include_str!("../../data/zfs-mirrors-random.csv"),
            include_str!("../../data/zfs-raidz2-random.csv"),
        ] {
            let table = Table::parse(text).unwrap();
            assert_eq!(table.rows.len(), 31);
            assert_eq!(table.matrix().count(), 30);
            let row = table.matrix().next().unwrap();
            assert_eq!((row.io_bytes, row.read_share), (Some(4096), Some(1.0)));
        }
    }

    #[test]
    fn rows_may_be_sequential_and_of_another_depth() {
        let text = "io_kib,pattern,read_percent,outstanding,ops_per_s,latency_ms\n\
            4,sequential,100,1,100,1\n4,random,100,,100,1\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.rows[0].label(), "4 KiB, 100 % read, sequential, 1 outstanding");
        assert_eq!((table.rows[0].depth, table.rows[1].depth), (Some(1), None));
        assert_eq!(Table::parse(&text.replace("outstanding", "depth")).unwrap(), table);
    }

    #[test]
    fn says_which_line_is_wrong() {
        let header = "io_kib,read_percent,ops_per_s,latency_ms";
        let error = |text: &str| Table::parse(text).unwrap_err().to_string();
        let row = |row: &str| error(&format!("{header}\n{row}\n"));
        assert!(row("4,100,1,2\n4,100,1").starts_with("line 3"));
        assert!(row("4,100,1,x").contains("\"x\""));
        assert!(row("4,100,0,1").contains("above 0"));
        assert!(row("4,101,1,1").contains("from 0 to 100"));
        assert!(
            error("io_kib,read_percent,ops_per_s\n4,100,1\n")
                .contains("no column latency_ms; it has io_kib")
        );
        for depth in ["depth", "queue_depth", "outstanding"] {
            let says = error(&format!("{header},{depth}\n4,100,1,2,0\n"));
            assert!(says.contains(&format!("{depth} of 0")), "{says}");
        }
        let says = error(&format!("{header},pattern\n4,100,1,2,sideways\n"));
        assert!(says.contains("\"sideways\""), "{says}");
    }

    #[test]
    fn a_mistyped_column_is_named() {
        let text = "io_kib,read_percent,ops_per_s,latency_ms,depht\n4,100,1,2,8\n";
        let table = Table::parse(text).unwrap();
        assert_eq!((table.rows[0].depth, table.passed_over), (None, vec!["depht".to_owned()]));
    }

    #[test]
    fn depth_goes_before_what_audits_read() {
        let text = "outstanding,io_kib,read_percent,ops_per_s,latency_ms,depth\n480,4,100,1,2,4\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(
            (table.rows[0].depth, table.passed_over),
            (Some(4), vec!["outstanding".to_owned()])
        );
    }
}
