//! Two tiers: each extent is on the fast tier or on the slow tier, and can move between the two
//! tiers.
//!
//! An extent is on one tier only. New data goes to the fast tier while it has space. With `writes =
//! "fast"`, a rewrite also goes to the fast tier, and the other parts of the extent follow in the
//! background. With `writes = "in-place"`, a rewrite goes to the tier that the extent is currently
//! on.
//!
//! - Demotion: when more than `demote_share` of the fast tier is used, the least recently touched
//!   extents move to the slow tier. Enough extents move to end the excess, but at least
//!   `demote_step_share` of the fast tier.
//! - Promotion: an extent on the slow tier moves to the fast tier after `promote_touches` random or
//!   `promote_sequential` sequential touches within `promote_window_s`. If a number is 0, touches
//!   of its kind cause no promotion.
//!
//! A move reads a whole extent from one tier and writes it to the other in the background. A node
//! runs at most `moves_max` moves at the same time. Moves compete with the foreground, and slow it
//! down if the working set does not fit. (ADSF demotes when a tier is more than 75 % full, at least
//! 15 % in one step. It promotes after 3 random or 10 sequential touches in 10 minutes. Nutanix
//! Bible, storage chapter. ADSF's tiers span the cluster; in this model, each node has its own
//! tiers.)

use super::context::{Block, BlockRef, Blocks, Builder, Context};
use super::keys::{Bits, KeyMap};
use super::request::{Action, Request};
use crate::cache::Recent;
use crate::core::NS_PER_S;
use crate::spec::{ModelError, Reader};
use std::collections::VecDeque;

/// Parameters of the two tiers.
#[derive(Clone, Copy)]
struct Rules {
    extent_bytes: u64,
    capacity_bytes: f64,
    demote_share: f64,
    demote_step_share: f64,
    writes_in_place: bool,
    promote_touches: u32,
    promote_sequential: u32,
    window_ns: u64,
    moves_max: u32,
    moves_queued: usize,
}

/// Number of distinct window numbers. A touch count is expired if it was made in a window that is
/// not the current window.
const WINDOWS: u32 = 1 << 12;

/// The touch count of an extent does not exceed this number.
const TOUCHES_MAX: u64 = (1 << 20) - 1;

/// Number of touches of an extent in a window: the low 20 bits are the count, the high bits are the
/// number of the window.
#[derive(Clone, Copy, Debug)]
struct Touches(u32);

impl Touches {
    /// Counts one more touch. If the count is then `needed`, resets the count and returns true.
    fn count(&mut self, window: u32, needed: u32) -> bool {
        let before = if self.0 >> 20 == window { self.0 & TOUCHES_MAX as u32 } else { 0 };
        let enough = before + 1 >= needed;
        self.0 = if enough { 0 } else { window << 20 | (before + 1) };
        enough
    }
}

#[derive(Clone)]
struct Tier {
    rules: Rules,
    fast: BlockRef,
    slow: BlockRef,
    /// The extents on the fast tier in the order of their last touch. Also contains the touch
    /// counts of all extents.
    held: Recent<u64>,
    /// The extents that were written at least once.
    known: Bits,
    /// Extents that existed before the run and are not yet placed on a tier, oldest first.
    laid: VecDeque<(u32, std::ops::Range<u64>)>,
    laid_extents: u64,
    /// Extents whose promotion is planned or in progress.
    rising: KeyMap<()>,
    ups: VecDeque<u64>,
    /// Moves in progress, by number. The entry of a promotion contains the extent; the entry of a
    /// demotion is `None`.
    moving: KeyMap<Option<u64>>,
    moves: u64,
    /// The current demotion ends when this number of extents is on the fast tier.
    demote_to: Option<usize>,
    window_began_ns: u64,
    window: u32,
    stored_share: f64,
    own: u32,
    node: u16,
    fast_reads: u64,
    slow_reads: u64,
    promoted: u64,
    demoted: u64,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let fast = reader.block("fast", "the flash tier")?;
    let slow = reader.block("slow", "the disk tier")?;
    let window_s = reader.number_or("promote_window_s", 600.0, 0.001, 1e9)?;
    let rules = Rules {
        extent_bytes: reader.count(
            "extent_bytes",
            4096,
            1 << 40,
            "the size of the unit that moves between the tiers",
        )?,
        capacity_bytes: reader.number(
            "capacity_bytes",
            0.0,
            1e18,
            "the capacity of the fast tier",
        )?,
        demote_share: reader.number_or("demote_share", 0.75, 0.0, 1.0)?,
        demote_step_share: reader.number_or("demote_step_share", 0.15, 0.0, 1.0)?,
        writes_in_place: reader.word("writes", &[("fast", false), ("in-place", true)])?,
        promote_touches: reader.count_or("promote_touches", 3, 0, TOUCHES_MAX)? as u32,
        promote_sequential: reader.count_or("promote_sequential", 10, 0, TOUCHES_MAX)? as u32,
        window_ns: (window_s * NS_PER_S as f64) as u64,
        moves_max: reader.count_or("moves_max", 4, 0, 10_000)? as u32,
        moves_queued: reader.count_or("moves_queued", 1000, 1, 1 << 30)? as usize,
    };
    Ok(Box::new(Tier {
        rules,
        fast: builder.find(fast),
        slow: builder.find(slow),
        held: Recent::new(room(&rules, 1.0)),
        known: Bits::default(),
        laid: VecDeque::new(),
        laid_extents: 0,
        rising: KeyMap::default(),
        ups: VecDeque::new(),
        moving: KeyMap::default(),
        moves: 0,
        demote_to: None,
        window_began_ns: 0,
        window: 0,
        stored_share: 1.0,
        own: builder.block,
        node: builder.node,
        fast_reads: 0,
        slow_reads: 0,
        promoted: 0,
        demoted: 0,
    }))
}

