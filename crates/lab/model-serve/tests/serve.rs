//! Serves a model as a real NFS server, and loads it with the NFS client of `plimsoll-nfs`.
//!
//! Latencies depend on other load of the machine, so the tests assert only facts that are true even
//! on a busy machine: no reply is early, and the latencies that the server reports are those of
//! virtual time. On an idle machine, run `PLIMSOLL_TIMED=1 cargo test -p plimsoll-model --test
//! serve -- --nocapture`. Then the client's latencies must also be within 5 % + 0.2 ms.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use plimsoll_model::run::{ConfiguredModel, Limits, MatrixLoad, Pattern, simulate};
use plimsoll_model_serve::{Metrics, ServeOptions, serve};
use plimsoll_nfs::mount::mount;
use plimsoll_nfs::{
    Client, Completion, Config, Monotonic, NfsUrl, ObjectId, Op, Stability, Timeout,
};

const MODEL: &str = "[model]\nname = \"two-drives\"\nentry = \"path\"\nfrom = \
                     \"chosen\"\n[block.path]\nkind = \"path\"\nbelow = \"drive\"\ncpu = \
                     \"cpu\"\nfrom = \"assumed\"\nread_us = 50\nwrite_us = 50\nmeta_us = \
                     20\n[block.cpu]\nkind = \"cpu\"\nfrom = \"assumed\"\ncores = \
                     2\nvariation_ratio = 0\n[block.drive]\nkind = \"drive\"\nfrom = \
                     \"assumed\"\ncount = 2\nread_us = 3000\nwrite_us = 4000\nread_bytes_per_s = \
                     1e9\nwrite_bytes_per_s = 1e9\nvariation_ratio = 0\n";

const FILE_BYTES: u64 = 4 << 20;
const DEPTH: usize = 4;
const READS: usize = 240;

fn model() -> ConfiguredModel {
    // Each test has its own model file, because tests run concurrently.
    let test = std::thread::current().name().unwrap_or("main").replace("::", "-");
    let path = format!("{}/two-drives-{test}.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, MODEL).unwrap();
    ConfiguredModel::load(&path, &BTreeMap::new()).unwrap()
}

/// Fills the bytes with words that follow from their offset in the file.
fn content(offset: u64, bytes: &mut [u8]) {
    for (at, eight) in bytes.chunks_exact_mut(8).enumerate() {
        eight.copy_from_slice(&(offset + 8 * at as u64 + 1).to_le_bytes());
    }
}

/// Returns offsets in a fixed pseudo-random order.
fn offsets() -> impl Iterator<Item = u64> {
    (1u64..)
        .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)
        .map(|x| x % (FILE_BYTES / 4096) * 4096)
}

/// Reads in a closed loop, at least `READS` times, and checks all data. Returns each latency in
/// nanoseconds.
fn read(client: &mut Client, file: ObjectId) -> Vec<u64> {
    let mut arena = vec![0; DEPTH * 4096];
    let mut offsets = offsets();
    let mut at = [0; DEPTH];
    let submit = |client: &mut Client, place: usize, offset_bytes: u64| {
        let buffer_offset_bytes = place as u64 * 4096;
        let op = Op::Read { file, offset_bytes, size_bytes: 4096, buffer_offset_bytes };
        client.submit(place as u64, &op).unwrap();
    };
    for (place, at) in at.iter_mut().enumerate() {
        *at = offsets.next().unwrap();
        submit(client, place, *at);
    }
    let mut latencies = Vec::new();
    let mut out: Vec<Completion> = Vec::new();
    let mut expected = [0; 4096];
    while latencies.len() < READS {
        client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
        for done in out.drain(..) {
            assert_eq!(done.result, Ok(4096));
            let place = done.token as usize;
            content(at[place], &mut expected);
            assert!(arena[place * 4096..(place + 1) * 4096] == expected, "at {}", at[place]);
            latencies.push(done.completed_ns - done.submitted_ns);
            at[place] = offsets.next().unwrap();
            submit(client, place, at[place]);
        }
    }
    while client.core().outstanding() > 0 {
        client.poll(&mut arena, Timeout::Completion, &mut out).unwrap();
    }
    latencies
}

