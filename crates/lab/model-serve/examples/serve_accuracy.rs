//! Measures the deviation of a served model from its virtual time, with this project's NFS client
//! over loopback. There are closed loops with 1, 4 and 16 outstanding reads, and open loops with
//! 200 and 1,000 reads per second. All data that was read is compared with the data that was
//! written.
//!
//! `cargo run --release -p plimsoll-model --example serve_accuracy [MODEL…]` on an idle machine
//! with two cores: about half a minute for each model. The bound is 5 % + 0.2 ms; the exit code
//! shows whether every row meets it.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use plimsoll_model::blocks::{Action, Request};
use plimsoll_model::core::rng::Stream;
use plimsoll_model::run::{ConfiguredModel, Limits, MatrixLoad, Pattern, simulate};
use plimsoll_model::system::{Event, System};
use plimsoll_model_serve::{ServeOptions, serve};
use plimsoll_nfs::mount::mount;
use plimsoll_nfs::{Client, Completion, Config, Monotonic, NfsUrl, ObjectId, Op, Timeout};

const FILE_BYTES: u64 = 64 << 20;
const FILL_BYTES: u64 = 64 << 10;
const IO_BYTES: u64 = 4096;
/// Number of the file on the server. It is the first file that was created below the root.
const FILE: u32 = 2;
const SECONDS: f64 = 4.0;
/// Minimum number of reads of an open loop. With fewer reads, random variation would dominate the
/// result.
const OPEN_READS_MIN: f64 = 2_000.0;
/// A system with a higher utilisation is not measured, because its queue grows without end.
const BUSY_MAX: f64 = 0.9;

type CheckError = Box<dyn Error>;

/// Number of outstanding operations of a closed loop, or operations per second of an open loop.
#[derive(Clone, Copy)]
enum Loop {
    Closed(u32),
    Open(f64),
}

impl Loop {
    /// Duration of a loop.
    fn span_ns(self) -> u64 {
        let seconds = match self {
            Loop::Closed(_) => SECONDS,
            Loop::Open(rate) => SECONDS.max(OPEN_READS_MIN / rate),
        };
        (seconds * 1e9) as u64
    }

    /// Time from one read to the next in an open loop.
    fn gap_ns(self, stream: &mut Stream) -> u64 {
        match self {
            Loop::Closed(_) => 0,
            Loop::Open(rate) => stream.exponential_ns(1e9 / rate),
        }
    }
}

/// Source of the offsets and the intervals of a loop.
fn reads() -> Stream {
    Stream::new(7, "reads")
}

/// Content at an offset: the offset itself, repeated.
fn content(offset: u64, bytes: &mut [u8]) {
    for (at, eight) in bytes.chunks_exact_mut(8).enumerate() {
        eight.copy_from_slice(&(offset + 8 * at as u64 + 1).to_le_bytes());
    }
}

/// Returns the system after its file has been written.
fn filled(model: &ConfiguredModel) -> Result<System, CheckError> {
    let mut system = model.build(1)?;
    for offset in (0..FILE_BYTES).step_by(FILL_BYTES as usize) {
        let mut request = Request::new(Action::Write, FILE, offset, FILL_BYTES);
        request.sequential = offset > 0;
        system.submit(1, 0, &request);
        while !matches!(system.next(), Some(Event::Done { .. }) | None) {}
    }
    system.lay_files(&[]);
    Ok(system)
}

/// Returns the busy share of the busiest station at a rate of reads.
fn busy_share(model: &ConfiguredModel, rate_per_s: f64) -> Result<f64, CheckError> {
    let load = MatrixLoad {
        clients: 1,
        depth: 1,
        barrier: false,
        think_ns: 0,
        arrivals_per_s: Some(rate_per_s),
        io_bytes: IO_BYTES,
        read_share: 1.0,
        metadata_share: 0.0,
        durable: false,
        pattern: Pattern::Uniform,
        density: 1.0,
        files: FILE + 1,
        file_bytes: FILE_BYTES,
    };
    let limits = Limits { warm_up_ops: 2_000, measure_ops: 10_000 };
    let measured = simulate(&mut filled(model)?, &load, limits, 1);
    Ok(measured.bottleneck().map_or(0.0, |station| station.utilisation))
}

