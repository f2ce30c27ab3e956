//! Reads tables that people write in spreadsheets or editors: comma-separated values (RFC 4180).
//!
//! The first line that is not a comment contains the names of the columns. Upper and lower case are
//! equivalent. A line that begins with `#` is a comment. The separator is the character among
//! comma, semicolon and tab that is most frequent in the header. The reader accepts quotes, a byte
//! order mark and empty lines. Numbers use a decimal point. Numbers with a comma (`1,5`, `1.234,5`)
//! are ambiguous, so the reader rejects them.

use csv::{ReaderBuilder, StringRecord, Trim};

/// An error in a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TableError {
    /// Line number in the text, counted from 1.
    pub line: usize,
    /// Description of the error.
    pub reason: String,
}

impl TableError {
    /// Creates an error for the line with this number.
    #[must_use]
    pub fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// A table with named columns. Every line has a cell for each column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    header_line: usize,
    names: Vec<String>,
    lines: Vec<(usize, StringRecord)>,
}

/// A line of a table, without its header.
#[derive(Clone, Copy, Debug)]
pub struct Line<'t> {
    /// Line number in the text, counted from 1.
    pub number: usize,
    names: &'t [String],
    cells: &'t StringRecord,
}

impl Cells {
    /// Reads a table.
    ///
    /// # Errors
    /// [`TableError`] if the header is missing, if the header repeats a column, or if a line has
    /// too many or too few cells.
    pub fn read(text: &str) -> Result<Self, TableError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = ReaderBuilder::new()
            .delimiter(separator(text))
            .comment(Some(b'#'))
            .trim(Trim::All)
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        let mut records = reader.records().filter_map(|record| match record {
            Ok(record) if record.iter().all(str::is_empty) => None,
            Ok(record) if record.get(0).is_some_and(is_remark) => None,
            Ok(record) => Some(Ok((line_of(text, record.position()), record))),
            Err(error) => {
                Some(Err(TableError::new(line_of(text, error.position()), error.to_string())))
            }
        });
        let Some(header) = records.next() else { return Err(TableError::new(1, "it is empty")) };
        let (header_line, header) = header?;
        let names: Vec<String> = header.iter().map(str::to_lowercase).collect();
        let twice = names
            .iter()
            .enumerate()
            .find(|(at, name)| !name.is_empty() && names[..*at].contains(name));
        if let Some((_, name)) = twice {
            return Err(TableError::new(header_line, format!("there are two columns `{name}`")));
        }
        let mut lines = Vec::new();
        for record in records {
            let (number, record) = record?;
            // Spreadsheets append empty cells after the last column.
            let beyond = record.iter().skip(names.len()).any(|cell| !cell.is_empty());
            if record.len() < names.len() || beyond {
                let (has, wants) = (record.len(), names.len());
                let cells = if has == 1 { "cell" } else { "cells" };
                let reason = format!("has {has} {cells}, but the header has {wants} columns");
                return Err(TableError::new(number, reason));
            }
            lines.push((number, record));
        }
        Ok(Self { header_line, names, lines })
    }

    /// Line number of the header.
    #[must_use]
    pub fn header_line(&self) -> usize {
        self.header_line
    }

    /// Column names in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns true if the table has a column with this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Returns the lines after the header.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let line = |(number, cells)| Line { number, names: &self.names, cells };
        self.lines.iter().map(|(number, cells)| (*number, cells)).map(line)
    }
}

impl Line<'_> {
    /// Returns the text in the cell of a column; `None` if the cell is empty or the column does not
    /// exist.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let at = self.names.iter().position(|known| known == name)?;
        self.cells.get(at).filter(|cell| !cell.is_empty())
    }

    /// Reads a number that is not negative.
    ///
    /// # Errors
    /// [`TableError`]: the cell does not contain such a number.
    pub fn number(&self, name: &str) -> Result<Option<f64>, TableError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(Some(value)),
            Ok(_) => {
                Err(self.error(format!("`{name}` is {text}, but must be finite and at least 0")))
            }
            Err(_) if text.contains(',') => Err(self.error(format!(
                "`{name}` is {text:?}: use a decimal point and no separator for thousands"
            ))),
            Err(_) => Err(self.error(format!("`{name}` is {text:?}, not a number"))),
        }
    }

    /// Reads a number greater than zero.
    ///
    /// # Errors
    /// [`TableError`]: the cell is empty or does not contain such a number.
    pub fn positive(&self, name: &str) -> Result<f64, TableError> {
        match self.number(name)? {
            Some(value) if value > 0.0 => Ok(value),
            Some(_) => Err(self.error(format!("`{name}` is 0, but must be greater than 0"))),
            None => Err(self.error(format!("`{name}` is missing"))),
        }
    }

    /// Reads a percentage as a fraction. A percent sign after the number is allowed.
    ///
    /// # Errors
    /// [`TableError`]: the cell does not contain a number, or the number is not from 0 to 100.
    pub fn share(&self, name: &str) -> Result<Option<f64>, TableError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        match number.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Some(percent / 100.0)),
            _ => Err(self.error(format!("`{name}` is {text:?}, not a number from 0 to 100"))),
        }
    }

    /// Creates an error for this line.
    #[must_use]
    pub fn error(&self, reason: impl Into<String>) -> TableError {
        TableError::new(self.number, reason)
    }
}

