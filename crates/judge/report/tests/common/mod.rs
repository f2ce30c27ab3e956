//! Synthetic bundles from a seed, for tests and review. None of their figures was measured.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Environment, Mount, ObservationGap, Transport};
use plimsoll_evidence::latency::histogram;
use plimsoll_evidence::observed::{
    AccessProfile, ClockWatch, Cpu, DeviceTotals, Extents, Generator, Observed, PageCache,
};
use plimsoll_evidence::run::{
    Checks, ClassTotals, Clock, Driver, End, EndKind, Engine, Instance, LedgerPosition, PathEngine,
    Phase, PhaseKind, Run, SCHEMA_VERSION, Tier,
};
use plimsoll_evidence::series::{Data, Row};
use plimsoll_plan::Plan;

const S: u64 = 1_000_000_000;

/// Random numbers by xorshift, which is sufficient for synthetic data.
pub struct Chance(pub u64);

impl Chance {
    pub fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Parameters of a synthetic run.
#[derive(Clone, Copy)]
pub struct Sample {
    pub measure_s: u64,
    pub databases: u32,
    pub mailboxes: u64,
    pub mailbox_size: &'static str,
    /// Mean latency of a database read.
    pub read_ms: f64,
    /// Rate of each database in I/Os per second.
    pub rate_per_s: f64,
    /// True if there is a stall of one second in the middle.
    pub stall: bool,
    /// True if direct I/O was not available.
    pub buffered: bool,
}

pub const QUICK: Sample = Sample {
    measure_s: 30,
    databases: 2,
    mailboxes: 82,
    mailbox_size: "10MiB",
    read_ms: 2.1,
    rate_per_s: 310.0,
    stall: false,
    buffered: false,
};

pub const LONG: Sample = Sample {
    measure_s: 7_200,
    databases: 8,
    mailboxes: 1_000,
    mailbox_size: "1GiB",
    read_ms: 8.4,
    rate_per_s: 41.0,
    stall: true,
    buffered: false,
};

/// Run of 15 minutes: short enough for tests, and long enough that its charts show lines.
pub const QUARTER: Sample = Sample { measure_s: 900, ..LONG };

/// Returns the plan of a sample.
pub fn plan_text(sample: Sample) -> String {
    let demonstration = sample.measure_s < 600;
    let (paths, min) = match demonstration {
        true => ("path = \"/srv/mail\"", "30s"),
        false => (
            "databases = [\"/mnt/db1\", \"/mnt/db2\"]\nlogs = [\"/mnt/log1\", \"/mnt/log2\"]",
            "10m",
        ),
    };
    format!(
        "# ClassData up.\nversion = 1\nname = \"exchange-1000-heavy\"\ndescription = \"1,000 heavy \
         mailboxes of 1 GiB at 0.2 IOPS each\"\ndemonstration = \
         {demonstration}\n\n[requirement]\ndb_read_latency_avg = \"20ms\"\nlog_write_latency_avg = \
         \"10ms\"\n\n[target]\n{paths}\n\n[workload.mailbox]\nmailboxes = {}\niops_per_mailbox = \
         0.2\nmailbox_size = \"{}\"\ndatabases = {}\nthreads_per_database = 4\n\n[phases]\nmeasure \
         = \"{}s\"\n\n[evidence]\nmin_measure = \"{min}\"\n",
        sample.mailboxes, sample.mailbox_size, sample.databases, sample.measure_s
    )
}

/// Creates a synthetic bundle.
pub fn bundle(sample: Sample) -> Bundle {
    let text = plan_text(sample);
    let plan = match Plan::parse(&text, "sample.toml") {
        Ok(plan) => plan.resolve(),
        Err(errors) => panic!("the sample's plan does not parse: {errors}"),
    };
    let phases = phases(sample);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut series = Vec::new();
    let mut classes = Vec::new();
    let mut latency = BTreeMap::new();
    for instance in 0..sample.databases {
        for spec in CLASSES {
            let mut class = ClassData::new(instance, spec);
            class.fill(sample, &phases, &mut chance, &mut series);
            latency.insert(class.totals.name.clone(), class.histogram.clone());
            latency.insert(format!("{}.service", class.totals.name), class.histogram.clone());
            classes.push(class.totals);
        }
    }
    let end_ns = phases.last().map_or(0, |phase| phase.start_ns + phase.duration_ns);
    Bundle {
        run: Run {
            schema_version: SCHEMA_VERSION,
            tool_version: "0.1.0".into(),
            build: None,
            run_id: "20261121-004411-exchange-1000-heavy-7f3a".into(),
            name: plan.name.clone(),
            plan_sha256: "4be1a9e3d4d5b2f0a5a2f3c0d9b1e6f7c8a90b1c2d3e4f5061728394a5b6c7d8".into(),
            driver: Driver::Real,
            tier: Tier::T1,
            started_unix_ns: 1_795_221_851 * S,
            duration_ns: end_ns,
            end: End { kind: EndKind::Completed, says: String::new() },
            ledger: Some(LedgerPosition {
                position: 17,
                previous_sha256: "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab"
                    .into(),
                earlier_runs_of_plan: 3,
                earlier_runs_not_completed: 1,
                ..LedgerPosition::default()
            }),
            signed_by: None,
            experiment: None,
            engine: engine(sample),
            phases,
            classes,
            instances: instances(sample),
            counters: BTreeMap::from([
                ("page_fault_stalls".to_owned(), sample.measure_s / 40),
                ("commits".to_owned(), sample.measure_s * 131),
            ]),
            checks: Checks {
                pages_checked: Some(65_536),
                log_blocks_checked: Some(59_000),
                ..Checks::default()
            },
            events: Vec::new(),
            durability: None,
        },
        plan_text: text,
        job_text: None,
        plan,
        environment: environment(),
        series,
        observed: observed(sample),
        latency,
        latency_spans: Vec::new(),
        seal_sha256: None,
    }
}

fn phases(sample: Sample) -> Vec<Phase> {
    let long = sample.measure_s > 600;
    let lengths = [
        (PhaseKind::Create, if long { 1_400 } else { 7 }),
        (PhaseKind::Duplicate, if long { 2_200 } else { 6 }),
        (PhaseKind::Caches, 1),
        (PhaseKind::WarmUp, if long { 300 } else { 5 }),
        (PhaseKind::Measure, sample.measure_s),
        (PhaseKind::Close, 1),
        (PhaseKind::Verify, if long { 900 } else { 8 }),
    ];
    let mut start_ns = 0;
    lengths
        .into_iter()
        .map(|(kind, length_s)| {
            let bytes = length_s * 180_000_000;
            let (read_bytes, written_bytes) = match kind {
                PhaseKind::Create => (0, bytes),
                PhaseKind::Duplicate => (bytes, bytes),
                PhaseKind::Verify => (bytes * 2, 0),
                PhaseKind::Measure | PhaseKind::WarmUp => (bytes / 9, bytes / 18),
                _ => (0, 0),
            };
            let note = match kind {
                PhaseKind::Caches => "the page cache of the run's own files was dropped",
                PhaseKind::WarmUp => "cache full after 2.1 s, checkpoint depth logged after 4.6 s",
                _ => "",
            };
            let phase = Phase {
                kind,
                start_ns,
                duration_ns: length_s * S,
                read_bytes,
                written_bytes,
                reached: true,
                note: note.into(),
                boundary_error_ns: (kind == PhaseKind::Measure).then_some(0),
            };
            start_ns += phase.duration_ns;
            phase
        })
        .collect()
}

struct Spec {
    name: &'static str,
    group: &'static str,
    is_read: bool,
    /// Rate of the class, as a fraction of the database's rate.
    share: f64,
    size_bytes: u64,
    /// Latency of the class, relative to that of a database read.
    factor: f64,
}

// Classes that the mail store records for each database.
const CLASSES: &[Spec] = &[
    Spec {
        name: "read",
        group: "transactional",
        is_read: true,
        share: 0.62,
        size_bytes: 33_600,
        factor: 1.0,
    },
    Spec {
        name: "write",
        group: "transactional",
        is_read: false,
        share: 0.38,
        size_bytes: 36_900,
        factor: 0.55,
    },
    Spec {
        name: "log_write",
        group: "log",
        is_read: false,
        share: 0.31,
        size_bytes: 7_100,
        factor: 0.12,
    },
    Spec {
        name: "maintenance_read",
        group: "maintenance",
        is_read: true,
        share: 0.05,
        size_bytes: 262_144,
        factor: 1.9,
    },
    Spec {
        name: "flush",
        group: "upkeep",
        is_read: false,
        share: 0.01,
        size_bytes: 0,
        factor: 0.4,
    },
    Spec {
        name: "log_format",
        group: "upkeep",
        is_read: false,
        share: 0.004,
        size_bytes: 1_048_576,
        factor: 2.5,
    },
];

struct ClassData {
    totals: ClassTotals,
    histogram: hdrhistogram::Histogram<u64>,
    spec: &'static Spec,
}

impl ClassData {
    fn new(instance: u32, spec: &'static Spec) -> Self {
        let name = format!("db{}.{}", instance + 1, spec.name);
        let totals = ClassTotals {
            abandoned: Some(0),
            never_started: Some(0),
            ..ClassTotals::empty(name, spec.group.into(), instance, spec.is_read)
        };
        Self { totals, histogram: histogram(), spec }
    }

