//! A group consists of the databases that one thread owns, and of their sessions.
//!
//! Groups share no data, so there are no locks. A step processes the completions, and runs every
//! session that can proceed. It then handles write-back, logs and background reads. At the end, it
//! returns the I/Os that must be issued.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::step::{Arena, Class, Completion, FileSpec, Io, StepWorkload, Wait};

use super::arrivals::Arrivals;
use super::attention::Attention;
use super::config::{ConfigError, MailboxConfig, Pace};
use super::context::{Ctx, Purpose, Token, trouble};
use super::counters;
use super::database::{Buffers, Closing, Database, classes};
use super::geometry::Geometry;
use super::log::LogWriter;
use super::maintenance;
use super::poison::{Failure, Place, Poison};
use super::pool::Pool;
use super::queue::Queue;
use super::rng::Choices;
use super::session::{Draw, Phase, Session, Witness};
use super::store::Store;

/// Progress of the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WarmUp {
    /// Number of frames that were used at least once.
    pub frames_filled: u64,
    /// Number of frames that must be used before the warm-up is complete. It is the number of all
    /// frames, except the frames that write-back leaves free. If the cache is larger than the
    /// database, it is the number of frames for 15/16 of the pages, because random keys take long
    /// to reach the last pages.
    pub frames_needed: u64,
    /// Number of bytes that were logged. For each database, at most one checkpoint depth is
    /// counted.
    pub logged_bytes: u64,
    /// Number of bytes that must be logged before the warm-up is complete: one checkpoint depth for
    /// each database.
    pub logged_needed_bytes: u64,
}

impl WarmUp {
    /// Returns true if the cache is full and each database has logged as many bytes as its
    /// checkpoint depth.
    pub fn reached(&self) -> bool {
        self.frames_filled >= self.frames_needed && self.logged_bytes >= self.logged_needed_bytes
    }

    /// Returns the sum of the progress of two groups.
    pub fn and(self, other: Self) -> Self {
        Self {
            frames_filled: self.frames_filled + other.frames_filled,
            frames_needed: self.frames_needed + other.frames_needed,
            logged_bytes: self.logged_bytes + other.logged_bytes,
            logged_needed_bytes: self.logged_needed_bytes + other.logged_needed_bytes,
        }
    }
}

/// Running mail store with the databases and sessions of one thread.
pub struct Group {
    pub(super) config: MailboxConfig,
    pub(super) geometry: Geometry,
    files: Vec<FileSpec>,
    class_table: Vec<Class>,
    pub(super) databases: Vec<Database>,
    pub(super) sessions: Vec<Session>,
    pub(super) links: Vec<u32>,
    pub(super) ready: Queue,
    pub(super) idle: Queue,
    /// Sessions that may start an operation in this step, because an operation has arrived.
    pub(super) woken: Queue,
    pub(super) timers: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) draw: Draw,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) pool: Pool,
    pub(super) attention: Attention,
    pub(super) think_ns: u64,
    pub(super) stopping: bool,
    /// Open loop: time of the first step after the end of the phase. Operations that arrived
    /// earlier are still started.
    pub(super) stopping_from_ns: Option<u64>,
    pub(super) stopped: u32,
    pub(super) operations: u64,
    pub(super) witness: Option<Box<dyn Witness>>,
    arena_bytes: u64,
    in_flight: u64,
    started: bool,
    ended: bool,
    poison: Option<Poison>,
}

