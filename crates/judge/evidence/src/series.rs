//! `series.csv`: measured values over time. There is one row for each class and for each gauge in
//! each interval.
//!
//! There are two kinds of rows with the same columns. A *class* row counts the I/Os of a class that
//! completed in the interval (`count`, `sum_ns`, `bytes`, `max_ns`). A *gauge* row contains one
//! `value` (a CPU share, or the increase of a device counter). I/Os that were in flight or due at
//! the end of the measured phase have separate class rows, named `CLASS.drained`. These rows belong
//! to the later interval in which the I/Os completed or were abandoned. The latencies of the phase
//! include these I/Os, but its rates do not. An empty cell means that the value is unknown. A run
//! of Plimsoll writes no row for a class without completed I/Os, so a missing row means zero. Sums
//! can be added over intervals and classes. Every mean is thus computed from sums, never from other
//! means.

use std::io::{BufRead, Write};

/// Column names, in order.
pub const HEADER: &str = "phase,start_ns,duration_ns,name,count,sum_ns,bytes,max_ns,value";

/// Suffix of the class name in rows that count drained I/Os.
const DRAINED: &str = ".drained";

/// Returns the name that identifies rows with the drained I/Os of a class. Drained I/Os were in
/// flight or due at the end of the measured phase.
#[must_use]
pub fn drained_name(class: &str) -> String {
    format!("{class}{DRAINED}")
}

/// Returns the class if `name` is the name of rows that count drained I/Os; `None` for other names.
#[must_use]
pub fn drained_class(name: &str) -> Option<&str> {
    name.strip_suffix(DRAINED)
}

/// Returns the operation of a class, which is the last part of its name: `read` for `db3.read`.
#[must_use]
pub fn operation_of(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// Names of gauges that count failed I/Os begin with this prefix.
const ERRORS: &str = "errors.";

/// Returns the name of the gauge that counts, for each interval, the failed I/Os of a class.
#[must_use]
pub fn errors_name(class: &str) -> String {
    format!("{ERRORS}{class}")
}

/// Returns the class if `name` is the name of a gauge that counts failed I/Os; `None` for other
/// names.
#[must_use]
pub fn errors_class(name: &str) -> Option<&str> {
    name.strip_prefix(ERRORS)
}

/// A row of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the phase to which the row belongs, in the list of the run's phases.
    pub phase: u32,
    /// Start of the interval, relative to the start of the run.
    pub start_ns: u64,
    /// Length of the interval.
    pub duration_ns: u64,
    /// Name of the class (`db3.read`) or gauge (`cpu.busy_share`).
    pub name: String,
    /// Content.
    pub data: Data,
}

/// Content of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// The I/Os of a class that completed in the interval.
    Class {
        /// Number of I/Os.
        count: u64,
        /// Sum of the latencies of these I/Os.
        sum_ns: u64,
        /// Transferred bytes.
        bytes: u64,
        /// Largest latency.
        max_ns: u64,
    },
    /// Gauge value.
    Gauge(f64),
}

impl Row {
    /// Writes the row as one line of the file.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Self { phase, start_ns, duration_ns, name, data } = self;
        write!(out, "{phase},{start_ns},{duration_ns},{name},")?;
        match data {
            Data::Class { count, sum_ns, bytes, max_ns } => {
                writeln!(out, "{count},{sum_ns},{bytes},{max_ns},")
            }
            Data::Gauge(value) => writeln!(out, ",,,,{value}"),
        }
    }

    /// Parses a line that [`Row::write`] has written.
    ///
    /// # Errors
    /// Returns a text with the field and the reason.
    pub fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let [phase, start_ns, duration_ns, name, count, sum_ns, bytes, max_ns, value] = fields[..]
        else {
            return Err(format!("a row must have 9 columns, but has {}", fields.len()));
        };
        let number = |name: &str, text: &str| {
            text.parse::<u64>().map_err(|_| format!("{name} is {text:?}, not a whole number"))
        };
        let data = if count.is_empty() {
            let value = value.parse().map_err(|_| format!("value is {value:?}, not a number"))?;
            Data::Gauge(value)
        } else {
            Data::Class {
                count: number("count", count)?,
                sum_ns: number("sum_ns", sum_ns)?,
                bytes: number("bytes", bytes)?,
                max_ns: number("max_ns", max_ns)?,
            }
        };
        Ok(Self {
            phase: phase.parse().map_err(|_| format!("phase is {phase:?}, not a whole number"))?,
            start_ns: number("start_ns", start_ns)?,
            duration_ns: number("duration_ns", duration_ns)?,
            name: name.to_owned(),
            data,
        })
    }
}

/// Writes the header and the rows.
///
/// # Errors
/// The writer fails.
pub fn write<'a>(
    out: &mut impl Write,
    rows: impl IntoIterator<Item = &'a Row>,
) -> std::io::Result<()> {
    writeln!(out, "{HEADER}")?;
    rows.into_iter().try_for_each(|row| row.write(out))
}

/// Reads a file that [`write()`] has written.
///
/// # Errors
/// Returns a text with the line number and the reason.
pub fn read(input: impl BufRead) -> Result<Vec<Row>, String> {
    let mut lines = input.lines();
    match lines.next() {
        Some(Ok(header)) if header == HEADER => {}
        Some(Ok(header)) => return Err(format!("line 1 is {header:?}, which is not the header")),
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err("it is empty".to_owned()),
    }
    lines
        .enumerate()
        .map(|(index, line)| {
            let line = line.map_err(|error| error.to_string())?;
            Row::parse(&line).map_err(|reason| format!("line {}: {reason}", index + 2))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_row() -> impl Strategy<Value = Row> {
        let data = prop_oneof![
            any::<(u64, u64, u64, u64)>().prop_map(|(count, sum_ns, bytes, max_ns)| {
                Data::Class { count, sum_ns, bytes, max_ns }
            }),
            (-1e12f64..1e12).prop_map(Data::Gauge),
        ];
        (any::<u32>(), any::<u64>(), any::<u64>(), "[a-z][a-z0-9._-]{0,20}", data).prop_map(
            |(phase, start_ns, duration_ns, name, data)| Row {
                phase,
                start_ns,
                duration_ns,
                name,
                data,
            },
        )
    }

    proptest! {
        #[test]
        fn reads_back_what_it_wrote(rows in proptest::collection::vec(any_row(), 0..20)) {
            let mut text = Vec::new();
            write(&mut text, &rows).unwrap();
            prop_assert_eq!(read(text.as_slice()).unwrap(), rows);
        }

        #[test]
        fn never_panics_on_what_it_did_not_write(text in ".{0,200}") {
            let _ = read(format!("{HEADER}\n{text}\n").as_bytes());
        }
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        let text = format!("{HEADER}\n0,0,1,a,1,2,3,4,\n0,0,1,a,x,2,3,4,\n");
        let error = read(text.as_bytes()).unwrap_err();
        assert_eq!(error, "line 3: count is \"x\", not a whole number");
    }
}
