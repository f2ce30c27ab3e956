//! Compares the audit with the truth, for random plans on modelled systems. The model counts the
//! source of every read, and the test compares the finding of each rule with these counts.
//!
//! The test runs 16 plans by default; `PLIMSOLL_PLANS=200 cargo test -p plimsoll --test planning
//! model_truth:: -- --nocapture` runs more. If a plan fails, the test prints its number and its
//! text, which are the same on every machine.

use crate::support::Sandbox;
use crate::support::draw::Draw;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::series::Data;
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::rules::{
    Rule, holes_read, served_from_cache_below, warm_up_short, working_set_small,
};

const PLANS: u64 = 16;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A cache with a random policy in front of two drives.
const CACHED: &str = "[model]\nname = \"cached\"\nentry = \"path\"\nfrom = \
                      \"chosen\"\n[block.path]\nkind = \"path\"\nbelow = \"cache\"\ncpu = \
                      \"cpu\"\nfrom = \"assumed\"\nread_us = 20\nwrite_us = 20\n[block.cpu]\nkind = \
                      \"cpu\"\nfrom = \"assumed\"\ncores = 4\n[block.cache]\nkind = \
                      \"cache\"\nbelow = \"drive\"\nfrom = \"assumed\"\npolicy = \
                      \"POLICY\"\ncapacity_bytes = CAPACITY\nunit_bytes = 4096\nwrites = \
                      \"through\"\nlabel = \"dram\"\n[block.drive]\nkind = \"drive\"\nfrom = \
                      \"assumed\"\ncount = 2\nread_us = 100\nwrite_us = 100\nread_bytes_per_s = \
                      1e9\nwrite_bytes_per_s = 1e9\nlanes = 8\n";

/// A plan that reads, and the facts that are known before it runs.
struct PlanCase {
    text: String,
    cache_bytes: u64,
    data_bytes: u64,
    io_bytes: u64,
    warm: bool,
    written: bool,
    random: bool,
    lru: bool,
}

fn draw(number: u64, sandbox: &Sandbox) -> PlanCase {
    let mut draw = Draw::of(number);
    let cache_bytes = draw.one_of(&[8, 16, 32, 64]) * MIB;
    // The data is between a tenth and ten times as large as the cache.
    let data_bytes = (cache_bytes * draw.one_of(&[1, 3, 6, 9, 12, 20, 40, 100]) / 10)
        .next_multiple_of(4 * MIB)
        .max(4 * MIB);
    let files = draw.one_of(&[1, 2, 4]);
    let io_bytes = draw.one_of(&[4, 8, 16]) * KIB;
    let warm = draw.one_of(&[true, false]);
    let written = draw.one_of(&[true, true, true, false]);
    let random = draw.one_of(&[true, true, true, false]);
    let policy = draw.one_of(&["lru", "segmented-lru", "arc"]);
    let model = sandbox.path("cached.toml");
    let text = CACHED.replace("POLICY", policy).replace("CAPACITY", &cache_bytes.to_string());
    std::fs::write(&model, text).unwrap();
    let text = format!(
        "version = 1\nname = \"truth-{number}\"\nseed = {number}\n[target]\nmodel = \
         {:?}\n[observe]\narray_cache = \"{}KiB\"\n[workload.matrix]\nclients = {}\nqueue_depth = \
         {}\nfiles = {files}\nfile_size = \"{}KiB\"\nsizes = \"{}KiB\"\nreads = 100\npatterns = \
         {:?}\nlayout = {:?}\n[phases]\ncache = {:?}\nwarm_up = \"100ms\"\nmeasure = \
         \"2s\"\n[evidence]\nmin_measure = \"1s\"\n",
        model.display().to_string(),
        cache_bytes / KIB,
        draw.one_of(&[1, 2, 4]),
        draw.one_of(&[1, 4, 8]),
        data_bytes / files / KIB,
        io_bytes / KIB,
        if random { "random" } else { "sequential" },
        if written { "written" } else { "sparse" },
        if warm { "warm" } else { "cold" },
    );
    PlanCase {
        text,
        cache_bytes,
        data_bytes,
        io_bytes,
        warm,
        written,
        random,
        lru: policy == "lru",
    }
}

fn carry_out(sandbox: &Sandbox, text: &str) -> Bundle {
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    let ran = sandbox.run(&["run", path.to_str().unwrap(), "--json"]);
    assert!([0, 1, 3].contains(&ran.code), "{}\n{}\n{text}", ran.stdout, ran.stderr);
    Bundle::read(&sandbox.bundle()).unwrap()
}

