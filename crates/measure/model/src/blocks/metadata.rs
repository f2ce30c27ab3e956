//! A cache of metadata: the map of extents.
//!
//! Every request needs the map entry of each unit of `unit_bytes` that it touches. A cached entry
//! costs nothing. For a missing entry, the block first makes `miss_reads` consecutive reads of
//! `entry_bytes` from the device with the map (the index is a tree). Each of these reads also uses
//! `miss_us` of CPU time. The block requests the data afterwards. The ADSF documentation mentions
//! an additional read on a miss, but no cache size, so the capacity is an assumption. If `warm` is
//! set, the cache initially contains entries of the placed data, up to the capacity of the cache.

use super::context::{Block, BlockRef, Blocks, Builder, Context};
use super::request::{ANY_DEVICE, Action, Request};
use crate::cache::Recent;
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Metadata {
    below: BlockRef,
    device: BlockRef,
    cpu: Option<BlockRef>,
    miss_ns: u64,
    hits: u64,
    misses: u64,
    cache: Recent<u32>,
    unit_bytes: u64,
    entry_bytes: u64,
    miss_reads: u64,
    warm: bool,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the block that stores the data")?;
    let device = reader.block("device", "the block that stores the map")?;
    let cpu = reader.block_or_none("cpu")?;
    let unit_bytes = reader.count("unit_bytes", 4096, 1 << 40, "the data size of one map entry")?;
    let bytes = reader.number("capacity_bytes", 0.0, 1e15, "the memory for cached map entries")?;
    let cached_bytes = reader.number_or("cached_entry_bytes", 256.0, 1.0, 1e6)?;
    let capacity = ((bytes / cached_bytes) as usize).min(1 << 30);
    Ok(Box::new(Metadata {
        below: builder.find(below),
        device: builder.find(device),
        cpu: builder.find_or_none(cpu),
        miss_ns: (1e3 * reader.number_or("miss_us", 0.0, 0.0, 1e6)?) as u64,
        hits: 0,
        misses: 0,
        cache: Recent::new(capacity),
        unit_bytes,
        entry_bytes: reader.count_or("entry_bytes", 4096, 512, 1 << 20)?,
        miss_reads: reader.count_or("miss_reads", 1, 0, 100)?,
        warm: reader.flag_or("warm", false)?,
    }))
}

impl Block for Metadata {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        if matches!(request.action, Action::Read | Action::Write) {
            for unit in request.units(self.unit_bytes) {
                let key = request.key(unit);
                if self.cache.access(key) {
                    self.hits += 1;
                    continue;
                }
                self.misses += 1;
                // The position of a map entry does not depend on the position of its data. The
                // source of a data read is counted without the map reads before it.
                let before = (cx.served, cx.landed);
                for level in 0..self.miss_reads {
                    let offset = (key << 4 | level) % (1 << 36) * self.entry_bytes;
                    let mut read = request.range(offset, self.entry_bytes);
                    read.action = Action::Read;
                    read.device = ANY_DEVICE;
                    cx.route(self.device, &read);
                    if let Some(cpu) = self.cpu {
                        cx.charge(cpu, request.node, self.miss_ns, false);
                    }
                }
                (cx.served, cx.landed) = before;
            }
        }
        cx.route(self.below, request);
    }

    fn hint(&self, request: &Request, blocks: &Blocks) {
        self.cache.hint(request.key(request.first_unit(self.unit_bytes)));
        blocks.hint(self.below, request);
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        let units = request.units(self.unit_bytes);
        if self.warm {
            let room = (self.cache.capacity() - self.cache.len()) as u64;
            for unit in units.take(room as usize) {
                self.cache.access(request.key(unit));
            }
        }
        cx.lay(self.below, request);
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below, node)
    }

    fn forget(&mut self) {
        if !self.warm {
            self.cache.clear();
        }
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        each("hit_share", self.hits as f64 / (self.hits + self.misses).max(1) as f64);
        each("entries", self.cache.len() as f64);
    }
}
