//! A measured table: one row for each I/O size and read share.
//!
//! [`plimsoll_evidence::cells`] describes the format. The columns are `io_kib`, `pattern` (`random`
//! or `sequential`), `read_percent`, `ops_per_s`, `latency_ms`, and optionally `clients` and `depth`
//! (outstanding operations of each client), if they differ from the model's load,
//! `bandwidth_mb_per_s`, `read_ops_per_s`, `write_ops_per_s`, `latency_ms_p99`. Columns with the names that `plimsoll
//! sweep --format csv` writes are also accepted. A row without an I/O size, such as a fill, is used
//! for the checks but not for the fit. Rows of a sweep whose verdict is INVALID are not used at
//! all.

use plimsoll_evidence::cells::{Cells, Line, TableError};

use super::FitError;
use crate::run::Pattern;

/// A row of a measured table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number of the line in the file; the first line is 1.
    pub line: usize,
    /// I/O size of the row; `None` if the row does not belong to the matrix of sizes and read
    /// shares.
    pub io_bytes: Option<u64>,
    /// Access pattern.
    pub pattern: Pattern,
    /// Share of reads among the data operations, from 0 to 1.
    pub read_share: Option<f64>,
    /// True if writes were on the medium when they completed (`O_DSYNC`).
    pub durable: bool,
    /// Number of clients; `None` if the row uses the clients of the model's load.
    pub clients: Option<u32>,
    /// Number of operations that each client keeps outstanding; `None` if the row uses the depth of
    /// the model's load, or a depth of 1 if it states its clients.
    pub depth: Option<u32>,
    /// Published bandwidth in MB/s, in the unit of the table (some tables mean MiB/s).
    pub bandwidth_mb_per_s: Option<f64>,
    /// Operations per second, including metadata operations.
    pub ops_per_s: f64,
    /// Mean latency.
    pub latency_ms: f64,
    /// 99th percentile of the latencies.
    pub latency_p99_ms: Option<f64>,
    /// Reads per second.
    pub read_ops_per_s: Option<f64>,
    /// Writes per second.
    pub write_ops_per_s: Option<f64>,
}

impl Row {
    /// Returns the data operations per second; `None` if the table lacks columns for them.
    pub fn data_ops_per_s(&self) -> Option<f64> {
        match (self.read_ops_per_s, self.write_ops_per_s) {
            (None, None) => None,
            (reads, writes) => Some(reads.unwrap_or(0.0) + writes.unwrap_or(0.0)),
        }
    }

    /// Returns the clients and the depth of the row. The arguments are those of the model's load.
    pub fn load_or(&self, clients: u32, depth: u32) -> (u32, u32) {
        match self.clients {
            Some(own) => (own, self.depth.unwrap_or(1)),
            None => (clients, self.depth.unwrap_or(depth)),
        }
    }

    /// Returns the stated number of operations in flight. Without a number of clients, it is the
    /// number of each client. `None` if the row states neither.
    pub fn outstanding(&self) -> Option<u32> {
        let (clients, depth) = self.load_or(1, 1);
        self.clients.or(self.depth).map(|_| clients.saturating_mul(depth))
    }

    /// Returns a short name of the row, such as `32 KiB, 75 % read`.
    pub fn label(&self) -> String {
        match (self.io_bytes, self.read_share) {
            (Some(io), Some(read)) => {
                let mut label = format!("{} KiB, {:.0} % read", io as f64 / 1024.0, 100.0 * read);
                if self.pattern == Pattern::Sequential {
                    label.push_str(", sequential");
                }
                if self.durable {
                    label.push_str(", durable");
                }
                if let Some(outstanding) = self.outstanding() {
                    label.push_str(&format!(", {outstanding} outstanding"));
                }
                label
            }
            _ => format!("line {}", self.line),
        }
    }
}

