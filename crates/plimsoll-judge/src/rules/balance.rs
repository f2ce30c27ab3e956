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
//! - further down by what came in from beside (other partitions and volumes), and, under a loop device, by
//!   the counters of the kernel's own threads, which do its work, and of other processes.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Mount};
use plimsoll_evidence::observed::{BackingFile, DeviceTotals, Moved};
use plimsoll_evidence::run::{Driver, Tier};
use plimsoll_plan::{SyncKind, Workload};

use super::seen;
use crate::place;

/// Devices that moved less than this share of what was asked left the rest to something else: measured
/// 0.001 from a warm page cache, 0.87 from a cold one, 1.00 with direct I/O.
pub const SHARE_MIN: f64 = 0.8;
/// A result file alone does not tell whose a device's bytes were: within this share above what was asked
/// they are taken for the job's.
const ALONE_MAX: f64 = 1.25;
/// Reductions beyond this are not believed, declared or not: what makers of arrays guarantee for mixed data is
/// 3:1 to 5:1.
pub const REDUCTION_MAX: f64 = 5.0;
/// Counters of layers are read one after the other: so much of a busy device's bytes may fall between.
const SKEW: f64 = 0.01;
/// Less than this says nothing against a target: its metadata is of this size.
const ASKED_MIN: u64 = 1 << 20;
/// A backing file that the page cache holds less of than this was read and written past it.
const RESIDENT_MAX: f64 = 0.05;

/// File systems on block devices that hand I/O on in the process that asks for it.
const ON_DEVICES: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "jfs", "overlay"];

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
    let (own, top) = (scale.own(), scale.top());
    let word = if is_read { "read" } else { "written" };
    Some(Side { word, asked: scale.asked, own, top, stands: scale.weigh() })
}

