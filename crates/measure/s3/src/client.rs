//! The client: connections, requests in flight, retries. It uses epoll, and runs in the thread that
//! calls [`Client::poll`].

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rusty_s3::actions::ListObjectsV2;

use crate::connection::{Connection, ConnectionError, Response, is_good};
use crate::error::{CallError, SubmitError, TargetError, Violation};
use crate::op::{Completion, Kind, Op};
use crate::request::{self, Payload};
use crate::steps::{Job, Outcome, code};
use crate::target::Target;

/// First pause before a retry, in ns; it doubles with each try.
const BACKOFF_NS: u64 = 50_000_000;
/// Longest pause between tries, in ns.
const BACKOFF_NS_MAX: u64 = 2_000_000_000;
/// Interval between checks for due retries and timeouts, in ns.
const TICK_NS: u64 = 20_000_000;
/// Maximum number of epoll events per call.
const EVENTS_MAX: usize = 64;

/// Limits and timeouts of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of connections. It is also the maximum number of outstanding operations.
    pub connections: u32,
    /// Size of a part. Larger objects are uploaded in parts of this size. S3 requires at least 5
    /// MiB.
    pub part_bytes: u32,
    /// Maximum size of an object in bytes.
    pub object_bytes_max: u32,
    /// Time limit for retries after transient errors, in ns.
    pub give_up_after_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connections: 16,
            part_bytes: 8 << 20,
            object_bytes_max: 1 << 30,
            give_up_after_ns: 60_000_000_000,
        }
    }
}

/// Maximum wait of [`Client::poll`] for a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Do not wait.
    Now,
    /// Wait until this time of the monotonic clock.
    Until(u64),
    /// Wait without a limit. Returns immediately if nothing is outstanding.
    Completion,
}

/// Counters of a client, which count from its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of submitted operations of each kind.
    pub operations: BTreeMap<Kind, u64>,
    /// Number of requests sent, including retries and all steps of multipart uploads.
    pub requests: u64,
    /// Number of retried requests.
    pub retries: u64,
    /// Number of retries after a response with status 429 or 503. These mean that the store was
    /// overloaded.
    pub slow_downs: u64,
    /// Number of opened connections.
    pub connects: u64,
    /// Number of connections that were lost during a request.
    pub disconnects: u64,
    pub multipart_uploads: u64,
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    job: Option<Job>,
    spare: String,
    watches_write: bool,
}

/// A client of one bucket, owned by one thread.
pub struct Client {
    target: Target,
    config: Config,
    epoll: OwnedFd,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Submitted operations whose requests have not started.
    fresh: Vec<usize>,
    /// Slots whose events have not been processed yet.
    events: Vec<usize>,
    next_tick_ns: u64,
    stats: Stats,
    listed: Vec<String>,
    /// Returns true if a request of this age, in ns, has timed out.
    is_over: Option<fn(u64) -> bool>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({} outstanding of {})", self.outstanding(), self.slots.len())
    }
}

