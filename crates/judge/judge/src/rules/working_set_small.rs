//! Checks whether the working set fits into a cache between the load and the media.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{DeviceTotals, OpenedFile};
use plimsoll_evidence::run::Driver;
use plimsoll_plan::{DirectIo, Stream, SyncKind};

use super::balance::{self, BalanceResult};
use super::{Rule, Weight, evidence};
use crate::claim::Claim;
use crate::finding::{Finding, Outcome};

/// Minimum size of the working set for buffered I/O, as a multiple of the host's memory. With a
/// smaller working set, the page cache answers a part of the I/O. MLPerf Storage v2.0 requires five
/// times as much data as memory.
const MEMORY_TIMES: u64 = 5;

/// If the storage moved at least this share of the requested bytes, almost no bytes came from
/// memory.
const MOVED_SHARE_MIN: f64 = 0.95;
/// If at least this share of the reads is sequential, the load uses the data that was read ahead.
const SEQUENTIAL_SHARE: f64 = 0.95;
/// Maximum ratio of the device's mean read size to the load's mean read size without read-ahead.
const READ_SIZE_SLACK: f64 = 1.1;

pub const RULE: Rule = Rule {
    id: "working-set-small",
    asks: "was the working set too small, so that it fitted into memory, a cache or a fast tier?",
    explains: "The rule counts the distinct bytes that operations touched (the working set). If I/O \
               is buffered, it compares the working set with the host's memory. It uses the control \
               group's memory limit instead if this limit is smaller and the cached bytes of the \
               files never exceeded it. If the plan declares the storage system's cache \
               (`observe.array_cache`) or fast tier (`observe.tier`), the rule also compares the \
               working set with their sizes. If the working set fits into the memory, the cache or \
               the tier, the rule fails for `media-read`, because the reads may have been answered \
               from there. It warns if the working set is between one and five times the memory \
               (MLPerf Storage requires five times). The memory is ignored if it answered no reads \
               and absorbed no writes. The rule assumes this if, according to the process's own \
               counters, the storage moved 95 % of the bytes read and written. The outcome is \
               unknown if these counters are too inexact because the process flushed its writes, \
               read the counters late, or may have used direct I/O. For a watched command, the \
               total size of the files that it used is an upper bound of the working set.",
    bears_on: &[
        (Claim::MediaRead, Weight::Mandatory),
        (Claim::SustainedWrite, Weight::Mandatory),
        (Claim::Comparative, Weight::Advisory),
    ],
    check,
};

fn check(bundle: &Bundle) -> Option<Finding> {
    if evidence::matrix(bundle).is_none()
        || evidence::read_bytes(bundle) + evidence::written_bytes(bundle) == 0
    {
        return None;
    }
    let profile = &bundle.observed.workload;
    let touched = match (profile.working_set_read_bytes, profile.working_set_written_bytes) {
        // Reads and writes may use the same blocks: only the bytes of the larger working set are
        // certainly distinct.
        (Some(read), Some(written)) => Some(read.max(written)),
        (one, other) => one.or(other),
    };
    if touched.is_none() && !evidence::is_real(bundle) {
        return None;
    }
    let unknown = |says: &str| {
        Some(Finding::new(RULE.id, Outcome::Unknown, says).advise(evidence::how_to_observe(bundle)))
    };
    let at_most = files_bytes(bundle).filter(|_| touched.is_none());
    let Some(touched) = touched.or(at_most) else {
        return unknown("the working set is unknown");
    };
    let buffered = !evidence::buffered_paths(bundle).is_empty();
    let used_memory = if buffered { used_memory(bundle) } else { Ok(false) };
    let memory = memory_bytes(bundle).filter(|_| used_memory == Ok(true));
    let observe = &bundle.plan.observe;
    let holders = [
        ("the memory that buffered the I/O", memory),
        ("the declared cache of the storage system", observe.array_cache_bytes),
        ("the declared fast tier of the storage system", observe.tier_bytes),
    ];
    let small = holders.iter().find(|(_, bytes)| bytes.is_some_and(|bytes| touched <= bytes));
    let text = match at_most {
        Some(bytes) => format!("at most {}", evidence::size(bytes)),
        None => evidence::size(touched),
    };
    let finding = if let Some((name, Some(bytes))) = small {
        let says =
            format!("the working set of {text} fits into {name} ({})", evidence::size(*bytes));
        Finding::new(RULE.id, Outcome::Fail, says)
            .with("holder_bytes", *bytes)
            .advise("use a working set several times as large")
    } else if let Err(why) = used_memory {
        return unknown(&why);
    } else if memory.is_some_and(|bytes| touched < bytes.saturating_mul(MEMORY_TIMES)) {
        let says = format!(
            "the working set of {text} is less than {MEMORY_TIMES} times the memory that buffered \
             the I/O"
        );
        Finding::new(RULE.id, Outcome::Warn, says).advise("use direct I/O, or a larger working set")
    } else if at_most.is_some() {
        return unknown("it is unknown how much of its files the load used");
    } else {
        let says = format!(
            "the working set of {text} is larger than all known memory and caches between the load \
             and the media"
        );
        Finding::new(RULE.id, Outcome::Pass, says)
    };
    Some(finding.with("working_set_bytes", touched))
}

