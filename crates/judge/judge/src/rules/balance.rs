//! Balance of bytes: compares the bytes that the load requested with the bytes that devices moved
//! for this process. If a cache, a hole or a compressing layer supplied some of the bytes, the
//! devices did not move these.
//!
//! The balance compares the process with the devices under the target's file system. The rule then
//! compares each layer with the next lower layer, down to the disks. I/O of other processes must
//! never count as I/O of this process:
//!
//! - At the top, the process's own counters (`/proc/PID/io`) distinguish its I/O from the I/O of
//!   other processes. The kernel counts reads when it submits them to a block device. It counts a
//!   write if the write bypasses the page cache or makes a clean page dirty. The counter minus the
//!   bytes that are still dirty is therefore a lower bound of the bytes that reached the device.
//! - If this process is itself the client of the network protocol, the interfaces' counters are
//!   used (`wire`).
//! - At lower layers, traffic from other partitions and volumes is subtracted. Below a loop device,
//!   two counters identify the load's I/O: those of the kernel threads that work for the loop
//!   device, and those of other processes.

mod in_flight;
mod layers;
mod server;
pub(crate) mod wire;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Mount};
use plimsoll_evidence::observed::{DeviceTotals, IoBytes};
use plimsoll_evidence::run::{Driver, Tier};
use plimsoll_plan::{DirectIo, Stream, SyncKind, Workload};

use super::evidence;
use crate::figures::{self, NS_PER_S, Pick, measured};

/// Minimum ratio of bytes moved by devices to requested bytes. A smaller ratio means that a cache
/// served some of the I/O. Measured ratios are 0.001 with a warm page cache, 0.87 with a cold page
/// cache and 1.00 with direct I/O.
pub const SHARE_MIN: f64 = 0.8;
/// If the ratio of device bytes to requested bytes is at most this value, all device bytes are
/// attributed to the job. A result file alone does not show which process caused these bytes.
const ALONE_MAX: f64 = 1.25;
/// Maximum credible data reduction. A larger declared reduction is not believed. Array makers
/// guarantee 3:1 to 5:1 for mixed data.
pub const REDUCTION_MAX: f64 = 5.0;
/// Minimum number of requested bytes for a finding against a target. A file system's metadata alone
/// can reach this size.
const REQUESTED_MIN: u64 = 1 << 20;
/// Minimum measured time for a finding against a target. The counters are first read some
/// milliseconds after the start of the measurement. In one measured run of 49 ms on a busy host, a
/// quarter of the bytes were written before this first reading.
const MEASURED_NS_MIN: u64 = 250_000_000;
/// Maximum delay of the first counter reading, as a fraction of the measurement. At most the same
/// fraction of the bytes may have moved before that reading. The value is half of the margin of
/// [`SHARE_MIN`], because the load is uneven.
const LATE_SHARE: f64 = 0.1;
/// Block-device file systems that submit I/O in the context of the requesting process.
const ON_DEVICES: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "jfs", "overlay"];

/// Allowed difference between counters and operations, as a fraction of all bytes. I/O that
/// completes near the start or the end of the measurement may be included in only one of the two
/// figures.
const TIMING_SLACK: f64 = 0.02;

