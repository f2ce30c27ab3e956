//! The protocol without sockets and clock: calls in flight, their order, their replies, their timers.
//!
//! A [`Core`] is driven from outside. Operations are submitted, handed over (which stamps them),
//! gathered per link as slices to be sent; what was received is put into a link's
//! [`Inbound`](crate::inbound::Inbound) and delivered. Times are passed in. [`Client`](crate::Client)
//! does this with real sockets; the tests and the fuzzer without.

use std::collections::VecDeque;

use crate::call::{encode_commit, encode_metadata, encode_transfer};
use crate::credential::Credential;
use crate::error::{CallError, SubmitError};
use crate::handle::{Handle, ObjectId, ServerId};
use crate::inbound::Inbound;
use crate::op::{Completion, Op, Procedure, Stability};
use crate::retain::{Chain, Retain};
use crate::rpc::CallTemplate;
use crate::slot::{NONE, Owner, Payload, SlotTable, State};
use crate::stats::{Ended, Event, Stats};

/// Slots beyond the caller's depth: for writes that are sent again and COMMITs that make room.
const INTERNAL_SLOTS: u32 = 8;
/// Records up to this size are accepted even when only small transfers are asked for, in bytes.
const RECORD_BYTES_MIN: usize = 128 * 1024;
/// Room in a READ reply's record beyond its data, in bytes: the longest header (528) rounded up.
const RECORD_OVERHEAD_BYTES: usize = 1024;
/// With fewer operations outstanding, a reply is looked for at once: hardly two would come together.
const REAP_PAUSE_DEPTH: u32 = 16;
/// A shorter pause costs more than it spares, in ns.
const REAP_PAUSE_NS_MIN: u64 = 10_000;
/// A longer pause spares little more: 250 us are 4,000 looks a second.
const REAP_PAUSE_NS_MAX: u64 = 250_000;
/// Longest name sent, in bytes: what common file systems take.
const NAME_BYTES_MAX: usize = 255;

/// What a client is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most operations outstanding over all connections; at most 60,000.
    pub depth_max: u32,
    /// Largest READ or WRITE, in bytes. Also bounds what is accepted from a server.
    pub size_bytes_max: u32,
    /// Without a reply for this long a call is sent again on its connection; after twice as long the
    /// connection is replaced. The default is what Linux uses for NFS over TCP (`timeo=600`).
    pub retransmit_after_ns: u64,
    /// A call without a reply for this long fails. It bounds how long an outage is waited for.
    pub give_up_after_ns: u64,
    /// How long after NFS3ERR_JUKEBOX the call is made again.
    pub jukebox_retry_ns: u64,
    /// Most bytes of acknowledged unstable writes kept for sending again. When it is full, the client
    /// commits by itself.
    pub retain_bytes: usize,
    /// Keep a latency histogram per procedure (a driver with its own recorder needs none).
    pub histograms: bool,
    /// With 16 or more operations outstanding, the client looks for replies only every so-many-th of
    /// the mean latency, and at most every 250 us. With 16 a completion is seen at most 6 % of the mean
    /// latency late, 3 % on average, and [`Stats`] says how long was paused. It spares the wake-up for
    /// each single reply, which costs more CPU than all else and, where the server shares the
    /// processors, its throughput. 0 looks at once, and so does a shallower queue.
    pub reap_pause_divisor: u32,
    /// Where XIDs start. Different clients of one server should differ.
    pub xid_seed: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            depth_max: 256,
            size_bytes_max: 1 << 20,
            retransmit_after_ns: 60_000_000_000,
            give_up_after_ns: 600_000_000_000,
            jukebox_retry_ns: 1_000_000_000,
            retain_bytes: 64 << 20,
            histograms: true,
            reap_pause_divisor: 16,
            xid_seed: 1,
        }
    }
}

