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
            /// All words, in the order of the values that they name.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word that names this value in a plan.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns the value that a word names.
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
    /// States which part of a plan each host of a fleet runs.
    Carries {
        /// Each host runs the whole plan. The load and the requirement of the fleet are the load
        /// and the requirement of the plan, multiplied by the number of hosts.
        Whole = "whole",
        /// Each host runs a share of the plan. The hosts divide the target's directories or
        /// exports, the load and the requirement.
        Share = "share",
    }
}

words! {
    /// Reaction if the coordinator receives no messages from a host.
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
        /// Plimsoll drops the page cache of the run's files. If its privileges are sufficient, it
        /// drops the page cache of the whole system.
        Cold = "cold",
        /// Plimsoll reads metadata (inodes, directories, extent maps) into the cache, and then
        /// drops cached data.
        WarmMetadata = "warm-metadata",
        /// Plimsoll reads all data once, so that the data is in the cache.
        Warm = "warm",
    }
}

words! {
    /// Preconditioning: writes that bring flash to a steady state before the measurement.
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
        /// Use io_uring if the kernel permits it, and otherwise use threads.
        Auto = "auto",
        /// Use io_uring. If it is not available, the run fails.
        IoUring = "io_uring",
        /// `pread`/`pwrite` threads.
        Threads = "threads",
    }
}

words! {
    /// States whether Plimsoll uses direct I/O.
    DirectIo {
        /// Use direct I/O if the target supports it, and otherwise use buffered I/O. The bundle
        /// records which of the two was used.
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
        /// Plimsoll creates each file as a single hole (`ftruncate`).
        Sparse = "sparse",
    }
}

words! {
    /// Method that makes writes durable.
    SyncKind {
        /// The workload does not sync.
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
    /// Returns true if writes become durable only through a separate call after the writes.
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
    /// Part of the system that a durability test interrupts. The user states this part.
    CutKind {
        /// The drives lose power.
        Power = "power",
        /// The machine that runs the file system stops, but its drives still have power.
        Machine = "machine",
        /// A server process is killed, but its machine continues to run.
        Process = "process",
        /// A layer of software drops writes, as dm-flakey and the `lossy-disk` crate do.
        Simulated = "simulated",
        /// The user did not state what the test interrupts.
        Unstated = "unstated",
    }
}

words! {
    /// Kind of the target's media. The plan states the kind if the host cannot detect it.
    Media {
        /// Rotating disks.
        Hdd = "hdd",
        /// Flash with a SATA or SAS interface.
        Ssd = "ssd",
        /// Flash with an NVMe interface.
        Nvme = "nvme",
        /// A mix of flash and disks.
        Hybrid = "hybrid",
        /// Memory.
        Memory = "memory",
    }
}

words! {
    /// A claim that a result should support.
    Claim {
        /// Reads are served by the media, and not by a cache.
        MediaRead = "media-read",
        /// A cache serves the reads.
        CachedRead = "cached-read",
        /// The result is a write rate that the system sustains only for a short time.
        BurstWrite = "burst-write",
        /// The result is a write rate that the system can sustain indefinitely.
        SustainedWrite = "sustained-write",
        /// Acknowledged writes survive a power loss.
        DurableWrite = "durable-write",
        /// The result is a high percentile of the latency.
        TailLatency = "tail-latency",
        /// The target intentionally uses this host's memory.
        InMemory = "in-memory",
        /// The result is the difference between two or more systems.
        Comparative = "comparative",
        /// The run meets the application's requirement.
        Requirement = "requirement",
        /// The operations of the replay have the same offsets, order and times as the operations of
        /// the trace.
        TraceReplay = "trace-replay",
    }
}
