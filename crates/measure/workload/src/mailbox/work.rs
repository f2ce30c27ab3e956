//! Executes the operations of sessions. The operations work on records.

use std::cmp::Reverse;

use crate::step::BACKLOG_NS;

use super::context::Ctx;
use super::database::{ClassOf, Database, Seek, class};
use super::geometry::Geometry;
use super::group::{Group, transactional_ios};
use super::page::Directory;
use super::rng::below;
use super::session::{Commit, Operation, OperationKind, Phase, Session};

/// Maximum number of operations that a session executes in one step. If all pages of a session are
/// cached and all its commits are lazy, a step would otherwise never end.
const BURST_MAX: u32 = 32;
/// Pause of a session after it has executed `BURST_MAX` operations in one step, in ns.
const BURST_PAUSE_NS: u64 = 10_000;

/// Result of an attempt to execute an operation.
enum Attempt {
    /// The operation ended.
    Ended,
    /// The operation must wait. Its session is in a queue.
    Parked,
    /// The operation must wait until the log is durable.
    Committing(Commit),
}

impl Group {
    /// Wakes the sessions whose pause has ended, and sessions for the operations that have arrived.
    pub(super) fn wake_timers(&mut self, now_ns: u64) {
        while let Some(&Reverse((at, session))) = self.timers.peek() {
            if at > now_ns && !self.stopping {
                break;
            }
            self.timers.pop();
            self.ready.push(&mut self.links, session);
        }
        let stopping = self.stopping;
        if stopping {
            self.stopping_from_ns.get_or_insert(now_ns);
        }
        let Some(arrivals) = self.arrivals.as_mut() else { return };
        if arrivals.learns(now_ns) {
            arrivals.learn(now_ns, transactional_ios(&self.databases), self.operations);
        }
        let idle = core::mem::take(&mut self.idle);
        if stopping {
            self.ready.append(&mut self.links, idle);
        } else if arrivals.next_ns(now_ns) <= now_ns {
            self.woken = idle;
        } else {
            self.idle = idle;
        }
    }

    /// Returns the session that must run next. This is a ready session or, if an arrived operation
    /// needs a session, a woken session. If no arrived operation is left, woken sessions become
    /// idle again. They join the queue of idle sessions behind the sessions that became idle in the
    /// meantime.
    pub(super) fn next_session(&mut self, now_ns: u64) -> Option<u32> {
        if let Some(session) = self.ready.pop(&self.links) {
            return Some(session);
        }
        self.woken.first()?;
        let has_come = self.arrivals.as_mut().is_some_and(|a| a.next_ns(now_ns) <= now_ns);
        if has_come {
            return self.woken.pop(&self.links);
        }
        let woken = core::mem::take(&mut self.woken);
        self.idle.append(&mut self.links, woken);
        None
    }

    /// Wakes sessions that wait for a cache frame or for log space, if there is a free frame or
    /// enough space. Returns true if at least one session can proceed.
    pub(super) fn wake_stalled(&mut self) -> bool {
        let mut next = self.attention.first(0);
        while let Some(place) = next {
            next = self.attention.first(place + 1);
            let d = &mut self.databases[place];
            let mut frames = d.cache.free_count();
            while frames > 0 {
                let Some(session) = d.frame_waiters.pop(&self.links) else { break };
                self.ready.push(&mut self.links, session);
                frames -= 1;
            }
            if d.log_waiters.first().is_some() && d.log.has_room(self.config.record_bytes) {
                let waiters = core::mem::take(&mut d.log_waiters);
                self.ready.append(&mut self.links, waiters);
            }
        }
        self.ready.first().is_some()
    }

    /// Acknowledges all commits that have become durable.
    pub(super) fn acknowledge(&mut self, place: usize, now_ns: u64) {
        let d = &mut self.databases[place];
        let durable = d.acknowledged_lsn();
        if durable > d.state.generation_map.durable_lsn() {
            d.state.generation_map.set_durable_lsn(durable);
        }
        while let Some(session) = d.commit_waiters.first() {
            let Phase::Committing(commit) = self.sessions[session as usize].phase else { break };
            if commit.lsn > durable {
                break;
            }
            d.commit_waiters.pop(&self.links);
            if let Some(witness) = self.witness.as_mut() {
                witness.acknowledged(&commit);
            }
            d.counts.commits_durable += 1;
            self.operations += 1;
            self.sessions[session as usize].phase = Phase::Idle;
            let resume_ns = now_ns + self.think_ns;
            if self.think_ns > 0 && !self.stopping {
                self.timers.push(Reverse((resume_ns, session)));
            } else {
                self.ready.push(&mut self.links, session);
            }
        }
    }

