//! What pages hold where no bytes are carried: a bit for each slot.
//!
//! Creation fills slots by a hash, so that a page which nothing has changed yet need not be kept: it is
//! worked out when it is read. A store of terabytes is then ready at once and costs memory only for the
//! pages that its load changes (the vectors are zeros that the system hands out when they are touched).

use super::geometry::Geometry;
use super::page::Directory;

/// Occupancy of a database's pages.
#[derive(Debug)]
pub(crate) struct Occupancy {
    /// By page; of meaning where its bit in `changed` is set.
    slots: Vec<u16>,
    changed: Vec<u64>,
    pages_initial: u32,
}

impl Occupancy {
    /// As creation leaves a database of `pages_initial` pages that may grow to `pages_max`.
    pub fn new(pages_initial: u32, pages_max: u32) -> Self {
        let words = (pages_max as usize).div_ceil(64);
        Self { slots: vec![0; pages_max as usize], changed: vec![0; words], pages_initial }
    }

    /// Slots of a page that hold records; none for a page beyond the database.
    pub fn get(&self, g: &Geometry, page: u32) -> u16 {
        let word = self.changed.get(page as usize / 64).copied().unwrap_or(0);
        if word >> (page % 64) & 1 == 1 {
            self.slots[page as usize]
        } else if page < self.pages_initial {
            Directory::initial(g, page).occupancy()
        } else {
            0
        }
    }

    /// Notes what a page holds now.
    pub fn set(&mut self, page: u32, slots: u16) {
        let Some(known) = self.slots.get_mut(page as usize) else { return };
        *known = slots;
        self.changed[page as usize / 64] |= 1 << (page % 64);
    }
}

#[cfg(test)]
mod tests {
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
}
