//! A write log: a persistent buffer on flash. It replicates random writes, and drains them in the
//! background.
//!
//! - A write completes when its log record is on the log devices of this node and of `copies - 1`
//!   other nodes, which are chosen at random for each record.
//! - The log of a node stores at most `capacity_bytes`, and at most `file_bytes` of each file. A
//!   write that does not fit in the node's log waits (`when_full = "wait"`) or bypasses the log
//!   ("spill"). A write larger than `file_bytes` always bypasses the log.
//! - Streams bypass the log. A sequential write belongs to a stream if more than `bypass_bytes` of
//!   sequential writes to its file are outstanding.
//! - A unit that is rewritten while it waits in the log is drained only once (coalescing).
//!   Consecutive units of a file are drained together, up to `drain_bytes`. A file is drained,
//!   oldest units first, while one of these conditions is true: the file uses more than
//!   `drain_share` of its `file_bytes`, the log records of the node use more than `drain_share` of
//!   its log, or the file's oldest unit is `drain_after_s` old. On each node, at most `drainers`
//!   drains run at the same time.
//! - A sizing starts with the log in its steady state; see [`steady`].
//! - Reads of units in the log are served from the log until the drain has ended.
//!
//! (ADSF's oplog: Nutanix Bible, storage chapter; write-behind with coalescing: K. Treiber and J.
//! Menon, "Simulation study of cached RAID5 designs", HPCA 1995.)

mod steady;

use self::steady::LaidFile;
use super::context::{Block, BlockRef, Blocks, Builder, Context, NodeFailure, SteadyWrites};
use super::inside::Source;
use super::keys::{Bits, Table};
use super::request::{ANY_DEVICE, Action, Request};
use crate::cache::Index;
use crate::core::rng::Stream;
use crate::core::{NS_PER_S, Order, Places, StationId};
use crate::spec::{ModelError, Reader};
use plimsoll_sys::large::Large;
use std::collections::{BTreeMap, VecDeque};

/// Parameters of a write log.
#[derive(Clone, Copy)]
struct Rules {
    copies: u16,
    unit_bytes: u64,
    capacity_bytes: u64,
    file_bytes: u64,
    wait: bool,
    bypass_bytes: u64,
    drain_share: f64,
    drain_after_ns: u64,
    drain_units: u64,
    drainers: u32,
    header_bytes: u64,
    remote_ns: u64,
}

/// Value of a drain number that means "no drain".
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct LogUnit {
    key: u64,
    came_ns: u64,
    /// Bit mask over 64 equal parts of the unit. A bit is set if the log contains its part.
    parts: u64,
    /// Number of the drain that writes the unit; [`NONE`] while the unit waits.
    drain: u32,
    /// True while the arrival queue of its file contains the unit.
    queued: bool,
    /// True once the unit has left the log.
    gone: bool,
}

/// A unit that a request touches. The fields are the parts that the request touches, and the unit's
/// position in the log, if the unit is in the log.
#[derive(Clone, Copy, Debug)]
struct Touch {
    key: u64,
    parts: u64,
    found: Option<u32>,
}

/// Adds a slot for a unit, and returns the index of the slot.
#[cold]
#[inline(never)]
fn widen(held: &mut Large<LogUnit>, unit: LogUnit) -> u32 {
    held.push(unit);
    held.len() as u32 - 1
}

#[derive(Clone, Debug, Default)]
struct FileLog {
    /// Queue of units in order of arrival. It may also contain units that no longer wait; the drain
    /// skips such units.
    order: VecDeque<u32>,
    /// Numbers of bytes: bytes that wait in the log, and bytes that are being drained.
    held_bytes: u64,
    draining_bytes: u64,
    /// The file is drained while more bytes than this wait in the log.
    drain_above_bytes: u64,
}

/// A drain in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Drain {
    log: usize,
    first: u64,
    count: u64,
    bytes: u64,
}