impl Group {
    /// Creates a group with the databases of `store`. `sessions` contains the numbers of the
    /// sessions.
    ///
    /// # Errors
    /// Fails if there is no session or no database. Also fails if a database was neither closed nor
    /// recovered.
    pub fn new(store: Store, sessions: &[u32]) -> Result<Self, ConfigError> {
        let Store { config, geometry, databases: states, .. } = &store;
        let (config, geometry, count) = (config.clone(), *geometry, states.len());
        if sessions.is_empty() || count == 0 {
            let field = if count == 0 { "databases of a group" } else { "sessions of a group" };
            return Err(ConfigError { field, value: "none".into(), must_be: "at least one" });
        }
        if let Some(state) = states.iter().find(|state| !state.log.is_clean()) {
            return Err(ConfigError {
                field: "log of a database",
                value: format!("not replayed (database {})", state.config.id),
                must_be: "closed or recovered: run recovery first",
            });
        }
        let files = store.files().to_vec();
        let class_table = states.iter().flat_map(|state| classes(state.config.id)).collect();
        let draw = Draw::new(&config, states.iter().map(|state| state.config.bias));
        let arrivals = Self::arrivals(&config, &store, sessions);
        let mut arena = 0u64;
        let mut reserve = |bytes: u64| {
            let at = arena;
            arena += bytes.next_multiple_of(4096);
            at
        };
        let page = u64::from(geometry.page_bytes);
        let session = |&number: &u32| Session::new(config.load_seed, number, reserve(page));
        let all_sessions: Vec<Session> = sessions.iter().map(session).collect();
        let writes = Pool::count(&config, count) as u64 * u64::from(config.coalesce_bytes);
        let pool = Pool::new(&config, count, reserve(writes));
        let log_files = 1 + config.log_files;
        let mut databases = Vec::with_capacity(count);
        for (place, state) in store.databases.into_iter().enumerate() {
            let maintenance = maintenance::READS_MAX as u64 * u64::from(config.maintenance_bytes);
            let replication = u64::from(config.replication_bytes) * u64::from(config.copies - 1);
            let buffers = Buffers {
                log_at: reserve(u64::from(config.log_buffer_bytes)),
                maintenance_at: reserve(maintenance),
                replication_at: reserve(replication),
            };
            let (file, number) = (place as u32 * log_files, sessions.len() as u32);
            databases.push(Database::new(&config, place, file, state, buffers, number));
        }
        let think_ns = match config.pace {
            Pace::Free { think_ns } => think_ns,
            Pace::Target { .. } => 0,
        };
        let mut ready = Queue::default();
        let mut links = vec![0; sessions.len()];
        (0..sessions.len() as u32).for_each(|s| ready.push(&mut links, s));
        Ok(Self {
            config,
            geometry,
            files,
            class_table,
            databases,
            sessions: all_sessions,
            links,
            ready,
            idle: Queue::default(),
            woken: Queue::default(),
            timers: BinaryHeap::with_capacity(sessions.len()),
            draw,
            arrivals,
            pool,
            attention: Attention::new(count),
            think_ns,
            stopping: false,
            stopping_from_ns: None,
            stopped: 0,
            operations: 0,
            witness: None,
            arena_bytes: arena,
            in_flight: 0,
            started: false,
            ended: false,
            poison: None,
        })
    }

    /// Creates the arrivals of an open loop. The group's share of the rate is computed from the
    /// weights (biases) of its databases.
    fn arrivals(config: &MailboxConfig, store: &Store, sessions: &[u32]) -> Option<Arrivals> {
        let Pace::Target { rate_ios_per_s } = config.pace else { return None };
        let all: u64 = config.databases.iter().map(|d| u64::from(d.bias)).sum();
        let mine: u64 = store.databases.iter().map(|s| u64::from(s.config.bias)).sum();
        let rate = rate_ios_per_s * mine as f64 / all.max(1) as f64;
        // The sessions use random streams whose numbers are the numbers of the sessions. This
        // stream must have another number.
        let stream = 1 << 32 | u64::from(sessions.first().copied().unwrap_or(0));
        (rate > 0.0).then(|| Arrivals::new(Choices::new(config.load_seed, stream), rate))
    }

    /// Causes a deliberate defect in the group, for tests.
    #[cfg(test)]
    pub(crate) fn mutate(&mut self, mutant: super::Mutant) {
        for d in &mut self.databases {
            (d.mutant, d.log.mutant) = (mutant, mutant);
        }
    }

