//! A magnetic disk: seek, rotation, zones and command queueing.
//!
//! - A seek over the distance `d` takes `min + (full - min) (w sqrt(d) + (1 - w) d)`: short seeks
//!   grow with the square root of the distance, long seeks linearly (C. Ruemmler and J. Wilkes, "An
//!   introduction to disk drive modeling", IEEE Computer 27(3), 1994). `w` is computed from the
//!   average seek time in the data sheet. This average is the mean over random pairs of cylinders,
//!   whose distance has the density 2 (1 - d). It must be between the mean of the straight line
//!   (`w` = 0) and the mean of the square root (`w` = 1).
//! - The platter rotates at constant speed, so the rate of a track is proportional to its radius,
//!   and the capacity outside a radius is proportional to the area of the ring. If the bit density
//!   in each zone is constant, the rate, the cylinder and the angle of every address therefore
//!   follow from the outer and inner rates in closed form.
//! - The disk subtracts a credit for the age of each queued command from the command's positioning
//!   time, and executes the command with the smallest result first. This is aged
//!   shortest-positioning-time-first (D. Jacobson and J. Wilkes, "Disk scheduling algorithms based
//!   on rotational position", HP Labs HPL-CSP-91-7, 1991).
//! - A read is streamed from the track buffer if it starts at the address where the last command
//!   ended, and within one rotation after the end of that command. It then needs only transfer
//!   time. A write is streamed only if it was queued before the last command ended. Because the
//!   write cache is off, a write that arrives later waits until its sector passes again. A stream
//!   of durable writes with queue depth 1 is therefore limited to one write per rotation.

/// The physical parameters of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HddSpec {
    /// Formatted capacity.
    pub capacity_bytes: f64,
    /// Rotational speed in revolutions per minute.
    pub rotation_rpm: f64,
    /// Time of a seek to the next track.
    pub seek_ms_min: f64,
    /// Mean time of a seek between two random addresses.
    pub seek_ms_mean: f64,
    /// Time of a seek across the full stroke.
    pub seek_ms_full: f64,
    /// Media rate of the outermost track.
    pub outer_bytes_per_s: f64,
    /// Media rate of the innermost track.
    pub inner_bytes_per_s: f64,
    /// Time that the electronics need for each command.
    pub overhead_us: f64,
    /// Additional time for the head to settle before a write.
    pub write_settle_ms: f64,
    /// Number of queued commands that the disk can choose from (32 for SATA native command
    /// queueing).
    pub queue_depth: usize,
    /// Share of a command's age that is subtracted from its positioning time. If the share is 0,
    /// the command with the shortest positioning time always wins, which can starve other commands.
    /// A share of 1 approximates first come first served.
    pub age_weight: f64,
    /// Maximum time for which background commands yield to foreground commands. After this time,
    /// background and foreground commands compete equally. The time models the scheduler that
    /// submits commands to the disk.
    pub background_wait_ms: f64,
}

/// A command in the queue of a disk.
#[derive(Clone, Copy, Debug)]
struct Command {
    token: u32,
    address: u64,
    size_bytes: u64,
    write: bool,
    background: bool,
    queued_ns: u64,
    /// Radius, cylinder and start angle, which are computed from the address.
    radius: f64,
    cylinder: f64,
    angle: f64,
}

/// The state of one disk.
#[derive(Clone, Debug)]
pub struct Arm {
    spec: HddSpec,
    seek_weight: f64,
    /// The value of 1 - (inner rate / outer rate)^2.
    taper: f64,
    turn_ns: f64,
    /// `stroke` is the length of the full stroke, as a fraction of the outer radius. `turns` is the
    /// number of rotations that a sequential pass over a ring takes if the ring is as wide as the
    /// outer radius.
    stroke: f64,
    turns: f64,
    cylinder: f64,
    end_address: u64,
    end_ns: u64,
    /// The waiting commands in the order of their arrival.
    waiting: Vec<Command>,
    background_waiting: usize,
}

/// Means of sqrt(d) and of d for random pairs of cylinders at the distance d.
const SQUARE_ROOT_MEAN: f64 = 8.0 / 15.0;
const LINE_MEAN: f64 = 1.0 / 3.0;

impl HddSpec {
    /// Returns the mean seek times that are possible with the shortest and the longest seek.
    pub fn seek_ms_mean_range(&self) -> (f64, f64) {
        let span = self.seek_ms_full - self.seek_ms_min;
        (self.seek_ms_min + LINE_MEAN * span, self.seek_ms_min + SQUARE_ROOT_MEAN * span)
    }
}

