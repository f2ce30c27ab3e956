//! Common interface of the ring, the thread pool and the null target.

use plimsoll_sys::SysError;
use plimsoll_sys::arena::AlignedBuffer;
use plimsoll_sys::names;
use plimsoll_sys::op::{PushError, RingOp};
use plimsoll_sys::pool::Pool;
use plimsoll_sys::ring::Ring;
use plimsoll_workload::matrix::MetadataKind;

use crate::backend::NameOp;

/// Queue of operations, which are pushed, submitted together and reaped. The compiler generates a
/// separate driver for each implementation of this trait.
pub trait Queue {
    /// True if operations may still be in flight when a submitting call returns. If this constant
    /// is false, the compiler removes the waits from the driver's loop.
    const WAITS: bool = true;
    /// Queues an operation. Makes no system call.
    ///
    /// # Errors
    /// [`PushError`] if the operation was not queued.
    fn push(&mut self, op: &RingOp) -> Result<(), PushError>;
    /// Queues an operation on names or attributes. Its completion reports 0 bytes.
    ///
    /// # Errors
    /// [`PushError::NoNames`] if the target does not support such operations.
    fn push_names(&mut self, op: &NameOp, user_data: u64) -> Result<(), PushError> {
        let _ = (op, user_data);
        Err(PushError::NoNames)
    }
    /// Returns true if the data of the last reaped read can be checked. Returns false if a
    /// restarted server may have lost writes and the client has not yet sent these writes again.
    fn is_verifiable(&self, user_data: u64) -> bool {
        let _ = user_data;
        true
    }
    /// Returns the time at which the first byte of a read arrived. The read must still be in
    /// flight, or its slot must not have been used again since it was reaped. Returns `None` if no
    /// byte has arrived, or if the target does not report this time.
    fn first_byte_ns(&self, user_data: u64) -> Option<u64> {
        let _ = user_data;
        None
    }
    /// Submits all queued operations. Waits until `min_complete` operations complete or the timeout
    /// expires.
    ///
    /// # Errors
    /// Fails if the queue itself fails.
    fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError>;
    /// Submits all queued operations. Does not wait.
    ///
    /// # Errors
    /// Fails if the queue itself fails.
    #[inline(always)]
    fn hand_over(&mut self) -> Result<(), SysError> {
        self.submit_and_wait(0, None)
    }
    /// Returns how many operations the caller should submit in one call, if these operations
    /// replace operations that completed together. The number is 1 if a call executes its
    /// operations one after the other. It is larger if a call for several operations costs no more
    /// than a call for one operation.
    fn submit_batch_len(&self) -> usize {
        1
    }
    /// Returns how many completions are ready to be reaped. Makes no system call.
    fn arrived(&mut self) -> usize;
    /// Removes up to `most` ready entries from the queue. For each operation that completed, calls
    /// `each` with the operation's user data and with the number of transferred bytes or the
    /// `errno`, in order of arrival. Returns the number of completed operations. This number can be
    /// less than the number of entries, because entries of the ring's timer and of continued
    /// transfers complete no operation.
    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize;
    /// Returns a range of the arena's bytes, which must not be in use by an operation in flight.
    /// Returns `None` if the target has no arena.
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        let _ = (offset_bytes, size_bytes);
        None
    }
    /// Sets the maximum duration of a wait for which the caller sets no timeout. The driver calls
    /// this function once.
    fn tick_every(&mut self, every_ns: u64);
    /// Returns the maximum number of operations that the queue can have in flight.
    fn capacity(&self) -> usize;
    /// Returns the number of operations that were pushed and not yet reaped.
    fn in_flight(&self) -> usize;
}

/// Returns a range of an arena's bytes, or `None` if the range is outside the arena.
#[inline(always)]
pub(crate) fn bytes_of(
    arena: &mut AlignedBuffer,
    offset_bytes: u64,
    size_bytes: u32,
) -> Option<&mut [u8]> {
    let start = usize::try_from(offset_bytes).ok()?;
    let end = start.checked_add(size_bytes as usize)?;
    arena.as_mut_slice().get_mut(start..end)
}

macro_rules! queue_of {
    ($type:ty $(, $names:item)?) => {
        impl Queue for $type {
            #[inline(always)]
            fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
                <$type>::push(self, op)
            }
            $($names)?
            #[inline(always)]
            fn submit_and_wait(
                &mut self,
                min_complete: u32,
                timeout_ns: Option<u64>,
            ) -> Result<(), SysError> {
                <$type>::submit_and_wait(self, min_complete, timeout_ns)
            }
            #[inline(always)]
            fn arrived(&mut self) -> usize {
                <$type>::arrived(self)
            }
            #[inline(always)]
            fn reap(
                &mut self,
                most: usize,
                each: &mut impl FnMut(u64, Result<u32, i32>),
            ) -> usize {
                <$type>::reap(self, most, each)
            }
            #[inline(always)]
            fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
                <$type>::bytes(self, offset_bytes, size_bytes)
            }
            fn tick_every(&mut self, every_ns: u64) {
                <$type>::tick_every(self, every_ns);
            }
            fn capacity(&self) -> usize {
                <$type>::capacity(self)
            }
            fn in_flight(&self) -> usize {
                <$type>::in_flight(self)
            }
        }
    };
}

