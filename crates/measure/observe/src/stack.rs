//! Finds the storage stack of a path, down to the disks. The search goes from the file system to
//! its devices, and follows partitions, device mapper, software RAID and caches. For a loop device,
//! it continues with the file system of the backing file.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Device, Mount, Transport};

use crate::device::{self, DeviceNumber};
use crate::mount;
use crate::sysfs::Sysfs;

/// Maximum depth of the search, in case links form a cycle. Real stacks have fewer levels than
/// this.
const DEPTH_MAX: usize = 32;

/// A block device in a stack.
#[derive(Clone, Debug)]
pub struct Layer {
    pub number: DeviceNumber,
    /// Description.
    pub device: Device,
    /// True if the path is directly on this device, without other devices between them.
    pub top: bool,
}

/// The backing file of a loop device.
#[derive(Clone, Debug)]
pub struct BackingFile {
    /// Kernel name of the loop device.
    pub device: String,
    /// Path of the backing file. If the file has no name in this namespace, a mount point of its
    /// file system.
    pub path: PathBuf,
    /// True if `path` is the path of the file itself, and not a mount point.
    pub is_file: bool,
}

/// The storage stack of a path.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// The block devices from top to bottom, without duplicates.
    pub layers: Vec<Layer>,
    /// The file systems that are below the file system of the path, from top to bottom.
    pub below: Vec<Mount>,
    /// The backing files of the loop devices in the stack.
    pub backing: Vec<BackingFile>,
    /// The FUSE connections that processes of this host serve.
    pub fuse_connections: Vec<u32>,
    /// The server addresses of the network mounts.
    pub mount_addresses: Vec<IpAddr>,
}

impl Stack {
    /// Returns the addresses of servers to which the kernel connects for mounts and devices.
    #[must_use]
    pub fn kernel_addresses(&self) -> Vec<IpAddr> {
        let devices = self.layers.iter().filter_map(|layer| layer.device.address.as_deref());
        let words = devices.flat_map(|address| address.split([';', ',', ' ']));
        let of_devices = words.filter_map(|word| word.strip_prefix("traddr=")?.parse().ok());
        self.mount_addresses.iter().copied().chain(of_devices).collect()
    }

    /// Returns true if a network block device is in the stack.
    #[must_use]
    pub fn has_nbd(&self) -> bool {
        self.layers.iter().any(|layer| layer.device.transport == Some(Transport::Nbd))
    }
}

/// Returns the storage stack of a path on this host.
#[must_use]
pub fn read(path: &Path) -> Stack {
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
    let rest = mount::underlying_storage(path);
    stack.fuse_connections.extend(rest.fuse_connection);
    let options = rest.mount.options.as_deref().unwrap_or_default();
    let addresses: Vec<IpAddr> =
        options.split(',').filter_map(|o| o.strip_prefix("addr=")?.parse().ok()).collect();
    stack.mount_addresses.extend(addresses);
    if depth > 0 {
        stack.below.push(rest.mount);
    }
    // An overlay has no device. The devices of its underlying directory are therefore the top
    // devices.
    for lower in &rest.lower {
        follow_path(stack, seen, lower, top, depth + 1);
    }
    let sysfs = Sysfs::host();
    for number in rest.on {
        follow(stack, seen, &sysfs, number, top, depth);
    }
}

/// Follows a device to its lower devices, level by level. Upper devices therefore come first in the
/// list.
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

/// Appends the device and its lower devices to `layers`. Returns the backing files of loop devices
/// among them.
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

/// Returns a device of a sysfs tree and all its lower devices. Backing files are not followed. This
/// function is used for copies of the trees of other hosts.
#[must_use]
pub fn of_tree(sysfs: &Sysfs, top: DeviceNumber) -> Vec<Layer> {
    let mut layers = Vec::new();
    devices(sysfs, top, &mut BTreeSet::new(), true, &mut layers);
    layers
}

/// Locates the backing file of a loop device. The file with the reported name may have been deleted
/// or replaced, or it may be in another mount namespace. The kernel reports the inode of the file
/// only to root (`LOOP_GET_STATUS64`).
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
    fn a_directory_has_a_consistent_stack() {
        let here = read(Path::new(env!("CARGO_MANIFEST_DIR")));
        assert_eq!(here.layers.iter().any(|layer| layer.top), !here.layers.is_empty());
        assert!(read(Path::new("/proc")).layers.is_empty());
    }
}
