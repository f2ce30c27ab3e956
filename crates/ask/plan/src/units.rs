//! Quantities in a plan: sizes, durations, rates and shares.
//!
//! Parsing is strict: a text consists of a number, at most one space, and a unit. The case of the
//! unit matters. The result must be a whole number of base units, and it must fit into 63 bits,
//! which is the limit of TOML integers and file offsets. Formatting returns the shortest text that
//! parses to the same value.

mod decimal;
mod duration;
mod rate;
mod share;
mod size;

use thiserror::Error;

use crate::display_text::one_line;

pub use duration::DurationNs;
pub use rate::{BytesPerS, OpsPerS};
pub use share::{Percent, Share};
pub use size::{SizeBytes, sizes_from_text};

/// Maximum length of a message, in characters.
const SHOWN_MAX: usize = 240;

/// Error for a text that is not a valid quantity.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct UnitError {
    /// Description of the error, with the text that could not be parsed.
    pub message: String,
    /// Hint for the user, in the imperative.
    pub help: String,
}

impl UnitError {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        // The message and the hint quote the input, so they are shortened.
        let shown = |text: String| one_line(&text.chars().take(SHOWN_MAX).collect::<String>());
        Self { message: shown(message.into()), help: shown(help.into()) }
    }
}

/// Serialises a quantity as its text.
macro_rules! serde_as_text {
    ($quantity:ty) => {
        impl serde::Serialize for $quantity {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $quantity {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                text.parse().map_err(|e: crate::units::UnitError| {
                    serde::de::Error::custom(format_args!("{}; {}", e.message, e.help))
                })
            }
        }
    };
}
pub(crate) use serde_as_text;
