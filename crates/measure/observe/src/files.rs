//! Examines the files of the target and the backing files of loop devices. The results are holes,
//! extents that are unwritten, compressed or shared, and the data settings of the file system.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Mount, ObservationGap};
use plimsoll_evidence::observed::{BackingFile, Extents, FileSystem};
use plimsoll_sys::extents;
use plimsoll_sys::residency::{self, Residency};
use rustix::fs::{AtFlags, CWD, FileType, IFlags, Mode, OFlags, StatxFlags};

use crate::{mount, stack};

/// Maximum number of extents that are listed for a file. A file of 1 TiB can be listed in full if
/// its extents have 1 MiB.
const EXTENTS_MAX: usize = 1 << 20;
/// Unit of `st_blocks` in bytes. It does not depend on the block size of the file system.
const STAT_BLOCK_BYTES: u64 = 512;

/// Counts the extents of `files`. Devices are ignored. `None` if no path is a file.
pub fn extents_of(files: &[PathBuf], unknown: &mut Vec<ObservationGap>) -> Option<Extents> {
    let mut sum: Option<Extents> = None;
    for path in files {
        match of_file(path) {
            Ok(Some(extents)) => sum = Some(add(sum, extents)),
            Ok(None) => {}
            Err(error) => {
                unknown.push(ObservationGap {
                    what: format!("holes and extents of {}", path.display()),
                    why: error,
                    remedy: "read permission on the file".into(),
                });
                return None;
            }
        }
    }
    sum
}

fn add(sum: Option<Extents>, one: Extents) -> Extents {
    let Some(sum) = sum else { return one };
    let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    Extents {
        size_bytes: sum.size_bytes + one.size_bytes,
        hole_bytes: sum.hole_bytes + one.hole_bytes,
        unwritten_bytes: both(sum.unwritten_bytes, one.unwritten_bytes),
        extents: both(sum.extents, one.extents),
        shared_bytes: both(sum.shared_bytes, one.shared_bytes),
        encoded_bytes: both(sum.encoded_bytes, one.encoded_bytes),
        allocated_bytes: both(sum.allocated_bytes, one.allocated_bytes),
        empty_in_working_set_bytes: None,
    }
}

/// Opens a regular file for reading; `None` if the path is not a regular file.
///
/// The owner of the directory may replace a file by a FIFO or by a device. `open` would block on a
/// FIFO, and could have side effects on a device. The function therefore checks the kind of the
/// file before it opens the file.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if !FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode).is_file() {
        return Ok(None);
    }
    // The function of the standard library would repeat this call without a limit, so it is not
    // used here.
    let name = format!("/proc/self/fd/{}", found.as_raw_fd());
    let opened = rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(Some(File::from(opened)))
}

fn of_file(path: &Path) -> Result<Option<Extents>, String> {
    let Some(file) = open_regular(path).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    let size_bytes = metadata.len();
    let fd = OwnedFd::from(file);
    let data = extents::data_bytes(&fd).map_err(|error| error.to_string())?;
    let mut found = Extents {
        size_bytes,
        hole_bytes: size_bytes.saturating_sub(data),
        allocated_bytes: Some(metadata.blocks().saturating_mul(STAT_BLOCK_BYTES)),
        ..Extents::default()
    };
    // On some file systems, SEEK_HOLE treats unwritten space as a hole. FIEMAP distinguishes the
    // two.
    let Ok((list, true)) = extents::extents(&fd, EXTENTS_MAX) else { return Ok(Some(found)) };
    let within = |extent: &extents::Extent| {
        let end = extent.logical_bytes.saturating_add(extent.length_bytes).min(size_bytes);
        end.saturating_sub(extent.logical_bytes)
    };
    let sum = |pick: fn(&extents::Extent) -> bool| {
        list.iter().filter(|extent| pick(extent)).map(within).sum::<u64>()
    };
    found.hole_bytes = size_bytes.saturating_sub(sum(|_| true));
    found.unwritten_bytes = Some(sum(|extent| extent.unwritten));
    found.shared_bytes = Some(sum(|extent| extent.shared));
    found.encoded_bytes = Some(sum(|extent| extent.encoded));
    found.extents = Some(list.len() as u64);
    Ok(Some(found))
}

