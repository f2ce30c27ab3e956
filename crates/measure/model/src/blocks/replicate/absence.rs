//! Nodes that a cluster loses through an event, and that may return.
//!
//! - Until the loss is noticed, requests that need a copy on the node wait. Afterwards, reads use
//!   the other copies, and writes update only the other copies.
//! - `rebuild_after_s` after the notice, the node's copies are rebuilt on the other nodes, in the
//!   same way as for failed nodes.
//! - A node that returns has the data that it had when it was lost. Its copies of units written in
//!   the meantime are stale: they serve no reads until they are copied again. Copies that were
//!   rebuilt on other nodes stay there.
//! - If a node loses a disk, it loses the data on that disk. A copy that is partly on the lost disk
//!   is treated like a copy on a lost node: other nodes serve its reads, and the whole unit is
//!   rebuilt on another node. New data of the node goes to its other disks. A disk that returns
//!   still has its data.
//! - A request fails if no copy of its data is left. Cold units with erasure coding are decoded
//!   instead.

use std::collections::BTreeMap;

use super::{COPIES, NOWHERE, Replicate};
use crate::blocks::context::BlockRef;
use crate::blocks::keys::Bits;
use crate::blocks::losses::{Change, Component, Loss};
use crate::blocks::request::{Action, Request, scatter};
use crate::blocks::{Blocks, Context};
use crate::core::NS_PER_S;

/// Value of the notice that starts the rebuild of a lost node.
pub(super) const START: u64 = 1;

/// A file number and a unit number.
type Key = (u32, u64);

/// Nodes and disks that were removed by events.
#[derive(Clone)]
pub(super) struct Absence {
    rebuild_after_ns: u64,
    /// For each lost node: its loss. The key is the node number.
    lost: BTreeMap<u16, Loss>,
    /// For each lost disk: its loss. The key contains the node and the disk.
    disks: BTreeMap<(u16, Component), Loss>,
    /// For each node that was lost at any time: the units that were written while it was lost, and
    /// the number of these units.
    stale: BTreeMap<u16, (Bits, u64)>,
}

impl Absence {
    pub(super) fn new(rebuild_after_s: f64) -> Self {
        let rebuild_after_ns = (rebuild_after_s * NS_PER_S as f64) as u64;
        Self {
            rebuild_after_ns,
            lost: BTreeMap::new(),
            disks: BTreeMap::new(),
            stale: BTreeMap::new(),
        }
    }

    /// Returns true if any node is currently lost.
    #[inline]
    pub(super) fn any_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns true if any node was ever lost, or if any disk is lost now.
    #[inline]
    pub(super) fn any_touched(&self) -> bool {
        !self.stale.is_empty() || !self.disks.is_empty()
    }

    /// Returns the latest loss among the disks of a node.
    fn disk_loss(&self, node: u16) -> Option<Loss> {
        let own = self.disks.iter().filter(|((of, _), _)| *of == node);
        own.map(|(_, loss)| *loss).max_by_key(|loss| loss.noticed_ns)
    }

    fn is_due(&self, loss: &Loss, now_ns: u64) -> bool {
        loss.noticed_ns.saturating_add(self.rebuild_after_ns) <= now_ns
    }

    fn is_stale(&self, node: u16, (file, unit): Key) -> bool {
        self.stale.get(&node).is_some_and(|(units, count)| *count > 0 && units.has(file, unit))
    }

    /// Returns true if a node stores a copy of a unit and the copy is current.
    pub(super) fn is_fresh(&self, node: u16, key: Key) -> bool {
        !self.lost.contains_key(&node) && !self.is_stale(node, key)
    }

    /// Returns true if other nodes must rebuild the copies that a node stored.
    pub(super) fn is_rebuilt(&self, node: u16, now_ns: u64) -> bool {
        self.lost.get(&node).is_some_and(|loss| self.is_due(loss, now_ns))
    }

    /// Returns true if a node's copy of a unit is stale, so that it must be copied again.
    pub(super) fn needs_copy(&self, node: u16, key: Key, now_ns: u64) -> bool {
        match self.lost.contains_key(&node) {
            true => self.is_rebuilt(node, now_ns),
            false => self.is_stale(node, key),
        }
    }