/// Returns the mean latency of the same load in virtual time.
fn virtual_ns() -> f64 {
    let mut system = model().build(1).unwrap();
    system.lay_file(3, FILE_BYTES, 0);
    let load = MatrixLoad {
        clients: 1,
        depth: DEPTH as u32,
        barrier: false,
        think_ns: 0,
        arrivals_per_s: None,
        io_bytes: 4096,
        read_share: 1.0,
        metadata_share: 0.0,
        durable: false,
        pattern: Pattern::Uniform,
        density: 1.0,
        files: 1,
        file_bytes: FILE_BYTES,
    };
    let limits = Limits { warm_up_ops: 100, measure_ops: 4_000 };
    simulate(&mut system, &load, limits, 1).latency_ns_mean(|_| true)
}

fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Performs every client operation that the server supports.
fn use_it(served: SocketAddr, metrics: &Metrics) {
    let port = served.port();
    let url = format!("nfs://127.0.0.1/model?nfsport={port}&mountport={port}");
    // The server may still count connections that the client has just dropped.
    let url = NfsUrl::parse(&url).unwrap();
    let mut mounted = mount(&url);
    for _ in 0..100 {
        if mounted.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        mounted = mount(&url);
    }
    let export = mounted.unwrap();
    let mut client = Client::new(Config::default(), Monotonic).unwrap();
    let id = client.add_server(&export.server(1)).unwrap();
    let root = client.register(id, export.root);
    let directory = client.make_dirs(root, b"a/b").unwrap();
    let file = client.create_file(directory, b"data").unwrap();
    client.fill_file(file, FILE_BYTES, 64 << 10, &mut content).unwrap();
    assert_eq!(client.attributes(file).unwrap().size, FILE_BYTES);
    let seen = read(&mut client, file);
    let seen_ns = seen.iter().sum::<u64>() as f64 / seen.len() as f64;
    let expected_ns = virtual_ns();
    let least_ns = *seen.iter().min().unwrap();
    println!(
        "client {:.3} ms, virtual time {:.3} ms ({:+.1} %)",
        seen_ns / 1e6,
        expected_ns / 1e6,
        100.0 * (seen_ns / expected_ns - 1.0)
    );
    let near = |ns: f64| (ns - expected_ns).abs() <= 0.05 * expected_ns + 200_000.0;
    if std::env::var_os("PLIMSOLL_TIMED").is_some() {
        // A read takes at least 3 ms on one of two drives and 50 us of CPU time. This holds only on
        // an idle machine. On a busy machine, the server may detect a call late and base the time
        // of its reply on an earlier iteration of its loop.
        assert!(least_ns >= 3_050_000, "an answer came before it was due: {least_ns} ns");
        assert!(near(seen_ns), "the client saw {seen_ns} ns where {expected_ns} ns were due");
    }
    // The server updates its metrics once a second.
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    let metrics = metrics.text();
    let reads = value(&metrics, "plimsoll_model_latency_seconds_count{action=\"read\"}");
    // The server has a sample of each read that the client returned, and of the `DEPTH` reads that
    // were in flight at the end.
    assert_eq!(reads, (seen.len() + DEPTH) as f64);
    let sum = value(&metrics, "plimsoll_model_latency_seconds_sum{action=\"read\"}");
    assert!(sum / reads * 1e9 >= 3_050_000.0);
    assert!(value(&metrics, "plimsoll_model_writes_total{node=\"0\",place=\"ssd\"}") >= 64.0);
    what_is_written_is_read(&mut client, directory);
}

fn what_is_written_is_read(client: &mut Client, directory: ObjectId) {
    let file = client.create_file(directory, b"other").unwrap();
    let mut arena = vec![7; 10_000];
    let write = |offset_bytes, stability| Op::Write {
        file,
        offset_bytes,
        size_bytes: 10_000,
        buffer_offset_bytes: 0,
        stability,
    };
    let mut out = Vec::new();
    let mut carry_out = |client: &mut Client, op: &Op<'_>, arena: &mut Vec<u8>| {
        out.clear();
        client.submit(1, op).unwrap();
        while out.is_empty() {
            client.poll(arena, Timeout::Completion, &mut out).unwrap();
        }
        out[0].result.unwrap()
    };
    carry_out(client, &write(100_000, Stability::Unstable), &mut arena);
    carry_out(client, &write(60_000, Stability::FileSync), &mut arena);
    carry_out(client, &Op::Commit { file, offset_bytes: 0, size_bytes: 0 }, &mut arena);
    arena = vec![1; 200_000];
    let all = Op::Read { file, offset_bytes: 0, size_bytes: 200_000, buffer_offset_bytes: 0 };
    assert_eq!(carry_out(client, &all, &mut arena), 110_000);
    let is = |range: std::ops::Range<usize>, byte: u8| arena[range].iter().all(|b| *b == byte);
    assert!(is(0..60_000, 0) && is(60_000..70_000, 7) && is(70_000..100_000, 0));
    assert!(is(100_000..110_000, 7));
    client.remove_tree(directory, b"other").unwrap();
    assert!(client.lookup(directory, b"other").is_err());
    let names = client.list(directory, true).unwrap();
    assert_eq!(names.iter().map(|found| found.name.as_slice()).collect::<Vec<_>>(), [b"data"]);
}

