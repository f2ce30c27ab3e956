//! Simulates the array with layouts and loads that are not in the published table: narrow parity
//! groups, one operation at a time, and sequential streams. There are no measurements for them, but
//! physics excludes some results.

use crate::support::{Run, model, run};
use plimsoll_model::blocks::Source;
use plimsoll_model::run::{MatrixLoad, Pattern};
use plimsoll_model::spec::Spec;

/// Bandwidth of the array's four ports of 10 Gbit/s.
const PORTS_BYTES_PER_S: f64 = 4.0 * 1.25e9;
/// Relative difference of rates and latencies between runs of 8,000 operations.
const NOISE: f64 = 0.05;

fn raidz(groups: &str, width: &str, parity: &str) -> Spec {
    let record = "131072";
    model(
        "zfs-flash",
        &[
            ("pool.layout", "raidz"),
            ("pool.groups", groups),
            ("pool.width", width),
            ("pool.parity", parity),
            ("records.record_bytes", record),
            ("arc.unit_bytes", record),
            ("pool.chunk_bytes", record),
        ],
    )
}

/// Returns a layout with four groups of 4 + 1 drives. (`wide` returns the published layout, with
/// groups of 4 + 2 drives.)
fn narrow() -> Spec {
    twenty("4", "5")
}

/// Returns the model with raidz1 on twenty drives.
fn twenty(groups: &str, width: &str) -> Spec {
    let mut spec = raidz(groups, width, "1");
    spec.assign("drive.count", "20").unwrap();
    spec
}

fn wide() -> Spec {
    raidz("4", "6", "2")
}

fn load(io_kib: u64, read_share: f64, depth: u32, pattern: Pattern) -> MatrixLoad {
    let mut load = MatrixLoad::of(&Spec::load("zfs-flash").unwrap()).unwrap();
    (load.io_bytes, load.read_share) = (io_kib * 1024, read_share);
    (load.depth, load.pattern) = (depth, pattern);
    load
}

fn carry(spec: Spec, load: &MatrixLoad) -> Run {
    let run = run(spec, load, 6_000, 8_000);
    let (rate, latency_s) = (run.rate(), run.measured.latency_ns_mean(|_| true) * 1e-9);
    // By Little's law, rate × latency cannot exceed the number of operations in flight.
    let inside = rate * latency_s;
    let let_in = f64::from(load.clients * load.depth);
    assert!(inside <= let_in * (1.0 + NOISE), "{inside} inside of {let_in}");
    if load.depth == 1 {
        // At depth 1, a client never waits for a barrier, so the maximum number of operations is
        // always in flight.
        assert!(inside >= let_in * (1.0 - NOISE), "{inside} inside of {let_in}");
    }
    // Reads and writes pass the ports in opposite directions, so only the larger of the two amounts
    // counts.
    let data = rate * (1.0 - load.metadata_share) * load.io_bytes as f64;
    let busier = data * load.read_share.max(1.0 - load.read_share);
    assert!(busier <= PORTS_BYTES_PER_S, "{busier} bytes/s through the ports");
    run
}

#[test]
fn larger_ios_carry_more_bytes_in_fewer_operations() {
    for pattern in [Pattern::Random, Pattern::Sequential] {
        for read_share in [1.0, 0.5, 0.0] {
            let mut before: Option<(f64, f64)> = None;
            for io_kib in [4, 16, 64, 128] {
                let load = load(io_kib, read_share, 4, pattern);
                let rate = match pattern {
                    // For streams, the queues of the drives take longer to fill than for random
                    // loads.
                    Pattern::Sequential => stream(narrow(), &load).rate(),
                    _ => carry(narrow(), &load).rate(),
                };
                let bytes = rate * io_kib as f64;
                if let Some((rate_before, bytes_before)) = before {
                    let at = format!("{io_kib} KiB, {read_share} reads, {pattern:?}");
                    assert!(rate <= rate_before * (1.0 + NOISE), "{rate} of {rate_before}: {at}");
                    assert!(
                        bytes >= bytes_before * (1.0 - NOISE),
                        "{bytes} of {bytes_before}: {at}"
                    );
                }
                before = Some((rate, bytes));
            }
        }
    }
}

#[test]
fn one_at_a_time_is_less_and_sooner() {
    for (io_kib, read_share) in [(4, 1.0), (16, 0.75), (64, 0.5), (128, 0.0)] {
        for spec in [narrow(), wide(), model("zfs-flash", &[])] {
            let at = |depth| carry(spec.clone(), &load(io_kib, read_share, depth, Pattern::Random));
            let (one, four) = (at(1), at(4));
            let latency = |run: &Run| run.measured.latency_ns_mean(|_| true);
            assert!(one.rate() <= four.rate() * (1.0 + NOISE), "{io_kib} KiB, {read_share}");
            assert!(latency(&one) <= latency(&four) * (1.0 + NOISE), "{io_kib} KiB, {read_share}");
        }
    }
}

