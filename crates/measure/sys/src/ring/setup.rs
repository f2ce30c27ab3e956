//! Setup of a ring with the features that the kernel and the limits permit.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::IoUring;

use super::{CHUNK_SHIFT, RingConfig};
use crate::SysError;
use crate::arena::{AlignedBuffer, PAGE_BYTES};

/// Reason why no ring was created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The kernel has no io_uring (`ENOSYS`), or a seccomp filter returns this error.
    #[error("the kernel has no io_uring")]
    Missing,
    /// io_uring is disabled for this process: `kernel.io_uring_disabled` or a seccomp filter.
    #[error("io_uring is forbidden here (kernel.io_uring_disabled or a seccomp filter)")]
    Forbidden,
    /// The kernel is older than Linux 5.11: it does not support waits with a timeout, or may lose
    /// completions.
    #[error("the io_uring of this kernel is too old: Linux 5.11 or later is required")]
    TooOld,
    /// Another failure.
    #[error(transparent)]
    Setup(#[from] SysError),
}

/// Features that a ring uses, and the reasons for features that it does not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingReport {
    /// Number of entries of the submission queue.
    pub entries: u32,
    /// True if the kernel knows that a single thread submits.
    pub single_issuer: bool,
    /// True if the submitting call runs completions.
    pub defer_taskrun: bool,
    /// True if the submission queue has no index array.
    pub no_sqarray: bool,
    /// True if the device is polled for completions.
    pub poll_completions: bool,
    /// True if a kernel thread fetches submissions.
    pub poll_submissions: bool,
    /// `errno` of the first refused setup, if a setup with fewer features was used.
    pub setup_refused_errno: Option<i32>,
    /// True if the ring's descriptor is registered.
    pub ring_fd_registered: bool,
    /// True if the file table is registered.
    pub files_registered: bool,
    /// `errno` if the file table is not registered.
    pub files_refused_errno: Option<i32>,
    /// Number of registered bytes, from the start of the arena.
    pub buffers_registered_bytes: u64,
    /// If only a part of the arena is registered: `errno` of the first refusal (`ENOMEM`:
    /// `RLIMIT_MEMLOCK`).
    pub buffers_refused_errno: Option<i32>,
}

/// Setups, sorted from the most features to the fewest features. The kernel returns `EINVAL` for
/// unknown flags.
const LADDER: [(bool, bool, bool); 4] = [
    // (single issuer, deferred task work, no index array)
    (true, true, true),    // Linux 6.6
    (true, true, false),   // Linux 6.1
    (true, false, false),  // Linux 6.0
    (false, false, false), // Linux 5.11
];

pub(super) fn build(config: &RingConfig, entries: u32) -> Result<(IoUring, RingReport), RingError> {
    let mut refused = None;
    for (single_issuer, defer_taskrun, no_sqarray) in LADDER {
        // A polling kernel thread runs the task work itself.
        let defer_taskrun = defer_taskrun && !config.poll_submissions;
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize((entries + 1).next_power_of_two() * 2);
        builder.setup_submit_all();
        if single_issuer {
            builder.setup_single_issuer();
        }
        if defer_taskrun {
            // The flag shows without a system call whether completions are waiting.
            builder.setup_defer_taskrun().setup_taskrun_flag();
        }
        if no_sqarray {
            builder.setup_no_sqarray();
        }
        if config.poll_completions {
            builder.setup_iopoll();
        }
        if config.poll_submissions {
            builder.setup_sqpoll(100);
        }
        // The timer needs one entry in addition to the entries of the operations.
        match builder.build(entries + 1) {
            Ok(ring)
                if !(ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop()) =>
            {
                return Err(RingError::TooOld);
            }
            Ok(ring) => {
                let report = RingReport {
                    entries: ring.params().sq_entries(),
                    single_issuer,
                    defer_taskrun,
                    no_sqarray,
                    poll_completions: config.poll_completions,
                    poll_submissions: config.poll_submissions,
                    setup_refused_errno: refused,
                    ..RingReport::default()
                };
                return Ok((ring, report));
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOSYS) => return Err(RingError::Missing),
                Some(libc::EPERM | libc::EACCES) => return Err(RingError::Forbidden),
                Some(libc::EINVAL) => refused = refused.or(Some(libc::EINVAL)),
                _ => return Err(SysError::from_io("io_uring_setup", &error).into()),
            },
        }
    }
    Err(SysError::new("io_uring_setup", libc::EINVAL).into())
}

pub(super) fn register_ring_fd(ring: &mut IoUring, report: &mut RingReport) {
    report.ring_fd_registered = ring.submitter().register_ring_fd().is_ok();
}

pub(super) fn register_files(ring: &IoUring, files: &[OwnedFd], report: &mut RingReport) {
    if files.is_empty() {
        return;
    }
    let raw: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
    match ring.submitter().register_files(&raw) {
        Ok(()) => report.files_registered = true,
        Err(error) => report.files_refused_errno = error.raw_os_error(),
    }
}

/// Registers the arena. If it cannot be pinned completely, registers only its beginning: halves the
/// size until the kernel accepts it.
pub(super) fn register_arena(ring: &IoUring, arena: &AlignedBuffer, report: &mut RingReport) {
    let mut len = arena.len_bytes().next_multiple_of(PAGE_BYTES);
    if arena.len_bytes() == 0 {
        return;
    }
    while len >= PAGE_BYTES {
        let buffers: Vec<libc::iovec> = (0..len)
            .step_by(1 << CHUNK_SHIFT)
            .map(|start| libc::iovec {
                iov_base: arena.base().as_ptr().wrapping_add(start).cast(),
                iov_len: (len - start).min(1 << CHUNK_SHIFT),
            })
            .collect();
        // SAFETY: the buffers are in the arena's mapping, which has whole pages and outlives the
        // ring: `Drop` of `Ring` closes the ring before it drops the arena.
        match unsafe { ring.submitter().register_buffers(&buffers) } {
            Ok(()) => {
                report.buffers_registered_bytes = len.min(arena.len_bytes()) as u64;
                return;
            }
            Err(error) => {
                report.buffers_refused_errno =
                    report.buffers_refused_errno.or(error.raw_os_error());
            }
        }
        len = (len / 2).next_multiple_of(PAGE_BYTES);
        if len == PAGE_BYTES && arena.len_bytes() > PAGE_BYTES {
            return;
        }
    }
}
