//! Large tables: vectors of plain values with random access.
//!
//! Most of the cost of a random access is the page walk, especially under nested virtualisation.
//! Tables of at least [`MAPPED_BYTES`] therefore use their own mappings, which begin at a huge page
//! boundary (2 MiB) and request huge pages (`madvise(2)`, `MADV_HUGEPAGE`). These mappings made a
//! two-hour model run of a mail store 10 % faster. A table that is filled in order uses small pages
//! at its end. The first access to memory is also expensive: the host needs 3 to 4 ms per MiB to
//! find and zero it. Without huge pages in the kernel, tables work but are slower. Smaller tables
//! are on the heap.

use core::alloc::Layout;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::arena::{HUGE_PAGE_BYTES, map_anonymous};

/// Tables of at least this size are mapped.
pub const MAPPED_BYTES: usize = 512 << 10;

/// Mappings are a multiple of this size. It consists of whole pages for any base page size.
const PIECE_BYTES: usize = 64 << 10;

/// Vector of plain values.
pub struct Large<T: Copy> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
    is_mapped: bool,
}

// SAFETY: the table owns its memory and returns references like a vector.
unsafe impl<T: Copy + Send> Send for Large<T> {}
// SAFETY: the table owns its memory and returns references like a vector.
unsafe impl<T: Copy + Sync> Sync for Large<T> {}

/// Number types whose value zero has only zero bits, so that a table of zeroes needs no writes.
pub trait Zero: Copy + sealed::Zero {}
impl Zero for u16 {}
impl Zero for u32 {}
impl Zero for u64 {}

mod sealed {
    pub trait Zero {}
    impl Zero for u16 {}
    impl Zero for u32 {}
    impl Zero for u64 {}
}

impl<T: Copy> Large<T> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= HUGE_PAGE_BYTES) };
        Self { start: NonNull::dangling(), len: 0, capacity: 0, is_mapped: false }
    }

    /// Creates a table with `len` copies of `value`.
    #[must_use]
    pub fn filled(value: T, len: usize) -> Self {
        let mut table = Self::new();
        table.resize(len, value);
        table
    }

    /// Creates a table of `len` zeroes. In a mapped table, they use no memory until they are
    /// written to.
    #[must_use]
    pub fn zeros(len: usize) -> Self
    where
        T: Zero,
    {
        Self::zeros_in(len, libc::MADV_HUGEPAGE)
    }

    /// Like [`Self::zeros`], but with small pages, for a table of which only a small part is used.
    #[must_use]
    pub fn sparse_zeros(len: usize) -> Self
    where
        T: Zero,
    {
        Self::zeros_in(len, libc::MADV_NOHUGEPAGE)
    }

    fn zeros_in(len: usize, advice: libc::c_int) -> Self
    where
        T: Zero,
    {
        let mut table = Self::with_room(len, PIECE_BYTES, advice);
        // SAFETY: there is space for `len` values, and zero bytes are a valid T. A mapping is all
        // zeroes.
        unsafe {
            if !table.is_mapped {
                table.start.write_bytes(0, len);
            }
        }
        table.len = len;
        table
    }

    /// Extends the table to at least `len` values with zeroes. In a mapped table, they use no
    /// memory until they are written to. These mappings consist of whole huge pages, because tables
    /// with random writes grow often: each time, small pages would be allocated, zeroed and copied
    /// again.
    pub fn widen(&mut self, len: usize)
    where
        T: Zero,
    {
        if len <= self.len {
            return;
        }
        if len <= self.capacity {
            // SAFETY: there is space for `len` values, and zero bytes are a valid T.
            unsafe { self.start.add(self.len).write_bytes(0, len - self.len) };
            self.len = len;
            return;
        }
        self.grow_in(len, HUGE_PAGE_BYTES);
        if self.is_mapped {
            // A new mapping is all zeroes up to its end.
            self.len = self.capacity;
        } else {
            self.widen(len);
        }
    }

    /// Number of values that fit without moving the table.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len == self.capacity {
            self.grow(self.len + 1);
        }
        // SAFETY: there is space for one more value.
        unsafe { self.start.add(self.len).write(value) };
        self.len += 1;
    }

    /// Truncates the table to `len` values, or extends it with copies of `value`.
    pub fn resize(&mut self, len: usize, value: T) {
        if len > self.capacity {
            self.grow(len);
        }
        for at in self.len..len {
            // SAFETY: there is space for `len` values.
            unsafe { self.start.add(at).write(value) };
        }
        self.len = len;
    }

    /// Increases the capacity by half, and to at least `needed`.
    #[cold]
    fn grow(&mut self, needed: usize) {
        self.grow_in(needed, PIECE_BYTES);
    }

    /// Like [`Self::grow`], but mappings are multiples of `piece_bytes`.
    fn grow_in(&mut self, needed: usize, piece_bytes: usize) {
        let room = needed.max(self.capacity + self.capacity / 2);
        let mut grown = Self::with_room(room, piece_bytes, libc::MADV_HUGEPAGE);
        // SAFETY: two separate allocations with space for `len` values each; the source has that
        // many.
        unsafe { grown.start.copy_from_nonoverlapping(self.start, self.len) };
        grown.len = self.len;
        *self = grown;
    }

    /// Creates an empty table with a capacity of at least `capacity`, mapped in whole pieces if it
    /// is large.
    fn with_room(capacity: usize, piece_bytes: usize, advice: libc::c_int) -> Self {
        let mut table = Self::new();
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes >= MAPPED_BYTES
            && let Some((start, bytes)) = map(bytes, piece_bytes, advice)
        {
            (table.start, table.capacity) = (start.cast(), bytes / size_of::<T>());
            table.is_mapped = true;
        } else if bytes > 0 {
            let layout = Self::layout(capacity);
            // SAFETY: the layout is not empty.
            let start = unsafe { std::alloc::alloc(layout) };
            match NonNull::new(start.cast()) {
                Some(start) => (table.start, table.capacity) = (start, capacity),
                None => std::alloc::handle_alloc_error(layout),
            }
        }
        table
    }

    /// Returns the heap layout of `capacity` values.
    fn layout(capacity: usize) -> Layout {
        match Layout::array::<T>(capacity) {
            Ok(layout) => layout,
            // The size exceeds the address space: panics like a vector.
            Err(_) => panic!("capacity overflow"),
        }
    }

    /// Returns the size of the mapping in bytes.
    fn mapped_bytes(&self) -> usize {
        (self.capacity * size_of::<T>()).next_multiple_of(PIECE_BYTES)
    }
}

