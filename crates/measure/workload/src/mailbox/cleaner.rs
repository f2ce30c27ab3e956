//! Write-back of one database. It evicts pages, writes adjacent dirty pages together, and advances
//! the checkpoint.
//!
//! Two rules make recovery possible. First, a page is written only when the log is durable up to
//! the latest change of the page (write-ahead logging). Second, the checkpoint advances past a
//! change only after two completions: the write of the changed page, and a flush of the file that
//! was issued after this write completed.
//!
//! As in mail servers, two thresholds control the eviction. It starts when too few frames are free,
//! and stops when enough frames are free. Dirty pages are therefore written in bursts. All
//! databases of a group start their eviction together, because a mail server has one cache for all
//! databases.

use crate::step::{Io, IoKind};

use super::context::{Ctx, Purpose, Token, flush};
use super::database::{ClassOf, Closing, Database, class};
use super::geometry::Geometry;
use super::page::{self, PageHead};
use super::pool::{Pool, WriteSlot};

/// Maximum number of dirty pages that a search skips before it finds a page that can be written.
const SEARCH_MAX: usize = 64;

impl Database {
    /// Returns true if eviction must start, because too few frames are free. Frames that become
    /// free after their write are counted as free.
    #[inline(always)]
    pub fn is_low(&self) -> bool {
        self.cache.free_count() + self.evictions_pending < self.free_low
    }

    /// Frees the least recently used frames until enough frames are free. Frames that become free
    /// after their write are counted as free.
    #[inline(always)]
    pub fn scavenge(&mut self, g: &Geometry, pool: &mut Pool, ctx: &mut Ctx<'_>) {
        self.scavenging |= self.is_low();
        if !self.scavenging {
            return;
        }
        while self.cache.free_count() + self.evictions_pending < self.free_target {
            let Some(at) = self.cache.oldest() else { return };
            let frame = &self.cache.frames[at as usize];
            if frame.writing {
                self.await_write(at);
            } else if !frame.dirty {
                self.cache.unlink_lru(at);
                self.cache.release(at);
            } else if self.write_back(at, g, pool, ctx) {
                self.await_write(at);
            } else {
                return;
            }
        }
        self.scavenging = false;
    }

    /// Evicts a frame that is being written: the frame becomes free when the write ends.
    fn await_write(&mut self, at: u32) {
        self.cache.unlink_lru(at);
        self.cache.frames[at as usize].evict = true;
        self.evictions_pending += 1;
    }

    /// Writes pages in the order in which they became dirty. A page is written if the log after its
    /// first change is longer than the checkpoint depth. If the database is closing or the log is
    /// full, all dirty pages are written.
    #[inline(always)]
    pub fn pump_depth(&mut self, g: &Geometry, pool: &mut Pool, ctx: &mut Ctx<'_>) {
        let depth = self.depth_to_write_bytes();
        let mut at = self.cache.oldest_dirty();
        let mut passed = 0;
        while let Some(frame_at) = at.filter(|_| passed < SEARCH_MAX) {
            let frame = &self.cache.frames[frame_at as usize];
            if self.may_stay_dirty(frame.rec_lsn, depth) {
                return;
            }
            if self.writes >= self.writes_max {
                return;
            }
            if !frame.writing && self.write_back(frame_at, g, pool, ctx) {
                at = self.cache.oldest_dirty();
            } else {
                passed += 1;
                at = self.cache.next_dirty(frame_at);
            }
        }
    }

    /// Returns true if neither the write-back nor the checkpoint has work before the next event.
    #[inline(always)]
    pub fn is_at_rest(&self) -> bool {
        let enough = !self.scavenging && !self.is_low();
        let depth = self.depth_to_write_bytes();
        let shallow = self
            .cache
            .oldest_dirty()
            .is_none_or(|at| self.may_stay_dirty(self.cache.frames[at as usize].rec_lsn, depth));
        enough && shallow && self.closing == Closing::Open && self.checkpoint_can_wait()
    }

    /// Returns true if it is not yet necessary to write the page that became dirty first.
    fn may_stay_dirty(&self, rec_lsn: u64, depth: u64) -> bool {
        self.log.append_lsn().saturating_sub(rec_lsn) <= depth
    }

    /// Returns how many bytes of log may follow the first change of a dirty page before the page
    /// must be written.
    fn depth_to_write_bytes(&self) -> u64 {
        let all = self.closing != Closing::Open || self.log.ring_is_full();
        if all { 0 } else { self.depth_bytes }
    }

