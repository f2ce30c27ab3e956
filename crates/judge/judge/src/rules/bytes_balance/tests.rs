mod streams;

use plimsoll_evidence::environment::{Device, Mount, Transport};
use plimsoll_evidence::observed::{
    BackingFile, DeviceTotals, FileSystem, Interface, IoBytes, LinkCounters, Links, NetworkMount,
    OtherDisks, Server,
};
use plimsoll_evidence::run::Tier;
use plimsoll_evidence::series::Data;

use super::super::fixtures;
use super::*;

fn outcome(bundle: &Bundle) -> Outcome {
    fixtures::finding(&RULE, bundle).outcome
}

fn says(bundle: &Bundle) -> String {
    fixtures::finding(&RULE, bundle).says
}

#[test]
fn a_device_that_moved_little_convicts_the_cache_direct_or_not() {
    for direct in [true, false] {
        for mut bundle in [fixtures::reads(), fixtures::writes()] {
            bundle.run.engine.paths[0].direct = direct;
            assert_eq!(outcome(&bundle), Outcome::Pass);
            let device = &mut bundle.observed.devices[0];
            (device.read_bytes, device.written_bytes) =
                (device.read_bytes * 79 / 100, device.written_bytes * 79 / 100);
            assert_eq!(outcome(&bundle), Outcome::Fail);
        }
    }
}

#[test]
fn others_never_stand_in_for_this_process() {
    for mut bundle in [fixtures::reads(), fixtures::writes()] {
        // The devices transferred more than all requested bytes, but this process caused almost no
        // I/O.
        let own = &mut bundle.observed.generator;
        (own.storage_read_bytes, own.storage_written_bytes) = (Some(1 << 20), Some(1 << 20));
        let device = &mut bundle.observed.devices[0];
        (device.read_bytes, device.written_bytes) =
            (device.read_bytes * 2, device.written_bytes * 2);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        assert!(says(&bundle).contains("1.0 MiB"), "{}", says(&bundle));
    }
}

#[test]
fn a_neighbour_accuses_nobody() {
    let mut bundle = fixtures::reads();
    bundle.observed.devices[0].read_bytes *= 5;
    assert_eq!(outcome(&bundle), Outcome::Pass);
}

