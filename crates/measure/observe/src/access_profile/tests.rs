#![allow(clippy::unwrap_used)]
use super::*;

const MIB: u64 = 1 << 20;

/// Random number generator of the tests.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % limit
    }

    fn bytes(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.below(256) as u8).collect()
    }
}

fn close(measured: u64, truth: u64, share: f64) -> bool {
    (measured as f64 - truth as f64).abs() <= truth as f64 * share
}

#[test]
fn a_small_working_set_is_counted_exactly() {
    let mut profiler = AccessProfiler::new(&[64 * MIB, 64 * MIB], 2, 1);
    let mut random = Random(7);
    let mut truth = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        let (file, block) = (random.below(2), random.below(3000));
        truth.insert((file, block));
        truth.insert((file, block + 1));
        profiler.operation(0, file as u32, true, block * 4096, 8192);
    }
    let totals = profiler.totals();
    assert_eq!(totals.working_set_read_bytes, Some(truth.len() as u64 * 4096));
    assert_eq!(totals.working_set_written_bytes, Some(0));
    assert_eq!((totals.reads, totals.writes), (Some(20_000), Some(0)));
    assert_eq!(totals.read_size_bytes_avg, Some(8192.0));
}

#[test]
fn a_large_working_set_is_counted_within_two_percent() {
    // The target has 1 TiB, so only one block in 128 is counted.
    let mut profiler = AccessProfiler::new(&[1 << 40], 1, 1);
    let mut random = Random(3);
    let mut truth = std::collections::HashSet::new();
    for _ in 0..2_000_000 {
        let block = random.below(1 << 28);
        truth.insert(block);
        profiler.operation(0, 0, false, block * 4096, 4096);
    }
    let measured = profiler.totals().working_set_written_bytes.unwrap();
    assert!(close(measured, truth.len() as u64 * 4096, 0.02), "{measured}");
}

#[test]
fn threads_add_up_without_counting_a_block_twice() {
    let mut one = AccessProfiler::new(&[16 * MIB], 1, 1);
    let mut two = one.clone();
    for block in 0..100 {
        one.operation(0, 0, true, block * 4096, 4096);
        two.operation(0, 0, true, (block + 50) * 4096, 4096);
    }
    one.merge(&two);
    assert_eq!(one.totals().working_set_read_bytes, Some(150 * 4096));
    assert_eq!(one.counts(), (200, 0));
}

#[test]
fn distinguishes_sequential_and_random() {
    let mut profiler = AccessProfiler::new(&[1 << 30], 2, 1);
    let mut random = Random(5);
    for turn in 0..10_000 {
        profiler.operation(0, 0, true, turn * 4096, 4096);
        profiler.operation(1, 0, false, random.below(1 << 18) * 4096, 4096);
    }
    let totals = profiler.totals();
    assert!(totals.read_sequential_share.unwrap() > 0.999);
    assert!(totals.write_sequential_share.unwrap() < 0.01);
}

#[test]
fn live_counts_cover_all_threads() {
    let [mut one, mut two] = [3, 4].map(|seed| AccessProfiler::new(&[1 << 30], 1, seed));
    let live = [one.live(), two.live()];
    let mut random = Random(5);
    for turn in 0..1_000 {
        one.operation(0, 0, true, turn * 4096, 4096);
        two.operation(0, 0, false, random.below(1 << 18) * 4096, 4096);
    }
    let first = LiveAccess::now(&live).unwrap();
    for turn in 500..1_500 {
        one.operation(0, 0, true, random.below(1 << 18) * 4096, 4096);
        two.operation(0, 0, true, turn * 4096, 4096);
    }
    let second = LiveAccess::now(&live).unwrap();
    assert_eq!(first.working_set_read_bytes, 1_000 * 4096);
    assert!(first.reads.random_share_since(SequentialCount::default()).unwrap() < 0.001);
    assert!(first.writes.random_share_since(SequentialCount::default()).unwrap() > 0.99);
    let share = second.reads.random_share_since(first.reads).unwrap();
    assert!((share - 0.5).abs() < 0.01, "{share}");
    assert_eq!(second.writes.random_share_since(first.writes), None, "there were none");
    let mut all = one.clone();
    all.merge(&two);
    let totals = all.totals();
    assert_eq!(Some(second.working_set_read_bytes), totals.working_set_read_bytes);
    assert_eq!(Some(second.working_set_written_bytes), totals.working_set_written_bytes);
    let both = second.reads.random_share_since(SequentialCount::default()).unwrap();
    assert!((1.0 - both - totals.read_sequential_share.unwrap()).abs() < 1e-9);
    assert_eq!(LiveAccess::now(&live), Some(second), "a clone has bits and counts of its own");
    one.reset();
    two.reset();
    let none = LiveAccess::now(&live).unwrap();
    assert_eq!(none, AccessCounts::default());
    assert_eq!(none.reads.random_share_since(second.reads), None, "it began anew");
}

