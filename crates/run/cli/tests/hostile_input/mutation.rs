//! Mutations of valid inputs.

use std::ops::Range;

/// Longest mutated input, in bytes.
const SIZE_MAX: usize = 256 << 10;
/// Replacements for a number.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999",
    "1e308",
    "1e400",
    "-1e-300",
    "NaN",
    "inf",
    "0x7f",
    "",
];
/// Bytes with a meaning in text formats.
const MARKS: &[u8] = b"{}[]()<>\"'\\,;:=#%&|/ \t\n\r\0\xff\xc3\xf0";

/// Random numbers from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn range(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let longest = match self.below(4) {
            0 => length - start,
            _ => (length - start).min(16),
        };
        start..start + self.below(longest + 1)
    }

    /// Returns bytes that no parser may accept: too few of any format's words occur in them.
    pub fn garbage(&mut self) -> Vec<u8> {
        let length = 1 + self.below(300);
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// Returns one of the inputs, changed in up to eight ways.
pub fn mutated(random: &mut Random, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = inputs[random.below(inputs.len())].clone();
    for _ in 0..=random.below(8) {
        let range = random.range(bytes.len());
        match random.below(9) {
            0 => drop(bytes.drain(range)),
            1 => {
                let copy = bytes[range.clone()].to_vec();
                drop(bytes.splice(range.end..range.end, copy));
            }
            2 => {
                let other = &inputs[random.below(inputs.len())];
                let part = random.range(other.len());
                drop(bytes.splice(range, other[part].to_vec()));
            }
            3 => bytes.truncate(range.start),
            4 => {
                // Deep nesting, and long lists.
                let times = 1 << random.below(13);
                let copy = bytes[range.start..range.end.min(range.start + 16)].repeat(times);
                drop(bytes.splice(range, copy));
            }
            5 => {
                if let Some(byte) = bytes.get_mut(range.start) {
                    *byte ^= 1 << random.below(8);
                }
            }
            6 => {
                let mark = MARKS[random.below(MARKS.len())];
                drop(bytes.splice(range.start..range.start, [mark]));
            }
            _ => replace_number(random, &mut bytes, range.start),
        }
        bytes.truncate(SIZE_MAX);
    }
    bytes
}

/// Replaces the first number at or after a position.
fn replace_number(random: &mut Random, bytes: &mut Vec<u8>, from: usize) {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit) else { return };
    let start = from + start;
    let length = bytes[start..].iter().position(|byte| !is_part(byte));
    let end = length.map_or(bytes.len(), |length| start + length);
    let number = NUMBERS[random.below(NUMBERS.len())].as_bytes().to_vec();
    drop(bytes.splice(start..end, number));
}
