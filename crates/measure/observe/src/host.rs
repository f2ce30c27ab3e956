//! Reads values of the host: memory, pressure stall information, CPU quotas, CPU frequency and wall
//! clock.

use std::fs;

use plimsoll_evidence::observed::{ClockWatch, Memory, Pressure};
use plimsoll_sys::clock;
use procfs::{Current, Meminfo};

/// Counters of the host at one moment. A counter is `None` if it is not readable.
#[derive(Clone, Debug, Default)]
pub struct HostReading {
    at_ns: u64,
    cached_bytes: Option<u64>,
    /// Number of bytes in the page cache that are dirty or are being written back.
    pub dirty_bytes: Option<u64>,
    /// Total pressure stall times in microseconds. The order is I/O `some`, I/O `full`, CPU `some`,
    /// memory `some`.
    pressure_us: [Option<u64>; 4],
    throttled_ns: Option<u64>,
    /// Mean frequency of the CPUs.
    pub frequency_hz: Option<u64>,
    /// Time of the wall clock minus time of the monotonic clock.
    offset_ns: i128,
    source: Option<String>,
    /// Reading of the monotonic clock, and the time since boot that the kernel reported at that
    /// moment.
    uptime: Option<(u64, u64)>,
}

/// Maximum time between the readings of two clocks. If more time passes between them, both clocks
/// are read again.
const NEAR_NS: u64 = 1_000_000;

impl HostReading {
    /// Reads all counters.
    pub fn now() -> Self {
        let memory = Meminfo::current().ok();
        let pressure = |resource: &str, line: &str| {
            let text = fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
            total_us(&text, line)
        };
        let (before, wall, after) =
            (clock::monotonic_ns(), clock::realtime_ns(), clock::monotonic_ns());
        Self {
            at_ns: after,
            cached_bytes: memory.as_ref().map(|m| m.cached),
            dirty_bytes: memory.as_ref().map(|m| m.dirty + m.writeback),
            pressure_us: [
                pressure("io", "some"),
                pressure("io", "full"),
                pressure("cpu", "some"),
                pressure("memory", "some"),
            ],
            throttled_ns: throttled_ns(),
            frequency_hz: frequency_hz(),
            offset_ns: i128::from(wall) - i128::from(before / 2 + after / 2),
            source: clock_source(),
            uptime: uptime(),
        }
    }

    /// Returns the share of the time between two readings in which tasks were stalled, for each
    /// kind of stall.
    pub fn pressure_since(&self, before: &Self) -> Pressure {
        let time_us = (self.at_ns.saturating_sub(before.at_ns) / 1000).max(1) as f64;
        let share = |at: usize| {
            let rise = self.pressure_us[at]?.checked_sub(before.pressure_us[at]?)?;
            Some((rise as f64 / time_us).min(1.0))
        };
        Pressure {
            io_some_share: share(0),
            io_full_share: share(1),
            cpu_some_share: share(2),
            memory_some_share: share(3),
        }
    }

    /// Returns for how long this control group was throttled between two readings.
    pub fn throttled_since(&self, before: &Self) -> Option<u64> {
        self.throttled_ns?.checked_sub(before.throttled_ns?)
    }

    /// Returns the memory state twice: at an earlier reading and at this reading.
    pub fn memory_since(&self, before: &Self) -> Memory {
        Memory {
            cached_bytes_before: before.cached_bytes,
            cached_bytes_after: self.cached_bytes,
            dirty_bytes_before: before.dirty_bytes,
            dirty_bytes_after: self.dirty_bytes,
            dirty_bytes_max: before.dirty_bytes.max(self.dirty_bytes),
        }
    }

    /// Records the time between two readings, measured with the run's clock and with the kernel's
    /// clock.
    pub fn record_elapsed(&self, before: &Self, watch: &mut ClockWatch) {
        let Some(((own, kernel), (own_then, kernel_then))) = self.uptime.zip(before.uptime) else {
            return;
        };
        watch.own_ns = own.checked_sub(own_then);
        watch.kernel_ns = kernel.checked_sub(kernel_then);
    }

    /// Records a step of the wall clock relative to the monotonic clock, if the step is larger than
    /// the kernel's slewing of 500 ppm. Also records a change of the clock source.
    pub fn record_clock_step(&self, before: &Self, watch: &mut ClockWatch) {
        let moved = (self.offset_ns - before.offset_ns).unsigned_abs();
        let slewed = u128::from(self.at_ns.saturating_sub(before.at_ns) / 2000);
        let step_ns = u64::try_from(moved.saturating_sub(slewed)).unwrap_or(u64::MAX);
        watch.step_ns_max = Some(watch.step_ns_max.map_or(step_ns, |most| most.max(step_ns)));
        if let (Some(now), Some(then)) = (&self.source, &before.source)
            && now != then
        {
            watch.source_changed = Some(format!("{then} to {now}"));
        }
    }
}

