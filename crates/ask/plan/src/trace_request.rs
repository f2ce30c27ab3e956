//! Creates the plan of a trace replay from command-line flags, without a plan file.

use std::fmt::Write as _;

use crate::error::PlanErrors;
use crate::plan::Plan;
use crate::read::speed::Speed;
use crate::resolved::TraceMap;
use crate::sweep::{quoted, target};
use crate::units::{DurationNs, SizeBytes};

/// Properties of a trace, and the flags of its replay.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRequest {
    /// Name of the plan.
    pub name: String,
    /// Command to which the flags belong.
    pub made_by: &'static str,
    /// A directory, a device (`/dev/…`), an NFS export (`nfs://…`), `model:NAME` or `null`. If it
    /// is `None`, the plan contains a placeholder for the target.
    pub target: Option<String>,
    /// Description of the trace, which the plan contains as a comment.
    pub description: String,
    /// Path of the trace file.
    pub file: String,
    /// SHA-256 of the trace file.
    pub sha256: String,
    /// Number of reads and writes in the trace.
    pub operations: u64,
    /// Number of reads in the trace.
    pub reads: u64,
    /// Time from the first operation of the trace to the last.
    pub span: DurationNs,
    /// Transfer sizes. Each entry also contains the number of operations that have this size.
    pub sizes: Vec<(SizeBytes, u64)>,
    /// Alignment of the offsets and sizes in the trace.
    pub align: SizeBytes,
    /// Size of the target file, or `None` if the target is a device.
    pub file_size: Option<SizeBytes>,
    /// Replay speed: `recorded`, `2x` or `as-fast`.
    pub pace: Option<String>,
    /// Method by which the trace's offsets are mapped to the target.
    pub map: Option<TraceMap>,
    /// Maximum number of operations in flight.
    pub depth: Option<u32>,
    /// Length of the part of the trace that is replayed. At the replay speed `as-fast`, this is a
    /// time limit.
    pub measure: Option<DurationNs>,
}

/// Maximum lengths of a replay, each with the interval of the time series. A longer replay uses the
/// default interval.
const INTERVALS: [(DurationNs, DurationNs); 2] =
    [(DurationNs::s(1), DurationNs::ms(10)), (DurationNs::s(60), DurationNs::ms(100))];

/// Returns the plan that replays the trace.
///
/// # Errors
/// The resulting plan is not valid. The error lists all faults of the plan.
pub fn trace_plan(request: &TraceRequest) -> Result<Plan, PlanErrors> {
    Plan::parse(&trace_text(request), &request.name)
}

// Writing to a string cannot fail, so the results of writing are ignored.
/// Returns the text of the plan that replays the trace.
#[must_use]
pub fn trace_text(request: &TraceRequest) -> String {
    let mut text =
        format!("# Made by `{}`: {}\nversion = 1\n", request.made_by, request.description);
    let _ = writeln!(text, "name = {}\n\n[target]", quoted(&request.name));
    let _ = match &request.target {
        Some(place) => writeln!(text, "{}", target(std::slice::from_ref(place))),
        None => writeln!(text, "path = \"/mnt/x\" # replace this with your target"),
    };
    let _ = writeln!(text, "\n[workload.trace]\nfile = {}", quoted(&request.file));
    let _ = writeln!(text, "sha256 = {}", quoted(&request.sha256));
    let _ = writeln!(text, "operations = {}\nspan = \"{}\"", request.operations, request.span);
    let all = request.operations.max(1) as f64;
    let percent = |count: u64| count as f64 / all * 100.0;
    let _ = writeln!(text, "reads = {}", percent(request.reads));
    text.push_str("size_mix = [\n");
    for (size, count) in &request.sizes {
        let _ = writeln!(text, "  {{ size = \"{size}\", share = {} }},", percent(*count));
    }
    let _ = writeln!(text, "]\nalign = \"{}\"", request.align);
    if let Some(size) = request.file_size {
        let _ = writeln!(text, "file_size = \"{size}\"");
    }
    if let Some(pace) = &request.pace {
        let _ = writeln!(text, "pace = {}", quoted(pace));
    }
    if let Some(map) = request.map {
        let _ = writeln!(text, "map = \"{map}\"");
    }
    if let Some(depth) = request.depth {
        let _ = writeln!(text, "queue_depth = {depth}");
    }
    if let Some(measure) = request.measure {
        let _ = writeln!(text, "\n[phases]\nmeasure = \"{measure}\"");
    }
    let speed = request.pace.as_deref().and_then(Speed::parse).and_then(|speed| speed.0);
    let span = DurationNs((request.span.0 as f64 / speed.unwrap_or(1.0)) as u64);
    let length = request.measure.unwrap_or(span);
    if let Some((_, interval)) = INTERVALS.iter().find(|(longest, _)| length < *longest) {
        let _ = writeln!(text, "\n[evidence]\ninterval = \"{interval}\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(span: DurationNs, pace: Option<&str>) -> TraceRequest {
        TraceRequest {
            name: "short".to_owned(),
            made_by: "plimsoll plan import",
            target: Some("/mnt/x".to_owned()),
            description: "a trace".to_owned(),
            file: "/t.csv".to_owned(),
            sha256: "0".repeat(64),
            operations: 2,
            reads: 1,
            span,
            sizes: vec![(SizeBytes(4096), 2)],
            align: SizeBytes(4096),
            file_size: Some(SizeBytes(1 << 20)),
            pace: pace.map(str::to_owned),
            map: None,
            depth: None,
            measure: None,
        }
    }

    #[test]
    fn the_shortest_trace_has_a_valid_interval() {
        for (span, pace, interval, measure) in [
            (DurationNs(57_000), None, 10, 10_000_000),
            (DurationNs::ms(99), None, 10, 99_000_001),
            (DurationNs::s(5), Some("100x"), 10, 50_000_001),
            (DurationNs::s(5), Some("recorded"), 100, 5_000_000_001),
            (DurationNs::s(90), None, 1000, 90_000_000_001),
        ] {
            let plan = trace_plan(&request(span, pace)).unwrap_or_else(|e| panic!("{e}")).resolve();
            let found = (plan.evidence.interval_ns, plan.phases.measure_ns);
            assert_eq!(found, (DurationNs::ms(interval).0, measure), "{span} {pace:?}");
        }
    }
}