#[test]
fn what_is_dirty_yet_has_not_reached_the_device() {
    let mut bundle = fixtures::writes();
    bundle.run.engine.paths[0].direct = false;
    bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
    bundle.observed.memory.dirty_bytes_after = Some(0);
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.memory.dirty_bytes_after = Some(1 << 30);
    assert_eq!(outcome(&bundle), Outcome::Fail);
    // Dirty bytes of other files do not count for this load.
    bundle.observed.page_cache.resident_bytes_after = Some(0);
    assert_eq!(outcome(&bundle), Outcome::Pass);
    // Files that were written with direct I/O may be in the cache while other processes have dirty
    // pages.
    bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
    bundle.run.engine.paths[0].direct = true;
    assert_ne!(outcome(&bundle), Outcome::Fail);
    bundle.run.engine.paths[0].direct = false;
    // It may be unknown which files the dirty bytes belong to.
    bundle.observed.page_cache.resident_bytes_after = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
    // The number of dirty bytes may be unknown too.
    bundle.observed.memory.dirty_bytes_after = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

#[test]
fn dirty_pages_of_others_do_not_accuse_a_load_that_flushes() {
    let with = |sync: &str| {
        let to = format!("queue_depth = 8\ndirect = \"off\"\n{sync}");
        let mut bundle = fixtures::writes_with("queue_depth = 8", &to);
        bundle.run.engine.paths[0].direct = false;
        bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
        bundle.observed.memory.dirty_bytes_after = Some(1 << 30);
        bundle
    };
    assert_eq!(outcome(&with("")), Outcome::Fail);
    let synced = with("sync = \"fsync\"\nsync_every = 4");
    assert_ne!(outcome(&synced), Outcome::Fail);
    // A client writes to four files, and each flush applies to only one of them.
    assert_eq!(outcome(&with("files = 4\nsync = \"fsync\"\nsync_every = 4")), Outcome::Fail);
    // The flushes reached no device.
    let mut lost = synced.clone();
    lost.observed.devices[0].written_bytes = 1 << 20;
    assert_eq!(outcome(&lost), Outcome::Fail);
}

#[test]
fn the_last_writes_of_a_slow_device_may_wait_for_their_flush() {
    let with = |sync_every: u64, moved_share: f64| {
        let sync = format!("sync = \"fsync\"\nsync_every = {sync_every}");
        let to = format!("queue_depth = 8\ndirect = \"off\"\n{sync}");
        let mut bundle = fixtures::writes_with("queue_depth = 8", &to);
        bundle.run.engine.paths[0].direct = false;
        let moved = (evidence::written_bytes(&bundle) as f64 * moved_share) as u64;
        bundle.observed.devices[0].written_bytes = moved;
        bundle.observed.generator.storage_written_bytes = Some(moved);
        bundle
    };
    let writes = evidence::operations(&with(1, 1.0), false);
    assert_eq!(outcome(&with(writes * 2 / 5, 0.65)), Outcome::Unknown);
    assert_eq!(outcome(&with(writes * 2 / 5, 0.4)), Outcome::Fail);
    assert_eq!(outcome(&with(4, 0.65)), Outcome::Fail);
    // The only flush comes after the measurement, so nothing had to reach the device before.
    assert_eq!(outcome(&with(writes * 2, 0.1)), Outcome::Unknown);
}

#[test]
fn without_own_counters_others_are_taken_off() {
    let mut bundle = fixtures::reads();
    let all = bundle.observed.devices[0].read_bytes;
    bundle.observed.generator.storage_read_bytes = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
    bundle.observed.neighbours.storage_read_bytes = Some(all / 10);
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.neighbours.storage_read_bytes = Some(all / 4);
    assert_eq!(outcome(&bundle), Outcome::Unknown);
    bundle.observed.neighbours.storage_read_bytes = Some(0);
    bundle.observed.neighbours.outside_unseen = true;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

#[test]
fn a_file_system_that_is_not_known_is_not_believed_by_own_counters() {
    let mut bundle = fixtures::reads();
    bundle.environment.mounts[0].file_system = Some("fuse.nobody-knows".into());
    bundle.observed.devices.clear();
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

#[test]
fn a_journal_that_takes_each_flushed_write_is_no_cache() {
    let to = "queue_depth = 8\nsync = \"dsync\"";
    let journalled = |mut bundle: Bundle| {
        let align = FileSystem { direct_align_bytes: Some(0), ..FileSystem::default() };
        bundle.observed.file_systems = vec![align];
        bundle.observed.generator.storage_written_bytes = Some(64 << 20);
        let others = &mut bundle.observed.neighbours;
        (others.storage_read_bytes, others.storage_written_bytes) = (Some(0), Some(0));
        bundle
    };
    assert_eq!(outcome(&journalled(fixtures::writes())), Outcome::Fail);
    let flushed = journalled(fixtures::writes_with("queue_depth = 8", to));
    assert_eq!(outcome(&flushed), Outcome::Pass);
}

#[test]
fn little_is_not_much_to_go_by() {
    let mut bundle = fixtures::reads();
    bundle.run.classes[0].size_bytes = 512 << 10;
    bundle.observed.devices[0].read_bytes = 0;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

/// The counters are first read a little after the start of the measurement.
#[test]
fn a_moment_is_not_much_to_go_by() {
    let mut bundle = fixtures::reads();
    bundle.observed.devices[0].read_bytes /= 2;
    for (duration_ns, expected) in
        [(250_000_000, Outcome::Fail), (249_000_000, Outcome::Unknown), (1, Outcome::Unknown)]
    {
        bundle.run.phases[1].duration_ns = duration_ns;
        assert_eq!(outcome(&bundle), expected, "{duration_ns}");
    }
    bundle.run.driver = plimsoll_evidence::run::Driver::Foreign;
    assert_eq!(outcome(&bundle), Outcome::Fail, "its counters are its own affair");
}

/// A process that was stopped reads the counters late, so bytes that were transferred before are
/// missing.
#[test]
fn what_was_moved_before_anybody_counted_is_held_against_nobody() {
    let mut bundle = fixtures::reads();
    bundle.observed.devices[0].read_bytes /= 2;
    let (start_ns, duration_ns) = (bundle.run.phases[1].start_ns, bundle.run.phases[1].duration_ns);
    for (late_ns, expected) in
        [(0, Outcome::Fail), (duration_ns / 12, Outcome::Fail), (duration_ns / 9, Outcome::Unknown)]
    {
        bundle.observed.counted_from_ns = Some(start_ns + late_ns);
        assert_eq!(outcome(&bundle), expected, "{late_ns}");
        let cached = crate::rules::balance::read_from_cache(&bundle);
        assert_eq!(cached.is_some(), expected == Outcome::Fail, "nor is it the cache's");
    }
    bundle.observed.counted_from_ns = Some(start_ns - 1);
    assert_eq!(outcome(&bundle), Outcome::Fail, "the mail store's counters are read before");
}

#[test]
fn a_load_that_began_fast_moved_much_before_the_counters_were_read() {
    for (first, expected) in [(100, Outcome::Fail), (10_000, Outcome::Unknown)] {
        let mut bundle = fixtures::reads();
        fixtures::rates(&mut bundle, |tenth| (if tenth == 0 { first } else { 100 }, 1_000_000));
        bundle.observed.devices[0].read_bytes /= 2;
        bundle.observed.counted_from_ns = Some(bundle.run.phases[1].start_ns + 90_000_000);
        let each = evidence::read_bytes(&bundle) / (first + 100 * (fixtures::SECONDS * 10 - 1));
        let sizes = bundle.series.iter_mut().filter_map(|row| match &mut row.data {
            Data::Class { count, bytes, .. } => Some((*count, bytes)),
            _ => None,
        });
        sizes.for_each(|(count, bytes)| *bytes = count * each);
        assert_eq!(outcome(&bundle), expected, "{first} in the first tenth of a second");
    }
}

#[test]
fn a_declared_reduction_is_allowed_for_up_to_what_is_believable() {
    let mut bundle = fixtures::reads();
    let all = bundle.observed.devices[0].read_bytes;
    let moved = |bundle: &mut Bundle, share: u64| {
        bundle.observed.devices[0].read_bytes = all / share;
        bundle.observed.generator.storage_read_bytes = Some(all / share);
    };
    moved(&mut bundle, 3);
    assert_eq!(outcome(&bundle), Outcome::Fail);
    bundle.plan.observe.data_reduction = Some(3.0);
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.plan.observe.data_reduction = Some(40.0);
    moved(&mut bundle, 40);
    assert_eq!(outcome(&bundle), Outcome::Fail);
}

/// Returns reads from a loop device on `sda`. The page cache contains `resident` bytes of the
/// backing file.
fn through_a_loop(direct_io: bool, resident: u64) -> Bundle {
    let mut bundle = fixtures::reads();
    let sda = bundle.environment.devices[0].clone();
    let top = Device {
        name: "loop0".into(),
        kind: "loop".into(),
        direct_io: Some(direct_io),
        below: vec!["/image".into()],
        ..Device::default()
    };
    bundle.environment.devices = vec![top, sda];
    bundle.environment.below = vec![Mount {
        path: "/image".into(),
        file_system: Some("xfs".into()),
        on: vec!["sda".into()],
        ..Mount::default()
    }];
    let of = &mut bundle.observed;
    let all = of.devices[0].read_bytes;
    of.devices[0].name = "loop0".into();
    of.devices.push(DeviceTotals {
        name: "sda".into(),
        read_bytes: all,
        ..DeviceTotals::default()
    });
    of.backing_files = vec![BackingFile {
        device: "loop0".into(),
        path: "/image".into(),
        size_bytes: Some(1 << 30),
        resident_bytes_before: Some(0),
        resident_bytes_after: Some(resident),
        direct_align_bytes: Some(512),
        ..BackingFile::default()
    }];
    of.kernel = Some(IoBytes { read_bytes: all, written_bytes: 0 });
    of.neighbours.storage_read_bytes = Some(0);
    bundle
}

#[test]
fn the_page_cache_under_a_loop_device_is_seen_from_below() {
    let mut bundle = through_a_loop(false, 1 << 30);
    assert_eq!(outcome(&bundle), Outcome::Pass, "a cold cache moves all");
    bundle.observed.devices[1].read_bytes /= 10;
    assert_eq!(outcome(&bundle), Outcome::Fail);
    assert!(says(&bundle).contains("loop0"), "{}", says(&bundle));
}

#[test]
fn others_do_not_acquit_the_page_cache_under_a_loop_device() {
    let mut bundle = through_a_loop(false, 1 << 30);
    let all = bundle.observed.devices[0].read_bytes;
    // Another process reads the same number of bytes from the disk. The kernel's threads read
    // almost nothing for the loop device.
    bundle.observed.neighbours.storage_read_bytes = Some(all);
    bundle.observed.kernel = Some(IoBytes { read_bytes: all / 10, written_bytes: 0 });
    assert_eq!(outcome(&bundle), Outcome::Fail);
    bundle.observed.kernel = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown, "without root it cannot be told");
}

#[test]
fn a_busy_disk_does_not_accuse_a_loop_device_that_goes_past_the_cache() {
    let mut bundle = through_a_loop(true, 0);
    let all = bundle.observed.devices[0].read_bytes;
    bundle.observed.devices[1].read_bytes = all * 3;
    // The other processes' counters show more bytes than the disk read for them.
    bundle.observed.neighbours.storage_read_bytes = Some(all * 4);
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.backing_files[0].resident_bytes_after = Some(1 << 29);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "the flag alone is not believed");
    bundle.observed.backing_files[0].resident_bytes_after = Some(0);
    bundle.observed.backing_files[0].direct_align_bytes = Some(0);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "nor where the file system buffers");
}

#[test]
fn a_loop_device_that_claims_no_cache_is_not_acquitted_by_others() {
    let mut bundle = through_a_loop(true, 0);
    let all = bundle.observed.devices[0].read_bytes;
    bundle.observed.neighbours.storage_read_bytes = Some(all);
    assert_eq!(outcome(&bundle), Outcome::Pass, "the kernel's threads moved it");
    bundle.observed.kernel = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown, "others read as much");
    bundle.observed.neighbours.storage_read_bytes = Some(0);
    assert_eq!(outcome(&bundle), Outcome::Pass, "nobody else read");
    bundle.observed.neighbours.storage_read_bytes = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown, "it is not known who read");
}

