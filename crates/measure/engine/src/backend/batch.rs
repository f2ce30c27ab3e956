//! Determines how many operations one system call submits.
//!
//! Operations that are submitted together complete together. The device is then idle while the
//! thread reaps them and builds the next batch. The last operation of a batch also waits while the
//! kernel processes the earlier operations. A driver that had to wait for completions therefore
//! submits the following operations one by one.
//!
//! If every operation is complete when the call returns, the driver never waits. Examples are the
//! page cache, a memory file system, `/dev/null` and the null target. A call may then submit more
//! operations: the batch doubles with each such call. After a call that leaves an operation
//! incomplete, the batch shrinks again to its initial length.
//!
//! On some queues, for example on a network connection, a call for several operations costs the
//! same as a call for one operation. [`Queue::submit_batch_len`](super::Queue::submit_batch_len)
//! returns the number of operations that a call should submit there. Operations that completed
//! together then start together.

/// Number of operations that one call submits at present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    now: usize,
    least: usize,
    most: usize,
}

impl Batch {
    /// Creates a batch with the initial length `least` and the maximum length `most`.
    pub fn new(least: usize, most: usize) -> Self {
        let most = most.max(1);
        let least = least.clamp(1, most);
        Self { now: least, least, most }
    }

    /// Returns the number of operations that the driver reaps and starts before the next call
    /// submits them.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.now
    }

    /// Returns true if recent operations were complete when their submitting call returned.
    #[inline(always)]
    pub fn is_grown(&self) -> bool {
        self.now > self.least
    }

    /// Adapts the length of the batch after a call that did not wait. When this call returned,
    /// `arrived` of the `in_flight` operations were complete.
    #[inline(always)]
    pub fn learn(&mut self, arrived: usize, in_flight: usize) {
        self.now = if arrived >= in_flight { (2 * self.now).min(self.most) } else { self.least };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_where_all_is_back_at_once_and_only_there() {
        let mut batch = Batch::new(1, 20);
        for want in [1, 2, 4, 8, 16, 20, 20] {
            assert_eq!(batch.len(), want);
            batch.learn(want, want);
        }
        batch.learn(19, 20);
        assert_eq!((batch.len(), batch.is_grown()), (1, false));
        assert_eq!(Batch::new(1, 0).len(), 1);
        let mut sends = Batch::new(16, 64);
        assert_eq!((sends.len(), sends.is_grown()), (16, false));
        sends.learn(64, 64);
        assert_eq!((sends.len(), sends.is_grown()), (32, true));
        sends.learn(0, 64);
        assert_eq!(sends.len(), 16);
        assert_eq!(Batch::new(16, 4).len(), 4);
    }
}