#[derive(Clone)]
struct Oplog {
    rules: Rules,
    below: BlockRef,
    device: BlockRef,
    nic: Option<BlockRef>,
    cpu: Option<BlockRef>,
    /// The units in the log, and the slots that are free.
    held: Large<LogUnit>,
    held_free: Vec<u32>,
    /// The set of units in the log. `units` maps these units to their slots in `held`. Few units
    /// are in the log, so for most lookups a check of this set is sufficient.
    logged: Bits,
    units: Index,
    logs: Vec<FileLog>,
    log_of: Table<u32>,
    held_bytes: u64,
    draining_bytes: u64,
    /// If the node's log is too full, the drain starts with the file log that has this index.
    turn: usize,
    outstanding: Table<u64>,
    drains: Places<Drain>,
    active: u32,
    room: StationId,
    nodes: u16,
    failed: std::ops::Range<u16>,
    failing: NodeFailure,
    node: u16,
    own: u32,
    stream: Stream,
    absorbed: u64,
    coalesced: u64,
    spilled: u64,
    bypassed: u64,
    stored_bytes: u64,
    drained_bytes: u64,
    laid: BTreeMap<u32, LaidFile>,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the block that the log drains to")?;
    let device = reader.block("device", "the flash that stores the log")?;
    let (nic, cpu) = (reader.block_or_none("nic")?, reader.block_or_none("cpu")?);
    let unit_bytes = reader.count_or("unit_bytes", 32_768, 4096, 1 << 24)?;
    let capacity =
        reader.number("capacity_bytes", 0.0, 1e15, "the capacity for log records on a node")?;
    let drain_share = reader.number_or("drain_share", 0.5, 0.0, 1.0)?;
    let period_s = reader.number_or("drain_after_s", 30.0, 0.001, 1e6)?;
    let lost = builder.failed.len() + builder.failing.nodes.len();
    let live = u64::from(builder.nodes).saturating_sub(lost as u64).max(1);
    let rules = Rules {
        copies: reader.count_or("copies", 1, 1, 4)?.min(live) as u16,
        unit_bytes,
        capacity_bytes: capacity as u64,
        file_bytes: reader.number_or("file_bytes", 1e15, 0.0, 1e15)? as u64,
        wait: reader.word("when_full", &[("spill", false), ("wait", true)])?,
        bypass_bytes: reader.count_or("bypass_bytes", 1_500_000, 0, 1 << 50)?,
        drain_share,
        drain_after_ns: (period_s * NS_PER_S as f64) as u64,
        drain_units: (reader.count_or("drain_bytes", 1 << 20, 4096, 1 << 30)? / unit_bytes).max(1),
        drainers: reader.count_or("drainers", 4, 1, 10_000)? as u32,
        header_bytes: reader.count_or("header_bytes", 512, 0, 1 << 20)?,
        remote_ns: (1e3 * reader.number_or("remote_us", 0.0, 0.0, 1e6)?) as u64,
    };
    builder.tick_every((period_s * NS_PER_S as f64 / 4.0) as u64);
    let tokens = rules.capacity_bytes.max(1);
    Ok(Box::new(Oplog {
        rules,
        below: builder.find(below),
        device: builder.find(device),
        nic: builder.find_or_none(nic),
        cpu: builder.find_or_none(cpu),
        held: Large::new(),
        held_free: Vec::new(),
        logged: Bits::default(),
        units: Index::default(),
        logs: Vec::new(),
        log_of: Table::default(),
        held_bytes: 0,
        draining_bytes: 0,
        turn: 0,
        outstanding: Table::default(),
        drains: Places::default(),
        active: 0,
        room: builder.station("room", 1, Order::Gate { tokens, random: false }),
        nodes: builder.nodes,
        failed: builder.failed.clone(),
        failing: builder.failing.clone(),
        node: builder.node,
        own: builder.block,
        stream: builder.stream(),
        absorbed: 0,
        coalesced: 0,
        spilled: 0,
        bypassed: 0,
        stored_bytes: 0,
        drained_bytes: 0,
        laid: BTreeMap::new(),
    }))
}

/// Bit in the value of a notice. If the bit is set, the drain with the number `value >> 1` has
/// ended; otherwise, a sequential write has ended.
const DRAINED: u64 = 1;
/// Outstanding writes are counted in multiples of this number of bytes.
const GRAIN_BYTES: u64 = 4096;

