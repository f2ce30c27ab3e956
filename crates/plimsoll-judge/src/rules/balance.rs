//! The balance of bytes: what was asked of the target against what the devices below it moved for this
//! process. A cache, a hole or a compressing layer answers without moving what was asked.
//!
//! It is drawn at the top, between the process and the devices that the target lies on, and at each layer
//! from there down to the disks. Others' I/O is told apart, so that it never stands in for ours:
//!
//! - at the top by the process's own counters (`/proc/PID/io`): reads are counted where they are handed
//!   to a block device, writes where they go past the page cache or make a page dirty. A page that is dirty
//!   already is not counted again, so that what was counted, less what is still dirty, reached the
//!   device at least;
//! - over a network, where this process speaks its protocol itself, by what the interfaces counted (`wire`);
//! - further down by what came in from beside (other partitions and volumes), and, under a loop device, by
//!   the counters of the kernel's own threads, which do its work, and of other processes.

mod layers;
mod server;
pub(crate) mod wire;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Mount};
use plimsoll_evidence::observed::{DeviceTotals, IoBytes};
use plimsoll_evidence::run::{Driver, Tier};
use plimsoll_plan::{DirectIo, SyncKind, Workload};

use super::seen;
use crate::figures::{NS_PER_S, measured};

/// Devices that moved less than this share of what was asked left the rest to something else: measured
/// 0.001 from a warm page cache, 0.87 from a cold one, 1.00 with direct I/O.
pub const SHARE_MIN: f64 = 0.8;
/// A result file alone does not tell whose a device's bytes were: within this share above what was asked
/// they are taken for the job's.
const ALONE_MAX: f64 = 1.25;
/// Reductions beyond this are not believed, declared or not: what makers of arrays guarantee for mixed data is
/// 3:1 to 5:1.
pub const REDUCTION_MAX: f64 = 5.0;
/// Less than this says nothing against a target: its metadata is of this size.
const ASKED_MIN: u64 = 1 << 20;
/// Less time than this says nothing against a target: the counters are read for the first time some milliseconds after
/// the measurement began (measured on a busy host: a quarter of what was written in 49 ms came before).
const MEASURED_NS_MIN: u64 = 250_000_000;
/// Counters that were read first after more than this share of the measurement leave too much out: half of what
/// [`SHARE_MIN`] lets pass, as load is not even.
const LATE_SHARE: f64 = 0.1;
/// File systems on block devices that hand I/O on in the process that asks for it.
const ON_DEVICES: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "jfs", "overlay"];

/// Counters and operations may differ by this share of all bytes: what completes around the ends of
/// the measurement is counted by one and not by the other.
const TIMING_SLACK: f64 = 0.02;

/// Bytes that one direction asked for through the page cache, and past it.
#[derive(Clone, Copy, Debug, Default)]
struct StreamBytes {
    buffered_bytes: u64,
    direct_bytes: u64,
}

/// How the bytes stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stands {
    /// The devices moved what was asked.
    Moved,
    /// Too little was moved, whoever moved it.
    Short(String),
    /// It cannot be told.
    Open(String),
}

/// One direction, drawn up.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// `read` or `written`.
    pub(crate) word: &'static str,
    /// Bytes asked for.
    pub(crate) asked: u64,
    /// Bytes that the process itself handed on; `None`: not known.
    pub(crate) own: Option<u64>,
    /// Bytes that the devices that the target lies on moved, for everybody.
    pub(crate) top: Option<u64>,
    /// Bytes that network interfaces moved for everybody, where this process speaks to its target over them by
    /// itself; `None`: not so, or not known.
    pub(crate) wire: Option<u64>,
    /// What follows.
    pub(crate) stands: Stands,
}

/// Both directions, where there is something to weigh.
pub(crate) fn sides(bundle: &Bundle) -> Vec<Side> {
    [true, false].into_iter().filter_map(|is_read| side(bundle, is_read)).collect()
}

/// One direction; `None` where nothing was asked.
pub(crate) fn side(bundle: &Bundle, is_read: bool) -> Option<Side> {
    let scale = Scale::of(bundle, is_read)?;
    let (own, top, wire) = (scale.own(), scale.top(), scale.by_interfaces());
    let word = if is_read { "read" } else { "written" };
    Some(Side { word, asked: scale.asked, own, top, wire, stands: scale.weigh() })
}

