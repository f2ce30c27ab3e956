//! Handles lost drives of a group, and their rebuild (resilvering).
//!
//! - With `failed_drives`, the first drives of the first group are lost from the start of the run.
//! - Until the loss of a drive is noticed, commands for the drive wait. Then other drives of the
//!   group serve the reads: another drive of the mirror, or as many other columns as are needed to
//!   compute the missing data. Writes skip the drive.
//! - When the loss is noticed, a spare replaces the drive. If there is no spare, the undo action of
//!   the event provides an empty drive. The new drive receives new writes, and its data is rebuilt
//!   from the other drives in parts of `rebuild_bytes`, `rebuild_active` parts at a time. It serves
//!   no reads until the rebuild has ended.
//! - A group that has lost more drives than its parity allows refuses all requests.
//!
//! The rebuild restores the data that was placed before the run, in the order of disk addresses.
//! This data is spread evenly over the drives.

use std::collections::BTreeMap;

use super::{Layout, Raid};
use crate::blocks::Context;
use crate::blocks::losses::{Change, Component, Loss};
use crate::blocks::request::{Action, Request, scatter};
use crate::spec::{ModelError, Reader};

/// File number that the I/Os of a rebuild use.
const REBUILD_FILE: u32 = (1 << 24) - 1;
/// Bit in the value of a notice. If the bit is set, the rebuild of a drive starts; otherwise, the
/// rebuild of a part has ended.
const START: u64 = 1;

/// State of a drive that was lost, or is being rebuilt.
#[derive(Clone, Copy, Debug)]
enum Drive {
    Lost(Loss),
    /// The drive is new and empty. The fields are the numbers of parts to rebuild, of parts
    /// started, and of parts in progress.
    New {
        parts: u64,
        started: u64,
        active: u32,
    },
}

/// State of the drive that a column is stored on.
#[derive(Clone, Copy, Debug)]
enum Column {
    Whole,
    /// The drive is lost, but the system has not noticed the loss.
    Unnoticed(Loss),
    Lost,
    New,
}

/// State of the lost drives of a pool, and of the rebuilds of these drives.
#[derive(Clone)]
pub(super) struct Repair {
    spares: u64,
    rebuild_active: u32,
    rebuild_bytes: u64,
    /// Number of bytes that were placed on the pool before the run.
    stored_bytes: f64,
    drives: BTreeMap<u32, Drive>,
    rebuilt_bytes: u64,
}

impl Repair {
    /// Reads the parameters. The first `failed` drives have failed before the run, and are not
    /// replaced.
    pub(super) fn read(reader: &Reader<'_>, failed: u32) -> Result<Self, ModelError> {
        let lost = |device| (device, Drive::Lost(Loss { noticed_ns: 0 }));
        Ok(Self {
            spares: reader.count_or("spares", 0, 0, 1000)?,
            rebuild_active: reader.count_or("rebuild_active", 3, 1, 10_000)? as u32,
            rebuild_bytes: reader.count_or("rebuild_bytes", 1 << 20, 4096, 1 << 30)?,
            stored_bytes: 0.0,
            drives: (0..failed).map(lost).collect(),
            rebuilt_bytes: 0,
        })
    }

    /// Returns true if no drive was lost, or all lost drives have been rebuilt.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.drives.is_empty()
    }

    pub(super) fn lay(&mut self, request: &Request) {
        self.stored_bytes += request.size_bytes as f64 * request.stored_share;
    }

    pub(super) fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        if !self.is_whole() || self.rebuilt_bytes > 0 {
            each("lost_drives", self.drives.len() as f64);
            each("rebuilt_bytes", self.rebuilt_bytes as f64);
        }
    }
}

impl Raid {
    fn column(&self, device: u32, cx: &Context<'_>) -> Column {
        match self.repair.drives.get(&device) {
            None => Column::Whole,
            Some(Drive::New { .. }) => Column::New,
            Some(Drive::Lost(loss)) if cx.is_noticed(*loss) => Column::Lost,
            Some(Drive::Lost(loss)) => Column::Unnoticed(*loss),
        }
    }

    fn is_readable(&self, group: u64, column: u64) -> bool {
        let device = (group * self.width + column % self.width) as u32;
        !self.repair.drives.contains_key(&device)
    }

    /// Returns the share of the drives that cannot be read.
    pub(super) fn lost_share(&self) -> f64 {
        self.repair.drives.len() as f64 / (self.groups * self.width) as f64
    }

