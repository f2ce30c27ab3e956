//! Runs of a user's processes, told to each other: every process that runs something has a door of its own, a socket in
//! one directory that nobody else may enter.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};

use super::door::{Door, Given};
use super::state::{Charts, State};
use super::told::Told;
use crate::places::Places;

/// The longest that a process may take to answer who watches it.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// What a process tells of itself is bounded, and so is what is read of it.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// How often a directory is made that another process removes at the same time.
const TRIES: u32 = 8;
/// Where charts are asked for too.
const CHARTS: &str = "/charts";
/// What a socket's name ends with; before it stands the number of its process.
const ENDING: &str = ".socket";

/// Why a process told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// It has ended, or tells of no run, or of none that this version can read.
    Gone,
    /// It is there and did not answer in time: it is stopped, or its machine is busy.
    Silent,
}

#[derive(Serialize)]
struct Tells<'a> {
    state: &'a State,
    charts: Option<&'a Charts>,
}

#[derive(Deserialize)]
struct Said {
    state: State,
    charts: Option<Charts>,
}

/// Lets this user's other processes ask how a run of this one goes, until the door is dropped.
///
/// # Errors
/// A directory that can't be made, or that others may enter.
pub fn open(places: &Places, told: &Told) -> io::Result<Door> {
    let mut tries = 0..TRIES;
    loop {
        match opened(places, told) {
            // Another process closed the last door, and removed the directory, just then.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries.next().is_some() => {}
            opened => return opened,
        }
    }
}

fn opened(places: &Places, told: &Told) -> io::Result<Door> {
    let directory = directory(places);
    if let Some(above) = directory.parent() {
        std::fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let held = entered(&directory)?;
    let name = format!("{}{ENDING}", std::process::id());
    // An earlier process of this number left it.
    let _ = std::fs::remove_file(directory.join(&name));
    let told = told.clone();
    let answers = move |path: &str| {
        let state = told.now();
        let charts = (path == CHARTS).then_some(&state.charts);
        let body = serde_json::to_string(&Tells { state: &state, charts }).ok()?;
        Some(Given { content_type: "application/json", body })
    };
    Door::open_socket(&short(&held, &name), directory.join(&name), Box::new(answers))
}

/// The processes that tell of a run, by their numbers.
pub fn processes(places: &Places) -> Vec<u32> {
    let directory = directory(places);
    let Ok(held) = entered(&directory) else { return Vec::new() };
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let answers = |process: &u32| {
        let name = format!("{process}{ENDING}");
        let there = reach(&short(&held, &name));
        if there.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // It was killed: nobody listens there any more.
            let _ = std::fs::remove_file(directory.join(&name));
        }
        // A queue that is full belongs to a process that is there.
        there.map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |_| true)
    };
    let numbers = names.filter_map(|name| name.strip_suffix(ENDING)?.parse().ok());
    let mut processes: Vec<u32> = numbers.filter(answers).collect();
    processes.sort_unstable();
    processes
}

/// What a process knows of its run, within `patience`; the charts, where these are asked for.
///
/// # Errors
/// A process that has ended, or does not answer.
pub fn ask(
    places: &Places,
    process: u32,
    with_charts: bool,
    patience: Duration,
) -> Result<State, Unheard> {
    let held = entered(&directory(places)).map_err(|_| Unheard::Gone)?;
    let reached = reach(&short(&held, &format!("{process}{ENDING}")));
    let stream = reached.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Unheard::Silent,
        _ => Unheard::Gone,
    })?;
    let answer = answered(stream, if with_charts { CHARTS } else { "/" }, patience);
    let answer = answer.map_err(|_| Unheard::Silent)?;
    // One that ends just then says nothing more, and is not there when it is asked again.
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or(Unheard::Silent)?;
    let said = answer.starts_with(b"HTTP/1.1 200").then(|| &answer[end + 4..]);
    let said = said.ok_or(Unheard::Gone)?;
    let Said { mut state, charts } = serde_json::from_slice(said)
        .map_err(|error| if error.is_eof() { Unheard::Silent } else { Unheard::Gone })?;
    (state.process, state.charts) = (Some(process), charts.unwrap_or_default());
    Ok(state)
}

