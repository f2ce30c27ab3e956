//! Random choices that depend only on a seed.

/// SplitMix64 (G. Steele, D. Lea and C. Flood, OOPSLA 2014).
pub struct Draw(u64);

impl Draw {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a random number in the range `0..end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns true for one in `times` calls on average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.bits().is_multiple_of(times)
    }

    /// Returns a random whole number from `least` to `most`. The numbers are evenly distributed on
    /// a logarithmic scale.
    pub fn spread(&mut self, least: f64, most: f64) -> f64 {
        let share = self.bits() as f64 / u64::MAX as f64;
        (least * (most / least).powf(share)).round()
    }
}