/// Returns the size of the memory that can cache the load's data: the host's memory, or the control
/// group's limit. If another group reads a page into the cache, the page is charged to that group.
/// The limit is therefore used only if the files never had more cached bytes than this limit.
fn memory_bytes(bundle: &Bundle) -> Option<u64> {
    let host = bundle.environment.memory_bytes;
    let limit = bundle.observed.limits.as_ref().and_then(|limits| limits.memory_bytes);
    let Some(limit) = limit.filter(|limit| host.is_none_or(|host| *limit < host)) else {
        return host;
    };
    let cache = &bundle.observed.page_cache;
    let cached = cache.resident_bytes_before.zip(cache.resident_bytes_after);
    let own = cached.is_some_and(|(before, after)| before.max(after) <= limit);
    if own { Some(limit) } else { host }
}

/// Returns true if memory may have answered reads or absorbed writes, according to this process's
/// counters. Always true for a watched tool, because its counters include files that its result
/// does not name.
///
/// # Errors
/// Returns the reason if the counters are not exact enough.
fn used_memory(bundle: &Bundle) -> Result<bool, String> {
    let counts = bundle.run.driver == Driver::Real
        && !evidence::is_remote(bundle)
        && evidence::top_devices(bundle).is_some();
    if !counts {
        return Ok(true);
    }
    let sides = [true, false].map(|is_read| side_used_memory(bundle, is_read));
    if sides.contains(&Ok(true)) {
        return Ok(true);
    }
    sides.into_iter().find(Result::is_err).unwrap_or(Ok(false))
}

/// Returns the same as `used_memory`, but only for the reads or only for the writes.
fn side_used_memory(bundle: &Bundle, is_read: bool) -> Result<bool, String> {
    // Reads that bypass the page cache do not use that memory. Other rules check whether they
    // bypassed it.
    let streams = evidence::streams(bundle);
    let reads_bypass =
        |stream: &Stream| stream.read_percent <= 0.0 || stream.direct == DirectIo::Required;
    let bypassed = is_read && !streams.is_empty() && streams.iter().all(reads_bypass);
    if bypassed || moved_all(bundle, is_read) {
        return Ok(false);
    }
    let Some(side) = balance::side(bundle, is_read) else { return Ok(false) };
    let may_be_open = may_be_direct(bundle, is_read)
        || is_read && counted_late(bundle, &side)
        || !is_read && balance::unflushed_bytes_max(bundle).is_some();
    match side.result {
        BalanceResult::Short(_) => Ok(true),
        _ if !may_be_open => Ok(true),
        BalanceResult::Open(why) => Err(why),
        BalanceResult::Moved => Err(format!(
            "the storage moved less than {:.0} % of the bytes {}: the rest was cached in memory, or \
             the counters were read too late",
            MOVED_SHARE_MIN * 100.0,
            side.word
        )),
    }
}

/// Returns true if each stream of this direction either flushed its writes or may have used direct
/// I/O.
fn may_be_direct(bundle: &Bundle, is_read: bool) -> bool {
    let streams = evidence::streams(bundle);
    let uses = |stream: &&Stream| match is_read {
        true => stream.read_percent > 0.0,
        false => stream.read_percent < 100.0,
    };
    let is_open = |stream: &Stream| {
        let is_flushed = !is_read && stream.sync.kind != SyncKind::None;
        evidence::is_buffered(bundle, stream) != Some(true) || is_flushed
    };
    !streams.is_empty() && streams.iter().filter(uses).all(is_open)
}

