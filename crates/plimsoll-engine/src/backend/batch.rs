//! How many operations one call hands over.
//!
//! A batch that is handed over together comes back together: while the thread takes it apart and puts
//! the next one together the device has nothing to do, and the last operation of a batch waits while
//! the kernel works on those before it. So whatever was waited for is handed over one by one, as it
//! comes. Where everything that was handed over is back when the call returns (the page cache, a
//! memory file system, `/dev/null`, the null target), nobody waits for anything: there a call may carry
//! more, and the batch doubles with each such call. The first operation that isn't back at once ends that.
//! Where one call costs the same for several operations, as a send on a connection does, the queue says
//! so ([`Queue::together`](super::Queue::together)): those that came back together then start together.

/// The present length of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    now: usize,
    least: usize,
    most: usize,
}

impl Batch {
    /// `least` at first, and never more than `most`.
    pub fn new(least: usize, most: usize) -> Self {
        let most = most.max(1);
        let least = least.clamp(1, most);
        Self { now: least, least, most }
    }

    /// Operations to take back and to start before they are handed over.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.now
    }

    /// Whether operations were back at once lately.
    #[inline(always)]
    pub fn is_grown(&self) -> bool {
        self.now > self.least
    }

    /// A call that didn't wait has returned: `arrived` of the `in_flight` operations are back.
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
