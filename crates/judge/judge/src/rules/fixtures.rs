//! Valid runs of one minute that the tests of the rules modify.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Environment, Mount, Transport};
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::observed::{
    AccessProfile, ClockWatch, Cpu, DeviceTotals, Extents, FileSystem, Generator, Observed,
    PageCache,
};
use plimsoll_evidence::run::{
    Checks, ClassTotals, Driver, End, EndKind, Engine, PathEngine, Phase, PhaseKind, Run,
    SampledChecks, Tier,
};
use plimsoll_evidence::series::{Data, Row};
use plimsoll_plan::Plan;

use super::Rule;
use crate::finding::{Finding, Outcome};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
pub(crate) const SECONDS: u64 = 60;
/// Rate of the unmodified runs in operations per second. Eight operations are in flight.
pub(crate) const RATE: u64 = 10_000;
pub(crate) const LATENCY_NS: u64 = 800_000;

pub(crate) const PLAN: &str = "version = 1\nname = \"made-up\"\n[target]\npath = \
                               \"/x\"\n[workload.matrix]\nfile_size = \"1GiB\"\nreads = \
                               100\nqueue_depth = 8\n[phases]\nwarm_up = \"5s\"\nmeasure = \
                               \"60s\"\n[evidence]\nmin_measure = \"10s\"\n";

/// Returns a run of random 4 KiB reads with direct I/O. The device serves all of them.
pub(crate) fn reads() -> Bundle {
    bundle(PLAN, "matrix.read", true)
}

/// Returns a run of random 4 KiB writes with direct I/O. All of them reach the device.
pub(crate) fn writes() -> Bundle {
    bundle(&PLAN.replace("reads = 100", "reads = 0"), "matrix.write", false)
}

/// Returns the same run as [`reads`], but the plan contains `to` in place of `from`.
pub(crate) fn reads_with(from: &str, to: &str) -> Bundle {
    assert!(PLAN.contains(from), "{from}");
    bundle(&PLAN.replace(from, to), "matrix.read", true)
}

/// Returns the same run as [`writes`], but the plan contains `to` in place of `from`.
pub(crate) fn writes_with(from: &str, to: &str) -> Bundle {
    let plan = PLAN.replace("reads = 100", "reads = 0");
    assert!(plan.contains(from), "{from}");
    bundle(&plan.replace(from, to), "matrix.write", false)
}

