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

            /// Returns the word in a plan.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Returns the value of a word.
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
        /// As fast as the sessions allow; the target rate is only used to judge.
        Free = "free",
        /// Open loop at the target rate. Latency counts from the intended start.
        Target = "target",
    }
}

words! {
    /// Part of a plan that each host of a fleet runs.
    Carries {
        /// All of it. The fleet's load and requirement are multiplied by the number of hosts.
        Whole = "whole",
        /// A share of the target's directories or exports, the load and the requirement.
        Share = "share",
    }
}

words! {
    /// Reaction to a host of a fleet that is silent.
    OnLostHost {
        /// The other hosts continue until one waits for it.
        Continue = "continue",
        /// The coordinator stops the other hosts.
        Stop = "stop",
    }
}

words! {
    /// Mechanism of durable commits.
    Durability {
        /// Log writes that complete only when stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// Plain log writes followed by `fdatasync`. The latency of a log write does not include it:
        /// the class `log_durable` records each write until the end of its `fdatasync`, and limits
        /// on log writes are checked against that.
        Fdatasync = "fdatasync",
    }
}

words! {
    /// State of the caches at the start of the measured phase.
    CacheState {
        /// The page cache of the run's files is dropped, and with privileges that of the whole
        /// system.
        Cold = "cold",
        /// Metadata (inodes, directories, extent maps) is read, then data is dropped.
        WarmMetadata = "warm-metadata",
        /// All data is read once and stays cached.
        Warm = "warm",
    }
}

words! {
    /// Preconditioning writes that bring flash to its steady state.
    Condition {
        /// No preconditioning.
        None = "none",
        /// Two sequential writes of the whole target (SNIA SSS PTS 2.0.2, workload independent).
        FillTwice = "fill-twice",
        /// Random overwrites until the rate is steady.
        RandomOverwrite = "random-overwrite:until-steady",
    }
}

words! {
    /// I/O interface.
    IoChoice {
        /// io_uring if the kernel permits it, threads otherwise.
        Auto = "auto",
        /// io_uring; the run fails without it.
        IoUring = "io_uring",
        /// `pread`/`pwrite` threads.
        Threads = "threads",
    }
}

words! {
    /// Use of direct I/O.
    DirectIo {
        /// Direct if the target supports it, buffered otherwise. The bundle records which.
        Auto = "auto",
        /// Direct; the run fails without it.
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
        /// Allocated but never written (`fallocate`).
        Allocated = "allocated",
        /// One hole (`ftruncate`).
        Sparse = "sparse",
    }
}

words! {
    /// Durability of writes.
    SyncKind {
        /// No syncs by the workload.
        None = "none",
        /// `fsync` after a number of writes.
        Fsync = "fsync",
        /// `fdatasync` after a number of writes.
        Fdatasync = "fdatasync",
        /// Each write completes only when stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// NFS: `FILE_SYNC` writes, data and metadata stable in the reply.
        FileSync = "file-sync",
    }
}

impl SyncKind {
    /// Returns true if a separate call makes earlier writes durable.
    #[must_use]
    pub const fn flushes(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync)
    }
}

words! {
    /// Way in which a write of a durability test becomes durable before it is acknowledged.
    SyncMethod {
        /// `fsync` after the writes of a batch; on NFS a COMMIT.
        Fsync = "fsync",
        /// `fdatasync` after the writes of a batch; on NFS a COMMIT.
        Fdatasync = "fdatasync",
        /// A file opened with `O_DSYNC`; on NFS stable WRITEs, on S3 the PUT itself.
        Dsync = "dsync",
        /// `O_DIRECT` without a flush. It promises no durability.
        DirectOnly = "direct-only",
    }
}

words! {
    /// Part of the system that a cut interrupts, as the user states it.
    CutKind {
        /// The drives lose power.
        Power = "power",
        /// The machine with the file system stops; the power of its drives stays on.
        Machine = "machine",
        /// A server process is killed; the machine on which it runs stays on.
        Process = "process",
        /// A layer drops writes, as dm-flakey and the project's lossy disk do.
        Simulated = "simulated",
        /// The user did not state the kind.
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
        /// The target is intentionally in this host's memory.
        InMemory = "in-memory",
        /// A difference between systems.
        Comparative = "comparative",
        /// The application's requirement is met.
        Requirement = "requirement",
        /// The load matches the trace: operations, offsets, order and times.
        TraceReplay = "trace-replay",
    }
}
