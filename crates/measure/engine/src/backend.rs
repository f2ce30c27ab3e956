//! A backend is a queue of operations in flight, with a table of open files and one arena of
//! buffers. A backend has one of two forms, which have the same semantics.
//!
//! - **Ring**: io_uring, with one system call per batch (see `plimsoll_sys::ring`).
//! - **Threads**: worker threads call `preadv2` and `pwritev2`; at depth 1, the issuing thread
//!   makes these calls (`plimsoll_sys::pool`).
//!
//! # Use
//!
//! A backend belongs to the thread that opened it (it isn't `Send`). Open it on the thread that
//! will drive it. The loop is:
//!
//! ```text
//! let mut backend = Backend::open(config)?;            // backend.describe() reports the form
//! loop {
//!     for io in &out {
//!         backend.push(io)?;                            // no system call; Full beyond the depth
//!         backend.hand_over()?;                         // one system call
//!     }
//!     if backend.arrived() == 0 {
//!         backend.submit_and_wait(1, Some(timeout_ns))?; // one system call: hand over, wait for ≥ 1
//!     }
//!     completions.clear();
//!     let seen_ns = backend.now_ns();
//!     backend.reap(1, seen_ns, &mut completions);       // no system call
//!     wait = workload.step(backend.now_ns(), &completions, &mut backend, &mut out);
//! }
//! ```
//!
//! - [`Backend`] implements the workload's trait [`Arena`]. `bytes` returns `None` if an operation
//!   in flight uses the range, or if the range is outside the arena.
//! - Times are nanoseconds of `CLOCK_MONOTONIC` ([`Backend::now_ns`] reads it cheaply). The backend
//!   reads `submitted_ns` just before the call that submits the operation, and `completed_ns` when
//!   it sees the completion.
//! - The backend continues short transfers and retries interrupted operations. A short count in a
//!   completion means the end of the file, and an `Err` contains a positive `errno`.
//!   [`Backend::failure`] converts a failed completion to an [`EngineError`] with path and offset.
//! - `submit_and_wait` may return before `min_complete` operations have completed: after the
//!   timeout, after a signal, or if a short transfer must be continued. Reap the completions that
//!   have arrived, and then call it again.
//! - A backend that is dropped waits up to a second for its operations in flight. It then leaks the
//!   memory of those that have not completed.

use std::path::{Path, PathBuf};

use plimsoll_sys::clock::Clock;
use plimsoll_sys::op::{OpKind, RingOp};
use plimsoll_workload::step::{Arena, Completion, Io, IoKind};

use crate::EngineError;
use crate::timer::Timer;

mod batch;
mod config;
mod name_op;
mod opening;
mod queue;
mod report;
mod spin;

pub(crate) use batch::Batch;
pub(crate) use opening::open;
pub(crate) use queue::bytes_of;

pub use config::{BackendConfig, Direct, FileSource, Names, Prefer};
pub use name_op::NameOp;
pub use queue::{AnyQueue, NullQueue, Queue};
pub use report::{BackendKind, BackendReport, FileReport};
pub use spin::{SPIN_NS_MAX, Spin, polling};

/// Interval at which [`Backend::settle`] reads the clock, in ns.
const SETTLE_TICK_NS: u64 = 100_000_000;
/// How long before the end of an idle wait the thread stops sleeping and begins to poll. On a
/// virtual machine, waking a thread on an idle CPU took 60 to 70 µs.
const WATCH_NS: u64 = 150_000;
/// Maximum number of completions that [`Backend::settle`] reaps in one step.
const SETTLED_MAX: usize = 64;

/// An operation that was pushed and has not completed.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    token: u64,
    submitted_ns: u64,
}

/// Queue with its open files and buffers. See the module documentation.
#[derive(Debug)]
pub struct Backend<Q = AnyQueue, T = Clock> {
    queue: Q,
    paths: Vec<PathBuf>,
    report: BackendReport,
    clock: T,
    in_flight: Box<[InFlight]>,
    free: Vec<u32>,
    /// Slots of the operations that were pushed after the last submission. The next submission sets
    /// the start time of these operations.
    fresh: Vec<u32>,
    spin: Spin,
}

