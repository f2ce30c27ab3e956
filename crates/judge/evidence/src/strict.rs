//! Strict JSON reader, which rejects duplicate keys and unknown fields.
//!
//! If a key occurs twice, different programs may use different values of it. If Plimsoll ignored a
//! field, a reader of the file could rely on a field that has no effect. The parsed value must
//! therefore contain everything that is in the file.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Reads a value from JSON. Returns an error if a part of the JSON would be ignored.
///
/// # Errors
/// Returns a text with the reason. The reason is a syntax error, a duplicate key or an unknown
/// field.
pub fn read<T: DeserializeOwned + Serialize>(text: &str) -> Result<T, String> {
    let typed: T = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Strict(said) = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let read = serde_json::to_value(&typed).map_err(|error| error.to_string())?;
    match find_ignored(&said, &read, "") {
        None => Ok(typed),
        Some(at) => {
            Err(format!("{at} is an unknown field or has content that Plimsoll does not read"))
        }
    }
}

/// Returns the first location in the content of the file (`said`) whose value is missing from the
/// parsed value (`read`). The parsed value may contain defaults that are not in the file.
fn find_ignored(said: &Value, read: &Value, at: &str) -> Option<String> {
    match (said, read) {
        (Value::Object(said), Value::Object(read)) => said.iter().find_map(|(key, value)| {
            let at = format!("{at}.{key}");
            match read.get(key) {
                Some(read) => find_ignored(value, read, &at),
                // Null fields are omitted when the parsed value is written, so a null may be
                // missing here.
                None if value.is_null() => None,
                None => Some(at.trim_start_matches('.').to_owned()),
            }
        }),
        (Value::Array(said), Value::Array(read)) if said.len() == read.len() => {
            let both = said.iter().zip(read).enumerate();
            both.into_iter()
                .find_map(|(i, (said, read))| find_ignored(said, read, &format!("{at}[{i}]")))
        }
        (Value::Number(said), Value::Number(read)) if said.as_f64() == read.as_f64() => None,
        (said, read) if said == read => None,
        // Empty lists and maps may also be omitted when the parsed value is written.
        _ => Some(at.trim_start_matches('.').to_owned()),
    }
}

/// A JSON value without duplicate keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} occurs twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Deserialize, Serialize)]
    struct Form {
        counters: BTreeMap<String, u64>,
        share: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        later: Option<u64>,
        #[serde(default)]
        list: Vec<u64>,
    }

    fn said(text: &str) -> Result<Form, String> {
        read(text)
    }

    #[test]
    fn omitted_fields_have_defaults() {
        let form = said(r#"{"counters": {"a": 1}, "share": 0.1, "later": null}"#).unwrap();
        assert_eq!((form.share, form.later, form.list.len()), (0.1, None, 0));
    }

    #[test]
    fn rejects_duplicate_and_unknown_keys() {
        for (text, sentence) in [
            (r#"{"counters": {"a": 1, "a": 2}, "share": 1.0}"#, "\"a\" occurs twice"),
            (r#"{"counters": {"a": 1, "\u0061": 2}, "share": 1.0}"#, "\"a\" occurs twice"),
            (r#"{"counters": {}, "share": 1.0, "share": 2.0}"#, "duplicate field"),
            (r#"{"counters": {}, "share": 1.0, "verdict": "PASS"}"#, "verdict is an unknown field"),
            (r#"{"counters": {}, "share": 1.0} {}"#, "trailing"),
        ] {
            let error = said(text).unwrap_err();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
