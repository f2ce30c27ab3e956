//! Detects the instructions that a kernel may use. A value represents them.

use core::fmt;
use std::sync::OnceLock;

use super::{STAMP_BYTES, Shape, ars, crc, unit};

/// Instruction set of the kernels, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// x86-64 with VAES on 256-bit registers, AVX2, PCLMULQDQ and SSE 4.2 (AMD Zen 3, Intel Ice
    /// Lake and later).
    Vaes,
    /// x86-64 with AES-NI, PCLMULQDQ and SSE 4.2 (2010 and later).
    AesNi,
    /// Plain Rust, on any processor.
    Portable,
}

impl Level {
    /// All levels, best first.
    pub const ALL: [Self; 3] = [Self::Vaes, Self::AesNi, Self::Portable];

    /// Returns true if the processor has the instructions and computes correctly. An emulator may
    /// compute wrong results: in QEMU 7.2 the upper half of a 256-bit AES round equals the lower
    /// half.
    fn is_available(self) -> bool {
        self.is_there() && self.is_right()
    }

    fn is_right(self) -> bool {
        let here = Kernels { level: self };
        self == Self::Portable
            || computes_right(&|seed, out| here.fill_crc32c_at(KEY, HIGH, LOW, seed, out))
    }

    fn is_there(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::AesNi => {
                is_x86_feature_detected!("aes")
                    && is_x86_feature_detected!("pclmulqdq")
                    && is_x86_feature_detected!("sse4.2")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vaes => {
                Self::AesNi.is_there()
                    && is_x86_feature_detected!("vaes")
                    && is_x86_feature_detected!("avx2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
}

/// Arguments for the check of a level: arbitrary values that are not zero.
const KEY: [u64; 2] = [0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210];
const HIGH: u64 = 0x5A5A;
const LOW: u64 = 0xFFFF_FFFF_FFFF_FFF0;
/// Size of the data for the check: it has parallel lanes, a remainder and a partial block.
const TRIED_BYTES: usize = 4096 + 32 + 5;

/// Returns true if bytes and checksum are equal to those of the portable kernels.
fn computes_right(fill: &dyn Fn(u32, &mut [u8]) -> u32) -> bool {
    let (mut got, mut expected) = ([0; TRIED_BYTES], [0; TRIED_BYTES]);
    let sum = fill(7, &mut got);
    ars::fill(KEY, HIGH, LOW, &mut expected);
    got == expected && sum == !crc::raw(!7, &expected)
}

/// Best level of this processor. It is detected once.
static BEST: OnceLock<Level> = OnceLock::new();

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vaes => "VAES-256 + SSE 4.2 CRC",
            Self::AesNi => "AES-NI + SSE 4.2 CRC",
            Self::Portable => "portable",
        })
    }
}

/// Functions of a level that this processor supports. They can be called only through a value of
/// this type, which makes the calls safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    level: Level,
}

impl Default for Kernels {
    fn default() -> Self {
        Self::best()
    }
}

impl Kernels {
    /// Returns the kernels of `level`; `None` if this processor does not support it.
    #[must_use]
    pub fn at(level: Level) -> Option<Self> {
        level.is_available().then_some(Self { level })
    }

