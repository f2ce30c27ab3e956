//! Opens files and directories, but only inside a directory that is already open. Links and mount
//! points are rejected, and so is everything except regular files and directories.
//!
//! The kernel resolves the name if it supports this (`openat2`, Linux 5.6). Otherwise, Plimsoll
//! opens each part of the name separately, and rejects a part that is on another device.
//!
//! Before Plimsoll opens a file for writing, it resolves the name with `O_PATH`, which does not
//! open the file itself. If the result is a regular file with only one hard link, Plimsoll opens
//! the file through this descriptor. If somebody renames another file to this name in the meantime,
//! Plimsoll therefore never opens that other file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use plimsoll_sys::interrupted;
use rustix::fs::{
    Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fcntl_setfl, fstat, ftruncate, mkdirat,
    openat, openat2,
};
use rustix::io::Errno;

/// Flags with which a directory is opened, so that names can be resolved in it. They require no
/// permission to list the directory.
pub(crate) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Permissions of the directories that Plimsoll creates. Other users must not be able to write
/// there, even if the default ACL permits it.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);

/// Opens a directory whose path is relative to `directory`.
pub(crate) fn directory_in(directory: BorrowedFd<'_>, below: &Path) -> io::Result<OwnedFd> {
    open_in(directory, below, DIRECTORY, Mode::empty()).map_err(|errno| explain_error(errno, below))
}

/// Creates those directories of the path `below` that are missing, and opens the last directory.
pub(crate) fn make_directories(directory: BorrowedFd<'_>, below: &Path) -> io::Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    for part in below.iter().map(Path::new) {
        let from = at.as_ref().map_or(directory, AsFd::as_fd);
        make_directory(from, part)?;
        at = Some(directory_in(from, part)?);
    }
    at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Creates one directory. It is not an error if the directory exists.
fn make_directory(directory: BorrowedFd<'_>, name: &Path) -> io::Result<()> {
    match new_directory(directory, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Creates one directory. It is an error if the directory exists.
pub(crate) fn new_directory(directory: BorrowedFd<'_>, name: &Path) -> io::Result<()> {
    if name.iter().count() != 1 || !is_plain(name) {
        return Err(invalid_name_error());
    }
    Ok(mkdirat(directory, name, DIRECTORY_MODE)?)
}

pub(crate) fn names_in(directory: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = retry(|| openat(directory, ".", flags, Mode::empty()))?;
    let mut names = Vec::new();
    for entry in Dir::new(listed)? {
        let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Opens a regular file for reading. The path is relative to `directory`, and `more` contains
/// additional flags such as `O_DIRECT`. Any other type of file is an error. The open call never
/// blocks.
pub(crate) fn file_in(
    directory: BorrowedFd<'_>,
    below: &Path,
    more: OFlags,
) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let fd = open_in(directory, below, flags, Mode::empty())
        .map_err(|errno| explain_error(errno, below))?;
    let stat = fstat(&fd)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        let says = format!("it is {}, not a file", kind_word(kind));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, says));
    }
    // `O_NONBLOCK` was only necessary for the open call. Reads may block.
    fcntl_setfl(&fd, more & OFlags::DIRECT)?;
    Ok((fd, stat))
}

/// Creates a file and opens it for reading and writing. Its path is relative to `directory`.
///
/// # Errors
/// Fails with `EEXIST` if the name exists.
pub(crate) fn new_file(directory: BorrowedFd<'_>, below: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    open_in(directory, below, flags, FILE_MODE)
}

