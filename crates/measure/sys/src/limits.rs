//! Resource limits of this process: memory of the machine, limits of its control groups, and
//! `ulimit`. A value that cannot be read is treated as unlimited.

use std::fs;
use std::path::{Path, PathBuf};

/// Values of at least this size mean unlimited; control groups of version 1 use such values.
const UNLIMITED_BYTES: u64 = 1 << 60;

/// Available memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Available bytes.
    pub bytes: u64,
    /// Name of the limit: `the machine`, `its control group`, `ulimit -v` or `ulimit -d`.
    pub limit: &'static str,
}

/// Returns the memory that this process can still use: the minimum of the machine's available
/// memory and the unused parts of its control groups' limits. `None` if neither value can be read.
#[must_use]
pub fn memory() -> Option<Room> {
    memory_below(Path::new("/"))
}

/// Returns the size of the memory that the process can still map, whether it uses that memory or
/// not (`ulimit -v` and `ulimit -d`). `None` if unlimited.
#[must_use]
pub fn address_space() -> Option<Room> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used = |field: &str| kib(&status, field).unwrap_or(0);
    let left = |most: Option<u64>, field, limit| {
        most.map(|most| Room { bytes: most.saturating_sub(used(field)), limit })
    };
    let all = [
        left(limit_of(libc::RLIMIT_AS), "VmSize:", "ulimit -v"),
        left(limit_of(libc::RLIMIT_DATA), "VmData:", "ulimit -d"),
    ];
    all.into_iter().flatten().min_by_key(|room| room.bytes)
}

/// Returns the maximum file size that the process may write (`ulimit -f`); `None` if unlimited.
#[must_use]
pub fn file_bytes() -> Option<u64> {
    limit_of(libc::RLIMIT_FSIZE)
}

/// I/O priority of a thread: its class and level (0 is the highest, 7 the lowest).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoPriority {
    /// The class is not set: the kernel derives it from the nice value.
    None,
    /// I/O is served before all other I/O.
    RealTime(u8),
    /// I/O is served in rotation with other I/O.
    BestEffort(u8),
    /// I/O is served only if the disk is otherwise idle.
    Idle,
}

/// Returns the I/O priority of the calling thread (`ionice`), which new threads inherit; `None` if
/// the kernel does not report it.
#[must_use]
pub fn io_priority() -> Option<IoPriority> {
    // kernel: include/uapi/linux/ioprio.h
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_SHIFT: libc::c_long = 13;
    let own: libc::c_int = 0;
    // SAFETY: the call takes two integers and accesses no memory of this process.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, own) };
    let level = u8::try_from(answer & 7).unwrap_or(0);
    match answer >> CLASS_SHIFT {
        0 => Some(IoPriority::None),
        1 => Some(IoPriority::RealTime(level)),
        2 => Some(IoPriority::BestEffort(level)),
        3 => Some(IoPriority::Idle),
        _ => None,
    }
}

fn limit_of(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is local and outlives the call.
    let answer = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (answer == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn memory_below(root: &Path) -> Option<Room> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok();
    let machine = machine.and_then(|text| kib(&text, "MemAvailable:"));
    let machine = machine.map(|bytes| Room { bytes, limit: "the machine" });
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let group = groups.lines().filter_map(|line| group_bytes(root, line)).min();
    let group = group.map(|bytes| Room { bytes, limit: "its control group" });
    machine.into_iter().chain(group).min_by_key(|room| room.bytes)
}

/// Returns the unused part of the limits of a control group and its ancestors. The group is given
/// by a line of `/proc/self/cgroup`.
fn group_bytes(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (mount, limit, used) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max", "memory.current"),
        all if all.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    let top: PathBuf = root.join(mount);
    let mut group = top.join(path.trim_start_matches('/'));
    let mut least = None;
    loop {
        if let Some(left) = remaining_bytes(&group, limit, used) {
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
        if group == top || !group.pop() || !group.starts_with(&top) {
            return least;
        }
    }
}

fn remaining_bytes(group: &Path, limit: &str, used: &str) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
    };
    let limit = number(limit).filter(|limit| *limit < UNLIMITED_BYTES)?;
    // Inactive page cache can be reclaimed.
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let field = |name: &str| statistics.lines().find_map(|line| line.strip_prefix(name));
    let idle = field("total_inactive_file ").or(field("inactive_file "));
    let idle: u64 = idle.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(number(used)?.saturating_sub(idle)))
}

/// Parses a field in KiB and returns its value in bytes.
fn kib(text: &str, field: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_of_machine_and_control_groups_counts() {
        let meminfo = ("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
        let machine = tree(&[meminfo]);
        let room = memory_below(machine.path()).unwrap();
        assert_eq!(room, Room { bytes: 8000 << 10, limit: "the machine" });

        let second = tree(&[
            meminfo,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/a/memory.current", "300000\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "300000\n"),
        ]);
        let room = memory_below(second.path()).unwrap();
        assert_eq!(room, Room { bytes: 800_000, limit: "its control group" });

        let first = tree(&[
            meminfo,
            ("proc/self/cgroup", "5:cpu:/x\n4:blkio,memory:/c\n"),
            ("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "500000\n"),
            ("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "200000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n"),
        ]);
        assert_eq!(memory_below(first.path()).unwrap().bytes, 300_000);
        assert_eq!(memory_below(tree(&[]).path()), None);
    }

    #[test]
    fn this_process_has_some_memory() {
        assert!(memory().is_none_or(|room| room.bytes > 0));
        assert!(address_space().is_none_or(|room| room.bytes > 0));
    }
}
