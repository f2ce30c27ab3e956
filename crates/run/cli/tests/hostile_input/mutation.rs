//! Mutations of valid inputs.

use std::ops::Range;

use crate::support::draw::Draw;

/// Maximum length of a mutated input, in bytes.
const SIZE_MAX: usize = 256 << 10;
/// Texts that replace a number in an input.
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
/// Bytes that have a meaning in text formats.
const MARKS: &[u8] = b"{}[]()<>\"'\\,;:=#%&|/ \t\n\r\0\xff\xc3\xf0";

/// Returns a random range within an input of this length.
fn part_of(draw: &mut Draw, length: usize) -> Range<usize> {
    let start = draw.below(length + 1);
    let longest = match draw.below(4) {
        0 => length - start,
        _ => (length - start).min(16),
    };
    start..start + draw.below(longest + 1)
}

/// Returns bytes that every parser must reject, because they contain too few words of any format.
pub fn garbage(draw: &mut Draw) -> Vec<u8> {
    let length = 1 + draw.below(300);
    (0..length).map(|_| draw.bits() as u8).collect()
}

/// Returns one of the inputs with up to eight changes.
pub fn mutated(draw: &mut Draw, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = inputs[draw.below(inputs.len())].clone();
    for _ in 0..=draw.below(8) {
        let range = part_of(draw, bytes.len());
        match draw.below(9) {
            0 => drop(bytes.drain(range)),
            1 => {
                let copy = bytes[range.clone()].to_vec();
                drop(bytes.splice(range.end..range.end, copy));
            }
            2 => {
                let other = &inputs[draw.below(inputs.len())];
                let part = part_of(draw, other.len());
                drop(bytes.splice(range, other[part].to_vec()));
            }
            3 => bytes.truncate(range.start),
            4 => {
                // Generates deep nesting and long lists.
                let times = 1 << draw.below(13);
                let copy = bytes[range.start..range.end.min(range.start + 16)].repeat(times);
                drop(bytes.splice(range, copy));
            }
            5 => {
                if let Some(byte) = bytes.get_mut(range.start) {
                    *byte ^= 1 << draw.below(8);
                }
            }
            6 => {
                let mark = MARKS[draw.below(MARKS.len())];
                drop(bytes.splice(range.start..range.start, [mark]));
            }
            _ => replace_number(draw, &mut bytes, range.start),
        }
        bytes.truncate(SIZE_MAX);
    }
    bytes
}

/// Replaces the first number at or after a position.
fn replace_number(draw: &mut Draw, bytes: &mut Vec<u8>, from: usize) {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit) else { return };
    let start = from + start;
    let length = bytes[start..].iter().position(|byte| !is_part(byte));
    let end = length.map_or(bytes.len(), |length| start + length);
    let number = NUMBERS[draw.below(NUMBERS.len())].as_bytes().to_vec();
    drop(bytes.splice(start..end, number));
}
