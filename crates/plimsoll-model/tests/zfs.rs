//! The array as layouts and loads that no published table shows: a narrow parity group, one operation at a
//! time, sequential streams. Nothing measured says what comes out; physics says what cannot.
#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_model::run::{MatrixLoad, Pattern};
use plimsoll_model::spec::Spec;
use support::{Run, model, run};

/// What four ports of 10 Gbit/s carry.
const PORTS_BYTES_PER_S: f64 = 4.0 * 1.25e9;
/// What rates and latencies of runs of 8,000 operations differ by without any reason.
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

/// Four groups of 4 + 1, and the 4 + 2 of the published table.
fn narrow() -> Spec {
    raidz("4", "5", "1")
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
    // Little's law from outside: no more are inside than were let in.
    let inside = rate * latency_s;
    let let_in = f64::from(load.clients * load.depth);
    assert!(inside <= let_in * (1.0 + NOISE), "{inside} inside of {let_in}");
    if load.depth == 1 {
        // Without a barrier to wait at, all of them.
        assert!(inside >= let_in * (1.0 - NOISE), "{inside} inside of {let_in}");
    }
    // Data pass the ports in one of the two directions.
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
                let rate = carry(narrow(), &load(io_kib, read_share, 4, pattern)).rate();
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

#[test]
fn sequential_reads_are_at_least_as_fast_as_random_ones() {
    for io_kib in [4, 16, 64, 128] {
        for spec in [narrow(), model("zfs-flash", &[])] {
            let at = |pattern| carry(spec.clone(), &load(io_kib, 1.0, 4, pattern)).rate();
            let (stream, random) = (at(Pattern::Sequential), at(Pattern::Random));
            assert!(stream >= random * (1.0 - NOISE), "{io_kib} KiB: {stream} of {random}");
        }
    }
}

#[test]
fn parity_costs_the_share_of_the_bytes_that_it_is() {
    // Writes that the drives limit: 20 drives that keep 4/5 of what they write against 24 that keep 2/3.
    let large = load(128, 0.0, 4, Pattern::Random);
    let (narrow, wide) = (carry(narrow(), &large).rate(), carry(wide(), &large).rate());
    let expected = (20.0 * 4.0 / 5.0) / (24.0 * 4.0 / 6.0);
    assert!((narrow / wide / expected - 1.0).abs() < 0.1, "{} of {expected}", narrow / wide);
}

#[test]
fn small_sequential_reads_find_the_rest_of_a_record_in_memory() {
    let at = |pattern| carry(narrow(), &load(4, 1.0, 4, pattern)).rate();
    let (stream, random) = (at(Pattern::Sequential), at(Pattern::Random));
    assert!(stream > 1.2 * random, "{stream} of {random}");
}

#[test]
fn a_lone_read_takes_the_sum_of_its_path() {
    for spec in [narrow(), wide()] {
        let of = |path: &str| spec.value(path).unwrap();
        let record = of("records.record_bytes");
        // Data of a record lie on four drives of either layout.
        let drive_us = of("drive.read_us") + record / 4.0 / of("drive.read_bytes_per_s") * 1e6;
        let port = of("net.rate_bytes_per_s") * of("net.efficiency_ratio");
        let bytes = 4096.0 + 2.0 * of("net.header_bytes");
        let sum_us = bytes / port * 1e6
            + 2.0 * of("net.latency_us")
            + of("nfs.read_us")
            + 1e-3 * record * of("pool.read_ns_per_byte")
            + drive_us;
        let alone =
            MatrixLoad { clients: 1, metadata_share: 0.0, ..load(4, 1.0, 1, Pattern::Uniform) };
        let run = run(spec.clone(), &alone, 500, 4_000);
        let latency_us = 1e-3 * run.measured.latency_ns_mean(|_| true);
        // It waits for the slowest of the group's drives, whose times vary: not twice the mean.
        assert!(latency_us > 0.97 * sum_us, "{latency_us} of {sum_us} us");
        assert!(latency_us < sum_us + drive_us, "{latency_us} of {sum_us} us");
    }
}
