//! The target's files: holes, space never written, compressed or shared extents, and what the file
//! system beneath is set to do with data. Loop devices are followed into their backing files.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Mount, ObservationGap};
use plimsoll_evidence::observed::{BackingFile, Extents, FileSystem};
use plimsoll_sys::extents;
use plimsoll_sys::residency::{self, Residency};
use rustix::fs::{AtFlags, CWD, IFlags, StatxFlags};

use crate::{mount, stack};

/// Extents listed of one file: a terabyte in pieces of a mebibyte.
const EXTENTS_MAX: usize = 1 << 20;
/// `st_blocks` counts these whatever the file system's block is.
const STAT_BLOCK_BYTES: u64 = 512;

/// Where `files` lie, added up; devices are passed over. `None` where none of them is a file.
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
                    would_show: "read permission on the file".into(),
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

fn of_file(path: &Path) -> Result<Option<Extents>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.file_type().is_file() {
        return Ok(None);
    }
    let size_bytes = metadata.len();
    let fd = OwnedFd::from(file);
    let data = extents::data_bytes(&fd).map_err(|error| error.to_string())?;
    let mut found = Extents {
        size_bytes,
        hole_bytes: size_bytes.saturating_sub(data),
        allocated_bytes: Some(metadata.blocks().saturating_mul(STAT_BLOCK_BYTES)),
        ..Extents::default()
    };
    // SEEK_HOLE takes unwritten space for a hole on some file systems; extents tell them apart.
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

/// Backing files of the loop devices beneath `paths`.
pub fn backing_files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let stacks = paths.iter().flat_map(|path| stack::beneath(path).backing);
    let mut files: Vec<PathBuf> =
        stacks.filter(|b| b.is_file && b.path.is_file()).map(|b| b.path).collect();
    files.sort();
    files.dedup();
    files
}

/// What the file system that holds `path` is set to do; `file` is one of the target's on it, whose own
/// attributes go before the mount's.
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

/// What direct I/O on a file has to be aligned to (`STATX_DIOALIGN`, Linux 6.1): 0 where the flag is taken
/// and the I/O buffered, as on ext4 with journalled data; `None` where the file system does not say.
pub(crate) fn direct_align_bytes(file: &Path) -> Option<u32> {
    let asked = StatxFlags::DIOALIGN;
    let stat = rustix::fs::statx(CWD, file, AtFlags::empty(), asked).ok()?;
    let told = StatxFlags::from_bits_retain(stat.stx_mask).contains(asked);
    told.then_some(stat.stx_dio_offset_align)
}

/// How loop devices' backing files stand, with what the page cache holds of them.
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

/// Size of some files together, and what the page cache holds of them; `None` where one cannot be read.
pub fn resident(files: &[PathBuf]) -> Option<(u64, u64)> {
    files.iter().try_fold((0, 0), |(size, held), file| {
        let (one, now) = cached(file)?;
        Some((size + one, held + now.cached_bytes))
    })
}

/// Size of a file and what the page cache holds of it.
fn cached(path: &Path) -> Option<(u64, Residency)> {
    let file = File::open(path).ok()?;
    let size_bytes = file.metadata().ok()?.len();
    Some((size_bytes, residency::of_file(&OwnedFd::from(file)).ok()?))
}

fn dirty(now: Residency) -> Option<u64> {
    Some(now.dirty_bytes? + now.writeback_bytes?)
}

fn inode_flags(file: &Path) -> Option<IFlags> {
    rustix::fs::ioctl_getflags(File::open(file).ok()?).ok()
}

/// `FS_NOCOMP_FL` (include/uapi/linux/fs.h): never to be compressed.
const NO_COMPRESSION: IFlags = IFlags::from_bits_retain(0x400);
/// File systems that never compress.
const PLAIN: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "tmpfs", "ramfs", "vfat", "jfs"];

fn compression(mount: &Mount, flags: Option<IFlags>) -> Option<String> {
    let kind = mount.file_system.as_deref()?;
    if PLAIN.contains(&kind) {
        return Some(String::new());
    }
    if kind != "btrfs" {
        // ZFS, bcachefs, F2FS, network file systems: their settings are not in the mount options.
        return None;
    }
    // No checksums, no compression: a file without copy-on-write is never compressed.
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
    fn holes_data_and_allocation_are_told_apart() {
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

    fn btrfs(options: &str) -> Mount {
        Mount {
            file_system: Some("btrfs".into()),
            options: Some(options.into()),
            ..Mount::default()
        }
    }

    #[test]
    fn btrfs_says_how_it_compresses() {
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
    fn what_other_file_systems_do_is_not_guessed() {
        let mount = Mount { file_system: Some("zfs".into()), ..Mount::default() };
        assert_eq!(compression(&mount, None), None);
        let mount = Mount { file_system: Some("ext4".into()), ..Mount::default() };
        assert_eq!(compression(&mount, None), Some(String::new()));
    }
}
