//! Status sockets of a user's processes. Each process that executes a run serves the run's state on
//! a Unix socket, in a directory that only this user may enter.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_runner::places::Places;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};

use crate::charts::Charts;
use crate::state::State;
use crate::state_listener::StateListener;
use crate::status_server::{Response, StatusServer};

/// Time limit of a request to another process.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a response, in bytes.
const RESPONSE_BYTES_MAX: u64 = 32 << 20;
/// Maximum number of attempts to create the directory. Another process may remove it at the same
/// time.
const TRIES: u32 = 8;
/// Path of requests that include charts.
const CHARTS_PATH: &str = "/charts";
/// File name extension of a socket. The name before it is the process id.
const EXTENSION: &str = ".socket";

/// Reason why a process did not return its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusError {
    /// The process has exited, has no run, or runs a version of Plimsoll whose state cannot be
    /// read.
    Gone,
    /// The process did not respond in time, because it is stopped or the machine is busy.
    Silent,
}

#[derive(Serialize)]
struct StatusBody<'a> {
    state: &'a State,
    charts: Option<&'a Charts>,
}

#[derive(Deserialize)]
struct ReceivedStatus {
    state: State,
    charts: Option<Charts>,
}

/// Serves the state of this process to the user's other processes, until the server is dropped.
///
/// # Errors
/// The directory cannot be created, or other users may enter it.
pub fn serve(places: &Places, listener: &StateListener) -> io::Result<StatusServer> {
    let mut tries = 0..TRIES;
    loop {
        match start_server(places, listener) {
            // Another process has just removed the directory together with the last socket in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries.next().is_some() => {}
            result => return result,
        }
    }
}

fn start_server(places: &Places, listener: &StateListener) -> io::Result<StatusServer> {
    let directory = directory(places);
    if let Some(above) = directory.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let directory_fd = open_private(&directory)?;
    let name = format!("{}{EXTENSION}", std::process::id());
    // An earlier process with the same id may have left its socket.
    let _ = std::fs::remove_file(directory.join(&name));
    let listener = listener.clone();
    let handler = move |path: &str| {
        let state = listener.state();
        let charts = (path == CHARTS_PATH).then_some(&state.charts);
        let body = serde_json::to_string(&StatusBody { state: &state, charts }).ok()?;
        Some(Response { content_type: "application/json", body })
    };
    StatusServer::open_socket(
        &fd_path(&directory_fd, &name),
        directory.join(&name),
        Box::new(handler),
    )
}

/// Returns the ids of processes that serve the state of a run.
pub fn processes(places: &Places) -> Vec<u32> {
    let directory = directory(places);
    let Ok(directory_fd) = open_private(&directory) else { return Vec::new() };
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_alive = |process: &u32| {
        let name = format!("{process}{EXTENSION}");
        let connection = connect_nonblocking(&fd_path(&directory_fd, &name));
        if connection.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            // The process was killed, but its socket still exists.
            let _ = std::fs::remove_file(directory.join(&name));
        }
        // If the queue of connections is full, the process still exists.
        connection.map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |_| true)
    };
    let numbers = names.filter_map(|name| name.strip_suffix(EXTENSION)?.parse().ok());
    let mut processes: Vec<u32> = numbers.filter(is_alive).collect();
    processes.sort_unstable();
    processes
}

/// Returns the state of a process, with its charts if requested.
///
/// # Errors
/// The process has exited or does not respond within `timeout`.
pub fn request_state(
    places: &Places,
    process: u32,
    with_charts: bool,
    timeout: Duration,
) -> Result<State, StatusError> {
    let directory_fd = open_private(&directory(places)).map_err(|_| StatusError::Gone)?;
    let reached = connect_nonblocking(&fd_path(&directory_fd, &format!("{process}{EXTENSION}")));
    let stream = reached.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => StatusError::Silent,
        _ => StatusError::Gone,
    })?;
    let response = send_request(stream, if with_charts { CHARTS_PATH } else { "/" }, timeout);
    let response = response.map_err(|_| StatusError::Silent)?;
    // A process that is just exiting sends an incomplete response. The next request will not find
    // the process.
    let end =
        response.windows(4).position(|four| four == b"\r\n\r\n").ok_or(StatusError::Silent)?;
    let body = response.starts_with(b"HTTP/1.1 200").then(|| &response[end + 4..]);
    let body = body.ok_or(StatusError::Gone)?;
    let ReceivedStatus { mut state, charts } = serde_json::from_slice(body)
        .map_err(|error| if error.is_eof() { StatusError::Silent } else { StatusError::Gone })?;
    (state.process, state.charts) = (Some(process), charts.unwrap_or_default());
    Ok(state)
}

