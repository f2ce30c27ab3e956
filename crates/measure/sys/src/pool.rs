//! Fallback queue of worker threads. Each thread executes one operation at a time, with
//! `preadv2`/`pwritev2`.
//!
//! The pool has the semantics of [`crate::ring::Ring`]. Each worker has a slot. The issuing thread
//! fills the slot, marks it ready and unparks the worker. The worker marks the slot done, pushes
//! itself on the completion list (a Treiber stack: one compare-and-swap), and unparks the issuing
//! thread if that thread is waiting. The issuing thread removes the whole list in one step and
//! reverses it, so that completions are reaped in order of completion. No locks are used. At depth
//! 1 there is no worker: the issuing thread makes the call itself, like a plain synchronous engine.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::SysError;
use crate::arena::AlignedBuffer;
use crate::flight::{CompletionAction, Flight};
use crate::inject;
use crate::names::{NameOp, NameTable};
use crate::op::{OpKind, PushError, RingOp};

/// Maximum number of worker threads in one pool, and thus of operations in flight.
pub const DEPTH_MAX: u32 = 1024;

/// Stack size of a worker. It makes one system call, for which it may use 32 KiB of the stack as a
/// buffer for directory entries.
const STACK_BYTES: usize = 128 << 10;

/// Time for which a dropped pool waits for its workers.
const DROP_WAIT_NS: u64 = 1_000_000_000;

const IDLE: u8 = 0;
const READY: u8 = 1;
const DONE: u8 = 2;
const END: u8 = 3;

/// End marker of the completion list.
const NOBODY: u32 = u32::MAX;

/// System call to make.
#[derive(Clone, Copy)]
struct Call {
    kind: OpKind,
    fd: RawFd,
    address: *mut u8,
    size_bytes: u32,
    offset_bytes: u64,
    answer: i32,
    /// Metadata operation that is executed instead of I/O.
    name: Option<NameOp>,
}

impl Call {
    const NONE: Self = Self {
        kind: OpKind::Nop,
        fd: -1,
        address: core::ptr::null_mut(),
        size_bytes: 0,
        offset_bytes: 0,
        answer: 0,
        name: None,
    };

    /// Makes the call. Returns the transferred bytes or a negative `errno`.
    ///
    /// # Safety
    /// No other thread may access the `size_bytes` bytes at `address` until this function returns.
    #[inline]
    unsafe fn make(&self, names: Option<&NameTable>) -> i32 {
        inject::point("pool-call");
        if let (Some(op), Some(names)) = (&self.name, names) {
            return names.execute(op, self.fd);
        }
        let (size, offset) = (self.size_bytes as usize, self.offset_bytes as libc::off64_t);
        let buffer = self.address.cast::<libc::c_void>();
        // SAFETY: the caller guarantees the memory; an invalid descriptor only makes the call fail.
        let answer = unsafe {
            match self.kind {
                OpKind::Read => libc::pread64(self.fd, buffer, size, offset),
                OpKind::Write => libc::pwrite64(self.fd, buffer, size, offset),
                OpKind::WriteDurable => {
                    let part = libc::iovec { iov_base: buffer, iov_len: size };
                    libc::pwritev2(self.fd, &raw const part, 1, offset, libc::RWF_DSYNC)
                }
                OpKind::Flush => libc::fdatasync(self.fd) as isize,
                OpKind::Sync => libc::fsync(self.fd) as isize,
                OpKind::Nop => 0,
            }
        };
        if answer < 0 {
            -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
        } else {
            i32::try_from(answer).unwrap_or(i32::MAX)
        }
    }
}

struct WorkerSlot {
    state: AtomicU8,
    call: UnsafeCell<Call>,
    /// Next worker on the completion list. It completed its operation before this worker.
    next: AtomicU32,
}

// SAFETY: one thread at a time accesses `call`: the issuer while the state is IDLE or DONE, the
// worker while it is READY. Each hand-over is a release store matched by an acquire load.
unsafe impl Sync for WorkerSlot {}
// SAFETY: the raw pointer in `call` points into the arena, which the worker keeps alive.
unsafe impl Send for WorkerSlot {}

