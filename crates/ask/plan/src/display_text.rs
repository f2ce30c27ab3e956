//! Foreign text made safe for display: one line, without terminal control characters.

/// Maximum length of a foreign text quoted in a message, in characters.
const QUOTED_MAX: usize = 60;

/// Returns text of a plan for a quote in a message.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = one_line(&text.chars().take(QUOTED_MAX).collect::<String>());
    if text.chars().nth(QUOTED_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns text of any length as one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
