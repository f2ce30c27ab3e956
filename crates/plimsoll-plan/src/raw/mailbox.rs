//! `[workload.mailbox]`: the mail store. Where a fact about Jetstress, whose database this is the
//! equivalent of, could not be confirmed, the source says so.

use crate::read::list::List;
use crate::read::section::section;
use crate::read::value::{Count, NotNegative, Ratio, Whole};
use crate::read::word::{Auto, WordOr};
use crate::resolved::{Durability, Pace};
use crate::units::{DurationNs, Percent, Share, SizeBytes};

section! {
    /// The mail store: databases of pages, each with its own log, worked on by sessions.
    MailboxRaw {
        /// Mailboxes in all.
        mailboxes: Count | "required";
        /// Transactional I/Os per second and mailbox.
        iops_per_mailbox: NotNegative | "`requirement.iops` / mailboxes / (1 + margin) if that is stated, else 0.2 (heavy profile)", "profiles of 0.13, 0.17 and 0.2 are published for light, medium and heavy users";
        /// Size of one mailbox.
        mailbox_size: SizeBytes | "required";
        /// Databases, each with its own log.
        databases: Count | "one per directory of databases";
        /// Sessions in all, shared by the databases; `auto` searches for the fewest that meet the
        /// requirement.
        threads: WordOr<Auto, Count> | "1.5 × target / 135, rounded up, at least one per database", "Jetstress 2010 rule for a first guess; threads are global over the databases as in Jetstress 2013";
        /// Sessions per database; multiplies to `threads`.
        threads_per_database: Count | "none";
        /// `free`: as fast as the threads go. `target`: open loop at the target rate.
        pace: Pace = "free", "Jetstress";
        /// Pause of a session between operations (`pace = "free"`).
        think_time: DurationNs = "0s";
        /// Extra share on top of the target.
        margin: NotNegative = 0.0, "Jetstress 2013 configuration, MarginIops 0.05; its meaning is unconfirmed, so 0 here";
        /// How many to one the content compresses; 1 is incompressible.
        compressibility: Ratio = 1.0;
        /// Shares of the operations.
        mix: MixRaw = "{}";
        /// Bytes of a record.
        record_size: SizeBytes = "2000B", "Jetstress 2013 configuration, LongPadLength 2000; its meaning is unconfirmed";
        /// Size of a page; no other than 32 KiB.
        page_size: SizeBytes = "32KiB", "Jetstress 2013 configuration, DatabasePageSize 32768";
        /// Page cache in all, divided among the databases.
        cache: SizeBytes | "32 MiB × threads, and at least what the databases need", "unconfirmed: one published figure of 256 MiB for 8 threads";
        /// Share of the cache that write-back keeps free, so that a read seldom waits for a page.
        cache_free_share: Share = 0.02, "unconfirmed";
        /// Database writes in flight per database.
        writes_in_flight: Count = 16, "unconfirmed: the open-sourced engine has 16 outstanding I/Os in its SSD profile";
        /// Log bytes after which dirty pages must have been written back, per database.
        checkpoint_depth: SizeBytes = "20MiB", "Exchange 2010 stand-alone; 100 MiB is documented for two copies and more";
        /// Log bytes between two flushes of a database that let its checkpoint advance.
        checkpoint_step: SizeBytes | "a sixteenth of the depth", "unconfirmed";
        /// Size of one log file.
        log_file_size: SizeBytes = "1MiB", "Jetstress 2013 configuration, LogFileSize 1024 KB";
        /// Log files of each database, used in a circle.
        log_files: Count | "twice the checkpoint depth plus 4, or `soft_recovery_log_files` plus 4 if that is more";
        /// Log buffer of each database.
        log_buffer: SizeBytes = "1MiB", "unconfirmed";
        /// Log writes in flight per database.
        log_writes_in_flight: Count = 4, "unconfirmed";
        /// Share of commits that do not wait for their log write.
        lazy_commit_share: Share = 0.7, "Jetstress 2013 configuration, LazyCommits 70";
        /// The longest that such a commit stays unwritten.
        lazy_flush: DurationNs = "1s", "unconfirmed";
        /// How the other commits are made durable: log writes that complete only when stable, or
        /// plain ones followed by `fdatasync`.
        durability: Durability = "dsync";
        /// Largest transfer that adjacent pages are coalesced to.
        coalesce_max: SizeBytes = "256KiB", "unconfirmed: the open-sourced engine has 256 KB in its SSD profile and 512 KB by default";
        /// Whether databases are checksummed in the background.
        maintenance: bool = true, "Jetstress 2013 configuration";
        /// Bytes per read of that.
        maintenance_read: SizeBytes = "256KiB", "unconfirmed";
        /// Time from one such read to the next, per database.
        maintenance_interval: DurationNs = "100ms", "Jetstress 2013 configuration, DBMThrottling 100";
        /// Copies of each database; from two on the log is read for replication.
        copies: Count = 1;
        /// Size of one such read.
        replication_read: SizeBytes = "256KiB", "unconfirmed: 232 to 256 KB";
        /// Weight of each database when a session picks one.
        bias: List<NotNegative> | "all alike", "Jetstress 2013 configuration, IopsBias 1";
        /// Room that each database may grow into, as a share of its first size; once it is full,
        /// deletes balance inserts.
        growth_reserve: Share = 0.25, "Jetstress 2013 configuration, DatabaseSpaceReserved 25";
        /// Share of a page's room for records that creation fills.
        initial_fill: Share = 0.75, "unconfirmed";
        /// Log files to replay in a timed recovery phase; 0 for none.
        soft_recovery_log_files: Whole<0> = 0, "Jetstress 2013 configuration, LogFilesToReplay 500 in its recovery test";
        /// Whether a timed phase reads all databases from end to end.
        streaming_backup: bool = false;
    }
}

section! {
    /// Shares of the operations; they add up to 100.
    MixRaw {
        /// New records.
        insert: Percent = 40, "Jetstress 2013 configuration";
        /// Records removed, each after a seek.
        delete: Percent = 20, "Jetstress 2013 configuration";
        /// Records replaced, each after a seek.
        replace: Percent = 5, "Jetstress 2013 configuration";
        /// Records read.
        read: Percent = 35, "Jetstress 2013: the remainder";
    }
}
