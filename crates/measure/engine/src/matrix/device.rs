//! Protects block devices that contain data from being overwritten by a run.
//!
//! Plimsoll rejects a device if the device or one of its partitions is mounted, and names the mount
//! point. It opens a device for writing with `O_EXCL`. This call fails if the device is mounted or
//! if the kernel uses it exclusively for another purpose (open(2)).
//!
//! If neither of these checks rejects the device, Plimsoll reads the following parts:
//!
//! - the first 8 MiB and the last 8 MiB, which contain every label that libblkid recognises
//! - the backup superblocks of Btrfs and XFS
//! - a thousand samples, which are distributed over the whole device
//!
//! If any of these bytes is not zero, Plimsoll rejects the device unless the operator has stated
//! its full name.

mod labels;
mod mounts;

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use plimsoll_sys::SysError;
use rustix::fs::{Advice, OFlags, fadvise, ioctl_blksszget};

use self::labels::{BTRFS_MIRRORS, LABELS};
use crate::EngineError;
use crate::allow_list::AllowList;
use crate::open_target::handles::HeldDevice;
use crate::open_target::resolve::real_path;
use crate::work_dir::failed;

/// How many bytes at the start and at the end of a device are read completely. These areas contain
/// VMFS's label at 2 MiB, LUKS's last header at 4 MiB, and the first labels of the first partition.
const ENDS_BYTES: u64 = 8 << 20;
/// Number of samples between the two ends of the device. Suppose that 1 % of a device contains
/// data, scattered in pieces much smaller than a thousandth of the device. On one of e^10 = 22,000
/// such devices, all samples miss the data.
const SAMPLES: u64 = 1000;
/// Size of each sample in bytes.
const SAMPLE_BYTES: u64 = 64 << 10;
/// Number of samples that are requested from the kernel in advance, so that a disk can reorder the
/// reads.
const SAMPLES_AHEAD: usize = 32;

/// Block device that a run may use.
#[derive(Debug)]
pub struct Device {
    pub path: PathBuf,
    /// Size of the device in bytes.
    pub size_bytes: u64,
    /// Smallest unit of direct I/O in bytes; `None` if the kernel does not report it.
    pub logical_block_bytes: Option<u32>,
    /// True if the run may write to the device.
    pub is_writable: bool,
    /// Open handle of the device. If it was opened with `O_EXCL`, it prevents other exclusive use
    /// until it is dropped.
    _held: OwnedFd,
}

impl Device {
    /// Opens the node of a device and keeps the handle open. The run uses this device even if the
    /// path later refers to another device.
    ///
    /// # Errors
    /// Fails if the path is missing, is not a block device or is not allowed.
    pub(crate) fn open_node(
        path: &Path,
        allowed: Option<&AllowList>,
    ) -> Result<HeldDevice, EngineError> {
        let found = HeldDevice::open(path)
            .map_err(|error| failed("claiming the device", "stat", path, &error))?;
        let node = found.ok_or_else(|| {
            let says = format!("{} is not a block device: for files, use `path`", path.display());
            EngineError::Config(says)
        })?;
        if let Some(allowed) = allowed {
            let real = real_path(node.node.as_fd()).unwrap_or_default();
            allowed.check_device(path, &real)?;
        }
        Ok(node)
    }

