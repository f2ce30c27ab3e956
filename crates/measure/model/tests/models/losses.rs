//! Tests lost and slow components. The remaining components must serve the load at the calculated
//! rate, and events of a plan must happen exactly at their times.

use std::sync::atomic::AtomicBool;

use plimsoll_evidence::run::EndKind;
use plimsoll_evidence::series::{Data, Row};
use plimsoll_model::core::StationId;
use plimsoll_model::run::{ConfiguredModel, ModelRun, RunError, check_plan, run_plan};
use plimsoll_model::system::System;
use plimsoll_plan::{Plan, TargetKind};
use plimsoll_record::progress::SilentWatcher;
use plimsoll_record::recording::Recording;

use crate::support::{Run, load, model, run_on};

const GB: u64 = 1_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Creates a cluster of four nodes without caches, log and flash tier, so that the disks limit the
/// rate.
fn disks(changes: &[(&str, &str)]) -> System {
    let own = [
        ("oplog.capacity_bytes", "0"),
        ("extents.capacity_bytes", "0"),
        ("extents.promote_touches", "0"),
        ("cache.capacity_bytes", "0"),
        ("metadata.warm", "true"),
        ("model.detect_s", "0"),
        ("replicate.rebuild_after_s", "1e6"),
    ];
    let mut system = System::build(model("adsf-hybrid", &[&own[..], changes].concat()), 1).unwrap();
    let files: Vec<(u32, u64, u16)> = (0..4).map(|file| (file, 40 * GB, file as u16)).collect();
    system.lay_files(&files);
    system
}

fn lose(mut system: System, names: &[&str]) -> System {
    for name in names {
        let component = system.component(name).unwrap();
        system.set_lost(component, true);
    }
    system
}

/// Returns the number of visits to stations whose names start with `prefix`.
fn visits(run: &Run, prefix: &str) -> u64 {
    let stations = run.measured.stations.iter();
    stations.filter(|s| s.name.starts_with(prefix)).map(|s| s.stats.departures).sum()
}

#[test]
fn three_of_four_nodes_have_three_quarters_of_the_disks_and_the_lost_one_does_nothing() {
    // Both loads have the same number of requests in flight per disk, because deeper queues would
    // make the disks faster.
    let reads = |clients| load(clients, 1.0, 40 * GB);
    let whole = run_on(disks(&[]), &reads(128), 2_000, 10_000);
    let lost = run_on(lose(disks(&[]), &["node:3"]), &reads(96), 2_000, 10_000);
    let ratio = lost.rate() / whole.rate();
    assert!((ratio / 0.75 - 1.0).abs() < 0.04, "{ratio}");
    assert!(visits(&whole, "node3.hdd") > 1_000);
    assert_eq!(visits(&lost, "node3."), 0);
    // Each read is still one command on one disk.
    let per_read = |run: &Run| {
        let nodes = (0..4).map(|node| visits(run, &format!("node{node}.hdd"))).sum::<u64>();
        nodes as f64 / run.measured.ops as f64
    };
    assert!((per_read(&lost) / per_read(&whole) - 1.0).abs() < 0.02);
}

#[test]
fn a_rebuild_restores_every_copy_and_a_return_only_what_was_written_meanwhile() {
    // Each node has 4 GB of data in units of 4 MiB, with two copies.
    let mut system = System::build(
        model("adsf-hybrid", &[("model.detect_s", "2"), ("replicate.rebuild_after_s", "3")]),
        1,
    )
    .unwrap();
    let files: Vec<(u32, u64, u16)> = (0..4).map(|file| (file, 4 * GB, file as u16)).collect();
    system.lay_files(&files);
    let rebuilt = |system: &System| {
        let mut units = 0.0;
        system.readings(&mut |_, _, reading, value| {
            units = if reading == "rebuilt_units" { value } else { units };
        });
        units
    };
    let advance = |system: &mut System, until_s: u64| {
        system.set_timer(until_s * SECOND_NS, 7);
        while system.next() != Some(plimsoll_model::system::Event::Timer { tag: 7 }) {}
    };
    let node = system.component("node:1").unwrap();
    system.set_lost(node, true);
    advance(&mut system, 5);
    assert_eq!(rebuilt(&system), 0.0, "2 s until the notice and 3 s until the rebuild");
    let mut back = system.clone();
    advance(&mut system, 4_000);
    // The lost node stored 954 first copies, and about as many second copies of other nodes' units.
    let own = (4 * GB).div_ceil(4 << 20) as f64;
    let all = rebuilt(&system);
    assert!((all / (2.0 * own) - 1.0).abs() < 0.15, "{all} units of {}", 2.0 * own);
    // If a node returns after a short time, only a few of its copies are stale.
    back.set_lost(node, false);
    advance(&mut back, 4_000);
    assert!(rebuilt(&back) < 20.0, "{}", rebuilt(&back));
}