#[test]
fn a_mapping_is_not_acquitted_by_what_others_read_below_it() {
    let mut bundle = through_a_mapping();
    let all = bundle.observed.devices[0].read_bytes;
    bundle.observed.neighbours.storage_read_bytes = Some(all / 10);
    assert_eq!(outcome(&bundle), Outcome::Pass, "too little to hide anything");
    bundle.observed.neighbours.storage_read_bytes = Some(all);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "another process read the disk itself");
    // The other process read from a different volume, which has a separate counter.
    bundle.observed.devices[1].read_bytes = all * 2;
    bundle.observed.devices[1].beside = Some(IoBytes { read_bytes: all, written_bytes: 0 });
    assert_eq!(outcome(&bundle), Outcome::Pass);
    // The other process read the same volume: all bytes passed through the mapping.
    let mut bundle = through_a_mapping();
    for device in &mut bundle.observed.devices {
        device.read_bytes *= 2;
    }
    bundle.observed.neighbours.storage_read_bytes = Some(all);
    assert_eq!(outcome(&bundle), Outcome::Pass);
}

/// Returns reads from a device mapping on `sda`.
fn through_a_mapping() -> Bundle {
    let mut bundle = through_a_loop(true, 0);
    let top = &mut bundle.environment.devices[0];
    (top.name, top.kind, top.below) = ("dm-0".into(), "dm".into(), vec!["sda".into()]);
    bundle.observed.devices[0].name = "dm-0".into();
    bundle.observed.backing_files.clear();
    bundle
}

