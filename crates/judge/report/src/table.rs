//! A table as data, which the terminal, the page, Markdown and CSV render.
//!
//! A cell contains a value in base units and its [`Unit`]. The renderer chooses the number of
//! digits and the display unit. `n/a` (the figure does not exist) and `unknown` (not observed) are
//! different values. Neither is ever printed as zero.

use crate::number::{Letters, Unit, show_against, show_limit};

/// Value of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Creates a text cell.
    Text(String),
    /// A number in its base unit.
    Number(Unit, f64),
    /// A number and its limit. The number is printed with enough digits to show that it differs
    /// from the limit.
    Against(Unit, f64, f64),
    /// A limit. The flag is true for a minimum and false for a maximum.
    Limit(Unit, f64, bool),
    /// The two ends of a 95 % interval.
    Interval(Unit, f64, f64),
    /// `n/a`: the figure does not exist, or has too few samples.
    NotApplicable,
    /// Not observed.
    Unknown,
    Empty,
}

/// Emphasis of a cell. The text of the cell always contains the same information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Normal.
    #[default]
    Plain,
    /// Good: a limit is not exceeded, a rule passed, a result is credible.
    Good,
    /// Bad: a limit is exceeded, or a rule failed.
    Bad,
    /// Warning, unknown.
    Warn,
    /// Less important.
    Faint,
    /// Important, such as a total.
    Strong,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub value: Value,
    /// Emphasis.
    pub tone: Tone,
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { value: Value::Text(text.into()), tone: Tone::Plain }
    }

    /// Creates a cell with a number, which is in its base unit.
    pub fn number(unit: Unit, base: f64) -> Self {
        Self { value: Value::Number(unit, base), tone: Tone::Plain }
    }

    pub fn count(count: u64) -> Self {
        Self::number(Unit::Count, count as f64)
    }

    /// Creates a cell with a number. `None` becomes `n/a`.
    pub fn maybe(unit: Unit, base: Option<f64>) -> Self {
        base.map_or(Self::not_applicable(), |base| Self::number(unit, base))
    }

    /// Creates a cell with a number. `None` becomes `unknown`.
    pub fn observed(unit: Unit, base: Option<f64>) -> Self {
        base.map_or(Self::unknown(), |base| Self::number(unit, base))
    }

    /// Creates a cell with the two ends of an interval. `None` becomes `n/a`.
    pub fn interval(unit: Unit, ends: Option<[f64; 2]>) -> Self {
        ends.map_or(Self::not_applicable(), |[low, high]| Self {
            value: Value::Interval(unit, low, high),
            tone: Tone::Plain,
        })
    }

    /// Creates an `n/a` cell.
    pub fn not_applicable() -> Self {
        Self { value: Value::NotApplicable, tone: Tone::Faint }
    }

    /// Creates an `unknown` cell.
    pub fn unknown() -> Self {
        Self { value: Value::Unknown, tone: Tone::Warn }
    }

    pub fn empty() -> Self {
        Self { value: Value::Empty, tone: Tone::Plain }
    }

    /// Sets the emphasis.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Formats the cell. `scale` is the common unit of the column; `None` if the column has none.
    pub fn show(&self, scale: Option<Scale>, letters: Letters) -> String {
        let one = |unit: Unit, base: f64| match scale {
            Some(scale) if scale.unit == unit => {
                unit.show_scaled(base, scale.divisor, scale.places)
            }
            _ => unit.show(base, letters),
        };
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Number(unit, base) => one(*unit, *base),
            Value::Against(unit, base, limit) => show_against(*unit, *base, *limit, letters),
            Value::Limit(unit, base, at_least) => {
                let sign = match (at_least, letters) {
                    (true, Letters::Unicode) => "≥",
                    (false, Letters::Unicode) => "≤",
                    (true, Letters::Ascii) => ">=",
                    (false, Letters::Ascii) => "<=",
                };
                format!("{sign} {}", show_limit(*unit, *base, letters))
            }
            Value::Interval(unit, low, high) => {
                let dash = if letters == Letters::Unicode { "–" } else { "-" };
                format!("{} {dash} {}", one(*unit, *low), one(*unit, *high))
            }
            Value::NotApplicable => "n/a".to_owned(),
            Value::Unknown => "unknown".to_owned(),
            Value::Empty => String::new(),
        }
    }

    fn size(&self) -> Option<f64> {
        match &self.value {
            Value::Number(_, base) if base.is_finite() => Some(base.abs()),
            Value::Interval(_, low, high) => Some(low.abs().max(high.abs())),
            _ => None,
        }
    }
}

