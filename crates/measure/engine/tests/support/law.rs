//! Distributions of service times.
#![allow(dead_code)] // each program uses a part of it

/// Distribution of service times.
#[derive(Clone, Copy, Debug)]
pub enum Law {
    /// The time is constant, in ns.
    Constant(u64),
    /// The times are exponential with this mean, in ns.
    Exponential(f64),
    /// The first time, in ns. One in fifty operations takes the second time.
    Bimodal(u64, u64),
}

impl Law {
    /// Returns the name that tables print.
    pub fn name(self) -> String {
        match self {
            Self::Constant(ns) => format!("constant {} µs", ns / 1_000),
            Self::Exponential(mean_ns) => format!("exponential {:.0} µs", mean_ns / 1e3),
            Self::Bimodal(fast, slow) => format!("{} µs / {} µs", fast / 1_000, slow / 1_000),
        }
    }

    /// Returns the mean of the distribution.
    pub fn mean_ns(self) -> f64 {
        match self {
            Self::Constant(ns) => ns as f64,
            Self::Exponential(mean_ns) => mean_ns,
            Self::Bimodal(fast_ns, slow_ns) => 0.98 * fast_ns as f64 + 0.02 * slow_ns as f64,
        }
    }
}

/// Distributions with means of 50 µs, 1 ms and about 0.5 ms; the last has times of 100 µs and 20
/// ms.
pub const LAWS: [Law; 3] =
    [Law::Constant(50_000), Law::Exponential(1_000_000.0), Law::Bimodal(100_000, 20_000_000)];

/// Random times from a distribution. Each instance returns the same sequence.
#[derive(Clone, Debug)]
pub struct Draws {
    law: Law,
    state: u64,
}

impl Draws {
    pub fn new(law: Law) -> Self {
        Self { law, state: 7 }
    }

    /// Returns the next service time, in ns.
    pub fn draw_ns(&mut self) -> u64 {
        let uniform = self.uniform();
        match self.law {
            Law::Constant(ns) => ns,
            Law::Exponential(mean_ns) => (-mean_ns * (1.0 - uniform).ln()).max(1.0) as u64,
            Law::Bimodal(fast_ns, slow_ns) => {
                if uniform < 0.98 {
                    fast_ns
                } else {
                    slow_ns
                }
            }
        }
    }

    /// Returns a uniform number from 0 up to 1 (SplitMix64; constants by S. Vigna, public domain).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