impl Oplog {
    /// Returns a bit mask over the 64 parts of a unit. The bits of the parts that a request touches
    /// are set.
    fn parts(&self, request: &Request, unit: u64) -> u64 {
        let part_bytes = (self.rules.unit_bytes / 64).max(1);
        let start = unit * self.rules.unit_bytes;
        let end = request.offset_bytes + request.size_bytes.max(1);
        let first = request.offset_bytes.saturating_sub(start) / part_bytes;
        let last = ((end - start).div_ceil(part_bytes)).min(64);
        let up_to = |n: u64| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
        up_to(last) & !up_to(first)
    }

    fn bytes(&self, parts: u64) -> u64 {
        u64::from(parts.count_ones()) * (self.rules.unit_bytes / 64).max(1)
    }

    /// Returns the unit's index in `held`, if the unit is in the log.
    #[inline]
    fn find(&self, key: u64) -> Option<u32> {
        if self.logged.has((key >> 40) as u32, key & ((1 << 40) - 1)) {
            self.units.find(key, |at| self.held[at as usize].key == key)
        } else {
            None
        }
    }

    /// Returns the parts of a unit that a request touches, and the unit's position in the log.
    #[inline(always)]
    fn touch(&self, request: &Request, unit: u64) -> Touch {
        let key = request.key(unit);
        Touch { key, parts: self.parts(request, unit), found: self.find(key) }
    }

    /// Adds a write of one unit to the log.
    #[inline(always)]
    fn keep(&mut self, touch: Touch, log: usize, now_ns: u64) {
        match touch.found.map(|at| &mut self.held[at as usize]) {
            Some(held) if held.drain == NONE => {
                self.coalesced += u64::from(held.parts & touch.parts != 0);
                held.parts |= touch.parts;
            }
            _ => self.hold(touch, log, now_ns),
        }
    }

    /// Adds a unit to the waiting units. If a drain is writing an older version of the unit, that
    /// version is now obsolete.
    #[inline(always)]
    fn hold(&mut self, touch: Touch, log: usize, now_ns: u64) {
        let Touch { key, parts, found } = touch;
        if let Some(before) = found {
            self.units.remove(key, before);
            self.release(before);
        }
        let unit = LogUnit { key, came_ns: now_ns, parts, drain: NONE, queued: true, gone: false };
        let at = self.held_free.pop().unwrap_or_else(|| widen(&mut self.held, unit));
        self.held[at as usize] = unit;
        self.units.insert(key, at);
        self.logged.set((key >> 40) as u32, key & ((1 << 40) - 1));
        self.logs[log].order.push_back(at);
    }

    /// Removes a unit from the log. Its slot remains in use until the arrival queue no longer
    /// contains the unit.
    fn release(&mut self, at: u32) {
        let unit = &mut self.held[at as usize];
        unit.gone = true;
        if !unit.queued {
            self.held_free.push(at);
        }
    }

    /// Returns the number of bytes by which the log grows through a write to a unit.
    #[inline(always)]
    fn fresh_bytes(&self, touch: &Touch) -> u64 {
        let held = touch.found.map(|at| &self.held[at as usize]);
        let kept = held.filter(|held| held.drain == NONE).map_or(0, |held| held.parts);
        self.bytes(touch.parts & !kept)
    }

    /// Like `fresh_bytes`, but for a write to several units.
    #[cold]
    #[inline(never)]
    fn fresh_bytes_of_all(&self, request: &Request) -> u64 {
        let units = request.units(self.rules.unit_bytes);
        units.map(|unit| self.fresh_bytes(&self.touch(request, unit))).sum()
    }

    /// Adds a write of several units to the log.
    #[cold]
    #[inline(never)]
    fn keep_all(&mut self, request: &Request, log: usize, now_ns: u64) {
        for unit in request.units(self.rules.unit_bytes) {
            self.keep(self.touch(request, unit), log, now_ns);
        }
    }

    /// Counts a sequential write as outstanding. Returns true if the write belongs to a stream,
    /// which bypasses the log.
    fn streams(&mut self, request: &Request) -> bool {
        let outstanding = self.outstanding.get_or_insert(u64::from(request.file) & 0xf_ffff, 0);
        *outstanding += request.size_bytes / GRAIN_BYTES * GRAIN_BYTES;
        *outstanding > self.rules.bypass_bytes
    }

