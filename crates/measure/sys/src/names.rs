//! Metadata operations on local files. Each operation makes the system calls that an application
//! makes for it.
//!
//! | operation | system calls |
//! |---|---|
//! | getattr | `statx` of an open data file |
//! | lookup | `openat` with `O_PATH` on a data file's name, and `close` |
//! | access | `faccessat` of a data file's name, for reading and writing |
//! | readdir | `openat` of a directory of small files, `getdents64` once from its start, and `close` |
//! | create | `openat` with `O_CREAT` and `O_EXCL` of a small file, and `close` |
//! | remove | `unlinkat` of a small file |
//! | rename | `renameat` of a small file within its directory |
//! | setattr | `fchmod` of an open data file |
//!
//! Small files have numeric names. They are in directories below roots that the caller passes.
//! Every path is resolved from its root, so nothing outside the roots is accessed.

use std::ffi::CString;
use std::fmt::Write as _;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::SysError;

/// Maximum path length from a root to a small file, including the terminator.
const PATH_BYTES: usize = 256;
/// Maximum length of a small file's name, including the leading `/` and the terminator. The name
/// consists of `m`, 10 digits, `-` and 20 digits.
const NAME_BYTES: usize = 34;
/// Buffer size for `getdents64`, the same as in the C library.
const DIR_BYTES: usize = 32 * 1024;
/// Permissions of a small file. Setattr operations set the same permissions.
const MODE: libc::mode_t = 0o644;

/// Kind of a metadata operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetadataKind {
    /// Reads the attributes of a data file.
    Getattr,
    /// Looks up the name of a data file.
    Lookup,
    /// Checks the permissions of a data file.
    Access,
    /// Lists the share's directory of small files.
    Readdir,
    /// Creates a small file.
    Create,
    /// Removes a small file.
    Remove,
    /// Renames a small file.
    Rename,
    /// Sets the mode of a data file to its current mode.
    Setattr,
}

impl MetadataKind {
    pub const ALL: [Self; 8] = [
        Self::Getattr,
        Self::Lookup,
        Self::Access,
        Self::Readdir,
        Self::Create,
        Self::Remove,
        Self::Rename,
        Self::Setattr,
    ];

    /// Returns the word that plans and reports use for this kind.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Getattr => "getattr",
            Self::Lookup => "lookup",
            Self::Access => "access",
            Self::Readdir => "readdir",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Setattr => "setattr",
        }
    }
}

/// Metadata operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOp {
    pub kind: MetadataKind,
    /// Index of the directory of small files.
    pub directory: u32,
    /// Index of the directory that contains the small file after a rename.
    pub new_directory: u32,
    /// Index of the data file.
    pub file: u32,
    /// First number of the small file's name.
    pub client: u32,
    /// Second number of the small file's name.
    pub name: u64,
    /// Second number of the small file's name after a rename.
    pub new_name: u64,
}

/// Directories and files that metadata operations use.
#[derive(Debug)]
pub struct NameTable {
    roots: Vec<OwnedFd>,
    /// For each directory of small files: index of its root, and path below this root.
    directories: Vec<(usize, Box<[u8]>)>,
    /// For each data file: index of its root, and path below this root.
    files: Vec<(usize, CString)>,
    per_share: u32,
}

impl NameTable {
    /// Opens the roots, and records the directories of small files (`per_share` directories for
    /// each share, ordered by share) and the data files. Each of them must be below one of the
    /// roots.
    ///
    /// # Errors
    /// The `errno` of `open`; `EINVAL` if a path is not below any root, or is too long.
    pub fn open(
        roots: &[PathBuf],
        small: &[PathBuf],
        per_share: u32,
        data: &[PathBuf],
    ) -> Result<Self, SysError> {
        let opened = roots.iter().map(|path| Ok((path.clone(), open_directory(path)?)));
        Self::beneath(opened.collect::<Result<_, SysError>>()?, small, per_share, data)
    }

