//! Directories of a mail store: their lock, files and generation maps.
//!
//! The store creates its own directory, `plimsoll-NAME`, below each directory that the plan names.
//! If a link or a directory without a manifest has that name, it does not belong to Plimsoll and is
//! rejected. Files are created with `O_EXCL`, so an existing file is never opened for writing.
//! Removal deletes only the contents that the manifest lists.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Mailbox, ResolvedPlan, Target};
use plimsoll_sys::file;
use plimsoll_workload::mailbox::Store;

use super::manifest::{self, Manifest, Position, StoreState, boot_id};
use crate::EngineError;
use crate::allow_list::AllowList;
use crate::open_target::HeldTarget;
use crate::work_dir::find_manifest::open_directories;
use crate::work_dir::removal::remove_each;
use crate::work_dir::{
    self, DataManifest, Locks, check_space, finish_removals, lock_all, lock_shared, maps, own_name,
};

/// Directories of a store, locked until this value is dropped.
#[derive(Debug)]
pub struct StoreDirectories {
    /// Manifest in its current state on the disk.
    pub manifest: Manifest,
    /// True if the store of an earlier run was removed to make room for this store.
    pub replaced: bool,
    /// Open handles of the store's own directories. Files are opened relative to these directories.
    pub held: HeldTarget,
    /// Locks, released on drop.
    _locks: Locks,
}

impl StoreDirectories {
    /// Prepares the target's directories for a new store. Removes a store of an earlier run of the
    /// same plan. If `allowed` is set, the target must be in one of these directories.
    ///
    /// # Errors
    /// Fails if a directory is missing, not allowed, in use by another run, read-only or too small.
    /// Also fails if another file or directory has the store's name.
    pub fn create(
        plan: &ResolvedPlan,
        target: &Target,
        mailbox: &Mailbox,
        state_directory: &Path,
        store_id: u64,
        allowed: Option<&AllowList>,
    ) -> Result<Self, EngineError> {
        // The store numbers the directories of databases first, then those of logs.
        let all = target.database_directories().iter().chain(target.log_directories());
        let named = work_dir::named_directories(all, "a mail store needs directories", allowed)?;
        let locks = lock_all(&named)?;
        let own_name = own_name(&plan.name);
        for directory in &named {
            maps::forget(state_directory, &finish_removals(directory, Some(&own_name)));
        }
        check_space(plan, target)?;
        let (made, replaced) = work_dir::create_own_directories(&named, &own_name)?;
        maps::forget(state_directory, &replaced);
        let generation_maps = maps::directory(state_directory, store_id);
        let text = |path: &PathBuf| path.display().to_string();
        let manifest = Manifest {
            store_version: manifest::VERSION,
            store_id,
            plan: plan.name.clone(),
            seed: plan.seed,
            mailbox: mailbox.clone(),
            directories: made.iter().map(|own| text(&own.path)).collect(),
            database_directories: target.database_directories().len() as u32,
            generation_maps: text(&generation_maps),
            state: StoreState::Creating,
            boot_id: boot_id(),
            positions: Vec::new(),
        };
        let held = HeldTarget::of_directories(made);
        let store_directories =
            Self { manifest, replaced: !replaced.is_empty(), held, _locks: locks };
        // The manifest is written first, because maps whose data has no manifest are
        // garbage-collected.
        let noted = store_directories.manifest.write(&store_directories.held);
        let noted = noted.and_then(|()| {
            maps::write_locations(&generation_maps, &store_directories.manifest.directories)
        });
        if let Err(error) = noted {
            // An error of the removal is ignored, so that the caller gets the first error.
            drop(store_directories.remove());
            return Err(error);
        }
        Ok(store_directories)
    }

