//! Opens files for I/O. I/O is direct if possible; otherwise, the reason is reported.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{SysError, interrupted};

/// Choice between direct and buffered I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectMode {
    /// Direct I/O if the file system supports it, otherwise buffered I/O.
    #[default]
    Auto,
    /// Direct I/O; an error if the file system does not support it.
    Required,
    /// Buffered.
    Off,
}

/// Options for opening a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// True to open the file for reading and writing.
    pub write: bool,
    /// True to create the file if it is missing.
    pub create: bool,
    /// With `create`: true to fail if the file exists.
    pub exclusive: bool,
    /// True if each write must be on stable storage when it completes (`O_DSYNC`).
    pub dsync: bool,
    /// True to fail on a mounted block device (`O_EXCL` without `O_CREAT`).
    pub exclusive_device: bool,
    /// Choice between direct and buffered I/O.
    pub direct: DirectMode,
}

/// Reason for buffered I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDirect {
    /// Direct I/O was not requested.
    NotAsked,
    /// The file system refused `O_DIRECT` with this `errno` (`EINVAL`: not supported).
    Refused(i32),
}

/// Open file, with the requirements of direct I/O.
#[derive(Debug)]
pub struct OpenFile {
    /// Descriptor.
    pub fd: OwnedFd,
    /// Reason for buffered I/O; `None` if I/O is direct.
    pub not_direct: Option<NotDirect>,
    /// Memory alignment that direct I/O requires, if the kernel reports it (`statx`, Linux 6.1).
    pub direct_memory_align_bytes: Option<u32>,
    /// Offset and size alignment that direct I/O requires, if the kernel reports it. `Some(0)`: the
    /// file does not support direct I/O, although the flag was accepted.
    pub direct_offset_align_bytes: Option<u32>,
}

impl OpenFile {
    /// True if I/O is direct, according to the open call.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.not_direct.is_none()
    }
}

/// Opens `path`.
///
/// # Errors
/// The `errno` of `open`, with the path. With [`DirectMode::Required`], it also fails if only
/// `O_DIRECT` is rejected.
pub fn open(path: &Path, flags: OpenFlags) -> Result<OpenFile, SysError> {
    open_with(flags, |raw| open_raw(path, raw))
}

/// Opens a file with `opener`, which receives the flags of `open(2)`. `opener` is called again
/// without `O_DIRECT` if the file system rejects direct I/O and [`DirectMode::Auto`] permits
/// buffered I/O.
///
/// # Errors
/// The error of `opener`.
pub fn open_with(
    flags: OpenFlags,
    opener: impl Fn(libc::c_int) -> Result<OwnedFd, SysError>,
) -> Result<OpenFile, SysError> {
    let base = libc::O_CLOEXEC
        | if flags.write { libc::O_RDWR } else { libc::O_RDONLY }
        | if flags.create { libc::O_CREAT } else { 0 }
        | if flags.create && flags.exclusive { libc::O_EXCL } else { 0 }
        | if flags.exclusive_device && !flags.create { libc::O_EXCL } else { 0 }
        | if flags.dsync { libc::O_DSYNC } else { 0 };
    if flags.direct == DirectMode::Off {
        return Ok(describe(opener(base)?, Some(NotDirect::NotAsked)));
    }
    match opener(base | libc::O_DIRECT) {
        Ok(fd) => Ok(describe(fd, None)),
        Err(error) if error.errno == libc::EINVAL && flags.direct == DirectMode::Auto => {
            // Linux creates the file before it rejects O_DIRECT, so an exclusive creation has
            // already succeeded and must not be requested again.
            let base = base & !if flags.create { libc::O_EXCL } else { 0 };
            let fd = opener(base)?;
            Ok(describe(fd, Some(NotDirect::Refused(error.errno))))
        }
        Err(error) => Err(error),
    }
}

fn open_raw(path: &Path, flags: libc::c_int) -> Result<OwnedFd, SysError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| SysError::new("open", libc::EINVAL).at(path))?;
    retry_call(|| {
        // SAFETY: `name` is a terminated string that outlives the call.
        let fd = unsafe { libc::open(name.as_ptr(), flags, 0o644) };
        if fd < 0 {
            return Err(SysError::last("open").at(path));
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    })
}

fn retry_call<T>(call: impl FnMut() -> Result<T, SysError>) -> Result<T, SysError> {
    interrupted::retry(|error: &SysError| error.errno == libc::EINTR, call)
}