/// Returns the number of extents that fit on the fast tier if their stored size is `stored_share`
/// of their logical size.
fn room(rules: &Rules, stored_share: f64) -> usize {
    ((rules.capacity_bytes / stored_share / rules.extent_bytes as f64) as usize).min(1 << 30)
}

impl Tier {
    /// Data that a higher layer compressed needs less space. The compression ratio is known from
    /// the first request on.
    fn resize(&mut self, request: &Request) {
        if request.stored_share != self.stored_share && self.held.is_empty() {
            self.stored_share = request.stored_share;
            self.held = Recent::new(room(&self.rules, self.stored_share));
        }
    }

    /// Places the newest part of the initial data on the fast tier.
    fn settle(&mut self) {
        let mark = self.laid_mark();
        for (file, units) in std::mem::take(&mut self.laid) {
            let skip = self.laid_extents.saturating_sub(mark as u64).min(units.end - units.start);
            self.laid_extents -= skip;
            for unit in units.start + skip..units.end {
                self.held.access((u64::from(file) << 40) | unit);
            }
        }
        self.laid_extents = 0;
    }

    fn has_room(&self) -> bool {
        self.held.len() < self.held.capacity()
    }

    /// Returns a limit for the number of extents on the fast tier. If it contains more extents, the
    /// fast tier is too full.
    fn mark(&self) -> usize {
        (self.held.capacity() as f64 * self.rules.demote_share) as usize
    }

    /// Returns the number of extents that are initially on the fast tier.
    fn laid_mark(&self) -> usize {
        let share = self.rules.demote_share - 0.5 * self.rules.demote_step_share;
        (self.held.capacity() as f64 * share.max(0.0)) as usize
    }

    /// Plans a promotion, unless too many planned promotions already wait.
    fn raise(&mut self, key: u64) {
        if self.ups.len() < self.rules.moves_queued && self.rising.insert(key, ()).is_none() {
            self.ups.push_back(key);
        }
    }

    /// Counts a touch of an extent on the slow tier. Returns true if the extent is now due for
    /// promotion.
    fn touch(&mut self, key: u64, sequential: bool, now_ns: u64) -> bool {
        let rules = &self.rules;
        let needed = if sequential { rules.promote_sequential } else { rules.promote_touches };
        if needed == 0 {
            return false;
        }
        if now_ns - self.window_began_ns > rules.window_ns {
            self.window_began_ns = now_ns;
            self.window = (self.window + 1) % WINDOWS;
            if self.window == 0 {
                self.held.clear_notes();
            }
        }
        let mut touches = Touches(self.held.note(key));
        let enough = touches.count(self.window, needed);
        self.held.set_note(key, touches.0);
        enough
    }

    /// Returns the next extent to demote, if there is one.
    fn next_down(&mut self) -> Option<u64> {
        let (len, mark) = (self.held.len(), self.mark());
        if len > mark && self.demote_to.is_none() {
            let step = (self.held.capacity() as f64 * self.rules.demote_step_share) as usize;
            self.demote_to = Some(len.saturating_sub((len - mark).max(step)));
        }
        if self.demote_to.is_some_and(|to| len > to) {
            return self.held.remove_oldest();
        }
        self.demote_to = None;
        None
    }

    fn start_moves(&mut self, cx: &mut Context<'_>) {
        if cx.node_loss(self.node).is_some() {
            return;
        }
        while (self.moving.len() as u32) < self.rules.moves_max {
            // Demotions are started before promotions, because they free space.
            if let Some(key) = self.next_down() {
                self.demoted += 1;
                self.launch(key, None, cx);
            } else if let Some(key) = self.ups.pop_front() {
                self.launch(key, Some(key), cx);
            } else {
                return;
            }
        }
    }