    fn write(&mut self, request: &Request, cx: &mut Context<'_>) {
        let streams = request.sequential && self.streams(request);
        // Most writes are within one unit, so it is looked up only once.
        let units = request.units(self.rules.unit_bytes);
        let one = (units.end - units.start == 1).then(|| self.touch(request, units.start));
        let fresh = match &one {
            Some(touch) => self.fresh_bytes(touch),
            None => self.fresh_bytes_of_all(request),
        };
        let log = self.log(request.file);
        let rules = &self.rules;
        let in_file = self.logs[log].held_bytes + self.logs[log].draining_bytes;
        if streams {
            self.bypassed += 1;
            cx.route(self.below, request);
        } else if in_file + fresh > rules.file_bytes
            || fresh > rules.capacity_bytes
            || (!rules.wait && self.held_bytes + self.draining_bytes + fresh > rules.capacity_bytes)
        {
            self.spilled += 1;
            cx.route(self.below, request);
        } else {
            self.absorb(request, one, log, fresh, cx);
        }
        if request.sequential {
            let grains = (request.size_bytes / GRAIN_BYTES).min(0x3ff_ffff);
            let value = (u64::from(request.file) & 0xf_ffff) << 1 | grains << 21;
            cx.program.notice(self.own, value << 16 | u64::from(self.node));
        }
        self.drain_log(log, cx);
        self.drain_node(cx);
    }

    fn log(&mut self, file: u32) -> usize {
        let next = self.logs.len();
        let log = *self.log_of.get_or_insert(u64::from(file), next as u32) as usize;
        if log == next {
            let drain_above_bytes = (self.rules.file_bytes as f64 * self.rules.drain_share) as u64;
            self.logs.push(FileLog { drain_above_bytes, ..FileLog::default() });
        }
        log
    }

    fn absorb(
        &mut self,
        request: &Request,
        one: Option<Touch>,
        log: usize,
        fresh: u64,
        cx: &mut Context<'_>,
    ) {
        self.absorbed += 1;
        cx.land(Source::Log);
        if self.rules.wait && fresh > 0 {
            cx.program.take(self.room, fresh);
        }
        self.held_bytes += fresh;
        self.stored_bytes += fresh;
        self.logs[log].held_bytes += fresh;
        let now_ns = cx.sim.now_ns();
        match one {
            Some(touch) => self.keep(touch, log, now_ns),
            None => self.keep_all(request, log, now_ns),
        }
        self.replicate(request, cx);
    }

    /// Writes the record to the log devices.
    fn replicate(&mut self, request: &Request, cx: &mut Context<'_>) {
        let size = request.size_bytes + self.rules.header_bytes;
        let mut record = request.range(request.offset_bytes, size);
        record.sequential = true;
        record.device = ANY_DEVICE;
        let mut chosen = [self.node; 4];
        let copies = usize::from(self.copies(cx));
        for copy in 1..copies {
            chosen[copy] = self.partner(&chosen[..copy], cx);
        }
        cx.program.fork();
        for &node in &chosen[..copies] {
            cx.program.branch();
            if node != self.node {
                if let Some(nic) = self.nic {
                    cx.charge(nic, self.node, record.size_bytes, true);
                    cx.charge(nic, node, record.size_bytes, false);
                }
                if let Some(cpu) = self.cpu {
                    cx.charge(cpu, node, self.rules.remote_ns, false);
                }
            }
            cx.route(self.device, &Request { node, ..record });
            cx.program.end_branch();
        }
        cx.program.join(usize::MAX);
    }

    /// Returns the number of copies to write. It is lower than configured if too few nodes are
    /// left.
    fn copies(&self, cx: &Context<'_>) -> u16 {
        if cx.blocks.losses.is_none() {
            return self.rules.copies;
        }
        let failing = self.failing.by(cx.sim.now_ns());
        let is_gone = |node: &u16| self.failed.contains(node) || failing.contains(node);
        let live = (0..self.nodes).filter(|n| !is_gone(n) && cx.node_loss(*n).is_none());
        self.rules.copies.min(live.count().max(1) as u16)
    }