/// Requested bytes of one direction, separately for buffered I/O (through the page cache) and
/// direct I/O.
#[derive(Clone, Copy, Debug, Default)]
struct StreamBytes {
    buffered_bytes: u64,
    direct_bytes: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BalanceResult {
    /// The devices moved the requested bytes.
    Moved,
    /// The devices moved too few bytes. The text describes this.
    Short(String),
    /// The evidence does not permit a decision. The text gives the reason.
    Open(String),
}

#[derive(Clone, Debug)]
pub(crate) struct DirectionBalance {
    /// `read` or `written`.
    pub(crate) word: &'static str,
    /// Requested bytes.
    pub(crate) requested: u64,
    /// Bytes that the process itself submitted to the storage. `None` if unknown.
    pub(crate) own: Option<u64>,
    /// Bytes that the devices under the target's file system moved, for all processes.
    pub(crate) top: Option<u64>,
    /// Bytes that network interfaces moved, for all processes. `None` if unknown, or if this
    /// process is not itself the client of a network target.
    pub(crate) wire: Option<u64>,
    pub(crate) result: BalanceResult,
}

/// Returns one balance for each direction in which bytes were requested.
pub(crate) fn sides(bundle: &Bundle) -> Vec<DirectionBalance> {
    [true, false].into_iter().filter_map(|is_read| side(bundle, is_read)).collect()
}

/// Returns the balance of one direction; `None` if no bytes were requested.
pub(crate) fn side(bundle: &Bundle, is_read: bool) -> Option<DirectionBalance> {
    let scale = Scale::of(bundle, is_read)?;
    let (own, top, wire) = (scale.own(), scale.top(), scale.interface_bytes());
    let word = if is_read { "read" } else { "written" };
    Some(DirectionBalance {
        word,
        requested: scale.requested,
        own,
        top,
        wire,
        result: scale.judge(),
    })
}

/// Returns the fraction of the read bytes that no device moved for this process; `None` if unknown.
pub(crate) fn read_from_cache(bundle: &Bundle) -> Option<f64> {
    let scale = Scale::of(bundle, true).filter(|scale| scale.late_ns().is_none())?;
    let moved = match (scale.own().filter(|_| scale.counts_own()), scale.top()) {
        (Some(own), top) => top.map_or(own, |top| top.min(own)),
        (None, top) => top?,
    };
    Some(1.0 - (moved as f64 / scale.requested as f64).min(1.0))
}

/// Returns the minimum number of bytes that the process itself must have submitted. `None` if no
/// bytes were requested, or if the process's counters do not include these bytes.
pub(crate) fn least_own(bundle: &Bundle, is_read: bool) -> Option<u64> {
    let scale = Scale::of(bundle, is_read)?;
    let counts = scale.counts_own() && scale.late_ns().is_none();
    (counts && scale.requested >= REQUESTED_MIN).then(|| scale.without_in_flight().least)
}

/// Returns the bytes that devices may have moved before the first reading of the counters. These
/// are the bytes of operations that had completed or were in flight at that time.
pub(crate) fn uncounted_bytes_max(bundle: &Bundle, is_read: bool) -> u64 {
    let Some(scale) = Scale::of(bundle, is_read) else { return 0 };
    scale.early_bytes().saturating_add(scale.in_flight_bytes())
}

/// Returns the time of the first counter reading, if that reading was so late that a large part of
/// the load had already run.
pub(super) fn counted_late_from_ns(bundle: &Bundle, is_read: bool) -> Option<u64> {
    Scale::of(bundle, is_read)?.late_ns().and(bundle.observed.counted_from_ns)
}

/// Inputs to the balance of one direction.
struct Scale<'a> {
    bundle: &'a Bundle,
    is_read: bool,
    requested: u64,
    /// Minimum number of bytes that devices must have moved.
    least: u64,
}

impl<'a> Scale<'a> {
    fn of(bundle: &'a Bundle, is_read: bool) -> Option<Self> {
        let requested =
            if is_read { evidence::read_bytes(bundle) } else { evidence::written_bytes(bundle) };
        let reduction = bundle.plan.observe.data_reduction.unwrap_or(1.0);
        let reduction = reduction.clamp(1.0, REDUCTION_MAX);
        let least = (requested as f64 * SHARE_MIN / reduction) as u64;
        (requested > 0).then_some(Self { bundle, is_read, requested, least })
    }

    fn pick(&self, moved: IoBytes) -> u64 {
        if self.is_read { moved.read_bytes } else { moved.written_bytes }
    }

    fn totals(&self, device: &DeviceTotals) -> u64 {
        if self.is_read { device.read_bytes } else { device.written_bytes }
    }

