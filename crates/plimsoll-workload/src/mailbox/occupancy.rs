//! What pages hold where no bytes are carried: a bit for each slot.
//!
//! Creation fills slots by a hash, so that a page which nothing has changed yet need not be kept: it is
//! worked out when it is read. A store of terabytes is then ready at once and costs memory only for the
//! pages that its load changes (the cells are zeros that the system hands out when they are touched).
//!
//! Pages are looked up at random in hundreds of megabytes, where each line of memory that is touched costs
//! more than all that is done with it. Whether a page has changed is therefore kept beside what it holds:
//! a line is 30 pages' slots and a bit for each of them.

use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

use super::geometry::Geometry;

/// Cells of a line, the first of them for pages, the last two for their bits.
const LINE: usize = 32;
const PAGES: usize = 30;

/// Occupancy of a database's pages.
#[derive(Debug)]
pub(crate) struct Occupancy {
    /// Lines of [`LINE`] cells, from the cell at `begin` on: where a line of memory begins.
    cells: Large<u16>,
    begin: usize,
    pages_initial: u32,
    pages_max: u32,
}

impl Occupancy {
    /// As creation leaves a database of `pages_initial` pages that may grow to `pages_max`.
    pub fn new(pages_initial: u32, pages_max: u32) -> Self {
        let lines = (pages_max as usize).div_ceil(PAGES);
        let cells = Large::<u16>::zeros((lines + 1) * LINE);
        let begin = (cells.as_ptr() as usize).wrapping_neg() / 2 % LINE;
        Self { cells, begin, pages_initial, pages_max }
    }

    /// Where a page's line begins, and its place in the line.
    fn place(&self, page: u32) -> (usize, usize) {
        (self.begin + page as usize / PAGES * LINE, page as usize % PAGES)
    }

    /// A page will be asked for when it has been read.
    #[inline]
    pub fn hint(&self, page: u32) {
        if page < self.pages_max {
            hint::prefetch(&self.cells[self.place(page).0]);
        }
    }

    /// Slots of a page that hold records; none for a page beyond the database.
    pub fn get(&self, g: &Geometry, page: u32) -> u16 {
        let (line, at) = self.place(page);
        let known = page < self.pages_max;
        if known && self.cells[line + PAGES + at / 16] >> (at % 16) & 1 == 1 {
            self.cells[line + at]
        } else if page < self.pages_initial {
            g.initially_live(page)
        } else {
            0
        }
    }

    /// Notes what a page holds now.
    pub fn set(&mut self, page: u32, slots: u16) {
        if page < self.pages_max {
            let (line, at) = self.place(page);
            self.cells[line + at] = slots;
            self.cells[line + PAGES + at / 16] |= 1 << (at % 16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Directory;
    use super::*;
    use crate::mailbox::{DatabaseConfig, MailboxConfig};

    #[test]
    fn pages_are_as_creation_left_them_until_they_change() {
        let databases = vec![DatabaseConfig::new(0, 0, 1, 100)];
        let g = Geometry::new(&MailboxConfig::new(1, 2, databases, 1));
        let mut occupancy = Occupancy::new(100, 125);
        assert_eq!(&raw const occupancy.cells[occupancy.begin] as usize % 64, 0);
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
}
