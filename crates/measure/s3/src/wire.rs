//! Byte stream of a connection: plain TCP, or TLS (RFC 8446, RFC 5246).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use rustls::{CertificateError, ClientConfig, ClientConnection, pki_types::ServerName};

/// TLS configuration for a server.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    /// Name or address that the certificate must match.
    pub name: ServerName<'static>,
    /// Trusted authorities and protocol settings.
    pub config: Arc<ClientConfig>,
}

/// Reason why no bytes were transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IoStop {
    /// The socket has no data to receive or cannot send. The caller must wait until it is ready.
    Blocked,
    /// The connection is lost.
    Lost(String),
    /// TLS failed, or the certificate is not trusted.
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
                "the server's certificate is from an authority that this host does not trust: set \
                 AWS_CA_BUNDLE to the authority's certificate file"
                    .to_owned()
            }
            InvalidCertificate(error) => format!("the server's certificate is not valid: {error}"),
            InvalidMessage(_) => {
                "the server does not speak TLS on this port: should the address start with \
                 http://?"
                    .to_owned()
            }
            error => error.to_string(),
        })
    }
}

/// A connected socket, with TLS if the store requires it.
#[derive(Debug)]
pub(crate) struct Wire {
    pub fd: OwnedFd,
    session: Option<Box<ClientConnection>>,
}

impl Wire {
    /// Creates the stream for a socket that is connecting.
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

    /// Sends as much of the slices as possible without blocking. Returns the number of bytes sent.
    pub fn send(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, IoStop> {
        let Some(session) = &mut self.session else { return Ok(send(&self.fd, slices)?) };
        // The handshake must finish before data is sent. It continues when the socket becomes
        // readable.
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

    /// Sends the data that the TLS library has buffered.
    pub fn flush(&mut self) -> Result<(), IoStop> {
        self.session.as_mut().map_or(Ok(()), |session| flush(session, &self.fd))
    }

    /// Receives into `window`. Returns the number of bytes received; 0 at the end of the
    /// connection.
    pub fn receive(&mut self, window: &mut [u8]) -> Result<usize, IoStop> {
        let Some(session) = &mut self.session else {
            return Ok(rustix::io::readv(&self.fd, &mut [IoSliceMut::new(window)])?);
        };
        // Sends messages that the TLS protocol itself requires, such as key updates.
        match flush(session, &self.fd) {
            Ok(()) | Err(IoStop::Blocked) => {}
            Err(stopped) => return Err(stopped),
        }
        loop {
            match session.reader().read(window) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // If a TLS connection ends without an alert, data may have been truncated. HTTP
                // detects this from the body length or the chunks.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error.into()),
            }
            if receive(session, &self.fd)? == 0 && !session.wants_read() {
                return Ok(0);
            }
        }
    }

    /// Returns true if the caller must wait until the socket can send. `waits` is true if the
    /// caller has more data to send.
    pub fn wants_write(&self, waits: bool) -> bool {
        self.session.as_ref().map_or(waits, |session| session.wants_write())
    }

    /// Checks an idle connection for received data. Returns false if the connection ended, or if
    /// the server sent data although no request is outstanding.
    pub fn is_quiet(&mut self) -> bool {
        // A server may send session tickets and new keys at any time. Any other data is unexpected,
        // because no request is outstanding.
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

/// The socket as a byte stream, as the TLS library requires it.
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

/// Receives and processes data once. Returns the number of bytes received; 0 at the end of the
/// connection.
fn receive(session: &mut ClientConnection, fd: &OwnedFd) -> Result<usize, IoStop> {
    let read = session.read_tls(&mut Socket(fd))?;
    if let Err(error) = session.process_new_packets() {
        // Sends the TLS alert, if the server can still receive data.
        let _ = flush(session, fd);
        return Err(error.into());
    }
    match read {
        0 if session.is_handshaking() => {
            Err(IoStop::Lost("the server ended the connection during the TLS handshake".to_owned()))
        }
        read => Ok(read),
    }
}
