//! Runs on modelled storage. The truth follows from the parameters of the model: its rate, its
//! latency, and the reads that its cache serves.

use plimsoll_evidence::Bundle;

use crate::case::{Case, CaseResult};
use crate::program::carry_out;
use crate::support::Sandbox;
use crate::support::draw::Draw;
use crate::truth::Truth;
use crate::wrong::{self, Mistake, Wrong};

/// A system with three blocks: a limit, a cache and a drive. The drive determines the latency; the
/// limit or the drive determines the rate.
const MODEL: &str = "[model]\nname = \"drawn\"\nentry = \"limit\"\nfrom = \
                     \"chosen\"\n[block.limit]\nkind = \"limit\"\nbelow = \"cache\"\nfrom = \
                     \"chosen\"\nbaseline_ops_per_s = BASELINE\nburst_ops_per_s = BURST\ncredit_ops \
                     = CREDIT\n[block.cache]\nkind = \"cache\"\nbelow = \"drive\"\nfrom = \
                     \"chosen\"\npolicy = \"POLICY\"\ncapacity_bytes = CAPACITY\nunit_bytes = \
                     4096\nwrites = \"through\"\nlabel = \"dram\"\n[block.drive]\nkind = \
                     \"drive\"\nfrom = \"chosen\"\ncount = 1\nlanes = LANES\nread_us = \
                     SERVICE\nwrite_us = SERVICE\nread_bytes_per_s = 1e12\nwrite_bytes_per_s = \
                     1e12\nvariation_ratio = VARIATION\n";

/// Random parameters of a system, and values derived from them.
struct ModelCase {
    baseline: f64,
    burst: f64,
    credit: f64,
    lanes: u64,
    service_us: u64,
    variation: f64,
    /// Capacity of the cache in KiB. It is far smaller than the data if the cache must not serve
    /// reads.
    cache_kib: u64,
    policy: &'static str,
}

impl ModelCase {
    fn text(&self) -> String {
        MODEL
            .replace("BASELINE", &self.baseline.to_string())
            .replace("BURST", &self.burst.to_string())
            .replace("CREDIT", &self.credit.to_string())
            .replace("POLICY", self.policy)
            .replace("CAPACITY", &(self.cache_kib << 10).to_string())
            .replace("LANES", &self.lanes.to_string())
            .replace("SERVICE", &self.service_us.to_string())
            .replace("VARIATION", &self.variation.to_string())
    }
}

/// Ratios of a requirement to the true value. The system meets requirements with these ratios.
const KEPT: [f64; 5] = [0.02, 0.5, 0.9, 0.97, 0.99];
const BROKEN: [f64; 5] = [1.02, 1.05, 1.3, 3.0, 900.0];

/// Number of operations that is sufficient for a PASS, with a margin.
const OPERATIONS_ENOUGH: f64 = 1100.0;

/// Number of standard errors above which a deviation is not due to chance.
const CHANCE: f64 = 4.0;

/// Returns a random case on a modelled system.
pub fn case(seed: u64, draw: &mut Draw) -> Case {
    let kind = draw.one_of(&[
        Kind::Limited,
        Kind::Limited,
        Kind::Serving,
        Kind::Serving,
        Kind::Bursting,
        Kind::Overloaded,
        Kind::Cached,
        Kind::Cached,
        Kind::Hollow,
        Kind::Short,
        Kind::Shipped,
        Kind::Store,
        Kind::Undeclared,
    ]);
    Case { seed, class: kind.label(), carry_out: Box::new(move |seed| tried(kind, seed)) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A limit of the model determines the rate.
    Limited,
    /// The drive's service time determines the rate.
    Serving,
    /// The burst credit runs out during the measurement.
    Bursting,
    /// The offered load exceeds the capacity.
    Overloaded,
    /// A cache may serve some of the reads.
    Cached,
    /// Some or all blocks of the files were never written.
    Hollow,
    /// The measurement is too short for a PASS.
    Short,
    /// The system is a model that Plimsoll ships, sometimes with failed nodes. A first run
    /// determines its rate.
    Shipped,
    /// A mail store with latency limits for its databases and its logs.
    Store,
    /// Claims and declarations that a model cannot support.
    Undeclared,
}

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Self::Limited => "model: a limit",
            Self::Serving => "model: a drive",
            Self::Bursting => "model: burst credit",
            Self::Overloaded => "model: overload",
            Self::Cached => "model: a cache",
            Self::Hollow => "model: holes",
            Self::Short => "model: too short",
            Self::Shipped => "model: shipped, nodes failed",
            Self::Store => "model: a mail store",
            Self::Undeclared => "model: claims",
        }
    }
}

