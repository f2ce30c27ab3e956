//! Options of the fio job that would generate the same load.
//!
//! A reader of the result, such as `plimsoll audit`, derives the number of operations in flight
//! from `ioengine`, `iodepth` and `numjobs`. `ioengine` is therefore present only if the load kept
//! this number in flight. Any other load has a rate (`rate_iops`) instead.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_plan::{Arrival, Matrix, SizeShare, Stream, SyncKind, Workload};
use serde_json::{Map, Value, json};

use super::per_runtime_s;
use crate::run::kinds::Operation;

/// Operations in flight of a job.
#[derive(Clone, Copy)]
struct Depth {
    /// Number of clones of the job.
    clients: u64,
    /// Depth of each clone.
    each: u64,
    /// True if the load always kept this number in flight.
    kept: bool,
}

impl Depth {
    fn of(bundle: &Bundle, group: &str) -> Self {
        match &bundle.plan.workload {
            Workload::Matrix(matrix) => {
                let streams = &matrix.streams;
                let kept = group == "transactional" && streams.iter().all(keeps_depth);
                let each = streams.first().map_or(1, |first| first.queue_depth);
                let total: u64 = streams.iter().map(Stream::outstanding).sum();
                match streams.iter().all(|stream| stream.queue_depth == each) {
                    true => {
                        let clients = streams.iter().map(|s| u64::from(s.clients)).sum();
                        Self { clients, each: each.into(), kept }
                    }
                    // Clones of a job have the same depth.
                    false => Self { clients: total, each: 1, kept },
                }
            }
            Workload::Mailbox(_) => {
                let threads = bundle.run.engine.threads.max(1);
                let each = bundle.run.engine.sessions.max(1).div_ceil(threads);
                Self { clients: threads.into(), each: each.into(), kept: false }
            }
        }
    }
}

/// Returns true if a stream starts an operation as soon as another one completes.
fn keeps_depth(stream: &Stream) -> bool {
    stream.arrival == Arrival::Closed { rate_cap_per_s: None }
        && stream.think_time_ns == 0
        && !stream.batch
        && stream.trace.is_none()
        && stream.start_event.is_none()
        && stream.metadata_percent == 0.0
}

/// Number of clones of the job.
pub(super) fn clients(bundle: &Bundle, group: &str) -> u64 {
    Depth::of(bundle, group).clients.max(1)
}

/// Depth of each clone of the job.
pub(super) fn depth(bundle: &Bundle, group: &str) -> u64 {
    Depth::of(bundle, group).each
}

/// Returns the options of an equivalent fio job.
pub(super) fn options(bundle: &Bundle, group: &str, name: &str) -> Map<String, Value> {
    let mut options = Map::new();
    let mut put = |name: &str, value: String| options.insert(name.into(), json!(value));
    put("name", name.into());
    let sides = [Operation::Read, Operation::Write].map(|operation| {
        let of = |class: &ClassTotals| class.group == group && Operation::of(class) == operation;
        let count = bundle.run.sum(of, ClassTotals::count_within);
        (count, bundle.run.sum(of, ClassTotals::bytes_within))
    });
    let [(reads, _), (writes, _)] = sides;
    let matrix = match &bundle.plan.workload {
        Workload::Matrix(matrix) => Some(matrix),
        Workload::Mailbox(_) => None,
    };
    let is_sequential =
        matrix.is_some_and(|matrix| matrix.streams.iter().all(|s| s.pattern.is_sequential()));
    put("rw", word(is_sequential, reads > 0, writes > 0).into());
    if reads > 0 && writes > 0 {
        put("rwmixread", format!("{:.0}", reads as f64 / (reads + writes) as f64 * 100.0));
    }
    let (size, split) = sizes(matrix, sides);
    put("bs", size);
    if let Some(split) = split {
        put("bssplit", split);
    }
    let depth = Depth::of(bundle, group);
    put("iodepth", depth.each.to_string());
    put("numjobs", depth.clients.to_string());
    // A job that runs several operations at a time needs an asynchronous engine. fio's other
    // engines ignore the depth. The engine of another tool's result is fio's.
    let engine = match bundle.run.engine.kind.as_str() {
        "" | "threads" | "model" => "posixaio",
        kind => kind,
    };
    if depth.kept {
        put("ioengine", engine.into());
    } else {
        // The rates are means. A limit would be a minimum distance between operations.
        let rates = [reads, writes].map(|count| {
            (per_runtime_s(bundle, count) / depth.clients.max(1) as f64).ceil() as u64
        });
        put("rate_iops", format!("{},{}", rates[0], rates[1]));
        put("rate_process", "poisson".into());
    }
    if bundle.plan.phases.warm_up_ns > 0 {
        put("ramp_time", format!("{}ms", bundle.plan.phases.warm_up_ns / 1_000_000));
    }
    if let Some(stream) = matrix.and_then(|matrix| matrix.streams.first()) {
        let every = stream.sync.every_writes.max(1).to_string();
        match stream.sync.kind {
            SyncKind::Fsync => put("fsync", every),
            SyncKind::Fdatasync => put("fdatasync", every),
            _ => None,
        };
    }
    options
}

fn word(is_sequential: bool, reads: bool, writes: bool) -> &'static str {
    match (is_sequential, reads, writes) {
        (true, true, true) => "rw",
        (true, true, false) => "read",
        (true, false, _) => "write",
        (false, true, true) => "randrw",
        (false, true, false) => "randread",
        (false, false, _) => "randwrite",
    }
}

/// Returns the values of `bs` and `bssplit` from the numbers and bytes of reads and writes. Without
/// `bssplit`, all operations of a direction have the size `bs`.
fn sizes(matrix: Option<&Matrix>, sides: [(u64, u64); 2]) -> (String, Option<String>) {
    let mixes = |stream: &Stream| stream.sizes.len() > 1 || stream.write_sizes.len() > 1;
    let mixed = matrix.is_none_or(|matrix| matrix.streams.iter().any(mixes));
    let means = sides.map(|(count, bytes)| bytes.checked_div(count).filter(|mean| *mean > 0));
    let whole = sides.iter().all(|(count, bytes)| *count == 0 || bytes % count == 0);
    match means {
        [Some(read), Some(write)] if !mixed && whole && read != write => {
            (format!("{read},{write}"), None)
        }
        [read, write] => {
            let mean = read.or(write).unwrap_or(0);
            let other = write.unwrap_or(mean);
            let split = (mixed || !whole).then(|| match matrix.map(|matrix| &matrix.streams[..]) {
                Some([one]) if mixed => split(&one.sizes),
                _ => format!("{mean}/50:{other}/50"),
            });
            (mean.to_string(), split)
        }
    }
}

fn split(sizes: &[SizeShare]) -> String {
    let of = |share: &SizeShare| format!("{}/{:.0}", share.size_bytes, share.share_percent);
    sizes.iter().map(of).collect::<Vec<_>>().join(":")
}
