//! Generation maps that survive if the process is killed. The maps are shared file mappings in the
//! state directory.
//!
//! Each database has two files. `db03.generations` contains 32 bits for each page. `db03.durable`
//! contains the log position up to which commits were acknowledged. If the process dies, the kernel
//! keeps the data of a shared mapping. A crash of the host loses the data that the kernel had not
//! yet written back.
//!
//! [`StoredGenerationMap`] therefore trusts a map in two cases only. In the first case, the host
//! has not been restarted since the store was opened (`store.json` contains the identity of the
//! boot). In the second case, the store was closed: the close flushes the map and the manifest to
//! stable storage, and writes the position of the end of the log into each of them.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use plimsoll_sys::SysError;
use plimsoll_sys::map::CellMap;
use plimsoll_workload::mailbox::{GenerationMap, Mark};

use crate::open_target::handles::OwnDirectory;
use crate::open_target::openat::open_or_create_file;
use crate::work_dir::maps::read_exactly;

/// Generation marks of one database, which are stored in mapped files.
pub struct MappedGenerationMap {
    generations: CellMap<AtomicU32>,
    durable: CellMap<AtomicU64>,
}

impl MappedGenerationMap {
    /// Opens or creates the maps of database `id` in `directory`. The maps have space for `pages`
    /// pages.
    ///
    /// # Errors
    /// Fails if a file cannot be created, grown or mapped. The [`SysError`] names the file.
    pub fn open(directory: &Path, id: u32, pages: u32) -> Result<Self, SysError> {
        let own = OwnDirectory::open(directory)
            .map_err(|error| SysError::from_io("open", &error).at(directory))?;
        let file = |what: &str| {
            let name = format!("db{id:02}.{what}");
            let path = directory.join(&name);
            let fd = open_or_create_file(own.fd.as_fd(), Path::new(&name))
                .map_err(|errno| SysError::new("open", errno.raw_os_error()).at(&path))?;
            Ok::<_, SysError>((fd, path))
        };
        let ((generations, path), (durable, durable_path)) =
            (file("generations")?, file("durable")?);
        Ok(Self {
            generations: CellMap::of_file(generations, &path, pages as usize)?,
            durable: CellMap::of_file(durable, &durable_path, 1)?,
        })
    }

    /// Flushes both maps to stable storage.
    ///
    /// # Errors
    /// Fails if a file cannot be flushed. The [`SysError`] names the file.
    pub fn persist(directory: &Path, id: u32, pages: u32) -> Result<(), SysError> {
        let map = Self::open(directory, id, pages)?;
        map.generations.sync()?;
        map.durable.sync()
    }
}

impl GenerationMap for MappedGenerationMap {
    fn get(&self, page: u32) -> Mark {
        let cell = self.generations.cells().get(page as usize);
        Mark::from_bits(cell.map_or(0, |cell| cell.load(Ordering::Relaxed)))
    }

    fn set(&mut self, page: u32, mark: Mark) {
        if let Some(cell) = self.generations.cells().get(page as usize) {
            cell.store(mark.to_bits(), Ordering::Relaxed);
        }
    }

    fn durable_lsn(&self) -> u64 {
        self.durable.cells().first().map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    fn set_durable_lsn(&mut self, lsn: u64) {
        if let Some(cell) = self.durable.cells().first() {
            cell.store(lsn, Ordering::Release);
        }
    }
}

/// Reason why a map on disk is trusted, or why it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The map is trusted: the store is in its original place, and the host has not been restarted
    /// since the store was opened.
    SameBoot,
    /// The store was closed at this log position. A map is trusted if it contains the same
    /// position, because that close wrote it.
    ClosedAt(u64),
    /// The map is not trusted. It may be older or newer than the data.
    Never,
}

/// Copy of the marks of one database, for reading only. To read the marks, no file is created,
/// extended or mapped.
pub(super) struct StoredGenerationMap {
    generations: Vec<u8>,
    durable_lsn: u64,
    trusted: bool,
}

const CELL: usize = size_of::<u32>();

impl StoredGenerationMap {
    /// Reads the maps of database `id` in `directory`. If a file is missing or has the wrong size,
    /// returns an empty map that is not trusted.
    pub fn read(directory: &Path, id: u32, pages: u32, trust: Trust) -> Self {
        let file =
            |what: &str, size: u64| read_exactly(directory, &format!("db{id:02}.{what}"), size);
        let durable = file("durable", size_of::<u64>() as u64);
        let durable = durable.and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
        match (file("generations", u64::from(pages) * CELL as u64), durable) {
            (Some(generations), Some(durable_lsn)) => {
                let trusted = match trust {
                    Trust::SameBoot => true,
                    Trust::ClosedAt(lsn) => lsn == durable_lsn,
                    Trust::Never => false,
                };
                Self { generations, durable_lsn, trusted }
            }
            _ => Self { generations: Vec::new(), durable_lsn: 0, trusted: false },
        }
    }
}

impl GenerationMap for StoredGenerationMap {
    fn get(&self, page: u32) -> Mark {
        let (cells, _) = self.generations.as_chunks::<CELL>();
        Mark::from_bits(cells.get(page as usize).map_or(0, |cell| u32::from_ne_bytes(*cell)))
    }

    fn set(&mut self, _page: u32, _mark: Mark) {}

    fn durable_lsn(&self) -> u64 {
        self.durable_lsn
    }

    fn set_durable_lsn(&mut self, _lsn: u64) {}

    fn is_trusted(&self, _end_lsn: u64) -> bool {
        self.trusted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_believed_for_a_reason_only() {
        let directory = tempfile::tempdir().unwrap();
        let mut map = MappedGenerationMap::open(directory.path(), 3, 10).unwrap();
        map.set(7, Mark { acked: 5, in_flight: false });
        map.set_durable_lsn(8192);
        drop(map);
        let read = |pages, trust| StoredGenerationMap::read(directory.path(), 3, pages, trust);
        let kept = read(10, Trust::SameBoot);
        assert_eq!(kept.get(7), Mark { acked: 5, in_flight: false });
        assert_eq!((kept.durable_lsn(), kept.is_trusted(0)), (8192, true));
        assert!(read(10, Trust::ClosedAt(8192)).is_trusted(0));
        assert!(!read(10, Trust::ClosedAt(4096)).is_trusted(0));
        assert!(!read(10, Trust::Never).is_trusted(0));
        assert!(!read(11, Trust::SameBoot).is_trusted(0), "its size is wrong");
        assert!(!directory.path().join("db04.durable").exists());
        StoredGenerationMap::read(directory.path(), 4, 10, Trust::SameBoot);
        assert!(!directory.path().join("db04.durable").exists());
    }

    #[test]
    fn marks_are_there_after_the_map_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut map = MappedGenerationMap::open(directory.path(), 3, 10).unwrap();
        map.set(7, Mark { acked: 5, in_flight: true });
        map.set_durable_lsn(8192);
        drop(map);
        let map = MappedGenerationMap::open(directory.path(), 3, 10).unwrap();
        assert_eq!(map.get(7), Mark { acked: 5, in_flight: true });
        assert_eq!(map.get(99), Mark::default());
        assert_eq!(map.durable_lsn(), 8192);
    }
}
