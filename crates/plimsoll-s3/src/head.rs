//! The head of a response (RFC 9112): status, and how the body is framed.

use crate::error::Violation;

/// Longest head that is accepted, in bytes.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With a chunk of no bytes.
    Chunked,
    /// With the connection.
    Close,
}

/// What of a head is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// How the body is framed. Which requests have none is the caller's to know.
    pub framing: Framing,
    /// The server ends the connection after this response.
    pub closes: bool,
    /// `ETag`, as sent.
    pub etag: Option<String>,
    /// Bytes of the head itself, with its empty line.
    pub size_bytes: usize,
}

/// Reads the head at the start of `bytes`; `None` until it is whole.
///
/// # Errors
/// A [`Violation`].
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, Violation> {
    let Some(end) = bytes.windows(4).take(HEAD_BYTES_MAX).position(|w| w == b"\r\n\r\n") else {
        if bytes.len() >= HEAD_BYTES_MAX {
            return Err(Violation::HeadTooLong { limit_bytes: HEAD_BYTES_MAX });
        }
        return Ok(None);
    };
    let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(trim);
    let (status, old) = status(lines.next().unwrap_or_default())?;
    let mut head =
        Head { status, framing: Framing::Close, closes: old, etag: None, size_bytes: end + 4 };
    let (mut length, mut chunked) = (None, false);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = number(value)?;
            if length.is_some_and(|before| before != number) {
                return Err(Violation::Length);
            }
            length = Some(number);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            chunked |= value.to_ascii_lowercase().ends_with(b"chunked");
        } else if name.eq_ignore_ascii_case(b"connection") {
            head.closes = value.eq_ignore_ascii_case(b"close");
        } else if name.eq_ignore_ascii_case(b"etag") {
            head.etag = Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    head.framing = match (chunked, length) {
        (true, _) => Framing::Chunked,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::Close,
    };
    Ok(Some(head))
}

/// The status of a status line, and whether it is one of HTTP/1.0.
fn status(line: &[u8]) -> Result<(u16, bool), Violation> {
    let old = line.starts_with(b"HTTP/1.0 ");
    let rest = line
        .strip_prefix(b"HTTP/1.1 ")
        .or_else(|| line.strip_prefix(b"HTTP/1.0 "))
        .ok_or(Violation::StatusLine)?;
    let digits = rest.get(..3).ok_or(Violation::StatusLine)?;
    let status = number(digits).map_err(|_| Violation::StatusLine)?;
    match u16::try_from(status) {
        Ok(status @ 100..=599) => Ok((status, old)),
        _ => Err(Violation::StatusLine),
    }
}

fn number(text: &[u8]) -> Result<u64, Violation> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Violation::Length);
    }
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or(Violation::Length)
}

fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heads_are_read() {
        let text =
            b"HTTP/1.1 206 Partial Content\r\nContent-Length: 4096\r\netag: \"x\"\r\n\r\nabc";
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.status, head.framing), (206, Framing::Length(4096)));
        assert_eq!((head.closes, head.size_bytes), (false, text.len() - 3));
        assert_eq!(head.etag.as_deref(), Some("\"x\""));
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.framing, head.closes), (Framing::Chunked, true));
        assert_eq!(parse(&text[..40]), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), Err(Violation::StatusLine));
        assert_eq!(parse(b"HTTP/1.1 99 x\r\n\r\n"), Err(Violation::StatusLine));
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(parse(two), Err(Violation::Length));
        let limit_bytes = HEAD_BYTES_MAX;
        assert_eq!(parse(&vec![b'a'; limit_bytes]), Err(Violation::HeadTooLong { limit_bytes }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&bytes);
            let mut with_line = b"HTTP/1.1 200 OK\r\n".to_vec();
            with_line.extend(bytes);
            with_line.extend(b"\r\n\r\n");
            let _ = parse(&with_line);
        }
    }
}
