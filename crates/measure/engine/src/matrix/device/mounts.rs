//! Finds the mount point of a device or of one of its partitions.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{major, minor};

/// Returns the mount point of the device with this number, or of one of its partitions. Only mounts
/// in the namespace of this process are searched.
pub(super) fn mount_point(number: u64) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let all = numbers(number);
    mounts.lines().find_map(|line| {
        let mount = Mount::parse(line)?;
        // Btrfs assigns its own device numbers to subvolumes. For Btrfs, only the source of the
        // mount identifies the device.
        let source = || fs::metadata(mount.source).ok().map(|found| name(found.rdev()));
        let is_here = |number: &str| all.iter().any(|own| own == number);
        let mounted = is_here(mount.number) || source().is_some_and(|number| is_here(&number));
        mounted.then(|| PathBuf::from(mount.at.replace("\\040", " ")))
    })
}

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq)]
struct Mount<'a> {
    number: &'a str,
    at: &'a str,
    source: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (fields, after) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(2);
        let (number, at) = (fields.next()?, fields.nth(1)?);
        Some(Self { number, at, source: after.split(' ').nth(1)? })
    }
}

fn name(number: u64) -> String {
    format!("{}:{}", major(number), minor(number))
}

/// Returns the device numbers of a device and of its partitions.
fn numbers(number: u64) -> Vec<String> {
    let own = name(number);
    let parts = fs::read_dir(format!("/sys/dev/block/{own}")).into_iter().flatten().flatten();
    let partition = |entry: fs::DirEntry| {
        let path = entry.path();
        path.join("partition").exists().then(|| fs::read_to_string(path.join("dev")).ok())?
    };
    let parts = parts.filter_map(partition).map(|number| number.trim().to_owned());
    std::iter::once(own.clone()).chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_names_device_and_place() {
        let line = "36 35 98:0 /mnt1 /mnt/my\\040disk rw,noatime master:1 - ext4 /dev/root rw";
        let mount = Mount { number: "98:0", at: "/mnt/my\\040disk", source: "/dev/root" };
        assert_eq!(Mount::parse(line), Some(mount));
        assert_eq!(Mount::parse("36 35 98:0"), None);
        assert_eq!(mount_point(u64::MAX), None);
    }
}
