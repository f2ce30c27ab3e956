//! The load of matrix benchmarks. It is described by the number of clients, their queue depth, the
//! I/O size, the read share, a random or sequential pattern, and the share of metadata operations.
//!
//! If there is a barrier, a client issues as many operations as its depth allows, and waits for all
//! of them before it issues the next group. Load appliances with "asynchronous" actions work in
//! this way. The concurrency of the system is then below clients × depth, because the operations of
//! a group end at different times.
//!
//! For random offsets, each client passes over the file in order, and skips exponentially
//! distributed gaps. `density` is the share of the bytes that a pass touches. If the density is 1,
//! the pass is sequential. If the density is small, a record is never touched again while it could
//! still be cached. (This approximates uniformly distributed offsets in a file that is larger than
//! the caches. The points that a pass hits are independent: with records of `r` bytes and I/Os of
//! `s` bytes, a record was touched before with probability 1 - (1 - e^-x) / x, where x = density ×
//! r / s.) With the pattern `Uniform`, offsets are chosen from the whole file instead.

use super::{Limits, Recorder, RunResult};
use crate::blocks::{Action, Request};
use crate::core::rng::Stream;
use crate::spec::{ModelError, Reader, Spec, Table};
use crate::system::{Event, System};

/// Access pattern within a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Consecutive blocks.
    Sequential,
    /// A pass over the file with random gaps; see the module documentation.
    Random,
    /// Independent blocks, uniformly distributed over the whole file.
    Uniform,
}

/// A load whose parameters do not change during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixLoad {
    pub clients: u32,
    /// Maximum number of operations that a client has outstanding.
    pub depth: u32,
    /// True if a client waits until all of its outstanding operations have completed before it
    /// issues new operations.
    pub barrier: bool,
    /// Time that a client waits between the end of an operation (or of a group of operations) and
    /// the next operation.
    pub think_ns: u64,
    /// Rate of an open loop, in operations per second of all clients together. The arrivals are a
    /// Poisson process. `None` means a closed loop.
    pub arrivals_per_s: Option<f64>,
    /// Size of the I/Os.
    pub io_bytes: u64,
    /// Share of reads among data operations.
    pub read_share: f64,
    /// True if writes are on the medium when they complete (`O_DSYNC`).
    pub durable: bool,
    /// Share of metadata operations among all operations.
    pub metadata_share: f64,
    /// Access pattern.
    pub pattern: Pattern,
    /// Share of the bytes that a random pass touches.
    pub density: f64,
    /// Number of files. Each client uses the files in rotation.
    pub files: u32,
    /// Size of each file in bytes.
    pub file_bytes: u64,
}

impl MatrixLoad {
    /// Returns the load of a model's published measurements: its `[load]` table. The I/Os are
    /// random reads of 4 KiB. To simulate a row of a table, the caller sets size, read share and
    /// pattern.
    ///
    /// # Errors
    /// [`ModelError`] if the model has no such table or a field is wrong.
    pub fn of(spec: &Spec) -> Result<Self, ModelError> {
        let empty = Table::default();
        let table = spec.load.as_ref().unwrap_or(&empty);
        let reader = Reader::new(spec, "load", table);
        let load = Self {
            clients: reader.count("clients", 1, 1 << 24, "the number of clients")? as u32,
            depth: reader.count("depth", 1, 1 << 16, "the queue depth of a client")? as u32,
            barrier: reader.flag_or("barrier", false)?,
            think_ns: (1e3 * reader.number_or("think_us", 0.0, 0.0, 1e9)?) as u64,
            arrivals_per_s: None,
            io_bytes: 4096,
            read_share: 1.0,
            durable: false,
            metadata_share: reader.number_or("metadata_share", 0.0, 0.0, 1.0)?,
            pattern: Pattern::Random,
            density: reader.number_or("density_share", 0.05, 1e-6, 1.0)?,
            files: reader.count("files", 1, 1 << 24, "the number of files")? as u32,
            file_bytes: reader.count("file_bytes", 4096, 1 << 50, "the size of a file")?,
        };
        reader.finish()?;
        Ok(load)
    }
}

/// The classes of operations in a matrix run.
const CLASSES: [&str; 3] = ["read", "write", "metadata"];

/// Generates random requests.
pub(crate) struct Requests {
    load: MatrixLoad,
    stream: Stream,
    positions: Vec<u64>,
    nodes: u16,
}

