//! Where a run under way is asked for: a thread that answers one question at a time over HTTP/1.1, and ends with
//! whoever opened the door. No runtime: a question every few seconds needs none.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// The longest that one question may take: the next one waits for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// No question of ours is longer.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its type.
    pub content_type: &'static str,
    /// It.
    pub body: String,
}

/// Gives the answer to the path of a question; `None`: there is nothing there.
pub type Answers = dyn Fn(&str) -> Option<Given> + Send + Sync;

/// A door that is open until it is dropped.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    close: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// Opens a door at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// An address that cannot be listened on, a thread that can't be started.
    pub fn open(at: SocketAddr, answers: Box<Answers>) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        let close = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let closed = Arc::clone(&close);
        let keep = move || {
            while is_asked(&listener, &closed) {
                // Who asks and goes away does no harm.
                if let Ok((stream, _)) = listener.accept() {
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    let _ = stream.set_write_timeout(Some(PATIENCE));
                    let _ = answer(stream, &*answers);
                }
            }
        };
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(keep)?;
        Ok(Self { address, close, thread: Some(thread) })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // The counter of an eventfd that nobody read before has room.
        let _ = rustix::io::write(&*self.close, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It answers for two patiences at most; a panic of it is a defect that was told.
            drop(thread.join());
        }
    }
}

/// Waits until somebody asks; false: the door is closed.
fn is_asked(listener: &impl AsFd, close: &OwnedFd) -> bool {
    let mut fds = [
        PollFd::new(close, PollFlags::IN),
        PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
    ];
    match poll(&mut fds, None) {
        Ok(_) => fds[0].revents().is_empty(),
        Err(rustix::io::Errno::INTR) => true,
        Err(_) => false,
    }
}

fn answer(mut stream: impl Read + Write, answers: &Answers) -> io::Result<()> {
    let mut request = [0; HEAD_BYTES_MAX];
    let mut length = 0;
    let until = Instant::now() + PATIENCE;
    // All of the question is read: closing a connection with bytes unread would reset it.
    while Instant::now() < until
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
        |body: &str| Given { content_type: "text/plain; charset=utf-8", body: body.to_owned() };
    let (status, given) = match line.starts_with("GET ") {
        true => match answers(path) {
            Some(given) => ("200 OK", given),
            None => ("404 Not Found", plain("there is nothing here\n")),
        },
        false => ("405 Method Not Allowed", plain("")),
    };
    let Given { content_type, body } = given;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