struct PoolState {
    seats: Box<[WorkerSlot]>,
    issuer: Thread,
    issuer_waits: AtomicBool,
    /// Head of the completion list: the worker that completed last, or [`NOBODY`] if the list is
    /// empty.
    done: AtomicU32,
    /// The workers share ownership, because they may outlive the pool if a call hangs.
    _arena: Arc<AlignedBuffer>,
    _files: Arc<Vec<OwnedFd>>,
    names: Option<NameTable>,
}

/// Worker threads with a queue. Like a ring, it belongs to the thread that created it.
pub struct Pool {
    flight: Flight,
    files: Arc<Vec<OwnedFd>>,
    direct: Box<[bool]>,
    shared: Arc<PoolState>,
    workers: Vec<JoinHandle<()>>,
    /// Slots that were pushed but not yet handed to their workers.
    queued: Vec<u32>,
    /// Number of slots that workers are executing.
    running: u32,
    /// Completed slots from the completion list, in order of completion.
    done: VecDeque<u32>,
    inline_answer: Option<(u32, i32)>,
    /// Metadata operation of each slot.
    named: Box<[Option<NameOp>]>,
    /// Maximum wait if the caller passes no timeout.
    tick_ns: Option<u64>,
    /// Workers unpark the thread that created the pool, so the pool must not move to another
    /// thread.
    _one_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("workers", &self.workers.len())
            .field("in_flight", &self.flight.in_flight())
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Starts `entries` workers, at most [`DEPTH_MAX`], or no worker if `entries` is 1. They
    /// inherit the calling thread's CPU affinity.
    ///
    /// # Errors
    /// `EAGAIN` if the system cannot start the threads.
    pub fn new(
        entries: u32,
        files: Vec<OwnedFd>,
        direct: Vec<bool>,
        arena: AlignedBuffer,
    ) -> Result<Self, SysError> {
        Self::with_names(entries, files, direct, arena, None)
    }

    /// Like [`Pool::new`], with directories for metadata operations.
    ///
    /// # Errors
    /// See [`Pool::new`].
    pub fn with_names(
        entries: u32,
        files: Vec<OwnedFd>,
        mut direct: Vec<bool>,
        arena: AlignedBuffer,
        names: Option<NameTable>,
    ) -> Result<Self, SysError> {
        let entries = entries.clamp(1, DEPTH_MAX);
        direct.resize(files.len(), false);
        let flight = Flight::new(arena, entries, files.len());
        let files = Arc::new(files);
        let seat = || WorkerSlot {
            state: AtomicU8::new(IDLE),
            call: UnsafeCell::new(Call::NONE),
            next: AtomicU32::new(NOBODY),
        };
        let shared = Arc::new(PoolState {
            seats: (0..entries).map(|_| seat()).collect(),
            issuer: std::thread::current(),
            issuer_waits: AtomicBool::new(false),
            done: AtomicU32::new(NOBODY),
            _arena: Arc::clone(flight.arena()),
            _files: Arc::clone(&files),
            names,
        });
        let mut pool = Self {
            flight,
            files,
            direct: direct.into_boxed_slice(),
            shared,
            workers: Vec::new(),
            queued: Vec::with_capacity(entries as usize),
            running: 0,
            done: VecDeque::with_capacity(entries as usize),
            inline_answer: None,
            named: vec![None; entries as usize].into_boxed_slice(),
            tick_ns: None,
            _one_thread: PhantomData,
        };
        if entries > 1 {
            for index in 0..entries as usize {
                let shared = Arc::clone(&pool.shared);
                let worker = std::thread::Builder::new()
                    .name(format!("plimsoll-io-{index}"))
                    .stack_size(STACK_BYTES)
                    .spawn(move || work(&shared, index))
                    .map_err(|error| SysError::from_io("clone", &error))?;
                pool.workers.push(worker);
            }
        }
        Ok(pool)
    }

