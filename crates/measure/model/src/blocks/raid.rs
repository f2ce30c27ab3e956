//! Redundancy inside one machine: mirrors, parity groups and plain striping over drives.
//!
//! - `mirror`: a write goes to every drive of a group, a read goes to one drive.
//! - `parity` (RAID-5/6): data is stored in chunks with rotating parity. Reading a chunk takes one
//!   command on one drive. Writing whole stripes takes one command on each drive. A smaller write
//!   reads and rewrites each of its chunks and the parity chunks of the stripe (D. A. Patterson, G.
//!   Gibson and R. H. Katz, "A case for redundant arrays of inexpensive disks", SIGMOD 1988).
//! - `raidz`: every record is a stripe over the data columns of one group. Reading any part of a
//!   record takes one command on each data column, and a write never needs to read first (J.
//!   Bonwick, "RAID-Z", 2005; columns and padding as in OpenZFS `vdev_raidz.c`: sectors of
//!   `sector_bytes`, allocations rounded up to a multiple of parity + 1).
//! - `stripe`: the data is striped without redundancy.
//!
//! For reads, a hash determines the group of an address. Copy-on-write systems choose a group for
//! each write: a random group, the next group in turn, or the group with the least queued work
//! (like the allocation throttle of OpenZFS). The events of a plan can remove drives; [`repair`]
//! describes how the group then serves requests and rebuilds the data.

mod repair;

use self::repair::Repair;
use super::context::{Block, BlockRef, Blocks, Builder, Context};
use super::losses::Change;
use super::request::{Action, Request, scatter};
use crate::core::rng::Stream;
use crate::core::{Order, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Mirror,
    Parity,
    Raidz,
    Stripe,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Fixed,
    Random,
    Rotate,
}

#[derive(Clone)]
struct Raid {
    below: BlockRef,
    cpu: Option<BlockRef>,
    layout: Layout,
    groups: u64,
    width: u64,
    parity: u64,
    chunk_bytes: u64,
    sector_bytes: u64,
    choice: Choice,
    rotor: u64,
    op_ns: f64,
    column_ns: f64,
    read_ns_per_byte: f64,
    write_ns_per_byte: f64,
    parity_ns_per_byte: f64,
    whole_group: bool,
    read_queues: Vec<StationId>,
    write_queues: Vec<StationId>,
    repair: Repair,
    own: u32,
    node: u16,
    stream: Stream,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the drives")?;
    let cpu = reader.block_or_none("cpu")?;
    let layouts = [
        ("mirror", Layout::Mirror),
        ("parity", Layout::Parity),
        ("raidz", Layout::Raidz),
        ("stripe", Layout::Stripe),
    ];
    let layout = reader.word("layout", &layouts)?;
    let width = reader.count("width", 1, 1000, "the number of drives in a group")?;
    let parity = match layout {
        Layout::Mirror => width - 1,
        Layout::Stripe => 0,
        _ => reader.count("parity", 0, 8, "the number of drives of a group that may fail")?,
    };
    if parity >= width {
        return Err(reader.bad("parity", &format!("must be less than the width, {width}")));
    }
    let failed = reader.count_or("failed_drives", 0, 0, parity)?;
    let groups = reader.count("groups", 1, 100_000, "the number of groups")?;
    let drives = reader.devices(below)?;
    if drives.is_some_and(|drives| drives < groups * width) {
        let reason = format!(
            "needs {groups} x {width} = {} drives, but `{below}.count` is {}",
            groups * width,
            drives.unwrap_or(0)
        );
        return Err(reader.bad("groups", &reason));
    }
    let mut queues = |field: &str, part: &str, random: bool| -> Result<_, ModelError> {
        let tokens = reader.count_or(field, 0, 0, 100_000)?;
        let queue = |g| builder.station(&format!("{part}{g}"), 1, Order::Gate { tokens, random });
        Ok((0..if tokens > 0 { groups } else { 0 }).map(queue).collect::<Vec<StationId>>())
    };
    let read_queues = queues("read_active", "reads", false)?;
    let write_queues = queues("write_active", "writes", true)?;
    let choices =
        [("fixed", Choice::Fixed), ("random", Choice::Random), ("rotate", Choice::Rotate)];
    Ok(Box::new(Raid {
        below: builder.find(below),
        cpu: builder.find_or_none(cpu),
        layout,
        groups,
        read_queues,
        write_queues,
        width,
        parity,
        chunk_bytes: reader.count_or("chunk_bytes", 65_536, 512, 1 << 30)?,
        sector_bytes: reader.count_or("sector_bytes", 4096, 512, 65_536)?,
        choice: reader.word("placement", &choices)?,
        rotor: 0,
        op_ns: 1e3 * reader.number_or("op_us", 0.0, 0.0, 1e6)?,
        column_ns: 1e3 * reader.number_or("column_us", 0.0, 0.0, 1e6)?,
        read_ns_per_byte: reader.number_or("read_ns_per_byte", 0.0, 0.0, 1e3)?,
        write_ns_per_byte: reader.number_or("write_ns_per_byte", 0.0, 0.0, 1e3)?,
        parity_ns_per_byte: reader.number_or("parity_ns_per_byte", 0.0, 0.0, 1e3)?,
        whole_group: reader.flag_or("whole_group_reads", false)?,
        repair: Repair::read(reader, failed as u32)?,
        own: builder.block,
        node: builder.node,
        stream: builder.stream(),
    }))
}