/// Returns true if the bytes that moved before the first counter reading explain the missing bytes.
fn counted_late(bundle: &Bundle, side: &balance::DirectionBalance) -> bool {
    let counted = side.requested.saturating_sub(balance::uncounted_bytes_max(bundle, true));
    let moved = side.own.zip(side.top).map(|(own, top)| own.min(top));
    moved.is_some_and(|moved| moved as f64 >= counted as f64 * MOVED_SHARE_MIN)
        && !may_read_ahead(bundle)
}

fn moved_all(bundle: &Bundle, is_read: bool) -> bool {
    let Some(side) = balance::side(bundle, is_read) else { return true };
    let generator = &bundle.observed.generator;
    let written = generator
        .storage_written_bytes
        .map(|bytes| bytes.saturating_sub(generator.storage_cancelled_bytes.unwrap_or(u64::MAX)));
    // A load that flushes leaves only few dirty pages, but the balance subtracts the dirty pages of
    // all processes on the host.
    let unflushed = balance::unflushed_bytes_max(bundle).filter(|_| !is_read);
    let own = match (unflushed, written) {
        (Some(unflushed), Some(written)) => side.own.max(Some(written.saturating_sub(unflushed))),
        _ => side.own,
    };
    let least = side.requested as f64 * MOVED_SHARE_MIN;
    let moved = own.is_some_and(|own| own as f64 >= least);
    let reached = match side.top.filter(|_| unflushed.is_some()) {
        Some(top) => top as f64 >= least,
        None => side.result == BalanceResult::Moved,
    };
    moved && reached && !(is_read && may_read_ahead(bundle))
}

/// Returns true if read-ahead may have hidden that memory answered reads. The storage then moves
/// more bytes per read than the load requested. Always false for a sequential load, because such a
/// load uses the data that was read ahead.
fn may_read_ahead(bundle: &Bundle) -> bool {
    let sequential = bundle.observed.workload.read_sequential_share;
    if sequential.is_some_and(|share| share >= SEQUENTIAL_SHARE) {
        return false;
    }
    let devices = evidence::top_devices(bundle).unwrap_or_default();
    let sum = |of: fn(&DeviceTotals) -> u64| devices.iter().map(|device| of(device)).sum::<u64>();
    let mean = |bytes: u64, count: u64| bytes as f64 / count.max(1) as f64;
    let device = mean(sum(|device| device.read_bytes), sum(|device| device.reads));
    let load = mean(evidence::read_bytes(bundle), evidence::operations(bundle, true));
    // Small reads by other processes lower the device's mean read size, which could hide
    // read-ahead.
    let others = &bundle.observed.neighbours;
    let alone = others.storage_read_bytes.filter(|_| others.is_whole()).is_some_and(|bytes| {
        bytes as f64 <= evidence::read_bytes(bundle) as f64 * (1.0 - MOVED_SHARE_MIN)
    });
    device > load * READ_SIZE_SLACK || !alone
}

