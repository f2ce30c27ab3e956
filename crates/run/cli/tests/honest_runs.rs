//! Honest runs, chosen at random from a seed: none of them may be rejected. Needs root.
//!
//! Each case creates random storage and a random load, and measures them twice: first without a
//! requirement, then with a requirement of a third of the measured rate and three times the
//! measured latency. No run may be INVALID, and no rule that a claim depends on may fail.
//! `PLIMSOLL_HONEST_RUNS` sets the number of cases (3 by default), `PLIMSOLL_HONEST_SEED` the first
//! seed. The same number of additional loads read and write the same few blocks at the same time;
//! these blocks must not be reported as damaged or incomplete.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::process::Stdio;

use plimsoll_judge::claim::Claim;
use plimsoll_judge::rules;
use serde_json::Value;
use support::draw::Draw;
use support::memory_limit::MemoryLimit;
use support::{CommandOutput, LoopDevice, LoopFs, OF_THE_HOST, Sandbox, json};

/// Factor between the measured figures and the required figures.
const MARGIN: f64 = 3.0;
const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ext4,
    Xfs,
    Btrfs,
    Device,
    Directory,
}

/// Storage that the test created. It is removed when this value is dropped.
enum Storage {
    FileSystem(LoopFs),
    Device(LoopDevice),
    Directory,
}

/// A run with random parameters.
struct HonestRun {
    place: Place,
    workload: String,
    /// True for a mail store. The limits of a mail store have other names.
    store: bool,
    /// Claims in addition to the requirement.
    claims: &'static [&'static str],
    verify: bool,
    measure_ms: u64,
    memory_mib: Option<u64>,
}

impl HonestRun {
    fn of(draw: &mut Draw) -> Self {
        use Place::{Btrfs, Device, Directory, Ext4, Xfs};
        let place =
            draw.one_of(&[Ext4, Ext4, Xfs, Xfs, Btrfs, Btrfs, Directory, Directory, Device]);
        let store = place != Device && draw.once_in(7);
        let (workload, has_reads, has_writes) = if store {
            (mail_store(draw), true, true)
        } else {
            let count = draw.one_of(&[1, 1, 1, 2]);
            let mut workload = String::new();
            let (mut has_reads, mut has_writes) = (false, false);
            for number in 0..count {
                let stream = Stream::of(draw, place);
                has_reads |= stream.reads > 0;
                has_writes |= stream.reads < 100;
                workload.push_str(&stream.text(place, number, count));
            }
            (workload, has_reads, has_writes)
        };
        let claims: &[&str] = match draw.below(6) {
            0 if has_reads => &["media-read"],
            1 if has_writes => &["sustained-write"],
            2 if has_writes => &["burst-write"],
            3 => &["tail-latency"],
            _ => &[],
        };
        Self {
            place,
            workload,
            store,
            claims,
            verify: draw.once_in(4),
            measure_ms: draw.one_of(&[1500, 2000, 3000]),
            memory_mib: draw.one_of(&[None, None, None, Some(256), Some(512)]),
        }
    }

    fn plan(&self, target: &str, requirement: &str) -> String {
        let required = if requirement.is_empty() {
            String::new()
        } else if self.claims.is_empty() {
            format!("[requirement]\n{requirement}")
        } else {
            format!("[requirement]\nclaims = {:?}\n{requirement}", self.claims)
        };
        format!(
            "version = 1\nname = \"honest\"\n{required}[target]\n{target}\n{}[phases]\nwarm_up = \
             \"500ms\"\nmeasure = \"{}ms\"\nverify = {}\n[evidence]\nmin_measure = \"1s\"\ninterval \
             = \"100ms\"\n",
            self.workload, self.measure_ms, self.verify
        )
    }
}

/// Generates a random stream of reads and writes that all reach the storage.
struct Stream {
    size_kib: u64,
    pattern: &'static str,
    reads: u64,
    depth: u64,
    clients: u64,
    file_mib: u64,
    /// True if the stream uses the page cache. Its writes also reach the storage, because they are
    /// flushed.
    buffered: bool,
    sync: &'static str,
    sync_every: u64,
    arrival: &'static str,
}

