//! Data set of a run. It consists of directories or a device, a lock, the files and their expected
//! contents.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_plan::{Matrix, Stream, TargetKind};
use plimsoll_sys::file::{DirectMode, OpenFlags};
use plimsoll_workload::content::Content;
use plimsoll_workload::matrix::{Sample, StreamConfig};
use plimsoll_workload::planned::streams;
use plimsoll_workload::stamp::Generations;

use super::alignment;
use super::device::Device;
use super::manifest::{DataFile, DataState, Manifest, VERSION};
use super::memory::{check_memory, memory_bytes};
use super::plan_check::check_names;
use super::remote::RemoteData;
use super::request::{CHUNK_BYTES, DataSetRequest};
use super::tree::Tree;
use crate::EngineError;
use crate::backend::Names;
use crate::open_target::HeldTarget;
use crate::open_target::handles::OwnDirectory;
use crate::work_dir::find_manifest::{
    FileState, current_directories, file_state, open_directories,
};
use crate::work_dir::removal::remove_each;
use crate::work_dir::{
    self, DataManifest, Locks, check_space, finish_removals, lock_all, lock_shared, maps, own_name,
    sys_error,
};

/// Data set of a run. It is locked until this value is dropped.
#[derive(Debug)]
pub struct DataSet {
    /// Manifest of the data set. For the null target, it lists no files.
    pub manifest: Manifest,
    /// True if the data of an earlier run was removed before this data is created.
    pub replaced: bool,
    /// True after the files have been filled with the planned contents.
    pub is_created: bool,
    /// Generations of the units in each file; `None` if generations are not tracked.
    pub generations: Option<Arc<[Generations]>>,
    /// Tracker for a sample of the blocks, which every run uses. `None` if the data has no stamps.
    pub sample: Option<Arc<Sample>>,
    /// True for the null target, which discards all data.
    pub is_null: bool,
    device: Option<Device>,
    /// Open handles of the directories that the data set created, or of the device. Files are
    /// opened relative to these directories.
    pub held: HeldTarget,
    /// Data on servers; `None` if the target is not on servers.
    pub remote: Option<RemoteData>,
    /// Directories that the data set created, in the order of the plan. Share `s` is in directory
    /// `s mod directories`.
    below: Vec<PathBuf>,
    _locks: Option<Locks>,
}

impl DataSet {
    /// Prepares the target for a new data set. Removes the data set of an earlier run of the same
    /// plan.
    ///
    /// # Errors
    /// Fails if the target is unusable, in use or too small, or if it contains other data.
    pub fn create(request: &DataSetRequest<'_>) -> Result<Self, EngineError> {
        let DataSetRequest { plan, target, matrix, .. } = *request;
        check_names(target, matrix)?;
        match &target.kind {
            TargetKind::Null => Self::null(request),
            TargetKind::Device { device } => Self::on_device(request, Path::new(device)),
            TargetKind::Path { .. } | TargetKind::Directories { .. } => {
                let configs = streams::streams(matrix, plan.seed, None)?;
                Self::in_directories(request, &configs)
            }
            TargetKind::Nfs { .. } | TargetKind::S3 { .. } => {
                let configs = streams::streams(matrix, plan.seed, None)?;
                Self::on_servers(request, &configs)
            }
            _ => {
                let kind = target.kind_word();
                let says = format!("a target of kind {kind} does not consist of files");
                Err(EngineError::Config(says))
            }
        }
    }

    fn manifest(request: &DataSetRequest<'_>, unit_bytes: u32) -> Manifest {
        Manifest {
            data_version: VERSION,
            data_id: request.data_id,
            plan: request.plan.name.clone(),
            unit_bytes,
            directories: Vec::new(),
            files: Vec::new(),
            generations: maps::directory(request.state_directory, request.data_id),
            state: DataState::Creating,
        }
    }

    fn null(request: &DataSetRequest<'_>) -> Result<Self, EngineError> {
        Ok(Self {
            manifest: Self::manifest(request, 512),
            replaced: false,
            is_created: true,
            generations: None,
            sample: None,
            is_null: true,
            device: None,
            held: HeldTarget::default(),
            remote: None,
            below: Vec::new(),
            _locks: None,
        })
    }

