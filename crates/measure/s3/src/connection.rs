//! One connection. A connection sends a request, receives the response, and then sends the next
//! request.

use std::io::IoSlice;
use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::body::Decoder;
use crate::error::Violation;
use crate::head::{self, Framing, HEAD_BYTES_MAX, Head};
use crate::request::Payload;
use crate::wire::{IoStop, Tls, Wire};

/// Maximum size of an XML document, in bytes. It is large enough for 1,000 names of 1,024 bytes
/// with their attributes.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Maximum number of bytes that one call receives into the buffer. The buffer is used if the data
/// cannot be received directly into the arena.
const PIECE_BYTES: usize = 64 * 1024;

/// Reason why a request got no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionError {
    /// The connection could not be opened, or was lost.
    Lost(String),
    /// TLS with this server fails, so a retry would also fail.
    Tls(String),
    /// The server broke the protocol.
    Violation(Violation),
}

impl ConnectionError {
    fn from_io(stopped: IoStop, doing: &str) -> Self {
        match stopped {
            // Callers wait until the socket is ready, so a socket always exists when a handshake
            // starts.
            IoStop::Blocked => Self::Lost(doing.to_owned()),
            IoStop::Lost(says) => Self::Lost(format!("{doing}: {says}")),
            IoStop::Tls(says) => Self::Tls(says),
        }
    }
}

impl From<Violation> for ConnectionError {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// Destination for the body of a successful response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// The response has no body (HEAD).
    None,
    /// The body is received into a range of the arena.
    Arena { offset_bytes: u64, size_bytes: u32 },
    /// The body is an XML document, which is stored in memory.
    Text,
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub status: u16,
    pub etag: Option<String>,
    /// Number of bytes of the body that were written to the arena.
    pub arena_bytes: u32,
    /// The XML document in the body of a success or error response.
    pub text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No request is in flight.
    Idle,
    Connecting,
    Sending,
    Receiving,
}

/// A connection to the store.
#[derive(Debug)]
pub(crate) struct Connection {
    address: SocketAddr,
    tls: Option<Tls>,
    wire: Option<Wire>,
    phase: Phase,
    /// Head of the request. The caller writes it.
    pub request: Vec<u8>,
    pub payload: Payload,
    sent: usize,
    sink: Sink,
    /// Bytes that were received before the head was complete.
    input: Vec<u8>,
    head: Option<Head>,
    decoder: Decoder,
    arena_bytes: u32,
    text: Vec<u8>,
    piece: Vec<u8>,
    /// True if a response was received on this connection.
    pub proven: bool,
    /// True if part of the current response was received.
    pub answered: bool,
    /// True if part of the current response's body was received.
    pub has_body: bool,
}

impl Connection {
    pub fn new(address: SocketAddr, tls: Option<Tls>) -> Self {
        Self {
            address,
            tls,
            wire: None,
            phase: Phase::Idle,
            request: Vec::with_capacity(1024),
            payload: Payload::None,
            sent: 0,
            sink: Sink::None,
            input: Vec::with_capacity(4096),
            head: None,
            decoder: Decoder::new(Framing::Length(0)),
            arena_bytes: 0,
            text: Vec::new(),
            piece: Vec::new(),
            proven: false,
            answered: false,
            has_body: false,
        }
    }

    /// Returns the socket; `None` if the connection is not open.
    pub fn fd(&self) -> Option<&OwnedFd> {
        self.wire.as_ref().map(|wire| &wire.fd)
    }

    /// Opens a socket, which the caller must register with epoll. Returns `None` if the connection
    /// already has a socket.
    pub fn open(&mut self) -> Result<bool, ConnectionError> {
        if self.wire.is_some() {
            return Ok(false);
        }
        let lost = |error: Errno| ConnectionError::Lost(format!("connecting: {error}"));
        let family = match self.address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(lost)?;
        sockopt::set_tcp_nodelay(&fd, true).map_err(lost)?;
        match connect(&fd, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(lost(error)),
        }
        let wire = Wire::new(fd, self.tls.as_ref())
            .map_err(|s| ConnectionError::from_io(s, "connecting"))?;
        (self.wire, self.phase, self.proven) = (Some(wire), Phase::Connecting, false);
        Ok(true)
    }

