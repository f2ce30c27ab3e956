//! The databases of one thread, which are passed from one state machine to the next.
//!
//! A [`Store`] is passed to a machine (create, duplicate, run, verify…), which returns it when the
//! machine ends. The next machine can then use the log position, the pages in use and the
//! generations in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::step::FileSpec;

use super::config::{ConfigError, DatabaseConfig, MailboxConfig};
use super::generation::GenerationMap;
use super::geometry::Geometry;
use super::occupancy::Occupancy;

/// State of a log between two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// Log position of the next block. It is a multiple of 4,096.
    pub next_lsn: u64,
    /// Log position before which every change is durable in the database file.
    pub checkpoint: u64,
    /// Epoch of the log. It is 1 after creation and increases with every recovery.
    pub epoch: u32,
}

impl LogPosition {
    /// Log position of the block that the format phase writes.
    pub const FIRST_LSN: u64 = 4096;

    /// Returns true if a recovery would have no log to replay.
    pub fn is_clean(&self) -> bool {
        self.checkpoint >= self.next_lsn
    }

    /// Creates the state of a log after the format phase. The log contains one block, which is
    /// durable.
    pub fn formatted() -> Self {
        let next_lsn = Self::FIRST_LSN + 4096;
        Self { next_lsn, checkpoint: next_lsn, epoch: 1 }
    }
}

/// State of one database between two machines.
pub struct DatabaseState {
    /// Configuration.
    pub config: DatabaseConfig,
    /// Number of pages that contain records, or that contained records earlier. Phases that read
    /// the whole file read only the pages whose number is below this value.
    pub pages_used: u32,
    pub log: LogPosition,
    /// Log position from which on all blocks in the ring were acknowledged. Older blocks in the
    /// ring may have been overwritten by writes that a crash interrupted.
    pub log_whole_from: u64,
    /// Map that contains the last acknowledged generation of each page.
    pub generation_map: Box<dyn GenerationMap>,
    /// Occupancy of each page, if the driver has no data. With data, the pages themselves contain
    /// their occupancy.
    pub(crate) occupancy: Option<Occupancy>,
}

impl DatabaseState {
    /// Creates the state of a database before its creation phase.
    pub fn new(config: DatabaseConfig, generation_map: Box<dyn GenerationMap>) -> Self {
        let pages_used = config.pages_initial;
        let (log, log_whole_from) = (LogPosition::formatted(), LogPosition::FIRST_LSN);
        Self { config, pages_used, log, log_whole_from, generation_map, occupancy: None }
    }

    /// Initialises the occupancy of all pages to the state after the creation phase. It is used for
    /// a driver without data.
    pub(crate) fn assume_occupancy(&mut self) {
        let DatabaseConfig { pages_initial, pages_max, .. } = self.config;
        self.occupancy.get_or_insert_with(|| Occupancy::new(pages_initial, pages_max));
    }
}

impl core::fmt::Debug for DatabaseState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DatabaseState")
            .field("config", &self.config)
            .field("pages_used", &self.pages_used)
            .field("log", &self.log)
            .finish_non_exhaustive()
    }
}

/// The databases that one thread uses, with the table of their files.
#[derive(Debug)]
pub struct Store {
    pub(crate) config: MailboxConfig,
    pub(crate) geometry: Geometry,
    pub(crate) databases: Vec<DatabaseState>,
    files: Vec<FileSpec>,
    /// Sizes of the files that are too short. The key is the name of the file.
    short: Arc<BTreeMap<String, u64>>,
}

impl Store {
    /// Creates a store that contains these databases. They must be part of `config`.
    ///
    /// # Errors
    /// Returns an error for the first invalid number in `config`.
    pub fn new(config: MailboxConfig, databases: Vec<DatabaseState>) -> Result<Self, ConfigError> {
        config.validate()?;
        let geometry = Geometry::new(&config);
        Ok(Self::rebuild(config, geometry, databases))
    }

    /// Sets the sizes of the files that are too short. The key is the name of the file. Reads of
    /// such a file end at its size.
    #[must_use]
    pub fn with_short_files(self, short: BTreeMap<String, u64>) -> Self {
        Self { short: Arc::new(short), ..self }
    }

    /// Returns the size of a file in bytes.
    pub(crate) fn held_bytes(&self, file: u32) -> u64 {
        let Some(spec) = self.files.get(file as usize) else { return 0 };
        self.short.get(&spec.name).map_or(spec.size_bytes, |held| (*held).min(spec.size_bytes))
    }

