//! Portable generator: AES rounds that use tables, forwards and backwards.

/// Number of rounds of the generator: the minimum that passes BigCrush (ARS-5, Salmon et al. 2011,
/// table 2).
pub(super) const ROUNDS: usize = 5;

/// The Weyl increments of the key schedule: the golden ratio and the square root of 3, both minus
/// one, as fractions of 2^64 (Salmon et al. 2011, section 3.2).
const WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];

/// One 128-bit round key as two little-endian words, low word first.
pub(super) type RoundKey = [u64; 2];

/// Returns the round keys of `key`.
pub(super) fn schedule(key: [u64; 2]) -> [RoundKey; ROUNDS + 1] {
    let mut keys = [key; ROUNDS + 1];
    for round in 1..=ROUNDS {
        let before = keys[round - 1];
        keys[round] = [before[0].wrapping_add(WEYL[0]), before[1].wrapping_add(WEYL[1])];
    }
    keys
}

/// Multiplies by x in the field of FIPS 197.
const fn times_x(byte: u8) -> u8 {
    (byte << 1) ^ (if byte & 0x80 == 0 { 0 } else { 0x1B })
}

/// The S-box of FIPS 197, section 5.1.1, computed from its definition: inverse, then the affine
/// map.
const fn s_box() -> [u8; 256] {
    let mut table = [0u8; 256];
    // p runs through the powers of the generator 3, and q through the powers of its inverse, so
    // that p * q is always 1.
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p ^= times_x(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        if q & 0x80 != 0 {
            q ^= 0x09;
        }
        let turned = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = turned ^ 0x63;
        if p == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
}

const fn inverse_of(table: [u8; 256]) -> [u8; 256] {
    let mut inverse = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        inverse[table[i] as usize] = i as u8;
        i += 1;
    }
    inverse
}

/// SubBytes and MixColumns of a byte in row 0; the other rows are rotations.
const fn mix_table(s: [u8; 256]) -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let v = s[i];
        let v2 = times_x(v);
        table[i] = u32::from_le_bytes([v2, v, v, v2 ^ v]);
        i += 1;
    }
    table
}

static S: [u8; 256] = s_box();
static S_INVERSE: [u8; 256] = inverse_of(s_box());
static T: [u32; 256] = mix_table(s_box());

type Columns = [u32; 4];

fn columns(words: [u64; 2]) -> Columns {
    [words[0] as u32, (words[0] >> 32) as u32, words[1] as u32, (words[1] >> 32) as u32]
}

fn words(columns: Columns) -> [u64; 2] {
    [
        u64::from(columns[0]) | u64::from(columns[1]) << 32,
        u64::from(columns[2]) | u64::from(columns[3]) << 32,
    ]
}

fn byte(word: u32, row: u32) -> usize {
    ((word >> (8 * row)) & 0xFF) as usize
}

fn round(state: Columns, key: RoundKey) -> Columns {
    let k = columns(key);
    core::array::from_fn(|c| {
        T[byte(state[c], 0)]
            ^ T[byte(state[(c + 1) & 3], 1)].rotate_left(8)
            ^ T[byte(state[(c + 2) & 3], 2)].rotate_left(16)
            ^ T[byte(state[(c + 3) & 3], 3)].rotate_left(24)
            ^ k[c]
    })
}

fn last_round(state: Columns, key: RoundKey) -> Columns {
    let k = columns(key);
    core::array::from_fn(|c| {
        u32::from_le_bytes(core::array::from_fn(|row| S[byte(state[(c + row) & 3], row as u32)]))
            ^ k[c]
    })
}

/// Returns the 16 bytes of the counter `(high, low)`.
pub(super) fn block(keys: &[RoundKey; ROUNDS + 1], high: u64, low: u64) -> [u8; 16] {
    let mut state = columns([low ^ keys[0][0], high ^ keys[0][1]]);
    for key in &keys[1..ROUNDS] {
        state = round(state, *key);
    }
    let [a, b] = words(last_round(state, keys[ROUNDS]));
    let mut out = [0u8; 16];
    out[..8].copy_from_slice(&a.to_le_bytes());
    out[8..].copy_from_slice(&b.to_le_bytes());
    out
}

/// Fills `out`, starting from the counter `(high, low)`.
pub(super) fn fill(key: [u64; 2], high: u64, low: u64, out: &mut [u8]) {
    let keys = schedule(key);
    for (i, chunk) in out.chunks_mut(16).enumerate() {
        let bytes = block(&keys, high, low.wrapping_add(i as u64));
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// Reverses SubBytes and ShiftRows.
fn unsubstitute(state: Columns) -> Columns {
    core::array::from_fn(|c| {
        u32::from_le_bytes(core::array::from_fn(|row| {
            S_INVERSE[byte(state[(c + 4 - row) & 3], row as u32)]
        }))
    })
}

/// Reverses MixColumns of one column: MixColumns to the fourth power is the identity.
fn unmix(column: u32) -> u32 {
    let mix = |c: u32| {
        let b = c.to_le_bytes();
        let t = b[0] ^ b[1] ^ b[2] ^ b[3];
        u32::from_le_bytes(core::array::from_fn(|r| b[r] ^ t ^ times_x(b[r] ^ b[(r + 1) & 3])))
    };
    mix(mix(mix(column)))
}

/// Returns the counter `(high, low)` for which the generator with `key` returns these 16 bytes.
/// Every 16-byte string has exactly one counter, so the caller must judge whether this counter is
/// plausible. Slow; used to identify damage.
#[must_use]
pub fn invert(key: [u64; 2], bytes: [u8; 16]) -> (u64, u64) {
    let keys = schedule(key);
    let xor = |state: Columns, key: RoundKey| {
        let k = columns(key);
        core::array::from_fn(|c| state[c] ^ k[c])
    };
    let all = u128::from_le_bytes(bytes);
    let mut state = columns([all as u64, (all >> 64) as u64]);
    state = unsubstitute(xor(state, keys[ROUNDS]));
    for round in (1..ROUNDS).rev() {
        state = unsubstitute(xor(state, keys[round]).map(unmix));
    }
    let [low, high] = words(xor(state, keys[0]));
    (high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected state is that of the example cipher after its first round (FIPS 197, appendix
    /// B).
    #[test]
    fn one_round_is_that_of_fips_197() {
        let bytes = |hex: &str| {
            let b: Vec<u8> =
                (0..16).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
            let all = u128::from_le_bytes(b.try_into().unwrap());
            [all as u64, (all >> 64) as u64]
        };
        let start = bytes("193de3bea0f4e22b9ac68d2ae9f84808");
        let key = bytes("a0fafe1788542cb123a339392a6c7605");
        let after = bytes("a49c7ff2689f352b6b5bea43026a5049");
        assert_eq!(words(round(columns(start), key)), after);
    }

    #[test]
    fn a_block_is_inverted_to_its_counter() {
        let key = [0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210];
        for i in 0..1000u64 {
            let counter = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15), i.rotate_left(17) ^ 7);
            let bytes = block(&schedule(key), counter.0, counter.1);
            assert_eq!(invert(key, bytes), counter);
        }
    }
}
