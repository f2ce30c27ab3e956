//! Reads the limits and priorities of this process: control groups, I/O priority, nice value,
//! `RLIMIT_*`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plimsoll_evidence::observed::Limits;
use plimsoll_sys::limits::{IoPriority, io_priority};
use procfs::process::Process;

/// Value that means "no limit" in control groups of version 1. It is the largest multiple of the
/// page size.
const NO_LIMIT_V1: u64 = 1 << 60;
/// I/O limits of control groups of version 2, with their keys in `io.max`.
const IO_MAX: [(&str, &str); 4] = [
    ("rbps", "read-bytes-per-s"),
    ("wbps", "write-bytes-per-s"),
    ("riops", "reads-per-s"),
    ("wiops", "writes-per-s"),
];
/// I/O limits of control groups of version 1, with the names of their files.
const THROTTLE: [(&str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "read-bytes-per-s"),
    ("blkio.throttle.write_bps_device", "write-bytes-per-s"),
    ("blkio.throttle.read_iops_device", "reads-per-s"),
    ("blkio.throttle.write_iops_device", "writes-per-s"),
];

/// Reads the limits of this process.
#[must_use]
pub fn read() -> Limits {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut limits = of_groups(Path::new("/sys/fs/cgroup"), &groups);
    limits.io_priority = io_priority().map(|priority| match priority {
        IoPriority::None => "none".to_owned(),
        IoPriority::RealTime(level) => format!("real-time {level}"),
        IoPriority::BestEffort(level) => format!("best-effort {level}"),
        IoPriority::Idle => "idle".to_owned(),
    });
    limits.nice = Process::myself().and_then(|process| process.stat()).ok().map(|stat| stat.nice);
    limits.process = of_process(&fs::read_to_string("/proc/self/limits").unwrap_or_default());
    limits
}

/// Reads the limits of the control groups that `/proc/self/cgroup` lists. `root` is the directory
/// in which the groups are mounted.
fn of_groups(root: &Path, groups: &str) -> Limits {
    let mut found = LimitReader::default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            for mounted in [root.to_owned(), root.join("unified")] {
                found.ancestors(&mounted, path, LimitReader::version_2);
            }
            continue;
        }
        // Controllers that share a hierarchy either have a link each, or one common directory.
        for controller in controllers.split(',').chain(std::iter::once(controllers)) {
            found.ancestors(&root.join(controller), path, LimitReader::version_1);
        }
    }
    Limits { io: found.io.into_iter().collect(), ..found.limits }
}

/// Limits of the control groups that have been read so far.
#[derive(Default)]
struct LimitReader {
    limits: Limits,
    io: BTreeSet<String>,
}

impl LimitReader {
    /// Reads the limits of a control group and its ancestors. In a container, the container's own
    /// group may appear as the root group.
    fn ancestors(&mut self, mounted: &Path, path: &str, read: fn(&mut Self, &Path, bool)) {
        let path = path.trim_start_matches('/');
        let mut own = true;
        for group in Path::new(path).ancestors() {
            let directory = mounted.join(group);
            if directory.is_dir() {
                self.limits.groups_read = true;
                read(self, &directory, own);
                own = false;
            }
        }
    }

    fn version_2(&mut self, group: &Path, own: bool) {
        let text = |file: &str| fs::read_to_string(group.join(file)).ok();
        for file in ["memory.max", "memory.high"] {
            self.memory(text(file).and_then(|text| text.trim().parse().ok()));
        }
        if let Some(text) = text("cpu.max") {
            let mut words = text.split_ascii_whitespace().map(str::parse::<f64>);
            if let (Some(Ok(quota)), Some(Ok(period))) = (words.next(), words.next()) {
                self.cpus(quota, period);
            }
        }
        for line in text("io.max").unwrap_or_default().lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(device) = words.next() else { continue };
            for (key, value) in words.filter_map(|word| word.split_once('=')) {
                let name = IO_MAX.iter().find(|(known, _)| *known == key);
                if let Some((_, name)) = name.filter(|_| value != "max") {
                    self.io.insert(format!("{device} {name} {value}"));
                }
            }
        }
        if own {
            self.weight("cpu", text("cpu.weight"));
            self.weight("io", text("io.weight"));
        }
    }

    fn version_1(&mut self, group: &Path, own: bool) {
        let text = |file: &str| fs::read_to_string(group.join(file)).ok();
        let number = |file: &str| text(file)?.trim().parse::<f64>().ok();
        let memory = text("memory.limit_in_bytes").and_then(|text| text.trim().parse().ok());
        self.memory(memory.filter(|bytes| *bytes < NO_LIMIT_V1));
        if let (Some(quota), Some(period)) =
            (number("cpu.cfs_quota_us"), number("cpu.cfs_period_us"))
        {
            self.cpus(quota, period);
        }
        for (file, name) in THROTTLE {
            for line in text(file).unwrap_or_default().lines() {
                if let Some((device, value)) = line.split_once(' ') {
                    self.io.insert(format!("{device} {name} {}", value.trim()));
                }
            }
        }
        if own {
            self.weight("cpu", text("cpu.shares"));
            self.weight("io", text("blkio.weight").or_else(|| text("blkio.bfq.weight")));
        }
    }

    fn memory(&mut self, bytes: Option<u64>) {
        let least = [self.limits.memory_bytes, bytes].into_iter().flatten().min();
        self.limits.memory_bytes = least;
    }

    /// Ignores a negative quota, which means "no limit".
    fn cpus(&mut self, quota: f64, period: f64) {
        if quota > 0.0 && period > 0.0 {
            let cpus = quota / period;
            self.limits.cpus = Some(self.limits.cpus.map_or(cpus, |least| least.min(cpus)));
        }
    }

    fn weight(&mut self, name: &str, text: Option<String>) {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return };
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        self.limits.weights.entry(name.to_owned()).or_insert_with(|| words.join(" "));
    }
}

