//! Which operations of a stream are whose.

/// The indices of one of several that share a stream: its `k`-th operation is number
/// `part + k * parts` of the stream. So the stream as a whole is the same whatever the number of
/// parts, while they keep step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indices {
    next: u64,
    parts: u64,
}

impl Indices {
    /// Part `part` of `parts`; 0 parts are taken as 1.
    #[must_use]
    pub fn new(part: u64, parts: u64) -> Self {
        Self { next: part, parts: parts.max(1) }
    }

    /// All of a stream.
    #[must_use]
    pub fn all() -> Self {
        Self::new(0, 1)
    }

    /// The next index.
    #[inline]
    pub fn take(&mut self) -> u64 {
        let index = self.next;
        self.next = index.wrapping_add(self.parts);
        index
    }
}
