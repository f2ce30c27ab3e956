//! Tests that the same seed produces the same evidence, byte for byte, in every build.
//!
//! The hashes in `data/golden.txt` were recorded once. Every build must reproduce them: debug and
//! release, glibc and musl, with or without optimisation of single crates. The run id, the
//! environment, wall times and texts are not hashed. `benches/same-evidence` builds all variants
//! and compares their evidence.
//!
//! The hashes change if a model, the workload or the order of random numbers in the simulation
//! changes. The commit message must mention this. `PLIMSOLL_BLESS=1 cargo test -p plimsoll-model
//! --test models golden::` rewrites the file.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::{latency, series};
use plimsoll_model::run::{ConfiguredModel, ModelRun, run_plan};
use plimsoll_plan::{Plan, TargetKind};
use plimsoll_record::progress::SilentWatcher;
use plimsoll_record::recording::Recording;
use sha2::{Digest, Sha256};

const GOLDEN: &str = include_str!("../../data/golden.txt");

/// Returns all recorded results as text: series, histograms, sums, counters and internal
/// statistics.
fn bytes(recording: &Recording) -> Vec<u8> {
    let mut out = Vec::new();
    series::write(&mut out, &recording.series).unwrap();
    latency::write(&mut out, 0, &recording.intervals, None).unwrap();
    let inside = recording.observed.inside.as_ref().unwrap();
    out.extend(format!("{:?}{:?}", inside.nodes, inside.stations).into_bytes());
    out.extend(format!("{:?}{:?}", inside.paths, inside.events).into_bytes());
    for class in &recording.classes {
        let sums = (class.latency_ns_sum, class.service_ns_sum, class.size_bytes);
        out.extend(format!("{} {} {sums:?}", class.name, class.count).into_bytes());
    }
    for phase in &recording.phases {
        let bytes = (phase.read_bytes, phase.written_bytes);
        out.extend(format!("{} {} {bytes:?}", phase.start_ns, phase.duration_ns).into_bytes());
    }
    out.extend(format!("{:?}", recording.counters).into_bytes());
    out
}

fn hash(text: &str) -> String {
    let plan = Plan::parse(text, "golden").unwrap().resolve();
    let TargetKind::Model { model, set } = &plan.targets[0].kind else { panic!("no model") };
    let model = ConfiguredModel::load(model, set).unwrap();
    let (seed, interrupt) = (plan.seed, AtomicBool::new(false));
    let run = ModelRun {
        trace: None,
        plan: &plan,
        model: &model,
        seed,
        interrupt: &interrupt,
        watcher: &mut SilentWatcher,
    };
    let recording = run_plan(run).unwrap();
    let digest = Sha256::digest(bytes(&recording));
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Runs every shipped model with a mixed load, and two of them with a mail store.
fn all() -> String {
    let mut lines = String::new();
    let models = [
        "adsf-hybrid",
        "vsan-hybrid",
        "zfs-flash",
        "laptop-nvme",
        "single-hdd",
        "cloud-volume",
        "fs-ntfs",
        "fs-refs",
    ];
    for model in models {
        let text = format!(
            "version = 1\nname = \"mixed\"\nseed = 11\n[target]\nmodel = \
             \"{model}\"\n[workload.matrix]\nclients = 4\nqueue_depth = 2\nfiles = 4\nfile_size = \
             \"1GiB\"\nsizes = \"16KiB\"\nreads = 60\n[phases]\nwarm_up = \"100ms\"\nmeasure = \
             \"1s\"\n[evidence]\nmin_measure = \"1s\"\n"
        );
        let _ = writeln!(lines, "{model} mixed {}", hash(&text));
    }
    for model in ["adsf-hybrid", "zfs-flash"] {
        let text = format!(
            "version = 1\nname = \"mail\"\nseed = 12\n[target]\nmodel = \
             \"{model}\"\n[workload.mailbox]\nmailboxes = 400\niops_per_mailbox = 1.0\nmailbox_size \
             = \"64MiB\"\ndatabases = 4\nthreads = 8\npace = \"target\"\ncache = \
             \"64MiB\"\n[phases]\ncache = \"cold\"\nwarm_up = \"10s\"\nmeasure = \
             \"20s\"\n[evidence]\nmin_measure = \"5s\"\n"
        );
        let _ = writeln!(lines, "{model} mail {}", hash(&text));
    }
    lines
}

#[test]
fn evidence_is_the_same_in_every_build() {
    let now = all();
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/data/golden.txt"), &now).unwrap();
        return;
    }
    assert_eq!(now, GOLDEN, "the evidence of a seed has changed, or differs between builds");
}