fn describe(fd: OwnedFd, not_direct: Option<NotDirect>) -> OpenFile {
    // SAFETY: all-zero bytes are a valid `statx`.
    let mut stat: libc::statx = unsafe { core::mem::zeroed() };
    // SAFETY: an empty path with AT_EMPTY_PATH refers to `fd`; `stat` is valid.
    let answer = unsafe {
        libc::statx(
            fd.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut stat,
        )
    };
    let reported = answer == 0 && stat.stx_mask & libc::STATX_DIOALIGN != 0;
    OpenFile {
        fd,
        not_direct,
        direct_memory_align_bytes: reported.then_some(stat.stx_dio_mem_align),
        direct_offset_align_bytes: reported.then_some(stat.stx_dio_offset_align),
    }
}

fn check(call: &'static str, answer: libc::c_int) -> Result<(), SysError> {
    if answer == 0 { Ok(()) } else { Err(SysError::last(call)) }
}

/// Returns true if the kernel can attempt an operation on this file without blocking
/// (`RWF_NOWAIT`). If it cannot (tmpfs, many network and user-space file systems), io_uring runs
/// every operation in a worker thread. The function tries to read one byte, which a direct file
/// rejects before any I/O. Returns `None` if the result is ambiguous.
#[must_use]
pub fn supports_nowait(fd: &OwnedFd) -> Option<bool> {
    let mut byte = [0u8; 1];
    let part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: one part that refers to one byte of this frame.
    let answer = unsafe { libc::preadv2(fd.as_raw_fd(), &raw const part, 1, 0, libc::RWF_NOWAIT) };
    if answer >= 0 {
        return Some(true);
    }
    match SysError::last("preadv2").errno {
        libc::EOPNOTSUPP => Some(false),
        libc::EAGAIN | libc::EINVAL => Some(true),
        _ => None,
    }
}

/// Returns the length of a file, or the size of a block device, in bytes.
///
/// # Errors
/// The `errno` of `lseek`.
pub fn size_bytes(fd: &OwnedFd) -> Result<u64, SysError> {
    // SAFETY: seeking an open descriptor touches no memory.
    let end = unsafe { libc::lseek64(fd.as_raw_fd(), 0, libc::SEEK_END) };
    u64::try_from(end).map_err(|_| SysError::last("lseek"))
}

/// Reserves space for the first `size_bytes` of a file, and extends the file to that size.
///
/// # Errors
/// `ENOSPC`, or `EOPNOTSUPP` if the file system cannot reserve space (use [`truncate`] and write
/// instead).
pub fn allocate(fd: &OwnedFd, size_bytes: u64) -> Result<(), SysError> {
    let size = i64::try_from(size_bytes).map_err(|_| SysError::new("fallocate", libc::EFBIG))?;
    // SAFETY: an open descriptor and plain numbers.
    retry_call(|| check("fallocate", unsafe { libc::fallocate64(fd.as_raw_fd(), 0, 0, size) }))
}

/// Sets the length of a file. New bytes are a hole.
///
/// # Errors
/// The `errno` of `ftruncate`.
pub fn truncate(fd: &OwnedFd, size_bytes: u64) -> Result<(), SysError> {
    let size = i64::try_from(size_bytes).map_err(|_| SysError::new("ftruncate", libc::EFBIG))?;
    // SAFETY: an open descriptor and a plain number.
    check("ftruncate", unsafe { libc::ftruncate64(fd.as_raw_fd(), size) })
}