    /// Reads what a write of parts of stripes needs to compute the new parity, in a pool with lost
    /// drives.
    ///
    /// A small write usually reads the old data and the old parity. If one of the two is lost, the
    /// write reads the other data columns of the stripe instead (a reconstruct-write, as in Linux
    /// `drivers/md/raid5.c`, `handle_stripe_dirtying`). If all parity of the stripe is lost, it reads
    /// nothing.
    pub(super) fn read_for_degraded_write(
        &self,
        request: &Request,
        chunks: std::ops::Range<u64>,
        cx: &mut Context<'_>,
    ) {
        let data = self.width - self.parity;
        let read = Request { action: Action::Read, ..*request };
        let bytes = request.size_bytes.min(self.chunk_bytes);
        cx.program.fork();
        for stripe in chunks.start / data..chunks.end.div_ceil(data) {
            let hash = scatter(request.key(stripe));
            let (group, first) = (hash % self.groups, (hash >> 32) % self.width);
            let device = |column: u64| (group * self.width + (first + column) % self.width) as u32;
            let is_readable = |column: &u64| self.is_readable(group, first + column);
            let is_written = |column: &u64| {
                let chunk = stripe * data + column;
                *column < data && chunks.contains(&chunk)
            };
            let has_place =
                |column: &u64| !matches!(self.column(device(*column), cx), Column::Lost);
            let parity: Vec<u64> = (data..self.width).filter(has_place).collect();
            if self.is_lost(group) || parity.is_empty() {
                continue;
            }
            let old: Vec<u64> = (0..data).filter(is_written).chain(parity).collect();
            let others: Vec<u64> = (0..data).filter(|column| !is_written(column)).collect();
            let columns = if old.iter().all(is_readable) {
                old
            } else if others.iter().all(is_readable) {
                others
            } else {
                (0..self.width).filter(is_readable).take(data as usize).collect()
            };
            columns.into_iter().for_each(|column| self.issue(&read, device(column), bytes, cx));
        }
        cx.program.join(usize::MAX);
    }

    /// Returns true if a group has lost more drives than its parity allows.
    pub(super) fn is_lost(&self, group: u64) -> bool {
        let readable = (0..self.width).filter(|column| self.is_readable(group, *column));
        !self.repair.is_whole() && (readable.count() as u64) < self.width - self.parity
    }

    /// Returns the parity columns that are read in place of the unreadable data columns of a
    /// record.
    pub(super) fn replacing(&self, group: u64, first: u64, columns: u64) -> Vec<u64> {
        if self.repair.is_whole() {
            return Vec::new();
        }
        let data = (0..columns).map(|column| first + self.parity + column);
        let missing = data.filter(|column| !self.is_readable(group, *column)).count();
        let parity = (0..self.parity).map(|column| first + column);
        parity.filter(|column| self.is_readable(group, *column)).take(missing).collect()
    }

    /// Issues a command in a pool with lost drives.
    pub(super) fn command_around(
        &self,
        request: &Request,
        (group, column): (u64, u64),
        bytes: u64,
        cx: &mut Context<'_>,
    ) {
        let device = (group * self.width + column % self.width) as u32;
        let is_read = request.action == Action::Read;
        match self.column(device, cx) {
            Column::Whole => self.issue(request, device, bytes, cx),
            Column::New if !is_read => self.issue(request, device, bytes, cx),
            Column::Lost if !is_read => {}
            state => {
                cx.program.branch();
                if let Column::Unnoticed(loss) = state {
                    cx.wait_for_notice(loss);
                }
                if is_read && self.layout != Layout::Raidz {
                    cx.program.fork();
                    // The reads of a lost drive are spread over the other drives.
                    let key = request.key(request.offset_bytes / self.chunk_bytes.max(1));
                    let (turn, count) =
                        (scatter(key ^ (cx.sim.now_ns() << 1)) >> 1, self.width - 1);
                    let others = (0..count).map(|other| column + 1 + (turn + other) % count);
                    let readable = others.filter(|other| self.is_readable(group, *other));
                    for other in readable.take((self.width - self.parity) as usize) {
                        let device = (group * self.width + other % self.width) as u32;
                        self.issue(request, device, bytes, cx);
                    }
                    cx.program.join(usize::MAX);
                }
                cx.program.end_branch();
            }
        }
    }

