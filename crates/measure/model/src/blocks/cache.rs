//! A cache in memory or on flash; its units have equal size.
//!
//! [`crate::cache`] describes the replacement policies. A read requests the missing units from the
//! lower block in as few contiguous ranges as possible, all in parallel, and caches them. Unwritten
//! units are not cached, because the lower block's map already records that they are unwritten.
//! Writes go around the cache (and drop the cached unit), through it, or into it. A write into the
//! cache makes the unit dirty, and the write completes when the cache's own device has stored the
//! data. In the background, `copiers` copy programs write dirty units to the lower block, the
//! oldest unit first. While the dirty share is at its limit, writes go through the cache.
//!
//! To limit the wear of a flash cache, `fill_bytes_per_s` limits the rate at which missing units
//! are added to the cache. (ZFS fills its second cache at 8 MiB/s: `l2arc_write_max`, OpenZFS
//! manual zfs(4).)

use super::context::{Block, BlockRef, Blocks, Builder, Context};
use super::inside::Source;
use super::keys::Table;
use super::request::{Action, Request};
use crate::cache::{Cache, Policy};
use crate::core::{NS_PER_S, Order, Places, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    Around,
    Through,
    Back,
}

#[derive(Clone)]
struct CacheBlock {
    below: BlockRef,
    device: Option<BlockRef>,
    cache: Cache,
    unit_bytes: u64,
    writes: Writes,
    label: Source,
    dirty_max: usize,
    copiers_max: u32,
    copiers: u32,
    own: u32,
    node: u16,
    misses: Vec<(u64, u64)>,
    read_hits: u64,
    read_misses: u64,
    bypass_sequential: bool,
    /// Limits the rate at which missing units are added to the cache. `None` means no limit.
    fill: Option<FillBudget>,
    /// Maps the key of a unit that is being fetched to the number of the fetch. The door of the
    /// fetch opens when the units arrive.
    coming: Table<u32>,
    /// For each fetch: the key of its first unit, and the number of units. Fetches are numbered
    /// from 1, because a notice with the value 0 means that a copy ended.
    fetches: Places<(u64, u64)>,
    doors: StationId,
    waits: Vec<u32>,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the block that serves misses")?;
    let device = reader.block_or_none("device")?;
    let bytes = reader.number("capacity_bytes", 0.0, 1e18, "its capacity")?;
    let unit_bytes = reader.count("unit_bytes", 512, 1 << 32, "the size of a cached unit")?;
    let capacity = ((bytes / unit_bytes as f64) as usize).min(1 << 30);
    let protected = reader.number_or("protected_share", 0.8, 0.0, 1.0)?;
    let policy = reader.word(
        "policy",
        &[
            ("lru", Policy::Lru),
            ("segmented-lru", Policy::SegmentedLru { protected }),
            ("arc", Policy::Arc),
        ],
    )?;
    let words = [("through", Writes::Through), ("around", Writes::Around), ("back", Writes::Back)];
    let dirty_share = reader.number_or("dirty_share", 0.5, 0.0, 1.0)?;
    let label = reader
        .word("label", &[("dram", Source::Dram), ("ssd", Source::Ssd), ("log", Source::Log)])?;
    let mut fetches = Places::default();
    fetches.put((0, 0));
    Ok(Box::new(CacheBlock {
        below: builder.find(below),
        device: builder.find_or_none(device),
        cache: Cache::new(policy, capacity),
        unit_bytes,
        writes: reader.word("writes", &words)?,
        label,
        dirty_max: (capacity as f64 * dirty_share) as usize,
        copiers_max: reader.count_or("copiers", 8, 1, 10_000)? as u32,
        copiers: 0,
        own: builder.block,
        node: builder.node,
        misses: Vec::new(),
        read_hits: 0,
        read_misses: 0,
        bypass_sequential: reader.flag_or("bypass_sequential", false)?,
        fill: match reader.has("fill_bytes_per_s") {
            true => Some(FillBudget::new(reader.number("fill_bytes_per_s", 1.0, 1e13, "")?)),
            false => None,
        },
        coming: Table::default(),
        fetches,
        doors: builder.station("arrivals", 1, Order::Doors),
        waits: Vec::new(),
    }))
}

/// State of a unit when a read request touches it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Cached,
    /// The unit was not cached, and has now been added.
    Added,
    /// The unit is not cached, and was not added.
    Missing,
}