    /// Returns the best kernels of this processor.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        let find = || Level::ALL.into_iter().find(|level| level.is_available());
        Self { level: *BEST.get_or_init(|| find().unwrap_or(Level::Portable)) }
    }

    /// Level in use.
    #[must_use]
    pub fn level(self) -> Level {
        self.level
    }

    /// Returns the CRC-32C of `data`, continuing from `seed`: 0, or the result for the preceding
    /// bytes.
    #[must_use]
    #[inline]
    pub fn crc32c(self, seed: u32, data: &[u8]) -> u32 {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only if `is_available` found its features.
            Level::Vaes | Level::AesNi => !unsafe { super::x86::crc(!seed, data) },
            _ => !crc::raw(!seed, data),
        }
    }

    /// Fills `out` from the counters `(high, low_first)`, `(high, low_first + 1)`…, 16 bytes each;
    /// the last block may be partial.
    #[inline]
    pub fn fill_at(self, key: [u64; 2], high: u64, low_first: u64, out: &mut [u8]) {
        let counter = (high, low_first);
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only if `is_available` found its features.
            Level::Vaes => unsafe { super::x86::fill_vaes(key, counter, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::AesNi => unsafe { super::x86::fill_aes(key, counter, out) },
            _ => ars::fill(key, high, low_first, out),
        }
    }

    /// Combines [`Kernels::fill_at`] and [`Kernels::crc32c`] of the result in one pass.
    #[must_use]
    #[inline]
    pub fn fill_crc32c_at(
        self,
        key: [u64; 2],
        high: u64,
        low_first: u64,
        seed: u32,
        out: &mut [u8],
    ) -> u32 {
        let counter = (high, low_first);
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only if `is_available` found its features.
            Level::Vaes => !unsafe { super::x86::fill_crc_vaes(key, counter, !seed, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::AesNi => !unsafe { super::x86::fill_crc_aes(key, counter, !seed, out) },
            _ => {
                ars::fill(key, high, low_first, out);
                !crc::raw(!seed, out)
            }
        }
    }

    /// Creates one stamped unit of content in one pass: the stamp, the incompressible bytes and the
    /// compressible filler. Block `i` of the unit is generated from the counter
    /// `(counter.0, counter.1 + i)`; the stamp replaces blocks 0 and 1.
    ///
    /// `out` must have the length of the shape ([`Shape::unit_bytes`]); otherwise, the function
    /// writes nothing and returns `false`.
    #[must_use]
    #[inline]
    pub fn make_unit(
        self,
        key: [u64; 2],
        counter: (u64, u64),
        shape: &Shape,
        stamp: &[u8; STAMP_BYTES],
        out: &mut [u8],
    ) -> bool {
        if out.len() != shape.unit_bytes() {
            return false;
        }
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only if `is_available` found its features.
            Level::Vaes => unsafe { super::x86::make_vaes(key, counter, shape, stamp, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::AesNi => unsafe { super::x86::make_aes(key, counter, shape, stamp, out) },
            _ => unit::make(key, counter.0, counter.1, shape, stamp, out),
        }
        true
    }

    /// Returns true if `data` is exactly the unit that [`Kernels::make_unit`] creates from the same
    /// arguments. Also returns false if the length of `data` differs from the length of the shape.
    #[must_use]
    #[inline]
    pub fn is_unit(
        self,
        key: [u64; 2],
        counter: (u64, u64),
        shape: &Shape,
        stamp: &[u8; STAMP_BYTES],
        data: &[u8],
    ) -> bool {
        if data.len() != shape.unit_bytes() {
            return false;
        }
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only if `is_available` found its features.
            Level::Vaes => unsafe { super::x86::is_intact_vaes(key, counter, shape, stamp, data) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::AesNi => unsafe { super::x86::is_intact_aes(key, counter, shape, stamp, data) },
            _ => unit::is_intact(key, counter.0, counter.1, shape, stamp, data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Kernels> {
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
            for kernels in all() {
                prop_assert_eq!(kernels.crc32c(seed, data), portable().crc32c(seed, data));
            }
        }

        #[test]
        fn a_checksum_continues(
            data in proptest::collection::vec(any::<u8>(), 0..9_000),
            cut: prop::sample::Index,
        ) {
            let cut = cut.index(data.len() + 1);
            for kernels in all() {
                let first = kernels.crc32c(0, &data[..cut]);
                prop_assert_eq!(kernels.crc32c(first, &data[cut..]), kernels.crc32c(0, &data));
            }
        }

        #[test]
        fn bytes_equal_the_portable_ones(
            key: [u64; 2], high: u64, low: u64, seed: u32, size in 0usize..20_000,
        ) {
            let (mut expected, mut got) = (vec![0; size], vec![0; size]);
            portable().fill_at(key, high, low, &mut expected);
            for kernels in all() {
                got.fill(0xAA);
                kernels.fill_at(key, high, low, &mut got);
                prop_assert_eq!(&got, &expected);
                got.fill(0xAA);
                let crc = kernels.fill_crc32c_at(key, high, low, seed, &mut got);
                prop_assert_eq!(&got, &expected);
                prop_assert_eq!(crc, portable().crc32c(seed, &expected));
            }
        }

        #[test]
        fn units_equal_the_portable_ones(
            key: [u64; 2],
            counter: (u64, u64),
            filler: u64,
            stamp: [u8; 32],
            sectors in 1usize..=8,
            parts: prop::sample::Index,
            flip: prop::sample::Index,
        ) {
            let shape = Shape::new(sectors, 1 + parts.index(16 * sectors), filler).unwrap();
            let mut expected = vec![0; shape.unit_bytes()];
            prop_assert!(portable().make_unit(key, counter, &shape, &stamp, &mut expected));
            for kernels in all() {
                let mut got = vec![0xAA; shape.unit_bytes()];
                prop_assert!(kernels.make_unit(key, counter, &shape, &stamp, &mut got));
                prop_assert_eq!(&got, &expected);
                prop_assert!(kernels.is_unit(key, counter, &shape, &stamp, &got));
                let bit = flip.index(8 * got.len());
                got[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(!kernels.is_unit(key, counter, &shape, &stamp, &got));
            }
        }
    }

    #[test]
    fn detects_a_processor_that_computes_wrongly() {
        let right =
            |seed: u32, out: &mut [u8]| portable().fill_crc32c_at(KEY, HIGH, LOW, seed, out);
        assert!(computes_right(&right));
        let halves_alike = |seed: u32, out: &mut [u8]| {
            right(seed, out);
            out.as_chunks_mut::<32>().0.iter_mut().for_each(|part| part.copy_within(16.., 0));
            portable().crc32c(seed, out)
        };
        assert!(!computes_right(&halves_alike));
        assert!(!computes_right(&|seed, out| right(seed, out) ^ 1), "a wrong sum");
        let all_there = Level::ALL.into_iter().filter(|level| level.is_there());
        assert!(all_there.eq(Level::ALL.into_iter().filter(|level| level.is_available())));
    }

    /// The kernels of every level check each bit of a unit.
    #[test]
    fn detects_each_flipped_bit() {
        for shape in [Shape::new(8, 128, 7), Shape::new(8, 61, 7), Shape::new(1, 3, 7)] {
            let shape = shape.unwrap();
            let mut unit = vec![0; shape.unit_bytes()];
            for kernels in all() {
                assert!(kernels.make_unit([1, 2], (3, 4), &shape, &[9; 32], &mut unit));
                for bit in 0..8 * unit.len() {
                    unit[bit / 8] ^= 1 << (bit % 8);
                    assert!(!kernels.is_unit([1, 2], (3, 4), &shape, &[9; 32], &unit), "{bit}");
                    unit[bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
    }

    #[test]
    fn a_unit_of_another_length_is_refused() {
        let shape = Shape::new(8, 128, 1).unwrap();
        let mut out = vec![0; 2048];
        assert!(!Kernels::best().make_unit([1, 2], (3, 4), &shape, &[0; 32], &mut out));
        assert!(out.iter().all(|&b| b == 0));
        assert!(!Kernels::best().is_unit([1, 2], (3, 4), &shape, &[0; 32], &out));
    }
}
