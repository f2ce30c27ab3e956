//! Kernels for x86-64. Callers must have a [`super::Kernels`] whose level this processor supports.

mod crc;
mod narrow;
mod wide;

pub(super) use crc::crc;
use crc::{crc_part, joined};

use super::unit::{PART_BYTES, PARTS, SECTOR_BYTES, STAMP_BYTES, Shape};

/// Number of AES blocks in a sector.
const SECTOR_COUNTERS: i64 = (SECTOR_BYTES / 16) as i64;

/// Size of a lane; four lanes are filled and summed in parallel.
const LANE_BYTES: usize = 1024;
const LANE_PARTS: usize = LANE_BYTES / PART_BYTES;
const LANE_COUNTERS: i64 = (LANE_BYTES / 16) as i64;

/// Number of rows by which the checksum lags behind the generator. If a load instruction follows
/// the store of its data too closely, it stalls and delays later instructions. On Zen 3, the loop
/// processes 13 GB/s with a lag of 0 rows, 15 GB/s with 1, 24 GB/s with 3, and 25 to 27 GB/s with 4
/// to 8.
const LAG: usize = 4;

/// Defines the kernels that generate content, for one register width. This is a macro, because a
/// generic function would not be compiled with the features of the function that inlines it.
macro_rules! generators {
    ($features:literal, $width:ident, $fill:ident, $fill_crc:ident, $make:ident, $is_intact:ident) => {
        /// Fills `out` from the counters `(counter.0, counter.1)`, `(counter.0, counter.1 + 1)`….
        #[target_feature(enable = $features)]
        pub(super) fn $fill(key: [u64; 2], counter: (u64, u64), out: &mut [u8]) {
            let mut from = $width::cipher(key, counter.0, counter.1);
            let (parts, rest) = out.as_chunks_mut();
            let (fours, parts) = parts.as_chunks_mut();
            for [a, b, c, d] in fours {
                $width::store($width::generate(&from, 0), a);
                $width::store($width::generate(&from, 2), b);
                $width::store($width::generate(&from, 4), c);
                $width::store($width::generate(&from, 6), d);
                $width::skip(&mut from, 8);
            }
            for part in parts {
                $width::store($width::generate(&from, 0), part);
                $width::skip(&mut from, 2);
            }
            if !rest.is_empty() {
                let mut last = [0u8; PART_BYTES];
                $width::store($width::generate(&from, 0), &mut last);
                rest.copy_from_slice(&last[..rest.len()]);
            }
        }

        /// Fills `out` and feeds it to the raw register.
        #[target_feature(enable = $features)]
        pub(super) fn $fill_crc(
            key: [u64; 2],
            counter: (u64, u64),
            mut register: u32,
            out: &mut [u8],
        ) -> u32 {
            let mut block = $width::cipher(key, counter.0, counter.1);
            let (parts, _) = out.as_chunks_mut::<PART_BYTES>();
            let (lanes, _) = parts.as_chunks_mut::<LANE_PARTS>();
            let (blocks, _) = lanes.as_chunks_mut::<4>();
            let done = blocks.len() * 4 * LANE_BYTES;
            for lanes in blocks {
                let mut from = block;
                let mut registers = [u64::from(register), 0, 0, 0];
                for row in 0..LANE_PARTS + LAG {
                    for l in 0..4 {
                        if row < LANE_PARTS {
                            let part = $width::generate(&from, LANE_COUNTERS * l as i64);
                            $width::store(part, &mut lanes[l][row]);
                        }
                        if row >= LAG {
                            registers[l] = crc_part(registers[l], &lanes[l][row - LAG]);
                        }
                    }
                    $width::skip(&mut from, 2);
                }
                register = joined(registers);
                $width::skip(&mut block, 4 * LANE_COUNTERS);
            }
            let rest = &mut out[done..];
            $fill(key, (counter.0, counter.1.wrapping_add(done as u64 / 16)), rest);
            crc(register, rest)
        }

        /// Creates one stamped unit.
        #[target_feature(enable = $features)]
        pub(super) fn $make(
            key: [u64; 2],
            counter: (u64, u64),
            shape: &Shape,
            stamp: &[u8; STAMP_BYTES],
            out: &mut [u8],
        ) {
            let mut sector_from = $width::cipher(key, counter.0, counter.1);
            let filler = $width::repeat(shape.filler);
            let (parts, _) = out.as_chunks_mut::<PART_BYTES>();
            let (sectors, _) = parts.as_chunks_mut::<PARTS>();
            for (sector, random) in sectors.iter_mut().zip(shape.random_parts) {
                let (random, rest) = sector.split_at_mut(usize::from(random).min(PARTS));
                let mut from = sector_from;
                for part in random {
                    $width::store($width::generate(&from, 0), part);
                    $width::skip(&mut from, 2);
                }
                for part in rest {
                    $width::store(filler, part);
                }
                $width::skip(&mut sector_from, SECTOR_COUNTERS);
            }
            if let Some(first) = out.first_chunk_mut() {
                *first = *stamp;
            }
        }

        /// Returns true if `data` is the unit that these arguments describe.
        #[target_feature(enable = $features)]
        pub(super) fn $is_intact(
            key: [u64; 2],
            counter: (u64, u64),
            shape: &Shape,
            stamp: &[u8; STAMP_BYTES],
            data: &[u8],
        ) -> bool {
            let mut sector_from = $width::cipher(key, counter.0, counter.1);
            let filler = $width::repeat(shape.filler);
            let mut seen = $width::zero();
            let mut skipped = 1;
            let (parts, _) = data.as_chunks::<PART_BYTES>();
            let (sectors, _) = parts.as_chunks::<PARTS>();
            for (sector, random) in sectors.iter().zip(shape.random_parts) {
                let (random, rest) = sector.split_at(usize::from(random).min(PARTS));
                let mut from = sector_from;
                $width::skip(&mut from, 2 * skipped as i64);
                for part in random.iter().skip(skipped) {
                    seen = $width::differ(seen, $width::generate(&from, 0), part);
                    $width::skip(&mut from, 2);
                }
                for part in rest {
                    seen = $width::differ(seen, filler, part);
                }
                $width::skip(&mut sector_from, SECTOR_COUNTERS);
                skipped = 0;
            }
            data.first_chunk() == Some(stamp) && $width::is_zero(seen)
        }
    };
}

generators!("aes,sse4.2,pclmulqdq", narrow, fill_aes, fill_crc_aes, make_aes, is_intact_aes);
generators!(
    "aes,vaes,avx2,sse4.2,pclmulqdq",
    wide,
    fill_vaes,
    fill_crc_vaes,
    make_vaes,
    is_intact_vaes
);