    /// Opens the store at `path` for reading. `path` is one of the store's own directories or a
    /// directory that a plan names. Creates nothing, so a read-only file system is enough. Also
    /// returns whether the store is in its original location.
    ///
    /// # Errors
    /// Fails if `path` contains no store, several stores or only a part of a copy, or if the store
    /// is in use.
    pub fn open(path: &Path) -> Result<(Self, bool), EngineError> {
        let (found, mut manifest): (PathBuf, Manifest) = work_dir::find_manifest(path)?;
        let recorded: Vec<PathBuf> = manifest.directories.iter().map(PathBuf::from).collect();
        let directories =
            work_dir::find_manifest::current_directories(&manifest, &found, &recorded)?;
        let above = |directory: &PathBuf| directory.parent().unwrap_or(directory).to_path_buf();
        let named: Vec<PathBuf> = directories.iter().map(above).collect();
        let locks = lock_shared(&named)?;
        let in_place = directories == recorded;
        manifest.directories = directories.iter().map(|path| path.display().to_string()).collect();
        let held = HeldTarget::of_directories(open_directories(&manifest, &directories)?);
        Ok((Self { manifest, replaced: false, held, _locks: locks }, in_place))
    }

    /// Prepares a cleanly closed store for the next run. That run
    ///
    /// # Errors
    /// Fails if the store was not closed cleanly, or if it differs in settings other than these
    /// two.
    pub fn reuse(mut self, mailbox: &Mailbox) -> Result<Self, EngineError> {
        if self.manifest.state != StoreState::Clean {
            return Err(EngineError::Config(
                "the last run did not close its data cleanly: the data cannot be used again".into(),
            ));
        }
        let shape = |m: &Mailbox| Mailbox {
            threads: 0,
            threads_auto: false,
            cache_bytes: 0,
            cache_from_threads: false,
            ..m.clone()
        };
        if shape(&self.manifest.mailbox) != shape(mailbox) {
            return Err(EngineError::Config(
                "the data of the last run is a mail store with other settings".into(),
            ));
        }
        self.manifest.mailbox = mailbox.clone();
        self.replaced = false;
        self.manifest.write(&self.held)?;
        Ok(self)
    }

    /// Returns true if the data of an earlier run is ready to use.
    pub fn is_prepared(&self) -> bool {
        self.manifest.state == StoreState::Clean
    }

    /// Returns the directories in the order of `FileSpec::directory`.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.manifest.directories.iter().map(PathBuf::from).collect()
    }

    /// Returns the directory of the generation maps.
    pub fn marks_directory(&self) -> PathBuf {
        PathBuf::from(&self.manifest.generation_maps)
    }

    /// Creates the store's files and reserves their disk space.
    ///
    /// # Errors
    /// Fails with `ENOSPC` if the disk is full, and also fails if a file already exists.
    pub fn make_files(&self, store: &Store) -> Result<(), EngineError> {
        let directories = self.directories();
        for spec in store.files() {
            let path = directories[spec.directory as usize].join(&spec.name);
            if let Some(parent) = path.parent() {
                self.held
                    .make_directories(parent)
                    .map_err(|error| EngineError::system("creating a directory", error))?;
            }
            let doing = || format!("reserving {} bytes", spec.size_bytes);
            let fd = self
                .held
                .create(&path)
                .map_err(|error| EngineError::system("creating a file", error))?;
            match file::allocate(&fd, spec.size_bytes) {
                Ok(()) => {}
                // Some file systems cannot reserve space. On these, only the length of the file is
                // set.
                Err(error) if [libc::EOPNOTSUPP, libc::ENOSYS].contains(&error.errno) => {
                    file::truncate(&fd, spec.size_bytes)
                        .map_err(|error| EngineError::system(doing(), error.at(&path)))?;
                }
                Err(error) => return Err(EngineError::system(doing(), error.at(&path))),
            }
        }
        Ok(())
    }

    /// Writes the store's new state to the manifest.
    ///
    /// # Errors
    /// Fails if the manifest cannot be written.
    pub fn mark(&mut self, state: StoreState, positions: Vec<Position>) -> Result<(), EngineError> {
        self.manifest.state = state;
        self.manifest.boot_id = boot_id();
        if !positions.is_empty() {
            self.manifest.positions = positions;
        }
        self.manifest.write(&self.held)
    }

    /// Removes the store's files, its own directories and its generation maps.
    ///
    /// # Errors
    /// Fails if a file cannot be removed or does not belong to the store.
    pub fn remove(self) -> Result<(), EngineError> {
        let contents = self.manifest.contents();
        remove_each(self.held.each_directory(), &contents)?;
        maps::remove(Path::new(&self.manifest.generation_maps))
    }
}
