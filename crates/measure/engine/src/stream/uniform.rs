//! Source with a minimal cost, which is used to measure the maximum rate of a driver.

use plimsoll_sys::op::OpKind;

use super::source::{Op, Source};

/// Source of 4 KiB operations at random offsets in 1 TiB. It is used without a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uniform {
    state: u64,
}

impl Uniform {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Source for Uniform {
    #[inline]
    fn next(&mut self, _: u32) -> Option<Op> {
        // The generator is xorshift64 (G. Marsaglia, "Xorshift RNGs", Journal of Statistical
        // Software 8(14), 2003).
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let offset_bytes = self.state >> 36 << 12;
        let (kind, size_bytes) = (OpKind::Write, 4096);
        Some(Op { kind, class: 0, file: 0, offset_bytes, size_bytes, tag: 0 })
    }
}