/// A server as the core sees it.
#[derive(Debug)]
pub(crate) struct Server {
    pub template: CallTemplate,
    pub links: Vec<u32>,
    next_link: usize,
    /// The last write verifier reported as new.
    pub verifier: Option<[u8; 8]>,
}

/// A registered file or directory.
#[derive(Debug)]
pub(crate) struct Object {
    pub server: ServerId,
    pub handle: Handle,
    pub chain: Chain,
    /// Lost writes to it are being sent again.
    pub recovering: bool,
    /// The write verifier last seen for it.
    pub verifier: Option<[u8; 8]>,
}

/// The part of a connection that is not a socket.
#[derive(Debug)]
pub(crate) struct Link {
    pub server: ServerId,
    /// Number among its server's connections.
    pub number: u32,
    /// Calls to send, as (slot, XID).
    pub queue: VecDeque<(u32, u32)>,
    /// Bytes of the first of them that are sent already.
    pub head_sent: usize,
    /// A queued call was answered: the queue needs weeding.
    pub stale: bool,
    pub inbound: Option<Inbound>,
    /// Second replies that retransmissions on this connection may cause.
    pub strays_allowed: u32,
    /// The connection must be replaced.
    pub broken: Option<Ended>,
    /// A reply has come on the present connection.
    pub proven: bool,
    /// The READ whose payload is being received into the arena.
    pub streaming: Option<Streaming>,
}

/// A READ reply whose head has been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming {
    pub xid: u32,
    pub count: u32,
    pub eof: bool,
}

/// A part of a lost write, to be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resend {
    pub commit: u32,
    pub object: u32,
    pub offset_bytes: u64,
    pub size_bytes: u32,
    pub position: usize,
}

/// The protocol's state machine. See the module's text.
#[derive(Debug)]
pub struct Core {
    pub(crate) config: Config,
    pub(crate) slots: SlotTable,
    pub(crate) servers: Vec<Server>,
    pub(crate) objects: Vec<Object>,
    pub(crate) links: Vec<Link>,
    pub(crate) retain: Retain,
    pub(crate) stats: Stats,
    /// Submitted, to be stamped and queued.
    fresh: Vec<u32>,
    /// Held back, see [`State::Held`].
    pub(crate) held: VecDeque<u32>,
    pub(crate) resends: VecDeque<Resend>,
    /// A COMMIT that makes room is under way.
    pub(crate) room_commit: bool,
    pub(crate) outstanding: u32,
    sequence: u64,
    arena_bytes_needed: u64,
    /// Running mean of the latency of operations that succeeded, over some 64 of them.
    latency_ns_mean: u64,
    /// Results of the last reply that was asked to be kept.
    pub(crate) kept: Vec<u8>,
}

