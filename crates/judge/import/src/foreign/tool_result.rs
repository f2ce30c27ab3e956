//! Converts a result of any known format to evidence that contains only bytes and operations. This
//! evidence can be compared with observations made during the run. Rules that require the settings
//! use the result's figures instead ([`crate::read_text`]).

use plimsoll_evidence::Bundle;
use plimsoll_evidence::foreign::{DEPTH_NOT_STATED_PAUSE_NS, PATTERN_NOT_STATED};
use plimsoll_evidence::tool_result::{Kind, Operation, Part, ToolResult};
use plimsoll_plan::Plan;

use super::{ForeignError, bundle, class};

/// Sector size. Sizes in a plan are multiples of it.
const SECTOR_BYTES: f64 = 512.0;

/// Reads the only result in a text. `writes` is the observed direction of the data. It is used for
/// results that do not state the direction (`dd`).
///
/// # Errors
/// The format of the text is unknown, the text contains several results, or its result states no
/// bytes or no run time.
pub fn read(text: &str, name: &str, writes: Option<bool>) -> Result<Bundle, ForeignError> {
    let study = crate::read_text(name, text);
    let result = match (&study.results[..], &study.unreadable[..]) {
        ([only], _) => only,
        ([], [error, ..]) => return Err(ForeignError(error.says.clone())),
        ([], []) => return Err(ForeignError("it has no known result format".into())),
        (several, _) => {
            let says = format!(
                "it contains {} results; make the command write only one result",
                several.len()
            );
            return Err(ForeignError(says));
        }
    };
    of(result, name, writes)
}

fn of(result: &ToolResult, name: &str, writes: Option<bool>) -> Result<Bundle, ForeignError> {
    let tool = &result.source.tool;
    let moved: Vec<IoTotals> = result
        .parts
        .iter()
        .filter(|part| !part.is_total)
        .flat_map(|part| part.operations.iter().filter_map(|o| IoTotals::of(part, o, writes)))
        .collect();
    let length_ns = moved.iter().map(|moved| moved.time_ns).fold(0.0, f64::max);
    if moved.is_empty() || length_ns < 1.0 {
        let says = format!("{tool} reports no bytes read or written, or no run time");
        return Err(ForeignError(says));
    }
    let plan_text = plan(result, &moved);
    let plan = Plan::parse(&plan_text, name).map_err(|errors| ForeignError(errors.to_string()))?;
    let mut bundle = bundle(name, &plan_text, plan.resolve(), length_ns as u64);
    for (is_read, word) in [(true, "read"), (false, "write")] {
        let alike = || moved.iter().filter(|moved| moved.is_read == is_read);
        let mut totals = class(format!("{tool}.{word}"), is_read, 0);
        totals.count = alike().map(|moved| moved.count as u64).sum();
        totals.size_bytes = alike().map(|moved| moved.bytes as u64).sum();
        totals.latency_ns_sum = alike().map(|m| (m.mean_ns * m.count) as u64).sum();
        if totals.size_bytes > 0 {
            bundle.run.classes.push(totals);
        }
    }
    bundle.run.started_unix_ns =
        result.source.taken_unix_s.map_or(0, |seconds| (seconds * 1e9) as u64);
    bundle.run.counters.insert(PATTERN_NOT_STATED.into(), 1);
    bundle.run.engine.kind.clone_from(tool);
    bundle.run.engine.closed_loop = false;
    bundle.run.tool_version =
        format!("{tool} {}", result.source.version.as_deref().unwrap_or_default())
            .trim()
            .to_owned();
    Ok(bundle)
}

/// Bytes and operations of one kind.
struct IoTotals {
    is_read: bool,
    bytes: f64,
    /// The number is at least 1, because transferred bytes require an operation.
    count: f64,
    time_ns: f64,
    /// It is 0 if it is unknown.
    mean_ns: f64,
}

