//! Each test removes or adds one mechanism of `adsf-hybrid`. Rate and latency must change in the
//! documented direction and by about the documented amount. Each test states the reasoning.

use crate::support::{Run, load, model, run, run_on};
use plimsoll_model::blocks::{Action, Request, Source};
use plimsoll_model::run::MatrixLoad;
use plimsoll_model::system::{Event, System};

const GB: u64 = 1_000_000_000;

/// Settings of the cluster at a hundredth of its size. Each node has 40 GB of data, or 80 GB with
/// replicas. A node's SSD tier stores 8.1 GB of this data (67.5 % of 12 GB). Unless a test states
/// otherwise, map entries are cached and data does not move between tiers.
const SMALL: [(&str, &str); 6] = [
    ("extents.capacity_bytes", "\"12 GB\""),
    ("extents.writes", "\"in-place\""),
    ("extents.promote_touches", "0"),
    ("oplog.capacity_bytes", "\"2 GB\""),
    ("cache.capacity_bytes", "0"),
    ("metadata.warm", "true"),
];

fn small(changes: &[(&str, &str)]) -> plimsoll_model::spec::Spec {
    model("adsf-hybrid", &[&SMALL[..], changes].concat())
}

/// Stores all data on flash, where latencies vary little.
const FLASH: (&str, &str) = ("extents.slow", "\"ssd\"");

fn mixed() -> MatrixLoad {
    load(16, 0.6, 40 * GB)
}

#[test]
fn the_log_takes_random_writes_off_the_disks() {
    // With the log, a write completes when it is on two SSDs. This takes about one millisecond,
    // after half a millisecond in the guest (`controller.write_wait_us`). Without the log, 90 % of
    // the writes wait for the slower of two disks. Each disk needs at least a seek and half a
    // revolution.
    let with = run(small(&[]), &mixed(), 2_000, 6_000);
    let without = run(small(&[("oplog.capacity_bytes", "0")]), &mixed(), 2_000, 6_000);
    assert!(with.writes_to(Source::Log) > 0.999);
    assert!(with.ms("write") < 2.0, "{}", with.ms("write"));
    assert!(without.ms("write") > 12.0, "{}", without.ms("write"));
    let to_disk = without.writes_to(Source::Hdd);
    assert!((to_disk - 0.9).abs() < 0.03, "{to_disk}");
    assert!(without.rate() < 0.8 * with.rate(), "{} of {}", without.rate(), with.rate());
}

#[test]
fn a_full_log_spills_and_writes_see_the_disks() {
    // 64 clients write at full speed, so the log fills. Then the rate falls to the rate at which
    // the log is drained. The disks write every drained byte twice.
    let writes = load(64, 0.0, 40 * GB);
    let roomy = run(small(&[]), &writes, 1_000, 6_000);
    let tight = run(small(&[("oplog.capacity_bytes", "\"16 MB\"")]), &writes, 4_000, 6_000);
    assert_eq!(roomy.reading("oplog", "spilled"), 0.0);
    assert!(tight.reading("oplog", "spilled") > 1_000.0);
    assert!(tight.rate() < 0.2 * roomy.rate(), "{} of {}", tight.rate(), roomy.rate());
    assert!(tight.busy(".hdd") > 0.9, "{}", tight.busy(".hdd"));
}

#[test]
fn what_is_written_again_in_the_log_is_drained_once() {
    // The clients address 4 x 64 MB, which is 8,192 units. 30,000 writes hit each unit about 3.7
    // times.
    let again = load(16, 0.0, 64_000_000);
    let run = run(small(&[("oplog.drain_share", "0.9")]), &again, 0, 30_000);
    let (absorbed, coalesced) =
        (run.reading("oplog", "absorbed"), run.reading("oplog", "coalesced"));
    let units = 4.0 * 64_000_000.0 / 32_768.0;
    let expected = absorbed - units * (1.0 - (-absorbed / units).exp());
    assert!((coalesced / expected - 1.0).abs() < 0.03, "{coalesced} of {absorbed}");
}

