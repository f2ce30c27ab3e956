//! Functions that several readers share.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use plimsoll_evidence::tool_result::{Figure, Latency, Percentile, Source, Stage};

use crate::number;

/// Method by which a tool reduces a number to its printed digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    Exact,
    /// The number is rounded to the nearest value.
    Rounded,
    /// Truncated.
    Cut,
    /// The number is rounded or truncated.
    Either,
}

/// Parses a number as a figure in base units. Returns `None` if the text is not a number.
#[must_use]
pub fn figure(text: &str, digits: Digits, unit: f64, field: impl Into<String>) -> Option<Figure> {
    let number = number::plain(text.trim()).filter(|number| number.value.is_finite())?;
    let figure = match digits {
        Digits::Exact => Figure::exact(number.value, field),
        Digits::Rounded => Figure::rounded(number.value, number.step, field),
        Digits::Cut => Figure::truncated(number.value, number.step, field),
        Digits::Either => Figure::within(number.value, number.step, field),
    };
    Some(figure.scaled(unit))
}

/// Creates the description of a result's source.
#[must_use]
pub fn source(tool: &str, format: &str, file: &str) -> Source {
    Source {
        tool: tool.to_owned(),
        format: format.to_owned(),
        file: file.to_owned(),
        ..Source::default()
    }
}

/// Creates the latency of a stage. Returns `None` if it would contain no figures.
#[must_use]
pub fn latency(stage: Stage, fill: impl FnOnce(&mut Latency)) -> Option<Latency> {
    let mut latency = Latency { stage, ..Latency::default() };
    fill(&mut latency);
    let bare = Latency { stage, sampled: latency.sampled, ..Latency::default() };
    (latency != bare).then_some(latency)
}

/// Creates a percentile from a percentage.
#[must_use]
pub fn percentile(percent: f64, ns: Option<Figure>) -> Option<Percentile> {
    // The quantile is rounded, because 99.9 / 100 is not exactly 0.999 in binary.
    let quantile = (0.0..=100.0).contains(&percent).then_some((percent * 1e10).round() / 1e12)?;
    Some(Percentile { quantile, ns: ns? })
}

/// Row of a table that has a header. It contains the cells by column name.
pub struct Columns<'t> {
    names: BTreeMap<&'t str, usize>,
    cells: Vec<&'t str>,
    line: usize,
}

impl<'t> Columns<'t> {
    /// Creates a row from its header and cells.
    #[must_use]
    pub fn of(header: &[&'t str], cells: Vec<&'t str>, line: usize) -> Self {
        let names = header.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        Self { names, cells, line }
    }

    /// Returns the cell in a column. Returns `None` if the cell is empty or the column does not
    /// exist.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&'t str> {
        let text = self.cells.get(*self.names.get(name)?)?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// Parses a number.
    #[must_use]
    pub fn figure(&self, name: &str, digits: Digits, unit: f64) -> Option<Figure> {
        figure(self.text(name)?, digits, unit, format!("line {} ({name})", self.line))
    }
}

/// Parses a time in the form of RFC 3339 or ISO 8601 as seconds since 1970. A time without a zone
/// is in UTC.
#[must_use]
pub fn unix_s(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('"');
    let (date, time) = text.split_once(['T', ' '])?;
    let mut date = date.split('-');
    let year = date.next()?.parse().ok().filter(|year| (1900..3000).contains(year))?;
    let mut next = || date.next()?.parse().ok();
    let date = Date::new(year, next()?, next()?).ok()?;
    let (clock, zone) = match time.find(['Z', '+']).or_else(|| time.rfind('-').filter(|at| *at > 5))
    {
        Some(at) => (&time[..at], &time[at..]),
        None => (time, ""),
    };
    let mut clock = clock.trim().split(':');
    let mut next = || clock.next()?.parse::<f64>().ok();
    let seconds =
        next()? * 3600.0 + next()? * 60.0 + clock.next().map_or(Some(0.0), |s| s.parse().ok())?;
    let offset = offset_s(zone)?;
    let midnight = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    Some(midnight as f64 + seconds - offset)
}

fn offset_s(zone: &str) -> Option<f64> {
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() {
        return Some(0.0);
    }
    let hours: f64 = digits.get(..2)?.parse().ok()?;
    let minutes: f64 = digits.get(2..4).map_or(Some(0.0), |m| m.parse().ok())?;
    let sign = if zone.starts_with('-') { -1.0 } else { 1.0 };
    Some(sign * (hours * 3600.0 + minutes * 60.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_zones() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00", 0.0),
            ("2024-09-09T12:00:32.5", 1_725_883_232.5),
            ("2024-09-09T14:00:32+02:00", 1_725_883_232.0),
            ("2024-09-09T14:00:32.000+0200", 1_725_883_232.0),
            ("2024-09-09 12:00:32Z", 1_725_883_232.0),
            ("2024-09-09T07:00:32-05:00", 1_725_883_232.0),
        ] {
            assert_eq!(unix_s(text), Some(seconds), "{text}");
        }
        for text in ["", "yesterday", "2024-13-01T00:00:00", "2024-01-01"] {
            assert_eq!(unix_s(text), None, "{text}");
        }
    }
}
