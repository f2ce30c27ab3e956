//! What a restarted server may have forgotten.
//!
//! Unstable writes that were acknowledged are lost when the server restarts before they were committed
//! (RFC 1813, 3.3.7). The client finds that out from the write verifier of the next COMMIT, and sends them
//! again. Until then a read may bring what was there before, and that is no damage. So from the loss
//! of a connection (the first that is seen of a restart) every file with unstable writes is committed
//! at once, and reads that were handed over before the last of these COMMITs are not held against what
//! was written.

/// Files with unstable writes, and whether what a server may have forgotten is settled.
#[derive(Clone, Debug, Default)]
pub struct UnverifiedWindow {
    /// Per file: unstable writes were made.
    dirty: Vec<bool>,
    /// Files to commit, before anything is sure again.
    due: Vec<u32>,
    /// COMMITs under way.
    under_way: u32,
    /// Not settled at present.
    now: bool,
    /// Reads handed over before this are not held against what was written.
    sure_from_ns: u64,
}

impl UnverifiedWindow {
    /// Of a table of `files` files.
    #[must_use]
    pub fn new(files: usize) -> Self {
        Self { dirty: vec![false; files], ..Self::default() }
    }

    /// An unstable write of a file is made.
    #[inline]
    pub fn wrote(&mut self, file: u32) {
        if let Some(dirty) = self.dirty.get_mut(file as usize) {
            *dirty = true;
        }
    }

    /// Files with unstable writes: committed once too often rather than once too few.
    pub fn dirty(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.dirty).filter(|(_, dirty)| **dirty).map(|(file, _)| file)
    }

    /// A server may have restarted.
    pub fn begin(&mut self) {
        self.now = true;
        self.due = self.dirty().collect();
    }

    /// The next file to commit.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        self.due.last().copied()
    }

    /// The COMMIT of [`UnverifiedWindow::next`] was handed over.
    pub fn took(&mut self) {
        self.under_way += u32::from(self.due.pop().is_some());
    }

    /// One of the COMMITs has ended.
    pub fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Ends it where everything due is committed and all connections are up.
    #[inline]
    pub fn settle(&mut self, now_ns: u64, connections_down: u32) {
        if self.now && self.due.is_empty() && self.under_way == 0 && connections_down == 0 {
            self.now = false;
            self.sure_from_ns = now_ns;
        }
    }

    /// Whether a read that was handed over at `submitted_ns` can be held against what was written.
    #[inline]
    #[must_use]
    pub fn is_sure(&self, submitted_ns: u64) -> bool {
        !self.now && submitted_ns >= self.sure_from_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_lasts_until_every_dirty_file_is_committed() {
        let mut window = UnverifiedWindow::new(3);
        assert!(window.is_sure(0));
        window.wrote(0);
        window.wrote(2);
        window.wrote(9);
        window.begin();
        assert!(!window.is_sure(u64::MAX));
        assert_eq!(window.next(), Some(2));
        window.took();
        window.settle(10, 0);
        assert!(!window.is_sure(11), "file 0 is due");
        window.took();
        window.ended();
        window.settle(20, 0);
        assert!(!window.is_sure(21), "a COMMIT is under way");
        window.ended();
        window.settle(30, 1);
        assert!(!window.is_sure(31), "a connection is down");
        window.settle(40, 0);
        assert!(!window.is_sure(39), "it was handed over before");
        assert!(window.is_sure(40));
        assert_eq!(window.dirty().collect::<Vec<_>>(), [0, 2]);
    }
}