/// Connects without blocking. A stopped process does not accept connections, so its queue fills up.
fn connect_nonblocking(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &SocketAddrUnix::new(socket)?)?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Sends a request and reads the whole response.
fn send_request(mut stream: UnixStream, path: &str, timeout: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + timeout;
    // A socket does not accept a timeout of zero.
    let remaining =
        || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(remaining()))?;
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n")?;
    let (mut response, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        stream.set_read_timeout(Some(remaining()))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(response),
            Ok(count) => response.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if response.len() as u64 > RESPONSE_BYTES_MAX || Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

fn directory(places: &Places) -> PathBuf {
    places.cache.join("live")
}

/// Opens the directory if only this user may enter it.
fn open_private(directory: &Path) -> io::Result<File> {
    let directory_fd = File::open(directory)?;
    let own =
        |of: &Metadata| of.uid() == rustix::process::geteuid().as_raw() && of.mode() & 0o077 == 0;
    match directory_fd.metadata()? {
        of if of.is_dir() && own(&of) => Ok(directory_fd),
        _ => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "other users may enter the directory",
        )),
    }
}

/// Returns a short path that starts at an open directory's file descriptor. The path of a socket
/// must not exceed 107 bytes (unix(7)).
fn fd_path(directory: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use plimsoll_evidence::run::PhaseKind;
    use plimsoll_evidence::series::{Data, Row};
    use plimsoll_record::progress::Watcher;

    use super::*;

    fn places(root: &Path) -> Places {
        let at = |name: &str| root.join(name);
        // The path is longer than the limit for sockets.
        let cache = at(&"long".repeat(40));
        Places { state: at("state"), runs: at("runs"), cache, signer: None }
    }

    fn request(places: &Places, process: u32, with_charts: bool) -> Result<State, StatusError> {
        request_state(places, process, with_charts, REQUEST_TIMEOUT)
    }

    /// A stopped process listens but accepts no connections.
    #[test]
    fn a_process_that_is_there_and_does_not_answer_is_silent_and_holds_nobody_up() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let server = serve(&places, &StateListener::new("p")).unwrap();
        let directory_fd = open_private(&directory(&places)).unwrap();
        let stopped =
            std::os::unix::net::UnixListener::bind(fd_path(&directory_fd, "1.socket")).unwrap();
        let mut connections = Vec::new();
        // The queue is filled, so that a blocking client would wait forever.
        while let Ok(one) = connect_nonblocking(&fd_path(&directory_fd, "1.socket")) {
            connections.push(one);
            if connections.len() == 1 {
                let short = Duration::from_millis(20);
                assert_eq!(request_state(&places, 1, true, short).err(), Some(StatusError::Silent));
            }
        }
        assert_eq!(
            request_state(&places, 1, true, REQUEST_TIMEOUT).err(),
            Some(StatusError::Silent)
        );
        assert_eq!(processes(&places), [1, std::process::id()]);
        drop(stopped);
        assert_eq!(request_state(&places, 1, true, REQUEST_TIMEOUT).err(), Some(StatusError::Gone));
        drop((connections, server));
    }

    #[test]
    fn a_process_tells_another_all_that_it_knows_until_it_ends() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let own = std::process::id();
        assert_eq!(processes(&places), Vec::<u32>::new());
        assert_eq!(request(&places, own, false).err(), Some(StatusError::Gone));
        let mut listener = StateListener::new("p");
        let server = serve(&places, &listener).unwrap();
        listener.begin(PhaseKind::Measure);
        let data = Data::Class { count: 3, sum_ns: 30, bytes: 12, max_ns: 11 };
        let name = "db1.read".to_owned();
        listener.rows(&[Row { phase: 0, start_ns: 7, duration_ns: 1_000_000_000, name, data }]);
        assert_eq!(processes(&places), [own]);
        let state = request(&places, own, true).unwrap();
        assert_eq!((state.plan.as_str(), state.process), ("p", Some(own)));
        assert_eq!(state.phase.unwrap().kind, "measure");
        assert_eq!(state.classes["db1.read"].latency_ns_avg, Some(10));
        assert_eq!(state.charts.series.columns[&0]["read"].count, 3);
        assert!(request(&places, own, false).unwrap().charts.series.columns.is_empty());
        drop(server);
        assert_eq!(processes(&places), Vec::<u32>::new());
    }

    #[test]
    fn nobody_is_told_where_others_may_enter() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let server = serve(&places, &StateListener::new("p")).unwrap();
        let directory = directory(&places);
        assert_eq!(directory.metadata().unwrap().mode() & 0o777, 0o700);
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(processes(&places), Vec::<u32>::new());
        assert!(request(&places, std::process::id(), false).is_err());
        assert!(serve(&places, &StateListener::new("p")).is_err());
        drop(server);
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let server = serve(&places, &StateListener::new("p")).unwrap();
        let directory_fd = open_private(&directory(&places)).unwrap();
        // If a listener is dropped without its server, its socket file remains.
        drop(std::os::unix::net::UnixListener::bind(fd_path(&directory_fd, "1.socket")).unwrap());
        assert!(directory(&places).join("1.socket").exists());
        assert_eq!(processes(&places), [std::process::id()]);
        assert!(!directory(&places).join("1.socket").exists());
        drop(server);
    }
}
