//! Divides received data into records by their record marks (RFC 5531, 11). The memory for this is
//! bounded.
//!
//! Usually, a record consists of one fragment, and stays in the receive buffer. The reply to a
//! large READ is a long record: when its head is complete, the caller can receive the remaining
//! bytes directly into the arena. A record in several fragments is assembled in a separate buffer.
//! A record may have at most `limit_bytes` and at most [`FRAGMENTS_MAX`] fragments. If a server
//! announces a larger record, the client rejects it before it allocates memory.

use std::io::IoSliceMut;

use crate::error::Violation;
use crate::rpc::LAST_FRAGMENT;

/// Maximum number of fragments in a record. The reply to a 1 MiB READ in fragments of 256 bytes
/// would have 4,100 fragments.
pub const FRAGMENTS_MAX: u32 = 8192;
/// Size of the receive buffer, in bytes. It has space for the replies to about thirty READs of 4
/// KiB, or for any reply without payload.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// Minimum number of missing bytes at which the head of a record is announced to the caller. If
/// fewer bytes are missing, copying them is cheaper than another system call.
const STREAM_BYTES_MIN: usize = 8 * 1024;
/// Maximum length of the head of a READ reply, in bytes, rounded up. The head consists of an RPC
/// header with a verifier of 400 bytes (424 bytes in total), and of status, attributes, count, eof
/// and length (104 bytes).
const HEAD_BYTES: usize = 544;
/// Maximum number of unconsumed bytes that are moved to the front while the buffer still has space
/// at its end.
const MOVE_BYTES_MAX: usize = 8 * 1024;

/// State of the received data that the caller must handle next.
#[derive(Debug, PartialEq, Eq)]
pub enum InboundStep<'a> {
    /// Receive more.
    More,
    /// A complete record.
    Record(&'a [u8]),
    /// The head of a long record was received. The caller must call [`Inbound::stream`],
    /// [`Inbound::buffer_it`] or [`Inbound::discard`] next.
    Head {
        /// The bytes of the head that were received.
        head: &'a [u8],
        /// Length of the whole record.
        record_bytes: usize,
    },
    /// The payload announced with [`Inbound::stream`] is complete.
    Streamed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The next bytes belong to a record mark.
    Mark,
    /// The next bytes belong to a record of a single fragment. `asked` is true if its head was
    /// announced to the caller.
    Whole { size: usize, requested: bool },
    /// The next bytes belong to a fragment of a record that has several fragments.
    Fragment { left: usize, last: bool },
    /// The next bytes are payload, which is received into the arena. `tail` bytes of padding
    /// follow.
    Stream { at: usize, left: usize, tail: usize },
    /// The next bytes are skipped, because they belong to a discarded record.
    Discard { left: usize },
}

/// Receive state of a connection, with the received bytes that are not yet consumed.
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

    /// Discards all data, because the connection was replaced.
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

    /// Returns the space for the next received bytes, as two slices. While a payload is streamed,
    /// the first slice is in the arena. Otherwise it is empty. The second slice is in the buffer.
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

    /// Records that `size_bytes` were received into the slices of [`Inbound::windows`].
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

    /// Appends bytes as if a socket had received them. Returns the number of bytes that were
    /// appended. Callers without a socket use this function.
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

    /// Response to [`InboundStep::Head`] that receives the payload into the arena. The record
    /// consists of `head_bytes`, `payload_bytes` and `tail_bytes` of padding. The payload is
    /// received at the position `at` of the arena. The caller must check before that the three
    /// sizes add up to the size of the record, and that the range is in the arena.
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

    /// Response to [`InboundStep::Head`] that receives the complete record into the buffer.
    ///
    /// # Errors
    /// Returns [`Violation::Oversized`] if the record is longer than the buffer. Only replies to
    /// READs may be longer.
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

    /// Response to [`InboundStep::Head`] that skips the record.
    pub fn discard(&mut self, record_bytes: usize) {
        self.mode = Mode::Discard { left: record_bytes };
    }

    /// Returns what the caller must handle next.
    ///
    /// # Errors
    /// Returns a [`Violation`] if the framing is broken. Later data on this connection cannot be
    /// trusted.
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
