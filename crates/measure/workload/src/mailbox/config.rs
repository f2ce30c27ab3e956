//! Configuration of a mail store. All values are set, so it contains no defaults that must be
//! resolved.
//!
//! Some values are not confirmed by the published facts about Jetstress. For these values, the
//! comment of the field contains "unconfirmed" and the chosen value.

use plimsoll_plan::Durability;
use thiserror::Error;

/// Maximum number of record slots in a page. With this limit, 16 bits can show which slots of a
/// page are occupied.
pub const SLOTS_MAX: usize = 16;
/// Size of a log block in bytes. The size of every transfer is a multiple of this size.
pub const BLOCK_BYTES: u32 = 4096;

/// Configuration of one database of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// Number of the database, which is unique in the store. The names of its files contain this
    /// number (`db03.edb`, `db03-log/`).
    pub id: u32,
    /// Index of the directory that contains the database file, in the driver's list of directories.
    pub directory: u32,
    /// Index of the directory that contains the log files, in the driver's list of directories.
    pub log_directory: u32,
    /// Number of pages that the creation of the store writes.
    pub pages_initial: u32,
    /// Number of pages for which the file has space. By default, this is 25 % more than
    /// `pages_initial`, like `DatabaseSpaceReserved=25` of Jetstress.
    pub pages_max: u32,
    /// Weight of this database when an operation chooses one of the group's databases at random
    /// (`IopsBias`).
    pub bias: u32,
}

impl DatabaseConfig {
    /// Creates the configuration of a database with `pages_initial` pages, a reserve of 25 % and a
    /// weight of 1.
    pub fn new(id: u32, directory: u32, log_directory: u32, pages_initial: u32) -> Self {
        let pages_max = pages_initial.saturating_add(pages_initial / 4);
        Self { id, directory, log_directory, pages_initial, pages_max, bias: 1 }
    }
}

/// Weights with which the kinds of operations are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Weight of inserting a new record.
    pub insert: u32,
    /// Weight of deleting a record. The delete looks up the record first.
    pub delete: u32,
    /// Weight of replacing a record. The replacement looks up the record first.
    pub replace: u32,
    /// Weight of reading a record.
    pub read: u32,
}

impl Mix {
    /// Returns the sum of the weights.
    pub fn total(self) -> u32 {
        self.insert
            .saturating_add(self.delete)
            .saturating_add(self.replace)
            .saturating_add(self.read)
    }
}

/// Determines when operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop. Each session starts its next operation `think_ns` after its previous operation
    /// has ended.
    Free {
        /// Pause between two operations of a session, in ns.
        think_ns: u64,
    },
    /// Open loop. Operations arrive as a Poisson process. The rate of arrivals is controlled so
    /// that the reads and writes of the databases together reach `rate_ios_per_s`. The number of
    /// I/Os for each operation is measured during the run, because it depends on the cache, on
    /// coalescing and on the growth of the database.
    Target {
        /// Database reads and writes per second. This is the sum over all sessions and databases of
        /// the store.
        rate_ios_per_s: f64,
    },
}

