//! Page-aligned anonymous memory for I/O buffers.
//!
//! Direct I/O wants buffers aligned to the device's block, registered buffers want whole pages, and
//! large pages make pinning and address translation cheaper: one anonymous mapping serves all three.

use core::ptr::NonNull;

use crate::SysError;

/// Alignment of every arena and the granule in which the ring tracks buffers in flight.
pub const PAGE_BYTES: usize = 4096;

/// Size from which huge pages are advised (one x86-64 or aarch64 huge page of 2 MiB).
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed anonymous memory, page aligned, owned.
#[derive(Debug)]
pub struct AlignedBuffer {
    base: NonNull<u8>,
    len_bytes: usize,
    mapped_bytes: usize,
    huge_advised: bool,
}

// SAFETY: the mapping is owned by this value alone and has no thread affinity.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads; writing needs `&mut`.
unsafe impl Sync for AlignedBuffer {}

/// A new private mapping of no file, full of zeros, at an address of the kernel's choice. It takes memory where it
/// is written to.
///
/// # Errors
/// Where the system refuses it, such as `ENOMEM`.
pub(crate) fn map_anonymous(len_bytes: usize) -> Result<NonNull<u8>, SysError> {
    // SAFETY: a fresh anonymous private mapping touches nothing that exists.
    let base = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            len_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(SysError::last("mmap"));
    }
    NonNull::new(base.cast::<u8>()).ok_or(SysError::new("mmap", libc::ENOMEM))
}

impl AlignedBuffer {
    /// Maps `len_bytes` (at least one page is mapped), and advises huge pages where it is large
    /// enough to hold one.
    ///
    /// # Errors
    /// `ENOMEM` where the system refuses the mapping.
    pub fn new(len_bytes: usize) -> Result<Self, SysError> {
        let huge = len_bytes >= HUGE_PAGE_BYTES;
        let granule = if huge { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let mapped_bytes = len_bytes
            .max(1)
            .checked_next_multiple_of(granule)
            .ok_or(SysError::new("mmap", libc::ENOMEM))?;
        let base = map_anonymous(mapped_bytes)?;
        // SAFETY: the range is the mapping made above; advice never changes its content.
        let huge_advised = huge
            && unsafe { libc::madvise(base.as_ptr().cast(), mapped_bytes, libc::MADV_HUGEPAGE) }
                == 0;
        Ok(Self { base, len_bytes, mapped_bytes, huge_advised })
    }

    /// Length in bytes, as asked for.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Whether the kernel took the huge-page advice.
    #[must_use]
    pub fn is_huge_advised(&self) -> bool {
        self.huge_advised
    }

    /// Faults every page in now, so that no measured operation pays for it. Returns whether the
    /// kernel could (`MADV_POPULATE_WRITE`, Linux 5.14); without it the pages come on first use.
    pub fn populate(&mut self) -> bool {
        // SAFETY: the range is this mapping; populating writable anonymous pages keeps content.
        unsafe {
            libc::madvise(self.base.as_ptr().cast(), self.mapped_bytes, libc::MADV_POPULATE_WRITE)
                == 0
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zero-initialised and lives as long as `self`.
        unsafe { core::slice::from_raw_parts(self.base.as_ptr(), self.len_bytes) }
    }

    /// The bytes, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as `as_slice`, and `&mut self` makes the access unique.
        unsafe { core::slice::from_raw_parts_mut(self.base.as_ptr(), self.len_bytes) }
    }

    /// Start of the mapping.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this address and length and is unmapped once.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_zeroed_and_writable() {
        let mut buffer = AlignedBuffer::new(3 * PAGE_BYTES + 5).unwrap();
        assert_eq!(buffer.as_slice().as_ptr() as usize % PAGE_BYTES, 0);
        assert_eq!(buffer.as_slice().len(), 3 * PAGE_BYTES + 5);
        assert!(buffer.as_slice().iter().all(|byte| *byte == 0));
        buffer.as_mut_slice()[PAGE_BYTES] = 7;
        assert_eq!(buffer.as_slice()[PAGE_BYTES], 7);
    }

    #[test]
    fn empty_and_absurd_sizes_do_not_panic() {
        assert_eq!(AlignedBuffer::new(0).unwrap().as_slice().len(), 0);
        assert_eq!(AlignedBuffer::new(usize::MAX).unwrap_err().errno, libc::ENOMEM);
    }

    #[test]
    fn populate_keeps_content() {
        let mut buffer = AlignedBuffer::new(HUGE_PAGE_BYTES).unwrap();
        buffer.as_mut_slice()[HUGE_PAGE_BYTES - 1] = 9;
        buffer.populate();
        assert_eq!(buffer.as_slice()[HUGE_PAGE_BYTES - 1], 9);
    }
}
