use super::*;
use proptest::prelude::*;

const REGION: Region = Region { file: 0, offset_bytes: 0, size_bytes: 1 << 30 };

fn sizes(list: &[(u32, f64)]) -> Vec<SizeShare> {
    list.iter()
        .map(|(size_bytes, share)| SizeShare { size_bytes: *size_bytes, share: *share })
        .collect()
}

fn four_sizes() -> MixConfig {
    MixConfig {
        read_share: 0.7,
        sizes: sizes(&[(4096, 40.0), (8192, 30.0), (16_384, 20.0), (65_536, 10.0)]),
        pattern: Pattern::Zipf { exponent: 1.1 },
        ..MixConfig::reads(4096, REGION)
    }
}

fn count(ops: &[Op], like: impl Fn(&Op) -> bool) -> f64 {
    ops.iter().filter(|op| like(op)).count() as f64 / ops.len() as f64
}

#[test]
fn six_thousand_operations_already_have_the_shares_that_were_asked() {
    let mut mix = Mix::new(&four_sizes()).unwrap();
    let ops: Vec<Op> = (0..6_400).filter_map(|_| mix.take(0)).collect();
    let reads = count(&ops, |op| op.kind == OpKind::Read);
    assert!((reads - 0.7).abs() < 0.005 * 0.7, "{reads}");
    for (size, share) in [(4096, 0.4), (8192, 0.3), (16_384, 0.2), (65_536, 0.1)] {
        let got = count(&ops, |op| op.size_bytes == size);
        assert!((got - share).abs() < 0.005, "{size}: {got}");
        let both = count(&ops, |op| op.size_bytes == size && op.kind == OpKind::Write);
        assert!((both - share * 0.3).abs() < 0.005, "{size}: {both}");
    }
}

#[test]
fn kinds_come_in_no_regular_order() {
    let config = MixConfig { read_share: 0.5, ..MixConfig::reads(4096, REGION) };
    let mut mix = Mix::new(&config).unwrap();
    let reads: Vec<bool> =
        (0..64_000).filter_map(|_| mix.take(0)).map(|op| op.kind == OpKind::Read).collect();
    // Independent draws follow one of their own kind half the time; strata shift that a little.
    for lag in 1..20 {
        let same = reads.windows(lag + 1).filter(|w| w[0] == w[lag]).count();
        let share = same as f64 / (reads.len() - lag) as f64;
        assert!((0.44..0.56).contains(&share), "lag {lag}: {share}");
    }
}

proptest! {
    #[test]
    fn any_mix_stays_in_its_regions_and_keeps_its_shares(
        read_share in 0.0f64..=1.0,
        seed in any::<u64>(),
        small in 1u32..16,
        large in 16u32..64,
    ) {
        let config = MixConfig {
            read_share,
            sizes: sizes(&[(small * 512, 1.0), (large * 512, 2.0)]),
            write_sizes: sizes(&[(4096, 1.0)]),
            seed,
            align_bytes: 512,
            ..MixConfig::reads(512, REGION)
        };
        let mut mix = Mix::new(&config).unwrap();
        let ops: Vec<Op> = (0..4_096).filter_map(|_| mix.take(0)).collect();
        prop_assert_eq!(ops.len(), 4_096);
        let reads = count(&ops, |op| op.kind == OpKind::Read);
        prop_assert!((reads - read_share).abs() < 0.006, "{reads}");
        for op in &ops {
            prop_assert!(op.offset_bytes + u64::from(op.size_bytes) <= REGION.size_bytes);
            prop_assert_eq!(op.offset_bytes % 512, 0);
            prop_assert!(op.kind == OpKind::Read || op.size_bytes == 4096);
            prop_assert_eq!(op.class, u16::from(op.kind != OpKind::Read));
        }
    }
}

#[test]
fn clients_are_the_same_however_they_are_spread() {
    let all = MixConfig { clients: 4, clients_in_all: 4, ..four_sizes() };
    let mut together = Mix::new(&all).unwrap();
    for client in 0..4u32 {
        let alone = MixConfig { client_first: client, clients: 1, ..all.clone() };
        let mut alone = Mix::new(&alone).unwrap();
        for _ in 0..500 {
            assert_eq!(alone.take(0), together.take(client));
        }
    }
    assert_eq!(together.take(4), None);
}

#[test]
fn flushes_follow_writes_and_reach_every_file_that_was_written() {
    let region = |file| Region { file, offset_bytes: 0, size_bytes: 8192 };
    let config = MixConfig {
        read_share: 0.25,
        regions: vec![region(0), region(1), region(2)],
        durability: Durability::Flush { every_writes: 10, with_metadata: false },
        class_first: 3,
        ..MixConfig::reads(4096, REGION)
    };
    let mut mix = Mix::new(&config).unwrap();
    let (mut writes, mut dirty) = (0, std::collections::BTreeSet::new());
    let mut flushed = 0;
    for _ in 0..5_000 {
        let op = mix.take(0).unwrap();
        match op.kind {
            OpKind::Flush => {
                assert_eq!((op.class, op.size_bytes), (5, 0));
                assert!(dirty.remove(&op.file));
                flushed += 1;
                if dirty.is_empty() {
                    assert_eq!(writes, 10);
                    writes = 0;
                }
            }
            OpKind::Write => {
                assert!(writes < 10, "the flush comes first");
                writes += 1;
                dirty.insert(op.file);
            }
            _ => assert_eq!(op.class, 3),
        }
    }
    assert!(flushed > 300);
}

#[test]
fn durable_writes_say_so_and_an_impossible_mix_is_refused() {
    let config = MixConfig {
        read_share: 0.0,
        durability: Durability::EachWrite,
        ..MixConfig::reads(4096, REGION)
    };
    assert_eq!(Mix::new(&config).unwrap().take(0).unwrap().kind, OpKind::WriteDurable);
    let small = Region { size_bytes: 100, ..REGION };
    assert!(Mix::new(&MixConfig::reads(4096, small)).is_err());
    assert!(Mix::new(&MixConfig { sizes: Vec::new(), ..MixConfig::reads(4096, REGION) }).is_err());
}
