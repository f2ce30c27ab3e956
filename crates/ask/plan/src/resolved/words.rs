//! Fields whose values are words.

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
    /// Pace of the mail store's sessions.
    Pace {
        /// As fast as the sessions can; the target rate is only used to judge the run.
        Free = "free",
        /// Open loop at the target rate. Latency is measured from the intended start.
        Target = "target",
    }
}

words! {
    /// Part of a plan that each host of a fleet runs.
    Carries {
        /// The whole plan. The load and the requirement of the fleet are those of the plan,
        /// multiplied by the number of hosts.
        Whole = "whole",
        /// A share of the target's directories or exports, of the load and of the requirement.
        Share = "share",
    }
}

words! {
    /// Reaction if a host of a fleet is silent.
    OnLostHost {
        /// The other hosts continue until one of them has to wait for the silent host.
        Continue = "continue",
        /// The coordinator stops the other hosts.
        Stop = "stop",
    }
}

words! {
    /// Mechanism that makes commits durable.
    Durability {
        /// Log writes that complete only when stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// Plain log writes followed by `fdatasync`. The latency of a log write does not include
        /// the `fdatasync`. The class `log_durable` includes it, and limits on log writes are
        /// checked against that class.
        Fdatasync = "fdatasync",
    }
}

words! {
    /// State of the caches at the start of the measured phase.
    CacheState {
        /// The page cache of the run's files is dropped; with sufficient privileges, the page cache
        /// of the whole system.
        Cold = "cold",
        /// Metadata (inodes, directories, extent maps) is read into the cache, then cached data is
        /// dropped.
        WarmMetadata = "warm-metadata",
        /// All data is read once and stays in the cache.
        Warm = "warm",
    }
}

words! {
    /// Preconditioning writes that bring flash to a steady state.
    Condition {
        /// No preconditioning.
        None = "none",
        /// The whole target is written sequentially twice (SNIA SSS PTS 2.0.2, workload
        /// independent).
        FillTwice = "fill-twice",
        /// Blocks are overwritten in random order until the rate is steady.
        RandomOverwrite = "random-overwrite:until-steady",
    }
}

words! {
    /// I/O interface.
    IoChoice {
        /// io_uring if the kernel permits it, otherwise threads.
        Auto = "auto",
        /// io_uring; without it, the run fails.
        IoUring = "io_uring",
        /// `pread`/`pwrite` threads.
        Threads = "threads",
    }
}

words! {
    /// Use of direct I/O.
    DirectIo {
        /// Direct I/O if the target supports it, otherwise buffered I/O. The bundle records which
        /// one was used.
        Auto = "auto",
        /// Direct I/O; if the target does not support it, the run fails.
        Required = "required",
        /// Buffered.
        Off = "off",
    }
}

words! {
    /// Content of the files before the first operation.
    Layout {
        /// Every block is written with content and stamps.
        Written = "written",
        /// Every block is written with zeroes.
        Zeros = "zeros",
        /// Space is allocated but never written (`fallocate`).
        Allocated = "allocated",
        /// One hole (`ftruncate`).
        Sparse = "sparse",
    }
}

words! {
    /// Durability of writes.
    SyncKind {
        /// The workload issues no syncs.
        None = "none",
        /// `fsync` after a number of writes.
        Fsync = "fsync",
        /// `fdatasync` after a number of writes.
        Fdatasync = "fdatasync",
        /// Each write completes only when stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// NFS: `FILE_SYNC` writes, whose data and metadata are stable when the server replies.
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
    /// Way in which a durability test makes a write durable before the write is acknowledged.
    SyncMethod {
        /// `fsync` after the writes of a batch; on NFS a COMMIT.
        Fsync = "fsync",
        /// `fdatasync` after the writes of a batch; on NFS a COMMIT.
        Fdatasync = "fdatasync",
        /// A file opened with `O_DSYNC`; stable WRITEs on NFS, and the PUT itself on S3.
        Dsync = "dsync",
        /// `O_DIRECT` without a flush. This does not guarantee durability.
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
    /// Declared media of the target, if the host cannot detect them.
    Media {
        /// Rotating disks.
        Hdd = "hdd",
        /// Flash with a SATA or SAS interface.
        Ssd = "ssd",
        /// Flash with an NVMe interface.
        Nvme = "nvme",
        /// Flash and disks.
        Hybrid = "hybrid",
        /// Memory.
        Memory = "memory",
    }
}

words! {
    /// Claim that a figure should support.
    Claim {
        /// Reads are served by the media.
        MediaRead = "media-read",
        /// Reads are served by a cache.
        CachedRead = "cached-read",
        /// Short-term write rate.
        BurstWrite = "burst-write",
        /// Write rate that can be sustained indefinitely.
        SustainedWrite = "sustained-write",
        /// Writes survive a power loss.
        DurableWrite = "durable-write",
        /// High percentiles of latency.
        TailLatency = "tail-latency",
        /// The target intentionally uses this host's memory.
        InMemory = "in-memory",
        /// A difference between systems.
        Comparative = "comparative",
        /// The run meets the application's requirement.
        Requirement = "requirement",
        /// The load matches the trace in operations, offsets, order and times.
        TraceReplay = "trace-replay",
    }
}