/// Share of the reads that no device moved for this process; `None` where that cannot be told.
pub(crate) fn read_from_cache(bundle: &Bundle) -> Option<f64> {
    let scale = Scale::of(bundle, true).filter(|scale| scale.late_ns().is_none())?;
    let moved = match (scale.own().filter(|_| scale.counts_own()), scale.top()) {
        (Some(own), top) => top.map_or(own, |top| top.min(own)),
        (None, top) => top?,
    };
    Some(1.0 - (moved as f64 / scale.asked as f64).min(1.0))
}

/// Least that the process has to have handed on of what was asked of files; `None` where nothing was asked,
/// or where its counters do not tell.
pub(crate) fn least_own(bundle: &Bundle, is_read: bool) -> Option<u64> {
    let scale = Scale::of(bundle, is_read)?;
    let counts = scale.counts_own() && scale.late_ns().is_none();
    (counts && scale.asked >= ASKED_MIN).then_some(scale.least)
}

/// What one direction is weighed with.
struct Scale<'a> {
    bundle: &'a Bundle,
    is_read: bool,
    asked: u64,
    /// Bytes that have to be moved.
    least: u64,
}

impl<'a> Scale<'a> {
    fn of(bundle: &'a Bundle, is_read: bool) -> Option<Self> {
        let asked = if is_read { seen::read_bytes(bundle) } else { seen::written_bytes(bundle) };
        let reduction = bundle.plan.observe.data_reduction.unwrap_or(1.0);
        let reduction = reduction.clamp(1.0, REDUCTION_MAX);
        let least = (asked as f64 * SHARE_MIN / reduction) as u64;
        (asked > 0).then_some(Self { bundle, is_read, asked, least })
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

    /// Bytes that the process handed on: of writes at least those that are not dirty any more; `None` where
    /// nothing tells what may be.
    fn own(&self) -> Option<u64> {
        let most = self.own_at_most()?;
        if self.is_read {
            return Some(most);
        }
        let dirty = self.bundle.observed.memory.dirty_bytes_after;
        // What is dirty of the target's files is part of what the cache holds of them.
        let held = match (self.bundle.observed.page_cache.resident_bytes_after, dirty) {
            (Some(resident), Some(dirty)) => resident.min(dirty),
            (one, other) => one.or(other)?,
        };
        Some(most.saturating_sub(held))
    }

    /// The same with what may still be dirty.
    fn own_at_most(&self) -> Option<u64> {
        let generator = &self.bundle.observed.generator;
        if self.is_read {
            return generator.storage_read_bytes;
        }
        let cancelled = generator.storage_cancelled_bytes.unwrap_or(0);
        Some(generator.storage_written_bytes?.saturating_sub(cancelled))
    }

    /// Whether both bounds of what is dirty are known: the host's sum, and what is cached of the files.
    fn dirty_is_known(&self) -> bool {
        let cache = self.bundle.observed.page_cache.resident_bytes_after;
        let dirty = self.bundle.observed.memory.dirty_bytes_after;
        self.is_read || cache.is_some() && dirty.is_some()
    }

    fn top(&self) -> Option<u64> {
        let devices = seen::top_devices(self.bundle)?;
        Some(devices.iter().map(|device| self.totals(device)).sum())
    }

    /// What the tool itself says that the device moved, where somebody watched beside it.
    fn said(&self) -> Option<u64> {
        let said = &self.bundle.observed.reported_devices;
        (!said.is_empty()).then(|| said.iter().map(|device| self.totals(device)).sum())
    }

    /// Whether the process's counters are those of what reached a block device.
    fn counts_own(&self) -> bool {
        let environment = &self.bundle.environment;
        let known = |mount: &&Mount| match mount.file_system.as_deref() {
            // A block device.
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
        seen::size(bytes)
    }

    fn weigh(&self) -> Stands {
        let steps = match self.server() {
            Some(server) => vec![server],
            None => std::iter::once(self.at_the_top()).chain(self.further_down()).collect(),
        };
        let short = |stands: &&Stands| matches!(stands, Stands::Short(_));
        let open = |stands: &&Stands| matches!(stands, Stands::Open(_));
        let worst = steps.iter().find(short).or_else(|| steps.iter().find(open)).cloned();
        match worst {
            Some(Stands::Short(says)) if self.asked < ASKED_MIN => {
                Stands::Open(format!("too little was {} to tell: {says}", self.verb()))
            }
            Some(Stands::Short(says)) if self.is_brief() => {
                Stands::Open(format!("too short a time was measured to tell: {says}"))
            }
            Some(Stands::Short(says)) => match self.late_ns() {
                Some(late_ns) => Stands::Open(format!(
                    "the counters were read first {:.1} s after the measurement began: {says}",
                    late_ns as f64 / NS_PER_S
                )),
                None => Stands::Short(says),
            },
            Some(stands) => stands,
            None => Stands::Moved,
        }
    }

    fn is_brief(&self) -> bool {
        let is_ours = self.bundle.run.driver == Driver::Real;
        is_ours && measured(self.bundle).is_some_and(|phase| phase.duration_ns < MEASURED_NS_MIN)
    }

    /// For how long nobody counted after the measurement began, where that may be what is missing.
    fn late_ns(&self) -> Option<u64> {
        let (phase, from_ns) = (measured(self.bundle)?, self.bundle.observed.counted_from_ns?);
        let late_ns = from_ns.saturating_sub(phase.start_ns);
        (late_ns as f64 > phase.duration_ns as f64 * LATE_SHARE).then_some(late_ns)
    }

    /// Bytes of this direction that streams asked for through the page cache and past it; `None`
    /// unless there are both.
    fn stream_bytes(&self) -> Option<StreamBytes> {
        let streams = seen::streams(self.bundle);
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

    /// Buffered streams beside direct ones: what no device moved is theirs, however little it is of
    /// all bytes. The operations of a small stream would otherwise hide behind the bytes of a big one.
    fn of_buffered_streams(&self, own: Option<u64>) -> Option<Stands> {
        let streams_bytes = self.stream_bytes()?;
        let reduction = self.bundle.plan.observe.data_reduction.unwrap_or(1.0);
        let least =
            streams_bytes.buffered_bytes as f64 * SHARE_MIN / reduction.clamp(1.0, REDUCTION_MAX);
        let moved = match (own.filter(|_| self.counts_own()), self.top()) {
            (Some(own), top) => top.map_or(own, |top| top.min(own)),
            (None, top) => top?,
        };
        let direct =
            (streams_bytes.direct_bytes as f64 / reduction.clamp(1.0, REDUCTION_MAX)) as u64;
        let of_buffered = moved.saturating_sub(direct);
        if of_buffered as f64 >= least {
            return None;
        }
        let slack = (self.asked as f64 * TIMING_SLACK) as u64;
        let says = format!(
            "of {} {} by buffered streams, at most {} reached a device: the page cache took the rest",
            self.size(streams_bytes.buffered_bytes),
            self.verb(),
            self.size(of_buffered + slack)
        );
        let is_sure = ((of_buffered + slack) as f64) < least;
        Some(if is_sure { Stands::Short(says) } else { Stands::Open(says) })
    }

    fn at_the_top(&self) -> Stands {
        let asked = self.size(self.asked);
        let own = self.own();
        if let Some(short) = self.by_the_wire() {
            return short;
        }
        if let Some(said) = self.said().filter(|said| *said < self.least) {
            let says = format!(
                "of {asked} {}, the device moved {} by the result's own account",
                self.verb(),
                self.size(said)
            );
            return Stands::Short(says);
        }
        if let Some(top) = self.top().filter(|top| *top < self.least) {
            let says = format!("of {asked} {}, the device moved {}", self.verb(), self.size(top));
            return Stands::Short(says);
        }
        if self.counts_own()
            && let Some(own) = own
        {
            if own >= self.least {
                return self.of_buffered_streams(Some(own)).unwrap_or(Stands::Moved);
            }
            if !self.dirty_is_known() && self.own_at_most() >= Some(self.least) {
                return Stands::Open(format!(
                    "of {asked} {}, it is not known how much is still dirty in the page cache",
                    self.verb()
                ));
            }
            // Of files that are written directly, what the cache holds need not be dirty, and what is
            // dirty on this host may be another's: that accuses nobody.
            let direct = seen::buffered_paths(self.bundle).is_empty();
            if !self.is_read && direct && self.own_at_most() >= Some(self.least) {
                return self.by_the_others();
            }
            // A journal takes each write that is flushed, and its pages stay dirty meanwhile.
            if self.is_read || !(self.journals_data() && flushes(self.bundle)) {
                return Stands::Short(self.says_own(own));
            }
        }
        self.by_the_others()
    }

    fn says_own(&self, own: u64) -> String {
        let (asked, moved) = (self.size(self.asked), self.size(own));
        let direct = seen::buffered_paths(self.bundle).is_empty();
        let why = match (direct, self.is_read) {
            (true, _) => "I/O was direct, and yet the page cache answered the rest",
            (false, true) => "the page cache answered the rest",
            (false, false) => "the rest was left in the page cache, or written over there",
        };
        let cause = if self.is_read { "read from" } else { "brought to" };
        format!("of {asked} {}, this process had {moved} {cause} a device: {why}", self.verb())
    }

    /// Where the process's own counters do not tell: the device's, less what others may have moved.
    fn by_the_others(&self) -> Stands {
        let Some(top) = self.top() else {
            let why = seen::storage_unseen(self.bundle).map_or("no device shows", |u| &u.why);
            return Stands::Open(format!(
                "what moved {} is not known: {why}",
                self.size(self.asked)
            ));
        };
        let bundle = self.bundle;
        if bundle.run.tier == Tier::T3 && bundle.run.driver == Driver::Foreign {
            let alone = top as f64 <= self.asked as f64 * ALONE_MAX;
            return if alone { Stands::Moved } else { self.whose(top) };
        }
        match self.others() {
            Some(others) if top.saturating_sub(others) >= self.least => {
                self.of_buffered_streams(None).unwrap_or(Stands::Moved)
            }
            _ => self.whose(top),
        }
    }

    fn whose(&self, moved: u64) -> Stands {
        Stands::Open(format!(
            "of {} {}, it is not known how much the device moved for this process: it moved {}, for \
             others too",
            self.size(self.asked),
            self.verb(),
            self.size(moved)
        ))
    }

    /// What other processes moved, on any device; `None` where not all of them show.
    fn others(&self) -> Option<u64> {
        let others = &self.bundle.observed.neighbours;
        let bytes =
            if self.is_read { others.storage_read_bytes } else { others.storage_written_bytes };
        bytes.filter(|_| others.is_whole())
    }

    /// A network mount's own counters: what went over the wire.
    fn by_the_wire(&self) -> Option<Stands> {
        let mounts = &self.bundle.observed.network_mounts;
        if mounts.is_empty() {
            return None;
        }
        let wire: u64 = mounts
            .iter()
            .map(|m| if self.is_read { m.server_read_bytes } else { m.server_written_bytes })
            .sum();
        let asked = self.size(self.asked);
        Some(if wire < self.least {
            let says = format!(
                "of {asked} {}, {} went over the wire: this host's caches answered the rest",
                self.verb(),
                self.size(wire)
            );
            Stands::Short(says)
        } else {
            Stands::Moved
        })
    }

    /// Whether a file system beneath takes the flag for direct I/O and buffers all the same.
    fn journals_data(&self) -> bool {
        let mounts = &self.bundle.environment.mounts;
        let systems = &self.bundle.observed.file_systems;
        systems.iter().any(|system| system.direct_align_bytes == Some(0))
            || mounts.iter().any(|mount| {
                let options = mount.options.as_deref().unwrap_or_default();
                options.split(',').any(|option| option == "data=journal")
            })
    }

    fn described(&self, name: &str) -> Option<&Device> {
        self.bundle.environment.devices.iter().find(|device| device.name == name)
    }
}

/// Whether every writer makes its writes durable within the measurement.
fn flushes(bundle: &Bundle) -> bool {
    match &bundle.plan.workload {
        Workload::Mailbox(_) => true,
        Workload::Matrix(matrix) => {
            let mut writers = matrix.streams.iter().filter(|s| s.read_percent < 100.0);
            writers.all(|stream| stream.sync.kind != SyncKind::None)
        }
    }
}