impl Backend {
    /// Opens the files and creates the queue on the calling thread.
    ///
    /// # Errors
    /// [`EngineError`] with the path. A file can't be opened, created or grown, or memory for the
    /// arena is missing. The error can also mean that the plan requires direct I/O or io_uring,
    /// which is unavailable.
    pub fn open(config: BackendConfig) -> Result<Self, EngineError> {
        let spin = Spin::new(config.spin_ns);
        let (queue, paths, report) = open(config)?;
        Ok(Self { spin, ..Self::assemble(queue, paths, report, Clock::new()) })
    }
}

impl<Q: Queue, T: Timer> Backend<Q, T> {
    /// Creates a backend from the caller's queue and clock. Tests use it for targets with known
    /// service times.
    #[must_use]
    pub fn with_queue(queue: Q, clock: T) -> Self {
        let why = "the caller supplied its own queue";
        let report =
            BackendReport::without_files(BackendKind::Null, why, queue.capacity() as u32, 0);
        Self::assemble(queue, Vec::new(), report, clock)
    }

    fn assemble(queue: Q, paths: Vec<PathBuf>, report: BackendReport, clock: T) -> Self {
        let depth = queue.capacity();
        Self {
            queue,
            paths,
            report,
            clock,
            in_flight: vec![InFlight::default(); depth].into_boxed_slice(),
            free: (0..depth as u32).rev().collect(),
            fresh: Vec::with_capacity(depth),
            spin: Spin::default(),
        }
    }

    pub fn into_queue(self) -> Q {
        self.queue
    }

    /// Returns the report: the form of the backend, the reason for this form, and how each file was
    /// opened.
    #[must_use]
    pub fn describe(&self) -> &BackendReport {
        &self.report
    }