/// Returns the separator: the character among comma, semicolon and tab that is most frequent in the
/// header.
fn separator(text: &str) -> u8 {
    let is_header = |line: &&str| !line.trim().is_empty() && !is_remark(line);
    let header = text.lines().find(is_header).unwrap_or_default();
    let count = |separator: u8| header.bytes().filter(|byte| *byte == separator).count();
    // If two characters are equally frequent, `max_by_key` returns the last of them. The comma is
    // the last element, so that it is preferred.
    [b'\t', b';', b','].into_iter().max_by_key(|separator| count(*separator)).unwrap_or(b',')
}

fn is_remark(text: &str) -> bool {
    text.trim_start().starts_with('#')
}

/// Returns the line number of a record. The csv library reports only the line on which the previous
/// record ended. This function therefore adds the number of empty lines and comments after that
/// line.
fn line_of(text: &str, position: Option<&csv::Position>) -> usize {
    let Some(position) = position else { return 0 };
    let rest = text.get(position.byte() as usize..).unwrap_or_default();
    let passed_over = rest.lines().take_while(|line| line.is_empty() || line.starts_with('#'));
    position.line() as usize + passed_over.count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        Cells::read(text).unwrap_err().to_string()
    }

    #[test]
    fn reads_tables_of_people_and_spreadsheets() {
        let plain = "# a remark\n\nSize, iops\n4k,100\n# another\n8k,50\n";
        let texts = [
            plain.to_owned(),
            format!("\u{feff}{plain}"),
            plain.replace('\n', "\r\n"),
            plain.replace(',', ";"),
            plain.replace(',', "\t"),
            plain.replace("4k", "\"4k\"").replace("Size", "\"SIZE\""),
            plain.replace("100\n", "100,,\n\n,,\n"),
            plain.replace("# a", "  # \"a"),
        ];
        for text in texts {
            let cells = Cells::read(&text).unwrap();
            assert_eq!(cells.names().collect::<Vec<_>>(), ["size", "iops"], "{text:?}");
            let sizes: Vec<_> =
                cells.lines().map(|line| line.text("size").unwrap().to_owned()).collect();
            assert_eq!(sizes, ["4k", "8k"], "{text:?}");
            let rates: Vec<_> = cells.lines().map(|line| line.positive("iops").unwrap()).collect();
            assert_eq!(rates, [100.0, 50.0], "{text:?}");
        }
        let cells = Cells::read(plain).unwrap();
        assert_eq!(cells.header_line(), 3);
        assert_eq!(cells.lines().map(|line| line.number).collect::<Vec<_>>(), [4, 6]);
    }

    #[test]
    fn errors_have_line_numbers() {
        assert_eq!(error("# only\n"), "line 1: it is empty");
        assert_eq!(error("a,b\n1\n"), "line 2: has 1 cell, but the header has 2 columns");
        assert!(error("a,b\n\n1,2,3\n").starts_with("line 3: has 3 cells"));
        assert_eq!(error("#\na,A\n"), "line 2: there are two columns `a`");
    }

    #[test]
    fn rejects_ambiguous_numbers() {
        let error = |cell: &str| {
            let cells = Cells::read(&format!("a;b\n{cell};1\n")).unwrap();
            let line = cells.lines().next().unwrap();
            line.number("a").unwrap_err().to_string()
        };
        assert_eq!(error("x"), "line 2: `a` is \"x\", not a number");
        assert!(error("1,5").ends_with("use a decimal point and no separator for thousands"));
        assert!(error("-5").contains("is -5, but must be finite"));
        assert!(error("inf").contains("must be finite"));
        let cells = Cells::read("a,b,c\n75%,0,\n101,,1e3\n").unwrap();
        let lines: Vec<Line<'_>> = cells.lines().collect();
        assert_eq!(lines[0].share("a"), Ok(Some(0.75)));
        assert!(lines[1].share("a").unwrap_err().reason.contains("from 0 to 100"));
        assert_eq!((lines[0].number("c"), lines[1].number("c")), (Ok(None), Ok(Some(1000.0))));
        assert!(lines[0].positive("b").unwrap_err().reason.contains("greater than 0"));
        assert!(lines[1].positive("b").unwrap_err().reason.contains("missing"));
        assert_eq!(lines[0].number("d"), Ok(None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_rejected(text in "[a-c0-9,;\t\"# \r\n\u{feff}.%-]{0,80}") {
            if let Ok(cells) = Cells::read(&text) {
                for line in cells.lines() {
                    for name in cells.names() {
                        prop_assert!(line.number(name).is_err() || line.text(name).is_none()
                            || line.number(name).unwrap().unwrap() >= 0.0);
                    }
                    prop_assert!(line.number <= text.lines().count());
                }
            }
        }

        #[test]
        fn reads_written_tables_back(rows in prop::collection::vec(("[a-z \",;]{1,8}", 0u32..1000), 1..20)) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(["name", "value", "more"]).unwrap();
            for (name, value) in &rows {
                writer.write_record([name, &value.to_string(), "x"]).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let cells = Cells::read(&text).unwrap();
            let read: Vec<(String, u32)> = cells.lines().map(|line| {
                let name = line.text("name").unwrap_or_default().to_owned();
                (name, line.number("value").unwrap().unwrap() as u32)
            }).collect();
            let written: Vec<(String, u32)> =
                rows.iter().map(|(name, value)| (name.trim().to_owned(), *value)).collect();
            prop_assert_eq!(read, written);
        }
    }
}
