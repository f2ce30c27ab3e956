//! Reads the layout of a file: its extents (`FIEMAP`), and its data and holes (`SEEK_DATA`).

use std::os::fd::{AsRawFd, OwnedFd};

use crate::SysError;

/// `_IOWR('f', 11, struct fiemap)`: read and write, 32 bytes, type `f`, number 11.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Flag that writes the file back first, so that data with delayed allocation has a location.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
const FIEMAP_EXTENT_SHARED: u32 = 0x2000;
const FIEMAP_EXTENT_UNKNOWN: u32 = 2;
const FIEMAP_EXTENT_DELALLOC: u32 = 4;
const FIEMAP_EXTENT_ENCODED: u32 = 8;
const FIEMAP_EXTENT_INLINE: u32 = 0x200;

/// Maximum number of extents that one call returns.
const BATCH: usize = 256;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// Contiguous part of a file on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file.
    pub logical_bytes: u64,
    /// Offset on the device; meaningless if `placed` is false.
    pub physical_bytes: u64,
    pub length_bytes: u64,
    /// True if the location is known; false for delayed allocation, inline data and unknown
    /// locations.
    pub placed: bool,
    /// True if the extent is allocated but was never written: reads return zeroes without device
    /// I/O.
    pub unwritten: bool,
    /// True if the extent is shared with another file or snapshot.
    pub shared: bool,
    /// True if the extent is compressed or encrypted: the location does not contain a plain copy of
    /// the data.
    pub encoded: bool,
}

/// Returns at most `extents_max` extents of a file, in file order. The second value is true if the
/// list is complete.
///
/// # Errors
/// `EOPNOTSUPP` if the file system does not support the call (tmpfs, NFS).
pub fn extents(fd: &OwnedFd, extents_max: usize) -> Result<(Vec<Extent>, bool), SysError> {
    let mut out = Vec::new();
    let mut start = 0;
    loop {
        let mut request = Box::new(Request {
            start,
            length: u64::MAX - start,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [RawExtent::default(); BATCH],
        });
        // SAFETY: the request has the kernel's layout and space for `extent_count` extents.
        let answer = unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *request) };
        if answer != 0 {
            return Err(SysError::last("ioctl(FS_IOC_FIEMAP)"));
        }
        let got = &request.extents[..(request.mapped_extents as usize).min(BATCH)];
        let Some(last) = got.last() else { return Ok((out, true)) };
        for raw in got {
            if out.len() == extents_max {
                return Ok((out, false));
            }
            out.push(extent(raw));
        }
        let end = last.logical.saturating_add(last.length);
        if last.flags & FIEMAP_EXTENT_LAST != 0 || end <= start {
            return Ok((out, true));
        }
        start = end;
    }
}

fn extent(raw: &RawExtent) -> Extent {
    let has = |flag: u32| raw.flags & flag != 0;
    Extent {
        logical_bytes: raw.logical,
        physical_bytes: raw.physical,
        length_bytes: raw.length,
        placed: !has(FIEMAP_EXTENT_UNKNOWN)
            && !has(FIEMAP_EXTENT_DELALLOC)
            && !has(FIEMAP_EXTENT_INLINE),
        unwritten: has(FIEMAP_EXTENT_UNWRITTEN),
        shared: has(FIEMAP_EXTENT_SHARED),
        encoded: has(FIEMAP_EXTENT_ENCODED),
    }
}

/// Returns the number of bytes outside holes, determined with `SEEK_DATA` and `SEEK_HOLE`. If the
/// file system does not support holes, this is the size of the whole file.
///
/// # Errors
/// The `errno` of `lseek`.
pub fn data_bytes(fd: &OwnedFd) -> Result<u64, SysError> {
    let seek = |at: i64, whence| {
        // SAFETY: seeking an open descriptor accesses no memory.
        let to = unsafe { libc::lseek64(fd.as_raw_fd(), at, whence) };
        if to < 0 { Err(SysError::last("lseek")) } else { Ok(to) }
    };
    let (mut at, mut data) = (0i64, 0u64);
    loop {
        let start = match seek(at, libc::SEEK_DATA) {
            Ok(start) => start,
            Err(error) if error.errno == libc::ENXIO => return Ok(data),
            Err(error) => return Err(error),
        };
        let end = seek(start, libc::SEEK_HOLE)?;
        data += end.saturating_sub(start) as u64;
        if end <= at {
            return Ok(data);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{OpenFlags, allocate, open, truncate};

    #[test]
    fn distinguishes_data_from_holes_and_unwritten_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![1u8; 1 << 16]).unwrap();
        let fd = open(&path, OpenFlags { write: true, ..OpenFlags::default() }).unwrap().fd;
        truncate(&fd, 1 << 20).unwrap();
        assert_eq!(data_bytes(&fd).unwrap(), 1 << 16);
        match extents(&fd, 100) {
            Ok((list, all)) => {
                assert!(all);
                assert_eq!(list.iter().map(|extent| extent.length_bytes).sum::<u64>(), 1 << 16);
                assert!(list.iter().all(|extent| extent.placed && !extent.unwritten));
                allocate(&fd, 1 << 20).unwrap();
                let (list, _) = extents(&fd, 100).unwrap();
                let unwritten: u64 =
                    list.iter().filter(|e| e.unwritten).map(|e| e.length_bytes).sum();
                assert_eq!(unwritten, (1 << 20) - (1 << 16));
            }
            Err(error) => assert_eq!(error.errno, libc::EOPNOTSUPP),
        }
    }

    #[test]
    fn stops_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![1u8; 4096]).unwrap();
        let fd = open(&path, OpenFlags::default()).unwrap().fd;
        if let Ok((list, all)) = extents(&fd, 0) {
            assert!(list.is_empty() && !all);
        }
    }
}
