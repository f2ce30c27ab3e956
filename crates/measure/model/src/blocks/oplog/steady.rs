//! Fills a write log to the level that it has after a load has run for hours.
//!
//! - A log drains a unit when the unit is `T` old (`drain_after_s`), or when the log of the file or
//!   node is too full. If a file has `U` units and `n` writes to random units arrive within `T`, the
//!   first limit keeps `U n / (U + n)` units in the log: a unit waits `T`, and then `T U / n` passes
//!   until its next write. The level of a file is the smaller of both limits.
//! - The file then drains while its log is above this level. Units leave the log at the same rate as
//!   with the age limit, but the run need not last for `T`.
//! - At most [`UNITS_MAX`] units are stored as units. The remainder counts as space of the log.
//!   Rewrites of the remainder are not combined, so it drains slightly more than a real log.

use super::Oplog;
use crate::blocks::context::SteadyWrites;
use crate::blocks::request::{Action, Request};
use crate::core::{NS_PER_S, StationId};

/// Maximum number of units that are placed in the logs of all nodes together. They are placed for
/// every load that is simulated, and take tens of bytes each.
const UNITS_MAX: u64 = 1 << 18;

/// The parts of a file that this node stores.
#[derive(Clone, Debug, Default)]
pub(super) struct LaidFile {
    /// Ranges of units in ascending order, each with the number of units in earlier ranges.
    ranges: Vec<(u64, std::ops::Range<u64>)>,
    bytes: u64,
}

impl LaidFile {
    /// Returns the number of units.
    fn count(&self) -> u64 {
        self.ranges.last().map_or(0, |(before, range)| before + range.end - range.start)
    }

    /// Returns the unit with an index below [`LaidFile::count`].
    fn unit(&self, index: u64) -> u64 {
        let at = self.ranges.partition_point(|(before, _)| *before <= index);
        self.ranges.get(at.saturating_sub(1)).map_or(0, |(before, r)| r.start + index - before)
    }
}

impl Oplog {
    pub(super) fn lay_range(&mut self, request: &Request) {
        let units = request.units(self.rules.unit_bytes);
        let laid = self.laid.entry(request.file).or_default();
        laid.bytes += request.size_bytes;
        let count = laid.count();
        match laid.ranges.last_mut().filter(|(_, last)| last.end >= units.start) {
            Some((_, last)) => last.end = last.end.max(units.end),
            None => laid.ranges.push((count, units)),
        }
    }

    pub(super) fn fill(&mut self, writes: &[SteadyWrites], take: &mut dyn FnMut(StationId, u64)) {
        let rules = self.rules;
        let unit_bytes = rules.unit_bytes as f64;
        let after_s = rules.drain_after_ns as f64 / NS_PER_S as f64;
        let mut levels = Vec::new();
        for file in writes {
            let Some(laid) = self.laid.get(&file.file) else { continue };
            let here = (laid.bytes as f64 / file.size_bytes.max(1) as f64).min(1.0);
            let all = laid.count() as f64;
            let written = file.written_bytes_per_s * here * after_s / unit_bytes;
            let by_age = all * written / (all + written).max(1.0) * unit_bytes;
            let most = rules.file_bytes as f64 * rules.drain_share;
            levels.push((file.file, by_age.min(most)));
        }
        let whole: f64 = levels.iter().map(|(_, level)| level).sum();
        let most = rules.capacity_bytes as f64 * rules.drain_share;
        let scale = if whole > most { most / whole } else { 1.0 };
        let units_max = UNITS_MAX / u64::from(self.nodes);
        let stored_scale = (units_max as f64 * unit_bytes / (whole * scale).max(1.0)).min(1.0);
        for (file, level) in levels {
            self.fill_file(file, (level * scale) as u64, stored_scale);
        }
        if rules.wait {
            take(self.room, self.held_bytes);
        }
    }

