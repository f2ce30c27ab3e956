//! Decodes a file to text. It handles byte-order marks and UTF-16, removes quotation marks of mails
//! and prefixes of log collectors, and detects binary files.

use std::borrow::Cow;

/// Number of bytes from which text and binary data are distinguished.
const SNIFFED_BYTES: usize = 4096;
/// Maximum share of zero bytes in a text.
const ZERO_SHARE_MAX: f64 = 0.01;

/// Decodes a file, or returns `None` if it is not text. Text that is not valid UTF-8 is read as
/// Latin-1, in which every byte is valid. Tools may print such text, because they copy paths and
/// host names unchanged.
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
        Ok(text) => {
            let text = replace(Cow::Borrowed(text), without_colours);
            Some(replace(replace(text, unquoted), without_log_prefixes))
        }
        Err(_) => {
            let odd = |b: &&u8| **b < 9 || (14..32).contains(*b) && **b != 27;
            if head.iter().filter(odd).count() * 20 > head.len() {
                return None;
            }
            Some(Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect()))
        }
    }
}

/// Applies a change to a text.
fn replace<'t>(text: Cow<'t, str>, change: fn(&str) -> Cow<'_, str>) -> Cow<'t, str> {
    match text {
        Cow::Borrowed(text) => change(text),
        Cow::Owned(text) => Cow::Owned(change(&text).into_owned()),
    }
}

/// Removes the terminal's control sequences for colours (`ESC [ 32 m`).
fn without_colours(text: &str) -> Cow<'_, str> {
    const START: &str = "\u{1b}[";
    if !text.contains(START) {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split(START);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && !";?".contains(c));
        plain.push_str(end.map_or("", |end| piece[end..].get(1..).unwrap_or_default()));
    }
    Cow::Owned(plain)
}

/// Removes the `>` at the start of each line, which Markdown and mail programs use for quotes.
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

/// Removes the prefix that a log collector added to each line. It is a name (docker compose), a
/// time (kubectl, CI systems), or a time, host and process (journald, syslog).
fn without_log_prefixes(text: &str) -> Cow<'_, str> {
    // The last line of a part of a file may be incomplete.
    let complete = text.rfind('\n').map_or(text, |end| &text[..end]);
    let is_content = |line: &&str| !line.trim().is_empty() && !line.starts_with("-- ");
    let Some(first) = complete.lines().find(is_content) else { return Cow::Borrowed(text) };
    let source = &first[..source_length(first)];
    let length = |line: &str| match line.strip_prefix(source) {
        Some(rest) => Some(source.len() + time_length(rest)),
        None => (line == source.trim_end()).then_some(line.len()),
    };
    let has_prefix = |line: &str| length(line).is_some_and(|length| length > 0);
    let mut lines = complete.lines().filter(is_content);
    if lines.clone().count() < 2 || !lines.all(has_prefix) {
        return Cow::Borrowed(text);
    }
    let bare = |line: &str| line[length(line).unwrap_or(0)..].to_owned() + "\n";
    Cow::Owned(text.lines().map(bare).collect())
}

/// Returns the length of a name that precedes the lines from a source: `fio-1 | ` (docker compose),
/// or `[pod/fio/main] ` (kubectl).
fn source_length(line: &str) -> usize {
    let of = |end: &str| Some(line.find(end)? + end.len());
    let name = |length: &usize| {
        let name = line[..*length].trim_end().trim_end_matches('|').trim_end();
        !name.is_empty() && !name.contains(char::is_whitespace)
    };
    let bracket = || of("] ").filter(|_| line.starts_with('['));
    of(" | ").filter(name).or_else(|| bracket().filter(name)).unwrap_or(0)
}

/// Returns the length of a time and the space after it. Includes the host and process of journald,
/// if they are present. Returns 0 if the line does not begin with a time.
fn time_length(line: &str) -> usize {
    const ISO: &str = "0000-00-00T00:00:00";
    const SYSLOG: &str = "Xxx 00 00:00:00 ";
    let shape = |line: &str, shape: &str| {
        line.len() >= shape.len()
            && line.bytes().zip(shape.bytes()).all(|(byte, like)| match like {
                b'0' => byte.is_ascii_digit() || byte == b' ',
                b'X' => byte.is_ascii_uppercase(),
                b'x' => byte.is_ascii_lowercase(),
                b'T' => matches!(byte, b'T' | b' '),
                like => byte == like,
            })
    };
    // The prefix of an empty line may end after the time.
    let word = |line: &str| line.find(' ').map_or(line.len(), |end| end + 1);
    let process = |line: &str| {
        let host = word(line);
        let tag = word(&line[host..]);
        if line[host..host + tag].trim_end().ends_with("]:") { host + tag } else { 0 }
    };
    if shape(line, ISO) {
        let zone = &line[ISO.len()..];
        let time = ISO.len() + word(zone);
        let zone = line[ISO.len()..time].trim_start_matches(['.', ',']).trim_end();
        if !zone.chars().all(|c| c.is_ascii_digit() || ":+-Z".contains(c)) {
            return 0;
        }
        return time + process(&line[time..]);
    }
    if shape(line, SYSLOG) {
        let rest = process(&line[SYSLOG.len()..]);
        return if rest > 0 { SYSLOG.len() + rest } else { 0 };
    }
    0
}

fn utf16(bytes: &[u8], of: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
    let text = String::from_utf16_lossy(&units);
    // Decoded binary data contains replacement characters and characters in private planes.
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
    fn colours_of_a_terminal_are_removed() {
        let text = "\u{1b}[1;32mread\u{1b}[0m: IOPS=5\u{1b}[K\n";
        assert_eq!(decode(text.as_bytes()).unwrap(), "read: IOPS=5\n");
        assert_eq!(decode("a\u{1b}[é\u{1b}[3".as_bytes()).unwrap(), "a");
    }

    #[test]
    fn prefixes_of_log_collectors_are_removed() {
        let text = "a: (g=0): rw=read\n\n  read: IOPS=5\n   lat (usec): min=1\n";
        let with = |prefix: &str| -> String {
            text.lines()
                .map(|line| format!("{prefix}{line}").trim_end().to_owned() + "\n")
                .collect()
        };
        for prefix in [
            "2026-11-28T10:00:00.123456789Z ",
            "2026-11-28T10:00:00+01:00 ",
            "2026-11-28 10:00:00,123 ",
            "Nov 28 10:00:00 host-1 fio[1234]: ",
            "Nov  8 10:00:00 host-1 fio[1234]: ",
            "2026-11-28T10:00:00+0100 host-1 fio[1234]: ",
            "fio-1  | ",
            "[pod/fio/main] ",
            "[pod/fio/main] 2026-11-28T10:00:00.123456789Z ",
        ] {
            assert_eq!(decode(with(prefix).as_bytes()).unwrap(), text, "{prefix}");
        }
        let begun = format!("-- Boot 1 --\n{}2026-11", with("2026-11-28T10:00:00Z "));
        assert_eq!(decode(begun.as_bytes()).unwrap(), format!("-- Boot 1 --\n{text}2026-11\n"));
        for other in [
            "2026-11-28T10:00:00Z,5,7\n2026-11-28T10:00:01Z,5,7\n",
            "2026-11-28T10:00:00Z a\nb\n",
            "| bs | iops |\n|---|---|\n| 4k | 5 |\n",
            "[global]\nrw=read\n",
            "Nov 28 10:00:00 a b\nNov 28 10:00:00 a b\n",
        ] {
            assert_eq!(decode(other.as_bytes()).unwrap(), other);
        }
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
