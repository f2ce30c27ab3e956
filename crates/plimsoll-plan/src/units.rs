//! Quantities as people write them in a plan: sizes, durations, rates, shares.
//!
//! Reading is strict: a number, at most one space, a unit, nothing else; case matters; the result
//! must be a whole number of base units and fit 63 bits (a TOML integer and a file offset both end
//! there). Writing picks the shortest text that reads back as the same value.

mod decimal;
mod duration;
mod rate;
mod share;
mod size;

use thiserror::Error;

use crate::shown::one_line;

pub use duration::DurationNs;
pub use rate::{BytesPerS, OpsPerS};
pub use share::{Percent, Share};
pub use size::{SizeBytes, sizes_from_text};

/// Characters of a message at most.
const SHOWN_MAX: usize = 240;

/// Why a text is not the quantity that was asked for.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct UnitError {
    /// What is wrong with which text.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl UnitError {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        // Both quote the text that was written, which may be of any length.
        let shown = |text: String| one_line(&text.chars().take(SHOWN_MAX).collect::<String>());
        Self { message: shown(message.into()), help: shown(help.into()) }
    }
}

/// Serialises a quantity as its text and reads it back from there.
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