    fn on_device(request: &DataSetRequest<'_>, path: &Path) -> Result<Self, EngineError> {
        let writes =
            request.matrix.writes() || request.matrix.streams.iter().any(Stream::writes_layout);
        let node = Device::open_node(path, request.allowed)?;
        let device = Device::claim(&node, writes, request.destroy, request.data_id)?;
        let configs = streams::streams(request.matrix, request.plan.seed, Some(device.size_bytes))?;
        alignment::check_device(request.matrix, &configs, &device)?;
        let mut manifest = Self::manifest(request, streams::unit_bytes(request.matrix, &configs)?);
        // All streams use the device as one file. The first stream determines its content.
        let sizes = configs.iter().map(|config| config.files.file_size_bytes);
        let size_bytes = sizes.max().unwrap_or(0);
        if let Some(stream) = request.matrix.streams.first() {
            manifest.files.push(data_file(path.to_path_buf(), size_bytes, stream));
        }
        let mut data_set = Self {
            manifest,
            replaced: false,
            is_created: false,
            generations: None,
            sample: None,
            is_null: false,
            device: Some(device),
            held: HeldTarget::of_device(node),
            remote: None,
            below: Vec::new(),
            _locks: None,
        };
        data_set.track_generations(request.follow, &configs)?;
        Ok(data_set)
    }

    fn in_directories(
        request: &DataSetRequest<'_>,
        configs: &[StreamConfig],
    ) -> Result<Self, EngineError> {
        let names = request.target.database_directories().iter();
        let needs = "the run creates its files in a directory";
        let named = work_dir::named_directories(names, needs, request.allowed)?;
        let locks = lock_all(&named)?;
        let own_name = own_name(&request.plan.name);
        for directory in &named {
            let finished = finish_removals(directory, Some(&own_name));
            maps::forget(request.state_directory, &finished);
        }
        check_space(request.plan, request.target)?;
        let mut manifest = Self::manifest(request, streams::unit_bytes(request.matrix, configs)?);
        let (made, replaced) = work_dir::create_own_directories(&named, &own_name)?;
        let below: Vec<PathBuf> = made.iter().map(|own| own.path.clone()).collect();
        maps::forget(request.state_directory, &replaced);
        manifest.files = files(request.matrix, configs, &below);
        manifest.directories.clone_from(&below);
        manifest.directories.sort();
        manifest.directories.dedup();
        let mut data_set = Self {
            manifest,
            replaced: !replaced.is_empty(),
            is_created: false,
            generations: None,
            sample: None,
            is_null: false,
            device: None,
            held: HeldTarget::of_directories(made),
            remote: None,
            below,
            _locks: Some(locks),
        };
        let made = data_set.manifest.write(&data_set.held).and_then(|()| data_set.make_files());
        let made = made.and_then(|()| {
            let (held, below) = (&data_set.held, &data_set.below);
            alignment::check_files(request.matrix, configs, data_set.files(), held, below)
        });
        if let Err(error) = made.and_then(|()| data_set.track_generations(request.follow, configs))
        {
            // An error of the removal is ignored: the caller must receive the first error.
            drop(data_set.remove());
            return Err(error);
        }
        Ok(data_set)
    }

    fn on_servers(
        request: &DataSetRequest<'_>,
        configs: &[StreamConfig],
    ) -> Result<Self, EngineError> {
        let mut manifest = Self::manifest(request, streams::unit_bytes(request.matrix, configs)?);
        let remote = RemoteData::create(request, configs)?;
        for (stream, config) in request.matrix.streams.iter().zip(configs) {
            let files = u32::try_from(config.files.files()).unwrap_or(u32::MAX);
            let file = |number| {
                let size_bytes = config.files.file_size_bytes;
                data_file(remote.name_of(number).into(), size_bytes, stream)
            };
            manifest.files.extend((0..files).map(file));
        }
        let mut data_set = Self {
            manifest,
            replaced: remote.replaced(),
            is_created: false,
            generations: None,
            sample: None,
            is_null: false,
            device: None,
            held: HeldTarget::default(),
            remote: Some(remote),
            below: Vec::new(),
            _locks: None,
        };
        if let Err(error) = data_set.track_generations(request.follow, configs) {
            // An error of the removal is ignored: the caller must receive the first error.
            drop(data_set.remove());
            return Err(error);
        }
        Ok(data_set)
    }