    /// Returns true if there may be a unit that needs a new copy.
    pub(super) fn needs_rebuild(&self, now_ns: u64) -> bool {
        let stale =
            |(node, (_, count)): (&u16, &(Bits, u64))| *count > 0 && !self.lost.contains_key(node);
        let losses = || self.lost.values().chain(self.disks.values());
        self.stale.iter().any(stale) || losses().any(|loss| self.is_due(loss, now_ns))
    }

    /// Returns a node that has returned and has a stale copy of a unit. From this call on, the copy
    /// counts as current.
    pub(super) fn take_stale(&mut self, nodes: &[u16], (file, unit): Key) -> Option<u16> {
        let back =
            |node: &&u16| !self.lost.contains_key(node) && self.is_stale(**node, (file, unit));
        let node = *nodes.iter().find(back)?;
        let (units, count) = self.stale.get_mut(&node)?;
        units.unset(file, unit);
        *count -= 1;
        Some(node)
    }

    fn note_write(&mut self, node: u16, (file, unit): Key) {
        if let Some((units, count)) = self.stale.get_mut(&node) {
            *count += u64::from(units.set(file, unit));
        }
    }
}

impl Replicate {
    /// Handles the loss or the return of a node.
    pub(super) fn node_changed(&mut self, change: Change, cx: &mut Context<'_>) {
        match change {
            Change::Lost(Component::Node(node)) => {
                let Some(loss) = cx.node_loss(node) else { return };
                self.absence.lost.insert(node, loss);
                self.absence.stale.entry(node).or_default();
                self.start_rebuild(loss, cx);
            }
            Change::Lost(disk @ Component::Device(block, node, device)) if self.nodes > 1 => {
                let Some(loss) = cx.device_loss(BlockRef(block), node, device) else { return };
                self.absence.disks.insert((node, disk), loss);
                self.start_rebuild(loss, cx);
            }
            Change::Back(disk @ Component::Device(_, node, _)) => {
                self.absence.disks.remove(&(node, disk));
            }
            Change::Back(Component::Node(node)) => {
                self.absence.lost.remove(&node);
                self.rebuild_next = (0, 0);
                self.rebuild(cx);
            }
            Change::Lost(_) => {}
        }
    }

    fn start_rebuild(&self, loss: Loss, cx: &mut Context<'_>) {
        let start_ns = loss.noticed_ns.saturating_add(self.absence.rebuild_after_ns);
        let (own, wait_ns) = (self.own, start_ns.saturating_sub(cx.sim.now_ns()));
        cx.launch(|cx| {
            cx.delay(wait_ns);
            cx.program.notice(own, START << 16);
        });
    }

    /// Returns the loss of a disk, if that disk stores a part of a unit on a node.
    pub(super) fn disk_loss(&self, node: u16, (file, unit): Key, blocks: &Blocks) -> Option<Loss> {
        let loss = self.absence.disk_loss(node)?;
        let offset = unit * self.unit_bytes;
        let mut whole = Request::new(Action::Read, file, offset, self.unit_bytes);
        whole.node = node;
        blocks.is_lost(self.below, &whole).then_some(loss)
    }

    /// Returns true if a disk is lost and a node's copy of a unit must therefore be rebuilt on
    /// another node.
    pub(super) fn is_disk_rebuilt(
        &self,
        node: u16,
        key: Key,
        now_ns: u64,
        blocks: &Blocks,
    ) -> bool {
        let loss = self.disk_loss(node, key, blocks);
        loss.is_some_and(|loss| self.absence.is_due(&loss, now_ns))
    }