impl Requests {
    pub(crate) fn new(load: &MatrixLoad, nodes: u16, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "matrix");
        let blocks = (load.file_bytes / load.io_bytes).max(1);
        let positions = (0..load.clients).map(|_| stream.below(blocks) * load.io_bytes).collect();
        Self { load: load.clone(), stream, positions, nodes }
    }

    /// Returns the next request of a client, and its class.
    pub(crate) fn draw(&mut self, client: u32) -> (Request, usize) {
        let load = &self.load;
        let file = client % load.files;
        let (action, class) = if self.stream.chance(load.metadata_share) {
            (Action::Meta, 2)
        } else if self.stream.chance(load.read_share) {
            (Action::Read, 0)
        } else {
            (Action::Write, 1)
        };
        let mut request = Request::new(action, file, 0, load.io_bytes);
        request.client = client;
        request.durable = load.durable && action == Action::Write;
        request.node = (client % u32::from(self.nodes)) as u16;
        if action == Action::Meta {
            return (Request { size_bytes: 0, ..request }, class);
        }
        let blocks = (load.file_bytes / load.io_bytes).max(1);
        let position = &mut self.positions[client as usize];
        request.offset_bytes = match load.pattern {
            Pattern::Uniform => self.stream.below(blocks) * load.io_bytes,
            Pattern::Sequential => *position,
            Pattern::Random => {
                // The gaps are exponentially distributed and rounded to whole blocks. With this
                // mean gap, the touched blocks are independent points that have the required
                // density.
                let skip = self.stream.exponential() * (1.0 / load.density - 1.0);
                (*position + (skip + 0.5) as u64 * load.io_bytes) % (blocks * load.io_bytes)
            }
        };
        request.sequential = load.pattern == Pattern::Sequential;
        *position = (request.offset_bytes + load.io_bytes) % (blocks * load.io_bytes);
        (request, class)
    }
}

/// Runs the load until enough operations have ended.
pub(super) fn run(system: &mut System, load: &MatrixLoad, limits: Limits, seed: u64) -> RunResult {
    let mut recorder = Recorder::new(system, &CLASSES);
    let nodes = system.compute_nodes();
    if !system.has_layout() {
        // Each file is placed on the node of the first client that uses it.
        let node = |file: u32| (file % u32::from(nodes)) as u16;
        let files: Vec<_> = (0..load.files).map(|f| (f, load.file_bytes, node(f))).collect();
        system.lay_files(&files);
    }
    let mut driver = Driver {
        requests: Requests::new(load, nodes, seed),
        outstanding: vec![0; load.clients as usize],
        load: load.clone(),
    };
    driver.start(system);
    let mut ended = 0;
    if limits.warm_up_ops == 0 {
        recorder.open(system);
    }
    while let Some(event) = system.next() {
        match event {
            Event::Timer { tag } => driver.timer(system, tag),
            Event::Done { tag, submitted_ns } => {
                let now_ns = system.now_ns();
                let class = (tag & 3) as usize;
                let bytes = if class == 2 { 0 } else { load.io_bytes };
                recorder.add(class, bytes, now_ns - submitted_ns);
                ended += 1;
                if ended == limits.warm_up_ops {
                    recorder.open(system);
                }
                if ended >= limits.warm_up_ops + limits.measure_ops {
                    break;
                }
                driver.ended(system, (tag >> 2) as u32);
            }
        }
    }
    recorder.close(system)
}

const ARRIVAL: u32 = (1 << 31) - 1;

struct Driver {
    load: MatrixLoad,
    requests: Requests,
    outstanding: Vec<u32>,
}

impl Driver {
    fn start(&mut self, system: &mut System) {
        if self.load.arrivals_per_s.is_some() {
            system.set_timer(system.now_ns(), ARRIVAL);
            return;
        }
        for client in 0..self.load.clients {
            // Clients start at different times within the first millisecond.
            let at_ns = system.now_ns() + self.requests.stream.below(1_000_000);
            system.set_timer(at_ns, client);
        }
    }

    fn issue(&mut self, system: &mut System, client: u32) {
        let (request, class) = self.requests.draw(client);
        let tag = (u64::from(client) << 2) | class as u64;
        system.submit(tag, class as u16, &request);
    }

    /// Handles the end of a client's think time, or the arrival of an operation.
    fn timer(&mut self, system: &mut System, tag: u32) {
        if tag == ARRIVAL {
            let client = self.requests.stream.below(u64::from(self.load.clients)) as u32;
            self.issue(system, client);
            let rate = self.load.arrivals_per_s.unwrap_or(1.0);
            let at_ns = system.now_ns() + self.requests.stream.exponential_ns(1e9 / rate);
            system.set_timer(at_ns, ARRIVAL);
            return;
        }
        let missing = self.load.depth - self.outstanding[tag as usize];
        let group =
            if self.load.barrier || self.outstanding[tag as usize] == 0 { missing } else { 1 };
        self.outstanding[tag as usize] += group;
        (0..group).for_each(|_| self.issue(system, tag));
    }

    fn ended(&mut self, system: &mut System, client: u32) {
        if self.load.arrivals_per_s.is_some() {
            return;
        }
        let outstanding = &mut self.outstanding[client as usize];
        *outstanding -= 1;
        if self.load.barrier && *outstanding > 0 {
            return;
        }
        if self.load.think_ns > 0 {
            system.set_timer(system.now_ns() + self.load.think_ns, client);
        } else {
            let group = if self.load.barrier { self.load.depth } else { 1 };
            *outstanding += group;
            (0..group).for_each(|_| self.issue(system, client));
        }
    }
}
