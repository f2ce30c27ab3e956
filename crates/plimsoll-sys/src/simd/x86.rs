//! The kernels for x86-64. Callers hold a [`super::Kernels`] whose level was found on this processor.

use core::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi64, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_clmulepi64_si128,
    _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_set_epi64x,
    _mm_storeu_si128, _mm_xor_si128, _mm256_add_epi64, _mm256_aesenc_epi128,
    _mm256_aesenclast_epi128, _mm256_broadcastsi128_si256, _mm256_set_epi64x, _mm256_storeu_si256,
    _mm256_xor_si256,
};

use super::ars::{ROUNDS, schedule};
use super::crc::x_pow_mod;
use super::unit::{SECTOR_BYTES, STAMP_BYTES, Shape};

/// Bytes of one lane of the long and the short three-lane stride.
const LONG: usize = 1360;
const SHORT: usize = 168;

/// Multipliers that advance a register by one and two lanes.
const LONG_1: u32 = x_pow_mod(8 * LONG as u64 - 33);
const LONG_2: u32 = x_pow_mod(16 * LONG as u64 - 33);
const SHORT_1: u32 = x_pow_mod(8 * SHORT as u64 - 33);
const SHORT_2: u32 = x_pow_mod(16 * SHORT as u64 - 33);

#[inline(always)]
fn word_at(data: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&data[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The carry-less product; fed to the CRC instruction it is `register * by * x^33`.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn product(register: u32, by: u32) -> u64 {
    let a = _mm_cvtsi32_si128(register.cast_signed());
    let b = _mm_cvtsi32_si128(by.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(a, b)).cast_unsigned()
}

/// Feeds the whole three-lane strides at the start of `data`; returns the register and the rest.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
fn strides<const LANE: usize>(mut register: u32, data: &[u8], by: [u32; 2]) -> (u32, &[u8]) {
    let mut strides = data.chunks_exact(3 * LANE);
    for stride in &mut strides {
        let (first, rest) = stride.split_at(LANE);
        let (second, third) = rest.split_at(LANE);
        let (mut a, mut b, mut c) = (u64::from(register), 0u64, 0u64);
        for i in (0..LANE).step_by(8) {
            a = _mm_crc32_u64(a, word_at(first, i));
            b = _mm_crc32_u64(b, word_at(second, i));
            c = _mm_crc32_u64(c, word_at(third, i));
        }
        let joined = product(a as u32, by[1]) ^ product(b as u32, by[0]);
        register = (_mm_crc32_u64(0, joined) ^ c) as u32;
    }
    (register, strides.remainder())
}

/// Feeds `data` to the bare register.
///
/// # Safety
/// The processor has SSE 4.2 and PCLMULQDQ.
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(super) unsafe fn crc(register: u32, data: &[u8]) -> u32 {
    let (register, data) = strides::<LONG>(register, data, [LONG_1, LONG_2]);
    let (register, data) = strides::<SHORT>(register, data, [SHORT_1, SHORT_2]);
    crc_serial(register, data)
}

#[target_feature(enable = "sse4.2")]
#[inline]
fn crc_serial(register: u32, data: &[u8]) -> u32 {
    let mut eights = data.chunks_exact(8);
    let mut wide = u64::from(register);
    for eight in &mut eights {
        wide = _mm_crc32_u64(wide, word_at(eight, 0));
    }
    let mut register = wide as u32;
    for &byte in eights.remainder() {
        register = _mm_crc32_u8(register, byte);
    }
    register
}

/// The round keys for one counter a register.
#[target_feature(enable = "sse2")]
#[inline]
fn narrow_keys(key: [u64; 2]) -> [__m128i; ROUNDS + 1] {
    schedule(key).map(|k| _mm_set_epi64x(k[1].cast_signed(), k[0].cast_signed()))
}

/// Stores the 32 bytes of the counters `(high, low)` and `(high, low + 1)`.
#[target_feature(enable = "aes,sse4.2")]
#[inline]
fn narrow_two(keys: &[__m128i; ROUNDS + 1], high: u64, low: u64, out: &mut [u8; 32]) {
    let first = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
    let mut a = _mm_xor_si128(first, keys[0]);
    let mut b = _mm_xor_si128(_mm_add_epi64(first, _mm_set_epi64x(0, 1)), keys[0]);
    for key in &keys[1..ROUNDS] {
        a = _mm_aesenc_si128(a, *key);
        b = _mm_aesenc_si128(b, *key);
    }
    a = _mm_aesenclast_si128(a, keys[ROUNDS]);
    b = _mm_aesenclast_si128(b, keys[ROUNDS]);
    let to = out.as_mut_ptr();
    // SAFETY: `out` is 32 bytes long, and these stores need no alignment.
    unsafe {
        _mm_storeu_si128(to.cast(), a);
        _mm_storeu_si128(to.add(16).cast(), b);
    }
}

/// The round keys for two counters a register.
#[target_feature(enable = "avx2")]
#[inline]
fn wide_keys(key: [u64; 2]) -> [__m256i; ROUNDS + 1] {
    narrow_keys(key).map(|k| _mm256_broadcastsi128_si256(k))
}

/// Stores the 32 bytes of the counters `(high, low)` and `(high, low + 1)`.
#[target_feature(enable = "aes,vaes,avx2")]
#[inline]
fn wide_two(keys: &[__m256i; ROUNDS + 1], high: u64, low: u64, out: &mut [u8; 32]) {
    let first = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
    let both = _mm256_add_epi64(_mm256_broadcastsi128_si256(first), _mm256_set_epi64x(0, 1, 0, 0));
    let mut a = _mm256_xor_si256(both, keys[0]);
    for key in &keys[1..ROUNDS] {
        a = _mm256_aesenc_epi128(a, *key);
    }
    a = _mm256_aesenclast_epi128(a, keys[ROUNDS]);
    // SAFETY: `out` is 32 bytes long, and this store needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), a) };
}

/// The `i`-th 32 bytes of `bytes`.
#[inline(always)]
fn part(bytes: &mut [u8], i: usize) -> &mut [u8; 32] {
    let (parts, _) = bytes.as_chunks_mut::<32>();
    &mut parts[i]
}

/// Feeds the four words of `part` to `register`.
#[target_feature(enable = "sse4.2")]
#[inline]
fn crc_part(mut register: u64, part: &[u8; 32]) -> u64 {
    for i in (0..32).step_by(8) {
        register = _mm_crc32_u64(register, word_at(part, i));
    }
    register
}

/// The kernels that generate, once per width: a generic function would not be compiled with the
/// features of the function it is inlined into.
macro_rules! generators {
    ($features:literal, $fill:ident, $unit:ident, $lanes:ident, $keys:ident, $two:ident, $key:ty) => {
        /// Fills `out` from the counters `(high, low_first)`….
        ///
        /// # Safety
        /// The processor has the features of the level.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $fill(key: [u64; 2], high: u64, low_first: u64, out: &mut [u8]) {
            let keys = $keys(key);
            let mut low = low_first;
            let (parts, rest) = out.as_chunks_mut::<32>();
            for part in parts {
                $two(&keys, high, low, part);
                low = low.wrapping_add(2);
            }
            if !rest.is_empty() {
                let mut last = [0u8; 32];
                $two(&keys, high, low, &mut last);
                rest.copy_from_slice(&last[..rest.len()]);
            }
        }

        /// The incompressible bytes of `N` neighbouring sectors, interleaved, and what they add to
        /// the unit's checksum, as products to be reduced together. `at` is the first sector.
        #[target_feature(enable = $features)]
        #[inline]
        fn $lanes<const N: usize>(
            keys: &[$key; ROUNDS + 1],
            counter: (u64, u64),
            shape: &Shape,
            at: usize,
            stamp: Option<&[u8; 32]>,
            out: &mut [u8],
        ) -> (u64, u32) {
            let (high, low) = counter;
            let mut sectors = out.chunks_exact_mut(SECTOR_BYTES);
            let lanes: [&mut [u8]; N] =
                core::array::from_fn(|_| sectors.next().unwrap_or_default());
            let parts: [usize; N] = core::array::from_fn(|l| shape.random_bytes[at + l] / 32);
            let mut registers = [0u64; N];
            let mut from = 0;
            if let Some(stamp) = stamp {
                *part(lanes[0], 0) = *stamp;
                registers[0] = u64::from(crc_serial(0, &stamp[4..8]));
                for i in (8..32).step_by(8) {
                    registers[0] = _mm_crc32_u64(registers[0], word_at(stamp, i));
                }
                from = 1;
            }
            let together = parts.iter().copied().min().unwrap_or(0);
            for lane in 1..N {
                if from == 1 && parts[lane] > 0 {
                    let to = part(lanes[lane], 0);
                    $two(keys, high, low.wrapping_add(32 * lane as u64), to);
                    registers[lane] = crc_part(registers[lane], to);
                }
            }
            for i in from..together {
                for lane in 0..N {
                    let to = part(lanes[lane], i);
                    $two(keys, high, low.wrapping_add((32 * lane + 2 * i) as u64), to);
                    registers[lane] = crc_part(registers[lane], to);
                }
            }
            for lane in 0..N {
                for i in together.max(from)..parts[lane] {
                    let to = part(lanes[lane], i);
                    $two(keys, high, low.wrapping_add((32 * lane + 2 * i) as u64), to);
                    registers[lane] = crc_part(registers[lane], to);
                }
                for i in parts[lane]..SECTOR_BYTES / 32 {
                    let (words, _) = part(lanes[lane], i).as_chunks_mut::<8>();
                    words.fill(shape.filler.to_le_bytes());
                }
            }
            let (mut products, mut direct) = (0u64, 0u32);
            for lane in 0..N {
                let by = shape.advance_by[at + lane];
                if by == 0 {
                    direct ^= registers[lane] as u32;
                } else {
                    products ^= product(registers[lane] as u32, by);
                }
            }
            (products, direct)
        }

        /// Makes one stamped unit.
        ///
        /// # Safety
        /// The processor has the features of the level.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $unit(
            key: [u64; 2],
            high: u64,
            low_first: u64,
            shape: &Shape,
            stamp: &[u8; STAMP_BYTES],
            out: &mut [u8],
        ) {
            let keys = $keys(key);
            let (mut products, mut direct) = (0u64, 0u32);
            let mut at = 0;
            while at < shape.sectors() {
                let left = shape.sectors() - at;
                let low = low_first.wrapping_add(32 * at as u64);
                let stamp = (at == 0).then_some(stamp);
                let rest = &mut out[at * SECTOR_BYTES..];
                let (p, d, made) = if left >= 4 {
                    let (p, d) = $lanes::<4>(&keys, (high, low), shape, at, stamp, rest);
                    (p, d, 4)
                } else {
                    let (p, d) = $lanes::<1>(&keys, (high, low), shape, at, stamp, rest);
                    (p, d, 1)
                };
                products ^= p;
                direct ^= d;
                at += made;
            }
            let register = shape.constant ^ (_mm_crc32_u64(0, products) as u32) ^ direct;
            out[..4].copy_from_slice(&(!register).to_le_bytes());
        }
    };
}

