//! Open handles of a target's directories or device. They stay open while a run uses the target.
//!
//! The path of a directory is resolved once. After that, everything is opened, created and removed
//! relative to the open directory. If the directory is renamed or replaced by a link, the run is
//! not affected.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_sys::SysError;
use plimsoll_sys::file::{self, OpenFile, OpenFlags};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, unlinkat};
use rustix::io::Errno;

use super::openat::{
    directory_in, existing_file, make_directories, names_in, new_directory, new_file, reopen,
};
use super::resolve::{open_named, real_path, split};
use super::{DEV_NULL, sys_error};

/// Open directory that a plan names as its target.
#[derive(Clone, Debug)]
pub(crate) struct TargetDirectory {
    /// Path of the directory when it was opened. The path contains no links.
    pub path: PathBuf,
    pub fd: Arc<OwnedFd>,
}

impl TargetDirectory {
    /// Opens the directory `path`. The path may contain links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = open_named(path)?;
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        let real = match real_path(fd.as_fd()) {
            Some(real) => real,
            None => path.canonicalize()?,
        };
        Ok(Self { path: real, fd: Arc::new(fd) })
    }

    /// Returns the device number and the inode number of the directory.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        identity(&self.fd)
    }
}

fn identity(fd: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Open directory that Plimsoll created for its data.
#[derive(Debug)]
pub(crate) struct OwnDirectory {
    /// Path of the directory, as recorded in the manifest.
    pub path: PathBuf,
    /// Open handle of the parent directory. If the directory is only opened for reading, this is
    /// the directory itself.
    pub parent: TargetDirectory,
    pub fd: OwnedFd,
}

impl OwnDirectory {
    /// Returns the device number and the inode number of the directory.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        identity(&self.fd)
    }

    /// Opens the directory `path`. The path of its parent may contain links. The directory itself
    /// must not be a link, and it must be on the same mount as its parent.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (above, name) = split(path)?;
        Self::open_in(&TargetDirectory::open(above)?, name)
    }

    /// Opens the directory `name`, which is inside an open directory.
    pub fn open_in(parent: &TargetDirectory, name: &OsStr) -> io::Result<Self> {
        let fd = directory_in(parent.fd.as_fd(), Path::new(name))?;
        Ok(Self { path: parent.path.join(name), parent: parent.clone(), fd })
    }

    /// Opens a directory that the operator stated, to read its contents. The directory may be a
    /// mount point, and its path may contain links.
    pub fn named(path: &Path) -> io::Result<Self> {
        let parent = TargetDirectory::open(path)?;
        let fd = parent.fd.try_clone()?;
        Ok(Self { path: path.to_path_buf(), parent, fd })
    }

    /// Creates the directory `name` and opens it.
    ///
    /// # Errors
    /// Fails if the name exists, or if another user has replaced the new directory.
    pub fn make(parent: &TargetDirectory, name: &OsStr) -> io::Result<Self> {
        new_directory(parent.fd.as_fd(), Path::new(name))?;
        let own = Self::open_in(parent, name)?;
        if !names_in(own.fd.as_fd())?.is_empty() || !own.is_of_this_user()? {
            let says = "another user replaced the new directory";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, says));
        }
        Ok(own)
    }

    /// Returns the name that the directory has in its parent.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Returns true if no other user can write to the directory. Some file systems have no owners,
    /// and some servers map root to another user. On these, the function checks instead that a new
    /// file gets the same owner as the directory.
    fn is_of_this_user(&self) -> io::Result<bool> {
        const OTHERS_WRITE: u32 = 0o022;
        let own = fstat(&self.fd)?;
        if own.st_uid == rustix::process::geteuid().as_raw() && own.st_mode & OTHERS_WRITE == 0 {
            return Ok(true);
        }
        let name = Path::new(".plimsoll-owner");
        let made = fstat(new_file(self.fd.as_fd(), name)?);
        unlinkat(&self.fd, name, AtFlags::empty())?;
        let made = made?;
        let is_alike = own.st_mode & OTHERS_WRITE == 0 || made.st_mode & OTHERS_WRITE != 0;
        Ok(made.st_uid == own.st_uid && is_alike)
    }
}

/// Block device that was opened with `O_PATH`.
#[derive(Debug)]
pub(crate) struct HeldDevice {
    /// Path of the device in the plan.
    pub path: PathBuf,
    pub number: u64,
    /// Descriptor of the device's node.
    pub node: OwnedFd,
}

