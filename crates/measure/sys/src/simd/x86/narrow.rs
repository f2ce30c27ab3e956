//! Generator with AES-NI: two blocks in two registers.

use core::arch::x86_64::{
    __m128i, _mm_add_epi64, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_cvtsi128_si64,
    _mm_extract_epi64, _mm_loadu_si128, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi64x,
    _mm_setzero_si128, _mm_storeu_si128, _mm_xor_si128,
};

use super::super::ars::{ROUNDS, schedule};
use super::super::unit::PART_BYTES;

/// 32 bytes of content.
pub(super) type Part = [__m128i; 2];

/// Round keys and the counter of the next block.
#[derive(Clone, Copy)]
pub(super) struct Cipher {
    keys: [__m128i; ROUNDS + 1],
    next: __m128i,
}

#[target_feature(enable = "aes,sse4.2")]
#[inline]
pub(super) fn cipher(key: [u64; 2], high: u64, low: u64) -> Cipher {
    let register = |w: [u64; 2]| _mm_set_epi64x(w[1].cast_signed(), w[0].cast_signed());
    Cipher { keys: schedule(key).map(register), next: register([low, high]) }
}

/// Returns the part that is generated from the two blocks `ahead` of the next block.
#[target_feature(enable = "aes,sse4.2")]
#[inline]
pub(super) fn generate(from: &Cipher, ahead: i64) -> Part {
    let mut a = _mm_add_epi64(from.next, _mm_set_epi64x(0, ahead));
    let mut b = _mm_add_epi64(from.next, _mm_set_epi64x(0, ahead + 1));
    a = _mm_xor_si128(a, from.keys[0]);
    b = _mm_xor_si128(b, from.keys[0]);
    for key in &from.keys[1..ROUNDS] {
        a = _mm_aesenc_si128(a, *key);
        b = _mm_aesenc_si128(b, *key);
    }
    [_mm_aesenclast_si128(a, from.keys[ROUNDS]), _mm_aesenclast_si128(b, from.keys[ROUNDS])]
}

/// Advances by `blocks`.
#[target_feature(enable = "aes,sse4.2")]
#[inline]
pub(super) fn skip(from: &mut Cipher, blocks: i64) {
    from.next = _mm_add_epi64(from.next, _mm_set_epi64x(0, blocks));
}

/// Returns a part of a unit that consists of copies of `word`.
#[target_feature(enable = "sse4.2")]
#[inline]
pub(super) fn repeat(word: u64) -> Part {
    [_mm_set1_epi64x(word.cast_signed()); 2]
}

#[target_feature(enable = "sse4.2")]
#[inline]
pub(super) fn store(part: Part, out: &mut [u8; PART_BYTES]) {
    let to = out.as_mut_ptr();
    // SAFETY: `out` is 32 bytes long, and these stores need no alignment.
    unsafe {
        _mm_storeu_si128(to.cast(), part[0]);
        _mm_storeu_si128(to.add(16).cast(), part[1]);
    }
}

/// Collects the bits in which `data` differs from `part`.
#[target_feature(enable = "sse4.2")]
#[inline]
pub(super) fn differ(seen: Part, part: Part, data: &[u8; PART_BYTES]) -> Part {
    let from = data.as_ptr();
    // SAFETY: `data` is 32 bytes long, and these loads need no alignment.
    let data = unsafe { [_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(16).cast())] };
    [
        _mm_or_si128(seen[0], _mm_xor_si128(part[0], data[0])),
        _mm_or_si128(seen[1], _mm_xor_si128(part[1], data[1])),
    ]
}

#[target_feature(enable = "sse4.2")]
#[inline]
pub(super) fn zero() -> Part {
    [_mm_setzero_si128(); 2]
}

#[target_feature(enable = "sse4.2")]
#[inline]
pub(super) fn is_zero(part: Part) -> bool {
    let all = _mm_or_si128(part[0], part[1]);
    _mm_cvtsi128_si64(all) | _mm_extract_epi64::<1>(all) == 0
}