generators!(
    "aes,sse4.2,pclmulqdq",
    fill_aes,
    unit_aes,
    lanes_aes,
    narrow_keys,
    narrow_two,
    __m128i
);
generators!(
    "aes,vaes,avx2,sse4.2,pclmulqdq",
    fill_vaes,
    unit_vaes,
    lanes_vaes,
    wide_keys,
    wide_two,
    __m256i
);

#[cfg(test)]
mod tests {
    use super::super::{Kernels, Level, Shape};
    use proptest::prelude::*;

    fn others() -> Vec<Kernels> {
        Level::ALL.into_iter().filter_map(Kernels::at).collect()
    }

    fn portable() -> Kernels {
        Kernels::at(Level::Portable).unwrap()
    }

    proptest! {
        #[test]
        fn checksums_equal_the_portable_ones(
            data in proptest::collection::vec(any::<u8>(), 0..20_000),
            from in 0usize..64,
            seed: u32,
        ) {
            let data = &data[from.min(data.len())..];
            for kernels in others() {
                prop_assert_eq!(kernels.crc32c(seed, data), portable().crc32c(seed, data));
            }
        }

        #[test]
        fn a_checksum_continues(data in proptest::collection::vec(any::<u8>(), 0..9_000), cut: prop::sample::Index) {
            let cut = cut.index(data.len() + 1);
            for kernels in others() {
                let first = kernels.crc32c(0, &data[..cut]);
                prop_assert_eq!(kernels.crc32c(first, &data[cut..]), kernels.crc32c(0, &data));
            }
        }

        #[test]
        fn bytes_equal_the_portable_ones(key: [u64; 2], high: u64, low: u64, size in 0usize..9_000) {
            let (mut expected, mut got) = (vec![0; size], vec![0; size]);
            portable().fill_at(key, high, low, &mut expected);
            for kernels in others() {
                got.fill(0xAA);
                kernels.fill_at(key, high, low, &mut got);
                prop_assert_eq!(&got, &expected);
                got.fill(0xAA);
                let crc = kernels.fill_crc32c_at(key, high, low, 7, &mut got);
                prop_assert_eq!(&got, &expected);
                prop_assert_eq!(crc, portable().crc32c(7, &expected));
            }
        }

        #[test]
        fn units_equal_the_portable_ones(
            key: [u64; 2],
            high: u64,
            low: u64,
            filler: u64,
            stamp: [u8; 32],
            mut random in proptest::collection::vec(0usize..=16, 1..=8),
        ) {
            random[0] = random[0].max(1);
            let random: Vec<usize> = random.iter().map(|r| r * 32).collect();
            let shape = Shape::new(&random, filler).unwrap();
            let (mut expected, mut got) = (vec![0; shape.unit_bytes()], vec![1; shape.unit_bytes()]);
            prop_assert!(portable().stamped_unit(key, high, low, &shape, &stamp, &mut expected));
            prop_assert_eq!(
                &expected[..4],
                &portable().crc32c(0, &expected[4..]).to_le_bytes()[..]
            );
            for kernels in others() {
                prop_assert!(kernels.stamped_unit(key, high, low, &shape, &stamp, &mut got));
                prop_assert_eq!(&got, &expected);
            }
        }
    }

    #[test]
    fn a_unit_of_another_length_is_refused() {
        let shape = Shape::new(&[512; 8], 1).unwrap();
        let mut out = vec![0; 2048];
        assert!(!Kernels::best().stamped_unit([1, 2], 3, 4, &shape, &[0; 32], &mut out));
        assert!(out.iter().all(|&b| b == 0));
        assert_eq!(Shape::new(&[0, 512], 1), None);
        assert_eq!(Shape::new(&[40], 1), None);
        assert_eq!(Shape::new(&[512; 9], 1), None);
        assert_eq!(Shape::new(&[], 1), None);
    }
}