/// The sections of a plan.
struct Plan {
    requirement: String,
    target: String,
    workload: String,
    cache: &'static str,
    measure_s: u64,
    more: String,
}

impl Plan {
    fn text(&self, seed: u64) -> String {
        let Self { requirement, target, workload, cache, measure_s, more } = self;
        let required = if requirement.is_empty() { "" } else { "[requirement]\n" };
        format!(
            "version = 1\nname = \"adversary\"\nseed = \
             {}\n{required}{requirement}[target]\n{target}\n[workload.matrix]\n{workload}\n[phases]\ncache \
             = {cache:?}\nwarm_up = \"2s\"\nmeasure = \"{measure_s}s\"\n[evidence]\nmin_measure = \
             \"1s\"\n{more}",
            seed % 1_000_000
        )
    }
}

fn tried(kind: Kind, seed: u64) -> CaseResult {
    let mut draw = Draw::of(seed ^ 0x006d_6f64_656c);
    let sandbox = Sandbox::new();
    match kind {
        Kind::Shipped => return shipped(&sandbox, &mut draw, seed),
        Kind::Store => return store(&sandbox, &mut draw, seed),
        _ => {}
    }
    let (drawn, plan, truth) = compose(kind, &mut draw);
    std::fs::write(sandbox.path("drawn.toml"), drawn.text()).unwrap();
    run(&sandbox, &plan.text(seed), &truth, |bundle, verdict| match kind {
        Kind::Cached | Kind::Hollow => by_the_counters(bundle, verdict),
        _ => Vec::new(),
    })
}

/// Compares the verdict's statement about the source of reads with the model's own counters.
fn by_the_counters(bundle: &Bundle, verdict: &serde_json::Value) -> Vec<Mistake> {
    let nodes = bundle.observed.inside.iter().flat_map(|inside| &inside.nodes);
    let reads: Vec<(&str, u64)> = nodes
        .flat_map(|node| &node.reads)
        .map(|(place, total)| (place.as_str(), total.ios))
        .collect();
    let of =
        |name: &str| reads.iter().filter(|(place, _)| *place == name).map(|r| r.1).sum::<u64>();
    let all = reads.iter().map(|r| r.1).sum::<u64>() as f64;
    if all == 0.0 {
        return Vec::new();
    }
    let (memory, holes) = (of("dram") as f64 / all, of("zero") as f64 / all);
    let mut found = by_sources(memory, holes, verdict);
    // If the declared cache can hold all data that is read, the plan itself rules out a proof of
    // `media-read`.
    let read = bundle.observed.workload.working_set_read_bytes;
    let cache = bundle.plan.observe.array_cache_bytes;
    if read.zip(cache).is_some_and(|(read, cache)| read <= cache) {
        found.retain(|(wrong, _)| *wrong != Wrong::Accused);
    }
    found
}

/// Ranges of read shares around a threshold, in which a count may be on either side of it. The
/// thresholds are 1 % of reads from holes in a completely written file, and 5 % of reads from a
/// cache in a media figure.
const HOLES_OPEN: std::ops::RangeInclusive<f64> = 0.008..=0.0125;
const MEMORY_OPEN: std::ops::RangeInclusive<f64> = 0.04..=0.06;

/// Compares the verdict with the shares of reads that memory and holes served.
fn by_sources(memory: f64, holes: f64, verdict: &serde_json::Value) -> Vec<Mistake> {
    let (hollow, whole) = (holes > *HOLES_OPEN.end(), holes < *HOLES_OPEN.start());
    let standing = |claim: &str| verdict["claims"][claim].as_str().unwrap_or_default().to_owned();
    let shares = format!("with {memory:.3} from memory and {holes:.3} of holes");
    let mut found = Vec::new();
    let believed = standing("media-read").starts_with("believable");
    if believed && (memory > *MEMORY_OPEN.end() || hollow) {
        found.push((Wrong::Believed, format!("media-read, {shares}")));
    }
    if verdict["verdict"] == "PASS" && hollow {
        found.push((Wrong::FalsePass, format!("it passed, {shares}")));
    }
    if standing("cached-read").starts_with("believable") && memory < 0.5 {
        found.push((Wrong::Believed, format!("cached-read, {shares}")));
    }
    if standing("media-read") == "refuted" && memory < *MEMORY_OPEN.start() && whole {
        found.push((Wrong::Accused, format!("media-read is refuted, {shares}")));
    }
    found
}

