//! Lists the executable files that a process has mapped, and detects files that are not from the
//! distribution.
//!
//! A fake library can intercept `pread64`. It may be loaded through `LD_LIBRARY_PATH`, through an
//! RPATH, or as a copy next to the program. It may also replace a file of the distribution. The
//! check therefore examines the mapped files, regardless of how they were loaded.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_evidence::observed::MappedFile;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Directories in which a distribution installs libraries.
const SYSTEM: [&str; 12] = [
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/libexec",
    "/nix/store",
    "/gnu/store",
    "/snap",
];
/// Directories that the loader searches by default. Each may have a subdirectory for the
/// architecture.
const DEFAULT: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// Name prefixes of C libraries. Programs make their system calls through these libraries.
const C_LIBRARIES: [&str; 4] = ["libc.so", "libc-", "libc.musl", "libpthread"];
/// Suffix that the kernel appends to the name of a deleted file.
const DELETED: &str = " (deleted)";

/// Returns a sorted list of the executable files that a process has mapped. The process is given as
/// `self` or by its id. `None` if the list is empty or not readable.
#[must_use]
pub fn read(process: &str) -> Option<Vec<MappedFile>> {
    let program = || fs::read_link(format!("/proc/{process}/exe")).ok();
    let before = program()?;
    let maps = fs::read(format!("/proc/{process}/maps")).ok()?;
    // If the process calls exec while the list is read, the list may contain files of both
    // programs.
    let program = program().filter(|after| *after == before)?;
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let paths = executable(&String::from_utf8_lossy(&maps));
    let named = library_path(&environment);
    let judged = paths.into_iter().map(|path| {
        let foreign = if Path::new(&path) == program { None } else { foreign(&path, &named) };
        MappedFile { path, foreign }
    });
    Some(judged.collect::<Vec<_>>()).filter(|files| !files.is_empty())
}

/// Returns the paths of executable files in `/proc/PID/maps`. Skips executable memory without a
/// path: it contains code of the kernel (with a name in brackets, such as `[vdso]`), or code that
/// the process compiled itself.
fn executable(maps: &str) -> BTreeSet<String> {
    let named = |line: &str| {
        let mut columns = line.split_ascii_whitespace();
        let (_, rights) = (columns.next()?, columns.next()?);
        let path = &line[line.find('/')?..];
        rights.contains('x').then(|| path.trim_end().to_owned())
    };
    maps.lines().filter_map(named).collect()
}

/// Returns the directories that `LD_LIBRARY_PATH` lists in an environment.
fn library_path(environment: &[u8]) -> Vec<PathBuf> {
    let variables = environment.split(|byte| *byte == 0);
    let value = variables.filter_map(|variable| variable.strip_prefix(b"LD_LIBRARY_PATH="));
    let directories = value.flat_map(|value| value.split(|byte| matches!(byte, b':' | b';')));
    directories
        .filter(|directory| !directory.is_empty())
        .map(|directory| PathBuf::from(std::ffi::OsStr::from_bytes(directory)))
        .map(|directory| fs::canonicalize(&directory).unwrap_or(directory))
        .collect()
}