impl Arm {
    /// Creates an idle disk, whose head is at the outer edge. The mean seek time must be in the
    /// range of [`HddSpec::seek_ms_mean_range`].
    pub fn new(spec: HddSpec) -> Self {
        let span = (spec.seek_ms_full - spec.seek_ms_min).max(1e-9);
        let share = (spec.seek_ms_mean - spec.seek_ms_min) / span;
        let ratio = spec.inner_bytes_per_s / spec.outer_bytes_per_s;
        let taper = (1.0 - ratio * ratio).clamp(1e-6, 1.0);
        let turn_ns = 60e9 / spec.rotation_rpm;
        let inner = libm::sqrt(1.0 - taper);
        Self {
            seek_weight: ((share - LINE_MEAN) / (SQUARE_ROOT_MEAN - LINE_MEAN)).clamp(0.0, 1.0),
            taper,
            turn_ns,
            stroke: (1.0 - inner).max(1e-9),
            turns: spec.capacity_bytes / (spec.outer_bytes_per_s * turn_ns * 1e-9) * (2.0 / taper),
            cylinder: 0.0,
            end_address: u64::MAX,
            end_ns: 0,
            waiting: Vec::new(),
            background_waiting: 0,
            spec,
        }
    }

    /// Returns the radius at an address, relative to the radius of the outer edge. The relative
    /// media rate has the same value.
    fn radius(&self, address: u64) -> f64 {
        let x = (address as f64 / self.spec.capacity_bytes).clamp(0.0, 1.0);
        libm::sqrt(1.0 - self.taper * x)
    }

    /// Returns the cylinder at a radius. A cylinder is given by its distance from the outer edge,
    /// as a fraction of the full stroke.
    fn cylinder(&self, radius: f64) -> f64 {
        (1.0 - radius) / self.stroke
    }

    /// Returns the time of a seek over a distance. The distance is given as a fraction of the full
    /// stroke.
    #[inline(always)]
    pub fn seek_ns(&self, distance: f64) -> f64 {
        let w = self.seek_weight;
        let curve = w * libm::sqrt(distance.max(0.0)) + (1.0 - w) * distance;
        let HddSpec { seek_ms_min, seek_ms_full, .. } = self.spec;
        let seek_ns = 1e6 * (seek_ms_min + (seek_ms_full - seek_ms_min) * curve);
        if distance > 0.0 { seek_ns } else { 0.0 }
    }

    /// Returns true if a command starts at the address where the last command ended and needs no
    /// positioning. A read must start within one rotation after the end of the last command; a
    /// write must have been queued before that end.
    fn follows(&self, command: &Command, now_ns: u64) -> bool {
        let in_time = match command.write {
            true => command.queued_ns < self.end_ns,
            false => (now_ns.saturating_sub(self.end_ns) as f64) < self.turn_ns,
        };
        command.address == self.end_address && in_time
    }

    /// Returns the total seek, settling and rotation time of a command, if the command started now.
    #[inline(always)]
    fn positioning_ns(&self, command: &Command, now_ns: u64) -> f64 {
        let seek_ns = self.seek_ns((command.cylinder - self.cylinder).abs());
        let settle_ns = if command.write { 1e6 * self.spec.write_settle_ms } else { 0.0 };
        let ready_ns = seek_ns + settle_ns;
        let at = (now_ns as f64 + ready_ns) / self.turn_ns;
        let ahead = command.angle - (at - whole(at));
        let wait = if ahead >= 0.0 { ahead } else { ahead + 1.0 };
        ready_ns + wait * self.turn_ns
    }

    /// Adds a command to the queue.
    #[inline(always)]
    pub(crate) fn queue(
        &mut self,
        token: u32,
        address: u64,
        size_bytes: u64,
        write: bool,
        background: bool,
        now_ns: u64,
    ) {
        self.background_waiting += usize::from(background);
        let radius = self.radius(address);
        // Returns the number of rotations that a sequential pass from address 0 to this address
        // takes. The fractional part is the angle.
        let turns = self.turns * (1.0 - radius);
        self.waiting.push(Command {
            cylinder: self.cylinder(radius),
            angle: turns - whole(turns),
            radius,
            token,
            address,
            size_bytes,
            write,
            background,
            queued_ns: now_ns,
        });
    }

