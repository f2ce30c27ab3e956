//! `[phases]`, `[evidence]`, `[observe]`, `[repeat]`, `[engine]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Name, Ratio, Whole};
use crate::read::word::{UntilSteady, WordOr};
use crate::resolved::{CacheState, Condition, DirectIo, IoChoice, Media};
use crate::units::{BytesPerS, DurationNs, SizeBytes};

section! {
    /// What is done before, while and after measuring.
    PhasesRaw {
        /// State of the caches when measuring begins.
        cache: CacheState = "cold";
        /// What is written before, so that flash is in its long-term state.
        condition: Condition = "none", "SNIA SSS PTS 2.0.2";
        /// The longest that conditioning may take.
        condition_max: DurationNs = "6h";
        /// Length of the warm-up. For a mail store it is the longest: it ends when the cache is full
        /// and a checkpoint depth has been logged, or the report says that it was not reached.
        warm_up: DurationNs | "10 min for a mail store, 10 s for a matrix, none before a trace";
        /// Length of the measured phase.
        measure: WordOr<UntilSteady, DurationNs> | "2 h for a mail store, 10 min for a matrix, the job's runtime for fio, until-steady where it has steadystate, all of a trace", "Jetstress: 2 h";
        /// The longest that measuring may take (`until-steady`).
        measure_max: DurationNs | "25 rounds", "SNIA SSS PTS 2.0.2: give up after 25 rounds";
        /// Length of a round of the steady-state rule.
        round: DurationNs | "1m, or a fifth of a fio job's steadystate_duration", "SNIA SSS PTS 2.0.2: rounds of one minute per mix and size";
        /// Whether everything is read and checked at the end.
        verify: bool | "true for a mail store, false for a matrix", "Jetstress: VerifyChecksum true";
    }
}

section! {
    /// How much must be measured, and how finely.
    EvidenceRaw {
        /// A shorter measured phase is INCONCLUSIVE; of a trace, all of it will do. Whatever it says, nothing below
        /// 30 s and 1,000 operations is PASS.
        min_measure: DurationNs = "10m";
        /// Rules of the audit (`plimsoll audit --rules`) that may stay unknown: the run can PASS without them, and
        /// its verdict names each. A rule that fails is not accepted by this, nor one that asks whether the run
        /// was carried out.
        accept_unknown: List<Name> | "none";
        /// Length of an interval of the series, from 10 ms.
        interval: DurationNs = "1s";
    }
}

section! {
    /// What is declared of the system beneath, and where its own statistics are.
    ObserveRaw {
        /// Declared: how many to one the system reduces this data (compression and duplicates).
        data_reduction: Ratio | "not declared";
        /// Declared: size of its caches.
        array_cache: SizeBytes | "not declared";
        /// Declared: size of its fast tier.
        tier: SizeBytes | "not declared";
        /// Declared: rate of the slowest link to it.
        link: BytesPerS | "not declared";
        /// Declared: its media, where the host can't tell.
        media: Media | "not declared";
        /// Its own statistics in the Prometheus text format; `[[observe.metrics]]` for several.
        metrics: OneOrMore<MetricsRaw> | "none";
    }
}

section! {
    /// A place that answers with metrics.
    MetricsRaw {
        /// Where it answers: `http://host:port/path`.
        url: Name | "required";
        /// Time from one question to the next.
        interval: DurationNs = "1s";
        /// Our name to the metric's, `name` or `name{label="value"}`. Ours are `data_reduction`,
        /// `read_source.` with cache, ssd, hdd, zero, remote or other, and `write_destination.` with
        /// cache, oplog, ssd, hdd, remote or other.
        names: Settings | "required";
    }
}

section! {
    /// How often.
    RepeatRaw {
        /// Runs of each target.
        runs: Count = 1;
        /// Whether each run makes its data anew.
        fresh: bool = true;
    }
}

section! {
    /// What a comparison asks.
    CompareRaw {
        /// The difference that is asked about, as the comparison names it, such as `mount-options` or `kernel`: every
        /// other difference of the conditions is an unlike one. `plimsoll compare --factor` says the same.
        factor: OneOrMore<Name> | "the targets: whatever else differs is an unlike condition";
    }
}

section! {
    /// How I/O is issued.
    EngineRaw {
        /// io_uring where the kernel permits it, or one of the two.
        io: IoChoice = "auto";
        /// Past the host's page cache where the target takes it, always, or never.
        direct: DirectIo = "auto";
        /// Driving threads; 0 for one per core, and no more than the workload has parts.
        workers: Whole<0> = 0;
        /// Whether completions are polled for (io_uring, devices that can).
        io_poll: bool = false;
        /// Whether a kernel thread picks submissions up (io_uring).
        sq_poll: bool = false;
        /// Whether a waiting thread polls for completions, for up to 200 µs, before it sleeps: a wake-up may take longer than an operation. Threads poll only if the host has more CPUs than threads.
        spin: bool = true;
    }
}