#[test]
fn the_read_cache_serves_what_fits() {
    // The clients read 40 MB of each node at random. A cache of 20 MB contains half of the data,
    // and a cache of 50 MB all of it.
    let reads = load(16, 1.0, 40_000_000);
    let cache = |bytes: &str| {
        let changes = [FLASH, ("cache.capacity_bytes", bytes), ("cache.unit_bytes", "32768")];
        run(small(&changes), &reads, 60_000, 20_000)
    };
    let (none, half, all) = (cache("0"), cache("20e6"), cache("50e6"));
    // The cache counts from the start of the run, including the warm-up.
    assert_eq!(none.reads_from(Source::Dram), 0.0);
    let got = half.reading("cache", "read_hits")
        / (half.reading("cache", "read_hits") + half.reading("cache", "read_misses"));
    assert!((got - 0.5).abs() < 0.03, "{got}");
    // A hit takes 70 us of the controller's CPU time. A miss takes another 90 us on the SSD and 63
    // us on its link.
    assert!(all.ms("read") < 0.15, "{}", all.ms("read"));
    assert!(none.ms("read") > 3.0 * all.ms("read"), "{} {}", none.ms("read"), all.ms("read"));
    let between = 0.5 * (none.ms("read") + all.ms("read"));
    assert!((half.ms("read") / between - 1.0).abs() < 0.1, "{} {between}", half.ms("read"));
}

#[test]
fn a_cold_metadata_cache_costs_its_extra_reads() {
    // Each node has one client and all data is on flash, so no request waits in a queue. A miss of
    // the map reads the map twice. Each of these reads takes an SSD read of 4 KB (90 us, and 63 us
    // of transfer on one of 8 lanes) and 1,000 us of CPU time.
    let reads = load(4, 1.0, 40 * GB);
    let warm = run(small(&[FLASH]), &reads, 500, 4_000);
    let cold = [FLASH, ("metadata.warm", "false"), ("metadata.capacity_bytes", "0")];
    let cold = run(small(&cold), &reads, 500, 4_000);
    let (more, expected) = (cold.ms("read") - warm.ms("read"), 2.0 * (0.09 + 0.063 + 1.0));
    assert!((more / expected - 1.0).abs() < 0.05, "{more} ms, {expected} expected");
    assert_eq!(cold.reading("metadata", "hit_share"), 0.0);
    assert_eq!(warm.reading("metadata", "hit_share"), 4.0);
}

/// Runs a load on one hot gigabyte of each node. The hot data was written before all other data.
fn hot(changes: &[(&str, &str)], measure_ops: u64) -> Run {
    let mut system = System::build(small(changes), 1).unwrap();
    let hot: Vec<(u32, u64, u16)> = (0..4).map(|n| (n, GB, n as u16)).collect();
    let rest: Vec<(u32, u64, u16)> = (0..4).map(|n| (n + 4, 40 * GB, n as u16)).collect();
    system.lay_files(&hot);
    system.lay_files(&rest);
    run_on(system, &load(32, 1.0, GB), 30_000, measure_ops)
}

#[test]
fn hot_extents_move_up_after_three_touches() {
    // The hot data is on the disks first. Each node has 954 hot extents of 1 MiB and reads them at
    // least 200 times a second. So the warm-up touches each extent three times, and then the SSD
    // serves nearly all reads.
    let (fixed, moving) = (hot(&[], 4_000), hot(&[("extents.promote_touches", "3")], 4_000));
    assert!(fixed.reads_from(Source::Hdd) > 0.999);
    let promoted = moving.reading("extents", "promoted_extents");
    assert!(promoted > 2_500.0, "{promoted} of 3,816");
    assert!(moving.rate() > 4.0 * fixed.rate(), "{} {}", moving.rate(), fixed.rate());
    assert!(moving.ms("read") < 0.2 * fixed.ms("read"), "{}", moving.ms("read"));
}

#[test]
fn rewriting_more_than_the_tier_holds_costs_moves() {
    // By default, every drained write promotes one extent and demotes another to make space, so a
    // 32 KB write causes reads and writes of 1 MB. The tuned settings are for large working sets,
    // in which no data moves.
    let drains = [("oplog.file_bytes", "20e6"), ("extents.demote_step_share", "0.0")];
    let fast = [&drains[..], &[("extents.writes", "\"fast\"")]].concat();
    let (tuned, default) =
        (run(small(&drains), &mixed(), 4_000, 6_000), run(small(&fast), &mixed(), 4_000, 6_000));
    assert_eq!(tuned.reading("extents", "demoted_extents"), 0.0);
    assert!(default.reading("extents", "demoted_extents") > 500.0);
    let filled = default.reading("extents", "filled_share") / 4.0;
    assert!((0.55..0.8).contains(&filled), "{filled}");
    assert!(default.rate() < 0.75 * tuned.rate(), "{} of {}", default.rate(), tuned.rate());
}

