//! Free and required space of a plan, per file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_plan::{ResolvedPlan, Target, TargetKind};

use super::{is_own_directory, own_name};
use crate::EngineError;

/// Required and free space on one file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// First directory of the plan on this file system.
    pub path: PathBuf,
    /// Bytes that all directories of the plan on this file system require.
    pub needed_bytes: u64,
    /// Free bytes. `None` if the directory is missing or its free space is unknown.
    pub free_bytes: Option<u64>,
    /// Bytes that become free if an earlier data set of the same plan is replaced.
    pub reused_bytes: u64,
}

impl Space {
    /// Returns an error if the data is known not to fit.
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

/// Returns the space of a plan's directories, one entry for each file system. Returns nothing for
/// targets without directories.
#[must_use]
pub fn space(plan: &ResolvedPlan, target: &Target) -> Vec<Space> {
    if !matches!(target.kind, TargetKind::Path { .. } | TargetKind::Directories { .. }) {
        return Vec::new();
    }
    // A missing directory has no known file system, so it gets its own entry.
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
    let seen = |space: Space| Space {
        free_bytes: free_bytes(&space.path),
        reused_bytes: occupied_bytes(&space.path.join(own_name(&plan.name))),
        ..space
    };
    needs.into_values().map(seen).collect()
}

/// Returns the free bytes. Returns `None` for file systems without a size, such as ramfs.
fn free_bytes(path: &Path) -> Option<u64> {
    let statistics = rustix::fs::statvfs(path).ok().filter(|s| s.f_blocks > 0)?;
    Some(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}

/// Rejects a plan whose data does not fit.
pub(crate) fn check_space(plan: &ResolvedPlan, target: &Target) -> Result<(), EngineError> {
    space(plan, target).iter().find_map(Space::lacking).map_or(Ok(()), Err)
}

/// Returns the bytes that become free if an earlier store is replaced.
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
