//! A measured table: one row for each I/O size and read share.
//!
//! CSV with a header; lines that begin with `#` are comments. Columns: `io_kib`, `pattern` (`random` or
//! `sequential`), `read_percent`, `ops_per_s`, `latency_ms`, and optionally `depth` (operations that each
//! client has outstanding, where it is not the model's own; `outstanding` is another word for it),
//! `bandwidth_mb_per_s`, `read_ops_per_s`, `write_ops_per_s`. A row without an I/O size, such as a fill,
//! is kept for the checks but not fitted.

use super::FitError;
use crate::run::Pattern;

/// A row of a measured table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Line in the file, from 1.
    pub line: usize,
    /// Size of the I/Os; `None` for a row that is not part of the matrix.
    pub io_bytes: Option<u64>,
    /// Order of access.
    pub pattern: Pattern,
    /// Share of reads among data operations.
    pub read_share: Option<f64>,
    /// Operations that each client has outstanding; `None` is what the model's load says.
    pub depth: Option<u32>,
    /// Published bandwidth in MB/s as the table has it (some mean MiB/s).
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
    /// Data operations per second, where the table has them.
    pub fn data_ops_per_s(&self) -> Option<f64> {
        match (self.read_ops_per_s, self.write_ops_per_s) {
            (None, None) => None,
            (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
        }
    }

    /// A short name, such as `32 KiB, 75 % read`.
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
    /// Its rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// [`FitError::Table`] with the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, FitError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (_, header) = lines.next().ok_or_else(|| bad(1, "is empty"))?;
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        for needed in ["ops_per_s", "latency_ms"] {
            if !names.contains(&needed) {
                return Err(bad(1, &format!("has no column `{needed}`")));
            }
        }
        let rows: Result<Vec<Row>, FitError> =
            lines.map(|(line, text)| row(line, &names, text)).collect();
        Ok(Self { rows: rows? })
    }

    /// The rows that are part of the matrix.
    pub fn matrix(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.io_bytes.is_some() && r.read_share.is_some())
    }
}

fn bad(line: usize, reason: &str) -> FitError {
    FitError::Table { line, reason: reason.to_owned() }
}

fn row(line: usize, names: &[&str], text: &str) -> Result<Row, FitError> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    if fields.len() != names.len() {
        let reason = format!("has {} fields, the header has {}", fields.len(), names.len());
        return Err(bad(line, &reason));
    }
    let text_of = |name: &str| {
        names.iter().position(|n| *n == name).map(|i| fields[i]).filter(|f| !f.is_empty())
    };
    let number = |name: &str| -> Result<Option<f64>, FitError> {
        match text_of(name) {
            None => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value >= 0.0 => Ok(Some(value)),
                _ => Err(bad(line, &format!("`{name}` is \"{text}\", not a number"))),
            },
        }
    };
    let positive = |name: &str| -> Result<f64, FitError> {
        number(name)?
            .filter(|v| *v > 0.0)
            .ok_or_else(|| bad(line, &format!("`{name}` has to be above 0")))
    };
    let pattern = match text_of("pattern") {
        None | Some("random") => Pattern::Random,
        Some("sequential") => Pattern::Sequential,
        Some(other) => {
            let reason = format!("`pattern` is \"{other}\", neither random nor sequential");
            return Err(bad(line, &reason));
        }
    };
    let depth = match number("depth")?.or(number("outstanding")?) {
        None => None,
        Some(n) if n >= 1.0 && n.fract() == 0.0 && n <= 65_536.0 => Some(n as u32),
        Some(n) => {
            return Err(bad(line, &format!("a depth of {n} is not a count from 1 to 65536")));
        }
    };
    Ok(Row {
        line,
        depth,
        io_bytes: number("io_kib")?.map(|k| (k * 1024.0) as u64).filter(|b| *b > 0),
        pattern,
        read_share: number("read_percent")?.map(|p| p / 100.0).filter(|p| *p <= 1.0),
        bandwidth_mb_per_s: number("bandwidth_mb_per_s")?,
        ops_per_s: positive("ops_per_s")?,
        latency_ms: positive("latency_ms")?,
        read_ops_per_s: number("read_ops_per_s")?,
        write_ops_per_s: number("write_ops_per_s")?,
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
        let error = Table::parse("ops_per_s,latency_ms\n1,2\n1\n").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
        let error = Table::parse("ops_per_s,latency_ms\n1,x\n").unwrap_err().to_string();
        assert!(error.contains("\"x\""), "{error}");
        let error = Table::parse("ops_per_s,latency_ms,depth\n1,2,0\n").unwrap_err().to_string();
        assert!(error.contains("depth of 0"), "{error}");
        let error = Table::parse("ops_per_s\n1\n").unwrap_err().to_string();
        assert!(error.contains("latency_ms"), "{error}");
    }
}
