//! Under which classes a driver records the operations of streams.

use super::{Class, OpKind, StreamConfig, classes};
use crate::step::{self, ClassGroup};

/// Classes of a stream without operations on names: read, write, sync.
const DATA_CLASSES: usize = 3;

impl StreamConfig {
    /// The classes that its operations have, in the order of [`super::Op::class`].
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        let mut all = classes(&self.name, self.sync.kind);
        if self.metadata_percent == 0.0 {
            all.truncate(DATA_CLASSES);
        }
        all
    }

    /// The largest transfer.
    #[must_use]
    pub fn size_bytes_max(&self) -> u32 {
        let largest = self.all_sizes_bytes().into_iter().max().unwrap_or(0);
        u32::try_from(largest).unwrap_or(u32::MAX)
    }
}

/// The classes of the streams, each stream's after those of the one before it.
#[must_use]
pub fn stream_classes(streams: &[StreamConfig]) -> Vec<step::Class> {
    let mut all = Vec::new();
    for (instance, stream) in (0u32..).zip(streams) {
        for class in stream.classes() {
            let group = match class.kind {
                _ if class.is_durable => ClassGroup::Durable,
                OpKind::Fsync | OpKind::Fdatasync => ClassGroup::Sync,
                OpKind::Metadata(_) => ClassGroup::Metadata,
                _ => ClassGroup::Transactional,
            };
            let is_read = class.kind == OpKind::Read;
            all.push(step::Class { name: class.name, group, is_read, instance });
        }
    }
    all
}