impl Raid {
    /// Returns the group of a unit, and the first column of its stripe.
    fn place(&mut self, request: &Request, unit_bytes: u64) -> (u64, u64) {
        let hash = scatter(request.key(request.offset_bytes / unit_bytes));
        let group = match (request.action, self.choice) {
            (Action::Write, Choice::Random) => self.stream.below(self.groups),
            (Action::Write, Choice::Rotate) => {
                self.rotor += 1;
                self.rotor % self.groups
            }
            _ => hash % self.groups,
        };
        (group, (hash >> 32) % self.width)
    }

    /// Issues one command on one drive of a group. The number of the drive is `column` modulo the
    /// width of the group.
    fn command(
        &self,
        request: &Request,
        group: u64,
        column: u64,
        bytes: u64,
        cx: &mut Context<'_>,
    ) {
        if !self.repair.is_whole() {
            return self.command_around(request, (group, column), bytes, cx);
        }
        let device = (group * self.width + column % self.width) as u32;
        self.issue(request, device, bytes, cx);
    }

    fn issue(&self, request: &Request, device: u32, bytes: u64, cx: &mut Context<'_>) {
        cx.program.branch();
        // The metadata of a write is distributed over its commands in proportion to their sizes.
        let extra = request.extra_bytes * bytes / request.size_bytes.max(1);
        let size_bytes = bytes + extra;
        cx.route(self.below, &Request { device, size_bytes, extra_bytes: 0, ..*request });
        cx.program.end_branch();
    }

    /// Returns the queue that limits how many reads or writes are active in a group; `None` if
    /// there is no limit.
    fn queue(&self, request: &Request, group: u64) -> Option<StationId> {
        let queues =
            if request.action == Action::Write { &self.write_queues } else { &self.read_queues };
        queues.get(group as usize).copied()
    }

    /// Starts the commands of one request on one group. The commands first wait in the queue of the
    /// group. The request counts as active until [`Raid::leave`].
    fn enter(&self, request: &Request, group: u64, cx: &mut Context<'_>) {
        cx.program.branch();
        if let Some(queue) = self.queue(request, group) {
            cx.program.take(queue, 1);
        }
        cx.program.fork();
    }

    /// Ends the commands that [`Raid::enter`] started.
    fn leave(&self, request: &Request, group: u64, cx: &mut Context<'_>) {
        cx.program.join(usize::MAX);
        if let Some(queue) = self.queue(request, group) {
            cx.program.give(queue, 1);
        }
        cx.program.end_branch();
    }

    fn work(&self, request: &Request, columns: u64, cx: &mut Context<'_>) {
        let Some(cpu) = self.cpu else { return };
        let bytes = request.size_bytes as f64;
        let mut per_byte = match request.action {
            Action::Write => self.write_ns_per_byte + self.parity as f64 * self.parity_ns_per_byte,
            _ => self.read_ns_per_byte,
        };
        if !self.repair.is_whole() && request.action == Action::Read {
            per_byte += self.parity_ns_per_byte * self.lost_share();
        }
        let fixed = request.share * (self.op_ns + columns as f64 * self.column_ns);
        cx.charge(cpu, request.node, (fixed + bytes * per_byte) as u64, false);
    }