impl Core {
    /// A core without servers.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let depth_max = config.depth_max.clamp(1, 60_000);
        let retain_bytes = config.retain_bytes.max(config.size_bytes_max as usize * 2);
        Self {
            slots: SlotTable::new(depth_max + INTERNAL_SLOTS, config.xid_seed),
            retain: Retain::new(retain_bytes, retain_bytes / 4096 + depth_max as usize * 2),
            stats: Stats::new(config.histograms),
            config: Config { depth_max, ..config },
            servers: Vec::new(),
            objects: Vec::new(),
            links: Vec::new(),
            fresh: Vec::with_capacity(depth_max as usize),
            held: VecDeque::new(),
            resends: VecDeque::new(),
            room_commit: false,
            outstanding: 0,
            sequence: 0,
            arena_bytes_needed: 0,
            latency_ns_mean: 0,
            kept: Vec::new(),
        }
    }

    /// Adds a server with `connections` links; returns the index of its first link.
    pub fn add_server(&mut self, credential: &Credential, connections: u32) -> (ServerId, usize) {
        use nfs3_types::nfs3::{PROGRAM, VERSION};
        let id = ServerId(self.servers.len() as u32);
        let first = self.links.len();
        let limit =
            RECORD_BYTES_MIN.max(self.config.size_bytes_max as usize + RECORD_OVERHEAD_BYTES);
        for number in 0..connections.max(1) {
            self.links.push(Link {
                server: id,
                number,
                queue: VecDeque::with_capacity(self.config.depth_max as usize),
                head_sent: 0,
                stale: false,
                inbound: Some(Inbound::new(limit)),
                strays_allowed: 0,
                broken: None,
                proven: false,
                streaming: None,
            });
        }
        self.servers.push(Server {
            template: CallTemplate::new(PROGRAM, VERSION, credential, self.config.xid_seed),
            links: (first as u32..self.links.len() as u32).collect(),
            next_link: 0,
            verifier: None,
        });
        (id, first)
    }

    /// Registers a handle. Use [`Handle::EMPTY`] for one that a LOOKUP or CREATE will fill.
    pub fn register(&mut self, server: ServerId, handle: Handle) -> ObjectId {
        let id = ObjectId(self.objects.len() as u32);
        self.objects.push(Object {
            server,
            handle,
            chain: Chain::default(),
            recovering: false,
            verifier: None,
        });
        id
    }

    /// The handle of an object; [`Handle::EMPTY`] if it has none yet.
    #[must_use]
    pub fn handle(&self, object: ObjectId) -> Handle {
        self.objects.get(object.0 as usize).map_or(Handle::EMPTY, |object| object.handle)
    }

    /// Operations of the caller that have not completed.
    #[must_use]
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The arena must reach at least this far, in bytes; 0 when nothing is outstanding.
    #[must_use]
    pub fn arena_bytes_needed(&self) -> u64 {
        self.arena_bytes_needed
    }

    /// How long to leave replies alone after a look for them; see [`Config::reap_pause_divisor`].
    #[must_use]
    pub fn reap_pause_ns(&self) -> u64 {
        if self.outstanding < REAP_PAUSE_DEPTH {
            return 0;
        }
        match self.latency_ns_mean.checked_div(u64::from(self.config.reap_pause_divisor)) {
            Some(pause_ns @ REAP_PAUSE_NS_MIN..) => pause_ns.min(REAP_PAUSE_NS_MAX),
            _ => 0,
        }
    }

    /// Bytes acknowledged as UNSTABLE and not committed.
    #[must_use]
    pub fn uncommitted_bytes(&self) -> u64 {
        self.retain.uncommitted_bytes()
    }

    /// Counters and events.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Counters and events.
    pub fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Takes an operation. Nothing is sent before [`Core::hand_over`].
    ///
    /// # Errors
    /// A [`SubmitError`] that says why it was not taken; there will be no completion.
    pub fn submit(&mut self, token: u64, op: &Op<'_>) -> Result<(), SubmitError> {
        self.submit_kept(token, op, false).map(|_| ())
    }

    /// As [`Core::submit`]; with `keep_reply`, the results are left in `kept`.
    pub(crate) fn submit_kept(
        &mut self,
        token: u64,
        op: &Op<'_>,
        keep_reply: bool,
    ) -> Result<u32, SubmitError> {
        if self.outstanding >= self.config.depth_max {
            return Err(SubmitError::Full);
        }
        self.check(op)?;
        let (object, second, into) = targets(op);
        let server = match *op {
            Op::Null { server } => server,
            _ => self.object(object)?.server,
        };
        if server.0 as usize >= self.servers.len() {
            return Err(SubmitError::NoHandle);
        }
        for id in [second, into].into_iter().flatten() {
            self.objects.get(id.0 as usize).ok_or(SubmitError::NoHandle)?;
        }
        let index = self.slots.take().ok_or(SubmitError::Full)?;
        self.fill(index, token, op, (server, object, into));
        self.slots.get_mut(index).keep_reply = keep_reply;
        if let Err(error) = self.encode(index, op, second) {
            self.slots.release(index);
            return Err(error);
        }
        self.fresh.push(index);
        self.outstanding += 1;
        Ok(index)
    }

    fn check(&mut self, op: &Op<'_>) -> Result<(), SubmitError> {
        let name = |name: &[u8]| match name.len() {
            1..=NAME_BYTES_MAX => Ok(()),
            size => Err(SubmitError::Name { size_bytes: u32::try_from(size).unwrap_or(u32::MAX) }),
        };
        match *op {
            Op::Read { size_bytes, buffer_offset_bytes, .. }
            | Op::Write { size_bytes, buffer_offset_bytes, .. } => {
                let limit_bytes = self.config.size_bytes_max;
                if size_bytes == 0 || size_bytes > limit_bytes {
                    return Err(SubmitError::Size { size_bytes, limit_bytes });
                }
                let end = buffer_offset_bytes.saturating_add(u64::from(size_bytes));
                self.arena_bytes_needed = self.arena_bytes_needed.max(end);
                Ok(())
            }
            Op::Lookup { name: one, .. }
            | Op::Create { name: one, .. }
            | Op::MakeDir { name: one, .. }
            | Op::Remove { name: one, .. }
            | Op::RemoveDir { name: one, .. } => name(one),
            Op::Rename { from, to, .. } => name(from).and_then(|()| name(to)),
            _ => Ok(()),
        }
    }

    fn object(&self, id: Option<ObjectId>) -> Result<&Object, SubmitError> {
        let object = id.and_then(|id| self.objects.get(id.0 as usize));
        object.filter(|object| !object.handle.is_empty()).ok_or(SubmitError::NoHandle)
    }

    #[inline]
    fn fill(
        &mut self,
        index: u32,
        token: u64,
        op: &Op<'_>,
        (server, object, into): (ServerId, Option<ObjectId>, Option<ObjectId>),
    ) {
        self.sequence += 1;
        let sequence = self.sequence;
        let slot = self.slots.get_mut(index);
        slot.state = State::Fresh;
        slot.owner = Owner::Caller;
        slot.procedure = op.procedure();
        slot.token = token;
        slot.server = server;
        slot.object = object.map_or(NONE, |id| id.0);
        slot.into = into.map_or(NONE, |id| id.0);
        slot.done_bytes = 0;
        slot.size_bytes = 0;
        slot.entry = None;
        slot.sequence = sequence;
        slot.submitted_ns = 0;
        slot.retransmissions = 0;
        match *op {
            Op::Read { offset_bytes, size_bytes, buffer_offset_bytes, .. } => {
                slot.offset_bytes = offset_bytes;
                slot.size_bytes = size_bytes;
                slot.payload = Payload::Arena(buffer_offset_bytes);
            }
            Op::Write { offset_bytes, size_bytes, buffer_offset_bytes, stability, .. } => {
                slot.offset_bytes = offset_bytes;
                slot.size_bytes = size_bytes;
                slot.payload = Payload::Arena(buffer_offset_bytes);
                slot.stability = stability;
            }
            Op::Commit { offset_bytes, size_bytes, .. } => {
                slot.offset_bytes = offset_bytes;
                slot.size_bytes = size_bytes;
            }
            _ => {}
        }
    }

    fn encode(
        &mut self,
        index: u32,
        op: &Op<'_>,
        second: Option<ObjectId>,
    ) -> Result<(), SubmitError> {
        if matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Commit { .. }) {
            self.encode_again(index);
            return Ok(());
        }
        let second = match second {
            Some(_) => self.object(second)?.handle,
            None => Handle::EMPTY,
        };
        let (slot, header) = self.slots.parts_mut(index);
        let first = match op {
            Op::Null { .. } => &Handle::EMPTY,
            _ => &self.objects[slot.object as usize].handle,
        };
        let template = &self.servers[slot.server.0 as usize].template;
        // Names and handles were bounded, so a header always has room; attributes are of fixed size.
        let end = encode_metadata(template, slot.xid, op, (first, &second), header);
        slot.header_bytes = end.ok_or(SubmitError::NoHandle)?;
        Ok(())
    }

    /// Encodes READ, WRITE or COMMIT from what its slot holds.
    #[inline]
    pub(crate) fn encode_again(&mut self, index: u32) {
        let (slot, header) = self.slots.parts_mut(index);
        let template = &self.servers[slot.server.0 as usize].template;
        let handle = &self.objects[slot.object as usize].handle;
        let end = if slot.procedure == Procedure::Commit {
            let range = (slot.offset_bytes, slot.size_bytes);
            encode_commit(template, slot.xid, handle, range, header)
        } else {
            encode_transfer(template, slot, handle, header)
        };
        // 28 + 156 + 8 + 68 + 20 bytes at most, far below the header's room.
        slot.header_bytes = end.unwrap_or(0);
    }

    /// Stamps what was submitted since the last time and queues it on its connections.
    #[inline]
    pub fn hand_over(&mut self, now_ns: u64) {
        if self.fresh.is_empty() {
            return;
        }
        let fresh = std::mem::take(&mut self.fresh);
        for &index in &fresh {
            self.slots.get_mut(index).submitted_ns = now_ns;
            self.route(index, now_ns);
        }
        self.fresh = fresh;
        self.fresh.clear();
    }

    /// True if operations were submitted and not handed over.
    #[must_use]
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Queues a call on a connection, or holds it back.
    pub(crate) fn route(&mut self, index: u32, now_ns: u64) {
        let slot = self.slots.get(index);
        let (procedure, owner, object) = (slot.procedure, slot.owner, slot.object);
        if procedure == Procedure::Write && owner == Owner::Caller && !self.log_write(index) {
            self.hold(index);
            self.make_room(now_ns);
            return;
        }
        if procedure == Procedure::Commit {
            if self.objects[object as usize].recovering {
                self.hold(index);
                return;
            }
            let order = self.retain.next_order();
            self.slots.get_mut(index).order = order;
        }
        self.enqueue(index, now_ns);
    }

    /// Enters a WRITE into the log of uncommitted writes where that is needed. False: not now.
    #[inline]
    fn log_write(&mut self, index: u32) -> bool {
        let slot = self.slots.get(index);
        let object = &mut self.objects[slot.object as usize];
        if object.recovering {
            return false;
        }
        let unstable = slot.stability == Stability::Unstable;
        if slot.entry.is_some() || (!unstable && object.chain.first.is_none()) {
            return true;
        }
        let range = (slot.offset_bytes, slot.size_bytes);
        let entry = self.retain.add(&mut object.chain, slot.object, range, unstable);
        self.slots.get_mut(index).entry = entry;
        entry.is_some()
    }

    /// Appends a call to the queue of one of its server's connections, in turn.
    pub(crate) fn enqueue(&mut self, index: u32, now_ns: u64) {
        let slot = self.slots.get_mut(index);
        let server = &mut self.servers[slot.server.0 as usize];
        let link = server.links[server.next_link];
        server.next_link = (server.next_link + 1) % server.links.len();
        slot.link = link;
        slot.state = State::Queued;
        slot.sent_ns = now_ns;
        slot.transmissions_on_link = 0;
        let xid = slot.xid;
        self.links[link as usize].queue.push_back((index, xid));
    }

    /// Ends an operation: accounts for it and gives its slot back.
    pub(crate) fn finish(
        &mut self,
        index: u32,
        result: Result<u32, CallError>,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        self.leave_link(index);
        let slot = self.slots.get(index);
        let (procedure, owner) = (slot.procedure, slot.owner);
        match owner {
            Owner::Caller => {
                let completion = Completion {
                    token: slot.token,
                    procedure,
                    result,
                    submitted_ns: slot.submitted_ns,
                    completed_ns: now_ns,
                    retransmissions: slot.retransmissions,
                };
                let latency_ns = now_ns.saturating_sub(slot.submitted_ns);
                match result {
                    Ok(size) => {
                        let moved = matches!(procedure, Procedure::Read | Procedure::Write);
                        let size_bytes = if moved { size } else { 0 };
                        self.stats.succeeded(procedure, size_bytes, latency_ns);
                        self.latency_ns_mean =
                            self.latency_ns_mean - self.latency_ns_mean / 64 + latency_ns / 64;
                    }
                    Err(_) => self.stats.procedure_mut(procedure).failed += 1,
                }
                self.outstanding -= 1;
                if self.outstanding == 0 {
                    self.arena_bytes_needed = 0;
                }
                self.slots.release(index);
                out.push(completion);
            }
            Owner::Resend { commit } => {
                self.slots.release(index);
                self.resend_done(commit, result.err(), now_ns, out);
            }
            Owner::Room => {
                self.slots.release(index);
                self.room_done(result.err(), now_ns, out);
            }
        }
    }

    /// A call that ends while it is queued must not be sent any more; one that is half sent takes its
    /// connection with it, for its payload goes back to the caller.
    #[inline]
    pub(crate) fn leave_link(&mut self, index: u32) {
        let slot = self.slots.get(index);
        if slot.state != State::Queued {
            return;
        }
        let link = &mut self.links[slot.link as usize];
        link.stale = true;
        if link.head_sent > 0 && link.queue.front() == Some(&(index, slot.xid)) {
            link.broken.get_or_insert(Ended::GivenUp);
        }
    }

    /// A connection was lost: its calls go back to its queue in the order in which they were
    /// submitted. Returns how many there are.
    pub fn link_lost(&mut self, link: usize, why: Ended, now_ns: u64) -> u32 {
        let mut calls: Vec<u32> = self
            .slots
            .indices()
            .filter(|index| {
                let slot = self.slots.get(*index);
                slot.is_on_link() && slot.link as usize == link
            })
            .collect();
        calls.sort_by_key(|index| self.slots.get(*index).sequence);
        let queue = &mut self.links[link];
        queue.queue.clear();
        queue.head_sent = 0;
        queue.stale = false;
        queue.strays_allowed = 0;
        queue.broken = None;
        queue.proven = false;
        queue.streaming = None;
        if let Some(inbound) = &mut queue.inbound {
            inbound.clear();
        }
        for &index in &calls {
            let slot = self.slots.get_mut(index);
            slot.state = State::Queued;
            slot.transmissions_on_link = 0;
            // A server with a reply cache may answer for the old connection as well.
            queue.strays_allowed += u32::from(slot.transmissions > 0);
            queue.queue.push_back((index, slot.xid));
        }
        let count = calls.len() as u32;
        self.stats.disconnects += 1;
        self.stats.event(Event::Disconnected {
            server: queue.server,
            connection: queue.number,
            at_ns: now_ns,
            why,
            calls: count,
        });
        count
    }

    /// A connection is there again, `outage_ns` after it was lost.
    pub fn link_restored(&mut self, link: usize, outage_ns: u64, now_ns: u64) {
        let link = &self.links[link];
        for &(index, _) in &link.queue {
            self.slots.get_mut(index).sent_ns = now_ns;
        }
        self.stats.outage_ns += outage_ns;
        self.stats.event(Event::Reconnected {
            server: link.server,
            connection: link.number,
            at_ns: now_ns,
            outage_ns,
            calls: link.queue.len() as u32,
        });
    }

    /// Why the connection of a link must be replaced, if it must: the driver closes it and calls
    /// [`Core::link_lost`].
    #[must_use]
    pub fn broken(&self, link: usize) -> Option<Ended> {
        self.links[link].broken
    }

    /// The framing of a connection was violated: every call on it fails, for which of their replies
    /// were damaged can't be known.
    pub fn fail_link(
        &mut self,
        link: usize,
        error: CallError,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        for index in self.slots.indices() {
            let slot = self.slots.get(index);
            if slot.is_on_link() && slot.link as usize == link {
                self.fail(index, error, now_ns, out);
            }
        }
    }

    /// Fails one call, whatever it was doing.
    pub(crate) fn fail(
        &mut self,
        index: u32,
        error: CallError,
        now_ns: u64,
        out: &mut Vec<Completion>,
    ) {
        if let Some(entry) = self.slots.get_mut(index).entry.take() {
            self.retain.settle(entry);
            self.prune(index);
        }
        self.finish(index, Err(error), now_ns, out);
    }

    /// Looks after calls that are overdue or whose time to try again has come. To be called every few
    /// dozen milliseconds.
    pub fn tick(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        for index in self.slots.indices() {
            let slot = self.slots.get(index);
            if matches!(slot.state, State::Free | State::Fresh | State::Recovering) {
                continue;
            }
            let age_ns = now_ns.saturating_sub(slot.submitted_ns);
            if age_ns >= self.config.give_up_after_ns {
                self.give_up(index, age_ns, now_ns, out);
                continue;
            }
            match slot.state {
                State::Waiting { until_ns } if now_ns >= until_ns => {
                    self.slots.renew_xid(index);
                    self.patch_xid(index);
                    self.enqueue(index, now_ns);
                }
                State::Sent
                    if now_ns.saturating_sub(slot.sent_ns) >= self.config.retransmit_after_ns =>
                {
                    self.retransmit(index, now_ns);
                }
                _ => {}
            }
        }
        self.release_held(now_ns);
    }

    fn give_up(&mut self, index: u32, after_ns: u64, now_ns: u64, out: &mut Vec<Completion>) {
        let slot = self.slots.get(index);
        if slot.state == State::Sent {
            // A late reply must not find the arena range in other hands.
            self.links[slot.link as usize].broken.get_or_insert(Ended::GivenUp);
        }
        if slot.state == State::Held {
            self.held.retain(|held| *held != index);
        }
        let transmissions = slot.retransmissions + u32::from(slot.transmissions > 0);
        self.fail(index, CallError::TimedOut { after_ns, transmissions }, now_ns, out);
    }

    fn retransmit(&mut self, index: u32, now_ns: u64) {
        let slot = self.slots.get_mut(index);
        let link = &mut self.links[slot.link as usize];
        if slot.transmissions_on_link >= 2 {
            link.broken.get_or_insert(Ended::NoReply);
            return;
        }
        slot.state = State::Queued;
        slot.sent_ns = now_ns;
        link.strays_allowed += 1;
        link.queue.push_back((index, slot.xid));
    }

    pub(crate) fn patch_xid(&mut self, index: u32) {
        let xid = self.slots.get(index).xid;
        let at = crate::rpc::XID_AT;
        self.slots.header_mut(index)[at..at + 4].copy_from_slice(&xid.to_be_bytes());
    }
}

/// The object operated on, a second directory, and where a returned handle goes.
fn targets(op: &Op<'_>) -> (Option<ObjectId>, Option<ObjectId>, Option<ObjectId>) {
    match *op {
        Op::Null { .. } => (None, None, None),
        Op::GetAttr { object }
        | Op::SetAttr { object, .. }
        | Op::Access { object, .. }
        | Op::FsStat { object }
        | Op::FsInfo { object }
        | Op::PathConf { object } => (Some(object), None, None),
        Op::Read { file, .. } | Op::Write { file, .. } | Op::Commit { file, .. } => {
            (Some(file), None, None)
        }
        Op::Lookup { dir, into, .. }
        | Op::Create { dir, into, .. }
        | Op::MakeDir { dir, into, .. } => (Some(dir), None, into),
        Op::Remove { dir, .. }
        | Op::RemoveDir { dir, .. }
        | Op::ReadDir { dir, .. }
        | Op::ReadDirPlus { dir, .. } => (Some(dir), None, None),
        Op::Rename { from_dir, to_dir, .. } => (Some(from_dir), Some(to_dir), None),
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
