//! Detects the file-system call in which a thread waits, from `/proc/PID/task/TID/syscall`
//! (proc(5)).

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Maximum length of a path in Linux, including the terminator (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// Meaning of the first arguments of a call.
#[derive(Clone, Copy)]
enum Argument {
    Path,
    /// The descriptor of a directory, and a path in it.
    PathIn,
    Descriptor,
}

use Argument::{Descriptor, Path, PathIn};

/// Calls that wait only for a file system. `read`, `write` and `poll` are not in the list, because
/// they may wait for a terminal or for another process.
const CALLS: &[(libc::c_long, &str, Argument)] = &[
    (libc::SYS_openat, "openat", PathIn),
    (libc::SYS_openat2, "openat2", PathIn),
    (libc::SYS_statx, "statx", PathIn),
    (libc::SYS_newfstatat, "newfstatat", PathIn),
    (libc::SYS_faccessat, "faccessat", PathIn),
    (libc::SYS_faccessat2, "faccessat2", PathIn),
    (libc::SYS_readlinkat, "readlinkat", PathIn),
    (libc::SYS_mkdirat, "mkdirat", PathIn),
    (libc::SYS_unlinkat, "unlinkat", PathIn),
    (libc::SYS_renameat2, "renameat2", PathIn),
    (libc::SYS_fchmodat, "fchmodat", PathIn),
    (libc::SYS_statfs, "statfs", Path),
    (libc::SYS_fstat, "fstat", Descriptor),
    (libc::SYS_fstatfs, "fstatfs", Descriptor),
    (libc::SYS_fchmod, "fchmod", Descriptor),
    (libc::SYS_getdents64, "getdents64", Descriptor),
    (libc::SYS_fsync, "fsync", Descriptor),
    (libc::SYS_fdatasync, "fdatasync", Descriptor),
    (libc::SYS_syncfs, "syncfs", Descriptor),
    (libc::SYS_fallocate, "fallocate", Descriptor),
    (libc::SYS_ftruncate, "ftruncate", Descriptor),
    (libc::SYS_pread64, "pread64", Descriptor),
    (libc::SYS_pwrite64, "pwrite64", Descriptor),
    (libc::SYS_close, "close", Descriptor),
    (libc::SYS_ioctl, "ioctl", Descriptor),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_stat, "stat", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lstat, "lstat", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_access, "access", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_readlink, "readlink", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename", Path),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, "chmod", Path),
];

/// File-system call in which a thread of this process waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedCall {
    /// Name of the system call.
    pub name: &'static str,
    /// File of the call; `None` if it cannot be determined.
    pub path: Option<PathBuf>,
    arguments: String,
    /// Number of times that the thread has waited, including the current wait.
    waits: String,
}

impl BlockedCall {
    /// Returns the call in which a thread waits. `None` if the thread is running, waits for
    /// something else or does not exist, or if the kernel does not report the call.
    #[must_use]
    pub fn of_thread(thread_id: u32) -> Option<Self> {
        let directory = format!("/proc/self/task/{thread_id}");
        let read = |name: &str| fs::read_to_string(format!("{directory}/{name}")).ok();
        let arguments = read("syscall")?;
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let number: libc::c_long = words.first()?.parse().ok()?;
        let (_, name, argument) = *CALLS.iter().find(|(call, ..)| *call == number)?;
        let value = |at: usize| {
            let text = words.get(at + 1)?.strip_prefix("0x")?;
            u64::from_str_radix(text, 16).ok()
        };
        let of_descriptor = |at: usize| {
            value(at).and_then(|fd| fs::read_link(format!("/proc/self/fd/{}", fd as i32)).ok())
        };
        let path = match argument {
            Path => value(0).and_then(path_at),
            // The directory may be the current directory of the process. An absolute path replaces
            // it.
            PathIn => value(1).and_then(path_at).map(|path| {
                of_descriptor(0).map_or(path.clone(), |directory| directory.join(path))
            }),
            Descriptor => of_descriptor(0),
        };
        let status = read("status")?;
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        Some(Self { name, path, waits: line.to_owned(), arguments })
    }
}

/// Returns the path at an address of this process. The read fails if the address is not mapped.
fn path_at(address: u64) -> Option<PathBuf> {
    let mut bytes = vec![0; PATH_BYTES_MAX];
    let memory = fs::File::open("/proc/self/mem").ok()?;
    let count = memory.read_at(&mut bytes, address).ok()?;
    let end = bytes[..count].iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    (!text.is_empty()).then(|| text.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use super::*;

    /// A thread that opens a FIFO is blocked until another process opens the other end.
    #[test]
    fn names_the_call_and_the_file_for_which_a_thread_waits() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let (sender, thread_id) = channel();
        let path = fifo.clone();
        let thread = std::thread::spawn(move || {
            sender.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
            fs::File::open(path).map(drop)
        });
        let own = thread_id.recv().unwrap();
        let thread_id: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let start = Instant::now();
        let blocked = loop {
            match BlockedCall::of_thread(thread_id) {
                Some(call) if call.path.as_deref() == Some(&fifo) => break call,
                other => assert!(start.elapsed() < Duration::from_secs(20), "{other:?}"),
            }
        };
        assert_eq!(blocked.name, "openat");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(BlockedCall::of_thread(thread_id), Some(blocked), "it is the same wait");
        drop(fs::File::options().write(true).open(&fifo).unwrap());
        thread.join().unwrap().unwrap();
        assert_eq!(BlockedCall::of_thread(thread_id), None);
    }
}
