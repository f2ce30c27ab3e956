//! HTTP server that reports the status of the current run. It answers one request at a time on a
//! thread and ends when it is dropped. A request every few seconds needs no asynchronous runtime.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// Time limit of one request. Further requests wait.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a request.
const REQUEST_BYTES_MAX: usize = 4 << 10;

/// Response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Content type.
    pub content_type: &'static str,
    /// Body.
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
    /// Path of a Unix socket, which is removed with the server.
    File(PathBuf),
}

impl StatusServer {
    /// Listens on an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// An address that cannot be listened on, or a thread that cannot be started.
    pub fn open(at: SocketAddr, handler: Box<Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let endpoint = Endpoint::Address(listener.local_addr()?);
        Self::spawn(listener, endpoint, handler, |listener, handler| {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
            stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
            respond(stream, handler)
        })
    }

    /// Listens on a Unix socket. Dropping the server removes `file`, and its directory if it is
    /// empty.
    ///
    /// # Errors
    /// As [`StatusServer::open`].
    pub fn open_socket(at: &Path, file: PathBuf, handler: Box<Handler>) -> io::Result<Self> {
        let listener = UnixListener::bind(at)?;
        Self::spawn(listener, Endpoint::File(file), handler, |listener, handler| {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
            stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
            respond(stream, handler)
        })
    }

    fn spawn<L: AsFd + Send + 'static>(
        listener: L,
        endpoint: Endpoint,
        handler: Box<Handler>,
        one: fn(&L, &Handler) -> io::Result<()>,
    ) -> io::Result<Self> {
        // Non-blocking, because a client may disconnect before it is accepted.
        rustix::io::ioctl_fionbio(&listener, true)?;
        let close = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let closed = Arc::clone(&close);
        let serve = move || {
            while wait_for_client(&listener, &closed) {
                // A client that disconnects is not an error.
                let _ = one(&listener, &*handler);
            }
        };
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
        // An unread eventfd accepts a write.
        let _ = rustix::io::write(&*self.close, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // The thread answers for two timeouts at most. Its panics are already reported as
            // defects.
            drop(thread.join());
        }
        if let Endpoint::File(file) = &self.endpoint {
            // A stale socket refuses connections.
            let _ = std::fs::remove_file(file);
            // Fails if other sockets are in the directory.
            let _ = file.parent().map(std::fs::remove_dir);
        }
    }
}

/// Waits for a client. Returns false if the server is closed.
fn wait_for_client(listener: &impl AsFd, close: &OwnedFd) -> bool {
    loop {
        let mut fds = [
            PollFd::new(close, PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => return fds[0].revents().is_empty(),
            // Interrupted by a signal.
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn respond(mut stream: impl Read + Write, handler: &Handler) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES_MAX];
    let mut length = 0;
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    // Read the whole request: closing a connection with unread bytes would reset it.
    while Instant::now() < deadline
        && length < request.len()
        && !request[..length].windows(4).any(|four| four == b"\r\n\r\n")
    {
        match stream.read(&mut request[length..])? {
            0 => break,
            more => length += more,
        }
    }
    let line = String::from_utf8_lossy(&request[..length]);
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
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
