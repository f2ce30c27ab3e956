//! Head of a response (RFC 9112): its status and the framing of its body.

use crate::error::Violation;

/// Maximum length of a head, in bytes.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of headers.
const HEADERS_MAX: usize = 128;

/// Rule that determines where the body of a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body ends after this number of bytes (Content-Length).
    Length(u64),
    /// The body consists of chunks, and ends with an empty chunk.
    Chunked,
    /// The body ends when the connection closes.
    Close,
}

/// Parsed response head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// Rule for the end of the body. Some responses have no body; the caller knows which.
    pub framing: Framing,
    /// True if the server closes the connection after this response.
    pub closes: bool,
    /// `ETag`, as sent.
    pub etag: Option<String>,
    /// Length of the head, in bytes, including its empty line.
    pub size_bytes: usize,
}

/// Parses the head at the start of `bytes`. Returns `None` if it is incomplete.
///
/// # Errors
/// A [`Violation`].
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, Violation> {
    let seen = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = httparse::ParserConfig::default()
        // Stores behind old proxies send headers with invalid names and values. This client ignores
        // them, because it does not need these headers.
        .ignore_invalid_headers_in_responses(true)
        .parse_response(&mut response, seen);
    let size_bytes = match parsed {
        Ok(httparse::Status::Complete(size_bytes)) => size_bytes,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Violation::HeadTooLong { limit_bytes: HEAD_BYTES_MAX });
        }
        Err(_) => return Err(Violation::StatusLine),
    };
    let status = response.code.filter(|status| (100..600).contains(status));
    let mut head = Head {
        status: status.ok_or(Violation::StatusLine)?,
        framing: Framing::Close,
        closes: response.version == Some(0),
        etag: None,
        size_bytes,
    };
    let (mut length, mut chunked) = (None, false);
    for header in response.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let number = number(value)?;
            if length.is_some_and(|before| before != number) {
                return Err(Violation::Length);
            }
            length = Some(number);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked |= value.to_ascii_lowercase().ends_with(b"chunked");
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.closes = value.eq_ignore_ascii_case(b"close");
        } else if header.name.eq_ignore_ascii_case("etag") {
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

fn number(text: &[u8]) -> Result<u64, Violation> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Violation::Length);
    }
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or(Violation::Length)
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

    /// Returns the first `size_bytes` of a response head that does not end there.
    fn head_of(size_bytes: usize) -> Vec<u8> {
        let mut head = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        head.resize(size_bytes, b'a');
        head
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse(b"SSH-2.0-x\r\n\r\n"), Err(Violation::StatusLine));
        assert_eq!(parse(b"HTTP/1.1 99 x\r\n\r\n"), Err(Violation::StatusLine));
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(parse(two), Err(Violation::Length));
        let limit_bytes = HEAD_BYTES_MAX;
        assert_eq!(parse(&head_of(limit_bytes)), Err(Violation::HeadTooLong { limit_bytes }));
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
