//! Configuration of a mail store, in which all defaults are resolved.
//!
//! If the published facts on Jetstress do not confirm a value, the documentation of the field says
//! so ("unconfirmed") and gives the chosen value.

use plimsoll_plan::Durability;
use thiserror::Error;

/// Maximum number of record slots in a page. The occupancy of a page therefore fits in 16 bits.
pub const SLOTS_MAX: usize = 16;
/// Size of a log block. The size of every transfer is a multiple of it.
pub const BLOCK_BYTES: u32 = 4096;

/// One database of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// Number, unique in the store; part of its file names (`db03.edb`, `db03-log/`).
    pub id: u32,
    /// Index of the database file's directory in the driver's list.
    pub directory: u32,
    /// Index of the log files' directory in the driver's list.
    pub log_directory: u32,
    /// Number of pages that creation writes.
    pub pages_initial: u32,
    /// Number of pages that the file has space for. By default 25 % more than `pages_initial`, like
    /// `DatabaseSpaceReserved=25` of Jetstress.
    pub pages_max: u32,
    /// Weight with which an operation chooses this database among the databases of a group
    /// (`IopsBias`).
    pub bias: u32,
}

impl DatabaseConfig {
    /// Creates a database of `pages_initial` pages with a reserve of 25 % and a bias of 1.
    pub fn new(id: u32, directory: u32, log_directory: u32, pages_initial: u32) -> Self {
        let pages_max = pages_initial.saturating_add(pages_initial / 4);
        Self { id, directory, log_directory, pages_initial, pages_max, bias: 1 }
    }
}

/// Weights of the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Insert: a new record.
    pub insert: u32,
    /// Delete of a record, after a seek.
    pub delete: u32,
    /// Replacement of a record, after a seek.
    pub replace: u32,
    /// Read of a record.
    pub read: u32,
}

impl Mix {
    /// Sum of the weights.
    pub fn total(self) -> u32 {
        self.insert
            .saturating_add(self.delete)
            .saturating_add(self.replace)
            .saturating_add(self.read)
    }
}

/// Rule by which operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Closed loop: each session starts its next operation `think_ns` after its previous operation
    /// ended.
    Free {
        /// Pause between the operations of a session, in ns.
        think_ns: u64,
    },
    /// Open loop: operations arrive as a Poisson process. Their rate is such that database reads
    /// and writes together reach `rate_ios_per_s`. The number of I/Os per operation is measured
    /// during the run, because it depends on the cache, coalescing and growth.
    Target {
        /// Database reads plus writes per second, over all sessions and databases of the store.
        rate_ios_per_s: f64,
    },
}

