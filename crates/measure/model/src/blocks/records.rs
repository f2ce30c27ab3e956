//! A file system that stores files as records of a fixed size: ZFS, and file systems with large
//! allocation units, checksums or copy-on-write.
//!
//! A read must fetch whole records, because each checksum is computed over a whole record. A write
//! of a part of a record must first read the remaining parts (read, modify, write), unless they are
//! also written before the transaction group closes. `gathered_share` is the share of the writes
//! that are gathered into whole records in memory (1 if files are rewritten in full, 0 if single
//! parts are updated). For gathered writes, only the written bytes go to the device. (ZFS: M.
//! Bonwick and others, "The zettabyte file system", 2003; record size and transaction groups as in
//! the OpenZFS manual.) Writes of a sequential stream (`streams`, see [`super::streams`]) are
//! gathered in memory, so a record becomes dirty only once, whatever the size of the writes.
//! Records ahead of a stream's read position are prefetched, and reads do not wait for the
//! prefetch. Without checksums and copy-on-write (`whole = false`), reads and writes touch only
//! their own range, rounded to the allocation unit's sectors.

use super::context::{Block, BlockRef, Blocks, Builder, Context};
use super::request::{Action, Request};
use super::streams::Streams;
use crate::core::rng::Stream;
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Records {
    below: BlockRef,
    cpu: Option<BlockRef>,
    record_bytes: u64,
    gathered_share: f64,
    whole: bool,
    op_ns: f64,
    record_ns: f64,
    record_metadata_bytes: f64,
    streams: Option<Streams>,
    stream: Stream,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the block that stores the records")?;
    let cpu = reader.block_or_none("cpu")?;
    let record_bytes = reader.count("record_bytes", 512, 1 << 30, "the record size")?;
    Ok(Box::new(Records {
        below: builder.find(below),
        cpu: builder.find_or_none(cpu),
        record_bytes,
        gathered_share: reader.number_or("gathered_share", 1.0, 0.0, 1.0)?,
        whole: reader.flag_or("whole", true)?,
        op_ns: 1e3 * reader.number_or("op_us", 0.0, 0.0, 1e6)?,
        record_ns: 1e3 * reader.number_or("record_us", 0.0, 0.0, 1e6)?,
        record_metadata_bytes: reader.number_or("record_metadata_bytes", 0.0, 0.0, 1e6)?,
        streams: Streams::read(reader, record_bytes)?,
        stream: builder.stream(),
    }))
}

impl Records {
    fn read(&mut self, request: &Request, cx: &mut Context<'_>) {
        if !self.whole {
            cx.route(self.below, request);
            return;
        }
        let units = request.units(self.record_bytes);
        let bytes = (units.end - units.start) * self.record_bytes;
        cx.route(self.below, &request.range(units.start * self.record_bytes, bytes));
    }

    fn write(&mut self, request: &Request, cx: &mut Context<'_>) {
        let units = request.units(self.record_bytes);
        let covered = (units.end - units.start) * self.record_bytes;
        let partial = request.size_bytes < covered;
        let gathered = self.streams.is_some() && request.sequential;
        if self.whole && partial && !gathered && !self.stream.chance(self.gathered_share) {
            // Read, modify, write: the file system reads and writes whole records.
            let records = request.range(units.start * self.record_bytes, covered);
            cx.route(self.below, &Request { action: Action::Read, ..records });
            cx.route(self.below, &records);
            return;
        }
        let records = request.size_bytes as f64 / self.record_bytes as f64;
        let extra = records * self.record_metadata_bytes;
        let share = request.size_bytes as f64 / covered.min(self.record_bytes) as f64;
        let extra_bytes = extra as u64;
        cx.route(self.below, &Request { share: share.min(1.0), extra_bytes, ..*request });
    }
}

impl Records {
    /// Launches the read-ahead of the stream that a request belongs to. Returns true if the request
    /// belongs to a stream.
    fn follow(&mut self, request: &Request, cx: &mut Context<'_>) -> bool {
        let Some(streams) = &mut self.streams else { return request.sequential };
        if !matches!(request.action, Action::Read | Action::Write) {
            return request.sequential;
        }
        let seen = streams.access(request);
        if let Some(source) = seen.from {
            // The drives have read this record as read-ahead, so the request does not count as a
            // cache hit.
            cx.serve(source);
        }
        if !seen.ahead.is_empty() {
            let (below, mut from) = (self.below, None);
            for unit in seen.ahead {
                let range = request.range(unit * self.record_bytes, self.record_bytes);
                let record = Request { sequential: true, ..range };
                cx.launch(|cx| {
                    // A read will need the prefetched data soon, so the prefetch has the same
                    // priority as foreground work.
                    cx.program.set_background(false);
                    cx.route(below, &record);
                    from = from.max(cx.served);
                });
            }
            streams.note(request.file, from);
        }
        request.sequential || seen.sequential
    }
}

impl Block for Records {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let request = &Request { sequential: self.follow(request, cx), ..*request };
        if let Some(cpu) = self.cpu {
            let units = request.units(self.record_bytes);
            let records = request.size_bytes as f64 / self.record_bytes as f64;
            let records = if self.whole { (units.end - units.start) as f64 } else { records };
            let work_ns = self.op_ns + records * self.record_ns;
            cx.charge(cpu, request.node, work_ns as u64, false);
        }
        match request.action {
            Action::Read => self.read(request, cx),
            Action::Write => self.write(request, cx),
            Action::Flush | Action::Meta => cx.route(self.below, request),
        }
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        if let Some(streams) = &mut self.streams {
            streams.lay(request);
        }
        cx.lay(self.below, request);
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below, node)
    }
}