    /// Reads a unit while a node is lost or has stale copies.
    pub(super) fn read_degraded(
        &mut self,
        request: &Request,
        unit: u64,
        nodes: [u16; COPIES],
        cx: &mut Context<'_>,
    ) {
        let key = (request.file, unit);
        let stored = |n: &u16| *n != NOWHERE && !self.failed.contains(n);
        let blocks = &*cx.blocks;
        let on_lost_disk =
            nodes.map(|n| stored(&n).then(|| self.disk_loss(n, key, blocks)).flatten());
        let disk =
            |n: &u16| nodes.iter().position(|node| node == n).and_then(|at| on_lost_disk[at]);
        let fresh = |n: &u16| stored(n) && self.absence.is_fresh(*n, key) && disk(n).is_none();
        if nodes.contains(&request.node) && fresh(&request.node) {
            self.local_reads += 1;
            cx.route(self.below, request);
            return;
        }
        self.remote_reads += 1;
        cx.remote = true;
        // Until the system notices a loss, it still sends requests to the lost node.
        let loss_of = |n: &u16| self.absence.lost.get(n).copied().or_else(|| disk(n));
        let unnoticed = |n: &u16| stored(n) && loss_of(n).is_some_and(|loss| !cx.is_noticed(loss));
        let hash = scatter(request.key(unit) ^ 0x5ca1e);
        let requested: Vec<u16> = nodes.into_iter().filter(|n| fresh(n) || unnoticed(n)).collect();
        let local = requested.iter().find(|node| **node == request.node);
        let first =
            local.or_else(|| requested.get((hash % requested.len().max(1) as u64) as usize));
        if let Some(loss) = first.and_then(loss_of) {
            cx.wait_for_notice(loss);
        }
        let live: Vec<u16> = nodes.into_iter().filter(fresh).collect();
        match live.get((hash % live.len().max(1) as u64) as usize) {
            Some(&node) => self.visit(request, node, 0, request.size_bytes, cx),
            None if self.is_coded(&nodes) => self.decode(request, unit, cx),
            None => cx.refuse(),
        }
    }

    /// Returns the nodes that receive a write while a node is lost.
    pub(super) fn write_degraded(
        &mut self,
        request: &Request,
        unit: u64,
        nodes: [u16; COPIES],
        cx: &mut Context<'_>,
    ) -> [u16; COPIES] {
        let lost = |absence: &Absence, n: u16| absence.lost.get(&n).copied();
        let mut notices = nodes.iter().filter_map(|n| lost(&self.absence, *n));
        if let Some(loss) = notices.find(|loss| !cx.is_noticed(*loss)) {
            cx.wait_for_notice(loss);
        }
        let mut live = nodes;
        for node in &mut live {
            if lost(&self.absence, *node).is_some() {
                self.absence.note_write(*node, (request.file, unit));
                *node = NOWHERE;
            }
        }
        if live.iter().any(|n| *n != NOWHERE && !self.failed.contains(n)) {
            return live;
        }
        if self.is_coded(&nodes) {
            // A cold unit is placed on new nodes.
            let placed = self.choose(request, unit, false);
            if let Some(units) = self.places.get_mut(request.file as usize) {
                units[unit as usize] = placed;
            }
            return placed;
        }
        cx.refuse();
        live
    }

    /// Returns true if a unit is stored as one copy with parity on other nodes.
    fn is_coded(&self, nodes: &[u16; COPIES]) -> bool {
        self.erasure_share > 0.0 && nodes.iter().filter(|n| **n != NOWHERE).count() == 1
    }

    /// A hash selects two of the nodes that are not lost and have no copy. Returns the emptier of
    /// the two.
    pub(super) fn emptier_present(
        &self,
        hash: u64,
        taken: &[u16],
        failed: &std::ops::Range<u16>,
    ) -> u16 {
        let free: Vec<u16> = (0..self.nodes)
            .filter(|n| !taken.contains(n) && !failed.contains(n))
            .filter(|n| !self.absence.lost.contains_key(n))
            .collect();
        let pick = |hash: u64| free.get((hash % free.len().max(1) as u64) as usize).copied();
        let (Some(a), Some(b)) = (pick(hash & 0xffff_ffff), pick(hash >> 32)) else {
            return taken.first().copied().unwrap_or(0);
        };
        if self.used[usize::from(b)] < self.used[usize::from(a)] { b } else { a }
    }
}