/// Runs streams after a warm-up in which each client reads 8 MiB, so that the read-ahead has
/// reached its maximum distance.
fn stream(spec: Spec, load: &MatrixLoad) -> Run {
    stream_of(spec, load, 12_000)
}

fn stream_of(spec: Spec, load: &MatrixLoad, measure_ops: u64) -> Run {
    let warm_up = u64::from(load.clients) * (8 << 20) / load.io_bytes;
    let run = run(spec, load, warm_up, measure_ops);
    let data = run.rate() * (1.0 - load.metadata_share) * load.io_bytes as f64;
    let busier = data * load.read_share.max(1.0 - load.read_share);
    assert!(busier <= PORTS_BYTES_PER_S, "{busier} bytes/s through the ports");
    run
}

/// Returns four layouts: raidz1 of 4 + 1 drives and of 3 + 1 drives (twenty drives each), raidz2 of
/// 4 + 2 drives, and mirrors.
fn layouts() -> [Spec; 4] {
    [narrow(), twenty("5", "4"), wide(), model("zfs-flash", &[])]
}

#[test]
fn streams_are_read_as_fast_as_ports_or_processors_allow() {
    for spec in layouts() {
        for (io_kib, factor) in [(4, 1.2), (8, 1.2), (16, 0.95), (32, 0.95), (128, 0.95)] {
            let of = |path: &str| spec.value(path).unwrap();
            let reads = load(io_kib, 1.0, 4, Pattern::Sequential);
            let rate = stream(spec.clone(), &reads).rate();
            let random = carry(spec.clone(), &load(io_kib, 1.0, 4, Pattern::Random)).rate();
            assert!(rate >= factor * random, "{io_kib} KiB: {rate} of {random}");
            // Computes how long an operation occupies a port and the cores. This includes its own
            // work, its share of the name operations, and the checksum of its part of a record.
            let data = 1.0 - reads.metadata_share;
            let bytes = reads.io_bytes as f64;
            let port = of("net.rate_bytes_per_s") * of("net.efficiency_ratio");
            let ports = of("net.ports") * port / (data * bytes + of("net.header_bytes"));
            let work_us = data * (of("nfs.read_us") + 1e-3 * bytes * of("pool.read_ns_per_byte"))
                + reads.metadata_share * of("nfs.meta_us");
            let cores = of("cpu.cores") / work_us * 1e6;
            let most = ports.min(cores);
            assert!(rate <= most * 1.01, "{io_kib} KiB: {rate} of {most}");
            assert!(rate >= most * 0.95, "{io_kib} KiB: {rate} of {most}");
        }
    }
}

#[test]
fn what_is_read_ahead_is_read_from_the_drives_once() {
    for spec in layouts() {
        let reads = load(8, 1.0, 4, Pattern::Sequential);
        let run = stream_of(spec.clone(), &reads, 60_000);
        let of = |path: &str| spec.value(path).unwrap();
        let record = of("records.record_bytes");
        let drives = run.measured.stations.iter().filter(|s| s.name.starts_with("drive"));
        let commands = drives.map(|s| s.stats.departures).sum::<u64>() as f64;
        // A read of a raidz record occupies its whole group (`whole_group_reads`).
        let columns = if record > 65_536.0 { of("pool.width") } else { 1.0 };
        let read = commands / columns * record;
        let requested =
            run.measured.ops as f64 * (1.0 - reads.metadata_share) * reads.io_bytes as f64;
        assert!((read / requested - 1.0).abs() < 0.15, "{read} bytes of {requested}");
        // The first read of each record counts as served by the drives. Later reads of the record
        // count as served by memory.
        let first = reads.io_bytes as f64 / record;
        let share = run.reads_from(Source::Ssd);
        assert!((share / first - 1.0).abs() < 0.1, "{share} of {first}");
    }
}

#[test]
fn streams_are_written_as_fast_as_random_writes() {
    // For mirrors on full drives, the published rates are 825 to 971 MB/s with every size and
    // pattern.
    for spec in layouts() {
        for io_kib in [4, 32, 128] {
            let of = |pattern| stream(spec.clone(), &load(io_kib, 0.0, 4, pattern)).rate();
            let ratio = of(Pattern::Sequential) / of(Pattern::Random);
            assert!((ratio - 1.0).abs() < NOISE, "{io_kib} KiB: {ratio}");
        }
    }
}

