//! This client against libnfs's asynchronous interface, on the same NFS-Ganesha, alternating.
//!
//! ```sh
//! cargo bench -p plimsoll-nfs --bench libnfs                       # the comparison: 4 KiB, depth 32
//! cargo bench -p plimsoll-nfs --bench libnfs -- --pairs 9 --ms 4000 --size 65536 --depth 8
//! cargo bench -p plimsoll-nfs --bench libnfs -- --pause 0          # look for each reply at once
//! ```
//!
//! Needs root, `cc` and the Debian packages `nfs-ganesha nfs-ganesha-vfs rpcbind libnfs-dev`. A
//! pair is one run of the C loop beside this file and one of this client, in alternating order.
//! Each run is a process with one connection, pinned to CPU 0. CPU is the process's whole time,
//! including the kernel's (`CLOCK_PROCESS_CPUTIME_ID`). This client records a latency histogram and
//! its procedure counters as in a real run. The server runs on the same machine. Its export is in
//! memory (`/dev/shm`, or `PLIMSOLL_TEST_DIR`), so that no disk affects the result.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use plimsoll_nfs::mount::mount;
use plimsoll_nfs::{Client, Clock, Config, Monotonic, NfsUrl, ObjectId, Op, Stability, Timeout};
use support::Ganesha;

const FILE: &str = "bench-data";
const FILE_BYTES: u64 = 256 << 20;

/// Figures of one run.
#[derive(Clone, Copy)]
struct Figures {
    ops_per_s: f64,
    cpu_ns_per_op: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Figures {
    fn parse(line: &str) -> Self {
        let fields: Vec<f64> =
            line.split_whitespace().map(|field| field.parse().expect("a number")).collect();
        let [ops, wall_ns, cpu_ns, p50_ns, p99_ns] = fields[..] else { panic!("`{line}`") };
        Self {
            ops_per_s: ops / wall_ns * 1e9,
            cpu_ns_per_op: cpu_ns / ops,
            p50_us: p50_ns / 1e3,
            p99_us: p99_ns / 1e3,
        }
    }
}

struct Arguments {
    pairs: usize,
    ms: u64,
    size: u32,
    depth: u32,
    /// `Config::reap_pause_divisor`.
    pause: u32,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--ours") {
        return ours(&arguments[at + 1..]);
    }
    let value = |name: &str, default: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.map_or(default, |at| arguments[at + 1].parse().expect("a number"))
    };
    let arguments = Arguments {
        pairs: value("--pairs", 7) as usize,
        ms: value("--ms", 3000),
        size: value("--size", 4096) as u32,
        depth: value("--depth", 32) as u32,
        pause: value("--pause", u64::from(Config::default().reap_pause_divisor)) as u32,
    };
    compare(&arguments);
}

fn compare(arguments: &Arguments) {
    let server = Ganesha::start_in("/dev/shm", 1);
    let c_loop = server.path(1).parent().unwrap().join("libnfs_loop");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/libnfs_loop.c");
    let built =
        Command::new("cc").args(["-O2", "-o"]).arg(&c_loop).args([source, "-lnfs"]).status();
    assert!(built.unwrap().success(), "libnfs-dev and a C compiler are needed");
    fill(&server);
    println!(
        "{} KiB, depth {}, pause 1/{}, one connection each, {} pairs of {} ms; ratio = ours / libnfs, \
         median of pairs (least to greatest)",
        arguments.size / 1024,
        arguments.depth,
        arguments.pause,
        arguments.pairs,
        arguments.ms
    );
    println!(
        "{:<24} {:>9} {:>9} {:>8} {:>8} | {:>9} {:>9} {:>8} {:>8} | {:>20} {:>20}",
        "libnfs | ours",
        "ops/s",
        "cpu ns/op",
        "p50 us",
        "p99 us",
        "ops/s",
        "cpu ns/op",
        "p50 us",
        "p99 us",
        "cpu ratio",
        "ops ratio"
    );
    for (operation, interface) in [("read", "raw"), ("read", "pread"), ("write", "raw")] {
        row(arguments, &server, &c_loop, operation, interface);
    }
}

