//! Paths of the files in a share, for directories of this host.
//!
//! A share uses one directory of the plan. Without a tree, the data files of a share are directly
//! in this directory. With a tree, the share has its own directory. In this directory are
//! `tree_levels` levels of directories, each with `tree_fan_out` entries. The files are distributed
//! round-robin over the directories of the last level. Operations on names use small files. The
//! small files of a share are in a separate directory next to the share's data files.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use plimsoll_plan::Stream;
use plimsoll_sys::SysError;
use plimsoll_workload::matrix::{StreamConfig, name_text};

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use crate::EngineError;
use crate::open_target::HeldTarget;
use crate::open_target::openat::names_in;

/// Paths of the files of one stream.
#[derive(Debug)]
pub struct Tree<'a> {
    stream: &'a Stream,
    config: &'a StreamConfig,
    /// Directories that the data set created for itself.
    below: &'a [PathBuf],
    /// Prefix of all names. It is `STREAM-` if the plan has several streams, and otherwise empty.
    prefix: String,
}

impl<'a> Tree<'a> {
    /// Creates the tree for one stream of a plan.
    #[must_use]
    pub fn new(
        stream: &'a Stream,
        config: &'a StreamConfig,
        several: bool,
        below: &'a [PathBuf],
    ) -> Self {
        let prefix = if several { format!("{}-", stream.name) } else { String::new() };
        Self { stream, config, below, prefix: prefix.replace('/', "_") }
    }

    fn share(&self, share: u32) -> PathBuf {
        self.below[share as usize % self.below.len().max(1)].clone()
    }

    /// Returns the path of the directory that has this number in the last level.
    fn leaf(&self, share: u32, number: u32) -> PathBuf {
        let set = &self.stream.files;
        let mut path = self.share(share);
        if set.tree_levels > 0 {
            path.push(format!("{}s{share:02}", self.prefix));
        }
        let fan_out = set.tree_fan_out.max(1);
        for level in (0..set.tree_levels).rev() {
            let at = number / fan_out.saturating_pow(level) % fan_out;
            path.push(format!("d{at:03}"));
        }
        path
    }

    #[must_use]
    pub fn data_file(&self, share: u32, file: u32) -> PathBuf {
        let leaf = self.leaf(share, file % self.stream.files.leaves());
        leaf.join(format!("{}s{share:02}-f{file:03}.data", self.prefix))
    }

    /// Returns the directories for the small files of all shares, sorted by share.
    #[must_use]
    pub fn small(&self) -> Vec<PathBuf> {
        let leaves = self.stream.files.leaves();
        let each = (0..self.config.files.shares).flat_map(|s| (0..leaves).map(move |l| (s, l)));
        let name = |share: u32| format!("{}s{share:02}-small", self.prefix);
        each.map(|(share, leaf)| self.leaf(share, leaf).join(name(share))).collect()
    }

    /// Creates the small files that must exist when the clients start. Removes all other small
    /// files.
    ///
    /// # Errors
    /// Fails if a file or directory cannot be created or removed.
    pub(crate) fn reset_small(&self, held: &HeldTarget) -> Result<(), EngineError> {
        let config = self.config;
        let directories = self.small();
        for directory in &directories {
            empty(held, directory)?;
        }
        let (shares, leaves) = (config.files.shares.max(1), self.stream.files.leaves());
        for client in 0..config.clients {
            for number in 0..u64::from(config.names_per_client) {
                let leaf = (number % u64::from(leaves)) as u32;
                let directory = &directories[(client % shares * leaves + leaf) as usize];
                let path = directory.join(name_text(client, number));
                held.create(&path)
                    .map_err(|error| EngineError::system("creating a small file", error))?;
            }
        }
        Ok(())
    }
}

/// Removes a directory of small files and creates it again. Its parent directory was created for
/// the data set.
fn empty(held: &HeldTarget, directory: &Path) -> Result<(), EngineError> {
    let failed = |error: SysError| {
        EngineError::system("creating a directory of small files", error.at(directory))
    };
    let errno = |call, errno: Errno| failed(SysError::new(call, errno.raw_os_error()));
    let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(errno("mkdir", Errno::INVAL));
    };
    let above = held.make_directories(above).map_err(failed)?;
    let old = held.make_directories(directory).map_err(failed)?;
    for small in names_in(old.as_fd()).map_err(|error| errno("read", error))? {
        unlinkat(&old, &small, AtFlags::empty()).map_err(|error| errno("unlink", error))?;
    }
    unlinkat(&above, name, AtFlags::REMOVEDIR).map_err(|error| errno("rmdir", error))?;
    held.make_directories(directory).map(drop).map_err(failed)
}