/// Configuration of a mail store, and of the load on it.
#[derive(Clone, Debug, PartialEq)]
pub struct MailboxConfig {
    /// Identity of the store. It identifies the run that created the store. Every page and log
    /// block contains this number. If older data is on the same storage, it can therefore be
    /// recognised.
    pub run_id: u64,
    /// Seed of the data. It determines which slots are filled, and their content. The seed is part
    /// of the store's identity.
    pub seed: u64,
    /// Seed of the load. It determines operations, keys and arrivals. The default is the value of
    /// `seed`. Several runs on one store can use different seeds for the load.
    pub load_seed: u64,
    pub databases: Vec<DatabaseConfig>,
    /// Number of logical sessions, over all databases (called threads in Jetstress 2013).
    pub sessions: u32,
    /// Size of a page: 4, 8, 16 or 32 KiB. The default is 32 KiB.
    pub page_bytes: u32,
    /// Approximate size of a record in bytes. The number of slots in a page depends on this size
    /// (at most 16 slots). The default is 2,000 (`LongPadLength=2000`; it is unconfirmed that this
    /// is the record size).
    pub record_bytes: u32,
    /// Fraction of the slots that the creation of the store fills. The default is 0.75
    /// (unconfirmed).
    pub initial_fill: f64,
    /// Mix of operations. The default is 40/20/5/35.
    pub mix: Mix,
    /// Fraction of the commits that do not wait until the log is durable. The default is 0.70.
    pub lazy_commit_share: f64,
    /// Size of the page cache of the whole store in bytes. It is divided evenly among the
    /// databases. The default is 32 MiB × sessions (from one published data point).
    pub cache_bytes: u64,
    /// Eviction stops when this fraction of the frames is free. The default is 0.02
    /// (`JET_paramStopFlushThreshold` in the documentation of the published engine).
    pub cache_free_share: f64,
    /// Eviction starts when less than this fraction of the frames is free. The default is 0.01
    /// (`JET_paramStartFlushThreshold` in the documentation of the published engine).
    pub cache_low_share: f64,
    /// Maximum size of a database write that contains several adjacent pages. The default is 256
    /// KiB (unconfirmed for Exchange 2013).
    pub coalesce_bytes: u32,
    /// Maximum number of writes that a database has in flight. The default is 16 (from the
    /// published engine's profile for SSDs; unconfirmed for Exchange).
    pub writes_in_flight: u32,
    /// Maximum number of log bytes that recovery must replay. The default is 20 MiB.
    pub checkpoint_depth_bytes: u64,
    /// The checkpoint of a database advances after a flush of its file. This is the number of log
    /// bytes between two such flushes. The default is a sixteenth of the checkpoint depth
    /// (unconfirmed).
    pub checkpoint_step_bytes: u64,
    /// Size of a log file. The default is 1 MiB.
    pub log_file_bytes: u32,
    /// Number of log files of each database, which are used in rotation. By default, there are
    /// files for 1.25 × the checkpoint depth, and 4 more files.
    pub log_files: u32,
    /// Size of the log buffer of a database. When the buffer is half full, the log is written. The
    /// default is 1 MiB (unconfirmed for Exchange).
    pub log_buffer_bytes: u32,
    /// Maximum number of log writes that a database has in flight. The default is 4 (unconfirmed).
    pub log_writes_in_flight: u32,
    /// Maximum time until a lazily committed change is written to the log. The default is 1 s
    /// (unconfirmed).
    pub lazy_flush_ns: u64,
    /// Method that makes commits durable.
    pub durability: Durability,
    /// Size of one background maintenance read, in bytes. 256 KiB by default (unconfirmed for
    /// Exchange).
    pub maintenance_bytes: u32,
    /// Time between two maintenance reads of a database; 0 disables these reads. The default is 100
    /// ms (`DBMThrottling=100`).
    pub maintenance_interval_ns: u64,
    /// Number of copies of each database. This copy is included. If there is more than one copy,
    /// the log is also read for replication.
    pub copies: u32,
    /// Size of one read of the log for replication. The default is 256 KiB (published: 232-256 KB,
    /// unconfirmed).
    pub replication_bytes: u32,
    /// Determines when operations start.
    pub pace: Pace,
    /// Compression ratio of the data; 1.0 means incompressible.
    pub compressibility: f64,
}

impl MailboxConfig {
    /// Creates a configuration with these databases and sessions. All other values are the
    /// defaults.
    pub fn new(run_id: u64, seed: u64, databases: Vec<DatabaseConfig>, sessions: u32) -> Self {
        let depth: u64 = 20 << 20;
        let log_file_bytes: u32 = 1 << 20;
        Self {
            run_id,
            seed,
            load_seed: seed,
            databases,
            sessions,
            page_bytes: 32 << 10,
            record_bytes: 2000,
            initial_fill: 0.75,
            mix: Mix { insert: 40, delete: 20, replace: 5, read: 35 },
            lazy_commit_share: 0.70,
            cache_bytes: (32 << 20) * u64::from(sessions.max(1)),
            cache_free_share: 0.02,
            cache_low_share: 0.01,
            coalesce_bytes: 256 << 10,
            writes_in_flight: 16,
            checkpoint_depth_bytes: depth,
            checkpoint_step_bytes: depth / 16,
            log_file_bytes,
            log_files: Self::log_files_for(depth, log_file_bytes),
            log_buffer_bytes: 1 << 20,
            log_writes_in_flight: 4,
            lazy_flush_ns: 1_000_000_000,
            durability: Durability::Dsync,
            maintenance_bytes: 256 << 10,
            maintenance_interval_ns: 100_000_000,
            copies: 1,
            replication_bytes: 256 << 10,
            pace: Pace::Free { think_ns: 0 },
            compressibility: 1.0,
        }
    }

    /// Returns the number of log files for a checkpoint depth. The files have space for a quarter
    /// more than the depth, and there are four more files. If write-back starts when the log
    /// reaches the checkpoint depth, it therefore ends before the ring is full.
    pub fn log_files_for(depth_bytes: u64, file_bytes: u32) -> u32 {
        let bytes = depth_bytes.saturating_add(depth_bytes / 4);
        let files = bytes.div_ceil(u64::from(file_bytes.max(1))).saturating_add(4);
        u32::try_from(files).unwrap_or(u32::MAX)
    }

