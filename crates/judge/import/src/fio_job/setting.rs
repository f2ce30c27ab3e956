//! Values of plan fields that are derived from a job.

use std::fmt;

use plimsoll_plan::{DurationNs, SizeBytes};
use toml::{Table, Value};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Setting {
    Whole(u64),
    Number(f64),
    Text(String),
    Yes,
    /// Sizes with their percentages.
    Mix(Vec<(u64, f64)>),
    /// Words with their percentages.
    Shares(Vec<(&'static str, f64)>),
}

impl From<u64> for Setting {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<f64> for Setting {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<SizeBytes> for Setting {
    fn from(size: SizeBytes) -> Self {
        Self::Text(size.to_string())
    }
}

impl From<DurationNs> for Setting {
    fn from(duration: DurationNs) -> Self {
        Self::Text(duration.to_string())
    }
}

/// Rounds percentages to a millionth. The last percentage is the remainder, so that the sum is 100.
fn rounded(sizes: &[(u64, f64)]) -> Vec<(String, f64)> {
    let mut rest = 100.0;
    let one = |(i, (bytes, share)): (usize, &(u64, f64))| {
        let share = if i + 1 == sizes.len() { rest } else { (share * 1e6).round() / 1e6 };
        rest -= share;
        (SizeBytes(*bytes).to_string(), share)
    };
    sizes.iter().enumerate().map(one).collect()
}

/// Formats a number as an integer if it has no fraction.
fn number(number: f64) -> Value {
    let whole = number as i64;
    if whole as f64 == number { Value::Integer(whole) } else { Value::Float(number) }
}

impl From<&Setting> for Value {
    fn from(setting: &Setting) -> Self {
        match setting {
            Setting::Whole(whole) => Self::Integer(i64::try_from(*whole).unwrap_or(i64::MAX)),
            Setting::Number(value) => number(*value),
            Setting::Text(text) => Self::String(text.clone()),
            Setting::Yes => Self::Boolean(true),
            Setting::Shares(shares) => {
                let fields =
                    shares.iter().map(|(word, share)| ((*word).to_owned(), number(*share)));
                Self::Table(fields.collect())
            }
            Setting::Mix(sizes) => {
                let part = |(size, share): (String, f64)| {
                    let fields = [
                        ("size".to_owned(), Self::String(size)),
                        ("share".to_owned(), number(share)),
                    ];
                    Self::Table(Table::from_iter(fields))
                };
                Self::Array(rounded(sizes).into_iter().map(part).collect())
            }
        }
    }
}

/// Formats the value as in a plan.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{}", Value::String(text.clone())),
            Self::Yes => f.write_str("true"),
            Self::Shares(shares) => {
                let parts: Vec<String> =
                    shares.iter().map(|(word, share)| format!("{word} = {share}")).collect();
                write!(f, "{{ {} }}", parts.join(", "))
            }
            Self::Mix(sizes) => {
                let part = |(size, share): (String, f64)| {
                    format!("{{ size = {}, share = {share} }}", Value::String(size))
                };
                let parts: Vec<String> = rounded(sizes).into_iter().map(part).collect();
                write!(f, "[{}]", parts.join(", "))
            }
        }
    }
}
