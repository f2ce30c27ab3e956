//! Generates the I/O of a mail store in its steady state, as a stream with any rate. The search for
//! a size runs this stream on a model many times.
//!
//! The shares were measured in a simulation of the mail store with all defaults (20 minutes at
//! 1,000 I/Os/s on four databases). 60.8 % of the database I/Os were reads, and there were 0.119
//! log writes of 8 KiB for each database I/O. Reads and writes access random 32 KiB pages of the
//! databases. The log of each database is written sequentially. Background maintenance reads 256
//! KiB of each database every 100 ms, sequentially.

use crate::blocks::{Action, Request, SteadyWrites};
use crate::core::rng::Stream;
use crate::run::{Recorder, RunResult};
use crate::system::{Event, System};

/// Share of reads among database I/Os.
const READ_SHARE: f64 = 0.608;
/// Number of log writes for each database I/O.
const LOG_SHARE: f64 = 0.119;
const LOG_BYTES: u64 = 8 << 10;
const LOG_RING_BYTES: u64 = 29 << 20;
const PAGE_BYTES: u64 = 32 << 10;
const MAINTENANCE_BYTES: u64 = 256 << 10;
const MAINTENANCE_PER_S: f64 = 10.0;

/// Classes of operations in the result.
pub const CLASSES: [&str; 4] = ["read", "write", "log write", "maintenance read"];

/// The load of a mail store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MailLoad {
    /// Number of databases. Each database has a log.
    pub databases: u32,
    /// Size of each database in bytes.
    pub database_bytes: u64,
    /// Number of database reads and writes per second, over all databases.
    pub rate_ios_per_s: f64,
}

/// Maximum number of operations in flight. If more operations are in flight, the system does not
/// sustain the load.
const BACKLOG_MAX: u64 = 4_000;

struct Source {
    load: MailLoad,
    stream: Stream,
    logs: Vec<u64>,
    scans: Vec<u64>,
    nodes: u16,
}

impl Source {
    fn draw(&mut self) -> (Request, usize) {
        let per_s = [
            self.load.rate_ios_per_s * READ_SHARE,
            self.load.rate_ios_per_s * (1.0 - READ_SHARE),
            self.load.rate_ios_per_s * LOG_SHARE,
            MAINTENANCE_PER_S * f64::from(self.load.databases),
        ];
        let mut at = self.stream.unit() * per_s.iter().sum::<f64>();
        let class = per_s.iter().position(|rate| {
            at -= rate;
            at < 0.0
        });
        let class = class.unwrap_or(0);
        let database = self.stream.below(u64::from(self.load.databases)) as u32;
        let pages = (self.load.database_bytes / PAGE_BYTES).max(1);
        let data = |action, offset, size| Request::new(action, 2 * database, offset, size);
        let mut request = match class {
            0 => data(Action::Read, self.stream.below(pages) * PAGE_BYTES, PAGE_BYTES),
            1 => data(Action::Write, self.stream.below(pages) * PAGE_BYTES, PAGE_BYTES),
            2 => {
                let end = &mut self.logs[database as usize];
                let offset = std::mem::replace(end, (*end + LOG_BYTES) % LOG_RING_BYTES);
                Request::new(Action::Write, 2 * database + 1, offset, LOG_BYTES)
            }
            _ => {
                let end = &mut self.scans[database as usize];
                let after = (*end + MAINTENANCE_BYTES) % (pages * PAGE_BYTES);
                data(Action::Read, std::mem::replace(end, after), MAINTENANCE_BYTES)
            }
        };
        request.sequential = class > 1;
        request.node = (database % u32::from(self.nodes)) as u16;
        request.client = request.node.into();
        (request, class)
    }

    /// Returns the rate of all operations per second.
    fn rate_per_s(&self) -> f64 {
        let MailLoad { databases, rate_ios_per_s, .. } = self.load;
        rate_ios_per_s * (1.0 + LOG_SHARE) + MAINTENANCE_PER_S * f64::from(databases)
    }
}

/// Places the databases and logs.
pub fn lay_out(system: &mut System, load: &MailLoad) {
    let nodes = u32::from(system.compute_nodes());
    for database in 0..load.databases {
        let node = (database % nodes) as u16;
        system.lay_file(2 * database, load.database_bytes, node);
        system.lay_file(2 * database + 1, LOG_RING_BYTES, node);
    }
}

/// Puts a system that stores the data in the state that it has after hours of this load.
pub fn settle(system: &mut System, load: &MailLoad) {
    let per_s = load.rate_ios_per_s / f64::from(load.databases);
    let files = (0..load.databases).flat_map(|database| {
        let file = |file, size_bytes, written_bytes_per_s| SteadyWrites {
            file,
            size_bytes,
            written_bytes_per_s,
        };
        let pages = per_s * (1.0 - READ_SHARE) * PAGE_BYTES as f64;
        let logged = per_s * LOG_SHARE * LOG_BYTES as f64;
        let log = file(2 * database + 1, LOG_RING_BYTES, logged);
        [file(2 * database, load.database_bytes, pages), log]
    });
    system.settle(&files.collect::<Vec<_>>());
}

/// Runs the load on a system that already stores the data. Returns `None` if the system does not
/// sustain the load.
pub fn simulate(
    system: &mut System,
    load: MailLoad,
    warm_up_ops: u64,
    measure_ops: u64,
    seed: u64,
) -> Option<RunResult> {
    let databases = load.databases as usize;
    let mut stream = Stream::new(seed, "size");
    let pages = (load.database_bytes / PAGE_BYTES).max(1);
    let scans = (0..databases).map(|_| stream.below(pages) * PAGE_BYTES).collect();
    let nodes = system.compute_nodes();
    let mut source = Source { load, stream, logs: vec![0; databases], scans, nodes };
    let gap_ns = 1e9 / source.rate_per_s();
    let mut recorder = Recorder::new(system, &CLASSES);
    system.set_timer(system.now_ns(), 0);
    let (mut begun, mut ended) = (0, 0);
    while let Some(event) = system.next() {
        match event {
            Event::Timer { .. } => {
                let (request, class) = source.draw();
                system.submit(class as u64, class as u16, &request);
                begun += 1;
                if begun > ended + BACKLOG_MAX {
                    return None;
                }
                let at_ns = system.now_ns() + source.stream.exponential_ns(gap_ns);
                system.set_timer(at_ns, 0);
            }
            Event::Done { tag, submitted_ns } => {
                let now_ns = system.now_ns();
                recorder.add(tag as usize, 0, now_ns - submitted_ns);
                ended += 1;
                if ended == warm_up_ops {
                    recorder.open(system);
                }
                if ended >= warm_up_ops + measure_ops {
                    break;
                }
            }
        }
    }
    Some(recorder.close(system))
}
