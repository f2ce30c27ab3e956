//! The kernel's tree of devices, `/sys`, or a copy of one: hosts that are not this one are described from
//! fixtures (kernel: Documentation/admin-guide/sysfs-rules.rst, Documentation/ABI/stable/sysfs-block).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
        Ok(Self::of_raw(raw))
    }

    /// From the number that `stat` gives.
    pub fn of_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }

    /// Reads `8:1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

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