impl HeldDevice {
    /// Opens the node of the block device `path`. Returns `None` if the path is not a block device.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let node = open_named(path)?;
        let stat = fstat(&node)?;
        let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        Ok(is_device.then(|| Self { path: path.to_path_buf(), number: stat.st_rdev, node }))
    }

    /// Opens the device for I/O.
    pub fn reopen(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let fd = match reopen(self.node.as_fd(), flags) {
            // If /proc is not mounted, the path of the device is resolved again.
            Err(Errno::NOENT) => {
                rustix::fs::open(&self.path, flags | OFlags::CLOEXEC, Mode::empty())?
            }
            other => other?,
        };
        let stat = fstat(&fd)?;
        let is_same = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
            && stat.st_rdev == self.number;
        if is_same { Ok(fd) } else { Err(Errno::NODEV) }
    }
}

/// Open handles of a run's directories or device. With these handles, a run can open only paths
/// inside the directories. If there are no handles, any path can be opened. This case is used for
/// files that the caller created.
#[derive(Clone, Debug, Default)]
pub struct HeldTarget(Arc<TargetHandles>);

#[derive(Debug, Default)]
struct TargetHandles {
    directories: Vec<OwnDirectory>,
    device: Option<HeldDevice>,
}

impl HeldTarget {
    pub(crate) fn of_directories(directories: Vec<OwnDirectory>) -> Self {
        Self(Arc::new(TargetHandles { directories, device: None }))
    }

    pub(crate) fn of_device(device: HeldDevice) -> Self {
        Self(Arc::new(TargetHandles { directories: Vec::new(), device: Some(device) }))
    }

    /// Returns the directories that the run created.
    pub(crate) fn directories(&self) -> &[OwnDirectory] {
        &self.0.directories
    }

    /// Returns the directories that the run created. If one directory has several paths, it is
    /// returned only once.
    pub(crate) fn each_directory(&self) -> impl Iterator<Item = &OwnDirectory> {
        let all = &self.0.directories;
        let is_first = move |at: usize, own: &OwnDirectory| {
            let known = identity(&own.fd).ok();
            known.is_none() || !all[..at].iter().any(|before| identity(&before.fd).ok() == known)
        };
        all.iter().enumerate().filter(move |(at, own)| is_first(*at, own)).map(|(_, own)| own)
    }

    /// Returns the directory of the run that contains `path`, and the path relative to this
    /// directory.
    pub(crate) fn own_directory_of<'p>(
        &self,
        path: &'p Path,
    ) -> Result<(&OwnDirectory, &'p Path), SysError> {
        let mut all = self.0.directories.iter();
        all.find_map(|own| Some((own, path.strip_prefix(&own.path).ok()?)))
            .ok_or_else(|| SysError::new("open", libc::EXDEV).at(path))
    }

    /// Opens an existing file of the run, or its device.
    ///
    /// # Errors
    /// Fails if the path is outside the run's directories, is a link, or is not a regular file.
    pub fn open(&self, path: &Path, flags: OpenFlags) -> Result<OpenFile, SysError> {
        let TargetHandles { directories, device } = &*self.0;
        let is_unbound = directories.is_empty() && device.is_none();
        if is_unbound || (path == Path::new(DEV_NULL) && !flags.write) {
            return file::open(path, flags);
        }
        if flags.create {
            return Err(SysError::new("open", libc::EINVAL).at(path));
        }
        let failed = |errno: Errno| SysError::new("open", errno.raw_os_error()).at(path);
        if let Some(device) = device {
            if device.path != path {
                return Err(failed(Errno::XDEV));
            }
            return file::open_with(flags, |raw| device.reopen(oflags(raw)).map_err(failed));
        }
        let (own, below) = self.own_directory_of(path)?;
        file::open_with(flags, |raw| {
            existing_file(own.fd.as_fd(), below, oflags(raw)).map_err(failed)
        })
    }

    /// Creates a file in a directory of the run.
    pub(crate) fn create(&self, path: &Path) -> Result<OwnedFd, SysError> {
        let (own, below) = self.own_directory_of(path)?;
        new_file(own.fd.as_fd(), below)
            .map_err(|errno| SysError::new("open", errno.raw_os_error()).at(path))
    }

    /// Creates those directories of the path that are missing, and opens the last directory.
    pub(crate) fn make_directories(&self, path: &Path) -> Result<OwnedFd, SysError> {
        let (own, below) = self.own_directory_of(path)?;
        let made = if below == Path::new("") {
            own.fd.try_clone()
        } else {
            make_directories(own.fd.as_fd(), below)
        };
        made.map_err(|error| sys_error("mkdir", path, &error))
    }

    /// Returns the directories that the run created. Operations on names are relative to these
    /// directories.
    pub(crate) fn roots(&self) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
        let root = |own: &OwnDirectory| Ok((own.path.clone(), own.fd.try_clone()?));
        self.0.directories.iter().map(root).collect()
    }
}

fn oflags(raw: libc::c_int) -> OFlags {
    OFlags::from_bits_retain(raw.cast_unsigned())
}