/// Requests that the kernel drop the file's clean pages from the page cache
/// (`POSIX_FADV_DONTNEED`). Dirty pages remain in the cache; call [`sync_data`] first.
/// [`crate::residency`] shows the effect.
///
/// # Errors
/// The `errno` of `posix_fadvise`.
pub fn drop_cached(fd: &OwnedFd) -> Result<(), SysError> {
    // SAFETY: an open descriptor and plain numbers.
    let errno = unsafe { libc::posix_fadvise64(fd.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if errno == 0 { Ok(()) } else { Err(SysError::new("posix_fadvise", errno)) }
}

/// Makes the file's data durable (`fdatasync`).
///
/// # Errors
/// The `errno`. After an error, it remains unknown whether earlier writes are durable, even if a
/// later call succeeds.
pub fn sync_data(fd: &OwnedFd) -> Result<(), SysError> {
    // SAFETY: an open descriptor.
    retry_call(|| check("fdatasync", unsafe { libc::fdatasync(fd.as_raw_fd()) }))
}

/// Returns true if `fsync` or `fdatasync` of a file descriptor that does not exist succeeds. Then a
/// filter of system calls (seccomp) answers these calls instead of the kernel, as with
/// `systemd-nspawn --suppress-sync=yes`.
#[must_use]
pub fn are_flushes_filtered() -> bool {
    // SAFETY: the calls only take a number; -1 is never a file descriptor.
    unsafe { libc::fsync(-1) == 0 || libc::fdatasync(-1) == 0 }
}

/// Makes the file's data and metadata durable (`fsync`); for a directory, makes its entries
/// durable.
///
/// # Errors
/// See [`sync_data`].
pub fn sync_all(fd: &OwnedFd) -> Result<(), SysError> {
    // SAFETY: an open descriptor.
    retry_call(|| check("fsync", unsafe { libc::fsync(fd.as_raw_fd()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_answers_flushes_is_detected() {
        let filter = |code: u32, jt, k| libc::sock_filter { code: code as u16, jt, jf: 0, k };
        let mut program = [
            // The number of the call is the first field of `seccomp_data`.
            filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_fdatasync as u32),
            filter(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
            filter(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO),
        ];
        // A filter applies only to the thread that installs it.
        let filtered = std::thread::spawn(move || {
            let (len, filter) = (program.len() as u16, program.as_mut_ptr());
            let program = libc::sock_fprog { len, filter };
            // SAFETY: the program is valid during the calls, and the kernel copies it.
            let answers = unsafe {
                let mode = libc::SECCOMP_MODE_FILTER;
                let privileges = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                (privileges, libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program))
            };
            assert_eq!(answers, (0, 0));
            are_flushes_filtered()
        });
        assert!(filtered.join().unwrap());
        assert!(!are_flushes_filtered());
    }

    #[test]
    fn opens_directly_if_possible_or_gives_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let flags = OpenFlags { write: true, create: true, exclusive: true, ..Default::default() };
        let opened = open(&path, flags).unwrap();
        allocate(&opened.fd, 1 << 20).unwrap();
        assert_eq!(size_bytes(&opened.fd).unwrap(), 1 << 20);
        match opened.not_direct {
            None => assert!(opened.direct_offset_align_bytes.is_none_or(|align| align <= 65536)),
            Some(why) => assert_eq!(why, NotDirect::Refused(libc::EINVAL)),
        }
        assert_eq!(open(&path, flags).unwrap_err().errno, libc::EEXIST);
        let off = OpenFlags { direct: DirectMode::Off, ..Default::default() };
        assert_eq!(open(&path, off).unwrap().not_direct, Some(NotDirect::NotAsked));
    }

    #[test]
    fn a_file_system_without_direct_io_falls_back_or_errs() {
        let path = Path::new("/proc/self/status");
        let auto = open(path, OpenFlags::default()).unwrap();
        assert_eq!(auto.not_direct, Some(NotDirect::Refused(libc::EINVAL)));
        let required = OpenFlags { direct: DirectMode::Required, ..Default::default() };
        let error = open(path, required).unwrap_err();
        assert_eq!((error.errno, error.path.as_deref()), (libc::EINVAL, Some(path)));
    }

    #[test]
    fn recognises_files_that_the_kernel_punts() {
        let null = OpenFlags { write: true, direct: DirectMode::Off, ..OpenFlags::default() };
        assert_eq!(supports_nowait(&open(Path::new("/dev/null"), null).unwrap().fd), Some(true));
        let tmpfs = Path::new("/dev/shm");
        if let Ok(folder) = tempfile::tempdir_in(tmpfs) {
            let path = folder.path().join("a");
            std::fs::write(&path, [1]).unwrap();
            let fd = open(&path, OpenFlags::default()).unwrap().fd;
            // If the kernel supports the flag (Linux 5.x), the result is `Some(true)`.
            assert!(supports_nowait(&fd).is_some());
        }
    }

    #[test]
    fn errors_name_the_path() {
        let error = open(Path::new("/nowhere/x"), OpenFlags::default()).unwrap_err();
        assert_eq!(error.errno, libc::ENOENT);
        assert!(error.to_string().contains("/nowhere/x"));
        let nul = Path::new(std::ffi::OsStr::from_bytes(b"a\0b"));
        assert_eq!(open(nul, OpenFlags::default()).unwrap_err().errno, libc::EINVAL);
    }

    #[test]
    fn truncate_sync_and_drop() {
        let folder = tempfile::tempdir().unwrap();
        let flags = OpenFlags { write: true, create: true, ..Default::default() };
        let opened = open(&folder.path().join("b"), flags).unwrap();
        truncate(&opened.fd, 8192).unwrap();
        sync_data(&opened.fd).unwrap();
        sync_all(&opened.fd).unwrap();
        drop_cached(&opened.fd).unwrap();
        assert_eq!(truncate(&opened.fd, u64::MAX).unwrap_err().errno, libc::EFBIG);
    }
}