impl Stream {
    fn of(draw: &mut Draw, place: Place) -> Self {
        let mut stream = Self {
            size_kib: draw.one_of(&[4, 4, 8, 16, 64, 256, 1024]),
            pattern: draw.one_of(&["random", "random", "sequential"]),
            reads: draw.one_of(&[0, 0, 30, 50, 70, 100, 100]),
            depth: draw.one_of(&[1, 2, 4, 8, 32]),
            clients: draw.one_of(&[1, 1, 2, 4]),
            file_mib: draw.one_of(&[16, 24, 32]),
            buffered: draw.once_in(4),
            sync: draw.one_of(&["none", "none", "fsync", "fdatasync", "dsync"]),
            sync_every: draw.one_of(&[1, 1, 4]),
            arrival: draw.one_of(&["closed", "closed", "closed", "closed", "poisson", "constant"]),
        };
        // Reads of data that the run has written would be served by the page cache.
        stream.buffered &= stream.reads == 0 && place != Place::Device;
        if stream.buffered && stream.sync == "none" {
            stream.sync = "fdatasync";
        }
        // Several writes to the same block between two flushes reach the device only once. The
        // probability that a write hits a block with an unflushed write is half the number of
        // writes since the flush, divided by the number of blocks.
        let blocks = stream.file_mib * 1024 / stream.size_kib;
        if stream.buffered && stream.pattern == "random" {
            stream.depth = stream.depth.min(blocks / 32).max(1);
            stream.sync_every = stream.sync_every.min(blocks / 32).max(1);
        }
        if stream.reads == 100 || matches!(stream.sync, "none" | "dsync") {
            stream.sync_every = 1;
        }
        stream
    }

    fn text(&self, place: Place, number: u64, count: u64) -> String {
        let Self { size_kib, pattern, reads, depth, clients, file_mib, sync, .. } = self;
        let direct = if self.buffered { "off" } else { "required" };
        let mut text = format!(
            "[[workload.matrix]]\nname = \"stream-{number}\"\nsizes = \"{size_kib}KiB\"\npatterns = \
             {pattern:?}\nreads = {reads}\nqueue_depth = {depth}\nclients = {clients}\ndirect = \
             {direct:?}\nsync = {sync:?}\n"
        );
        if self.sync_every > 1 {
            writeln!(text, "sync_every = {}", self.sync_every).unwrap();
        }
        if self.arrival != "closed" {
            writeln!(text, "arrival = {:?}\nrate = 40", self.arrival).unwrap();
        }
        if place != Place::Device {
            writeln!(text, "file_size = \"{file_mib}MiB\"").unwrap();
        } else if count > 1 {
            let offset = number * 32 * MIB;
            writeln!(text, "offset = \"{offset}B\"\nworking_set = \"{file_mib}MiB\"").unwrap();
        }
        text
    }
}

fn mail_store(draw: &mut Draw) -> String {
    let databases = draw.one_of(&[1, 2, 4]);
    let threads = databases * draw.one_of(&[1, 2]);
    format!(
        "[workload.mailbox]\nmailboxes = 16\niops_per_mailbox = 0.5\nmailbox_size = \
         \"{}MiB\"\ndatabases = {databases}\nthreads = {threads}\ncache = \
         \"16MiB\"\ncheckpoint_depth = \"2MiB\"\ndurability = {:?}\npace = {:?}\n",
        draw.one_of(&[2, 4]),
        draw.one_of(&["dsync", "fdatasync"]),
        draw.one_of(&["free", "free", "target"]),
    )
}

impl Storage {
    fn new(place: Place, sandbox: &Sandbox) -> Self {
        let root = sandbox.root.path();
        match place {
            Place::Ext4 => Self::FileSystem(LoopFs::new(root, "ext4", 400, "defaults")),
            Place::Xfs => Self::FileSystem(LoopFs::new(root, "xfs", 400, "defaults")),
            Place::Btrfs => Self::FileSystem(LoopFs::new(root, "btrfs", 400, "defaults")),
            Place::Device => Self::Device(LoopDevice::new(root, 64)),
            Place::Directory => Self::Directory,
        }
    }

    fn target(&self, store: bool, sandbox: &Sandbox) -> String {
        let place = match self {
            Self::Device(device) => return format!("device = {:?}", device.name),
            Self::FileSystem(fs) => fs.mount.display().to_string(),
            Self::Directory => sandbox.data().display().to_string(),
        };
        if store { format!("databases = [{place:?}]") } else { format!("path = {place:?}") }
    }
}

/// Runs a plan and returns its verdict, or the reason why there is none.
fn ran(
    sandbox: &Sandbox,
    storage: &Storage,
    memory_mib: Option<u64>,
    text: &str,
) -> Result<Value, String> {
    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, text).unwrap();
    let mut arguments = vec!["run", plan.to_str().unwrap(), "--json", "-q"];
    if let Storage::Device(device) = storage {
        arguments.extend(["--destroy", &device.name]);
    }
    let mut command = sandbox.command(&arguments);
    let limit = memory_mib.map(MemoryLimit::new);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(limit) = &limit {
        limit.take_in(child.id());
    }
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    let verdict: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    if verdict["verdict"].is_string() {
        Ok(verdict)
    } else {
        Err(format!("no verdict, exit code {}: {}{}", output.code, output.stdout, output.stderr))
    }
}

