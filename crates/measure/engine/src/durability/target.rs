//! Target of a durability test: a directory, a device, an NFS export or an S3 bucket. After each
//! power cut, the test opens the target again by its path or address. It does not reuse
//! descriptors, because a restored target may be a new mount or a new device node.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_plan::SyncMethod;
use plimsoll_sys::file::{DirectMode, OpenFlags};
use plimsoll_sys::{SysError, file, residency};
use rustix::fs::{Mode, OFlags, fsync, openat, statfs};

use super::blocks::{
    BlockTarget, FileSystemId, OpenBlocks, Reopened, TargetPlace, TestedBlocks, batch_max,
};
use super::nfs_blocks::NfsBlocks;
use super::per_thread::PerThread;
use super::{BLOCK_BYTES, BlockFile, TARGET, content, s3_blocks};
use crate::EngineError;
use crate::matrix::device::Device;
use crate::matrix::manifest::{DataFile, DataState, Manifest, VERSION};
use crate::open_target::HeldTarget;
use crate::open_target::handles::{OwnDirectory, TargetDirectory};
use crate::work_dir::find_manifest::read_manifest_in;
use crate::work_dir::removal::remove;
use crate::work_dir::space::{Space, seen};
use crate::work_dir::{
    DataManifest, Locks, create_own_directories, failed, finish_removals, lock_all,
    named_directories, own_name,
};

/// Name of the directory that the test creates, without the prefix `plimsoll-`.
const NAME: &str = "durability";
/// Name of the tested file in the test's directory.
const FILE: &str = "blocks";
/// Size of each write in the first pass, in bytes.
const LAYOUT_BYTES: usize = 1 << 20;

/// Returns the space that a test of `size_bytes` needs in a directory, and the space that is free
/// there.
#[must_use]
pub fn directory_space(path: &Path, size_bytes: u64) -> Space {
    seen(NAME, path.to_path_buf(), size_bytes)
}

/// Tested file or device that is open on this host.
#[derive(Debug)]
struct LocalBlocks {
    /// One file descriptor for each thread. Linux reports a failed write-back only once for each
    /// descriptor. If threads shared a descriptor, a thread's fsync would succeed after another
    /// thread's fsync had already reported the failure.
    writers: PerThread<File>,
    file: PathBuf,
    writer_flags: OpenFlags,
    reader: File,
    is_reader_direct: bool,
    sync: SyncMethod,
    own: HeldTarget,
    manifest: Option<Manifest>,
    // The target is locked until it is closed.
    _device: Option<Device>,
    _locks: Option<Locks>,
}

impl LocalBlocks {
    fn opened(self, file_system: Option<FileSystemId>) -> OpenBlocks {
        OpenBlocks { blocks: Arc::new(self), file_system }
    }
}

impl BlockTarget {
    /// Creates the tested file or opens the device exclusively. Then writes each block once and
    /// makes these writes durable.
    ///
    /// # Errors
    /// Fails if the target is unusable, in use or too small, or if it contains other data.
    pub fn create(&self) -> Result<OpenBlocks, EngineError> {
        let open = match &self.place {
            TargetPlace::Device(path) => self.open_device(path)?.opened(None),
            TargetPlace::Directory(path) => self.create_file(path)?.opened(file_system_of(path)),
            TargetPlace::Nfs(url) => NfsBlocks::create(self, url)?,
            TargetPlace::S3(address) => s3_blocks::create(self, address)?,
        };
        match self.write_all_blocks(&*open.blocks) {
            Ok(()) => Ok(open),
            Err(error) => {
                // An error of the removal is ignored: the caller must receive the first error.
                drop(open.blocks.remove());
                Err(error)
            }
        }
    }

    fn create_file(&self, path: &Path) -> Result<LocalBlocks, EngineError> {
        let name = path.display().to_string();
        let needs = "the test creates its file in a directory";
        let named = named_directories(std::iter::once(&name), needs, None)?;
        let locks = lock_all(&named)?;
        let own_name = own_name(NAME);
        named.iter().for_each(|directory| drop(finish_removals(directory, Some(&own_name))));
        if let Some(error) = directory_space(path, self.size_bytes).lacking() {
            return Err(error);
        }
        let (made, _) = create_own_directories(&named, &own_name)?;
        let directories: Vec<PathBuf> = made.iter().map(|own| own.path.clone()).collect();
        let file = directories.first().map_or_else(PathBuf::new, |own| own.join(FILE));
        let manifest = Manifest {
            data_version: VERSION,
            data_id: self.data_id,
            plan: NAME.to_owned(),
            unit_bytes: BLOCK_BYTES,
            directories,
            files: vec![DataFile {
                path: file.clone(),
                size_bytes: self.size_bytes,
                compressibility: 1.0,
                duplicate_share: 0.0,
                stamps: true,
            }],
            generations: PathBuf::from("/"),
            state: DataState::InUse,
        };
        let own = HeldTarget::of_directories(made);
        let made = manifest.write(&own).and_then(|()| {
            own.create(&file).map_err(|error| EngineError::system("creating a file", error))
        });
        let opened = made.and_then(|_| {
            named.iter().try_for_each(|directory| sync_directory(directory.fd.as_fd(), path))?;
            own.directories()
                .iter()
                .try_for_each(|own| sync_directory(own.fd.as_fd(), &own.path))?;
            self.open_files(own.clone(), &file)
        });
        match opened {
            Ok(open) => Ok(LocalBlocks { manifest: Some(manifest), _locks: Some(locks), ..open }),
            Err(error) => {
                for directory in own.directories() {
                    // An error of the removal is ignored: the caller must receive the first error.
                    drop(remove(directory, &manifest.contents()));
                }
                Err(error)
            }
        }
    }

