use std::collections::{HashMap, HashSet};

use plimsoll_plan::{MetadataMix, Pattern, SyncPolicy};

use super::*;
use crate::matrix::{FileSet, classes};

const KIB: u64 = 1024;

fn config() -> StreamConfig {
    StreamConfig {
        name: "matrix".into(),
        seed: 7,
        clients: 8,
        queue_depth: 4,
        files: FileSet {
            first_file: 0,
            shares: 4,
            files_per_share: 15,
            file_size_bytes: 1 << 30,
            offset_bytes: 0,
            working_set_bytes: None,
        },
        read_percent: 75.0,
        sizes: vec![SizeShare { size_bytes: 4096, share_percent: 100.0 }],
        write_sizes: Vec::new(),
        pattern: Pattern::Random,
        align_bytes: 0,
        sync: SyncPolicy { kind: SyncKind::None, every_writes: 1 },
        metadata_percent: 0.0,
        metadata_mix: MetadataMix {
            getattr_percent: 40.0,
            lookup_percent: 20.0,
            access_percent: 15.0,
            readdir_percent: 5.0,
            create_percent: 5.0,
            remove_percent: 5.0,
            rename_percent: 5.0,
            setattr_percent: 5.0,
        },
        names_per_client: 64,
        first_byte: false,
        trace: None,
    }
}

fn ops(config: &StreamConfig, client: u32, n: usize) -> Vec<Op> {
    let mut part = StreamPart::new(config.clone(), 0..config.clients).unwrap();
    (0..n).map(|_| part.next(client).unwrap()).collect()
}

/// After 20,000 operations of one client, every kind of operation has its configured share, to
/// within 0.5 % of all operations. The kinds are reads of four sizes, writes of two sizes, and
/// eight kinds of metadata operations.
#[test]
fn shares_are_met_within_half_a_percent() {
    let size = |kib: u64, share_percent| SizeShare { size_bytes: kib * KIB, share_percent };
    let config = StreamConfig {
        sizes: vec![size(4, 60.0), size(8, 20.0), size(64, 15.0), size(128, 5.0)],
        write_sizes: vec![size(4, 30.0), size(32, 70.0)],
        metadata_percent: 30.0,
        ..config()
    };
    let n = 20_000;
    let mut counts: HashMap<String, f64> = HashMap::new();
    for op in ops(&config, 3, n) {
        let key = match op.kind {
            OpKind::Metadata(kind) => kind.word().to_owned(),
            kind => format!("{kind:?} {}", u64::from(op.size_bytes) / KIB),
        };
        *counts.entry(key).or_default() += 100.0 / n as f64;
    }
    let data = 0.7;
    let mut expected: HashMap<String, f64> = HashMap::new();
    for (s, of) in config
        .sizes
        .iter()
        .map(|s| (s, ("Read", 0.75)))
        .chain(config.write_sizes.iter().map(|s| (s, ("Write", 0.25))))
    {
        let key = format!("{} {}", of.0, s.size_bytes / KIB);
        expected.insert(key, s.share_percent * data * of.1);
    }
    for (kind, weight) in MetadataKind::ALL.iter().zip(metadata::weights(&config.metadata_mix)) {
        expected.insert(kind.word().to_owned(), weight * 0.3);
    }
    assert_eq!(counts.len(), expected.len());
    for (key, share) in expected {
        assert!((counts[&key] - share).abs() < 0.5, "{key}: {} for {share}", counts[&key]);
    }
}

#[test]
fn a_client_does_the_same_whichever_thread_drives_it() {
    for pattern in [
        Pattern::Random,
        Pattern::Permutation,
        Pattern::Sequential,
        Pattern::SequentialShared,
        Pattern::Zipf { exponent: 1.0 },
    ] {
        let config = StreamConfig { pattern, metadata_percent: 10.0, ..config() };
        let mut whole = StreamPart::new(config.clone(), 0..8).unwrap();
        let mut halves =
            [StreamPart::new(config.clone(), 0..3), StreamPart::new(config.clone(), 3..99)]
                .map(Result::unwrap);
        for i in 0..2_000u32 {
            let client = i % 8;
            let half = &mut halves[usize::from(client >= 3)];
            assert_eq!(whole.next(client), half.next(client), "{pattern:?}");
        }
        assert_eq!(whole.next(8), None);
        assert_eq!(halves[1].next(0), None);
    }
}

#[test]
fn clients_keep_to_their_share_and_inside_their_files() {
    let config = StreamConfig { metadata_percent: 20.0, ..config() };
    let mut part = StreamPart::new(config.clone(), 0..8).unwrap();
    let mut files = HashSet::new();
    for i in 0..20_000u32 {
        let client = i % 8;
        let op = part.next(client).unwrap();
        assert_eq!(op.share, client % 4);
        if matches!(op.kind, OpKind::Read | OpKind::Write) {
            assert_eq!(op.file / 15, op.share);
            assert_eq!(op.offset_bytes % 4096, 0);
            assert!(op.offset_bytes + u64::from(op.size_bytes) <= 1 << 30);
            files.insert(op.file);
        }
    }
    assert_eq!(files.len(), 60);
}

