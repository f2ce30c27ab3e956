//! `[workload.mailbox]`: the mail store. Its database behaves like the database of Jetstress.
//! "Unconfirmed" marks sources that could not be verified.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, Integer, NotNegative, Ratio};
use crate::read::word::{Auto, WordOr};
use crate::resolved::{Durability, Pace};
use crate::units::{DurationNs, Percent, Share, SizeBytes};

section! {
    /// [Mail store](mailbox.md), in which concurrent sessions read and change records in databases.
    MailboxRaw {
        /// Total number of mailboxes.
        mailboxes: Count | "required";
        /// Transactional I/Os per second for each mailbox.
        iops_per_mailbox: NotNegative | "`requirement.iops` / mailboxes / (1 + margin) if the plan \
                                         sets `requirement.iops`, otherwise 0.2", "published profiles: 0.13 (light users), \
                                                        0.17 (medium), 0.2 (heavy)";
        /// Size of one mailbox.
        mailbox_size: SizeBytes | "required";
        /// Number of databases, each with its own log.
        databases: Count | "one database in each database directory";
        /// Total number of sessions over all databases. With `auto`, Plimsoll searches for the
        /// smallest number that meets the requirement.
        threads: WordOr<Auto, Count> | "1.5 × target rate / 135, rounded up, but at least one for \
                                        each database", "initial estimate of Jetstress 2010; for all \
                                                         databases together as in Jetstress 2013";
        /// Number of sessions for each database (instead of `threads`).
        threads_per_database: Count | "none";
        /// With `free`, each session starts its next operation when the previous one has completed.
        /// With `target`, operations start in an open loop at the target rate.
        pace: Pace = "free", "Jetstress";
        /// Time that a session waits between two operations (only with `pace = "free"`).
        think_time: DurationNs = "0s";
        /// Increase of the target rate: 0.05 increases it by 5 %.
        margin: NotNegative = 0.0, "Jetstress 2013 has MarginIops 0.05; its meaning is unconfirmed, \
                                    so Plimsoll uses 0";
        /// Compression ratio of the content: 4 means 4:1, and 1 means incompressible.
        compressibility: Ratio = 1.0;
        /// Percentages of the kinds of operations.
        mix: MixRaw = "{}";
        /// Size of a record.
        record_size: SizeBytes = "2000B", "Jetstress 2013, LongPadLength 2000; its meaning is \
                                           unconfirmed";
        /// Page size. Only 32 KiB is supported.
        page_size: SizeBytes = "32KiB", "Jetstress 2013, DatabasePageSize 32768";
        /// Total size of the databases' page caches.
        cache: SizeBytes | "32 MiB × threads, but at least the minimum that the databases require", "unconfirmed: \
         derived from a single published figure, 256 MiB for 8 threads";
        /// Write-back stops when this share of the cache is free.
        cache_free_share: Share = 0.02, "JET_paramStopFlushThreshold, 2 % in the open-sourced engine";
        /// Write-back starts when less than this share of the cache is free. The maximum is
        /// `cache_free_share`.
        cache_low_share: Share | "0.01, or `cache_free_share` if that is smaller", "JET_paramStartFlushThreshold, 1 % in the open-sourced engine";
        /// Maximum number of database writes in flight for each database.
        writes_in_flight: Count = 16, "unconfirmed: 16 in the open-sourced engine's SSD profile";
        /// Maximum amount of log that a database writes before it must write back its dirty pages.
        checkpoint_depth: SizeBytes = "20MiB", "Exchange 2010 on a stand-alone server; 100 MiB is \
                                                documented for two or more copies";
        /// Amount of log that a database writes between two flushes of its data. Each flush
        /// advances the checkpoint.
        checkpoint_step: SizeBytes | "a sixteenth of `checkpoint_depth`", "unconfirmed";
        /// Size of one log file.
        log_file_size: SizeBytes = "1MiB", "Jetstress 2013, LogFileSize 1024 KB";
        /// Number of log files of each database, which it reuses as a ring.
        log_files: Count | "the larger of `soft_recovery_log_files` and 2 × `checkpoint_depth` / \
                            `log_file_size`, plus 4";
        /// Size of the log buffer of each database.
        log_buffer: SizeBytes = "1MiB", "unconfirmed";
        /// Maximum number of log writes in flight for each database.
        log_writes_in_flight: Count = 4, "unconfirmed";
        /// Share of the commits that do not wait for their log write.
        lazy_commit_share: Share = 0.7, "Jetstress 2013, LazyCommits 70";
        /// Maximum delay of a log write for which no commit waits.
        lazy_flush: DurationNs = "1s", "unconfirmed";
        /// Method that makes the log durable for commits that wait. With `dsync`, a log write
        /// completes only when its data is stable. With `fdatasync`, a flush follows each ordinary
        /// log write.
        durability: Durability = "dsync";
        /// Maximum size of a transfer that combines adjacent pages.
        coalesce_max: SizeBytes = "256KiB", "unconfirmed: 256 KB in the open-sourced engine's SSD profile, 512 KB by default";
        /// True if the run verifies the checksums of the databases in the background.
        maintenance: bool = true, "Jetstress 2013";
        /// Size of a background read.
        maintenance_read: SizeBytes = "256KiB", "unconfirmed";
        /// Interval between two background reads of the same database.
        maintenance_interval: DurationNs = "100ms", "Jetstress 2013, DBMThrottling 100";
        /// Number of copies of each database. With two or more, the run also reads the log, as
        /// replication does.
        copies: Count = 1;
        /// Size of a replication read.
        replication_read: SizeBytes = "256KiB", "unconfirmed: 232 to 256 KB";
        /// Weight of each database when a session chooses a database.
        bias: List<NotNegative> | "equal weights", "Jetstress 2013, IopsBias 1";
        /// Space for growth, as a share of a database's initial size. When this space is full, the
        /// run deletes as much data as it inserts.
        growth_reserve: Share = 0.25, "Jetstress 2013, DatabaseSpaceReserved 25";
        /// Share of each page's record space that contains records at the start.
        initial_fill: Share = 0.75, "unconfirmed";
        /// Number of log files that a timed recovery phase replays. With 0, the run has no such
        /// phase.
        soft_recovery_log_files: Integer<0> = 0, "Jetstress 2013, LogFilesToReplay 500 in its recovery test";
        /// True if the run contains a timed phase that reads all databases sequentially.
        streaming_backup: bool = false;
    }
}

section! {
    /// Percentages of the kinds of operations. They add up to 100.
    MixRaw {
        /// Insertions of new records.
        insert: Percent = 40, "Jetstress 2013";
        /// Deletions of records, each after a seek.
        delete: Percent = 20, "Jetstress 2013";
        /// Replacements of records, each after a seek.
        replace: Percent = 5, "Jetstress 2013";
        /// Reads of records.
        read: Percent = 35, "Jetstress 2013, where reads are the remaining 35 %";
    }
}
