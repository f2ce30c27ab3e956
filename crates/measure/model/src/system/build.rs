//! Builds a system from a model file: creates an instance of every block on every node. Checks that
//! references between blocks form no cycle, and that blocks have read every field of the model.

use super::{System, TICK};
use crate::blocks::{self, Bits, BlockRef, Blocks, Builder, NodeCounters, NodeFailure};
use crate::core::{Program, Sim};
use crate::spec::{ModelError, Reader, Spec};

impl System {
    /// Loads a shipped model by its name, or a model file by its path.
    ///
    /// # Errors
    /// [`ModelError`] if the model is invalid. It contains the location of the error and the most
    /// similar valid name.
    pub fn load(name_or_path: &str, seed: u64) -> Result<Self, ModelError> {
        Self::build(crate::spec::shipped::load(name_or_path)?, seed)
    }

    /// Builds a model from its text.
    ///
    /// # Errors
    /// See [`System::load`].
    pub fn parse(name: &str, text: &str, seed: u64) -> Result<Self, ModelError> {
        Self::build(Spec::parse(name, text)?, seed)
    }

    /// Builds a system from a model.
    ///
    /// # Errors
    /// [`ModelError`] if a block's fields are invalid, or if blocks are incompatible.
    pub fn build(spec: Spec, seed: u64) -> Result<Self, ModelError> {
        let head = Reader::new(&spec, "model", &spec.head);
        let entry = head.block("entry", "the block that receives the requests")?.to_owned();
        let compute_nodes = head.count_or("nodes", 1, 1, 1024)?;
        let nodes = compute_nodes + head.count_or("storage_nodes", 0, 0, 1024)?;
        // Among the nodes that run load, the nodes with the highest numbers fail. Their data is
        // used most.
        let lost = head.count_or("failed_nodes", 0, 0, compute_nodes - 1)?;
        let failed = (compute_nodes - lost) as u16..compute_nodes as u16;
        // During the run, only storage-only nodes can fail, so no load has to move to other nodes.
        let failing = head.count_or("failing_nodes", 0, 0, nodes - compute_nodes)?;
        let at_s = head.number_or("failing_at_s", 0.0, 0.0, 1e9)?;
        let failing = NodeFailure {
            nodes: (nodes - failing) as u16..nodes as u16,
            at_ns: (at_s * 1e9) as u64,
        };
        let detect_s = head.number_or("detect_s", 1.0, 0.0, 3600.0)?;
        head.finish()?;
        let names: Vec<String> = spec.blocks.keys().cloned().collect();
        let mut sim = Sim::new(seed);
        let mut blocks = Blocks { nodes: nodes as usize, ..Blocks::default() };
        let mut keeps_layout = false;
        let (mut edges, mut ticks) = (Vec::new(), Vec::new());
        for (block, (name, table)) in spec.blocks.iter().enumerate() {
            let kind = Reader::new(&spec, name, table).text("kind")?;
            let shared = blocks::shared(kind);
            blocks.strides.push(usize::from(!shared));
            blocks.keeps.push(blocks::keeps_data(kind));
            keeps_layout |= blocks::keeps_layout(kind);
            for node in 0..nodes as u16 {
                let first = sim.stations() as u32;
                if shared && node > 0 {
                    blocks.instances.push(None);
                    blocks.stations.push(first..first);
                    continue;
                }
                let reader = Reader::new(&spec, name, table);
                let mut builder = Builder {
                    sim: &mut sim,
                    seed,
                    names: &names,
                    node,
                    nodes: nodes as u16,
                    compute_nodes: compute_nodes as u16,
                    failed: failed.clone(),
                    failing: failing.clone(),
                    block: block as u32,
                    edges: &mut edges,
                    ticks: &mut ticks,
                };
                blocks.instances.push(Some(blocks::make(&reader, &mut builder)?));
                blocks.stations.push(first..sim.stations() as u32);
                reader.finish()?;
            }
        }
        if let Some(looped) = find_cycle(&edges, names.len()) {
            let reader = Reader::new(&spec, &names[looped], &spec.blocks[&names[looped]]);
            return Err(
                reader.bad("below", "leads back to this block, but blocks must not form a cycle")
            );
        }
        for (at, (_, _, period_ns)) in ticks.iter().enumerate() {
            sim.set_timer(*period_ns, TICK | at as u32);
        }
        let entry = names.iter().position(|n| *n == entry).unwrap_or_default() as u32;
        Ok(Self {
            spec,
            sim,
            blocks,
            entry: BlockRef(entry),
            ticks,
            inside: vec![NodeCounters::default(); nodes as usize],
            failed,
            keeps_layout,
            has_layout: false,
            laid_bytes: vec![0.0; nodes as usize],
            empty: Vec::new(),
            written: Bits::default(),
            compute_nodes: compute_nodes as u16,
            detect_ns: (detect_s * 1e9) as u64,
            program: Program::new(),
            launched: Vec::new(),
            spare: Vec::new(),
            closing: Vec::new(),
            refused: false,
            stands_still: false,
        })
    }
}

/// Returns a block that refers to itself, directly or through other blocks; `None` if there is no
/// such block.
fn find_cycle(edges: &[(u32, u32)], blocks: usize) -> Option<usize> {
    // The loop repeatedly removes blocks that have no references to remaining blocks. If blocks
    // remain, they contain a cycle.
    let mut left: Vec<bool> = vec![true; blocks];
    loop {
        let free = (0..blocks).find(|&b| {
            left[b] && !edges.iter().any(|&(from, to)| from as usize == b && left[to as usize])
        });
        match free {
            Some(b) => left[b] = false,
            None => return left.iter().position(|&l| l),
        }
    }
}
