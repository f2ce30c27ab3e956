//! Witness on another host: this host runs `ssh HOST plimsoll durability --serve-witness DIR`, and both
//! sides exchange requests over its standard input and output.
//!
//! The server sends [`GREETING`] and a first reply after it has created its directory. This reply
//! contains: whether the directory is new (u8), the boot identifier of the host, a line end, and
//! the directory's absolute path. A request is: operation u8, length of the name u8, length of the
//! data u64, name, data. A reply is: errno u32 (0: success), length of the data u64, data. Numbers
//! are little endian.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_engine::durability::{LocalFiles, WitnessFiles};
use rustix::io::Errno;

use super::boot_id;
use super::command::shell_line;
use crate::error::RunnerError;

/// First bytes that a server sends.
const GREETING: &[u8] = b"plimsoll witness 1\n";

const READ: u8 = 1;
const REPLACE: u8 = 2;
const APPEND: u8 = 3;
const APPEND_DURABLY: u8 = 4;
const REMOVE: u8 = 5;
const REMOVE_ALL: u8 = 6;

/// Time for `ssh` to end after its input has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Options of `ssh`: never ask the user, and fail if the host has not responded for about 45 s.
const SSH: [&str; 7] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=15",
    "-oServerAliveCountMax=3",
    "-oClearAllForwardings=yes",
    "-T",
    "--",
];

/// Files in a directory on another host.
#[derive(Debug)]
pub(super) struct RemoteFiles {
    /// `HOST:DIR`.
    address: PathBuf,
    /// Path of the directory, if the "other" host turns out to be this host under another name.
    pub(super) local_path: Option<PathBuf>,
    connection: Mutex<Connection>,
}

