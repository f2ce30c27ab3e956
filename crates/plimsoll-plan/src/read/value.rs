//! Values of fields: what TOML may hold for each, and what is said when it holds something else.

use toml::de::{DeFloat, DeInteger, DeValue};

use super::section::a_kind;
use super::{At, Cx};
use crate::resolved as r;
use crate::shown::printable;
use crate::units::{BytesPerS, DurationNs, OpsPerS, Percent, Share, SizeBytes, UnitError};

/// A value that a field can take.
pub(crate) trait ReadValue: Sized {
    /// Kind of value, for the reference.
    fn kind() -> String;
    /// Reads it, or notes what is wrong.
    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self>;
}

fn wrong_kind(value: &DeValue<'_>, at: &At, cx: &mut Cx, wanted: &str, help: &str) {
    cx.fail(at, format!("is {}, not {wanted}", a_kind(value)), help);
}

fn keep<T>(result: Result<T, UnitError>, at: &At, cx: &mut Cx) -> Option<T> {
    result.map_err(|e| cx.fail(at, e.message, e.help)).ok()
}

fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

fn float(number: &DeFloat<'_>) -> Option<f64> {
    number.as_str().parse().ok().filter(|f: &f64| f.is_finite())
}

/// A plain number, integer or float.
fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(i) => {
            // Plans hold no integer that a float can't: the largest are counts and rates.
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

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        match value {
            DeValue::String(text) => Some(text.clone().into_owned()),
            other => {
                wrong_kind(other, at, cx, "text", "put it in quotes");
                None
            }
        }
    }
}

/// Text that is not empty and has no control characters: names, paths, addresses.
#[derive(Clone, Debug)]
pub(crate) struct Name(pub(crate) String);

impl ReadValue for Name {
    fn kind() -> String {
        "text".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let text = String::read(value, at, cx)?;
        if text.trim().is_empty() {
            cx.fail(at, "is empty", "write a name, or leave the field out");
            return None;
        }
        if text.chars().any(char::is_control) {
            cx.fail(at, "holds a control character", "write it without");
            return None;
        }
        Some(Self(text))
    }
}

impl ReadValue for bool {
    fn kind() -> String {
        "true or false".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        if let DeValue::Boolean(b) = value {
            return Some(*b);
        }
        wrong_kind(value, at, cx, "true or false", "write true or false, without quotes");
        None
    }
}

/// A whole number of at least `LEAST`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole<const LEAST: u64>(pub(crate) u64);

/// Whole numbers from 1.
pub(crate) type Count = Whole<1>;

impl<const LEAST: u64> ReadValue for Whole<LEAST> {
    fn kind() -> String {
        if LEAST == 0 { "whole number".to_owned() } else { format!("whole number from {LEAST}") }
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let DeValue::Integer(i) = value else {
            wrong_kind(value, at, cx, "a whole number", "write digits, without quotes or unit");
            return None;
        };
        let most = i128::from(i64::MAX);
        match integer(i).filter(|n| (i128::from(LEAST)..=most).contains(n)) {
            Some(n) => u64::try_from(n).ok().map(Self),
            None => {
                let shown = printable(i.as_str());
                let help = format!("write a whole number of at least {LEAST}");
                cx.fail(at, format!("{shown} is out of range"), help);
                None
            }
        }
    }
}

/// A number that is at least 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotNegative(pub(crate) f64);

impl ReadValue for NotNegative {
    fn kind() -> String {
        "number from 0".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        if let Some(n) = number(value).filter(|n| *n >= 0.0) {
            return Some(Self(n));
        }
        cx.fail(at, "is not a number of at least 0", "write a number such as 0.2, without quotes");
        None
    }
}

/// How many to one: a number from 1 to 1000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio(pub(crate) f64);

impl ReadValue for Ratio {
    fn kind() -> String {
        "number from 1 to 1000 (to one)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        if let Some(n) = number(value).filter(|n| (1.0..=1000.0).contains(n)) {
            return Some(Self(n));
        }
        cx.fail(at, "is not a ratio", "write a number from 1 (none) to 1000, such as 4.0 for 4:1");
        None
    }
}