/// If one read in forty hits a hole, the figure is not the medium's: the verdict must not accept
/// `media-read`, and may refute it.
#[test]
fn what_came_of_holes_is_held_to_its_own_bound() {
    let verdict = |standing: &str| serde_json::json!({ "claims": { "media-read": standing } });
    let kinds = |memory, holes, standing| {
        let found = by_sources(memory, holes, &verdict(standing));
        found.into_iter().map(|(wrong, _)| wrong).collect::<Vec<_>>()
    };
    assert_eq!(kinds(0.001, 0.025, "refuted"), []);
    assert_eq!(kinds(0.001, 0.025, "believable"), [Wrong::Believed]);
    assert_eq!(kinds(0.001, 0.0, "refuted"), [Wrong::Accused]);
    assert_eq!(kinds(0.07, 0.0, "believable"), [Wrong::Believed]);
    assert_eq!(kinds(0.05, 0.01, "refuted"), []);
    assert_eq!(kinds(0.05, 0.01, "believable"), []);
}

/// Runs a plan and compares its verdict with the truth.
fn run(
    sandbox: &Sandbox,
    text: &str,
    truth: &Truth,
    more: impl Fn(&Bundle, &serde_json::Value) -> Vec<Mistake>,
) -> CaseResult {
    let path = sandbox.path("plan.toml");
    std::fs::write(&path, text).unwrap();
    let ran = carry_out(sandbox, &["run", path.to_str().unwrap(), "--json", "-q"]);
    let bundles = sandbox.bundles();
    let bundle = bundles.last();
    let mut found = wrong::of_run(truth, ran.as_ref(), bundle.map(std::path::PathBuf::as_path));
    let verdict = ran.as_ref().and_then(|ran| wrong::of_command(ran, &[0, 1, 3, 4, 5]));
    if let (Some(verdict), Some(bundle)) = (&verdict, bundle)
        && let Ok(bundle) = Bundle::read(bundle)
    {
        let presumed = verdict["verdict"] != "PASS"
            && found.iter().any(|(wrong, _)| *wrong == Wrong::FalsePass);
        if presumed && !passes_if_longer(sandbox, text, &bundle) {
            found.retain(|(wrong, _)| *wrong != Wrong::FalsePass);
        }
        found.extend(more(&bundle, verdict));
    }
    CaseResult::of(truth, ran.as_ref(), found, text)
}

/// Repeats a run that was too short for a PASS, with enough operations for a PASS. Returns true if
/// the longer run passes. The short run does not show this, because burst credit, for example, may
/// run out later. In virtual time, the longer run costs little.
fn passes_if_longer(sandbox: &Sandbox, text: &str, bundle: &Bundle) -> bool {
    let counted: u64 = bundle.run.classes.iter().map(|class| class.count).sum();
    let measured_s = bundle.run.measure().map_or(1.0, |phase| phase.duration_ns as f64 / 1e9);
    let enough_s = (measured_s * OPERATIONS_ENOUGH / counted.max(1) as f64).max(30.0).ceil();
    let longer: Vec<String> = text
        .lines()
        .map(|line| match line.starts_with("measure = ") {
            true => format!("measure = \"{enough_s:.0}s\""),
            false => line.to_owned(),
        })
        .collect();
    let path = sandbox.path("longer.toml");
    std::fs::write(&path, longer.join("\n")).unwrap();
    let ran = carry_out(sandbox, &["run", path.to_str().unwrap(), "--json", "-q"]);
    let verdict = ran.as_ref().and_then(|ran| wrong::of_command(ran, &[0, 1, 3, 4, 5]));
    verdict.is_none_or(|verdict| verdict["verdict"] == "PASS")
}