    /// Like [`Self::open`], for roots that are already open, with their paths. The caller must own
    /// the roots and everything below them, because links below a root are followed.
    ///
    /// # Errors
    /// `EINVAL` if a path is not below any root, or is too long.
    pub fn beneath(
        roots: Vec<(PathBuf, OwnedFd)>,
        small: &[PathBuf],
        per_share: u32,
        data: &[PathBuf],
    ) -> Result<Self, SysError> {
        let below = |path: &PathBuf| -> Option<(usize, Vec<u8>)> {
            let found = |(at, (root, _)): (usize, &(PathBuf, OwnedFd))| {
                Some((at, path.strip_prefix(root).ok()?))
            };
            let (at, rest) = roots.iter().enumerate().find_map(found)?;
            Some((at, rest.as_os_str().as_bytes().to_vec()))
        };
        let wrong = |path: &PathBuf| SysError::new("open", libc::EINVAL).at(path);
        let directory = |path: &PathBuf| {
            let (at, rest) = below(path).ok_or_else(|| wrong(path))?;
            let fits = rest.len() + NAME_BYTES <= PATH_BYTES && !rest.contains(&0);
            if fits { Ok((at, rest.into_boxed_slice())) } else { Err(wrong(path)) }
        };
        let file = |path: &PathBuf| {
            let (at, rest) = below(path).ok_or_else(|| wrong(path))?;
            Ok((at, CString::new(rest).map_err(|_| wrong(path))?))
        };
        Ok(Self {
            directories: small.iter().map(directory).collect::<Result<_, _>>()?,
            files: data.iter().map(file).collect::<Result<_, _>>()?,
            roots: roots.into_iter().map(|(_, fd)| fd).collect(),
            per_share: per_share.max(1),
        })
    }

    /// Returns the number of small-file directories per share.
    #[must_use]
    pub fn per_share(&self) -> u32 {
        self.per_share
    }

    /// Returns true if the table contains all files and directories of an operation.
    #[must_use]
    pub fn has(&self, op: &NameOp) -> bool {
        match op.kind {
            MetadataKind::Readdir
            | MetadataKind::Create
            | MetadataKind::Remove
            | MetadataKind::Rename => {
                let most = op.directory.max(op.new_directory);
                (most as usize) < self.directories.len()
            }
            _ => (op.file as usize) < self.files.len(),
        }
    }

    /// Executes an operation. `data` is the open data file, for attribute operations. Returns 0 or
    /// a negative `errno`.
    #[must_use]
    pub fn execute(&self, op: &NameOp, data: libc::c_int) -> i32 {
        match op.kind {
            MetadataKind::Getattr => get_attributes(data),
            MetadataKind::Setattr => {
                // SAFETY: the call takes no memory; with an invalid descriptor it only fails.
                answer(unsafe { libc::fchmod(data, MODE) })
            }
            MetadataKind::Lookup | MetadataKind::Access => self.on_data_file(op),
            _ => self.on_small_file(op),
        }
    }

    fn on_data_file(&self, op: &NameOp) -> i32 {
        let Some((root, path)) = self.files.get(op.file as usize) else { return -libc::EBADF };
        let (root, path) = (self.roots[*root].as_raw_fd(), path.as_ptr());
        if op.kind == MetadataKind::Access {
            // SAFETY: `path` is a terminated string in the table.
            return answer(unsafe { libc::faccessat(root, path, libc::R_OK | libc::W_OK, 0) });
        }
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: `path` is a terminated string in the table.
        opened(unsafe { libc::openat(root, path, flags) }).map_or_else(|errno| errno, |_| 0)
    }

    fn on_small_file(&self, op: &NameOp) -> i32 {
        let place = |directory: u32, number: Option<u64>| {
            let (root, path) = self.directories.get(directory as usize)?;
            let path = SmallPath::of(path, number.map(|number| (op.client, number)));
            Some((self.roots[*root].as_raw_fd(), path))
        };
        let name = if op.kind == MetadataKind::Readdir { None } else { Some(op.name) };
        let Some((root, path)) = place(op.directory, name) else { return -libc::EBADF };
        match op.kind {
            MetadataKind::Create => {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
                // SAFETY: `path` is a terminated string that outlives the call.
                let fd = unsafe { libc::openat(root, path.as_ptr(), flags, MODE) };
                opened(fd).map_or_else(|errno| errno, |_| 0)
            }
            // SAFETY: `path` is a terminated string that outlives the call.
            MetadataKind::Remove => answer(unsafe { libc::unlinkat(root, path.as_ptr(), 0) }),
            MetadataKind::Rename => {
                let Some((to, new)) = place(op.new_directory, Some(op.new_name)) else {
                    return -libc::EBADF;
                };
                // SAFETY: both are terminated strings that outlive the call.
                answer(unsafe { libc::renameat(root, path.as_ptr(), to, new.as_ptr()) })
            }
            _ => list(root, &path),
        }
    }
}

/// Terminated path, relative to its root, of a small file or of a directory of small files. It is
/// built without allocating memory.
struct SmallPath {
    bytes: [u8; PATH_BYTES],
    used: usize,
}

impl SmallPath {
    fn of(directory: &[u8], name: Option<(u32, u64)>) -> Self {
        let mut path = Self { bytes: [0; PATH_BYTES], used: directory.len() };
        // The table rejects a directory if its path is too long to append a name.
        path.bytes[..directory.len()].copy_from_slice(directory);
        if let Some((client, number)) = name {
            let _ = write!(path, "/m{client:05}-{number:010}");
        }
        path
    }

    fn as_ptr(&self) -> *const libc::c_char {
        self.bytes.as_ptr().cast()
    }
}

