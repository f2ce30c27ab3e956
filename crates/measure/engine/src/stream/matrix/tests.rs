use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_plan::{MetadataMix, Pattern, SizeShare, SyncKind, SyncPolicy};
use plimsoll_workload::content::ContentSpec;
use plimsoll_workload::matrix::FileSet;
use plimsoll_workload::planned::pace::Pace;

use super::*;
use crate::backend::{BackendConfig, Direct, FileSource, Prefer};
use crate::stream::run::{Group, RunConfig, RunReport, Target, run};

const FILE_BYTES: u64 = 8 << 20;
const UNITS: usize = 2048;

fn config(read_percent: f64, pattern: Pattern, size_bytes: u64) -> StreamConfig {
    StreamConfig {
        name: "s".to_owned(),
        seed: 1,
        clients: 1,
        queue_depth: 16,
        files: FileSet {
            first_file: 0,
            shares: 1,
            files_per_share: 1,
            file_size_bytes: FILE_BYTES,
            offset_bytes: 0,
            working_set_bytes: None,
        },
        read_percent,
        sizes: vec![SizeShare { size_bytes, share_percent: 1.0 }],
        write_sizes: Vec::new(),
        pattern,
        align_bytes: 0,
        sync: SyncPolicy { kind: SyncKind::None, every_writes: 0 },
        metadata_percent: 0.0,
        metadata_mix: MetadataMix { getattr_percent: 1.0, ..MetadataMix::default() },
        names_per_client: 0,
        first_byte: false,
        trace: None,
    }
}

fn made(stamps: bool) -> Content {
    let spec = ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: FILE_BYTES,
        unit_bytes: 4096,
        run: 77,
        stamps,
    };
    Content::new(&spec).unwrap()
}

fn followed(generations: &Arc<[Generations]>) -> WriteContent {
    let generations = Arc::clone(generations);
    WriteContent::Tracked { content: made(true), generations, verify_reads: true, sample: None }
}

fn untouched() -> Arc<[Generations]> {
    Arc::new([Generations::new(UNITS)])
}

fn go(path: &Path, stream: StreamConfig, content: WriteContent, depth: u32, max: u64) -> RunReport {
    let files = vec![FileSource::sized(path, FILE_BYTES)];
    let (prefer, direct) = (Prefer::Auto, Direct::Auto);
    let target = Target::Files(BackendConfig { files, prefer, direct, ..Default::default() });
    let names: Vec<String> = stream.classes().into_iter().map(|class| class.name).collect();
    let size_bytes_max = stream.size_bytes_max();
    let group = Group {
        name: "matrix".to_owned(),
        place: crate::placement::Placement::default(),
        target,
        source: MatrixSource::new(stream, [0].into(), content, depth).unwrap(),
        clients: 1,
        pace: Pace::Closed { depth },
        cap: None,
        size_bytes_max,
        operations_max: max,
        spin_ns: 0,
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let config = RunConfig { carry_on: true, ..RunConfig::new(&names, 600_000_000_000) };
    run(&config, vec![group], &AtomicBool::new(false), &mut |_| ()).unwrap()
}

fn lay_out(path: &Path, generations: &Arc<[Generations]>) {
    let whole = config(0.0, Pattern::Sequential, 1 << 20);
    let report = go(path, whole, followed(generations), 4, FILE_BYTES >> 20);
    assert_eq!(report.collected.totals[1].totals.bytes, FILE_BYTES);
}

#[test]
fn overlapping_reads_and_writes_raise_no_false_alarm_and_every_read_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let generations = untouched();
    lay_out(&path, &generations);
    // Many operations access few units, so reads and writes of the same unit overlap constantly.
    let mut few = config(50.0, Pattern::Random, 8192);
    few.files.working_set_bytes = Some(16 * 4096);
    let report = go(&path, few, followed(&generations), 16, 20_000);
    assert_eq!(report.collected.totals[0].totals.errors, 0);
    // In this run, no write is in flight. Each unit must contain exactly the last acknowledged
    // write.
    let whole = config(100.0, Pattern::Sequential, 1 << 20);
    let report = go(&path, whole, followed(&generations), 1, FILE_BYTES >> 20);
    assert_eq!(report.collected.totals[0].totals.errors, 0);
    let often = |unit: &u64| generations[0].expected(*unit).generation >= 100;
    let tracked = (0..16).filter(often).count();
    assert!(tracked > 8, "units were written again and again, and stay tracked: {tracked}");
}

/// If many writes to one block are in flight, some cannot be tracked. The load must not change
/// because of this.
#[test]
fn writes_that_cannot_be_tracked_are_issued_as_planned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let generations = untouched();
    lay_out(&path, &generations);
    let mut hot = config(0.0, Pattern::Random, 4096);
    hot.files.working_set_bytes = Some(4096);
    hot.queue_depth = 64;
    let report = go(&path, hot, followed(&generations), 64, 5_000);
    let totals = &report.collected.totals;
    assert_eq!((totals[0].totals.operations, totals[1].totals.operations), (0, 5_000));
    // The content is unknown, unless the last write was the only one in flight.
    let generation = generations[0].expected(0).generation;
    assert!([0, 5_001].contains(&generation), "{generation}");
    let whole = config(100.0, Pattern::Sequential, 1 << 20);
    let report = go(&path, whole, followed(&generations), 1, FILE_BYTES >> 20);
    assert_eq!(report.collected.totals[0].totals.errors, 0);
}