impl IoTotals {
    fn of(part: &Part, operation: &Operation, writes: Option<bool>) -> Option<Self> {
        let is_read = match operation.kind {
            Kind::Read => true,
            Kind::Write => false,
            Kind::All => !writes?,
            _ => return None,
        };
        let value = |figures: &[plimsoll_evidence::tool_result::Figure]| {
            figures.iter().map(|figure| figure.value).find(|v| v.is_finite() && *v > 0.0)
        };
        // A total already includes the reads and writes that are listed separately.
        let divided = part.operations.iter().any(|o| o.kind.moves_data() && o.kind != Kind::All);
        if operation.kind == Kind::All && divided {
            return None;
        }
        let window = operation.window_ns.as_ref().or(part.window_ns.as_ref());
        let time_ns = window.map(|window| window.value).filter(|ns| ns.is_finite() && *ns > 0.0)?;
        let per_s = |rate: f64| rate * time_ns / 1e9;
        let bytes = value(&operation.bytes);
        let bytes = bytes.or_else(|| value(&operation.bandwidth_per_s).map(per_s))?;
        let size = operation.size_bytes.as_ref().map(|size| size.value).filter(|size| *size > 0.0);
        let count = value(&operation.count).or_else(|| value(&operation.rate_per_s).map(per_s));
        let count = count.or(size.map(|size| bytes / size)).unwrap_or(1.0).max(1.0);
        let means = operation.latencies.iter().filter_map(|latency| latency.mean_ns.as_ref());
        // The total latency includes the submission latency and the completion latency.
        let means = means.map(|mean| mean.value).filter(|ns| ns.is_finite() && *ns > 0.0);
        let mean_ns = means.reduce(f64::max);
        Some(Self { is_read, bytes, count, time_ns, mean_ns: mean_ns.unwrap_or(0.0) })
    }
}

/// Returns a plan with the mix, the mean size and the operations in flight of the result. If the
/// result states a latency but not the number of operations in flight, the plan contains pauses, so
/// that Little's law is not applied.
fn plan(result: &ToolResult, moved: &[IoTotals]) -> String {
    let parts = result.parts.iter().filter(|part| !part.is_total);
    let depths = parts.filter_map(|part| part.setting.outstanding.as_ref());
    let depth: f64 = depths.map(|depth| depth.most.value).sum();
    let load = match depth {
        depth if depth >= 1.0 => format!("queue_depth = {}\n", depth.min(65_536.0) as u64),
        _ if moved.iter().all(|moved| moved.mean_ns == 0.0) => String::new(),
        _ => format!("think_time = \"{DEPTH_NOT_STATED_PAUSE_NS}ns\"\n"),
    };
    let of = |reads: bool| moved.iter().filter(move |moved| moved.is_read == reads);
    let count = |reads: bool| of(reads).map(|moved| moved.count).sum::<f64>();
    let bytes: f64 = moved.iter().map(|moved| moved.bytes).sum();
    let all = count(true) + count(false);
    let size = (bytes / all / SECTOR_BYTES).round().max(1.0) * SECTOR_BYTES;
    format!(
        "version = 1\nname = \"result\"\n[target]\npath = \"/\"\n[workload.matrix]\nsizes = \"{}B\"\nreads = {}\n{load}",
        size.min(1e9) as u64,
        (count(true) / all * 1e4).round() / 1e2
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const DD: &str = "16+0 records in\n16+0 records out\n16777216 bytes (17 MB, 16 MiB) copied, 0.5 s, 33.6 MB/s\n";

    #[test]
    fn a_copy_has_the_observed_direction() {
        for (writes, is_read) in [(true, false), (false, true)] {
            let bundle = read(DD, "out.txt", Some(writes)).unwrap();
            let class = &bundle.run.classes[0];
            assert_eq!((class.count, class.size_bytes, class.is_read), (16, 16 << 20, is_read));
            assert_eq!(bundle.run.measure().unwrap().duration_ns, 500_000_000);
            assert!(bundle.run.engine.paths.is_empty() && bundle.run.engine.kind == "dd");
        }
        let error = read(DD, "out.txt", None).unwrap_err().to_string();
        assert!(error.contains("dd reports no bytes read or written"), "{error}");
    }

    #[test]
    fn the_latency_is_that_of_the_whole_operation() {
        let text = "j: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, \
            iodepth=8\nfio-3.33\nj: (groupid=0, jobs=1): err= 0: pid=1: Sat Jan  1 00:00:00 2022\n  read: \
            IOPS=1000, BW=4000KiB/s (4096kB/s)(8000KiB/2000msec)\n    slat (usec): min=4, max=19, avg=10.00, \
            stdev=1.00\n    clat (usec): min=43, max=9000, avg=7990.00, stdev=5.26\n     lat (usec): min=56, \
            max=9009, avg=8000.00, stdev=6.66\n  issued rwts: total=2000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n";
        let bundle = read(text, "r.txt", None).unwrap();
        let class = &bundle.run.classes[0];
        assert_eq!(class.latency_ns_sum / class.count, 8_000_000);
    }

    #[test]
    fn rejects_results_without_bytes_or_with_several_runs() {
        let error = |text: &str| read(text, "x", Some(true)).unwrap_err().to_string();
        assert!(error(&DD.repeat(2)).contains("contains 2 results"));
        assert!(error("hello\n").contains("format is unknown"), "{}", error("hello\n"));
    }
}