    /// Runs a session until it must wait.
    pub(super) fn run_session(&mut self, session: u32, ctx: &mut Ctx<'_>) {
        for _ in 0..BURST_MAX {
            if ctx.poison.is_some() {
                return;
            }
            let op = match self.sessions[session as usize].phase {
                Phase::Working(op) => op,
                Phase::Idle => match self.begin(session, ctx.now_ns) {
                    Some(op) => op,
                    None => return,
                },
                Phase::Committing(..) | Phase::Stopped => return,
            };
            self.attention.stir(op.place);
            match self.attempt(session, op, ctx) {
                Attempt::Parked => return,
                Attempt::Committing(commit) => {
                    let s = &mut self.sessions[session as usize];
                    s.phase = Phase::Committing(commit);
                    let d = &mut self.databases[op.place];
                    d.log.want(commit.lsn);
                    d.commit_waiters.push(&mut self.links, session);
                    return;
                }
                Attempt::Ended => {
                    self.sessions[session as usize].phase = Phase::Idle;
                    self.operations += 1;
                    if self.think_ns > 0 && !self.stopping {
                        self.timers.push(Reverse((ctx.now_ns + self.think_ns, session)));
                        return;
                    }
                }
            }
        }
        self.timers.push(Reverse((ctx.now_ns + BURST_PAUSE_NS, session)));
    }

    /// Returns true if there is an operation that arrived before the stop and must still be
    /// started.
    fn has_backlog(&mut self, now_ns: u64) -> bool {
        let (Some(arrivals), Some(from_ns)) = (self.arrivals.as_mut(), self.stopping_from_ns)
        else {
            return false;
        };
        arrivals.next_ns(now_ns) <= from_ns && now_ns < from_ns.saturating_add(BACKLOG_NS)
    }