    /// Chooses the next command, and returns its token and its service time.
    pub(crate) fn start_next(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        // Background commands yield to foreground commands, but only for a limited time.
        let grace_ns = if self.background_waiting == self.waiting.len() {
            0
        } else {
            1 + (1e6 * self.spec.background_wait_ms) as u64
        };
        let waits = |c: &Command| c.background && now_ns - c.queued_ns < grace_ns;
        let (at, position_ns) = if self.waiting.len() <= self.spec.queue_depth {
            self.nearest(now_ns, self.waiting.iter().enumerate(), waits)?
        } else {
            let depth = self.spec.queue_depth.max(1);
            let window = self.waiting.iter().enumerate().filter(|(_, c)| !waits(c)).take(depth);
            self.nearest(now_ns, window, |_| false)?
        };
        let command = self.waiting.remove(at);
        self.background_waiting -= usize::from(command.background);
        let transfer_ns =
            command.size_bytes as f64 * 1e9 / (self.spec.outer_bytes_per_s * command.radius);
        let service_ns = (self.spec.overhead_us * 1e3 + position_ns + transfer_ns) as u64 + 1;
        self.end_address = command.address + command.size_bytes;
        self.cylinder = self.cylinder(self.radius(self.end_address));
        self.end_ns = now_ns + service_ns;
        Some((command.token, service_ns))
    }

    /// Delays the end of the last command, because an event of the plan has slowed the disk down.
    #[inline(always)]
    pub(crate) fn delay_end(&mut self, by_ns: u64) {
        self.end_ns += by_ns;
    }

    /// Selects the command to execute next from the commands that may compete now. Returns its
    /// index and its positioning time. The function computes the positioning time of every command
    /// and selects the minimum. Skipping unlikely commands would save square roots, but
    /// mispredicted branches would take more time than that, because queues are short.
    #[inline(always)]
    fn nearest<'a>(
        &self,
        now_ns: u64,
        commands: impl Iterator<Item = (usize, &'a Command)>,
        waits: impl Fn(&Command) -> bool,
    ) -> Option<(usize, f64)> {
        let (mut best, mut least, mut best_position_ns) = (None, f64::INFINITY, 0.0);
        for (at, command) in commands {
            let credit_ns = self.spec.age_weight * (now_ns - command.queued_ns) as f64;
            let position_ns = self.positioning_ns(command, now_ns);
            let position_ns = if self.follows(command, now_ns) { 0.0 } else { position_ns };
            let score = if waits(command) { f64::INFINITY } else { position_ns - credit_ns };
            if score < least {
                (best, least, best_position_ns) = (Some(at), score, position_ns);
            }
        }
        best.map(|at| (at, best_position_ns))
    }

    /// Returns the mean service time of a single random command: the mean seek time, the time of
    /// half a rotation, and the transfer time at half the stroke. Demand analysis uses this mean,
    /// because it does not know the positions of commands.
    pub fn mean_service_ns(&self, size_bytes: f64, write: bool) -> f64 {
        let settle = if write { self.spec.write_settle_ms } else { 0.0 };
        let rate = 0.5 * (self.spec.outer_bytes_per_s + self.spec.inner_bytes_per_s);
        self.spec.overhead_us * 1e3
            + 1e6 * (self.spec.seek_ms_mean + settle)
            + 0.5 * self.turn_ns
            + size_bytes * 1e9 / rate
    }
}

