//! Replication over the nodes of a cluster, with data locality, erasure coding of cold data, and
//! node failures.
//!
//! - Data is placed in units (extent groups). The first copy is on the node that writes it, if that
//!   node has space (data locality). For each other copy, a hash selects two nodes, and the emptier
//!   node stores the copy (M. Mitzenmacher, "The power of two choices in randomized load
//!   balancing", IEEE TPDS 12(10), 2001). The hash also selects two nodes that run no load. If the
//!   emptier of these two nodes has more free space than the node chosen first, it stores the copy
//!   instead of that node. Nodes that run a load then have more space for their own data (Nutanix
//!   Bible, storage-only nodes). Without locality, the first copy is placed like the other copies.
//! - A write ends when `quorum` copies are written (by default, all copies). A copy for another
//!   node uses this node's network port, and the port, processors and storage of the other node.
//! - A read uses the local copy if this node has a copy, and otherwise a remote copy. All reads of
//!   a unit use the same remote copy.
//! - A share of `erasure_share` of the units is cold and erasure coded: only one copy of their data
//!   is stored, and parity is stored on other nodes. Reads of a cold unit use this copy. If the
//!   node of the copy has failed, `erasure_data` strips are read and decoded.
//! - A failed node serves no requests. Its data is restored from the remaining copies to other
//!   nodes, `rebuild_active` units at a time, in competition with foreground I/O. Nodes may also
//!   fail during the run. Operations in progress on a failed node still complete.
//! - Events of the plan can remove a node and return it ([`absence`]).
//! - No node stores unwritten data. Reads of unwritten data return zeroes without further I/O.
//!
//! One instance of this block serves all nodes.

mod absence;

use self::absence::Absence;
use super::context::{Block, BlockRef, Blocks, Builder, Context, NodeFailure};
use super::inside::Source;
use super::losses::Change;
use super::request::{Action, Request, scatter};
use crate::spec::{ModelError, Reader};
use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

const NOWHERE: u16 = u16::MAX;
/// Maximum number of copies that are recorded for a unit.
const COPIES: usize = 4;

#[derive(Clone)]
struct Replicate {
    below: BlockRef,
    nic: Option<BlockRef>,
    cpu: Option<BlockRef>,
    copies: usize,
    quorum: usize,
    unit_bytes: u64,
    local: bool,
    nodes: u16,
    compute_nodes: u16,
    failed: std::ops::Range<u16>,
    failing: NodeFailure,
    /// Nodes that were removed by events.
    absence: Absence,
    capacity_units: f64,
    /// True if the model states the capacity of a node.
    has_capacity: bool,
    used: Vec<f64>,
    /// For each node: the unit range that is being placed.
    runs: Vec<(u64, u64)>,
    /// The nodes that store copies of a unit, for each file and each of its units.
    places: Vec<Large<[u16; COPIES]>>,
    remote_ns: f64,
    erasure_share: f64,
    erasure_data: u16,
    decode_ns_per_byte: f64,
    rebuild_active: u32,
    rebuilding: u32,
    rebuild_next: (usize, usize),
    rebuilt: u64,
    own: u32,
    local_reads: u64,
    remote_reads: u64,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the storage of each node")?;
    let (nic, cpu) = (reader.block_or_none("nic")?, reader.block_or_none("cpu")?);
    let most = (COPIES as u64).min(u64::from(builder.nodes));
    let copies = reader.count_or("copies", 2.min(most), 1, most)?;
    let unit_bytes = reader.count_or("unit_bytes", 4 << 20, 4096, 1 << 40)?;
    let failed = builder.failed.clone();
    let lost = failed.len() as u64;
    let failing = builder.failing.clone();
    if !failing.nodes.is_empty() && !failed.is_empty() {
        let reason = "requires that only one of `failed_nodes` and `failing_nodes` is set";
        return Err(reader.bad("copies", reason));
    }
    let lost = lost.max(failing.nodes.len() as u64);
    if lost >= copies && lost > 0 {
        let reason = format!("is {copies}: if {lost} nodes fail, data would be lost");
        return Err(reader.bad("copies", &reason));
    }
    if lost > 0 {
        // The rebuild starts shortly after the start of the run. Its progress is checked ten times
        // a second.
        builder.tick_every(100_000_000);
    }
    let capacity = reader.number_or("node_capacity_bytes", 1e18, 1.0, 1e18)?;
    let rebuild_after_s = reader.number_or("rebuild_after_s", 0.0, 0.0, 1e6)?;
    Ok(Box::new(Replicate {
        below: builder.find(below),
        nic: builder.find_or_none(nic),
        cpu: builder.find_or_none(cpu),
        copies: copies as usize,
        quorum: reader.count_or("quorum", copies, 1, copies)? as usize,
        unit_bytes,
        local: reader.flag_or("local", true)?,
        nodes: builder.nodes,
        compute_nodes: builder.compute_nodes,
        failed,
        failing,
        absence: Absence::new(rebuild_after_s),
        capacity_units: capacity / unit_bytes as f64,
        has_capacity: reader.has("node_capacity_bytes"),
        used: vec![0.0; usize::from(builder.nodes)],
        runs: vec![(0, 0); usize::from(builder.nodes)],
        places: Vec::new(),
        remote_ns: 1e3 * reader.number_or("remote_us", 0.0, 0.0, 1e6)?,
        erasure_share: reader.number_or("erasure_share", 0.0, 0.0, 1.0)?,
        erasure_data: reader.count_or("erasure_data", 4, 1, 64)? as u16,
        decode_ns_per_byte: reader.number_or("decode_ns_per_byte", 1.0, 0.0, 1e3)?,
        rebuild_active: reader.count_or("rebuild_active", 2, 0, 10_000)? as u32,
        rebuilding: 0,
        rebuild_next: (0, 0),
        rebuilt: 0,
        own: builder.block,
        local_reads: 0,
        remote_reads: 0,
    }))
}