    /// Returns the number of pages in the file of the database at `place`.
    pub(crate) fn pages_held(&self, place: usize) -> u32 {
        let pages = self.held_bytes(self.database_file(place)) / u64::from(self.config.page_bytes);
        u32::try_from(pages).unwrap_or(u32::MAX)
    }

    /// Creates a store from databases that were removed from another store.
    pub(crate) fn rebuild(
        config: MailboxConfig,
        geometry: Geometry,
        databases: Vec<DatabaseState>,
    ) -> Self {
        let (files, short) = (Vec::new(), Arc::default());
        let mut store = Self { config, geometry, databases, files, short };
        store.list_files();
        store
    }

    fn list_files(&mut self) {
        self.files.clear();
        for state in &self.databases {
            let DatabaseConfig { id, directory, log_directory, pages_max, .. } = state.config;
            self.files.push(FileSpec {
                name: format!("db{id:02}.edb"),
                directory,
                size_bytes: u64::from(pages_max) * u64::from(self.config.page_bytes),
            });
            for log in 0..self.config.log_files {
                self.files.push(FileSpec {
                    name: format!("db{id:02}-log/{log:04}.log"),
                    directory: log_directory,
                    size_bytes: u64::from(self.config.log_file_bytes),
                });
            }
        }
    }

    /// Returns the configuration of the store.
    pub fn config(&self) -> &MailboxConfig {
        &self.config
    }

    /// Returns the sizes and keys that are computed from the configuration.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub fn databases(&self) -> &[DatabaseState] {
        &self.databases
    }

    /// Returns the files of the store. Each database file is followed by its log files.
    pub fn files(&self) -> &[FileSpec] {
        &self.files
    }

    /// Returns the index of a database's file. The argument is the position of the database in this
    /// store.
    pub fn database_file(&self, place: usize) -> u32 {
        place as u32 * (1 + self.config.log_files)
    }

    /// Returns the size of a log ring. It is the same for all databases.
    pub fn ring_bytes(&self) -> u64 {
        u64::from(self.config.log_files) * u64::from(self.config.log_file_bytes)
    }

    /// Returns the file and the byte offset at which a log position is stored. The database is at
    /// position `place`.
    pub fn log_place(&self, place: usize, lsn: u64) -> (u32, u64) {
        log_place(&self.config, self.database_file(place), lsn)
    }

    /// Splits the store into one store for each entry of `parts`. A part lists the ids of its
    /// databases. If no part lists a database, the database is dropped.
    pub fn split(self, parts: &[GroupPart]) -> Vec<Self> {
        let mut left: Vec<Option<DatabaseState>> = self.databases.into_iter().map(Some).collect();
        let take = |part: &GroupPart, left: &mut Vec<Option<DatabaseState>>| {
            let mut mine = Vec::new();
            for id in &part.databases {
                let at = left.iter().position(|s| s.as_ref().is_some_and(|s| s.config.id == *id));
                mine.extend(at.and_then(|at| left[at].take()));
            }
            mine
        };
        let mut stores = Vec::new();
        for part in parts {
            let databases = take(part, &mut left);
            let store = Self::rebuild(self.config.clone(), self.geometry, databases);
            stores.push(Self { short: Arc::clone(&self.short), ..store });
        }
        stores
    }

    /// Merges stores into one store, as the inverse of [`Store::split`]. The databases are sorted
    /// by id. Returns `None` if there are no stores.
    pub fn join(stores: Vec<Self>) -> Option<Self> {
        let mut stores = stores.into_iter();
        let mut all = stores.next()?;
        all.databases.extend(stores.flat_map(|store| store.databases));
        all.databases.sort_by_key(|state| state.config.id);
        all.list_files();
        Some(all)
    }
}

/// Returns the file and the byte offset at which a log position is stored. In the file table, the
/// log files follow `database_file`.
pub(crate) fn log_place(config: &MailboxConfig, database_file: u32, lsn: u64) -> (u32, u64) {
    let file_bytes = u64::from(config.log_file_bytes);
    let within = lsn % (u64::from(config.log_files) * file_bytes);
    (database_file + 1 + (within / file_bytes) as u32, within % file_bytes)
}

/// Ids of the databases, and numbers of the sessions, that one thread runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GroupPart {
    /// Ids of the databases that the thread runs.
    pub databases: Vec<u32>,
    /// Numbers of the sessions that the thread runs. A number is less than the field `sessions` of
    /// the configuration.
    pub sessions: Vec<u32>,
}