/// A measured table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub rows: Vec<Row>,
    /// Columns that a fit does not use.
    pub passed_over: Vec<String>,
    /// Number of rows that were left out because their verdict is INVALID, or because they have no
    /// rate or latency.
    pub rows_left_out: usize,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// [`FitError::Table`] if the table is invalid. It contains the line and the error.
    pub fn parse(text: &str) -> Result<Self, FitError> {
        let cells = Cells::read(text)?;
        let columns = COLUMNS.map(|synonyms| synonyms.iter().find(|(name, _)| cells.has(name)));
        let missing: Vec<&str> = COLUMNS[..NEEDED]
            .iter()
            .zip(&columns)
            .filter(|(_, column)| column.is_none())
            .map(|(synonyms, _)| synonyms[0].0)
            .collect();
        if !missing.is_empty() {
            let has = cells.names().collect::<Vec<_>>().join(", ");
            let reason = format!("has no column {}; it has {has}", missing.join(", "));
            return Err(TableError::new(cells.header_line(), reason).into());
        }
        let is_used = |name: &&str| {
            ["pattern", SYNC, VERDICT].contains(name)
                || columns.iter().flatten().any(|(used, _)| used == name)
        };
        let passed_over = cells.names().filter(|name| !is_used(name)).map(str::to_owned).collect();
        let has = |line: &Line<'_>, name, word| {
            line.text(name).is_some_and(|text: &str| text.eq_ignore_ascii_case(word))
        };
        let (left_out, usable): (Vec<_>, Vec<_>) = cells.lines().partition(|line| {
            let mut figures = columns[RATE..NEEDED].iter().flatten();
            has(line, VERDICT, "INVALID") || figures.any(|(name, _)| has(line, name, "unknown"))
        });
        let rows: Result<Vec<Row>, TableError> =
            usable.iter().map(|line| row(line, &columns)).collect();
        Ok(Self { rows: rows?, passed_over, rows_left_out: left_out.len() })
    }

    pub fn matrix(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|r| r.io_bytes.is_some() && r.read_share.is_some())
    }
}

/// Synonyms of each column name in tables of different origin. Each synonym has a factor that
/// converts its values to the unit of the first name. `read_share` has no factor, because both of
/// its names are converted to a share. If a table contains several synonyms, the first is used.
/// Tables of audits, for example, have a column `depth` and a column `outstanding`, which is the
/// sum of the depth over all clients.
type Synonyms = &'static [(&'static str, f64)];
/// The numeric columns. The first [`NEEDED`] columns are required.
const COLUMNS: [Synonyms; 10] = [
    &[("io_kib", 1.0), ("size_kib", 1.0), ("block_kib", 1.0), ("size_bytes", 1.0 / 1024.0)],
    &[("read_percent", 1.0), ("read_share", 1.0)],
    &[("ops_per_s", 1.0), ("rate_per_s", 1.0), ("iops", 1.0)],
    &[("latency_ms", 1.0), ("latency_us", 1e-3), ("latency_ns_avg", 1e-6)],
    &[("depth", 1.0), ("queue_depth", 1.0), ("outstanding", 1.0)],
    &[("bandwidth_mb_per_s", 1.0), ("bandwidth_bytes_per_s", 1e-6)],
    &[("read_ops_per_s", 1.0), ("read_rate_per_s", 1.0)],
    &[("write_ops_per_s", 1.0), ("write_rate_per_s", 1.0)],
    &[("latency_ms_p99", 1.0), ("latency_us_p99", 1e-3), ("latency_ns_p99", 1e-6)],
    &[("clients", 1.0), ("threads", 1.0), ("jobs", 1.0), ("numjobs", 1.0)],
];
const NEEDED: usize = 4;
/// Index of the rate in [`COLUMNS`]. The latency is the next column.
const RATE: usize = 2;
/// Indices of the depth and of the clients in [`COLUMNS`].
const DEPTH: usize = 4;
const CLIENTS: usize = 9;
/// Column with the verdict of each row of a sweep.
const VERDICT: &str = "verdict";
/// Column with the durability of writes.
const SYNC: &str = "sync";
/// Maximum number of operations in flight of a row. It is limited because every operation in flight
/// needs memory in a simulation.
pub const DEPTH_MAX: f64 = 65_536.0;

/// Largest I/O size, rate and latency of a row. A simulation of larger values would not end.
const IO_BYTES_MAX: u64 = 1 << 30;
const OPS_PER_S_MAX: f64 = 1e9;
const LATENCY_MS_MAX: f64 = 1e8;

/// Returns the reason why no storage has these figures; `None` if they are plausible.
pub fn implausible(io_bytes: Option<u64>, ops_per_s: f64, latency_ms: f64) -> Option<String> {
    if let Some(bytes) = io_bytes.filter(|bytes| *bytes > IO_BYTES_MAX) {
        return Some(format!("an I/O size of {} KiB is above 1 GiB", bytes / 1024));
    }
    if ops_per_s > OPS_PER_S_MAX {
        return Some(format!("a rate of {ops_per_s:e} operations/s is above {OPS_PER_S_MAX:e}"));
    }
    (latency_ms > LATENCY_MS_MAX)
        .then(|| format!("a latency of {latency_ms:e} ms is above {LATENCY_MS_MAX:e} ms"))
}