/// Returns the backing files of the loop devices that store `paths`.
pub fn backing_files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let stacks = paths.iter().flat_map(|path| stack::read(path).backing);
    let mut files: Vec<PathBuf> =
        stacks.filter(|b| b.is_file && b.path.is_file()).map(|b| b.path).collect();
    files.sort();
    files.dedup();
    files
}

/// Reads the data settings of the file system at `path`. `file` is a file of the target on this
/// file system. The attributes of this file override the mount options.
pub fn file_system(path: &Path, file: Option<&Path>) -> FileSystem {
    let mount = mount::describe(path);
    let flags = file.and_then(inode_flags);
    let is_device =
        std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    FileSystem {
        path: path.display().to_string(),
        compression: if is_device { Some(String::new()) } else { compression(&mount, flags) },
        checksums: checksums(&mount, flags),
        direct_align_bytes: file.filter(|_| !is_device).and_then(direct_align_bytes),
        memory: mount.file_system.as_deref().map(|kind| matches!(kind, "tmpfs" | "ramfs")),
        size_bytes: mount.size_bytes,
        free_bytes: mount.free_bytes,
        kind: mount.file_system,
    }
}

/// Returns the alignment that a file requires for direct I/O (`STATX_DIOALIGN`, Linux 6.1). Returns
/// 0 if the file system accepts `O_DIRECT` but buffers the I/O nevertheless, as ext4 does with
/// journalled data. `None` if unknown.
pub(crate) fn direct_align_bytes(file: &Path) -> Option<u32> {
    let requested = StatxFlags::DIOALIGN;
    let stat = rustix::fs::statx(CWD, file, AtFlags::empty(), requested).ok()?;
    let reported = StatxFlags::from_bits_retain(stat.stx_mask).contains(requested);
    reported.then_some(stat.stx_dio_offset_align)
}

/// State of the backing files of loop devices, including the share that is in the page cache.
#[derive(Clone, Debug)]
pub(crate) struct BackingWatch {
    files: Vec<(BackingFile, PathBuf)>,
}

impl BackingWatch {
    pub(crate) fn begin(backing: &[stack::BackingFile]) -> Self {
        let begin = |file: &stack::BackingFile| {
            let known = file.is_file.then(|| cached(&file.path)).flatten();
            let now = BackingFile {
                device: file.device.clone(),
                path: file.path.display().to_string(),
                size_bytes: known.map(|(size, _)| size),
                resident_bytes_before: known.map(|(_, now)| now.cached_bytes),
                dirty_bytes_before: known.and_then(|(_, now)| dirty(now)),
                direct_align_bytes: direct_align_bytes(&file.path),
                ..BackingFile::default()
            };
            (now, file.path.clone())
        };
        Self { files: backing.iter().map(begin).collect() }
    }

    pub(crate) fn end(&self) -> Vec<BackingFile> {
        let end = |(before, path): &(BackingFile, PathBuf)| {
            let known = before.size_bytes.and_then(|_| cached(path));
            BackingFile {
                resident_bytes_after: known.map(|(_, now)| now.cached_bytes),
                dirty_bytes_after: known.and_then(|(_, now)| dirty(now)),
                ..before.clone()
            }
        };
        self.files.iter().map(end).collect()
    }
}

/// Returns two numbers: the total size of files, and the number of their bytes in the page cache.
/// `None` if a file cannot be read.
pub fn resident(files: &[PathBuf]) -> Option<(u64, u64)> {
    files.iter().try_fold((0, 0), |(size, held), file| {
        let (one, now) = cached(file)?;
        Some((size + one, held + now.cached_bytes))
    })
}

/// Returns two numbers: the size of a file, and the number of its bytes in the page cache.
fn cached(path: &Path) -> Option<(u64, Residency)> {
    let file = open_regular(path).ok()??;
    let size_bytes = file.metadata().ok()?.len();
    Some((size_bytes, residency::of_file(&OwnedFd::from(file)).ok()?))
}

fn dirty(now: Residency) -> Option<u64> {
    Some(now.dirty_bytes? + now.writeback_bytes?)
}

fn inode_flags(file: &Path) -> Option<IFlags> {
    rustix::fs::ioctl_getflags(open_regular(file).ok()??).ok()
}

