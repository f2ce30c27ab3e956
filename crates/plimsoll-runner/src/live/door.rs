//! Where a run under way is asked for: a thread that answers one question at a time over HTTP/1.1, and ends with
//! whoever opened the door. No runtime: a question every few seconds needs none.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
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
    place: Place,
    close: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Where a door is.
#[derive(Debug)]
enum Place {
    Address(SocketAddr),
    /// A socket, which goes with the door.
    File(PathBuf),
}

impl Door {
    /// Opens a door at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// An address that cannot be listened on, a thread that can't be started.
    pub fn open(at: SocketAddr, answers: Box<Answers>) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        let place = Place::Address(listener.local_addr()?);
        Self::keep(listener, place, answers, |listener, answers| {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            answer(stream, answers)
        })
    }

    /// Opens a door that is a socket of the file system; `file` is removed with the door, and its directory if nothing is
    /// left there.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn open_socket(at: &Path, file: PathBuf, answers: Box<Answers>) -> io::Result<Self> {
        let listener = UnixListener::bind(at)?;
        Self::keep(listener, Place::File(file), answers, |listener, answers| {
            let (stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            answer(stream, answers)
        })
    }

    fn keep<L: AsFd + Send + 'static>(
        listener: L,
        place: Place,
        answers: Box<Answers>,
        one: fn(&L, &Answers) -> io::Result<()>,
    ) -> io::Result<Self> {
        // Who asked may have gone before it is answered: it is not waited for.
        rustix::io::ioctl_fionbio(&listener, true)?;
        let close = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let closed = Arc::clone(&close);
        let keep = move || {
            while is_asked(&listener, &closed) {
                // Who asks and goes away does no harm.
                let _ = one(&listener, &*answers);
            }
        };
        let thread = std::thread::Builder::new().name("told".to_owned()).spawn(keep)?;
        Ok(Self { place, close, thread: Some(thread) })
    }

    /// Its address, where it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.place {
            Place::Address(address) => Some(*address),
            Place::File(_) => None,
        }
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
        if let Place::File(file) = &self.place {
            // One that stays is found to lead nowhere.
            let _ = std::fs::remove_file(file);
            // So is a directory without any; one that holds others stays.
            let _ = file.parent().map(std::fs::remove_dir);
        }
    }
}

/// Waits until somebody asks; false: the door is closed.
fn is_asked(listener: &impl AsFd, close: &OwnedFd) -> bool {
    loop {
        let mut fds = [
            PollFd::new(close, PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => return fds[0].revents().is_empty(),
            // A signal that this thread took: nobody asked.
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
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
