//! Record marking (RFC 5531, 11) on what a peer sends, in bounded memory.
//!
//! A record that came whole in one fragment, which is the usual case, is handed out where it was
//! received. A long one (a large READ) is announced by its head as soon as that is there, so that the
//! rest can be received straight into the caller's arena. A record in several fragments is put
//! together in a buffer of its own. Nothing is believed to be longer than `limit_bytes`, and no
//! record to have more than [`FRAGMENTS_MAX`] fragments: a peer that announces more, or goes on for
//! ever, is refused before memory is spent on it.

use std::io::IoSliceMut;

use crate::error::Violation;
use crate::rpc::LAST_FRAGMENT;

/// Most fragments of one record. A 1 MiB READ in fragments of 256 bytes would have 4,100.
pub const FRAGMENTS_MAX: u32 = 8192;
/// Size of the receive buffer: the replies to some thirty 4 KiB READs, or any reply that has no
/// payload, in bytes.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// A record is announced by its head only when at least this much of it is still to come, in bytes:
/// below that, copying is cheaper than a second system call.
const STREAM_BYTES_MIN: usize = 8 * 1024;
/// The head of a READ reply at its longest, in bytes: RPC header with a 400-byte verifier (424),
/// status, attributes, count, eof, length (104), rounded up.
const HEAD_BYTES: usize = 544;
/// Unconsumed bytes are moved to the front of the buffer if there are at most this many.
const MOVE_BYTES_MAX: usize = 8 * 1024;

/// Next step for the caller.
#[derive(Debug, PartialEq, Eq)]
pub enum InboundStep<'a> {
    /// Nothing until more has been received.
    More,
    /// A whole record.
    Record(&'a [u8]),
    /// The head of a long record. Answer with [`Inbound::stream`], [`Inbound::buffer_it`] or
    /// [`Inbound::discard`].
    Head {
        /// Bytes received so far.
        head: &'a [u8],
        /// Length of the whole record.
        record_bytes: usize,
    },
    /// The payload that [`Inbound::stream`] announced has arrived whole.
    Streamed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// At a record mark.
    Mark,
    /// In a single-fragment record; `asked` when its head has been shown.
    Whole { size: usize, asked: bool },
    /// In a fragment of a record of several.
    Fragment { left: usize, last: bool },
    /// Payload goes to the arena; `tail` bytes of padding follow it.
    Stream { at: usize, left: usize, tail: usize },
    /// Skips the rest of an unwanted record.
    Discard { left: usize },
}

/// Bytes received on one connection and not yet consumed.
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
    /// For records of at most `limit_bytes`.
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

    /// Forgets everything: the connection was replaced.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.mode = Mode::Mark;
        self.assembly.clear();
        self.assembled = false;
        self.fragments = 0;
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.buffer.len() + self.assembly.capacity()
    }

    /// True while the arena range given to [`Inbound::stream`] is still being filled.
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        matches!(self.mode, Mode::Stream { .. })
    }

    /// Where the next bytes are to be received: in the arena while a payload is streamed, then in
    /// the buffer. Two slices, the first of them often empty.
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

    /// `size_bytes` have been received into [`Inbound::windows`].
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

    /// Appends bytes as if they had been received: for callers without a socket. Returns how many
    /// were taken.
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

    /// Answer to [`InboundStep::Head`]: behind `head_bytes` follow `payload_bytes` for the arena at `at`,
    /// then `tail_bytes` of padding. The caller has checked that these three make up the record and
    /// that the range is in the arena.
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

    /// Answer to [`InboundStep::Head`]: the record is wanted whole.
    ///
    /// # Errors
    /// [`Violation::Oversized`] when it is longer than the buffer: only READs may be.
    pub fn buffer_it(&mut self, record_bytes: usize) -> Result<(), Violation> {
        if record_bytes > self.buffer.len() {
            return Err(Violation::Oversized {
                record_bytes: record_bytes as u64,
                limit_bytes: self.buffer.len() as u64,
            });
        }
        self.mode = Mode::Whole { size: record_bytes, asked: true };
        Ok(())
    }

    /// Answer to [`InboundStep::Head`]: skip the record.
    pub fn discard(&mut self, record_bytes: usize) {
        self.mode = Mode::Discard { left: record_bytes };
    }

    /// Returns the next step for the caller.
    ///
    /// # Errors
    /// A [`Violation`] of the framing; nothing behind it can be trusted.
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
                Mode::Whole { size, asked } => {
                    if have >= size {
                        let record = self.start..self.start + size;
                        self.start += size;
                        self.mode = Mode::Mark;
                        return Ok(InboundStep::Record(&self.buffer[record]));
                    }
                    let long = size - have >= STREAM_BYTES_MIN || size > self.buffer.len();
                    if !asked && have >= HEAD_BYTES && long {
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
                    // `stream` and `received` consume payload; only padding is left here.
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
            self.mode = Mode::Whole { size, asked: false };
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
