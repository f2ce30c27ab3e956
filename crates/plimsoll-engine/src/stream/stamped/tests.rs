use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::backend::{BackendConfig, Direct, FileSource, Prefer};
use crate::stream::mix::SizeShare;
use crate::stream::run::{Group, Pace, RunConfig, RunReport, Target, run};
use plimsoll_workload::address::{Pattern, Region};
use plimsoll_workload::content::ContentSpec;

const FILE_BYTES: u64 = 8 << 20;
const UNITS: usize = 2048;

fn contents(verify: bool) -> Contents {
    let spec = ContentSpec {
        compressibility: 1.0,
        duplicate_share: 0.0,
        space_bytes: FILE_BYTES,
        unit_bytes: 4096,
        run: 77,
        stamps: true,
    };
    Contents {
        content: Arc::new(Content::new(&spec).unwrap()),
        generations: Arc::new([Generations::new(UNITS)]),
        verify,
        earlier_runs: Arc::new([]),
    }
}

fn config(read_share: f64, pattern: Pattern, size_bytes: u32) -> MixConfig {
    let region = Region { file: 0, offset_bytes: 0, size_bytes: FILE_BYTES };
    let sizes = vec![SizeShare { size_bytes, share: 1.0 }];
    MixConfig { read_share, pattern, sizes, ..MixConfig::reads(size_bytes, region) }
}

fn go(path: &Path, mix: &MixConfig, contents: &Contents, depth: u32, operations: u64) -> RunReport {
    let files = vec![FileSource::sized(path, FILE_BYTES)];
    let (prefer, direct) = (Prefer::Auto, Direct::Auto);
    let target = Target::Files(BackendConfig { files, prefer, direct, ..Default::default() });
    let group = Group {
        name: "stamped".to_owned(),
        cpu: None,
        target,
        source: Stamped::new(mix, contents.clone(), depth).unwrap(),
        clients: 1,
        pace: Pace::Closed { depth },
        cap: None,
        size_bytes_max: mix.size_bytes_max(),
        operations_max: operations,
        reap_min: 1,
        spin_ns: 0,
    };
    let config = RunConfig {
        carry_on: true,
        ..RunConfig::new(&["read", "write", "flush"], 600_000_000_000)
    };
    run(&config, vec![group], &AtomicBool::new(false), &mut |_| ()).unwrap()
}

fn lay_out(path: &Path, contents: &Contents) {
    let whole = config(0.0, Pattern::Sequential, 1 << 20);
    let report = go(path, &whole, contents, 4, FILE_BYTES >> 20);
    assert_eq!(report.collected.totals[1].sums.bytes, FILE_BYTES);
}

#[test]
fn overlapping_reads_and_writes_raise_no_false_alarm_and_every_read_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let contents = contents(true);
    lay_out(&path, &contents);
    // Few units, many operations: reads and writes of one unit overlap all the time.
    let small = Region { file: 0, offset_bytes: 0, size_bytes: 16 * 4096 };
    let mix = MixConfig { regions: vec![small], ..config(0.5, Pattern::Random, 8192) };
    let report = go(&path, &mix, &contents, 16, 20_000);
    assert_eq!(report.collected.totals[0].sums.errors, 0);
    // When it is quiet, each unit holds exactly what was acknowledged last.
    let whole = config(1.0, Pattern::Sequential, 1 << 20);
    let report = go(&path, &whole, &contents, 1, FILE_BYTES >> 20);
    assert_eq!(report.collected.totals[0].sums.errors, 0);
    let generation = contents.generations[0].expected(3).generation;
    assert!(generation > 100, "unit 3 was written again and again: {generation}");
}

#[test]
fn a_thousand_single_bit_flips_are_all_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let contents = contents(true);
    lay_out(&path, &contents);
    let mut bytes = std::fs::read(&path).unwrap();
    // Each in a unit of its own, in every part of the unit, by a fixed sequence.
    let mut state = 12_345u64;
    for unit in 0..1000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (byte, bit) = ((state >> 33) as usize % 4096, (state >> 20) % 8);
        bytes[(unit * 2) * 4096 + byte] ^= 1 << bit;
    }
    std::fs::write(&path, &bytes).unwrap();
    let mut source = Stamped::new(&config(1.0, Pattern::Sequential, 1 << 20), contents, 1).unwrap();
    for chunk in bytes.chunks_exact_mut(1 << 20) {
        let op = source.next(0).unwrap();
        source.completed(0, &op, chunk);
    }
    let checks = source.checks();
    assert_eq!(checks.counts.damaged(), 1000, "{:?}", checks.counts);
    assert_eq!(checks.counts.corrupt, 1000);
    assert_eq!(checks.counts.good, UNITS as u64 - 1000);
    assert_eq!(checks.findings.len(), FINDINGS_MAX);
}

#[test]
fn damage_on_the_target_fails_the_operation_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let contents = contents(true);
    lay_out(&path, &contents);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.copy_within(40 * 4096..41 * 4096, 7 * 4096);
    bytes[9 * 4096..10 * 4096].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let whole = config(1.0, Pattern::Sequential, 4096);
    let report = go(&path, &whole, &contents, 1, UNITS as u64);
    assert_eq!(report.collected.totals[0].sums.errors, 2);
    let error = report.groups[0].failure().unwrap();
    assert!(error.to_string().contains("at byte 28672"), "{error}");
    let mut source = Stamped::new(&whole, contents, 1).unwrap();
    for chunk in bytes.chunks_exact_mut(4096) {
        let op = source.next(0).unwrap();
        source.completed(0, &op, chunk);
    }
    let checks = source.checks();
    assert_eq!((checks.counts.misdirected, checks.counts.unwritten), (1, 1));
    assert_eq!(checks.findings[0].offset_bytes, 7 * 4096);
}

#[test]
fn untracked_writes_never_repeat_themselves() {
    let contents = Contents {
        content: contents(false).content,
        generations: Arc::new([]),
        verify: false,
        earlier_runs: Arc::new([]),
    };
    let region = Region { file: 0, offset_bytes: 0, size_bytes: 4096 };
    let mix = MixConfig { regions: vec![region], ..config(0.0, Pattern::Random, 4096) };
    let mut source = Stamped::new(&mix, contents, 1).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let op = source.next(0).unwrap();
        let mut buffer = vec![0u8; 4096];
        source.fill(0, &op, &mut buffer);
        assert!(seen.insert(buffer));
    }
}

#[test]
fn streams_that_cannot_be_checked_are_refused() {
    let odd = config(1.0, Pattern::Random, 6144);
    assert!(matches!(Stamped::new(&odd, contents(true), 1), Err(StreamError::Content(_))));
    let far = Region { file: 1, offset_bytes: 0, size_bytes: 4096 };
    let far = MixConfig { regions: vec![far], ..config(1.0, Pattern::Random, 4096) };
    let error = Stamped::new(&far, contents(true), 1).unwrap_err();
    assert_eq!(error, StreamError::Untracked { file: 1, units: 1 });
}

#[test]
fn a_read_across_a_write_may_see_either() {
    let before = Expected { generation: 4, back: 0, in_flight: false, seen: true };
    let after = Expected { generation: 6, back: 0, in_flight: false, seen: false };
    let both = either(before, after);
    assert_eq!((both.generation, both.oldest(), both.seen), (6, 4, false));
    assert_eq!(either(after, after), after);
}