    fn mirror(&mut self, request: &Request, cx: &mut Context<'_>) {
        // A request may touch several units, and each unit may be in another group.
        let units = request.units(self.chunk_bytes);
        cx.program.fork();
        for unit in units.clone() {
            let start = request.offset_bytes.max(unit * self.chunk_bytes);
            let end = (request.offset_bytes + request.size_bytes.max(1))
                .min((unit + 1) * self.chunk_bytes);
            let part = request.part(start, end - start);
            let (group, first) = self.place(&part, self.chunk_bytes);
            if self.is_lost(group) {
                cx.program.branch();
                cx.refuse();
                cx.program.end_branch();
                continue;
            }
            self.enter(&part, group, cx);
            match request.action {
                // One drive stores the unit.
                _ if self.layout == Layout::Stripe => {
                    self.command(&part, group, first, part.size_bytes, cx);
                }
                Action::Write => {
                    for column in 0..self.width {
                        self.command(&part, group, column, part.size_bytes, cx);
                    }
                }
                _ => {
                    let column = (first + self.stream.below(self.width)) % self.width;
                    self.command(&part, group, column, part.size_bytes, cx);
                }
            }
            self.leave(&part, group, cx);
        }
        cx.program.join(usize::MAX);
    }

    fn raidz(&mut self, request: &Request, cx: &mut Context<'_>) {
        let data = self.width - self.parity;
        let units = request.units(self.chunk_bytes);
        cx.program.fork();
        for unit in units {
            let start = request.offset_bytes.max(unit * self.chunk_bytes);
            let end = (request.offset_bytes + request.size_bytes.max(1))
                .min((unit + 1) * self.chunk_bytes);
            let part = request.part(start, end - start);
            let (group, first) = self.place(&part, self.chunk_bytes);
            if self.is_lost(group) {
                cx.program.branch();
                cx.refuse();
                cx.program.end_branch();
                continue;
            }
            // A gathered write is part of a whole record, so it uses all columns of the record.
            let whole = (part.size_bytes as f64 / part.share) as u64;
            let sectors = whole.div_ceil(self.sector_bytes);
            let columns = sectors.min(data);
            self.enter(&part, group, cx);
            let column_sectors = sectors.div_ceil(data) as f64;
            let column_bytes =
                (column_sectors * self.sector_bytes as f64 * part.share + 0.5) as u64;
            match request.action {
                Action::Write => {
                    for column in 0..columns + self.parity {
                        self.command(&part, group, first + column, column_bytes, cx);
                    }
                }
                _ => {
                    // The contents of a lost data column are computed from a parity column, so the
                    // parity column is read instead.
                    let columns = if self.whole_group { self.width } else { columns };
                    let replacing = match self.whole_group {
                        true => Vec::new(),
                        false => self.replacing(group, first, columns),
                    };
                    for column in replacing {
                        self.command(&part, group, column, column_bytes, cx);
                    }
                    for column in 0..columns {
                        self.command(&part, group, first + self.parity + column, column_bytes, cx);
                    }
                }
            }
            self.leave(&part, group, cx);
        }
        cx.program.join(usize::MAX);
    }

    fn parity(&mut self, request: &Request, cx: &mut Context<'_>) {
        let data = self.width - self.parity;
        let stripe_bytes = data * self.chunk_bytes;
        let chunks = request.units(self.chunk_bytes);
        let write = request.action == Action::Write;
        let full = write
            && request.offset_bytes.is_multiple_of(stripe_bytes)
            && request.size_bytes.is_multiple_of(stripe_bytes);
        if write && !full && !self.repair.is_whole() {
            self.read_for_degraded_write(request, chunks.clone(), cx);
        } else if write && !full {
            // Old data and old parity are read before the new data and parity are written.
            let read = Request { action: Action::Read, ..*request };
            self.parity_commands(&read, chunks.clone(), self.parity, cx);
        }
        let parity = if write { self.parity } else { 0 };
        self.parity_commands(request, chunks, parity, cx);
    }