/// Generates a random system, plan and truth for a kind of case.
fn compose(kind: Kind, draw: &mut Draw) -> (ModelCase, Plan, Truth) {
    let rate = draw.spread(60.0, 1500.0);
    let depth = draw.one_of(&[1u64, 2, 4, 8, 16]);
    let mut drawn = ModelCase {
        baseline: 1e8,
        burst: 1e8,
        credit: 1.0,
        lanes: draw.one_of(&[1, 2, 8, 64]),
        service_us: 1_000_000 * depth / rate as u64,
        variation: draw.one_of(&[0.0, 0.0, 0.3]),
        cache_kib: 64,
        policy: draw.one_of(&["lru", "segmented-lru", "arc"]),
    };
    let io_kib = draw.one_of(&[4u64, 8, 64]);
    let reads = draw.one_of(&[100, 100, 70, 0]);
    let mut plan = Plan {
        requirement: String::new(),
        target: "model = \"drawn.toml\"".to_owned(),
        workload: format!(
            "sizes = \"{io_kib}KiB\"\nreads = {reads}\nqueue_depth = {depth}\nfile_size = \"64MiB\""
        ),
        cache: "cold",
        measure_s: draw.one_of(&[30, 31, 45, 60]),
        more: String::new(),
    };
    let mut truth = Truth::honest();
    // If there are fewer lanes than concurrent operations, operations queue.
    let lanes = drawn.lanes.min(depth) as f64;
    let mut carried = lanes * 1e6 / drawn.service_us as f64;
    match kind {
        Kind::Limited => {
            drawn.baseline = (carried / draw.one_of(&[1.5, 3.0, 10.0])).max(20.0).round();
            drawn.burst = drawn.baseline;
            carried = drawn.baseline.min(carried);
        }
        Kind::Serving | Kind::Undeclared | Kind::Shipped | Kind::Store => {}
        // Cache hits and reads of holes take no time. The rate limit keeps the latency above zero.
        Kind::Cached | Kind::Hollow => (drawn.baseline, drawn.burst) = (3000.0, 3000.0),
        Kind::Bursting => {
            // The credit runs out during the measurement, after the warm-up of 2 s.
            drawn.baseline = (carried / draw.one_of(&[2.0, 4.0, 8.0])).max(10.0).round();
            let after_s = 2.0 + plan.measure_s as f64 * draw.one_of(&[0.2, 0.4, 0.7]);
            drawn.credit = ((carried - drawn.baseline) * after_s).round();
            carried = drawn.baseline;
        }
        Kind::Overloaded => {
            drawn.baseline = (carried / 2.0).max(20.0).round();
            drawn.burst = drawn.baseline;
            carried = drawn.baseline.min(carried);
            let offered = (carried * draw.one_of(&[1.3, 2.0, 5.0])).round();
            plan.workload.push_str(&format!(
                "\narrival = {:?}\nrate = {offered}",
                draw.one_of(&["constant", "poisson"])
            ));
        }
        Kind::Short => plan.measure_s = draw.one_of(&[1, 5, 20, 29]),
    }
    require(kind, draw, &mut plan, &mut truth, (carried, depth, io_kib, drawn.variation));
    declare(kind, draw, &mut plan, &mut drawn, &mut truth);
    (drawn, plan, truth)
}