#[test]
fn a_served_model_keeps_data_and_answers_when_it_is_due() {
    let stop = AtomicBool::new(false);
    let (tell, reported) = channel();
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServeOptions { nfs: free, seed: 1, memory_bytes: 64 << 20 };
    std::thread::scope(|scope| {
        let (stop, metrics) = (&stop, Arc::<Metrics>::default());
        let updated = Arc::clone(&metrics);
        let server = scope.spawn(move || {
            serve(&model(), options, updated, stop, |served| tell.send(served).unwrap())
        });
        let served = reported.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        // The server ends even if an assertion fails.
        let used = std::panic::catch_unwind(|| use_it(served, &metrics));
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap();
        used.unwrap();
    });
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nfs = taken.local_addr().unwrap();
    let options = ServeOptions { nfs, seed: 1, memory_bytes: 1 << 20 };
    let error =
        serve(&model(), options, Arc::default(), &AtomicBool::new(false), |_| {}).unwrap_err();
    assert!(error.to_string().contains(&nfs.to_string()), "{error}");
}

/// Returns the resident memory of this process in bytes, from the server's metrics.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn what_a_record_claims_is_not_taken_and_garbage_does_not_deafen() {
    let stop = AtomicBool::new(false);
    let (tell, reported) = channel();
    let nfs = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServeOptions { nfs, seed: 1, memory_bytes: 64 << 20 };
    std::thread::scope(|scope| {
        let (stop, metrics) = (&stop, Arc::<Metrics>::default());
        let updated = Arc::clone(&metrics);
        let server = scope.spawn(move || {
            serve(&model(), options, updated, stop, |served| tell.send(served).unwrap())
        });
        let served = reported.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        let attacked = std::panic::catch_unwind(|| {
            let before_bytes = resident_bytes();
            let closed = |bytes: &[u8]| {
                let mut stream = TcpStream::connect(served).unwrap();
                let _ = stream.write_all(bytes);
                stream.read(&mut [0; 16]).map_or(0, |read| read)
            };
            // Three attacks: a fragment of 2 GiB that is not the last of its record, a call with a
            // handle of 4 GiB, and random bytes.
            assert_eq!(closed(&0x7fff_ffffu32.to_be_bytes()), 0);
            let call: [u32; 12] = [1 << 31 | 44, 7, 0, 2, 100_003, 3, 1, 0, 0, 0, 0, 0xffff_fff0];
            let call: Vec<u8> = call.iter().flat_map(|word| word.to_be_bytes()).collect();
            assert_eq!(closed(&call), 0);
            let mut noise = 7u64;
            for _ in 0..64 {
                let mut bytes = Vec::new();
                for _ in 0..4096 {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    bytes.extend_from_slice(&noise.to_be_bytes());
                }
                assert_eq!(closed(&bytes), 0);
            }
            // Opens more connections than the server accepts. Each connection sends an incomplete
            // record and then stays idle.
            let idle: Vec<TcpStream> = (0..300)
                .map(|_| {
                    let mut stream = TcpStream::connect(served).unwrap();
                    let _ = stream.write_all(&[0x80, 0x0f]);
                    stream
                })
                .collect();
            drop(idle);
            let grown_bytes = resident_bytes().saturating_sub(before_bytes);
            assert!(grown_bytes < 256 << 20, "{grown_bytes} bytes more");
            use_it(served, &metrics);
        });
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap();
        attacked.unwrap();
    });
}