    fn open_device(&self, path: &Path) -> Result<LocalBlocks, EngineError> {
        let node = Device::open_node(path, None)?;
        let device = Device::claim(&node, true, &self.destroy, self.data_id)?;
        if device.size_bytes < self.size_bytes {
            return Err(EngineError::TooSmall {
                path: path.to_path_buf(),
                needed_bytes: self.size_bytes,
                free_bytes: device.size_bytes,
            });
        }
        let open = self.open_files(HeldTarget::of_device(node), path)?;
        Ok(LocalBlocks { _device: Some(device), ..open })
    }

    fn open_files(&self, own: HeldTarget, file: &Path) -> Result<LocalBlocks, EngineError> {
        let opening = |error| EngineError::system("opening the target", error);
        let direct = match (self.sync, self.direct) {
            (SyncMethod::DirectOnly, _) | (_, true) => DirectMode::Required,
            _ => DirectMode::Off,
        };
        let dsync = self.sync == SyncMethod::Dsync;
        let flags = OpenFlags { write: true, dsync, direct, ..OpenFlags::default() };
        let writer_flags = flags;
        // The first pass writes the whole target. If the target cannot be written, the test fails
        // here, before the first thread starts.
        drop(own.open(file, writer_flags).map_err(opening)?);
        let flags = OpenFlags { direct: DirectMode::Auto, ..OpenFlags::default() };
        let reader = own.open(file, flags).map_err(opening)?;
        Ok(LocalBlocks {
            is_reader_direct: reader.is_direct(),
            writers: PerThread::new(),
            file: file.to_owned(),
            writer_flags,
            reader: File::from(reader.fd),
            sync: self.sync,
            own,
            manifest: None,
            _device: None,
            _locks: None,
        })
    }

    fn write_all_blocks(&self, blocks: &dyn TestedBlocks) -> Result<(), EngineError> {
        let content = content(self.data_id, self.size_bytes)?;
        let mut buffer = plimsoll_sys::arena::AlignedBuffer::new(LAYOUT_BYTES)
            .map_err(|error| EngineError::system("reserving a buffer", error))?;
        let writing = |error: &io::Error| {
            let error = SysError::from_io("write", error).at(self.place.path());
            EngineError::system("writing all blocks", error)
        };
        let mut at = 0;
        while at < self.size_bytes {
            let size = LAYOUT_BYTES.min((self.size_bytes - at) as usize);
            let bytes = &mut buffer.as_mut_slice()[..size];
            content
                .fill(TARGET, at, |_| 1, bytes)
                .map_err(|error| EngineError::Config(error.to_string()))?;
            blocks.write_at(bytes, at).map_err(|error| writing(&error))?;
            at += size as u64;
        }
        // From here on, the data, the file length and the block map that the first pass wrote count
        // as acknowledged.
        blocks.sync_all().map_err(|error| writing(&error))
    }

    /// Opens the target after a power cut. `file_system` is the identity of its file system before
    /// the power cut.
    ///
    /// # Errors
    /// Fails if the target is not yet available again.
    pub fn reopen(&self, file_system: Option<&FileSystemId>) -> Result<Reopened, EngineError> {
        let path = match &self.place {
            TargetPlace::Device(path) => {
                // The device contains the data of this test, so it may be overwritten.
                let own = Self { destroy: vec![path.clone()], ..self.clone() };
                return own.open_device(path).map(|open| Reopened::Open(open.opened(None)));
            }
            TargetPlace::Nfs(url) => return NfsBlocks::reopen(self, url, file_system),
            TargetPlace::S3(address) => return s3_blocks::reopen(self, address),
            TargetPlace::Directory(path) => path,
        };
        let opening = |error: &io::Error| failed("opening the target", "open", path, error);
        let directory = TargetDirectory::open(path).map_err(|error| opening(&error))?;
        // If the tested file system is not mounted, its mount point is a directory of another file
        // system.
        let missing = || self.missing(file_system_of(path).as_ref() == file_system);
        let own = match OwnDirectory::open_in(&directory, own_name(NAME).as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return missing(),
            other => other.map_err(|error| opening(&error))?,
        };
        let manifest = match read_manifest_in::<Manifest>(&own, &own.path) {
            // The manifest was also synced before the power cut. If its content has changed,
            // acknowledged data was lost.
            Err(EngineError::Config(_)) => None,
            other => other?,
        };
        let Some(manifest) = manifest.filter(|manifest| manifest.data_id == self.data_id) else {
            return missing();
        };
        let file = own.path.join(FILE);
        let locks = lock_all(std::slice::from_ref(&directory))?;
        let opened = self.open_files(HeldTarget::of_directories(vec![own]), &file);
        let open = match opened {
            Err(EngineError::System { source, .. }) if source.errno == libc::ENOENT => {
                return Ok(Reopened::FileLost);
            }
            other => other?,
        };
        let size = open.reader.metadata().map_err(|error| opening(&error))?.len();
        if size < self.size_bytes {
            return Ok(Reopened::FileLost);
        }
        let open = LocalBlocks { manifest: Some(manifest), _locks: Some(locks), ..open };
        Ok(Reopened::Open(open.opened(file_system_of(path))))
    }
}

