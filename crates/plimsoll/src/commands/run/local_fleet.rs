//! Where a fleet of this host alone works, and what it keeps while it runs.

use std::path::{Path, PathBuf};

use plimsoll_plan::{ResolvedPlan, TargetKind};

use crate::error::CliError;

/// The directory below which a local fleet's agents work. Several need one each.
///
/// # Errors
/// A target that is no directory, or one that several would share.
pub fn place(plan: &ResolvedPlan, count: u32) -> Result<Option<PathBuf>, CliError> {
    let path = match plan.targets.first().map(|target| &target.kind) {
        Some(TargetKind::Path { path }) => path,
        Some(TargetKind::Null) => return Ok(None),
        _ => {
            return Err(CliError::usage("a local fleet runs on `path` or `null`")
                .hint("name a directory: path = \"/mnt/test/{host}\""));
        }
    };
    let parts = Path::new(path).components();
    let parent: PathBuf = parts.take_while(|part| !is_of_host(part.as_os_str())).collect();
    if count > 1 && parent == Path::new(path) {
        return Err(CliError::usage("several agents on this host need a directory each")
            .hint(format!("write path = \"{}/{{host}}\"", path.trim_end_matches('/'))));
    }
    if !parent.is_dir() {
        return Err(CliError::usage(format!("{} is no directory", parent.display()))
            .hint("make it first, or name another"));
    }
    Ok(Some(parent))
}

fn is_of_host(part: &std::ffi::OsStr) -> bool {
    part.to_string_lossy().contains("{host}")
}

/// A directory that is removed in the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes it below the cache.
    ///
    /// # Errors
    /// A directory that can't be made.
    pub fn make(cache: &Path) -> Result<Self, CliError> {
        let path = cache.join(format!("fleet-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|error| CliError::environment(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in the cache's directory, and says whose it was.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