/// Quantities that are written as text with a unit.
macro_rules! quantity {
    ($type:ty, $kind:literal, $wanted:literal, $example:literal) => {
        impl ReadValue for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
                match value {
                    DeValue::String(text) => keep(text.parse(), at, cx),
                    DeValue::Integer(i) => {
                        let n = printable(i.as_str());
                        let help = concat!("write it with a unit and in quotes: ", $example);
                        cx.fail(at, format!("{n} has no unit"), help);
                        None
                    }
                    other => {
                        wrong_kind(
                            other,
                            at,
                            cx,
                            $wanted,
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

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        if let DeValue::String(text) = value {
            return keep(text.parse(), at, cx);
        }
        if let Some(n) = number(value).filter(|n| *n >= 0.0) {
            return Some(Self(n));
        }
        cx.fail(at, "is not a rate", "write operations per second: 500 or \"500/s\"");
        None
    }
}

impl ReadValue for Share {
    fn kind() -> String {
        "share (`0.7` or `\"70%\"`)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        match (value, number(value)) {
            (DeValue::String(text), _) => keep(text.parse(), at, cx),
            (_, Some(n)) => keep(Self::new(n), at, cx),
            _ => {
                wrong_kind(value, at, cx, "a share", "write a number from 0 to 1, or \"70%\"");
                None
            }
        }
    }
}

impl ReadValue for Percent {
    fn kind() -> String {
        "percentage (`75` or `\"75%\"`)".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        match (value, number(value)) {
            (DeValue::String(text), _) => keep(text.parse(), at, cx),
            (_, Some(n)) => keep(Self::new(n), at, cx),
            _ => {
                wrong_kind(value, at, cx, "a percentage", "write a number from 0 to 100");
                None
            }
        }
    }
}

/// A list of values with at least one entry.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: ReadValue> ReadValue for List<T> {
    fn kind() -> String {
        format!("list of: {}", T::kind())
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let Some(entries) = value.as_array() else {
            let help = "put it in square brackets: [ … ]";
            wrong_kind(value, at, cx, "a list", help);
            return None;
        };
        if entries.is_empty() {
            cx.fail(at, "is an empty list", "name at least one, or leave the field out");
            return None;
        }
        let read = |(i, entry): (usize, &toml::Spanned<DeValue<'_>>)| {
            let at = At { field: format!("{}[{i}]", at.field), span: entry.span() };
            T::read(entry.get_ref(), &at, cx)
        };
        // All entries are read, so that each problem is noted, before any is given up on.
        let read: Vec<Option<T>> = entries.iter().enumerate().map(read).collect();
        read.into_iter().collect::<Option<Vec<T>>>().map(Self)
    }
}

/// One value, or a list of them: `[target]` or `[[target]]`, `4` or `[1, 4]`.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMore<T> {
    /// At least one, each with its place.
    pub(crate) items: Vec<(T, At)>,
}

impl<T: ReadValue> ReadValue for OneOrMore<T> {
    fn kind() -> String {
        format!("{}, or a list of such", T::kind())
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let Some(entries) = value.as_array() else {
            let items = vec![(T::read(value, at, cx)?, at.clone())];
            return Some(Self { items });
        };
        let places = entries
            .iter()
            .enumerate()
            .map(|(i, e)| At { field: format!("{}[{i}]", at.field), span: e.span() });
        let places: Vec<At> = places.collect();
        let items = List::<T>::read(value, at, cx)?.0.into_iter().zip(places).collect();
        Some(Self { items })
    }
}

/// A word that stands for itself, or a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WordOr<W, T> {
    /// The word.
    Word(W),
    /// The value.
    Value(T),
}

/// A single word: `auto`, `until-steady`.
pub(crate) trait OneWord: Sized {
    /// The word.
    const WORD: &'static str;
    /// What stands for it.
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

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        match value {
            DeValue::String(text) if *text == W::WORD => Some(Self::Word(W::VALUE)),
            other => T::read(other, at, cx).map(Self::Value),
        }
    }
}

