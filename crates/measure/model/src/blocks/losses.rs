//! Nodes and devices that events of a plan take away from a system.
//!
//! From its loss on, a component serves nothing. Until the system notices (`model.detect_s`),
//! requests that need the component wait; afterwards the blocks route around it, or refuse. Work
//! that was in progress at the component still completes.

use super::context::{BlockRef, Context};
use crate::core::StationId;

/// Time that a refused request takes.
const REFUSAL_NS: u64 = 1_000_000;

/// Component of a system that can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// A node, with everything in it.
    Node(u16),
    /// A device: index of its block, node, number in the block.
    Device(u32, u16, u32),
}

/// Change of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The component is lost.
    Lost(Component),
    /// A node returned with the data of its loss, or a device was replaced by an empty one.
    Back(Component),
}

/// Loss of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Time at which the system notices it.
    pub(crate) noticed_ns: u64,
}

/// Lost components of a system.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    /// Delay of requests that wait until a loss is noticed.
    wait: StationId,
    detect_ns: u64,
    /// Nodes that run load; their numbers are below this.
    compute_nodes: u16,
    nodes: Vec<Option<Loss>>,
    /// By station.
    devices: Vec<Option<Loss>>,
}

impl Losses {
    pub(crate) fn new(
        wait: StationId,
        detect_ns: u64,
        (nodes, compute_nodes): (u16, u16),
        stations: usize,
    ) -> Self {
        let nodes = vec![None; usize::from(nodes)];
        Self { wait, detect_ns, compute_nodes, nodes, devices: vec![None; stations] }
    }

    fn loss(&self, now_ns: u64) -> Loss {
        Loss { noticed_ns: now_ns + self.detect_ns }
    }

    /// Records that a node is lost, or is back.
    pub(crate) fn set_node(&mut self, node: u16, is_lost: bool, now_ns: u64) {
        let loss = is_lost.then(|| self.loss(now_ns));
        if let Some(state) = self.nodes.get_mut(usize::from(node)) {
            *state = loss;
        }
    }

    /// The same for the devices of some stations.
    pub(crate) fn set_devices(
        &mut self,
        stations: std::ops::Range<u32>,
        is_lost: bool,
        now_ns: u64,
    ) {
        let loss = is_lost.then(|| self.loss(now_ns));
        let range = stations.start as usize..stations.end as usize;
        self.devices.get_mut(range).into_iter().flatten().for_each(|state| *state = loss);
    }

    /// Returns the loss of a node; `None` while it serves.
    #[inline]
    pub(crate) fn node(&self, node: u16) -> Option<Loss> {
        self.nodes.get(usize::from(node)).copied().flatten()
    }

    /// Returns the loss of the device behind a station; `None` while it serves.
    pub(crate) fn device(&self, station: StationId) -> Option<Loss> {
        self.devices.get(station.0 as usize).copied().flatten()
    }

    /// Returns the node that runs the load of a lost node's file, `None` if no node is left.
    fn stand_in(&self, file: u32) -> Option<u16> {
        let live = || (0..self.compute_nodes).filter(|node| self.node(*node).is_none());
        live().nth(file as usize % live().count().max(1))
    }
}

impl Context<'_> {
    /// Returns the loss of a node; `None` while it serves.
    #[inline]
    pub(crate) fn node_loss(&self, node: u16) -> Option<Loss> {
        self.blocks.losses.as_ref()?.node(node)
    }

    /// Returns the loss of the device behind a station.
    #[inline]
    pub(crate) fn station_loss(&self, station: StationId) -> Option<Loss> {
        self.blocks.losses.as_ref()?.device(station)
    }

    /// Returns the loss of a device of a block.
    #[inline]
    pub(crate) fn device_loss(&self, block: BlockRef, node: u16, device: u32) -> Option<Loss> {
        self.blocks.losses.as_ref()?;
        let stations = self.blocks.stations.get(self.blocks.index(block, node))?;
        self.station_loss(StationId(stations.start + device))
    }

    /// Puts a new device in the place of a lost one.
    pub(crate) fn replace_device(&mut self, block: BlockRef, node: u16, device: u32) {
        let (at, now_ns) = (self.blocks.index(block, node), self.sim.now_ns());
        let first = self.blocks.stations.get(at).map(|stations| stations.start + device);
        if let (Some(losses), Some(first)) = (&mut self.blocks.losses, first) {
            losses.set_devices(first..first + 1, false, now_ns);
        }
    }

    /// Delays the request until the system notices a loss. Returns true if it had to wait.
    pub(crate) fn wait_for_notice(&mut self, loss: Loss) -> bool {
        if self.is_noticed(loss) {
            return false;
        }
        let from_ns = self.sim.now_ns().max(self.waited_ns);
        self.delay(loss.noticed_ns - from_ns);
        self.waited_ns = loss.noticed_ns;
        true
    }

    /// Returns true if the system has noticed a loss when the request, which may have waited for
    /// another notice, needs the component.
    pub(crate) fn is_noticed(&self, loss: Loss) -> bool {
        loss.noticed_ns <= self.sim.now_ns().max(self.waited_ns)
    }

    /// Delays the request, in a system that loses components.
    pub(crate) fn delay(&mut self, wait_ns: u64) {
        let wait = self.blocks.losses.as_ref().map(|losses| losses.wait);
        if let Some(wait) = wait.filter(|_| wait_ns > 0) {
            self.program.visit(wait, wait_ns);
        }
    }

    /// Fails a request for a lost device, once the loss is noticed.
    #[cold]
    pub(crate) fn refuse_lost(&mut self, loss: Loss) {
        self.wait_for_notice(loss);
        self.refuse();
    }

    /// Fails the request: no component is left that has its data.
    pub(crate) fn refuse(&mut self) {
        self.delay(REFUSAL_NS);
        self.refused = true;
    }

    /// Returns the node at which load enters: another one if its own is lost. `None` if no node is
    /// left, and the request was refused.
    pub(crate) fn entry_node(&mut self, node: u16, file: u32) -> Option<u16> {
        let Some(loss) = self.node_loss(node) else { return Some(node) };
        self.wait_for_notice(loss);
        let other = self.blocks.losses.as_ref().and_then(|losses| losses.stand_in(file));
        if other.is_none() {
            self.refuse();
        }
        other
    }
}
