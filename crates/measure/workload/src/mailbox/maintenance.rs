//! Background maintenance. It reads the database file from front to back at a constant rate. It
//! checks the checksum and the generation of each page.

use crate::step::{Arena, Io, IoKind};

use super::config::MailboxConfig;
use super::context::{Ctx, Purpose, Token};
use super::database::{ClassOf, Database, class};
use super::generation::Mark;
use super::geometry::Geometry;
use super::page;
use super::poison::{Failure, Place};

/// Maximum number of maintenance reads that a database has in flight. The second read is issued
/// only if the first read takes longer than the interval.
pub(crate) const READS_MAX: usize = 2;
/// Maximum number of missed reads that are issued later. If the target was slow, one read was
/// missed in each interval.
const DEBT_MAX: u64 = 64;

/// Slot for a maintenance read. The read may be in flight.
#[derive(Clone, Debug)]
struct Reading {
    busy: bool,
    first_page: u32,
    /// Mark of each page in the generation map when the read was issued.
    marks: Vec<Mark>,
}

/// Background maintenance of one database.
#[derive(Debug)]
pub(crate) struct Maintenance {
    interval_ns: u64,
    pages_per_read: u32,
    page_bytes: u32,
    place: usize,
    buffer_at: u64,
    next_page: u32,
    due_ns: Option<u64>,
    reads: [Reading; READS_MAX],
}

impl Maintenance {
    pub fn new(config: &MailboxConfig, place: usize, buffer_at: u64) -> Self {
        let pages_per_read = config.maintenance_bytes / config.page_bytes;
        let marks = vec![Mark::default(); pages_per_read as usize];
        let reading = Reading { busy: false, first_page: 0, marks };
        Self {
            interval_ns: config.maintenance_interval_ns,
            pages_per_read,
            page_bytes: config.page_bytes,
            place,
            buffer_at,
            next_page: 0,
            due_ns: None,
            reads: [reading.clone(), reading],
        }
    }

    fn free(&self) -> Option<usize> {
        self.reads.iter().position(|reading| !reading.busy)
    }

    /// Returns the time at which the next read is due. Returns `None` if no read can be issued.
    pub fn deadline_ns(&self) -> Option<u64> {
        let due = if self.interval_ns == 0 { None } else { self.due_ns };
        due.filter(|_| self.free().is_some())
    }

    /// Returns the number of the first page in the read with this index.
    pub fn first_page(&self, index: u32) -> Option<u32> {
        self.reads.get(index as usize).map(|reading| reading.first_page)
    }

    /// Returns the requested size of the read with this index. Returns `None` if this read is not
    /// in flight.
    pub fn read_bytes(&self, index: u32) -> Option<u32> {
        let reading = self.reads.get(index as usize).filter(|reading| reading.busy)?;
        Some(reading.marks.len() as u32 * self.page_bytes)
    }
}

impl Database {
    /// Issues all maintenance reads that are due.
    #[inline(always)]
    pub fn pump_maintenance(&mut self, g: &Geometry, ctx: &mut Ctx<'_>) {
        let interval = self.maintenance.interval_ns;
        if interval == 0 {
            return;
        }
        let now = ctx.now_ns;
        let due = self.maintenance.due_ns.get_or_insert(now + interval);
        *due = (*due).max(now.saturating_sub(DEBT_MAX * interval));
        while let Some(index) = self.maintenance.free() {
            let due = self.maintenance.due_ns.unwrap_or(now);
            if due > now {
                return;
            }
            self.maintenance.due_ns = Some(due + interval);
            self.issue_maintenance(index, due, g, ctx);
        }
    }

    fn issue_maintenance(&mut self, index: usize, due_ns: u64, g: &Geometry, ctx: &mut Ctx<'_>) {
        let used = self.state.pages_used;
        let m = &mut self.maintenance;
        let pages = m.pages_per_read.min(used);
        // The last read of a pass starts earlier, so that it also has the full size. It therefore
        // overlaps the read before it.
        let first = if m.next_page >= used { 0 } else { m.next_page }.min(used - pages);
        m.next_page = first + pages;
        let reading = &mut m.reads[index];
        reading.busy = true;
        reading.first_page = first;
        reading.marks.clear();
        reading
            .marks
            .extend((first..first + pages).map(|page| self.state.generation_map.get(page)));
        let size_bytes = pages * m.page_bytes;
        let buffer_at = m.buffer_at + index as u64 * u64::from(m.pages_per_read * m.page_bytes);
        self.counts.maintenance_reads += 1;
        self.counts.maintenance_bytes += u64::from(size_bytes);
        ctx.out.push(Io {
            token: Token::pack(Purpose::Maintenance, m.place, index as u32),
            kind: IoKind::Read,
            file: self.file,
            class: class(m.place, ClassOf::Maintenance),
            offset_bytes: g.page_offset(first),
            size_bytes,
            buffer_offset_bytes: buffer_at,
            intended_ns: due_ns,
        });
    }

    /// Checks the pages that a maintenance read returned. Skips the pages that were written during
    /// the read, because the target may then return a mixture of old and new data.
    pub fn maintenance_done(&mut self, g: &Geometry, index: u32, ctx: &mut Ctx<'_>) {
        let m = &mut self.maintenance;
        let size = u64::from(m.page_bytes);
        let base = m.buffer_at + u64::from(index) * u64::from(m.pages_per_read) * size;
        let Some(reading) = m.reads.get_mut(index as usize) else { return };
        reading.busy = false;
        for (i, &before) in reading.marks.iter().enumerate() {
            let page = reading.first_page + i as u32;
            let now = self.state.generation_map.get(page);
            if before != now || now.in_flight || now.acked == 0 {
                self.counts.maintenance_pages_skipped += 1;
                continue;
            }
            let bytes = Arena::bytes(ctx.arena, base + i as u64 * size, g.page_bytes);
            let Some(bytes) = bytes else { return };
            if let Err(fault) = page::check(g, self.id, page, now, bytes) {
                self.counts.damage[fault.damage as usize] += 1;
                ctx.fail(self.id, Place::Page(page), Failure::Page(fault));
            }
        }
    }
}