/// Distributes the databases and sessions over at most `threads` groups. Databases are distributed
/// in rotation. Sessions are distributed in proportion to the weights (biases) of the databases in
/// each group. Each group has at least one database and one session. There are therefore never more
/// groups than databases or sessions.
pub fn spread(config: &MailboxConfig, threads: u32) -> Vec<GroupPart> {
    let chosen = config.databases.iter().filter(|database| database.bias > 0).count();
    let most = (chosen as u64).min(u64::from(config.sessions)).max(1);
    let groups = u64::from(threads).clamp(1, most) as usize;
    let mut parts = vec![GroupPart::default(); groups];
    let mut bias = vec![0u64; groups];
    // Databases whose weight is 0 are distributed last. Each group then gets a database whose
    // weight is not 0.
    let (chosen, idle): (Vec<_>, Vec<_>) = config.databases.iter().partition(|d| d.bias > 0);
    for (i, database) in chosen.into_iter().chain(idle).enumerate() {
        parts[i % groups].databases.push(database.id);
        bias[i % groups] += u64::from(database.bias);
    }
    for session in 0..config.sessions {
        // Each group first gets one session. Each further session is assigned to the group that has
        // the fewest sessions in relation to its weight (Webster's method).
        let need = |i: usize| {
            let have = parts[i].sessions.len() as u64;
            let rank = if have == 0 { 0 } else { (2 * have + 1) << 32 };
            (rank / bias[i].max(1), i)
        };
        let next = (0..groups).min_by_key(|&i| need(i)).unwrap_or(0);
        parts[next].sessions.push(session);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mailbox::MemoryGenerationMap;

    fn config(databases: u32, sessions: u32) -> MailboxConfig {
        let databases = (0..databases).map(|id| DatabaseConfig::new(id, 0, 1, 100)).collect();
        MailboxConfig::new(1, 2, databases, sessions)
    }

    proptest! {
        /// Each database is in exactly one group, and so is each session. No group is empty, and
        /// the sessions are distributed evenly.
        #[test]
        fn everything_is_spread(databases in 1u32..40, sessions in 1u32..100, threads in 1u32..20) {
            let parts = spread(&config(databases, sessions), threads);
            prop_assert!(parts.len() <= threads as usize);
            prop_assert!(parts.iter().all(|p| !p.databases.is_empty() && !p.sessions.is_empty()));
            let mut all: Vec<u32> = parts.iter().flat_map(|p| p.databases.clone()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..databases).collect::<Vec<_>>());
            let mut all: Vec<u32> = parts.iter().flat_map(|p| p.sessions.clone()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..sessions).collect::<Vec<_>>());
            for part in &parts {
                let fair = f64::from(sessions) * part.databases.len() as f64 / f64::from(databases);
                let have = part.sessions.len() as f64;
                prop_assert!((have - fair).abs() < 1.5 || have == 1.0, "{have} instead of {fair}");
            }
        }
    }

    #[test]
    fn bias_decides_sessions() {
        let mut config = config(2, 40);
        config.databases[0].bias = 3;
        let parts = spread(&config, 2);
        assert_eq!((parts[0].sessions.len(), parts[1].sessions.len()), (30, 10));
    }

    #[test]
    fn a_group_has_a_database_to_choose() {
        let mut config = config(4, 9);
        (config.databases[0].bias, config.databases[2].bias) = (0, 0);
        let parts = spread(&config, 4);
        let databases: Vec<_> = parts.iter().map(|part| part.databases.clone()).collect();
        assert_eq!(databases, [[1, 0], [3, 2]]);
    }

    #[test]
    fn a_split_store_joins_again() {
        let config = config(5, 5);
        let state = |d: &DatabaseConfig| {
            DatabaseState::new(d.clone(), Box::new(MemoryGenerationMap::new(125)))
        };
        let states = config.databases.iter().map(state).collect();
        let store = Store::new(config.clone(), states).unwrap();
        let files = store.files().to_vec();
        assert_eq!(files.len(), 5 * (1 + config.log_files as usize));
        assert_eq!((files[0].name.as_str(), files[0].directory), ("db00.edb", 0));
        assert_eq!((files[1].name.as_str(), files[1].directory), ("db00-log/0000.log", 1));
        let stores = store.split(&spread(&config, 2));
        let count = |store: &Store| store.databases().len();
        assert_eq!(stores.iter().map(count).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(Store::join(stores).unwrap().files(), files);
    }

    #[test]
    fn log_positions_go_round_the_ring() {
        let config = MailboxConfig { log_files: 3, log_file_bytes: 8192, ..config(1, 1) };
        assert_eq!(log_place(&config, 10, 0), (11, 0));
        assert_eq!(log_place(&config, 10, 12288), (12, 4096));
        assert_eq!(log_place(&config, 10, 5 * 8192 + 4096), (13, 4096));
    }
}
