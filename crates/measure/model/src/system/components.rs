//! Finds the components of a system by their names. Events of a plan can remove components or slow
//! them down.
//!
//! `node:3` is a node of a cluster. Devices are named after their stations: `drive:7` is the
//! station `drive.7`, and `node1.hdd:2` is `node1.hdd.2`. An event that slows components down also
//! accepts the first part of these names (`drive`, `node1.hdd`, `node:1`). It also accepts the name
//! of a block (`hdd`), which selects the block on all nodes.

use super::System;
use crate::blocks::{Change, Component, Losses, shared};
use crate::core::{Order, StationId};
use crate::spec::{Reader, is_device};

/// Name of a station. Requests wait at this station until the system notices a loss.
const UNNOTICED: &str = "unnoticed-loss";
/// Maximum number of component names in an error message.
const LISTED_MAX: usize = 24;

impl System {
    /// Prepares the system for the loss of components. Must be called before the run, because it
    /// adds a station.
    pub fn expect_losses(&mut self) {
        if self.blocks.losses.is_some() {
            return;
        }
        let wait = self.sim.add_station(UNNOTICED, 1, Order::Delay);
        let nodes = (self.nodes(), self.compute_nodes());
        let losses = Losses::new(wait, self.detect_ns, nodes, self.sim.stations());
        self.blocks.losses = Some(Box::new(losses));
    }

    /// Returns the component of this name, if an event can remove it.
    ///
    /// # Errors
    /// The names of the components that exist.
    pub fn component(&self, name: &str) -> Result<Component, String> {
        let requested = normal(name);
        let mut names = Vec::new();
        for component in self.components() {
            let own = self.component_name(component);
            if normal(&own) == requested {
                return Ok(component);
            }
            names.push(own);
        }
        Err(listed(&names))
    }

    /// Returns all components that an event can remove.
    fn components(&self) -> Vec<Component> {
        let mut all = Vec::new();
        let blocks = self.spec.blocks.len();
        if (0..blocks).any(|block| shared(self.kind_of(block))) {
            all.extend((0..self.nodes()).map(Component::Node));
        }
        for block in (0..blocks).filter(|block| is_device(self.kind_of(*block))) {
            // In a cluster, the only devices that can be removed are disks, because other nodes
            // have copies of a disk's data. A flash device contains data that the model stores
            // nowhere else, so its loss would make the node fail.
            if self.nodes() > 1 && self.kind_of(block) != Some("hdd") {
                continue;
            }
            for node in 0..self.nodes() {
                let stations = &self.blocks.stations[block * self.blocks.nodes + usize::from(node)];
                let count =
                    if self.kind_of(block) == Some("ssd") { 1 } else { stations.len() as u32 };
                let device = |device| Component::Device(block as u32, node, device);
                all.extend((0..count).map(device));
            }
        }
        all
    }

    fn kind_of(&self, block: usize) -> Option<&str> {
        let (name, table) = self.spec.blocks.iter().nth(block)?;
        Reader::new(&self.spec, name, table).text("kind").ok().flatten()
    }

    fn component_name(&self, component: Component) -> String {
        match component {
            Component::Node(node) => format!("node:{node}"),
            Component::Device(block, node, device) => {
                let name = self.spec.blocks.keys().nth(block as usize);
                let name = name.map_or("", String::as_str);
                let node = if self.nodes() > 1 { format!("node{node}.") } else { String::new() };
                format!("{node}{name}:{device}")
            }
        }
    }

    /// Removes a component, or brings it back.
    pub fn set_lost(&mut self, component: Component, is_lost: bool) {
        self.expect_losses();
        let now_ns = self.sim.now_ns();
        let stations = self.device_stations(component);
        if let Some(losses) = &mut self.blocks.losses {
            match component {
                Component::Node(node) => losses.set_node(node, is_lost, now_ns),
                Component::Device(..) => losses.set_devices(stations, is_lost, now_ns),
            }
        }
        let nodes = self.blocks.nodes.max(1);
        if let (Component::Node(node), false) = (component, is_lost) {
            // A node that returns has restarted, so its memory is empty.
            let own = self.blocks.instances.iter_mut().skip(usize::from(node)).step_by(nodes);
            own.flatten().filter(|_| nodes > 1).for_each(|instance| instance.forget());
        }
        let change = if is_lost { Change::Lost(component) } else { Change::Back(component) };
        for at in 0..self.blocks.instances.len() {
            if self.blocks.instances[at].is_some() {
                let (block, node) = ((at / nodes) as u32, (at % nodes) as u16);
                self.with_block(block, node, |instance, cx| instance.changed(change, cx));
            }
        }
    }

    fn device_stations(&self, component: Component) -> std::ops::Range<u32> {
        let Component::Device(block, node, device) = component else { return 0..0 };
        let at = block as usize * self.blocks.nodes + usize::from(node);
        let all = self.blocks.stations.get(at).cloned().unwrap_or(0..0);
        if self.kind_of(block as usize) == Some("ssd") {
            all
        } else {
            all.start + device..all.start + device + 1
        }
    }

    /// Returns the stations that an event slows down. The name of such a station begins with the
    /// name of the component.
    ///
    /// # Errors
    /// The component names that an event can use. They are the first parts of station names.
    pub fn throttled(&self, name: &str) -> Result<Vec<StationId>, String> {
        let requested = normal(name);
        let stations = (0..self.sim.stations() as u32).map(StationId);
        let queues: Vec<StationId> = stations.filter(|id| !self.sim.is_delay(*id)).collect();
        let is_part = |whole: &str| {
            whole
                .strip_prefix(&requested)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let of_any_node = |name: &str| {
            let block = name.split_once('.').filter(|_| self.nodes() > 1);
            block.is_some_and(|(_, block)| is_part(block))
        };
        let matches = |id: &StationId| {
            let name = self.sim.name(*id);
            is_part(name) || of_any_node(name)
        };
        let found: Vec<StationId> = queues.iter().copied().filter(matches).collect();
        if !found.is_empty() && !requested.is_empty() {
            return Ok(found);
        }
        let mut names: Vec<String> = Vec::new();
        for id in queues {
            let name = self.sim.name(id);
            let block = name.split_once('.').filter(|_| self.nodes() > 1).map_or(name, |(_, b)| b);
            let first = block.split('.').next().unwrap_or(block).to_owned();
            if !names.contains(&first) {
                names.push(first);
            }
        }
        if self.nodes() > 1 {
            names.extend((0..self.nodes()).map(|node| format!("node:{node}")));
        }
        Err(listed(&names))
    }

    /// Sets the speed of stations as a share of their normal speed. The new speed applies to
    /// services that start later.
    pub fn set_speed(&mut self, stations: &[StationId], speed: f64) {
        stations.iter().for_each(|station| self.sim.set_speed(*station, speed));
    }
}

/// Returns the station name that corresponds to a component name. For example, `node:3.hdd:1`
/// becomes `node3.hdd.1`.
fn normal(name: &str) -> String {
    let name = name.trim();
    let name = name.strip_prefix("node:").map_or(name.to_owned(), |rest| format!("node{rest}"));
    name.replace(':', ".")
}

fn listed(names: &[String]) -> String {
    let mut text = names[..names.len().min(LISTED_MAX)].join(", ");
    if let (Some(last), true) = (names.last(), names.len() > LISTED_MAX) {
        text = format!("{text}, … {last}");
    }
    text
}