    /// Returns the paths of the files, in the order of the file table.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns the time of `CLOCK_MONOTONIC`, with a cheap reading.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    /// Returns the number of operations that were pushed and not yet reaped.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len() - self.free.len()
    }

    /// Returns the maximum number of operations that the backend can have in flight.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.in_flight.len()
    }

    /// Queues an I/O. Makes no system call.
    ///
    /// # Errors
    /// [`EngineError::Push`] if the queue is full, the range is outside the arena, or the file is
    /// unknown. In this case, the operation is not queued.
    #[inline]
    pub fn push(&mut self, io: &Io) -> Result<(), EngineError> {
        let slot = *self.free.last().ok_or(plimsoll_sys::op::PushError::Full)?;
        self.queue.push(&RingOp {
            kind: op_kind(io.kind),
            file: io.file,
            offset_bytes: io.offset_bytes,
            size_bytes: io.size_bytes,
            buffer_offset_bytes: io.buffer_offset_bytes,
            user_data: u64::from(slot),
        })?;
        self.free.pop();
        self.in_flight[slot as usize].token = io.token;
        self.fresh.push(slot);
        Ok(())
    }

    /// Submits all queued I/Os. Waits until `min_complete` operations complete or the timeout
    /// expires. It may return earlier: see the module documentation.
    ///
    /// # Errors
    /// [`EngineError::System`] if the queue itself fails. If only a single operation fails, this
    /// function succeeds, and the operation's completion contains the error.
    #[inline]
    pub fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), EngineError> {
        self.stamp();
        self.queue
            .submit_and_wait(min_complete, timeout_ns)
            .map_err(|source| EngineError::system("submitting operations", source))
    }

    /// Submits all queued I/Os and waits until an operation completes or the timeout expires. It
    /// polls before it sleeps ([`BackendConfig::spin_ns`]).
    ///
    /// # Errors
    /// Fails in the same cases as [`Backend::submit_and_wait`].
    #[inline]
    pub fn wait(&mut self, timeout_ns: u64) -> Result<(), EngineError> {
        self.stamp();
        self.spin
            .wait(&mut self.queue, &mut self.clock, Some(timeout_ns))
            .map_err(|source| EngineError::system("submitting operations", source))
    }

    /// Waits until `deadline_ns`; no operation is in flight. The thread sleeps until shortly before
    /// the deadline and then polls the clock, because a late wake-up would delay the next
    /// operation.
    ///
    /// # Errors
    /// Fails in the same cases as [`Backend::submit_and_wait`].
    pub fn wait_idle(&mut self, deadline_ns: u64) -> Result<(), EngineError> {
        let left_ns = deadline_ns.saturating_sub(self.clock.now_ns());
        if left_ns > WATCH_NS {
            self.wait(left_ns - WATCH_NS)?;
        }
        let watched_from_ns = self.clock.now_ns();
        self.clock.watch_until_ns(deadline_ns);
        self.spin.spun_ns += deadline_ns.saturating_sub(watched_from_ns);
        Ok(())
    }

    /// Returns the total time that waits have spent polling without receiving a completion, since
    /// the last call of this function. Resets this total.
    pub fn take_spun_ns(&mut self) -> u64 {
        std::mem::take(&mut self.spin.spun_ns)
    }

    /// Submits all queued I/Os without waiting.
    ///
    /// # Errors
    /// Fails in the same cases as [`Backend::submit_and_wait`].
    #[inline]
    pub fn hand_over(&mut self) -> Result<(), EngineError> {
        self.stamp();
        self.queue
            .hand_over()
            .map_err(|source| EngineError::system("submitting operations", source))
    }

    /// Sets the submission time of every queued operation to the current time.
    #[inline]
    fn stamp(&mut self) {
        if !self.fresh.is_empty() {
            let now_ns = self.clock.now_ns();
            for slot in self.fresh.drain(..) {
                self.in_flight[slot as usize].submitted_ns = now_ns;
            }
        }
    }

    /// Returns the number of operations that are queued and not yet submitted.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.fresh.len()
    }

    /// Returns how many completions are ready to be reaped. Makes no system call.
    #[inline]
    pub fn arrived(&mut self) -> usize {
        self.queue.arrived()
    }

    /// Appends up to `most` ready completions to `out`, in order of arrival, and returns their
    /// number. Sets the completion time of each of them to `completed_ns`. Makes no system call.
    #[inline]
    pub fn reap(&mut self, most: usize, completed_ns: u64, out: &mut Vec<Completion>) -> usize {
        let (in_flight, free) = (&self.in_flight, &mut self.free);
        let reaped = self.queue.reap(most, &mut |slot, result| {
            let InFlight { token, submitted_ns } = in_flight[slot as usize];
            free.push(slot as u32);
            out.push(Completion { token, result, submitted_ns, completed_ns });
        });
        self.spin.count_reaped(reaped, self.queue.in_flight());
        reaped
    }

    /// Waits up to `timeout_ns` for the operations in flight, and discards their completions.
    /// Returns how many operations are still in flight.
    pub fn settle(&mut self, timeout_ns: u64) -> usize {
        let until_ns = self.now_ns().saturating_add(timeout_ns);
        let mut out = Vec::new();
        while self.in_flight() > 0 && self.now_ns() < until_ns {
            if self.submit_and_wait(1, Some(SETTLE_TICK_NS)).is_err() {
                break;
            }
            let now_ns = self.now_ns();
            while self.arrived() > 0 {
                self.reap(SETTLED_MAX, now_ns, &mut out);
                out.clear();
            }
        }
        self.in_flight()
    }

    /// Returns an error if the operation failed, or if it transferred fewer bytes than `io`
    /// requested. Returns `None` if it succeeded.
    #[must_use]
    pub fn failure(&self, io: &Io, completion: &Completion) -> Option<EngineError> {
        let path =
            || self.paths.get(io.file as usize).map_or_else(PathBuf::new, |path| path.clone());
        let (offset_bytes, size_bytes) = (io.offset_bytes, io.size_bytes);
        let doing = match io.kind {
            IoKind::Read => "reading",
            IoKind::Write | IoKind::WriteDurable => "writing",
            IoKind::Flush => "flushing",
        };
        match completion.result {
            Err(errno) => Some(EngineError::Transfer { doing, path: path(), offset_bytes, errno }),
            Ok(moved_bytes) if io.kind != IoKind::Flush && moved_bytes < size_bytes => {
                let path = path();
                Some(EngineError::Short { doing, path, offset_bytes, size_bytes, moved_bytes })
            }
            Ok(_) => None,
        }
    }

    /// Returns the path of the file with this index in the file table.
    #[must_use]
    pub fn path(&self, file: u32) -> Option<&Path> {
        self.paths.get(file as usize).map(PathBuf::as_path)
    }
}

impl<Q: Queue, T: Timer> Arena for Backend<Q, T> {
    #[inline]
    fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        self.queue.bytes(offset_bytes, size_bytes)
    }
}

#[inline]
fn op_kind(kind: IoKind) -> OpKind {
    match kind {
        IoKind::Read => OpKind::Read,
        IoKind::Write => OpKind::Write,
        IoKind::WriteDurable => OpKind::WriteDurable,
        IoKind::Flush => OpKind::Flush,
    }
}

#[cfg(test)]
mod tests;
