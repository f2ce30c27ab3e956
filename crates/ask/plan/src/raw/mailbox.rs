//! `[workload.mailbox]`: the mail store. Its database is modelled on Jetstress. "Unconfirmed" marks
//! sources that could not be verified.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, Integer, NotNegative, Ratio};
use crate::read::word::{Auto, WordOr};
use crate::resolved::{Durability, Pace};
use crate::units::{DurationNs, Percent, Share, SizeBytes};

section! {
    /// Mail store: databases of pages that concurrent sessions use. Each database has its own log.
    MailboxRaw {
        /// Total number of mailboxes.
        mailboxes: Count | "required";
        /// Transactional I/Os per second for each mailbox.
        iops_per_mailbox: NotNegative | "`requirement.iops` / mailboxes / (1 + margin) if that is set, else 0.2", "published profiles: 0.13 light, 0.17 medium, 0.2 heavy users";
        /// Size of one mailbox.
        mailbox_size: SizeBytes | "required";
        /// Number of databases, each with its own log.
        databases: Count | "one per directory of databases";
        /// Total number of sessions of all databases. `auto` searches for the minimum that meets
        /// the requirement.
        threads: WordOr<Auto, Count> | "1.5 × target / 135, rounded up, at least one per database", "first guess of Jetstress 2010; one number for all databases as in Jetstress 2013";
        /// Sessions per database, as an alternative to `threads`.
        threads_per_database: Count | "none";
        /// `free`: as fast as the sessions can. `target`: open loop at the target rate.
        pace: Pace = "free", "Jetstress";
        /// Pause of a session between operations (`pace = "free"`).
        think_time: DurationNs = "0s";
        /// Relative increase of the target rate.
        margin: NotNegative = 0.0, "Jetstress 2013, MarginIops 0.05; meaning unconfirmed, so 0 here";
        /// Compression ratio of the content, N to 1 (1: incompressible).
        compressibility: Ratio = 1.0;
        /// Percentages of the operations.
        mix: MixRaw = "{}";
        /// Size of a record in bytes.
        record_size: SizeBytes = "2000B", "Jetstress 2013, LongPadLength 2000; meaning unconfirmed";
        /// Page size. Only 32 KiB is supported.
        page_size: SizeBytes = "32KiB", "Jetstress 2013, DatabasePageSize 32768";
        /// Total page cache, which is divided among the databases.
        cache: SizeBytes | "32 MiB × threads, at least the databases' minimum", "unconfirmed: one published figure of 256 MiB for 8 threads";
        /// Write-back frees pages until this share of the cache is free.
        cache_free_share: Share = 0.02, "JET_paramStopFlushThreshold, 2 % in the open-sourced engine";
        /// Write-back starts when less than this share of the cache is free, so that database
        /// writes come in bursts. At most `cache_free_share`.
        cache_low_share: Share | "0.01, at most `cache_free_share`", "JET_paramStartFlushThreshold, 1 % in the open-sourced engine";
        /// Maximum database writes in flight per database.
        writes_in_flight: Count = 16, "unconfirmed: 16 in the open-sourced engine's SSD profile";
        /// Maximum size of the log per database before dirty pages must be written back.
        checkpoint_depth: SizeBytes = "20MiB", "Exchange 2010 stand-alone; 100 MiB is documented for two or more copies";
        /// Size of the log between two flushes of a database. Each flush advances the checkpoint.
        checkpoint_step: SizeBytes | "a sixteenth of the depth", "unconfirmed";
        /// Size of one log file.
        log_file_size: SizeBytes = "1MiB", "Jetstress 2013, LogFileSize 1024 KB";
        /// Log files per database, used as a ring.
        log_files: Count | "twice the checkpoint depth, or `soft_recovery_log_files` if that is more, plus 4";
        /// Log buffer of each database.
        log_buffer: SizeBytes = "1MiB", "unconfirmed";
        /// Maximum log writes in flight per database.
        log_writes_in_flight: Count = 4, "unconfirmed";
        /// Share of the commits that do not wait for their log write.
        lazy_commit_share: Share = 0.7, "Jetstress 2013, LazyCommits 70";
        /// Maximum delay of the log write of such a commit.
        lazy_flush: DurationNs = "1s", "unconfirmed";
        /// Durability of the other commits. `dsync`: a log write completes only when its data is
        /// stable. `fdatasync`: plain log writes, then `fdatasync`.
        durability: Durability = "dsync";
        /// Maximum transfer size when adjacent pages are combined into one transfer.
        coalesce_max: SizeBytes = "256KiB", "unconfirmed: 256 KB in the open-sourced engine's SSD profile, 512 KB by default";
        /// True to verify the checksums of the databases in the background.
        maintenance: bool = true, "Jetstress 2013";
        /// Size of a background read.
        maintenance_read: SizeBytes = "256KiB", "unconfirmed";
        /// Interval between background reads, per database.
        maintenance_interval: DurationNs = "100ms", "Jetstress 2013, DBMThrottling 100";
        /// Number of copies of each database. With two or more, the log is read for replication.
        copies: Count = 1;
        /// Size of a replication read.
        replication_read: SizeBytes = "256KiB", "unconfirmed: 232 to 256 KB";
        /// Weight of each database when a session chooses one.
        bias: List<NotNegative> | "all alike", "Jetstress 2013, IopsBias 1";
        /// Space for growth, as a share of a database's initial size. When that space is full,
        /// deletes balance inserts.
        growth_reserve: Share = 0.25, "Jetstress 2013, DatabaseSpaceReserved 25";
        /// Share of the record space of a page that is filled initially.
        initial_fill: Share = 0.75, "unconfirmed";
        /// Number of log files to replay in a timed recovery phase; 0 for no such phase.
        soft_recovery_log_files: Integer<0> = 0, "Jetstress 2013, LogFilesToReplay 500 in its recovery test";
        /// True for a timed phase that reads all databases sequentially.
        streaming_backup: bool = false;
    }
}

section! {
    /// Percentages of the operations; their sum is 100.
    MixRaw {
        /// Insertions of new records.
        insert: Percent = 40, "Jetstress 2013";
        /// Deletions of records, each after a seek.
        delete: Percent = 20, "Jetstress 2013";
        /// Replacements of records, each after a seek.
        replace: Percent = 5, "Jetstress 2013";
        /// Reads of records.
        read: Percent = 35, "Jetstress 2013: the remainder";
    }
}