#[test]
fn a_mapping_that_answers_by_itself_is_seen_from_below() {
    let mut bundle = through_a_mapping();
    assert_eq!(outcome(&bundle), Outcome::Pass);
    let all = bundle.observed.devices[0].read_bytes;
    bundle.observed.devices[1].read_bytes = all / 2;
    assert_eq!(outcome(&bundle), Outcome::Fail);
    // Reads from a different volume on the same disk do not explain the missing bytes.
    bundle.observed.devices[1].read_bytes = all * 2;
    bundle.observed.devices[1].beside = Some(IoBytes { read_bytes: all * 3 / 2, written_bytes: 0 });
    assert_eq!(outcome(&bundle), Outcome::Fail);
}

#[test]
fn what_others_asked_of_a_mapping_may_be_what_is_missing_below_it() {
    let mut bundle = through_a_mapping();
    let all = bundle.observed.devices[0].read_bytes;
    bundle.observed.devices[0].read_bytes = all * 2;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

#[test]
fn both_copies_of_a_mirror_are_one_write() {
    let mut bundle = fixtures::writes();
    let all = bundle.observed.devices[0].written_bytes;
    let mut legs = [bundle.environment.devices[0].clone(), bundle.environment.devices[0].clone()];
    legs[1].name = "sdb".into();
    let mirror = Device {
        name: "md0".into(),
        kind: "md".into(),
        mapping: Some("raid1".into()),
        below: vec!["sda".into(), "sdb".into()],
        ..Device::default()
    };
    bundle.environment.devices = [vec![mirror], legs.to_vec()].concat();
    bundle.observed.devices[0].name = "md0".into();
    for name in ["sda", "sdb"] {
        bundle.observed.devices.push(DeviceTotals {
            name: name.into(),
            written_bytes: all,
            ..DeviceTotals::default()
        });
    }
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.devices[1].written_bytes = all / 2;
    bundle.observed.devices[2].written_bytes = all / 2;
    assert_eq!(outcome(&bundle), Outcome::Fail, "half of each is a cache's");
}

fn remote() -> Bundle {
    let mut bundle = fixtures::reads_with("path = \"/x\"", "nfs = [\"nfs://h/e\"]");
    bundle.environment.mounts.clear();
    bundle.environment.devices.clear();
    bundle.observed.devices.clear();
    bundle.observed.generator.storage_read_bytes = Some(0);
    bundle
}

#[test]
fn a_server_elsewhere_is_seen_by_its_client_alone() {
    let mut bundle = remote();
    assert_eq!(outcome(&bundle), Outcome::Pass, "a bundle from before servers were looked for");
    let far = Server { serves: "h:2049".into(), local: Some(false), ..Server::default() };
    bundle.observed.servers = vec![far];
    assert_eq!(outcome(&bundle), Outcome::Pass);
    assert!(says(&bundle).contains("the network"));
}

/// Returns interface counters for the whole measurement: the bytes received on the loopback and on
/// a network card.
fn links(loopback_bytes: u64, card_bytes: u64) -> Option<Links> {
    let one = |name: &str, received_bytes| Interface {
        name: name.into(),
        loopback: name == "lo",
        below: Some(Vec::new()),
        counters: Some(LinkCounters { received_bytes, ..LinkCounters::default() }),
        ..Interface::default()
    };
    let interfaces = vec![one("lo", loopback_bytes), one("eth0", card_bytes)];
    let from_ns = 5 * fixtures::SECOND_NS;
    Some(Links { from_ns, interfaces, ..Links::default() })
}

#[test]
fn what_clients_of_our_own_say_has_to_show_at_the_interfaces() {
    let mut bundle = remote();
    let requested = bundle.run.classes[0].size_bytes;
    let far = Server { serves: "h:2049".into(), local: Some(false), ..Server::default() };
    bundle.observed.servers = vec![far];
    bundle.observed.links = links(0, requested);
    assert_eq!(says(&bundle), "the requested bytes crossed the network");
    bundle.observed.links = links(requested * 9, requested / 2);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "the loopback's are not another host's");
    assert!(
        says(&bundle).contains("network interfaces received only 1.14 GiB"),
        "{}",
        says(&bundle)
    );
    bundle.observed.servers[0].relays = true;
    assert_eq!(outcome(&bundle), Outcome::Pass, "a relay of this host is reached by the loopback");
    bundle.observed.servers.clear();
    assert_eq!(outcome(&bundle), Outcome::Pass, "nobody knows where the server is");
    assert!(!wire::leaves_host(&bundle), "the card moved half of it");
    bundle.observed.links = links(0, requested * 3 / 4);
    assert!(wire::leaves_host(&bundle));
    bundle.plan = fixtures::reads().plan;
    assert!(!wire::leaves_host(&bundle), "a disk's bytes go over no card");
}