    fn verb(&self) -> &'static str {
        if self.is_read { "read" } else { "written" }
    }

    /// Returns the bytes that the process submitted. Writes that may still be dirty are subtracted.
    /// `None` if their amount is unknown.
    fn own(&self) -> Option<u64> {
        let most = self.own_at_most()?;
        if self.is_read {
            return Some(most);
        }
        let dirty = self.bundle.observed.memory.dirty_bytes_after;
        // The number of dirty bytes of a target cannot exceed the number of cached bytes of its
        // files.
        let held = match (self.bundle.observed.page_cache.resident_bytes_after, dirty) {
            (Some(resident), Some(dirty)) => resident.min(dirty),
            (one, other) => one.or(other)?,
        };
        Some(most.saturating_sub(held))
    }

    /// Returns the bytes that the process submitted, including writes that may still be dirty.
    fn own_at_most(&self) -> Option<u64> {
        let generator = &self.bundle.observed.generator;
        if self.is_read {
            return generator.storage_read_bytes;
        }
        let cancelled = generator.storage_cancelled_bytes.unwrap_or(0);
        Some(generator.storage_written_bytes?.saturating_sub(cancelled))
    }

    /// Returns true if both bounds of the dirty bytes are known: the host's dirty bytes, and the
    /// cached bytes of the files.
    fn dirty_is_known(&self) -> bool {
        let cache = self.bundle.observed.page_cache.resident_bytes_after;
        let dirty = self.bundle.observed.memory.dirty_bytes_after;
        self.is_read || cache.is_some() && dirty.is_some()
    }

    fn top(&self) -> Option<u64> {
        let devices = evidence::top_devices(self.bundle)?;
        Some(devices.iter().map(|device| self.totals(device)).sum())
    }

    /// Returns the number of device bytes that the tool itself reports, if an observer also watched
    /// the run.
    fn reported_bytes(&self) -> Option<u64> {
        let reported = &self.bundle.observed.reported_devices;
        (!reported.is_empty()).then(|| reported.iter().map(|device| self.totals(device)).sum())
    }

    /// Returns true if the process's own counters include only bytes that reached a block device.
    fn counts_own(&self) -> bool {
        let environment = &self.bundle.environment;
        let known = |mount: &&Mount| match mount.file_system.as_deref() {
            // A block device without a file system.
            None => !mount.on.is_empty() || !mount.devices.is_empty(),
            Some(kind) => ON_DEVICES.contains(&kind),
        };
        let overlays =
            environment.mounts.iter().any(|m| m.file_system.as_deref() == Some("overlay"));
        let below_known = !overlays || environment.below.iter().all(|mount| known(&mount));
        !environment.mounts.is_empty()
            && environment.mounts.iter().all(|m| known(&m))
            && below_known
    }

    fn size(&self, bytes: u64) -> String {
        evidence::size(bytes)
    }

    /// Returns the worst result of all layers; `None` if every layer moved the requested bytes.
    fn worst(&self) -> Option<BalanceResult> {
        let steps = match self.judge_server_target() {
            Some(server) => vec![server],
            None => std::iter::once(self.judge_top()).chain(self.judge_layers()).collect(),
        };
        let short = |result: &&BalanceResult| matches!(result, BalanceResult::Short(_));
        let open = |result: &&BalanceResult| matches!(result, BalanceResult::Open(_));
        steps.iter().find(short).or_else(|| steps.iter().find(open)).cloned()
    }

    fn judge(&self) -> BalanceResult {
        match self.worst() {
            Some(BalanceResult::Short(says)) if self.requested < REQUESTED_MIN => {
                BalanceResult::Open(format!(
                    "too few bytes were {} for a judgement: {says}",
                    self.verb()
                ))
            }
            Some(BalanceResult::Short(says)) if self.is_brief() => BalanceResult::Open(format!(
                "the measurement was too short for a judgement: {says}"
            )),
            Some(BalanceResult::Short(says))
                if !matches!(self.without_in_flight().worst(), Some(BalanceResult::Short(_))) =>
            {
                BalanceResult::Open(format!(
                    "{says}; up to {} were in flight when the measurement started",
                    self.size(self.in_flight_bytes())
                ))
            }
            Some(BalanceResult::Short(says)) => match self.late_ns() {
                Some(late_ns) => BalanceResult::Open(format!(
                    "the counters were first read {:.2} s after the start of the measurement: \
                     {says}",
                    late_ns as f64 / NS_PER_S
                )),
                None => BalanceResult::Short(says),
            },
            Some(result) => result,
            None => BalanceResult::Moved,
        }
    }

    fn is_brief(&self) -> bool {
        let is_ours = self.bundle.run.driver == Driver::Real;
        is_ours && measured(self.bundle).is_some_and(|phase| phase.duration_ns < MEASURED_NS_MIN)
    }

    /// Returns the delay of the first counter reading, if it may explain the missing bytes.
    fn late_ns(&self) -> Option<u64> {
        let (phase, from_ns) = (measured(self.bundle)?, self.bundle.observed.counted_from_ns?);
        let late_ns = from_ns.saturating_sub(phase.start_ns);
        // If a load starts fast, it may move a large part of its data before this reading.
        let is_late = late_ns as f64 > phase.duration_ns as f64 * LATE_SHARE
            || self.early_bytes() as f64 > self.requested as f64 * LATE_SHARE;
        is_late.then_some(late_ns)
    }

    /// Returns the bytes of operations that completed before the counters were first read.
    fn early_bytes(&self) -> u64 {
        let Some(from_ns) = self.bundle.observed.counted_from_ns else { return 0 };
        let pick = if self.is_read { Pick::Reads(None) } else { Pick::Writes(None) };
        figures::bytes_before(self.bundle, pick, from_ns) as u64
    }

    /// Returns the bytes that buffered streams and direct streams requested in this direction.
    /// `None` unless both kinds of streams exist.
    fn stream_bytes(&self) -> Option<StreamBytes> {
        let streams = evidence::streams(self.bundle);
        let classes = self.bundle.run.classes.iter();
        let mut streams_bytes = StreamBytes::default();
        for class in classes.filter(|class| class.is_read == self.is_read && class.size_bytes > 0) {
            let stream = streams.get(class.instance as usize)?;
            let sum = match stream.direct {
                DirectIo::Off => &mut streams_bytes.buffered_bytes,
                DirectIo::Required | DirectIo::Auto => &mut streams_bytes.direct_bytes,
            };
            *sum += class.size_bytes;
        }
        (streams_bytes.buffered_bytes > 0 && streams_bytes.direct_bytes > 0)
            .then_some(streams_bytes)
    }

    /// Judges buffered streams that run at the same time as direct streams. All bytes that no
    /// device moved are attributed to the buffered streams. Otherwise a large direct stream could
    /// hide that a small buffered stream was cached.
    fn judge_buffered_streams(&self, own: Option<u64>) -> Option<BalanceResult> {
        let streams_bytes = self.stream_bytes()?;
        let reduction = self.bundle.plan.observe.data_reduction.unwrap_or(1.0);
        let least =
            streams_bytes.buffered_bytes as f64 * SHARE_MIN / reduction.clamp(1.0, REDUCTION_MAX);
        let direct =
            (streams_bytes.direct_bytes as f64 / reduction.clamp(1.0, REDUCTION_MAX)) as u64;
        let of_buffered = |own: Option<u64>| {
            let own = own.filter(|_| self.counts_own());
            Some(own.into_iter().chain(self.top()).min()?.saturating_sub(direct))
        };
        let moved = of_buffered(own)?;
        if moved as f64 >= least {
            return None;
        }
        // The host's dirty bytes may belong to another process. They do not include bytes that
        // moved before the counters were first read. Both amounts are small, but they matter,
        // because the number of buffered bytes may be small too.
        let slack = (self.requested as f64 * TIMING_SLACK) as u64;
        let uncounted = slack.max(self.in_flight_bytes()).saturating_add(self.early_bytes());
        let most = moved.max(of_buffered(self.own_at_most())?).saturating_add(uncounted);
        let (asked, verb) = (self.size(streams_bytes.buffered_bytes), self.verb());
        Some(if (most as f64) < least {
            BalanceResult::Short(format!(
                "of {asked} {verb} by buffered streams, at most {} reached a device: the other \
                 bytes stayed in the page cache",
                self.size(most)
            ))
        } else {
            BalanceResult::Open(format!(
                "of {asked} {verb} by buffered streams, between {} and {} reached a device",
                self.size(moved),
                self.size(most)
            ))
        })
    }

    fn judge_top(&self) -> BalanceResult {
        match self.compare_top() {
            BalanceResult::Short(says) => match self.unflushed_bytes() {
                Some(unflushed) => BalanceResult::Open(format!(
                    "{says}; up to {} had not been flushed yet when the measurement ended",
                    self.size(unflushed)
                )),
                None => BalanceResult::Short(says),
            },
            result => result,
        }
    }

    /// Returns the bytes of the load's own writes that may not have been flushed yet, if they can
    /// explain the missing bytes. This occurs if a load makes only a few writes on a slow device.
    fn unflushed_bytes(&self) -> Option<u64> {
        let unflushed = unflushed_bytes_max(self.bundle).filter(|_| !self.is_read)?;
        let flushed = self.requested.saturating_sub(unflushed);
        let least = self.least as f64 * flushed as f64 / self.requested as f64;
        let own = self.own_at_most().filter(|_| self.counts_own());
        let moved = own.into_iter().chain(self.top()).min()?;
        (unflushed > 0 && moved as f64 >= least).then_some(unflushed)
    }

    fn compare_top(&self) -> BalanceResult {
        let requested = self.size(self.requested);
        let own = self.own();
        if let Some(short) = self.judge_by_network_mounts() {
            return short;
        }
        if let Some(reported) = self.reported_bytes().filter(|reported| *reported < self.least) {
            let says = format!(
                "of {requested} {}, the device moved only {}, according to the result's own \
                 counters",
                self.verb(),
                self.size(reported)
            );
            return BalanceResult::Short(says);
        }
        if let Some(top) = self.top().filter(|top| *top < self.least) {
            let says =
                format!("of {requested} {}, the device moved only {}", self.verb(), self.size(top));
            return BalanceResult::Short(says);
        }
        if self.counts_own()
            && let Some(own) = own
        {
            if own >= self.least {
                return self.judge_buffered_streams(Some(own)).unwrap_or(BalanceResult::Moved);
            }
            if !self.dirty_is_known() && self.own_at_most() >= Some(self.least) {
                return BalanceResult::Open(format!(
                    "{requested} were {}, but it is unknown how much of this is still dirty in the \
                     page cache",
                    self.verb()
                ));
            }
            // Cached bytes of directly written files need not be dirty, and the host's dirty pages
            // may belong to another process. Neither of them proves that the target's data is
            // dirty.
            let direct = evidence::buffered_paths(self.bundle).is_empty();
            if !self.is_read && direct && self.own_at_most() >= Some(self.least) {
                return self.judge_by_devices();
            }
            // If the load flushed its writes, or wrote directly, the host's dirty pages may belong
            // to another process.
            let is_buffered =
                |stream: &Stream| evidence::is_buffered(self.bundle, stream) == Some(true);
            let unflushed = unflushed_bytes_of(self.bundle, is_buffered).filter(|_| !self.is_read);
            if let (Some(unflushed), Some(most)) = (unflushed, self.own_at_most())
                && most.saturating_sub(unflushed) >= self.least
            {
                return self.judge_by_devices();
            }
            // A flush may write the data only to the journal. The pages of the file then remain
            // dirty.
            if self.is_read || !(self.journals_data() && flushes(self.bundle)) {
                return BalanceResult::Short(self.describe_own(own));
            }
        }
        self.judge_by_devices()
    }

    fn describe_own(&self, own: u64) -> String {
        let (requested, moved) = (self.size(self.requested), self.size(own));
        let direct = evidence::buffered_paths(self.bundle).is_empty();
        let why = match (direct, self.is_read) {
            (true, _) => "although I/O was direct, the page cache served the other bytes",
            (false, true) => "the page cache served the other bytes",
            (false, false) => {
                "the other bytes remained in the page cache, or were overwritten there"
            }
        };
        let cause = if self.is_read { "read from" } else { "brought to" };
        format!("of {requested} {}, this process had {moved} {cause} a device: {why}", self.verb())
    }

    /// Judges according to the devices' counters, minus the bytes that other processes may have
    /// moved. Used if the process's own counters do not permit a decision.
    fn judge_by_devices(&self) -> BalanceResult {
        let Some(top) = self.top() else {
            let why = evidence::storage_unseen(self.bundle).map_or("no device shows", |u| &u.why);
            return BalanceResult::Open(format!(
                "it is unknown which device moved the {}: {why}",
                self.size(self.requested)
            ));
        };
        let bundle = self.bundle;
        if bundle.run.tier == Tier::T3 && bundle.run.driver == Driver::Foreign {
            let alone = top as f64 <= self.requested as f64 * ALONE_MAX;
            return if alone { BalanceResult::Moved } else { self.undecided(top) };
        }
        match self.other_processes_bytes() {
            Some(others) if top.saturating_sub(others) >= self.least => {
                self.judge_buffered_streams(None).unwrap_or(BalanceResult::Moved)
            }
            _ => self.undecided(top),
        }
    }

    fn undecided(&self, moved: u64) -> BalanceResult {
        BalanceResult::Open(format!(
            "{} were {}, but it is unknown how much of this the device moved: it moved {} in total, \
             which may include I/O of other processes",
            self.size(self.requested),
            self.verb(),
            self.size(moved)
        ))
    }

    /// Returns the bytes that other processes moved on any device; `None` if some of these
    /// processes are not visible.
    fn other_processes_bytes(&self) -> Option<u64> {
        let others = &self.bundle.observed.neighbours;
        let bytes =
            if self.is_read { others.storage_read_bytes } else { others.storage_written_bytes };
        bytes.filter(|_| others.is_whole())
    }

    /// Judges according to a network mount's own counters of bytes sent and received.
    fn judge_by_network_mounts(&self) -> Option<BalanceResult> {
        let mounts = &self.bundle.observed.network_mounts;
        if mounts.is_empty() {
            return None;
        }
        let wire: u64 = mounts
            .iter()
            .map(|m| if self.is_read { m.server_read_bytes } else { m.server_written_bytes })
            .sum();
        let requested = self.size(self.requested);
        Some(if wire < self.least {
            let says = format!(
                "of {requested} {}, only {} crossed the network: this host's caches supplied the \
                 other bytes",
                self.verb(),
                self.size(wire)
            );
            BalanceResult::Short(says)
        } else {
            BalanceResult::Moved
        })
    }

    /// Returns true if an underlying file system accepts the flag for direct I/O, but uses the page
    /// cache anyway.
    fn journals_data(&self) -> bool {
        let mounts = &self.bundle.environment.mounts;
        let systems = &self.bundle.observed.file_systems;
        systems.iter().any(|system| system.direct_align_bytes == Some(0))
            || mounts.iter().any(|mount| {
                let options = mount.options.as_deref().unwrap_or_default();
                options.split(',').any(|option| option == "data=journal")
            })
    }

    fn find_device(&self, name: &str) -> Option<&Device> {
        self.bundle.environment.devices.iter().find(|device| device.name == name)
    }
}