/// In one pass, all clients of a share together visit each block once.
#[test]
fn a_permutation_is_shared_by_the_clients_of_a_share() {
    let mut config = StreamConfig { pattern: Pattern::Permutation, clients: 3, ..config() };
    config.files.shares = 1;
    config.files.files_per_share = 2;
    config.files.file_size_bytes = 300 * 4096;
    let mut part = StreamPart::new(config, 0..3).unwrap();
    let mut seen = HashSet::new();
    for i in 0..600u32 {
        let op = part.next(i % 3).unwrap();
        assert!(seen.insert((op.file, op.offset_bytes)));
    }
}

#[test]
fn writes_are_synced_as_often_as_asked() {
    for (kind, every) in [(SyncKind::Fsync, 1), (SyncKind::Fdatasync, 8), (SyncKind::Fsync, 0)] {
        let sync = SyncPolicy { kind, every_writes: every };
        let (mut writes, mut syncs, mut last) = (0u32, 0u32, None);
        for op in ops(&StreamConfig { sync, read_percent: 50.0, ..config() }, 0, 5_000) {
            match op.kind {
                OpKind::Write => {
                    writes += 1;
                    last = Some(op.file);
                }
                OpKind::Fsync | OpKind::Fdatasync => {
                    assert_eq!(op.kind == OpKind::Fsync, kind == SyncKind::Fsync);
                    assert_eq!(Some(op.file), last);
                    assert_eq!(writes % every.max(1), 0);
                    syncs += 1;
                }
                _ => {}
            }
        }
        assert!(syncs > 100 && (writes / every.max(1)).abs_diff(syncs) <= 1);
    }
    let sync = SyncPolicy { kind: SyncKind::Dsync, every_writes: 1 };
    let all = ops(&StreamConfig { sync, read_percent: 0.0, ..config() }, 0, 100);
    assert!(all.iter().all(|op| op.kind == OpKind::WriteDurable && op.class == 1));
}

/// In a replay, every create makes a new name, and every remove and rename applies to an existing
/// name.
#[test]
fn small_files_exist_when_they_are_touched() {
    let config = StreamConfig { metadata_percent: 100.0, ..config() };
    let mut part = StreamPart::new(config.clone(), 0..8).unwrap();
    let mut there: HashSet<(u32, u64)> =
        (0..8).flat_map(|client| (0..64).map(move |name| (client, name))).collect();
    for i in 0..40_000u32 {
        let client = i % 8;
        let op = part.next(client).unwrap();
        match op.kind {
            OpKind::Metadata(MetadataKind::Create) => assert!(there.insert((client, op.name))),
            OpKind::Metadata(MetadataKind::Remove) => assert!(there.remove(&(client, op.name))),
            OpKind::Metadata(MetadataKind::Rename) => {
                assert!(there.remove(&(client, op.name)));
                assert!(there.insert((client, op.new_name)));
            }
            _ => {}
        }
    }
    let counted: u64 = part.each.iter().map(|client| client.names.count()).sum();
    assert_eq!(counted, there.len() as u64);
}

#[test]
fn classes_are_those_of_the_operations() {
    let sync = SyncPolicy { kind: SyncKind::Fdatasync, every_writes: 3 };
    let config = StreamConfig { metadata_percent: 30.0, sync, ..config() };
    let classes = classes("matrix", SyncKind::Fdatasync);
    let mut seen = HashSet::new();
    for op in ops(&config, 1, 5_000) {
        let class = &classes[usize::from(op.class)];
        assert_eq!(class.kind, op.kind);
        seen.insert(class.name.clone());
    }
    // No operation has the class of durable writes, because its latencies combine a write and its
    // flush.
    assert_eq!(seen.len(), classes.len() - 1);
    assert!(seen.contains("matrix.read") && seen.contains("matrix.setattr"));
}

#[test]
fn what_can_not_be_is_refused_and_named() {
    let bad = [
        StreamConfig { read_percent: 101.0, ..config() },
        StreamConfig { metadata_percent: -1.0, ..config() },
        StreamConfig { metadata_percent: 5.0, metadata_mix: MetadataMix::default(), ..config() },
        StreamConfig { sizes: Vec::new(), ..config() },
        StreamConfig { clients: 0, ..config() },
        StreamConfig { sizes: vec![SizeShare { size_bytes: 0, share_percent: 1.0 }], ..config() },
        StreamConfig { pattern: Pattern::Normal { deviation: 0.0 }, ..config() },
    ];
    for config in bad {
        let error = StreamPart::new(config, 0..1).unwrap_err();
        assert!(error.to_string().starts_with("stream \"matrix\": "), "{error}");
    }
}
