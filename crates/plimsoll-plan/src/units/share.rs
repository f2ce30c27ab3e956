//! Parts of a whole: shares (0 to 1) and percentages (0 to 100).

use std::fmt;
use std::str::FromStr;

use super::{UnitError, decimal, serde_as_text};

/// A part of a whole, 0 to 1. Written `0.7` or `"70%"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// A part of a hundred, 0 to 100. Written `75` or `"75%"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Share {
    /// A share from a plain number.
    ///
    /// # Errors
    /// When it is not between 0 and 1.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=1.0).contains(&value) {
            return Ok(Self(value));
        }
        let help = "write a share from 0 to 1, or a percentage such as \"70%\"";
        Err(UnitError::new(format!("{value} is not between 0 and 1"), help))
    }
}

impl Percent {
    /// A percentage from a plain number.
    ///
    /// # Errors
    /// When it is not between 0 and 100.
    pub fn new(value: f64) -> Result<Self, UnitError> {
        if (0.0..=100.0).contains(&value) {
            return Ok(Self(value));
        }
        let help = "write a percentage from 0 to 100";
        Err(UnitError::new(format!("{value} is not between 0 and 100"), help))
    }
}

impl FromStr for Percent {
    type Err = UnitError;

    /// # Errors
    /// Says what is wrong with the text and what to write instead.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text, "\"75%\"")?;
        if unit == "%" {
            return Self::new(number.as_f64());
        }
        let help = "write a percentage such as 75 or \"75%\"";
        Err(UnitError::new(format!("\"{text}\" is not a percentage"), help))
    }
}

impl FromStr for Share {
    type Err = UnitError;

    /// # Errors
    /// Says what is wrong with the text and what to write instead.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.parse::<Percent>()?;
        // Shifted as a decimal, so that 12.3 % is the float that 0.123 means.
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
