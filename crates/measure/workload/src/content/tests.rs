use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};

use plimsoll_sys::simd::{Kernels, Level};

use super::*;
use crate::stamp::Stamp;

fn spec(compressibility: f64, duplicate_share: f64) -> ContentSpec {
    ContentSpec {
        compressibility,
        duplicate_share,
        space_bytes: 1 << 40,
        unit_bytes: 4096,
        run: 42,
        stamps: true,
    }
}

/// Returns the content of successive I/Os of `io_bytes` from the start of the target.
fn data(spec: &ContentSpec, io_bytes: usize, size_bytes: usize) -> Vec<u8> {
    let content = Content::new(spec).unwrap();
    let mut all = vec![0; size_bytes];
    for (i, io) in all.chunks_mut(io_bytes).enumerate() {
        content.fill(0, (i * io_bytes) as u64, |_| 1, io).unwrap();
    }
    all
}

/// Returns the compressed size divided by the original size, for LZ4 and zstd. Each block is
/// compressed separately.
fn shares(data: &[u8], block_bytes: usize) -> [f64; 2] {
    let (mut lz4, mut zstd) = (0, 0);
    for block in data.chunks(block_bytes) {
        lz4 += lz4_flex::block::compress(block).len();
        zstd += zstd::bulk::compress(block, 3).unwrap().len();
    }
    [lz4, zstd].map(|size| size as f64 / data.len() as f64)
}

/// LZ4 and zstd compress blocks of 4 KiB, 64 KiB and 1 MiB to within 3 percentage points of the
/// required ratio.
#[test]
fn it_compresses_as_asked_at_every_block_size() {
    for ratio in [1.0, 1.1, 1.33, 2.0, 3.0, 4.0, 10.0, 25.0, 50.0] {
        let data = data(&spec(ratio, 0.0), 65_536, 2 << 20);
        for block in [4 << 10, 64 << 10, 1 << 20] {
            for (share, name) in shares(&data, block).into_iter().zip(["LZ4", "zstd"]) {
                let off = share - 1.0 / ratio;
                assert!(off.abs() < 0.03, "{ratio}:1 in {block}: {name} {share:.4}");
            }
        }
    }
}

/// If the content has units smaller than 4 KiB, blocks of 4 KiB also compress by the required
/// ratio.
#[test]
fn small_units_compress_as_asked() {
    for (unit_bytes, ratio) in [(512, 1.0), (512, 2.0), (512, 8.0), (1024, 4.0), (2048, 10.0)] {
        let data = data(&ContentSpec { unit_bytes, ..spec(ratio, 0.0) }, 4096, 1 << 20);
        for share in shares(&data, 4096) {
            assert!(
                (share - 1.0 / ratio).abs() < 0.03,
                "{ratio}:1 in units of {unit_bytes}: {share}"
            );
        }
    }
}

/// Even a long compression window finds no more repetitions. The test uses zstd with a window of
/// 128 MiB on 24 MiB of incompressible data, and on 24 MiB of half compressible data.
#[test]
fn a_long_window_finds_nothing() {
    for ratio in [1.0, 2.0] {
        let data = data(&spec(ratio, 0.0), 1 << 20, 24 << 20);
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        encoder.long_distance_matching(true).unwrap();
        encoder.window_log(27).unwrap();
        std::io::copy(&mut data.as_slice(), &mut encoder).unwrap();
        let share = encoder.finish().unwrap().len() as f64 / data.len() as f64;
        assert!((share - 1.0 / ratio).abs() < 0.03, "{ratio}:1: {share}");
    }
}

fn hash(block: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(block);
    hasher.finish()
}

/// Returns the share of blocks that are copies, as found with CRC-32C. On average, fewer than one
/// in 65,536 different blocks is wrongly counted as a copy.
fn copies(data: &[u8], block_bytes: usize) -> f64 {
    let crc = |block| Kernels::best().crc32c(0, block);
    let different: HashSet<u32> = data.chunks(block_bytes).map(crc).collect();
    1.0 - different.len() as f64 / (data.len() / block_bytes) as f64
}

/// Any two sectors of 512 bytes differ, even between generations and targets. This is true for
/// every compressibility at which all sectors have an incompressible part.
#[test]
fn nothing_comes_twice_unless_asked() {
    for ratio in [1.0, 2.0, 8.0, 14.0] {
        let content = Content::new(&spec(ratio, 0.0)).unwrap();
        let mut seen = HashSet::new();
        let mut buffer = vec![0; 1 << 20];
        for (target, generation) in [(0, 1), (0, 2), (1, 1), (1, 9)] {
            for io in 0..3u64 {
                content.fill(target, io << 20, |_| generation, &mut buffer).unwrap();
                for sector in buffer.chunks(512) {
                    assert!(seen.insert(hash(sector)), "{ratio}");
                }
            }
        }
    }
    let mut other = vec![0; 4096];
    let mut run = vec![0; 4096];
    Content::new(&spec(1.0, 0.0)).unwrap().fill(0, 0, |_| 1, &mut run).unwrap();
    let next = ContentSpec { run: 43, ..spec(1.0, 0.0) };
    Content::new(&next).unwrap().fill(0, 0, |_| 1, &mut other).unwrap();
    assert!(run.chunks(16).zip(other.chunks(16)).all(|(a, b)| a != b));
}