#[test]
fn a_sample_is_checked_without_following_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    // There are fewer units than the sample can contain, so the sample contains every unit.
    let sample = Arc::new(Sample::new([UNITS as u64].into_iter(), 64, 7));
    let sampled = || WriteContent::Sampled { content: made(true), sample: Arc::clone(&sample) };
    let whole = config(0.0, Pattern::Sequential, 1 << 20);
    go(&path, whole, sampled(), 4, FILE_BYTES >> 20);
    // Overlapping reads and writes must not be reported as damage.
    let mut few = config(50.0, Pattern::Random, 8192);
    few.files.working_set_bytes = Some(16 * 4096);
    let report = go(&path, few, sampled(), 16, 20_000);
    let totals = &report.collected.totals;
    assert_eq!((totals[0].totals.errors, totals[1].totals.errors), (0, 0));
    assert_eq!(totals[0].totals.operations + totals[1].totals.operations, 20_000);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[900 * 4096 + 77] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let whole = config(100.0, Pattern::Sequential, 1 << 16);
    let report = go(&path, whole, sampled(), 4, FILE_BYTES >> 16);
    assert_eq!(report.collected.totals[0].totals.errors, 1);
    let error = report.groups[0].failure().unwrap();
    let at = 900 * 4096 / 65_536 * 65_536;
    assert!(error.to_string().contains(&format!("at byte {at}")), "{error}");
}

/// Passes the bytes to a source as if it had read them, and returns the results of its checks.
fn checked(bytes: &mut [u8], generations: &Arc<[Generations]>, size_bytes: u64) -> Checks {
    let whole = config(100.0, Pattern::Sequential, size_bytes);
    let mut source = MatrixSource::new(whole, [0].into(), followed(generations), 1).unwrap();
    for chunk in bytes.chunks_exact_mut(size_bytes as usize) {
        let op = source.next(0).unwrap();
        source.completed(0, &op, chunk);
    }
    source.checks()
}

#[test]
fn a_thousand_single_bit_flips_are_all_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let generations = untouched();
    lay_out(&path, &generations);
    let mut bytes = std::fs::read(&path).unwrap();
    // Flips one bit in every second unit. The position in the unit follows a fixed pseudo-random
    // sequence (Knuth's MMIX).
    let mut state = 12_345u64;
    for unit in 0..1000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        let (byte, bit) = ((state >> 33) as usize % 4096, (state >> 20) % 8);
        bytes[unit * 2 * 4096 + byte] ^= 1 << bit;
    }
    let checks = checked(&mut bytes, &generations, 1 << 20);
    assert_eq!(checks.counts.damaged(), 1000, "{:?}", checks.counts);
    assert_eq!(checks.counts.corrupt, 1000);
    assert_eq!(checks.counts.good, UNITS as u64 - 1000);
}

#[test]
fn damage_on_the_target_fails_the_operation_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let generations = untouched();
    lay_out(&path, &generations);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.copy_within(40 * 4096..41 * 4096, 7 * 4096);
    bytes[9 * 4096..10 * 4096].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let whole = config(100.0, Pattern::Sequential, 4096);
    let report = go(&path, whole, followed(&generations), 1, UNITS as u64);
    assert_eq!(report.collected.totals[0].totals.errors, 2);
    let error = report.groups[0].failure().unwrap();
    assert!(error.to_string().contains("at byte 28672"), "{error}");
    let checks = checked(&mut bytes, &generations, 4096);
    assert_eq!((checks.counts.misdirected, checks.counts.unwritten), (1, 1));
    assert_eq!(checks.first_finding.unwrap().offset_bytes, 7 * 4096);
}

#[test]
fn made_content_never_repeats_itself() {
    let mut one = config(0.0, Pattern::Random, 4096);
    one.files.working_set_bytes = Some(4096);
    let content = WriteContent::Made(made(true));
    let mut source = MatrixSource::new(one, [0].into(), content, 1).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let op = source.next(0).unwrap();
        assert_eq!(op.offset_bytes, 0);
        let mut buffer = vec![0u8; 4096];
        source.fill(0, &op, &mut buffer);
        assert!(seen.insert(buffer));
    }
}

#[test]
fn buffers_that_nothing_fills_are_never_zero() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let whole = config(0.0, Pattern::Sequential, 1 << 20);
    go(&path, whole, WriteContent::Buffers, 2, FILE_BYTES >> 20);
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.chunks_exact(512).all(|sector| sector.iter().any(|byte| *byte != 0)));
    assert_ne!(bytes[..4096], bytes[4096..8192]);
}

#[test]
fn syncs_follow_writes_through_the_driver() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let mut stream = config(0.0, Pattern::Random, 4096);
    stream.sync = SyncPolicy { kind: SyncKind::Fdatasync, every_writes: 4 };
    let report = go(&path, stream, WriteContent::Buffers, 1, 100);
    let totals = &report.collected.totals;
    assert_eq!((totals[1].totals.operations, totals[2].totals.operations), (80, 20));
    assert_eq!(totals[2].latency.count(), 20);
}

#[test]
fn streams_that_cannot_be_driven_are_refused() {
    let new = |stream, content| MatrixSource::new(stream, [0].into(), content, 1).unwrap_err();
    let odd = config(100.0, Pattern::Random, 6144);
    assert!(matches!(new(odd, followed(&untouched())), SourceError::Content { .. }));
    let mut two = config(100.0, Pattern::Random, 4096);
    two.files.files_per_share = 2;
    let error = new(two, followed(&untouched()));
    assert!(matches!(error, SourceError::Untracked { file: 1, units: 0, .. }), "{error}");
    let bare = WriteContent::Tracked {
        content: made(false),
        generations: untouched(),
        verify_reads: true,
        sample: None,
    };
    let error = new(config(100.0, Pattern::Random, 4096), bare);
    assert_eq!(error, SourceError::NoStamps("s".to_owned()));
}