fn row(line: &Line<'_>, columns: &[Option<&(&'static str, f64)>; 10]) -> Result<Row, TableError> {
    let pattern = match line.text("pattern").map(str::to_lowercase).as_deref() {
        None | Some("random") => Pattern::Random,
        Some("sequential") => Pattern::Sequential,
        Some(other) => {
            let reason = format!("`pattern` is {other:?}, neither random nor sequential");
            return Err(line.error(reason));
        }
    };
    let durable = match line.text(SYNC) {
        None | Some("" | "none" | "unknown") => false,
        Some("dsync" | "file-sync") => true,
        Some(other) => {
            let reason = format!(
                "`{SYNC}` is {other:?}, but to fit a model it must be `none`, `dsync` or \
                 `file-sync`"
            );
            return Err(line.error(reason));
        }
    };
    let number = |column: usize| -> Result<Option<f64>, TableError> {
        let Some((name, factor)) = columns[column] else { return Ok(None) };
        if line.text(name).is_some_and(|text| text.eq_ignore_ascii_case("unknown")) {
            return Ok(None);
        }
        Ok(line.number(name)?.map(|value| value * factor))
    };
    let positive = |column: usize| {
        let name = columns[column].map_or("", |(name, _)| name);
        line.positive(name).map(|value| value * columns[column].map_or(1.0, |(_, factor)| *factor))
    };
    let read_share = match columns[1] {
        // A percentage may end with a percent sign.
        Some(("read_percent", _)) => line.share("read_percent")?,
        _ => number(1)?,
    };
    if let Some(share) = read_share.filter(|share| *share > 1.0) {
        return Err(line.error(format!("`read_share` is {share}, not a number from 0 to 1")));
    }
    let count = |column: usize| match (number(column)?, columns[column]) {
        (Some(n), _) if n >= 1.0 && n.fract() == 0.0 && n <= DEPTH_MAX => Ok(Some(n as u32)),
        (Some(n), Some((name, _))) => {
            let reason = format!("a {name} of {n} is not a count from 1 to {DEPTH_MAX}");
            Err(line.error(reason))
        }
        _ => Ok(None),
    };
    let (mut clients, mut depth) = (count(CLIENTS)?, count(DEPTH)?);
    // `outstanding` is the sum over all clients.
    if clients.is_some() && columns[DEPTH].is_some_and(|(name, _)| *name == "outstanding") {
        (clients, depth) = (depth.or(clients), None);
    }
    if f64::from(clients.unwrap_or(1)) * f64::from(depth.unwrap_or(1)) > DEPTH_MAX {
        return Err(line.error(format!("more than {DEPTH_MAX} operations are in flight")));
    }
    let io_bytes = number(0)?.map(|k| (k * 1024.0) as u64).filter(|b| *b > 0);
    let (ops_per_s, latency_ms) = (positive(2)?, positive(3)?);
    if let Some(reason) = implausible(io_bytes, ops_per_s, latency_ms) {
        return Err(line.error(reason));
    }
    Ok(Row {
        line: line.number,
        clients,
        depth,
        io_bytes,
        pattern,
        read_share,
        durable: durable && read_share != Some(1.0),
        ops_per_s,
        latency_ms,
        latency_p99_ms: number(8)?.filter(|ms| *ms > 0.0),
        bandwidth_mb_per_s: number(5)?,
        read_ops_per_s: number(6)?,
        write_ops_per_s: number(7)?,
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
        let text = "io_kib,pattern,read_percent,outstanding,ops_per_s,latency_ms\n4,sequential,100,1,100,1\n4,random,100,,100,1\n";
        let table = Table::parse(text).unwrap();
        assert_eq!(table.rows[0].label(), "4 KiB, 100 % read, sequential, 1 outstanding");
        assert_eq!((table.rows[0].depth, table.rows[1].depth), (Some(1), None));
        assert_eq!(Table::parse(&text.replace("outstanding", "depth")).unwrap(), table);
    }

    #[test]
    fn writes_may_be_durable() {
        let text = "io_kib,read_percent,ops_per_s,latency_ms,sync\n4,0,100,1,dsync\n4,0,200,1,none\n4,100,100,1,\n";
        let table = Table::parse(text).unwrap();
        let durable: Vec<bool> = table.rows.iter().map(|row| row.durable).collect();
        assert_eq!((durable, table.passed_over), (vec![true, false, false], Vec::new()));
        assert_eq!(table.rows[0].label(), "4 KiB, 0 % read, durable");
        let other = Table::parse(&text.replace("dsync", "fsync")).unwrap_err().to_string();
        assert!(other.contains("`sync` is \"fsync\""), "{other}");
    }

    #[test]
    fn says_which_line_is_wrong() {
        let header = "io_kib,read_percent,ops_per_s,latency_ms";
        let error = |text: &str| Table::parse(text).unwrap_err().to_string();
        let row = |row: &str| error(&format!("{header}\n{row}\n"));
        assert!(row("4,100,1,2\n4,100,1").starts_with("line 3"));
        assert!(row("4,100,1,x").contains("\"x\""));
        assert!(row("4,100,0,1").contains("greater than 0"));
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
    fn reads_a_sweep_without_its_rows_left_out() {
        let text = "pattern,queue_depth,size_bytes,read_share,bandwidth_bytes_per_s,rate_per_s,latency_ns_avg,read_rate_per_s,write_rate_per_s,verdict,note\nrandom,8,16384,0.7,163840000,10000,800000,7000,3000,MEASURED,\nrandom,8,4096,1,1,9e9,1,9e9,0,INVALID,from \
                    memory\nrandom,8,4096,1,unknown,20000,400000,unknown,0,PASS,\n";
        let table = Table::parse(text).unwrap();
        assert_eq!((table.rows.len(), table.rows_left_out), (2, 1));
        assert_eq!(table.passed_over, ["note"]);
        let row = &table.rows[0];
        assert_eq!((row.io_bytes, row.read_share, row.depth), (Some(16384), Some(0.7), Some(8)));
        assert_eq!(row.ops_per_s, 10_000.0);
        assert!((row.latency_ms - 0.8).abs() < 1e-9, "{row:?}");
        assert!((row.bandwidth_mb_per_s.unwrap() - 163.84).abs() < 1e-9, "{row:?}");
        assert_eq!((row.read_ops_per_s, row.write_ops_per_s), (Some(7000.0), Some(3000.0)));
        assert_eq!(table.rows[1].bandwidth_mb_per_s, None);
        let above = Table::parse(&text.replace("0.7", "70")).unwrap_err().to_string();
        assert!(above.contains("from 0 to 1"), "{above}");
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

    #[test]
    fn operations_in_flight_are_clients_times_depth() {
        let row = |columns: &str, cells: &str| {
            let text =
                format!("io_kib,read_percent,ops_per_s,latency_ms,{columns}\n4,100,1,2,{cells}\n");
            let table = Table::parse(&text).map_err(|error| error.to_string())?;
            assert!(table.passed_over.is_empty(), "{:?}", table.passed_over);
            Ok::<_, String>(table.rows[0].clone())
        };
        // The load of the model has 3 clients with a depth of 5.
        let load = |columns: &str, cells: &str| row(columns, cells).unwrap().load_or(3, 5);
        assert_eq!(load("clients", "64"), (64, 1));
        assert_eq!(load("clients,depth", "64,4"), (64, 4));
        assert_eq!(load("threads,queue_depth", "2,8"), (2, 8));
        assert_eq!(load("depth", "4"), (3, 4));
        assert_eq!(load("clients,depth", ","), (3, 5));
        assert_eq!(load("clients,outstanding", "4,64"), (64, 1), "the sum over all clients");
        assert!(row("clients,depth", "64,4").unwrap().label().ends_with(", 256 outstanding"));
        assert!(row("clients,depth", "60000,2").unwrap_err().contains("in flight"));
        assert!(row("clients", "0").unwrap_err().contains("a clients of 0"));
    }

    #[test]
    fn figures_that_no_storage_has_are_refused() {
        let error = |cells: &str| {
            let text = format!("io_kib,read_percent,ops_per_s,latency_ms\n{cells}\n");
            Table::parse(&text).unwrap_err().to_string()
        };
        assert!(error("4,100,1e300,0.1").starts_with("line 2: a rate of 1e300 operations/s"));
        assert!(error("1e15,100,1000,0.1").contains("is above 1 GiB"));
        assert!(error("4,100,1000,1e300").contains("a latency of 1e300 ms"));
        let largest = "io_kib,read_percent,ops_per_s,latency_ms\n1048576,100,1e9,0.1\n";
        assert!(Table::parse(largest).is_ok());
    }
}