#[test]
fn what_interfaces_do_not_tell_accuses_nobody() {
    let mut bundle = remote();
    let far = Server { serves: "h:2049".into(), local: Some(false), ..Server::default() };
    bundle.observed.servers = vec![far];
    bundle.observed.links = links(0, 0);
    assert_eq!(outcome(&bundle), Outcome::Unknown);
    let passes = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = bundle.clone();
        change(&mut bundle);
        assert_eq!(outcome(&bundle), Outcome::Pass, "{}", says(&bundle));
    };
    // Cases: a counter was reset, or there are no counters.
    passes(&|b| b.observed.links.as_mut().unwrap().interfaces[1].counters = None);
    passes(&|b| b.observed.links = None);
    // Some I/Os take as long as the measurement, so they started before it.
    passes(&|b| b.run.classes[0].service_ns_max = 50 * fixtures::SECOND_NS);
    // Case: the counters were first read late in the measurement.
    passes(&|b| b.observed.links.as_mut().unwrap().from_ns = 60 * fixtures::SECOND_NS);
    // Case: the measurement is short, so the last counters of a card may be too old.
    passes(&|b| b.run.phases[1].duration_ns = 2 * fixtures::SECOND_NS);
    // Case: the bytes arrived after the end of the measurement.
    passes(&|b| b.run.classes[0].drained_bytes = b.run.classes[0].size_bytes - 100);
    // For a kernel mount, the mount's own counters are used instead. A model has no interface
    // counters.
    passes(&|b| {
        let server_read_bytes = b.run.classes[0].size_bytes;
        b.observed.network_mounts =
            vec![NetworkMount { server_read_bytes, ..NetworkMount::default() }];
        b.plan = fixtures::reads().plan;
    });
    let mut unseen = bundle.clone();
    unseen.observed.links = None;
    assert!(says(&unseen).contains("the counters of the interfaces are unknown"));
}

