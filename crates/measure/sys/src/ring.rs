//! Safe interface to an io_uring that owns its file table and its buffers.
//!
//! A ring belongs to one thread (it is not [`Send`]); the kernel's setup relies on this. The
//! submitting call itself runs completions (`DEFER_TASKRUN`). Files, buffers and the ring's own
//! descriptor are registered, so that operations need no look-up and no pinning of pages. If the
//! kernel or a limit refuses a feature, the ring works without it; [`Ring::report`] contains the
//! result. Memory that cannot be pinned (`RLIMIT_MEMLOCK`) reduces speed, but is never an error.
//!
//! Each operation uses one slot, one submission entry and one completion entry. Each batch needs
//! one system call.

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue, types};

use crate::SysError;
use crate::arena::AlignedBuffer;
use crate::flight::{CompletionAction, Flight};
use crate::op::{OpKind, PushError, RingOp};

mod setup;

pub use setup::{RingError, RingReport};

/// Time for which a dropped ring waits for its operations before it leaks their memory.
const DROP_WAIT_NS: u64 = 1_000_000_000;

/// Maximum size of one registered buffer. The kernel accepts up to 1 GiB.
const CHUNK_SHIFT: u32 = 30;

/// Maximum number of operations in flight in one ring. The kernel's limit is twice this number.
pub const ENTRIES_MAX: u32 = 16_384;

/// Configuration of a ring.
#[derive(Debug)]
pub struct RingConfig {
    /// Maximum number of operations in flight, at most [`ENTRIES_MAX`].
    pub entries: u32,
    /// File table, indexed by [`RingOp::file`].
    pub files: Vec<OwnedFd>,
    /// True for each file with direct I/O. For such a file, a transfer that stops inside a sector
    /// has reached the end of the file and is not continued. Files without an entry count as
    /// buffered.
    pub direct: Vec<bool>,
    pub arena: AlignedBuffer,
    /// True to poll the device for completions. Only some devices support polling, and flushes
    /// cannot be polled.
    pub poll_completions: bool,
    /// True to let a kernel thread fetch submissions. The thread occupies a core, and is slower if
    /// it shares this core.
    pub poll_submissions: bool,
}

impl RingConfig {
    /// Creates the default configuration for `entries` over `files` and `arena`.
    #[must_use]
    pub fn new(entries: u32, files: Vec<OwnedFd>, arena: AlignedBuffer) -> Self {
        let (poll_completions, poll_submissions) = (false, false);
        Self { entries, files, direct: Vec::new(), arena, poll_completions, poll_submissions }
    }
}

/// Timer in the ring that ends a wait periodically.
struct Tick {
    /// Interval of the timer. The kernel reads it when it consumes the entry, so it is boxed to
    /// have a stable address.
    every: Box<types::Timespec>,
}

/// User data of the timer's entry. No slot has this index.
const TICK: u64 = u64::MAX;

/// io_uring with its files and buffers. It belongs to the thread that created it.
pub struct Ring {
    ring: Option<IoUring>,
    flight: Flight,
    files: Vec<OwnedFd>,
    direct: Box<[bool]>,
    report: RingReport,
    /// Pushed entries that the kernel has not consumed yet.
    queued: u32,
    /// Offset in the arena. Operations on buffers below this offset use registered buffers.
    fixed_below_bytes: u64,
    fixed_files: bool,
    tick: Option<Tick>,
    _one_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("report", &self.report)
            .field("in_flight", &self.flight.in_flight())
            .finish_non_exhaustive()
    }
}

impl Ring {
    /// Sets up a ring for the calling thread.
    ///
    /// # Errors
    /// [`RingError`] if the kernel has no io_uring, forbids it or is too old. The configuration is
    /// returned with the error, so that the thread pool can use its files and arena.
    pub fn new(config: RingConfig) -> Result<Self, Box<(RingError, RingConfig)>> {
        let entries = config.entries.clamp(1, ENTRIES_MAX);
        let (mut ring, mut report) = match setup::build(&config, entries) {
            Ok(built) => built,
            Err(error) => return Err(Box::new((error, config))),
        };
        let RingConfig { files, mut direct, arena, .. } = config;
        direct.resize(files.len(), false);
        setup::register_ring_fd(&mut ring, &mut report);
        setup::register_files(&ring, &files, &mut report);
        let flight = Flight::new(arena, entries, files.len());
        setup::register_arena(&ring, flight.arena(), &mut report);
        Ok(Self {
            ring: Some(ring),
            flight,
            fixed_below_bytes: report.buffers_registered_bytes,
            fixed_files: report.files_registered,
            files,
            direct: direct.into_boxed_slice(),
            report,
            queued: 0,
            tick: None,
            _one_thread: PhantomData,
        })
    }