/// Number of bytes that may currently be added to a cache after misses. The number grows at the
/// fill rate, and its maximum is the fill rate times one second.
#[derive(Clone)]
struct FillBudget {
    bytes_per_s: f64,
    left_bytes: f64,
    seen_ns: u64,
}

impl FillBudget {
    fn new(bytes_per_s: f64) -> Self {
        Self { bytes_per_s, left_bytes: bytes_per_s, seen_ns: 0 }
    }

    /// Subtracts the size of a unit from the budget. Returns false if the budget is smaller than
    /// the unit.
    fn take(&mut self, unit_bytes: u64, now_ns: u64) -> bool {
        let earned = (now_ns - self.seen_ns) as f64 / NS_PER_S as f64 * self.bytes_per_s;
        let unit_bytes = unit_bytes as f64;
        self.left_bytes = (self.left_bytes + earned).min(self.bytes_per_s.max(unit_bytes));
        self.seen_ns = now_ns;
        let has_enough = self.left_bytes >= unit_bytes;
        if has_enough {
            self.left_bytes -= unit_bytes;
        }
        has_enough
    }
}

impl CacheBlock {
    /// Looks up a unit, and returns its state. A missing unit is added to the cache if the fill
    /// budget is sufficient.
    #[inline(always)]
    fn look_up(&mut self, key: u64, cx: &mut Context<'_>) -> Presence {
        if let Some(fill) = &mut self.fill {
            if self.cache.touch(key) {
                return Presence::Cached;
            }
            if !fill.take(self.unit_bytes, cx.sim.now_ns()) {
                return Presence::Missing;
            }
        }
        let access = self.cache.access(key, false);
        if let Some(dirty) = access.evicted.filter(|e| e.dirty) {
            self.copy_back(dirty.key, cx);
        }
        if access.hit { Presence::Cached } else { Presence::Added }
    }

    #[inline(always)]
    fn read(&mut self, request: &Request, cx: &mut Context<'_>) {
        let (mut hits, mut added) = (0, 0);
        self.misses.clear();
        self.waits.clear();
        for unit in request.units(self.unit_bytes) {
            let key = request.key(unit);
            let presence = match self.bypass_sequential && request.sequential {
                true if self.cache.touch(key) => Presence::Cached,
                true => Presence::Missing,
                false => self.look_up(key, cx),
            };
            added += u64::from(presence == Presence::Added);
            if presence == Presence::Cached {
                hits += 1;
                if let Some(&door) = self.coming.get(key)
                    && !self.waits.contains(&door)
                {
                    self.waits.push(door);
                }
                continue;
            }
            match self.misses.last_mut() {
                Some((_, end)) if *end == unit => *end += 1,
                _ => self.misses.push((unit, unit + 1)),
            }
        }
        self.read_hits += hits;
        if hits > 0 {
            cx.serve(self.label);
        }
        let from_device = self.device.filter(|_| hits > 0);
        if from_device.is_none() && self.waits.is_empty() && self.misses.len() == 1 {
            // A read usually misses only one unit.
            self.fetch(request, self.misses[0], cx);
        } else {
            cx.program.fork();
            if let Some(device) = from_device {
                cx.program.branch();
                let bytes = (hits * self.unit_bytes).min(request.size_bytes);
                cx.route(device, &request.range(request.offset_bytes, bytes));
                cx.program.end_branch();
            }
            // A unit that is already being fetched is not requested again; this request waits for
            // the fetch in progress.
            for i in 0..self.waits.len() {
                cx.program.branch();
                cx.program.take(self.doors, u64::from(self.waits[i]));
                cx.program.end_branch();
            }
            for i in 0..self.misses.len() {
                cx.program.branch();
                self.fetch(request, self.misses[i], cx);
                cx.program.end_branch();
            }
            cx.program.join(usize::MAX);
        }
        if added > 0
            && let Some(device) = self.device
        {
            // A missing unit is written to the flash cache, but the reader does not wait for this
            // write.
            let bytes = added * self.unit_bytes;
            let fill = Request {
                action: Action::Write,
                background: true,
                ..request.range(request.offset_bytes, bytes)
            };
            cx.launch(|cx| cx.route(device, &fill));
        }
    }

