//! HTTP server that reports the status of the current run. One thread waits for all clients and
//! answers each complete request immediately, so a silent client does not delay other clients. The
//! server ends when it is dropped. Requests arrive only every few seconds, so no asynchronous
//! runtime is needed.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of clients whose request is incomplete. When the limit is reached, a new client
/// replaces the oldest.
const CLIENTS_MAX: usize = 32;
/// Interval at which timeouts are checked while there are clients.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum size of a request.
const REQUEST_BYTES_MAX: usize = 4 << 10;

/// Response to a request for a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub content_type: &'static str,
    pub body: String,
}

/// Returns the response for a path; `None` means not found.
pub type Handler = dyn Fn(&str) -> Option<Response> + Send + Sync;

/// HTTP server, running until it is dropped.
#[derive(Debug)]
pub struct StatusServer {
    endpoint: Endpoint,
    close: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Address of a server.
#[derive(Debug)]
enum Endpoint {
    Address(SocketAddr),
    /// Path of a Unix socket. It is removed when the server is dropped.
    File(PathBuf),
}

impl StatusServer {
    /// Listens on an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// The address cannot be used for listening, or the thread cannot be started.
    pub fn open(at: SocketAddr, handler: Box<Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let endpoint = Endpoint::Address(listener.local_addr()?);
        Self::spawn(listener, endpoint, handler, |listener| {
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        })
    }

    /// Listens on a Unix socket. Dropping the server removes `file`, and its directory if it is
    /// empty.
    ///
    /// # Errors
    /// The errors of [`StatusServer::open`].
    pub fn open_socket(at: &Path, file: PathBuf, handler: Box<Handler>) -> io::Result<Self> {
        let listener = UnixListener::bind(at)?;
        Self::spawn(listener, Endpoint::File(file), handler, |listener| {
            let (stream, _) = listener.accept()?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        })
    }

    fn spawn<L: AsFd + Send + 'static, S: Stream>(
        listener: L,
        endpoint: Endpoint,
        handler: Box<Handler>,
        accept: fn(&L) -> io::Result<S>,
    ) -> io::Result<Self> {
        // `accept` must not block, because a client may disconnect before it is accepted.
        rustix::io::ioctl_fionbio(&listener, true)?;
        let close = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let closed = Arc::clone(&close);
        let serve = move || serve(&listener, &closed, accept, &*handler);
        let thread = std::thread::Builder::new().name("status".to_owned()).spawn(serve)?;
        Ok(Self { endpoint, close, thread: Some(thread) })
    }

    /// Returns the TCP address; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.endpoint {
            Endpoint::Address(address) => Some(*address),
            Endpoint::File(_) => None,
        }
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        // This cannot fail, because an eventfd accepts a write if its counter is not full.
        let _ = rustix::io::write(&*self.close, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // Panics of the thread were already reported as defects.
            drop(thread.join());
        }
        if let Endpoint::File(file) = &self.endpoint {
            // If the removal fails, a stale socket remains. It refuses connections, so it is
            // harmless.
            let _ = std::fs::remove_file(file);
            // The removal fails if the directory still contains other sockets.
            let _ = file.parent().map(std::fs::remove_dir);
        }
    }
}

/// A non-blocking connection to a client.
trait Stream: Read + Write + AsFd + Send + 'static {}

impl<S: Read + Write + AsFd + Send + 'static> Stream for S {}

/// A client, with the bytes that it has sent so far.
struct Client<S> {
    stream: S,
    request: Vec<u8>,
    /// Part of the response that was not sent yet; empty until the request is complete.
    response: Vec<u8>,
    since: Instant,
}

/// Serves clients until the server is closed.
fn serve<L: AsFd, S: Stream>(
    listener: &L,
    close: &OwnedFd,
    accept: fn(&L) -> io::Result<S>,
    handler: &Handler,
) {
    let mut clients: Vec<Client<S>> = Vec::new();
    loop {
        let required = |client: &Client<S>| match client.response.is_empty() {
            true => PollFlags::IN,
            false => PollFlags::OUT,
        };
        let mut fds = vec![
            PollFd::new(close, PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        fds.extend(clients.iter().map(|client| PollFd::new(&client.stream, required(client))));
        let timeout = (!clients.is_empty()).then(|| Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(POLL_INTERVAL.as_nanos()).unwrap_or(i64::MAX),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            // A signal has interrupted the wait.
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        }
        if !fds[0].revents().is_empty() {
            return;
        }
        let is_new = !fds[1].revents().is_empty();
        let is_ready: Vec<bool> = fds[2..].iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut ready = is_ready.into_iter();
        clients.retain_mut(|client| {
            let is_ready = ready.next().unwrap_or(false);
            // A client that disconnects is not an error.
            let is_open = !is_ready || client.advance(handler).unwrap_or(false);
            is_open && client.since.elapsed() < REQUEST_TIMEOUT
        });
        if is_new && let Ok(stream) = accept(listener) {
            if clients.len() == CLIENTS_MAX {
                clients.remove(0);
            }
            let (request, response) = (Vec::new(), Vec::new());
            clients.push(Client { stream, request, response, since: Instant::now() });
        }
    }
}

impl<S: Stream> Client<S> {
    /// Reads or writes as much as possible. Returns false once the whole response has been sent.
    fn advance(&mut self, handler: &Handler) -> io::Result<bool> {
        while self.response.is_empty() {
            let mut piece = [0; REQUEST_BYTES_MAX];
            let length = match self.stream.read(&mut piece) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            self.request.extend_from_slice(&piece[..length]);
            // The whole request is read, because closing a connection with unread bytes would reset
            // it.
            let is_complete = self.request.windows(4).any(|four| four == b"\r\n\r\n");
            if is_complete || length == 0 || self.request.len() >= REQUEST_BYTES_MAX {
                self.response = response(&self.request, handler);
            }
        }
        while !self.response.is_empty() {
            match self.stream.write(&self.response) {
                Ok(length) => drop(self.response.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

fn response(request: &[u8], handler: &Handler) -> Vec<u8> {
    let line = String::from_utf8_lossy(request);
    let path = line.split_whitespace().nth(1).unwrap_or_default();
    let plain =
        |body: &str| Response { content_type: "text/plain; charset=utf-8", body: body.to_owned() };
    let (status, response) = match line.starts_with("GET ") {
        true => match handler(path) {
            Some(response) => ("200 OK", response),
            None => ("404 Not Found", plain("not found\n")),
        },
        false => ("405 Method Not Allowed", plain("")),
    };
    let Response { content_type, body } = response;
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn silent_clients_delay_no_other() {
        let answer = |_: &str| Some(Response { content_type: "text/plain", body: "ok".into() });
        let server = StatusServer::open("127.0.0.1:0".parse().unwrap(), Box::new(answer)).unwrap();
        let at = server.address().unwrap();
        let silent: Vec<TcpStream> =
            (0..2 * CLIENTS_MAX).map(|_| TcpStream::connect(at).unwrap()).collect();
        for _ in 0..3 {
            let began = Instant::now();
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("ok"), "{text}");
            // In an earlier version, three silent clients delayed this request by six seconds.
            assert!(began.elapsed() < REQUEST_TIMEOUT, "{:?}", began.elapsed());
        }
        drop(silent);
    }
}
