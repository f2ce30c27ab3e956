//! One database of a running group, with its cache, its log and its counters.

use crate::step::{Class, ClassGroup, Io, IoKind};

use super::cache::{Cache, NONE};
use super::config::MailboxConfig;
use super::context::{Ctx, Purpose, Token};
use super::generation::Mark;
use super::geometry::Geometry;
use super::log::{LogWiring, LogWriter};
use super::maintenance::Maintenance;
use super::page::{self, Damage, Directory};
use super::poison::{Failure, Place};
use super::queue::Queue;
use super::record::{Change, RECORD_HEADER_BYTES};
use super::replication::Replication;
use super::store::DatabaseState;

/// Classes in which the I/Os of each database are recorded. [`ClassOf`] contains their indices.
const CLASSES: [(&str, ClassGroup, bool); 8] = [
    ("read", ClassGroup::Transactional, true),
    ("write", ClassGroup::Transactional, false),
    ("log_write", ClassGroup::Log, false),
    ("log_flush", ClassGroup::Upkeep, false),
    ("flush", ClassGroup::Upkeep, false),
    ("maintenance_read", ClassGroup::Maintenance, true),
    ("replication_read", ClassGroup::Replication, true),
    ("log_durable", ClassGroup::Durable, false),
];

/// Indices of the classes in [`CLASSES`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClassOf {
    Read,
    Write,
    LogWrite,
    LogFlush,
    Flush,
    Maintenance,
    Replication,
    LogDurable,
}

/// Returns the index of a class for the database at position `place`.
pub(crate) fn class(place: usize, of: ClassOf) -> u16 {
    (place * CLASSES.len() + of as usize) as u16
}

/// Returns the classes of one database.
pub(crate) fn classes(id: u32) -> impl Iterator<Item = Class> {
    CLASSES.into_iter().map(move |(name, group, is_read)| Class {
        name: format!("db{id}.{name}"),
        group,
        is_read,
        instance: id,
    })
}

/// Counters of one database. They count since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub inserts: u64,
    pub deletes: u64,
    pub replaces: u64,
    pub reads: u64,
    /// Number of deletes, replacements and reads that found no record in their page.
    pub absent: u64,
    pub balanced: u64,
    pub pages_added: u64,
    pub commits_durable: u64,
    pub commits_lazy: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub page_fault_stalls: u64,
    pub log_stalls: u64,
    pub database_reads: u64,
    pub database_writes: u64,
    pub pages_written: u64,
    pub database_flushes: u64,
    pub maintenance_reads: u64,
    pub maintenance_bytes: u64,
    pub maintenance_pages_skipped: u64,
    pub replication_reads: u64,
    pub replication_skipped_bytes: u64,
    pub damage: [u64; Damage::ALL.len()],
}

/// State of a database with respect to its clean close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    Open,
    Draining,
    FinalBlock,
    Closed,
}

/// Offsets in the arena at which the buffers of a database start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffers {
    pub log_at: u64,
    pub maintenance_at: u64,
    pub replication_at: u64,
}

/// State of one database in a running group.
#[derive(Debug)]
pub(crate) struct Database {
    pub place: usize,
    pub id: u32,
    pub file: u32,
    pub state: DatabaseState,
    pub cache: Cache,
    pub log: LogWriter,
    pub counts: Counts,
    pub maintenance: Maintenance,
    pub replication: Replication,
    /// Sessions that wait for a free frame. The next two queues contain the sessions that wait for
    /// space in the log, and the sessions that wait until the log is durable.
    pub frame_waiters: Queue,
    pub log_waiters: Queue,
    pub commit_waiters: Queue,
    pub closing: Closing,
    pub writes: u32,
    pub writes_max: u32,
    pub evictions_pending: u32,
    /// Eviction starts when fewer frames than this number are free.
    pub free_low: u32,
    /// Eviction stops when this number of frames is free.
    pub free_target: u32,
    /// True while an eviction is running. It ends when enough frames are free. Frames that become
    /// free after their write are counted as free.
    pub scavenging: bool,
    pub depth_bytes: u64,
    pub step_bytes: u64,
    pub coalesce_pages: u32,
    /// Log position before which every change is durable in the database file.
    pub checkpoint: u64,
    /// Position of the end of the log when the store last checked whether the checkpoint can
    /// advance.
    pub asked_lsn: u64,
    /// Lowest log position of the changes in those writes that completed after the latest flush was
    /// issued. The next field is for the writes that the flush in flight makes durable.
    pub completed_rec_lsn: u64,
    pub flushing_rec_lsn: Option<u64>,
    /// Log position at the start of the load. The progress of the warm-up is computed from it.
    pub start_lsn: u64,
    #[cfg(test)]
    pub mutant: super::Mutant,
}

