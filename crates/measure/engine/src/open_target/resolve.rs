//! Opens a path that the operator stated.
//!
//! The path of a target may contain links. Each part of the path is resolved once, relative to the
//! directory that was opened before it.
//!
//! If Plimsoll runs as root, it follows a link of another user only if this user also owns the file
//! to which the link refers. The owner could otherwise redirect the link at any moment.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat,
};
use rustix::io::Errno;

use super::openat::{DIRECTORY, reopen};

/// Maximum number of links in a path. The kernel has the same limit.
const LINKS_MAX: u32 = 40;

/// Opens a directory, file or device with `O_PATH`. The descriptor does not permit I/O.
///
/// # Errors
/// Fails if a part of the path is missing, or if the path contains too many links. If Plimsoll runs
/// as root, also fails if a link belongs to another user who does not own the link's target.
pub(crate) fn open_named(path: &Path) -> io::Result<OwnedFd> {
    open_named_as(path, rustix::process::geteuid().is_root())
}

fn open_named_as(path: &Path, is_root: bool) -> io::Result<OwnedFd> {
    let start = if path.is_absolute() { "/" } else { "." };
    let mut at = openat(CWD, start, DIRECTORY, Mode::empty())?;
    let mut remaining = parts(path);
    let mut owners = Vec::new();
    let mut links = 0;
    while let Some(part) = remaining.pop() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let next = openat(&at, &part, flags | OFlags::NOFOLLOW, Mode::empty())?;
        let stat = fstat(&next)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            at = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        owners.push(stat.st_uid);
        // A link in /proc refers to the open file itself, so the text of the link is not used.
        if fstatfs(&next)?.f_type == PROC_SUPER_MAGIC {
            at = openat(&at, &part, flags, Mode::empty())?;
            continue;
        }
        let text = OsString::from_vec(readlinkat(&next, "", Vec::new())?.into_bytes());
        if Path::new(&text).is_absolute() {
            at = openat(CWD, "/", DIRECTORY, Mode::empty())?;
        }
        remaining.extend(parts(Path::new(&text)));
    }
    let owner = fstat(&at)?.st_uid;
    match owners.into_iter().find(|uid| is_root && *uid != 0 && *uid != owner) {
        None => Ok(at),
        Some(uid) => {
            let says = format!(
                "its path contains a link of user {uid}, who does not own the link's target: use \
                 the path of the directory or device itself"
            );
            Err(io::Error::new(io::ErrorKind::PermissionDenied, says))
        }
    }
}

/// Opens a file, pipe or character device that the operator stated, for appending. If the file is
/// missing, creates it.
///
/// # Errors
/// Fails in the same cases as [`open_named`]. Also fails for a directory or a block device.
pub(crate) fn open_for_appending(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND;
    let found = match open_named(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (above, name) = split(path)?;
            let above = open_named(above)?;
            let made = flags | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            return Ok(openat(&above, name, made, Mode::from_raw_mode(0o644))?);
        }
        other => other?,
    };
    match FileType::from_raw_mode(fstat(&found)?.st_mode) {
        FileType::Directory => Err(Errno::ISDIR.into()),
        FileType::BlockDevice => Err(Errno::NXIO.into()),
        _ => match reopen(found.as_fd(), flags) {
            // If /proc is not mounted, the path is opened directly.
            Err(Errno::NOENT) => {
                let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                Ok(rustix::fs::open(path, flags, Mode::empty())?)
            }
            other => Ok(other?),
        },
    }
}

/// Returns the parts of a path. The last part comes first.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}

/// Returns the current path of an open file. The path contains no links. Returns `None` if `/proc`
/// does not provide the path, or if the file was removed.
pub(crate) fn real_path(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = std::fs::read_link(name).ok().filter(|path| path.is_absolute())?;
    let at_path = rustix::fs::lstat(&path).ok()?;
    let open = fstat(fd.as_fd()).ok()?;
    ((at_path.st_dev, at_path.st_ino) == (open.st_dev, open.st_ino)).then_some(path)
}

/// Splits a path into the path of its parent and its last part.
pub(crate) fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path.file_name().filter(|name| !name.as_bytes().is_empty());
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let above = path.parent().filter(|above| *above != Path::new(""));
    Ok((above.unwrap_or(Path::new(".")), name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    fn place(path: &Path) -> io::Result<PathBuf> {
        open_named(path).map(|fd| real_path(fd.as_fd()).unwrap())
    }

    #[test]
    fn a_path_leads_where_the_kernel_says() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/file"), "x").unwrap();
        symlink("a", at("relative")).unwrap();
        symlink(at("a/b"), at("absolute")).unwrap();
        symlink("../relative/b/..", at("a/up")).unwrap();
        symlink("endless", at("endless")).unwrap();
        for name in ["a", "a/b/../b", "relative/b", "absolute", "a/up", "absolute/..", "a/./file"] {
            assert_eq!(place(&at(name)).unwrap(), at(name).canonicalize().unwrap(), "{name}");
        }
        assert_eq!(place(Path::new("/")).unwrap(), Path::new("/"));
        assert_eq!(place(Path::new("src/..")).unwrap(), std::env::current_dir().unwrap());
        let errno = |name: &str| place(&at(name)).unwrap_err().raw_os_error();
        assert_eq!(errno("missing"), Some(libc::ENOENT));
        assert_eq!(errno("a/file/x"), Some(libc::ENOTDIR));
        assert_eq!(errno("endless"), Some(libc::ELOOP));
        let open = fs::File::open(at("a")).unwrap();
        let magic = format!("/proc/self/fd/{}/b", open.as_raw_fd());
        assert_eq!(place(Path::new(&magic)).unwrap(), at("a/b").canonicalize().unwrap());
    }

    #[test]
    fn a_witness_is_appended_to_a_file_or_a_pipe_and_to_no_device_with_data() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for text in ["a", "b"] {
            let mut file = fs::File::from(open_for_appending(&at("witness")).unwrap());
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read(at("witness")).unwrap(), b"ab");
        assert!(open_for_appending(Path::new("/dev/null")).is_ok());
        assert!(open_for_appending(root.path()).is_err());
        symlink("elsewhere", at("link")).unwrap();
        assert!(open_for_appending(&at("link")).is_err());
        assert!(!at("elsewhere").exists());
    }

    /// A user can create links only in directories to which this user may write. In this test, root
    /// therefore creates the links and then changes their owner.
    #[test]
    fn root_follows_a_link_of_another_user_only_to_what_that_user_owns() {
        if !rustix::process::geteuid().is_root() {
            // The restriction on links applies only to root. Other users may follow every link.
            let root = tempfile::tempdir().unwrap();
            symlink("/", root.path().join("link")).unwrap();
            assert!(open_named_as(&root.path().join("link"), false).is_ok());
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("own")).unwrap();
        fs::create_dir_all(at("foreign")).unwrap();
        symlink("own", at("to-own")).unwrap();
        symlink("foreign", at("to-foreign")).unwrap();
        let (nobody, group) = (Some(65534), Some(65534));
        for name in ["own", "to-own", "to-foreign"] {
            lchown(at(name), nobody, group).unwrap();
        }
        assert!(place(&at("to-own")).is_ok());
        let error = place(&at("to-foreign")).unwrap_err().to_string();
        assert!(error.contains("link of user 65534"), "{error}");
        assert!(open_named_as(&at("to-foreign"), false).is_ok());
        lchown(at("to-foreign"), Some(0), Some(0)).unwrap();
        assert!(place(&at("to-foreign")).is_ok());
    }
}
