//! Replay speed of a trace.

use toml::de::DeValue;

use super::value::{ReadValue, wrong_kind};
use super::{Cx, Position};
use crate::display_text::printable;

/// Range of valid replay speeds.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// Speed relative to the recording, or `None` to replay as fast as possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed(pub(crate) Option<f64>);

impl Speed {
    /// Parses a word from a plan or a command line.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "recorded" => return Some(Self(Some(1.0))),
            "as-fast" => return Some(Self(None)),
            _ => {}
        }
        let number = text.strip_suffix(['x', '×'])?;
        if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }
        let speed: f64 = number.parse().ok()?;
        SPEEDS.contains(&speed).then_some(Self(Some(speed)))
    }
}

impl ReadValue for Speed {
    fn kind() -> String {
        "`\"recorded\"`, a factor such as `\"2x\"`, or `\"as-fast\"`".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let help = "use \"recorded\", a factor from \"0.001x\" to \"1000x\", or \"as-fast\"";
        let DeValue::String(text) = value else {
            wrong_kind(value, at, cx, "a pace", help);
            return None;
        };
        let read = Self::parse(text);
        if read.is_none() {
            cx.fail(at, format!("\"{}\" is not a valid pace", printable(text)), help);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_words_and_factors() {
        assert_eq!(Speed::parse("recorded"), Some(Speed(Some(1.0))));
        assert_eq!(Speed::parse("2x"), Some(Speed(Some(2.0))));
        assert_eq!(Speed::parse("0.25x"), Some(Speed(Some(0.25))));
        assert_eq!(Speed::parse("as-fast"), Some(Speed(None)));
        for text in ["", "x", "2", "-1x", "0x", "1e3x", "infx", "NaNx", "2000x", "fast"] {
            assert_eq!(Speed::parse(text), None, "{text}");
        }
    }
}