/// Returns the maximum number of the load's own bytes that may be dirty at the end. These are the
/// bytes that each client wrote after its last flush. `None` if some writes are never flushed. Also
/// `None` if a client writes to several files, because a flush applies to only one file.
pub fn unflushed_bytes_max(bundle: &Bundle) -> Option<u64> {
    unflushed_bytes_of(bundle, |stream| stream.direct != DirectIo::Required)
}

/// Returns the same maximum, but counts only the streams that `makes_dirty` selects.
fn unflushed_bytes_of(bundle: &Bundle, makes_dirty: impl Fn(&Stream) -> bool) -> Option<u64> {
    let of_stream = |stream: &Stream| {
        let every_writes = u64::from(stream.sync.every_writes.max(1));
        let is_one_file = stream.files.files_per_share == 1;
        match stream.sync.kind {
            _ if stream.read_percent >= 100.0 || !makes_dirty(stream) => Some(0),
            SyncKind::Dsync => Some(0),
            SyncKind::None => None,
            _ if !is_one_file && every_writes > 1 => None,
            _ => {
                let sizes = stream.sizes.iter().chain(&stream.write_sizes);
                let size_bytes = sizes.map(|size| size.size_bytes).max()?;
                let writes = every_writes + u64::from(stream.queue_depth);
                Some(u64::from(stream.clients) * writes * size_bytes)
            }
        }
    };
    bundle.plan.workload.matrix()?.streams.iter().map(of_stream).sum()
}

/// Returns true if every writer makes its writes durable within the measurement.
fn flushes(bundle: &Bundle) -> bool {
    match &bundle.plan.workload {
        Workload::Mailbox(_) => true,
        Workload::Matrix(matrix) => {
            let mut writers = matrix.streams.iter().filter(|s| s.read_percent < 100.0);
            writers.all(|stream| stream.sync.kind != SyncKind::None)
        }
    }
}
