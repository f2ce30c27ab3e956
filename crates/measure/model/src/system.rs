//! A modelled system. It consists of the connected blocks of a model, and of the simulation that
//! runs these blocks.

mod build;
mod components;

use crate::blocks::{
    Action, Bits, Block, BlockRef, Blocks, Context, Launch, NodeCounters, Request, Source,
    SteadyWrites,
};
use crate::core::{Happening, Program, Sim};
use crate::spec::Spec;

/// Tag of the I/Os that are detached work.
const BACKGROUND: u64 = u64::MAX;

/// Unwritten ranges are tracked in units of this number of bytes.
const HOLE_BYTES: u64 = 4096;

/// If the tag of a timer has this bit, the timer belongs to a block.
const TICK: u32 = 1 << 31;

/// Event that the driver of a system handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request ended.
    Done {
        /// Tag with which the request was submitted.
        tag: u64,
        /// Submission time.
        submitted_ns: u64,
    },
    /// A timer of the driver expired.
    Timer {
        /// Tag of the timer.
        tag: u32,
    },
}

/// A modelled storage system in virtual time. A clone starts in the same state and runs
/// independently of the original.
#[derive(Clone)]
pub struct System {
    spec: Spec,
    sim: Sim,
    blocks: Blocks,
    entry: BlockRef,
    ticks: Vec<(u32, u16, u64)>,
    inside: Vec<NodeCounters>,
    compute_nodes: u16,
    /// Time that the system takes to notice that a component is lost.
    detect_ns: u64,
    failed: std::ops::Range<u16>,
    keeps_layout: bool,
    has_layout: bool,
    /// For each node: number of bytes that were placed from this node before the run.
    laid_bytes: Vec<f64>,
    /// For each file: true if the file contained no data before the run. Such a file has data only
    /// in units that the run has written.
    empty: Vec<bool>,
    written: Bits,
    program: Program,
    launched: Vec<Launch>,
    spare: Vec<Program>,
    closing: Vec<(crate::core::StationId, u64)>,
    /// True if the last submitted request could not be served.
    refused: bool,
    stands_still: bool,
}

impl System {
    /// Returns the simulation, whose statistics the caller can read.
    pub fn sim(&mut self) -> &mut Sim {
        &mut self.sim
    }

    /// Returns the virtual time.
    pub fn now_ns(&self) -> u64 {
        self.sim.now_ns()
    }

    /// Returns the number of nodes, including nodes that only store data.
    pub fn nodes(&self) -> u16 {
        self.blocks.nodes as u16
    }

    /// Returns the number of nodes that run load. They have the lowest node numbers. The other
    /// nodes only store data, or have failed.
    pub fn compute_nodes(&self) -> u16 {
        self.compute_nodes - self.failed.len() as u16
    }

    /// Returns counters for each node. They count the requests that entered the system at this
    /// node.
    pub fn inside(&self) -> &[NodeCounters] {
        &self.inside
    }

    /// Returns true if the last submitted request will fail because all components that could serve
    /// the request are lost.
    #[inline]
    pub fn last_refused(&self) -> bool {
        self.refused
    }

    /// Records that events follow one another although virtual time does not advance.
    pub(crate) fn stand_still(&mut self) {
        self.stands_still = true;
    }

