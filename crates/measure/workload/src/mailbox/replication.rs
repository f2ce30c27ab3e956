//! Log replication. For each additional copy of a database, its log is read once, as soon as the
//! log is durable.

use crate::step::{Io, IoKind};

use super::config::{BLOCK_BYTES, MailboxConfig};
use super::context::{Ctx, Purpose, Token};
use super::database::{ClassOf, Database, class};
use super::geometry::Geometry;
use super::poison::{Failure, Place};
use super::record::check_block;
use super::store::log_place;

/// State of the reads for one copy.
#[derive(Clone, Copy, Debug)]
struct Reader {
    lsn: u64,
    /// Size of the read that is in flight; 0 if no read is in flight.
    reading: u32,
}

/// Log replication of one database.
#[derive(Debug)]
pub(crate) struct Replication {
    readers: Vec<Reader>,
    read_bytes: u32,
    place: usize,
    buffer_at: u64,
}

impl Replication {
    pub fn new(config: &MailboxConfig, place: usize, buffer_at: u64, lsn: u64) -> Self {
        let readers = vec![Reader { lsn, reading: 0 }; config.copies as usize - 1];
        // A read never crosses the end of a file.
        let read_bytes = config.replication_bytes.min(config.log_file_bytes);
        Self { readers, read_bytes, place, buffer_at }
    }

    /// Returns the requested size of the read with this index. Returns `None` if this read is not
    /// in flight.
    pub fn read_bytes(&self, index: u32) -> Option<u32> {
        self.readers.get(index as usize).map(|r| r.reading).filter(|&bytes| bytes > 0)
    }
}

impl Database {
    /// Issues a read for each copy if the log contains enough durable blocks for a whole read.
    #[inline(always)]
    pub fn pump_replication(&mut self, config: &MailboxConfig, ctx: &mut Ctx<'_>) {
        let durable = self.log.durable_lsn();
        let ring = u64::from(config.log_files) * u64::from(config.log_file_bytes);
        let file_bytes = u64::from(config.log_file_bytes);
        let r = &mut self.replication;
        for (index, reader) in r.readers.iter_mut().enumerate() {
            if reader.reading > 0 {
                continue;
            }
            // The blocks that were not read have been overwritten in the ring, or will be
            // overwritten soon. The read therefore skips them.
            let lag_max = ring - ring / 8;
            if durable.saturating_sub(reader.lsn) > lag_max {
                self.counts.replication_skipped_bytes += durable - reader.lsn;
                reader.lsn = durable;
            }
            let in_file = file_bytes - reader.lsn % file_bytes;
            let size = in_file.min(u64::from(r.read_bytes));
            if durable - reader.lsn < size {
                continue;
            }
            let (file, offset_bytes) = log_place(config, self.file, reader.lsn);
            reader.reading = size as u32;
            self.counts.replication_reads += 1;
            ctx.out.push(Io {
                token: Token::pack(Purpose::Replication, r.place, index as u32),
                kind: IoKind::Read,
                file,
                class: class(r.place, ClassOf::Replication),
                offset_bytes,
                size_bytes: size as u32,
                buffer_offset_bytes: r.buffer_at + index as u64 * u64::from(r.read_bytes),
                intended_ns: ctx.now_ns,
            });
        }
    }

    /// Checks the data of a completed read. Every block must be the block that belongs at its
    /// position.
    pub fn replication_done(
        &mut self,
        g: &Geometry,
        index: u32,
        ring_bytes: u64,
        ctx: &mut Ctx<'_>,
    ) {
        let r = &mut self.replication;
        let buffer_at = r.buffer_at + u64::from(index) * u64::from(r.read_bytes);
        let Some(reader) = r.readers.get_mut(index as usize) else { return };
        let (start, size) = (reader.lsn, reader.reading);
        reader.lsn += u64::from(size);
        reader.reading = 0;
        if self.log.issued_lsn() > start + ring_bytes {
            // During the read, these blocks were overwritten in the ring.
            self.counts.replication_skipped_bytes += u64::from(size);
            return;
        }
        let Some(bytes) = ctx.arena.bytes(buffer_at, size) else { return };
        let blocks = bytes.chunks_exact(BLOCK_BYTES as usize);
        let wrong = blocks.enumerate().find_map(|(i, block)| {
            let lsn = start + i as u64 * u64::from(BLOCK_BYTES);
            let checked = check_block(g, self.id, (lsn, ring_bytes), block);
            checked.err().map(|fault| (lsn, fault))
        });
        if let Some((lsn, fault)) = wrong {
            ctx.fail(self.id, Place::Log(lsn), Failure::LogBlock(fault));
        }
    }
}
