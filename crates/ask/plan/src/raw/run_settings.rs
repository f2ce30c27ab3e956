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
        /// Writes before the measurement that bring flash to a steady state.
        condition: Condition = "none", "SNIA SSS PTS 2.0.2";
        /// Maximum duration of the writes that `condition` requires.
        condition_max: DurationNs = "6h";
        /// Length of the warm-up. For a mail store, this is a maximum: its warm-up ends when the
        /// cache is full and the log has grown by one checkpoint depth. If the maximum is reached
        /// first, the report states this.
        warm_up: DurationNs | "10 min for a mail store, 10 s for a matrix, none for a trace";
        /// Length of the measured phase.
        measure: WordOr<UntilSteady, DurationNs> | "2 h for a mail store, 10 min for a matrix, \
            the runtime of a fio job (until-steady if the job sets steadystate), the whole trace", "Jetstress: 2 h";
        /// Maximum length of the measured phase if it is `until-steady`.
        measure_max: DurationNs | "25 rounds", "SNIA SSS PTS 2.0.2";
        /// Length of a round. The steady-state rule compares the rates of successive rounds.
        round: DurationNs | "1m; for a fio job with steadystate, a fifth of its steadystate_duration", "SNIA SSS PTS 2.0.2: one minute";
        /// True if Plimsoll reads and checks all data at the end.
        verify: bool | "true for a mail store, false for a matrix", "Jetstress: VerifyChecksum true";
    }
}

section! {
    /// Minimum length and time resolution of the measurement.
    EvidenceRaw {
        /// Minimum length of the measured phase. If it is shorter, the run is INCONCLUSIVE. For a
        /// trace there is no minimum, but the replay must be complete. A run of less than 30 s or
        /// with fewer than 1,000 operations cannot PASS.
        min_measure: DurationNs = "10m";
        /// Audit rules that do not prevent a PASS if their result is unknown. `plimsoll audit
        /// --rules` lists all rules. The verdict lists the accepted rules. A failed rule still
        /// prevents a PASS, and so does an unknown rule that checks whether the load was carried
        /// out.
        accept_unknown: List<Name> | "none";
        /// Length of an interval of the time series, at least 10 ms.
        interval: DurationNs = "1s";
    }
}

section! {
    /// Properties of the storage system that Plimsoll cannot detect, and the system's metrics
    /// endpoints.
    ObserveRaw {
        /// Ratio by which the system's compression and deduplication reduce this data, N to 1.
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
        /// Table with Plimsoll's name of each metric and the endpoint's name (`name` or
        /// `name{label="value"}`). Plimsoll's names are `data_reduction`, `read_source.*` (cache,
        /// ssd, hdd, zero, remote or other), and `write_destination.*` (cache, oplog, ssd, hdd,
        /// remote or other).
        names: Settings | "required";
    }
}

section! {
    /// Number of runs, and whether they reuse data.
    RepeatRaw {
        /// Number of runs per target.
        runs: Count = 1;
        /// True if each run creates new data. False if all runs use the same data.
        fresh: bool = true;
    }
}

section! {
    /// Condition whose effect a comparison determines.
    CompareRaw {
        /// Condition whose effect the comparison determines, such as `mount-options` or `kernel`.
        /// `plimsoll compare --factor` has the same meaning. If any other condition differs and was
        /// not accepted, the comparison names no winner.
        factor: OneOrMore<Name> | "the targets";
    }
}

section! {
    /// I/O engine.
    EngineRaw {
        /// I/O interface of the kernel. `auto` uses io_uring if the kernel permits it.
        io: IoChoice = "auto";
        /// Whether Plimsoll uses direct I/O: if the target supports it (`auto`), always
        /// (`required`), or never (`off`).
        direct: DirectIo = "auto";
        /// Number of threads that issue I/O. With 0, Plimsoll starts one thread per core, but not
        /// more threads than the workload has parts.
        workers: Integer<0> = 0;
        /// True if io_uring polls for completions. The device must support polling.
        io_poll: bool = false;
        /// True if a kernel thread submits the operations (io_uring).
        sq_poll: bool = false;
        /// True if a waiting thread polls for completions for up to 200 µs before it sleeps,
        /// because a wake-up may take longer than an operation. Threads poll only if the host has
        /// more CPUs than threads, and only while polling makes operations faster.
        spin: bool = true;
    }
}
