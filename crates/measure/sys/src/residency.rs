//! Measures the page cache residency of files, and drops caches.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::SysError;
use crate::arena::PAGE_BYTES;

/// Number of the call `cachestat(2)` (Linux 6.5), which is the same on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

/// Number of bytes of a file that one call of `mincore` examines.
const WINDOW_BYTES: u64 = 1 << 30;

/// Page cache residency of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Cached bytes.
    pub cached_bytes: u64,
    /// Number of dirty bytes, if the kernel reports them (`cachestat`).
    pub dirty_bytes: Option<u64>,
    /// Number of bytes that are being written back, if the kernel reports them.
    pub writeback_bytes: Option<u64>,
    /// Number of recently evicted bytes, if the kernel reports them.
    pub evicted_bytes: Option<u64>,
}

#[repr(C)]
struct Range {
    off: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct CacheStat {
    nr_cache: u64,
    nr_dirty: u64,
    nr_writeback: u64,
    nr_evicted: u64,
    nr_recently_evicted: u64,
}

/// Returns the residency of a file, measured with `cachestat`, or with `mincore` on older kernels.
///
/// # Errors
/// The `errno` of the call; `EPERM` if another user owns the file and it is not writable, because
/// `mincore` would then report that all of it is cached.
pub fn of_file(fd: &OwnedFd) -> Result<Residency, SysError> {
    match by_cachestat(fd) {
        Err(error) if matches!(error.errno, libc::ENOSYS | libc::EOPNOTSUPP) => by_mincore(fd),
        other => other,
    }
}

/// Like [`of_file`], with `cachestat` only.
///
/// # Errors
/// `ENOSYS` before Linux 6.5.
pub fn by_cachestat(fd: &OwnedFd) -> Result<Residency, SysError> {
    let range = Range { off: 0, len: 0 };
    let mut stat = CacheStat::default();
    // SAFETY: both structures have the kernel's layout and outlive the call; length 0 means all.
    let answer = unsafe {
        libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut stat, 0u32)
    };
    if answer != 0 {
        return Err(SysError::last("cachestat"));
    }
    let bytes = |pages: u64| pages * page_bytes();
    Ok(Residency {
        cached_bytes: bytes(stat.nr_cache),
        dirty_bytes: Some(bytes(stat.nr_dirty)),
        writeback_bytes: Some(bytes(stat.nr_writeback)),
        evicted_bytes: Some(bytes(stat.nr_recently_evicted)),
    })
}

/// Like [`of_file`], with `mincore` only, 1 GiB at a time.
///
/// # Errors
/// The `errno` of `mmap` or `mincore`.
pub fn by_mincore(fd: &OwnedFd) -> Result<Residency, SysError> {
    let size = crate::file::size_bytes(fd)?;
    let mut cached_pages = 0u64;
    let mut start = 0;
    let mut present = Vec::new();
    while start < size {
        let len = (size - start).min(WINDOW_BYTES) as usize;
        // SAFETY: a new read-only mapping that is only queried, never read.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                len,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                start as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(SysError::last("mmap"));
        }
        present.clear();
        present.resize(len.div_ceil(page_bytes() as usize), 0u8);
        // SAFETY: the range is the mapping that `mmap` returned; the vector has one byte per page
        // of it.
        let answer = unsafe { libc::mincore(base, len, present.as_mut_ptr()) };
        let error = SysError::last("mincore");
        // SAFETY: unmaps exactly the range that `mmap` returned.
        unsafe { libc::munmap(base, len) };
        if answer != 0 {
            return Err(error);
        }
        cached_pages += present.iter().filter(|page| **page & 1 != 0).count() as u64;
        start += len as u64;
    }
    Ok(Residency { cached_bytes: cached_pages * page_bytes(), ..Residency::default() })
}

fn page_bytes() -> u64 {
    // SAFETY: reads a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(PAGE_BYTES as u64)
}

/// Writes back all data, and drops the clean page cache, directory entries and inodes of the whole
/// machine (`/proc/sys/vm/drop_caches`). Needs root.
///
/// # Errors
/// `EACCES` or `EROFS` if the permission is missing.
pub fn drop_all_caches() -> Result<(), SysError> {
    let path = std::path::Path::new("/proc/sys/vm/drop_caches");
    // SAFETY: sync(2) takes no arguments and cannot fail.
    unsafe { libc::sync() };
    File::options()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(b"3\n"))
        .map_err(|error| SysError::from_io("write", &error).at(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{DirectMode, OpenFlags, drop_cached, open, sync_all};

    #[test]
    fn sees_a_written_file_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![1u8; 1 << 20]).unwrap();
        let flags = OpenFlags { write: true, direct: DirectMode::Off, ..OpenFlags::default() };
        let fd = open(&path, flags).unwrap().fd;
        assert_eq!(of_file(&fd).unwrap().cached_bytes, 1 << 20);
        assert_eq!(by_mincore(&fd).unwrap().cached_bytes, 1 << 20);
        sync_all(&fd).unwrap();
        drop_cached(&fd).unwrap();
        let (stat, core) = (of_file(&fd).unwrap(), by_mincore(&fd).unwrap());
        assert_eq!(stat.cached_bytes, core.cached_bytes, "both ways agree");
    }

    #[test]
    fn an_empty_file_has_nothing_cached() {
        let folder = tempfile::tempdir().unwrap();
        let flags = OpenFlags { write: true, create: true, ..OpenFlags::default() };
        let fd = open(&folder.path().join("a"), flags).unwrap().fd;
        assert_eq!(of_file(&fd).unwrap().cached_bytes, 0);
        assert_eq!(by_mincore(&fd).unwrap().cached_bytes, 0);
    }
}