/// Share of the reads that no device moved for this process; `None` where that cannot be told.
pub(crate) fn read_from_cache(bundle: &Bundle) -> Option<f64> {
    let scale = Scale::of(bundle, true)?;
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
    (scale.counts_own() && scale.asked >= ASKED_MIN).then_some(scale.least)
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

    fn pick(&self, moved: Moved) -> u64 {
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
        let said = &self.bundle.observed.said_devices;
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
            Some(stands) => stands,
            None => Stands::Moved,
        }
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
                return Stands::Moved;
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
            Some(others) if top.saturating_sub(others) >= self.least => Stands::Moved,
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

    /// What answers where that is no device: servers of this host must have moved the bytes themselves.
    fn server(&self) -> Option<Stands> {
        let servers = &self.bundle.observed.servers;
        if servers.is_empty() {
            return seen::is_remote_target(self.bundle).then_some(Stands::Moved);
        }
        let asked = self.size(self.asked);
        if let Some(server) = servers.iter().find(|server| server.local.is_none()) {
            let says = format!("whether {} is on this very host cannot be seen", server.serves);
            return Some(Stands::Open(says));
        }
        if servers.iter().any(|server| server.local == Some(false) || server.relays) {
            // What other hosts do does not show here.
            return Some(self.by_the_wire().unwrap_or(Stands::Moved));
        }
        let names: Vec<&str> =
            servers.iter().flat_map(|s| &s.processes).map(String::as_str).collect();
        let serves: Vec<&str> = servers.iter().map(|server| server.serves.as_str()).collect();
        let all: Option<Vec<Moved>> = servers.iter().map(|server| server.moved).collect();
        let disks = self.all_disks();
        let known = all.map(|all| self.pick(all.into_iter().fold(Moved::default(), Moved::plus)));
        let (moved, who) = match (known, disks) {
            // A server's writes are counted when they are dirty: its disks must have taken them.
            (Some(own), Some(disks)) => (own.min(disks), names.join(", ")),
            (None, Some(disks)) if disks < self.least => {
                (disks, "all disks of this host".to_owned())
            }
            _ => {
                let says = format!(
                    "{} is served on this very host, and what its server moved cannot be seen",
                    serves.join(", ")
                );
                return Some(Stands::Open(says));
            }
        };
        let beside = servers.iter().filter_map(|server| server.beside);
        let beside = self.pick(beside.fold(Moved::default(), Moved::plus));
        if moved < self.least && beside.min(disks.unwrap_or(0)).saturating_add(moved) >= self.least
        {
            return Some(Stands::Open(format!(
                "{} moved {} to or from storage, and what it is connected to through local sockets {}: whether it \
                 passed on what it was asked is not known",
                names.join(", "),
                self.size(moved),
                self.size(beside)
            )));
        }
        if moved >= self.least
            && let Some(server) = servers.iter().find(|server| server.others > 0)
        {
            return Some(Stands::Open(format!(
                "{} moved {} to or from storage, and others were connected to it too ({}): whose it was is not \
                 known",
                names.join(", "),
                self.size(moved),
                server.others
            )));
        }
        Some(if moved >= self.least {
            Stands::Moved
        } else {
            Stands::Short(format!(
                "of {asked} {} of {}, which is served on this very host, {who} moved {} to or from \
                 storage: the rest was memory's",
                self.verb(),
                serves.join(", "),
                self.size(moved)
            ))
        })
    }

    /// What all of this host's disks moved.
    fn all_disks(&self) -> Option<u64> {
        let elsewhere = self.bundle.observed.elsewhere?;
        // What a network's disk moved went over the network, whoever answered.
        let near = |d: &Device| place::of(d, &self.bundle.environment) != place::Place::Network;
        let bottom = self.bundle.observed.devices.iter().filter(|device| {
            let is_disk = |d: &Device| d.below.is_empty() && d.kind == "disk" && near(d);
            self.described(&device.name).is_some_and(is_disk)
        });
        Some(self.pick(elsewhere.disks) + bottom.map(|device| self.totals(device)).sum::<u64>())
    }

    fn described(&self, name: &str) -> Option<&Device> {
        self.bundle.environment.devices.iter().find(|device| device.name == name)
    }

    fn counted(&self, name: &str) -> Option<&DeviceTotals> {
        self.bundle.observed.devices.iter().find(|device| device.name == name)
    }

    /// Each layer against the one below it.
    fn further_down(&self) -> Vec<Stands> {
        let devices = self.bundle.environment.devices.iter();
        let resting = devices.filter(|device| !device.below.is_empty());
        resting.filter_map(|device| self.layer(device)).collect()
    }

    fn layer(&self, device: &Device) -> Option<Stands> {
        let upper = self.totals(self.counted(&device.name)?);
        // A device that carried little of it has little to answer for.
        if upper < self.asked - self.asked.min(self.least) {
            return None;
        }
        let backing = self.bundle.observed.backing_files.iter().find(|b| b.device == device.name);
        let is_file = device.kind == "loop";
        let below: Vec<&DeviceTotals> = if is_file {
            self.under_file(device).iter().filter_map(|name| self.counted(name)).collect()
        } else {
            device.below.iter().filter_map(|name| self.counted(name)).collect()
        };
        if below.is_empty() {
            // An old bundle may name layers that it did not count.
            let unseen = is_file && backing.is_some();
            return unseen.then(|| {
                let says = format!("what {}'s file rests on cannot be seen", device.name);
                Stands::Open(says)
            });
        }
        let copies = if self.is_read { 1 } else { copies(device) };
        let beside = |d: &&DeviceTotals| d.beside.map_or(0, |moved| self.pick(moved));
        let lower: u64 = below
            .iter()
            .map(
                |d| if is_file { self.totals(d) } else { self.totals(d).saturating_sub(beside(d)) },
            )
            .sum::<u64>()
            / copies;
        let names: Vec<&str> = below.iter().map(|device| device.name.as_str()).collect();
        let step = Step { device, backing, upper, lower, names: names.join(", ") };
        Some(if is_file { self.through_a_file(&step) } else { self.through_a_mapping(&step) })
    }

    /// The devices that hold a loop device's file.
    fn under_file(&self, device: &Device) -> Vec<String> {
        let below = &self.bundle.environment.below;
        let of_file = below.iter().find(|mount| device.below.contains(&mount.path));
        let of_backing = || {
            let backing = &self.bundle.observed.backing_files;
            let file = backing.iter().find(|file| file.device == device.name)?;
            below.iter().find(|mount| mount.path == file.path)
        };
        of_file.or_else(of_backing).map_or_else(
            // A bundle from before this was looked at: the disks.
            || {
                let disks = place::disks(self.bundle);
                disks.into_iter().map(|(disk, _)| disk.name.clone()).collect()
            },
            |mount| mount.on.clone(),
        )
    }

    /// What may be missing between two layers.
    fn slack(&self, upper: u64) -> u64 {
        (self.asked - self.asked.min(self.least)) + (upper as f64 * SKEW) as u64
    }

    fn through_a_mapping(&self, step: &Step<'_>) -> Stands {
        let missing = step.upper.saturating_sub(step.lower);
        if missing <= self.slack(step.upper) {
            return Stands::Moved;
        }
        // What others asked of the upper device may be what is missing below it.
        let others = self.own().filter(|_| self.counts_own());
        let others = others.map_or(step.upper, |own| step.upper.saturating_sub(own));
        if missing > self.slack(step.upper) + others {
            return Stands::Short(step.says(self));
        }
        Stands::Open(format!("{}; whose it was is not known", step.says(self)))
    }

    fn through_a_file(&self, step: &Step<'_>) -> Stands {
        if step.lower < self.least {
            return Stands::Short(step.says(self));
        }
        // The kernel's own threads do the work of loop devices: what they did not move, it did not.
        let kernel = self.bundle.observed.kernel.map(|moved| self.pick(moved));
        let kernel = kernel.map(|moved| moved.saturating_sub(step.dirtied(self.is_read)));
        if let Some(kernel) = kernel.filter(|kernel| *kernel < self.least) {
            let says = format!(
                "of {} asked of {}, the kernel moved {} between its file and {}, and others the rest: \
                 the page cache under it answered",
                self.size(step.upper),
                step.device.name,
                self.size(kernel),
                step.names
            );
            return Stands::Short(says);
        }
        let beside = kernel.map_or(0, |kernel| kernel.saturating_sub(step.upper));
        let others = self.others().map(|others| others.saturating_add(beside));
        let surely = others.map(|others| step.lower.saturating_sub(others));
        let missing = surely.map(|surely| step.upper.saturating_sub(surely));
        if missing.is_some_and(|missing| missing <= self.slack(step.upper)) || step.is_past_cache()
        {
            return Stands::Moved;
        }
        Stands::Open(format!(
            "of {} asked of {}, it is not known how much {} moved for it: it moved {}, for others too",
            self.size(step.upper),
            step.device.name,
            step.names,
            self.size(step.lower)
        ))
    }
}