/// Syncs a directory, which may have been opened with `O_PATH`.
fn sync_directory(directory: std::os::fd::BorrowedFd<'_>, path: &Path) -> Result<(), EngineError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let synced = openat(directory, ".", flags, Mode::empty()).and_then(fsync);
    synced.map_err(|errno| failed("syncing a directory", "fsync", path, &errno.into()))
}

fn file_system_of(path: &Path) -> Option<FileSystemId> {
    let stat = statfs(path).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between platforms")]
    Some((stat.f_type as i64, format!("{:?}", stat.f_fsid)))
}

impl TestedBlocks for LocalBlocks {
    fn sync_all(&self) -> io::Result<()> {
        self.with_writer(File::sync_all)
    }

    /// Returns true if reads bypass the page cache, or if the page cache contains no data of the
    /// file.
    fn drop_cache(&self) -> bool {
        let fd = std::os::fd::OwnedFd::from(match self.reader.try_clone() {
            Ok(file) => file,
            Err(_) => return false,
        });
        // Dirty pages stay in the page cache. In that case, the residency is not zero.
        let _ = file::drop_cached(&fd);
        self.is_reader_direct || residency::of_file(&fd).is_ok_and(|found| found.cached_bytes == 0)
    }

    fn remove(&self) -> Result<(), EngineError> {
        let Some(manifest) = &self.manifest else { return Ok(()) };
        self.own.directories().iter().try_for_each(|own| remove(own, &manifest.contents()))
    }
}

impl LocalBlocks {
    /// Executes an operation on the descriptor of this thread.
    fn with_writer(&self, carry_out: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        let open = || {
            let opened = self.own.open(&self.file, self.writer_flags);
            let opened =
                opened.map_err(|error| EngineError::system("opening the target", error))?;
            Ok(File::from(opened.fd))
        };
        self.writers.with(open, |file| carry_out(file))
    }
}

impl BlockFile for LocalBlocks {
    fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        self.with_writer(|file| file.write_all_at(bytes, offset_bytes))
    }

    fn sync(&self) -> io::Result<()> {
        match self.sync {
            SyncMethod::Fsync => self.with_writer(File::sync_all),
            SyncMethod::Fdatasync => self.with_writer(File::sync_data),
            SyncMethod::Dsync | SyncMethod::DirectOnly => Ok(()),
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        self.reader.read_exact_at(bytes, offset_bytes)
    }

    fn batch_max(&self) -> usize {
        batch_max(self.sync)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durability::blocks::TargetPlace;

    /// Returns how many descriptors this process has open for a file.
    fn descriptors(file: &Path) -> usize {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|path| path == file)).count()
    }

    /// Linux reports a failed write-back once for each descriptor. If threads shared a descriptor,
    /// one thread's flush would fail and the next thread's flush would succeed.
    #[test]
    fn each_writing_thread_has_a_descriptor_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let target = BlockTarget {
            place: TargetPlace::Directory(directory.path().to_owned()),
            size_bytes: 1 << 20,
            data_id: 1,
            sync: SyncMethod::Fsync,
            direct: false,
            destroy: Vec::new(),
            timeout: std::time::Duration::from_secs(30),
        };
        let open = target.create().unwrap();
        let own = std::fs::read_dir(directory.path()).unwrap().flatten().next().unwrap();
        let file = own.path().join(FILE).canonicalize().unwrap();
        let before = descriptors(&file);
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let (open, barrier, file) = (&open, &barrier, &file);
                scope.spawn(move || {
                    open.blocks.write_at(&[1; 4096], thread * 4096).unwrap();
                    open.blocks.sync().unwrap();
                    barrier.wait();
                    assert_eq!(descriptors(file), before + 2);
                    barrier.wait();
                });
            }
        });
        open.blocks.remove().unwrap();
    }
}
