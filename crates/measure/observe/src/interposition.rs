//! Detects software that can falsify the kernel's answers to this program: preloaded libraries, a
//! tracer, filters that answer flushes, and mounts over files in `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FsWord, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags};
use rustix::io::Errno;

use crate::device::DeviceNumber;

/// `statfs` type of the kernel's own file systems (kernel: include/uapi/linux/magic.h).
const PROC_MAGIC: FsWord = PROC_SUPER_MAGIC;
const SYSFS_MAGIC: FsWord = 0x6265_6572;
/// Inode number of the root of `/proc`, and of the root of `/sys`.
const ROOT_INODE: u64 = 1;

/// Names of the files that Plimsoll reads about its own process and its mounts.
const OF_PROC: [&str; 4] = ["self", "self/io", "self/mountinfo", "self/fd"];
/// Names of the files that Plimsoll reads about a device. They are relative to the device's
/// directory.
const OF_DEVICE: [&str; 9] = [
    "",
    "/stat",
    "/queue",
    "/queue/rotational",
    "/queue/write_cache",
    "/loop",
    "/loop/backing_file",
    "/loop/dio",
    "/slaves",
];

/// Checks for preloaded libraries, for a tracer, and for mounts over the files of these devices.
/// Returns `None` if some checks were impossible and the other checks found nothing.
#[must_use]
pub fn detect(devices: &[DeviceNumber]) -> Option<Vec<String>> {
    let mut found: Vec<String> = preloaded("self")
        .into_iter()
        .map(|library| format!("{library} was preloaded into this process"))
        .collect();
    let status = fs::read_to_string("/proc/self/status").ok();
    let traced = status.as_deref().and_then(tracer);
    found.extend(traced.map(|pid| format!("process {pid} traces this process")));
    found.extend(plimsoll_sys::file::are_flushes_filtered().then(|| {
        "a filter of system calls (seccomp) answers fsync or fdatasync instead of the kernel".into()
    }));
    let of_proc = covered(Path::new("/proc"), PROC_MAGIC, OF_PROC.map(str::to_owned));
    let of_devices = devices.iter().flat_map(|number| {
        let directory = format!("dev/block/{}:{}", number.major, number.minor);
        OF_DEVICE.map(|file| format!("{directory}{file}"))
    });
    // If there are no devices, Plimsoll does not read files in `/sys`.
    let of_sys = match devices {
        [] => Some(Vec::new()),
        _ => covered(Path::new("/sys"), SYSFS_MAGIC, of_devices),
    };
    let looked = status.is_some() && of_proc.is_some() && of_sys.is_some();
    found.extend([of_proc, of_sys].into_iter().flatten().flatten());
    (looked || !found.is_empty()).then_some(found)
}

/// Returns the libraries that a process preloads. The process is given as `self` or by its id. The
/// environment or the system's settings can name such libraries.
#[must_use]
pub fn preloaded(process: &str) -> Vec<String> {
    let read = |file: &str| fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
    let environment = read("environ");
    let mut named: Vec<String> =
        environment.split(|byte| *byte == 0).flat_map(libraries_in).collect();
    let system = fs::read_to_string("/etc/ld.so.preload").unwrap_or_default();
    named.extend(words(&system));
    if named.is_empty() {
        return named;
    }
    // The environment alone proves nothing: a static program loads no libraries, and the named
    // library may not exist.
    let maps = String::from_utf8_lossy(&read("maps")).into_owned();
    named.retain(|library| is_mapped(library, &maps));
    named.sort();
    named.dedup();
    named
}

/// Returns the process that traces this process, from `/proc/PID/status`. A tracer can change the
/// results of system calls.
fn tracer(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    line.trim().parse().ok().filter(|pid| *pid != 0)
}

/// Returns the libraries that an environment variable names.
fn libraries_in(variable: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(variable);
    let value = ["LD_PRELOAD=", "LD_AUDIT="].iter().find_map(|name| text.strip_prefix(name));
    value.map(words).unwrap_or_default()
}

fn words(text: &str) -> Vec<String> {
    text.split([' ', ':', '\n', '\t']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// Returns true if `/proc/PID/maps` of the process contains the library.
fn is_mapped(library: &str, maps: &str) -> bool {
    let real = fs::canonicalize(library).unwrap_or_else(|_| PathBuf::from(library));
    let name = |path: &Path| path.file_name().map(std::ffi::OsStr::to_owned);
    let names = [name(&real), name(Path::new(library))];
    // The sixth column is the path, which may contain spaces.
    let mapped = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    mapped.map(|path| name(Path::new(path))).any(|path| path.is_some() && names.contains(&path))
}

/// Checks whether other file systems hide the kernel's files. Returns a description of each entry
/// of `names` in `root` over which a file system is mounted, and of `root` itself if it is not the
/// kernel's file system. `None` if the kernel cannot report mounts.
fn covered(
    root: &Path,
    magic: FsWord,
    names: impl IntoIterator<Item = String>,
) -> Option<Vec<String>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty());
    let directory = opened.ok()?;
    let kind = rustix::fs::fstatfs(&directory).ok()?.f_type;
    let inode = rustix::fs::fstat(&directory).ok()?.st_ino;
    if kind != magic || inode != ROOT_INODE {
        return Some(vec![format!("{} is not the kernel's own file system", root.display())]);
    }
    let mut found = Vec::new();
    for name in names {
        let within = ResolveFlags::NO_XDEV;
        match rustix::fs::openat2(&directory, name.as_str(), flags, Mode::empty(), within) {
            Err(Errno::XDEV) => {
                let root = root.display();
                found.push(format!("another file system is mounted over {root}/{name}"));
            }
            // Either the kernel has no such call (before Linux 5.6), or a filter blocks it.
            Err(Errno::NOSYS | Errno::PERM) => return None,
            // A file that does not exist cannot be hidden by a mount.
            _ => {}
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn distinguishes_the_kernels_file_systems_from_covered_ones() {
        let proc = Path::new("/proc");
        assert!(covered(proc, PROC_MAGIC, OF_PROC.map(str::to_owned)).unwrap().is_empty());
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(covered(directory.path(), PROC_MAGIC, []).unwrap().len(), 1);
        assert_eq!(covered(Path::new("/proc/self"), PROC_MAGIC, []).unwrap().len(), 1);
        // A file system that is mounted on a name is detected, because the name is then the root of
        // that file system.
        assert_eq!(covered(proc, PROC_MAGIC, ["../proc".to_owned()]).unwrap().len(), 1);
        // If a file does not exist, the result states that the file was not checked.
        assert_eq!(covered(&directory.path().join("none"), PROC_MAGIC, []), None);
    }

    #[test]
    fn a_preload_counts_if_named_and_mapped() {
        assert_eq!(libraries_in(b"LD_PRELOAD=/a/b.so c.so:/d.so"), ["/a/b.so", "c.so", "/d.so"]);
        assert!(libraries_in(b"LD_LIBRARY_PATH=/a").is_empty());
        let maps = "7f00-7f01 r-xp 00000000 fe:00 12 /usr/lib/b.so\n7f02-7f03 rw-p 0 00:00 0 \n";
        assert!(is_mapped("/usr/lib/b.so", maps) && is_mapped("b.so", maps));
        assert!(!is_mapped("/usr/lib/c.so", maps));
        assert!(preloaded("self").is_empty());
    }

    #[test]
    fn reports_the_id_of_a_tracer() {
        assert_eq!(tracer("Name:\tx\nTracerPid:\t4711\nUid:\t0\n"), Some(4711));
        assert_eq!(tracer("Name:\tx\nTracerPid:\t0\n"), None);
    }
}
