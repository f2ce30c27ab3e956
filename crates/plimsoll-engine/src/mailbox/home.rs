//! Where a mail store lies: its directories, its lock, its files and its generation maps.
//!
//! Below each directory that the plan names, the store has one of its own, `plimsoll-NAME`. A link or a
//! directory of that name without a manifest is not ours and is refused; files are made with `O_EXCL`, so
//! that nothing that was there is ever opened for writing. What is removed is what the manifest lists.

use std::path::{Path, PathBuf};

use plimsoll_plan::{Mailbox, ResolvedPlan, Target};
use plimsoll_sys::file;
use plimsoll_workload::mailbox::Store;

use super::manifest::{self, Manifest, Position, StoreState, boot_id};
use crate::EngineError;
use crate::allowed::AllowedPlaces;
use crate::open_target::HeldTarget;
use crate::work_dir::find::open_settled;
use crate::work_dir::removal::remove;
use crate::work_dir::{
    self, Locks, Manifested, check_space, finish_removals, lock_all, lock_shared, maps, own_name,
};

/// The directories of a store, locked for as long as this lives.
#[derive(Debug)]
pub struct Home {
    /// The manifest as it is on disk.
    pub manifest: Manifest,
    /// True where the store of an earlier run was removed to make room for this one.
    pub replaced: bool,
    /// Its own directories, open: files are opened beneath them.
    pub held: HeldTarget,
    /// Held for as long as this lives.
    _locks: Locks,
}

impl Home {
    /// Takes the target's directories for a new store; one that an earlier run of the same plan left
    /// there is removed first. The target must be in the places of `allowed`, if there are any.
    ///
    /// # Errors
    /// A directory that is missing, not allowed, in use by another run, read-only, too small, or that holds
    /// something else under the store's name.
    pub fn create(
        plan: &ResolvedPlan,
        target: &Target,
        mailbox: &Mailbox,
        state_directory: &Path,
        store_id: u64,
        allowed: Option<&AllowedPlaces>,
    ) -> Result<Self, EngineError> {
        // Databases first, then logs, as the store counts them.
        let all = target.database_directories().iter().chain(target.log_directories());
        let named = work_dir::named_directories(all, "a mail store needs directories", allowed)?;
        let locks = lock_all(&named)?;
        let own_name = own_name(&plan.name);
        for directory in &named {
            maps::forget(state_directory, &finish_removals(directory, Some(&own_name)));
        }
        check_space(plan, target)?;
        let (made, replaced) = work_dir::make_all(&named, &own_name)?;
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
        let home = Self { manifest, replaced: !replaced.is_empty(), held, _locks: locks };
        // Maps whose data has no manifest are collected: the manifest goes first.
        let noted = home.manifest.write(&home.held);
        let noted =
            noted.and_then(|()| maps::note_places(&generation_maps, &home.manifest.directories));
        if let Err(error) = noted {
            // The same: the error that made it fail is the one to tell.
            drop(home.remove());
            return Err(error);
        }
        Ok(home)
    }

    /// Takes the store that lies at `path` for reading: one of its own directories, or one that a plan
    /// named. Its directories are those that are read; nothing is made, on a file system that is mounted
    /// read-only too. Says also whether the store lies where it was made.
    ///
    /// # Errors
    /// No store there, several of them, one that is in use, or a copy of a part of one.
    pub fn open(path: &Path) -> Result<(Self, bool), EngineError> {
        let (found, mut manifest): (PathBuf, Manifest) = work_dir::find_manifest(path)?;
        let recorded: Vec<PathBuf> = manifest.directories.iter().map(PathBuf::from).collect();
        let directories = work_dir::find::settle(&manifest, &found, &recorded)?;
        let above = |directory: &PathBuf| directory.parent().unwrap_or(directory).to_path_buf();
        let named: Vec<PathBuf> = directories.iter().map(above).collect();
        let locks = lock_shared(&named)?;
        let in_place = directories == recorded;
        manifest.directories = directories.iter().map(|path| path.display().to_string()).collect();
        let held = HeldTarget::of_directories(open_settled(&manifest, &directories)?);
        Ok((Self { manifest, replaced: false, held, _locks: locks }, in_place))
    }

    /// Readies the data that a run left clean for the next run, which may have other threads and
    /// another page cache. Nothing is made anew: the databases are as that run left them.
    ///
    /// # Errors
    /// Data that was not left clean, or a store of another shape.
    pub fn reuse(mut self, mailbox: &Mailbox) -> Result<Self, EngineError> {
        if self.manifest.state != StoreState::Clean {
            return Err(EngineError::Config(
                "the data that the last run left was not closed cleanly: it cannot be used again"
                    .into(),
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
                "the data that the last run left is that of another mail store".into(),
            ));
        }
        self.manifest.mailbox = mailbox.clone();
        self.replaced = false;
        self.manifest.write(&self.held)?;
        Ok(self)
    }

    /// Whether the data is there already, as an earlier run left it.
    pub fn is_prepared(&self) -> bool {
        self.manifest.state == StoreState::Clean
    }

    /// The directories as `FileSpec::directory` counts them.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.manifest.directories.iter().map(PathBuf::from).collect()
    }

    /// Where the generation maps lie.
    pub fn marks_directory(&self) -> PathBuf {
        PathBuf::from(&self.manifest.generation_maps)
    }

    /// Makes the store's files with their space reserved.
    ///
    /// # Errors
    /// `ENOSPC`, or a file that is there already.
    pub fn make_files(&self, store: &Store) -> Result<(), EngineError> {
        let directories = self.directories();
        for spec in store.files() {
            let path = directories[spec.directory as usize].join(&spec.name);
            if let Some(parent) = path.parent() {
                self.held
                    .make_directories(parent)
                    .map_err(|error| EngineError::system("making a directory", error))?;
            }
            let doing = || format!("reserving {} bytes", spec.size_bytes);
            let fd = self
                .held
                .create(&path)
                .map_err(|error| EngineError::system("making a file", error))?;
            match file::allocate(&fd, spec.size_bytes) {
                Ok(()) => {}
                // File systems that can't reserve get the length alone.
                Err(error) if [libc::EOPNOTSUPP, libc::ENOSYS].contains(&error.errno) => {
                    file::truncate(&fd, spec.size_bytes)
                        .map_err(|error| EngineError::system(doing(), error.at(&path)))?;
                }
                Err(error) => return Err(EngineError::system(doing(), error.at(&path))),
            }
        }
        Ok(())
    }

    /// Notes in which state the store is left.
    ///
    /// # Errors
    /// A manifest that cannot be written.
    pub fn mark(&mut self, state: StoreState, positions: Vec<Position>) -> Result<(), EngineError> {
        self.manifest.state = state;
        self.manifest.boot_id = boot_id();
        if !positions.is_empty() {
            self.manifest.positions = positions;
        }
        self.manifest.write(&self.held)
    }

    /// Removes the store's files with its own directories, and its generation maps.
    ///
    /// # Errors
    /// What cannot be removed, and what is there and not the store's.
    pub fn remove(self) -> Result<(), EngineError> {
        let contents = self.manifest.contents();
        for own in self.held.each_directory() {
            remove(own, &contents)?;
        }
        maps::remove(Path::new(&self.manifest.generation_maps))
    }
}
