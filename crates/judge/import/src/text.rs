//! Decoding of a file to text: byte-order marks, UTF-16 with and without one, and detection of
//! binary files.

use std::borrow::Cow;

/// Number of bytes used to distinguish text from binary data.
const SNIFFED_BYTES: usize = 4096;
/// Maximum share of zero bytes in a text.
const ZERO_SHARE_MAX: f64 = 0.01;

/// Decodes a file, or returns `None` if it is not text. Text that is not UTF-8 is read as Latin-1,
/// in which every byte is valid, because tools copy paths and host names unchanged.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Some(rest) = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]) {
        return decode(rest);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        return utf16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        return utf16(rest, u16::from_be_bytes);
    }
    let head = &bytes[..bytes.len().min(SNIFFED_BYTES)];
    let zeros = |skip: usize| head.iter().skip(skip).step_by(2).filter(|b| **b == 0).count() * 2;
    let mostly = head.len() * 3 / 4;
    if head.len() >= 4 && zeros(1) > mostly && zeros(0) < head.len() / 8 {
        return utf16(bytes, u16::from_le_bytes);
    }
    if head.len() >= 4 && zeros(0) > mostly && zeros(1) < head.len() / 8 {
        return utf16(bytes, u16::from_be_bytes);
    }
    let zero = head.iter().filter(|b| **b == 0).count();
    if zero as f64 > head.len() as f64 * ZERO_SHARE_MAX {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(unquoted(text)),
        Err(_) => {
            let odd = |b: &&u8| **b < 9 || (14..32).contains(*b) && **b != 27;
            if head.iter().filter(odd).count() * 20 > head.len() {
                return None;
            }
            Some(Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()))
        }
    }
}

/// Removes the `>` before each line with which Markdown and mail quote a text.
fn unquoted(text: &str) -> Cow<'_, str> {
    if !text.starts_with('>') || text.lines().any(|line| !line.is_empty() && !line.starts_with('>'))
    {
        return Cow::Borrowed(text);
    }
    let bare = |line: &str| line.strip_prefix("> ").or(line.strip_prefix('>')).map(str::to_owned);
    Cow::Owned(
        text.lines().flat_map(|line| [bare(line).unwrap_or_default(), "\n".into()]).collect(),
    )
}

fn utf16(bytes: &[u8], of: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
    let text = String::from_utf16_lossy(&units);
    // Binary data decodes to replacement characters and private planes.
    let odd = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER || *c == '\0').count();
    (odd * 20 <= text.chars().count()).then_some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_is_text_in_any_of_its_encodings() {
        let words = "iops=1,5\r\nread";
        let le: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = words.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = |mark: &[u8], text: &[u8]| [mark, text].concat();
        for bytes in [
            words.as_bytes().to_vec(),
            marked(&[0xef, 0xbb, 0xbf], words.as_bytes()),
            marked(&[0xff, 0xfe], &le),
            marked(&[0xfe, 0xff], &be),
            le,
            be,
        ] {
            assert_eq!(decode(&bytes).unwrap(), words);
        }
        assert_eq!(decode(b"caf\xe9").unwrap(), "café");
        assert_eq!(decode(b"").unwrap(), "");
    }

    #[test]
    fn a_text_that_is_quoted_as_a_whole_is_read_without_the_marks() {
        assert_eq!(decode(b"> a\n>\n>  b\n\n> c").unwrap(), "a\n\n b\n\nc\n");
        assert_eq!(decode(b"> a\nb\n").unwrap(), "> a\nb\n", "only a part of it");
    }

    #[test]
    fn rejects_binary_data() {
        let noise: Vec<u8> =
            (0..4096u32).map(|i| (i.wrapping_mul(2654435761) >> 13) as u8).collect();
        assert_eq!(decode(&noise), None);
        assert_eq!(decode(&[0u8; 64]), None);
        assert_eq!(decode(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