/// Opens a regular file whose path is relative to `directory`. The flags may include write access.
///
/// # Errors
/// Fails with `ELOOP` for a link, with `EISDIR` for a directory, and with `ENXIO` for a pipe,
/// socket or device. Fails with `EMLINK` if the flags include write access and the file has several
/// names.
pub(crate) fn existing_file(
    directory: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let found = open_in(directory, below, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&found)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(Errno::LOOP),
        FileType::Directory => return Err(Errno::ISDIR),
        _ => return Err(Errno::NXIO),
    }
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    if writes && stat.st_nlink > 1 {
        return Err(Errno::MLINK);
    }
    match reopen(found.as_fd(), flags) {
        // If /proc is not mounted, the name is resolved again.
        Err(Errno::NOENT) => {
            let fd = open_in(directory, below, flags | OFlags::NONBLOCK, Mode::empty())?;
            let again = fstat(&fd)?;
            if (again.st_dev, again.st_ino) != (stat.st_dev, stat.st_ino) {
                return Err(Errno::LOOP);
            }
            fcntl_setfl(&fd, flags & OFlags::DIRECT)?;
            Ok(fd)
        }
        other => other,
    }
}

/// Opens the file to which a descriptor refers that was opened with `O_PATH`.
///
/// # Errors
/// Fails with `ENOENT` if `/proc` is not mounted.
pub(crate) fn reopen(found: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let name = format!("/proc/self/fd/{}", found.as_raw_fd());
    retry(|| rustix::fs::open(&name, flags | OFlags::CLOEXEC, Mode::empty()))
}

/// Opens a file for reading and writing, and creates it if it is missing. Its path is relative to
/// `directory`.
pub(crate) fn open_or_create_file(
    directory: BorrowedFd<'_>,
    below: &Path,
) -> Result<OwnedFd, Errno> {
    loop {
        match new_file(directory, below) {
            Err(Errno::EXIST) => {}
            other => return other,
        }
        match existing_file(directory, below, OFlags::RDWR) {
            // The file was removed between the attempt to create it and the attempt to open it.
            Err(Errno::NOENT) => {}
            other => return other,
        }
    }
}

/// Opens or creates a file like [`open_or_create_file`], and truncates it.
pub(crate) fn truncated_file(directory: BorrowedFd<'_>, below: &Path) -> Result<OwnedFd, Errno> {
    let fd = open_or_create_file(directory, below)?;
    ftruncate(&fd, 0)?;
    Ok(fd)
}

fn retry<T>(call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    interrupted::retry(|errno| *errno == Errno::INTR, call)
}

fn kind_word(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Symlink => "a link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "something else",
    }
}

fn open_in(
    directory: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    if !is_plain(below) {
        return Err(Errno::INVAL);
    }
    let flags = flags | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    match retry(|| openat2(directory, below, flags, mode, resolve)) {
        // `openat2` is missing in older kernels, and some sandboxes block it. It fails with EAGAIN
        // if a rename on this host may have moved the name out of `directory`.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {
            open_by_parts(directory, below, flags, mode)
        }
        other => other,
    }
}

/// Resolves each part of the name separately, and opens the file or directory.
fn open_by_parts(
    directory: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let device = fstat(directory)?.st_dev;
    let parts: Vec<&OsStr> = below.iter().collect();
    let mut at: Option<OwnedFd> = None;
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        let flags = if is_last { flags } else { DIRECTORY };
        let mode = if is_last { mode } else { Mode::empty() };
        let from = at.as_ref().map_or(directory, AsFd::as_fd);
        let next = retry(|| openat(from, *part, flags | OFlags::NOFOLLOW, mode))
            .map_err(|errno| link_error(errno, from, part))?;
        if fstat(&next)?.st_dev != device {
            return Err(Errno::XDEV);
        }
        at = Some(next);
    }
    at.ok_or(Errno::INVAL)
}

/// If a name is a link to a directory, `openat` returns `ENOTDIR`. This function converts this
/// error to `ELOOP`, the error that `openat2` returns.
fn link_error(errno: Errno, from: BorrowedFd<'_>, part: &OsStr) -> Errno {
    let stat = rustix::fs::statat(from, part, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    let is_link = stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Symlink);
    if errno == Errno::NOTDIR && is_link { Errno::LOOP } else { errno }
}

fn invalid_name_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file in the directory")
}