/// Result of looking up a page.
pub(crate) enum Seek {
    Cached(u32),
    /// The page is not cached. The session reads it into a frame and waits for the read.
    Reads(u32),
    /// Another session is reading the page. This session waits for that read.
    Waits,
    /// There is no free frame, and no frame can be freed at present.
    NoFrame,
}

impl Database {
    pub fn new(
        config: &MailboxConfig,
        place: usize,
        file: u32,
        state: DatabaseState,
        buffers: Buffers,
        sessions: u32,
    ) -> Self {
        let id = state.config.id;
        let frames = config.frames_per_database() as u32;
        let wiring = LogWiring {
            place,
            database: id,
            database_file: file,
            write_class: class(place, ClassOf::LogWrite),
            flush_class: class(place, ClassOf::LogFlush),
            durable_class: class(place, ClassOf::LogDurable),
            buffer_at: buffers.log_at,
        };
        let share = (f64::from(frames) * config.cache_free_share) as u32;
        let free_target = share.max(sessions.saturating_mul(2).min(frames / 8)).max(2);
        let low = (f64::from(frames) * config.cache_low_share) as u32;
        let free_low = low.max(sessions.min(frames / 16)).clamp(1, free_target);
        let log = LogWriter::new(config, wiring, state.log, state.pages_used);
        let next_lsn = state.log.next_lsn;
        Self {
            place,
            id,
            file,
            cache: Cache::new(frames),
            log,
            counts: Counts::default(),
            maintenance: Maintenance::new(config, place, buffers.maintenance_at),
            replication: Replication::new(config, place, buffers.replication_at, next_lsn),
            frame_waiters: Queue::default(),
            log_waiters: Queue::default(),
            commit_waiters: Queue::default(),
            closing: Closing::Open,
            writes: 0,
            writes_max: config.writes_in_flight,
            evictions_pending: 0,
            free_low,
            free_target,
            scavenging: false,
            depth_bytes: config.checkpoint_depth_bytes,
            step_bytes: config.checkpoint_step_bytes,
            coalesce_pages: config.coalesce_bytes / config.page_bytes,
            checkpoint: state.log.checkpoint,
            asked_lsn: 0,
            completed_rec_lsn: u64::MAX,
            flushing_rec_lsn: None,
            start_lsn: next_lsn,
            state,
            #[cfg(test)]
            mutant: super::Mutant::None,
        }
    }

    /// Announces that a page will soon be looked up.
    pub fn hint(&mut self, page: u32) {
        self.cache.hint(page);
        if let Some(known) = &mut self.state.occupancy {
            known.hint(page);
        }
    }

    /// Looks up a page. If the page is not cached, issues a read into the buffer of the session.
    #[inline(always)]
    pub fn seek(
        &mut self,
        g: &Geometry,
        links: &mut [u32],
        (session, buffer_at): (u32, u64),
        (page, intended_ns): (u32, u64),
        ctx: &mut Ctx<'_>,
    ) -> Seek {
        if let Some(at) = self.cache.find(page) {
            if self.cache.frames[at as usize].loading {
                self.wait_for_page(at, links, session);
                return Seek::Waits;
            }
            self.touch(at);
            return Seek::Cached(at);
        }
        let Some(at) = self.cache.take(page) else { return Seek::NoFrame };
        self.cache.hint_oldest();
        self.cache.frames[at as usize].loading = true;
        self.wait_for_page(at, links, session);
        self.counts.cache_misses += 1;
        self.counts.database_reads += 1;
        ctx.out.push(Io {
            token: Token::pack(Purpose::PageRead, self.place, session),
            kind: IoKind::Read,
            file: self.file,
            class: class(self.place, ClassOf::Read),
            offset_bytes: g.page_offset(page),
            size_bytes: g.page_bytes,
            buffer_offset_bytes: buffer_at,
            intended_ns,
        });
        Seek::Reads(at)
    }

    /// Returns true if the frame contains a page that was read or that is being read.
    #[inline]
    pub fn holds(&self, at: u32, page: u32) -> bool {
        self.cache.frames.get(at as usize).is_some_and(|frame| frame.page == page)
    }

