//! Classes in which a driver records the operations of streams.

use super::{Class, LatencyEnd, OpKind, StreamConfig, classes};
use crate::step::{self, ClassGroup};

impl StreamConfig {
    /// Returns the classes for the operations of the stream, in the order of [`super::Op::class`].
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        let mut all = classes(&self.name, self.sync.kind);
        if self.metadata_percent == 0.0 {
            all.retain(|class| !matches!(class.kind, OpKind::Metadata(_)));
        }
        if self.first_byte {
            let name = format!("{}.first_byte", self.name);
            all.push(Class { name, kind: OpKind::Read, end: LatencyEnd::FirstByte });
        }
        all
    }

    /// Returns the index of the class for durable writes in [`StreamConfig::classes`]. In this
    /// class, a latency includes the flush. Returns `None` if the stream issues no flushes.
    #[must_use]
    pub fn durable_class(&self) -> Option<u16> {
        self.class_until(LatencyEnd::Flush)
    }

    /// Returns the index of the class for the time to the first byte in [`StreamConfig::classes`].
    /// Returns `None` if this time is not recorded, because the target does not report it.
    #[must_use]
    pub fn first_byte_class(&self) -> Option<u16> {
        self.class_until(LatencyEnd::FirstByte)
    }

    fn class_until(&self, end: LatencyEnd) -> Option<u16> {
        u16::try_from(self.classes().iter().position(|class| class.end == end)?).ok()
    }

    /// Returns the size of the stream's largest transfer in bytes.
    #[must_use]
    pub fn size_bytes_max(&self) -> u32 {
        let largest = self.all_sizes_bytes().into_iter().max().unwrap_or(0);
        u32::try_from(largest).unwrap_or(u32::MAX)
    }
}

/// Returns the classes of all streams. The classes of the first stream come first.
#[must_use]
pub fn stream_classes(streams: &[StreamConfig]) -> Vec<step::Class> {
    let mut all = Vec::new();
    for (instance, stream) in (0u32..).zip(streams) {
        for class in stream.classes() {
            let group = match (class.end, class.kind) {
                (LatencyEnd::Flush, _) => ClassGroup::Durable,
                (LatencyEnd::FirstByte, _) => ClassGroup::FirstByte,
                (_, OpKind::Fsync | OpKind::Fdatasync) => ClassGroup::Sync,
                (_, OpKind::Metadata(_)) => ClassGroup::Metadata,
                _ => ClassGroup::Transactional,
            };
            let is_read = class.kind == OpKind::Read;
            all.push(step::Class { name: class.name, group, is_read, instance });
        }
    }
    all
}