fn row(arguments: &Arguments, server: &Ganesha, c_loop: &Path, operation: &str, interface: &str) {
    let (mut theirs, mut own) = (Vec::new(), Vec::new());
    for pair in 0..arguments.pairs {
        let their_run = || run_libnfs(arguments, server, c_loop, operation, interface, pair);
        let own_run = || run_ours(arguments, server, operation, pair);
        if pair % 2 == 0 {
            theirs.push(their_run());
            own.push(own_run());
        } else {
            own.push(own_run());
            theirs.push(their_run());
        }
    }
    let of =
        |runs: &[Figures], field: fn(&Figures) -> f64| median(runs.iter().map(field).collect());
    let ratio = |field: fn(&Figures) -> f64| {
        let ratios: Vec<f64> = own.iter().zip(&theirs).map(|(o, t)| field(o) / field(t)).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ratios.iter().copied().fold(0.0, f64::max);
        format!("{:.3} ({least:.2}-{greatest:.2})", median(ratios))
    };
    println!(
        "{:<24} {:>9.0} {:>9.0} {:>8.0} {:>8.0} | {:>9.0} {:>9.0} {:>8.0} {:>8.0} | {:>20} {:>20}",
        format!("{operation}, libnfs {interface}"),
        of(&theirs, |f| f.ops_per_s),
        of(&theirs, |f| f.cpu_ns_per_op),
        of(&theirs, |f| f.p50_us),
        of(&theirs, |f| f.p99_us),
        of(&own, |f| f.ops_per_s),
        of(&own, |f| f.cpu_ns_per_op),
        of(&own, |f| f.p50_us),
        of(&own, |f| f.p99_us),
        ratio(|f| f.cpu_ns_per_op),
        ratio(|f| f.ops_per_s),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn output(command: &mut Command) -> Figures {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Figures::parse(String::from_utf8_lossy(&output.stdout).trim())
}

fn run_libnfs(
    arguments: &Arguments,
    server: &Ganesha,
    c_loop: &Path,
    operation: &str,
    interface: &str,
    seed: usize,
) -> Figures {
    let url = format!(
        "nfs://127.0.0.1/export1?version=3&nfsport={}&mountport={}&uid=0&gid=0",
        server.nfs_port, server.mount_port
    );
    let (size, depth) = (arguments.size.to_string(), arguments.depth.to_string());
    let (ms, seed) = (arguments.ms.to_string(), seed.to_string());
    output(Command::new(c_loop).args([
        &url,
        &format!("/{FILE}"),
        operation,
        &size,
        &depth,
        &ms,
        interface,
        "0",
        &seed,
    ]))
}

fn run_ours(arguments: &Arguments, server: &Ganesha, operation: &str, seed: usize) -> Figures {
    let url = format!(
        "nfs://127.0.0.1/export1?nfsport={}&mountport={}",
        server.nfs_port, server.mount_port
    );
    output(Command::new(std::env::current_exe().unwrap()).args([
        "--ours",
        &url,
        operation,
        &arguments.size.to_string(),
        &arguments.depth.to_string(),
        &arguments.ms.to_string(),
        &seed.to_string(),
        &arguments.pause.to_string(),
    ]))
}

fn fill(server: &Ganesha) {
    let export = mount(&server.url(1)).unwrap();
    let mut client = Client::new(Config::default(), Monotonic).unwrap();
    let id = client.add_server(&export.server(1)).unwrap();
    let root = client.register(id, export.root);
    let file = client.create_file(root, FILE.as_bytes()).unwrap();
    let mut state = 1u64;
    client
        .fill_file(file, FILE_BYTES, 1 << 20, &mut |_, block| {
            for chunk in block.chunks_mut(8) {
                state = next_random(state);
                chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
            }
        })
        .unwrap();
}

fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

/// Runs this client's half of a pair, and prints the same line as the C loop.
fn ours(arguments: &[String]) {
    let [url, operation, size, depth, ms, seed, pause] = arguments else { panic!("{arguments:?}") };
    let (size, depth): (u32, u32) = (size.parse().unwrap(), depth.parse().unwrap());
    let run_ns = ms.parse::<u64>().unwrap() * 1_000_000;
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(0);
    rustix::thread::sched_setaffinity(None, &cpus).unwrap();
    let export = mount(&NfsUrl::parse(url).unwrap()).unwrap();
    let config = Config {
        depth_max: depth,
        size_bytes_max: size.max(65_536),
        reap_pause_divisor: pause.parse().unwrap(),
        ..Config::default()
    };
    let mut client = Client::new(config, Monotonic).unwrap();
    let id = client.add_server(&export.server(1)).unwrap();
    let root = client.register(id, export.root);
    let file = client.lookup(root, FILE.as_bytes()).unwrap();
    let mut arena: Vec<u8> = (0..size as usize * depth as usize).map(|i| (i * 131) as u8).collect();
    let mut state =
        seed.parse::<u64>().unwrap().wrapping_mul(2_654_435_761) + 88_172_645_463_325_252;
    let blocks = FILE_BYTES / u64::from(size);
    let mut op = |place: u64| {
        state = next_random(state);
        make_op(operation, file, (state % blocks) * u64::from(size), size, place)
    };
    let mut out = Vec::with_capacity(depth as usize);
    let cpu_before = cpu_ns();
    let start = Monotonic.now_ns();
    for place in 0..u64::from(depth) {
        client.submit(place, &op(place)).unwrap();
    }
    let mut ops = 0u64;
    while client.core().outstanding() > 0 {
        client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
        for completion in out.drain(..) {
            assert_eq!(completion.result, Ok(size));
            ops += 1;
            if completion.completed_ns - start < run_ns {
                client.submit(completion.token, &op(completion.token)).unwrap();
            }
        }
    }
    let wall = Monotonic.now_ns() - start;
    let cpu = cpu_ns() - cpu_before;
    let procedure = op(0).procedure();
    let latency = client.core().stats().procedure(procedure).latency_ns.clone().unwrap();
    assert_eq!(latency.len(), ops);
    let stats = client.core().stats();
    eprintln!(
        "per system call: {:.2} operations sent, {:.2} received, {:.2} waited for",
        ops as f64 / stats.sends as f64,
        ops as f64 / stats.receives as f64,
        ops as f64 / stats.waits as f64
    );
    println!(
        "{ops} {wall} {cpu} {} {}",
        latency.value_at_quantile(0.5),
        latency.value_at_quantile(0.99)
    );
}

fn make_op(operation: &str, file: ObjectId, offset: u64, size: u32, place: u64) -> Op<'static> {
    let buffer_offset_bytes = place * u64::from(size);
    match operation {
        "read" => Op::Read { file, offset_bytes: offset, size_bytes: size, buffer_offset_bytes },
        "write" => Op::Write {
            file,
            offset_bytes: offset,
            size_bytes: size,
            buffer_offset_bytes,
            stability: Stability::FileSync,
        },
        other => panic!("{other}"),
    }
}

fn cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}
