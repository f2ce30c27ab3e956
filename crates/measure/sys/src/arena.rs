//! Page-aligned anonymous memory for I/O buffers.
//!
//! Direct I/O needs buffers aligned to the device's block size, and registered buffers need whole
//! pages. Huge pages make pinning and address translation cheaper. One anonymous mapping meets
//! these three requirements.

use core::ptr::NonNull;

use crate::SysError;

/// Alignment of every arena. The ring tracks buffers in flight in units of this size.
pub const PAGE_BYTES: usize = 4096;

/// Minimum size for which huge pages are advised: one huge page of 2 MiB (x86-64 or aarch64).
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Owned, zeroed and page-aligned anonymous memory.
#[derive(Debug)]
pub struct AlignedBuffer {
    base: NonNull<u8>,
    len_bytes: usize,
    mapped_bytes: usize,
    huge_advised: bool,
}

// SAFETY: only this value owns the mapping, which has no thread affinity.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared references permit only reading; writing requires `&mut`.
unsafe impl Sync for AlignedBuffer {}

/// Creates a private anonymous mapping of zeroes. A page uses no memory until it is written to.
///
/// # Errors
/// Fails if the system refuses the mapping, for example with `ENOMEM`.
pub(crate) fn map_anonymous(len_bytes: usize) -> Result<NonNull<u8>, SysError> {
    // SAFETY: a new anonymous private mapping affects no existing memory.
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
    /// Maps `len_bytes` (at least one page), and advises huge pages if the mapping is large enough.
    ///
    /// # Errors
    /// `ENOMEM` if the system refuses the mapping.
    pub fn new(len_bytes: usize) -> Result<Self, SysError> {
        let huge = len_bytes >= HUGE_PAGE_BYTES;
        let granule = if huge { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let mapped_bytes = len_bytes
            .max(1)
            .checked_next_multiple_of(granule)
            .ok_or(SysError::new("mmap", libc::ENOMEM))?;
        let base = map_anonymous(mapped_bytes)?;
        // SAFETY: the range is the mapping that `map_anonymous` returned; advice never changes its
        // content.
        let huge_advised = huge
            && unsafe { libc::madvise(base.as_ptr().cast(), mapped_bytes, libc::MADV_HUGEPAGE) }
                == 0;
        Ok(Self { base, len_bytes, mapped_bytes, huge_advised })
    }

    /// Requested length in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// True if the kernel accepted the huge page advice.
    #[must_use]
    pub fn is_huge_advised(&self) -> bool {
        self.huge_advised
    }

    /// Touches every page, so that no measured operation causes a page fault. Returns false if the
    /// kernel does not support this (`MADV_POPULATE_WRITE`, Linux 5.14); a page fault then occurs
    /// at the first use of each page.
    pub fn populate(&mut self) -> bool {
        // SAFETY: the range is this mapping; populating writable anonymous pages preserves their
        // content.
        unsafe {
            libc::madvise(self.base.as_ptr().cast(), self.mapped_bytes, libc::MADV_POPULATE_WRITE)
                == 0
        }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zero-initialised and lives as long as `self`.
        unsafe { core::slice::from_raw_parts(self.base.as_ptr(), self.len_bytes) }
    }

    /// Returns the bytes for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access unique.
        unsafe { core::slice::from_raw_parts_mut(self.base.as_ptr(), self.len_bytes) }
    }

    /// Start of the mapping.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `new` created the mapping with this address and length; it is unmapped once.
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