    /// Opens a device for reading, or for reading and writing if `write` is true. If the device
    /// contains data, opening it for writing requires that `destroy` contains its path. The samples
    /// are chosen at random with `seed`.
    ///
    /// # Errors
    /// Fails if the device cannot be opened or is in use. Also fails if it contains data and
    /// `destroy` does not contain its path.
    pub(crate) fn claim(
        node: &HeldDevice,
        write: bool,
        destroy: &[PathBuf],
        seed: u64,
    ) -> Result<Self, EngineError> {
        let path = &node.path;
        let system = |call, error: &std::io::Error| {
            let error = SysError::from_io(call, error).at(path);
            EngineError::system("claiming the device", error)
        };
        if let Some(at) = write.then(|| mounts::mount_point(node.number)).flatten() {
            return Err(EngineError::Mounted { path: path.clone(), at });
        }
        let flags = if write { OFlags::RDWR | OFlags::EXCL } else { OFlags::RDONLY };
        let file = node.reopen(flags).map_err(|errno| system("open", &errno.into()))?;
        let file = File::from(file);
        let size_bytes = size_bytes(&file).map_err(|error| system("lseek", &error))?;
        let logical_block_bytes = ioctl_blksszget(&file).ok();
        if write && !destroy.iter().any(|named| named == path) {
            let held =
                find_data(&file, size_bytes, seed).map_err(|error| system("read", &error))?;
            if let Some(what) = held {
                return Err(EngineError::HasData { path: path.clone(), what });
            }
        }
        let (path, _held) = (path.clone(), file.into());
        Ok(Self { path, size_bytes, logical_block_bytes, is_writable: write, _held })
    }
}

/// Returns the size of a device or file. The size is determined by a seek to the end.
fn size_bytes(file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut &*file, std::io::SeekFrom::End(0))
}

/// Describes the data that a device contains. Returns `None` if all sampled bytes are zero.
fn find_data(file: &File, size_bytes: u64, seed: u64) -> std::io::Result<Option<String>> {
    // Disables read-ahead, so that the kernel does not read more data after each sample.
    let _ = fadvise(file, 0, None, Advice::Random);
    let found = match first_data_offset(file, size_bytes, seed)? {
        Some(at) => Some(label_of(file, size_bytes, at)?),
        None => None,
    };
    // Drops the samples from the page cache.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(found)
}

/// Returns the offset of the first sampled byte that is not zero.
fn first_data_offset(file: &File, size_bytes: u64, seed: u64) -> std::io::Result<Option<u64>> {
    let samples = samples(size_bytes, seed);
    let mut bytes = Vec::new();
    for (number, &(offset_bytes, length_bytes)) in samples.iter().enumerate() {
        if let Some(&(ahead, length)) = samples.get(number + SAMPLES_AHEAD) {
            let _ = fadvise(file, ahead, std::num::NonZeroU64::new(length), Advice::WillNeed);
        }
        bytes.resize(length_bytes as usize, 0);
        file.read_exact_at(&mut bytes, offset_bytes)?;
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            return Ok(Some(offset_bytes + at as u64));
        }
    }
    Ok(None)
}

/// Returns the offset and the length of each sample. The list starts with the two ends of the
/// device, in pieces of 1 MiB. Then come the backup superblocks, and then one sample from each of a
/// thousand equal parts.
fn samples(size_bytes: u64, seed: u64) -> Vec<(u64, u64)> {
    const MIB: u64 = 1 << 20;
    let mut samples = Vec::new();
    let mut add = |offset_bytes: u64, length_bytes: u64| {
        let length_bytes = length_bytes.min(size_bytes.saturating_sub(offset_bytes));
        if length_bytes > 0 {
            samples.push((offset_bytes, length_bytes));
        }
    };
    (0..ENDS_BYTES / MIB).for_each(|number| add(number * MIB, MIB));
    let end = size_bytes.saturating_sub(ENDS_BYTES);
    (0..ENDS_BYTES / MIB).for_each(|number| add(end + number * MIB, MIB));
    BTRFS_MIRRORS.iter().for_each(|at| add(*at, SAMPLE_BYTES));
    // On a device that is smaller than 4 TiB and not a RAID, XFS creates four allocation groups. On
    // a larger device, each group has 1 TiB. Each group starts with a copy of the superblock
    // (mkfs.xfs(8)).
    let group = if size_bytes < 4 << 40 { size_bytes / 4 / 4096 * 4096 } else { 1 << 40 };
    (1..4).for_each(|number| add(number * group, SAMPLE_BYTES));
    let part = size_bytes / SAMPLES;
    for number in 0..SAMPLES {
        // The offset within each part is random. Data at regular intervals is therefore not missed
        // by all samples.
        let room = part.saturating_sub(SAMPLE_BYTES) / 4096;
        let within =
            if room == 0 { 0 } else { splitmix64(seed ^ splitmix64(number)) % room * 4096 };
        add((number * part + within) / 4096 * 4096, SAMPLE_BYTES);
    }
    samples
}

