//! Computes statistics of a trace.

use std::collections::{BTreeMap, HashSet};

use super::{CHUNK_BYTES, Trace, TraceOperation, chunks};

/// Maximum number of different transfer sizes that the statistics list.
const SIZES_MAX: usize = 64;
/// Alignments that are checked. They range from 4 KiB, the block size of most devices and file
/// systems, down to the size of a sector.
const ALIGN_BYTES: [u64; 4] = [4096, 2048, 1024, 512];

/// A transfer size, and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeCount {
    /// Size of the transfers in bytes.
    pub size_bytes: u64,
    /// Number of operations with this size.
    pub count: u64,
}

/// Statistics of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Number of reads and writes in the trace.
    pub operations: u64,
    pub reads: u64,
    pub flushes: u64,
    /// Total size of the reads and writes, in bytes.
    pub bytes: u64,
    /// Total size of the reads in bytes.
    pub read_bytes: u64,
    /// Time between the first operation and the last operation, in ns.
    pub span_ns: u64,
    /// End of the address space that the trace uses, in bytes.
    pub extent_bytes: u64,
    /// Total size of the pieces that the trace touches, in bytes.
    pub touched_bytes: u64,
    /// Largest alignment, up to 4 KiB, that divides every offset and every size. It is 512 if no
    /// alignment divides all of them.
    pub align_bytes: u64,
    /// Transfer sizes and their frequencies, sorted by size. If there are more than 64 sizes, the
    /// rarest sizes are not listed. Their operations are counted with the next larger size in the
    /// list.
    pub sizes: Vec<SizeCount>,
}

impl Trace {
    /// Computes the statistics of the trace.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let mut figures = Figures {
            operations: 0,
            reads: 0,
            flushes: 0,
            bytes: 0,
            read_bytes: 0,
            span_ns: self.events.last().map_or(0, |event| event.at_ns),
            extent_bytes: self.extent_bytes,
            touched_bytes: 0,
            align_bytes: 512,
            sizes: Vec::new(),
        };
        let (mut sizes, mut bits) = (BTreeMap::new(), 0);
        for event in &self.events {
            if !event.requested.moves() {
                figures.flushes += 1;
                continue;
            }
            let size = u64::from(event.size_bytes);
            figures.operations += 1;
            figures.bytes += size;
            if event.requested == TraceOperation::Read {
                figures.reads += 1;
                figures.read_bytes += size;
            }
            *sizes.entry(size).or_insert(0u64) += 1;
            bits |= size | event.offset_bytes;
        }
        let fits = |align: &&u64| bits.is_multiple_of(**align);
        figures.align_bytes = ALIGN_BYTES.iter().find(fits).copied().unwrap_or(512);
        figures.touched_bytes = self.touched().len() as u64 * CHUNK_BYTES;
        figures.sizes = fold(sizes);
        figures
    }

    /// Returns the numbers of the pieces that the trace touches, in ascending order.
    pub(super) fn touched(&self) -> Vec<u64> {
        let mut all = HashSet::new();
        let mut last = None;
        for event in self.events.iter().filter(|event| event.requested.moves()) {
            let range = chunks(self.place(event), event.size_bytes);
            if last.as_ref() != Some(&range) {
                all.extend(range.clone());
                last = Some(range);
            }
        }
        let mut all: Vec<u64> = all.into_iter().collect();
        all.sort_unstable();
        all
    }
}

/// Returns the most frequent sizes, and the largest size. Operations with another size are counted
/// with the next larger size in the result.
fn fold(sizes: BTreeMap<u64, u64>) -> Vec<SizeCount> {
    let mut all: Vec<SizeCount> =
        sizes.into_iter().map(|(size_bytes, count)| SizeCount { size_bytes, count }).collect();
    if all.len() <= SIZES_MAX {
        return all;
    }
    let largest = all.last().map_or(0, |size| size.size_bytes);
    let mut by_count: Vec<SizeCount> = all.clone();
    by_count.sort_by_key(|size| std::cmp::Reverse((size.size_bytes == largest, size.count)));
    let kept: HashSet<u64> = by_count.iter().take(SIZES_MAX).map(|size| size.size_bytes).collect();
    let mut waiting = 0;
    all.retain_mut(|size| {
        if kept.contains(&size.size_bytes) {
            size.count += std::mem::take(&mut waiting);
            return true;
        }
        waiting += size.count;
        false
    });
    all
}