    /// Issues one command for each chunk, and `parity` commands for each stripe that contains
    /// chunks of the request.
    fn parity_commands(
        &mut self,
        request: &Request,
        chunks: std::ops::Range<u64>,
        parity: u64,
        cx: &mut Context<'_>,
    ) {
        let data = self.width - self.parity;
        cx.program.fork();
        let mut last_stripe = u64::MAX;
        for chunk in chunks {
            let start = request.offset_bytes.max(chunk * self.chunk_bytes);
            let end =
                (request.offset_bytes + request.size_bytes).min((chunk + 1) * self.chunk_bytes);
            let stripe = chunk / data;
            let hash = scatter(request.key(stripe));
            let (group, first) = (hash % self.groups, (hash >> 32) % self.width);
            if self.is_lost(group) {
                cx.program.branch();
                cx.refuse();
                cx.program.end_branch();
                continue;
            }
            self.command(request, group, first + chunk % data, end - start, cx);
            if stripe != last_stripe {
                last_stripe = stripe;
                let bytes = request.size_bytes.min(self.chunk_bytes);
                for p in 0..parity {
                    self.command(request, group, first + data + p, bytes, cx);
                }
            }
        }
        cx.program.join(usize::MAX);
    }
}

impl Block for Raid {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        match request.action {
            Action::Meta => return,
            Action::Flush => {
                cx.program.fork();
                for group in 0..self.groups {
                    (0..self.width).for_each(|column| self.command(request, group, column, 0, cx));
                }
                cx.program.join(usize::MAX);
                return;
            }
            Action::Read | Action::Write => {}
        }
        let data = self.width - self.parity;
        let columns = match (self.layout, request.action) {
            (Layout::Raidz, Action::Write) => self.width,
            (Layout::Raidz, _) => data,
            (Layout::Mirror, Action::Write) => self.width,
            _ => 1,
        };
        let records = request.units(self.chunk_bytes);
        let commands = columns * (records.end - records.start);
        self.work(request, commands, cx);
        match self.layout {
            Layout::Mirror | Layout::Stripe => self.mirror(request, cx),
            Layout::Raidz => self.raidz(request, cx),
            Layout::Parity => self.parity(request, cx),
        }
    }

    fn changed(&mut self, change: Change, cx: &mut Context<'_>) {
        self.drive_changed(change, cx);
    }

    fn notice(&mut self, value: u64, cx: &mut Context<'_>) {
        self.repair_noticed(value, cx);
    }

    fn lay(&mut self, request: &Request, _cx: &mut Context<'_>) {
        self.repair.lay(request);
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        let data = (self.width - self.parity) as f64 / self.width as f64;
        Some(blocks.capacity_bytes(self.below, node)? * data)
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        self.repair.readings(each);
    }
}

#[cfg(test)]
mod tests {
    use crate::blocks::{Action, Request};
    use crate::system::System;

    fn system(raid: &str) -> System {
        let text = format!(
            "[model]\nname = \"t\"\nentry = \"raid\"\n[block.raid]\nkind = \"raid\"\nfrom = \
             \"chosen\"\nbelow = \"drive\"\n{raid}\n[block.drive]\nkind = \"drive\"\nfrom = \
             \"chosen\"\ncount = 24\nread_us = 100\nwrite_us = 100\nflush_us = 10\nvariation_ratio \
             = 0\nread_bytes_per_s = \"1 TB/s\"\nwrite_bytes_per_s = \"1 TB/s\"\n"
        );
        System::parse("t", &text, 1).unwrap()
    }

    /// Returns the number of drive commands that one request causes.
    fn commands(raid: &str, action: Action, offset: u64, size: u64) -> u64 {
        let mut system = system(raid);
        system.submit(0, 0, &Request::new(action, 0, offset, size));
        while system.next().is_some() {}
        system.sim().close_window().iter().map(|s| s.departures).sum()
    }

