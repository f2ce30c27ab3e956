//! What lies beneath a path, down to the disks: from its file system to devices, from those through
//! partitions, device mapper, software RAID and caches, and from a loop device into the file system of its
//! backing file and on from there.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Device, Mount, Transport};

use crate::device::{self, DeviceNumber};
use crate::mount;
use crate::sysfs::Sysfs;

/// Deeper stacks than this do not exist; it bounds the walk if links should form a circle.
const DEPTH_MAX: usize = 32;

/// A block device of a stack.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its number.
    pub number: DeviceNumber,
    /// What it is.
    pub device: Device,
    /// Whether the path lies on it directly.
    pub top: bool,
}

/// A file that a loop device rests on.
#[derive(Clone, Debug)]
pub struct BackingFile {
    /// Kernel name of the loop device.
    pub device: String,
    /// Where the file lies; a mount point of its file system where the file itself has no name here.
    pub path: PathBuf,
    /// Whether `path` is the file.
    pub is_file: bool,
}

/// All that a path rests on.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// Block devices, each once, upper ones first.
    pub layers: Vec<Layer>,
    /// File systems below the path's own, upper ones first.
    pub below: Vec<Mount>,
    /// Files that loop devices rest on.
    pub backing: Vec<BackingFile>,
    /// FUSE connections: processes of this host answer for these.
    pub fuse_connections: Vec<u32>,
    /// Addresses of the servers of network mounts.
    pub mount_addresses: Vec<IpAddr>,
}

impl Stack {
    /// Addresses of the servers that clients of the kernel's own connect to, as far as mounts and devices
    /// tell.
    #[must_use]
    pub fn kernel_addresses(&self) -> Vec<IpAddr> {
        let devices = self.layers.iter().filter_map(|layer| layer.device.address.as_deref());
        let words = devices.flat_map(|address| address.split([';', ',', ' ']));
        let of_devices = words.filter_map(|word| word.strip_prefix("traddr=")?.parse().ok());
        self.mount_addresses.iter().copied().chain(of_devices).collect()
    }

    /// Whether a network block device is part of it.
    #[must_use]
    pub fn has_nbd(&self) -> bool {
        self.layers.iter().any(|layer| layer.device.transport == Some(Transport::Nbd))
    }
}

/// What lies beneath a path of this host.
#[must_use]
pub fn beneath(path: &Path) -> Stack {
    let mut stack = Stack::default();
    let mut seen = BTreeSet::new();
    follow_path(&mut stack, &mut seen, path, true, 0);
    stack
}

fn follow_path(
    stack: &mut Stack,
    seen: &mut BTreeSet<DeviceNumber>,
    path: &Path,
    top: bool,
    depth: usize,
) {
    if depth > DEPTH_MAX {
        return;
    }
    let rest = mount::rest(path);
    stack.fuse_connections.extend(rest.fuse_connection);
    let options = rest.mount.options.as_deref().unwrap_or_default();
    let addresses: Vec<IpAddr> =
        options.split(',').filter_map(|o| o.strip_prefix("addr=")?.parse().ok()).collect();
    stack.mount_addresses.extend(addresses);
    if depth > 0 {
        stack.below.push(rest.mount);
    }
    // An overlay has no device of its own: its lower directory's are the top ones.
    for lower in &rest.lower {
        follow_path(stack, seen, lower, top, depth + 1);
    }
    let sysfs = Sysfs::host();
    for number in rest.on {
        follow(stack, seen, &sysfs, number, top, depth);
    }
}

/// Follows a device down, level by level, so that upper ones come first.
fn follow(
    stack: &mut Stack,
    seen: &mut BTreeSet<DeviceNumber>,
    sysfs: &Sysfs,
    number: DeviceNumber,
    top: bool,
    depth: usize,
) {
    let mut files = Vec::new();
    for (number, described) in devices(sysfs, number, seen, top, &mut stack.layers) {
        files.extend(described.map(|path| (number, path)));
    }
    for (number, path) in files {
        let device = sysfs.name(number).unwrap_or_default();
        let (path, is_file) = locate(&device, &path);
        follow_path(stack, seen, &path, false, depth + 1);
        stack.backing.push(BackingFile { device, path, is_file });
    }
}

/// The devices below `top` and itself, appended to `layers`, and their backing files.
fn devices(
    sysfs: &Sysfs,
    number: DeviceNumber,
    seen: &mut BTreeSet<DeviceNumber>,
    top: bool,
    layers: &mut Vec<Layer>,
) -> Vec<(DeviceNumber, Option<PathBuf>)> {
    let mut found = Vec::new();
    let mut level = vec![number];
    for depth in 0..DEPTH_MAX {
        let mut below = Vec::new();
        for number in level {
            if !seen.insert(number) {
                if depth == 0
                    && let Some(layer) = layers.iter_mut().find(|layer| layer.number == number)
                {
                    layer.top |= top;
                }
                continue;
            }
            let Some(described) = device::describe(sysfs, number) else { continue };
            below.extend(described.below);
            layers.push(Layer { number, device: described.device, top: top && depth == 0 });
            found.push((number, described.backing));
        }
        if below.is_empty() {
            break;
        }
        level = below;
    }
    found
}

/// The devices of a tree that is not this host's, from one down; backing files are not followed.
#[must_use]
pub fn of_tree(sysfs: &Sysfs, top: DeviceNumber) -> Vec<Layer> {
    let mut layers = Vec::new();
    devices(sysfs, top, &mut BTreeSet::new(), true, &mut layers);
    layers
}

/// Where a loop device's file is. Its name may be gone, or be of another mount namespace, or another file
/// may lie there by now: the kernel tells which it is, to root (`LOOP_GET_STATUS64`).
fn locate(device: &str, named: &Path) -> (PathBuf, bool) {
    let status = plimsoll_sys::loops::status(Path::new(&format!("/dev/{device}"))).ok();
    let found = std::fs::metadata(named).ok();
    match (status, found) {
        (Some(status), Some(found))
            if (found.dev(), found.ino()) == (status.device, status.inode) =>
        {
            (named.to_path_buf(), true)
        }
        (Some(status), _) => {
            let number = DeviceNumber::of_raw(status.device);
            let of_sysfs = || {
                let name = Sysfs::host().name(number)?;
                Some(PathBuf::from("/dev").join(name))
            };
            let place = mount::of_number(number).or_else(of_sysfs);
            (place.unwrap_or_else(|| named.to_path_buf()), false)
        }
        (None, found) => (named.to_path_buf(), found.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_rests_on_something_or_on_nothing() {
        let here = beneath(Path::new(env!("CARGO_MANIFEST_DIR")));
        assert_eq!(here.layers.iter().any(|layer| layer.top), !here.layers.is_empty());
        assert!(beneath(Path::new("/proc")).layers.is_empty());
    }
}