/// Returns the total size of the files and devices that a watched command's result names. It is an
/// upper bound of the working set.
fn files_bytes(bundle: &Bundle) -> Option<u64> {
    let command = bundle.observed.command.as_ref()?;
    let result = command.result.as_ref()?;
    let files = command.files.iter().filter(|file| result.is_about(file));
    let device = |name: &String| {
        bundle.environment.devices.iter().find(|device| device.name == *name)?.size_bytes
    };
    let size = |file: &OpenedFile| match file.device {
        true => file.on.iter().map(device).sum(),
        false => file.size_bytes,
    };
    let all: Option<u64> = files.map(size).sum();
    // If the list does not contain all opened files, the sum is not an upper bound.
    let listed = command.files_seen <= command.files.len() as u64;
    all.filter(|bytes| *bytes > 0 && listed)
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::observed::{Command, Limits, ResultFile};

    use super::super::fixtures;
    use super::*;
    use crate::figures::measured;

    fn outcome(bundle: &Bundle) -> Outcome {
        fixtures::finding(&RULE, bundle).outcome
    }

    #[test]
    fn memory_counts_only_where_io_is_buffered() {
        let mut bundle = fixtures::reads();
        bundle.observed.generator.storage_read_bytes = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.run.engine.paths[0].direct = false;
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.environment.memory_bytes = Some((1 << 30) - 1);
        assert_eq!(outcome(&bundle), Outcome::Warn);
        bundle.environment.memory_bytes = Some((1 << 30) / 5);
        assert_eq!(outcome(&bundle), Outcome::Pass);
    }

    #[test]
    fn files_of_a_watched_command_hold_the_working_set() {
        let mut bundle = fixtures::reads();
        bundle.observed.workload.working_set_read_bytes = None;
        bundle.observed.generator.storage_read_bytes = Some(1 << 30);
        bundle.run.engine.paths[0].direct = false;
        bundle.environment.memory_bytes = Some(4 << 30);
        let file = |path: &str, device: bool, size_bytes| OpenedFile {
            path: path.into(),
            device,
            size_bytes,
            on: vec!["sda".into()],
            ..OpenedFile::default()
        };
        let mut seen = |about: &str, files: Vec<OpenedFile>| {
            let result = ResultFile { about: vec![about.into()], ..ResultFile::default() };
            bundle.observed.command = Some(Command {
                files_seen: files.len() as u64,
                files,
                result: Some(result),
                ..Command::default()
            });
            bundle.environment.devices[0].size_bytes = Some(1 << 30);
            (outcome(&bundle), fixtures::finding(&RULE, &bundle).says)
        };
        let (small, says) = seen("/x/f", vec![file("/x/f", false, Some(1 << 30))]);
        assert_eq!(small, Outcome::Fail, "{says}");
        assert!(says.contains("at most 1.00 GiB"), "{says}");
        assert_eq!(seen("/x/f", vec![file("/x/f", false, Some(8 << 30))]).0, Outcome::Warn);
        assert_eq!(seen("/x/f", vec![file("/x/f", false, Some(80 << 30))]).0, Outcome::Unknown);
        assert_eq!(seen("/x/f", vec![file("/x/f", false, None)]).0, Outcome::Unknown);
        assert_eq!(seen("/x/other", vec![file("/x/f", false, Some(1))]).0, Outcome::Unknown);
        assert_eq!(seen("/dev/sda", vec![file("/dev/sda", true, None)]).0, Outcome::Fail);
    }

    /// Returns a run with buffered I/O whose data fits into the host's memory.
    fn buffered(mut bundle: Bundle) -> Bundle {
        bundle.run.engine.paths[0].direct = false;
        bundle.observed.neighbours.storage_read_bytes = Some(0);
        bundle.observed.neighbours.storage_written_bytes = Some(0);
        bundle.observed.memory.dirty_bytes_after = Some(0);
        bundle
    }

    #[test]
    fn the_limit_of_the_control_group_counts_if_it_held_the_cache() {
        let mut bundle = buffered(fixtures::reads());
        bundle.observed.generator.storage_read_bytes = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Fail, "16 GiB of the host");
        let limits = |memory_bytes| Limits { memory_bytes, ..Limits::default() };
        bundle.observed.limits = Some(limits(Some(128 << 20)));
        assert_eq!(outcome(&bundle), Outcome::Pass, "eight times the group's limit");
        bundle.observed.limits = Some(limits(Some(512 << 20)));
        assert_eq!(outcome(&bundle), Outcome::Warn);
        bundle.observed.limits = Some(limits(Some(64 << 30)));
        assert_eq!(outcome(&bundle), Outcome::Fail, "more than the host has");
        bundle.observed.limits = Some(limits(None));
        assert_eq!(outcome(&bundle), Outcome::Fail, "no limit");
        // Another process read the files into the cache, so these pages are charged to that
        // process's group.
        bundle.observed.limits = Some(limits(Some(128 << 20)));
        bundle.observed.page_cache.resident_bytes_before = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.observed.page_cache.resident_bytes_before = None;
        assert_eq!(outcome(&bundle), Outcome::Fail, "nobody looked");
    }

    #[test]
    fn what_storage_moved_was_not_answered_by_memory() {
        let mut bundle = buffered(fixtures::reads());
        assert_eq!(outcome(&bundle), Outcome::Pass);
        let asked = evidence::read_bytes(&bundle);
        bundle.observed.generator.storage_read_bytes = Some(asked / 10 * 9);
        assert_eq!(outcome(&bundle), Outcome::Fail, "a tenth came from memory");
        bundle.observed.generator.storage_read_bytes = None;
        assert_eq!(outcome(&bundle), Outcome::Fail, "not counted");
        // The device moved the same number of bytes as before, but for other processes.
        bundle.observed.generator.storage_read_bytes = Some(0);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        // Read-ahead doubled the bytes per read, and memory answered every other read.
        let mut bundle = buffered(fixtures::reads());
        bundle.observed.devices[0].reads /= 2;
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.observed.workload.read_sequential_share = Some(1.0);
        assert_eq!(outcome(&bundle), Outcome::Pass, "a sequential reader uses all of it");
        let mut bundle = buffered(fixtures::reads());
        bundle.observed.neighbours.storage_read_bytes = Some(asked);
        assert_eq!(outcome(&bundle), Outcome::Fail, "others' small reads may hide it");
    }

    #[test]
    fn bytes_before_the_first_counters_are_not_from_memory() {
        let mut bundle = buffered(fixtures::reads());
        let requested = evidence::read_bytes(&bundle);
        bundle.observed.generator.storage_read_bytes = Some(requested / 100 * 94);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        let phase = measured(&bundle).unwrap().clone();
        bundle.observed.counted_from_ns = Some(phase.start_ns + phase.duration_ns / 20);
        assert_eq!(outcome(&bundle), Outcome::Unknown, "they were read late");
        bundle.observed.generator.storage_read_bytes = Some(requested / 100 * 85);
        assert_eq!(outcome(&bundle), Outcome::Fail, "more is missing than preceded them");
    }

    /// An attack by the adversary: reads with automatic direct I/O run at the same time as buffered
    /// writes that are flushed.
    #[test]
    fn a_buffered_stream_does_not_make_another_one_buffered() {
        let streams = |reads: &str, writes: &str| {
            let from = "[workload.matrix]\nfile_size = \"1GiB\"\nreads = 100\nqueue_depth = 8";
            let to = format!(
                "[[workload.matrix]]\nname = \"a\"\nreads = 100\nqueue_depth = 8\nfile_size = \
                 \"1GiB\"\ndirect = \"{reads}\"\n[[workload.matrix]]\nname = \"b\"\nreads = \
                 0\nqueue_depth = 8\nfile_size = \"1GiB\"\ndirect = \"{writes}\"\nsync = \"dsync\""
            );
            let mut bundle = buffered(fixtures::reads_with(from, &to));
            let requested = evidence::read_bytes(&bundle);
            bundle.observed.generator.storage_read_bytes = Some(requested / 100 * 94);
            outcome(&bundle)
        };
        assert_eq!(streams("auto", "off"), Outcome::Unknown);
        assert_eq!(streams("off", "off"), Outcome::Fail);
        // If no stream requests buffered I/O, the file system must have refused direct I/O.
        assert_eq!(streams("auto", "auto"), Outcome::Fail);
    }

    #[test]
    fn writes_that_were_synced_are_written() {
        let to = "queue_depth = 8\nsync = \"fdatasync\"";
        let mut bundle = buffered(fixtures::writes_with("queue_depth = 8", to));
        // Other processes have dirty pages, and the files of the load are cached.
        bundle.observed.memory.dirty_bytes_after = Some(4 << 30);
        bundle.observed.page_cache.resident_bytes_after = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        let mut unsynced = buffered(fixtures::writes());
        unsynced.observed.memory.dirty_bytes_after = Some(4 << 30);
        unsynced.observed.page_cache.resident_bytes_after = Some(1 << 30);
        assert_eq!(outcome(&unsynced), Outcome::Fail);
        // The result is unknown if other processes wrote, or if the counters were read late.
        let asked = evidence::written_bytes(&bundle);
        bundle.observed.generator.storage_written_bytes = Some(asked / 10 * 9);
        assert_eq!(outcome(&bundle), Outcome::Unknown);
        // A page that is overwritten several times between two flushes reaches the storage only
        // once.
        bundle.observed.generator.storage_written_bytes = Some(asked / 4);
        assert_eq!(outcome(&bundle), Outcome::Fail);
    }

    #[test]
    fn a_declared_cache_or_tier_must_be_exceeded() {
        let mut bundle = fixtures::reads();
        bundle.plan.observe.tier_bytes = Some(1 << 30);
        assert_eq!(outcome(&bundle), Outcome::Fail);
        bundle.plan.observe.tier_bytes = Some(1 << 29);
        assert_eq!(outcome(&bundle), Outcome::Pass);
        bundle.observed.workload.working_set_read_bytes = None;
        assert_eq!(outcome(&bundle), Outcome::Unknown);
    }
}
