//! Determines the file system of a path, and the storage below the file system. This storage may be
//! block devices, a directory of another file system (overlays), or a process of this host (FUSE).
//! It may also be on another host.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Mount, ObservationGap};
use procfs::process::{MountInfo, Process};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::device::DeviceNumber;
use crate::stack;
use crate::sysfs::{Sysfs, names_in};

/// A file system and its underlying storage.
#[derive(Clone, Debug, Default)]
pub struct UnderlyingStorage {
    /// Description of the mount. It contains the names of the devices directly below the mount.
    pub mount: Mount,
    /// Devices directly below the file system.
    pub on: Vec<DeviceNumber>,
    /// Directories of other file systems that contain the data, such as an overlay's upper
    /// directory.
    pub lower: Vec<PathBuf>,
    /// Number of the FUSE connection; `None` if no process serves the file system.
    pub fuse_connection: Option<u32>,
}

/// Describes the mount of `path`. The description contains the names of all underlying devices.
pub fn describe(path: &Path) -> Mount {
    let mut mount = underlying_storage(path).mount;
    mount.devices = stack::read(path).layers.into_iter().map(|l| l.device.name).collect();
    mount
}

/// Returns the underlying storage of `path`.
pub fn underlying_storage(path: &Path) -> UnderlyingStorage {
    let sysfs = Sysfs::host();
    let mut mount = Mount { path: path.display().to_string(), ..Mount::default() };
    if is_block_device(path) {
        // `path` is a device node, so the file system that contains the node is irrelevant.
        let on: Vec<_> = DeviceNumber::of_path(path).into_iter().collect();
        mount.on = on.iter().filter_map(|number| sysfs.name(*number)).collect();
        return UnderlyingStorage { mount, on, ..UnderlyingStorage::default() };
    }
    if let Ok(statistics) = rustix::fs::statvfs(path) {
        let unit = statistics.f_frsize;
        mount.size_bytes = Some(statistics.f_blocks.saturating_mul(unit));
        mount.free_bytes = Some(statistics.f_bavail.saturating_mul(unit));
    }
    let Some(info) = mount_of(path) else {
        let on = own_device(&sysfs, path).into_iter().collect();
        return UnderlyingStorage { mount, on, ..UnderlyingStorage::default() };
    };
    mount.file_system = Some(info.fs_type.clone());
    mount.mount_point = Some(info.mount_point.display().to_string());
    mount.source = info.mount_source.clone();
    mount.options = Some(options(&info));
    let on = devices_of(&sysfs, path, &info);
    mount.on = on.iter().filter_map(|number| sysfs.name(*number)).collect();
    let fuse = info.fs_type == "fuse" || info.fs_type.starts_with("fuse.");
    let connection = std::fs::metadata(path).ok().map(|m| DeviceNumber::of_raw(m.dev()).minor);
    UnderlyingStorage {
        mount,
        on,
        lower: lower(&info),
        fuse_connection: connection.filter(|_| fuse),
    }
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Returns the block device whose number is the device number of the file (`st_dev`).
fn own_device(sysfs: &Sysfs, path: &Path) -> Option<DeviceNumber> {
    let own = DeviceNumber::of_path(path).ok()?;
    sysfs.name(own).map(|_| own)
}

/// Returns the devices directly below a mount. Btrfs uses its own device numbers and may use
/// several devices.
fn devices_of(sysfs: &Sysfs, path: &Path, info: &MountInfo) -> Vec<DeviceNumber> {
    let of_source = |source: &str| {
        let number = DeviceNumber::of_path(Path::new(source)).ok()?;
        (source.starts_with("/dev") && sysfs.name(number).is_some()).then_some(number)
    };
    let source = info.mount_source.as_deref().unwrap_or_default();
    let mut found: Vec<DeviceNumber> = match info.fs_type.as_str() {
        // The source lists several devices, separated by colons.
        "bcachefs" => source.split(':').filter_map(of_source).collect(),
        "btrfs" => {
            let named = of_source(source).or_else(|| own_device(sysfs, path));
            named.map_or(Vec::new(), |one| btrfs_members(sysfs, one))
        }
        _ => own_device(sysfs, path).or_else(|| of_source(source)).into_iter().collect(),
    };
    // The file system's log or journal may be on a separate device.
    if info.fs_type.starts_with("ext")
        && let Some(journal) = found.first().and_then(|one| journal_of(sysfs, *one))
    {
        found.push(journal);
    }
    let beside = ["logdev", "rtdev", "journal_path"].iter().filter_map(|name| {
        let value = info.super_options.get(*name).cloned().flatten()?;
        of_source(&value)
    });
    for number in beside {
        if !found.contains(&number) {
            found.push(number);
        }
    }
    found
}

/// Returns the device of an external ext4 journal. The mount options do not show this device, but
/// the name of the journal thread contains it. If the journal is internal, the thread's name also
/// contains the inode of the journal.
fn journal_of(sysfs: &Sysfs, device: DeviceNumber) -> Option<DeviceNumber> {
    let task = sysfs.place("fs/ext4").join(sysfs.name(device)?).join("journal_task");
    let pid: u32 = crate::sysfs::text(&task)?.parse().ok()?;
    let thread = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let journal = thread.trim().strip_prefix("jbd2/")?;
    // If the kernel truncated the thread's name, this path does not exist.
    Path::new("/proc/fs/jbd2").join(journal).exists().then_some(())?;
    sysfs.number(journal).filter(|number| *number != device)
}

/// Returns all devices of the Btrfs file system that contains `one` (`/sys/fs/btrfs/UUID/devices`).
fn btrfs_members(sysfs: &Sysfs, one: DeviceNumber) -> Vec<DeviceNumber> {
    let base = sysfs.place("fs/btrfs");
    let groups = names_in(&base).into_iter().map(|uuid| {
        let names = names_in(&base.join(uuid).join("devices"));
        names.iter().filter_map(|name| sysfs.number(name)).collect::<Vec<_>>()
    });
    groups.into_iter().find(|group| group.contains(&one)).unwrap_or_else(|| vec![one])
}

/// Returns the directories that contain the data of a mount.
fn lower(info: &MountInfo) -> Vec<PathBuf> {
    let option = |name: &str| info.super_options.get(name).cloned().flatten();
    let paths: Vec<PathBuf> = match info.fs_type.as_str() {
        "overlay" => match option("upperdir") {
            Some(upper) => vec![PathBuf::from(upper)],
            None => option("lowerdir").iter().flat_map(|l| l.split(':')).map(Into::into).collect(),
        },
        "ecryptfs" => info.mount_source.iter().map(PathBuf::from).collect(),
        _ => Vec::new(),
    };
    // A relative path is ignored, because it refers to an unknown working directory.
    paths.into_iter().filter(|path| path.is_absolute() && path.exists()).collect()
}

/// If no device of `path` is visible, returns the reason and the remedy; `None` if a device is
/// visible.
pub fn explain_unseen(path: &Path) -> Option<ObservationGap> {
    let sysfs = Sysfs::host();
    if stack::read(path).layers.iter().any(|layer| layer.top) {
        return None;
    }
    let info = mount_of(path);
    let source = info.and_then(|info| info.mount_source).filter(|s| s.starts_with("/dev/"));
    let own = DeviceNumber::of_path(path).ok().filter(|number| number.major != 0);
    let own = own.filter(|number| sysfs.name(*number).is_none());
    let (why, remedy) = match (own, source) {
        (None, None) => (
            "it is not on a local block device".to_owned(),
            "the storage system's own counters (observe.metrics in the plan)",
        ),
        (number, source) => {
            let number = number.map(|number| format!("{}:{}", number.major, number.minor));
            let name = source.or(number).unwrap_or_default();
            (format!("/sys/dev/block does not show its device {name}"), MOUNTED_SYS)
        }
    };
    let action = format!("below {} did", path.display());
    Some(ObservationGap::of_storage(&action, why, remedy))
}

/// Remedy to report if only the number of a block device is known.
const MOUNTED_SYS: &str = "a mounted /sys (in a container, read-only is sufficient)";

/// Finds the mount of the path by the mount number (`STATX_MNT_ID`, Linux 5.8). If the number is
/// not available, returns the mount whose mount point is the longest prefix of the path. If several
/// mounts are stacked at this point, returns the last of them.
fn mount_of(path: &Path) -> Option<MountInfo> {
    let path = path.canonicalize().ok()?;
    let mounts = Process::myself().and_then(|process| process.mountinfo()).ok()?;
    let number = rustix::fs::statx(CWD, &path, AtFlags::empty(), StatxFlags::MNT_ID).ok();
    let number = number
        .filter(|stat| StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID))
        .map(|stat| stat.stx_mnt_id);
    let all: Vec<MountInfo> = mounts.into_iter().collect();
    if let Some(exact) = all.iter().find(|m| u64::try_from(m.mnt_id).ok() == number) {
        return Some(exact.clone());
    }
    all.into_iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len())
}