    fn fill(&mut self, sample: Sample, phases: &[Phase], chance: &mut Chance, rows: &mut Vec<Row>) {
        for (index, phase) in phases.iter().enumerate() {
            if !matches!(phase.kind, PhaseKind::WarmUp | PhaseKind::Measure) {
                continue;
            }
            for second in 0..phase.duration_ns / S {
                let stalled = sample.stall && second == 4_500 && phase.kind == PhaseKind::Measure;
                let drift = 1.0 + 0.08 * (second as f64 / 700.0).sin();
                let rate =
                    sample.rate_per_s * self.spec.share * drift * (0.8 + 0.4 * chance.share());
                let count = if stalled { 2 } else { (rate + chance.share()) as u64 };
                let (mut sum_ns, mut max_ns) = (0, 0);
                for _ in 0..count {
                    // The distribution is hyperexponential: most I/Os are fast, and a few are slow.
                    let slow = if chance.share() < 0.04 { 4.0 } else { 0.9 };
                    let draw = -(1.0 - chance.share()).ln() * slow * 0.7 + 0.25;
                    let stall_ms = if stalled { 900.0 } else { 0.0 };
                    let ms = draw * sample.read_ms * self.spec.factor + stall_ms;
                    let ns = (ms * 1e6) as u64;
                    sum_ns += ns;
                    max_ns = max_ns.max(ns);
                    if phase.kind == PhaseKind::Measure {
                        self.histogram.saturating_record(ns);
                    }
                }
                let bytes = count * self.spec.size_bytes;
                rows.push(Row {
                    phase: index as u32,
                    start_ns: phase.start_ns + second * S,
                    duration_ns: S,
                    name: self.totals.name.clone(),
                    data: Data::Class { count, sum_ns, bytes, max_ns },
                });
                if phase.kind == PhaseKind::Measure {
                    let totals = &mut self.totals;
                    totals.count += count;
                    totals.size_bytes += bytes;
                    totals.latency_ns_sum += sum_ns;
                    totals.latency_ns_max = totals.latency_ns_max.max(max_ns);
                    totals.service_ns_sum += sum_ns;
                    totals.service_ns_max = totals.service_ns_max.max(max_ns);
                }
            }
        }
    }
}

fn paths(sample: Sample) -> Vec<String> {
    match sample.measure_s > 600 {
        true => ["/mnt/db1", "/mnt/db2", "/mnt/log1", "/mnt/log2"].map(str::to_owned).to_vec(),
        false => vec!["/srv/mail".to_owned()],
    }
}

fn engine(sample: Sample) -> Engine {
    let why = match sample.buffered {
        true => "the file system does not take O_DIRECT (EINVAL)",
        false => "",
    };
    Engine {
        kind: "io_uring".into(),
        why: "permitted by the kernel".into(),
        threads: 2,
        sessions: sample.databases * 4,
        closed_loop: true,
        paths: paths(sample)
            .into_iter()
            .map(|path| PathEngine {
                path,
                direct: !sample.buffered,
                why: why.into(),
                direct_refused: None,
            })
            .collect(),
        clock: Clock { source: "CLOCK_MONOTONIC (tsc)".into(), resolution_ns: 1, cost_ps: 21_400 },
        ring_features: vec!["SINGLE_ISSUER".into(), "REGISTER_FILES".into()],
        ring_refusals: Vec::new(),
        polling: None,
    }
}

fn instances(sample: Sample) -> Vec<Instance> {
    let paths = paths(sample);
    let size = if sample.measure_s > 600 { 134_217_728_000 } else { 429_496_729 };
    (0..sample.databases as usize)
        .map(|i| Instance {
            name: format!("db{}", i + 1),
            path: paths[i % paths.len().div_ceil(2)].clone(),
            log_path: Some(paths[(i % 2 + 2).min(paths.len() - 1)].clone()),
            size_bytes_initial: size,
            size_bytes_final: size + size / 300,
            allocated_bytes: size + size / 4,
        })
        .collect()
}

fn environment() -> Environment {
    let device = |name: &str, kind: &str, model: Option<&str>, below: &[&str]| Device {
        name: name.into(),
        kind: kind.into(),
        model: model.map(str::to_owned),
        size_bytes: Some(1_920_383_410_176),
        rotational: Some(false),
        write_cache: Some("write back".into()),
        scheduler: Some("none".into()),
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4_096),
        below: below.iter().map(|b| (*b).to_owned()).collect(),
        transport: (kind == "disk").then_some(Transport::NvmePcie),
        ..Device::default()
    };
    Environment {
        host: Some("mail-a".into()),
        kernel: Some("6.18.2".into()),
        distribution: Some("Debian GNU/Linux 13".into()),
        cpu_model: Some("Example 2.4 GHz".into()),
        cpus: Some(2),
        memory_bytes: Some(25_769_803_776),
        memory_available_bytes: Some(23_622_320_128),
        clock_source: Some("tsc".into()),
        privileged: false,
        virtualisation: Some("kvm".into()),
        mounts: vec![Mount {
            path: "/srv/mail".into(),
            file_system: Some("ext4".into()),
            mount_point: Some("/srv".into()),
            source: Some("/dev/mapper/vg0-srv".into()),
            options: Some("rw,relatime".into()),
            size_bytes: Some(1_889_785_610_240),
            free_bytes: Some(914_793_674_342),
            devices: vec!["dm-0".into(), "nvme0n1".into()],
            on: vec!["dm-0".into()],
        }],
        devices: vec![
            device("dm-0", "dm", None, &["nvme0n1"]),
            device("nvme0n1", "disk", Some("EXAMPLE-SSD-1920"), &[]),
        ],
        cpu_score: Some(1_043.0),
        calibration: None,
        below: Vec::new(),
        unknown: vec![ObservationGap {
            what: "power-loss protection of nvme0n1".into(),
            why: "the log page needs privileges".into(),
            remedy: "running as root".into(),
        }],
    }
}

