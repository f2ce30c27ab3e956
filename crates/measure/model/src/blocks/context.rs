//! Interfaces that a block uses while it handles a request and while it is constructed.

use super::inside::Source;
use super::losses::{Change, Losses};
use super::request::Request;
use crate::core::rng::Stream;
use crate::core::{Order, Program, Sim, StationId};
use crate::spec::ModelError;

/// Index of a block in the model's list of blocks. The block index and the node index together
/// identify an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockRef(pub(crate) u32);

/// A background program that a block launched.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: Program,
}

/// The writes of a load to random places of one file, at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyWrites {
    pub file: u32,
    /// Size of the file.
    pub size_bytes: u64,
    pub written_bytes_per_s: f64,
}

/// A building block.
pub trait Block: Send + CloneBlock {
    /// Handles a request: appends steps to the context's program, and routes I/Os to lower blocks.
    fn route(&mut self, request: &Request, cx: &mut Context<'_>);

    /// Announces that a request will soon be routed here. The block prefetches the memory for the
    /// lookup, and announces the request to the most likely next block.
    fn hint(&self, _request: &Request, _blocks: &Blocks) {}

    /// Charges this block for work that another block causes: CPU time in nanoseconds or, for
    /// links, bytes that leave the node (`out` is true) or arrive at the node.
    fn charge(&mut self, _amount: u64, _out: bool, _cx: &mut Context<'_>) {}

    /// Handles a notice: a program of this block has reached a notice step.
    fn notice(&mut self, _value: u64, _cx: &mut Context<'_>) {}

    /// Called at a fixed interval of virtual time, if the block requested these calls at its
    /// construction.
    fn tick(&mut self, _cx: &mut Context<'_>) {}

    /// Records data that is placed before the run: `size_bytes` of `file` at `offset_bytes`.
    fn lay(&mut self, _request: &Request, _cx: &mut Context<'_>) {}

    /// Returns how many bytes of data the block and the blocks below it can store on a node. `None`
    /// if a device does not state its capacity.
    fn capacity_bytes(&self, _node: u16, _blocks: &Blocks) -> Option<f64> {
        None
    }

    /// Returns the stored share of the capacity of the fullest node, if the block distributes data
    /// over the nodes and their capacity is known.
    fn fullest_share(&self, _blocks: &Blocks) -> Option<f64> {
        None
    }

    /// Puts the block in the state that it has after a load has run for hours: no burst credit is
    /// left, burst areas are full, and logs are filled to the level at which they drain as fast as
    /// they fill. `take` takes tokens of a gate or bucket of the block.
    fn settle(&mut self, _writes: &[SteadyWrites], _take: &mut dyn FnMut(StationId, u64)) {}

    /// Returns the number of bytes that a write log has stored, and the number of bytes that it has
    /// started to drain, since the start of the run. `None` if the block is not a write log.
    fn logged_bytes(&self) -> Option<(u64, u64)> {
        None
    }

    /// Handles the loss or the return of a component. The component can be anywhere in the system.
    fn changed(&mut self, _change: Change, _cx: &mut Context<'_>) {}

    /// Returns true if a lost device stores a part of this range.
    fn is_lost(&self, _request: &Request, _blocks: &Blocks) -> bool {
        false
    }

    /// Empties the caches in memory.
    fn forget(&mut self) {}

    /// Returns named current readings of the block, such as its fill level. They appear in time
    /// series and reports.
    fn readings(&self, _each: &mut dyn FnMut(&'static str, f64)) {}
}

/// Copies a trait object. Implemented for every block type that implements `Clone`.
pub trait CloneBlock {
    /// Returns a copy of the block in the same state.
    fn copied(&self) -> Box<dyn Block>;
}

impl<B: Block + Clone + 'static> CloneBlock for B {
    fn copied(&self) -> Box<dyn Block> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Block> {
    fn clone(&self) -> Self {
        // Clones the block in the box, and not the box itself.
        (**self).copied()
    }
}

/// All instances of all blocks, ordered by block and then by node.
#[derive(Clone, Default)]
pub struct Blocks {
    pub(crate) instances: Vec<Option<Box<dyn Block>>>,
    pub(crate) nodes: usize,
    /// For each block: the distance between the indices of its instances on node `n` and node `n +
    /// 1`; 0 if all nodes share one instance.
    pub(crate) strides: Vec<usize>,
    /// For each block: true if it stores data. A block that stores data also serves reads of
    /// unwritten ranges.
    pub(crate) keeps: Vec<bool>,
    /// The stations of each block instance.
    pub(crate) stations: Vec<std::ops::Range<u32>>,
    /// Lost components; `None` if the plan has no event that removes components.
    pub(crate) losses: Option<Box<Losses>>,
}

impl Blocks {
    /// Hints that a request will be routed to a block soon; see [`Block::hint`].
    #[inline]
    pub(crate) fn hint(&self, block: BlockRef, request: &Request) {
        if let Some(instance) = &self.instances[self.index(block, request.node)] {
            instance.hint(request, self);
        }
    }

    /// Returns true if a lost device stores a part of a range; see [`Block::is_lost`].
    pub(crate) fn is_lost(&self, block: BlockRef, request: &Request) -> bool {
        let instance = &self.instances[self.index(block, request.node)];
        instance.as_ref().is_some_and(|instance| instance.is_lost(request, self))
    }

    /// Returns the capacity of a block on a node; see [`Block::capacity_bytes`].
    pub(crate) fn capacity_bytes(&self, block: BlockRef, node: u16) -> Option<f64> {
        self.instances.get(self.index(block, node))?.as_ref()?.capacity_bytes(node, self)
    }

    pub(crate) fn index(&self, block: BlockRef, node: u16) -> usize {
        block.0 as usize * self.nodes + self.strides[block.0 as usize] * usize::from(node)
    }
}

/// State that a block uses while it handles a request.
pub struct Context<'a> {
    /// The program of the request that is being handled.
    pub program: &'a mut Program,
    /// The simulation, with the virtual time and the state of the stations.
    pub sim: &'a Sim,
    pub(crate) blocks: &'a mut Blocks,
    pub(crate) launched: &'a mut Vec<Launch>,
    pub(crate) spare: &'a mut Vec<Program>,
    /// Slowest source that has served a part of the request so far.
    pub(crate) served: Option<Source>,
    pub(crate) landed: Option<Source>,
    pub(crate) remote: bool,
    /// Time at which the request stops waiting, because the loss of a component is then noticed; 0
    /// if the request does not wait.
    pub(crate) waited_ns: u64,
    /// True if no component is left that could serve the request.
    pub(crate) refused: bool,
    /// Doors that must be closed before the program of the request runs.
    pub(crate) closing: &'a mut Vec<(StationId, u64)>,
}

impl Context<'_> {
    /// Routes a request to a block on the request's node.
    ///
    /// A block is never entered twice by one request (loading checks that the blocks form no
    /// cycle).
    #[inline(always)]
    pub(crate) fn route(&mut self, block: BlockRef, request: &Request) {
        if request.hole && self.blocks.keeps[block.0 as usize] {
            self.serve(Source::Zero);
            return;
        }
        self.with(block, request.node, |instance, cx| instance.route(request, cx));
    }

    /// Charges a block on a node for work; see [`Block::charge`].
    #[inline(always)]
    pub(crate) fn charge(&mut self, block: BlockRef, node: u16, amount: u64, out: bool) {
        if amount > 0 {
            self.with(block, node, |instance, cx| instance.charge(amount, out, cx));
        }
    }

    /// Like `route`, but for background work. Calls `hint` first, because a caller with background
    /// work has not called it.
    pub(crate) fn route_background(&mut self, block: BlockRef, request: &Request) {
        self.blocks.hint(block, request);
        self.route(block, request);
    }

    /// Informs a block about data that was placed before the run.
    pub(crate) fn lay(&mut self, block: BlockRef, request: &Request) {
        self.with(block, request.node, |instance, cx| instance.lay(request, cx));
    }

    #[inline(always)]
    pub(crate) fn with(
        &mut self,
        block: BlockRef,
        node: u16,
        act: impl FnOnce(&mut dyn Block, &mut Self),
    ) {
        let index = self.blocks.index(block, node);
        let Some(mut instance) = self.blocks.instances[index].take() else { return };
        act(instance.as_mut(), self);
        // The slot contains no block yet, so the assignment drops nothing.
        let empty = self.blocks.instances[index].replace(instance);
        std::mem::forget(empty);
    }

    /// Splits a request at unit boundaries and handles each part. In the simulation, the parts run
    /// in parallel.
    pub(crate) fn each_part(
        &mut self,
        request: &Request,
        unit_bytes: u64,
        mut handle: impl FnMut(&Request, u64, &mut Self),
    ) {
        let units = request.units(unit_bytes);
        if units.end - units.start == 1 {
            handle(request, units.start, self);
            return;
        }
        let end = request.offset_bytes + request.size_bytes.max(1);
        self.program.fork();
        for unit in units {
            let start = request.offset_bytes.max(unit * unit_bytes);
            let stop = end.min((unit + 1) * unit_bytes);
            self.program.branch();
            handle(&request.part(start, stop - start), unit, self);
            self.program.end_branch();
        }
        self.program.join(usize::MAX);
    }

    /// Records that `source` serves a read.
    #[inline]
    pub(crate) fn serve(&mut self, source: Source) {
        self.served = self.served.max(Some(source));
    }

    /// Records that a write becomes durable at `place`; only the first call counts.
    #[inline]
    pub(crate) fn land(&mut self, place: Source) {
        if self.landed.is_none() {
            self.landed = Some(place);
        }
    }

    /// Launches background work; the function `write` builds its program. The I/O of this work is
    /// not counted for the request that launched it.
    pub(crate) fn launch(&mut self, write: impl FnOnce(&mut Context<'_>)) {
        let mut program = self.spare.pop().unwrap_or_default();
        program.clear();
        program.set_background(true);
        let mut cx = Context {
            program: &mut program,
            sim: self.sim,
            blocks: self.blocks,
            launched: self.launched,
            spare: self.spare,
            served: None,
            landed: None,
            remote: false,
            waited_ns: 0,
            refused: false,
            closing: self.closing,
        };
        write(&mut cx);
        self.launched.push(Launch { program });
    }
}

/// Nodes that fail during the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFailure {
    /// Range of the nodes that fail; the range is empty if no node fails.
    pub(crate) nodes: std::ops::Range<u16>,
    /// Time at which these nodes fail.
    pub(crate) at_ns: u64,
}

impl NodeFailure {
    /// Returns the nodes that have failed at the time `now_ns`.
    #[inline]
    pub(crate) fn by(&self, now_ns: u64) -> std::ops::Range<u16> {
        if now_ns >= self.at_ns { self.nodes.clone() } else { 0..0 }
    }
}

/// State that is used during the construction of a block.
pub struct Builder<'a> {
    pub(crate) sim: &'a mut Sim,
    pub(crate) seed: u64,
    pub(crate) names: &'a [String],
    pub(crate) node: u16,
    pub(crate) nodes: u16,
    /// Number of nodes that run load. The remaining nodes only store data.
    pub(crate) compute_nodes: u16,
    /// Nodes that failed before the run.
    pub(crate) failed: std::ops::Range<u16>,
    /// Nodes that fail during the run.
    pub(crate) failing: NodeFailure,
    /// The block under construction.
    pub(crate) block: u32,
    pub(crate) edges: &'a mut Vec<(u32, u32)>,
    pub(crate) ticks: &'a mut Vec<(u32, u16, u64)>,
}

impl Builder<'_> {
    /// Returns the block with this name. The parser of the model file has already checked the name.
    pub(crate) fn find(&mut self, name: &str) -> BlockRef {
        let at = self.names.iter().position(|n| n == name).unwrap_or_default() as u32;
        self.edges.push((self.block, at));
        BlockRef(at)
    }

    /// Like `find`, but returns `None` if no name is given.
    pub(crate) fn find_or_none(&mut self, name: Option<&str>) -> Option<BlockRef> {
        name.map(|name| self.find(name))
    }

    /// Returns the full name of a part, which starts with the name of the block under construction.
    pub(crate) fn name(&self, part: &str) -> String {
        let block = &self.names[self.block as usize];
        let node = if self.nodes > 1 { format!("node{}.", self.node) } else { String::new() };
        let dot = if part.is_empty() { "" } else { "." };
        format!("{node}{block}{dot}{part}")
    }

    /// Adds a station to the block under construction.
    pub(crate) fn station(&mut self, part: &str, servers: u32, order: Order) -> StationId {
        let name = self.name(part);
        self.sim.add_station(&name, servers, order)
    }

    /// Returns the random stream of the block under construction.
    pub(crate) fn stream(&self) -> Stream {
        Stream::new(self.seed, &self.name("random"))
    }

    /// Schedules a call of the block's [`Block::tick`] every `period_ns`.
    pub(crate) fn tick_every(&mut self, period_ns: u64) {
        self.ticks.push((self.block, self.node, period_ns.max(1)));
    }
}

/// Reads the order of service. The field contains a word. For FCFS, another field states how
/// strictly the order is kept.
pub(crate) fn order_word(reader: &crate::spec::Reader<'_>) -> Result<Order, ModelError> {
    let shared = reader.word("order", &[("fcfs", false), ("shared", true)])?;
    let random_share = reader.number_or("random_order_share", 0.0, 0.0, 1.0)?;
    Ok(if shared {
        Order::ProcessorSharing
    } else if random_share > 0.0 {
        Order::Disordered { random_share }
    } else {
        Order::Fcfs { background_every: 8 }
    })
}
