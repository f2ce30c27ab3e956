//! Values that are words, and special words that a plan may state in place of a value.

use toml::de::DeValue;

use super::value::{ReadValue, wrong_kind};
use super::{Cx, Position};
use crate::display_text::printable;
use crate::resolved as r;

/// A special word or a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WordOr<W, T> {
    /// The word.
    Word(W),
    /// The value.
    Value(T),
}

/// Value of a field that accepts only one word, such as `auto` or `until-steady`.
pub(crate) trait OneWord: Sized {
    /// The word.
    const WORD: &'static str;
    /// Value of a field that contains the word.
    const VALUE: Self;
}

/// `auto`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Auto;

impl OneWord for Auto {
    const WORD: &'static str = "auto";
    const VALUE: Self = Self;
}

/// `until-steady`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntilSteady;

impl OneWord for UntilSteady {
    const WORD: &'static str = "until-steady";
    const VALUE: Self = Self;
}

impl<W: OneWord, T: ReadValue> ReadValue for WordOr<W, T> {
    fn kind() -> String {
        format!("{}, or `\"{}\"`", T::kind(), W::WORD)
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        match value {
            DeValue::String(text) if *text == W::WORD => Some(Self::Word(W::VALUE)),
            other => T::read(other, at, cx).map(Self::Value),
        }
    }
}

/// Implements reading for types whose values are words.
macro_rules! word_value {
    ($($type:ty),+) => {$(
        impl ReadValue for $type {
            fn kind() -> String {
                word_kind(Self::WORDS)
            }

            fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
                let index = word_index(value, Self::WORDS, at, cx)?;
                Self::ALL.get(index).copied()
            }
        }
    )+};
}

pub(crate) fn word_kind(words: &[&str]) -> String {
    words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(" or ")
}

/// Returns the index of the word in `words`. If the word is unknown, records an error that suggests
/// the most similar word.
pub(crate) fn word_index(
    value: &DeValue<'_>,
    words: &[&str],
    at: &Position,
    cx: &mut Cx,
) -> Option<usize> {
    let listed = format!("one of: {}", words.join(", "));
    let DeValue::String(text) = value else {
        wrong_kind(value, at, cx, "a word", &format!("use {listed}"));
        return None;
    };
    let found = words.iter().position(|w| w == text);
    if found.is_none() {
        let near = words.iter().map(|w| (strsim::jaro_winkler(&text.to_lowercase(), w), w));
        let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.7);
        let help = match near {
            Some((_, word)) => format!("did you mean \"{word}\"? Use {listed}"),
            None => format!("use {listed}"),
        };
        cx.fail(at, format!("\"{}\" is not an allowed word", printable(text)), help);
    }
    found
}

word_value!(
    r::Pace,
    r::Carries,
    r::OnLostHost,
    r::Durability,
    r::CacheState,
    r::Condition,
    r::IoChoice,
    r::DirectIo,
    r::Layout,
    r::SyncKind,
    r::SyncMethod,
    r::CutKind,
    r::Media,
    r::Claim,
    r::TraceMap
);

/// Word for an access pattern. The parameters of the pattern are separate fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternWord(pub(crate) &'static str);

impl ReadValue for PatternWord {
    fn kind() -> String {
        word_kind(r::Pattern::WORDS)
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let index = word_index(value, r::Pattern::WORDS, at, cx)?;
        r::Pattern::WORDS.get(index).copied().map(Self)
    }
}

/// Word for an arrival process. The parameters of the process are separate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrivalWord(pub(crate) &'static str);

const ARRIVALS: &[&str] = &["closed", "constant", "poisson", "bursts", "recorded"];

impl ReadValue for ArrivalWord {
    fn kind() -> String {
        word_kind(ARRIVALS)
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let index = word_index(value, ARRIVALS, at, cx)?;
        ARRIVALS.get(index).copied().map(Self)
    }
}