#[test]
fn clients_that_share_a_cursor_are_sequential() {
    let mut profiler = AccessProfiler::new(&[1 << 30], 4, 1);
    for turn in 0..10_000u64 {
        profiler.operation((turn % 4) as u32, 0, true, turn * 4096, 4096);
    }
    assert!(profiler.totals().read_sequential_share.unwrap() > 0.999);
}

#[test]
fn reads_and_writes_of_one_cursor_are_sequential_and_at_random_they_are_not() {
    // The transfers are so large that the profiler's window has space for only two of them.
    let (size, transfers) = (256u64 << 10, 2048);
    let mut random = Random(5);
    let mut one = AccessProfiler::new(&[transfers * size], 1, 1);
    let mut other = one.clone();
    for turn in 0..2000 {
        let is_read = random.below(2) == 0;
        one.operation(0, 0, is_read, turn * size, size as u32);
        other.operation(0, 0, is_read, random.below(transfers) * size, size as u32);
    }
    let (one, other) = (one.totals(), other.totals());
    assert!(one.read_sequential_share.unwrap() > 0.99, "{one:?}");
    assert!(one.write_sequential_share.unwrap() > 0.99, "{one:?}");
    assert!(other.read_sequential_share.unwrap() < 0.01, "{other:?}");
    assert!(other.write_sequential_share.unwrap() < 0.01, "{other:?}");
}

#[test]
fn a_uniform_load_misses_in_proportion_to_the_missing_cache() {
    // Reads are uniformly distributed over 256 MiB, so a cache of 64 MiB serves a quarter of the
    // reads.
    let mut profiler = AccessProfiler::new(&[256 * MIB], 1, 1);
    let mut random = Random(11);
    let blocks = 256 * MIB / 4096;
    for _ in 0..2_000_000 {
        profiler.operation(0, 0, true, random.below(blocks) * 4096, 4096);
    }
    let curve = profiler.totals().miss_ratio;
    let quarter = curve.iter().find(|point| point.cache_bytes == 64 * MIB).unwrap();
    assert!((quarter.miss_share - 0.75).abs() < 0.04, "{quarter:?}");
    assert!(curve.windows(2).all(|pair| pair[1].miss_share <= pair[0].miss_share));
}

#[test]
fn a_loop_larger_than_the_cache_always_misses_it() {
    let mut profiler = AccessProfiler::new(&[256 * MIB], 1, 1);
    for _ in 0..4 {
        for block in 0..256 * MIB / 4096 {
            profiler.operation(0, 0, true, block * 4096, 4096);
        }
    }
    let curve = profiler.totals().miss_ratio;
    let half = curve.iter().find(|point| point.cache_bytes == 128 * MIB).unwrap();
    assert!(half.miss_share > 0.99, "{half:?}");
    assert!(curve.last().unwrap().miss_share < 0.3);
}

#[test]
fn distinguishes_random_zero_compressible_and_repeated_content() {
    let mut random = Random(13);
    let mut profiler = AccessProfiler::new(&[MIB], 1, 1);
    (0..64).for_each(|at| profiler.content(0, at, &random.bytes(4096)));
    let totals = profiler.totals();
    assert!(totals.compressed_share.unwrap() > 0.99);
    assert_eq!((totals.zero_share, totals.duplicate_share), (Some(0.0), Some(0.0)));
    assert!(totals.entropy_bits_per_byte.unwrap() > 7.99);

    profiler.reset();
    (0..64).for_each(|at| profiler.content(0, at, &[0; 4096]));
    let totals = profiler.totals();
    assert!(totals.compressed_share.unwrap() < 0.02);
    assert_eq!(totals.zero_share, Some(1.0));
    assert_eq!(totals.entropy_bits_per_byte, Some(0.0));

    // If a load always writes the same buffer, no single block is compressible, but all blocks are
    // equal.
    profiler.reset();
    let buffer = random.bytes(4096);
    (0..64).for_each(|at| profiler.content(0, at, &buffer));
    let totals = profiler.totals();
    assert!(totals.compressed_share.unwrap() < 0.1);
    assert!(totals.duplicate_share.unwrap() > 0.95);
}

