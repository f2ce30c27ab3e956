//! The words that a field takes one of.

/// An enum whose values are words in a plan, with the words as its one source of truth.
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
            /// Every word, in the order of the values.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in a plan.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The value that a word stands for.
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
    /// How fast the sessions of the mail store go.
    Pace {
        /// As fast as the threads go; the target rate only judges.
        Free = "free",
        /// Open loop at the target rate; latency counts from the intended start.
        Target = "target",
    }
}

words! {
    /// What each host of a fleet carries of a plan.
    Carries {
        /// All of it: so many hosts, so many times the load and the requirement.
        Whole = "whole",
        /// Its share of the places that the target lists, of the load and of the requirement.
        Share = "share",
    }
}

words! {
    /// How a durable commit is made durable.
    Durability {
        /// Log writes that complete only when stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// Plain log writes followed by `fdatasync`.
        Fdatasync = "fdatasync",
    }
}

words! {
    /// State of the caches when the measured phase begins.
    CacheState {
        /// The page cache of the run's files, and with privilege the system's, is dropped.
        Cold = "cold",
        /// Metadata (inodes, directories, extent maps) is read, then data is dropped.
        WarmMetadata = "warm-metadata",
        /// Everything is read once and left as it is.
        Warm = "warm",
    }
}

words! {
    /// What is written before the measurement so that flash is in its long-term state.
    Condition {
        /// Nothing.
        None = "none",
        /// The whole target sequentially, twice (SNIA SSS PTS 2.0.2, workload independent).
        FillTwice = "fill-twice",
        /// Random overwrites until the rate is steady.
        RandomOverwrite = "random-overwrite:until-steady",
    }
}

words! {
    /// Which interface issues the I/O.
    IoChoice {
        /// io_uring where the kernel permits it, threads otherwise.
        Auto = "auto",
        /// io_uring, or the run ends with an error.
        IoUring = "io_uring",
        /// `pread`/`pwrite` threads.
        Threads = "threads",
    }
}

words! {
    /// Whether I/O goes past the host's page cache.
    DirectIo {
        /// Direct where the target takes it, buffered otherwise, and the bundle says which.
        Auto = "auto",
        /// Direct, or the run ends with an error.
        Required = "required",
        /// Buffered.
        Off = "off",
    }
}

words! {
    /// What the files hold before the first operation.
    Layout {
        /// Every block written with content and stamps.
        Written = "written",
        /// Every block written with zeroes.
        Zeros = "zeros",
        /// Allocated but never written (`fallocate`).
        Allocated = "allocated",
        /// One hole (`ftruncate`).
        Sparse = "sparse",
    }
}

words! {
    /// When writes are made durable.
    SyncKind {
        /// Never by the workload.
        None = "none",
        /// `fsync` after so many writes.
        Fsync = "fsync",
        /// `fdatasync` after so many writes.
        Fdatasync = "fdatasync",
        /// Each write complete only when stable (`RWF_DSYNC`).
        Dsync = "dsync",
        /// NFS: `FILE_SYNC` writes, data and metadata stable in the reply.
        FileSync = "file-sync",
    }
}

words! {
    /// What the target's media is declared to be, where the host can't tell.
    Media {
        /// Rotating disks.
        Hdd = "hdd",
        /// Flash behind SATA or SAS.
        Ssd = "ssd",
        /// Flash behind NVMe.
        Nvme = "nvme",
        /// Flash and disks.
        Hybrid = "hybrid",
        /// Memory.
        Memory = "memory",
    }
}

words! {
    /// What a figure is said to show.
    Claim {
        /// Reads come from the media.
        MediaRead = "media-read",
        /// Reads come from a cache.
        CachedRead = "cached-read",
        /// Writes for a short time.
        BurstWrite = "burst-write",
        /// Writes for as long as one likes.
        SustainedWrite = "sustained-write",
        /// Writes that survive a power loss.
        DurableWrite = "durable-write",
        /// High percentiles of latency.
        TailLatency = "tail-latency",
        /// The target lies in this host's memory, on purpose.
        InMemory = "in-memory",
        /// A difference between systems.
        Comparative = "comparative",
        /// The application's requirement.
        Requirement = "requirement",
        /// The load was that of the trace: its operations, their places, order and times.
        TraceReplay = "trace-replay",
    }
}
