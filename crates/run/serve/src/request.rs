//! A request for a page. It contains only names and values, but no paths or headers.

use crate::access::Identity;

#[derive(Debug, Default)]
pub struct PageRequest {
    /// Named parts of the path.
    pub parts: Vec<(String, String)>,
    /// Query parameters.
    pub query: Vec<(String, String)>,
    /// Fields of a submitted form.
    pub form: Vec<(String, String)>,
    /// Raw body.
    pub body: Vec<u8>,
    /// Authenticated requester.
    pub identity: Identity,
}

impl PageRequest {
    /// Returns the part of the path with this name.
    pub fn part(&self, name: &str) -> &str {
        first(&self.parts, name).unwrap_or_default()
    }

    /// Returns a non-empty value of the query.
    pub fn given(&self, name: &str) -> Option<&str> {
        first(&self.query, name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns all non-empty values of the query with this name.
    pub fn all_given(&self, name: &str) -> Vec<String> {
        let values = self.query.iter().filter(|(of, _)| of == name).map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
    }

    /// Returns all non-empty form fields with this name. If the request has no form, returns the
    /// values with this name in the query.
    pub fn all_fields(&self, name: &str) -> Vec<String> {
        if self.form.is_empty() {
            return self.all_given(name);
        }
        let values = self.form.iter().filter(|(of, _)| of == name).map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
    }

    /// Returns a non-empty field of the form.
    pub fn field(&self, name: &str) -> Option<&str> {
        first(&self.form, name).filter(|value| !value.trim().is_empty())
    }
}

fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
}

/// Parses the names and values of a query or form. Replaces invalid UTF-8 by U+FFFD.
pub fn pairs(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// Percent-encodes a name for a path or query (RFC 3986).
pub fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_come_as_they_were_meant() {
        let query = pairs(b"run=a%2Fb&run=&run=+c+&plan=x%zz%ff");
        let request = PageRequest { query, ..PageRequest::default() };
        assert_eq!(request.all_given("run"), ["a/b", "c"]);
        assert_eq!(request.given("plan"), Some("x%zz\u{fffd}"));
        assert_eq!(request.given("tag"), None);
        assert_eq!(quoted("a b/\"<ü"), "a%20b%2F%22%3C%C3%BC");
    }
}