/// Applies the finaliser (last mixing step) of SplitMix64 (Steele, Lea, Flood 2014).
fn splitmix64(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns a name for the data on a device whose byte at offset `at` is not zero.
fn label_of(file: &File, size_bytes: u64, at: u64) -> std::io::Result<String> {
    for label in LABELS {
        let Some(offset_bytes) = label.position.offset_bytes(size_bytes) else { continue };
        let length = label.bytes.len();
        if offset_bytes.checked_add(length as u64).is_none_or(|end| end > size_bytes) {
            continue;
        }
        let mut found = vec![0; length];
        file.read_exact_at(&mut found, offset_bytes)?;
        if found == label.bytes {
            return Ok(label.name.to_owned());
        }
    }
    Ok(format!("data (at byte {at})"))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    const SIZE: u64 = 300 << 30;

    fn image(at: u64, bytes: &[u8]) -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        // The test device is a sparse file, which occupies almost no disk space.
        file.set_len(SIZE).unwrap();
        file.write_all_at(bytes, at).unwrap();
        (directory, file)
    }

    fn found(at: u64, bytes: &[u8]) -> Option<String> {
        let (_directory, file) = image(at, bytes);
        find_data(&file, SIZE, 7).unwrap()
    }

    /// If a device contains only one label, this label is detected and named correctly.
    #[test]
    fn every_label_is_found_where_it_lies() {
        for label in LABELS {
            let Some(at) = label.position.offset_bytes(SIZE).filter(|at| *at < SIZE) else {
                continue;
            };
            let named = found(at, label.bytes);
            assert_eq!(named.as_deref(), Some(label.name), "{:?}", label.position);
        }
    }

    #[test]
    fn anything_else_is_data_and_its_place_is_named() {
        assert_eq!(found(0, b""), None);
        assert_eq!(found(70_000, b"x").as_deref(), Some("data (at byte 70000)"));
        assert_eq!(found((3 << 20) + 5, b"x").as_deref(), Some("data (at byte 3145733)"));
        let late = SIZE - (8 << 20);
        assert_eq!(found(late, b"x"), Some(format!("data (at byte {late})")));
        // The backup superblocks of XFS and of Btrfs are also detected.
        assert!(found(SIZE / 2, b"XFSB").is_some());
        assert!(found((256 << 30) + 4096, b"tree").is_some());
    }

    /// Each of the thousand parts contains a sample. Data that is as large as two parts is
    /// therefore detected at every offset.
    #[test]
    fn the_whole_device_is_looked_at() {
        let samples = samples(SIZE, 3);
        let part = SIZE / SAMPLES;
        for start in (0..SAMPLES - 2).map(|number| number * part + part / 3) {
            let within =
                |&&(at, length): &&(u64, u64)| at >= start && at + length <= start + 2 * part;
            assert!(samples.iter().any(|place| within(&place)), "nothing is read behind {start}");
        }
        assert!(samples.iter().all(|(at, length)| at + length <= SIZE));
        assert_ne!(samples, super::samples(SIZE, 4), "other places each time");
        let read_bytes: u64 = samples.iter().map(|(_, length)| length).sum();
        assert!(read_bytes < 100 << 20, "{read_bytes}");
    }

    #[test]
    fn small_devices_are_read_whole() {
        for size_bytes in [0, 512, 4096, 1 << 20, 40 << 20] {
            let mut covered = vec![false; (size_bytes / 512) as usize];
            for (at, length) in samples(size_bytes, 1) {
                assert!(at + length <= size_bytes);
                covered[(at / 512) as usize..((at + length) / 512) as usize].fill(true);
            }
            assert!(covered.iter().all(|sector| *sector), "{size_bytes}");
        }
    }

    #[test]
    fn a_file_is_no_device() {
        let (directory, _file) = image(0, b"");
        let error = Device::open_node(&directory.path().join("disk"), None).unwrap_err();
        assert!(error.to_string().contains("not a block device"), "{error}");
    }
}