    /// Chooses another live node. There is such a node, because the number of copies is limited to
    /// the number of live nodes. If the chosen node of a record is lost, the record waits until the
    /// loss is noticed.
    fn partner(&mut self, taken: &[u16], cx: &mut Context<'_>) -> u16 {
        let failing = self.failing.by(cx.sim.now_ns());
        let mut waited = false;
        loop {
            let node = self.stream.below(u64::from(self.nodes)) as u16;
            let failed = self.failed.contains(&node) || failing.contains(&node);
            let loss = cx.node_loss(node);
            if !taken.contains(&node) && !failed && loss.is_none() {
                return node;
            }
            if let Some(loss) = loss.filter(|_| !waited && !taken.contains(&node)) {
                waited = cx.wait_for_notice(loss);
            }
        }
    }

    /// Returns the first waiting unit of a log, and its arrival time. Removes units that no longer
    /// wait.
    fn oldest(&mut self, log: usize) -> Option<(u32, u64)> {
        let order = &mut self.logs[log].order;
        while let Some(&at) = order.front() {
            let unit = &mut self.held[at as usize];
            if unit.drain == NONE && !unit.gone {
                return Some((at, unit.came_ns));
            }
            order.pop_front();
            unit.queued = false;
            if unit.gone {
                self.held_free.push(at);
            }
        }
        None
    }

    /// Drains a file's log while it is too full.
    fn drain_log(&mut self, log: usize, cx: &mut Context<'_>) {
        if cx.node_loss(self.node).is_some() {
            return;
        }
        let mark = self.logs[log].drain_above_bytes;
        while self.active < self.rules.drainers && self.logs[log].held_bytes > mark {
            let Some((oldest, _)) = self.oldest(log) else { return };
            self.launch_drain(log, oldest, cx);
        }
    }

    /// Drains the logs of the files in turn while the node's log is too full.
    fn drain_node(&mut self, cx: &mut Context<'_>) {
        if cx.node_loss(self.node).is_some() {
            return;
        }
        let mark = (self.rules.capacity_bytes as f64 * self.rules.drain_share) as u64;
        let mut empty = 0;
        while self.active < self.rules.drainers && self.held_bytes > mark && empty < self.logs.len()
        {
            self.turn = (self.turn + 1) % self.logs.len();
            match self.oldest(self.turn) {
                Some((oldest, _)) => {
                    self.launch_drain(self.turn, oldest, cx);
                }
                None => empty += 1,
            }
        }
    }

    /// Drains units that have waited in the log for `drain_after_s`.
    fn drain_old(&mut self, cx: &mut Context<'_>) {
        if cx.node_loss(self.node).is_some() {
            return;
        }
        for log in 0..self.logs.len() {
            while self.active < self.rules.drainers
                && let Some((oldest, came_ns)) = self.oldest(log)
                && cx.sim.now_ns().saturating_sub(came_ns) > self.rules.drain_after_ns
            {
                self.launch_drain(log, oldest, cx);
            }
        }
    }

    fn launch_drain(&mut self, log: usize, oldest: u32, cx: &mut Context<'_>) {
        let first = self.held[oldest as usize].key;
        let number = self.drains.reuse(Drain::default);
        let (mut count, mut bytes) = (0, 0);
        let (mut low, mut high) = (0, 0);
        let part_bytes = (self.rules.unit_bytes / 64).max(1);
        // The drain also writes the units that follow the oldest unit in the file.
        while count < self.rules.drain_units {
            let found = if count == 0 { Some(oldest) } else { self.find(first + count) };
            let Some(at) = found else { break };
            let held = &mut self.held[at as usize];
            if held.drain != NONE {
                break;
            }
            held.drain = number;
            if count == 0 {
                low = u64::from(held.parts.trailing_zeros()) * part_bytes;
            }
            let end = 64 - u64::from(held.parts.leading_zeros());
            high = count * self.rules.unit_bytes + end * part_bytes;
            bytes += u64::from(held.parts.count_ones()) * part_bytes;
            count += 1;
        }
        self.held_bytes -= bytes;
        self.drained_bytes += bytes;
        self.draining_bytes += bytes;
        self.logs[log].held_bytes -= bytes;
        self.logs[log].draining_bytes += bytes;
        self.drains[number] = Drain { log, first, count, bytes };
        self.active += 1;
        let at = (first & ((1 << 40) - 1)) * self.rules.unit_bytes;
        let mut write = Request::new(Action::Write, (first >> 40) as u32, at + low, high - low);
        write.node = self.node;
        write.background = true;
        let (below, own, room, wait) = (self.below, self.own, self.room, self.rules.wait);
        let value = ((u64::from(number) << 1 | DRAINED) << 16) | u64::from(self.node);
        cx.launch(|cx| {
            cx.route_background(below, &write);
            if wait {
                cx.program.give(room, bytes);
            }
            cx.program.notice(own, value);
        });
    }

