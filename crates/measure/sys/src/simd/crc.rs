//! Portable CRC-32C, which processes eight bytes per step with tables, and the arithmetic that
//! joins remainders.

/// The Castagnoli polynomial, reflected (RFC 3720, appendix B.4).
pub(super) const POLYNOMIAL: u32 = 0x82F6_3B78;

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (if crc & 1 == 0 { 0 } else { POLYNOMIAL });
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut slice = 1;
    while slice < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[slice - 1][i];
            tables[slice][i] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
            i += 1;
        }
        slice += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

/// Feeds `data` to the raw register, without inversion before or after.
pub(super) fn raw(mut register: u32, data: &[u8]) -> u32 {
    let mut eights = data.chunks_exact(8);
    for eight in &mut eights {
        let low = register ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        let b = low.to_le_bytes();
        register = TABLES[7][b[0] as usize]
            ^ TABLES[6][b[1] as usize]
            ^ TABLES[5][b[2] as usize]
            ^ TABLES[4][b[3] as usize]
            ^ TABLES[3][eight[4] as usize]
            ^ TABLES[2][eight[5] as usize]
            ^ TABLES[1][eight[6] as usize]
            ^ TABLES[0][eight[7] as usize];
    }
    for &b in eights.remainder() {
        register = (register >> 8) ^ TABLES[0][((register ^ u32::from(b)) & 0xFF) as usize];
    }
    register
}

/// Returns the product of two polynomials modulo the Castagnoli polynomial, all reflected (bit 31
/// is `x^0`).
pub(super) const fn mul_mod(a: u32, b: u32) -> u32 {
    let (mut product, mut a, mut bit) = (0u32, a, 1u32 << 31);
    while bit != 0 {
        if b & bit != 0 {
            product ^= a;
        }
        a = (a >> 1) ^ (if a & 1 == 0 { 0 } else { POLYNOMIAL });
        bit >>= 1;
    }
    product
}

/// Returns `x^n` modulo the Castagnoli polynomial, reflected.
pub(super) const fn x_pow_mod(n: u64) -> u32 {
    let (mut power, mut base, mut n) = (1u32 << 31, 1u32 << 30, n);
    while n != 0 {
        if n & 1 != 0 {
            power = mul_mod(power, base);
        }
        base = mul_mod(base, base);
        n >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from RFC 3720, appendix B.4.
    #[test]
    fn matches_the_values_of_the_standard() {
        let crc = |data: &[u8]| !raw(!0, data);
        assert_eq!(crc(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc(&core::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46DD_794E);
        assert_eq!(crc(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn advancing_equals_feeding_zeros() {
        for n in [0usize, 1, 7, 8, 100, 4092] {
            let advanced = mul_mod(0x1234_5678, x_pow_mod(8 * n as u64));
            assert_eq!(advanced, raw(0x1234_5678, &vec![0; n]));
        }
    }
}