/// Common unit of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Kind of numbers.
    pub unit: Unit,
    /// Number of base units in one display unit.
    pub divisor: f64,
    /// Name of the display unit.
    pub name: &'static str,
    /// Number of decimals; `None` if no number suits the whole column.
    pub places: Option<usize>,
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Heading shared with neighbouring columns, shown above the column's own heading; usually
    /// empty.
    pub group: String,
    /// Heading.
    pub title: String,
    /// Name in CSV: lower case, with the base unit, such as `db_read_latency_ns_avg`.
    pub key: String,
    /// Alignment.
    pub align: Align,
    /// Kind of the column's numbers; `None` if each number has its own unit. The display unit is
    /// chosen for the largest number, and is part of the heading.
    pub common: Option<Unit>,
    /// True if the column contains remarks. A terminal prints each remark on a separate line after
    /// the row.
    pub below: bool,
    /// Order in which a narrow terminal omits columns. Columns with the highest rank are omitted
    /// first, and columns with rank 0 never.
    pub rank: u8,
}

impl Column {
    fn new(title: &str, key: &str, align: Align, common: Option<Unit>) -> Self {
        let (group, title, key) = (String::new(), title.into(), key.into());
        Self { group, title, key, align, common, below: false, rank: 0 }
    }

    #[must_use]
    pub fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the shared heading.
    #[must_use]
    pub fn under(mut self, group: &str) -> Self {
        self.group = group.into();
        self
    }

    /// Returns shared heading, own heading and unit in one line, for output in which a heading
    /// cannot span columns.
    pub fn heading(&self, scale: Option<Scale>) -> String {
        let mut heading = match (self.group.is_empty(), self.title.is_empty()) {
            (true, _) => self.title.clone(),
            (false, true) => self.group.clone(),
            (false, false) => format!("{} {}", self.group, self.title),
        };
        let unit = self.unit_name(scale);
        if !unit.is_empty() {
            heading = format!("{heading}, {unit}");
        }
        heading
    }

    /// Returns the name of the unit; empty if the heading already has it.
    pub fn unit_name(&self, scale: Option<Scale>) -> &'static str {
        let says = |text: &str| text.ends_with("per second");
        match scale {
            Some(scale) if scale.name == "/s" && (says(&self.group) || says(&self.title)) => "",
            Some(scale) => scale.name,
            None => "",
        }
    }
    /// Creates a text column.
    pub fn words(title: &str, key: &str) -> Self {
        Self::new(title, key, Align::Left, None)
    }

    pub fn remarks(title: &str, key: &str) -> Self {
        Self { below: true, ..Self::words(title, key) }
    }

    /// Creates a column of numbers with individual units.
    pub fn numbers(title: &str, key: &str) -> Self {
        Self::new(title, key, Align::Right, None)
    }

    pub fn of(unit: Unit, title: &str, key: &str) -> Self {
        Self::new(title, key, Align::Right, Some(unit))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub caption: String,
    /// Note that is printed after the table; may be empty.
    pub note: String,
    pub columns: Vec<Column>,
    /// Rows. Each row has one cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Rows with totals and means, after the line that ends the table.
    pub totals: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(caption: &str, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, ..Self::default() }
    }

    /// Returns rows and totals.
    pub fn all_rows(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().chain(&self.totals)
    }

    /// Removes columns that are empty in all rows. The first column is always kept.
    #[must_use]
    pub fn without_empty_columns(&self) -> Self {
        let says = |cell: &Cell| match &cell.value {
            Value::Empty => false,
            Value::Text(text) => !text.is_empty(),
            _ => true,
        };
        let kept = |i: &usize| *i == 0 || self.all_rows().any(|row| row.get(*i).is_some_and(says));
        let kept: Vec<usize> = (0..self.columns.len()).filter(kept).collect();
        let pick = |rows: &[Vec<Cell>]| -> Vec<Vec<Cell>> {
            let of = |row: &Vec<Cell>| kept.iter().filter_map(|i| row.get(*i).cloned()).collect();
            rows.iter().map(of).collect()
        };
        Self {
            columns: kept.iter().map(|i| self.columns[*i].clone()).collect(),
            rows: pick(&self.rows),
            totals: pick(&self.totals),
            ..self.clone()
        }
    }

    /// Returns the common unit of a column.
    pub fn scale(&self, column: usize, letters: Letters) -> Option<Scale> {
        let unit = self.columns.get(column)?.common?;
        let largest = self.all_rows().filter_map(|row| row.get(column)?.size()).fold(0.0, f64::max);
        let (divisor, name) = unit.scale_for(largest, letters);
        let least = self
            .all_rows()
            .filter_map(|row| row.get(column)?.size())
            .filter(|size| *size > 0.0)
            .fold(largest, f64::min);
        let places = unit.places_for(least / divisor, largest / divisor);
        Some(Scale { unit, divisor, name, places })
    }

    /// Returns CSV (RFC 4180) with keys as the header. Numbers are in base units without grouping.
    /// A field is empty for `n/a`, and `unknown` if the value was not observed.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        // A column of intervals or limits becomes two columns.
        let ends = |i: usize| {
            self.all_rows().find_map(|row| match row.get(i).map(|cell| &cell.value) {
                Some(Value::Interval(..)) => Some(["low", "high"]),
                Some(Value::Limit(..)) => Some(["at_least", "at_most"]),
                _ => None,
            })
        };
        let ends: Vec<Option<[&str; 2]>> = (0..self.columns.len()).map(ends).collect();
        let header: Vec<String> = self
            .columns
            .iter()
            .zip(&ends)
            .flat_map(|(column, ends)| match ends {
                Some(ends) => ends.map(|end| format!("{}_{end}", column.key)).to_vec(),
                None => vec![column.key.clone()],
            })
            .collect();
        push_line(&mut out, &header);
        for row in self.all_rows() {
            let fields: Vec<String> = row
                .iter()
                .zip(&ends)
                .flat_map(|(cell, ends)| csv_fields(cell, ends.is_some()))
                .collect();
            push_line(&mut out, &fields);
        }
        out
    }
}