/// The share of duplicate blocks is accurate to a percentage point for every block size: 4 KiB, 64
/// KiB and (in 256 MiB) 1 MiB. The I/O size has no effect, and the content compresses as required.
#[test]
fn duplicates_are_as_asked_at_every_block_size() {
    for (share, io_bytes, space_mib) in [(0.3, 1 << 20, 256), (0.3, 4096, 64), (0.75, 65_536, 64)] {
        let spec = ContentSpec { space_bytes: space_mib << 20, ..spec(2.0, share) };
        let data = data(&spec, io_bytes, (space_mib << 20) as usize);
        for block in
            [4 << 10, 64 << 10, 1 << 20].iter().filter(|b| space_mib == 256 || **b < 1 << 20)
        {
            let got = copies(&data, *block);
            assert!((got - share).abs() < 0.01, "{share} in {block}: {got}");
        }
        for size in [4 << 10, 64 << 10, 1 << 20] {
            for compressed in shares(&data[..1 << 20], size) {
                assert!((compressed - 0.5).abs() < 0.03, "{size}: {compressed}");
            }
        }
    }
}

/// After some units have been rewritten at random, the share of duplicate blocks is still the same.
#[test]
fn duplicates_stay_as_asked_when_rewritten() {
    let spec = ContentSpec { space_bytes: 64 << 20, ..spec(1.0, 0.3) };
    let content = Content::new(&spec).unwrap();
    let mut all = vec![0; 64 << 20];
    let generation = |unit: u64| 1 + (crate::address::mix(9, unit) % 3) as u32;
    content.fill(0, 0, generation, &mut all).unwrap();
    let got = copies(&all, 4096);
    assert!((got - 0.3).abs() < 0.015, "{got}");
}

/// The content does not depend on the I/O size in any byte.
#[test]
fn content_does_not_depend_on_the_size_of_the_io() {
    for (ratio, share) in [(1.0, 0.0), (2.5, 0.4)] {
        let spec = ContentSpec { space_bytes: 1 << 30, ..spec(ratio, share) };
        let small = data(&spec, 4096, 2 << 20);
        assert!(small == data(&spec, 1 << 20, 2 << 20));
        assert!(small == data(&spec, 12_288, 2 << 20));
    }
}

#[test]
fn every_kernel_makes_the_same_bytes() {
    for spec in [spec(1.0, 0.0), spec(3.3, 0.2), ContentSpec { stamps: false, ..spec(2.0, 0.0) }] {
        let mut each = Level::ALL.into_iter().filter_map(Kernels::at).map(|kernels| {
            let content = Content::with_kernels(&spec, kernels).unwrap();
            let mut bytes = vec![0; 256 << 10];
            content.fill(3, 1 << 30, |unit| unit as u32, &mut bytes).unwrap();
            bytes
        });
        let first = each.next().unwrap();
        assert!(each.all(|bytes| bytes == first));
    }
}

#[test]
fn stamps_are_there_when_asked_for_and_nothing_is_zero() {
    let with = data(&spec(4.0, 0.0), 4096, 1 << 20);
    assert!(with.chunks(4096).all(|unit| Stamp::decode(unit).is_some()));
    let without = data(&ContentSpec { stamps: false, ..spec(4.0, 0.0) }, 4096, 1 << 20);
    assert!(without.chunks(4096).all(|unit| Stamp::decode(unit).is_none()));
    for data in [with, without] {
        assert!(data.chunks(512).all(|sector| sector.iter().any(|byte| *byte != 0)));
    }
}

#[test]
fn impossible_specifications_are_refused() {
    let good = spec(2.0, 0.3);
    for bad in [
        ContentSpec { compressibility: 0.9, ..good },
        ContentSpec { compressibility: 51.0, ..good },
        ContentSpec { duplicate_share: 1.0, ..good },
        ContentSpec { space_bytes: 4096, ..good },
        ContentSpec { unit_bytes: 8192, ..good },
        ContentSpec { unit_bytes: 0, ..good },
    ] {
        assert!(Content::new(&bad).is_err(), "{bad:?}");
    }
    let content = Content::new(&good).unwrap();
    assert!(content.fill(0, 0, |_| 1, &mut [0; 100]).is_err());
    assert!(content.fill(0, 100, |_| 1, &mut [0; 4096]).is_err());
    assert_eq!(unit_bytes_for(&[65_536, 8192, 0]), Some(4096));
    assert_eq!(unit_bytes_for(&[65_536, 2560]), Some(512));
    assert_eq!(unit_bytes_for(&[2300, 9800 * 2300]), Some(2300));
    assert_eq!(unit_bytes_for(&[1000, 4096]), None);
    assert_eq!(unit_bytes_for(&[100]), None);
}
