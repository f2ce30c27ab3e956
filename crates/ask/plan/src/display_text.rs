//! Makes text from other programs safe for display: the result is one line without terminal control
//! characters.

/// Maximum length of a foreign text that a message quotes, in characters.
const QUOTED_MAX: usize = 60;

/// Maximum length of a foreign message, in characters.
const FOREIGN_MAX: usize = 1_000;

/// Returns text from a plan, shortened and made safe to quote in a message.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = one_line(&text.chars().take(QUOTED_MAX).collect::<String>());
    if text.chars().nth(QUOTED_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns the text as one line. Its length is not limited.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns foreign text as one line of at most `FOREIGN_MAX` characters, for a terminal or a log.
/// The text comes from another program, host or file.
#[must_use]
pub fn foreign(text: &str) -> String {
    let mut shown = one_line(&text.chars().take(FOREIGN_MAX).collect::<String>());
    if shown.len() < text.len() && text.chars().nth(FOREIGN_MAX).is_some() {
        shown.push_str(&format!("… ({} bytes)", text.len()));
    }
    shown
}

/// Masks the user and password in URLs by replacing each of their characters with an asterisk.
pub(crate) fn mask_login(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "/\"'?#".contains(c));
        let (host, _) = after.split_at(end.unwrap_or(after.len()));
        let login = host.rfind('@').unwrap_or(0);
        shown.extend(host[..login].chars().map(|_| '*'));
        rest = &after[login..];
    }
    shown.push_str(rest);
    shown
}

/// Returns true if a terminal would interpret the character as a command, or if the character would
/// reverse the order of the text around it.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_in_urls_are_masked() {
        for (text, shown) in [
            ("url = \"http://ann:pw@h:1/m\"", "url = \"http://******@h:1/m\""),
            ("a = \"http://h/@x\" b = 'https://ä@h'", "a = \"http://h/@x\" b = 'https://*@h'"),
            ("nothing @ all", "nothing @ all"),
            ("http://a@", "http://*@"),
        ] {
            assert_eq!(mask_login(text), shown);
        }
    }

    #[test]
    fn foreign_text_is_one_short_line_that_no_terminal_acts_on() {
        let hostile = "\x1b[2J\x1b]0;x\x07\r\nPASS  all\u{9b}31m\u{202e}x";
        let shown = foreign(hostile);
        assert!(!shown.chars().any(is_unprintable) && shown.contains("PASS  all"), "{shown:?}");
        assert_eq!(shown.lines().count(), 1);
        assert_eq!(foreign("gültig: ok"), "gültig: ok");
        let long = foreign(&"x".repeat(3_000_000));
        assert!(long.len() < 1_100 && long.ends_with("… (3000000 bytes)"), "{}", long.len());
    }
}
