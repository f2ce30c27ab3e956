//! Durations in nanoseconds.

use std::fmt;
use std::str::FromStr;

use super::{UnitError, decimal, serde_as_text};

const UNITS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A duration in nanoseconds. The maximum is 2^63 - 1 ns (292 years). In a plan, a duration is a
/// text such as `"20ms"`, `"1.5s"` or `"2h"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DurationNs(pub u64);

impl DurationNs {
    /// Creates a duration from milliseconds.
    #[must_use]
    pub const fn ms(count: u64) -> Self {
        Self(count * 1_000_000)
    }

    /// Creates a duration from seconds.
    #[must_use]
    pub const fn s(count: u64) -> Self {
        Self(count * 1_000_000_000)
    }
}

impl FromStr for DurationNs {
    type Err = UnitError;

    /// # Errors
    /// The error states the problem and the expected form.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text, "\"20ms\"")?;
        // The units `μs` (Greek letter) and `µs` (micro sign) are accepted like `us`.
        let unit = if matches!(unit, "µs" | "μs") { "us" } else { unit };
        match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => number.times(*factor, text, "nanoseconds").map(Self),
            None if unit.is_empty() => Err(UnitError::new(
                format!("\"{text}\" has no unit"),
                format!("write \"{text}s\" for seconds, or ns, us, ms, m (minutes), h"),
            )),
            None => Err(UnitError::new(
                format!("\"{unit}\" in \"{text}\" is not a unit of time"),
                "write ns, us, ms, s, m (minutes) or h, and one number: \"90m\", not \"1h30m\""
                    .to_owned(),
            )),
        }
    }
}

impl fmt::Display for DurationNs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&decimal::shortest(self.0, &UNITS))
    }
}

serde_as_text!(DurationNs);
