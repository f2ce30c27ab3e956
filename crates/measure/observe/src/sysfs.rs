//! Reads the kernel's device tree `/sys`. Tests read a copy of another host's tree instead (kernel:
//! Documentation/admin-guide/sysfs-rules.rst, Documentation/ABI/stable/sysfs-block).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    pub major: u32,
    pub minor: u32,
}

impl DeviceNumber {
    /// Returns the number of the device that stores the file or directory at `path`. If `path` is a
    /// block device, returns the number of this device.
    ///
    /// # Errors
    /// `stat` fails.
    pub fn of_path(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let metadata = fs::metadata(path)?;
        let raw =
            if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
        Ok(Self::of_raw(raw))
    }

    /// Converts a device number in the format of `stat`.
    pub fn of_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }

    /// Parses `8:1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// Device tree.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Sysfs {
    /// Opens the tree of this host.
    #[must_use]
    pub fn host() -> Self {
        Self::at(Path::new("/sys"))
    }

    /// Opens a copy of another host's tree at `root`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Returns the path of an entry in the tree.
    pub(crate) fn place(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Returns the directory of a block device.
    pub(crate) fn directory(&self, number: DeviceNumber) -> PathBuf {
        self.place(&format!("dev/block/{}:{}", number.major, number.minor))
    }

    /// Returns the kernel name of a device, such as `nvme0n1p1`. `None` if the number is not that
    /// of a block device. This is the case for network and memory file systems, and for Btrfs.
    #[must_use]
    pub fn name(&self, number: DeviceNumber) -> Option<String> {
        let target = fs::read_link(self.directory(number)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Returns the number of a device by its kernel name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<DeviceNumber> {
        DeviceNumber::parse(&text(&self.place(&format!("class/block/{name}/dev")))?)
    }

    /// Returns all block devices, including partitions.
    #[must_use]
    pub fn all(&self) -> Vec<DeviceNumber> {
        names_in(&self.place("dev/block")).iter().filter_map(|n| DeviceNumber::parse(n)).collect()
    }
}

/// Reads a file, and removes white space at its start and end.
pub(crate) fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Returns the sorted names of the entries of a directory; empty if the directory is not readable.
pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