    /// Returns the reason why the run ended, if virtual time did not advance.
    pub(crate) fn standstill(&self) -> Option<&'static str> {
        self.stands_still.then_some(
            "virtual time does not advance: operations take no time in this model, so the load \
             never ends; give a block on their path a service time, such as a `path` with a `cpu`",
        )
    }

    /// Submits a request. When the request ends, the driver gets an [`Event::Done`] with `tag`,
    /// which must be below 2^63.
    pub fn submit(&mut self, tag: u64, class: u16, request: &Request) {
        if self.empty.get(request.file as usize) == Some(&true) {
            let request = self.mark_hole(request);
            self.enter(tag, class, &request);
        } else {
            self.enter(tag, class, request);
        }
    }

    #[inline(always)]
    fn enter(&mut self, tag: u64, class: u16, request: &Request) {
        self.blocks.hint(self.entry, request);
        let mut program = std::mem::take(&mut self.program);
        let seen = match self.blocks.losses {
            None => self.write_program(&mut program, |cx, entry| cx.route(entry, request)),
            Some(_) => {
                self.write_program(&mut program, |cx, entry| route_around(request, entry, cx))
            }
        };
        let inside = &mut self.inside[usize::from(request.node)];
        match request.action {
            Action::Read => {
                let source = seen.0.unwrap_or(Source::Dram);
                inside.reads[source as usize].add(request.size_bytes);
                if seen.2 {
                    inside.remote_reads.add(request.size_bytes);
                }
            }
            Action::Write => {
                let place = seen.1.unwrap_or(Source::Dram);
                inside.writes[place as usize].add(request.size_bytes);
            }
            Action::Flush => {}
            Action::Meta => inside.metas += 1,
        }
        self.shut();
        self.sim.submit(tag, class, &mut program);
        self.program = program;
        self.launch();
    }

    /// Places files that exist before the run, each given as (file, bytes, node). The blocks place
    /// the data as if each node had written its files from beginning to end, all files at the same
    /// time. This I/O is not simulated. File numbers must be small.
    pub fn lay_files(&mut self, files: &[(u32, u64, u16)]) {
        const STEP: u64 = 64 << 20;
        self.has_layout = true;
        for &(_, size_bytes, node) in files {
            self.laid_bytes[usize::from(node)] += size_bytes as f64;
        }
        if !self.keeps_layout {
            return;
        }
        let largest = files.iter().map(|(_, size_bytes, _)| *size_bytes).max().unwrap_or(0);
        let rounds = largest.div_ceil(STEP).max(1);
        for round in 0..rounds {
            for &(file, size_bytes, node) in files {
                // The size of a step is a multiple of one mebibyte. For most blocks, a step
                // therefore consists of whole units.
                let step = size_bytes.div_ceil(rounds).next_multiple_of(1 << 20);
                let start = (round * step).min(size_bytes);
                let end = (start + step).min(size_bytes);
                if start < end {
                    let mut request = Request::new(Action::Write, file, start, end - start);
                    request.node = node;
                    request.sequential = true;
                    self.lay(&request);
                }
            }
        }
    }

    /// Marks a file that exists but was never written. Reads of its unwritten parts return zeroes.
    /// (If the model has a block that places data itself, such as a cluster, that block records
    /// which parts are unwritten.)
    pub fn leave_empty(&mut self, file: u32) {
        self.has_layout = true;
        let at = file as usize;
        if self.empty.len() <= at {
            self.empty.resize(at + 1, false);
        }
        self.empty[at] = !self.blocks.strides.contains(&0);
    }

    /// Returns the request, and marks it if it reads a hole. If the request is a write, records
    /// that it fills the hole.
    fn mark_hole(&mut self, request: &Request) -> Request {
        let units = request.units(HOLE_BYTES);
        match request.action {
            Action::Read => Request { hole: !self.written.any(request.file, units), ..*request },
            Action::Write => {
                self.written.set_range(request.file, units);
                *request
            }
            Action::Flush | Action::Meta => *request,
        }
    }

    /// Returns true if any file was placed before the run.
    pub fn has_layout(&self) -> bool {
        self.has_layout
    }

    /// Returns the share of the capacity of the fullest node that the placed data needs. It is above
    /// 1 if the data does not fit. `None` if the model does not state the capacity of its devices.
    pub fn fullest_share(&self) -> Option<f64> {
        let Blocks { strides, instances, nodes, .. } = &self.blocks;
        if let Some(block) = strides.iter().position(|stride| *stride == 0) {
            return instances.get(block * nodes)?.as_ref()?.fullest_share(&self.blocks);
        }
        let share = |(node, laid): (usize, &f64)| {
            Some(laid / self.blocks.capacity_bytes(self.entry, node as u16)?)
        };
        self.laid_bytes
            .iter()
            .enumerate()
            .map(share)
            .try_fold(0.0, |most, share| share.map(|share| f64::max(most, share)))
    }

    /// Returns the reason why the placed data does not fit; `None` if it fits, or if the capacity is
    /// unknown.
    pub fn overfull(&self) -> Option<String> {
        let share = self.fullest_share().filter(|share| *share > 1.0)?;
        let node = if self.nodes() > 1 { "of the fullest node " } else { "" };
        Some(format!(
            "the data does not fit: the data {node}needs {:.0} % of the capacity",
            (100.0 * share).ceil()
        ))
    }

    /// Puts the system in the state that it has after a load has run for hours. The data must be
    /// placed already, and no I/O may have been submitted.
    pub fn settle(&mut self, writes: &[SteadyWrites]) {
        let Self { blocks, sim, .. } = self;
        for instance in blocks.instances.iter_mut().flatten() {
            instance.settle(writes, &mut |station, amount| sim.take_now(station, amount));
        }
    }

    /// Returns the share of the bytes stored in write logs by which the logs grew during the run. A
    /// log that keeps growing becomes full, which no short simulation shows.
    pub fn log_growth_share(&self) -> f64 {
        let logs = self.blocks.instances.iter().flatten().filter_map(|b| b.logged_bytes());
        let (stored, drained) = logs.fold((0, 0), |(s, d), log| (s + log.0, d + log.1));
        stored.saturating_sub(drained) as f64 / stored.max(1) as f64
    }

    /// Places one file; see [`System::lay_files`].
    pub fn lay_file(&mut self, file: u32, size_bytes: u64, node: u16) {
        self.lay_files(&[(file, size_bytes, node)]);
    }

    /// Informs the blocks about data that exists before the run.
    fn lay(&mut self, request: &Request) {
        let mut program = std::mem::take(&mut self.program);
        self.write_program(&mut program, |cx, entry| cx.lay(entry, request));
        program.clear();
        self.program = program;
    }

    /// Calls `each` for every station visit in the program of a request. The program does not run.
    /// Demand analysis uses this function.
    pub(crate) fn rehearse(&mut self, request: &Request, mut each: impl FnMut(usize, f64)) {
        let mut program = std::mem::take(&mut self.program);
        self.write_program(&mut program, |cx, entry| cx.route(entry, request));
        for (station, amount, address, _) in program.visits() {
            each(station.0 as usize, self.sim.demand_ns(station, amount, address));
        }
        self.closing.clear();
        for launch in self.launched.drain(..) {
            for (station, amount, address, _) in launch.program.visits() {
                each(station.0 as usize, self.sim.demand_ns(station, amount, address));
            }
            self.spare.push(launch.program);
        }
        program.clear();
        self.program = program;
    }

    /// Sets a timer for the driver. `tag` is below 2^31. Returns a handle that can cancel the
    /// timer.
    pub fn set_timer(&mut self, at_ns: u64, tag: u32) -> u32 {
        self.sim.set_timer(at_ns, tag)
    }

    /// Cancels a timer that has not expired.
    pub fn cancel_timer(&mut self, timer: u32) {
        self.sim.cancel_timer(timer);
    }

    /// Returns the time of the next event. Before that time, nothing happens in the system unless a
    /// request is submitted.
    pub fn due_ns(&mut self) -> Option<u64> {
        self.sim.due_ns()
    }

    /// Runs until the next event for the driver. `None` if no events remain.
    #[allow(clippy::should_implement_trait)] // An iterator could not be fed while it is read.
    pub fn next(&mut self) -> Option<Event> {
        loop {
            match self.sim.next()? {
                Happening::Done { tag: BACKGROUND, .. } => {}
                Happening::Done { tag, submitted_ns } => {
                    return Some(Event::Done { tag, submitted_ns });
                }
                Happening::Notice { block, value } => {
                    let node = (value & 0xffff) as u16;
                    self.with_block(block, node, |instance, cx| instance.notice(value >> 16, cx));
                }
                Happening::Timer { tag } if tag & TICK != 0 => {
                    let at = (tag & !TICK) as usize;
                    let (block, node, period_ns) = self.ticks[at];
                    self.with_block(block, node, |instance, cx| instance.tick(cx));
                    let next_ns = self.sim.now_ns() + period_ns;
                    self.sim.set_timer(next_ns, tag);
                }
                Happening::Timer { tag } => return Some(Event::Timer { tag }),
            }
        }
    }

    /// Calls `each` for every reading of every block instance, with the name of the block, its
    /// node, and the name and value of the reading.
    pub fn readings(&self, each: &mut dyn FnMut(&str, u16, &'static str, f64)) {
        for (at, instance) in self.blocks.instances.iter().enumerate() {
            let name = self.spec.blocks.keys().nth(at / self.blocks.nodes.max(1));
            let node = (at % self.blocks.nodes.max(1)) as u16;
            if let (Some(name), Some(instance)) = (name, instance) {
                instance.readings(&mut |reading, value| each(name, node, reading, value));
            }
        }
    }

    fn with_block(
        &mut self,
        block: u32,
        node: u16,
        act: impl FnOnce(&mut dyn Block, &mut Context<'_>),
    ) {
        let mut program = std::mem::take(&mut self.program);
        let reference = BlockRef(block);
        self.write_program(&mut program, |cx, _| cx.with(reference, node, act));
        // The steps of the program are discarded, because a block that handles no request may only
        // launch background programs.
        program.clear();
        self.program = program;
        self.shut();
        self.launch();
    }

    #[inline(always)]
    fn shut(&mut self) {
        for (doors, door) in self.closing.drain(..) {
            self.sim.close(doors, door);
        }
    }

    #[inline(always)]
    fn write_program(
        &mut self,
        program: &mut Program,
        write: impl FnOnce(&mut Context<'_>, BlockRef),
    ) -> (Option<Source>, Option<Source>, bool) {
        let mut cx = Context {
            program,
            sim: &self.sim,
            blocks: &mut self.blocks,
            launched: &mut self.launched,
            spare: &mut self.spare,
            served: None,
            landed: None,
            remote: false,
            waited_ns: 0,
            refused: false,
            closing: &mut self.closing,
        };
        write(&mut cx, self.entry);
        self.refused = cx.refused;
        (cx.served, cx.landed, cx.remote)
    }

    #[inline(always)]
    fn launch(&mut self) {
        for mut launch in self.launched.drain(..) {
            self.sim.submit(BACKGROUND, u16::MAX, &mut launch.program);
            self.spare.push(launch.program);
        }
    }
}

/// Routes a request in a system that can lose components. If the node of a request is lost, the
/// request enters the system at another node.
fn route_around(request: &Request, entry: BlockRef, cx: &mut Context<'_>) {
    if let Some(node) = cx.entry_node(request.node, request.file) {
        cx.route(entry, &Request { node, ..*request });
    }
}
