//! Mapped file of integer cells, for state that must survive the process, such as the generations
//! for verification.
//!
//! A store to a cell reaches the page cache immediately, so nothing is lost if the process is
//! killed. If the machine fails, at most the stores since the last [`CellMap::sync`] are lost. The
//! cells are atomics, so several threads (or processes) may use one map.

use core::ptr::NonNull;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::SysError;
use crate::file::{DirectMode, OpenFlags, allocate, open, size_bytes, truncate};

mod sealed {
    pub trait Cell {}
    impl Cell for super::AtomicU8 {}
    impl Cell for super::AtomicU32 {}
    impl Cell for super::AtomicU64 {}
}

/// Atomic integer in a [`CellMap`]: any bytes are a valid value, in the machine's byte order.
pub trait Cell: sealed::Cell + Sync {}
impl<T: sealed::Cell + Sync> Cell for T {}

/// Mapped file that consists of cells.
#[derive(Debug)]
pub struct CellMap<T> {
    fd: OwnedFd,
    path: PathBuf,
    base: NonNull<T>,
    cells: usize,
    _cells: PhantomData<T>,
}

// SAFETY: this value owns the mapping, which has no thread affinity; its cells are atomics.
unsafe impl<T: Cell> Send for CellMap<T> {}
// SAFETY: this value owns the mapping, which has no thread affinity; its cells are atomics.
unsafe impl<T: Cell> Sync for CellMap<T> {}

impl<T: Cell> CellMap<T> {
    /// Maps the first `cells` cells of `path`. If the file is missing or shorter, it is created or
    /// extended with zero cells. The space is reserved, so that a store cannot fail later.
    ///
    /// The file must not be truncated while it is mapped: a store to a missing cell ends the
    /// process with `SIGBUS`.
    ///
    /// # Errors
    /// `ENOSPC` and other errors of opening, reserving and mapping, with the path.
    pub fn open(path: &Path, cells: usize) -> Result<Self, SysError> {
        let direct = DirectMode::Off;
        let flags = OpenFlags { write: true, create: true, direct, ..OpenFlags::default() };
        Self::of_file(open(path, flags)?.fd, path, cells)
    }

    /// Like [`CellMap::open`], for a file that is already open for reading and writing. `path` is
    /// used only in error messages.
    ///
    /// # Errors
    /// See [`CellMap::open`].
    pub fn of_file(fd: OwnedFd, path: &Path, cells: usize) -> Result<Self, SysError> {
        let path = path.to_path_buf();
        let mut map = Self { fd, path, base: NonNull::dangling(), cells: 0, _cells: PhantomData };
        map.remap(cells.max(1))?;
        Ok(map)
    }

    /// Returns the number of cells in the file at `path`, or 0 if it is missing.
    #[must_use]
    pub fn cells_in(path: &Path) -> u64 {
        std::fs::metadata(path).map_or(0, |meta| meta.len() / size_of::<T>() as u64)
    }

    #[must_use]
    #[inline]
    pub fn cells(&self) -> &[T] {
        // SAFETY: `base` maps `cells` cells, page aligned; all bytes are a valid atomic integer.
        unsafe { core::slice::from_raw_parts(self.base.as_ptr(), self.cells) }
    }

    /// Extends the map to `cells` cells; new cells are zero. Never shrinks the map.
    ///
    /// # Errors
    /// See [`CellMap::open`]. After an error, the map is unchanged.
    pub fn grow(&mut self, cells: usize) -> Result<(), SysError> {
        if cells <= self.cells { Ok(()) } else { self.remap(cells) }
    }

    /// Makes all previous stores durable (`msync`).
    ///
    /// # Errors
    /// The `errno` of `msync`, with the path.
    pub fn sync(&self) -> Result<(), SysError> {
        // SAFETY: the range is this mapping.
        let answer = unsafe {
            libc::msync(self.base.as_ptr().cast(), self.cells * size_of::<T>(), libc::MS_SYNC)
        };
        if answer == 0 { Ok(()) } else { Err(SysError::last("msync").at(&self.path)) }
    }

    fn remap(&mut self, cells: usize) -> Result<(), SysError> {
        let at = |error: SysError| error.at(&self.path);
        let len = cells
            .checked_mul(size_of::<T>())
            .filter(|len| i64::try_from(*len).is_ok())
            .ok_or_else(|| at(SysError::new("mmap", libc::EFBIG)))?;
        if size_bytes(&self.fd).map_err(at)? < len as u64 {
            match allocate(&self.fd, len as u64) {
                Err(error) if matches!(error.errno, libc::EOPNOTSUPP | libc::ENOSYS) => {
                    truncate(&self.fd, len as u64).map_err(at)?;
                }
                other => other.map_err(at)?,
            }
        }
        // SAFETY: a shared mapping of a file we own, at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(at(SysError::last("mmap")));
        }
        let base = NonNull::new(base.cast::<T>())
            .ok_or_else(|| at(SysError::new("mmap", libc::ENOMEM)))?;
        self.unmap();
        (self.base, self.cells) = (base, cells);
        Ok(())
    }
}

impl<T> CellMap<T> {
    fn unmap(&mut self) {
        if self.cells > 0 {
            // SAFETY: `remap` created the mapping, it is unmapped once, and `&mut self` shows that
            // no slice of it is alive.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.cells * size_of::<T>()) };
            self.cells = 0;
        }
    }
}

impl<T> Drop for CellMap<T> {
    fn drop(&mut self) {
        self.unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn cells_outlive_the_map_and_grow_with_zeroes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("generations");
        assert_eq!(CellMap::<AtomicU32>::cells_in(&path), 0);
        let mut map = CellMap::<AtomicU32>::open(&path, 10).unwrap();
        map.cells()[9].store(77, Relaxed);
        map.grow(5000).unwrap();
        assert_eq!(map.cells().len(), 5000);
        assert_eq!(map.cells()[9].load(Relaxed), 77);
        assert!(map.cells()[10..].iter().all(|cell| cell.load(Relaxed) == 0));
        map.cells()[4999].store(5, Relaxed);
        map.sync().unwrap();
        drop(map);
        let map = CellMap::<AtomicU32>::open(&path, 20).unwrap();
        assert_eq!(map.cells()[9].load(Relaxed), 77);
        assert_eq!(CellMap::<AtomicU32>::cells_in(&path), 5000, "opening fewer cuts nothing off");
        assert_eq!(CellMap::<AtomicU8>::open(&path, 37).unwrap().cells()[36].load(Relaxed), 77);
    }

    #[test]
    fn errors_name_the_file() {
        let error = CellMap::<AtomicU64>::open(Path::new("/nowhere/m"), 1).unwrap_err();
        assert_eq!((error.errno, error.path.is_some()), (libc::ENOENT, true));
        let folder = tempfile::tempdir().unwrap();
        let huge = CellMap::<AtomicU64>::open(&folder.path().join("m"), usize::MAX / 8);
        assert_eq!(huge.unwrap_err().errno, libc::EFBIG);
    }
}