/// Returns a requirement that storage with these figures exceeds by the factor [`MARGIN`].
fn requirement(run: &HonestRun, bundle: &std::path::Path) -> String {
    let record = json(&bundle.join("run.json"));
    let phases = record["phases"].as_array().unwrap();
    let measured = phases.iter().find(|phase| phase["kind"] == "measure").unwrap();
    let seconds = measured["duration_ns"].as_f64().unwrap() / 1e9;
    let classes = record["classes"].as_array().unwrap();
    let sum = |field: &str, group: &str| {
        let of_group = classes.iter().filter(|class| class["group"] == group);
        of_group.filter_map(|class| class[field].as_f64()).sum::<f64>()
    };
    let mut text = String::new();
    // The duration of a write includes its flush.
    let longest = classes.iter().filter_map(|class| class["latency_ns_max"].as_f64()).sum::<f64>();
    let longest_ns = (longest * MARGIN).ceil();
    if run.store {
        let latency = [
            "db_read_latency_avg",
            "db_read_latency_max",
            "log_write_latency_avg",
            "log_write_latency_max",
        ];
        for limit in latency {
            writeln!(text, "{limit} = \"{longest_ns}ns\"").unwrap();
        }
        // The rate of a mail store follows from its mailboxes, and is far below the rate of any
        // disk.
        text.push_str("latency_max_of = \"1s\"\npage_fault_stalls_max = 1000000\n");
    } else {
        let rate = sum("count", "transactional") / seconds / MARGIN;
        let bandwidth = sum("size_bytes", "transactional") / seconds / MARGIN;
        writeln!(text, "iops = {rate:.2}").unwrap();
        writeln!(text, "bandwidth = \"{bandwidth:.0}B/s\"\nlatency_p99 = \"{longest_ns}ns\"")
            .unwrap();
        writeln!(text, "latency_avg = \"{longest_ns}ns\"").unwrap();
    }
    text
}

/// Returns the rules that made a verdict reject an honest run.
fn accusations(verdict: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let standings = verdict["claims"].as_object().unwrap();
    let claims: Vec<Claim> = standings
        .keys()
        .map(|name| Claim::from_word(name).unwrap())
        .chain([Claim::Requirement])
        .collect();
    let mut of_the_host = false;
    for finding in verdict["findings"].as_array().unwrap() {
        let id = finding["rule"].as_str().unwrap();
        if finding["outcome"] != "fail" {
            continue;
        }
        if OF_THE_HOST.contains(&id) {
            of_the_host = true;
        } else if rules::find(id)
            .is_none_or(|rule| claims.iter().any(|claim| rule.mandatory_for(*claim)))
        {
            all.push(format!("{id}: {}", finding["says"]));
        }
    }
    if verdict["verdict"] == "INVALID" && !of_the_host {
        all.push(verdict["reason"].to_string());
    }
    all
}

/// Runs the case of this seed. Returns the mistakes in its verdicts, each with the plan and the
/// findings.
fn draw(seed: u64) -> Vec<String> {
    let run = HonestRun::of(&mut Draw::of(seed));
    let sandbox = Sandbox::new();
    let storage = Storage::new(run.place, &sandbox);
    let target = storage.target(run.store, &sandbox);
    let mut all = Vec::new();
    let mut required = String::new();
    for round in ["without a requirement", "with one"] {
        let text = run.plan(&target, &required);
        let verdict = match ran(&sandbox, &storage, run.memory_mib, &text) {
            Ok(verdict) => verdict,
            Err(why) => {
                all.push(format!("seed {seed}, {round}: {why}\n{text}"));
                return all;
            }
        };
        let place = run.place;
        let memory = run.memory_mib;
        println!("seed {seed}, {place:?}, {round}, {memory:?}: {}", verdict["verdict"]);
        for accusation in accusations(&verdict) {
            let memory = memory.map_or(String::new(), |mib| format!(", with {mib} MiB of memory"));
            all.push(format!(
                "seed {seed}, {place:?}, {round}{memory}: {accusation}\n{text}\n{:#}",
                verdict["findings"]
            ));
        }
        if verdict["verdict"] == "FAIL" {
            // Between the two runs, the storage may have become slower by more than the margin. The
            // row then shows this.
            println!("  {}", verdict["reason"]);
        }
        if required.is_empty() {
            required = requirement(&run, &sandbox.bundle());
        }
    }
    all
}