    /// Handles the end of a drain, and returns the log that was drained.
    fn drained(&mut self, number: u32) -> Option<usize> {
        let Drain { log, first, count, bytes } = *self.drains.get(number)?;
        self.active -= 1;
        self.drains.free(number);
        self.draining_bytes -= bytes;
        self.logs[log].draining_bytes -= bytes;
        for key in first..first + count {
            // A unit that was rewritten during the drain stays in the log.
            if let Some(at) = self.find(key)
                && self.held[at as usize].drain == number
            {
                self.units.remove(key, at);
                self.logged.unset((key >> 40) as u32, key & ((1 << 40) - 1));
                self.release(at);
            }
        }
        Some(log)
    }

    fn read(&mut self, request: &Request, cx: &mut Context<'_>) {
        let held = |unit| {
            let parts = self.parts(request, unit);
            let found = self.find(request.key(unit));
            found.is_some_and(|at| self.held[at as usize].parts & parts == parts)
        };
        if request.units(self.rules.unit_bytes).all(held) {
            let before = cx.served;
            cx.route(self.device, &Request { device: ANY_DEVICE, ..*request });
            cx.served = before.max(Some(Source::Log));
        } else {
            cx.route(self.below, request);
        }
    }
}

impl Block for Oplog {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        match request.action {
            Action::Read => self.read(request, cx),
            Action::Write => self.write(request, cx),
            Action::Flush => {}
            Action::Meta => cx.route(self.below, request),
        }
    }

    fn hint(&self, request: &Request, blocks: &Blocks) {
        let unit = request.first_unit(self.rules.unit_bytes);
        self.logged.hint(request.file, unit);
        // Most writes go to the log, so the hint prefetches only the lookup in the log.
        if request.action == Action::Write {
            self.units.hint(request.key(unit));
        } else {
            blocks.hint(self.below, request);
        }
    }

    fn notice(&mut self, value: u64, cx: &mut Context<'_>) {
        if value & 1 == DRAINED {
            if let Some(log) = self.drained((value >> 1) as u32) {
                self.drain_log(log, cx);
            }
            self.drain_node(cx);
            self.drain_old(cx);
        } else {
            let (file, size) = (value >> 1 & 0xf_ffff, (value >> 21) * GRAIN_BYTES);
            if let Some(outstanding) = self.outstanding.get_mut(file) {
                *outstanding = outstanding.saturating_sub(size);
            }
        }
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        self.drain_old(cx);
    }

    fn is_lost(&self, request: &Request, blocks: &Blocks) -> bool {
        blocks.is_lost(self.below, request)
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        self.lay_range(request);
        cx.lay(self.below, request);
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below, node)
    }

    fn settle(&mut self, writes: &[SteadyWrites], take: &mut dyn FnMut(StationId, u64)) {
        self.fill(writes, take);
    }

    fn logged_bytes(&self) -> Option<(u64, u64)> {
        Some((self.stored_bytes, self.drained_bytes))
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        let held = (self.held_bytes + self.draining_bytes) as f64;
        each("filled_share", held / self.rules.capacity_bytes.max(1) as f64);
        each("absorbed", self.absorbed as f64);
        each("coalesced", self.coalesced as f64);
        each("spilled", self.spilled as f64);
        each("bypassed", self.bypassed as f64);
    }
}