    /// Number of operations that were pushed and not yet reaped.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flight.in_flight()
    }

    /// Maximum number of operations in flight.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.flight.capacity()
    }

    /// Number of worker threads; 0 if the issuing thread makes the calls.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Like [`crate::ring::Ring::tick_every`]. At depth 1, a call that hangs still blocks the
    /// thread.
    pub fn tick_every(&mut self, every_ns: u64) {
        self.tick_ns = self.tick_ns.or(Some(every_ns));
    }

    /// Queues an operation without a system call.
    ///
    /// # Errors
    /// [`PushError`]. The operation was not queued.
    #[inline]
    pub fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        let index = self.flight.begin(op)?;
        self.queued.push(index);
        Ok(())
    }

    /// Returns the directories and files of metadata operations.
    #[must_use]
    pub fn names(&self) -> Option<&NameTable> {
        self.shared.names.as_ref()
    }

    /// Queues a metadata operation. It completes with 0 bytes.
    ///
    /// # Errors
    /// [`PushError::NoNames`] in a pool without directories, [`PushError::UnknownFile`] if the file
    /// is not in its table. The operation was not queued.
    pub fn push_name(&mut self, op: &NameOp, user_data: u64) -> Result<(), PushError> {
        let names = self.shared.names.as_ref().ok_or(PushError::NoNames)?;
        if !names.has(op) {
            return Err(PushError::UnknownFile(op.file));
        }
        let index = self.flight.begin(&RingOp {
            kind: OpKind::Nop,
            file: op.file,
            offset_bytes: 0,
            size_bytes: 0,
            buffer_offset_bytes: 0,
            user_data,
        })?;
        self.named[index as usize] = Some(*op);
        self.queued.push(index);
        Ok(())
    }

    /// Hands all queued operations to the workers, and waits until `min_complete` completions can
    /// be reaped or the timeout expires. At depth 1 this function executes the operation and
    /// ignores the timeout.
    ///
    /// # Errors
    /// Never fails. It has the same signature as the function of the ring.
    pub fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError> {
        if self.workers.is_empty() {
            if let Some(index) = self.queued.pop() {
                let call = self.call(index);
                // SAFETY: the slot's pages belong to this operation until it is reaped.
                self.inline_answer =
                    Some((index, unsafe { call.make(self.shared.names.as_ref()) }));
            } else if let Some(timeout_ns) = timeout_ns
                && self.arrived() < min_complete as usize
            {
                // Nothing can complete, so only the timeout ends the wait.
                std::thread::sleep(Duration::from_nanos(timeout_ns));
            }
            return Ok(());
        }
        for at in 0..self.queued.len() {
            let index = self.queued[at];
            let call = self.call(index);
            let seat = &self.shared.seats[index as usize];
            // SAFETY: the slot was free, so its seat is IDLE and its worker does not access the
            // call.
            unsafe { *seat.call.get() = call };
            seat.state.store(READY, Ordering::Release);
            self.workers[index as usize].thread().unpark();
            self.running += 1;
        }
        self.queued.clear();
        // If nothing can complete, only the timeout ends the wait.
        let possible = if timeout_ns.is_some() { min_complete } else { self.running };
        let timeout_ns = timeout_ns.or(self.tick_ns);
        self.wait(min_complete.min(possible) as usize, timeout_ns);
        Ok(())
    }

    fn wait(&mut self, min_complete: usize, timeout_ns: Option<u64>) {
        if self.arrived() >= min_complete {
            return;
        }
        let deadline_ns = timeout_ns.map(|ns| crate::clock::monotonic_ns().saturating_add(ns));
        // The flag must be set before the list is checked again, because a worker first pushes
        // itself and then checks this flag.
        self.shared.issuer_waits.store(true, Ordering::SeqCst);
        while self.arrived() < min_complete {
            match deadline_ns {
                None => std::thread::park(),
                Some(deadline_ns) => {
                    let left_ns = deadline_ns.saturating_sub(crate::clock::monotonic_ns());
                    if left_ns == 0 {
                        break;
                    }
                    std::thread::park_timeout(Duration::from_nanos(left_ns));
                }
            }
        }
        self.shared.issuer_waits.store(false, Ordering::SeqCst);
    }

    fn call(&self, index: u32) -> Call {
        let Some(slot) = self.flight.slot(index) else { return Call::NONE };
        Call {
            kind: slot.op.kind,
            fd: self.files.get(slot.op.file as usize).map_or(-1, AsRawFd::as_raw_fd),
            address: self.flight.address(slot),
            size_bytes: slot.op.size_bytes - slot.done_bytes,
            offset_bytes: slot.op.offset_bytes + u64::from(slot.done_bytes),
            answer: 0,
            name: self.named.get(index as usize).copied().flatten(),
        }
    }

    /// Like [`crate::ring::Ring::arrived`].
    #[inline]
    pub fn arrived(&mut self) -> usize {
        if self.inline_answer.is_some() {
            return 1;
        }
        if self.shared.done.load(Ordering::SeqCst) != NOBODY {
            self.take_list();
        }
        self.done.len()
    }

    /// Removes the completion list. Its first entry is the last completion.
    fn take_list(&mut self) {
        let known = self.done.len();
        let mut at = self.shared.done.swap(NOBODY, Ordering::SeqCst);
        while at != NOBODY {
            self.done.push_back(at);
            at = self.shared.seats[at as usize].next.load(Ordering::Relaxed);
        }
        self.done.make_contiguous()[known..].reverse();
    }

    /// Like [`crate::ring::Ring::reap`].
    #[inline]
    pub fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        if let Some((index, answer)) = self.inline_answer.take() {
            return usize::from(self.end(index, answer, each));
        }
        let mut ended = 0;
        for _ in 0..self.arrived().min(most) {
            let Some(index) = self.done.pop_front() else { break };
            let seat = &self.shared.seats[index as usize];
            debug_assert_eq!(seat.state.load(Ordering::Acquire), DONE, "listed when it is done");
            // SAFETY: the worker has returned the call: it pushed itself on the list after its last
            // access, and taking the list acquired that.
            let answer = unsafe { (*seat.call.get()).answer };
            seat.state.store(IDLE, Ordering::Relaxed);
            self.running -= 1;
            ended += usize::from(self.end(index, answer, each));
        }
        ended
    }

    #[inline]
    fn end(
        &mut self,
        index: u32,
        answer: i32,
        each: &mut impl FnMut(u64, Result<u32, i32>),
    ) -> bool {
        let file = self.flight.slot(index).map_or(0, |slot| slot.op.file);
        let direct = self.direct.get(file as usize).copied().unwrap_or(false);
        match self.flight.settle(index, answer, direct) {
            CompletionAction::Done { user_data, result } => {
                if let Some(named) = self.named.get_mut(index as usize) {
                    *named = None;
                }
                each(user_data, result);
                true
            }
            CompletionAction::Again => {
                self.queued.push(index);
                false
            }
        }
    }

    /// Like [`crate::ring::Ring::bytes`].
    #[inline]
    pub fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        self.flight.bytes(offset_bytes, size_bytes)
    }
}