    /// Returns a log position. A page may be written only if its latest change is before this
    /// position.
    fn writable_lsn(&self) -> u64 {
        #[cfg(test)]
        if self.mutant == super::Mutant::PageBeforeLog {
            return u64::MAX;
        }
        self.log.durable_lsn()
    }

    fn may_write(&self, page: u32) -> Option<u32> {
        let at = self.cache.find(page)?;
        let frame = &self.cache.frames[at as usize];
        let durable = frame.page_lsn <= self.writable_lsn();
        (frame.dirty && !frame.writing && durable).then_some(at)
    }

    /// Writes a dirty frame together with its dirty neighbours. Returns false if this is not
    /// possible now.
    fn write_back(&mut self, at: u32, g: &Geometry, pool: &mut Pool, ctx: &mut Ctx<'_>) -> bool {
        let page = self.cache.frames[at as usize].page;
        let page_lsn = self.cache.frames[at as usize].page_lsn;
        if page_lsn > self.writable_lsn() {
            self.log.want(page_lsn);
            return false;
        }
        if self.writes >= self.writes_max {
            return false;
        }
        let Some(slot) = pool.take() else { return false };
        let (mut first, mut end) = (page, page + 1);
        while end - first < self.coalesce_pages && first > 0 && self.may_write(first - 1).is_some()
        {
            first -= 1;
        }
        while end - first < self.coalesce_pages && self.may_write(end).is_some() {
            end += 1;
        }
        let buffer_at = pool.slots[slot as usize].buffer_at;
        let mut rec_lsn = u64::MAX;
        for each in first..end {
            let frame = if each == page { Some(at) } else { self.cache.find(each) };
            let Some(frame) = frame else { continue };
            rec_lsn = rec_lsn.min(self.prepare(frame, first, buffer_at, g, ctx));
        }
        self.cache.hint_oldest_dirty();
        let write = &mut pool.slots[slot as usize];
        (write.place, write.first_page, write.pages) = (self.place, first, end - first);
        write.frame = at;
        write.rec_lsn = rec_lsn;
        self.writes += 1;
        self.counts.database_writes += 1;
        self.counts.pages_written += u64::from(end - first);
        ctx.out.push(Io {
            token: Token::pack(Purpose::PageWrite, self.place, slot),
            kind: IoKind::Write,
            file: self.file,
            class: class(self.place, ClassOf::Write),
            offset_bytes: g.page_offset(first),
            size_bytes: (end - first) * g.page_bytes,
            buffer_offset_bytes: buffer_at,
            intended_ns: ctx.now_ns,
        });
        true
    }

    /// Prepares one page of a write: marks it as being written, sets its generation and renders its
    /// bytes. Returns the log position before the page's first change that was not written.
    fn prepare(
        &mut self,
        at: u32,
        first: u32,
        buffer_at: u64,
        g: &Geometry,
        ctx: &mut Ctx<'_>,
    ) -> u64 {
        let frame = &mut self.cache.frames[at as usize];
        let page = frame.page;
        let before = self.state.generation_map.get(page).acked;
        frame.generation += 1;
        frame.writing = true;
        let rec_lsn = frame.rec_lsn;
        let head = PageHead {
            run_id: g.run_id,
            database: self.id,
            page,
            generation: frame.generation,
            lsn: frame.page_lsn,
            directory: frame.directory,
        };
        self.cache.clean(at);
        self.mark(page, before, true);
        let offset = buffer_at + u64::from(page - first) * u64::from(g.page_bytes);
        if let Some(bytes) = ctx.arena.bytes(offset, g.page_bytes) {
            page::render(g, &head, bytes);
        }
        rec_lsn
    }

    /// Handles the completion of a page write.
    pub fn write_done(&mut self, write: WriteSlot) {
        self.writes -= 1;
        self.completed_rec_lsn = self.completed_rec_lsn.min(write.rec_lsn);
        #[cfg(test)]
        if self.mutant == super::Mutant::CheckpointBeforeFlush {
            self.completed_rec_lsn = u64::MAX;
        }
        for page in write.first_page..write.first_page + write.pages {
            let found = if self.holds(write.frame, page) {
                Some(write.frame)
            } else {
                self.cache.find(page)
            };
            let Some(at) = found else { continue };
            let frame = &mut self.cache.frames[at as usize];
            frame.writing = false;
            let (generation, evict, dirty) = (frame.generation, frame.evict, frame.dirty);
            self.mark(page, generation, false);
            if evict {
                if dirty {
                    self.touch(at);
                } else {
                    self.evictions_pending -= 1;
                    self.cache.release(at);
                }
            }
        }
    }

