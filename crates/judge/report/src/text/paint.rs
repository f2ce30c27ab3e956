//! Colour and weight on a terminal, with the 16 standard colours.

use crate::table::Tone;

/// Appearance of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Normal.
    Plain,
    /// Good.
    Green,
    /// Bad.
    Red,
    /// Warning.
    Yellow,
    /// Less important.
    Faint,
    /// A heading.
    Bold,
    /// A verdict, printed in reverse video in the colour of its tone.
    Loud(Tone),
}

impl Colour {
    pub fn of(tone: Tone) -> Self {
        match tone {
            Tone::Plain => Self::Plain,
            Tone::Good => Self::Green,
            Tone::Bad => Self::Red,
            Tone::Warn => Self::Yellow,
            Tone::Faint => Self::Faint,
            Tone::Strong => Self::Bold,
        }
    }

    /// Returns the colour of a verdict.
    pub fn loud(tone: Tone) -> Self {
        Self::Loud(tone)
    }

    fn codes(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Faint => "2",
            Self::Bold => "1",
            Self::Loud(Tone::Good) => "1;7;32",
            Self::Loud(Tone::Bad) => "1;7;31",
            Self::Loud(Tone::Warn) => "1;7;33",
            Self::Loud(_) => "1;7",
        }
    }
}

/// Adds escape sequences to the text if `required` is true.
pub fn paint(text: &str, colour: Colour, required: bool) -> String {
    let codes = colour.codes();
    if !required || codes.is_empty() || text.is_empty() {
        return text.to_owned();
    }
    match colour {
        Colour::Loud(_) => format!("\x1b[{codes}m {text} \x1b[0m"),
        _ => format!("\x1b[{codes}m{text}\x1b[0m"),
    }
}