/// Returns the next offset to read.
fn offset(stream: &mut Stream) -> u64 {
    stream.below(FILE_BYTES / IO_BYTES) * IO_BYTES
}

/// Returns the mean latency after the first eighth of the reads.
fn mean_ns(latencies_ns: &[u64]) -> f64 {
    let kept = &latencies_ns[latencies_ns.len() / 8..];
    kept.iter().sum::<u64>() as f64 / kept.len().max(1) as f64
}

/// Runs the loop in virtual time. An open loop has the same reads at the same times as the client's
/// loop.
fn expected_ns(model: &ConfiguredModel, how: Loop) -> Result<f64, CheckError> {
    let mut system = filled(model)?;
    let mut stream = reads();
    let mut next_ns = system.now_ns();
    let end_ns = next_ns + how.span_ns();
    let mut outstanding = 0u32;
    let mut latencies_ns = Vec::new();
    let ask = |system: &mut System, stream: &mut Stream| {
        let mut request = Request::new(Action::Read, FILE, offset(stream), IO_BYTES);
        request.node = (FILE % u32::from(system.compute_nodes())) as u16;
        request.client = request.node.into();
        system.submit(1, 0, &request);
    };
    match how {
        Loop::Closed(depth) => {
            (0..depth).for_each(|_| ask(&mut system, &mut stream));
            outstanding = depth;
        }
        Loop::Open(_) => {
            system.set_timer(next_ns, 0);
        }
    }
    while outstanding > 0 || (matches!(how, Loop::Open(_)) && next_ns < end_ns) {
        match system.next().ok_or("nothing happens any more")? {
            Event::Done { submitted_ns, .. } => {
                latencies_ns.push(system.now_ns() - submitted_ns);
                outstanding -= 1;
                if matches!(how, Loop::Closed(_)) && system.now_ns() < end_ns {
                    ask(&mut system, &mut stream);
                    outstanding += 1;
                }
            }
            Event::Timer { .. } => {
                ask(&mut system, &mut stream);
                outstanding += 1;
                next_ns += how.gap_ns(&mut stream);
                if next_ns < end_ns {
                    system.set_timer(next_ns, 0);
                }
            }
        }
    }
    Ok(mean_ns(&latencies_ns))
}

struct Asking {
    client: Client,
    file: ObjectId,
    stream: Stream,
    arena: Vec<u8>,
    at: Vec<u64>,
    free: Vec<usize>,
    latencies_ns: Vec<u64>,
}

impl Asking {
    fn begin(served: SocketAddr) -> Result<Self, CheckError> {
        let port = served.port();
        let url = format!("nfs://127.0.0.1/model?nfsport={port}&mountport={port}");
        let export = mount(&NfsUrl::parse(&url)?)?;
        let mut client = Client::new(Config::default(), Monotonic)?;
        let id = client.add_server(&export.server(1))?;
        let root = client.register(id, export.root);
        let file = client.create_file(root, b"data")?;
        client.fill_file(file, FILE_BYTES, FILL_BYTES as u32, &mut content)?;
        let places = 512;
        Ok(Self {
            client,
            file,
            stream: reads(),
            arena: vec![0; places * IO_BYTES as usize],
            at: vec![0; places],
            free: (0..places).collect(),
            latencies_ns: Vec::new(),
        })
    }

    fn ask(&mut self) -> Result<(), CheckError> {
        let place = self.free.pop().ok_or("more reads are outstanding than have places")?;
        self.at[place] = offset(&mut self.stream);
        let op = Op::Read {
            file: self.file,
            offset_bytes: self.at[place],
            size_bytes: IO_BYTES as u32,
            buffer_offset_bytes: place as u64 * IO_BYTES,
        };
        Ok(self.client.submit(place as u64, &op)?)
    }

    /// Waits, and processes completions.
    fn wait(&mut self, timeout: Timeout) -> Result<usize, CheckError> {
        let mut out: Vec<Completion> = Vec::new();
        self.client.poll(&mut self.arena, timeout, &mut out)?;
        let mut expected = vec![0; IO_BYTES as usize];
        for done in &out {
            let place = done.token as usize;
            if done.result != Ok(IO_BYTES as u32) {
                return Err(format!("a read failed: {:?}", done.result).into());
            }
            content(self.at[place], &mut expected);
            let from = place * IO_BYTES as usize;
            if self.arena[from..from + IO_BYTES as usize] != expected {
                return Err(format!("what was read at {} was never written", self.at[place]).into());
            }
            self.latencies_ns.push(done.completed_ns - done.submitted_ns);
            self.free.push(place);
        }
        Ok(out.len())
    }

