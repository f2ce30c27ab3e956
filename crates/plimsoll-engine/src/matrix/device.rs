//! What keeps a block device with somebody's data from being overwritten.
//!
//! A device that is mounted, or that anything else in the kernel holds, is not written: it is opened with
//! `O_EXCL`, which the kernel grants for a block device to one holder only (open(2)). A device that holds
//! anything but zeroes at its start or end, where file systems, partition tables and volume managers
//! have their labels, is refused unless the operator names it in full.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;

use crate::EngineError;

/// Bytes at either end that are looked at: past the last label that is known, btrfs's at 64 KiB and
/// ZFS's four of 256 KiB.
const ENDS_BYTES: u64 = 1 << 20;

/// A label at a fixed place.
struct Label {
    name: &'static str,
    offset_bytes: usize,
    bytes: &'static [u8],
}

/// The labels that people know, to be told which; anything else is "data".
const LABELS: &[Label] = &[
    Label { name: "an ext2, ext3 or ext4 file system", offset_bytes: 0x438, bytes: b"\x53\xef" },
    Label { name: "an XFS file system", offset_bytes: 0, bytes: b"XFSB" },
    Label { name: "a Btrfs file system", offset_bytes: 0x1_0040, bytes: b"_BHRfS_M" },
    Label { name: "a partition table (GPT)", offset_bytes: 512, bytes: b"EFI PART" },
    Label { name: "a partition table (GPT)", offset_bytes: 4096, bytes: b"EFI PART" },
    Label { name: "an LVM volume", offset_bytes: 512, bytes: b"LABELONE" },
    Label { name: "a LUKS volume", offset_bytes: 0, bytes: b"LUKS\xba\xbe" },
    Label { name: "swap space", offset_bytes: 4086, bytes: b"SWAPSPACE2" },
    Label { name: "a partition table or boot sector", offset_bytes: 510, bytes: b"\x55\xaa" },
];

/// A device that may be used.
#[derive(Debug)]
pub struct Device {
    /// Its name.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
    /// Holds it for as long as this lives.
    _held: OwnedFd,
}

impl Device {
    /// Takes a device: for reading, or for writing too. What is on it may be destroyed only where
    /// `destroy` names it.
    ///
    /// # Errors
    /// A device that isn't there, isn't one, is held, or has data on it that nobody gave up.
    pub fn take(path: &Path, write: bool, destroy: &[PathBuf]) -> Result<Self, EngineError> {
        let system = |call, error: &std::io::Error| {
            let error = SysError::from_io(call, error).at(path);
            EngineError::system("taking the device", error)
        };
        let kind = std::fs::metadata(path).map_err(|error| system("stat", &error))?.file_type();
        if !kind.is_block_device() {
            let says = format!("{} is no block device: name files with `path`", path.display());
            return Err(EngineError::Config(says));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags(if write { libc::O_EXCL } else { 0 } | libc::O_CLOEXEC)
            .open(path)
            .map_err(|error| system("open", &error))?;
        let size_bytes = size_bytes(&file).map_err(|error| system("lseek", &error))?;
        if write && !destroy.iter().any(|named| named == path) {
            let held = holds(&file, size_bytes).map_err(|error| system("read", &error))?;
            if let Some(what) = held {
                return Err(EngineError::Precious { path: path.to_path_buf(), what });
            }
        }
        Ok(Self { path: path.to_path_buf(), size_bytes, _held: file.into() })
    }
}

/// Size of a device or file, by seeking to its end.
fn size_bytes(file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut &*file, std::io::SeekFrom::End(0))
}

/// What is on it; `None` where both ends are all zeroes.
fn holds(file: &File, size_bytes: u64) -> std::io::Result<Option<&'static str>> {
    let ends = ENDS_BYTES.min(size_bytes) as usize;
    let mut bytes = vec![0; ends];
    file.read_exact_at(&mut bytes, 0)?;
    let label = LABELS.iter().find(|label| {
        let end = label.offset_bytes + label.bytes.len();
        bytes.get(label.offset_bytes..end) == Some(label.bytes)
    });
    if let Some(label) = label {
        return Ok(Some(label.name));
    }
    let blank = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if !blank(&bytes) {
        return Ok(Some("data at its start"));
    }
    file.read_exact_at(&mut bytes, size_bytes - ends as u64)?;
    Ok((!blank(&bytes)).then_some("data at its end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str, at: u64, bytes: &[u8]) -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        file.write_all_at(bytes, at).unwrap();
        (directory, file)
    }

    #[test]
    fn labels_are_named_and_anything_else_is_data() {
        let holds = |at, bytes: &[u8]| {
            let (_directory, file) = image("disk", at, bytes);
            holds(&file, 8 << 20).unwrap()
        };
        assert_eq!(holds(0, b""), None);
        assert_eq!(holds(0x438, b"\x53\xef"), Some("an ext2, ext3 or ext4 file system"));
        assert_eq!(holds(0x1_0040, b"_BHRfS_M"), Some("a Btrfs file system"));
        assert_eq!(holds(70_000, b"x"), Some("data at its start"));
        assert_eq!(holds((8 << 20) - 512, b"EFI PART"), Some("data at its end"));
        assert_eq!(holds(4 << 20, b"x"), None, "its middle isn't looked at");
    }

    #[test]
    fn a_file_is_no_device() {
        let (directory, _file) = image("disk", 0, b"");
        let error = Device::take(&directory.path().join("disk"), true, &[]).unwrap_err();
        assert!(error.to_string().contains("no block device"), "{error}");
    }
}