#[test]
fn a_stream_of_reads_and_writes_lies_between_both() {
    for spec in [narrow(), model("zfs-flash", &[])] {
        for io_kib in [4, 16, 128] {
            let at = |reads: f64| {
                stream(spec.clone(), &load(io_kib, reads, 4, Pattern::Sequential)).rate()
            };
            let (read, mixed, written) = (at(1.0), at(0.5), at(0.0));
            let (low, high) = (read.min(written), read.max(written));
            // Ports transfer in both directions at the same time, so a mix may be faster than reads
            // alone.
            let both = 1.0 / (0.5 / read).max(0.5 / written);
            assert!(mixed > 0.9 * low, "{io_kib} KiB: {mixed}, {read} and {written}");
            assert!(mixed < 1.05 * high.max(both), "{io_kib} KiB: {mixed}, {read} and {written}");
        }
    }
}

#[test]
fn parity_costs_the_share_of_the_bytes_that_it_is() {
    // The drives limit these writes. On 20 drives, 4/5 of the written bytes are data; on 24 drives,
    // 2/3 are data.
    let large = load(128, 0.0, 4, Pattern::Random);
    let (narrow, wide) = (carry(narrow(), &large).rate(), carry(wide(), &large).rate());
    let expected = (20.0 * 4.0 / 5.0) / (24.0 * 4.0 / 6.0);
    assert!((narrow / wide / expected - 1.0).abs() < 0.1, "{} of {expected}", narrow / wide);
}

/// Returns the mean latency in microseconds of a single client with one operation in flight.
fn alone_us(spec: &Spec, io_kib: u64, read_share: f64, pattern: Pattern) -> f64 {
    let one =
        MatrixLoad { clients: 1, metadata_share: 0.0, ..load(io_kib, read_share, 1, pattern) };
    1e-3 * run(spec.clone(), &one, 1_000, 4_000).measured.latency_ns_mean(|_| true)
}

/// Returns the time that a single operation takes without the checksums and the drives.
fn way_us(spec: &Spec, io_kib: u64, work: &str) -> f64 {
    let of = |path: &str| spec.value(path).unwrap();
    let port = of("net.rate_bytes_per_s") * of("net.efficiency_ratio");
    let bytes = io_kib as f64 * 1024.0 + 2.0 * of("net.header_bytes");
    bytes / port * 1e6 + 2.0 * of("net.latency_us") + of(work)
}

#[test]
fn a_lone_read_takes_the_sum_of_its_path() {
    for spec in [narrow(), wide()] {
        let of = |path: &str| spec.value(path).unwrap();
        let record = of("records.record_bytes");
        // In both layouts, the data of a record is on four drives.
        let drive_us = of("drive.read_us") + record / 4.0 / of("drive.read_bytes_per_s") * 1e6;
        let way_us = way_us(&spec, 4, "nfs.read_us");
        let sum_us = way_us + 1e-3 * record * of("pool.read_ns_per_byte") + drive_us;
        let latency_us = alone_us(&spec, 4, 1.0, Pattern::Uniform);
        // The read waits for the slowest of several drives, whose times vary. This takes less than
        // twice the mean time of a drive.
        assert!(latency_us > 0.97 * sum_us, "{latency_us} of {sum_us} us");
        assert!(latency_us < sum_us + drive_us, "{latency_us} of {sum_us} us");
        // In a stream, drives and checksums have finished before the client requests the data.
        let latency_us = alone_us(&spec, 4, 1.0, Pattern::Sequential);
        assert!((latency_us / way_us - 1.0).abs() < 0.03, "{latency_us} of {way_us} us");
    }
}

#[test]
fn a_lone_write_takes_the_sum_of_its_path() {
    for spec in [narrow(), wide()] {
        let of = |path: &str| spec.value(path).unwrap();
        let record = of("records.record_bytes");
        let extra = of("records.record_metadata_bytes");
        let sum_us = |column: f64, rate: &str| {
            let work =
                way_us(&spec, 128, "nfs.write_us") + 1e-3 * record * of("pool.write_ns_per_byte");
            let drive_us = of("drive.write_us") + column / of(rate) * 1e6;
            (work + drive_us, drive_us)
        };
        for pattern in [Pattern::Uniform, Pattern::Sequential] {
            let (sum_us, drive_us) = sum_us((record + extra) / 4.0, "drive.write_bytes_per_s");
            let latency_us = alone_us(&spec, 128, 0.0, pattern);
            assert!(latency_us > 0.97 * sum_us, "{latency_us} of {sum_us} us: {pattern:?}");
            assert!(latency_us < sum_us + drive_us, "{latency_us} of {sum_us} us: {pattern:?}");
        }
    }
}