    /// Sets up the tracking of generations. A sample of the blocks is always tracked. If `follow`
    /// is true and all files have stamps, every block is tracked.
    fn track_generations(
        &mut self,
        follow: bool,
        configs: &[StreamConfig],
    ) -> Result<(), EngineError> {
        self.sample = self.sample_of(configs);
        if !follow || !self.manifest.files.iter().all(|file| file.stamps) {
            return Ok(());
        }
        let data_bytes: u64 = self.manifest.files.iter().map(|file| file.size_bytes).sum();
        check_memory(data_bytes, self.manifest.unit_bytes, memory_bytes())?;
        let unit_bytes = u64::from(self.manifest.unit_bytes);
        let units = |file: &DataFile| (file.size_bytes / unit_bytes) as usize;
        let files = self.manifest.files.iter();
        self.generations = Some(files.map(|file| Generations::new(units(file))).collect());
        Ok(())
    }

    fn sample_of(&self, configs: &[StreamConfig]) -> Option<Arc<Sample>> {
        let files = &self.manifest.files;
        if !files.iter().any(|file| file.stamps) {
            return None;
        }
        let unit_bytes = u64::from(self.manifest.unit_bytes);
        let reached = |config: &StreamConfig| {
            let all_bytes = config.files.file_size_bytes.saturating_mul(config.files.files());
            config.files.working_set_bytes.unwrap_or(all_bytes).min(all_bytes) / unit_bytes
        };
        let all = configs.iter().map(reached).sum();
        let units = files.iter().map(|file| file.size_bytes / unit_bytes);
        Some(Arc::new(Sample::new(units, all, self.manifest.data_id)))
    }

    /// Creates empty files.
    fn make_files(&self) -> Result<(), EngineError> {
        let mut made: Option<&Path> = None;
        for data in &self.manifest.files {
            // The files of a tree are in subdirectories of the directory that the data set created.
            if let Some(parent) = data.path.parent().filter(|parent| made != Some(*parent)) {
                self.held
                    .make_directories(parent)
                    .map_err(|error| EngineError::system("creating a directory", error))?;
                made = Some(parent);
            }
            self.held
                .create(&data.path)
                .map_err(|error| EngineError::system("creating a file", error))?;
        }
        Ok(())
    }

    /// Records that every block was written once.
    pub fn written_once(&self) {
        self.generations.iter().flat_map(|all| all.iter()).for_each(Generations::written_once);
        self.sample.iter().for_each(|sample| sample.written_once());
    }

    #[must_use]
    pub fn files(&self) -> &[DataFile] {
        &self.manifest.files
    }

