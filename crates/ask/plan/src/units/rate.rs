//! Rates: operations and bytes per second.

use std::fmt;
use std::str::FromStr;

use super::{SizeBytes, UnitError, decimal, serde_as_text};

/// A rate in operations per second. It is finite and not negative. In a plan, such a rate is a text
/// such as `"500/s"` or `"0.2/s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct OpsPerS(pub f64);

impl FromStr for OpsPerS {
    type Err = UnitError;

    /// # Errors
    /// The error states the problem and the expected form.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text, "\"500/s\"")?;
        if unit == "/s" {
            return Ok(Self(number.as_f64()));
        }
        let what = if unit.is_empty() { "has no unit".to_owned() } else { not_per_second(unit) };
        Err(UnitError::new(
            format!("\"{text}\" {what}"),
            "give the operations per second in the form \"500/s\"".to_owned(),
        ))
    }
}

fn not_per_second(unit: &str) -> String {
    format!("is in \"{unit}\", not per second")
}

impl fmt::Display for OpsPerS {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", self.0))
    }
}

serde_as_text!(OpsPerS);

/// A rate in bytes per second, at most 2^63 - 1. In a plan, such a rate is a text such as
/// `"10MiB/s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BytesPerS(pub u64);

impl FromStr for BytesPerS {
    type Err = UnitError;

    /// # Errors
    /// The error states the problem and the expected form.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.strip_suffix("/s") {
            Some(size) => size.parse().map(|SizeBytes(bytes)| Self(bytes)),
            None => Err(UnitError::new(
                format!("\"{text}\" is not a rate of bytes"),
                "give a size per second, such as \"10MiB/s\"".to_owned(),
            )),
        }
    }
}

impl fmt::Display for BytesPerS {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", SizeBytes(self.0)))
    }
}

serde_as_text!(BytesPerS);
