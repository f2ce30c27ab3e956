//! Record marking (RFC 5531, 11) of received data, in bounded memory.
//!
//! A complete record in one fragment, the usual case, stays in the receive buffer. As soon as the
//! head of a long record (a large READ) is complete, the caller can receive the remaining bytes
//! directly into its arena. A record in several fragments is assembled in a separate buffer. A
//! record may have at most `limit_bytes` and at most [`FRAGMENTS_MAX`] fragments. If a peer
//! announces a larger record, the client rejects it before it allocates memory.

use std::io::IoSliceMut;

use crate::error::Violation;
use crate::rpc::LAST_FRAGMENT;

/// Maximum number of fragments of a record. A 1 MiB READ in fragments of 256 bytes would have
/// 4,100.
pub const FRAGMENTS_MAX: u32 = 8192;
/// Size of the receive buffer, in bytes. It is large enough for the replies to some thirty 4 KiB
/// READs, or for any reply without payload.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// If at least this many bytes of a record are missing, its head is announced to the caller. For a
/// smaller part, copying is cheaper than a second system call.
const STREAM_BYTES_MIN: usize = 8 * 1024;
/// Maximum length of a READ reply's head, in bytes: RPC header with a 400-byte verifier (424),
/// status, attributes, count, eof, length (104), rounded up.
const HEAD_BYTES: usize = 544;
/// Unconsumed bytes are moved to the front of the buffer only if there are at most this many.
const MOVE_BYTES_MAX: usize = 8 * 1024;

/// Next step for the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum InboundStep<'a> {
    /// Receive more.
    More,
    /// A complete record.
    Record(&'a [u8]),
    /// The head of a long record. Call [`Inbound::stream`], [`Inbound::buffer_it`] or
    /// [`Inbound::discard`] next.
    Head {
        /// Head of the record, as far as it was received.
        head: &'a [u8],
        /// Length of the whole record.
        record_bytes: usize,
    },
    /// The payload announced with [`Inbound::stream`] is complete.
    Streamed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The next bytes are a record mark.
    Mark,
    /// In a record that consists of a single fragment; `asked` if the caller has received its head.
    Whole { size: usize, requested: bool },
    /// In a fragment of a record that consists of several fragments.
    Fragment { left: usize, last: bool },
    /// The arena receives the payload, which `tail` bytes of padding follow.
    Stream { at: usize, left: usize, tail: usize },
    /// Skips the remaining bytes of a discarded record.
    Discard { left: usize },
}

/// Received bytes of one connection that are not yet consumed.
#[derive(Debug)]
pub struct Inbound {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    mode: Mode,
    assembly: Vec<u8>,
    assembled: bool,
    fragments: u32,
    limit_bytes: usize,
}