    #[test]
    fn commands_per_request_follow_the_layout() {
        const KIB: u64 = 1024;
        let mirror = "layout = \"mirror\"\ngroups = 12\nwidth = 2\nchunk_bytes = 32768";
        assert_eq!(commands(mirror, Action::Read, 0, 32 * KIB), 1);
        assert_eq!(commands(mirror, Action::Write, 0, 32 * KIB), 2);
        assert_eq!(commands(mirror, Action::Write, 0, 128 * KIB), 8);
        let raidz = "layout = \"raidz\"\ngroups = 4\nwidth = 6\nparity = 2\nchunk_bytes = 131072";
        assert_eq!(commands(raidz, Action::Read, 0, 128 * KIB), 4);
        assert_eq!(commands(raidz, Action::Write, 0, 128 * KIB), 6);
        assert_eq!(commands(raidz, Action::Write, 0, 4 * KIB), 3);
        assert_eq!(commands(mirror, Action::Flush, 0, 0), 24);
        let raid5 = "layout = \"parity\"\ngroups = 4\nwidth = 6\nparity = 1\nchunk_bytes = 65536";
        assert_eq!(commands(raid5, Action::Read, 0, 4 * KIB), 1);
        let stripe = "layout = \"stripe\"\ngroups = 2\nwidth = 4\nchunk_bytes = 32768";
        assert_eq!(commands(stripe, Action::Read, 0, 128 * KIB), 4);
        assert_eq!(commands(stripe, Action::Write, 0, 128 * KIB), 4);
        // With RAID-5, a small write reads the old data and the old parity, then writes the new
        // data and the new parity.
        assert_eq!(commands(raid5, Action::Write, 0, 4 * KIB), 4);
        assert_eq!(commands(raid5, Action::Write, 0, 320 * KIB), 6);
        let raid6 = "layout = \"parity\"\ngroups = 4\nwidth = 6\nparity = 2\nchunk_bytes = 65536";
        assert_eq!(commands(raid6, Action::Write, 0, 4 * KIB), 6);
    }

    #[test]
    fn a_pool_with_too_few_drives_is_rejected() {
        let built = |groups: u64| {
            let text = format!(
                "[model]\nname = \"t\"\nentry = \"raid\"\n[block.raid]\nkind = \"raid\"\nfrom = \
                 \"chosen\"\nbelow = \"drive\"\nlayout = \"mirror\"\ngroups = {groups}\nwidth = \
                 2\n[block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\ncount = 4\nread_bytes_per_s \
                 = 1e9\nwrite_bytes_per_s = 1e9\n"
            );
            System::parse("t", &text, 1).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!((built(1), built(2)), (Ok(()), Ok(())));
        let says = built(3).unwrap_err();
        assert!(says.contains("needs 3 x 2 = 6 drives, but `drive.count` is 4"), "{says}");
    }

    /// Returns the mean number of commands of requests for 1,000 chunks, of which one drive of the
    /// only group has failed.
    fn degraded(layout: &str, action: Action) -> f64 {
        let raid = format!("{layout}\ngroups = 1\nchunk_bytes = 65536\nfailed_drives = 1");
        let mut system = system(&raid);
        for chunk in 0..1_000 {
            system.submit(0, 0, &Request::new(action, 0, chunk * 65_536, 4_096));
        }
        while system.next().is_some() {}
        let visits = system.sim().close_window();
        assert_eq!(visits[0].departures, 0, "the drive has failed");
        visits.iter().map(|s| s.departures).sum::<u64>() as f64 / 1_000.0
    }

    #[test]
    fn a_failed_drive_costs_the_commands_that_its_contents_are_computed_with() {
        let raid5 = "layout = \"parity\"\nwidth = 4\nparity = 1";
        // A quarter of the reads need the other three drives.
        let read = degraded(raid5, Action::Read);
        assert!((read - 1.5).abs() < 0.1, "{read}");
        // A quarter of the writes hit the lost data (two reads, one write of the parity), and a
        // quarter a stripe without parity (one write). The others need four commands.
        let write = degraded(raid5, Action::Write);
        assert!((write - 3.0).abs() < 0.15, "{write}");
        let raidz = "layout = \"raidz\"\nwidth = 4\nparity = 1";
        assert!((degraded(raidz, Action::Read) - 1.0).abs() < 1e-9);
        assert!((degraded(raidz, Action::Write) - 1.5).abs() < 0.1);
        let mirror = "layout = \"mirror\"\nwidth = 3";
        assert!((degraded(mirror, Action::Read) - 1.0).abs() < 1e-9);
        assert!((degraded(mirror, Action::Write) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_reads_of_a_lost_mirror_are_spread() {
        let mut system = system(
            "layout = \"mirror\"\nwidth = 3\ngroups = 1\nchunk_bytes = 65536\nfailed_drives = 1",
        );
        for chunk in 0..2_000 {
            system.submit(0, 0, &Request::new(Action::Read, 0, chunk * 65_536, 4_096));
        }
        while system.next().is_some() {}
        let visits = system.sim().close_window();
        let [one, two] = [1, 2].map(|drive| visits[drive].departures as f64);
        assert!((one / two - 1.0).abs() < 0.15, "{one} and {two}");
    }
}
