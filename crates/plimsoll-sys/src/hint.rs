//! Hints about memory: what will be needed soon, and what is worth large pages. They change when
//! things happen and never what happens.

/// Asks the processor to bring the cache line of a value near. Does nothing where it can't.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing into the program and never faults; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Size of a large page on the platforms that have the advice below.
const HUGE_BYTES: usize = 2 << 20;

/// A vector of `len` times `value` whose memory the kernel is asked to make of large pages
/// (`MADV_HUGEPAGE`): for tables of many megabytes that are looked up at random, where most of a look-up
/// is otherwise the walk to the page.
#[must_use]
pub fn table<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(len);
    advise(table.spare_capacity_mut());
    table.resize(len, value);
    table
}

/// The same full of zeros, which take no memory until they are written to.
#[must_use]
pub fn zeros<T: Copy + Default>(len: usize) -> Vec<T> {
    let mut table = vec![T::default(); len];
    advise(&mut table);
    table
}

/// Gives a vector that grows room for twice as much once it is full, in the same kind of memory, so that
/// `more` elements fit.
pub fn reserve<T: Copy>(table: &mut Vec<T>, more: usize) {
    let needed = table.len() + more;
    if needed > table.capacity() {
        let mut grown = Vec::with_capacity(needed.max(2 * table.len()));
        advise(grown.spare_capacity_mut());
        grown.extend_from_slice(table);
        *table = grown;
    }
}

/// Asks for large pages for the whole large pages within a range that nothing was written to yet.
fn advise<T>(range: &mut [T]) {
    let start = range.as_mut_ptr() as usize;
    let end = start + core::mem::size_of_val(range);
    let first = start.next_multiple_of(HUGE_BYTES);
    let len_bytes = (end - end % HUGE_BYTES).saturating_sub(first);
    if len_bytes > 0 {
        // SAFETY: the range lies within an allocation that the slice borrows uniquely; this advice
        // never changes content or protection. Where the kernel refuses it nothing is lost.
        unsafe {
            libc::madvise(first as *mut libc::c_void, len_bytes, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_filled_whatever_their_size() {
        for len in [0, 1, 1000, 1 << 20] {
            let table = table(7u64, len);
            assert_eq!(table.len(), len);
            assert!(table.iter().all(|value| *value == 7));
            if let Some(value) = table.last() {
                prefetch(value);
            }
            assert!(zeros::<u16>(len).iter().all(|value| *value == 0));
        }
    }

    #[test]
    fn a_vector_keeps_what_it_holds_when_it_grows() {
        let mut table = Vec::new();
        for value in 0..1_000_000u32 {
            reserve(&mut table, 1);
            table.push(value);
        }
        assert!(table.iter().copied().eq(0..1_000_000));
    }
}
