//! Operations that were in flight when a tool reset its counters in the middle of a run.
//!
//! fio resets its counters at the end of a ramp and at each step of a latency search. Operations
//! that are in flight at that moment add to the bytes, but not to the number of operations. These
//! operations started before the interval from which the rates are computed.

use plimsoll_evidence::tool_result::{CounterReset, Kind, Operation, Part};

use super::super::Span;
use super::{first, usable};

/// A reset has an effect only if at least this number of operations is in flight.
const WHOLE: f64 = 0.5;

/// Returns true if the tool may have reset its counters.
pub fn may_reset(part: &Part) -> bool {
    part.setting.counter_reset != CounterReset::Never
        || part.setting.warm_up_ns.as_ref().is_some_and(|ramp| ramp.most > 0.0)
}

/// Returns the minimum and maximum number of operations in flight at a reset. Both are zero if the
/// tool never resets its counters. The maximum is infinite if the depth is unknown.
pub fn in_flight(part: &Part, operation: &Operation) -> Span {
    if !may_reset(part) {
        return Span::exact(0.0);
    }
    let depth = part.setting.outstanding.as_ref().filter(|o| usable(&o.most));
    let depth = depth.map_or(f64::INFINITY, |outstanding| outstanding.most.most);
    let Some(uncounted) = uncounted(operation) else {
        return Span { value: 0.0, least: 0.0, most: depth };
    };
    let (least, most) = (uncounted.0.max(0.0), uncounted.1.max(0.0));
    Span { value: least.min(depth), least: least.min(depth), most: most.min(depth) }
}

/// Divides the bytes by the size of an operation, subtracts the number of operations, and returns
/// the range of the result.
fn uncounted(operation: &Operation) -> Option<(f64, f64)> {
    let size = operation.size_bytes.as_ref().filter(|size| usable(size) && size.least > 0.0)?;
    if operation.short.as_ref().is_some_and(|short| short.value > 0.0) {
        return None;
    }
    let (bytes, count) = (first(&operation.bytes)?, first(&operation.count)?);
    // `least` excludes operations that were issued but did not complete.
    Some((bytes.least / size.most - count.most, bytes.most / size.least - count.value))
}

/// Returns true if a write-only job contains reads, and the format does not contain the job's
/// options. These are verification reads. Some of them may have run between the writes (fio's
/// `verify_backlog`). The run time of the reads does not include these.
pub fn may_verify_meanwhile(part: &Part, operation: &Operation) -> bool {
    let writes_only = part.setting.read_percent.as_ref().is_some_and(|p| p.value <= 0.0);
    let hidden = part.setting.counter_reset == CounterReset::Unknown;
    operation.kind == Kind::Read && writes_only && hidden
}

/// Returns true if an operation may have started before the run, so that its latency may exceed the
/// length of the run.
pub fn may_begin_before(part: &Part, operation: &Operation) -> bool {
    in_flight(part, operation).most >= WHOLE
}