    /// Returns the number of frames in the cache of each database.
    pub fn frames_per_database(&self) -> u64 {
        let databases = self.databases.len().max(1) as u64;
        self.cache_bytes / databases / u64::from(self.page_bytes.max(1))
    }

    /// Checks that the values are valid and consistent with each other.
    ///
    /// # Errors
    /// The error states the first invalid field, its value and the requirement that the value
    /// violates.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_shape()?;
        self.validate_databases()?;
        self.validate_log()?;
        self.validate_load()
    }

    fn validate_shape(&self) -> Result<(), ConfigError> {
        let page_ok =
            self.page_bytes.is_power_of_two() && (4096..=32768).contains(&self.page_bytes);
        check(page_ok, "page_bytes", self.page_bytes, "4, 8, 16 or 32 KiB")?;
        let record_ok = self.record_bytes >= 16 && self.record_bytes <= self.page_bytes / 2;
        check(record_ok, "record_bytes", self.record_bytes, "from 16 B to half a page")?;
        let multiple =
            |bytes: u32| bytes >= self.page_bytes && bytes.is_multiple_of(self.page_bytes);
        let small = |bytes: u32| multiple(bytes) && bytes <= 16 << 20;
        check(small(self.coalesce_bytes), "coalesce_bytes", self.coalesce_bytes, PAGES)?;
        check(small(self.maintenance_bytes), "maintenance_bytes", self.maintenance_bytes, PAGES)?;
        check(share(self.initial_fill), "initial_fill", self.initial_fill, "0 to 1")?;
        check(
            share(self.lazy_commit_share),
            "lazy_commit_share",
            self.lazy_commit_share,
            "0 to 1",
        )?;
        let free_ok = share(self.cache_free_share) && self.cache_free_share <= 0.5;
        check(free_ok, "cache_free_share", self.cache_free_share, "0 to 0.5")?;
        let low_ok = (0.0..=self.cache_free_share).contains(&self.cache_low_share);
        check(low_ok, "cache_low_share", self.cache_low_share, "0 to cache_free_share")?;
        let ratio_ok = (1.0..=1000.0).contains(&self.compressibility);
        check(ratio_ok, "compressibility", self.compressibility, "1 to 1000")
    }

    fn validate_databases(&self) -> Result<(), ConfigError> {
        let count = self.databases.len();
        check((1..=4096).contains(&count), "databases", count, "1 to 4,096")?;
        for (i, d) in self.databases.iter().enumerate() {
            check(d.pages_initial >= 2, "pages_initial", d.pages_initial, "at least 2")?;
            let max_ok = d.pages_max >= d.pages_initial && d.pages_max < 1 << 31;
            check(max_ok, "pages_max", d.pages_max, "at least pages_initial and below 2^31")?;
            let unique = self.databases.iter().take(i).all(|e| e.id != d.id);
            check(unique, "database id", d.id, "unique")?;
        }
        let bias: u64 = self.databases.iter().map(|d| u64::from(d.bias)).sum();
        check(bias > 0, "bias", bias, "above 0 for at least one database")
    }

    fn validate_log(&self) -> Result<(), ConfigError> {
        let blocks = |bytes: u32| bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES);
        let file = self.log_file_bytes;
        check(blocks(file) && file <= 1 << 30, "log_file_bytes", file, BLOCKS)?;
        let buffer = self.log_buffer_bytes;
        let room = u64::from(self.record_bytes) + 8192;
        let buffer_ok = blocks(buffer) && u64::from(buffer) >= 4 * room && buffer <= 64 << 20;
        let must_be = "a multiple of 4 KiB, at least 4 x (record_bytes + 8 KiB) and at most 64 MiB";
        check(buffer_ok, "log_buffer_bytes", buffer, must_be)?;
        let read = self.replication_bytes;
        check(blocks(read) && read <= 16 << 20, "replication_bytes", read, BLOCKS)?;
        let ring = u64::from(self.log_files) * u64::from(file);
        let least = self.checkpoint_depth_bytes + 2 * u64::from(buffer);
        check(
            ring > least,
            "log_files",
            self.log_files,
            "enough for the checkpoint depth and two log buffers",
        )?;
        check(ring < 1 << 46, "log_files", self.log_files, "small enough for a log below 64 TiB")?;
        check(self.checkpoint_step_bytes > 0, "checkpoint_step_bytes", 0, "above 0")
    }

    fn validate_load(&self) -> Result<(), ConfigError> {
        check((1..=65_536).contains(&self.sessions), "sessions", self.sessions, "1 to 65,536")?;
        check(self.mix.total() > 0, "mix", self.mix.total(), "above 0")?;
        let writes = self.writes_in_flight;
        check((1..=1024).contains(&writes), "writes_in_flight", writes, "1 to 1,024")?;
        let logs = self.log_writes_in_flight;
        check((1..=64).contains(&logs), "log_writes_in_flight", logs, "1 to 64")?;
        check((1..=16).contains(&self.copies), "copies", self.copies, "1 to 16")?;
        let frames = self.frames_per_database();
        let least = 16 + 2 * u64::from(self.coalesce_bytes / self.page_bytes);
        let must_be = "enough page frames for each database";
        check(frames >= least && frames < 1 << 31, "cache_bytes", frames, must_be)?;
        match self.pace {
            Pace::Free { think_ns } => {
                check(think_ns < 1 << 40, "think_ns", think_ns, "less than 18 minutes")
            }
            Pace::Target { rate_ios_per_s: rate } => {
                check(rate > 0.0 && rate < 1e9, "rate_ios_per_s", rate, "above 0")
            }
        }
    }
}

