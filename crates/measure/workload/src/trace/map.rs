//! Maps the operations of a trace to a target that has another size.
//!
//! | rule | new address of a byte | properties that are preserved |
//! |---|---|---|
//! | keep | unchanged | all; operations after the end of the target are skipped |
//! | compact | the pieces of 1 MiB that the trace touches follow one another, in ascending order | order, alignment, sequential runs that cross touched pieces |
//! | wrap | the old address modulo the target's size | alignment and sequential runs; several old addresses may have the same new address |
//! | scale | the piece number is multiplied by the target size and divided by the trace size; the offset in the piece is unchanged | spread, alignment, sequential runs within a piece |
//! | fit | as for keep, if the address space fits on the target; otherwise as for compact; if the touched pieces do not fit either, as for compact followed by wrap | the properties of the rule that applies |
//!
//! If an operation would cross the end of the target, its offset is decreased, so that the
//! operation ends at the end of the target. Offsets are rounded down to a multiple of the alignment
//! in the plan. Sizes are rounded up to a multiple of this alignment.

use std::collections::HashSet;

use plimsoll_plan::TraceMap;

use super::{CHUNK_BYTES, Event, Trace, chunks};

/// Result of mapping a trace to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Name of the rule by which the trace was mapped.
    pub rule: &'static str,
    /// Size of the target in bytes.
    pub target_bytes: u64,
    /// Size of the trace's address space in bytes.
    pub extent_bytes: u64,
    /// Total size of the pieces that the trace touches, in bytes.
    pub touched_bytes: u64,
    /// Total size of the pieces that the operations touch on the target, in bytes.
    pub mapped_bytes: u64,
    /// Number of operations whose address was changed.
    pub moved: u64,
    /// Number of operations whose target address is the address of several bytes of the trace.
    pub folded: u64,
    /// Number of operations whose offset or size was rounded.
    pub rounded: u64,
    /// Number of operations that were skipped, because their address is after the end of the
    /// target.
    pub outside: u64,
}

/// A mapping rule with its parameters.
enum Rule {
    Keep,
    Wrap,
    Scale { from: u64, to: u64 },
    Compact { touched: Vec<u64> },
    CompactWrap { touched: Vec<u64> },
}

impl Rule {
    fn new(map: TraceMap, trace: &Trace, touched: Vec<u64>, target_bytes: u64) -> Self {
        let compact_bytes = touched.len() as u64 * CHUNK_BYTES;
        let fits = trace.extent_bytes <= target_bytes;
        match map {
            TraceMap::Keep => Self::Keep,
            TraceMap::Wrap if fits => Self::Keep,
            TraceMap::Wrap => Self::Wrap,
            TraceMap::Scale => Self::Scale {
                from: trace.extent_bytes.div_ceil(CHUNK_BYTES).max(1),
                to: (target_bytes / CHUNK_BYTES).max(1),
            },
            TraceMap::Fit if fits => Self::Keep,
            TraceMap::Fit | TraceMap::Compact if compact_bytes <= target_bytes => {
                Self::Compact { touched }
            }
            TraceMap::Fit | TraceMap::Compact => Self::CompactWrap { touched },
        }
    }

    const fn word(&self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Wrap => "wrap",
            Self::Scale { .. } => "scale",
            Self::Compact { .. } => "compact",
            Self::CompactWrap { .. } => "compact and wrap",
        }
    }

    /// Returns the target address for a byte of the trace. Also returns true if other bytes of the
    /// trace may have the same target address.
    fn place(&self, at: u64, target_bytes: u64) -> (u64, bool) {
        let dense = |touched: &[u64]| {
            // This list contains every piece in which an operation starts.
            let rank = touched.binary_search(&(at / CHUNK_BYTES)).unwrap_or_else(|rank| rank);
            (rank as u64).saturating_mul(CHUNK_BYTES).saturating_add(at % CHUNK_BYTES)
        };
        let wrapped = |at: u64| (at % target_bytes.max(1), at >= target_bytes);
        match self {
            Self::Keep => (at, false),
            Self::Wrap => wrapped(at),
            Self::Compact { touched } => (dense(touched), false),
            Self::CompactWrap { touched } => wrapped(dense(touched)),
            Self::Scale { from, to } => {
                let chunk = u128::from(at / CHUNK_BYTES) * u128::from(*to) / u128::from(*from);
                let place = u64::try_from(chunk).unwrap_or(u64::MAX).saturating_mul(CHUNK_BYTES);
                (place.saturating_add(at % CHUNK_BYTES), from > to)
            }
        }
    }
}

/// Maps a trace to a target that has `target_bytes` bytes. The new offsets and sizes are multiples
/// of `align_bytes`.
pub(super) fn map(
    mut trace: Trace,
    rule: TraceMap,
    target_bytes: u64,
    align_bytes: u64,
) -> (Vec<Event>, Mapping) {
    let align = align_bytes.max(1);
    let target_bytes = target_bytes / align * align;
    let touched = trace.touched();
    let mut mapping = Mapping {
        rule: "",
        target_bytes,
        extent_bytes: trace.extent_bytes,
        touched_bytes: touched.len() as u64 * CHUNK_BYTES,
        mapped_bytes: 0,
        moved: 0,
        folded: 0,
        rounded: 0,
        outside: 0,
    };
    let rule = Rule::new(rule, &trace, touched, target_bytes);
    mapping.rule = rule.word();
    let (bases, mut events) = (std::mem::take(&mut trace.bases), trace.events);
    events.retain_mut(|event| {
        if !event.requested.moves() {
            return true;
        }
        let base = bases.get(usize::from(event.volume)).copied().unwrap_or(0);
        let own = base.saturating_add(event.offset_bytes);
        let from = own / align * align;
        let to =
            own.saturating_add(u64::from(event.size_bytes)).div_ceil(align).saturating_mul(align);
        let size = to.saturating_sub(from);
        let rounded = from != own || size != u64::from(event.size_bytes);
        let (place, folds) = rule.place(from, target_bytes);
        let is_kept = matches!(rule, Rule::Keep);
        let Some(room) = target_bytes.checked_sub(size) else {
            mapping.outside += 1;
            return false;
        };
        if is_kept && place > room {
            mapping.outside += 1;
            return false;
        }
        let place = place.min(room);
        mapping.moved += u64::from(place != from);
        mapping.folded += u64::from(folds);
        mapping.rounded += u64::from(rounded);
        event.offset_bytes = place;
        event.size_bytes = u32::try_from(size).unwrap_or(u32::MAX);
        true
    });
    mapping.mapped_bytes = mapped_bytes(&events, target_bytes);
    (events, mapping)
}

/// Returns the total size of the pieces that the operations touch on the target. Each piece is
/// counted once. The last piece of the target may be shorter than the other pieces.
fn mapped_bytes(events: &[Event], target_bytes: u64) -> u64 {
    let mut pieces = HashSet::new();
    for event in events.iter().filter(|event| event.requested.moves()) {
        pieces.extend(chunks(event.offset_bytes, event.size_bytes));
    }
    let size = |piece: u64| {
        target_bytes.saturating_sub(piece.saturating_mul(CHUNK_BYTES)).min(CHUNK_BYTES)
    };
    pieces.into_iter().map(size).sum()
}