    /// Returns true if the frame contains a page that was read.
    #[inline]
    pub fn has_read(&self, at: u32, page: u32) -> bool {
        self.holds(at, page) && !self.cache.frames[at as usize].loading
    }

    fn wait_for_page(&mut self, at: u32, links: &mut [u32], session: u32) {
        let frame = &mut self.cache.frames[at as usize];
        let mut waiters = Queue::of(frame.waiters);
        waiters.push(links, session);
        frame.waiters = waiters.ends();
    }

    /// Moves a frame to the most recently used position, which protects it from eviction.
    pub fn touch(&mut self, at: u32) {
        let frame = &mut self.cache.frames[at as usize];
        if frame.evict {
            frame.evict = false;
            self.evictions_pending -= 1;
        }
        self.cache.touch(at);
    }

    /// Handles the completed read of a page. Checks the page, and returns the sessions that waited
    /// for it.
    #[inline(always)]
    pub fn read_done(&mut self, g: &Geometry, at: u32, buffer_at: u64, ctx: &mut Ctx<'_>) -> Queue {
        let page = self.cache.frames[at as usize].page;
        let mark = self.state.generation_map.get(page);
        let head = match ctx.arena.bytes(buffer_at, g.page_bytes) {
            Some(bytes) => match page::check(g, self.id, page, mark, bytes) {
                Ok(head) => Some((head.directory, head.generation, head.lsn)),
                Err(fault) => {
                    self.counts.damage[fault.damage as usize] += 1;
                    ctx.fail(self.id, Place::Page(page), Failure::Page(fault));
                    None
                }
            },
            None => {
                let known = self.state.occupancy.as_ref();
                let occupancy = known.map_or(0, |occupancy| occupancy.get(g, page));
                Some((Directory::from_occupancy(occupancy), mark.acked, 0))
            }
        };
        let Some((directory, generation, page_lsn)) = head else { return Queue::default() };
        let frame = &mut self.cache.frames[at as usize];
        (frame.directory, frame.generation, frame.page_lsn) = (directory, generation, page_lsn);
        frame.loading = false;
        let waiters = Queue::of(frame.waiters);
        frame.waiters = (NONE, NONE);
        self.cache.touch(at);
        waiters
    }

    /// Adds a page from the reserve of the file, and returns its frame. The caller has checked that
    /// a frame is free and that the reserve contains a page.
    pub fn add_page(&mut self) -> Option<u32> {
        let page = self.state.pages_used;
        let at = self.cache.take(page)?;
        self.state.pages_used += 1;
        self.counts.pages_added += 1;
        // A page that is not in use yet may have been written before a crash.
        self.cache.frames[at as usize].generation = self.state.generation_map.get(page).newest();
        self.cache.touch(at);
        Some(at)
    }

    /// Logs a change of one slot in the directory of a frame. The caller has checked that the log
    /// has enough space. Returns the log position after the record of this change.
    pub fn log_change(
        &mut self,
        g: &Geometry,
        at: u32,
        slot: usize,
        data_bytes: u32,
        ctx: &mut Ctx<'_>,
    ) -> u64 {
        let frame = &self.cache.frames[at as usize];
        let (page, directory) = (frame.page, frame.directory);
        let generation = frame.generation + 1;
        let change = Change { page, generation, slot: slot as u8, data_bytes, directory };
        let size = change.size_bytes();
        let carries_data = self.state.occupancy.is_none();
        let scratch = self.log.scratch(size);
        if carries_data {
            change.encode(scratch);
            let place = (self.id, page, slot);
            let data = &mut scratch[RECORD_HEADER_BYTES..];
            page::fill_record(g, place, directory.version(slot), data);
        }
        let (start, end) = self.log.append(ctx.now_ns, size, self.state.pages_used, ctx.arena);
        self.cache.frames[at as usize].page_lsn = end;
        self.cache.dirty(at, start);
        if let Some(known) = self.state.occupancy.as_mut() {
            known.set(page, directory.occupancy());
        }
        end
    }

    /// Stores the mark of a page before a write is issued, or after it has completed.
    pub fn mark(&mut self, page: u32, acked: u32, in_flight: bool) {
        self.state.generation_map.set(page, Mark { acked, in_flight });
    }

    /// Returns the log position up to which the store may acknowledge commits.
    pub fn acknowledged_lsn(&self) -> u64 {
        #[cfg(test)]
        if self.mutant == super::Mutant::AcknowledgeBeforeFlush {
            return self.log.append_lsn();
        }
        self.log.durable_lsn()
    }
}
