//! `[workload.trace]`: a single stream that contains the operations of a trace.

use super::phases::INTERVAL_MIN;
use super::target::small;
use super::{ResolvedWorkload, matrix};
use crate::raw::TraceRaw;
use crate::read::{Cx, Located};
use crate::resolved::{
    Arrival, Content, DirectIo, EngineChoice, FileSet, Matrix, MatrixAxes, MetadataMix, Pattern,
    Stream, SyncKind, SyncPolicy, Target, TargetKind, TraceSource, Workload,
};
use crate::units::DurationNs;

/// Name of the stream that replays the trace.
const NAME: &str = "trace";
/// Smallest alignment that any Linux device requires for direct I/O.
const SECTOR_BYTES: u64 = 512;
/// Maximum alignment. No device requires a larger alignment.
const ALIGN_BYTES_MAX: u64 = 1 << 20;
/// Maximum total size of the buffers, if the number of operations in flight has its default value.
const BUFFERS_BYTES: u64 = 256 << 20;
/// Smallest and largest default for the number of operations in flight.
const DEPTHS: (u64, u64) = (16, 256);
/// Maximum number of operations in flight.
const DEPTH_MAX: u64 = 4096;
/// Minimum time limit of a replay at the speed `as-fast`.
const AS_FAST_MIN: DurationNs = DurationNs::s(60);

/// Returns the stream that replays the trace.
pub(super) fn resolve(
    raw: &TraceRaw,
    targets: &[Target],
    engine: &EngineChoice,
    cx: &mut Cx,
) -> Option<ResolvedWorkload> {
    check_targets(raw, targets, cx);
    let (source, read_percent) = source(raw, cx)?;
    let align_bytes = align(raw, cx);
    let mut sizes = matrix::size_mix(raw.size_mix.as_ref()?, cx)?;
    for size in &mut sizes {
        size.size_bytes = size.size_bytes.next_multiple_of(align_bytes.max(1));
    }
    let largest = sizes.iter().map(|size| size.size_bytes).max()?;
    let queue_depth = match &raw.queue_depth {
        Some(given) => small(given.value.0, DEPTH_MAX, &given.at, cx),
        None => (BUFFERS_BYTES / largest.max(1)).clamp(DEPTHS.0, DEPTHS.1) as u32,
    };
    let files = files(raw, targets, largest, cx)?;
    let direct = raw.direct.as_ref().map_or(engine.direct, |given| given.value);
    if direct != DirectIo::Off && !align_bytes.is_multiple_of(SECTOR_BYTES) {
        cx.fail(&raw.align.at, "cannot be used with direct I/O", "use a multiple of \"512B\"");
    }
    let arrival = match source.speed {
        Some(_) => Arrival::Recorded { file: source.file.clone() },
        None => Arrival::Closed { rate_cap_per_s: None },
    };
    // The last operation is due at the end of the trace's time span, so the phase must be longer
    // than this span. A shorter phase than one interval of the time series is not possible.
    let measure_ns = match source.speed {
        Some(speed) => {
            let span_ns = (source.span_ns as f64 / speed).ceil() as u64;
            span_ns.saturating_add(1).max(INTERVAL_MIN.0)
        }
        None => source.span_ns.max(AS_FAST_MIN.0),
    };
    let axes = MatrixAxes {
        patterns: vec![Pattern::Trace],
        queue_depths: vec![queue_depth],
        sizes_bytes: Vec::new(),
        read_percents: vec![read_percent],
    };
    let stream = Stream {
        name: NAME.to_owned(),
        clients: 1,
        queue_depth,
        batch: false,
        read_percent,
        metadata_percent: 0.0,
        align_bytes,
        think_time_ns: 0,
        direct,
        layout: raw.layout.value,
        verify_reads: false,
        sizes,
        write_sizes: Vec::new(),
        pattern: Pattern::Trace,
        arrival,
        sync: SyncPolicy { kind: SyncKind::None, every_writes: 1 },
        content: Content {
            compressibility: raw.compressibility.value.0,
            duplicate_share: 0.0,
            stamps: raw.stamps.value,
        },
        files,
        metadata_mix: MetadataMix::default(),
        start_event: None,
        trace: Some(source),
    };
    let matrix = Matrix { axes, streams: vec![stream], imported: None };
    Some(ResolvedWorkload {
        workload: Workload::Matrix(matrix),
        measure_ns: Some(measure_ns),
        warm_up_ns: Some(0),
        round_ns: None,
    })
}

