//! The file system under a path.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Mount, Unknown};
use procfs::process::{MountInfo, Process};

use crate::device::{DeviceNumber, stack};

/// Describes the mount that holds `path`, with the names of the devices beneath.
pub fn describe(path: &Path) -> Mount {
    let mut mount = Mount { path: path.display().to_string(), ..Mount::default() };
    if is_block_device(path) {
        // The file system that its name lies on has nothing to do with it.
        mount.devices = devices(path, None);
        return mount;
    }
    if let Ok(statistics) = rustix::fs::statvfs(path) {
        let unit = statistics.f_frsize;
        mount.size_bytes = Some(statistics.f_blocks.saturating_mul(unit));
        mount.free_bytes = Some(statistics.f_bavail.saturating_mul(unit));
    }
    let info = mount_of(path);
    if let Some(info) = &info {
        mount.file_system = Some(info.fs_type.clone());
        mount.mount_point = Some(info.mount_point.display().to_string());
        mount.source = info.mount_source.clone();
        mount.options = Some(options(info));
    }
    mount.devices = devices(path, info.as_ref());
    mount
}

fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Devices beneath `path`, top first.
pub fn device_numbers(path: &Path) -> Vec<DeviceNumber> {
    top(path, mount_of(path).as_ref())
        .map(|top| stack(top).into_iter().map(|(number, _)| number).collect())
        .unwrap_or_default()
}

fn devices(path: &Path, info: Option<&MountInfo>) -> Vec<String> {
    top(path, info)
        .map(|top| stack(top).into_iter().map(|(_, device)| device.name).collect())
        .unwrap_or_default()
}

/// The device that is mounted. Btrfs gives its files numbers of its own, so the mount's source is
/// asked where the file's number is no block device.
fn top(path: &Path, info: Option<&MountInfo>) -> Option<DeviceNumber> {
    let own = DeviceNumber::of_path(path).ok()?;
    if own.name().is_some() {
        return Some(own);
    }
    let source = PathBuf::from(info?.mount_source.as_ref()?);
    let number = DeviceNumber::of_path(&source).ok()?;
    (source.starts_with("/dev") && number.name().is_some()).then_some(number)
}

/// Why no device beneath `path` shows, and what would show it; `None` where one does.
pub fn unseen(path: &Path) -> Option<Unknown> {
    let info = mount_of(path);
    if top(path, info.as_ref()).is_some() {
        return None;
    }
    let source = info.and_then(|info| info.mount_source).filter(|s| s.starts_with("/dev/"));
    let own = DeviceNumber::of_path(path).ok().filter(|number| number.major != 0);
    let (why, would_show) = match (own, source) {
        (None, None) => (
            "it lies on no local block device".to_owned(),
            "the storage system's own counters (observe.metrics in the plan)",
        ),
        (number, source) => {
            let number = number.map(|number| format!("{}:{}", number.major, number.minor));
            let name = source.or(number).unwrap_or_default();
            (format!("/sys/dev/block does not show its device {name}"), MOUNTED_SYS)
        }
    };
    let what = format!("what the storage beneath {} did", path.display());
    Some(Unknown { what, why, would_show: would_show.to_owned() })
}

/// What shows a block device whose number is known.
const MOUNTED_SYS: &str = "a mounted /sys, which a container may be given read-only";

/// The mount with the longest mount point that is a prefix of the path; the last one mounted, where
/// several lie over each other.
fn mount_of(path: &Path) -> Option<MountInfo> {
    let path = path.canonicalize().ok()?;
    let mounts = Process::myself().and_then(|process| process.mountinfo()).ok()?;
    mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.as_os_str().len())
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
    fn proc_lies_on_no_device() {
        let mount = describe(Path::new("/proc"));
        assert_eq!(mount.file_system.as_deref(), Some("proc"));
        assert!(mount.devices.is_empty());
    }
}