#[derive(Debug)]
struct Connection {
    ssh: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl RemoteFiles {
    /// Connects to a host, and creates the directory if it is missing. Also returns whether the
    /// directory is new. The inner error means that the directory could not be created.
    ///
    /// # Errors
    /// `ssh` cannot run, or the host does not answer with this version of the protocol.
    pub(super) fn connect(
        host: &str,
        directory: &Path,
    ) -> Result<io::Result<(Self, bool)>, RunnerError> {
        let failed = |why: String| {
            RunnerError::environment(format!("cannot reach the witness on {host}: {why}"))
        };
        let words = ["plimsoll", "durability", "--serve-witness", &directory.to_string_lossy()];
        let line = shell_line(&words.map(str::to_owned)).unwrap_or_default();
        // In a separate process group, so that Ctrl-C on the terminal does not end ssh before the
        // test.
        let started = Command::new("ssh")
            .args(SSH)
            .args([host, &line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut ssh = started.map_err(|error| failed(format!("cannot start ssh: {error}")))?;
        let (Some(requests), Some(replies)) = (ssh.stdin.take(), ssh.stdout.take()) else {
            return Err(failed("cannot write to ssh or read from it".to_owned()));
        };
        let replies = BufReader::new(replies);
        let mut connection = Connection { ssh, requests: Some(requests), replies };
        let mut greeting = Vec::new();
        let length = GREETING.len() as u64;
        let read = connection.replies.by_ref().take(length).read_to_end(&mut greeting);
        if read.is_err() || greeting != GREETING {
            let text = String::from_utf8_lossy(&greeting).into_owned();
            let why = match text.is_empty() {
                true => "ssh ended, and Plimsoll on that host sent no reply".to_owned(),
                false => format!("the host sent {text:?} instead of Plimsoll's greeting"),
            };
            return Err(failed(why).hint(format!(
                "`ssh {host} plimsoll --version` must print this version without a password"
            )));
        }
        let created = connection.reply();
        let address = format!("{host}:{}", directory.display()).into();
        Ok(created.map(|answer| {
            let (is_new, rest) = answer.split_first().unwrap_or((&0, &[]));
            let text = String::from_utf8_lossy(rest);
            let path = text.split_once('\n').filter(|(boot, _)| *boot == boot_id());
            let local_path = path.map(|(_, path)| path.into());
            (Self { address, local_path, connection: Mutex::new(connection) }, *is_new == 1)
        }))
    }

    fn request(&self, operation: u8, name: &str, data: &[u8]) -> io::Result<Vec<u8>> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.send(operation, name, data)?;
        connection.reply()
    }
}

impl Connection {
    fn send(&mut self, operation: u8, name: &str, data: &[u8]) -> io::Result<()> {
        let name_length = u8::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
        let mut bytes = vec![operation, name_length];
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(data);
        let mut requests = self.requests.take().ok_or(Errno::CONNRESET)?;
        requests.write_all(&bytes)?;
        self.requests = Some(requests);
        Ok(())
    }

    fn reply(&mut self) -> io::Result<Vec<u8>> {
        match read_reply(&mut self.replies) {
            Ok(reply) => reply.map_err(io::Error::from_raw_os_error),
            Err(_) => {
                // Otherwise the next request could receive the late reply to this request.
                self.requests = None;
                Err(Errno::CONNRESET.into())
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.requests = None;
        let start = Instant::now();
        while matches!(self.ssh.try_wait(), Ok(None)) {
            if start.elapsed() >= CLOSE_TIMEOUT {
                // Killing fails only if the process has already ended.
                let _ = self.ssh.kill();
                let _ = self.ssh.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl WitnessFiles for RemoteFiles {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.request(READ, name, &[])
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.request(REPLACE, name, bytes).map(drop)
    }

    fn append(&self, name: &str, bytes: &[u8], sync: bool) -> io::Result<()> {
        let operation = if sync { APPEND_DURABLY } else { APPEND };
        self.request(operation, name, bytes).map(drop)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.request(REMOVE, name, &[]).map(drop)
    }

    fn remove_all(&self) -> io::Result<()> {
        self.request(REMOVE_ALL, "", &[]).map(drop)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.address.join(name)
    }
}

/// Serves a directory as the witness of a test on another host, until the input ends. Creates the
/// directory if it is missing.
///
/// # Errors
/// Input or output fails.
pub fn serve_witness(
    directory: &Path,
    mut input: impl Read,
    mut output: impl Write,
) -> io::Result<()> {
    output.write_all(GREETING)?;
    let files = match LocalFiles::create(directory) {
        Ok((files, is_new)) => {
            let path = directory.canonicalize()?;
            let place = format!("{}\n{}", boot_id(), path.display()).into_bytes();
            write_reply(&mut output, Ok([vec![u8::from(is_new)], place].concat()))?;
            files
        }
        Err(error) => return write_reply(&mut output, Err(error)),
    };
    let mut header = [0; 10];
    while let Ok(()) = input.read_exact(&mut header) {
        let [operation, name_length, length @ ..] = header;
        let name = read_bytes(&mut input, name_length.into())?;
        let data = read_bytes(&mut input, u64::from_le_bytes(length))?;
        let name = std::str::from_utf8(&name).ok().filter(|name| is_file_name(name));
        let done = match (operation, name) {
            (REMOVE_ALL, _) => files.remove_all().map(|()| Vec::new()),
            (READ, Some(name)) => files.read(name),
            (REPLACE, Some(name)) => files.replace(name, &data).map(|()| Vec::new()),
            (APPEND | APPEND_DURABLY, Some(name)) => {
                files.append(name, &data, operation == APPEND_DURABLY).map(|()| Vec::new())
            }
            (REMOVE, Some(name)) => files.remove(name).map(|()| Vec::new()),
            _ => Err(Errno::INVAL.into()),
        };
        write_reply(&mut output, done)?;
    }
    Ok(())
}

/// Returns true if a name has no directory part.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

/// Reads a given number of bytes. Allocates memory only for bytes that arrive.
fn read_bytes(input: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match input.take(count).read_to_end(&mut bytes)? as u64 == count {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads a reply: the data, or the errno of the other host.
fn read_reply(replies: &mut impl Read) -> io::Result<Result<Vec<u8>, i32>> {
    let mut header = [0; 12];
    replies.read_exact(&mut header)?;
    let [e0, e1, e2, e3, length @ ..] = header;
    let data = read_bytes(replies, u64::from_le_bytes(length))?;
    Ok(match i32::from_le_bytes([e0, e1, e2, e3]) {
        0 => Ok(data),
        errno => Err(errno),
    })
}

fn write_reply(output: &mut impl Write, done: io::Result<Vec<u8>>) -> io::Result<()> {
    let (errno, data) = match done {
        Ok(data) => (0, data),
        Err(error) => (error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()), Vec::new()),
    };
    output.write_all(&errno.to_le_bytes())?;
    output.write_all(&(data.len() as u64).to_le_bytes())?;
    output.write_all(&data)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn request(operation: u8, name: &str, data: &[u8], length: u64) -> Vec<u8> {
        let head = [operation, name.len() as u8];
        [&head[..], &length.to_le_bytes(), name.as_bytes(), data].concat()
    }

    /// Serves a directory with this input. Returns the replies.
    fn served(directory: &Path, input: &[u8]) -> (io::Result<()>, Vec<Result<Vec<u8>, i32>>) {
        let mut output = Vec::new();
        let served = serve_witness(directory, input, &mut output);
        let mut replies = output.strip_prefix(GREETING).unwrap();
        let read = std::iter::from_fn(|| read_reply(&mut replies).ok()).collect();
        (served, read)
    }

    fn created(is_new: u8, directory: &Path) -> Result<Vec<u8>, i32> {
        let place = format!("{}\n{}", boot_id(), directory.display()).into_bytes();
        Ok([vec![is_new], place].concat())
    }

    #[test]
    fn requests_reach_only_files_of_the_directory() {
        let above = tempfile::tempdir().unwrap();
        let directory = above.path().join("w");
        let of = |operation, name, data: &[u8]| request(operation, name, data, data.len() as u64);
        let input = [
            of(REPLACE, "a", b"12"),
            of(APPEND, "a", b"3"),
            of(APPEND_DURABLY, "a", b"4"),
            of(READ, "a", b""),
            of(READ, "b", b""),
            of(REMOVE, "a", b""),
            of(READ, "a", b""),
            of(APPEND, "a", b"5"),
            of(READ, "a", b""),
        ];
        let missing = Err(Errno::NOENT.raw_os_error());
        let done = Ok(Vec::new());
        let expected = [
            created(1, &directory),
            done.clone(),
            done.clone(),
            done.clone(),
            Ok(b"1234".to_vec()),
            missing.clone(),
            done.clone(),
            missing,
            done,
            Ok(b"5".to_vec()),
        ];
        assert_eq!(served(&directory, &input.concat()).1, expected);
        for name in ["../x", "/tmp/x", "", ".", "..", ".x", "a/b", "a\0"] {
            let (_, replies) = served(&directory, &of(REPLACE, name, b"1"));
            assert_eq!(
                replies,
                [created(0, &directory), Err(Errno::INVAL.raw_os_error())],
                "{name:?}"
            );
        }
        assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 1);
        assert_eq!(served(&directory, &of(REMOVE_ALL, "", b"")).1.len(), 2);
        assert!(!directory.exists());
    }

    #[test]
    fn cut_off_requests_end_the_server_and_reserve_no_memory() {
        let above = tempfile::tempdir().unwrap();
        let whole = request(REPLACE, "a", b"1234", 4);
        for length in 1..whole.len() {
            let (_, replies) = served(above.path(), &whole[..length]);
            assert_eq!(replies.len(), 1, "{length}");
        }
        let endless = request(APPEND, "a", b"1234", u64::MAX);
        assert!(served(above.path(), &endless).0.is_err());
        assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 0);
    }
}