    /// Sets the witness, which receives each durable commit when the group acknowledges it.
    pub fn set_witness(&mut self, witness: Box<dyn Witness>) {
        self.witness = Some(witness);
    }

    /// Returns the error that ended the run; `None` if there was no error.
    pub fn poison(&self) -> Option<&Poison> {
        self.poison.as_ref()
    }

    /// Returns how far the warm-up has progressed.
    pub fn warm_up(&self) -> WarmUp {
        let of = |d: &Database| {
            let frames = d.cache.frames.len() as u64;
            let full = frames.saturating_sub(u64::from(d.free_target));
            let logged = d.log.append_lsn().saturating_sub(d.start_lsn).min(d.depth_bytes);
            WarmUp {
                frames_filled: u64::from(d.cache.filled()).min(full),
                frames_needed: full.min(u64::from(d.state.pages_used) * 15 / 16),
                logged_bytes: logged,
                logged_needed_bytes: d.depth_bytes,
            }
        };
        self.databases.iter().map(of).fold(WarmUp::default(), WarmUp::and)
    }

    /// Returns how many operations have ended since the start.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Returns how many reads and writes of databases were issued since the start.
    pub fn transactional_ios(&self) -> u64 {
        transactional_ios(&self.databases)
    }

    /// Returns the databases after the end of the run, so that the next machine can use them. If
    /// the run failed or did not reach its end, the store must be recovered first.
    pub fn into_store(self) -> Store {
        let take = |mut d: Database| {
            d.state.log = d.log.position();
            d.state
        };
        let databases = self.databases.into_iter().map(take).collect();
        // This configuration was already accepted when the store was first created, so this call
        // cannot fail.
        Store::rebuild(self.config, self.geometry, databases)
    }

    /// Returns true if every database was closed. Recovery then has no log to replay.
    pub fn is_closed(&self) -> bool {
        self.databases.iter().all(|d| d.closing == Closing::Closed)
    }

    fn complete(&mut self, completion: &Completion, ctx: &mut Ctx<'_>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(token) = Token::unpack(completion.token) else { return };
        let Token { purpose, place, index } = token;
        self.attention.stir(place);
        let Some(required) = self.wanted_bytes(token) else { return };
        if purpose == Purpose::PageRead && self.arrivals.is_none() {
            // Usually, the operation of the session ends here, and the session's next operation
            // starts immediately.
            self.hint(index);
        }
        let g = &self.geometry;
        let Some(d) = self.databases.get_mut(place) else { return };
        if let Some(trouble) = trouble(completion, required) {
            match purpose {
                Purpose::LogWrite | Purpose::LogFlush => d.log.fail(trouble, ctx),
                Purpose::Replication => d.log.fail(trouble, ctx),
                Purpose::DatabaseFlush => ctx.fail(d.id, Place::File, trouble),
                _ => {
                    let page = self.first_page(token).unwrap_or(0);
                    ctx.fail(self.databases[place].id, Place::Page(page), trouble);
                }
            }
            return;
        }
        match purpose {
            Purpose::PageRead => {
                let session = &self.sessions[index as usize];
                if let Phase::Working(op) = session.phase
                    && d.holds(session.frame, op.page)
                {
                    let waiters = d.read_done(g, session.frame, session.buffer_at, ctx);
                    self.ready.append(&mut self.links, waiters);
                }
            }
            Purpose::PageWrite => {
                if let Some(write) = self.pool.get(index) {
                    self.pool.release(index);
                    d.write_done(write);
                }
            }
            Purpose::DatabaseFlush => d.flush_done(&self.pool),
            Purpose::LogWrite => d.log.write_done(index, completion.submitted_ns),
            Purpose::LogFlush => d.log.flush_done(),
            Purpose::Maintenance => d.maintenance_done(g, index, ctx),
            Purpose::Replication => {
                let ring = u64::from(self.config.log_files) * u64::from(self.config.log_file_bytes);
                d.replication_done(g, index, ring, ctx);
            }
        }
    }

