//! Converts JSON values to YAML: uses block style, and literal blocks for texts of several lines.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns values as YAML documents.
pub fn documents(values: &[Value]) -> String {
    let mut out = String::new();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.push_str("---\n");
        }
        write(value, 0, &mut out);
    }
    out
}

// Writing to a string cannot fail, so the results of writes are ignored in the following functions.

/// Writes a mapping or a list at an indentation, and any other value on the same line.
fn write(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let _ = write!(out, "{:indent$}{}:", "", scalar(key));
                nested(value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut text = String::new();
                write(item, indent + 2, &mut text);
                let _ = write!(out, "{:indent$}- {}", "", text.trim_start_matches(' '));
            }
        }
        other => {
            let _ = writeln!(out, "{:indent$}{}", "", flat(other));
        }
    }
}

/// Writes the value of a key, on the key's line or on the following lines.
fn nested(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write(value, indent + 2, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write(value, indent + 2, out);
        }
        Value::String(text) if is_block(text) => {
            out.push_str(" |\n");
            for line in text.lines() {
                let indent = if line.is_empty() { 0 } else { indent + 2 };
                let _ = writeln!(out, "{:indent$}{line}", "");
            }
        }
        other => {
            let _ = writeln!(out, " {}", flat(other));
        }
    }
}

/// Returns true if a text consists of whole lines and a literal block can represent it unchanged.
fn is_block(text: &str) -> bool {
    let printable = |c: char| {
        c == '\n'
            || !c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\n'])
        && text.chars().all(printable)
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // Numbers, booleans, null and empty collections have the same form in JSON.
        other => other.to_string(),
    }
}

/// Returns a text, in quotes if YAML could otherwise misread it.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    // JSON's quoted strings are also valid in YAML.
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_keep_their_types_and_texts_their_lines() {
        let value = json!({
            "a": [1, {"b": "x", "c": [true]}, []],
            "args": ["run", "--x", "1", "yes", "a: b", ""],
            "empty": {},
            "text": "first = 1\n\n  second\n",
            "odd": " leading\n",
        });
        let expected = "a:\n  - 1\n  - b: x\n    c:\n      - true\n  - []\nargs:\n  - run\n  - \"--x\"\n  - \"1\"\n  \
                        - \"yes\"\n  - \"a: b\"\n  - \"\"\nempty: {}\nodd: \" leading\\n\"\ntext: |\n  first = 1\n\n    \
                        second\n";
        assert_eq!(documents(&[value]), expected);
        assert_eq!(documents(&[json!({"k": 1}), json!({"k": 2})]), "k: 1\n---\nk: 2\n");
    }
}
