//! Decoder of a response's body, including the chunked encoding (RFC 9112, 7.1).

use crate::error::Violation;
use crate::head::Framing;

/// Maximum length of the line with the size of a chunk, including its extensions.
const LINE_BYTES_MAX: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecodeState {
    /// The decoder is in a body with a known length, or in a body that ends when the connection
    /// closes.
    Plain,
    /// The decoder is in the line with the size of a chunk. The fields are the value so far, the
    /// number of digits read, whether the digits have ended, and the length of the line so far.
    Size { value: u64, digits: u8, past: bool, line: usize },
    /// The decoder is in the data of a chunk. The field is the number of bytes that are still
    /// missing.
    Data(u64),
    /// The decoder is after the data of a chunk. The field is the number of bytes of the line end
    /// that are still missing.
    Crlf(u8),
    /// The decoder is in the trailers, which follow the last chunk and end with an empty line. The
    /// field is the length of the current line.
    Trailer(usize),
    /// The decoder has reached the end of the body.
    Done,
}

const SIZE: DecodeState = DecodeState::Size { value: 0, digits: 0, past: false, line: 0 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoder {
    state: DecodeState,
    left: Option<u64>,
}

impl Decoder {
    /// Creates the state at the start of a body.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::Length(0) => Self { state: DecodeState::Done, left: Some(0) },
            Framing::Length(length) => Self { state: DecodeState::Plain, left: Some(length) },
            Framing::Close => Self { state: DecodeState::Plain, left: None },
            Framing::Chunked => Self { state: SIZE, left: None },
        }
    }

    /// Returns true if the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == DecodeState::Done
    }

    /// Returns the number of bytes that may be received directly into their destination; `None` if
    /// this number is not known.
    #[must_use]
    pub fn plain_left(&self) -> Option<u64> {
        self.left.filter(|_| self.state == DecodeState::Plain)
    }

    /// Records that this many bytes of [`Decoder::plain_left`] were received.
    pub fn skip(&mut self, bytes: u64) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.state = DecodeState::Done;
            }
        }
    }

    /// Handles the end of the connection. Returns true if the body is complete at this point.
    pub fn close(&mut self) -> bool {
        if self.state == DecodeState::Plain && self.left.is_none() {
            self.state = DecodeState::Done;
        }
        self.is_done()
    }

    /// Decodes received bytes and passes the bytes of the body to `give`. Returns the number of
    /// bytes used. It is smaller than the number of bytes received if the body ends before them.
    ///
    /// # Errors
    /// A [`Violation`], or an error of `give`.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        give: &mut dyn FnMut(&[u8]) -> Result<(), Violation>,
    ) -> Result<usize, Violation> {
        let mut taken = 0;
        while taken < bytes.len() && self.state != DecodeState::Done {
            let rest = &bytes[taken..];
            taken += match self.state {
                DecodeState::Plain => {
                    let most = self.left.unwrap_or(u64::MAX).min(rest.len() as u64) as usize;
                    give(&rest[..most])?;
                    self.skip(most as u64);
                    most
                }
                DecodeState::Data(left) => {
                    let most = left.min(rest.len() as u64) as usize;
                    give(&rest[..most])?;
                    let left = left - most as u64;
                    self.state =
                        if left == 0 { DecodeState::Crlf(2) } else { DecodeState::Data(left) };
                    most
                }
                _ => {
                    self.step(rest[0])?;
                    1
                }
            };
        }
        Ok(taken)
    }

    /// The body is one byte longer than declared.
    fn step(&mut self, byte: u8) -> Result<(), Violation> {
        self.state = match self.state {
            DecodeState::Size { value, digits, .. } if byte == b'\n' => match (digits, value) {
                (0, _) => return Err(Violation::Chunk),
                (_, 0) => DecodeState::Trailer(0),
                (_, size) => DecodeState::Data(size),
            },
            DecodeState::Size { line: LINE_BYTES_MAX.., .. } => return Err(Violation::Chunk),
            DecodeState::Size { value, digits, past, line } => {
                match (char::from(byte).to_digit(16), past) {
                    (Some(digit), false) if digits < 15 => DecodeState::Size {
                        value: value << 4 | u64::from(digit),
                        digits: digits + 1,
                        past,
                        line: line + 1,
                    },
                    (Some(_), false) => return Err(Violation::Chunk),
                    _ => DecodeState::Size { value, digits, past: true, line: line + 1 },
                }
            }
            DecodeState::Crlf(left) => match (left, byte) {
                (2, b'\r') => DecodeState::Crlf(1),
                (_, b'\n') => SIZE,
                _ => return Err(Violation::Chunk),
            },
            DecodeState::Trailer(0) if byte == b'\n' => DecodeState::Done,
            DecodeState::Trailer(_) if byte == b'\n' => DecodeState::Trailer(0),
            DecodeState::Trailer(LINE_BYTES_MAX) => return Err(Violation::Chunk),
            DecodeState::Trailer(line) => DecodeState::Trailer(line + usize::from(byte != b'\r')),
            other => other,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), Violation> {
        let (mut decoder, mut out) = (Decoder::new(framing), Vec::new());
        for piece in pieces {
            decoder.feed(piece, &mut |bytes| {
                out.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        Ok((out, decoder.is_done()))
    }

    #[test]
    fn chunks_are_put_together_wherever_they_are_cut() {
        let wire = b"4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\nA: b\r\n\r\n";
        for cut in 0..wire.len() {
            let got = decode(Framing::Chunked, &[&wire[..cut], &wire[cut..]]).unwrap();
            assert_eq!(got, (b"Wikipedia".to_vec(), true), "cut at {cut}");
        }
        let bad: [&[u8]; 4] = [b"x\r\n", b"\r\n", b"1\r\naXX", b"1234567890123456\r\n"];
        for bad in bad {
            assert_eq!(decode(Framing::Chunked, &[bad]), Err(Violation::Chunk));
        }
    }

    #[test]
    fn lengths_and_ends_of_connections() {
        assert_eq!(decode(Framing::Length(3), &[b"ab", b"cd"]).unwrap(), (b"abc".to_vec(), true));
        assert_eq!(decode(Framing::Close, &[b"ab"]).unwrap(), (b"ab".to_vec(), false));
        let mut decoder = Decoder::new(Framing::Close);
        assert!(decoder.close());
        assert!(!Decoder::new(Framing::Length(1)).close());
        assert!(Decoder::new(Framing::Length(0)).is_done());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(Framing::Chunked, &[&bytes]);
        }
    }
}
