//! First-in-first-out queues of sessions that share one table of links: a session waits for at most
//! one thing at a time, so its link serves whichever queue it is in. Nothing is allocated.

use super::cache::NONE;

/// One queue: its first and last session.
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
    /// The queue of these ends.
    pub fn of((first, last): (u32, u32)) -> Self {
        Self { first, last }
    }

    /// Head and tail of the queue.
    pub fn ends(self) -> (u32, u32) {
        (self.first, self.last)
    }

    /// The session that came first.
    pub fn first(self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Adds a session at the end.
    pub fn push(&mut self, links: &mut [u32], session: u32) {
        links[session as usize] = NONE;
        match self.last {
            NONE => self.first = session,
            last => links[last as usize] = session,
        }
        self.last = session;
    }

    /// Takes the first session.
    pub fn pop(&mut self, links: &[u32]) -> Option<u32> {
        let session = self.first()?;
        self.first = links[session as usize];
        if self.first == NONE {
            self.last = NONE;
        }
        Some(session)
    }

    /// Moves all of `other` to the end of this one.
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