impl Replicate {
    fn cold(&self, hash: u64) -> bool {
        ((hash >> 11) as f64) < self.erasure_share * (1u64 << 53) as f64
    }

    /// Returns the nodes of a unit's copies. Places a new unit on live nodes. If `laid` is true,
    /// the unit is placed before nodes fail, so any node may store the unit.
    fn place(&mut self, request: &Request, unit: u64, laid: bool) -> [u16; COPIES] {
        let (file, at) = (request.file as usize, unit as usize);
        if self.places.len() <= file {
            self.places.resize_with(file + 1, Large::new);
        }
        let units = &mut self.places[file];
        if units.len() <= at {
            units.resize(at + 1, [NOWHERE; COPIES]);
        }
        if self.places[file][at][0] == NOWHERE {
            self.places[file][at] = self.choose(request, unit, laid);
        }
        self.places[file][at]
    }

    fn choose(&mut self, request: &Request, unit: u64, laid: bool) -> [u16; COPIES] {
        let failed = if laid { 0..0 } else { self.failed.clone() };
        let hash = scatter(request.key(unit));
        let copies = if self.cold(hash) { 1 } else { self.copies };
        let mut chosen = [NOWHERE; COPIES];
        let weight = request.stored_share;
        for copy in 0..copies {
            let home = usize::from(request.node);
            // If a node is full, first copies are placed on other nodes.
            let room = self.used[home] + weight <= self.capacity_units;
            let here = copy == 0 && self.local && room && !failed.contains(&request.node);
            chosen[copy] = if here {
                request.node
            } else {
                self.emptier(scatter(hash ^ copy as u64), &chosen[..copy], &failed)
            };
            self.used[usize::from(chosen[copy])] += weight;
        }
        chosen
    }

    /// A hash selects two of the nodes that have no copy. Returns the emptier of the two.
    fn emptier(&self, hash: u64, taken: &[u16], failed: &std::ops::Range<u16>) -> u16 {
        if self.absence.any_lost() {
            return self.emptier_present(hash, taken, failed);
        }
        let free = CopyTargets::new(self.nodes, taken, failed);
        if free.count == 0 {
            return taken.first().copied().unwrap_or(0);
        }
        let (a, b) = (free.pick(hash & 0xffff_ffff), free.pick(hash >> 32));
        let chosen = if self.used[usize::from(b)] < self.used[usize::from(a)] { b } else { a };
        self.storage_only(hash, taken, failed)
            .filter(|node| self.used[usize::from(*node)] < self.used[usize::from(chosen)])
            .unwrap_or(chosen)
    }

