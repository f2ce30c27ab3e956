//! The resolved mail store.

use serde::{Deserialize, Serialize};

use super::words::{Durability, Pace};

/// Default size of the page cache for each thread, in bytes. In one published result of Jetstress
/// 2013, 8 threads have a cache of 256 MiB.
pub const CACHE_BYTES_PER_THREAD: u64 = 32 << 20;

/// A mail store with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mailbox {
    /// Total number of mailboxes.
    pub mailboxes: u64,
    /// Transactional I/Os per second for each mailbox.
    pub iops_per_mailbox_per_s: f64,
    /// Share by which the target rate is increased.
    pub margin: f64,
    /// Target rate: mailboxes × IOPS per mailbox × (1 + margin), or the rate that the requirement
    /// states.
    pub target_iops_per_s: f64,
    /// Size of one mailbox.
    pub mailbox_size_bytes: u64,
    /// Number of databases. Each database has its own log. Databases are numbered from 0.
    pub databases: u32,
    /// Page size in bytes: 32,768.
    pub page_size_bytes: u64,
    /// Initial size of each database in bytes, a whole number of pages.
    pub database_initial_bytes: u64,
    /// Maximum size of each database in bytes, a whole number of pages.
    pub database_capacity_bytes: u64,
    /// Share of each page's record space that contains records at the start.
    pub initial_fill: f64,
    /// Total number of sessions, over all databases.
    pub threads: u32,
    /// True if a search must determine the minimum number of threads that meets the requirement.
    /// `threads` is then the number with which the search starts.
    pub threads_auto: bool,
    /// Pace of the sessions: as fast as possible, or at the target rate.
    pub pace: Pace,
    /// Time that a session waits between two operations. It is used only at the free pace.
    pub think_time_ns: u64,
    /// Percentages of the kinds of operations.
    pub mix: OperationMix,
    /// Size of a record in bytes.
    pub record_size_bytes: u64,
    /// Ratio by which the content can be compressed, N to 1. Content with the ratio 1 is
    /// incompressible.
    pub compressibility: f64,
    /// For each database, the weight with which a session chooses it.
    pub bias: Vec<f64>,
    /// Total size of the page cache in bytes. The cache is divided among the databases.
    pub cache_bytes: u64,
    /// True if `cache_bytes` depends on the number of threads.
    pub cache_from_threads: bool,
    /// Write-back stops when this share of the cache is free.
    pub cache_free_share: f64,
    /// Write-back starts when less than this share of the cache is free. `None` if write-back
    /// starts and stops at `cache_free_share`, as in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_low_share: Option<f64>,
    /// Maximum number of database writes in flight, for each database.
    pub writes_in_flight: u32,
    /// Maximum amount of log that a database writes before it must write back its dirty pages, in
    /// bytes.
    pub checkpoint_depth_bytes: u64,
    /// Amount of log that a database writes between two flushes of its data, in bytes. Each flush
    /// advances the checkpoint.
    pub checkpoint_step_bytes: u64,
    /// Size of one log file in bytes.
    pub log_file_size_bytes: u64,
    /// Number of log files of each database. The database reuses them as a ring.
    pub log_files: u32,
    /// Size of the log buffer of each database in bytes.
    pub log_buffer_bytes: u64,
    /// Maximum number of log writes in flight, for each database.
    pub log_writes_in_flight: u32,
    /// Share of the commits that do not wait for their log write.
    pub lazy_commit_share: f64,
    /// Maximum delay of the log write if the commit does not wait for it.
    pub lazy_flush_ns: u64,
    /// Method that makes the log durable for commits that wait.
    pub durability: Durability,
    /// Maximum size of a transfer that combines adjacent pages, in bytes.
    pub coalesce_max_bytes: u64,
    /// Reads that verify checksums in the background; `None` if they are disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    /// Number of copies of each database. If there are two or more copies, the log is read, as for
    /// replication.
    pub copies: u32,
    /// Size of a replication read in bytes.
    pub replication_read_bytes: u64,
    /// Number of log files that a timed recovery phase replays; 0 if the plan has no
    /// such phase.
    pub soft_recovery_log_files: u32,
    /// True if the run contains a timed phase that reads all databases sequentially.
    pub streaming_backup: bool,
}

/// Percentages of the kinds of operations. They add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationMix {
    /// Insertions of new records.
    pub insert_percent: f64,
    /// Deletions of records, each after a seek.
    pub delete_percent: f64,
    /// Replacements of records, each after a seek.
    pub replace_percent: f64,
    /// Reads of records.
    pub read_percent: f64,
}

/// Background reads that verify the checksums of each database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// Size of a read in bytes.
    pub read_bytes: u64,
    /// Interval between two reads of the same database.
    pub interval_ns: u64,
}

/// Returns the minimum size of the store's cache. Each database's part must have space for the
/// pages of two combined transfers, plus 16 pages. The whole cache must have space for four pages
/// for each thread.
#[must_use]
pub fn least_cache_bytes(threads: u32, databases: u32, coalesce_max_bytes: u64) -> u64 {
    let page_bytes = 32 << 10;
    let per_database = 16 + 2 * (coalesce_max_bytes / page_bytes);
    let pages = u64::from(databases).saturating_mul(per_database).max(u64::from(threads) * 4);
    pages.saturating_mul(page_bytes)
}

/// Returns the default size of the cache: [`CACHE_BYTES_PER_THREAD`] for each thread, but at least
/// [`least_cache_bytes`].
#[must_use]
pub fn default_cache_bytes(threads: u32, databases: u32, coalesce_max_bytes: u64) -> u64 {
    let by_threads = CACHE_BYTES_PER_THREAD.saturating_mul(u64::from(threads));
    by_threads.max(least_cache_bytes(threads, databases, coalesce_max_bytes))
}

impl Mailbox {
    /// Returns the same store with a different number of threads. If the size of its cache depends
    /// on the number of threads, this size changes too.
    #[must_use]
    pub fn with_threads(&self, threads: u32) -> Self {
        let mut changed = self.clone();
        changed.threads = threads;
        changed.threads_auto = false;
        if self.cache_from_threads {
            changed.cache_bytes =
                default_cache_bytes(threads, self.databases, self.coalesce_max_bytes);
        }
        changed
    }

    /// Returns the initial number of pages of each database.
    #[must_use]
    pub fn database_initial_pages(&self) -> u64 {
        self.database_initial_bytes / self.page_size_bytes.max(1)
    }

    /// Returns the maximum number of pages of each database.
    #[must_use]
    pub fn database_capacity_pages(&self) -> u64 {
        self.database_capacity_bytes / self.page_size_bytes.max(1)
    }

    /// Returns the total size of all log files of one database.
    #[must_use]
    pub fn log_bytes_per_database(&self) -> u64 {
        self.log_file_size_bytes.saturating_mul(u64::from(self.log_files))
    }
}