impl Inbound {
    /// Creates the state for records of at most `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            mode: Mode::Mark,
            assembly: Vec::new(),
            assembled: false,
            fragments: 0,
            limit_bytes,
        }
    }

    /// Discards everything, after the connection was replaced.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.mode = Mode::Mark;
        self.assembly.clear();
        self.assembled = false;
        self.fragments = 0;
    }

    /// Returns the allocated memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.buffer.len() + self.assembly.capacity()
    }

    /// Returns the space for the next bytes: the arena while a payload is streamed, then the
    /// buffer. Of the two slices, the first is often empty.
    pub fn windows<'a>(&'a mut self, arena: &'a mut [u8]) -> [IoSliceMut<'a>; 2] {
        self.make_room();
        let into = match self.mode {
            Mode::Stream { at, left, .. } if self.start == self.end => {
                arena.get_mut(at..at + left).unwrap_or_default()
            }
            _ => &mut [],
        };
        [IoSliceMut::new(into), IoSliceMut::new(&mut self.buffer[self.end..])]
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.start > 0
            && (self.end - self.start <= MOVE_BYTES_MAX || self.end == self.buffer.len())
        {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Records that `size_bytes` were received into [`Inbound::windows`].
    pub fn received(&mut self, size_bytes: usize) {
        let mut rest = size_bytes;
        if self.start == self.end
            && let Mode::Stream { at, left, .. } = &mut self.mode
        {
            let direct = rest.min(*left);
            *at += direct;
            *left -= direct;
            rest -= direct;
        }
        self.end = (self.end + rest).min(self.buffer.len());
    }

    /// Appends bytes like bytes from a socket, for callers without a socket. Returns the number of
    /// bytes used.
    pub fn feed(&mut self, bytes: &[u8], arena: &mut [u8]) -> usize {
        let mut rest = bytes;
        for window in &mut self.windows(arena) {
            let size = rest.len().min(window.len());
            window[..size].copy_from_slice(&rest[..size]);
            rest = &rest[size..];
        }
        let taken = bytes.len() - rest.len();
        self.received(taken);
        taken
    }

    /// Response to [`InboundStep::Head`]: after `head_bytes`, the record has `payload_bytes`, which
    /// belong at `at` in the arena, and then `tail_bytes` of padding. The caller has checked that
    /// the three sizes add up to the record, and that the range is inside the arena.
    pub fn stream(
        &mut self,
        head_bytes: usize,
        (at, payload_bytes): (usize, usize),
        tail_bytes: usize,
        arena: &mut [u8],
    ) {
        self.start += head_bytes;
        let here = payload_bytes.min(self.end - self.start);
        if let Some(into) = arena.get_mut(at..at + here) {
            into.copy_from_slice(&self.buffer[self.start..self.start + here]);
        }
        self.start += here;
        self.mode = Mode::Stream { at: at + here, left: payload_bytes - here, tail: tail_bytes };
    }

    /// Response to [`InboundStep::Head`]: receive the complete record.
    ///
    /// # Errors
    /// [`Violation::Oversized`] if the record is longer than the buffer. Only replies to READs may
    /// be longer.
    pub fn buffer_it(&mut self, record_bytes: usize) -> Result<(), Violation> {
        if record_bytes > self.buffer.len() {
            return Err(Violation::Oversized {
                record_bytes: record_bytes as u64,
                limit_bytes: self.buffer.len() as u64,
            });
        }
        self.mode = Mode::Whole { size: record_bytes, requested: true };
        Ok(())
    }

    /// Response to [`InboundStep::Head`]: skip the record.
    pub fn discard(&mut self, record_bytes: usize) {
        self.mode = Mode::Discard { left: record_bytes };
    }

    /// Returns the next step for the caller.
    ///
    /// # Errors
    /// A [`Violation`] of the framing. No data after it can be trusted.
    pub fn step(&mut self) -> Result<InboundStep<'_>, Violation> {
        if std::mem::take(&mut self.assembled) {
            self.assembly.clear();
        }
        loop {
            let have = self.end - self.start;
            match self.mode {
                Mode::Mark => {
                    if have < 4 {
                        return Ok(InboundStep::More);
                    }
                    self.read_mark()?;
                }
                Mode::Whole { size, requested } => {
                    if have >= size {
                        let record = self.start..self.start + size;
                        self.start += size;
                        self.mode = Mode::Mark;
                        return Ok(InboundStep::Record(&self.buffer[record]));
                    }
                    let long = size - have >= STREAM_BYTES_MIN || size > self.buffer.len();
                    if !requested && have >= HEAD_BYTES && long {
                        let head = &self.buffer[self.start..self.end];
                        return Ok(InboundStep::Head { head, record_bytes: size });
                    }
                    return Ok(InboundStep::More);
                }
                Mode::Fragment { left, last } => {
                    let here = left.min(have);
                    let bytes = &self.buffer[self.start..self.start + here];
                    self.assembly.extend_from_slice(bytes);
                    self.start += here;
                    if here < left {
                        self.mode = Mode::Fragment { left: left - here, last };
                        return Ok(InboundStep::More);
                    }
                    self.mode = Mode::Mark;
                    if last {
                        self.fragments = 0;
                        self.assembled = true;
                        return Ok(InboundStep::Record(&self.assembly));
                    }
                }
                Mode::Discard { left } => {
                    let here = left.min(have);
                    self.start += here;
                    if here < left {
                        self.mode = Mode::Discard { left: left - here };
                        return Ok(InboundStep::More);
                    }
                    self.mode = Mode::Mark;
                }
                Mode::Stream { at, left, tail } => {
                    // `stream` and `received` consume the payload, so only padding remains here.
                    if left > 0 || have < tail {
                        self.mode = Mode::Stream { at, left, tail };
                        return Ok(InboundStep::More);
                    }
                    self.start += tail;
                    self.mode = Mode::Mark;
                    return Ok(InboundStep::Streamed);
                }
            }
        }
    }

    fn read_mark(&mut self) -> Result<(), Violation> {
        let mut mark = [0; 4];
        mark.copy_from_slice(&self.buffer[self.start..self.start + 4]);
        self.start += 4;
        let word = u32::from_be_bytes(mark);
        let (last, size) = (word & LAST_FRAGMENT != 0, (word & !LAST_FRAGMENT) as usize);
        let total = self.assembly.len() + size;
        if total > self.limit_bytes {
            return Err(Violation::Oversized {
                record_bytes: total as u64,
                limit_bytes: self.limit_bytes as u64,
            });
        }
        if last && self.fragments == 0 {
            self.mode = Mode::Whole { size, requested: false };
            return Ok(());
        }
        self.fragments += 1;
        if self.fragments > FRAGMENTS_MAX {
            return Err(Violation::TooManyFragments { limit: FRAGMENTS_MAX });
        }
        self.mode = Mode::Fragment { left: size, last };
        Ok(())
    }
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;