    /// Returns how many bytes were requested for an I/O. Returns `None` if the I/O with this token
    /// is not in flight.
    fn wanted_bytes(&self, token: Token) -> Option<u32> {
        let Token { purpose, place, index } = token;
        let d = self.databases.get(place)?;
        match purpose {
            Purpose::PageRead => {
                ((index as usize) < self.sessions.len()).then_some(self.geometry.page_bytes)
            }
            Purpose::PageWrite => {
                self.pool.get(index).map(|write| write.pages * self.geometry.page_bytes)
            }
            Purpose::DatabaseFlush | Purpose::LogFlush => Some(0),
            Purpose::LogWrite => d.log.piece_bytes(index),
            Purpose::Maintenance => d.maintenance.read_bytes(index),
            Purpose::Replication => d.replication.read_bytes(index),
        }
    }

    fn first_page(&self, token: Token) -> Option<u32> {
        match token.purpose {
            Purpose::PageRead => match self.sessions.get(token.index as usize)?.phase {
                Phase::Working(op) => Some(op.page),
                _ => None,
            },
            Purpose::PageWrite => self.pool.get(token.index).map(|write| write.first_page),
            Purpose::Maintenance => {
                self.databases.get(token.place)?.maintenance.first_page(token.index)
            }
            _ => None,
        }
    }

    /// Executes everything that is due at this time. The function ends when no session can proceed.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        self.wake_timers(ctx.now_ns);
        if self.stopping {
            self.attention.stir_all();
        }
        self.attention.look(ctx.now_ns);
        loop {
            let mut next = self.attention.first(0);
            while let Some(place) = next {
                self.acknowledge(place, ctx.now_ns);
                next = self.attention.first(place + 1);
            }
            while let Some(session) = self.next_session(ctx.now_ns) {
                self.run_session(session, ctx);
            }
            self.scavenge_together();
            let closing = self.stopping && self.stopped as usize == self.sessions.len();
            let mut next = self.attention.first(0);
            while let Some(place) = next {
                let d = &mut self.databases[place];
                if closing && d.closing == Closing::Open {
                    d.closing = Closing::Draining;
                }
                let g = &self.geometry;
                d.scavenge(g, &mut self.pool, ctx);
                d.pump_depth(g, &mut self.pool, ctx);
                d.pump_checkpoint(g, &self.pool, ctx);
                d.log.pump(g, d.checkpoint, ctx);
                next = self.attention.first(place + 1);
            }
            if ctx.poison.is_some() || !self.wake_stalled() {
                break;
            }
        }
        let mut next = self.attention.first(0);
        while let Some(place) = next {
            let d = &mut self.databases[place];
            if !self.stopping {
                d.pump_maintenance(&self.geometry, ctx);
                d.pump_replication(&self.config, ctx);
            }
            d.pump_close(&self.geometry, &self.pool, ctx);
            self.settle(place, ctx.now_ns);
            next = self.attention.first(place + 1);
        }
    }

    /// If one database must evict pages, all databases of the group evict pages. A mail server has
    /// one cache for all databases, so the writes of all databases come in the same bursts.
    fn scavenge_together(&mut self) {
        let mut next = self.attention.first(0);
        while let Some(place) = next {
            let d = &self.databases[place];
            if d.is_low() && !d.scavenging {
                self.databases.iter_mut().for_each(|d| d.scavenging = true);
                self.attention.stir_all();
                return;
            }
            next = self.attention.first(place + 1);
        }
    }

    /// Skips a database that has done its work until its next event or timer. The database is not
    /// skipped in three cases: it has more work for the next step, it may need a buffer while all
    /// buffers are in use, or one of its waiting commits is already durable.
    fn settle(&mut self, place: usize, now_ns: u64) {
        let d = &self.databases[place];
        let acknowledged = d.commit_waiters.first().is_some_and(|session| {
            let phase = self.sessions[session as usize].phase;
            matches!(phase, Phase::Committing(commit) if commit.lsn <= d.acknowledged_lsn())
        });
        let rests = d.is_at_rest() && !self.pool.is_used_up() && !acknowledged;
        let maintenance = d.maintenance.deadline_ns().filter(|_| !self.stopping);
        // If the log cannot issue another write now, a later completion marks the database as
        // having work.
        let lazy = d.log.deadline_ns().filter(|&at| at > now_ns);
        self.attention.settle(place, rests, earliest(maintenance, lazy));
    }

    /// Returns the earliest time at which the group has work even if no I/O completes.
    fn deadline_ns(&mut self, now_ns: u64) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let arrival = match self.arrivals.as_mut() {
            Some(arrivals) if self.idle.first().is_some() => Some(arrivals.next_ns(now_ns)),
            _ => None,
        };
        earliest(earliest(timer, arrival), self.attention.next_ns())
    }

    fn wait(&mut self, now_ns: u64) -> Wait {
        if self.poison.is_some() || self.is_closed() {
            self.ended = self.in_flight == 0;
            return if self.ended { Wait::Done } else { Wait::Completion };
        }
        match self.deadline_ns(now_ns) {
            Some(at) => Wait::Until(at.max(now_ns)),
            None if self.in_flight > 0 => Wait::Completion,
            None => {
                let database = self.databases.first().map_or(0, |d| d.id);
                let (place, trouble) = (Place::File, Failure::Stuck);
                self.poison = Some(Poison { database, place, trouble });
                self.ended = true;
                Wait::Done
            }
        }
    }
}