/// Generates a requirement above or below the true value.
fn require(
    kind: Kind,
    draw: &mut Draw,
    plan: &mut Plan,
    truth: &mut Truth,
    (carried, depth, io_kib, variation): (f64, u64, u64, f64),
) {
    // With a cache, the system is faster than its drive, and its rate is not known in advance.
    let known = !matches!(kind, Kind::Cached | Kind::Hollow);
    let keeps = draw.one_of(&[true, true, false]);
    let share = if keeps { draw.one_of(&KEPT) } else { draw.one_of(&BROKEN) };
    let bytes = carried * (io_kib << 10) as f64;
    let requested = match draw.below(3) {
        0 => format!("bandwidth = \"{:.0}B/s\"\n", bytes * share),
        _ => format!("iops = {}\n", (carried * share * 100.0).round() / 100.0),
    };
    plan.requirement.push_str(&requested);
    // If service times are random, the mean of a few operations can exceed the true mean.
    let chance = CHANCE * variation / (carried * plan.measure_s as f64).sqrt();
    if !keeps && known && share > 1.0 + chance {
        let why = format!("{carried:.1} operations a second are carried, {share} of that asked");
        *truth = truth.clone().and_no_pass(why);
    }
    // Expected mean latency according to Little's law. It is exact if all operations take the same
    // time.
    let closed = matches!(kind, Kind::Limited | Kind::Serving | Kind::Short | Kind::Undeclared);
    if closed && plan.workload.contains("reads = 100") && draw.once_in(2) {
        let mean_ns = depth as f64 / carried * 1e9;
        let keeps = draw.one_of(&[true, true, false]);
        let factor = if keeps { draw.one_of(&[1.1, 2.0]) } else { draw.one_of(&[0.5, 0.9]) };
        let which = if variation == 0.0 && kind == Kind::Serving {
            draw.one_of(&["avg", "p50", "p95"])
        } else {
            "avg"
        };
        let limit_ns = mean_ns * factor;
        plan.requirement.push_str(&format!("read_latency_{which} = \"{limit_ns:.0}ns\"\n"));
        if !keeps {
            let why = format!("reads take {mean_ns:.0} ns, {factor} of that allowed");
            *truth = truth.clone().and_no_pass(why);
        }
    }
    if kind == Kind::Overloaded && plan.workload.contains("reads = 100") {
        plan.requirement.push_str("read_latency_p50 = \"500ms\"\n");
        let why = "more is offered than carried: what waits grows for all of the measurement";
        *truth = truth.clone().and_no_pass(why);
    }
    if kind == Kind::Short {
        // If the requirement exceeds the rate, even a short run FAILs.
        truth.exit_codes = &[1, 3];
    }
    if kind == Kind::Bursting {
        // The rate of the first seconds cannot be sustained: INVALID and INCONCLUSIVE are both
        // correct.
        truth.honest = false;
        if keeps && draw.once_in(2) {
            // The requirement is between the sustained rate and the rate with credit.
            plan.requirement = format!("iops = {}\n", (carried * 1.2).round());
            *truth = truth
                .clone()
                .and_no_pass("the rate that was asked for lasts no longer than credit");
        }
    }
}

/// Adds a true or a false declaration.
fn declare(kind: Kind, draw: &mut Draw, plan: &mut Plan, drawn: &mut ModelCase, truth: &mut Truth) {
    match kind {
        Kind::Cached => {
            // The cache is between a tenth and ten times as large as the data.
            drawn.cache_kib = draw.one_of(&[6, 20, 60, 200, 640]) << 10;
            let says = draw.one_of(&["", "array_cache = \"1MiB\"", "array_cache = \"100MiB\""]);
            let media = draw.one_of(&["", "\nmedia = \"hdd\"", "\nmedia = \"ssd\""]);
            plan.more = format!("[observe]\n{says}{media}\n");
            let claim = draw.one_of(&["\"media-read\"", "\"cached-read\"", "\"tail-latency\""]);
            plan.requirement.push_str(&format!("claims = [{claim}]\n"));
            plan.cache = draw.one_of(&["warm", "cold"]);
            // The model's own counters determine which claims are true.
            truth.honest = false;
        }
        Kind::Hollow => {
            let layout = draw.one_of(&["sparse", "allocated"]);
            plan.workload.push_str(&format!("\nlayout = {layout:?}"));
            if plan.workload.contains("reads = 100") {
                *truth = Truth::no_pass("nothing was ever written where it reads")
                    .not("media-read", "nothing was ever written where it reads");
            } else {
                truth.honest = false;
            }
        }
        Kind::Undeclared => {
            let claim = draw.one_of(&["durable-write", "in-memory", "cached-read", "comparative"]);
            plan.requirement.push_str(&format!("claims = [{claim:?}]\n"));
            let why = "nothing of a model shows that";
            *truth = Truth::no_pass(format!("{claim} is claimed, and {why}")).not(claim, why);
            let media = draw.one_of(&["", "media = \"memory\"", "data_reduction = 4.0"]);
            plan.more = format!("[observe]\n{media}\n");
        }
        _ => {
            if draw.once_in(4) {
                // A false statement must not pass, even if the plan accepts every unknown finding.
                let rules = "\"bytes-balance\", \"not-steady\", \"burst-credit\", \"served-from-cache-below\"";
                plan.more = format!("accept_unknown = [{rules}]\n");
            }
        }
    }
}

