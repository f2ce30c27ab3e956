//! Escaping of text for HTML, SVG, Markdown and CSV.
//!
//! Names are chosen by users and by bundles of other machines, so every name is escaped before it
//! is put into a page. All escaping is in this module, so that one test can try all attacks.

use plimsoll_plan::is_unprintable;

/// Escapes text for HTML and SVG element content and for quoted attributes (OWASP's five
/// characters). Characters that XML 1.0 does not allow at all become U+FFFD, so that an SVG with a
/// hostile name still parses.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            c if c < ' ' || c == '\u{7f}' || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

/// Like [`html`], but also marks text in backticks as code. An unpaired backtick stays as it is.
pub fn html_prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, following)) = after.split_once('`').filter(|(code, _)| !code.is_empty())
        else {
            break;
        };
        out.push_str(&html(before));
        out.push_str(&format!("<code>{}</code>", html(code)));
        rest = following;
    }
    out.push_str(&html(rest));
    out
}

/// Escapes JSON for a `<script type="application/json">` element. In JSON, `<`, `>` and `&` occur
/// only in strings, where escapes are allowed. After escaping, `</script>` and `<!--` cannot occur.
pub fn json_in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text for a Markdown table cell or paragraph (CommonMark 0.31 §2.4 and GitHub tables):
/// markup characters get a backslash, line ends become spaces.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Quotes a CSV field as RFC 4180 requires. A spreadsheet treats a text as a formula if it begins
/// with `=`, `+`, `-`, `@`, tab or carriage return. Such a text gets a leading apostrophe. Numbers
/// are not quoted here.
pub fn csv_text(text: &str) -> String {
    let guarded = match text.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r') => format!("'{text}"),
        _ => text.to_owned(),
    };
    if guarded.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

/// Maximum length of one text on a terminal, in characters. All texts that Plimsoll writes itself
/// are shorter.
const TERMINAL_TEXT_MAX: usize = 4_000;

/// Makes text safe for a terminal: control characters become U+FFFD, or `?` for ASCII output, and a
/// very long text is shortened.
pub fn terminal(text: &str, unicode: bool) -> String {
    let replacement = if unicode { '\u{fffd}' } else { '?' };
    let clean = |c: char| if is_unprintable(c) { replacement } else { c };
    let mut shown: String = text.chars().take(TERMINAL_TEXT_MAX).map(clean).collect();
    if text.chars().nth(TERMINAL_TEXT_MAX).is_some() {
        shown.push_str(&format!("… ({} bytes)", text.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_forbidden_characters_are_harmless() {
        assert_eq!(html("<a href='x'>\"&\u{1}"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}");
        assert_eq!(
            html_prose("set `a < b`, then ` alone"),
            "set <code>a &lt; b</code>, then ` alone"
        );
        assert_eq!(html_prose("``<b>"), "``&lt;b&gt;");
        assert_eq!(json_in_script(r#""</script><!--""#), r#""\u003c/script\u003e\u003c!--""#);
        assert_eq!(markdown("a|b\n<i>*"), "a\\|b &lt;i&gt;\\*");
        assert_eq!(csv_text("=1+1,\"x\""), "\"'=1+1,\"\"x\"\"\"");
        assert_eq!(csv_text("plain"), "plain");
        assert_eq!(terminal("a\x1b[31mb\u{202e}", false), "a?[31mb?");
        assert!(terminal(&"x".repeat(3_000_000), true).len() < 5_000);
    }
}
