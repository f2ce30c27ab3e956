//! Shares (0 to 1) and percentages (0 to 100).

use std::fmt;
use std::str::FromStr;

use super::{UnitError, decimal, serde_as_text};

/// A share from 0 to 1. In a plan, a share is a number or a percentage, such as `0.7` or `"70%"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// A percentage from 0 to 100. In a plan, a percentage is a number or a text, such as `75` or
/// `"75%"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Share {
    /// Creates a share from a plain number.
    ///
    /// # Errors
    /// The number is not between 0 and 1.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=1.0).contains(&value) {
            return Ok(Self(value));
        }
        let help = "use a share from 0 to 1, or a percentage such as \"70%\"";
        Err(UnitError::new(format!("{value} is not between 0 and 1"), help))
    }
}

impl Percent {
    /// Creates a percentage from a plain number.
    ///
    /// # Errors
    /// The number is not between 0 and 100.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=100.0).contains(&value) {
            return Ok(Self(value));
        }
        let help = "use a percentage from 0 to 100";
        Err(UnitError::new(format!("{value} is not between 0 and 100"), help))
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    /// # Errors
    /// The error states the problem and the expected form.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text, "\"75%\"")?;
        if unit == "%" {
            return Self::new(number.as_f64());
        }
        let help = "use a percentage such as 75 or \"75%\"";
        Err(UnitError::new(format!("\"{text}\" is not a percentage"), help))
    }
}

impl FromStr for Share {
    type Err = UnitError;

    /// # Errors
    /// The error states the problem and the expected form.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.parse::<Percent>()?;
        // The decimal point is shifted before the conversion, so that 12.3 % becomes exactly the
        // float 0.123.
        let (number, _) = decimal::split(text, "\"75%\"")?;
        Self::new(number.hundredth().as_f64())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", self.0))
    }
}

serde_as_text!(Percent);