/// Runs a plan on a model that Plimsoll ships, unchanged or with failed nodes. Runs in virtual time
/// repeat exactly, so runs with and without a requirement have the same rate.
fn shipped(sandbox: &Sandbox, draw: &mut Draw, seed: u64) -> CaseResult {
    let (model, set) = draw.one_of(&[
        ("laptop-nvme", ""),
        ("single-hdd", ""),
        ("zfs-flash", ""),
        ("cloud-volume", ""),
        ("adsf-hybrid", ""),
        ("adsf-hybrid", "failed_nodes = 1"),
        ("vsan-hybrid", ""),
        ("vsan-hybrid", "failed_nodes = 1"),
    ]);
    let own = if set.is_empty() { model.to_owned() } else { with_head(sandbox, model, set) };
    let reads = draw.one_of(&[100, 70, 0]);
    let mut plan = Plan {
        requirement: String::new(),
        target: format!("model = {own:?}"),
        workload: format!(
            "sizes = \"{}KiB\"\nreads = {reads}\nqueue_depth = {}\nfile_size = \"64MiB\"\nrate = {}",
            draw.one_of(&[4, 32]),
            draw.one_of(&[1, 4]),
            draw.one_of(&[100, 1000]),
        ),
        cache: "cold",
        measure_s: 30,
        more: String::new(),
    };
    let first = run(sandbox, &plan.text(seed), &Truth::default(), |_, _| Vec::new());
    let bundles = sandbox.bundles();
    let carried = bundles.last().and_then(|bundle| Bundle::read(bundle).ok()).and_then(|bundle| {
        let measured = bundle.run.measure()?.duration_ns as f64 / 1e9;
        let within = bundle.run.classes.iter().map(|class| class.count - class.drained);
        Some(within.sum::<u64>() as f64 / measured)
    });
    let Some(carried) = carried else { return first };
    let keeps = draw.one_of(&[true, false]);
    let share = if keeps { draw.one_of(&KEPT) } else { draw.one_of(&BROKEN) };
    plan.requirement = format!("iops = {:.2}\n", carried * share);
    let mut truth = Truth::default();
    if !keeps {
        truth = truth.and_no_pass(format!("{carried:.1}/s were carried, {share} of that asked"));
    }
    run(sandbox, &plan.text(seed), &truth, |_, _| Vec::new())
}

/// Runs a mail store on a model that Plimsoll ships. Its rate is not known in advance, so the test
/// recounts the recorded operations.
fn store(sandbox: &Sandbox, draw: &mut Draw, seed: u64) -> CaseResult {
    let model = draw.one_of(&["laptop-nvme", "single-hdd", "vsan-hybrid", "cloud-volume"]);
    let iops = draw.one_of(&[20.0, 60.0, 150.0]);
    let databases = draw.one_of(&[1, 2, 4]);
    let mut limits = String::new();
    for limit in ["db_read_latency_avg", "db_write_latency_avg", "log_write_latency_avg"] {
        if draw.once_in(2) {
            let us = draw.spread(50.0, 50_000.0);
            limits.push_str(&format!("{limit} = \"{us}us\"\n"));
        }
    }
    let text = format!(
        "version = 1\nname = \"store\"\nseed = {}\n[requirement]\npage_fault_stalls_max = \
         1000000\n{limits}[target]\nmodel = {model:?}\n[workload.mailbox]\nmailboxes = \
         50\niops_per_mailbox = {}\nmailbox_size = \"4MiB\"\ndatabases = {databases}\nthreads = \
         {}\npace = \"target\"\ncache = \"16MiB\"\ncheckpoint_depth = \"2MiB\"\n[phases]\nwarm_up = \
         \"2s\"\nmeasure = \"30s\"\n[evidence]\nmin_measure = \"1s\"\n",
        seed % 1_000_000,
        iops / 50.0,
        databases * draw.one_of(&[1, 4]),
    );
    run(sandbox, &text, &Truth::default(), |_, _| Vec::new())
}

/// Copies a model that Plimsoll ships to a file, with one line of its `[model]` section changed or
/// added.
fn with_head(sandbox: &Sandbox, model: &str, line: &str) -> String {
    let file = format!("{}/../../../models/{model}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).unwrap();
    let name = line.split_once(" = ").unwrap().0;
    let others: Vec<&str> =
        text.lines().filter(|own| !own.starts_with(&format!("{name} ="))).collect();
    let changed = others.join("\n").replacen("[model]\n", &format!("[model]\n{line}\n"), 1);
    assert_ne!(text, changed);
    let path = sandbox.path("shipped.toml");
    std::fs::write(&path, changed).unwrap();
    path.display().to_string()
}