    /// Reports the operations that arrived before the stop and were never started. An operation is
    /// only reported if it would have caused an I/O because its page is not in the cache.
    pub(super) fn tell_never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        let (Some(arrivals), Some(from_ns)) = (self.arrivals.as_mut(), self.stopping_from_ns)
        else {
            return;
        };
        let databases = &self.databases;
        let sessions = self.sessions.len().max(1);
        let mut next = 0;
        while arrivals.next_ns(from_ns) <= from_ns {
            let due_ns = arrivals.take();
            let Some(session) = self.sessions.get_mut(next) else { return };
            next = (next + 1) % sessions;
            let op = session.draw(&self.draw, due_ns, |place| databases[place].state.pages_used);
            if databases[op.place].cache.find(op.page).is_none() {
                each(class(op.place, ClassOf::Read), due_ns);
            }
        }
    }

    /// Starts the next operation of a session. If no operation has arrived, the session waits. If
    /// the load is stopping, the session ends.
    fn begin(&mut self, session: u32, now_ns: u64) -> Option<Operation> {
        let ends = self.stopping && !self.has_backlog(now_ns);
        let s = &mut self.sessions[session as usize];
        if ends {
            s.phase = Phase::Stopped;
            self.stopped += 1;
            return None;
        }
        let mut intended_ns = now_ns;
        if let Some(arrivals) = self.arrivals.as_mut() {
            if arrivals.next_ns(now_ns) > now_ns {
                self.idle.push(&mut self.links, session);
                return None;
            }
            intended_ns = arrivals.take();
        }
        let databases = &self.databases;
        let op = s.draw(&self.draw, intended_ns, |place| databases[place].state.pages_used);
        s.phase = Phase::Working(op);
        if self.arrivals.is_some()
            && let Some(next) = self.woken.first().or(self.idle.first())
        {
            self.hint(next);
        }
        Some(op)
    }

    /// Prefetches the memory that the session's next operation will access in its first lookup.
    pub(super) fn hint(&mut self, session: u32) {
        let databases = &self.databases;
        let pages_used = |place: usize| databases[place].state.pages_used;
        let (place, page) = self.sessions[session as usize].peek(&self.draw, pages_used);
        self.databases[place].hint(page);
    }

    /// Looks up the page of the operation, and executes the operation if the page is available.
    fn attempt(&mut self, session: u32, op: Operation, ctx: &mut Ctx<'_>) -> Attempt {
        let g = self.geometry;
        let d = &mut self.databases[op.place];
        let Session { buffer_at, frame, .. } = self.sessions[session as usize];
        let (reader, required) = ((session, buffer_at), (op.page, op.intended_ns));
        // Usually, this is the page that the session has just read.
        let mut found = if op.sought && d.has_read(frame, op.page) {
            d.touch(frame);
            Seek::Cached(frame)
        } else {
            d.seek(&g, &mut self.links, reader, required, ctx)
        };
        if matches!(found, Seek::NoFrame) {
            d.scavenge(&g, &mut self.pool, ctx);
            found = d.seek(&g, &mut self.links, reader, required, ctx);
        }
        let at = match found {
            Seek::Cached(at) => at,
            Seek::Reads(at) => {
                self.sessions[session as usize].frame = at;
                self.working(session, Operation { sought: true, ..op });
                return Attempt::Parked;
            }
            Seek::Waits => {
                self.working(session, Operation { sought: true, ..op });
                return Attempt::Parked;
            }
            Seek::NoFrame => return self.stall_for_frame(session, op),
        };
        if !op.sought {
            d.counts.cache_hits += 1;
        }
        let occupancy = d.cache.frames[at as usize].directory.occupancy();
        match op.kind {
            OperationKind::Read => {
                d.counts.reads += 1;
                d.counts.absent += u64::from(occupancy == 0);
                Attempt::Ended
            }
            OperationKind::Insert => self.insert(session, op, at, ctx),
            OperationKind::Delete | OperationKind::Replace => {
                let Some(slot) = pick(occupancy, op.slot_bits) else {
                    d.counts.absent += 1;
                    count(d, op.kind);
                    return Attempt::Ended;
                };
                let live = op.kind == OperationKind::Replace;
                let data_bytes = if live { g.record_bytes } else { 0 };
                if !d.log.has_room(data_bytes) {
                    return self.stall_for_log(session, op);
                }
                d.cache.frames[at as usize].directory.advance(slot, live);
                self.commit(op, at, slot, data_bytes, ctx)
            }
        }
    }

    /// Adds a record to the page. If the page is full, adds the record to a new page. If the file
    /// has no space for a new page, deletes a record and uses its slot.
    fn insert(&mut self, session: u32, op: Operation, at: u32, ctx: &mut Ctx<'_>) -> Attempt {
        let g = self.geometry;
        let d = &mut self.databases[op.place];
        if !d.log.has_room(g.record_bytes) {
            return self.stall_for_log(session, op);
        }
        let slots = ((1u32 << g.slots) - 1) as u16;
        let occupancy = d.cache.frames[at as usize].directory.occupancy();
        let (at, slot) = match pick(slots & !occupancy, op.slot_bits) {
            Some(slot) => (at, slot),
            None if d.state.pages_used < d.state.config.pages_max => {
                if d.cache.free_count() == 0 {
                    d.scavenge(&g, &mut self.pool, ctx);
                }
                let Some(at) = d.add_page() else { return self.stall_for_frame(session, op) };
                (at, below(op.slot_bits, u64::from(g.slots)) as usize)
            }
            None => {
                let slot = below(op.slot_bits, u64::from(g.slots)) as usize;
                let directory: &mut Directory = &mut d.cache.frames[at as usize].directory;
                directory.advance(slot, false);
                d.counts.balanced += 1;
                (at, slot)
            }
        };
        d.cache.frames[at as usize].directory.advance(slot, true);
        self.commit(op, at, slot, g.record_bytes, ctx)
    }

    /// Appends a log record for a change of a cached page.
    fn commit(
        &mut self,
        op: Operation,
        at: u32,
        slot: usize,
        data_bytes: u32,
        ctx: &mut Ctx<'_>,
    ) -> Attempt {
        let g: &Geometry = &self.geometry;
        let d = &mut self.databases[op.place];
        count(d, op.kind);
        let lsn = d.log_change(g, at, slot, data_bytes, ctx);
        if !op.durable {
            d.counts.commits_lazy += 1;
            return Attempt::Ended;
        }
        let frame = &d.cache.frames[at as usize];
        Attempt::Committing(Commit {
            database: d.id,
            page: frame.page,
            slot: slot as u8,
            version: frame.directory.version(slot),
            live: frame.directory.is_live(slot),
            lsn,
        })
    }

    fn working(&mut self, session: u32, op: Operation) {
        self.sessions[session as usize].phase = Phase::Working(op);
    }

    fn stall_for_frame(&mut self, session: u32, op: Operation) -> Attempt {
        let d = &mut self.databases[op.place];
        d.counts.page_fault_stalls += u64::from(!op.frame_stalled);
        d.frame_waiters.push(&mut self.links, session);
        self.working(session, Operation { frame_stalled: true, ..op });
        Attempt::Parked
    }

    fn stall_for_log(&mut self, session: u32, op: Operation) -> Attempt {
        let d = &mut self.databases[op.place];
        d.counts.log_stalls += u64::from(!op.log_stalled);
        d.log_waiters.push(&mut self.links, session);
        self.working(session, Operation { log_stalled: true, sought: true, ..op });
        Attempt::Parked
    }
}

fn count(d: &mut Database, kind: OperationKind) {
    match kind {
        OperationKind::Insert => d.counts.inserts += 1,
        OperationKind::Delete => d.counts.deletes += 1,
        OperationKind::Replace => d.counts.replaces += 1,
        OperationKind::Read => d.counts.reads += 1,
    }
}

/// Returns the position of a set bit in `mask`. The random number `bits` determines which of the
/// set bits is chosen. Returns `None` if no bit is set.
fn pick(mask: u16, bits: u64) -> Option<usize> {
    let count = mask.count_ones();
    let mut nth = below(bits, u64::from(count));
    let mut left = mask;
    while left != 0 {
        let slot = left.trailing_zeros() as usize;
        if nth == 0 {
            return Some(slot);
        }
        nth -= 1;
        left &= left - 1;
    }
    None
}
