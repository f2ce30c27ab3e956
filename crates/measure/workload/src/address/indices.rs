//! Distributes the operations of a stream among its clients or threads.

/// Indices of the operations in one part of a stream. The `k`-th operation of the part is operation
/// number `part + k * parts` of the stream. If all parts progress at the same speed, the stream as
/// a whole is the same for any number of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    next: u64,
    parts: u64,
}

impl Indices {
    /// Creates the indices for part number `part` of `parts` parts. A `parts` of 0 is treated as 1.
    #[must_use]
    pub fn new(part: u64, parts: u64) -> Self {
        Self { next: part, parts: parts.max(1) }
    }

    /// Returns the index of the part's next operation.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let index = self.next;
        self.next = index.wrapping_add(self.parts);
        index
    }
}