    fn launch(&mut self, key: u64, rises: Option<u64>, cx: &mut Context<'_>) {
        let (from, to) = match rises {
            Some(_) => (self.slow, self.fast),
            None => (self.fast, self.slow),
        };
        let bytes = self.rules.extent_bytes;
        let offset = (key & ((1 << 40) - 1)) * bytes;
        let mut read = Request::new(Action::Read, (key >> 40) as u32, offset, bytes);
        read.node = self.node;
        read.background = true;
        read.sequential = true;
        read.stored_share = self.stored_share;
        self.moves += 1;
        self.moving.insert(self.moves, rises);
        let (own, value) = (self.own, (self.moves << 16) | u64::from(self.node));
        cx.launch(|cx| {
            cx.route(from, &read);
            cx.route(to, &Request { action: Action::Write, ..read });
            cx.program.notice(own, value);
        });
    }

    fn read(&mut self, request: &Request, key: u64, cx: &mut Context<'_>) {
        if self.held.touch(key) {
            self.fast_reads += 1;
            cx.route(self.fast, request);
            return;
        }
        self.slow_reads += 1;
        if self.touch(key, request.sequential, cx.sim.now_ns()) {
            self.raise(key);
        }
        cx.route(self.slow, request);
    }

    fn write(&mut self, request: &Request, unit: u64, key: u64, cx: &mut Context<'_>) {
        let fresh = self.known.set(request.file, unit);
        if self.held.touch(key) {
            cx.route(self.fast, request);
        } else if self.has_room() && (fresh || !self.rules.writes_in_place) {
            self.held.access(key);
            // The written part of an existing extent is stored first; then the other parts of the
            // extent are promoted.
            if !fresh && request.size_bytes < self.rules.extent_bytes {
                self.raise(key);
            }
            cx.route(self.fast, request);
        } else {
            cx.route(self.slow, request);
        }
    }
}

impl Block for Tier {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        if matches!(request.action, Action::Flush | Action::Meta) {
            return;
        }
        self.resize(request);
        self.settle();
        let extent_bytes = self.rules.extent_bytes;
        cx.each_part(request, extent_bytes, |part, unit, cx| match request.action {
            Action::Read => self.read(part, part.key(unit), cx),
            _ => self.write(part, unit, part.key(unit), cx),
        });
        self.start_moves(cx);
    }

    fn hint(&self, request: &Request, _blocks: &Blocks) {
        let unit = request.first_unit(self.rules.extent_bytes);
        self.held.hint(request.key(unit));
        if request.action != Action::Read {
            self.known.hint(request.file, unit);
        }
    }

    fn is_lost(&self, request: &Request, blocks: &Blocks) -> bool {
        let mut units = request.units(self.rules.extent_bytes);
        let on_slow = |unit: u64| !self.held.holds(request.key(unit));
        units.any(|unit| {
            let start = request.offset_bytes.max(unit * self.rules.extent_bytes);
            let end = (request.offset_bytes + request.size_bytes)
                .min((unit + 1) * self.rules.extent_bytes);
            let below = if on_slow(unit) { self.slow } else { self.fast };
            start < end && blocks.is_lost(below, &request.range(start, end - start))
        })
    }

    /// Handles the end of a move.
    fn notice(&mut self, value: u64, cx: &mut Context<'_>) {
        if let Some(Some(key)) = self.moving.remove(&value) {
            self.rising.remove(&key);
            self.promoted += 1;
            if self.has_room() {
                self.held.access(key);
            }
        }
        self.start_moves(cx);
    }

    /// Initially, the fast tier contains the newest extents, because older extents were demoted.
    /// How far the last demotion went is unknown; the model assumes half a step below the
    /// threshold.
    fn lay(&mut self, request: &Request, _cx: &mut Context<'_>) {
        self.resize(request);
        let units = request.units(self.rules.extent_bytes);
        self.known.set_range(request.file, units.clone());
        self.laid_extents += units.end - units.start;
        match self.laid.back_mut() {
            Some((file, last)) if *file == request.file && last.end == units.start => {
                last.end = units.end;
            }
            _ => self.laid.push_back((request.file, units)),
        }
        // Only the newest entries of the list are needed later, so the function drops older
        // entries.
        let mark = self.laid_mark() as u64;
        while let Some((_, first)) = self.laid.front()
            && self.laid_extents - (first.end - first.start) >= mark
        {
            self.laid_extents -= first.end - first.start;
            self.laid.pop_front();
        }
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        Some(self.rules.capacity_bytes + blocks.capacity_bytes(self.slow, node)?)
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        let all = (self.fast_reads + self.slow_reads).max(1) as f64;
        each("fast_read_share", self.fast_reads as f64 / all);
        each("filled_share", self.held.len() as f64 / self.held.capacity().max(1) as f64);
        each("moves_queued", self.ups.len() as f64);
        each("promoted_extents", self.promoted as f64);
        each("demoted_extents", self.demoted as f64);
    }
}