/// Returns the reason why a mapped file is not a library of the distribution; `None` if it is one.
fn foreign(path: &str, library_path: &[PathBuf]) -> Option<String> {
    if path.ends_with(DELETED) {
        return Some("its file was replaced or deleted".to_owned());
    }
    let path = Path::new(path);
    let Some(root) = SYSTEM.iter().map(Path::new).find(|root| path.starts_with(root)) else {
        return Some("it is outside the system's library directories".to_owned());
    };
    let directory = path.parent().unwrap_or(root);
    let is_default = is_default(directory);
    if !is_default && library_path.iter().any(|named| named == directory) {
        let says = "its directory is in LD_LIBRARY_PATH, so it replaces a library of the system";
        return Some(says.to_owned());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_libc = C_LIBRARIES.iter().any(|begin| name.starts_with(begin));
    let packaged = ["/nix/store", "/gnu/store", "/snap"].map(Path::new).contains(&root);
    if is_libc && !is_default && !packaged {
        return Some("it is a C library outside the loader's directories".to_owned());
    }
    owned_by_root(path, root).or_else(|| covered(path, root))
}

/// Returns true for a default directory of the loader, and for its subdirectories for the
/// architecture or for newer processors.
fn is_default(directory: &Path) -> bool {
    let for_newer = directory.parent().filter(|parent| parent.ends_with("glibc-hwcaps"));
    let directory = for_newer.and_then(Path::parent).unwrap_or(directory);
    let of_machine = |root: &Path| {
        let below = directory.strip_prefix(root).ok().and_then(Path::to_str);
        below.is_some_and(|name| name.contains("-linux-") && !name.contains('/'))
    };
    DEFAULT.iter().map(Path::new).any(|root| directory == root || of_machine(root))
}

/// Checks that only root can change a file and its directories, up to `root`. If another user can
/// change the file or a directory, returns a description.
fn owned_by_root(path: &Path, root: &Path) -> Option<String> {
    for place in path.ancestors().take_while(|place| place.starts_with(root)) {
        let Ok(metadata) = fs::metadata(place) else {
            return Some("its file cannot be examined".to_owned());
        };
        // The group may have write access to a package root, for example to a store in which a
        // group of users builds packages.
        let others = if place == root { 0o002 } else { 0o022 };
        if metadata.uid() != 0 || metadata.mode() & others != 0 && metadata.mode() & 0o1000 == 0 {
            return Some(format!("users other than root can change {}", place.display()));
        }
    }
    None
}

/// Returns a reason if another file system is mounted over a file or over one of its directories.
fn covered(path: &Path, root: &Path) -> Option<String> {
    // Each package below `/snap` is a separate file system.
    if root == Path::new("/snap") {
        return None;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let below = path.strip_prefix(root).ok()?;
    let opened = rustix::fs::openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let within = ResolveFlags::NO_XDEV;
    let found = rustix::fs::openat2(&opened, below, flags, Mode::empty(), within);
    matches!(found, Err(Errno::XDEV)).then(|| "another file system is mounted over it".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn mapped_code_is_read_from_maps() {
        let maps = "7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/b.so\n7f01-7f02 r--p 00000000 fe:00 \
                    12 /usr/lib/locale\n7f02-7f03 rwxp 0 00:00 0 \n7f03-7f04 r-xp 0 00:00 0 \
                    [vdso]\n7f04-7f05 r-xp 0 00:01 7 /memfd:x (deleted)\n7f05-7f06 r-xp 0 fe:00 9 \
                    /a b/c.so\n";
        let expected = ["/a b/c.so", "/memfd:x (deleted)", "/usr/lib/b.so"];
        assert_eq!(executable(maps).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn this_process_has_the_distributions_libraries_and_its_own_program() {
        let files = read("self").unwrap();
        let foreign: Vec<_> = files.iter().filter(|file| file.foreign.is_some()).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        let libc = files.iter().any(|file| file.path.contains("libc"));
        assert!(libc || files.len() == 1, "{files:?}");
    }

    #[test]
    fn a_library_outside_the_distribution_is_foreign_however_loaded() {
        let none = |path: &str| foreign(path, &[]);
        for path in [
            "/tmp/x/libc.so.6",
            "/home/u/.local/lib/libc.so.6",
            "/usr/local/lib/libc.so.6",
            "/opt/rpath/libc.so.6",
            "/root/libpread.so",
            "/libx/libc.so.6",
            "/memfd:lib (deleted)",
            "/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)",
            "/usr/lib/nowhere/libc.so.6",
            "/usr/lib/there-is-no-such.so",
        ] {
            assert!(none(path).is_some(), "{path}");
        }
        let named = [PathBuf::from("/usr/lib/x86_64-linux-gnu/libfakeroot")];
        assert!(foreign("/usr/lib/x86_64-linux-gnu/libfakeroot/l.so", &named).is_some());
    }

    #[test]
    fn accepts_default_directories_in_the_library_path() {
        let files = read("self").unwrap();
        for file in files.iter().filter(|file| file.path.starts_with("/usr/lib/")) {
            let directory = Path::new(&file.path).parent().unwrap().to_owned();
            assert_eq!(foreign(&file.path, &[directory]), None, "{}", file.path);
        }
        let variables = b"A=b\0LD_LIBRARY_PATH=/no/such:/nor/this\0";
        assert_eq!(library_path(variables), ["/no/such", "/nor/this"].map(PathBuf::from));
        assert!(library_path(b"LD_PRELOAD=/a").is_empty());
        assert!(is_default(Path::new("/usr/lib/aarch64-linux-gnu")));
        assert!(is_default(Path::new("/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3")));
        assert!(!is_default(Path::new("/usr/lib/x/y-linux-gnu")));
        assert!(!is_default(Path::new("/usr/lib/x/glibc-hwcaps/x86-64-v3")));
    }

    #[test]
    fn a_file_writable_by_others_is_foreign() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let file = root.join("lib.so");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(owned_by_root(&file, &root).is_some());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let is_root = fs::metadata(&file).unwrap().uid() == 0;
        assert_eq!(owned_by_root(&file, &root).is_none(), is_root);
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(owned_by_root(&file, &root).is_some());
    }
}
