//! Text that others wrote, fit to be shown: in one line, without characters that act on a terminal.

/// Characters of a stranger's text that a message quotes at most.
const QUOTED_MAX: usize = 60;

/// Text of a plan as a message quotes it.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = one_line(&text.chars().take(QUOTED_MAX).collect::<String>());
    if text.chars().nth(QUOTED_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Text of any length in one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