fn outcome(rule: &Rule, bundle: &Bundle) -> Option<Outcome> {
    (rule.check)(bundle).map(|finding| finding.outcome)
}

/// Returns the share of the measured reads that one source served. The model counted each read.
fn share(bundle: &Bundle, place: &str) -> f64 {
    let nodes = &bundle.observed.inside.as_ref().unwrap().nodes;
    let of = |name: Option<&str>| -> u64 {
        let reads = nodes.iter().flat_map(|node| &node.reads);
        reads.filter(|(p, _)| name.is_none_or(|n| n == p.as_str())).map(|(_, t)| t.ios).sum()
    };
    of(Some(place)) as f64 / of(None).max(1) as f64
}

/// Returns true if a value is so near a threshold that counts at the edges of the window can decide
/// the outcome.
fn close(value: f64, threshold: f64) -> bool {
    (value - threshold).abs() < 0.002
}

fn check(drawn: &PlanCase, bundle: &mut Bundle) {
    let (dram, zero) = (share(bundle, "dram"), share(bundle, "zero"));
    // Checks the source of reads with the system's own counters.
    if !close(dram, 0.05) {
        let expected = if dram > 0.05 { Outcome::Fail } else { Outcome::Pass };
        let says = outcome(&served_from_cache_below::RULE, bundle);
        assert_eq!(says, Some(expected), "reads from memory: {dram}");
    }
    // Checks holes: the plan determines whether there is data to read.
    assert_eq!(zero, if drawn.written { 0.0 } else { 1.0 });
    let expected = if drawn.written { Outcome::Pass } else { Outcome::Fail };
    assert_eq!(outcome(&holes_read::RULE, bundle), Some(expected));
    working_set(drawn, bundle);
    // Compares the size of the cache with the reads that it served.
    let fits = bundle.observed.workload.working_set_read_bytes.unwrap() <= drawn.cache_bytes;
    let expected = if fits { Outcome::Fail } else { Outcome::Pass };
    assert_eq!(outcome(&working_set_small::RULE, bundle), Some(expected));
    if !drawn.written {
        return;
    }
    if drawn.warm && drawn.data_bytes <= drawn.cache_bytes {
        assert!(dram > 0.999, "everything was in memory, and {dram} came from it");
    }
    if drawn.data_bytes > drawn.cache_bytes && drawn.random {
        let most = drawn.cache_bytes as f64 / drawn.data_bytes as f64;
        assert!(dram < most + 0.05, "{dram} from a cache of {most} of the data");
    }
    // The same rule is checked without the system's counters. It then uses the declared cache size
    // and the reuse of blocks by reads.
    bundle.observed.sources.reads_from.clear();
    let finding = (served_from_cache_below::RULE.check)(bundle).unwrap();
    match finding.outcome {
        Outcome::Pass => assert!(dram < 0.08, "passed, and {dram} came from memory"),
        Outcome::Fail => assert!(fits, "failed, and the data did not fit: {}", finding.says),
        _ => assert!(!fits, "undecided, and the data fit"),
    }
    if drawn.lru && drawn.random && !drawn.warm && !fits {
        // A cold LRU cache serves exactly the reads that are predicted by their reuse distances.
        let curve = &bundle.observed.workload.miss_ratio;
        let below = curve.iter().rfind(|point| point.cache_bytes <= drawn.cache_bytes);
        let above = curve.iter().find(|point| point.cache_bytes >= drawn.cache_bytes);
        let least = below.map_or(0.0, |point| 1.0 - point.miss_share);
        let most = above.map_or(1.0, |point| 1.0 - point.miss_share);
        // Before the measurement, the warm-up of 100 ms fills part of the cache.
        assert!(dram > least - 0.1 && dram < most + 0.15, "{dram}, expected {least} to {most}");
    }
}

