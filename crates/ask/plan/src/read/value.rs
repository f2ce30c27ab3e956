//! Kinds of field values. Each kind states which TOML values it accepts, and which error it reports
//! for other TOML values.

use toml::de::{DeFloat, DeInteger, DeValue};

use super::{Cx, Position};
use crate::display_text::printable;
use crate::units::{BytesPerS, DurationNs, OpsPerS, Percent, Share, SizeBytes, UnitError};

/// The value of a field.
pub(crate) trait ReadValue: Sized {
    /// Returns the name of the kind, for the reference.
    fn kind() -> String;
    /// Reads the value. If this fails, records the error.
    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self>;
}

/// Returns the kind of a TOML value with an article: `a string`, `an integer`….
pub(crate) fn a_kind(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

pub(super) fn wrong_kind(
    value: &DeValue<'_>,
    at: &Position,
    cx: &mut Cx,
    required: &str,
    help: &str,
) {
    cx.fail(at, format!("is {}, not {required}", a_kind(value)), help);
}

fn keep<T>(result: Result<T, UnitError>, at: &Position, cx: &mut Cx) -> Option<T> {
    result.map_err(|e| cx.fail(at, e.message, e.help)).ok()
}

pub(super) fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

fn float(number: &DeFloat<'_>) -> Option<f64> {
    number.as_str().parse().ok().filter(|f: &f64| f.is_finite())
}

/// Returns an integer or float as a float.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(i) => {
            // The conversion to a float is exact, because the integers in a plan are only counts
            // and rates.
            integer(i).map(|i| i as f64)
        }
        DeValue::Float(f) => float(f),
        _ => None,
    }
}

impl ReadValue for String {
    fn kind() -> String {
        "text".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        match value {
            DeValue::String(text) => Some(text.clone().into_owned()),
            other => {
                wrong_kind(other, at, cx, "text", "put the value in quotes");
                None
            }
        }
    }
}

/// A text that is not empty and contains no control characters, such as a name, a path or an
/// address.
#[derive(Clone, Debug)]
pub(crate) struct Name(pub(crate) String);

impl ReadValue for Name {
    fn kind() -> String {
        "text".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let text = String::read(value, at, cx)?;
        if text.trim().is_empty() {
            cx.fail(at, "is empty", "set a name, or remove the field");
            return None;
        }
        if text.chars().any(char::is_control) {
            cx.fail(at, "contains a control character", "remove this character");
            return None;
        }
        Some(Self(text))
    }
}

impl ReadValue for bool {
    fn kind() -> String {
        "true or false".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        if let DeValue::Boolean(b) = value {
            return Some(*b);
        }
        wrong_kind(value, at, cx, "true or false", "use true or false, without quotes");
        None
    }
}

/// An integer that is not less than `LEAST`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer<const LEAST: u64>(pub(crate) u64);

/// An integer that is not less than 1.
pub(crate) type Count = Integer<1>;

impl<const LEAST: u64> ReadValue for Integer<LEAST> {
    fn kind() -> String {
        if LEAST == 0 { "whole number".to_owned() } else { format!("whole number from {LEAST}") }
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let DeValue::Integer(i) = value else {
            wrong_kind(
                value,
                at,
                cx,
                "a whole number",
                "write only digits, without quotes and without a unit",
            );
            return None;
        };
        let most = i128::from(i64::MAX);
        match integer(i).filter(|n| (i128::from(LEAST)..=most).contains(n)) {
            Some(n) => u64::try_from(n).ok().map(Self),
            None => {
                let shown = printable(i.as_str());
                let help = format!("use a whole number of at least {LEAST}");
                cx.fail(at, format!("{shown} is out of range"), help);
                None
            }
        }
    }
}

/// A number that is not negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotNegative(pub(crate) f64);

impl ReadValue for NotNegative {
    fn kind() -> String {
        "number from 0".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        if let Some(n) = number(value).filter(|n| *n >= 0.0) {
            return Some(Self(n));
        }
        cx.fail(at, "is not a number of at least 0", "use a number such as 0.2, without quotes");
        None
    }
}

/// A ratio of N to 1. N is between 1 and 1000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio(pub(crate) f64);

impl ReadValue for Ratio {
    fn kind() -> String {
        "number from 1 to 1000 (to one)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        if let Some(n) = number(value).filter(|n| (1.0..=1000.0).contains(n)) {
            return Some(Self(n));
        }
        cx.fail(
            at,
            "is not a ratio",
            "use a number from 1 (no compression) to 1000, such as 4.0 for 4:1",
        );
        None
    }
}

/// Defines a quantity that a plan states as a text with a number and a unit.
macro_rules! quantity {
    ($type:ty, $kind:literal, $required:literal, $example:literal) => {
        impl ReadValue for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
                match value {
                    DeValue::String(text) => keep(text.parse(), at, cx),
                    DeValue::Integer(i) => {
                        let n = printable(i.as_str());
                        let help = concat!("write the value with a unit and in quotes: ", $example);
                        cx.fail(at, format!("{n} has no unit"), help);
                        None
                    }
                    other => {
                        wrong_kind(
                            other,
                            at,
                            cx,
                            $required,
                            concat!("write text such as ", $example),
                        );
                        None
                    }
                }
            }
        }
    };
}

quantity!(SizeBytes, "size", "a size", "\"32KiB\"");
quantity!(DurationNs, "duration", "a duration", "\"20ms\"");
quantity!(BytesPerS, "rate of bytes", "a rate of bytes", "\"10MiB/s\"");

impl ReadValue for OpsPerS {
    fn kind() -> String {
        "rate (`200` or `\"200/s\"`)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        if let DeValue::String(text) = value {
            return keep(text.parse(), at, cx);
        }
        if let Some(n) = number(value).filter(|n| *n >= 0.0) {
            return Some(Self(n));
        }
        cx.fail(at, "is not a rate", "use operations per second, such as 500 or \"500/s\"");
        None
    }
}

impl ReadValue for Share {
    fn kind() -> String {
        "share (`0.7` or `\"70%\"`)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        match (value, number(value)) {
            (DeValue::String(text), _) => keep(text.parse(), at, cx),
            (_, Some(n)) => keep(Self::new(n), at, cx),
            _ => {
                wrong_kind(value, at, cx, "a share", "use a number from 0 to 1, or \"70%\"");
                None
            }
        }
    }
}

impl ReadValue for Percent {
    fn kind() -> String {
        "percentage (`75` or `\"75%\"`)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        match (value, number(value)) {
            (DeValue::String(text), _) => keep(text.parse(), at, cx),
            (_, Some(n)) => keep(Self::new(n), at, cx),
            _ => {
                wrong_kind(value, at, cx, "a percentage", "use a number from 0 to 100");
                None
            }
        }
    }
}
