//! The form of a file, told from how it begins.

use crate::text;

/// A form that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// fio's JSON.
    FioJson,
    /// One of fio's interval or latency logs.
    FioLog,
}

impl Format {
    /// As shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::FioJson => "fio JSON",
            Self::FioLog => "fio log",
        }
    }
}

/// The form of a file that begins with these bytes; `None` where it is none that is known.
#[must_use]
pub fn detect(head: &[u8]) -> Option<Format> {
    let text = text::decode(cut(head))?;
    let text = text.as_ref();
    if text.contains("\"fio version\"") {
        return Some(Format::FioJson);
    }
    crate::fio::log::is(text).then_some(Format::FioLog)
}

/// The head without a character that was cut through.
fn cut(head: &[u8]) -> &[u8] {
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    }
}
