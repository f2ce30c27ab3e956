//! A trace that was mapped to a target, and the cursor of the client that issues its operations.

use std::sync::Arc;

use plimsoll_plan::TraceSource;

use super::map::map;
use super::{Event, Mapping, Trace, TraceOperation};

/// Error: no operation of the trace fits on the target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no operation of the trace {file} fits on the target, which has {target_bytes} bytes")]
pub struct NothingFits {
    /// Path of the trace file.
    pub file: String,
    /// Size of the target in bytes.
    pub target_bytes: u64,
}

/// Totals of the operations that are due in the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayTotals {
    /// Number of reads and writes that are due in the measured phase.
    pub operations: u64,
    pub reads: u64,
    pub flushes: u64,
    /// Total size of the reads and writes that are due in the measured phase, in bytes.
    pub bytes: u64,
    /// Time between the first operation and the last operation, in ns.
    pub span_ns: u64,
}

/// A trace that was mapped to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Operations on the target, sorted by their start times.
    events: Vec<Event>,
    mapping: Mapping,
    due: ReplayTotals,
    out_of_order: u64,
    at_times: bool,
}

impl Replay {
    /// Maps a trace to a target that has `target_bytes` bytes. The new offsets and sizes are
    /// multiples of `align_bytes`. `measure_ns` is the length of the measured phase.
    ///
    /// # Errors
    /// [`NothingFits`] if no operation of the trace fits on the target.
    pub fn new(
        trace: Trace,
        source: &TraceSource,
        target_bytes: u64,
        align_bytes: u64,
        measure_ns: u64,
    ) -> Result<Self, NothingFits> {
        let out_of_order = trace.out_of_order();
        let (mut events, mapping) = map(trace, source.map, target_bytes, align_bytes);
        if events.iter().all(|event| !event.requested.moves()) {
            return Err(NothingFits { file: source.file.clone(), target_bytes });
        }
        if let Some(speed) = source.speed.filter(|speed| *speed != 1.0) {
            let scaled = |ns: u64| (ns as f64 / speed).round() as u64;
            events.iter_mut().for_each(|event| event.at_ns = scaled(event.at_ns));
        }
        let at_times = source.speed.is_some();
        let mut due = ReplayTotals::default();
        for event in events.iter().take_while(|event| !at_times || event.at_ns < measure_ns) {
            due.operations += u64::from(event.requested.moves());
            due.flushes += u64::from(!event.requested.moves());
            due.reads += u64::from(event.requested == TraceOperation::Read);
            due.bytes += u64::from(event.size_bytes);
            due.span_ns = event.at_ns;
        }
        Ok(Self { events, mapping, due, out_of_order, at_times })
    }

    /// Returns how the trace was mapped to the target.
    #[must_use]
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns the totals of the operations that are due in the measured phase.
    #[must_use]
    pub fn due(&self) -> ReplayTotals {
        self.due
    }

    /// Returns how many operations are out of order. The trace file lists such an operation after
    /// an operation that has a later time.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns true if the operations start at the times of the trace.
    #[must_use]
    pub fn at_times(&self) -> bool {
        self.at_times
    }

    /// Returns the operations on the target, sorted by their start times.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the size of the largest operation in bytes.
    #[must_use]
    pub fn size_bytes_max(&self) -> u32 {
        self.events.iter().map(|event| event.size_bytes).max().unwrap_or(0)
    }

    /// Returns a cursor that is positioned at the first operation.
    #[must_use]
    pub fn cursor(self: &Arc<Self>) -> Cursor {
        Cursor { replay: Arc::clone(self), next: 0 }
    }
}

/// Issues the operations of a replay one after the other.
#[derive(Clone, Debug)]
pub struct Cursor {
    replay: Arc<Replay>,
    next: usize,
}

impl Cursor {
    /// Returns the next operation. Returns `None` after the last operation.
    #[inline]
    pub fn take(&mut self) -> Option<Event> {
        let event = self.replay.events.get(self.next)?;
        self.next += 1;
        Some(*event)
    }

    /// Returns true if all operations have been issued.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.next >= self.replay.events.len()
    }
}