/// Returns the trace, and the percentage of reads among its operations.
fn source(raw: &TraceRaw, cx: &mut Cx) -> Option<(TraceSource, f64)> {
    fn of<'r, T>(
        given: Option<&'r Located<T>>,
        name: &str,
        raw: &TraceRaw,
        cx: &mut Cx,
    ) -> Option<&'r T> {
        if given.is_none() {
            let help = "`plimsoll plan import TRACE` writes a plan that has these fields";
            cx.missing(&raw.at.unwritten(name), "is missing", help);
        }
        given.map(|given| &given.value)
    }
    let file = of(raw.file.as_ref(), "file", raw, cx);
    let sha256 = of(raw.sha256.as_ref(), "sha256", raw, cx);
    let operations = of(raw.operations.as_ref(), "operations", raw, cx);
    let span = of(raw.span.as_ref(), "span", raw, cx);
    let reads = of(raw.reads.as_ref(), "reads", raw, cx);
    let sizes = of(raw.size_mix.as_ref(), "size_mix", raw, cx);
    let speed = raw.pace.value.0;
    if let (Some(span), Some(_)) = (&raw.span, speed)
        && span.value.0 == 0
    {
        let help = "set pace = \"as-fast\"";
        cx.fail(&span.at, "is 0: the trace has no request times", help);
    }
    let source = TraceSource {
        file: file?.0.clone(),
        sha256: sha256?.0.clone(),
        operations: operations?.0,
        span_ns: span?.0,
        speed,
        map: raw.map.value,
        lag_max_ns: raw.lag_max.value.0,
    };
    sizes?;
    Some((source, reads?.0))
}

fn align(raw: &TraceRaw, cx: &mut Cx) -> u64 {
    let align = raw.align.value.0;
    if !align.is_power_of_two() || align > ALIGN_BYTES_MAX {
        let help = "use a power of two up to \"1MiB\", such as \"4KiB\"";
        cx.fail(&raw.align.at, format!("\"{}\" is not a valid alignment", raw.align.value), help);
    }
    align
}

fn files(raw: &TraceRaw, targets: &[Target], largest: u64, cx: &mut Cx) -> Option<FileSet> {
    let is_device = targets.iter().any(|t| matches!(t.kind, TargetKind::Device { .. }));
    let file_size_bytes = raw.file_size.as_ref().map(|given| given.value.0);
    match &raw.file_size {
        None if !is_device => {
            let help = "set the size of the file, for example file_size = \"1GiB\"";
            cx.missing(&raw.at.unwritten("file_size"), "is missing", help);
            return None;
        }
        Some(given) if given.value.0 < largest => {
            let message =
                format!("\"{}\" is less than the size of the largest operation", given.value);
            cx.fail(&given.at, message, "use a larger file");
        }
        _ => {}
    }
    Some(FileSet {
        shares: 1,
        files_per_share: 1,
        file_size_bytes,
        offset_bytes: 0,
        working_set_bytes: None,
        tree_levels: 0,
        tree_fan_out: 0,
    })
}

/// Checks that a trace can be replayed on the target, which must be a single file or device.
fn check_targets(raw: &TraceRaw, targets: &[Target], cx: &mut Cx) {
    if targets.iter().any(|target| target.share_count() > 1) {
        let help = "use one directory, device or export";
        cx.fail(
            &raw.at,
            "is replayed on one file or device, but the target has several directories or exports",
            help,
        );
    }
    if targets.iter().any(|target| matches!(target.kind, TargetKind::S3 { .. })) {
        let help = "use a directory, a device, an NFS export or a model";
        cx.fail(
            &raw.at,
            "cannot be replayed on a bucket, because an object can only be written as a whole",
            help,
        );
    }
}