/// A layer and the one below.
struct Step<'a> {
    device: &'a Device,
    backing: Option<&'a BackingFile>,
    upper: u64,
    lower: u64,
    names: String,
}

impl Step<'_> {
    fn says(&self, scale: &Scale<'_>) -> String {
        format!(
            "of {} {} through {}, {} moved {}: a layer between them answered the rest",
            scale.size(self.upper),
            scale.verb(),
            self.device.name,
            self.names,
            scale.size(self.lower)
        )
    }

    /// What was written into the page cache under a loop device and is there still.
    fn dirtied(&self, is_read: bool) -> u64 {
        let Some(backing) = self.backing.filter(|_| !is_read) else { return 0 };
        let after = backing.dirty_bytes_after.unwrap_or(0);
        after.saturating_sub(backing.dirty_bytes_before.unwrap_or(0))
    }

    /// Whether the loop device goes past the page cache, as its flag and the cache both say.
    fn is_past_cache(&self) -> bool {
        let Some(backing) = self.backing else { return false };
        let resident = backing.resident_bytes_before.max(backing.resident_bytes_after);
        let share = resident.zip(backing.size_bytes);
        self.device.direct_io == Some(true)
            && backing.direct_align_bytes != Some(0)
            && share.is_some_and(|(held, size)| held as f64 <= size as f64 * RESIDENT_MAX)
    }
}

/// Copies that a mapping writes of each byte, where it says so.
fn copies(device: &Device) -> u64 {
    match device.mapping.as_deref() {
        Some("raid1") => device.below.len().max(1) as u64,
        Some("raid10") => 2,
        _ => 1,
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
