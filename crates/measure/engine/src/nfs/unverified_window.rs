//! Keeps track of the writes that a restarted server may have lost.
//!
//! A server loses acknowledged unstable writes if it restarts before they are committed (RFC 1813,
//! 3.3.7). The client detects the loss when the next COMMIT returns another write verifier, and
//! sends these writes again. Until then, a read may return the earlier content, which does not
//! count as damage. A lost connection is the first sign of a restart. The queue then immediately
//! commits every file with unstable writes. It does not check reads that were submitted before the
//! last of these COMMITs completed.

/// List of files with unstable writes. Records also whether the server may have lost some of these
/// writes.
#[derive(Clone, Debug, Default)]
pub struct UnverifiedWindow {
    /// For each file: true if it has unstable writes.
    dirty: Vec<bool>,
    /// Files that must be committed before the window closes and reads can be checked again.
    to_commit: Vec<u32>,
    commits_in_flight: u32,
    /// True while a server may have lost writes.
    is_open: bool,
    /// Reads that were submitted before this time are not checked.
    verifiable_from_ns: u64,
}

impl UnverifiedWindow {
    /// Creates a window for `files` files. The window is closed at first.
    #[must_use]
    pub fn new(files: usize) -> Self {
        Self { dirty: vec![false; files], ..Self::default() }
    }

    /// Records an unstable write to a file.
    #[inline]
    pub fn note_write(&mut self, file: u32) {
        if let Some(dirty) = self.dirty.get_mut(file as usize) {
            *dirty = true;
        }
    }

    /// Returns the files with unstable writes. The list contains every file with unstable writes,
    /// but it may also contain files that have none.
    pub fn dirty(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.dirty).filter(|(_, dirty)| **dirty).map(|(file, _)| file)
    }

    /// Opens the window: a server may have restarted.
    pub fn open(&mut self) {
        self.is_open = true;
        self.to_commit = self.dirty().collect();
    }

    /// Returns the next file that must be committed.
    #[inline]
    pub fn next_commit(&self) -> Option<u32> {
        self.to_commit.last().copied()
    }

    /// Records that the COMMIT for the file from [`UnverifiedWindow::next_commit`] was submitted.
    pub fn commit_submitted(&mut self) {
        self.commits_in_flight += u32::from(self.to_commit.pop().is_some());
    }

    /// Records that one of the submitted COMMITs has completed.
    pub fn commit_finished(&mut self) {
        self.commits_in_flight = self.commits_in_flight.saturating_sub(1);
    }

    /// Closes the window if all listed files have been committed and all connections are up.
    #[inline]
    pub fn close_if_committed(&mut self, now_ns: u64, connections_down: u32) {
        if self.is_open
            && self.to_commit.is_empty()
            && self.commits_in_flight == 0
            && connections_down == 0
        {
            self.is_open = false;
            self.verifiable_from_ns = now_ns;
        }
    }

    /// Returns true if the data of a read that was submitted at `submitted_ns` can be checked.
    #[inline]
    #[must_use]
    pub fn is_verifiable(&self, submitted_ns: u64) -> bool {
        !self.is_open && submitted_ns >= self.verifiable_from_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_lasts_until_every_dirty_file_is_committed() {
        let mut window = UnverifiedWindow::new(3);
        assert!(window.is_verifiable(0));
        window.note_write(0);
        window.note_write(2);
        window.note_write(9);
        window.open();
        assert!(!window.is_verifiable(u64::MAX));
        assert_eq!(window.next_commit(), Some(2));
        window.commit_submitted();
        window.close_if_committed(10, 0);
        assert!(!window.is_verifiable(11), "file 0 is due");
        window.commit_submitted();
        window.commit_finished();
        window.close_if_committed(20, 0);
        assert!(!window.is_verifiable(21), "a COMMIT is under way");
        window.commit_finished();
        window.close_if_committed(30, 1);
        assert!(!window.is_verifiable(31), "a connection is down");
        window.close_if_committed(40, 0);
        assert!(!window.is_verifiable(39), "it was handed over before");
        assert!(window.is_verifiable(40));
        assert_eq!(window.dirty().collect::<Vec<_>>(), [0, 2]);
    }
}