/// Rules that a load on few blocks must not break. Other rules may fail, because the page cache may
/// serve the load.
const OF_HOT_LOADS: [&str; 11] = [
    "check-failed",
    "clock-rate",
    "data-content",
    "evidence-consistent",
    "flush-lost",
    "io-errors",
    "littles-law",
    "not-completed",
    "operations-lost",
    "operations-missing",
    "pattern-other",
];

/// Generates a random load whose operations use the same few blocks at the same time, and checks
/// the content of these blocks.
fn hot_plan(draw: &mut Draw, target: &str) -> String {
    let size_bytes = draw.one_of(&[512, 2300, 4096, 4096, 12288, 65536]);
    let file_bytes = size_bytes * draw.one_of(&[16, 64, 256, 1024]);
    let mut direct = draw.one_of(&["auto", "off"]);
    let mut compressibility = draw.one_of(&[1.0, 1.0, 2.0]);
    let mut duplicates = draw.one_of(&[0.0, 0.0, 0.3]);
    if size_bytes % 512 != 0 {
        // With blocks that are not whole sectors, a plan with other content or with direct I/O
        // would be rejected.
        (direct, compressibility, duplicates) = ("off", 1.0, 0.0);
    }
    format!(
        "version = 1\nname = \"hot\"\n[target]\n{target}\n[engine]\nio = {:?}\nworkers = \
         {}\n[workload.matrix]\nsizes = \"{size_bytes}B\"\nfile_size = \"{file_bytes}B\"\nfiles = \
         {}\nreads = {}\nclients = {}\nqueue_depth = {}\ndirect = {direct:?}\npatterns = {:?}\nsync \
         = {:?}\ncompressibility = {compressibility:?}\nduplicates = {duplicates:?}\nverify_reads = \
         {}\n[phases]\nwarm_up = \"200ms\"\nmeasure = \"1500ms\"\nverify = \
         {}\n[evidence]\nmin_measure = \"1s\"\n",
        draw.one_of(&["io_uring", "threads"]),
        draw.one_of(&[1, 2, 4]),
        draw.one_of(&[1, 1, 3]),
        draw.one_of(&[0, 30, 50, 90]),
        draw.one_of(&[1, 4, 16]),
        draw.one_of(&[1, 1, 8, 32]),
        draw.one_of(&["random", "sequential"]),
        draw.one_of(&["none", "none", "none", "none", "fdatasync", "dsync"]),
        draw.once_in(2),
        draw.once_in(2),
    )
}

/// Runs a load on few blocks. Returns the rules of [`OF_HOT_LOADS`] that failed.
fn draw_hot(seed: u64) -> Vec<String> {
    let mut draw = Draw::of(seed);
    let sandbox = Sandbox::new();
    let place = draw.one_of(&[Place::Ext4, Place::Xfs, Place::Btrfs, Place::Directory]);
    let storage = Storage::new(place, &sandbox);
    let text = hot_plan(&mut draw, &storage.target(false, &sandbox));
    let verdict = match ran(&sandbox, &storage, None, &text) {
        Ok(verdict) => verdict,
        Err(why) => return vec![format!("seed {seed}: {why}\n{text}")],
    };
    println!("seed {seed}, {place:?}, hot: {}", verdict["verdict"]);
    let findings = verdict["findings"].as_array().unwrap().iter();
    let failed = findings.filter(|finding| {
        let is_of_it = OF_HOT_LOADS.contains(&finding["rule"].as_str().unwrap());
        is_of_it && finding["outcome"] == "fail"
    });
    failed
        .map(|f| format!("seed {seed}, {place:?}: {}: {}\n{text}", f["rule"], f["says"]))
        .collect()
}

/// Runs a number of cases. Panics if a verdict was wrong.
fn carry_out(draw: fn(u64) -> Vec<String>) {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
    };
    let first = number("PLIMSOLL_HONEST_SEED", 1);
    let count = number("PLIMSOLL_HONEST_RUNS", 3);
    println!("seeds from {first}, {count} of them");
    let all: Vec<String> = (first..first + count).flat_map(draw).collect();
    assert!(
        all.is_empty(),
        "{} accusations; again: PLIMSOLL_HONEST_SEED=SEED PLIMSOLL_HONEST_RUNS=1\n{}",
        all.len(),
        all.join("\n")
    );
}

#[test]
fn no_honest_run_is_accused() {
    carry_out(draw);
}

#[test]
fn no_load_on_few_blocks_is_called_damaged_or_incomplete() {
    for id in OF_HOT_LOADS {
        assert!(rules::find(id).is_some(), "{id} is not a rule");
    }
    carry_out(draw_hot);
}