/// Returns a mount point of the file system that has this device number.
pub(crate) fn of_number(number: DeviceNumber) -> Option<PathBuf> {
    let mounts = Process::myself().and_then(|process| process.mountinfo()).ok()?;
    let majmin = format!("{}:{}", number.major, number.minor);
    mounts.into_iter().find(|mount| mount.majmin == majmin).map(|mount| mount.mount_point)
}

fn options(info: &MountInfo) -> String {
    let join = |options: &std::collections::HashMap<String, Option<String>>| {
        let mut all: Vec<String> = options
            .iter()
            .map(|(key, value)| match value {
                Some(value) => format!("{key}={value}"),
                None => key.clone(),
            })
            .collect();
        all.sort();
        all
    };
    let mut all = join(&info.mount_options);
    for option in join(&info.super_options) {
        if !all.contains(&option) {
            all.push(option);
        }
    }
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_has_a_file_system_and_free_space() {
        let directory = tempfile::tempdir().unwrap();
        let mount = describe(directory.path());
        assert!(mount.file_system.is_some());
        assert!(mount.free_bytes <= mount.size_bytes && mount.size_bytes.is_some());
        assert!(directory.path().canonicalize().unwrap().starts_with(mount.mount_point.unwrap()));
    }

    #[test]
    fn proc_has_no_device() {
        let mount = describe(Path::new("/proc"));
        assert_eq!(mount.file_system.as_deref(), Some("proc"));
        assert!(mount.devices.is_empty() && mount.on.is_empty());
    }
}
