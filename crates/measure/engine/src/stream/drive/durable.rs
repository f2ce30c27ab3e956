//! Records how long each write takes until it is durable. This time ends when the next flush of the
//! client has completed ([`plimsoll_record::durable`]).

use plimsoll_record::durable::{DurableWrites, PENDING_MAX, WriteTimes};
use plimsoll_record::snapshot::IntervalRecorder;
use plimsoll_sys::op::OpKind;

use super::{DriveConfig, Driver, InFlight, cell_of};
use crate::backend::Queue;
use crate::stream::pacing::Pacing;
use crate::stream::source::{Source, SourceCallbacks};
use crate::timer::Timer;

#[derive(Clone, Copy)]
pub(super) struct CompletedOperation {
    pub place: u32,
    pub result: Result<u32, i32>,
    /// Time at which the thread first saw the completion of the write or flush.
    pub completed_ns: u64,
    /// True if a schedule determined the intended start time.
    pub scheduled: bool,
}

/// Allocates space for the writes that are not yet durable. Returns `None` if no flush follows the
/// writes.
pub(super) fn pending_writes(
    callbacks: SourceCallbacks,
    cells: usize,
    classes: u32,
    places: usize,
) -> Option<Box<DurableWrites>> {
    let durable = callbacks.durable?;
    let clients = (cells / classes.max(1) as usize).max(1);
    // During a flush, the other slots of the same client continue to write.
    let depth = places.div_ceil(clients) + 1;
    let each = (durable.every_writes as usize).saturating_mul(depth).min(PENDING_MAX);
    Some(Box::new(DurableWrites::new(clients, places, each)))
}

/// Records a completed write or flush.
#[inline(never)]
pub(super) fn record(
    pending: &mut DurableWrites,
    records: &mut IntervalRecorder,
    issued: &InFlight,
    completed: CompletedOperation,
    config: &DriveConfig,
    callbacks: SourceCallbacks,
) {
    let Some(durable) = callbacks.durable.filter(|_| completed.result == Ok(issued.op.size_bytes))
    else {
        return;
    };
    let (client, file) = (issued.client, issued.op.file);
    match issued.op.kind {
        OpKind::Write => {
            let (submitted_ns, completed_ns) = (issued.submitted_ns, completed.completed_ns);
            let intended_ns = if completed.scheduled { issued.intended_ns } else { submitted_ns };
            pending.written(client, file, WriteTimes { intended_ns, submitted_ns, completed_ns });
        }
        OpKind::Sync | OpKind::Flush => {
            let cell = cell_of(client, durable.class, config);
            let took_ns = |from_ns: u64| completed.completed_ns.saturating_sub(from_ns);
            let due_ns = completed.scheduled.then_some(issued.intended_ns);
            pending.flushed((completed.place, client, file), due_ns, &mut |at| {
                // The class of the write calls already contains these bytes.
                records.record(cell, 0, took_ns(at.intended_ns), took_ns(at.submitted_ns));
            });
        }
        _ => {}
    }
}

impl<Q: Queue, S: Source + ?Sized, P: Pacing, T: Timer> Driver<'_, Q, S, P, T> {
    /// Records the writes that were never made durable by a flush. Their recorded waiting times end
    /// now.
    pub(super) fn record_unflushed(&mut self, records: &mut IntervalRecorder, ended_ns: u64) {
        let Self { durable, config, callbacks, .. } = self;
        let (Some(pending), Some(durable)) = (durable, callbacks.durable) else { return };
        pending.left(&mut |client, at| {
            let waited_ns = |from_ns: u64| ended_ns.saturating_sub(from_ns);
            let cell = cell_of(client, durable.class, config);
            records.abandon(cell, waited_ns(at.intended_ns), waited_ns(at.submitted_ns));
        });
    }
}