/// Parses `/proc/self/limits`. Each line contains a name of several words, the soft limit, the hard
/// limit and the unit. At least two spaces separate these columns.
fn of_process(text: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let mut columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        let name = columns.next()?.strip_prefix("Max ")?;
        Some((name.to_owned(), format!("{}/{}", columns.next()?, columns.next()?)))
    };
    text.lines().skip(1).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn group(root: &Path, path: &str, files: &[(&str, &str)]) {
        let directory = root.join(path);
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(name), text).unwrap();
        }
    }

    #[test]
    fn the_tightest_limit_of_version_2_counts() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        group(root, "a", &[("memory.max", "1073741824\n"), ("cpu.max", "50000 100000\n")]);
        let own = [
            ("memory.max", "max\n"),
            ("memory.high", "2147483648\n"),
            ("cpu.max", "max 100000\n"),
            ("cpu.weight", "100\n"),
            ("io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=120\n"),
            ("io.weight", "default 100\n"),
        ];
        group(root, "a/b", &own);
        let limits = of_groups(root, "0::/a/b\n");
        assert!(limits.groups_read);
        assert_eq!(limits.memory_bytes, Some(1 << 30));
        assert_eq!(limits.cpus, Some(0.5));
        assert_eq!(limits.io, ["8:0 read-bytes-per-s 1048576", "8:0 writes-per-s 120"]);
        assert_eq!(limits.weights["cpu"], "100");
        assert_eq!(limits.weights["io"], "default 100");
    }

    #[test]
    fn reads_version_1_and_its_representation_of_unlimited() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        group(root, "memory", &[("memory.limit_in_bytes", "9223372036854771712\n")]);
        group(root, "memory/c", &[("memory.limit_in_bytes", "536870912\n")]);
        group(
            root,
            "cpu,cpuacct/c",
            &[("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000")],
        );
        group(root, "blkio/c", &[("blkio.throttle.write_bps_device", "8:16 4096\n")]);
        let limits = of_groups(root, "4:memory:/c\n3:cpu,cpuacct:/c\n2:blkio:/c\n0::/\n");
        assert_eq!((limits.memory_bytes, limits.cpus), (Some(512 << 20), None));
        assert_eq!(limits.io, ["8:16 write-bytes-per-s 4096"]);
        assert_eq!(of_groups(root, "4:memory:/\n").memory_bytes, None);
        // In a container, the container's own group may appear as the root group.
        group(root, "memory", &[("memory.limit_in_bytes", "1048576\n")]);
        assert_eq!(of_groups(root, "4:memory:/unseen/x\n").memory_bytes, Some(1 << 20));
        let nothing = of_groups(&root.join("none"), "0::/\n");
        assert!(!nothing.groups_read && nothing.memory_bytes.is_none());
    }

    #[test]
    fn the_limits_of_this_process_are_read() {
        let limits = read();
        assert!(limits.process.contains_key("open files"), "{limits:?}");
        assert!(limits.nice.is_some() && limits.io_priority.is_some(), "{limits:?}");
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max cpu time              unlimited            unlimited            seconds   \n\
            Max nice priority         0                    5                    \n";
        let rows = of_process(text);
        assert_eq!(
            (rows["cpu time"].as_str(), rows["nice priority"].as_str()),
            ("unlimited/unlimited", "0/5")
        );
    }
}
