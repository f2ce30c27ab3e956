//! Traces: recorded operations that a stream replays. The operations are mapped to a target of any
//! size. They start at the times of the trace, faster, slower, or at full speed.
//!
//! A [`Trace`] is the recording in the order of time, and a [`Replay`] is its mapping to a target.
//! In the address space of a trace, its devices follow one another. One client, with one
//! [`Cursor`], issues the operations, so that they start in the order of the trace.

mod figures;
mod map;
mod replay;

pub use figures::{Figures, SizeCount};
pub use map::Mapping;
pub use replay::{Cursor, NothingFits, Replay, ReplayTotals};

/// Size of the pieces into which the address space of a trace is divided. The footprint of a trace
/// is counted and mapped in these pieces.
pub const CHUNK_BYTES: u64 = 1 << 20;

/// Kind of a recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOperation {
    Read,
    Write,
    /// Durable write: completes when the data is on stable storage.
    WriteDurable,
    /// Flush of earlier writes to stable storage (`fsync`).
    Sync,
    /// Like `Sync`, but without the metadata that is not needed to read the data (`fdatasync`).
    DataSync,
}

impl TraceOperation {
    /// Returns true if the kind transfers data, that is, if it is not a flush.
    #[must_use]
    pub const fn moves(self) -> bool {
        !matches!(self, Self::Sync | Self::DataSync)
    }
}

/// A recorded read, write or flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of submission, relative to the first operation.
    pub at_ns: u64,
    /// Byte offset on the device; not used for a flush.
    pub offset_bytes: u64,
    /// Size in bytes; 0 for a flush.
    pub size_bytes: u32,
    /// Number of the device in the trace.
    pub volume: u16,
    /// Kind of the operation.
    pub requested: TraceOperation,
}

/// Recorded operations in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    events: Vec<Event>,
    /// For each device: its start in the common address space of all devices.
    bases: Vec<u64>,
    extent_bytes: u64,
    out_of_order: u64,
}

impl Trace {
    /// Sorts operations by time. `events` is in the order of the file. Its times may be from any
    /// clock.
    #[must_use]
    pub fn new(mut events: Vec<Event>) -> Self {
        let mut latest_ns = 0;
        let mut out_of_order = 0;
        for event in &events {
            out_of_order += u64::from(event.at_ns < latest_ns);
            latest_ns = latest_ns.max(event.at_ns);
        }
        if out_of_order > 0 {
            // The sort is stable: operations with equal times stay in the order of the file.
            events.sort_by_key(|event| event.at_ns);
        }
        let first_ns = events.first().map_or(0, |event| event.at_ns);
        events.iter_mut().for_each(|event| event.at_ns -= first_ns);
        let (bases, extent_bytes) = bases(&events);
        Self { events, bases, extent_bytes, out_of_order }
    }

    /// Returns the operations.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the number of reads and writes.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.events.iter().filter(|event| event.requested.moves()).count() as u64
    }

    /// Returns the number of operations that are out of order. The file lists such an operation
    /// after an operation with a later time.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns the address of an operation in the common address space of all devices.
    fn place(&self, event: &Event) -> u64 {
        let base = self.bases.get(usize::from(event.volume)).copied().unwrap_or(0);
        base.saturating_add(event.offset_bytes)
    }
}

/// Returns the start of each device in the common address space, in which the devices follow one
/// another. The last element is the end of the last device. Starts are rounded up to whole pieces.
fn bases(events: &[Event]) -> (Vec<u64>, u64) {
    let mut ends: Vec<u64> = Vec::new();
    for event in events {
        let at = usize::from(event.volume);
        if ends.len() <= at {
            ends.resize(at + 1, 0);
        }
        let end = event.offset_bytes.saturating_add(u64::from(event.size_bytes));
        ends[at] = ends[at].max(end);
    }
    let (mut bases, mut next, mut extent) = (Vec::with_capacity(ends.len()), 0u64, 0u64);
    for end in ends {
        bases.push(next);
        extent = next.saturating_add(end);
        next = extent.div_ceil(CHUNK_BYTES).saturating_mul(CHUNK_BYTES);
    }
    (bases, extent)
}

/// Returns the numbers of the pieces that a range of bytes touches.
fn chunks(offset_bytes: u64, size_bytes: u32) -> std::ops::RangeInclusive<u64> {
    let last = offset_bytes.saturating_add(u64::from(size_bytes.max(1)) - 1);
    offset_bytes / CHUNK_BYTES..=last / CHUNK_BYTES
}

#[cfg(test)]
mod tests;
