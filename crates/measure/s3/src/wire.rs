//! The bytes of a connection: over TCP as they are, or through TLS (RFC 8446, RFC 5246).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use rustls::{CertificateError, ClientConfig, ClientConnection, pki_types::ServerName};

/// TLS configuration for a server.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    /// The name or address that the certificate must be for.
    pub name: ServerName<'static>,
    /// The authorities that are trusted, and what is spoken.
    pub config: Arc<ClientConfig>,
}

/// Why bytes did not move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IoStop {
    /// The socket has none, or no room: wait for it.
    Blocked,
    /// The connection is lost.
    Lost(String),
    /// The two do not agree about TLS, or the certificate is not trusted.
    Tls(String),
}

impl From<io::Error> for IoStop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Self::Blocked,
            _ => Self::Lost(error.to_string()),
        }
    }
}

impl From<Errno> for IoStop {
    fn from(error: Errno) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<rustls::Error> for IoStop {
    fn from(error: rustls::Error) -> Self {
        use rustls::Error::{InvalidCertificate, InvalidMessage};
        Self::Tls(match error {
            InvalidCertificate(CertificateError::UnknownIssuer) => {
                "the server's certificate is from an authority that this host does not trust: \
                 name the authority's file in AWS_CA_BUNDLE"
                    .to_owned()
            }
            InvalidCertificate(error) => format!("the server's certificate is not valid: {error}"),
            InvalidMessage(_) => {
                "the server does not speak TLS there: is its address an http:// one?".to_owned()
            }
            error => error.to_string(),
        })
    }
}

/// A connected socket, with TLS where the store asks for it.
#[derive(Debug)]
pub(crate) struct Wire {
    pub fd: OwnedFd,
    session: Option<Box<ClientConnection>>,
}

impl Wire {
    /// Over a socket that is being connected.
    pub fn new(fd: OwnedFd, tls: Option<&Tls>) -> Result<Self, IoStop> {
        let session = match tls {
            None => None,
            Some(tls) => {
                let session = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone())?;
                Some(Box::new(session))
            }
        };
        Ok(Self { fd, session })
    }

    /// Sends of the slices what goes at once, and returns how much that is.
    pub fn send(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, IoStop> {
        let Some(session) = &mut self.session else { return Ok(send(&self.fd, slices)?) };
        // The handshake comes first; what it waits for comes with the next readiness to read.
        flush(session, &self.fd)?;
        if session.is_handshaking() {
            receive(session, &self.fd)?;
            flush(session, &self.fd)?;
            if session.is_handshaking() {
                return Err(IoStop::Blocked);
            }
        }
        let taken = session.writer().write_vectored(slices)?;
        match flush(session, &self.fd) {
            Ok(()) | Err(IoStop::Blocked) => Ok(taken),
            Err(stopped) => Err(stopped),
        }
    }

    /// Sends what TLS still holds of what was given.
    pub fn flush(&mut self) -> Result<(), IoStop> {
        self.session.as_mut().map_or(Ok(()), |session| flush(session, &self.fd))
    }

    /// Receives into `window`, and returns how much; 0 at the connection's end.
    pub fn receive(&mut self, window: &mut [u8]) -> Result<usize, IoStop> {
        let Some(session) = &mut self.session else {
            return Ok(rustix::io::readv(&self.fd, &mut [IoSliceMut::new(window)])?);
        };
        // Sends TLS's own responses, such as key updates.
        match flush(session, &self.fd) {
            Ok(()) | Err(IoStop::Blocked) => {}
            Err(stopped) => return Err(stopped),
        }
        loop {
            match session.reader().read(window) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without TLS's own may be an attack on what comes: it is none here.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error.into()),
            }
            if receive(session, &self.fd)? == 0 && !session.wants_read() {
                return Ok(0);
            }
        }
    }

    /// Whether the socket must be watched for room to send; `waits` says whether the caller has more.
    pub fn wants_write(&self, waits: bool) -> bool {
        self.session.as_ref().map_or(waits, |session| session.wants_write())
    }

    /// Receives data on a connection without outstanding requests. Returns false if the connection
    /// ended or the server sent a response.
    pub fn is_quiet(&mut self) -> bool {
        // A server may send tickets and new keys at any time; anything else is of no request.
        self.session.is_some() && self.receive(&mut [0]) == Err(IoStop::Blocked)
    }
}

fn send(fd: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), flags) {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

/// The socket, for TLS to send to and receive from.
struct Socket<'a>(&'a OwnedFd);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, &[IoSlice::new(bytes)])?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(send(self.0, slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Socket<'_> {
    fn read(&mut self, window: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, window)?)
    }
}

fn flush(session: &mut ClientConnection, fd: &OwnedFd) -> Result<(), IoStop> {
    while session.wants_write() {
        session.write_tls(&mut Socket(fd))?;
    }
    Ok(())
}

/// Receives once, and takes in what came; 0 at the connection's end.
fn receive(session: &mut ClientConnection, fd: &OwnedFd) -> Result<usize, IoStop> {
    let read = session.read_tls(&mut Socket(fd))?;
    if let Err(error) = session.process_new_packets() {
        // Sends the TLS alert, if the server still reads.
        let _ = flush(session, fd);
        return Err(error.into());
    }
    match read {
        0 if session.is_handshaking() => {
            Err(IoStop::Lost("the server ended the connection while TLS was agreed on".to_owned()))
        }
        read => Ok(read),
    }
}
