//! Tests of buffered streams that run at the same time as direct streams.

use plimsoll_evidence::Bundle;

use super::*;

/// Returns a run with a big direct stream, and with a buffered stream that reads only
/// `small_bytes`.
fn small_buffered_beside_big_direct(small_bytes: u64) -> Bundle {
    let to = "[[workload.matrix]]\nname = \"small\"\ndirect = \"off\"\nfile_size = \"1GiB\"\nreads \
              = 100\n[[workload.matrix]]\nname = \"big\"\nfile_size = \"1GiB\"\nreads = 100\n";
    let from = "[workload.matrix]\nfile_size = \"1GiB\"\nreads = 100\nqueue_depth = 8\n";
    let mut bundle = fixtures::reads_with(from, to);
    let big = bundle.run.classes[0].clone();
    let mut small = big.clone();
    (small.name, small.instance) = ("small.read".into(), 0);
    (small.size_bytes, small.count) = (small_bytes, small_bytes / 4096);
    bundle.run.classes[0].instance = 1;
    bundle.run.classes.insert(0, small);
    bundle
}

#[test]
fn a_small_cached_stream_does_not_hide_behind_a_big_direct_one() {
    // The device transferred only the big stream's bytes, which are nine tenths of the total.
    let big_bytes = fixtures::reads().run.classes[0].size_bytes;
    let mut bundle = small_buffered_beside_big_direct(big_bytes / 9);
    assert_eq!(outcome(&bundle), Outcome::Fail, "{}", says(&bundle));
    assert!(says(&bundle).contains("buffered streams"), "{}", says(&bundle));
    // If the small stream also reads from the device, the run is valid.
    let all = big_bytes / 9 + big_bytes;
    bundle.observed.devices[0].read_bytes = all;
    bundle.observed.generator.storage_read_bytes = Some(all);
    assert_eq!(outcome(&bundle), Outcome::Pass, "{}", says(&bundle));
    // If half of the small stream's reads came from the cache, its rate is not the device's rate
    // either.
    bundle.observed.devices[0].read_bytes = all - big_bytes / 18;
    bundle.observed.generator.storage_read_bytes = Some(all - big_bytes / 18);
    assert_eq!(outcome(&bundle), Outcome::Fail, "{}", says(&bundle));
    // Reads by other processes do not explain the missing bytes of the buffered stream.
    bundle.observed.devices[0].read_bytes = 2 * all;
    assert_eq!(outcome(&bundle), Outcome::Fail, "{}", says(&bundle));
}

#[test]
fn a_stream_too_small_to_weigh_stays_open() {
    let big_bytes = fixtures::reads().run.classes[0].size_bytes;
    let bundle = small_buffered_beside_big_direct(big_bytes / 100);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "{}", says(&bundle));
}

/// Found by the adversary test on a busy host: one stream has few buffered writes, which it
/// flushes, and another has many direct writes.
#[test]
fn dirty_pages_of_others_and_late_counters_do_not_accuse_a_small_buffered_stream() {
    let to = "[[workload.matrix]]\nname = \"small\"\ndirect = \"off\"\nsync = \"dsync\"\nfile_size \
              = \"1GiB\"\nreads = 0\n[[workload.matrix]]\nname = \"big\"\nfile_size = \
              \"1GiB\"\nreads = 0\n";
    let from = "[workload.matrix]\nfile_size = \"1GiB\"\nreads = 0\nqueue_depth = 8\n";
    let mut bundle = fixtures::writes_with(from, to);
    let mut small = bundle.run.classes[0].clone();
    let big_bytes = small.size_bytes;
    (small.name, small.instance) = ("small.write".into(), 0);
    (small.size_bytes, small.count) = (big_bytes / 20, big_bytes / 20 / 4096);
    bundle.run.classes[0].instance = 1;
    bundle.run.classes.insert(0, small);
    let all = big_bytes + big_bytes / 20;
    let moved = |bundle: &mut Bundle, bytes: u64| {
        bundle.observed.devices[0].written_bytes = bytes;
        bundle.observed.generator.storage_written_bytes = Some(bytes);
    };
    moved(&mut bundle, all);
    assert_eq!(outcome(&bundle), Outcome::Pass, "{}", says(&bundle));
    bundle.observed.memory.dirty_bytes_after = Some(big_bytes / 10);
    bundle.observed.page_cache.resident_bytes_after = Some(big_bytes / 10);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "{}", says(&bundle));
    bundle.observed.memory.dirty_bytes_after = Some(0);
    moved(&mut bundle, big_bytes);
    assert_eq!(outcome(&bundle), Outcome::Fail, "{}", says(&bundle));
    // A twentieth of the writes happened before the counters were first read.
    let phase = crate::figures::measured(&bundle).unwrap().clone();
    bundle.observed.counted_from_ns = Some(phase.start_ns + phase.duration_ns / 20);
    assert_eq!(outcome(&bundle), Outcome::Unknown, "{}", says(&bundle));
}

/// Found by the adversary test on a busy host: one stream may write with direct I/O, and another
/// flushes its buffered writes. The evidence contains one path for both streams. There are as many
/// dirty pages of other processes as cached pages of the files.
#[test]
fn dirty_pages_of_others_do_not_accuse_writes_that_may_be_direct() {
    let with = |sync: &str| {
        let to = format!(
            "[[workload.matrix]]\nname = \"big\"\nfile_size = \"1GiB\"\nreads = \
             0\n[[workload.matrix]]\nname = \"small\"\ndirect = \"off\"\nsync = \
             \"{sync}\"\nfile_size = \"1GiB\"\nreads = 0\n"
        );
        let from = "[workload.matrix]\nfile_size = \"1GiB\"\nreads = 0\nqueue_depth = 8\n";
        let mut bundle = fixtures::writes_with(from, &to);
        bundle.run.engine.paths[0].direct = false;
        let small_bytes = bundle.run.classes[0].size_bytes / 5;
        let mut small = bundle.run.classes[0].clone();
        (small.name, small.instance) = ("small.write".into(), 1);
        (small.size_bytes, small.count) = (small_bytes, small_bytes / 4096);
        bundle.run.classes.push(small);
        let all = 6 * small_bytes;
        bundle.observed.devices[0].written_bytes = all;
        bundle.observed.generator.storage_written_bytes = Some(all);
        bundle.observed.memory.dirty_bytes_after = Some(all);
        bundle.observed.page_cache.resident_bytes_after = Some(all);
        bundle
    };
    let flushed = with("dsync");
    assert_ne!(outcome(&flushed), Outcome::Fail, "{}", says(&flushed));
    // Without flushes of the small stream, all cached pages of the files may be dirty.
    let unflushed = with("none");
    assert_eq!(outcome(&unflushed), Outcome::Fail, "{}", says(&unflushed));
}