#[test]
fn other_nodes_serve_the_data_of_a_lost_disk_and_receive_its_copies() {
    let reads = load(16, 1.0, 40 * GB);
    let whole = run_on(disks(&[]), &reads, 2_000, 10_000);
    let lost = run_on(lose(disks(&[]), &["node1.hdd:2"]), &reads, 2_000, 10_000);
    assert_eq!(visits(&lost, "node1.hdd.2"), 0);
    let share = |run: &Run, prefix: &str| visits(run, prefix) as f64 / run.measured.ops as f64;
    // Other nodes now serve a third of the reads of node 1. This is a twelfth of all reads.
    assert!((share(&lost, "node1.hdd") / share(&whole, "node1.hdd") - 2.0 / 3.0).abs() < 0.05);
    assert!((lost.remote() - 1.0 / 12.0).abs() < 0.02, "{}", lost.remote());
    // The disk is one of three, so a third of the node's copies have a part on it. All of these are
    // rebuilt.
    let rebuilding = [("replicate.rebuild_after_s", "0")];
    let mut system = lose(disks(&rebuilding), &["node1.hdd:2"]);
    system.set_timer(20_000 * SECOND_NS, 7);
    while system.next() != Some(plimsoll_model::system::Event::Timer { tag: 7 }) {}
    let mut units = 0.0;
    system.readings(&mut |_, _, reading, value| {
        units = if reading == "rebuilt_units" { value } else { units };
    });
    let node = 2.0 * (40 * GB).div_ceil(4 << 20) as f64;
    assert!((units / (node / 3.0) - 1.0).abs() < 0.15, "{units} of {node}");
}

/// Returns a pool of 12 mirrors of two drives, without caches, that contains 24 GB.
fn pool(changes: &[(&str, &str)]) -> System {
    let own = [("arc.capacity_bytes", "0"), ("model.detect_s", "0")];
    let spec = model("zfs-flash", &[&own[..], changes].concat());
    let mut system = System::build(spec, 1).unwrap();
    let files: Vec<(u32, u64, u16)> = (0..4).map(|file| (file, 6 * GB, 0)).collect();
    system.lay_files(&files);
    system
}

#[test]
fn the_other_side_of_a_mirror_serves_all_reads_and_a_spare_receives_its_data() {
    let reads = load(64, 1.0, 6 * GB);
    let none = [("pool.spares", "0")];
    let whole = run_on(pool(&none), &reads, 2_000, 20_000);
    let lost = run_on(lose(pool(&none), &["drive:5"]), &reads, 2_000, 20_000);
    let share = |run: &Run, drive: u32| {
        let name = format!("drive.{drive}");
        let own = run.measured.stations.iter().find(|s| s.name == name).unwrap();
        own.stats.departures as f64 / run.measured.ops as f64
    };
    assert_eq!(share(&lost, 5), 0.0);
    let expected = share(&whole, 4) + share(&whole, 5);
    assert!((share(&lost, 4) / expected - 1.0).abs() < 0.1, "{} {expected}", share(&lost, 4));
    // The pool has a spare. 24 GB on 12 mirrors are 2 GB a mirror, which are read from one drive of
    // the mirror and written to the spare in place of the other.
    let mut system = lose(pool(&[]), &["drive:5"]);
    system.sim().open_window();
    while system.next().is_some() {}
    let stats = system.sim().close_window();
    let visits = |system: &mut System, name: &str| {
        let stations = (0..system.sim().stations() as u32).map(StationId);
        let ids: Vec<StationId> = stations.filter(|id| system.sim().name(*id) == name).collect();
        ids.iter().map(|id| stats[id.0 as usize].departures).sum::<u64>()
    };
    let parts = (2 * GB).div_ceil(1 << 20);
    assert_eq!((visits(&mut system, "drive.4"), visits(&mut system, "drive.5")), (parts, parts));
    assert_eq!(visits(&mut system, "drive.6"), 0);
}

