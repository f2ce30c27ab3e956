//! Compares the space that a plan requires on each file system with the space that is free there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_plan::{ResolvedPlan, Target, TargetKind};

use super::{is_own_directory, own_name};
use crate::EngineError;

/// Space that a plan requires on one file system, and space that is free there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Path of the plan's first directory on this file system.
    pub path: PathBuf,
    /// Number of bytes that the plan requires in all its directories on this file system.
    pub needed_bytes: u64,
    /// Number of free bytes; `None` if the directory is missing or if its free space is unknown.
    pub free_bytes: Option<u64>,
    /// Number of bytes that become free when the run replaces an earlier data set of the same plan.
    pub reused_bytes: u64,
}

impl Space {
    /// Returns an error if the data certainly does not fit.
    #[must_use]
    pub fn lacking(&self) -> Option<EngineError> {
        let free_bytes = self.free_bytes?;
        (free_bytes.saturating_add(self.reused_bytes) < self.needed_bytes).then(|| {
            EngineError::TooSmall {
                path: self.path.clone(),
                needed_bytes: self.needed_bytes,
                free_bytes,
            }
        })
    }
}

/// Returns the required space and the free space for the directories of a plan. There is one entry
/// for each file system. The list is empty if the target has no directories.
#[must_use]
pub fn space(plan: &ResolvedPlan, target: &Target) -> Vec<Space> {
    if !matches!(target.kind, TargetKind::Path { .. } | TargetKind::Directories { .. }) {
        return Vec::new();
    }
    // If a directory is missing, its file system is unknown. The directory therefore has an entry
    // of its own.
    let mut needs: BTreeMap<(u64, Option<String>), Space> = BTreeMap::new();
    for need in plan.required_bytes(target) {
        let path = PathBuf::from(&need.directory);
        let key = match fs::metadata(&path) {
            Ok(metadata) => (metadata.dev(), None),
            Err(_) => (0, Some(need.directory)),
        };
        let empty = || Space { path, needed_bytes: 0, free_bytes: None, reused_bytes: 0 };
        let sum = needs.entry(key).or_insert_with(empty);
        sum.needed_bytes = sum.needed_bytes.saturating_add(need.bytes);
    }
    needs.into_values().map(|space| seen(&plan.name, space.path, space.needed_bytes)).collect()
}

/// Returns the space that is free in a directory for the data of the plan with this name.
pub(crate) fn seen(plan: &str, path: PathBuf, needed_bytes: u64) -> Space {
    let reused_bytes = occupied_bytes(&path.join(own_name(plan)));
    let short_bytes = needed_bytes.saturating_sub(reused_bytes);
    let read = || free_bytes(&path);
    let free_bytes = match frees_late(&path) {
        true => freed_bytes(short_bytes, read, &mut std::thread::sleep),
        false => read(),
    };
    Space { path, needed_bytes, free_bytes, reused_bytes }
}

/// Maximum time for which a run waits until the space of removed files is free.
const FREED_WAIT: Duration = Duration::from_secs(30);
/// If no space has become free for this time, the wait ends.
const FREED_IDLE: Duration = Duration::from_secs(3);
const FREED_POLL: Duration = Duration::from_millis(100);
/// Magic number of XFS (statfs(2)).
const XFS_MAGIC: u64 = 0x5846_5342;

/// Returns true if the file system frees the space of removed files in the background. XFS does
/// this: it inactivates inodes in work queues.
fn frees_late(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|statistics| statistics.f_type as u64 == XFS_MAGIC)
}

/// Returns the number of free bytes. If this number is too small, waits as long as the number
/// increases.
fn freed_bytes(
    needed_bytes: u64,
    read: impl Fn() -> Option<u64>,
    sleep: &mut dyn FnMut(Duration),
) -> Option<u64> {
    let mut free_bytes = read()?;
    let (mut waited, mut idle) = (Duration::ZERO, Duration::ZERO);
    while free_bytes < needed_bytes && waited < FREED_WAIT && idle < FREED_IDLE {
        sleep(FREED_POLL);
        let now = read()?;
        waited += FREED_POLL;
        idle = if now > free_bytes { Duration::ZERO } else { idle + FREED_POLL };
        free_bytes = now;
    }
    Some(free_bytes)
}

/// Returns the number of free bytes. Returns `None` for file systems without a fixed size, such as
/// ramfs.
fn free_bytes(path: &Path) -> Option<u64> {
    let statistics = rustix::fs::statvfs(path).ok().filter(|s| s.f_blocks > 0)?;
    Some(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}

/// Rejects a plan if its data does not fit on the target.
pub(crate) fn check_space(plan: &ResolvedPlan, target: &Target) -> Result<(), EngineError> {
    space(plan, target).iter().find_map(Space::lacking).map_or(Ok(()), Err)
}

/// Returns the number of bytes that become free when the run replaces an earlier store.
fn occupied_bytes(own: &Path) -> u64 {
    if !is_own_directory(own) {
        return 0;
    }
    let mut bytes = 0;
    let mut stack = vec![own.to_path_buf()];
    while let Some(directory) = stack.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => stack.push(entry.path()),
                Ok(metadata) => bytes += metadata.blocks() * 512,
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Simulates a file system that frees `step` bytes before each check, until it has freed `most`
    /// bytes. Returns the number of free bytes after the wait, and how long the wait took.
    fn wait(needed: u64, step: u64, most: u64) -> (Option<u64>, Duration) {
        let (free, waited) = (Cell::new(0), Cell::new(Duration::ZERO));
        let read = || {
            free.set((free.get() + step).min(most));
            Some(free.get())
        };
        let freed = freed_bytes(needed, read, &mut |time| waited.set(waited.get() + time));
        (freed, waited.get())
    }

    #[test]
    fn space_that_is_freed_late_is_waited_for() {
        assert_eq!(wait(5, 10, 10), (Some(10), Duration::ZERO), "there is enough");
        assert_eq!(wait(100, 10, 200), (Some(100), Duration::from_millis(900)));
        // This file system stops freeing space, so the wait ends early.
        assert_eq!(wait(100, 10, 20), (Some(20), Duration::from_millis(100) + FREED_IDLE));
        assert_eq!(wait(u64::MAX, 1, u64::MAX), (Some(301), FREED_WAIT));
        assert_eq!(freed_bytes(1, || None, &mut |_| {}), None);
    }
}