/// Connects to a process without waiting for it: one that is stopped takes nobody in, and its queue fills up.
fn reach(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &SocketAddrUnix::new(socket)?)?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// All that is answered to one question.
fn answered(mut stream: UnixStream, path: &str, patience: Duration) -> io::Result<Vec<u8>> {
    let until = Instant::now() + patience;
    // A socket takes no patience of nothing.
    let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(left()))?;
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n")?;
    let (mut answer, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        stream.set_read_timeout(Some(left()))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(answer),
            Ok(count) => answer.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() as u64 > ANSWER_BYTES_MAX || Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

fn directory(places: &Places) -> PathBuf {
    places.cache.join("live")
}

/// The directory, held open, if nobody else may enter it.
fn entered(directory: &Path) -> io::Result<File> {
    let held = File::open(directory)?;
    let own =
        |of: &Metadata| of.uid() == rustix::process::geteuid().as_raw() && of.mode() & 0o077 == 0;
    match held.metadata()? {
        of if of.is_dir() && own(&of) => Ok(held),
        _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may enter it")),
    }
}

/// A name in a directory that is held: a socket's whole path may have no more than 107 bytes (unix(7)).
fn short(held: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", held.as_raw_fd()))
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
        // Longer than a socket's path may be.
        let cache = at(&"long".repeat(40));
        Places { state: at("state"), runs: at("runs"), cache, signer: None }
    }

    fn heard(places: &Places, process: u32, with_charts: bool) -> Result<State, Unheard> {
        ask(places, process, with_charts, PATIENCE)
    }

    /// A process that is stopped listens, and takes nobody in.
    #[test]
    fn a_process_that_is_there_and_does_not_answer_is_silent_and_holds_nobody_up() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let door = open(&places, &Told::new("p")).unwrap();
        let held = entered(&directory(&places)).unwrap();
        let stopped = std::os::unix::net::UnixListener::bind(short(&held, "1.socket")).unwrap();
        let mut asked = Vec::new();
        // Until its queue is full: who waited there would wait for ever.
        while let Ok(one) = reach(&short(&held, "1.socket")) {
            asked.push(one);
            if asked.len() == 1 {
                let short = Duration::from_millis(20);
                assert_eq!(ask(&places, 1, true, short).err(), Some(Unheard::Silent));
            }
        }
        assert_eq!(ask(&places, 1, true, PATIENCE).err(), Some(Unheard::Silent));
        assert_eq!(processes(&places), [1, std::process::id()]);
        drop(stopped);
        assert_eq!(ask(&places, 1, true, PATIENCE).err(), Some(Unheard::Gone));
        drop((asked, door));
    }

    #[test]
    fn a_process_tells_another_all_that_it_knows_until_it_ends() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let own = std::process::id();
        assert_eq!(processes(&places), Vec::<u32>::new());
        assert_eq!(heard(&places, own, false).err(), Some(Unheard::Gone));
        let mut told = Told::new("p");
        let door = open(&places, &told).unwrap();
        told.begin(PhaseKind::Measure);
        let data = Data::Class { count: 3, sum_ns: 30, bytes: 12, max_ns: 11 };
        let name = "db1.read".to_owned();
        told.rows(&[Row { phase: 0, start_ns: 7, duration_ns: 1_000_000_000, name, data }]);
        assert_eq!(processes(&places), [own]);
        let state = heard(&places, own, true).unwrap();
        assert_eq!((state.plan.as_str(), state.process), ("p", Some(own)));
        assert_eq!(state.phase.unwrap().kind, "measure");
        assert_eq!(state.classes["db1.read"].latency_ns_avg, Some(10));
        assert_eq!(state.charts.series.columns[&0]["read"].count, 3);
        assert!(heard(&places, own, false).unwrap().charts.series.columns.is_empty());
        drop(door);
        assert_eq!(processes(&places), Vec::<u32>::new());
    }

    #[test]
    fn nobody_is_told_where_others_may_enter() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let door = open(&places, &Told::new("p")).unwrap();
        let directory = directory(&places);
        assert_eq!(directory.metadata().unwrap().mode() & 0o777, 0o700);
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(processes(&places), Vec::<u32>::new());
        assert!(heard(&places, std::process::id(), false).is_err());
        assert!(open(&places, &Told::new("p")).is_err());
        drop(door);
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let door = open(&places, &Told::new("p")).unwrap();
        let held = entered(&directory(&places)).unwrap();
        // Its name stays where a listener is dropped without its door.
        drop(std::os::unix::net::UnixListener::bind(short(&held, "1.socket")).unwrap());
        assert!(directory(&places).join("1.socket").exists());
        assert_eq!(processes(&places), [std::process::id()]);
        assert!(!directory(&places).join("1.socket").exists());
        drop(door);
    }
}
