//! Pattern in which the slots are normally distributed around the middle of the space.
//!
//! The quantile function is algorithm AS 241 (PPND16) from M. J. Wichura, "The percentage points of
//! the normal distribution", Applied Statistics 37(3), 1988. Its relative error is about 1 in
//! 10^16. It computes one normally distributed number from each uniformly distributed number.

use super::hash::{mix, unit_open};

/// Slots with a normal distribution around the middle of the space. If a random value is outside
/// the space, a new random value is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    n: u64,
    deviation_slots: f64,
}

impl Normal {
    /// Creates the slots `0..n`. They are distributed around `n / 2`, with a standard deviation of
    /// `deviation` times `n`. If the deviation is not above 0, it is treated as 0, and every slot
    /// is the middle slot. An `n` of 0 is treated as 1.
    #[must_use]
    pub fn new(n: u64, deviation: f64) -> Self {
        let n = n.max(1);
        let deviation = if deviation > 0.0 { deviation } else { 0.0 };
        Self { n, deviation_slots: deviation * n as f64 }
    }

    /// Returns the slot for an index.
    #[must_use]
    #[inline]
    pub fn at(&self, seed: u64, index: u64) -> u64 {
        let n = self.n as f64;
        let mut bits = mix(seed, index);
        loop {
            let x = n / 2.0 + self.deviation_slots * normal_quantile(unit_open(bits));
            if x >= 0.0 && x < n {
                return (x as u64).min(self.n - 1);
            }
            bits = mix(bits, index);
        }
    }
}

/// Returns the quantile of the standard normal distribution for the probability `p`, which must be
/// in (0, 1).
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 8] = [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ];
    const B: [f64; 8] = [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_545e3,
    ];
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&A, r) / polynomial(&B, r);
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p }));
    let x = if r <= 5.0 { near_tail(r - 1.6) } else { far_tail(r - 5.0) };
    if q < 0.0 { -x } else { x }
}

fn near_tail(r: f64) -> f64 {
    const C: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ];
    const D: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ];
    polynomial(&C, r) / polynomial(&D, r)
}

fn far_tail(r: f64) -> f64 {
    const E: [f64; 8] = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ];
    const F: [f64; 8] = [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ];
    polynomial(&E, r) / polynomial(&F, r)
}

/// Evaluates a polynomial with Horner's method. The first coefficient is the constant term.
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_slot_when_nothing_deviates() {
        assert_eq!(Normal::new(101, 0.0).at(1, 1), 50);
        assert_eq!(Normal::new(0, 0.1).at(1, 1), 0);
        assert_eq!(Normal::new(101, f64::NAN).at(1, 1), 50);
    }

    #[test]
    fn all_slots_are_inside_even_when_most_of_the_bell_is_not() {
        let wide = Normal::new(10, 50.0);
        let mut seen = [0; 10];
        for i in 0..1_000 {
            seen[wide.at(5, i) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    }
}