/// One of several words.
macro_rules! word_value {
    ($($type:ty),+) => {$(
        impl ReadValue for $type {
            fn kind() -> String {
                word_kind(Self::WORDS)
            }

            fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
                let index = word_index(value, Self::WORDS, at, cx)?;
                Self::ALL.get(index).copied()
            }
        }
    )+};
}

pub(crate) fn word_kind(words: &[&str]) -> String {
    words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(" or ")
}

/// Which of the words it is; notes the nearest when it is none.
pub(crate) fn word_index(
    value: &DeValue<'_>,
    words: &[&str],
    at: &At,
    cx: &mut Cx,
) -> Option<usize> {
    let listed = format!("one of: {}", words.join(", "));
    let DeValue::String(text) = value else {
        wrong_kind(value, at, cx, "a word", &format!("write {listed}"));
        return None;
    };
    let found = words.iter().position(|w| w == text);
    if found.is_none() {
        let near = words.iter().map(|w| (strsim::jaro_winkler(&text.to_lowercase(), w), w));
        let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.7);
        let help = match near {
            Some((_, word)) => format!("did you mean \"{word}\"? ({listed})"),
            None => format!("write {listed}"),
        };
        cx.fail(at, format!("\"{}\" is not a known word", printable(text)), help);
    }
    found
}

word_value!(
    r::Pace,
    r::Durability,
    r::CacheState,
    r::Condition,
    r::IoChoice,
    r::DirectIo,
    r::Layout,
    r::SyncKind,
    r::Media,
    r::Claim
);

/// The word of a pattern, without its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternWord(pub(crate) &'static str);

impl ReadValue for PatternWord {
    fn kind() -> String {
        word_kind(r::Pattern::WORDS)
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let index = word_index(value, r::Pattern::WORDS, at, cx)?;
        r::Pattern::WORDS.get(index).copied().map(Self)
    }
}

/// The word of an arrival, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrivalWord(pub(crate) &'static str);

const ARRIVALS: &[&str] = &["closed", "constant", "poisson", "bursts", "recorded"];

impl ReadValue for ArrivalWord {
    fn kind() -> String {
        word_kind(ARRIVALS)
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let index = word_index(value, ARRIVALS, at, cx)?;
        ARRIVALS.get(index).copied().map(Self)
    }
}

/// Free names with plain values: parameters of a model. Values are kept as TOML.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(pub(crate) std::collections::BTreeMap<String, String>);

impl ReadValue for Settings {
    fn kind() -> String {
        "table of names and values".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &At, cx: &mut Cx) -> Option<Self> {
        let mut settings = Self::default();
        settings.gather(value, "", at, cx)?;
        Some(settings)
    }
}

impl Settings {
    fn gather(&mut self, value: &DeValue<'_>, prefix: &str, at: &At, cx: &mut Cx) -> Option<()> {
        let Some(table) = value.as_table() else {
            wrong_kind(value, at, cx, "a table", "write names and values: { \"a.b\" = 1 }");
            return None;
        };
        for (key, value) in table {
            let dot = if prefix.is_empty() { "" } else { "." };
            let name = format!("{prefix}{dot}{}", key.get_ref());
            let at = At { field: format!("{}.{}", at.field, key.get_ref()), span: value.span() };
            let text = match value.get_ref() {
                DeValue::Table(_) => {
                    self.gather(value.get_ref(), &name, &at, cx)?;
                    continue;
                }
                DeValue::String(text) => toml::Value::String(text.to_string()).to_string(),
                DeValue::Boolean(b) => b.to_string(),
                DeValue::Integer(i) => integer(i)?.to_string(),
                DeValue::Float(f) => f.as_str().to_owned(),
                other => {
                    wrong_kind(
                        other,
                        &at,
                        cx,
                        "a plain value",
                        "write text, a number or a boolean",
                    );
                    return None;
                }
            };
            self.0.insert(name, text);
        }
        Some(())
    }
}
