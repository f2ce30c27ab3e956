//! The mail store as resolved.

use serde::{Deserialize, Serialize};

use super::words::{Durability, Pace};

/// Page cache per thread when the plan states none: one published figure of Jetstress 2013 has
/// 256 MiB for 8 threads.
pub const CACHE_BYTES_PER_THREAD: u64 = 32 << 20;

/// The mail store: all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mailbox {
    /// Mailboxes in all.
    pub mailboxes: u64,
    /// Transactional I/Os per second and mailbox.
    pub iops_per_mailbox_per_s: f64,
    /// Extra share on top of the target.
    pub margin: f64,
    /// Mailboxes × IOPS per mailbox × (1 + margin), or what the requirement states.
    pub target_iops_per_s: f64,
    /// Size of one mailbox.
    pub mailbox_size_bytes: u64,
    /// Databases, each with its own log; numbered from 0.
    pub databases: u32,
    /// Size of a page: 32,768.
    pub page_size_bytes: u64,
    /// Size of each database before the first operation, in whole pages.
    pub database_initial_bytes: u64,
    /// Size that each database may grow to, in whole pages.
    pub database_capacity_bytes: u64,
    /// Share of a page's room for records that creation fills.
    pub initial_fill: f64,
    /// Logical sessions in all.
    pub threads: u32,
    /// True when the fewest threads that meet the requirement are to be searched for; `threads` is
    /// then where the search starts.
    pub threads_auto: bool,
    /// Free or at the target rate.
    pub pace: Pace,
    /// Pause of a session between operations (free pace).
    pub think_time_ns: u64,
    /// Shares of the operations.
    pub mix: OperationMix,
    /// Bytes of a record.
    pub record_size_bytes: u64,
    /// How many to one the content compresses; 1 is incompressible.
    pub compressibility: f64,
    /// Weight of each database when a session picks one.
    pub bias: Vec<f64>,
    /// Page cache in all, divided among the databases.
    pub cache_bytes: u64,
    /// True when `cache_bytes` follows from the number of threads.
    pub cache_from_threads: bool,
    /// Share of the cache that write-back keeps free.
    pub cache_free_share: f64,
    /// Database writes in flight per database.
    pub writes_in_flight: u32,
    /// Log bytes after which dirty pages must have been written back, per database.
    pub checkpoint_depth_bytes: u64,
    /// Log bytes between two flushes of a database that let its checkpoint advance.
    pub checkpoint_step_bytes: u64,
    /// Size of one log file.
    pub log_file_size_bytes: u64,
    /// Log files of each database, used in a circle.
    pub log_files: u32,
    /// Log buffer of each database.
    pub log_buffer_bytes: u64,
    /// Log writes in flight per database.
    pub log_writes_in_flight: u32,
    /// Share of commits that do not wait for their log write.
    pub lazy_commit_share: f64,
    /// The longest that such a commit stays unwritten.
    pub lazy_flush_ns: u64,
    /// How the other commits are made durable.
    pub durability: Durability,
    /// Largest transfer that adjacent pages are coalesced to.
    pub coalesce_max_bytes: u64,
    /// Background checksum reads, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    /// Copies of each database; from two on, the log is read for replication.
    pub copies: u32,
    /// Size of one such read.
    pub replication_read_bytes: u64,
    /// Log files to replay in a timed recovery phase; 0 for none.
    pub soft_recovery_log_files: u32,
    /// Whether a timed phase reads all databases from end to end.
    pub streaming_backup: bool,
}

/// Shares of the operations, in percent; they add up to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationMix {
    /// New records.
    pub insert_percent: f64,
    /// Records removed, each after a seek.
    pub delete_percent: f64,
    /// Records replaced, each after a seek.
    pub replace_percent: f64,
    /// Records read.
    pub read_percent: f64,
}

/// Background checksum reads of each database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// Bytes per read.
    pub read_bytes: u64,
    /// Time from one read to the next.
    pub interval_ns: u64,
}

/// The least cache that the store can work with: in each database's share a page for every one that
/// two coalesced transfers hold, and 16 more; and over all four pages per thread.
#[must_use]
pub fn least_cache_bytes(threads: u32, databases: u32, coalesce_max_bytes: u64) -> u64 {
    let page_bytes = 32 << 10;
    let per_database = 16 + 2 * (coalesce_max_bytes / page_bytes);
    let pages = u64::from(databases).saturating_mul(per_database).max(u64::from(threads) * 4);
    pages.saturating_mul(page_bytes)
}

/// The cache of a plan that states none: [`CACHE_BYTES_PER_THREAD`] for each thread, and at least
/// [`least_cache_bytes`].
#[must_use]
pub fn default_cache_bytes(threads: u32, databases: u32, coalesce_max_bytes: u64) -> u64 {
    let by_threads = CACHE_BYTES_PER_THREAD.saturating_mul(u64::from(threads));
    by_threads.max(least_cache_bytes(threads, databases, coalesce_max_bytes))
}

impl Mailbox {
    /// The same store with another number of threads; a cache that follows from it follows.
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

    /// Pages of each database before the first operation.
    #[must_use]
    pub fn database_initial_pages(&self) -> u64 {
        self.database_initial_bytes / self.page_size_bytes.max(1)
    }

    /// Pages that each database may grow to.
    #[must_use]
    pub fn database_capacity_pages(&self) -> u64 {
        self.database_capacity_bytes / self.page_size_bytes.max(1)
    }

    /// Bytes of all log files of one database.
    #[must_use]
    pub fn log_bytes_per_database(&self) -> u64 {
        self.log_file_size_bytes.saturating_mul(u64::from(self.log_files))
    }
}