    /// Starts the request in [`Connection::request`].
    pub fn begin(&mut self, payload: Payload, sink: Sink) {
        (self.payload, self.sink, self.sent) = (payload, sink, 0);
        self.input.clear();
        self.text.clear();
        (self.head, self.arena_bytes, self.answered, self.has_body) = (None, 0, false, false);
        if self.phase != Phase::Connecting {
            self.phase = Phase::Sending;
        }
    }

    /// Closes the connection.
    pub fn drop_socket(&mut self) {
        (self.wire, self.phase) = (None, Phase::Idle);
    }

    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// Sends and receives until the socket would block.
    pub fn advance(&mut self, arena: &mut [u8]) -> Result<Option<Response>, ConnectionError> {
        if self.phase == Phase::Connecting && !self.connected()? {
            return Ok(None);
        }
        if self.phase == Phase::Sending {
            self.send(arena)?;
        }
        // A server may answer before it has received the whole body.
        match self.phase {
            Phase::Sending | Phase::Receiving => self.receive(arena),
            Phase::Idle => self.watch_idle(),
            Phase::Connecting => Ok(None),
        }
    }

    fn connected(&mut self) -> Result<bool, ConnectionError> {
        let Some(fd) = self.fd() else { return Ok(false) };
        let lost = |error: Errno| ConnectionError::Lost(format!("connecting: {error}"));
        sockopt::socket_error(fd).and_then(|outcome| outcome).map_err(lost)?;
        match rustix::net::getpeername(fd) {
            Ok(Some(peer)) if rustix::net::getsockname(fd).ok() == Some(peer.clone()) => {
                // The kernel connected the socket to itself, so no server listens there.
                return Err(lost(Errno::CONNREFUSED));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(Errno::NOTCONN) => return Ok(false),
            Err(error) => return Err(lost(error)),
        }
        self.phase = if self.request.is_empty() { Phase::Idle } else { Phase::Sending };
        Ok(true)
    }

    fn send(&mut self, arena: &[u8]) -> Result<(), ConnectionError> {
        let Some(wire) = &mut self.wire else { return Ok(()) };
        let body: &[u8] = match &self.payload {
            Payload::None => &[],
            Payload::Text(text) => text.as_bytes(),
            Payload::Arena { offset_bytes, size_bytes } => {
                let start = *offset_bytes as usize;
                arena.get(start..start + *size_bytes as usize).unwrap_or_default()
            }
        };
        let head = self.request.len();
        let all = head + body.len();
        while self.sent < all {
            let slices = [
                IoSlice::new(self.request.get(self.sent..).unwrap_or_default()),
                IoSlice::new(&body[self.sent.saturating_sub(head)..]),
            ];
            match wire.send(&slices) {
                Ok(sent) => self.sent += sent,
                Err(IoStop::Blocked) => return Ok(()),
                Err(stopped) => return Err(ConnectionError::from_io(stopped, "sending")),
            }
        }
        match wire.flush() {
            Ok(()) => self.phase = Phase::Receiving,
            Err(IoStop::Blocked) => {}
            Err(stopped) => return Err(ConnectionError::from_io(stopped, "sending")),
        }
        Ok(())
    }

    /// Returns true if the caller must wait until the socket can send.
    pub fn wants_write(&self) -> bool {
        match (self.phase, &self.wire) {
            (Phase::Connecting, _) => true,
            (phase, Some(wire)) => wire.wants_write(phase == Phase::Sending),
            (_, None) => false,
        }
    }

    fn receive(&mut self, arena: &mut [u8]) -> Result<Option<Response>, ConnectionError> {
        loop {
            let read = match self.window(arena) {
                Some(window) => {
                    let Some(wire) = &mut self.wire else { return Ok(None) };
                    let read = wire.receive(window);
                    if let Ok(read @ 1..) = read {
                        self.arena_bytes += read as u32;
                        self.has_body = true;
                        self.decoder.skip(read as u64);
                    }
                    read
                }
                None => {
                    self.piece.resize(PIECE_BYTES, 0);
                    let Some(wire) = &mut self.wire else { return Ok(None) };
                    let read = wire.receive(&mut self.piece[..]);
                    if let Ok(read @ 1..) = read {
                        let piece = std::mem::take(&mut self.piece);
                        let taken = self.take(&piece[..read], arena);
                        self.piece = piece;
                        taken?;
                    }
                    read
                }
            };
            match read {
                Ok(0) => return self.ended(),
                Ok(_) => self.answered = true,
                Err(IoStop::Blocked) => return Ok(None),
                Err(stopped) => return Err(ConnectionError::from_io(stopped, "receiving")),
            }
            if self.head.is_some() && self.decoder.is_done() {
                return Ok(Some(self.finish()));
            }
        }
    }

    /// Returns the part of the arena into which the next bytes can be received directly; `None` if
    /// they must be decoded first.
    fn window<'a>(&self, arena: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (Some(head), Sink::Arena { offset_bytes, size_bytes }) = (&self.head, self.sink) else {
            return None;
        };
        let left = self.decoder.plain_left()?;
        let room = u64::from(size_bytes - self.arena_bytes);
        if !is_good(head.status) || left > room || left == 0 {
            return None;
        }
        let start = offset_bytes as usize + self.arena_bytes as usize;
        arena.get_mut(start..start + left as usize)
    }

    fn take(&mut self, bytes: &[u8], arena: &mut [u8]) -> Result<(), ConnectionError> {
        if self.head.is_some() {
            return Ok(self.feed(bytes, arena)?);
        }
        self.input.extend_from_slice(bytes);
        loop {
            let Some(head) = head::parse(&self.input)? else { return Ok(()) };
            let behind = self.input.split_off(head.size_bytes);
            self.input = behind;
            if head.status >= 200 {
                let none = self.sink == Sink::None || head.status == 204 || head.status == 304;
                let framing = if none { Framing::Length(0) } else { head.framing };
                self.decoder = Decoder::new(framing);
                self.head = Some(head);
                break;
            }
        }
        let input = std::mem::take(&mut self.input);
        self.feed(&input, arena)?;
        Ok(())
    }

    fn feed(&mut self, bytes: &[u8], arena: &mut [u8]) -> Result<(), Violation> {
        let good = self.head.as_ref().is_some_and(|head| is_good(head.status));
        let (sink, text, got) = (self.sink, &mut self.text, &mut self.arena_bytes);
        let has_body = &mut self.has_body;
        let taken = self.decoder.feed(bytes, &mut |piece| match sink {
            Sink::Arena { offset_bytes, size_bytes } if good => {
                let most = u64::from(size_bytes);
                if u64::from(*got) + piece.len() as u64 > most {
                    return Err(Violation::TooMuch { limit_bytes: most });
                }
                let start = offset_bytes as usize + *got as usize;
                if let Some(window) = arena.get_mut(start..start + piece.len()) {
                    window.copy_from_slice(piece);
                }
                *got += piece.len() as u32;
                *has_body |= !piece.is_empty();
                Ok(())
            }
            _ if text.len() + piece.len() > TEXT_BYTES_MAX => {
                Err(Violation::TooMuch { limit_bytes: TEXT_BYTES_MAX as u64 })
            }
            _ => {
                text.extend_from_slice(piece);
                Ok(())
            }
        })?;
        if taken < bytes.len() {
            return Err(Violation::TooMuch { limit_bytes: taken as u64 });
        }
        Ok(())
    }

    /// Handles the end of the connection by the server.
    fn ended(&mut self) -> Result<Option<Response>, ConnectionError> {
        if self.head.is_some() && self.decoder.close() {
            let response = self.finish();
            self.drop_socket();
            return Ok(Some(response));
        }
        if self.head.is_some() || self.input.len() >= HEAD_BYTES_MAX {
            return Err(ConnectionError::Lost(Violation::Truncated.to_string()));
        }
        Err(ConnectionError::Lost("the server ended the connection".to_owned()))
    }

    /// If the server sends data on an idle connection, except TLS records, the connection is
    /// closed.
    fn watch_idle(&mut self) -> Result<Option<Response>, ConnectionError> {
        if !self.wire.as_mut().is_some_and(Wire::is_quiet) {
            self.drop_socket();
        }
        Ok(None)
    }

    fn finish(&mut self) -> Response {
        let head = self.head.take();
        let early = self.phase == Phase::Sending;
        (self.phase, self.proven) = (Phase::Idle, true);
        // If the server answered before it received the whole body, it could mistake the remaining
        // bytes for a new request.
        if early || head.as_ref().is_none_or(|head| head.closes) {
            self.drop_socket();
        }
        Response {
            status: head.as_ref().map_or(0, |head| head.status),
            etag: head.and_then(|head| head.etag),
            arena_bytes: self.arena_bytes,
            text: std::mem::take(&mut self.text),
        }
    }
}

/// Returns true if the status means success.
pub(crate) fn is_good(status: u16) -> bool {
    (200..300).contains(&status)
}