impl PoolState {
    /// Pushes a worker on the completion list.
    fn list(&self, index: usize) {
        let mut before = self.done.load(Ordering::Relaxed);
        loop {
            self.seats[index].next.store(before, Ordering::Relaxed);
            let index = index as u32;
            match self.done.compare_exchange_weak(
                before,
                index,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }
}

fn work(shared: &PoolState, index: usize) {
    let seat = &shared.seats[index];
    loop {
        match seat.state.load(Ordering::Acquire) {
            READY => {
                // SAFETY: in READY the issuer has passed the call to this worker and does not
                // access it; the pages of the buffer belong to the operation.
                unsafe {
                    (*seat.call.get()).answer = (*seat.call.get()).make(shared.names.as_ref())
                };
                // A plain store would be wrong, because the pool may have requested the end of the
                // worker in the meantime.
                let handed =
                    seat.state.compare_exchange(READY, DONE, Ordering::AcqRel, Ordering::Acquire);
                if handed.is_err() {
                    return;
                }
                shared.list(index);
                if shared.issuer_waits.load(Ordering::SeqCst) {
                    shared.issuer.unpark();
                }
            }
            END => return,
            _ => std::thread::park(),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let deadline_ns = crate::clock::monotonic_ns() + DROP_WAIT_NS;
        while self.flight.in_flight() > 0 && crate::clock::monotonic_ns() < deadline_ns {
            if self.submit_and_wait(1, Some(100_000_000)).is_err() {
                break;
            }
            self.reap(usize::MAX, &mut |_, _| ());
        }
        for (seat, worker) in self.shared.seats.iter().zip(&self.workers) {
            seat.state.store(END, Ordering::Release);
            worker.thread().unpark();
        }
        // Do not join a worker whose call hangs. It still references arena and files through
        // `PoolState`.
        if self.flight.in_flight() == 0 {
            for worker in self.workers.drain(..) {
                // A worker cannot panic: it makes one call and stores the result.
                let _ = worker.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
