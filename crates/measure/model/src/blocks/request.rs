//! Requests that a system or one of its blocks handles.

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Read data.
    Read,
    /// Write data. The write is complete when the system acknowledges it. On a device with a
    /// volatile buffer, the data is durable only after a flush, or if [`Request::durable`] is set.
    Write,
    /// Makes data durable that was written before.
    Flush,
    /// A metadata operation, such as a look-up of attributes.
    Meta,
}

/// Value of `device` if no particular device was selected.
pub(crate) const ANY_DEVICE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Operation.
    pub action: Action,
    /// Number of the file, virtual disk or object.
    pub file: u32,
    /// Byte offset in the file.
    pub offset_bytes: u64,
    /// Number of bytes in the request.
    pub size_bytes: u64,
    /// The node that handles the request.
    pub node: u16,
    /// The client that issued the request.
    pub client: u32,
    /// True if the request is part of a sequential stream.
    pub sequential: bool,
    /// True for a write that must be on the medium when it completes (FUA, `O_DSYNC`).
    pub durable: bool,
    /// True for background work: no client waits for the request.
    pub background: bool,
    /// Share of one device command that this request accounts for. It is below 1 if the system
    /// combines several requests into one command.
    pub share: f64,
    /// Ratio of the stored size to the logical size. It is below 1 if a higher block compressed the
    /// data.
    pub(crate) stored_share: f64,
    /// Size of the metadata that is written with the data of a write request.
    pub(crate) extra_bytes: u64,
    /// True if a read requests data that was never written. The block that would store the data
    /// then returns zeros.
    pub(crate) hole: bool,
    /// Number of the device in its block, if a higher block selected the device.
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
            durable: false,
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

    /// Returns the request for a part of the range. The metadata size is reduced in proportion.
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

    /// Returns the index of the first unit that the request touches.
    #[inline]
    pub(crate) fn first_unit(&self, unit_bytes: u64) -> u64 {
        quotient(self.offset_bytes, unit_bytes)
    }

    /// Returns the key of a unit of this file. Keys are unique for file numbers below 2^24 and
    /// units below 2^40.
    pub(crate) fn key(&self, unit: u64) -> u64 {
        (u64::from(self.file) << 40) | unit
    }
}

/// Returns `bytes / unit_bytes`. Most unit sizes are powers of two, for which a shift takes one
/// cycle. A division would take dozens of cycles.
#[inline]
fn quotient(bytes: u64, unit_bytes: u64) -> u64 {
    if unit_bytes.is_power_of_two() {
        bytes >> unit_bytes.trailing_zeros()
    } else {
        divide(bytes, unit_bytes)
    }
}

/// A dozen functions call this function, so it is not inlined.
#[cold]
#[inline(never)]
fn divide(bytes: u64, unit_bytes: u64) -> u64 {
    bytes / unit_bytes
}

/// Hashes a number to 64 bits. The hash is used for placement that looks random but is the same in
/// every run.
#[inline]
pub(crate) fn scatter(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