/// If this flag is set, the file is never compressed (`FS_NOCOMP_FL`, include/uapi/linux/fs.h).
const NO_COMPRESSION: IFlags = IFlags::from_bits_retain(0x400);
/// File systems that cannot compress data.
const PLAIN: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "tmpfs", "ramfs", "vfat", "jfs"];

fn compression(mount: &Mount, flags: Option<IFlags>) -> Option<String> {
    let kind = mount.file_system.as_deref()?;
    if PLAIN.contains(&kind) {
        return Some(String::new());
    }
    if kind != "btrfs" {
        // The mount options of ZFS, bcachefs, F2FS and network file systems do not show whether
        // data is compressed.
        return None;
    }
    // Files without copy-on-write have no checksums and are never compressed.
    if flags.is_some_and(|flags| flags.contains(IFlags::NOCOW)) {
        return Some(String::new());
    }
    let options = mount.options.as_deref().unwrap_or_default().split(',');
    let of_mount = options.into_iter().find_map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, "zlib"));
        let forced = name == "compress-force";
        (forced || name == "compress").then(|| (forced, value.to_owned()))
    });
    Some(match of_mount {
        Some((true, word)) => word,
        _ if flags.is_some_and(|flags| flags.contains(NO_COMPRESSION)) => String::new(),
        Some((false, word)) => word,
        None if flags.is_some_and(|flags| flags.contains(IFlags::COMPRESSED)) => "on".to_owned(),
        None => String::new(),
    })
}

fn checksums(mount: &Mount, flags: Option<IFlags>) -> Option<bool> {
    match mount.file_system.as_deref()? {
        "btrfs" => {
            let options = mount.options.as_deref().unwrap_or_default();
            let off = options.split(',').any(|o| matches!(o, "nodatasum" | "nodatacow"))
                || flags.is_some_and(|flags| flags.contains(IFlags::NOCOW));
            Some(!off)
        }
        "zfs" | "bcachefs" => None,
        kind if PLAIN.contains(&kind) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn distinguishes_holes_data_and_allocation() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let (full, sparse) = (folder.path().join("full"), folder.path().join("sparse"));
        std::fs::write(&full, vec![1u8; 1 << 20]).unwrap();
        File::create(&sparse).unwrap().set_len(1 << 20).unwrap();
        let mut unknown = Vec::new();
        let found = extents_of(&[full, sparse], &mut unknown).unwrap();
        assert_eq!((found.size_bytes, found.hole_bytes), (2 << 20, 1 << 20));
        assert!(unknown.is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_read_is_unknown() {
        let mut unknown = Vec::new();
        assert_eq!(extents_of(&[PathBuf::from("/nowhere/file")], &mut unknown), None);
        assert_eq!(unknown.len(), 1);
    }

    #[test]
    fn a_fifo_in_place_of_a_file_is_not_opened() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        let mut unknown = Vec::new();
        assert_eq!(extents_of(std::slice::from_ref(&fifo), &mut unknown), None);
        assert!(unknown.is_empty());
        assert_eq!((resident(std::slice::from_ref(&fifo)), inode_flags(&fifo)), (None, None));
    }

    fn btrfs(options: &str) -> Mount {
        Mount {
            file_system: Some("btrfs".into()),
            options: Some(options.into()),
            ..Mount::default()
        }
    }

    #[test]
    fn reads_the_compression_of_btrfs() {
        let of = |options, flags| compression(&btrfs(options), flags).unwrap();
        assert_eq!(of("rw,compress-force=zstd:3,space_cache", None), "zstd:3");
        assert_eq!(of("rw,compress=lzo", Some(NO_COMPRESSION)), "");
        assert_eq!(of("rw,compress-force=lzo", Some(IFlags::NOCOW)), "");
        assert_eq!(of("rw", Some(IFlags::COMPRESSED)), "on");
        assert_eq!(of("rw", None), "");
        assert_eq!(checksums(&btrfs("rw,nodatasum"), None), Some(false));
        assert_eq!(checksums(&btrfs("rw"), None), Some(true));
    }

    #[test]
    fn settings_of_other_file_systems_are_unknown() {
        let mount = Mount { file_system: Some("zfs".into()), ..Mount::default() };
        assert_eq!(compression(&mount, None), None);
        let mount = Mount { file_system: Some("ext4".into()), ..Mount::default() };
        assert_eq!(compression(&mount, None), Some(String::new()));
    }
}