/// The working set is computed from the number of reads alone: the expected number of distinct
/// blocks among `n` uniform reads of `b` blocks is `b (1 - (1 - 1/b)^n)` (W. Feller, volume 1,
/// II.5).
fn working_set(drawn: &PlanCase, bundle: &Bundle) {
    let reads: u64 = bundle.run.classes.iter().filter(|c| c.is_read).map(|c| c.count).sum();
    let places = (drawn.data_bytes / drawn.io_bytes) as f64;
    let seen = bundle.observed.workload.working_set_read_bytes.unwrap() as f64;
    if drawn.random {
        let touched = places * (1.0 - (1.0 - 1.0 / places).powf(reads as f64));
        let expected = touched * drawn.io_bytes as f64;
        // The tolerance is six standard deviations of the number of unread blocks. One standard
        // deviation is at most sqrt(b) / 2.
        let slack = 3.0 * places.sqrt() * drawn.io_bytes as f64 + 64.0 * 16_384.0;
        assert!((seen - expected).abs() <= slack, "{seen} bytes, expected {expected}");
    } else {
        let most = (reads * drawn.io_bytes + 64 * 16_384).min(drawn.data_bytes);
        assert!(seen <= most as f64, "{seen} bytes of at most {most}");
    }
}

#[test]
fn rules_agree_with_the_truth_on_random_plans() {
    let requested = std::env::var("PLIMSOLL_PLANS").ok().and_then(|text| text.parse().ok());
    let (mut failed, mut cached, mut empty) = (0, 0, 0);
    let plans = requested.unwrap_or(PLANS);
    for number in 1..=plans {
        let sandbox = Sandbox::new();
        let drawn = draw(number, &sandbox);
        let mut bundle = carry_out(&sandbox, &drawn.text);
        cached += u32::from(share(&bundle, "dram") > 0.05);
        empty += u32::from(!drawn.written);
        let checked = std::panic::AssertUnwindSafe(|| check(&drawn, &mut bundle));
        if std::panic::catch_unwind(checked).is_err() {
            println!("plan {number}:\n{}", drawn.text);
            failed += 1;
        }
    }
    println!("{plans} plans: {cached} served from a cache, {empty} of holes, {failed} disagree");
    assert_eq!(failed, 0);
    // If a set of plans had no reads from one kind of source, it would prove nothing about the rule
    // for that source.
    assert!(cached > 0 && u64::from(cached) < plans && empty > 0);
}

/// The rule for a mail store's warm-up agrees with the reports of the store's page cache and log,
/// and the reads confirm this.
#[test]
fn a_warm_up_is_complete_when_the_cache_has_been_read_full() {
    let plans = std::env::var("PLIMSOLL_PLANS").ok().and_then(|text| text.parse().ok());
    let plans: u64 = plans.unwrap_or(PLANS) / 4;
    let (mut short, mut full) = (0, 0);
    for number in 1..=plans {
        let sandbox = Sandbox::new();
        let mut draw = Draw::of(1_000 + number);
        let cache_mib = draw.one_of(&[8, 16, 32]);
        let seconds = draw.one_of(&[1, 2, 120]);
        let text = format!(
            "version = 1\nname = \"warm-up-{number}\"\nseed = {number}\n[target]\nmodel = \
             \"laptop-nvme\"\n[workload.mailbox]\nmailboxes = 100\niops_per_mailbox = \
             4.0\nmailbox_size = \"4MiB\"\ndatabases = 2\nthreads = 8\npace = \"target\"\ncache = \
             \"{cache_mib}MiB\"\ncheckpoint_depth = \"2MiB\"\n[phases]\nwarm_up = \
             \"{seconds}s\"\nmeasure = \"2s\"\n[evidence]\nmin_measure = \"1s\"\n"
        );
        let bundle = carry_out(&sandbox, &text);
        let phases = &bundle.run.phases;
        let at = phases.iter().position(|phase| phase.kind == PhaseKind::WarmUp).unwrap();
        let reads = |phase: usize| -> u64 {
            let rows = bundle.series.iter().filter(|row| row.phase as usize == phase);
            let counts = rows.filter(|row| row.name.ends_with(".read")).map(|row| match row.data {
                Data::Class { count, .. } => count,
                Data::Gauge(_) => 0,
            });
            counts.sum()
        };
        let frames = cache_mib * MIB / (32 * KIB);
        let expected = if phases[at].reached { Outcome::Pass } else { Outcome::Unknown };
        assert_eq!(outcome(&warm_up_short::RULE, &bundle), Some(expected), "{text}");
        if phases[at].reached {
            full += 1;
            // Write-back leaves part of the frames free.
            assert!(
                reads(at) * 10 >= frames * 8,
                "{} reads fill {frames} frames\n{text}",
                reads(at)
            );
        } else {
            short += 1;
            assert_eq!(phases[at].duration_ns, seconds * 1_000_000_000, "{text}");
        }
    }
    assert!(short > 0 && full > 0, "{short} short, {full} full");
}