    /// Handles the loss or the replacement of a drive.
    pub(super) fn drive_changed(&mut self, change: Change, cx: &mut Context<'_>) {
        let of_pool = |component| match component {
            Component::Device(block, node, device) => {
                (block == self.below.0 && node == self.node).then_some(device)
            }
            Component::Node(_) => None,
        };
        match change {
            Change::Lost(component) => {
                let Some(device) = of_pool(component) else { return };
                let Some(loss) = cx.device_loss(self.below, self.node, device) else { return };
                self.repair.drives.insert(device, Drive::Lost(loss));
                if self.repair.spares > 0 && self.parity > 0 {
                    self.repair.spares -= 1;
                    let wait_ns = loss.noticed_ns.saturating_sub(cx.sim.now_ns());
                    let notice = self.notice_of(device, START);
                    cx.launch(|cx| {
                        cx.delay(wait_ns);
                        cx.program.notice(notice.0, notice.1);
                    });
                }
            }
            Change::Back(component) => {
                let Some(device) = of_pool(component) else { return };
                match self.repair.drives.get(&device) {
                    Some(Drive::Lost(_)) if self.parity == 0 => {
                        self.repair.drives.remove(&device);
                    }
                    Some(Drive::Lost(_)) => self.start_rebuild(device, cx),
                    // A spare has already replaced the drive, so the drive becomes a spare when it
                    // returns.
                    _ => self.repair.spares += 1,
                }
            }
        }
    }

    /// Returns the block and the value of a notice that concerns a drive.
    fn notice_of(&self, device: u32, bit: u64) -> (u32, u64) {
        (self.own, (u64::from(device) << 1 | bit) << 16 | u64::from(self.node))
    }

    pub(super) fn repair_noticed(&mut self, value: u64, cx: &mut Context<'_>) {
        let device = (value >> 1) as u32;
        if value & START != 0 {
            if let Some(Drive::Lost(_)) = self.repair.drives.get(&device) {
                cx.replace_device(self.below, self.node, device);
                self.start_rebuild(device, cx);
            }
            return;
        }
        self.repair.rebuilt_bytes += self.repair.rebuild_bytes;
        if let Some(Drive::New { parts, started, active }) = self.repair.drives.get_mut(&device) {
            *active -= 1;
            if *active == 0 && started >= parts {
                self.repair.drives.remove(&device);
                return;
            }
        }
        self.rebuild(device, cx);
    }

    fn start_rebuild(&mut self, device: u32, cx: &mut Context<'_>) {
        let data = (self.width - self.parity) * self.groups;
        let bytes = self.repair.stored_bytes / data as f64;
        let parts = libm::ceil(bytes / self.repair.rebuild_bytes as f64) as u64;
        let new = Drive::New { parts: parts.max(1), started: 0, active: 0 };
        self.repair.drives.insert(device, new);
        self.rebuild(device, cx);
    }

    /// Starts the rebuild of further parts of a drive.
    fn rebuild(&mut self, device: u32, cx: &mut Context<'_>) {
        let group = u64::from(device) / self.width;
        let bytes = self.repair.rebuild_bytes;
        loop {
            let needed = self.width - self.parity;
            let columns = (0..self.width).map(|column| u64::from(device) + 1 + column);
            let sources = columns.filter(|column| self.is_readable(group, *column));
            let sources: Vec<u64> = sources.take(needed as usize).collect();
            let active_max = self.repair.rebuild_active;
            let Some(Drive::New { parts, started, active }) = self.repair.drives.get_mut(&device)
            else {
                return;
            };
            if *active >= active_max || started >= parts || (sources.len() as u64) < needed {
                return;
            }
            let offset = *started * bytes;
            (*started, *active) = (*started + 1, *active + 1);
            let mut read = Request::new(Action::Read, REBUILD_FILE, offset, bytes);
            (read.node, read.background, read.sequential) = (self.node, true, true);
            let (block, notice) = self.notice_of(device, 0);
            cx.launch(|cx| {
                cx.program.fork();
                for column in sources {
                    let source = (group * self.width + column % self.width) as u32;
                    self.issue(&read, source, bytes, cx);
                }
                cx.program.join(usize::MAX);
                cx.route(self.below, &Request { action: Action::Write, device, ..read });
                cx.program.notice(block, notice);
            });
        }
    }
}