fn push_line(out: &mut String, fields: &[String]) {
    out.push_str(&fields.join(","));
    out.push_str("\r\n");
}

fn csv_fields(cell: &Cell, two: bool) -> Vec<String> {
    let one = match &cell.value {
        Value::Interval(_, low, high) => return vec![plain(*low), plain(*high)],
        Value::Limit(_, base, true) => return vec![plain(*base), String::new()],
        Value::Limit(_, base, false) => return vec![String::new(), plain(*base)],
        Value::Text(text) => crate::escape::csv_text(text),
        Value::Number(_, base) | Value::Against(_, base, _) => plain(*base),
        Value::Unknown => "unknown".to_owned(),
        Value::NotApplicable | Value::Empty => String::new(),
    };
    if two { vec![one, String::new()] } else { vec![one] }
}

/// Formats a number for machines. The result is the shortest text that parses to the same number.
fn plain(base: f64) -> String {
    if base.is_finite() { format!("{base}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(
            "Reads",
            vec![
                Column::words("database", "database"),
                Column::of(Unit::Latency, "average", "latency_ns_avg"),
                Column::of(Unit::Rate, "95 % interval", "rate_per_s"),
            ],
        );
        table.rows.push(vec![
            Cell::text("db,1"),
            Cell::number(Unit::Latency, 8_570_000.0),
            Cell { value: Value::Interval(Unit::Rate, 320.5, 341.0), tone: Tone::Plain },
        ]);
        table.rows.push(vec![Cell::text("db2"), Cell::not_applicable(), Cell::unknown()]);
        table
    }

    #[test]
    fn csv_is_in_base_units_and_tells_missing_from_unobserved() {
        let expected = "database,latency_ns_avg,rate_per_s_low,rate_per_s_high\r\n\"db,1\",8570000,320.5,341\r\ndb2,,unknown,\r\n";
        assert_eq!(table().csv(), expected);
    }

    #[test]
    fn a_column_has_one_unit() {
        let table = table();
        let scale = table.scale(1, Letters::Unicode).unwrap();
        assert_eq!(scale.name, "ms");
        assert_eq!(table.rows[0][1].show(Some(scale), Letters::Unicode), "8.570");
        let rate = table.scale(2, Letters::Ascii);
        assert_eq!(table.rows[0][2].show(rate, Letters::Ascii), "320.5 - 341.0");
    }
}