/// Configuration of a mail store and of the load on it.
#[derive(Clone, Debug, PartialEq)]
pub struct MailboxConfig {
    /// Identity of the store: the run that created it. Every page and log block contains it, so
    /// that data of an older store on the same storage is recognised.
    pub run_id: u64,
    /// Seed of the data: the filled slots and their content. It is a part of the store's identity.
    pub seed: u64,
    /// Seed of the load: operations, keys, arrivals. By default it equals `seed`; several runs on
    /// one store can have different load seeds.
    pub load_seed: u64,
    pub databases: Vec<DatabaseConfig>,
    /// Logical sessions over all databases (Jetstress 2013 threads).
    pub sessions: u32,
    /// Page size: 4, 8, 16 or 32 KiB. 32 KiB by default.
    pub page_bytes: u32,
    /// Approximate size of a record; determines the slots of a page (at most 16). 2,000 by default
    /// (`LongPadLength=2000`; it is unconfirmed that this is the record size).
    pub record_bytes: u32,
    /// Share of slots that creation fills. 0.75 by default (unconfirmed).
    pub initial_fill: f64,
    /// Operation mix. 40/20/5/35 by default.
    pub mix: Mix,
    /// Share of commits that do not wait until the log is durable. 0.70 by default.
    pub lazy_commit_share: f64,
    /// Page cache of the whole store, divided evenly among the databases. 32 MiB × sessions by
    /// default (one published data point).
    pub cache_bytes: u64,
    /// Share of free frames at which eviction stops. 0.02 by default (the documented
    /// `JET_paramStopFlushThreshold` of the published engine).
    pub cache_free_share: f64,
    /// Share of free frames below which eviction starts. 0.01 by default (the documented
    /// `JET_paramStartFlushThreshold` of the published engine).
    pub cache_low_share: f64,
    /// Maximum size of one coalesced database write. 256 KiB by default (unconfirmed for Exchange
    /// 2013).
    pub coalesce_bytes: u32,
    /// Maximum number of database writes in flight per database. 16 by default (the profile of the
    /// published engine for SSDs; unconfirmed for Exchange).
    pub writes_in_flight: u32,
    /// Maximum amount of log that recovery has to replay. 20 MiB by default.
    pub checkpoint_depth_bytes: u64,
    /// Distance in the log between two flushes of a database file that advance its checkpoint. A
    /// sixteenth of the depth by default (unconfirmed).
    pub checkpoint_step_bytes: u64,
    /// Size of a log file. 1 MiB by default.
    pub log_file_bytes: u32,
    /// Number of log files per database, which are used in rotation. By default, files for 1.25 ×
    /// the checkpoint depth, and 4 more files.
    pub log_files: u32,
    /// Size of the log buffer of a database. 1 MiB by default (unconfirmed for Exchange). The log
    /// is written when the buffer is half full.
    pub log_buffer_bytes: u32,
    /// Maximum number of log writes in flight per database. 4 by default (unconfirmed).
    pub log_writes_in_flight: u32,
    /// Maximum time until a lazily committed change is written to the log. 1 s by default
    /// (unconfirmed).
    pub lazy_flush_ns: u64,
    /// Method of durable commits.
    pub durability: Durability,
    /// Bytes of one background maintenance read. 256 KiB by default (partly unconfirmed).
    pub maintenance_bytes: u32,
    /// Time between two maintenance reads of a database; 0 disables them. 100 ms by default
    /// (`DBMThrottling=100`).
    pub maintenance_interval_ns: u64,
    /// Number of copies of each database, including this one. With more than one copy, there are
    /// log replication reads.
    pub copies: u32,
    /// Bytes of one log replication read. 256 KiB by default (published: 232-256 KB, unconfirmed).
    pub replication_bytes: u32,
    /// Rule by which operations start.
    pub pace: Pace,
    /// Compression ratio of the data: 1.0 is incompressible.
    pub compressibility: f64,
}

impl MailboxConfig {
    /// Creates a configuration for these databases and sessions, in which all other values are
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

    /// Returns the number of log files for a checkpoint depth: a quarter more than the depth, and
    /// four files. Write-back that starts at the checkpoint depth therefore ends before the ring is
    /// full.
    pub fn log_files_for(depth_bytes: u64, file_bytes: u32) -> u32 {
        let bytes = depth_bytes.saturating_add(depth_bytes / 4);
        let files = bytes.div_ceil(u64::from(file_bytes.max(1))).saturating_add(4);
        u32::try_from(files).unwrap_or(u32::MAX)
    }

    /// Returns the number of frames in each database's cache.
    pub fn frames_per_database(&self) -> u64 {
        let databases = self.databases.len().max(1) as u64;
        self.cache_bytes / databases / u64::from(self.page_bytes.max(1))
    }

    /// Checks that the numbers are consistent.
    ///
    /// # Errors
    /// Names the first invalid field, its value and its requirement.
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

/// An invalid number of a [`MailboxConfig`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("mail store: `{field}` is {value}; it must be {must_be}")]
pub struct ConfigError {
    pub field: &'static str,
    /// Given value.
    pub value: String,
    /// Requirement on the value.
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
