//! Distribution of a stream's operations among its clients or threads.

/// Indices of the operations in one part of a stream: the `k`-th operation of the part is operation
/// `part + k * parts` of the stream. If all parts progress equally, the stream as a whole is the
/// same for any number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    next: u64,
    parts: u64,
}

impl Indices {
    /// Creates the indices for the part with the number `part`. `parts` is the number of parts; 0
    /// counts as 1.
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
