//! JSON parser for the output of benchmark tools, which preserves the digits of numbers.
//!
//! A general parser would convert `0.250` to a quarter, and lose the number of digits. The digits
//! determine the range in which the true value is. Tools also print `NaN`, `Infinity` and fio's
//! `-nan`, which JSON (RFC 8259) does not allow. Therefore this parser keeps numbers as text. It
//! also records the path of each value, so that findings can state it.

use std::borrow::Cow;

use plimsoll_evidence::tool_result::Figure;

use crate::number;

/// Maximum nesting depth, which limits the use of the stack. The output of known tools is nested
/// far less deeply.
const DEPTH_MAX: usize = 96;

/// JSON value. A number is stored as its text in the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'t> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number, including `NaN` and similar words.
    Number(&'t str),
    Text(Cow<'t, str>),
    List(Vec<Json<'t>>),
    /// Object, whose keys are in the order of the file. A key may occur twice.
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

/// Reason why a text is not valid JSON.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {says}")]
pub struct JsonError {
    /// Line, from 1.
    pub line: usize,
    /// Reason, as text.
    pub says: String,
    /// True if the text ends before the value is complete.
    pub cut_off: bool,
}

/// Parses one value at the start of `text`. Also returns its length in bytes.
///
/// # Errors
/// The text is not valid JSON. The error contains the line number and the reason.
pub fn parse(text: &str) -> Result<(Json<'_>, usize), JsonError> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0).map_err(|(says, cut_off)| JsonError {
        line: 1 + text.as_bytes()[..reader.at.min(text.len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count(),
        says,
        cut_off,
    })?;
    Ok((value, reader.at))
}

/// Finds the first JSON object in a text that may contain other text. It tries each line that
/// begins with `{`. Also returns the byte range of the object.
///
/// # Errors
/// The text contains no valid object. If a line begins with `{`, the error is that of the attempt
/// that reached the latest position.
pub fn first_object(text: &str) -> Result<(Json<'_>, std::ops::Range<usize>), JsonError> {
    const TRIES_MAX: usize = 32;
    let mut first_error = None;
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let opens = starts.filter(|at| text[*at..].trim_start_matches([' ', '\t']).starts_with('{'));
    for start in opens.take(TRIES_MAX) {
        match parse(&text[start..]) {
            Ok((value, length)) => return Ok((value, start..start + length)),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or(JsonError {
        line: 1,
        says: "it contains no JSON object".into(),
        cut_off: false,
    }))
}

type Fault = (String, bool);

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err((format!("{:?} is missing", char::from(byte)), false)),
            None => Err(("it ends in the middle of a value: the file is cut off".into(), true)),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'t>, Fault> {
        if depth > DEPTH_MAX {
            return Err((format!("its nesting is deeper than {DEPTH_MAX} levels"), false));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(_) => self.word(),
            None => Err(("it ends in the middle of a value: the file is cut off".into(), true)),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'t>, Fault> {
        self.at += 1;
        let mut entries = Vec::new();
        loop {
            self.space();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(Json::Object(entries));
            }
            if !entries.is_empty() {
                self.expect(b',')?;
                self.space();
                // Some scripts write a trailing comma.
                if self.peek() == Some(b'}') {
                    continue;
                }
            }
            if self.peek().is_some_and(|byte| byte != b'"') {
                return Err(("a name is missing".into(), false));
            }
            let name = self.string()?;
            self.space();
            self.expect(b':')?;
            entries.push((name, self.value(depth + 1)?));
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'t>, Fault> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.space();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(Json::List(items));
            }
            if !items.is_empty() {
                self.expect(b',')?;
                self.space();
                if self.peek() == Some(b']') {
                    continue;
                }
            }
            items.push(self.value(depth + 1)?);
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Fault> {
        self.expect(b'"')?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            match bytes.get(self.at) {
                None => {
                    return Err((
                        "it ends in the middle of a string: the file is cut off".into(),
                        true,
                    ));
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(_) => self.at += 1,
            }
        }
        let raw = self.text.get(start..self.at).ok_or(("a string is invalid".to_owned(), false))?;
        self.at += 1;
        Ok(if escaped { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) })
    }

    fn word(&mut self) -> Result<Json<'t>, Fault> {
        let rest = &self.text[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ if is_number(word) => Json::Number(word),
            _ => {
                let shown: String = word.chars().take(20).collect();
                return Err((format!("{shown:?} is not a value"), end == rest.len()));
            }
        };
        self.at += end;
        Ok(value)
    }
}

fn is_number(word: &str) -> bool {
    let bare = word.trim_start_matches(['-', '+']).to_ascii_lowercase();
    matches!(bare.as_str(), "nan" | "inf" | "infinity") || number::plain(word).is_some()
}

fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('u') => {
                let code: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                text.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

/// A value, which may be missing, and its path.
#[derive(Clone, Debug)]
pub struct JsonNode<'j, 't> {
    json: Option<&'j Json<'t>>,
    path: String,
}

impl<'j, 't> JsonNode<'j, 't> {
    /// Returns the root of a file, with an empty path.
    #[must_use]
    pub fn root(json: &'j Json<'t>) -> Self {
        Self { json: Some(json), path: String::new() }
    }

    /// Returns the path, such as `jobs[0].read.iops`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns true if the value exists and is not `null`.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.json.is_some_and(|json| *json != Json::Null)
    }

    /// Returns the member with this key.
    #[must_use]
    pub fn key(&self, name: &str) -> Self {
        let json = match self.json {
            Some(Json::Object(entries)) => {
                entries.iter().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            _ => None,
        };
        Self { json, path: self.below(name) }
    }

    /// Returns the member with the first of these keys that exists.
    #[must_use]
    pub fn first_of(&self, names: &[&str]) -> Self {
        let mut found = names.iter().map(|name| self.key(name));
        found.find(Self::exists).unwrap_or_else(|| self.key(names.first().unwrap_or(&"")))
    }

    fn below(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns the items of a list.
    pub fn items(&self) -> impl Iterator<Item = Self> + use<'j, 't> {
        let items = match self.json {
            Some(Json::List(items)) => items.as_slice(),
            _ => &[],
        };
        let path = self.path.clone();
        items
            .iter()
            .enumerate()
            .map(move |(index, item)| Self { json: Some(item), path: format!("{path}[{index}]") })
    }

    /// Returns the members of an object.
    pub fn entries(&self) -> impl Iterator<Item = (&'j str, Self)> + use<'j, 't> {
        let entries = match self.json {
            Some(Json::Object(entries)) => entries.as_slice(),
            _ => &[],
        };
        let path = self.path.clone();
        entries.iter().map(move |(name, value)| {
            let below = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            (name.as_ref(), Self { json: Some(value), path: below })
        })
    }

    #[must_use]
    pub fn text(&self) -> Option<&'j str> {
        match self.json {
            Some(Json::Text(text)) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// Returns a string or number as text.
    #[must_use]
    pub fn shown(&self) -> Option<String> {
        match self.json? {
            Json::Text(text) => Some(text.to_string()),
            Json::Number(number) => Some((*number).to_owned()),
            Json::Bool(value) => Some(value.to_string()),
            _ => None,
        }
    }

    /// Returns a boolean.
    #[must_use]
    pub fn bool(&self) -> Option<bool> {
        match self.json {
            Some(Json::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    fn digits(&self) -> Option<number::Number> {
        match self.json? {
            Json::Number(text) => number::plain(text),
            // Some tools write numbers as strings.
            Json::Text(text) => number::plain(text.trim()),
            _ => None,
        }
    }

    /// Returns a number, or `None` if it is not finite.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        self.digits().map(|number| number.value).filter(|value| value.is_finite())
    }

    #[must_use]
    pub fn exact(&self) -> Option<Figure> {
        self.number().map(|value| Figure::exact(value, &*self.path))
    }

    /// Returns a number as a figure. The tool rounded it to the printed digits.
    #[must_use]
    pub fn rounded(&self) -> Option<Figure> {
        let number = self.digits().filter(|number| number.value.is_finite())?;
        Some(Figure::rounded(number.value, number.step, &*self.path))
    }

    /// Returns a number as a figure. The tool truncated it to the printed digits.
    #[must_use]
    pub fn truncated(&self) -> Option<Figure> {
        let number = self.digits().filter(|number| number.value.is_finite())?;
        Some(Figure::truncated(number.value, number.step, &*self.path))
    }

    /// Returns a number as a figure. The tool printed all digits of a floating-point number. Sums
    /// of such numbers differ in the last digits.
    #[must_use]
    pub fn float(&self) -> Option<Figure> {
        /// Maximum relative deviation of a sum of many doubles, because such sums depend on the
        /// order.
        const FLOAT_SHARE: f64 = 1e-9;
        self.rounded().map(|figure| figure.widened(FLOAT_SHARE))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_keep_their_digits_and_values_know_their_path() {
        let (json, length) =
            parse(r#"{"a": [{"b": 0.250, "c": -nan, "d": "x\n\u00e9"}], "e": 7} rest"#).unwrap();
        assert_eq!(length, 58);
        let root = JsonNode::root(&json);
        let item = root.key("a").items().next().unwrap();
        let figure = item.key("b").rounded().unwrap();
        assert_eq!(figure.field, "a[0].b");
        assert!((figure.most - 0.2505).abs() < 1e-12);
        assert_eq!(item.key("c").number(), None);
        assert!(item.key("c").exists());
        assert_eq!(item.key("d").text(), Some("x\né"));
        assert_eq!(root.key("e").exact().unwrap().least, 7.0);
        assert!(!root.key("nothing").key("below").exists());
        assert_eq!(root.key("nothing").key("below").path(), "nothing.below");
    }

    #[test]
    fn finds_an_object_between_other_lines() {
        let text = "fio: a warning {\n{ no json\n{\"x\": 1}\ntrailing }";
        let (json, range) = first_object(text).unwrap();
        assert_eq!(JsonNode::root(&json).key("x").number(), Some(1.0));
        assert_eq!(&text[range], "{\"x\": 1}");
    }

    #[test]
    fn json_errors_have_line_numbers() {
        for (text, says, cut_off) in [
            ("", "ends", true),
            ("{\"a\": 1", "ends", true),
            ("{\"a\" 1}", "':'", false),
            ("{\"a\": x}", "not a value", false),
            ("{\n\n1: 2}", "name", false),
            ("[1 2]", "','", false),
            ("{\"a\": \"\\", "ends", true),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.says.contains(says), "{text}: {error}");
            assert_eq!(error.cut_off, cut_off, "{text}");
        }
        assert_eq!(parse("{\n\n1: 2}").unwrap_err().line, 3);
        let deep = "[".repeat(100_000);
        assert!(parse(&deep).unwrap_err().says.contains("nesting"));
    }
}