fn bundle(plan: &str, class: &str, is_read: bool) -> Bundle {
    let plan = Plan::parse(plan, "made-up.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let count = RATE * SECONDS;
    let bytes = count * 4096;
    let mut histogram = plimsoll_evidence::latency::histogram();
    for step in 0..1000u64 {
        histogram.record_n(LATENCY_NS / 2 + step * LATENCY_NS / 1000, count / 1000).unwrap();
    }
    let totals = ClassTotals {
        name: class.into(),
        group: "transactional".into(),
        instance: 0,
        is_read,
        count,
        size_bytes: bytes,
        latency_ns_sum: count * LATENCY_NS,
        latency_ns_max: histogram.max(),
        service_ns_sum: count * LATENCY_NS,
        service_ns_max: histogram.max(),
        errors: 0,
        drained: 0,
        drained_bytes: 0,
        abandoned: Some(0),
        never_started: Some(0),
    };
    let mut bundle = Bundle {
        run: run(&plan, totals),
        plan_text: plan.text().to_owned(),
        job_text: None,
        plan: plan.resolve(),
        environment: environment(),
        series: Vec::new(),
        observed: observed(bytes, is_read),
        latency_spans: spans(class, &histogram),
        latency: BTreeMap::from([
            (class.to_owned(), histogram.clone()),
            (format!("{class}.service"), histogram),
        ]),
        seal_sha256: None,
    };
    // Vary the rate a little, so that the samples differ.
    rates(&mut bundle, |tenth| (RATE / 10 + tenth * 7 % 11, LATENCY_NS));
    bundle
}

/// Returns the intervals of a class. The counts of the whole histogram are spread evenly over the
/// seconds.
pub(crate) fn spans(class: &str, whole: &hdrhistogram::Histogram<u64>) -> Vec<Interval> {
    let mut second = plimsoll_evidence::latency::histogram();
    for bucket in whole.iter_recorded() {
        second.record_n(bucket.value_iterated_to(), bucket.count_at_value() / SECONDS).unwrap();
    }
    let span = |at: u64| Interval {
        tag: class.to_owned(),
        start_ns: (5 + at) * SECOND_NS,
        duration_ns: SECOND_NS,
        histogram: (&second).into(),
    };
    (0..SECONDS).map(span).collect()
}

/// Replaces the series with a series that has this count and latency in each tenth of a second.
pub(crate) fn rates(bundle: &mut Bundle, of: impl Fn(u64) -> (u64, u64)) {
    let name = bundle.run.classes[0].name.clone();
    bundle.plan.evidence.interval_ns = SECOND_NS / 10;
    let row = |tenth: u64| {
        let (count, latency_ns) = of(tenth);
        let data = Data::Class {
            count,
            sum_ns: count * latency_ns,
            bytes: count * 4096,
            max_ns: latency_ns,
        };
        let start_ns = 5 * SECOND_NS + tenth * SECOND_NS / 10;
        Row { phase: 1, start_ns, duration_ns: SECOND_NS / 10, name: name.clone(), data }
    };
    bundle.series.retain(|row| matches!(row.data, Data::Gauge(_)));
    bundle.series.extend((0..SECONDS * 10).map(row));
}

fn run(plan: &Plan, class: ClassTotals) -> Run {
    let phase = |kind, start_s: u64, seconds: u64| Phase {
        kind,
        start_ns: start_s * SECOND_NS,
        duration_ns: seconds * SECOND_NS,
        read_bytes: 0,
        written_bytes: 0,
        reached: true,
        note: String::new(),
        boundary_error_ns: (kind == PhaseKind::Measure).then_some(0),
    };
    Run {
        events: Vec::new(),
        durability: None,
        schema_version: 1,
        tool_version: "0".into(),
        build: None,
        run_id: "run".into(),
        name: "made-up".into(),
        plan_sha256: plan.resolve().sha256_hex().unwrap(),
        driver: Driver::Real,
        tier: Tier::T1,
        started_unix_ns: 0,
        duration_ns: 70 * SECOND_NS,
        end: End { kind: EndKind::Completed, says: String::new() },
        experiment: None,
        ledger: None,
        signed_by: None,
        engine: Engine {
            threads: 1,
            sessions: 1,
            closed_loop: true,
            paths: vec![PathEngine { path: "/x".into(), direct: true, ..PathEngine::default() }],
            ..Engine::default()
        },
        phases: vec![phase(PhaseKind::WarmUp, 0, 5), phase(PhaseKind::Measure, 5, SECONDS)],
        classes: vec![class],
        instances: Vec::new(),
        counters: BTreeMap::new(),
        checks: Checks {
            sampled: Some(SampledChecks {
                reads: 2_344,
                blocks: 2_344,
                ..SampledChecks::default()
            }),
            ..Checks::default()
        },
    }
}

fn environment() -> Environment {
    let disk = Device {
        name: "sda".into(),
        kind: "disk".into(),
        transport: Some(Transport::NvmePcie),
        write_cache: Some("write back".into()),
        forced_writes: Some(false),
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        ..Device::default()
    };
    let mount = Mount {
        path: "/x".into(),
        file_system: Some("ext4".into()),
        size_bytes: Some(100 << 30),
        free_bytes: Some(50 << 30),
        devices: vec!["sda".into()],
        ..Mount::default()
    };
    Environment {
        cpus: Some(2),
        memory_bytes: Some(16 << 30),
        mounts: vec![mount],
        devices: vec![disk],
        ..Environment::default()
    }
}

fn observed(bytes: u64, is_read: bool) -> Observed {
    let moved = |of: bool| if of { bytes } else { 0 };
    let working_set = Some(moved(true).min(1 << 30));
    Observed {
        interposition: Some(Vec::new()),
        devices: vec![DeviceTotals {
            name: "sda".into(),
            top: true,
            reads: moved(is_read) / 4096,
            read_bytes: moved(is_read),
            writes: moved(!is_read) / 4096,
            written_bytes: moved(!is_read),
            flushes: Some(0),
            busy_ns: SECONDS * SECOND_NS,
            ..DeviceTotals::default()
        }],
        page_cache: PageCache {
            files_bytes: Some(1 << 30),
            resident_bytes_before: Some(0),
            resident_bytes_after: Some(0),
            system_dropped: Some(true),
        },
        clock: ClockWatch { stopped_ns: Some(0), ..ClockWatch::default() },
        cpu: Cpu { busy_avg: Some(0.2), steal_avg: Some(0.0), ..Cpu::default() },
        generator: Generator {
            user_ns: Some(4 * SECOND_NS),
            system_ns: Some(6 * SECOND_NS),
            busiest_thread_share: Some(0.2),
            storage_read_bytes: Some(moved(is_read)),
            storage_written_bytes: Some(moved(!is_read)),
            storage_cancelled_bytes: Some(0),
            ..Generator::default()
        },
        extents: Some(Extents {
            size_bytes: 1 << 30,
            unwritten_bytes: Some(0),
            extents: Some(8),
            ..Extents::default()
        }),
        file_systems: vec![FileSystem {
            path: "/x".into(),
            kind: Some("ext4".into()),
            compression: Some(String::new()),
            memory: Some(false),
            size_bytes: Some(100 << 30),
            free_bytes: Some(50 << 30),
            ..FileSystem::default()
        }],
        workload: AccessProfile {
            working_set_read_bytes: working_set.filter(|_| is_read),
            working_set_written_bytes: working_set.filter(|_| !is_read),
            read_sequential_share: is_read.then_some(0.0),
            write_sequential_share: (!is_read).then_some(0.0),
            compressed_share: is_read.then_some(1.0),
            zero_share: is_read.then_some(0.0),
            duplicate_share: is_read.then_some(0.0),
            blocks_sampled: 512,
            misaligned_share: Some(0.0),
            ..AccessProfile::default()
        },
        ..Observed::default()
    }
}

/// Returns the finding of a rule. Panics if the rule does not apply.
#[track_caller]
pub(crate) fn finding(rule: &Rule, bundle: &Bundle) -> Finding {
    advised((rule.check)(bundle).unwrap_or_else(|| panic!("{} does not apply", rule.id)))
}

/// Returns the finding. Panics if a warning has no advice.
#[track_caller]
fn advised(finding: Finding) -> Finding {
    let silent = finding.outcome == Outcome::Warn && finding.advice.trim().is_empty();
    assert!(!silent, "{} warns without an advice: {}", finding.rule, finding.says);
    finding
}

/// Returns the outcome of a rule; `None` if it does not apply.
#[track_caller]
pub(crate) fn outcome(rule: &Rule, bundle: &Bundle) -> Option<Outcome> {
    (rule.check)(bundle).map(|finding| advised(finding).outcome)
}

#[test]
#[should_panic(expected = "warns without an advice")]
fn a_warning_without_an_advice_is_found() {
    advised(Finding::new("made-up", Outcome::Warn, "something"));
}
