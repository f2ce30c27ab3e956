//! Resolved mail store.

use serde::{Deserialize, Serialize};

use super::words::{Durability, Pace};

/// Default page cache per thread. One published figure of Jetstress 2013 has 256 MiB for 8 threads.
pub const CACHE_BYTES_PER_THREAD: u64 = 32 << 20;

/// Mail store with all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mailbox {
    /// Total number of mailboxes.
    pub mailboxes: u64,
    /// Transactional I/Os per second for each mailbox.
    pub iops_per_mailbox_per_s: f64,
    /// Relative increase of the target rate.
    pub margin: f64,
    /// Target rate: mailboxes × IOPS per mailbox × (1 + margin), or the rate that the requirement
    /// states.
    pub target_iops_per_s: f64,
    /// Size of one mailbox.
    pub mailbox_size_bytes: u64,
    /// Number of databases, each with its own log; numbered from 0.
    pub databases: u32,
    /// Page size: 32,768.
    pub page_size_bytes: u64,
    /// Initial size of each database, in whole pages.
    pub database_initial_bytes: u64,
    /// Maximum size of each database, in whole pages.
    pub database_capacity_bytes: u64,
    /// Share of the record space of a page that is filled initially.
    pub initial_fill: f64,
    /// Total number of logical sessions.
    pub threads: u32,
    /// True if a search must determine the minimum number of threads that meets the requirement.
    /// `threads` is then the initial value of that search.
    pub threads_auto: bool,
    /// Pace of the sessions: free, or at the target rate.
    pub pace: Pace,
    /// Pause of a session between operations (free pace).
    pub think_time_ns: u64,
    /// Percentages of the operations.
    pub mix: OperationMix,
    /// Size of a record in bytes.
    pub record_size_bytes: u64,
    /// Compression ratio of the content, N to 1. 1 is incompressible.
    pub compressibility: f64,
    /// Weight of each database when a session chooses one.
    pub bias: Vec<f64>,
    /// Total page cache, which is divided among the databases.
    pub cache_bytes: u64,
    /// True if `cache_bytes` depends on the number of threads.
    pub cache_from_threads: bool,
    /// Share of the cache that is free when write-back stops.
    pub cache_free_share: f64,
    /// Write-back starts when less than this share of the cache is free. `None` if it starts and
    /// stops at `cache_free_share`, as in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_low_share: Option<f64>,
    /// Maximum database writes in flight per database.
    pub writes_in_flight: u32,
    /// Maximum size of the log per database before dirty pages must be written back.
    pub checkpoint_depth_bytes: u64,
    /// Size of the log between two flushes of a database. Each flush advances the checkpoint.
    pub checkpoint_step_bytes: u64,
    /// Size of one log file.
    pub log_file_size_bytes: u64,
    /// Log files per database, used as a ring.
    pub log_files: u32,
    /// Log buffer of each database.
    pub log_buffer_bytes: u64,
    /// Maximum log writes in flight per database.
    pub log_writes_in_flight: u32,
    /// Share of the commits that do not wait for their log write.
    pub lazy_commit_share: f64,
    /// Maximum delay of the log write of such a commit.
    pub lazy_flush_ns: u64,
    /// Durability of the other commits.
    pub durability: Durability,
    /// Maximum transfer size when adjacent pages are combined into one transfer.
    pub coalesce_max_bytes: u64,
    /// Background checksum reads; `None` if disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    /// Number of copies of each database. With two or more, the log is read for replication.
    pub copies: u32,
    /// Size of a replication read.
    pub replication_read_bytes: u64,
    /// Number of log files to replay in a timed recovery phase; 0 for no such phase.
    pub soft_recovery_log_files: u32,
    /// True for a timed phase that reads all databases sequentially.
    pub streaming_backup: bool,
}

/// Percentages of the operations; their sum is 100.
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

/// Background checksum reads of each database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// Bytes per read.
    pub read_bytes: u64,
    /// Interval between reads.
    pub interval_ns: u64,
}

/// Returns the minimum cache of the store. The part of each database must have space for the pages
/// of two combined transfers plus 16 pages. The whole cache must have space for four pages per
/// thread.
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
    /// Returns the same store with another number of threads; if its cache depends on that number,
    /// the cache changes too.
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

    /// Returns the total size of the log files of one database.
    #[must_use]
    pub fn log_bytes_per_database(&self) -> u64 {
        self.log_file_size_bytes.saturating_mul(u64::from(self.log_files))
    }
}