fn explain_error(errno: Errno, below: &Path) -> io::Error {
    let says = match errno {
        Errno::INVAL if !is_plain(below) => return invalid_name_error(),
        Errno::LOOP => "it is a link, or its path contains a link",
        Errno::XDEV => "another file system is mounted there",
        other => return other.into(),
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {says}", below.display()))
}

/// Returns true if a path has only normal components. Such a path is not empty, is not absolute and
/// contains no `..`.
pub(crate) fn is_plain(below: &Path) -> bool {
    let mut parts = below.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::handles::OwnDirectory;
    use super::*;

    fn opened_by_parts(own: &OwnDirectory, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_by_parts(own.fd.as_fd(), Path::new(name), flags, Mode::empty())
    }

    #[test]
    fn only_files_below_the_directory_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("own/sub")).unwrap();
        std::fs::write(at("outside"), "x").unwrap();
        std::fs::write(at("own/sub/file"), "x").unwrap();
        symlink("../outside", at("own/link")).unwrap();
        symlink("sub", at("own/linked")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("own/pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let own = OwnDirectory::open(&at("own")).unwrap();
        let open = |name: &str| {
            let by_kernel = file_in(own.fd.as_fd(), Path::new(name), OFlags::empty());
            let by_parts = opened_by_parts(&own, name, OFlags::RDONLY | OFlags::NONBLOCK);
            if by_kernel.is_ok() {
                assert!(by_parts.is_ok(), "{name}");
            }
            by_kernel.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(open("sub/file"), Ok(()));
        assert!(open("link").unwrap_err().contains("is a link"));
        assert!(open("linked/file").unwrap_err().contains("is a link"));
        assert!(open("pipe").unwrap_err().contains("a pipe"));
        assert!(open("sub").unwrap_err().contains("a directory"));
        for name in ["../outside", "/etc/passwd", "", "sub/../../outside"] {
            assert!(open(name).unwrap_err().contains("not the name of a file in"), "{name}");
        }
        assert_eq!(opened_by_parts(&own, "link", OFlags::RDONLY).unwrap_err(), Errno::LOOP);
        assert_eq!(opened_by_parts(&own, "linked/file", OFlags::RDONLY).unwrap_err(), Errno::LOOP);
        symlink("own", at("another")).unwrap();
        assert!(OwnDirectory::open(&at("another")).is_err());
    }

    #[test]
    fn only_a_regular_file_with_one_name_is_opened_for_writing() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("own/sub")).unwrap();
        std::fs::write(at("outside"), "x").unwrap();
        symlink("../outside", at("own/link")).unwrap();
        std::fs::hard_link(at("outside"), at("own/second-name")).unwrap();
        let pipe = (at("own/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe.0, pipe.1, pipe.2, 0).unwrap();
        let own = OwnDirectory::open(&at("own")).unwrap();
        let open = |name: &str, flags| existing_file(own.fd.as_fd(), Path::new(name), flags);
        for (name, errno) in [
            ("link", Errno::LOOP),
            ("second-name", Errno::MLINK),
            ("pipe", Errno::NXIO),
            ("sub", Errno::ISDIR),
            ("missing", Errno::NOENT),
            ("../outside", Errno::INVAL),
        ] {
            assert_eq!(open(name, OFlags::RDWR).unwrap_err(), errno, "{name}");
        }
        open("second-name", OFlags::RDONLY).unwrap();
        let made = new_file(own.fd.as_fd(), Path::new("file")).unwrap();
        let again = open("file", OFlags::RDWR).unwrap();
        assert_eq!(fstat(&made).unwrap().st_ino, fstat(&again).unwrap().st_ino);
        assert_eq!(new_file(own.fd.as_fd(), Path::new("link")).unwrap_err(), Errno::EXIST);
        assert_eq!(
            open_or_create_file(own.fd.as_fd(), Path::new("link")).unwrap_err(),
            Errno::LOOP
        );
        assert!(make_directories(own.fd.as_fd(), Path::new("a/b/c")).is_ok());
        assert!(at("own/a/b/c").is_dir());
        symlink("../..", at("own/a/up")).unwrap();
        assert!(make_directories(own.fd.as_fd(), Path::new("a/up/made")).is_err());
        assert!(!at("made").exists());
    }
}