/// Returns the earlier of two times. If one is `None`, returns the other time.
fn earliest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => a.or(b),
    }
}

/// Counts the reads and writes of databases that were issued.
pub(super) fn transactional_ios(databases: &[Database]) -> u64 {
    databases.iter().map(|d| d.counts.database_reads + d.counts.database_writes).sum()
}

impl StepWorkload for Group {
    fn files(&self) -> &[FileSpec] {
        &self.files
    }

    fn classes(&self) -> &[Class] {
        &self.class_table
    }

    fn arena_size_bytes(&self) -> u64 {
        self.arena_bytes
    }

    fn depth_max(&self) -> usize {
        let per_database = LogWriter::pieces_max(&self.config)
            + LogWriter::sync_files_max(&self.config)
            + maintenance::READS_MAX
            + self.config.copies as usize;
        self.sessions.len() + self.pool.slots.len() + per_database * self.databases.len()
    }

    fn step(
        &mut self,
        now_ns: u64,
        completions: &[Completion],
        arena: &mut dyn Arena,
        out: &mut Vec<Io>,
    ) -> Wait {
        if self.ended {
            return Wait::Done;
        }
        if !self.started {
            self.started = true;
            // The driver has no data. The store itself must therefore know the content of the
            // pages.
            if arena.bytes(0, 4096).is_none() {
                self.databases.iter_mut().for_each(|d| d.state.assume_occupancy());
            }
        }
        let issued_before = out.len();
        let mut poison = self.poison.take();
        let mut ctx = Ctx { now_ns, arena, out, poison: &mut poison };
        for completion in completions {
            self.complete(completion, &mut ctx);
        }
        if ctx.poison.is_none() {
            self.advance(&mut ctx);
        }
        self.poison = poison;
        self.in_flight += (out.len() - issued_before) as u64;
        self.wait(now_ns)
    }

    fn stop(&mut self) {
        self.stopping = true;
    }

    fn never_started(&mut self, each: &mut dyn FnMut(u16, u64)) {
        self.tell_never_started(each);
    }

    fn durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        for database in &mut self.databases {
            database.log.durable_writes(&mut |class, ns| each(class, ns, ns));
        }
    }

    fn never_durable(&mut self, each: &mut dyn FnMut(u16, u64, u64)) {
        for database in &mut self.databases {
            database.log.unflushed_writes(&mut |class, ns| each(class, ns, ns));
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u32, u64)) {
        for database in &self.databases {
            counters::report(database, each);
        }
    }
}