#[test]
fn compression_makes_the_fast_tier_larger() {
    // The data compresses by 4:1, so the SSD tier stores four times as many extents. It serves 40 %
    // of the reads instead of 10 %.
    let compress = [
        ("compress.inline", "true"),
        ("compress.data_ratio", "4"),
        ("extents.promote_touches", "0"),
    ];
    let (off, on) =
        (run(small(&[]), &mixed(), 2_000, 8_000), run(small(&compress), &mixed(), 2_000, 8_000));
    let (a, b) = (off.reads_from(Source::Ssd), on.reads_from(Source::Ssd));
    assert!((b / a - 4.0).abs() < 0.4, "{a} to {b}");
    assert!(on.rate() > 1.2 * off.rate(), "{} {}", on.rate(), off.rate());
    assert!(on.busy("cpu") / on.rate() > 1.05 * off.busy("cpu") / off.rate());
    // If the data cannot be compressed, the rate does not change.
    let random = [("compress.inline", "true"), ("compress.data_ratio", "1")];
    let random = run(small(&random), &mixed(), 2_000, 8_000);
    assert!((random.rate() / off.rate() - 1.0).abs() < 0.02);
}

#[test]
fn locality_saves_the_way_over_the_network() {
    // Two copies are spread over four nodes without locality, so half of the reads have no local
    // copy. Each remote read adds two network delays of 60 us, two messages, two transfers of 32 KB
    // over 10 GbE, and CPU time of the other node.
    let reads = load(4, 1.0, 40 * GB);
    let local = run(small(&[FLASH]), &reads, 500, 6_000);
    let spread = run(small(&[FLASH, ("replicate.local", "false")]), &reads, 500, 6_000);
    assert_eq!(local.remote(), 0.0);
    assert!((spread.remote() - 0.5).abs() < 0.03, "{}", spread.remote());
    let transfer_ms = 2.0 * (32_768.0 + 400.0) / (1.25e9 * 0.94) * 1e3;
    let remote_ms = 2.0 * 0.06 + 4.0 * 0.005 + transfer_ms + 0.04;
    let more = spread.ms("read") - local.ms("read");
    assert!((more / (0.5 * remote_ms) - 1.0).abs() < 0.1, "{more} ms of {remote_ms}");
}

#[test]
fn a_third_copy_costs_a_third_of_the_disks_writes() {
    // All operations are writes, there is no log, and the disks limit the rate. With three copies
    // instead of two, the disks write 1.5 times as much.
    let writes = load(128, 0.0, 40 * GB);
    let none = [("oplog.capacity_bytes", "0"), ("extents.capacity_bytes", "0")];
    let three = [&none[..], &[("replicate.copies", "3"), ("oplog.copies", "3")]].concat();
    let (two, three) =
        (run(small(&none), &writes, 2_000, 8_000), run(small(&three), &writes, 2_000, 8_000));
    let ratio = three.rate() / two.rate();
    assert!((ratio / (2.0 / 3.0) - 1.0).abs() < 0.1, "{ratio}");
}

#[test]
fn storage_only_nodes_take_the_replicas() {
    // The disks limit the rate. For each operation of a node, its disks execute 0.6 reads on
    // average. Without storage-only nodes, they also execute 0.8 writes: the node's own copies, and
    // copies of a neighbour. With four storage-only nodes, which are emptier and store nearly all
    // second copies, only 0.4 writes remain. So the rate rises by a factor of 1.4 / 1.0.
    let full = load(128, 0.6, 40 * GB);
    let none = [("oplog.capacity_bytes", "0"), ("extents.capacity_bytes", "0")];
    let eight = [&none[..], &[("model.storage_nodes", "4")]].concat();
    let (four, eight) =
        (run(small(&none), &full, 2_000, 8_000), run(small(&eight), &full, 2_000, 8_000));
    let ratio = eight.rate() / four.rate();
    assert!((ratio / 1.4 - 1.0).abs() < 0.12, "{ratio}");
    assert!(eight.ms("read") < four.ms("read"));
    assert_eq!(eight.measured.inside[4..].iter().map(|i| i.reads_all().ios).sum::<u64>(), 0);
}

