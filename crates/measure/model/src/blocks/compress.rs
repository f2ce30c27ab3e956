//! Compresses data in slices, and detects zeroes.
//!
//! Data with a compression ratio of `data_ratio` is stored in slices of `slice_bytes`. In the lower
//! blocks, a slice has `1 / data_ratio` of its logical size, but at least one sector of
//! `unit_bytes`. Lower tiers and caches can therefore store more data. Reading any part of a slice
//! reads and decompresses the whole slice. Writes that are sequential or larger than `inline_bytes`
//! are compressed immediately; a smaller write to a stored slice reads, modifies and rewrites the
//! slice. Data is compressed only if `inline` is set. A share of `zero_share` of the data consists
//! of zeroes; reading and writing zeroes accesses only metadata. A hash of the address selects the
//! 4 KiB units that contain zeroes, so they are the same in every request.

use super::context::{Block, BlockRef, Blocks, Builder, Context};
use super::inside::Source;
use super::request::{Action, Request, scatter};
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Compress {
    below: BlockRef,
    cpu: Option<BlockRef>,
    inline: bool,
    slice_bytes: u64,
    inline_bytes: u64,
    stored_share: f64,
    compress_ns_per_byte: f64,
    expand_ns_per_byte: f64,
    zero_share: f64,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the block that stores the data")?;
    let cpu = reader.block_or_none("cpu")?;
    let inline = reader.flag_or("inline", false)?;
    let slice_bytes = reader.count_or("slice_bytes", 32_768, 4096, 1 << 24)?;
    let unit = reader.number_or("unit_bytes", 4096.0, 1.0, 1e6)?;
    let ratio = reader.number_or("data_ratio", 1.0, 1.0, 1e3)?;
    let slice = slice_bytes as f64;
    let stored = libm::ceil(slice / ratio / unit) * unit;
    Ok(Box::new(Compress {
        below: builder.find(below),
        cpu: builder.find_or_none(cpu),
        inline: inline && stored < slice,
        slice_bytes,
        inline_bytes: reader.count_or("inline_bytes", 65_536, 0, 1 << 40)?,
        stored_share: if inline { (stored / slice).min(1.0) } else { 1.0 },
        compress_ns_per_byte: reader.number_or("compress_ns_per_byte", 2.0, 0.0, 1e3)?,
        expand_ns_per_byte: reader.number_or("expand_ns_per_byte", 0.5, 0.0, 1e3)?,
        zero_share: reader.number_or("zero_share", 0.0, 0.0, 1.0)?,
    }))
}

impl Compress {
    fn work(&self, request: &Request, ns_per_byte: f64, cx: &mut Context<'_>) {
        if let Some(cpu) = self.cpu {
            let work_ns = request.size_bytes as f64 * ns_per_byte;
            cx.charge(cpu, request.node, work_ns as u64, false);
        }
    }

    fn zero(&self, request: &Request) -> bool {
        // A hash of the address selects the zero blocks, so they are the same in every request.
        let hash = scatter(request.key(request.offset_bytes / 4096)) >> 11;
        self.zero_share > 0.0 && (hash as f64) < self.zero_share * (1u64 << 53) as f64
    }
}

impl Block for Compress {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let data = matches!(request.action, Action::Read | Action::Write);
        if data && self.zero(request) {
            if request.action == Action::Read {
                cx.serve(Source::Zero);
            } else {
                cx.land(Source::Zero);
            }
            return;
        }
        if !self.inline || !data {
            cx.route(self.below, request);
            return;
        }
        let slices = request.units(self.slice_bytes);
        let whole = Request {
            stored_share: self.stored_share,
            ..request.range(
                slices.start * self.slice_bytes,
                (slices.end - slices.start) * self.slice_bytes,
            )
        };
        if request.action == Action::Read {
            cx.route(self.below, &whole);
            self.work(&whole, self.expand_ns_per_byte, cx);
            return;
        }
        let small = request.size_bytes < self.inline_bytes && !request.sequential;
        if small && request.size_bytes < whole.size_bytes {
            cx.route(self.below, &Request { action: Action::Read, ..whole });
            self.work(&whole, self.expand_ns_per_byte, cx);
        }
        self.work(&whole, self.compress_ns_per_byte, cx);
        cx.route(self.below, &whole);
    }

    fn hint(&self, request: &Request, blocks: &Blocks) {
        blocks.hint(self.below, request);
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        cx.lay(self.below, &Request { stored_share: self.stored_share, ..*request });
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        Some(blocks.capacity_bytes(self.below, node)? / self.stored_share)
    }
}
