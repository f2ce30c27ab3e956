//! Our side: one workload, run in a separate process, with its result printed as JSON.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_engine::backend::{BackendConfig, Direct, FileSource, Prefer};
use plimsoll_engine::stream::matrix::{MatrixSource, WriteContent};
use plimsoll_engine::stream::run::{Group, RunConfig, RunReport, Target, run as run_groups};
use plimsoll_plan::{MetadataMix, Pattern, SizeShare, SyncKind, SyncPolicy};
use plimsoll_record::histogram::HistogramTotals;
use plimsoll_workload::content::{Content, ContentSpec};
use plimsoll_workload::matrix::{FileSet, Sample, StreamConfig};
use plimsoll_workload::planned::pace::Pace;
use plimsoll_workload::stamp::Generations;
use serde_json::json;

#[derive(Debug)]
struct Case {
    engine: String,
    path: String,
    work: String,
    depth: u32,
    direct: bool,
    size_bytes: u32,
    nanoseconds: u64,
    operations_max: u64,
}

fn parse(args: &[String]) -> Result<Case, String> {
    let mut case = Case {
        engine: String::new(),
        path: String::new(),
        work: String::new(),
        depth: 1,
        direct: false,
        size_bytes: 4096,
        nanoseconds: 3_000_000_000,
        operations_max: u64::MAX,
    };
    let mut plain = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if !arg.starts_with("--") {
            plain.push(arg.clone());
            continue;
        }
        let value = rest.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or(format!("{arg} needs a number"))?;
        match arg.as_str() {
            "--depth" => case.depth = value as u32,
            "--direct" => case.direct = value == 1,
            "--size" => case.size_bytes = value as u32,
            "--seconds" => case.nanoseconds = value * 1_000_000_000,
            "--operations" => case.operations_max = value,
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    match plain.as_slice() {
        [engine, work] if engine == "null" => {
            (case.engine, case.work) = (engine.clone(), work.clone());
        }
        [engine, path, work] => {
            (case.engine, case.path, case.work) = (engine.clone(), path.clone(), work.clone());
        }
        _ => return Err(format!("not a case: {args:?}")),
    }
    Ok(case)
}

fn target(case: &Case) -> Target {
    if case.engine == "null" {
        return Target::Null;
    }
    let path = case.path.clone().into();
    let write = matches!(case.work.as_str(), "write" | "layout" | "write-made" | "write-sampled");
    let (create, size_bytes) = (false, 0);
    Target::Files(BackendConfig {
        files: vec![FileSource::Path { path, write, create, size_bytes }],
        prefer: if case.engine == "inline" { Prefer::Threads } else { Prefer::Uring },
        direct: if case.direct { Direct::Required } else { Direct::Off },
        ..BackendConfig::default()
    })
}

/// Returns the stream of a case: uniform 4 KiB reads by default.
pub fn stream(file_size_bytes: u64) -> StreamConfig {
    StreamConfig {
        name: "bench".to_owned(),
        seed: 42,
        clients: 1,
        queue_depth: 1,
        files: FileSet {
            first_file: 0,
            shares: 1,
            files_per_share: 1,
            file_size_bytes,
            offset_bytes: 0,
            working_set_bytes: None,
        },
        read_percent: 100.0,
        sizes: vec![SizeShare { size_bytes: 4096, share_percent: 1.0 }],
        write_sizes: Vec::new(),
        pattern: Pattern::Random,
        align_bytes: 0,
        sync: SyncPolicy { kind: SyncKind::None, every_writes: 0 },
        metadata_percent: 0.0,
        metadata_mix: MetadataMix::default(),
        names_per_client: 0,
        first_byte: false,
        trace: None,
    }
}

/// Returns the address space for a target without a size.
fn empty_bytes(case: &Case) -> u64 {
    // Tracked content needs memory for every group of units.
    if case.work.ends_with("-sampled") || case.work.ends_with("-made") { 1 << 30 } else { 1 << 40 }
}

fn stream_of(case: &Case) -> StreamConfig {
    let file_bytes = std::fs::metadata(&case.path).map_or(0, |meta| meta.len());
    let mut stream = stream(if file_bytes == 0 { empty_bytes(case) } else { file_bytes });
    let one = |size_bytes| vec![SizeShare { size_bytes, share_percent: 1.0 }];
    match case.work.as_str() {
        "write" | "write-made" | "write-sampled" => stream.read_percent = 0.0,
        "layout" | "verify" => {
            stream.read_percent = if case.work == "verify" { 100.0 } else { 0.0 };
            (stream.pattern, stream.sizes) = (Pattern::Sequential, one(1 << 20));
        }
        "content" | "half" => {
            stream.read_percent = 0.0;
            (stream.pattern, stream.sizes) = (Pattern::Sequential, one(case.size_bytes.into()));
        }
        "mix" => {
            stream.read_percent = 70.0;
            stream.sizes = [(4096, 40.0), (8192, 30.0), (16_384, 20.0), (32_768, 10.0)]
                .map(|(size_bytes, share_percent)| SizeShare { size_bytes, share_percent })
                .to_vec();
            stream.pattern = Pattern::Zipf { exponent: 1.1 };
        }
        _ => {}
    }
    stream
}

/// Returns the content of writes, which reads are compared with.
fn content(case: &Case, space_bytes: u64) -> Result<WriteContent, String> {
    let (compressibility, duplicate_share) = match case.work.as_str() {
        "half" => (2.0, 0.3),
        "content" | "layout" | "verify" => (1.0, 0.0),
        "write-made" | "write-sampled" | "read-made" | "read-sampled" => (1.0, 0.0),
        _ => return Ok(WriteContent::Buffers),
    };
    let (unit_bytes, run, stamps) = (4096, 1, true);
    let spec =
        ContentSpec { compressibility, duplicate_share, space_bytes, unit_bytes, run, stamps };
    let content = Content::new(&spec).map_err(|error| error.to_string())?;
    if case.work.ends_with("-sampled") {
        let units = space_bytes / 4096;
        let sample = Sample::new(std::iter::once(units), units, 42);
        sample.written_once();
        return Ok(WriteContent::Sampled { content, sample: Arc::new(sample) });
    }
    if !matches!(case.work.as_str(), "layout" | "verify") {
        return Ok(WriteContent::Made(content));
    }
    let generations = Generations::new((space_bytes / 4096) as usize);
    let verify_reads = case.work == "verify";
    if verify_reads {
        generations.written_once();
    }
    Ok(WriteContent::Tracked {
        content,
        generations: Arc::new([generations]),
        verify_reads,
        sample: None,
    })
}

/// Runs the case that `args` describe.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut case = parse(args)?;
    let stream = stream_of(&case);
    let space_bytes = stream.files.file_size_bytes;
    if case.work == "layout" {
        case.operations_max = space_bytes >> 20;
    }
    let size_bytes_max = stream.size_bytes_max();
    let content = content(&case, space_bytes)?;
    let source = MatrixSource::new(stream, [0].into(), content, case.depth);
    let group = Group {
        name: "bench".to_owned(),
        place: plimsoll_engine::placement::Placement::default(),
        target: target(&case),
        source: source.map_err(|error| error.to_string())?,
        clients: 1,
        pace: Pace::Closed { depth: case.depth },
        cap: None,
        size_bytes_max,
        operations_max: case.operations_max,
        spin_ns: 0,
    };
    let lengths = RunConfig::new(&["read", "write", "flush"], case.nanoseconds);
    let report = run_groups(&lengths, vec![group], &AtomicBool::new(false), &mut |_| ())
        .map_err(|error| error.to_string())?;
    if let Some(error) = report.groups.iter().find_map(|group| group.failure()) {
        return Err(error.to_string());
    }
    print(&report);
    Ok(())
}

fn print(report: &RunReport) {
    let window = &report.collected.window;
    let operations: u64 = window.iter().map(|sums| sums.operations).sum();
    let bytes: u64 = window.iter().map(|sums| sums.bytes).sum();
    let mut service = HistogramTotals::default();
    for class in &report.collected.totals {
        service.merge(&class.service);
    }
    let ended: u64 = report.groups.iter().map(|group| group.end.ended).sum();
    // The comparison is valid only if every operation was recorded in full.
    assert_eq!(service.count(), ended, "an operation is missing from the histograms");
    let line = json!({
        "operations": operations,
        "bytes": bytes,
        "measured_ns": report.measured_ns(),
        "p50_ns": service.quantile_ns(0.5),
        "p99_ns": service.quantile_ns(0.99),
        "punt_workers": report.groups.iter().map(|group| group.punt_workers).sum::<usize>(),
    });
    println!("{line}");
}