    /// A hash selects two of the nodes without load. Returns the emptier of the two.
    fn storage_only(&self, hash: u64, taken: &[u16], failed: &std::ops::Range<u16>) -> Option<u16> {
        let count = u64::from(self.nodes - self.compute_nodes);
        let pick = |hash: u64| {
            let node = self.compute_nodes + (hash % count) as u16;
            (!taken.contains(&node) && !failed.contains(&node)).then_some(node)
        };
        let two =
            (count > 0).then(|| [pick(scatter(hash) & 0xffff_ffff), pick(scatter(hash) >> 32)]);
        let used = |node: &u16| self.used[usize::from(*node)];
        two?.into_iter().flatten().min_by(|a, b| used(a).total_cmp(&used(b)))
    }

    /// Executes a request on another node: sends `out` bytes to that node, and receives a reply of
    /// `back` bytes.
    fn visit(&self, request: &Request, node: u16, out: u64, back: u64, cx: &mut Context<'_>) {
        let stored = |bytes: u64| (bytes as f64 * request.stored_share) as u64;
        let remote = Request { node, ..*request };
        let home = request.node;
        self.carry(home, node, stored(out).max(200), cx);
        if let Some(cpu) = self.cpu {
            cx.charge(cpu, node, self.remote_ns as u64, false);
        }
        cx.route(self.below, &remote);
        self.carry(node, home, stored(back).max(200), cx);
    }

    fn carry(&self, from: u16, to: u16, bytes: u64, cx: &mut Context<'_>) {
        if let Some(nic) = self.nic {
            cx.charge(nic, from, bytes, true);
            cx.charge(nic, to, bytes, false);
        }
    }

    fn read(&mut self, request: &Request, unit: u64, cx: &mut Context<'_>) {
        let units = self.places.get(request.file as usize);
        let place = units.and_then(|units| units.get(unit as usize)).copied();
        let Some(nodes) = place.filter(|nodes| nodes[0] != NOWHERE) else {
            cx.serve(Source::Zero);
            return;
        };
        if self.absence.any_touched() {
            self.read_degraded(request, unit, nodes, cx);
            return;
        }
        let alive = |n: &u16| *n != NOWHERE && !self.failed.contains(n);
        if nodes.contains(&request.node) && !self.failed.contains(&request.node) {
            self.local_reads += 1;
            cx.route(self.below, request);
            return;
        }
        self.remote_reads += 1;
        cx.remote = true;
        let live = nodes.into_iter().filter(alive).count() as u64;
        if live == 0 {
            self.decode(request, unit, cx);
            return;
        }
        let pick = (scatter(request.key(unit) ^ 0x5ca1e) % live) as usize;
        if let Some(node) = nodes.into_iter().filter(alive).nth(pick) {
            self.visit(request, node, 0, request.size_bytes, cx);
        }
    }

    /// Reads strips of an erasure-coded unit whose node has failed, and decodes them.
    fn decode(&self, request: &Request, unit: u64, cx: &mut Context<'_>) {
        let live: Vec<u16> = (0..self.nodes).filter(|n| !self.failed.contains(n)).collect();
        let start = scatter(request.key(unit)) as usize;
        cx.program.fork();
        for strip in 0..usize::from(self.erasure_data) {
            let node = live[(start + strip) % live.len().max(1)];
            cx.program.branch();
            if node == request.node {
                cx.route(self.below, request);
            } else {
                self.visit(request, node, 0, request.size_bytes, cx);
            }
            cx.program.end_branch();
        }
        cx.program.join(usize::MAX);
        if let Some(cpu) = self.cpu {
            let bytes = request.size_bytes as f64 * f64::from(self.erasure_data);
            cx.charge(cpu, request.node, (bytes * self.decode_ns_per_byte) as u64, false);
        }
    }

    fn write(&mut self, request: &Request, unit: u64, cx: &mut Context<'_>) {
        let nodes = self.place(request, unit, false);
        let nodes = match self.absence.any_lost() {
            true => self.write_degraded(request, unit, nodes, cx),
            false => nodes,
        };
        cx.program.fork();
        // The lookup on this node was already prefetched. Only now is it known which nodes have the
        // other copies.
        for &node in nodes.iter().filter(|&&n| n != NOWHERE && n != request.node) {
            cx.blocks.hint(self.below, &Request { node, ..*request });
        }
        for node in nodes.into_iter().filter(|n| *n != NOWHERE && !self.failed.contains(n)) {
            cx.program.branch();
            if node == request.node {
                cx.route(self.below, request);
            } else {
                self.visit(request, node, request.size_bytes, 0, cx);
            }
            cx.program.end_branch();
        }
        cx.program.join(self.quorum);
    }