const PAGES: &str = "a multiple of the page size and at most 16 MiB";
const BLOCKS: &str = "a multiple of 4 KiB, not 0, at most 1 GiB (file) or 16 MiB (read)";

fn share(value: f64) -> bool {
    (0.0..=1.0).contains(&value)
}

fn check(
    ok: bool,
    field: &'static str,
    value: impl ToString,
    must_be: &'static str,
) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError { field, value: value.to_string(), must_be }) }
}

/// Invalid value in a [`MailboxConfig`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("mail store: `{field}` is {value}; it must be {must_be}")]
pub struct ConfigError {
    pub field: &'static str,
    pub value: String,
    /// Requirement that the value violates.
    pub must_be: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> MailboxConfig {
        let databases = (0..2).map(|id| DatabaseConfig::new(id, 0, 1, 1000)).collect();
        MailboxConfig::new(1, 2, databases, 4)
    }

    #[test]
    fn defaults_are_the_published_ones() {
        let c = config();
        c.validate().unwrap();
        assert_eq!(c.databases[0].pages_max, 1250);
        assert_eq!((c.page_bytes, c.log_file_bytes), (32 << 10, 1 << 20));
        assert_eq!(c.checkpoint_depth_bytes, 20 << 20);
        assert_eq!(c.cache_bytes, 128 << 20);
        assert_eq!(c.mix, Mix { insert: 40, delete: 20, replace: 5, read: 35 });
        assert_eq!((c.maintenance_bytes, c.maintenance_interval_ns), (256 << 10, 100_000_000));
        assert_eq!(c.log_files, 29);
    }

    #[test]
    fn wrong_numbers_are_named() {
        let wrong: [(&str, MailboxConfig); 13] = [
            ("page_bytes", MailboxConfig { page_bytes: 3000, ..config() }),
            ("record_bytes", MailboxConfig { record_bytes: 20_000, ..config() }),
            ("coalesce_bytes", MailboxConfig { coalesce_bytes: 100_000, ..config() }),
            ("maintenance_bytes", MailboxConfig { maintenance_bytes: 0, ..config() }),
            ("initial_fill", MailboxConfig { initial_fill: 1.5, ..config() }),
            ("lazy_commit_share", MailboxConfig { lazy_commit_share: f64::NAN, ..config() }),
            ("compressibility", MailboxConfig { compressibility: 0.5, ..config() }),
            ("log_files", MailboxConfig { log_files: 20, ..config() }),
            ("log_buffer_bytes", MailboxConfig { log_buffer_bytes: 4096, ..config() }),
            ("sessions", MailboxConfig { sessions: 0, ..config() }),
            ("copies", MailboxConfig { copies: 0, ..config() }),
            ("cache_bytes", MailboxConfig { cache_bytes: 1 << 20, ..config() }),
            ("databases", MailboxConfig { databases: Vec::new(), ..config() }),
        ];
        for (field, config) in wrong {
            let error = config.validate().unwrap_err();
            assert_eq!(error.field, field, "{error}");
            assert!(error.to_string().contains(field));
        }
        let twice = vec![DatabaseConfig::new(3, 0, 1, 100), DatabaseConfig::new(3, 0, 1, 100)];
        let error = MailboxConfig { databases: twice, ..config() }.validate().unwrap_err();
        assert_eq!(error.field, "database id");
        let pace = Pace::Target { rate_ios_per_s: f64::INFINITY };
        let error = MailboxConfig { pace, ..config() }.validate().unwrap_err();
        assert_eq!(error.field, "rate_ios_per_s");
    }
}
