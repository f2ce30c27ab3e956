//! Control groups that limit the memory of processes.

use std::path::{Path, PathBuf};

use super::made::TestResource;

/// Control group whose processes together may use this amount of memory, including page cache. It
/// is removed when this value is dropped.
pub struct MemoryLimit {
    group: PathBuf,
    _made: TestResource,
}

impl MemoryLimit {
    pub fn new(mib: u64) -> Self {
        let first = Path::new("/sys/fs/cgroup/memory");
        let (root, file) = if first.is_dir() {
            (first, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let group = root.join(format!("plimsoll-test-memory-{}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        let mut made = TestResource::default();
        made.undo(&["rmdir", group.to_str().unwrap()]);
        std::fs::write(group.join(file), (mib << 20).to_string()).unwrap();
        Self { group, _made: made }
    }

    /// Moves a process into the group.
    pub fn take_in(&self, process: u32) {
        std::fs::write(self.group.join("cgroup.procs"), process.to_string()).unwrap();
    }
}
