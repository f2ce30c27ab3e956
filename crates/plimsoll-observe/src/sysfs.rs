//! The kernel's tree of devices, `/sys`, or a copy of one: hosts that are not this one are described from
//! fixtures (kernel: Documentation/admin-guide/sysfs-rules.rst, Documentation/ABI/stable/sysfs-block).

use std::fs;
use std::path::{Path, PathBuf};

use crate::device::DeviceNumber;

/// A tree of devices.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    /// This host's own.
    #[must_use]
    pub fn host() -> Self {
        Self::at(Path::new("/sys"))
    }

    /// One that lies at `root`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// A place in it.
    pub(crate) fn place(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The directory of a block device.
    pub(crate) fn directory(&self, number: DeviceNumber) -> PathBuf {
        self.place(&format!("dev/block/{}:{}", number.major, number.minor))
    }

    /// Kernel name of a device, such as `nvme0n1p1`; `None` where it is no block device (network or
    /// memory file systems, Btrfs's own numbers).
    #[must_use]
    pub fn name(&self, number: DeviceNumber) -> Option<String> {
        let target = fs::read_link(self.directory(number)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The number of a device by its kernel name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<DeviceNumber> {
        DeviceNumber::parse(&text(&self.place(&format!("class/block/{name}/dev")))?)
    }

    /// Every block device, partitions too.
    #[must_use]
    pub fn all(&self) -> Vec<DeviceNumber> {
        names_in(&self.place("dev/block")).iter().filter_map(|n| DeviceNumber::parse(n)).collect()
    }
}

/// The text of a file without the white space around it.
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The names in a directory, sorted; none where it cannot be read.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
