//! Directories of a mail store, with their lock, files and generation maps.
//!
//! The store creates its own directory, `plimsoll-NAME`, in each directory that the plan names. A
//! link with that name, or a directory that has that name and no manifest, does not belong to
//! Plimsoll and is rejected. Files are created with `O_EXCL`, so an existing file is never opened
//! for writing. A removal deletes only the files and directories that the manifest lists.

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

/// Directories of a mail store. They are locked until this value is dropped.
#[derive(Debug)]
pub struct StoreDirectories {
    /// Manifest, as it is currently stored on the disk.
    pub manifest: Manifest,
    /// True if the store of an earlier run was removed before this store was created.
    pub replaced: bool,
    /// Open handles of the directories that the store created. Files are opened relative to these
    /// directories.
    pub held: HeldTarget,
    /// Locks on the directories. They are released when this value is dropped.
    _locks: Locks,
}

impl StoreDirectories {
    /// Prepares the directories of the target for a new store. Removes the store of an earlier run
    /// of the same plan. If `allowed` is set, the target must be in a directory that this list
    /// allows.
    ///
    /// # Errors
    /// Fails if a directory is missing, not allowed, in use by another run, read-only or too small.
    /// Also fails if a file or directory with the store's name exists that does not belong to
    /// Plimsoll.
    pub fn create(
        plan: &ResolvedPlan,
        target: &Target,
        mailbox: &Mailbox,
        state_directory: &Path,
        store_id: u64,
        allowed: Option<&AllowList>,
    ) -> Result<Self, EngineError> {
        // The store numbers the directories for databases first, and then the directories for logs.
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
        // The manifest is written before the maps. Maps without a manifest are treated as garbage
        // and deleted.
        let noted = store_directories.manifest.write(&store_directories.held);
        let noted = noted.and_then(|()| {
            maps::write_locations(&generation_maps, &store_directories.manifest.directories)
        });
        if let Err(error) = noted {
            // An error of the removal is ignored: the caller must receive the first error.
            drop(store_directories.remove());
            return Err(error);
        }
        Ok(store_directories)
    }

    /// Opens the store at `path` for reading. `path` is a directory of the store itself, or a
    /// directory that a plan names. Creates nothing, so this function also works on a read-only
    /// file system. Also returns whether the store is in its original location.
    ///
    /// # Errors
    /// Fails if `path` contains no store, several stores, or an incomplete copy of a store. Also
    /// fails if the store is in use.
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

    /// Prepares a cleanly closed store for the next run. The next run may use another number of
    /// threads and another cache size.
    ///
    /// # Errors
    /// Fails if the store was not closed cleanly, or if any other setting of the store differs.
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

    /// Returns true if an earlier run created the data and the data can be used.
    pub fn is_prepared(&self) -> bool {
        self.manifest.state == StoreState::Clean
    }

    /// Returns the directories in the order that `FileSpec::directory` uses as index.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.manifest.directories.iter().map(PathBuf::from).collect()
    }

    /// Returns the directory that contains the generation maps.
    pub fn marks_directory(&self) -> PathBuf {
        PathBuf::from(&self.manifest.generation_maps)
    }

    /// Creates the store's files and reserves their disk space.
    ///
    /// # Errors
    /// Fails with `ENOSPC` if the disk is full. Also fails if a file already exists.
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
                // Some file systems cannot reserve disk space. There, only the length of the file
                // is set.
                Err(error) if [libc::EOPNOTSUPP, libc::ENOSYS].contains(&error.errno) => {
                    file::truncate(&fd, spec.size_bytes)
                        .map_err(|error| EngineError::system(doing(), error.at(&path)))?;
                }
                Err(error) => return Err(EngineError::system(doing(), error.at(&path))),
            }
        }
        Ok(())
    }

    /// Writes the new state of the store to the manifest.
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

    /// Removes the files of the store, the directories that it created, and its generation maps.
    ///
    /// # Errors
    /// Fails if a file cannot be removed or does not belong to the store.
    pub fn remove(self) -> Result<(), EngineError> {
        let contents = self.manifest.contents();
        remove_each(self.held.each_directory(), &contents)?;
        maps::remove(Path::new(&self.manifest.generation_maps))
    }
}