    /// Requests consecutive units from the lower block.
    #[inline(always)]
    fn fetch(&mut self, request: &Request, (first, end): (u64, u64), cx: &mut Context<'_>) {
        self.read_misses += end - first;
        let bytes = (end - first) * self.unit_bytes;
        let before = cx.served.take();
        cx.route(self.below, &request.range(first * self.unit_bytes, bytes));
        let is_empty = cx.served == Some(Source::Zero);
        cx.served = before.max(cx.served);
        let fetch = self.fetches.put((request.key(first), end - first));
        for unit in first..end {
            if is_empty {
                // The map already records which units are unwritten, so these units are not cached.
                self.cache.remove(request.key(unit));
            } else {
                self.coming.insert(request.key(unit), fetch);
            }
        }
        let door = u64::from(fetch);
        cx.closing.push((self.doors, door));
        cx.program.give(self.doors, door);
        cx.program.notice(self.own, door << 16 | u64::from(self.node));
    }

    fn write(&mut self, request: &Request, cx: &mut Context<'_>) {
        let back = self.writes == Writes::Back && self.cache.dirty() < self.dirty_max;
        for unit in request.units(self.unit_bytes) {
            let key = request.key(unit);
            if self.writes == Writes::Around {
                self.cache.remove(key);
                continue;
            }
            let access = self.cache.access(key, back);
            if let Some(dirty) = access.evicted.filter(|e| e.dirty) {
                self.copy_back(dirty.key, cx);
            }
        }
        if !back {
            cx.route(self.below, request);
            return;
        }
        cx.land(self.label);
        if let Some(device) = self.device {
            cx.route(device, request);
        }
        self.start_copiers(cx);
    }

    /// Starts idle copiers. Each of them writes the oldest dirty unit to the lower block.
    fn start_copiers(&mut self, cx: &mut Context<'_>) {
        // Copying starts when the dirty units exceed half of their limit. A unit that is rewritten
        // soon is therefore copied only once.
        while self.copiers < self.copiers_max && 2 * self.cache.dirty() > self.dirty_max {
            let Some(key) = self.cache.clean_oldest() else { return };
            self.copy_back(key, cx);
        }
    }

    fn copy_back(&mut self, key: u64, cx: &mut Context<'_>) {
        self.copiers += 1;
        let mut copy = Request::new(
            Action::Write,
            (key >> 40) as u32,
            (key & ((1 << 40) - 1)) * self.unit_bytes,
            self.unit_bytes,
        );
        copy.node = self.node;
        copy.background = true;
        let (below, device, own) = (self.below, self.device, self.own);
        let node = u64::from(self.node);
        cx.launch(|cx| {
            if let Some(device) = device {
                cx.route(device, &Request { action: Action::Read, ..copy });
            }
            cx.route(below, &copy);
            cx.program.notice(own, node);
        });
    }
}

impl Block for CacheBlock {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        match request.action {
            Action::Read => self.read(request, cx),
            Action::Write => self.write(request, cx),
            Action::Flush | Action::Meta => cx.route(self.below, request),
        }
    }

    /// Handles the notice that a copy ended (value 0), or that a fetch ended (value: number of the
    /// fetch).
    fn notice(&mut self, value: u64, cx: &mut Context<'_>) {
        if value == 0 {
            self.copiers -= 1;
            self.start_copiers(cx);
        } else if let Some(&(first, count)) = self.fetches.get(value as u32) {
            let fetch = value as u32;
            for key in first..first + count {
                if self.coming.get(key) == Some(&fetch) {
                    self.coming.remove(key);
                }
            }
            self.fetches.free(fetch);
        }
    }

    fn hint(&self, request: &Request, blocks: &Blocks) {
        self.cache.hint(request.key(request.first_unit(self.unit_bytes)));
        blocks.hint(self.below, request);
    }

    fn is_lost(&self, request: &Request, blocks: &Blocks) -> bool {
        blocks.is_lost(self.below, request)
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        cx.lay(self.below, request);
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below, node)
    }

    fn forget(&mut self) {
        // If a memory cache has dirty units, it keeps them. A flash cache always keeps its
        // contents.
        if self.label == Source::Dram && self.cache.dirty() == 0 {
            self.cache.clear();
        }
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        let capacity = self.cache.capacity().max(1) as f64;
        each("filled_share", self.cache.len() as f64 / capacity);
        each("dirty_share", self.cache.dirty() as f64 / capacity);
        each("read_hits", self.read_hits as f64);
        each("read_misses", self.read_misses as f64);
    }
}
