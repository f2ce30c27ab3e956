//! First-in-first-out queues of sessions. All queues share one table of links. A session waits for
//! at most one event at a time, so one link for each session is enough. The queues allocate no
//! memory.

use super::cache::NONE;

/// Queue of sessions. It stores its first and its last session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl Queue {
    /// Creates a queue from its first and its last session.
    pub fn of((first, last): (u32, u32)) -> Self {
        Self { first, last }
    }

    /// Returns the first and the last session of the queue.
    pub fn ends(self) -> (u32, u32) {
        (self.first, self.last)
    }

    /// Returns the first session of the queue, without removing it.
    pub fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Adds a session to the end of the queue.
    pub fn push(&mut self, links: &mut [u32], session: u32) {
        links[session as usize] = NONE;
        match self.last {
            NONE => self.first = session,
            last => links[last as usize] = session,
        }
        self.last = session;
    }

    /// Removes the first session of the queue and returns it.
    pub fn pop(&mut self, links: &[u32]) -> Option<u32> {
        let session = self.first()?;
        self.first = links[session as usize];
        if self.first == NONE {
            self.last = NONE;
        }
        Some(session)
    }

    /// Moves all sessions of `other` to the end of this queue.
    pub fn append(&mut self, links: &mut [u32], other: Self) {
        if other.first == NONE {
            return;
        }
        match self.last {
            NONE => self.first = other.first,
            last => links[last as usize] = other.first,
        }
        self.last = other.last;
    }
}