/// Maps at least `bytes` bytes in whole pieces, starting at a huge page boundary. `None` if the
/// kernel refuses.
fn map(bytes: usize, piece_bytes: usize, advice: libc::c_int) -> Option<(NonNull<u8>, usize)> {
    let bytes = bytes.checked_next_multiple_of(piece_bytes)?;
    let all = bytes.checked_add(HUGE_PAGE_BYTES)?;
    let base = map_anonymous(all).ok()?.as_ptr();
    let before = base.align_offset(HUGE_PAGE_BYTES);
    let after = HUGE_PAGE_BYTES - before;
    // SAFETY: the parts before and after the requested range are inside the new mapping, and
    // nothing else uses them. The advice does not change content or protection.
    unsafe {
        let start = base.add(before);
        if before > 0 {
            libc::munmap(base.cast(), before);
        }
        if after > 0 {
            libc::munmap(start.add(bytes).cast(), after);
        }
        libc::madvise(start.cast(), bytes, advice);
        NonNull::new(start).map(|start| (start, bytes))
    }
}

impl<T: Copy> Drop for Large<T> {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: the complete mapping that `map` created.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped_bytes()) };
        } else if self.capacity > 0 {
            let layout = Self::layout(self.capacity);
            // SAFETY: allocated with this layout.
            unsafe { std::alloc::dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl<T: Copy> Deref for Large<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values are initialised, and the table owns them.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Large<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` values are initialised, the table owns them, and `self` is
        // borrowed uniquely.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Default for Large<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Clone for Large<T> {
    fn clone(&self) -> Self {
        let mut table = Self::with_room(self.len, PIECE_BYTES, libc::MADV_HUGEPAGE);
        // SAFETY: two separate allocations with space for `len` values each; the source has that
        // many.
        unsafe { table.start.copy_from_nonoverlapping(self.start, self.len) };
        table.len = self.len;
        table
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Large<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_any_size_keep_their_values() {
        for len in [0, 1, 1000, MAPPED_BYTES / 8 - 1, MAPPED_BYTES / 8, 1 << 20] {
            let table = Large::filled(7u64, len);
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|value| *value == 7));
            let copy = table.clone();
            drop(table);
            assert!(copy.len() == len && copy.iter().all(|value| *value == 7));
            for zeros in [Large::<u16>::zeros(len), Large::sparse_zeros(len)] {
                assert!(zeros.len() == len && zeros.iter().all(|value| *value == 0));
            }
        }
        assert_eq!(format!("{:?}", Large::filled(3u8, 2)), "[3, 3]");
    }

    #[test]
    fn large_tables_begin_at_a_huge_page_with_little_excess() {
        let mut table = Large::filled([0u64; 3], MAPPED_BYTES / 24 + 1);
        assert!(table.is_mapped);
        assert_eq!(table.as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        assert_eq!(table.capacity(), (MAPPED_BYTES + PIECE_BYTES) / 24);
        assert_eq!(table.mapped_bytes(), MAPPED_BYTES + PIECE_BYTES);
        table.resize(HUGE_PAGE_BYTES / 24 + 1, [1; 3]);
        assert_eq!(table.mapped_bytes(), HUGE_PAGE_BYTES + PIECE_BYTES);
        assert_eq!(table.as_ptr() as usize % HUGE_PAGE_BYTES, 0);
        assert_eq!((table[0], table[HUGE_PAGE_BYTES / 24]), ([0; 3], [1; 3]));
        assert!(!Large::filled(0u8, MAPPED_BYTES - 1).is_mapped);
    }

    #[test]
    fn a_table_keeps_its_values_when_it_grows() {
        let mut table = Large::new();
        for value in 0..1_000_000u32 {
            table.push(value);
        }
        assert!(table.iter().copied().eq(0..1_000_000));
        table[7] = 1;
        table.resize(8, 0);
        assert_eq!(*table, [0, 1, 2, 3, 4, 5, 6, 1]);
        table.resize(10, 9);
        assert_eq!(table[8..], [9, 9]);
    }

    #[test]
    fn a_table_is_widened_with_zeros() {
        let mut table = Large::<u32>::new();
        for len in
            [1, 3, 100, 99, MAPPED_BYTES / 4, MAPPED_BYTES, 4 * MAPPED_BYTES, 6 * MAPPED_BYTES + 1]
        {
            let before = table.len();
            table.widen(len);
            assert!(table.len() >= len && table[before.min(table.len())..].iter().all(|v| *v == 0));
            assert!(table[..before].iter().all(|value| *value == 7));
            table.iter_mut().for_each(|value| *value = 7);
        }
        assert!(table.is_mapped);
        assert_eq!(table.mapped_bytes() % HUGE_PAGE_BYTES, 0);
    }

    #[test]
    fn panics_like_a_vector_beyond_the_address_space() {
        let refused = std::panic::catch_unwind(|| Large::<u64>::filled(0, usize::MAX / 4));
        assert!(refused.is_err());
    }
}
