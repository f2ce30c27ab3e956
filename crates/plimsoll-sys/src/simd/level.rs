//! Which instructions a kernel may use, decided once and carried as a value.

use core::fmt;

use super::{Shape, ars, crc, unit};

/// An instruction set that the kernels are written for, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// x86-64 with VAES on 256-bit registers, AVX2, PCLMULQDQ and SSE 4.2 (AMD Zen 3, Intel Ice
    /// Lake and later).
    Vaes,
    /// x86-64 with AES-NI, PCLMULQDQ and SSE 4.2 (2010 and later).
    AesNi,
    /// Plain Rust, anywhere.
    Portable,
}

impl Level {
    /// Every level, best first.
    pub const ALL: [Self; 3] = [Self::Vaes, Self::AesNi, Self::Portable];

    fn is_available(self) -> bool {
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
                Self::AesNi.is_available()
                    && is_x86_feature_detected!("vaes")
                    && is_x86_feature_detected!("avx2")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vaes => "VAES-256 + SSE 4.2 CRC",
            Self::AesNi => "AES-NI + SSE 4.2 CRC",
            Self::Portable => "portable",
        })
    }
}

/// The kernels at one level that this processor is known to have. Owning one is what makes calling
/// them safe.
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
    /// The kernels at `level`, or `None` where this processor lacks it.
    #[must_use]
    pub fn at(level: Level) -> Option<Self> {
        level.is_available().then_some(Self { level })
    }

    /// The best kernels of this processor.
    #[must_use]
    #[inline]
    pub fn best() -> Self {
        let level = Level::ALL.into_iter().find(|level| level.is_available());
        Self { level: level.unwrap_or(Level::Portable) }
    }

    /// The level in use.
    #[must_use]
    pub fn level(self) -> Level {
        self.level
    }

    /// CRC-32C of `data`, continuing from `seed`: 0 to start, or the result for the bytes before.
    #[must_use]
    #[inline]
    pub fn crc32c(self, seed: u32, data: &[u8]) -> u32 {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only where `is_available` found its features.
            Level::Vaes | Level::AesNi => !unsafe { super::x86::crc(!seed, data) },
            _ => !crc::raw(!seed, data),
        }
    }

    /// Fills `out` from the counters `(high, low_first)`, `(high, low_first + 1)`…, 16 bytes each (the
    /// last is cut where `out` ends).
    #[inline]
    pub fn fill_at(self, key: [u64; 2], high: u64, low_first: u64, out: &mut [u8]) {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only where `is_available` found its features.
            Level::Vaes => unsafe { super::x86::fill_vaes(key, high, low_first, out) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::AesNi => unsafe { super::x86::fill_aes(key, high, low_first, out) },
            _ => ars::fill(key, high, low_first, out),
        }
    }

    /// [`Kernels::fill_at`] and [`Kernels::crc32c`] of what was filled. The memory is passed over
    /// once: the checksum follows in pieces that are still in the first-level cache.
    #[must_use]
    pub fn fill_crc32c_at(
        self,
        key: [u64; 2],
        high: u64,
        low_first: u64,
        seed: u32,
        out: &mut [u8],
    ) -> u32 {
        // A multiple of 16 bytes, and of the long stride of the checksum's lanes.
        const PIECE_BYTES: usize = 4080;
        let mut crc = seed;
        for (i, piece) in out.chunks_mut(PIECE_BYTES).enumerate() {
            let low = low_first.wrapping_add((i * PIECE_BYTES / 16) as u64);
            self.fill_at(key, high, low, piece);
            crc = self.crc32c(crc, piece);
        }
        crc
    }

    /// Makes one stamped unit of content in one pass: the stamp, the bytes that do not compress, the
    /// filler that does, and the CRC-32C of everything after the first four bytes, which goes
    /// there. `stamp` is the first 32 bytes; what it holds in the first four does not matter. Block
    /// `i` of the unit comes from the counter `(high, low_first + i)`; blocks 0 and 1 give way to
    /// the stamp.
    ///
    /// `out` must be as long as `shape` says ([`Shape::unit_bytes`]); otherwise nothing is written
    /// and `false` comes back.
    #[must_use]
    #[inline]
    pub fn stamped_unit(
        self,
        key: [u64; 2],
        high: u64,
        low_first: u64,
        shape: &Shape,
        stamp: &[u8; 32],
        out: &mut [u8],
    ) -> bool {
        if out.len() != shape.unit_bytes() {
            return false;
        }
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value with this level exists only where `is_available` found its features;
            // the length was compared above.
            Level::Vaes => unsafe {
                super::x86::unit_vaes(key, high, low_first, shape, stamp, out);
            },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Level::AesNi => unsafe {
                super::x86::unit_aes(key, high, low_first, shape, stamp, out);
            },
            _ => unit::portable(key, high, low_first, shape, stamp, out),
        }
        true
    }
}