    /// Returns the paths of the directories, or of the device, whose disks the run observes.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        match &self.device {
            Some(device) => vec![device.path.clone()],
            None => self.manifest.directories.clone(),
        }
    }

    /// Returns the size of one transfer in a pass over all data. This size is a multiple of the
    /// unit size.
    #[must_use]
    pub fn chunk_bytes(&self) -> u32 {
        let most = self.remote.as_ref().map_or(CHUNK_BYTES, RemoteData::chunk_bytes);
        let unit_bytes = self.manifest.unit_bytes.max(1);
        (most / unit_bytes * unit_bytes).max(unit_bytes)
    }

    /// Returns the size of the device. Returns `None` if the target is not a device.
    #[must_use]
    pub fn device_bytes(&self) -> Option<u64> {
        self.device.as_ref().map(|device| device.size_bytes)
    }

    /// Returns the path of the device, if the run writes to a device. The written data stays on the
    /// device after the run.
    #[must_use]
    pub fn written_device(&self) -> Option<&Path> {
        let device = self.device.as_ref().filter(|device| device.is_writable)?;
        Some(&device.path)
    }

    /// Returns the generator of a file's content.
    ///
    /// # Errors
    /// Fails if the content cannot be generated for this unit size.
    pub fn content(&self, file: &DataFile) -> Result<Content, EngineError> {
        content(&self.manifest, file)
    }

    /// Returns the directories and files on which a stream's metadata operations work. Returns
    /// `None` if the data is not in directories of this host.
    #[must_use]
    pub fn names(&self, matrix: &Matrix, configs: &[StreamConfig], number: usize) -> Option<Names> {
        if self.below.is_empty() {
            return None;
        }
        let (stream, config) = (matrix.streams.get(number)?, configs.get(number)?);
        let tree = Tree::new(stream, config, configs.len() > 1, &self.below);
        Some(Names {
            roots: self.manifest.directories.clone(),
            small: tree.small(),
            per_share: stream.files.leaves(),
        })
    }

    /// Creates the small files that must exist when the clients of the streams start.
    ///
    /// # Errors
    /// Fails if a file cannot be created or removed.
    pub fn reset_small(
        &mut self,
        matrix: &Matrix,
        configs: &[StreamConfig],
    ) -> Result<(), EngineError> {
        let streams = matrix.streams.iter().zip(configs).enumerate();
        for (number, (stream, config)) in streams.filter(|(_, (_, c))| c.metadata_percent > 0.0) {
            match &mut self.remote {
                Some(remote) => remote.reset_small(number, config)?,
                None if self.below.is_empty() => {}
                None => Tree::new(stream, config, configs.len() > 1, &self.below)
                    .reset_small(&self.held)?,
            }
        }
        Ok(())
    }

    /// Opens a file for I/O through the page cache. Such I/O is not part of a workload.
    ///
    /// # Errors
    /// Returns the `errno` if `open` fails.
    pub fn open(&self, file: &DataFile, write: bool) -> Result<OwnedFd, EngineError> {
        let flags = OpenFlags { write, direct: DirectMode::Off, ..OpenFlags::default() };
        let opened = self.held.open(&file.path, flags);
        Ok(opened.map_err(|error| EngineError::system("opening a file", error))?.fd)
    }

    /// Writes the new state of the data set to the manifest. In the state [`DataState::Clean`],
    /// also stores the generation of each unit.
    ///
    /// # Errors
    /// Fails if the manifest or a generation file cannot be written.
    pub fn mark(&mut self, state: DataState) -> Result<(), EngineError> {
        self.manifest.state = state;
        if self.is_null || self.manifest.directories.is_empty() {
            return Ok(());
        }
        if state == DataState::Clean {
            self.save_generations()?;
        }
        self.manifest.write(&self.held)
    }

    fn save_generations(&self) -> Result<(), EngineError> {
        let Some(generations) = &self.generations else { return Ok(()) };
        let directory = &self.manifest.generations;
        let places = self.manifest.directories.iter();
        let places: Vec<String> = places.map(|path| path.display().to_string()).collect();
        maps::write_locations(directory, &places)?;
        let save = || {
            let kept = OwnDirectory::open(directory)?;
            for (number, generations) in generations.iter().enumerate() {
                let file = maps::replace_file(&kept, &number.to_string())?;
                let mut out = std::io::BufWriter::new(file);
                let mut result = Ok(());
                generations.save(|entry| {
                    if result.is_ok() {
                        result = out.write_all(&entry);
                    }
                });
                result?;
                out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
            }
            Ok(())
        };
        save().map_err(|error: std::io::Error| {
            EngineError::system("storing the generations", sys_error("write", directory, &error))
        })
    }

    /// Opens a data set for reading. The data set is at `path`, or in the only directory in `path`
    /// that contains a data set. Returns the data set with its expected contents, and the state of
    /// each file.
    ///
    /// # Errors
    /// Fails if `path` contains no data set, several data sets, or an incomplete copy. Also fails
    /// if the data set is in use or was not closed.
    pub(crate) fn open_at(path: &Path) -> Result<(Self, Vec<FileState>), EngineError> {
        let (found, mut manifest): (PathBuf, Manifest) = work_dir::find_manifest(path)?;
        let directories = current_directories(&manifest, &found, &manifest.directories)?;
        let above = |directory: &PathBuf| directory.parent().unwrap_or(directory).to_path_buf();
        let locks = lock_shared(&directories.iter().map(above).collect::<Vec<_>>())?;
        if manifest.state != DataState::Clean {
            let says = format!(
                "the last run did not close the data set at {}: the expected content is unknown",
                path.display()
            );
            return Err(EngineError::Config(says));
        }
        let (file_states, held) = update_file_paths(&mut manifest, directories)?;
        let generations: Result<Vec<Generations>, EngineError> =
            (0..manifest.files.len()).map(|number| load(&manifest, number)).collect();
        let data_set = Self {
            generations: Some(generations?.into()),
            sample: None,
            manifest,
            replaced: false,
            is_created: true,
            is_null: false,
            device: None,
            held,
            remote: None,
            below: Vec::new(),
            _locks: Some(locks),
        };
        Ok((data_set, file_states))
    }

    /// Removes the files of the data set, the directories that it created, and its generation
    /// files. If the target is a device, its data is not removed.
    ///
    /// # Errors
    /// Fails if a file cannot be removed or does not belong to the data set.
    pub fn remove(self) -> Result<(), EngineError> {
        if let Some(remote) = self.remote {
            return remote.remove();
        }
        let contents = self.manifest.contents();
        remove_each(self.held.each_directory(), &contents)?;
        if self.is_null { Ok(()) } else { maps::remove(&self.manifest.generations) }
    }
}

