//! `[phases]`, `[evidence]`, `[observe]`, `[repeat]`, `[engine]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name, Ratio};
use crate::read::word::{UntilSteady, WordOr};
use crate::resolved::{CacheState, Condition, DirectIo, IoChoice, Media};
use crate::units::{BytesPerS, DurationNs, SizeBytes};

section! {
    /// Phases before, during and after the measurement.
    PhasesRaw {
        /// State of the caches at the start of the measurement.
        cache: CacheState = "cold";
        /// Preconditioning writes that bring flash to its steady state.
        condition: Condition = "none", "SNIA SSS PTS 2.0.2";
        /// Maximum duration of conditioning.
        condition_max: DurationNs = "6h";
        /// Length of the warm-up; for a mail store the maximum. Its warm-up ends when the cache is
        /// full and one checkpoint depth of log has been written. The report says if the time ended
        /// first.
        warm_up: DurationNs | "10 min for a mail store, 10 s for a matrix, none before a trace";
        /// Length of the measured phase.
        measure: WordOr<UntilSteady, DurationNs> | "2 h for a mail store, 10 min for a matrix, the runtime of a fio job (until-steady if it has steadystate), all of a trace", "Jetstress: 2 h";
        /// Maximum length of the measured phase (`until-steady`).
        measure_max: DurationNs | "25 rounds", "SNIA SSS PTS 2.0.2";
        /// Round length for the steady-state rule.
        round: DurationNs | "1m, or a fifth of a fio job's steadystate_duration", "SNIA SSS PTS 2.0.2: one minute";
        /// True to read and check all data at the end.
        verify: bool | "true for a mail store, false for a matrix", "Jetstress: VerifyChecksum true";
    }
}

section! {
    /// Amount and resolution of the measurement.
    EvidenceRaw {
        /// Minimum length of the measured phase; a shorter one is INCONCLUSIVE. A trace only needs
        /// to be complete. Fewer than 30 s or 1,000 operations never PASS.
        min_measure: DurationNs = "10m";
        /// Audit rules (`plimsoll audit --rules`) that may stay unknown. The run can PASS without
        /// them, and its verdict names each. Failed rules, and unknown rules about whether the run
        /// was carried out, cannot be accepted.
        accept_unknown: List<Name> | "none";
        /// Interval length of the series, at least 10 ms.
        interval: DurationNs = "1s";
    }
}

section! {
    /// Declared properties of the storage system, and its metrics endpoints.
    ObserveRaw {
        /// Data reduction ratio for this data, N to 1 (compression and deduplication).
        data_reduction: Ratio | "none";
        /// Size of the system's caches.
        array_cache: SizeBytes | "none";
        /// Size of the fast tier.
        tier: SizeBytes | "none";
        /// Rate of the slowest link to the system.
        link: BytesPerS | "none";
        /// Media, if the host cannot detect them.
        media: Media | "none";
        /// Metrics endpoint in the Prometheus text format. Use `[[observe.metrics]]` for several.
        metrics: OneOrMore<MetricsRaw> | "none";
    }
}

section! {
    /// Metrics endpoint in the Prometheus text format. Use `[[observe.metrics]]` for several.
    MetricsRaw {
        /// URL: `http://host:port/path`.
        url: Name | "required";
        /// Polling interval.
        interval: DurationNs = "1s";
        /// Metrics (`name` or `name{label="value"}`) by Plimsoll's names. These are `data_reduction`,
        /// `read_source.` with cache, ssd, hdd, zero, remote or other, and `write_destination.` with
        /// cache, oplog, ssd, hdd, remote or other.
        names: Settings | "required";
    }
}

section! {
    /// Repetition of runs.
    RepeatRaw {
        /// Number of runs per target.
        runs: Count = 1;
        /// True if each run creates its own data.
        fresh: bool = true;
    }
}

section! {
    /// Question of a comparison.
    CompareRaw {
        /// Condition that is compared, such as `mount-options` or `kernel`; also `plimsoll compare
        /// --factor`. Other differing conditions are reported as unlike.
        factor: OneOrMore<Name> | "the targets";
    }
}

section! {
    /// I/O engine.
    EngineRaw {
        /// I/O interface. `auto` uses io_uring if the kernel permits it.
        io: IoChoice = "auto";
        /// Use of direct I/O: if the target supports it, always, or never.
        direct: DirectIo = "auto";
        /// Number of driving threads. 0 is one per core, but at most one per part of the workload.
        workers: Integer<0> = 0;
        /// True to poll for completions (io_uring, on devices that support it).
        io_poll: bool = false;
        /// True to let a kernel thread collect submissions (io_uring).
        sq_poll: bool = false;
        /// True to let a waiting thread poll for completions, for up to 200 µs, before it sleeps: a
        /// wake-up may take longer than an operation. Threads poll only if the host has more CPUs
        /// than threads, and if it makes operations faster.
        spin: bool = true;
    }
}
