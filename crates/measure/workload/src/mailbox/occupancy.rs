//! Records which slots of the pages are occupied, if the pages have no content. Each slot has one
//! bit.
//!
//! A hash determines which slots the creation fills. An unchanged page therefore need not be
//! stored: its slots are computed each time the page is read. A store of terabytes is ready
//! immediately, and uses memory only for the pages that the load changes.
//!
//! Pages are looked up at random. A cache miss takes more time than the actual work, and the first
//! access to new memory takes even more time. Most pages are unchanged, and an unchanged page needs
//! only one bit. The changed pages of a block are stored next to each other, without unused space.

use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

use super::geometry::Geometry;

/// Number of pages in a block. It is the number of bits in a word.
const PAGES: u32 = 64;

/// Block of pages. It records which pages were changed, and where the cells with their occupancy
/// start.
#[derive(Clone, Copy, Debug)]
struct Block {
    changed: u64,
    cells: usize,
}

/// Occupancy of all pages in a database.
#[derive(Debug)]
pub(crate) struct Occupancy {
    blocks: Large<Block>,
    /// Occupancy of the changed pages. It is stored block after block, in the order of pages. Each
    /// block has a group of cells, and the size of a group is a power of two.
    cells: Large<u16>,
    /// Groups of cells that are not in use. There is one list for each group size. The index of the
    /// list is the logarithm of the group size.
    free: [Vec<usize>; 7],
    /// Page that was passed to the latest call of `hint`.
    hinted: u32,
    pages_initial: u32,
    pages_max: u32,
}

impl Occupancy {
    /// Creates the state for a new database. The database has `pages_initial` pages and may grow to
    /// `pages_max` pages.
    pub fn new(pages_initial: u32, pages_max: u32) -> Self {
        let blocks =
            Large::filled(Block { changed: 0, cells: 0 }, pages_max.div_ceil(PAGES) as usize);
        Self {
            blocks,
            cells: Large::new(),
            free: Default::default(),
            hinted: 0,
            pages_initial,
            pages_max,
        }
    }

    /// Announces that a page will be used when its read completes. Prefetches the block of the
    /// page. The cells of the page are prefetched in the next call of `hint`, because the block
    /// must first be in the CPU's cache.
    #[inline]
    pub fn hint(&mut self, page: u32) {
        let before = std::mem::replace(&mut self.hinted, page);
        if let Some(block) = self.blocks.get((page / PAGES) as usize) {
            hint::prefetch(block);
        }
        let before = self.blocks.get((before / PAGES) as usize).filter(|block| block.changed != 0);
        if let Some(cell) = before.and_then(|block| self.cells.get(block.cells)) {
            hint::prefetch(cell);
        }
    }

    /// Returns the slots of a page that contain records. For a page outside the database, no slot
    /// contains a record.
    pub fn get(&self, g: &Geometry, page: u32) -> u16 {
        let bit = 1u64 << (page % PAGES);
        match self.blocks.get((page / PAGES) as usize) {
            Some(block) if block.changed & bit != 0 => {
                self.cells[block.cells + (block.changed & (bit - 1)).count_ones() as usize]
            }
            Some(_) if page < self.pages_initial => g.initially_live(page),
            _ => 0,
        }
    }

    pub fn set(&mut self, page: u32, slots: u16) {
        if page >= self.pages_max {
            return;
        }
        let at = (page / PAGES) as usize;
        let Block { changed, cells } = self.blocks[at];
        let bit = 1u64 << (page % PAGES);
        let before = (changed & (bit - 1)).count_ones() as usize;
        if changed & bit != 0 {
            self.cells[cells + before] = slots;
            return;
        }
        let count = changed.count_ones() as usize;
        let cells = if count == 0 || count.is_power_of_two() {
            let room = self.take((count + 1).next_power_of_two());
            self.cells.copy_within(cells..cells + count, room);
            if count > 0 {
                self.free[count.ilog2() as usize].push(cells);
            }
            room
        } else {
            cells
        };
        self.cells.copy_within(cells + before..cells + count, cells + before + 1);
        self.cells[cells + before] = slots;
        self.blocks[at] = Block { changed: changed | bit, cells };
    }

    /// Allocates a group of cells. The size of the group is a power of two.
    fn take(&mut self, count: usize) -> usize {
        self.free[count.ilog2() as usize].pop().unwrap_or_else(|| {
            let cells = self.cells.len();
            self.cells.resize(cells + count, 0);
            cells
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::page::Directory;
    use super::*;
    use crate::mailbox::{DatabaseConfig, MailboxConfig};

    #[test]
    fn pages_are_as_creation_left_them_until_they_change() {
        let databases = vec![DatabaseConfig::new(0, 0, 1, 100)];
        let g = Geometry::new(&MailboxConfig::new(1, 2, databases, 1));
        let mut occupancy = Occupancy::new(100, 125);
        for page in [0, 63, 64, 99] {
            assert_eq!(occupancy.get(&g, page), Directory::initial(&g, page).occupancy());
        }
        assert_eq!((occupancy.get(&g, 100), occupancy.get(&g, 500)), (0, 0));
        occupancy.set(64, 0b101);
        occupancy.set(99, 0);
        occupancy.set(124, 1);
        occupancy.set(125, 7);
        assert_eq!((occupancy.get(&g, 64), occupancy.get(&g, 99)), (0b101, 0));
        assert_eq!((occupancy.get(&g, 124), occupancy.get(&g, 125)), (1, 0));
        assert_eq!(occupancy.get(&g, 63), Directory::initial(&g, 63).occupancy());
    }

    proptest! {
        /// The state behaves like a plain map that contains the changed pages.
        #[test]
        fn changed_pages_are_kept(changes in prop::collection::vec((0u32..300, any::<u16>()), 0..900)) {
            let databases = vec![DatabaseConfig::new(0, 0, 1, 100)];
            let g = Geometry::new(&MailboxConfig::new(1, 2, databases, 1));
            let (mut occupancy, mut map) = (Occupancy::new(200, 260), HashMap::new());
            for (page, slots) in changes {
                occupancy.set(page, slots);
                if page < 260 {
                    map.insert(page, slots);
                }
            }
            for page in 0..320 {
                let initial = if page < 200 { g.initially_live(page) } else { 0 };
                let expected = map.get(&page).copied().unwrap_or(initial);
                prop_assert_eq!(occupancy.get(&g, page), expected);
            }
        }
    }
}
