//! Block devices: what lies beneath a file system, and what each has done.
//!
//! The stack is followed from the device that is mounted through partitions, device mapper,
//! software RAID and loop devices (into the file system of the backing file) down to the disks.
//! Counters are those of `/sys/dev/block/MAJOR:MINOR/stat` (kernel: Documentation/block/stat.rst);
//! a sector there is 512 bytes whatever the device's own block size.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::Device;
use plimsoll_evidence::observed::DeviceTotals;

const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;
/// Deeper stacks than this do not exist; it bounds the walk if links should form a circle.
const DEPTH_MAX: usize = 16;

/// A block device by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl DeviceNumber {
    /// The device that holds the file or directory at `path`, or that `path` is, where it is a block
    /// device itself.
    ///
    /// # Errors
    /// What `stat` reports.
    pub fn of_path(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let metadata = fs::metadata(path)?;
        let raw =
            if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
        Ok(Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) })
    }

    fn directory(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{}:{}", self.major, self.minor))
    }

    /// Kernel name, such as `nvme0n1p1`; `None` where it is no block device (network or memory file
    /// systems, Btrfs's own numbers).
    pub fn name(self) -> Option<String> {
        let target = fs::read_link(self.directory()).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    fn of_name(name: &str) -> Option<Self> {
        let text = fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok()?;
        Self::parse(text.trim())
    }

    /// Reads `8:1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Counters since boot; `None` where they cannot be read.
    pub fn counters(self) -> Option<DeviceTotals> {
        let text = fs::read_to_string(self.directory().join("stat")).ok()?;
        parse_stat(&self.name()?, &text)
    }
}

/// Reads the text of a `stat` file.
fn parse_stat(name: &str, text: &str) -> Option<DeviceTotals> {
    let fields: Vec<u64> =
        text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let at = |index: usize| fields.get(index).copied();
    Some(DeviceTotals {
        name: name.to_owned(),
        top: false,
        reads: at(0)?,
        reads_merged: at(1)?,
        read_bytes: at(2)?.saturating_mul(SECTOR_BYTES),
        read_ns: at(3)?.saturating_mul(NS_PER_MS),
        writes: at(4)?,
        writes_merged: at(5)?,
        written_bytes: at(6)?.saturating_mul(SECTOR_BYTES),
        write_ns: at(7)?.saturating_mul(NS_PER_MS),
        busy_ns: at(9)?.saturating_mul(NS_PER_MS),
        queue_ns: at(10)?.saturating_mul(NS_PER_MS),
        discarded_bytes: at(13).map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
        flushes: at(15),
    })
}

/// What a device did between two readings of its counters.
pub fn difference(before: &DeviceTotals, after: &DeviceTotals) -> DeviceTotals {
    let option = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_sub(b?));
    DeviceTotals {
        name: after.name.clone(),
        top: after.top,
        reads: after.reads.saturating_sub(before.reads),
        reads_merged: after.reads_merged.saturating_sub(before.reads_merged),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        read_ns: after.read_ns.saturating_sub(before.read_ns),
        writes: after.writes.saturating_sub(before.writes),
        writes_merged: after.writes_merged.saturating_sub(before.writes_merged),
        written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
        write_ns: after.write_ns.saturating_sub(before.write_ns),
        busy_ns: after.busy_ns.saturating_sub(before.busy_ns),
        queue_ns: after.queue_ns.saturating_sub(before.queue_ns),
        discarded_bytes: option(after.discarded_bytes, before.discarded_bytes),
        flushes: option(after.flushes, before.flushes),
    }
}

/// The devices beneath `top` and itself, top first, each once.
pub fn stack(top: DeviceNumber) -> Vec<(DeviceNumber, Device)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut level = vec![top];
    for _ in 0..DEPTH_MAX {
        let mut below = Vec::new();
        for number in level {
            if !seen.insert(number) {
                continue;
            }
            if let Some((device, children)) = describe(number) {
                below.extend(children);
                found.push((number, device));
            }
        }
        if below.is_empty() {
            break;
        }
        level = below;
    }
    found
}

/// Describes one device and names the devices below it.
fn describe(number: DeviceNumber) -> Option<(Device, Vec<DeviceNumber>)> {
    let name = number.name()?;
    let directory = number.directory();
    let read = |file: &str| {
        let text = fs::read_to_string(directory.join(file)).ok()?;
        Some(text.trim().to_owned())
    };
    let partition = directory.join("partition").exists();
    // A partition has no queue of its own: its disk's is one directory up.
    let queue = |file: &str| {
        let place = if partition { "../queue" } else { "queue" };
        read(&format!("{place}/{file}"))
    };
    let mut below: Vec<DeviceNumber> = names_in(&directory.join("slaves"))
        .iter()
        .filter_map(|slave| DeviceNumber::of_name(slave))
        .collect();
    let mut below_names = names_in(&directory.join("slaves"));
    if partition && let Some(parent) = read("../dev").as_deref().and_then(DeviceNumber::parse) {
        below_names.extend(parent.name());
        below.push(parent);
    }
    if let Some(backing) = read("loop/backing_file") {
        below.extend(DeviceNumber::of_path(Path::new(&backing)).ok());
        below_names.push(backing);
    }
    let number_in = |text: Option<String>| text.and_then(|t| t.parse::<u64>().ok());
    let device = Device {
        kind: kind(&name, partition).to_owned(),
        model: read("device/model"),
        size_bytes: number_in(read("size")).map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
        rotational: queue("rotational").map(|text| text == "1"),
        write_cache: queue("write_cache"),
        scheduler: queue("scheduler").map(|text| chosen(&text)),
        logical_block_bytes: number_in(queue("logical_block_size")),
        physical_block_bytes: number_in(queue("physical_block_size")),
        below: below_names,
        name,
    };
    Some((device, below))
}

fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn kind(name: &str, partition: bool) -> &'static str {
    match name {
        _ if partition => "partition",
        _ if name.starts_with("loop") => "loop",
        _ if name.starts_with("dm-") => "dm",
        _ if name.starts_with("md") => "md",
        _ => "disk",
    }
}

/// `none [mq-deadline] kyber` → `mq-deadline`.
fn chosen(text: &str) -> String {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(text, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "  100  2  800  50  200  4  1600  70  0  90  120  3  0  8  1  6  5\n";

    #[test]
    fn reads_the_fields_that_the_kernel_documents() {
        let totals = parse_stat("sda", STAT).unwrap();
        assert_eq!((totals.reads, totals.read_bytes), (100, 800 * 512));
        assert_eq!((totals.writes, totals.written_bytes), (200, 1600 * 512));
        assert_eq!((totals.busy_ns, totals.queue_ns), (90_000_000, 120_000_000));
        assert_eq!((totals.discarded_bytes, totals.flushes), (Some(8 * 512), Some(6)));
    }

    #[test]
    fn flushes_are_unknown_where_the_kernel_does_not_count_them() {
        let old: Vec<&str> = STAT.split_ascii_whitespace().take(11).collect();
        let totals = parse_stat("sda", &old.join(" ")).unwrap();
        assert_eq!((totals.flushes, totals.discarded_bytes), (None, None));
        assert_eq!(difference(&totals, &parse_stat("sda", STAT).unwrap()).flushes, None);
    }

    #[test]
    fn nonsense_is_unknown() {
        assert_eq!(parse_stat("sda", "1 2 x"), None);
        assert_eq!(parse_stat("sda", "1 2 3"), None);
        assert_eq!(DeviceNumber::parse("8"), None);
    }

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