impl std::fmt::Write for SmallPath {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.used + text.len();
        // The last byte stays 0.
        if end >= PATH_BYTES {
            return Err(std::fmt::Error);
        }
        self.bytes[self.used..end].copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

fn answer(code: libc::c_int) -> i32 {
    if code < 0 { last_errno() } else { 0 }
}

fn last_errno() -> i32 {
    -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

fn opened(fd: libc::c_int) -> Result<OwnedFd, i32> {
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn get_attributes(data: libc::c_int) -> i32 {
    let mut stat = std::mem::MaybeUninit::<libc::statx>::uninit();
    // SAFETY: an empty path with AT_EMPTY_PATH refers to `data`; `stat` is valid.
    answer(unsafe {
        libc::statx(
            data,
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_BASIC_STATS,
            stat.as_mut_ptr(),
        )
    })
}

/// Reads the first entries of a directory with a separate descriptor, so that the read position is
/// not shared.
fn list(root: libc::c_int, path: &SmallPath) -> i32 {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: `path` is a terminated string that outlives the call.
    let own = match opened(unsafe { libc::openat(root, path.as_ptr(), flags) }) {
        Ok(own) => own,
        Err(errno) => return errno,
    };
    let mut entries = [0u8; DIR_BYTES];
    let (fd, room) = (own.as_raw_fd(), entries.len());
    // SAFETY: `entries` is valid for its whole length.
    let code = unsafe { libc::syscall(libc::SYS_getdents64, fd, entries.as_mut_ptr(), room) };
    if code < 0 { last_errno() } else { 0 }
}

fn open_directory(path: &Path) -> Result<OwnedFd, SysError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| SysError::new("open", libc::EINVAL).at(path))?;
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: `name` is a terminated string that outlives the call.
    let fd = unsafe { libc::open(name.as_ptr(), flags) };
    opened(fd).map_err(|errno| SysError::new("open", -errno).at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_works_and_reports_errors() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_path_buf();
        let (small, data) = (root.join("a/small"), root.join("f.data"));
        let other = root.join("b");
        std::fs::create_dir_all(&small).unwrap();
        std::fs::create_dir(&other).unwrap();
        let file = std::fs::File::create(&data).unwrap();
        let open = |small: &[PathBuf]| {
            NameTable::open(std::slice::from_ref(&root), small, 2, std::slice::from_ref(&data))
        };
        let table = open(&[small.clone(), other.clone()]).unwrap();
        let op = |kind, name, new_name| NameOp {
            kind,
            directory: 0,
            new_directory: 1,
            file: 0,
            client: 3,
            name,
            new_name,
        };
        let does =
            |kind, name, new_name| table.execute(&op(kind, name, new_name), file.as_raw_fd());
        let names = |of: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(of).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(does(MetadataKind::Create, 7, 0), 0);
        assert_eq!(names(&small), ["m00003-0000000007"]);
        assert_eq!(does(MetadataKind::Create, 7, 0), -libc::EEXIST);
        assert_eq!(does(MetadataKind::Readdir, 0, 0), 0);
        assert_eq!(does(MetadataKind::Rename, 7, u64::MAX), 0);
        assert!(names(&small).is_empty());
        assert_eq!(names(&other), [format!("m00003-{}", u64::MAX)]);
        assert_eq!(does(MetadataKind::Remove, 7, 0), -libc::ENOENT);
        let there = NameOp { directory: 1, ..op(MetadataKind::Remove, u64::MAX, 0) };
        assert_eq!(table.execute(&there, -1), 0);
        assert!(names(&other).is_empty());
        for kind in [
            MetadataKind::Getattr,
            MetadataKind::Lookup,
            MetadataKind::Access,
            MetadataKind::Setattr,
        ] {
            assert_eq!(does(kind, 0, 0), 0, "{kind:?}");
        }
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().unwrap()) & 0o777;
        assert_eq!(mode, MODE);
        std::fs::remove_file(&data).unwrap();
        assert_eq!(does(MetadataKind::Lookup, 0, 0), -libc::ENOENT);
        assert_eq!(does(MetadataKind::Access, 0, 0), -libc::ENOENT);
        assert!(!table.has(&NameOp { file: 1, ..op(MetadataKind::Getattr, 0, 0) }));
        assert!(!table.has(&NameOp { directory: 2, ..op(MetadataKind::Create, 0, 0) }));
        // A path is rejected if it is outside all roots, or too long for a name to be appended.
        assert!(open(&["/elsewhere".into()]).is_err());
        assert!(open(&[root.join("x".repeat(PATH_BYTES - NAME_BYTES + 1))]).is_err());
        assert!(NameTable::open(std::slice::from_ref(&data), &[], 1, &[]).is_err());
    }
}
