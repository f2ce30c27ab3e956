//! A plan that replays a trace, without a plan file.

use std::fmt::Write as _;

use crate::error::PlanErrors;
use crate::plan::Plan;
use crate::resolved::TraceMap;
use crate::sweep::{quoted, target};
use crate::units::{DurationNs, SizeBytes};

/// A trace, and what is wanted of its replay.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRequest {
    /// Name of the plan.
    pub name: String,
    /// The command that makes the plan.
    pub made_by: &'static str,
    /// A directory, a device (`/dev/…`), an NFS export (`nfs://…`), `model:NAME` or `null`; none leaves a place for it.
    pub target: Option<String>,
    /// What is said of the trace, in a comment.
    pub says: String,
    /// Its file.
    pub file: String,
    /// SHA-256 of it.
    pub sha256: String,
    /// Reads and writes in it.
    pub operations: u64,
    /// How many of them read.
    pub reads: u64,
    /// From the first to the last.
    pub span: DurationNs,
    /// Its sizes of transfers with how many have them.
    pub sizes: Vec<(SizeBytes, u64)>,
    /// Boundary that its offsets and sizes are multiples of.
    pub align: SizeBytes,
    /// Size of the file; none on a device.
    pub file_size: Option<SizeBytes>,
    /// `recorded`, `2x`, `as-fast`.
    pub pace: Option<String>,
    /// Where its operations go.
    pub map: Option<TraceMap>,
    /// Most operations in flight.
    pub depth: Option<u32>,
    /// How much of it is replayed, or how long one that goes as fast as the target may take.
    pub measure: Option<DurationNs>,
}

/// Traces shorter than this are recorded in finer intervals.
const SHORT: DurationNs = DurationNs::s(60);

/// The plan that replays a trace.
///
/// # Errors
/// What is wrong with the request, as with a plan that says the same.
pub fn trace_plan(request: &TraceRequest) -> Result<Plan, PlanErrors> {
    Plan::parse(&trace_text(request), &request.name)
}

// Writing to a string can't fail, so results are dropped below.
/// The text of that plan.
#[must_use]
pub fn trace_text(request: &TraceRequest) -> String {
    let mut text = format!("# Made by `{}`: {}\nversion = 1\n", request.made_by, request.says);
    let _ = writeln!(text, "name = {}\n\n[target]", quoted(&request.name));
    let _ = match &request.target {
        Some(place) => writeln!(text, "{}", target(std::slice::from_ref(place))),
        None => writeln!(text, "path = \"/mnt/x\" # name the place"),
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
    if request.span < SHORT {
        let _ = writeln!(text, "\n[evidence]\ninterval = \"100ms\"");
    }
    text
}
