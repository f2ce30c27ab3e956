//! Classes under which a driver records the operations of streams.

use super::{Class, LatencyEnd, OpKind, StreamConfig, classes};
use crate::step::{self, ClassGroup};

impl StreamConfig {
    /// Returns the classes of the stream's operations, in the order of [`super::Op::class`].
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

    /// Returns the index of the class of durable writes in [`StreamConfig::classes`]. The latencies
    /// of this class include the flush. `None` if the stream does not flush.
    #[must_use]
    pub fn durable_class(&self) -> Option<u16> {
        self.class_until(LatencyEnd::Flush)
    }

    /// Returns the index in [`StreamConfig::classes`] of the class for latencies to the first byte.
    /// `None` if the target does not report when the first byte arrives.
    #[must_use]
    pub fn first_byte_class(&self) -> Option<u16> {
        self.class_until(LatencyEnd::FirstByte)
    }

    fn class_until(&self, end: LatencyEnd) -> Option<u16> {
        u16::try_from(self.classes().iter().position(|class| class.end == end)?).ok()
    }

    /// Returns the largest transfer size in bytes.
    #[must_use]
    pub fn size_bytes_max(&self) -> u32 {
        let largest = self.all_sizes_bytes().into_iter().max().unwrap_or(0);
        u32::try_from(largest).unwrap_or(u32::MAX)
    }
}

/// Returns the classes of all streams, stream after stream.
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