    /// Places units of a file in the log, and sets the level above which the file drains.
    fn fill_file(&mut self, file: u32, level_bytes: u64, stored_scale: f64) {
        let count = (level_bytes as f64 * stored_scale) as u64 / self.rules.unit_bytes;
        let laid = self.laid.remove(&file).unwrap_or_default();
        let log = self.log(file);
        let (mut stored, mut draws) = (0, 0);
        // If almost all units are in the log, random draws rarely find one that is not.
        while stored < count && draws < 4 * count {
            draws += 1;
            let unit = laid.unit(self.stream.below(laid.count().max(1)));
            let offset = unit * self.rules.unit_bytes;
            let request = Request::new(Action::Write, file, offset, self.rules.unit_bytes);
            let touch = self.touch(&request, unit);
            if touch.found.is_none() {
                // The level, and not the age, decides when these units drain.
                self.hold(touch, log, self.rules.drain_after_ns);
                stored += 1;
            }
        }
        self.logs[log].held_bytes = level_bytes;
        self.logs[log].drain_above_bytes = self.logs[log].drain_above_bytes.min(level_bytes);
        self.held_bytes += level_bytes;
    }
}

#[cfg(test)]
mod tests {
    use crate::size::{MailLoad, lay_out, settle, simulate};
    use crate::system::System;

    const LOAD: MailLoad =
        MailLoad { databases: 2, database_bytes: 8 << 30, rate_ios_per_s: 500.0 };

    fn settled(oplog: &str) -> System {
        let text = format!(
            "[model]\nname = \"t\"\nentry = \"oplog\"\n[block.oplog]\nkind = \"oplog\"\nfrom = \
             \"chosen\"\nbelow = \"hdd\"\ndevice = \"drive\"\ncapacity_bytes = 2e9\n{oplog}\n\
             [block.drive]\nkind = \"drive\"\nfrom = \"chosen\"\nwrite_us = 20\nread_bytes_per_s = \
             1e9\nwrite_bytes_per_s = 1e9\n[block.hdd]\nkind = \"hdd\"\nfrom = \"chosen\"\ncount = \
             16\ncapacity_bytes = 1e12\nrotation_rpm = 7200\nseek_ms_mean = 8\nouter_bytes_per_s = \
             180e6\n"
        );
        let mut system = System::parse("t", &text, 1).unwrap();
        lay_out(&mut system, &LOAD);
        settle(&mut system, &LOAD);
        system
    }

    fn filled_share(system: &System) -> f64 {
        let mut share = 0.0;
        system.readings(&mut |_, _, reading, value| {
            share = if reading == "filled_share" { value } else { share };
        });
        share
    }

    #[test]
    fn a_log_starts_at_the_level_that_its_drains_keep() {
        let full = settled("drain_after_s = 1e6\ndrain_share = 0.4");
        assert!((filled_share(&full) - 0.4).abs() < 0.01, "{}", filled_share(&full));
        // Within 60 s, 5,880 writes to the 262,144 pages of a database arrive, and 446 units of its
        // log of 928 units. The levels are 5,751 pages and 301 units: 0.4 GB for two databases.
        let aged = settled("drain_after_s = 60\ndrain_share = 1");
        assert!((filled_share(&aged) - 0.1983).abs() < 0.005, "{}", filled_share(&aged));
    }

    #[test]
    fn a_log_that_fills_faster_than_it_drains_grows() {
        let growth = |drainers: u32| {
            let mut system = settled(&format!("drain_after_s = 1e6\ndrainers = {drainers}"));
            let measured = simulate(&mut system, LOAD, 2_000, 8_000, 1).unwrap();
            let read_ns = measured.latency_ns_mean(|class| class.name == "read");
            assert!(read_ns < 20e6, "the disks sustain the reads: {read_ns}");
            system.log_growth_share()
        };
        // One drain at a time writes fewer than 100 pages a second, and 196 arrive.
        let (one, many) = (growth(1), growth(32));
        assert!(one > 0.3 && many < 0.02, "{one} {many}");
    }
}
