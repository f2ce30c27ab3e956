//! Distribution of a stream's operations among its users.

/// The indices of one user of a stream: the user's `k`-th operation is number `part + k * parts` of
/// the stream. The whole stream is the same for any number of parts, if they progress equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    next: u64,
    parts: u64,
}

impl Indices {
    /// Creates part `part` of `parts`; 0 parts count as 1.
    #[must_use]
    pub fn new(part: u64, parts: u64) -> Self {
        Self { next: part, parts: parts.max(1) }
    }

    /// Returns the next index.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let index = self.next;
        self.next = index.wrapping_add(self.parts);
        index
    }
}
