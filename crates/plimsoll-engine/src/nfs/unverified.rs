//! Writes that a restarted server may have lost.
//!
//! A server loses acknowledged unstable writes if it restarts before they are committed (RFC 1813,
//! 3.3.7). The client notices this from the write verifier of the next COMMIT, and sends them
//! again. Until then a read may return the earlier content, and this is not damage. A lost
//! connection is the first sign of a restart. From then on the queue commits every file with
//! unstable writes at once. It does not check reads that were handed over before the last of these
//! COMMITs.

/// Files with unstable writes, and whether the server may still have lost some of them.
#[derive(Clone, Debug, Default)]
pub struct UnverifiedWindow {
    /// Per file: true if it has unstable writes.
    dirty: Vec<bool>,
    /// Files to commit before reads can be checked again.
    due: Vec<u32>,
    /// COMMITs in flight.
    under_way: u32,
    /// True while writes may be lost.
    now: bool,
    /// Start of checks: reads handed over before this are not checked.
    sure_from_ns: u64,
}

impl UnverifiedWindow {
    /// Creates the window of a table of `files` files.
    #[must_use]
    pub fn new(files: usize) -> Self {
        Self { dirty: vec![false; files], ..Self::default() }
    }

    /// Records an unstable write of a file.
    #[inline]
    pub fn wrote(&mut self, file: u32) {
        if let Some(dirty) = self.dirty.get_mut(file as usize) {
            *dirty = true;
        }
    }

    /// Returns files with unstable writes, rather one too many than one too few.
    pub fn dirty(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.dirty).filter(|(_, dirty)| **dirty).map(|(file, _)| file)
    }

    /// Opens the window: a server may have restarted.
    pub fn begin(&mut self) {
        self.now = true;
        self.due = self.dirty().collect();
    }

    /// Returns the next file to commit.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        self.due.last().copied()
    }

    /// Records that the COMMIT of [`UnverifiedWindow::next`] was handed over.
    pub fn took(&mut self) {
        self.under_way += u32::from(self.due.pop().is_some());
    }

    /// Records that one of the COMMITs has ended.
    pub fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Closes the window if all due files are committed and all connections are up.
    #[inline]
    pub fn settle(&mut self, now_ns: u64, connections_down: u32) {
        if self.now && self.due.is_empty() && self.under_way == 0 && connections_down == 0 {
            self.now = false;
            self.sure_from_ns = now_ns;
        }
    }

    /// Returns true if a read that was handed over at `submitted_ns` can be checked.
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