    /// Features that the ring uses.
    #[must_use]
    pub fn report(&self) -> &RingReport {
        &self.report
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

    /// Limits each wait after the next submission to `every_ns`. The timer in the ring adds no cost
    /// to a wait, unlike a timeout argument. It can be set only once.
    pub fn tick_every(&mut self, every_ns: u64) {
        if self.tick.is_some() || self.report.poll_completions {
            return;
        }
        let every = types::Timespec::new()
            .sec(every_ns / 1_000_000_000)
            .nsec((every_ns % 1_000_000_000) as u32);
        let tick = Tick { every: Box::new(every) };
        if let Some(ring) = &mut self.ring {
            self.queued += u32::from(arm(&tick, &mut ring.submission()));
        }
        self.tick = Some(tick);
    }

    /// Queues an operation without a system call.
    ///
    /// # Errors
    /// [`PushError`]. The operation was not queued.
    #[inline]
    pub fn push(&mut self, op: &RingOp) -> Result<(), PushError> {
        let index = self.flight.begin(op)?;
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let entry =
            entry(&self.flight, index, &self.files, self.fixed_files, self.fixed_below_bytes);
        // SAFETY: the entry's buffer is in the arena, which outlives the operation: `Drop` waits
        // for it or leaks the arena. `flight` returns none of its pages until it has completed. The
        // queue has as many entries as `flight` has slots, so it is not full.
        let pushed = unsafe { ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "a slot was free, so an entry is");
        self.queued += 1;
        Ok(())
    }

    /// In one system call, submits all queued entries to the kernel and waits until `min_complete`
    /// completions can be reaped, the timeout expires or a signal arrives.
    ///
    /// # Errors
    /// The `errno` of `io_uring_enter`, except codes that mean "reap, then call again".
    #[inline]
    pub fn submit_and_wait(
        &mut self,
        min_complete: u32,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let may_come = self.flight.in_flight() as u32 + u32::from(self.tick.is_some());
        // If nothing can complete, only the timeout ends the wait. A ring with a polling submission
        // thread has no timeout.
        let has_timeout = timeout_ns.is_some() && !self.report.poll_submissions;
        let min_complete = if has_timeout { min_complete } else { min_complete.min(may_come) };
        let is_idle = min_complete == 0 && self.queued == 0;
        let RingReport { defer_taskrun, poll_completions, .. } = self.report;
        if is_idle && defer_taskrun && !poll_completions && !ring.submission().taskrun() {
            // There are no entries to submit, and no completions to fetch.
            return Ok(());
        }
        let submitter = ring.submitter();
        let answer = match timeout_ns {
            _ if self.report.poll_submissions => submitter.submit_and_wait(min_complete as usize),
            Some(timeout_ns) if min_complete > 0 => {
                let timeout = types::Timespec::new()
                    .sec(timeout_ns / 1_000_000_000)
                    .nsec((timeout_ns % 1_000_000_000) as u32);
                let args = types::SubmitArgs::new().timespec(&timeout);
                submitter.submit_with_args(min_complete as usize, &args)
            }
            // GETEVENTS is always set, because with deferred task work no operation completes
            // without it. SAFETY: `push` queued the entries, and their buffers live longer than the
            // entries; there is no argument block.
            _ => unsafe {
                submitter.enter::<libc::sigset_t>(self.queued, min_complete, ENTER_GETEVENTS, None)
            },
        };
        match answer {
            Ok(taken) => {
                self.queued = self.queued.saturating_sub(taken as u32);
                Ok(())
            }
            Err(error) => self.after_failed_enter(&error),
        }
    }

    #[cold]
    fn after_failed_enter(&mut self, error: &std::io::Error) -> Result<(), SysError> {
        // Entries that the kernel consumed before it failed are no longer in the queue: count the
        // remaining ones.
        if let Some(ring) = &mut self.ring {
            self.queued = ring.submission().len() as u32;
        }
        match error.raw_os_error() {
            // ETIME: the timeout passed. EINTR: a signal. EBUSY, EAGAIN: reap, then call again.
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(SysError::from_io("io_uring_enter", error)),
        }
    }

    /// Returns the number of completions that the kernel has posted and [`Ring::reap`] has not
    /// returned yet. Makes no system call.
    #[inline]
    pub fn arrived(&mut self) -> usize {
        self.ring.as_mut().map_or(0, |ring| ring.completion().len())
    }

    /// Removes up to `most` entries from the completion queue without a system call. For each
    /// operation that completed, calls `each` with its user data and its bytes or `errno`, in order
    /// of completion. Short transfers are queued again for their remaining bytes, and interrupted
    /// transfers are queued again for a retry. Their entries and the timer's entries also count
    /// towards `most`. Returns the number of calls of `each`.
    #[inline]
    pub fn reap(&mut self, most: usize, each: &mut impl FnMut(u64, Result<u32, i32>)) -> usize {
        let Some(ring) = &mut self.ring else { return 0 };
        let (_, mut submissions, mut completions) = ring.split();
        let mut ended = 0;
        for completion in completions.by_ref().take(most) {
            if completion.user_data() == TICK {
                if let Some(tick) = &self.tick {
                    self.queued += u32::from(arm(tick, &mut submissions));
                }
                continue;
            }
            let index = completion.user_data() as u32;
            let Some(slot) = self.flight.slot(index) else { continue };
            let direct = self.direct.get(slot.op.file as usize).copied().unwrap_or(false);
            match self.flight.settle(index, completion.result(), direct) {
                CompletionAction::Done { user_data, result } => {
                    ended += 1;
                    each(user_data, result);
                }
                CompletionAction::Again => {
                    let (fixed, below) = (self.fixed_files, self.fixed_below_bytes);
                    let entry = entry(&self.flight, index, &self.files, fixed, below);
                    // SAFETY: as in `push`; the slot is the same, so an entry is free.
                    let pushed = unsafe { submissions.push(&entry) };
                    debug_assert!(pushed.is_ok(), "the slot had an entry");
                    self.queued += 1;
                }
            }
        }
        ended
    }

    /// Returns the bytes of a range of the arena; `None` if the range is outside the arena, or an
    /// operation in flight uses a page of it.
    #[inline]
    pub fn bytes(&mut self, offset_bytes: u64, size_bytes: u32) -> Option<&mut [u8]> {
        self.flight.bytes(offset_bytes, size_bytes)
    }
}

const ENTER_GETEVENTS: u32 = 1;

/// Queues the timer. Returns false if the queue had no space.
#[cold]
fn arm(tick: &Tick, submissions: &mut squeue::SubmissionQueue<'_>) -> bool {
    let entry = opcode::Timeout::new(&raw const *tick.every).build().user_data(TICK);
    // SAFETY: the timespec is boxed in the ring's `tick`, which is never replaced and lives until
    // the ring is closed. The kernel only reads it.
    unsafe { submissions.push(&entry) }.is_ok()
}

/// Returns the submission entry for the remaining part of a slot's operation.
#[inline(always)]
fn entry(
    flight: &Flight,
    index: u32,
    files: &[OwnedFd],
    fixed_files: bool,
    fixed_below_bytes: u64,
) -> squeue::Entry {
    let Some(slot) = flight.slot(index) else { return opcode::Nop::new().build() };
    let op = &slot.op;
    let (fd, flags) = if fixed_files {
        (op.file as i32, squeue::Flags::FIXED_FILE)
    } else {
        (files.get(op.file as usize).map_or(-1, AsRawFd::as_raw_fd), squeue::Flags::empty())
    };
    let entry = build(flight, slot, types::Fd(fd), fixed_below_bytes).user_data(u64::from(index));
    if op.kind == OpKind::Nop { entry } else { entry.flags(flags) }
}

#[inline(always)]
fn build(
    flight: &Flight,
    slot: &crate::flight::Slot,
    fd: types::Fd,
    fixed_below_bytes: u64,
) -> squeue::Entry {
    let op = &slot.op;
    let address = flight.address(slot);
    let size = op.size_bytes - slot.done_bytes;
    let offset = op.offset_bytes + u64::from(slot.done_bytes);
    let end_bytes = op.buffer_offset_bytes + u64::from(op.size_bytes);
    let chunk = (op.buffer_offset_bytes >> CHUNK_SHIFT) as u16;
    let fixed = end_bytes <= fixed_below_bytes
        && (end_bytes.wrapping_sub(1) >> CHUNK_SHIFT) as u16 == chunk;
    let flags = if op.kind == OpKind::WriteDurable { libc::RWF_DSYNC } else { 0 };
    match op.kind {
        OpKind::Read if fixed => {
            opcode::ReadFixed::new(fd, address, size, chunk).offset(offset).build()
        }
        OpKind::Read => opcode::Read::new(fd, address, size).offset(offset).build(),
        OpKind::Write | OpKind::WriteDurable if fixed => {
            opcode::WriteFixed::new(fd, address, size, chunk).offset(offset).rw_flags(flags).build()
        }
        OpKind::Write | OpKind::WriteDurable => {
            opcode::Write::new(fd, address, size).offset(offset).rw_flags(flags).build()
        }
        OpKind::Flush => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
        OpKind::Sync => opcode::Fsync::new(fd).build(),
        OpKind::Nop => opcode::Nop::new().build(),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let deadline_ns = crate::clock::monotonic_ns() + DROP_WAIT_NS;
        while self.flight.in_flight() > 0 && crate::clock::monotonic_ns() < deadline_ns {
            if self.submit_and_wait(1, Some(100_000_000)).is_err() {
                break;
            }
            self.reap(usize::MAX, &mut |_, _| ());
        }
        if self.flight.in_flight() > 0 {
            // The kernel may still write to these buffers, so they must never be unmapped.
            std::mem::forget(Arc::clone(self.flight.arena()));
        }
        drop(self.ring.take());
    }
}

#[cfg(test)]
mod tests;
