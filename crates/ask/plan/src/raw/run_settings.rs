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
        /// Preconditioning writes that bring flash to a steady state.
        condition: Condition = "none", "SNIA SSS PTS 2.0.2";
        /// Maximum duration of conditioning.
        condition_max: DurationNs = "6h";
        /// Length of the warm-up; for a mail store, its maximum length. The warm-up of a mail store
        /// ends when the cache is full and the log has grown by one checkpoint depth. The report
        /// says if the time ran out first.
        warm_up: DurationNs | "10 min for a mail store, 10 s for a matrix, none before a trace";
        /// Length of the measured phase.
        measure: WordOr<UntilSteady, DurationNs> | "2 h for a mail store, 10 min for a matrix, \
            the runtime of a fio job (until-steady if the job sets steadystate), the whole trace", "Jetstress: 2 h";
        /// Maximum length of the measured phase if it is `until-steady`.
        measure_max: DurationNs | "25 rounds", "SNIA SSS PTS 2.0.2";
        /// Length of the rounds that the steady-state rule compares.
        round: DurationNs | "1m; for a fio job with steadystate, a fifth of its steadystate_duration", "SNIA SSS PTS 2.0.2: one minute";
        /// True to read and check all data at the end.
        verify: bool | "true for a mail store, false for a matrix", "Jetstress: VerifyChecksum true";
    }
}

section! {
    /// Minimum length and time resolution of the measurement.
    EvidenceRaw {
        /// Minimum length of the measured phase; a shorter run is INCONCLUSIVE. A trace only has to
        /// be replayed completely. A run with less than 30 s or fewer than 1,000 operations cannot
        /// PASS.
        min_measure: DurationNs = "10m";
        /// Audit rules (`plimsoll audit --rules`) whose result may be unknown. The run can PASS
        /// without them, but its verdict lists them. Two kinds of rules cannot be accepted: failed
        /// rules, and unknown rules that check whether the run was carried out.
        accept_unknown: List<Name> | "none";
        /// Interval of the time series, at least 10 ms.
        interval: DurationNs = "1s";
    }
}

section! {
    /// Declared properties of the storage system, and its metrics endpoints.
    ObserveRaw {
        /// Data reduction ratio that the system reaches with this data, N to 1 (compression and
        /// deduplication).
        data_reduction: Ratio | "none";
        /// Size of the system's caches.
        array_cache: SizeBytes | "none";
        /// Size of the fast tier.
        tier: SizeBytes | "none";
        /// Rate of the slowest link to the system.
        link: BytesPerS | "none";
        /// Media, if the host cannot detect them.
        media: Media | "none";
        /// Metrics endpoint in the Prometheus text format. Use `[[observe.metrics]]` for several
        /// endpoints.
        metrics: OneOrMore<MetricsRaw> | "none";
    }
}

section! {
    /// Metrics endpoint in the Prometheus text format. Use `[[observe.metrics]]` for several
    /// endpoints.
    MetricsRaw {
        /// URL: `http://host:port/path`.
        url: Name | "required";
        /// Polling interval.
        interval: DurationNs = "1s";
        /// Metrics of the endpoint (`name` or `name{label="value"}`), each under the name that
        /// Plimsoll uses. Plimsoll's names are `data_reduction`, `read_source.` with cache, ssd,
        /// hdd, zero, remote or other, and `write_destination.` with cache, oplog, ssd, hdd, remote
        /// or other.
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
    /// Question that a comparison answers.
    CompareRaw {
        /// Condition whose effect is compared, such as `mount-options` or `kernel`; the same as
        /// `plimsoll compare --factor`. Other conditions that differ are reported as unlike.
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
        /// Number of threads that issue I/O. With 0, there is one thread per core, but at most one
        /// per part of the workload.
        workers: Integer<0> = 0;
        /// True to poll for completions (io_uring, on devices that support it).
        io_poll: bool = false;
        /// True to let a kernel thread submit the operations (io_uring).
        sq_poll: bool = false;
        /// True to let a waiting thread poll for completions for up to 200 µs before it sleeps,
        /// because a wake-up may take longer than an operation. Threads poll only if the host has
        /// more CPUs than threads, and only if polling makes operations faster.
        spin: bool = true;
    }
}