    /// Returns the log position before which every change was written. A change counts as written
    /// if its write has completed, even if the file was not flushed after that.
    ///
    /// This position must be durable, so that recovery finds every log block before a checkpoint.
    /// If there are no dirty pages, the only block that can still be in flight is a block without
    /// changes, which records a checkpoint.
    fn floor(&self, pool: &Pool) -> u64 {
        let dirty = self.cache.oldest_dirty().map(|at| self.cache.frames[at as usize].rec_lsn);
        let flushing = self.flushing_rec_lsn.unwrap_or(u64::MAX);
        let durable = self.log.durable_lsn();
        durable.min(dirty.unwrap_or(durable)).min(flushing).min(pool.rec_lsn_min(self.place))
    }

    /// Returns true if it is too early to check whether the checkpoint can advance.
    fn checkpoint_can_wait(&self) -> bool {
        let append = self.log.append_lsn();
        let soon = append.saturating_sub(self.asked_lsn) < self.step_bytes / 8;
        let behind = append.saturating_sub(self.checkpoint);
        let urgent = self.log.ring_is_full() || self.closing != Closing::Open;
        !urgent && (soon || behind < self.step_bytes)
    }

    /// Advances the checkpoint if possible. Issues a flush of the file if the checkpoint would then
    /// advance far enough. If the log is full, issues a log block that records the checkpoint, so
    /// that older blocks can be overwritten.
    #[inline(always)]
    pub fn pump_checkpoint(&mut self, g: &Geometry, pool: &Pool, ctx: &mut Ctx<'_>) {
        let closing = self.closing != Closing::Open;
        if closing {
            self.log.want(self.log.append_lsn());
        }
        if self.checkpoint_can_wait() {
            return;
        }
        let full = self.log.ring_is_full();
        self.asked_lsn = self.log.append_lsn();
        let floor = self.floor(pool);
        self.checkpoint = self.checkpoint.max(floor.min(self.completed_rec_lsn));
        let helps = floor.saturating_sub(self.checkpoint) >= self.step_bytes
            || full && self.log.is_worth_recording(floor) && floor > self.checkpoint
            || closing && floor > self.checkpoint;
        let written = self.completed_rec_lsn != u64::MAX;
        if written && self.flushing_rec_lsn.is_none() && helps {
            self.flush_file(ctx);
        }
        if full && self.log.is_worth_recording(self.checkpoint) && self.log.is_idle() {
            self.log.force(g, self.checkpoint, false, ctx);
        }
    }

    /// Issues a flush of the database file. The flush makes the completed writes durable.
    fn flush_file(&mut self, ctx: &mut Ctx<'_>) {
        self.flushing_rec_lsn = Some(self.completed_rec_lsn);
        self.completed_rec_lsn = u64::MAX;
        self.counts.database_flushes += 1;
        let token = Token::pack(Purpose::DatabaseFlush, self.place, 0);
        ctx.out.push(flush(token, self.file, class(self.place, ClassOf::Flush), ctx.now_ns));
    }

    /// Handles the completion of the flush of the file.
    pub fn flush_done(&mut self, pool: &Pool) {
        self.flushing_rec_lsn = None;
        let floor = self.floor(pool).min(self.completed_rec_lsn);
        self.checkpoint = self.checkpoint.max(floor);
    }

    /// Executes the next step of a clean close. The steps are: write the log and the pages, flush
    /// the file, and write a last log block that records the close.
    #[inline(always)]
    pub fn pump_close(&mut self, g: &Geometry, pool: &Pool, ctx: &mut Ctx<'_>) {
        match self.closing {
            Closing::Draining => {
                let drained = self.cache.dirty_count() == 0
                    && self.writes == 0
                    && self.flushing_rec_lsn.is_none()
                    && self.log.is_idle();
                if !drained {
                    return;
                }
                if self.completed_rec_lsn != u64::MAX {
                    self.flush_file(ctx);
                    return;
                }
                self.checkpoint = self.checkpoint.max(self.floor(pool));
                let at = self.checkpoint;
                if self.log.force(g, at, true, ctx) {
                    self.closing = Closing::FinalBlock;
                }
            }
            Closing::FinalBlock if self.log.is_idle() => self.closing = Closing::Closed,
            _ => {}
        }
    }
}
