//! Generation maps that survive a kill: shared file mappings in the state directory.
//!
//! Per database two files: `db03.generations` with 32 bits per page, and `db03.durable` with the log
//! position up to which commits were acknowledged. The kernel keeps what was stored in a shared
//! mapping when the process dies at any moment; a loss of power it does not survive, and whoever
//! reads the map asks whether the host was restarted since (`store.json` holds the boot's identity).

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use plimsoll_sys::SysError;
use plimsoll_sys::map::CellMap;
use plimsoll_workload::mailbox::{GenerationMap, Mark};

/// The marks of one database in mapped files.
pub struct MappedMarks {
    generations: CellMap<AtomicU32>,
    durable: CellMap<AtomicU64>,
}

impl MappedMarks {
    /// Opens or makes the maps of database `id` below `directory`, for `pages` pages.
    ///
    /// # Errors
    /// [`SysError`] with the file that cannot be made, grown or mapped.
    pub fn open(directory: &Path, id: u32, pages: u32) -> Result<Self, SysError> {
        let file = |what: &str| directory.join(format!("db{id:02}.{what}"));
        Ok(Self {
            generations: CellMap::open(&file("generations"), pages as usize)?,
            durable: CellMap::open(&file("durable"), 1)?,
        })
    }

    /// Brings both maps to stable storage.
    ///
    /// # Errors
    /// [`SysError`] with the file.
    pub fn persist(directory: &Path, id: u32, pages: u32) -> Result<(), SysError> {
        let marks = Self::open(directory, id, pages)?;
        marks.generations.sync()?;
        marks.durable.sync()
    }
}

impl GenerationMap for MappedMarks {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_there_after_the_map_is_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut marks = MappedMarks::open(directory.path(), 3, 10).unwrap();
        marks.set(7, Mark { acked: 5, in_flight: true });
        marks.set_durable_lsn(8192);
        drop(marks);
        let marks = MappedMarks::open(directory.path(), 3, 10).unwrap();
        assert_eq!(marks.get(7), Mark { acked: 5, in_flight: true });
        assert_eq!(marks.get(99), Mark::default());
        assert_eq!(marks.durable_lsn(), 8192);
    }
}