queue_of!(Ring);
queue_of!(
    Pool,
    fn push_names(&mut self, op: &NameOp, user_data: u64) -> Result<(), PushError> {
        let per_share = self.names().ok_or(PushError::NoNames)?.per_share();
        self.push_name(&local(op, per_share), user_data)
    }
);

/// Maps an operation to the directories of this host. The number of a small file determines in
/// which of the share's directories it is. A listing reads the directory that the operation's
/// random number selects.
fn local(op: &NameOp, per_share: u32) -> names::NameOp {
    let first = op.share.saturating_mul(per_share);
    let of = |number: u64| first.saturating_add((number % u64::from(per_share)) as u32);
    let number = if op.kind == MetadataKind::Readdir { u64::from(op.file) } else { op.name };
    names::NameOp {
        kind: op.kind,
        directory: of(number),
        new_directory: of(if op.kind == MetadataKind::Rename { op.new_name } else { number }),
        file: op.file,
        client: op.client,
        name: op.name,
        new_name: op.new_name,
    }
}

/// Null target. Every operation completes immediately, as if all its bytes had been transferred,
/// but no data moves. The null target measures the cost of the driver itself.
#[derive(Debug)]
pub struct NullQueue {
    arena: AlignedBuffer,
    waiting: Vec<(u64, u32)>,
    /// Number of operations that were submitted and not yet reaped.
    arrived: usize,
    capacity: usize,
}

impl NullQueue {
    /// Creates a null target for up to `depth` operations in flight, with buffers in `arena`.
    #[must_use]
    pub fn new(depth: u32, arena: AlignedBuffer) -> Self {
        let capacity = depth.max(1) as usize;
        Self { arena, waiting: Vec::with_capacity(capacity), arrived: 0, capacity }
    }
}

impl Queue for NullQueue {
    const WAITS: bool = false;

    #[inline(always)]
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        if self.waiting.len() >= self.capacity {
            return Err(PushError::Full);
        }
        self.waiting.push((op.user_data, op.size_bytes));
        Ok(())
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, _: u32, _: Option<u64>) -> Result<(), SysError> {
        self.arrived = self.waiting.len();
        Ok(())
    }

    #[inline(always)]
    fn arrived(&mut self) -> usize {
        self.arrived
    }

    #[inline(always)]
    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let count = self.arrived.min(most);
        for (user_data, size_bytes) in self.waiting.drain(..count) {
            each(user_data, Ok(size_bytes));
        }
        self.arrived -= count;
        count
    }

    #[inline(always)]
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        bytes_of(&mut self.arena, offset_bytes, size_bytes)
    }

    fn tick_every(&mut self, _: u64) {}

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn in_flight(&self) -> usize {
        self.waiting.len()
    }
}

/// Queue of a kind that is chosen when the program runs.
#[derive(Debug)]
pub enum AnyQueue {
    /// io_uring.
    Ring(Box<Ring>),
    /// The operations are executed by worker threads, or at depth 1 by the issuing thread itself.
    Threads(Box<Pool>),
}

impl Queue for AnyQueue {
    #[inline]
    fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        match self {
            Self::Ring(ring) => ring.push(op),
            Self::Threads(pool) => pool.push(op),
        }
    }

    fn push_names(&mut self, op: &NameOp, user_data: u64) -> Result<(), PushError> {
        match self {
            Self::Ring(ring) => ring.as_mut().push_names(op, user_data),
            Self::Threads(pool) => pool.as_mut().push_names(op, user_data),
        }
    }

    #[inline]
    fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError> {
        match self {
            Self::Ring(ring) => ring.submit_and_wait(min_complete, timeout_ns),
            Self::Threads(pool) => pool.submit_and_wait(min_complete, timeout_ns),
        }
    }

    #[inline]
    fn arrived(&mut self) -> usize {
        match self {
            Self::Ring(ring) => ring.arrived(),
            Self::Threads(pool) => pool.arrived(),
        }
    }

    #[inline]
    fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        match self {
            Self::Ring(ring) => ring.reap(most, each),
            Self::Threads(pool) => pool.reap(most, each),
        }
    }

    #[inline]
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        match self {
            Self::Ring(ring) => ring.bytes(offset_bytes, size_bytes),
            Self::Threads(pool) => pool.bytes(offset_bytes, size_bytes),
        }
    }

    fn tick_every(&mut self, every_ns: u64) {
        match self {
            Self::Ring(ring) => ring.tick_every(every_ns),
            Self::Threads(pool) => pool.tick_every(every_ns),
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.capacity(),
            Self::Threads(pool) => pool.capacity(),
        }
    }

    fn in_flight(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.in_flight(),
            Self::Threads(pool) => pool.in_flight(),
        }
    }
}
