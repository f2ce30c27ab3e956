//! CRC-32C with the SSE 4.2 instruction. The instruction has a latency of three cycles, and a
//! processor can start one in each cycle. Three adjacent lanes are therefore processed in parallel,
//! and their remainders joined.

use core::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64,
};

use super::super::crc::x_pow_mod;
use super::super::unit::PART_BYTES;

/// Lane sizes of the long and the short three-lane stride, in bytes.
const LONG: usize = 1360;
const SHORT: usize = 168;

/// Returns the multiplier for [`product`] that advances a register by `bytes`.
const fn onward(bytes: usize) -> u32 {
    x_pow_mod(8 * bytes as u64 - 33)
}

/// Multipliers that advance the first three of four lanes to the end of their block.
const LANE_ONWARD: [u32; 3] = [onward(3 * 1024), onward(2 * 1024), onward(1024)];

#[inline(always)]
fn word_at(data: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&data[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Returns the carry-less product. After the CRC instruction has processed it, the result is
/// `register * by * x^33`.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn product(register: u32, by: u32) -> u64 {
    let a = _mm_cvtsi32_si128(register.cast_signed());
    let b = _mm_cvtsi32_si128(by.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(a, b)).cast_unsigned()
}

/// Processes all complete three-lane strides at the start of `data`; returns the register and the
/// remaining bytes.
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
        let products = product(a as u32, by[1]) ^ product(b as u32, by[0]);
        register = (_mm_crc32_u64(0, products) ^ c) as u32;
    }
    (register, strides.remainder())
}

/// Feeds `data` to the raw register.
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(in super::super) fn crc(register: u32, data: &[u8]) -> u32 {
    let long = const { [onward(LONG), onward(2 * LONG)] };
    let short = const { [onward(SHORT), onward(2 * SHORT)] };
    let (register, data) = strides::<LONG>(register, data, long);
    let (register, data) = strides::<SHORT>(register, data, short);
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

/// Feeds the four words of `part` to `register`.
#[target_feature(enable = "sse4.2")]
#[inline]
pub(super) fn crc_part(mut register: u64, part: &[u8; PART_BYTES]) -> u64 {
    for i in (0..PART_BYTES).step_by(8) {
        register = _mm_crc32_u64(register, word_at(part, i));
    }
    register
}

/// Joins the registers of the four 1 KiB lanes of a block.
#[target_feature(enable = "sse4.2,pclmulqdq")]
#[inline]
pub(super) fn joined(registers: [u64; 4]) -> u32 {
    let mut products = 0;
    for (register, by) in registers.iter().zip(LANE_ONWARD) {
        products ^= product(*register as u32, by);
    }
    (_mm_crc32_u64(0, products) ^ registers[3]) as u32
}
