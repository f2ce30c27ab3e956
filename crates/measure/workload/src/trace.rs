//! Traces. A trace contains recorded operations, which a stream replays. The operations are mapped
//! to a target of any size. They start at the times of the trace, at a faster or slower rate, or as
//! fast as possible.
//!
//! A [`Trace`] contains the recorded operations in the order of time. A [`Replay`] is a trace that
//! was mapped to a target. In the address space of a trace, its devices follow one another. One
//! client, with one [`Cursor`], issues all operations, so that they start in the order of the
//! trace.

mod figures;
mod map;
mod replay;

pub use figures::{Figures, SizeCount};
pub use map::Mapping;
pub use replay::{Cursor, NothingFits, Replay, ReplayTotals};

/// Size of the pieces into which the address space of a trace is divided, in bytes. The accessed
/// part of the address space is counted and mapped in units of these pieces.
pub const CHUNK_BYTES: u64 = 1 << 20;

/// Kind of a recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOperation {
    Read,
    Write,
    /// A durable write, which completes when its data is on stable storage.
    WriteDurable,
    /// A flush, which writes the data of earlier writes to stable storage (`fsync`).
    Sync,
    /// A flush without the metadata that is unnecessary for reading the data (`fdatasync`).
    DataSync,
}

impl TraceOperation {
    /// Returns true if operations of this kind transfer data. Flushes transfer no data.
    #[must_use]
    pub const fn moves(self) -> bool {
        !matches!(self, Self::Sync | Self::DataSync)
    }
}

/// A recorded read, write or flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time at which the operation was submitted, in ns. The first operation has the time 0.
    pub at_ns: u64,
    /// Offset on the device, in bytes. A flush does not use it.
    pub offset_bytes: u64,
    /// Size of the transfer in bytes. It is 0 for a flush.
    pub size_bytes: u32,
    /// Number of the device in the trace.
    pub volume: u16,
    pub requested: TraceOperation,
}

/// Recorded operations in the order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    events: Vec<Event>,
    /// For each device: the address at which it starts in the common address space of all devices.
    bases: Vec<u64>,
    extent_bytes: u64,
    out_of_order: u64,
}

impl Trace {
    /// Creates a trace from `events`, which are in the order of the file, and sorts them by time.
    /// The times may be from any clock.
    #[must_use]
    pub fn new(mut events: Vec<Event>) -> Self {
        let mut latest_ns = 0;
        let mut out_of_order = 0;
        for event in &events {
            out_of_order += u64::from(event.at_ns < latest_ns);
            latest_ns = latest_ns.max(event.at_ns);
        }
        if out_of_order > 0 {
            // The sort is stable: operations with equal times keep their order from the file.
            events.sort_by_key(|event| event.at_ns);
        }
        let first_ns = events.first().map_or(0, |event| event.at_ns);
        events.iter_mut().for_each(|event| event.at_ns -= first_ns);
        let (bases, extent_bytes) = bases(&events);
        Self { events, bases, extent_bytes, out_of_order }
    }

    /// Returns the operations, sorted by time.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the number of reads and writes in the trace.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.events.iter().filter(|event| event.requested.moves()).count() as u64
    }

    /// Returns how many operations are out of order. The file lists such an operation after an
    /// operation that has a later time.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns the address of an operation in the address space that all devices share.
    fn place(&self, event: &Event) -> u64 {
        let base = self.bases.get(usize::from(event.volume)).copied().unwrap_or(0);
        base.saturating_add(event.offset_bytes)
    }
}

/// Returns the start address of each device in the address space that all devices share. In this
/// address space, the devices follow one another. The last element is the end of the last device.
/// Start addresses are rounded up to whole pieces.
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
