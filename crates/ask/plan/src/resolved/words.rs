//! Types of fields whose values are words.

/// Defines an enum whose values are words in a plan.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident {
        $($(#[doc = $doc:literal])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[doc = $doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All words, in the order of the values.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word for this value in a plan.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns the value for a word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Pace at which the sessions of a mail store start operations.
    Pace {
        /// The sessions run as fast as they can. The target rate is only used to judge the run.
        Free = "free",
        /// The sessions run an open loop at the target rate. Latency is measured from the intended
        /// start.
        Target = "target",
    }
}

words! {
    /// Part of a plan that each host of a fleet runs.
    Carries {
        /// Each host runs the whole plan. The load and the requirement of the fleet are those of
        /// the plan times the number of hosts.
        Whole = "whole",
        /// Each host runs a share of the plan. The hosts divide the target's directories or
        /// exports, the load and the requirement.
        Share = "share",
    }
}

words! {
    /// Reaction if the coordinator receives nothing from a host.
    OnLostHost {
        /// The other hosts continue until a host has to wait for the silent host.
        Continue = "continue",
        /// The coordinator stops the other hosts.
        Stop = "stop",
    }
}

words! {
    /// Mechanism that makes commits durable.
    Durability {
        /// Each log write completes only when its data is stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// Each log write is followed by an `fdatasync`. The latency of log writes does not include
        /// this `fdatasync`. The latency class `log_durable` includes it. Limits for log writes
        /// apply to `log_durable`.
        Fdatasync = "fdatasync",
    }
}

words! {
    /// State of the caches at the start of the measured phase.
    CacheState {
        /// Plimsoll drops the page cache of the run's files, or with sufficient privileges the page
        /// cache of the whole system.
        Cold = "cold",
        /// Plimsoll reads metadata (inodes, directories, extent maps) into the cache, and then
        /// drops cached data.
        WarmMetadata = "warm-metadata",
        /// Plimsoll reads all data once, so that the data stays in the cache.
        Warm = "warm",
    }
}

words! {
    /// Writes before the measurement that bring flash to a steady state.
    Condition {
        /// No preconditioning.
        None = "none",
        /// Plimsoll writes the whole target twice, sequentially (SNIA SSS PTS 2.0.2,
        /// workload-independent preconditioning).
        FillTwice = "fill-twice",
        /// Plimsoll overwrites blocks in random order until the rate is steady.
        RandomOverwrite = "random-overwrite:until-steady",
    }
}

words! {
    /// I/O interface.
    IoChoice {
        /// Use io_uring if the kernel permits it, otherwise threads.
        Auto = "auto",
        /// Use io_uring. If it is not available, the run fails.
        IoUring = "io_uring",
        /// `pread`/`pwrite` threads.
        Threads = "threads",
    }
}

words! {
    /// Whether Plimsoll uses direct I/O.
    DirectIo {
        /// Use direct I/O if the target supports it, otherwise buffered I/O. The bundle records
        /// which of the two was used.
        Auto = "auto",
        /// Use direct I/O. If the target does not support it, the run fails.
        Required = "required",
        /// Buffered.
        Off = "off",
    }
}

words! {
    /// Content of the files before the first operation.
    Layout {
        /// Plimsoll writes every block with content and stamps.
        Written = "written",
        /// Plimsoll writes zeroes to every block.
        Zeros = "zeros",
        /// Plimsoll allocates the space, but does not write to it (`fallocate`).
        Allocated = "allocated",
        /// Each file is a single hole (`ftruncate`).
        Sparse = "sparse",
    }
}

words! {
    /// Method that makes writes durable.
    SyncKind {
        /// The workload issues no syncs.
        None = "none",
        /// A client calls `fsync` after a number of writes.
        Fsync = "fsync",
        /// A client calls `fdatasync` after a number of writes.
        Fdatasync = "fdatasync",
        /// Each write completes only when its data is stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// On NFS, each write is a `FILE_SYNC` write: data and metadata are stable when the server
        /// replies.
        FileSync = "file-sync",
    }
}

impl SyncKind {
    /// Returns true if earlier writes become durable only by a separate call.
    #[must_use]
    pub const fn flushes(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync)
    }
}

words! {
    /// Method by which a durability test makes a write durable before the write counts as
    /// acknowledged.
    SyncMethod {
        /// The test calls `fsync` after the writes of a batch. On NFS, it sends a COMMIT.
        Fsync = "fsync",
        /// The test calls `fdatasync` after the writes of a batch. On NFS, it sends a COMMIT.
        Fdatasync = "fdatasync",
        /// The test opens the file with `O_DSYNC`. On NFS it sends stable WRITEs, and on S3 the PUT
        /// itself is durable.
        Dsync = "dsync",
        /// The test writes with `O_DIRECT`, but without a flush. This does not guarantee
        /// durability.
        DirectOnly = "direct-only",
    }
}

words! {
    /// Part of the system that a cut interrupts, as stated by the user.
    CutKind {
        /// The drives lose power.
        Power = "power",
        /// The machine with the file system stops, but its drives still have power.
        Machine = "machine",
        /// A server process is killed, but its machine continues to run.
        Process = "process",
        /// A layer drops writes, as dm-flakey and the `lossy-disk` crate do.
        Simulated = "simulated",
        /// The user did not state what the cut interrupts.
        Unstated = "unstated",
    }
}

words! {
    /// Kind of the target's media, which the plan declares if the host cannot detect it.
    Media {
        /// Rotating disks.
        Hdd = "hdd",
        /// Flash with a SATA or SAS interface.
        Ssd = "ssd",
        /// Flash with an NVMe interface.
        Nvme = "nvme",
        /// Both flash and disks.
        Hybrid = "hybrid",
        /// Memory.
        Memory = "memory",
    }
}

words! {
    /// Claim that a result should support.
    Claim {
        /// The media serve the reads.
        MediaRead = "media-read",
        /// A cache serves the reads.
        CachedRead = "cached-read",
        /// The figure is a short-term write rate.
        BurstWrite = "burst-write",
        /// The figure is a write rate that the system can sustain indefinitely.
        SustainedWrite = "sustained-write",
        /// Acknowledged writes survive a power loss.
        DurableWrite = "durable-write",
        /// The figure is a high percentile of latency.
        TailLatency = "tail-latency",
        /// The target intentionally uses this host's memory.
        InMemory = "in-memory",
        /// The result is a difference between systems.
        Comparative = "comparative",
        /// The run meets the application's requirement.
        Requirement = "requirement",
        /// The replay has the same operations, offsets, order and times as the trace.
        TraceReplay = "trace-replay",
    }
}