    /// Starts to copy data of failed nodes to the remaining nodes.
    fn rebuild(&mut self, cx: &mut Context<'_>) {
        let now_ns = cx.sim.now_ns();
        let needed = !self.failed.is_empty() || self.absence.needs_rebuild(now_ns);
        while needed && self.rebuilding < self.rebuild_active {
            let Some((file, unit)) = self.next_lost(now_ns, cx.blocks) else { return };
            let nodes = self.places[file][unit];
            let key = (file as u32, unit as u64);
            let live = |n: &&u16| {
                let is_there = **n != NOWHERE && !self.failed.contains(*n);
                is_there
                    && self.absence.is_fresh(**n, key)
                    && self.disk_loss(**n, key, cx.blocks).is_none()
            };
            let Some(&source) = nodes.iter().find(live) else { continue };
            let hash = scatter((file as u64) << 40 | unit as u64);
            let target = match self.absence.take_stale(&nodes, key) {
                Some(returned) => returned,
                None => {
                    let target = self.emptier(hash, &nodes, &self.failed);
                    if nodes.contains(&target) {
                        // No other node is left that could store the copy.
                        continue;
                    }
                    let gone = |n: &u16| {
                        self.failed.contains(n)
                            || self.absence.is_rebuilt(*n, now_ns)
                            || self.is_disk_rebuilt(*n, key, now_ns, cx.blocks)
                    };
                    if let Some(at) = nodes.iter().position(gone) {
                        self.places[file][unit][at] = target;
                    }
                    target
                }
            };
            let offset = unit as u64 * self.unit_bytes;
            let mut read = Request::new(Action::Read, file as u32, offset, self.unit_bytes);
            read.node = source;
            read.background = true;
            read.sequential = true;
            self.rebuilding += 1;
            let own = self.own;
            cx.launch(|cx| {
                cx.route(self.below, &read);
                self.carry(source, target, self.unit_bytes, cx);
                cx.route(self.below, &Request { action: Action::Write, node: target, ..read });
                cx.program.notice(own, 0);
            });
        }
    }

    /// Returns the next unit that has lost a copy.
    fn next_lost(&mut self, now_ns: u64, blocks: &Blocks) -> Option<(usize, usize)> {
        let (mut file, mut unit) = self.rebuild_next;
        while let Some(units) = self.places.get(file) {
            while let Some(nodes) = units.get(unit) {
                let key = (file as u32, unit as u64);
                let lost = |n: &u16| {
                    self.failed.contains(n)
                        || self.absence.needs_copy(*n, key, now_ns)
                        || self.is_disk_rebuilt(*n, key, now_ns, blocks)
                };
                if nodes.iter().any(lost) {
                    self.rebuild_next = (file, unit + 1);
                    return Some((file, unit));
                }
                unit += 1;
            }
            (file, unit) = (file + 1, 0);
        }
        self.rebuild_next = (file, unit);
        None
    }
}

/// The nodes that can store another copy of a unit.
struct CopyTargets {
    /// Ranges of excluded nodes, in ascending order. No two ranges are adjacent.
    gaps: [(u16, u16); COPIES + 1],
    gaps_len: usize,
    count: u64,
}

impl CopyTargets {
    fn new(nodes: u16, taken: &[u16], failed: &std::ops::Range<u16>) -> Self {
        let mut free = Self { gaps: [(0, 0); COPIES + 1], gaps_len: 0, count: u64::from(nodes) };
        let failed = (failed.start.min(nodes), failed.end.min(nodes));
        if failed.0 < failed.1 {
            free.leave_out(failed);
        }
        for &node in taken.iter().filter(|n| **n < nodes) {
            let known = free.gaps[..free.gaps_len].iter().any(|gap| (gap.0..gap.1).contains(&node));
            if !known {
                free.leave_out((node, node + 1));
            }
        }
        free
    }

    fn leave_out(&mut self, gap: (u16, u16)) {
        let at = self.gaps[..self.gaps_len].iter().position(|other| other.0 > gap.0);
        let at = at.unwrap_or(self.gaps_len);
        self.gaps.copy_within(at..self.gaps_len, at + 1);
        self.gaps[at] = gap;
        self.gaps_len += 1;
        self.count -= u64::from(gap.1 - gap.0);
    }

    /// Returns a node, chosen by a hash. There is at least one node.
    fn pick(&self, hash: u64) -> u16 {
        let mut node = (hash % self.count) as u16;
        for (start, end) in &self.gaps[..self.gaps_len] {
            if node >= *start {
                node += end - start;
            }
        }
        node
    }
}