/// Replaces the paths in the manifest by the current paths, and checks the size of each file.
fn update_file_paths(
    manifest: &mut Manifest,
    directories: Vec<PathBuf>,
) -> Result<(Vec<FileState>, HeldTarget), EngineError> {
    let open = open_directories(manifest, &directories)?;
    let mut file_states = Vec::new();
    let mut paths = Vec::new();
    for file in &manifest.files {
        // `Manifest::check` has verified that each file is in one of the directories.
        let Some((number, below)) = manifest.place_of(&file.path) else { continue };
        let directory = &directories[number];
        file_states.push(file_state(&open[number], directory, &below, file.size_bytes)?);
        paths.push(directory.join(below));
    }
    for (file, path) in manifest.files.iter_mut().zip(paths) {
        file.path = path;
    }
    manifest.directories = directories;
    Ok((file_states, HeldTarget::of_directories(open)))
}

/// Loads the expected generations of all units in a file.
fn load(manifest: &Manifest, number: usize) -> Result<Generations, EngineError> {
    let units = manifest.files[number].size_bytes / u64::from(manifest.unit_bytes);
    let size_bytes = units * Generations::BYTES_PER_UNIT as u64;
    let directory = &manifest.generations;
    let bytes =
        maps::read_exactly(directory, &number.to_string(), size_bytes).ok_or_else(|| {
            EngineError::Config(format!(
                "the expected content of {} is unknown: {} does not exist, or its size is wrong. \
                 Verify the data on the host that wrote it, as the same user",
                manifest.files[number].path.display(),
                directory.join(number.to_string()).display()
            ))
        })?;
    Ok(Generations::load(&bytes))
}

/// Returns the generator of the content for a file of a data set.
///
/// # Errors
/// Fails if the content cannot be generated for this unit size.
fn content(manifest: &Manifest, file: &DataFile) -> Result<Content, EngineError> {
    let spec = plimsoll_workload::content::ContentSpec {
        compressibility: file.compressibility,
        duplicate_share: file.duplicate_share,
        space_bytes: file.size_bytes,
        unit_bytes: manifest.unit_bytes,
        run: manifest.data_id,
        stamps: file.stamps,
    };
    Content::new(&spec).map_err(|error| EngineError::Config(error.to_string()))
}

fn data_file(path: PathBuf, size_bytes: u64, stream: &Stream) -> DataFile {
    DataFile {
        path,
        size_bytes,
        compressibility: stream.content.compressibility,
        duplicate_share: stream.content.duplicate_share,
        stamps: stream.content.stamps,
    }
}

/// Lists the files of all streams, sorted by file number; see [`Tree`].
fn files(matrix: &Matrix, configs: &[StreamConfig], below: &[PathBuf]) -> Vec<DataFile> {
    let mut all = Vec::new();
    for (stream, config) in matrix.streams.iter().zip(configs) {
        let tree = Tree::new(stream, config, configs.len() > 1, below);
        for share in 0..config.files.shares {
            for file in 0..config.files.files_per_share {
                let size_bytes = config.files.file_size_bytes;
                all.push(data_file(tree.data_file(share, file), size_bytes, stream));
            }
        }
    }
    all
}
