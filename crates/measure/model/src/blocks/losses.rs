//! Nodes and devices that a system loses through events of a plan.
//!
//! A lost component serves no requests. Until the system notices the loss (`model.detect_s`),
//! requests that need the component wait; afterwards the blocks route around it, or refuse
//! requests. Work that was in progress on the component still completes.

use crate::core::StationId;

/// A component of the system, if the system can lose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// A node, with all of its devices.
    Node(u16),
    /// A device. The fields are the index of its block, its node, and its number in the block.
    Device(u32, u16, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Lost(Component),
    /// The component has returned. A node returns with the data that it had when it was lost. A
    /// lost device is replaced by an empty device.
    Back(Component),
}

/// Loss of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Time at which the system notices the loss of the component.
    pub(crate) noticed_ns: u64,
}

/// Lost components of a system.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    /// The station at which requests wait until the system notices a loss.
    pub(crate) wait: StationId,
    detect_ns: u64,
    /// Number of nodes that run load. These nodes have the lowest numbers.
    compute_nodes: u16,
    nodes: Vec<Option<Loss>>,
    /// For each station: the loss of the device that it models.
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

    /// Records that a node was lost, or has returned.
    pub(crate) fn set_node(&mut self, node: u16, is_lost: bool, now_ns: u64) {
        let loss = is_lost.then(|| self.loss(now_ns));
        if let Some(state) = self.nodes.get_mut(usize::from(node)) {
            *state = loss;
        }
    }

    /// Records that the devices that some stations model were lost, or have returned.
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

    /// Returns the loss of a node; `None` if the node is not lost.
    #[inline]
    pub(crate) fn node(&self, node: u16) -> Option<Loss> {
        self.nodes.get(usize::from(node)).copied().flatten()
    }

    /// Returns the loss of the device that a station models; `None` if the device is not lost.
    pub(crate) fn device(&self, station: StationId) -> Option<Loss> {
        self.devices.get(station.0 as usize).copied().flatten()
    }

    /// If a file's own node is lost, another node runs the load of the file. Returns that node, or
    /// `None` if no node is left.
    pub(crate) fn stand_in(&self, file: u32) -> Option<u16> {
        let live = || (0..self.compute_nodes).filter(|node| self.node(*node).is_none());
        live().nth(file as usize % live().count().max(1))
    }
}