#[test]
fn a_rebuild_competes_and_ends_with_all_copies() {
    let lost = |active| [("model.failed_nodes", "1"), ("replicate.rebuild_active", active)];
    let mixed = load(24, 0.6, 4 * GB);
    let idle = run(small(&lost("0")), &mixed, 2_000, 6_000);
    let busy = run(small(&lost("16")), &mixed, 2_000, 6_000);
    assert_eq!(idle.reading("replicate", "rebuilt_units"), 0.0);
    let rebuilt = busy.reading("replicate", "rebuilt_units");
    assert!(rebuilt > 50.0, "{rebuilt}");
    assert!(busy.rate() < 0.95 * idle.rate(), "{} {}", busy.rate(), idle.rate());
    let message = System::build(small(&[lost("0")[0], ("replicate.copies", "1")]), 1)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(message.contains("data would be lost"), "{message}");
}

#[test]
fn a_node_that_fails_in_mid_run_is_there_until_then_and_rebuilt_afterwards() {
    let mixed = load(24, 0.6, 4 * GB);
    let storage = ("model.storage_nodes", "2");
    let failing = |at_s| {
        let changes = [storage, ("model.failing_nodes", "1"), ("model.failing_at_s", at_s)];
        run(small(&changes), &mixed, 2_000, 6_000)
    };
    let (whole, later) = (run(small(&[storage]), &mixed, 2_000, 6_000), failing("1e6"));
    // If the node fails after the end of the run, no operation changes.
    assert_eq!(later.rate(), whole.rate());
    assert_eq!(later.ms("read"), whole.ms("read"));
    let soon = failing("0.05");
    assert!(soon.reading("replicate", "rebuilt_units") > 0.0);
    assert!(soon.rate() != whole.rate());
    // Only storage-only nodes may fail, because the load of any other node would fail too.
    let wrong = System::build(small(&[("model.failing_nodes", "1")]), 1).err();
    let message = wrong.map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("failing_nodes"), "{message}");
}

/// Fails node 3, and reads data that it wrote from node 0. Returns the mean latency of the reads in
/// ms, and the number of disk visits.
fn read_of_lost(changes: &[(&str, &str)]) -> (f64, u64) {
    let changes = [changes, &[("model.failed_nodes", "1"), ("extents.capacity_bytes", "0")]];
    let mut system = System::build(small(&changes.concat()), 1).unwrap();
    system.lay_files(&[(7, 4 * GB, 3)]);
    let (mut sum, count) = (0, 200);
    for i in 0..count {
        let mut request = Request::new(Action::Read, 7, i * 20_000_768 / 4096 * 4096, 4096);
        request.node = 0;
        system.submit(1, 0, &request);
        while let Some(event) = system.next() {
            if let Event::Done { tag: 1, submitted_ns } = event {
                sum += system.now_ns() - submitted_ns;
                break;
            }
        }
    }
    let names: Vec<bool> = (0..system.sim().stations() as u32)
        .map(|s| system.sim().name(plimsoll_model::core::StationId(s)).contains(".hdd"))
        .collect();
    let stats = system.sim().close_window();
    let visits = stats.iter().zip(names).filter(|(_, disk)| *disk).map(|(s, _)| s.departures);
    (sum as f64 * 1e-6 / count as f64, visits.sum())
}

#[test]
fn erasure_coded_data_cost_nothing_until_a_node_fails() {
    // Without a failure, reading a strip takes as long as reading a copy. All data is on disks,
    // because coded data needs half the space, so an SSD tier would store a larger share of it.
    let reads = load(4, 1.0, 40 * GB);
    let disks = ("extents.capacity_bytes", "0");
    let coded = [("replicate.erasure_share", "1"), disks];
    let (plain, healthy) =
        (run(small(&[disks]), &reads, 500, 3_000), run(small(&coded), &reads, 500, 3_000));
    assert!((healthy.ms("read") / plain.ms("read") - 1.0).abs() < 0.1);
    // Coded data has one copy instead of two, so it takes half the space.
    let used = |r: &Run| r.reading("replicate", "fullest_node_share");
    assert!((used(&healthy) / used(&plain) - 0.5).abs() < 0.05);
    // After a node has failed, a read of copied data reads one disk of another node. A read of
    // coded data reads four disks, and the slowest disk determines the latency.
    let no_rebuild = ("replicate.rebuild_active", "0");
    let (copy_ms, copy_visits) = read_of_lost(&[no_rebuild]);
    let (strip_ms, strip_visits) = read_of_lost(&[no_rebuild, coded[0]]);
    assert_eq!((copy_visits, strip_visits), (200, 800));
    assert!(strip_ms > 1.15 * copy_ms, "{strip_ms} {copy_ms}");
}