/// The system's monotonic clock, in ns.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The time is never negative, because the clock starts at boot.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Client {
    /// Creates a client of a bucket. The client opens connections when it needs them.
    ///
    /// # Errors
    /// [`TargetError::Epoll`].
    pub fn new(target: Target, config: Config) -> Result<Self, TargetError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| TargetError::Epoll(error.raw_os_error()))?;
        let connections = config.connections.max(1) as usize;
        let slot = |_| Slot {
            connection: Connection::new(target.address, target.tls.clone()),
            job: None,
            spare: String::with_capacity(128),
            watches_write: false,
        };
        Ok(Self {
            slots: (0..connections).map(slot).collect(),
            free: (0..connections).rev().collect(),
            fresh: Vec::with_capacity(connections),
            events: Vec::with_capacity(EVENTS_MAX),
            next_tick_ns: 0,
            stats: Stats::default(),
            listed: Vec::new(),
            is_over: None,
            target,
            config,
            epoll,
        })
    }

    /// Returns the bucket.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Sets a function that decides whether an outstanding request fails, in addition to the age
    /// limit. The function receives the age of a request in ns. The client calls it every few dozen
    /// milliseconds.
    pub fn fail_requests_when(&mut self, is_over: fn(u64) -> bool) {
        self.is_over = Some(is_over);
    }

    /// Changes the time limit for retries; see [`Config::give_up_after_ns`].
    pub fn give_up_after(&mut self, give_up_after_ns: u64) {
        self.config.give_up_after_ns = give_up_after_ns;
    }

    /// Returns the names of the last completed LIST.
    #[must_use]
    pub fn listed(&self) -> &[String] {
        &self.listed
    }

    /// Returns the number of submitted operations that have not completed.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the time at which the first byte for a GET arrived. The GET must still be in flight.
    /// `None` if no byte has arrived.
    #[must_use]
    pub fn first_byte_ns(&self, token: u64) -> Option<u64> {
        let mut jobs = self.slots.iter().filter_map(|slot| slot.job.as_ref());
        jobs.find(|job| job.token == token)?.first_byte_ns
    }

    /// Submits an operation. The next call of [`Client::flush`] or [`Client::poll`] sends it.
    ///
    /// # Errors
    /// [`SubmitError`].
    pub fn submit(&mut self, token: u64, op: &Op<'_>) -> Result<(), SubmitError> {
        if let Op::Get { size_bytes, .. } | Op::Put { size_bytes, .. } = op
            && *size_bytes > self.config.object_bytes_max
        {
            return Err(SubmitError::Size {
                size_bytes: u64::from(*size_bytes),
                limit_bytes: u64::from(self.config.object_bytes_max),
            });
        }
        let index = self.free.pop().ok_or(SubmitError::Full)?;
        let slot = &mut self.slots[index];
        let spare = std::mem::take(&mut slot.spare);
        slot.job = Some(Job::new(token, op, self.config.part_bytes, spare));
        if let Op::Put { size_bytes, .. } = op
            && *size_bytes > self.config.part_bytes
        {
            self.stats.multipart_uploads += 1;
        }
        *self.stats.operations.entry(op.kind()).or_default() += 1;
        self.fresh.push(index);
        Ok(())
    }

    /// Executes one operation and waits for its completion.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&mut self, op: &Op<'_>, arena: &mut [u8]) -> Result<u32, CallError> {
        let busy =
            CallError::GivenUp { after_ns: 0, tries: 0, last: "no connection is free".into() };
        self.submit(0, op).map_err(|_| busy.clone())?;
        let mut out = Vec::with_capacity(1);
        while out.is_empty() && self.outstanding() > 0 {
            self.poll(arena, Timeout::Completion, &mut out);
        }
        out.pop().map_or(Err(busy), |completion| completion.result)
    }

    /// Sends submitted operations, in order, without processing any responses. If a request fails
    /// immediately, appends its completion to `out`.
    pub fn flush(&mut self, arena: &mut [u8], out: &mut Vec<Completion>) {
        for at in 0..self.fresh.len() {
            let (index, now_ns) = (self.fresh[at], monotonic_ns());
            if let Some(job) = &mut self.slots[index].job {
                job.submitted_ns = now_ns;
            }
            self.start(index, arena, now_ns, out);
        }
        self.fresh.clear();
    }

    /// Sends submitted operations, advances those in flight and appends completions to `out`.
    /// Returns after the first completion or at the timeout.
    pub fn poll(&mut self, arena: &mut [u8], timeout: Timeout, out: &mut Vec<Completion>) {
        let before = out.len();
        self.flush(arena, out);
        let mut now_ns = monotonic_ns();
        loop {
            if now_ns >= self.next_tick_ns {
                self.next_tick_ns = now_ns + TICK_NS;
                self.tick(arena, now_ns, out);
            }
            let until_ns = match timeout {
                _ if out.len() > before => now_ns,
                Timeout::Now => now_ns,
                Timeout::Until(at_ns) => at_ns.min(self.next_tick_ns),
                Timeout::Completion => self.next_tick_ns,
            };
            self.wait(until_ns.saturating_sub(now_ns));
            now_ns = monotonic_ns();
            for at in 0..self.events.len() {
                let index = self.events[at];
                self.advance(index, arena, now_ns, out);
            }
            let expired = match timeout {
                Timeout::Now => true,
                Timeout::Until(at_ns) => now_ns >= at_ns,
                Timeout::Completion => self.outstanding() == 0,
            };
            if out.len() > before || expired {
                return;
            }
        }
    }

    fn wait(&mut self, wait_ns: u64) {
        let timeout = Timespec {
            tv_sec: (wait_ns / 1_000_000_000) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        };
        self.events.clear();
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        // An interrupted wait has no events. All other errors mean invalid arguments, which cannot
        // occur here.
        if let Ok((events, _)) = epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            self.events.extend(events.iter().map(|event| event.data.u64() as usize));
        }
    }

    /// Starts the next request of the operation in a slot.
    fn start(&mut self, index: usize, arena: &mut [u8], now_ns: u64, out: &mut Vec<Completion>) {
        let slot = &mut self.slots[index];
        let Some(job) = &mut slot.job else { return };
        (job.retry_at_ns, job.tries) = (None, job.tries + 1);
        job.first_byte_ns = None;
        let (ask, payload, sink) = job.ask();
        let document = request::write(&self.target, &ask, &mut slot.connection.request);
        let payload = document.map_or(payload, Payload::Text);
        self.stats.requests += 1;
        match slot.connection.open() {
            Ok(true) => {
                self.stats.connects += 1;
                slot.watches_write = true;
                if let Some(fd) = slot.connection.fd() {
                    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
                    let data = epoll::EventData::new_u64(index as u64);
                    // A new descriptor is not yet registered with epoll.
                    let _ = epoll::add(&self.epoll, fd, data, flags);
                }
                slot.connection.begin(payload, sink);
            }
            Ok(false) => {
                slot.connection.begin(payload, sink);
                self.advance(index, arena, now_ns, out);
            }
            Err(broken) => self.broken(index, broken, arena, now_ns, out),
        }
    }

    fn advance(&mut self, index: usize, arena: &mut [u8], now_ns: u64, out: &mut Vec<Completion>) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let advanced = slot.connection.advance(arena);
        if let Some(job) = &mut slot.job
            && job.kind == Kind::Get
            && slot.connection.has_body
        {
            job.first_byte_ns.get_or_insert(now_ns);
        }
        match advanced {
            Ok(None) => self.watch(index),
            Ok(Some(response)) => {
                self.watch(index);
                self.answered(index, &response, arena, now_ns, out);
            }
            Err(broken) => self.broken(index, broken, arena, now_ns, out),
        }
    }

    /// Asks epoll to report send space only if the connection waits for it.
    fn watch(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let wants = slot.connection.wants_write();
        if let Some(fd) = slot.connection.fd()
            && wants != slot.watches_write
        {
            let mut flags = epoll::EventFlags::IN;
            if wants {
                flags |= epoll::EventFlags::OUT;
            }
            let data = epoll::EventData::new_u64(index as u64);
            // The descriptor was registered when it was opened.
            let _ = epoll::modify(&self.epoll, fd, data, flags);
            slot.watches_write = wants;
        }
    }

    fn answered(
        &mut self,
        index: usize,
        response: &Response,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        let Some(job) = &mut self.slots[index].job else { return };
        if is_good(response.status) {
            let listed = &mut self.listed;
            let outcome = job.good(response, &mut |text| {
                let found = ListObjectsV2::parse_response(text)
                    .map_err(|_| CallError::from(Violation::Document("LIST")))?;
                listed.clear();
                listed.extend(found.contents.into_iter().map(|object| object.key));
                Ok(listed.len() as u32)
            });
            return match outcome {
                Ok(Outcome::Next) => {
                    job.tries = 0;
                    self.start(index, arena, now_ns, out);
                }
                Ok(Outcome::Done(value)) => self.complete(index, Ok(value), now_ns, out),
                Err(error) => self.complete(index, Err(error), now_ns, out),
            };
        }
        let code = code(&response.text);
        let status = response.status;
        if matches!(status, 429 | 500 | 502 | 503 | 504) {
            self.stats.slow_downs += u64::from(matches!(status, 429 | 503));
            return self.retry(index, format!("{code} (HTTP {status})"), now_ns, out);
        }
        self.complete(index, Err(CallError::Status { status, code }), now_ns, out);
    }

    fn broken(
        &mut self,
        index: usize,
        broken: ConnectionError,
        arena: &mut [u8],
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        let slot = &mut self.slots[index];
        let stale = slot.connection.proven && !slot.connection.answered;
        slot.connection.drop_socket();
        if slot.job.is_none() {
            return;
        }
        self.stats.disconnects += 1;
        match broken {
            ConnectionError::Violation(violation) => {
                self.complete(index, Err(violation.into()), now_ns, out);
            }
            ConnectionError::Tls(says) => {
                self.complete(index, Err(CallError::Tls(says)), now_ns, out)
            }
            // A server may close an idle connection at any time (RFC 9112, 9.3.1).
            ConnectionError::Lost(_) if stale => {
                self.stats.retries += 1;
                self.start(index, arena, now_ns, out);
            }
            ConnectionError::Lost(says) => self.retry(index, says, now_ns, out),
        }
    }

    /// Retries a request after a pause, or fails its operation.
    fn retry(&mut self, index: usize, says: String, now_ns: u64, out: &mut Vec<Completion>) {
        let Some(job) = &mut self.slots[index].job else { return };
        let after_ns = now_ns.saturating_sub(job.submitted_ns);
        if after_ns >= self.config.give_up_after_ns
            || self.is_over.is_some_and(|over| over(after_ns))
        {
            let error = CallError::GivenUp { after_ns, tries: job.tries, last: says };
            return self.complete(index, Err(error), now_ns, out);
        }
        let doubled = BACKOFF_NS << job.tries.min(10);
        job.retry_at_ns = Some(now_ns + doubled.min(BACKOFF_NS_MAX));
        job.last = says;
        self.stats.retries += 1;
    }

    /// Retries due requests, and fails operations that exceeded their time limit.
    fn tick(&mut self, arena: &mut [u8], now_ns: u64, out: &mut Vec<Completion>) {
        for index in 0..self.slots.len() {
            let Some(job) = &self.slots[index].job else { continue };
            if job.submitted_ns == 0 {
                continue;
            }
            let after_ns = now_ns.saturating_sub(job.submitted_ns);
            let over = after_ns > self.config.give_up_after_ns
                || self.is_over.is_some_and(|over| over(after_ns));
            if !over && job.retry_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                self.start(index, arena, now_ns, out);
            } else if over {
                let last =
                    if job.last.is_empty() { "no answer".to_owned() } else { job.last.clone() };
                let error = CallError::GivenUp { after_ns, tries: job.tries, last };
                // Closing the connection discards the remaining bytes of the response.
                self.slots[index].connection.drop_socket();
                self.complete(index, Err(error), now_ns, out);
            }
        }
    }

    fn complete(
        &mut self,
        index: usize,
        result: Result<u32, CallError>,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        let slot = &mut self.slots[index];
        let Some(job) = slot.job.take() else { return };
        // If the connection is not idle, it cannot be used again: either the response arrived
        // before the whole request was sent, or no response arrived.
        if !slot.connection.is_idle() {
            slot.connection.drop_socket();
        }
        let (token, kind, submitted_ns) = (job.token, job.kind, job.submitted_ns);
        let first_byte_ns = job.first_byte_ns;
        slot.spare = job.into_spare();
        self.free.push(index);
        let completed_ns = now_ns;
        out.push(Completion { token, kind, result, submitted_ns, first_byte_ns, completed_ns });
    }
}

impl From<Errno> for TargetError {
    fn from(error: Errno) -> Self {
        Self::Epoll(error.raw_os_error())
    }
}