/// Returns the integer part of a number of rotations, which must be between 0 and 2^51. An addition
/// rounds the number to the nearest integer, and the function subtracts 1 if the number was rounded
/// up. This takes four instructions on every x86-64 processor.
#[inline(always)]
fn whole(turns: f64) -> f64 {
    const SHIFT: f64 = (1u64 << 52) as f64;
    let nearest = turns + SHIFT - SHIFT;
    if nearest > turns { nearest - 1.0 } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Stream;
    use crate::core::{Happening, Order, Program, Sim};
    use proptest::prelude::*;

    fn spec() -> HddSpec {
        HddSpec {
            capacity_bytes: 4e12,
            rotation_rpm: 7200.0,
            seek_ms_min: 0.6,
            seek_ms_mean: 8.2,
            seek_ms_full: 16.5,
            outer_bytes_per_s: 180e6,
            inner_bytes_per_s: 90e6,
            overhead_us: 50.0,
            write_settle_ms: 0.5,
            queue_depth: 32,
            age_weight: 0.01,
            background_wait_ms: 1000.0,
        }
    }

    /// Returns the mean service time and the mean response time of random 4 KiB reads at a queue
    /// depth, in ns.
    fn random_reads(spec: HddSpec, depth: u64, count: u64) -> (f64, f64) {
        let mut sim = Sim::new(1);
        let disk = sim.add_station("disk", 1, Order::Disk(Box::new(Arm::new(spec))));
        let mut stream = Stream::new(3, "addresses");
        let mut program = Program::new();
        let blocks = (spec.capacity_bytes / 4096.0) as u64;
        let mut submit = |sim: &mut Sim| {
            program.visit_disk(disk, stream.below(blocks) * 4096, 4096, false);
            sim.submit(0, 0, &mut program);
        };
        (0..depth).for_each(|_| submit(&mut sim));
        let mut response = 0;
        for _ in 0..count {
            let Some(Happening::Done { submitted_ns, .. }) = sim.next() else { panic!("idle") };
            response += sim.now_ns() - submitted_ns;
            submit(&mut sim);
        }
        (sim.now_ns() as f64 / count as f64, response as f64 / count as f64)
    }

    #[test]
    fn a_lone_random_read_costs_mean_seek_and_half_a_turn() {
        let (service, _) = random_reads(spec(), 1, 20_000);
        // Outer cylinders store more data. Two random addresses are therefore a little closer
        // together than two random cylinders.
        let expected = Arm::new(spec()).mean_service_ns(4096.0, false);
        assert!((0.94..1.01).contains(&(service / expected)), "{service} against {expected}");
    }

    #[test]
    fn queueing_raises_the_rate_as_positioning_time_allows() {
        let (one, _) = random_reads(spec(), 1, 5_000);
        let (thirty_two, _) = random_reads(spec(), 32, 10_000);
        // In published measurements, 7,200 rpm SATA disks are about 2 to 2.6 times as fast at queue
        // depth 32 as at queue depth 1.
        let gain = one / thirty_two;
        assert!((1.9..2.8).contains(&gain), "gain {gain}");
    }

    #[test]
    fn sequential_reads_run_at_the_media_rate_of_the_zone() {
        let arm = Arm::new(spec());
        for (start, rate) in [(0u64, 180e6), (3_990_000_000_000, 90e6)] {
            let mut sim = Sim::new(1);
            let disk = sim.add_station("disk", 1, Order::Disk(Box::new(arm.clone())));
            let mut program = Program::new();
            let n = 2_000u64;
            for i in 0..n {
                program.visit_disk(disk, start + i * 262_144, 262_144, false);
                sim.submit(0, 0, &mut program);
                assert!(sim.next().is_some());
            }
            let seconds = sim.now_ns() as f64 / 1e9;
            let got = n as f64 * 262_144.0 / seconds;
            assert!((got / rate - 1.0).abs() < 0.05, "{got} against {rate}");
        }
    }

    #[test]
    fn a_write_continues_the_last_one_only_if_it_was_queued_in_time() {
        // Makes several consecutive 64 KiB writes at queue depth `depth`, and returns the time of
        // each write in ms. The time should be that of one rotation, or the transfer time at the
        // media rate.
        let per_write_ms = |depth: u64| {
            let mut sim = Sim::new(1);
            let disk = sim.add_station("disk", 1, Order::Disk(Box::new(Arm::new(spec()))));
            let mut program = Program::new();
            for i in 0..1_000u64 {
                program.visit_disk(disk, i * 65_536, 65_536, true);
                sim.submit(0, 0, &mut program);
                if i >= depth {
                    assert!(sim.next().is_some());
                }
            }
            while sim.next().is_some() {}
            sim.now_ns() as f64 / 1e6 / 1_000.0
        };
        let (turn_ms, transfer_ms) = (60e3 / 7200.0, 65_536.0 / 180e3 + 0.05);
        let missed_ms = turn_ms + 65_536.0 / 180e3;
        assert!((per_write_ms(0) / missed_ms - 1.0).abs() < 0.01, "{}", per_write_ms(0));
        assert!((per_write_ms(4) / transfer_ms - 1.0).abs() < 0.03, "{}", per_write_ms(4));
    }

    proptest! {
        #[test]
        fn whole_turns_are_the_floor(turns in prop_oneof![0.0..4.0f64, 0.0..1e15f64, 0.0..1e-9f64]) {
            for turns in [turns, libm::floor(turns), libm::floor(turns) + 0.5, turns * 0.5] {
                prop_assert_eq!(whole(turns), libm::floor(turns));
            }
        }
    }
}
