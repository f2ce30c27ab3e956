//! Handles requests that need a lost component. Such a request waits until the system notices the
//! loss, is refused, or enters the system at another node.

use super::context::{BlockRef, Context};
use super::losses::Loss;
use crate::core::StationId;

/// Latency of a refused request.
const REFUSAL_NS: u64 = 1_000_000;

impl Context<'_> {
    /// Returns the loss of a node; `None` if the node is available.
    #[inline]
    pub(crate) fn node_loss(&self, node: u16) -> Option<Loss> {
        self.blocks.losses.as_ref()?.node(node)
    }

    /// Returns the loss of the device that a station models.
    #[inline]
    pub(crate) fn station_loss(&self, station: StationId) -> Option<Loss> {
        self.blocks.losses.as_ref()?.device(station)
    }

    #[inline]
    pub(crate) fn device_loss(&self, block: BlockRef, node: u16, device: u32) -> Option<Loss> {
        self.blocks.losses.as_ref()?;
        let stations = self.blocks.stations.get(self.blocks.index(block, node))?;
        self.station_loss(StationId(stations.start + device))
    }

    /// Replaces a lost device by a new device.
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

    /// Returns true if the request arrives at the lost component after the system has noticed the
    /// loss. The request arrives later than now if it already waits for the notice of another loss.
    pub(crate) fn is_noticed(&self, loss: Loss) -> bool {
        loss.noticed_ns <= self.sim.now_ns().max(self.waited_ns)
    }

    /// Delays the request. If the system cannot lose components, does nothing.
    pub(crate) fn delay(&mut self, wait_ns: u64) {
        let wait = self.blocks.losses.as_ref().map(|losses| losses.wait);
        if let Some(wait) = wait.filter(|_| wait_ns > 0) {
            self.program.visit(wait, wait_ns);
        }
    }

    /// Fails a request that needs a lost device. The request fails when the system notices the
    /// loss.
    #[cold]
    pub(crate) fn refuse_lost(&mut self, loss: Loss) {
        self.wait_for_notice(loss);
        self.refuse();
    }

    /// Fails the request, because no component is left that stores its data.
    pub(crate) fn refuse(&mut self) {
        self.delay(REFUSAL_NS);
        self.refused = true;
    }

    /// Returns the node at which a request enters the system: its own node or, if that is lost,
    /// another node. If no node is left, refuses the request and returns `None`.
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