#[test]
fn compressible_content_is_measured_within_five_percent() {
    // A quarter of the bytes is random and three quarters are constant, so the ratio is 4:1.
    let mut random = Random(17);
    let mut profiler = AccessProfiler::new(&[MIB], 1, 1);
    for at in 0..2000 {
        let mut block = random.bytes(1024);
        block.resize(4096, 0x55);
        profiler.content(0, at, &block);
    }
    let share = profiler.totals().compressed_share.unwrap();
    assert!((share - 0.25).abs() < 0.25 * 0.05, "{share}");
}

#[test]
fn the_sample_covers_the_whole_run_at_constant_size() {
    let mut profiler = AccessProfiler::new(&[MIB], 1, 9);
    (0..512).for_each(|at| profiler.content(0, at, &[0; 4096]));
    (0..2048).for_each(|at| profiler.content(1, at, &[1; 4096]));
    let zero = profiler.totals().zero_share.unwrap();
    assert!((zero - 0.2).abs() < 0.1, "{zero}");
    assert_eq!(profiler.totals().blocks_sampled, 512);
}

#[test]
fn samples_the_content_of_one_read_in_256() {
    let mut profiler = AccessProfiler::new(&[MIB], 1, 1);
    let required: Vec<usize> = (0..1000).filter(|_| profiler.samples_content()).collect();
    assert_eq!(required, [0, 256, 512, 768]);
}

#[test]
fn an_empty_profile_has_no_figures() {
    let totals = AccessProfiler::new(&[MIB], 1, 1).totals();
    assert_eq!(totals.read_sequential_share, None);
    assert_eq!((totals.compressed_share, totals.size_bytes_min), (None, None));
    assert!(totals.miss_ratio.is_empty());
}

#[test]
fn counts_operations_outside_the_files_without_a_block() {
    let mut profiler = AccessProfiler::new(&[MIB], 1, 1);
    profiler.operation(0, 3, true, 0, 4096);
    profiler.operation(9, 0, true, 4 * MIB, 4096);
    profiler.operation(0, 0, true, 512, 512);
    let totals = profiler.totals();
    assert_eq!((totals.reads, totals.working_set_read_bytes), (Some(3), Some(4096)));
    assert!((totals.misaligned_share.unwrap() - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn rereading_an_address_is_not_duplicate_data() {
    let mut random = Random(19);
    let (mut one, mut two) = (AccessProfiler::new(&[MIB], 1, 1), AccessProfiler::new(&[MIB], 1, 2));
    let blocks: Vec<Vec<u8>> = (0..32).map(|_| random.bytes(4096)).collect();
    for _ in 0..4 {
        for (at, block) in blocks.iter().enumerate() {
            one.content(0, at as u64 * 4096, block);
            two.content(0, at as u64 * 4096, block);
        }
    }
    one.merge(&two);
    let totals = one.totals();
    assert_eq!((totals.blocks_sampled, totals.duplicate_share), (32, Some(0.0)));
    assert!(totals.compressed_share.unwrap() > 0.99);
}

#[test]
fn reads_and_writes_of_a_block_count_once() {
    let mut profiler = AccessProfiler::new(&[64 * MIB, 64 * MIB], 1, 1);
    for block in 0..100 {
        profiler.operation(0, 0, true, block * 4096, 4096);
        profiler.operation(0, 0, false, (50 + block) * 4096, 4096);
    }
    let totals = profiler.totals();
    assert_eq!(totals.working_set_bytes, Some(150 * 4096));
    // Each part has 512 KiB, so 150 blocks touch only the first two parts.
    assert_eq!(totals.reach_bytes, Some(MIB));
    profiler.operation(0, 1, true, 64 * MIB - 4096, 4096);
    assert_eq!(profiler.totals().reach_bytes, Some(MIB + MIB / 2));
}

#[test]
fn random_blocks_reach_all_parts_and_one_block_its_own() {
    for total in [MIB, 3 * MIB + 4096, 1 << 40] {
        let mut random = Random(5);
        let mut profiler = AccessProfiler::new(&[total], 1, 1);
        for _ in 0..200_000 {
            profiler.operation(0, 0, true, random.below(total / 4096) * 4096, 4096);
        }
        let reach = profiler.totals().reach_bytes.unwrap();
        assert!(close(reach, total, 0.05), "{reach} of {total}");
    }
    let mut profiler = AccessProfiler::new(&[1 << 30], 1, 1);
    (0..1000).for_each(|_| profiler.operation(0, 0, true, 0, 4096));
    let totals = profiler.totals();
    assert_eq!((totals.working_set_bytes, totals.reach_bytes), (Some(4096), Some(4 * MIB)));
}