impl Block for Replicate {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        if !self.failing.nodes.is_empty() {
            self.failed = self.failing.by(cx.sim.now_ns());
        }
        if matches!(request.action, Action::Flush | Action::Meta) {
            return;
        }
        cx.each_part(request, self.unit_bytes, |part, unit, cx| match request.action {
            Action::Read => self.read(part, unit, cx),
            _ => self.write(part, unit, cx),
        });
    }

    /// Most of a node's data is stored on the node itself.
    fn hint(&self, request: &Request, blocks: &Blocks) {
        let unit = request.first_unit(self.unit_bytes) as usize;
        let place = self.places.get(request.file as usize).and_then(|units| units.get(unit));
        if let Some(place) = place {
            hint::prefetch(place);
        }
        blocks.hint(self.below, request);
    }

    fn notice(&mut self, value: u64, cx: &mut Context<'_>) {
        if value == absence::START {
            // If an earlier rebuild has already checked a unit, the unit may have lost copies since
            // then.
            self.rebuild_next = (0, 0);
        } else {
            self.rebuilding -= 1;
            self.rebuilt += 1;
        }
        self.rebuild(cx);
    }

    fn changed(&mut self, change: Change, cx: &mut Context<'_>) {
        self.node_changed(change, cx);
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        if !self.failing.nodes.is_empty() {
            self.failed = self.failing.by(cx.sim.now_ns());
        }
        self.rebuild(cx);
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        // Adjacent units on the same node are passed on as one range.
        let mut runs = std::mem::take(&mut self.runs);
        let below = self.below;
        let mut lay = |node: usize, (start, end): (u64, u64)| {
            if start < end {
                let part = request.range(start, end - start);
                cx.lay(below, &Request { node: node as u16, ..part });
            }
        };
        for unit in request.units(self.unit_bytes) {
            let nodes = self.place(request, unit, true);
            let start = request.offset_bytes.max(unit * self.unit_bytes);
            let end = (request.offset_bytes + request.size_bytes).min((unit + 1) * self.unit_bytes);
            for node in nodes.into_iter().filter(|n| *n != NOWHERE).map(usize::from) {
                if runs[node].1 == start {
                    runs[node].1 = end;
                } else {
                    lay(node, std::mem::replace(&mut runs[node], (start, end)));
                }
            }
        }
        for (node, run) in runs.iter_mut().enumerate() {
            lay(node, std::mem::take(run));
        }
        self.runs = runs;
    }

    fn fullest_share(&self, blocks: &Blocks) -> Option<f64> {
        let mut fullest: Option<f64> = None;
        for (node, used) in self.used.iter().enumerate() {
            let devices = blocks.capacity_bytes(self.below, node as u16);
            let devices = devices.map(|bytes| bytes / self.unit_bytes as f64);
            let stated = Some(self.capacity_units).filter(|_| self.has_capacity);
            let capacity = devices.into_iter().chain(stated).reduce(f64::min)?;
            fullest = Some(fullest.map_or(used / capacity, |most| most.max(used / capacity)));
        }
        fullest
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        let reads = (self.local_reads + self.remote_reads).max(1) as f64;
        each("local_read_share", self.local_reads as f64 / reads);
        let fullest = self.used.iter().copied().fold(0.0, f64::max);
        each("fullest_node_share", fullest / self.capacity_units);
        if !self.failed.is_empty() || self.absence.any_touched() {
            each("rebuilt_units", self.rebuilt as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The hash is an index into the list of nodes that are neither excluded nor failed. Every
        /// node in this list can be selected.
        #[test]
        fn free_nodes_are_those_that_are_left(
            nodes in 1u16..12,
            taken in prop::collection::vec(prop_oneof![0u16..14, Just(NOWHERE)], 0..COPIES),
            failed in (0u16..14, 0u16..4),
        ) {
            let failed = failed.0..failed.0 + failed.1;
            let left = |n: &u16| !taken.contains(n) && !failed.contains(n);
            let left: Vec<u16> = (0..nodes).filter(left).collect();
            let free = CopyTargets::new(nodes, &taken, &failed);
            prop_assert_eq!(free.count, left.len() as u64);
            for hash in 0..2 * left.len() as u64 {
                prop_assert_eq!(free.pick(hash), left[hash as usize % left.len()]);
            }
        }
    }
}
