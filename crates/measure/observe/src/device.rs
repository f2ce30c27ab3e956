//! Reads block devices: their description, their underlying devices and their counters.
//!
//! [`crate::stack`] follows the underlying devices. Counters are from
//! `/sys/dev/block/MAJOR:MINOR/stat` (kernel: Documentation/block/stat.rst). Sectors in this file
//! always have 512 bytes, independent of the device's block size.

mod identity;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::Device;
use plimsoll_evidence::observed::DeviceTotals;

pub use self::unit::unit_of;
pub use crate::sysfs::DeviceNumber;
use crate::sysfs::{Sysfs, names_in, text};

const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

impl DeviceNumber {
    /// Returns the kernel name of the device on this host; `None` if the number is not that of a
    /// block device.
    pub fn name(self) -> Option<String> {
        Sysfs::host().name(self)
    }

    /// Reads the counters of a device of this host, counted since boot; `None` if they are not
    /// readable.
    pub fn counters(self) -> Option<DeviceTotals> {
        let sysfs = Sysfs::host();
        let text = fs::read_to_string(sysfs.directory(self).join("stat")).ok()?;
        parse_stat(&sysfs.name(self)?, &text)
    }
}

/// Parses a `stat` file.
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
        beside: None,
    })
}

/// Returns the increase of the counters between two readings.
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
        beside: None,
    }
}

/// Description of a block device, the device number, and the devices directly below it.
#[derive(Clone, Debug)]
pub struct DeviceDescription {
    pub device: Device,
    /// Underlying devices.
    pub below: Vec<DeviceNumber>,
    /// Backing file of a loop device.
    pub backing: Option<PathBuf>,
}

/// Returns the directory of a disk. For a partition, returns the directory of its disk.
pub(crate) fn disk_directory(sysfs: &Sysfs, number: DeviceNumber) -> PathBuf {
    let directory = fs::canonicalize(sysfs.directory(number)).unwrap_or_default();
    match (directory.join("partition").exists(), directory.parent()) {
        (true, Some(disk)) => disk.to_path_buf(),
        _ => directory,
    }
}

/// Describes a device; `None` if the block device does not exist.
#[must_use]
pub fn describe(sysfs: &Sysfs, number: DeviceNumber) -> Option<DeviceDescription> {
    let name = sysfs.name(number)?;
    let directory = sysfs.directory(number);
    let read = |file: &str| text(&directory.join(file));
    let partition = directory.join("partition").exists();
    // A partition has no queue directory. The queue directory is in its disk's directory, one level
    // higher.
    let queue = |file: &str| {
        let place = if partition { "../queue" } else { "queue" };
        read(&format!("{place}/{file}"))
    };
    let mut below_names = names_in(&directory.join("slaves"));
    let mut below: Vec<DeviceNumber> =
        below_names.iter().filter_map(|slave| sysfs.number(slave)).collect();
    let parent = read("../dev").as_deref().and_then(DeviceNumber::parse);
    if let Some(parent) = parent.filter(|_| partition) {
        below_names.extend(sysfs.name(parent));
        below.push(parent);
    }
    let backing = read("loop/backing_file").filter(|name| !name.is_empty());
    below_names.extend(backing.clone());
    let number_in = |text: Option<String>| text.and_then(|t| t.parse::<u64>().ok());
    let kind = kind(&directory, &name, partition);
    let identity = if kind == "disk" && below.is_empty() {
        identity::of(sysfs, &directory, &name)
    } else {
        identity::Identity::default()
    };
    let device = Device {
        kind: kind.to_owned(),
        transport: identity.transport,
        // For virtio, this file contains a PCI vendor id.
        vendor: read("device/vendor").filter(|vendor| !vendor.starts_with("0x")),
        driver: identity.driver,
        address: identity.address,
        mapping: ["dm/uuid", "md/level", "bcache/cache_mode"]
            .iter()
            .find_map(|file| read(file).filter(|text| !text.is_empty())),
        direct_io: read("loop/dio").map(|text| text == "1"),
        model: read("device/model"),
        size_bytes: number_in(read("size")).map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
        rotational: queue("rotational").map(|text| text == "1"),
        write_cache: queue("write_cache"),
        forced_writes: queue("fua").map(|text| text == "1"),
        scheduler: queue("scheduler").map(|text| chosen(&text)),
        logical_block_bytes: number_in(queue("logical_block_size")),
        physical_block_bytes: number_in(queue("physical_block_size")),
        below: below_names,
        name,
    };
    Some(DeviceDescription { device, below, backing: backing.map(PathBuf::from) })
}

/// Determines the kind of a device from the directories that its driver creates, because device
/// names are arbitrary.
fn kind(directory: &Path, name: &str, partition: bool) -> &'static str {
    let has = |of: &str| directory.join(of).exists();
    match name {
        _ if partition => "partition",
        _ if has("loop") || name.starts_with("loop") => "loop",
        _ if has("dm") || name.starts_with("dm-") => "dm",
        _ if has("md") || name.starts_with("md") => "md",
        _ if name.starts_with("bcache") => "bcache",
        _ if name.starts_with("drbd") => "drbd",
        _ => "disk",
    }
}

/// Parses text such as `none [mq-deadline] kyber`. The result is the name in brackets:
/// `mq-deadline`.
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
    fn invalid_text_is_unknown() {
        assert_eq!(parse_stat("sda", "1 2 x"), None);
        assert_eq!(parse_stat("sda", "1 2 3"), None);
        assert_eq!(DeviceNumber::parse("8"), None);
    }

    #[test]
    fn reads_the_scheduler_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