fn observed(sample: Sample) -> Observed {
    Observed {
        devices: vec![DeviceTotals {
            name: "dm-0".into(),
            top: true,
            reads: 98_123,
            reads_merged: 12,
            read_bytes: 4_012_998_656,
            read_ns: 812_000_000_000,
            writes: 71_202,
            writes_merged: 402,
            written_bytes: 2_312_110_080,
            write_ns: 91_000_000_000,
            flushes: Some(9_122),
            discarded_bytes: Some(0),
            busy_ns: sample.measure_s * 412_000_000,
            queue_ns: sample.measure_s * 2 * S,
            beside: None,
        }],
        page_cache: PageCache {
            files_bytes: Some(1_073_741_824),
            resident_bytes_before: Some(if sample.buffered { 912_680_550 } else { 0 }),
            resident_bytes_after: Some(if sample.buffered { 990_000_000 } else { 40_960 }),
            system_dropped: Some(false),
        },
        clock: ClockWatch { stopped_ns: Some(0), ..ClockWatch::default() },
        interposition: Some(Vec::new()),
        cpu: Cpu {
            busy_avg: Some(0.182),
            busy_min: Some(0.121),
            busy_max: Some(0.402),
            steal_avg: Some(0.0008),
            steal_max: Some(0.011),
            busiest_cpu_avg: Some(0.231),
            ..Cpu::default()
        },
        generator: Generator {
            user_ns: Some(2_140_000_000),
            system_ns: Some(3_310_000_000),
            storage_read_bytes: Some(4_012_990_000),
            storage_written_bytes: Some(2_312_100_000),
            resident_bytes_max: Some(312_475_648),
            ..Generator::default()
        },
        extents: Some(Extents {
            size_bytes: 1_073_741_824,
            hole_bytes: 0,
            unwritten_bytes: Some(0),
            extents: Some(14),
            ..Extents::default()
        }),
        workload: AccessProfile {
            working_set_read_bytes: Some(812_646_400),
            working_set_written_bytes: Some(411_041_792),
            read_sequential_share: Some(0.003),
            write_sequential_share: Some(0.11),
            log_sequential_share: Some(0.9991),
            compressed_share: Some(1.0),
            zero_share: Some(0.0),
            duplicate_share: Some(0.0),
            ..AccessProfile::default()
        },
        unknown: vec![ObservationGap {
            what: "where the array served its reads from".into(),
            why: "no metrics of the storage system were named".into(),
            remedy: "a [[observe.metrics]] entry in the plan".into(),
        }],
        ..Observed::default()
    }
}