    /// Runs a loop. Returns the mean latency after its first eighth.
    fn run(&mut self, how: Loop) -> Result<(usize, f64), CheckError> {
        self.latencies_ns.clear();
        let start_ns = self.client.now_ns();
        let end_ns = start_ns + how.span_ns();
        self.stream = reads();
        match how {
            Loop::Closed(depth) => {
                (0..depth).try_for_each(|_| self.ask())?;
                while self.client.now_ns() < end_ns {
                    let ended = self.wait(Timeout::Completion)?;
                    (0..ended).try_for_each(|_| self.ask())?;
                }
            }
            Loop::Open(_) => {
                let mut next_ns = start_ns;
                while next_ns < end_ns {
                    if self.client.now_ns() >= next_ns {
                        self.ask()?;
                        self.client.flush(&self.arena)?;
                        next_ns += how.gap_ns(&mut self.stream);
                    }
                    self.wait(Timeout::Until(next_ns))?;
                }
            }
        }
        while self.client.core().outstanding() > 0 {
            self.wait(Timeout::Completion)?;
        }
        Ok((self.latencies_ns.len(), mean_ns(&self.latencies_ns)))
    }
}

/// Runs every loop against a served model. Returns true if all deviations are within the bound.
fn compare(name: &str, model: &ConfiguredModel, served: SocketAddr) -> Result<bool, CheckError> {
    let mut asking = Asking::begin(served)?;
    let loops = [
        ("1 outstanding", Loop::Closed(1)),
        ("4 outstanding", Loop::Closed(4)),
        ("16 outstanding", Loop::Closed(16)),
        ("200/s", Loop::Open(200.0)),
        ("1000/s", Loop::Open(1000.0)),
    ];
    let mut well = true;
    for (label, how) in loops {
        if let Loop::Open(rate) = how {
            let busy = busy_share(model, rate)?;
            if busy > BUSY_MAX {
                println!("{name:16} {label:>14}  not asked: {:.0} % busy", 100.0 * busy);
                continue;
            }
        }
        let due_ns = expected_ns(model, how)?;
        let (reads, seen_ns) = asking.run(how)?;
        let kept = (seen_ns - due_ns).abs() <= 0.05 * due_ns + 200_000.0;
        well &= kept;
        println!(
            "{name:16} {label:>14}  {reads:6} reads  virtual time {:8.3} ms  client {:8.3} ms  {:+6.1} % {:+7.3} ms  {}",
            due_ns / 1e6,
            seen_ns / 1e6,
            100.0 * (seen_ns / due_ns - 1.0),
            (seen_ns - due_ns) / 1e6,
            if kept { "within" } else { "BEYOND" }
        );
    }
    Ok(well)
}

fn try_one(name: &str) -> Result<bool, CheckError> {
    let model = ConfiguredModel::load(name, &BTreeMap::new())?;
    let stop = AtomicBool::new(false);
    let (tell, reported) = channel();
    let nfs = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServeOptions { nfs, seed: 1, memory_bytes: 256 << 20 };
    std::thread::scope(|scope| {
        let (stop, model) = (&stop, &model);
        let server = scope.spawn(move || {
            serve(model, options, Arc::default(), stop, |served| {
                // The channel has no receiver only if the comparison failed.
                let _ = tell.send(served);
            })
        });
        let compared = reported
            .recv()
            .map_err(CheckError::from)
            .and_then(|served| compare(name, model, served));
        stop.store(true, Ordering::Relaxed);
        match server.join() {
            Ok(ended) => ended?,
            Err(_) => return Err("the server panicked".into()),
        }
        compared
    })
}

fn main() -> Result<ExitCode, CheckError> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = ["laptop-nvme", "single-hdd", "cloud-volume", "zfs-flash"].map(Into::into).to_vec();
    }
    let mut well = true;
    for name in &names {
        well &= try_one(name)?;
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
