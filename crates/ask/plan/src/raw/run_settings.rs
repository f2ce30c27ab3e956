//! `[phases]`, `[evidence]`, `[observe]`, `[repeat]`, `[engine]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name, Ratio};
use crate::read::word::{UntilSteady, WordOr};
use crate::resolved::{CacheState, Condition, DirectIo, IoChoice, Media};
use crate::units::{BytesPerS, DurationNs, SizeBytes};

section! {
    /// Settings of the phases: conditioning, warm-up, measurement and verification.
    PhasesRaw {
        /// State of the caches at the start of the measurement.
        cache: CacheState = "cold";
        /// Preconditioning: writes that bring flash to a steady state before the measurement.
        condition: Condition = "none", "SNIA SSS PTS 2.0.2";
        /// Maximum duration of the preconditioning.
        condition_max: DurationNs = "6h";
        /// Length of the warm-up. For a mail store, this is the maximum length: its warm-up ends
        /// when the cache is full and the log has grown by one checkpoint depth.
        warm_up: DurationNs | "10 min for a mail store, 10 s for a matrix, no warm-up for a trace";
        /// Length of the measured phase.
        measure: WordOr<UntilSteady, DurationNs> | "2 h for a mail store; 10 min for a matrix; for \
                                                    a fio job, its runtime, or until-steady if the \
                                                    job sets steadystate; for a trace, the length \
                                                    of the trace", "Jetstress: 2 h";
        /// Maximum length of the measured phase if `measure` is `until-steady`.
        measure_max: DurationNs | "25 rounds", "SNIA SSS PTS 2.0.2";
        /// Length of a round. The steady-state rule compares the rates of successive rounds.
        round: DurationNs | "1m; for a fio job with steadystate, a fifth of its steadystate_duration", "SNIA SSS PTS 2.0.2: one minute";
        /// True if Plimsoll reads and checks all data at the end.
        verify: bool | "true for a mail store, false for a matrix", "Jetstress: VerifyChecksum true";
    }
}

section! {
    /// Minimum length of the measurement, and its time resolution.
    EvidenceRaw {
        /// Minimum length of the measured phase; a shorter run is INCONCLUSIVE. The replay of a
        /// trace has no minimum length, but must be complete. A run of less than 30 s or with fewer
        /// than 1,000 operations cannot PASS.
        min_measure: DurationNs = "10m";
        /// Audit rules (`plimsoll audit --rules`) whose unknown result does not prevent a PASS. The
        /// verdict lists them. A failed rule still prevents a PASS, as does an unknown result of a
        /// rule that checks whether the load was carried out.
        accept_unknown: List<Name> | "none";
        /// Length of an interval of the time series, at least 10 ms.
        interval: DurationNs = "1s";
    }
}

section! {
    /// Properties of the storage system that Plimsoll cannot detect, and its metrics endpoints.
    ObserveRaw {
        /// Reduction of this load's data by compression and deduplication in the system: 4 means
        /// 4:1.
        data_reduction: Ratio | "none";
        /// Total size of the system's caches.
        array_cache: SizeBytes | "none";
        /// Size of the system's fast tier.
        tier: SizeBytes | "none";
        /// Bandwidth of the slowest network link between this host and the system.
        link: BytesPerS | "none";
        /// Kind of media, if this host cannot detect it.
        media: Media | "none";
        /// Endpoint that returns the system's metrics in the Prometheus text format. Use
        /// `[[observe.metrics]]` for several endpoints.
        metrics: OneOrMore<MetricsRaw> | "none";
    }
}

section! {
    /// Endpoint that returns the system's metrics in the Prometheus text format. Use
    /// `[[observe.metrics]]` for several endpoints.
    MetricsRaw {
        /// URL of the endpoint: `http://host:port/path`.
        url: Name | "required";
        /// Interval at which Plimsoll polls the endpoint.
        interval: DurationNs = "1s";
        /// Table that maps Plimsoll's name of each metric to the endpoint's name (`name` or
        /// `name{label="value"}`). Plimsoll's names are `data_reduction`, `read_source.*` (cache,
        /// ssd, hdd, zero, remote or other), and `write_destination.*` (cache, oplog, ssd, hdd,
        /// remote or other).
        names: Settings | "required";
    }
}

section! {
    /// Number of runs, and whether they reuse data.
    RepeatRaw {
        /// Number of runs for each target.
        runs: Count = 1;
        /// True if each run creates new data. Otherwise, all runs use the same data.
        fresh: bool = true;
    }
}

section! {
    /// Condition whose effect a comparison determines.
    CompareRaw {
        /// Condition that differs intentionally between the sides, such as `mount-options` or
        /// `kernel`. `plimsoll compare --factor` has the same meaning. If any other condition
        /// differs and was not accepted, the comparison names no winner.
        factor: OneOrMore<Name> | "the targets";
    }
}

section! {
    /// I/O engine.
    EngineRaw {
        /// I/O interface of the kernel. `auto` uses io_uring if the kernel permits it.
        io: IoChoice = "auto";
        /// Use of direct I/O. With `auto`, direct I/O is used if the target supports it; with
        /// `required`, always; with `off`, never.
        direct: DirectIo = "auto";
        /// Number of threads that issue I/O. With 0, Plimsoll starts one thread for each core, but
        /// not more threads than the workload has parts.
        workers: Integer<0> = 0;
        /// True if io_uring polls for completions. The device must support polling.
        io_poll: bool = false;
        /// True if a kernel thread submits the operations (only with io_uring).
        sq_poll: bool = false;
        /// True if a waiting thread polls for completions for up to 200 µs before it sleeps.
        /// Threads poll only if the host has more CPUs than threads, and only while polling makes
        /// operations faster.
        spin: bool = true;
    }
}
