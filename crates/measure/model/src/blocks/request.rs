//! Requests to a system, or to a block within it.

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read data.
    Read,
    /// Write data; complete when the system acknowledges it. Devices with a volatile buffer need a
    /// flush besides, or [`Request::durable`].
    Write,
    /// Make written data durable.
    Flush,
    /// A metadata operation, such as a look-up of attributes.
    Meta,
}

/// No particular device.
pub(crate) const ANY_DEVICE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Operation.
    pub action: Action,
    /// Number of the file, virtual disk or object.
    pub file: u32,
    /// Where in it.
    pub offset_bytes: u64,
    /// How much.
    pub size_bytes: u64,
    /// The node on which it is being handled.
    pub node: u16,
    /// Issuing client.
    pub client: u32,
    /// Part of a sequential stream.
    pub sequential: bool,
    /// A write that has to be on the medium when it completes (FUA, `O_DSYNC`).
    pub durable: bool,
    /// True if nobody waits for the request.
    pub background: bool,
    /// Share of a device command that belongs to this request: below 1 if the system gathers
    /// several requests into one command.
    pub share: f64,
    /// Stored size over logical size: below 1 if a higher layer has made the data smaller.
    pub(crate) stored_share: f64,
    /// Size of the metadata that is written together with the data of a write.
    pub(crate) extra_bytes: u64,
    /// True for a read of data that was never written: the block that would store the data returns
    /// zeros.
    pub(crate) hole: bool,
    /// Number of the device of a block, if the block above chose the device.
    pub(crate) device: u32,
}

impl Request {
    /// A foreground request of client 0 on node 0.
    pub fn new(action: Action, file: u32, offset_bytes: u64, size_bytes: u64) -> Self {
        Self {
            action,
            file,
            offset_bytes,
            size_bytes,
            node: 0,
            client: 0,
            sequential: false,
            durable: false,
            background: false,
            share: 1.0,
            stored_share: 1.0,
            extra_bytes: 0,
            hole: false,
            device: ANY_DEVICE,
        }
    }

    /// The same for another range.
    pub(crate) fn range(self, offset_bytes: u64, size_bytes: u64) -> Self {
        Self { offset_bytes, size_bytes, ..self }
    }

    /// Returns a part of the request, with the same part of the metadata.
    pub(crate) fn part(self, offset_bytes: u64, size_bytes: u64) -> Self {
        let extra_bytes = self.extra_bytes * size_bytes / self.size_bytes.max(1);
        Self { offset_bytes, size_bytes, extra_bytes, ..self }
    }

    /// Returns the indices of the units of `unit_bytes` that the request touches.
    #[inline]
    pub(crate) fn units(&self, unit_bytes: u64) -> std::ops::Range<u64> {
        let first = self.first_unit(unit_bytes);
        let last = quotient(self.offset_bytes + self.size_bytes.max(1) - 1, unit_bytes);
        first..last + 1
    }

    /// Returns the index of the first of these units.
    #[inline]
    pub(crate) fn first_unit(&self, unit_bytes: u64) -> u64 {
        quotient(self.offset_bytes, unit_bytes)
    }

    /// A key for a unit of this file, unique over files up to 2^24 and units up to 2^40.
    pub(crate) fn key(&self, unit: u64) -> u64 {
        (u64::from(self.file) << 40) | unit
    }
}

/// `bytes / unit_bytes`. Most units are powers of two. For these, a shift needs one cycle, and a
/// division needs dozens.
#[inline]
fn quotient(bytes: u64, unit_bytes: u64) -> u64 {
    if unit_bytes.is_power_of_two() {
        bytes >> unit_bytes.trailing_zeros()
    } else {
        divide(bytes, unit_bytes)
    }
}

/// Not inlined: it has a dozen callers.
#[cold]
#[inline(never)]
fn divide(bytes: u64, unit_bytes: u64) -> u64 {
    bytes / unit_bytes
}

/// Spreads a number over all 64 bits: for placement that is random but always the same.
#[inline]
pub(crate) fn scatter(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
