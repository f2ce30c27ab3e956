//! Requests to a system, or to a block within it.

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read of data.
    Read,
    /// Write of data; completes when it is durable.
    Write,
    /// Flush of written data.
    Flush,
    /// A metadata operation, such as a lookup of attributes.
    Meta,
}

/// Value for "no particular device".
pub(crate) const ANY_DEVICE: u32 = u32::MAX;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Operation.
    pub action: Action,
    /// File, virtual disk or object.
    pub file: u32,
    /// Byte offset.
    pub offset_bytes: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Node that handles it.
    pub node: u16,
    /// Issuing client.
    pub client: u32,
    /// Part of a sequential stream.
    pub sequential: bool,
    /// True for background work, for which no request waits.
    pub background: bool,
    /// Share of a device command: below 1 if the system gathers several requests into one command.
    pub share: f64,
    /// Stored size over logical size: below 1 if a higher layer compressed the data.
    pub(crate) stored_share: f64,
    /// Metadata of a write, in addition to its own bytes.
    pub(crate) extra_bytes: u64,
    /// A read of unwritten data: blocks that store data answer it with zeroes.
    pub(crate) hole: bool,
    /// Device of a block, if a higher block has chosen it.
    pub(crate) device: u32,
}

impl Request {
    /// Creates a foreground request of client 0 on node 0.
    pub fn new(action: Action, file: u32, offset_bytes: u64, size_bytes: u64) -> Self {
        Self {
            action,
            file,
            offset_bytes,
            size_bytes,
            node: 0,
            client: 0,
            sequential: false,
            background: false,
            share: 1.0,
            stored_share: 1.0,
            extra_bytes: 0,
            hole: false,
            device: ANY_DEVICE,
        }
    }

    /// Returns the same request for another range.
    pub(crate) fn range(self, offset_bytes: u64, size_bytes: u64) -> Self {
        Self { offset_bytes, size_bytes, ..self }
    }

    /// Returns a part of it, with a proportional part of the metadata.
    pub(crate) fn part(self, offset_bytes: u64, size_bytes: u64) -> Self {
        let extra_bytes = self.extra_bytes * size_bytes / self.size_bytes.max(1);
        Self { offset_bytes, size_bytes, extra_bytes, ..self }
    }

    /// Returns the indices of its units of `unit_bytes`.
    #[inline]
    pub(crate) fn units(&self, unit_bytes: u64) -> std::ops::Range<u64> {
        let first = self.first_unit(unit_bytes);
        let last = quotient(self.offset_bytes + self.size_bytes.max(1) - 1, unit_bytes);
        first..last + 1
    }

    /// Returns the first of these indices.
    #[inline]
    pub(crate) fn first_unit(&self, unit_bytes: u64) -> u64 {
        quotient(self.offset_bytes, unit_bytes)
    }

    /// Returns a key for a unit of this file, unique for files up to 2^24 and units up to 2^40.
    pub(crate) fn key(&self, unit: u64) -> u64 {
        (u64::from(self.file) << 40) | unit
    }
}

/// `bytes / unit_bytes`. Most units are powers of two. A shift then takes one cycle instead of the
/// dozens of a division.
#[inline]
fn quotient(bytes: u64, unit_bytes: u64) -> u64 {
    if unit_bytes.is_power_of_two() {
        bytes >> unit_bytes.trailing_zeros()
    } else {
        divide(bytes, unit_bytes)
    }
}

/// Not inlined, because it has a dozen callers.
#[cold]
#[inline(never)]
fn divide(bytes: u64, unit_bytes: u64) -> u64 {
    bytes / unit_bytes
}

/// Mixes a number to all 64 bits: for pseudorandom placement that is always the same.
#[inline]
pub(crate) fn scatter(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