#[test]
fn parity_columns_replace_lost_ones_up_to_the_parity() {
    let raidz = [
        ("pool.layout", "\"raidz\""),
        ("pool.groups", "4"),
        ("pool.width", "6"),
        ("pool.parity", "2"),
        ("pool.spares", "0"),
        ("pool.whole_group_reads", "false"),
    ];
    let reads = load(16, 1.0, 6 * GB);
    let commands = |lost: &[&str]| {
        let run = run_on(lose(pool(&raidz), lost), &reads, 500, 4_000);
        visits(&run, "drive.") as f64 / run.measured.ops as f64
    };
    let whole = commands(&[]);
    let two = commands(&["drive:0", "drive:1"]);
    assert!((two / whole - 1.0).abs() < 0.02, "{two} {whole}");
}

#[test]
fn a_slow_station_is_slower_by_its_factor() {
    let reads = load(256, 1.0, 40 * GB);
    let flash = [("extents.slow", "\"ssd\"")];
    let whole = run_on(disks(&flash), &reads, 2_000, 10_000);
    let mut slow = disks(&flash);
    let stations = slow.throttled("ssd").unwrap();
    // Each drive consists of two stations: the drive and its link.
    assert_eq!(stations.len(), 8);
    slow.set_speed(&stations, 0.25);
    let slow = run_on(slow, &reads, 2_000, 10_000);
    let ratio = slow.rate() / whole.rate();
    assert!((ratio / 0.25 - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn names_of_components_are_those_of_the_stations() {
    let cluster = disks(&[]);
    assert!(cluster.component("node:3").is_ok() && cluster.component("node3").is_ok());
    let known = cluster.component("node:4").unwrap_err();
    assert!(known.starts_with("node:0, node:1, node:2, node:3, node0.hdd:0"), "{known}");
    assert!(cluster.component("node3.hdd:2").is_ok() && cluster.component("node3.hdd:3").is_err());
    assert_eq!(cluster.throttled("node1.hdd:2").unwrap().len(), 1);
    assert_eq!(cluster.throttled("node1.hdd").unwrap().len(), 3);
    assert_eq!(cluster.throttled("ssd").unwrap().len(), 8);
    assert!(cluster.throttled("node:1").unwrap().len() > 5);
    let known = cluster.throttled("drive").unwrap_err();
    assert!(known.contains("hdd") && known.contains("node:0"), "{known}");
    let pool = pool(&[]);
    assert!(pool.component("drive:23").is_ok());
    assert!(pool.component("drive:24").unwrap_err().ends_with("drive:23"));
    assert!(pool.component("node:0").is_err());
}

/// Returns a plan of 120 s on a model, with a rate that a single disk sustains. `rest` contains
/// events and limits.
fn plan(model: &str, rest: &str) -> Plan {
    let text = format!(
        "version = 1\nname = \"p\"\nseed = 5\n{rest}\n[target]\nmodel = \
         \"{model}\"\n[[workload.matrix]]\nname = \"load\"\nclients = 8\narrival = \
         \"poisson\"\nrate = 60\nfiles = 4\nfile_size = \"1GiB\"\nsizes = \"16KiB\"\nreads = \
         70\n[phases]\nwarm_up = \"1s\"\nmeasure = \"120s\"\n[evidence]\nmin_measure = \"1s\"\n"
    );
    Plan::parse(&text, "p.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn record(plan: &Plan) -> Recording {
    try_record(plan).unwrap()
}

fn try_record(plan: &Plan) -> Result<Recording, RunError> {
    let plan = plan.resolve();
    let TargetKind::Model { model, set } = &plan.targets[0].kind else { panic!("no model") };
    let model = ConfiguredModel::load(model, set).unwrap();
    let interrupt = AtomicBool::new(false);
    let (seed, watcher) = (plan.seed, &mut SilentWatcher);
    run_plan(ModelRun {
        trace: None,
        plan: &plan,
        model: &model,
        seed,
        interrupt: &interrupt,
        watcher,
    })
}

/// Returns the rows of the measured load, up to `until_s` seconds after the start of the
/// measurement.
fn rows(recording: &Recording, until_s: u64) -> Vec<Row> {
    let phase = recording.phases.iter().position(|p| p.duration_ns > 100 * SECOND_NS).unwrap();
    let end_ns = recording.phases[phase].start_ns + until_s * SECOND_NS;
    let own = recording.series.iter().filter(|row| row.phase as usize == phase);
    let load = own.filter(|row| row.start_ns < end_ns && matches!(row.data, Data::Class { .. }));
    load.cloned().collect()
}

const NODE: &str =
    "[[event]]\nname = \"node\"\nat = \"40s\"\nundo_at = \"80s\"\nfail = \"node:3\"\n";
const ERRORS: &str = "[requirement]\n[requirement.during]\nerrors_max = 1000000000\n";

#[test]
fn events_happen_at_their_times_and_change_nothing_before() {
    let (with, without) = (plan("vsan-hybrid", NODE), plan("vsan-hybrid", ""));
    let (with, without) = (record(&with), record(&without));
    assert_eq!(rows(&with, 40), rows(&without, 40));
    assert_ne!(rows(&with, 60), rows(&without, 60));
    let measure_ns = with.phases.iter().find(|p| p.duration_ns > 100 * SECOND_NS).unwrap().start_ns;
    let event = &with.events[0];
    let times = (event.at_ns, event.undo_at_ns);
    let at = |s: u64| Some(measure_ns + s * SECOND_NS);
    assert_eq!(times, (at(40), at(80)));
    assert!(without.events.is_empty());
    // The system detects the loss after 5 s. A request waits for the detection at most once.
    let largest_ns = with.classes.iter().map(|class| class.latency_ns_max).max().unwrap();
    assert!((4_500_000_000..5_500_000_000).contains(&largest_ns), "{largest_ns}");
    let again = record(&plan("vsan-hybrid", NODE));
    assert_eq!(again.series, with.series, "the same seed gives the same evidence");
}

#[test]
fn a_loss_beyond_the_redundancy_fails_the_io() {
    let two = format!(
        "{NODE}[[event]]\nname = \"second\"\nafter = \"node\"\ndelay = \"10s\"\nfail = \"node:2\"\n"
    );
    let drives = "[[event]]\nname = \"a\"\nat = \"40s\"\nfail = \"drive:4\"\n[[event]]\nname = \
                  \"b\"\nat = \"42s\"\nfail = \"drive:5\"\n";
    let alone = "[[event]]\nname = \"a\"\nat = \"40s\"\nfail = \"hdd:0\"\n";
    for (model, events) in
        [("vsan-hybrid", two.as_str()), ("zfs-flash", drives), ("single-hdd", alone)]
    {
        let ended = record(&plan(model, events));
        assert_eq!(ended.end.kind, EndKind::IoError, "{model}: {:?}", ended.end);
        let going = record(&plan(model, &format!("{ERRORS}{events}")));
        assert_eq!(going.end.kind, EndKind::Completed, "{model}: {:?}", going.end);
        let errors: u64 = going.classes.iter().map(|class| class.errors).sum();
        let gauges = going.series.iter().filter(|row| row.name.starts_with("errors."));
        let in_rows: f64 = gauges
            .map(|row| match row.data {
                Data::Gauge(count) => count,
                Data::Class { .. } => 0.0,
            })
            .sum();
        assert!(errors > 30 && in_rows >= errors as f64, "{model}: {errors} {in_rows}");
    }
}

#[test]
fn a_stream_starts_at_its_event_and_ends_at_the_undo() {
    let text = "[[event]]\nname = \"backup\"\nat = \"40s\"\nundo_at = \
                \"80s\"\n[[workload.matrix]]\nname = \"backup\"\nstart = \
                \"event:backup\"\nfile_size = \"4GiB\"\nfiles = 1\nsizes = \"256KiB\"\npatterns = \
                \"sequential\"\n";
    let with = record(&plan("single-hdd", text));
    let measure_ns = with.phases.iter().find(|p| p.duration_ns > 100 * SECOND_NS).unwrap().start_ns;
    let own = with.series.iter().filter(|row| row.name == "backup.read");
    let times: Vec<u64> = own.map(|row| (row.start_ns - measure_ns) / SECOND_NS).collect();
    assert!(times.len() >= 39 && times.iter().all(|s| (40..81).contains(s)), "{times:?}");
    let latency_ns = |from: u64, to: u64| {
        let own = rows(&with, to);
        let own = own.iter().filter(|row| row.name.starts_with("load."));
        let own = own.filter(|row| row.start_ns >= measure_ns + from * SECOND_NS);
        let sums = own.fold((0, 0), |(ns, ops), row| match row.data {
            Data::Class { count, sum_ns, .. } => (ns + sum_ns, ops + count),
            Data::Gauge(_) => (ns, ops),
        });
        sums.0 / sums.1
    };
    let (before, during, after) = (latency_ns(0, 40), latency_ns(41, 80), latency_ns(90, 120));
    assert!(during > before * 5 / 4 && after < during * 4 / 5, "{before} {during} {after}");
}

#[test]
fn an_unknown_component_is_refused_with_the_list() {
    for (event, says) in [
        ("fail = \"node:4\"", "node:0, node:1, node:2, node:3"),
        ("throttle = \"drive\"\nspeed = \"50%\"", "hdd"),
    ] {
        let text = format!("[[event]]\nname = \"e\"\nat = \"40s\"\n{event}\n");
        let plan = plan("vsan-hybrid", &text).resolve();
        let TargetKind::Model { model, set } = &plan.targets[0].kind else { panic!("no model") };
        let model = ConfiguredModel::load(model, set).unwrap();
        let refused = check_plan(&plan, &model).unwrap_err();
        let RunError::NoSuchComponent { known, .. } = &refused else { panic!("{refused}") };
        assert!(known.contains(says), "{known}");
    }
}

#[test]
fn files_that_the_model_cannot_store_are_refused() {
    let sized = |bytes: &str| {
        let text = Plan::parse(
            &format!(
                "version = 1\nname = \"p\"\nseed = 5\n[target]\nmodel = \
                 \"single-hdd\"\n[[workload.matrix]]\nname = \"load\"\narrival = \
                 \"poisson\"\nrate = 60\nfiles = 1\nfile_size = \"{bytes}\"\nsizes = \
                 \"16KiB\"\n[phases]\nwarm_up = \"0s\"\nmeasure = \"2s\"\n[evidence]\nmin_measure = \
                 \"1s\"\n"
            ),
            "p.toml",
        );
        try_record(&text.unwrap_or_else(|e| panic!("{e}")))
    };
    assert_eq!(sized("3TB").unwrap().end.kind, EndKind::Completed);
    let refused = sized("5TB").unwrap_err();
    assert!(matches!(refused, RunError::TooLarge(_)), "{refused}");
    assert!(refused.to_string().contains("125 % of the capacity"), "{refused}");
}

#[test]
fn a_run_ends_if_operations_take_no_time() {
    let model = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-time.toml");
    let text = "[model]\nname = \"no-time\"\nentry = \"cache\"\nfrom = \
                \"chosen\"\n[block.cache]\nkind = \"cache\"\nbelow = \"drive\"\nfrom = \
                \"chosen\"\npolicy = \"lru\"\ncapacity_bytes = 1e9\nunit_bytes = 4096\nwrites = \
                \"through\"\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nread_us = \
                1000\nread_bytes_per_s = 1e12\nwrite_bytes_per_s = 1e12\n";
    std::fs::write(&model, text).unwrap();
    let plan = format!(
        "version = 1\nname = \"p\"\nseed = 5\n[target]\nmodel = \
         \"{}\"\n[[workload.matrix]]\nname = \"load\"\nfiles = 1\nfile_size = \"1MiB\"\nsizes = \
         \"4KiB\"\nreads = 100\n[phases]\nwarm_up = \"1s\"\nmeasure = \"2s\"\n[evidence]\nmin_measure \
         = \"1s\"\n",
        model.display()
    );
    let ended = record(&Plan::parse(&plan, "p.toml").unwrap_or_else(|e| panic!("{e}"))).end;
    assert_eq!(ended.kind, EndKind::Environment);
    assert!(ended.says.contains("operations take no time"), "{}", ended.says);
}
