//! Generator with VAES: two blocks in one register.

use core::arch::x86_64::{
    __m256i, _mm_set_epi64x, _mm256_add_epi64, _mm256_aesenc_epi128, _mm256_aesenclast_epi128,
    _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_testz_si256,
    _mm256_xor_si256,
};

use super::super::ars::{ROUNDS, schedule};
use super::super::unit::PART_BYTES;

/// 32 bytes of content.
pub(super) type Part = __m256i;

/// Round keys and the counters of the next two blocks.
#[derive(Clone, Copy)]
pub(super) struct Cipher {
    keys: [__m256i; ROUNDS + 1],
    next: __m256i,
}

#[target_feature(enable = "aes,vaes,avx2")]
#[inline]
pub(super) fn cipher(key: [u64; 2], high: u64, low: u64) -> Cipher {
    let both = |w: [u64; 2]| {
        _mm256_broadcastsi128_si256(_mm_set_epi64x(w[1].cast_signed(), w[0].cast_signed()))
    };
    let next = _mm256_add_epi64(both([low, high]), _mm256_set_epi64x(0, 1, 0, 0));
    Cipher { keys: schedule(key).map(both), next }
}

/// Returns the part that is generated from the two blocks `ahead` of the next block.
#[target_feature(enable = "aes,vaes,avx2")]
#[inline]
pub(super) fn generate(from: &Cipher, ahead: i64) -> Part {
    let mut a = _mm256_add_epi64(from.next, _mm256_set_epi64x(0, ahead, 0, ahead));
    a = _mm256_xor_si256(a, from.keys[0]);
    for key in &from.keys[1..ROUNDS] {
        a = _mm256_aesenc_epi128(a, *key);
    }
    _mm256_aesenclast_epi128(a, from.keys[ROUNDS])
}

/// Advances by `blocks`.
#[target_feature(enable = "aes,vaes,avx2")]
#[inline]
pub(super) fn skip(from: &mut Cipher, blocks: i64) {
    from.next = _mm256_add_epi64(from.next, _mm256_set_epi64x(0, blocks, 0, blocks));
}

/// Returns a part that repeats `word`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn repeat(word: u64) -> Part {
    _mm256_set1_epi64x(word.cast_signed())
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn store(part: Part, out: &mut [u8; PART_BYTES]) {
    // SAFETY: `out` is 32 bytes long, and this store needs no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), part) };
}

/// Collects the bits in which `data` differs from `part`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn differ(seen: Part, part: Part, data: &[u8; PART_BYTES]) -> Part {
    // SAFETY: `data` is 32 bytes long, and this load needs no alignment.
    let data = unsafe { _mm256_loadu_si256(data.as_ptr().cast()) };
    _mm256_or_si256(seen, _mm256_xor_si256(part, data))
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn zero() -> Part {
    _mm256_setzero_si256()
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn is_zero(part: Part) -> bool {
    _mm256_testz_si256(part, part) == 1
}