#[test]
fn all_flash_never_visits_a_disk() {
    let (hybrid, flash) =
        (run(small(&[]), &mixed(), 500, 4_000), run(small(&[FLASH]), &mixed(), 500, 4_000));
    assert_eq!(flash.visits(".hdd"), 0);
    assert_eq!(flash.reads_from(Source::Ssd) + flash.reads_from(Source::Log), 1.0);
    assert!(flash.rate() > 5.0 * hybrid.rate());
}

#[test]
fn reads_of_what_was_never_written_touch_no_drive() {
    // The file is empty, so the map serves all reads. A cache has no effect, even if it has space
    // for the whole file.
    let roomy = small(&[("cache.capacity_bytes", "\"8 GB\"")]);
    let mut system = System::build(roomy, 1).unwrap();
    system.lay_files(&[(99, GB, 0)]);
    let empty = run_on(system, &load(16, 1.0, GB), 20_000, 5_000);
    assert!(empty.reads_from(Source::Zero) > 0.999);
    assert!(empty.ms("read") < 0.5, "{}", empty.ms("read"));
    assert_eq!(empty.visits(".hdd"), 0);
}

#[test]
fn the_published_settings_come_out_in_order() {
    // The test simulates settings 1, 3 and 6 of seven published settings for one block of four
    // nodes, with a tenth of the data and a tenth of the SSD tier. The published rates are 200.7,
    // 389.8 and 362.7 IOPS a server. Setting 1 has the default tiering, and its databases share a
    // virtual disk, so the disk's part of the log is always full. Setting 6 has a third fewer
    // threads than setting 3, and all map entries are cached. (Mailbox runs of twenty minutes at
    // full size reach 196, 369 and about 330 IOPS.)
    let setting = |clients, more: &[(&str, &str)]| {
        let scale = ("extents.capacity_bytes", "\"120 GB\"");
        let spec = model("adsf-hybrid", &[&[scale], more].concat());
        run(spec, &load(clients, 0.6, 350 * GB), 12_000, 12_000).rate() / 4.0
    };
    let tuned = ("extents.writes", "\"in-place\"");
    let one = setting(16, &[("oplog.file_bytes", "10e6")]);
    let three = setting(16, &[tuned]);
    let six = setting(11, &[tuned, ("metadata.warm", "true")]);
    assert!(three > six && six > one, "{one} {three} {six}");
    for (got, published) in [(one / three, 200.7 / 389.8), (six / three, 362.7 / 389.8)] {
        assert!((got / published - 1.0).abs() < 0.15, "{got} {published}: {one} {three} {six}");
    }
    assert!((three / 389.8 - 1.0).abs() < 0.15, "{three}");
}

#[test]
fn storage_only_nodes_take_the_other_copies() {
    // Each of four nodes has 4 GB of data and also stores 4 GB of other nodes' copies. With four
    // more storage-only nodes, which store all second copies, a node with load stores only its own
    // 4 GB.
    let fullest = |storage_nodes: &str| {
        let changes =
            [("model.storage_nodes", storage_nodes), ("replicate.node_capacity_bytes", "1e12")];
        let mut system = System::build(small(&changes), 1).unwrap();
        let files: Vec<(u32, u64, u16)> = (0..4).map(|n| (n, 4 * GB, n as u16)).collect();
        system.lay_files(&files);
        let mut share = 0.0;
        system.readings(&mut |_, _, reading, value| {
            share = if reading == "fullest_node_share" { value } else { share };
        });
        share * 1e12 / GB as f64
    };
    let (four, eight, five) = (fullest("0"), fullest("4"), fullest("1"));
    assert!((four / 8.0 - 1.0).abs() < 0.03, "{four} GB");
    assert!((eight / 4.0 - 1.0).abs() < 0.03, "{eight} GB");
    // Four nodes with load and one storage-only node store 32 GB in total, and all five are equally
    // full.
    assert!((five / 6.4 - 1.0).abs() < 0.03, "{five} GB");
}
