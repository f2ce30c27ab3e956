//! Opening what lies in a directory of ours, and nothing else: no link is followed, no other mount is
//! entered, and only regular files and directories are opened.
//!
//! The kernel does the walking where it can (`openat2`, Linux 5.6); elsewhere each part of the name is
//! opened by itself, and an other device ends the walk.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fcntl_setfl, fstat, openat, openat2};
use rustix::io::Errno;

/// A directory of ours, open.
#[derive(Debug)]
pub(crate) struct OwnDirectory {
    /// The directory that it lies in; itself where only what lies in it is read.
    pub parent: OwnedFd,
    /// Itself.
    pub fd: OwnedFd,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl OwnDirectory {
    /// Opens the directory `path`. Its parent may be reached through links, as a target may; itself it
    /// must be a directory, no link, and on its parent's mount.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let above = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let parent = rustix::fs::open(above, DIRECTORY, Mode::empty())?;
        let fd = directory_in(parent.as_fd(), Path::new(name))?;
        Ok(Self { parent, fd })
    }

    /// Opens a directory that the operator named, for reading what lies in it: it may be a mount point, and
    /// be reached through links.
    pub fn named(path: &Path) -> io::Result<Self> {
        let fd = rustix::fs::open(path, DIRECTORY, Mode::empty())?;
        let parent = fd.try_clone()?;
        Ok(Self { parent, fd })
    }
}

/// Opens a directory below `directory`.
pub(crate) fn directory_in(directory: BorrowedFd<'_>, below: &Path) -> io::Result<OwnedFd> {
    open_in(directory, below, DIRECTORY)
}

/// Opens a regular file below `directory` for reading, with `more` flags such as `O_DIRECT`. Anything
/// else of that name is an error, and is not waited for.
pub(crate) fn file_in(
    directory: BorrowedFd<'_>,
    below: &Path,
    more: OFlags,
) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let fd = open_in(directory, below, flags)?;
    let stat = fstat(&fd)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        let says = format!("it is {}, not a file", kind_word(kind));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, says));
    }
    // Only the open was not to wait for anybody; reads may.
    fcntl_setfl(&fd, more & OFlags::DIRECT)?;
    Ok((fd, stat))
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

fn open_in(directory: BorrowedFd<'_>, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    if !is_plain(below) {
        let says = "it is no name of a file below the directory";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, says));
    }
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    match openat2(directory, below, flags | OFlags::NOFOLLOW, Mode::empty(), resolve) {
        // Kernels without it, and sandboxes that don't let it through.
        Err(Errno::NOSYS | Errno::PERM) => walk(directory, below, flags),
        other => Ok(other.map_err(|errno| explained(errno, below))?),
    }
}

/// The same, part by part.
fn walk(directory: BorrowedFd<'_>, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let device = fstat(directory)?.st_dev;
    let parts: Vec<&OsStr> = below.iter().collect();
    let mut at: Option<OwnedFd> = None;
    for (number, part) in parts.iter().enumerate() {
        let flags = if number + 1 == parts.len() { flags } else { DIRECTORY };
        let from = at.as_ref().map_or(directory, AsFd::as_fd);
        let next = openat(from, *part, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|errno| explained(errno, below))?;
        if fstat(&next)?.st_dev != device {
            return Err(explained(Errno::XDEV, below));
        }
        at = Some(next);
    }
    at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

fn explained(errno: Errno, below: &Path) -> io::Error {
    let says = match errno {
        Errno::LOOP => "it is a link, or is reached through one",
        Errno::XDEV => "another file system is mounted there",
        other => return other.into(),
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {says}", below.display()))
}

/// Whether a name consists of names of directories and a file alone: not absolute, no `..`, not empty.
pub(crate) fn is_plain(below: &Path) -> bool {
    let mut parts = below.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

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
            let by_parts = walk(own.fd.as_fd(), Path::new(name), OFlags::RDONLY | OFlags::NONBLOCK);
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
            assert!(open(name).unwrap_err().contains("no name of a file below"), "{name}");
        }
        assert!(walk(own.fd.as_fd(), Path::new("link"), OFlags::RDONLY).is_err());
        assert!(walk(own.fd.as_fd(), Path::new("linked/file"), OFlags::RDONLY).is_err());
        symlink("own", at("another")).unwrap();
        assert!(OwnDirectory::open(&at("another")).is_err());
    }
}