/// Reads `/proc/uptime` and the monotonic clock together. `None` if the kernel itself does not
/// provide the file, as in some containers.
fn uptime() -> Option<(u64, u64)> {
    let path = "/proc/uptime";
    let kind = rustix::fs::statfs(path).ok()?.f_type;
    let is_kernels = kind == rustix::fs::statfs("/proc/self").ok()?.f_type;
    let reading = || {
        let before = clock::monotonic_ns();
        let uptime_ns = parse_uptime(&fs::read_to_string(path).ok()?)?;
        let after = clock::monotonic_ns();
        Some((after.saturating_sub(before), (before / 2 + after / 2, uptime_ns)))
    };
    let mut best = reading().filter(|_| is_kernels)?;
    for _ in 0..3 {
        if best.0 <= NEAR_NS {
            break;
        }
        best = best.min(reading()?);
    }
    Some(best.1)
}

/// Parses the seconds since boot. They have two decimals (kernel:
/// Documentation/filesystems/proc.rst).
fn parse_uptime(text: &str) -> Option<u64> {
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some((seconds * 1e9) as u64)
}

fn clock_source() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Parses the value of `total=` in a line of `/proc/pressure`, in microseconds (kernel:
/// Documentation/accounting/psi.rst).
fn total_us(text: &str, line: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(line))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

/// Reads for how long the CPU quota has throttled this process's control group (version 2 or 1).
pub(crate) fn throttled_ns() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let two = controllers.is_empty();
        if !two && !controllers.split(',').any(|name| name == "cpu") {
            continue;
        }
        let roots: &[&str] = if two {
            &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        } else {
            &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        };
        for root in roots {
            let Ok(text) = fs::read_to_string(format!("{root}{path}/cpu.stat")) else { continue };
            if let Some(ns) = throttled_in(&text) {
                return Some(ns);
            }
        }
    }
    None
}

fn throttled_in(text: &str) -> Option<u64> {
    let value = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    value("throttled_usec").map(|us| us.saturating_mul(1000)).or_else(|| value("throttled_time"))
}

/// Returns the mean CPU frequency from cpufreq. Most virtual machines do not have cpufreq.
fn frequency_hz() -> Option<u64> {
    let entries = fs::read_dir("/sys/devices/system/cpu/cpufreq").ok()?;
    let khz: Vec<u64> = entries
        .flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("scaling_cur_freq")).ok()?;
            text.trim().parse::<u64>().ok()
        })
        .collect();
    (!khz.is_empty()).then(|| khz.iter().sum::<u64>() / khz.len() as u64 * 1000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reads_what_the_kernel_documents() {
        let text =
            "some avg10=0.00 avg60=0.12 avg300=0.10 total=795700309\nfull avg10=0 total=84\n";
        assert_eq!(total_us(text, "some"), Some(795_700_309));
        assert_eq!(total_us(text, "full"), Some(84));
        assert_eq!(total_us("", "some"), None);
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_usec 12\n"), Some(12_000));
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_time 12\n"), Some(12));
        assert_eq!(throttled_in("usage_usec 3\n"), None);
    }

    #[test]
    fn detects_clock_steps_but_not_slewing() {
        let before = HostReading { at_ns: 0, offset_ns: 5_000, ..HostReading::default() };
        let mut watch = ClockWatch::default();
        let at = |offset_ns| HostReading { at_ns: 1_000_000_000, offset_ns, ..before.clone() };
        at(405_000).record_clock_step(&before, &mut watch);
        assert_eq!(watch.step_ns_max, Some(0));
        at(-2_000_000_000).record_clock_step(&before, &mut watch);
        assert!(watch.step_ns_max.unwrap() > 1_900_000_000);
        assert_eq!(watch.source_changed, None);
    }

    #[test]
    fn the_kernels_uptime_agrees_with_our_clock() {
        assert_eq!(parse_uptime("12.34 99.00\n"), Some(12_340_000_000));
        assert_eq!(parse_uptime(""), None);
        let of = |uptime| HostReading { uptime, ..HostReading::default() };
        let mut watch = ClockWatch::default();
        of(Some((5, 9))).record_elapsed(&of(None), &mut watch);
        assert_eq!(watch.own_ns, None);
        of(Some((50, 90))).record_elapsed(&of(Some((40, 70))), &mut watch);
        assert_eq!((watch.own_ns, watch.kernel_ns), (Some(10), Some(20)));
    }

    #[test]
    fn reports_pressure_as_a_share_of_the_elapsed_time() {
        let reading = |at_ns, us| HostReading {
            at_ns,
            pressure_us: [Some(us), None, None, None],
            ..HostReading::default()
        };
        let pressure = reading(2_000_000_000, 500_000).pressure_since(&reading(0, 0));
        assert_eq!(pressure.io_some_share, Some(0.25));
        assert_eq!(pressure.cpu_some_share, None);
    }
}