#[test]
fn a_server_of_this_host_has_to_move_the_bytes() {
    let mut bundle = remote();
    let requested = bundle.run.classes[0].size_bytes;
    let moved = |read_bytes| Some(IoBytes { read_bytes, written_bytes: 0 });
    bundle.observed.servers = vec![Server {
        serves: "127.0.0.1:2049".into(),
        local: Some(true),
        processes: vec!["served (7)".into()],
        moved: moved(4096),
        relays: false,
        beside: None,
        others: 0,
    }];
    let disks = IoBytes { read_bytes: requested * 2, written_bytes: 0 };
    bundle.observed.other_disks = Some(OtherDisks { disks, memory: IoBytes::default() });
    assert_eq!(outcome(&bundle), Outcome::Fail);
    assert!(says(&bundle).contains("served (7)"), "{}", says(&bundle));
    bundle.observed.servers[0].moved = moved(requested);
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.servers[0].others = 1;
    assert_eq!(outcome(&bundle), Outcome::Unknown, "it may have moved that for another client");
    bundle.observed.servers[0].moved = moved(4096);
    assert_eq!(outcome(&bundle), Outcome::Fail, "whoever asked, it moved too little");
    bundle.observed.servers[0].others = 0;
    bundle.observed.servers[0].beside = moved(requested);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "it may have passed on what it was asked");
    bundle.observed.servers[0].beside = moved(4096);
    assert_eq!(outcome(&bundle), Outcome::Fail, "nor did what it is connected to");
    bundle.observed.servers[0].moved = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
    bundle.observed.other_disks = Some(OtherDisks::default());
    assert_eq!(outcome(&bundle), Outcome::Fail, "no disk of this host moved it");
    bundle.observed.servers[0].relays = true;
    assert_eq!(outcome(&bundle), Outcome::Pass, "what it passes on is another host's");
    bundle.observed.servers[0].local = None;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

#[test]
fn a_network_mounts_cache_is_seen_on_the_wire() {
    let mut bundle = fixtures::reads();
    let requested = bundle.run.classes[0].size_bytes;
    bundle.environment.mounts[0].file_system = Some("nfs4".into());
    bundle.environment.devices.clear();
    bundle.observed.devices.clear();
    bundle.observed.network_mounts =
        vec![NetworkMount { server_read_bytes: requested, ..NetworkMount::default() }];
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.network_mounts[0].server_read_bytes = requested / 2;
    assert_eq!(outcome(&bundle), Outcome::Fail);
}

#[test]
fn a_result_file_is_taken_at_its_devices_word_where_nobody_else_shows() {
    let mut bundle = fixtures::reads();
    (bundle.run.driver, bundle.run.tier) = (Driver::Foreign, Tier::T3);
    bundle.environment = Default::default();
    bundle.observed.generator = Default::default();
    assert_eq!(outcome(&bundle), Outcome::Pass);
    bundle.observed.devices[0].read_bytes *= 2;
    assert_eq!(outcome(&bundle), Outcome::Unknown);
    bundle.observed.devices[0].read_bytes = 0;
    assert_eq!(outcome(&bundle), Outcome::Fail);
    bundle.observed.devices.clear();
    assert_eq!(outcome(&bundle), Outcome::Unknown);
}

#[test]
fn memory_and_nothing_are_told_by_another_rule() {
    let mut bundle = fixtures::reads();
    bundle.environment.devices[0].transport = Some(Transport::Zram);
    bundle.observed.devices[0].read_bytes = 0;
    assert_eq!(fixtures::outcome(&RULE, &bundle), None);
}
