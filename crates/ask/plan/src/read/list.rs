//! Reads lists, and tables whose entries have arbitrary names.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeValue;

use super::value::{ReadValue, integer, wrong_kind};
use super::{Cx, Position};
use crate::units::{SizeBytes, sizes_from_text};

/// A list with at least one entry.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: ReadValue> ReadValue for List<T> {
    fn kind() -> String {
        format!("list of: {}", T::kind())
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let Some(entries) = value.as_array() else {
            let help = "put the value in square brackets: [ … ]";
            wrong_kind(value, at, cx, "a list", help);
            return None;
        };
        if entries.is_empty() {
            cx.fail(at, "is an empty list", "list at least one value, or remove the field");
            return None;
        }
        let read = |(i, entry): (usize, &Spanned<DeValue<'_>>)| {
            let at = Position { field: format!("{}[{i}]", at.field), span: entry.span() };
            T::read(entry.get_ref(), &at, cx)
        };
        // Reads all entries first, so that the errors of all entries are recorded.
        let read: Vec<Option<T>> = entries.iter().enumerate().map(read).collect();
        read.into_iter().collect::<Option<Vec<T>>>().map(Self)
    }
}

/// A single value or a list of values. Examples are `[target]` and `[[target]]`, or `4` and `[1,
/// 4]`.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMore<T> {
    /// The values and their positions. There is at least one value.
    pub(crate) items: Vec<(T, Position)>,
}

impl<T: ReadValue> ReadValue for OneOrMore<T> {
    fn kind() -> String {
        format!("{}, or a list of them", T::kind())
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let Some(entries) = value.as_array() else {
            let items = vec![(T::read(value, at, cx)?, at.clone())];
            return Some(Self { items });
        };
        let places = entries
            .iter()
            .enumerate()
            .map(|(i, e)| Position { field: format!("{}[{i}]", at.field), span: e.span() });
        let places: Vec<Position> = places.collect();
        let items = List::<T>::read(value, at, cx)?.0.into_iter().zip(places).collect();
        Some(Self { items })
    }
}

/// A single size, a list of sizes, or a range such as `"4KiB..128KiB"`. In a range, each size is
/// twice the previous size.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) OneOrMore<SizeBytes>);

impl ReadValue for Sizes {
    fn kind() -> String {
        "size, a list of sizes, or `\"4KiB..128KiB\"` (each size is twice the previous one)"
            .to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        match value {
            DeValue::String(text) if text.contains("..") => match sizes_from_text(text) {
                Ok(sizes) => {
                    let items = sizes.into_iter().map(|size| (size, at.clone())).collect();
                    Some(Self(OneOrMore { items }))
                }
                Err(error) => {
                    cx.fail(at, error.message, error.help);
                    None
                }
            },
            other => OneOrMore::read(other, at, cx).map(Self),
        }
    }
}

/// A table with arbitrary names and plain values, such as the parameters of a model. The values are
/// stored as TOML text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(pub(crate) BTreeMap<String, String>);

impl ReadValue for Settings {
    fn kind() -> String {
        "table of names and values".to_owned()
    }

    fn read(value: &DeValue<'_>, at: &Position, cx: &mut Cx) -> Option<Self> {
        let mut settings = Self::default();
        settings.gather(value, "", at, cx)?;
        Some(settings)
    }
}

impl Settings {
    fn gather(
        &mut self,
        value: &DeValue<'_>,
        prefix: &str,
        at: &Position,
        cx: &mut Cx,
    ) -> Option<()> {
        let Some(table) = value.as_table() else {
            wrong_kind(
                value,
                at,
                cx,
                "a table",
                "list names and values, for example { \"a.b\" = 1 }",
            );
            return None;
        };
        for (key, value) in table {
            let dot = if prefix.is_empty() { "" } else { "." };
            let name = format!("{prefix}{dot}{}", key.get_ref());
            let at =
                Position { field: format!("{}.{}", at.field, key.get_ref()), span: value.span() };
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
                    wrong_kind(other, &at, cx, "a plain value", "use text, a number or a boolean");
                    return None;
                }
            };
            self.0.insert(name, text);
        }
        Some(())
    }
}
