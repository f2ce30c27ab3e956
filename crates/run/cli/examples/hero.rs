//! Hero numbers and honest numbers, on file systems that the program creates on this machine.
//!
//! ```console
//! # cargo build --release && cargo run --release -p plimsoll --example hero
//! # cargo run --release -p plimsoll --example hero -- honest --count 50 --seconds 30
//! ```
//!
//! Creates loop devices with ext4, XFS and Btrfs (zstd) in a directory, runs every plan of
//! `plans/hero` on them, and prints which rule detected which trick; or runs honest plans of varied
//! size, mix, depth and file system, and counts the rules that failed. Needs root, `losetup` and
//! the file systems' tools. The volume with burst credit also needs a control group for block I/O
//! (version 1 or 2). The exit code is 1 if a hero number passed, or if a rule failed on a twin or
//! on an honest run.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A trick and its honest twin.
struct Pair {
    trick: &'static str,
    hero: &'static str,
    /// Rules of which one must catch it.
    rules: &'static [&'static str],
    /// True if it must fail; writes to a fresh volume are not refuted, but they are not proven to
    /// be sustained.
    fails: bool,
    twin: &'static str,
    /// The file systems of the two.
    kinds: [&'static str; 2],
}

const PAIRS: [Pair; 7] = [
    Pair {
        trick: "random reads of an empty file (ext4)",
        hero: "sparse",
        rules: &["holes-read"],
        fails: true,
        twin: "sparse-twin",
        kinds: ["ext4", "ext4"],
    },
    Pair {
        trick: "reads of allocated, never written space (XFS)",
        hero: "allocated",
        rules: &["holes-read"],
        fails: true,
        twin: "sparse-twin",
        kinds: ["xfs", "xfs"],
    },
    Pair {
        trick: "random reads of 1 GiB of zeroes from the page cache (ext4)",
        hero: "zeros-cached",
        rules: &["zero-data", "bytes-balance"],
        fails: true,
        twin: "zeros-cached-twin",
        kinds: ["ext4", "ext4"],
    },
    Pair {
        trick: "1 MiB sequential reads from the page cache (XFS)",
        hero: "sequential-cached",
        rules: &["bytes-balance"],
        fails: true,
        twin: "sequential-cached-twin",
        kinds: ["xfs", "xfs"],
    },
    Pair {
        trick: "data of 4:1 on a file system that compresses (Btrfs zstd)",
        hero: "compressed",
        rules: &["data-reduced"],
        fails: true,
        twin: "compressed-twin",
        kinds: ["btrfs", "btrfs"],
    },
    Pair {
        trick: "a volume whose burst credit runs out in mid-run (ext4)",
        hero: "burst",
        rules: &["burst-credit"],
        fails: true,
        twin: "burst-twin",
        kinds: ["ext4", "ext4"],
    },
    Pair {
        trick: "writes to a fresh volume, said to last (XFS)",
        hero: "fresh",
        rules: &["conditioned"],
        fails: false,
        twin: "fresh-twin",
        kinds: ["xfs", "xfs"],
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let honest = arguments.iter().any(|argument| argument == "honest");
    let number = |name: &str, default: u64| {
        option(name).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let lab = Lab::new(option("--dir"), option("--plimsoll"));
    let ok = if honest {
        honest_runs(&lab, number("--count", 50), number("--seconds", 30))
    } else {
        heroes(&lab, option("--only").as_deref())
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Directory, binary, and the created file systems.
struct Lab {
    root: PathBuf,
    plimsoll: PathBuf,
    plans: PathBuf,
    /// Set by Ctrl-C, which also ends the current run: created objects are removed, and no run is
    /// started.
    stopped: Arc<AtomicBool>,
}

/// A file system on a loop device. When this value is dropped, both are removed.
struct LoopFs {
    device: String,
    mount: PathBuf,
    image: PathBuf,
}

#[track_caller]
fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl LoopFs {
    fn new(root: &Path, kind: &str) -> Self {
        let (image, mount) = (root.join(format!("{kind}.img")), root.join(kind));
        std::fs::create_dir_all(&mount).unwrap();
        tool("fallocate", &["-l", "2560MiB", image.to_str().unwrap()]);
        let device = tool("losetup", &["-f", "--show", "--direct-io=on", image.to_str().unwrap()]);
        let fs = Self { device, mount, image };
        match kind {
            "ext4" => {
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                tool("mkfs.ext4", &["-q", "-E", lazy, &fs.device]);
            }
            other => {
                tool(&format!("mkfs.{other}"), &["-q", &fs.device]);
            }
        }
        let options = if kind == "btrfs" { "compress-force=zstd:3" } else { "defaults" };
        tool("mount", &["-o", options, &fs.device, fs.mount.to_str().unwrap()]);
        fs
    }

    /// Reads that the device has completed.
    fn reads(&self) -> u64 {
        let name = self.device.trim_start_matches("/dev/");
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        text.split_ascii_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for LoopFs {
    /// The kernel's workers release the files of a ring some time after its process has ended, and
    /// the file system is busy until then.
    fn drop(&mut self) {
        let started = Instant::now();
        let unmounted = |lazily: bool| {
            let mut umount = Command::new("umount");
            umount.args(lazily.then_some("-l")).arg(&self.mount).stderr(Stdio::null());
            umount.status().is_ok_and(|status| status.success())
        };
        while !unmounted(false) {
            if started.elapsed() > Duration::from_secs(20) {
                eprintln!("{} stays busy and is unmounted lazily", self.mount.display());
                unmounted(true);
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
        let _ = std::fs::remove_file(&self.image);
    }
}

impl Lab {
    fn new(root: Option<String>, plimsoll: Option<String>) -> Self {
        let own = std::env::current_exe().unwrap();
        let beside = own.parent().and_then(Path::parent).unwrap().join("plimsoll");
        let root = root.map_or_else(|| PathBuf::from("/var/tmp/plimsoll-hero"), PathBuf::from);
        std::fs::create_dir_all(&root).unwrap();
        let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans/hero");
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stopped)).unwrap();
        }
        Self { root, plimsoll: plimsoll.map_or(beside, PathBuf::from), plans, stopped }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Starts plimsoll on a plan whose target is `.`, in another directory.
    fn start(&self, name: &str, text: &str, on: &Path, group: Option<&Cap>) -> Child {
        let plan = self.root.join(format!("{name}.toml"));
        let target = format!("path = {:?}", on.display().to_string());
        std::fs::write(&plan, text.replace("path = \".\"", &target)).unwrap();
        let mut command = match group {
            Some(cap) => {
                let mut shell = Command::new("sh");
                let script = "echo $$ > \"$0\"; exec \"$@\"";
                shell.args(["-c", script, cap.processes().to_str().unwrap()]).arg(&self.plimsoll);
                shell
            }
            None => Command::new(&self.plimsoll),
        };
        command
            .args(["run", plan.to_str().unwrap(), "--json", "-q"])
            .env("XDG_STATE_HOME", self.root.join("state"))
            .env("XDG_DATA_HOME", self.root.join("share"))
            .env("XDG_CACHE_HOME", self.root.join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.plimsoll.display()))
    }

    fn run(&self, name: &str, text: &str, on: &Path) -> JudgedRun {
        JudgedRun::of(self.start(name, text, on, None))
    }
}

struct JudgedRun {
    verdict: String,
    reason: String,
    rate: f64,
    failed: Vec<String>,
    unknown: Vec<String>,
}

impl JudgedRun {
    fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let with = |outcome: &str| {
            let findings = json["findings"].as_array().cloned().unwrap_or_default();
            let of = findings.iter().filter(|finding| finding["outcome"] == outcome);
            of.filter_map(|finding| finding["rule"].as_str().map(str::to_owned)).collect()
        };
        Self {
            verdict: json["verdict"].as_str().unwrap_or("NO VERDICT").to_owned(),
            reason: json["reason"].as_str().map_or(stderr, str::to_owned),
            rate: json["achieved_iops_per_s"].as_f64().unwrap_or(0.0),
            failed: with("fail"),
            unknown: with("unknown"),
        }
    }
}

/// Runs every hero and twin; prints the table as Markdown.
fn heroes(lab: &Lab, only: Option<&str>) -> bool {
    println!(
        "| trick | I/Os per second | verdict, by the rules | honest twin | its verdict, failed rules |"
    );
    println!("|---|---|---|---|---|");
    let mut wrong = Vec::new();
    for pair in PAIRS.iter().filter(|pair| only.is_none_or(|only| only == pair.hero)) {
        if lab.is_stopped() {
            wrong.push(format!("{} and what follows was not run", pair.hero));
            break;
        }
        let hero = carry_out(lab, pair.hero, pair.kinds[0]);
        let found = if pair.fails { &hero.failed } else { &hero.unknown };
        let kind = if pair.fails { "INVALID" } else { "INCONCLUSIVE" };
        let is_caught = |rule: &&str| found.iter().any(|found| found == rule);
        if hero.verdict != kind || !pair.rules.iter().any(is_caught) {
            wrong.push(format!("{} came through: {}", pair.hero, hero.reason));
        }
        let twin = carry_out(lab, pair.twin, pair.kinds[1]);
        if !twin.failed.is_empty() || twin.verdict == "NO VERDICT" {
            wrong.push(format!("{} failed: {}", pair.twin, twin.reason));
        }
        let by: Vec<&str> = match pair.fails {
            true => hero.failed.iter().map(String::as_str).collect(),
            false => pair.rules.iter().copied().filter(|rule| is_caught(rule)).collect(),
        };
        let fails = if twin.failed.is_empty() { "none".into() } else { twin.failed.join(", ") };
        println!(
            "| {} | {} | {}: {} | {} | {}, {fails} |",
            pair.trick,
            thousands(hero.rate),
            hero.verdict,
            by.join(", "),
            thousands(twin.rate),
            twin.verdict
        );
    }
    wrong.iter().for_each(|line| println!("{line}"));
    println!("{}", if wrong.is_empty() { "All as it should be." } else { "NOT as it should be." });
    wrong.is_empty()
}

/// Runs one plan on a separate file system.
fn carry_out(lab: &Lab, name: &str, kind: &str) -> JudgedRun {
    let fs = LoopFs::new(&lab.root, kind);
    let text = std::fs::read_to_string(lab.plans.join(format!("{name}.toml"))).unwrap();
    let judged = match name {
        "burst" | "burst-twin" => capped(lab, name, &text, &fs),
        _ => lab.run(name, &text, &fs.mount),
    };
    eprintln!("{name}: {} {:.0}/s {}", judged.verdict, judged.rate, judged.reason);
    eprintln!("  failed {:?}, unknown {:?}", judged.failed, judged.unknown);
    judged
}

/// `365,739`.
fn thousands(rate: f64) -> String {
    let digits = format!("{rate:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A control group that caps the reads of a device.
struct Cap {
    directory: PathBuf,
    two: bool,
    device: String,
}

impl Cap {
    fn new(device: &str) -> Self {
        let number = tool("lsblk", &["-dno", "MAJ:MIN", device]);
        let one = Path::new("/sys/fs/cgroup/blkio");
        let two = !one.is_dir();
        let root = if two { Path::new("/sys/fs/cgroup") } else { one };
        if two {
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+io");
        }
        let directory = root.join("plimsoll-hero");
        let _ = std::fs::create_dir(&directory);
        Self { directory, two, device: number.trim().to_owned() }
    }

    fn processes(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    fn set(&self, reads_per_s: u64) {
        let (file, text) = if self.two {
            ("io.max", format!("{} riops={reads_per_s}", self.device))
        } else {
            ("blkio.throttle.read_iops_device", format!("{} {reads_per_s}", self.device))
        };
        std::fs::write(self.directory.join(file), text).expect("a control group for block I/O");
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// A volume of 4,000 reads per second with a base rate of 1,500. For the hero the credit lasts for
/// half of the measurement; its twin has the base rate from the start.
fn capped(lab: &Lab, name: &str, text: &str, fs: &LoopFs) -> JudgedRun {
    let cap = Cap::new(&fs.device);
    let hero = name == "burst";
    cap.set(if hero { 4000 } else { 1500 });
    let child = lab.start(name, text, &fs.mount, Some(&cap));
    if hero {
        // The reads of the warm-up are the first: its two seconds, and ten of the measurement.
        let (start, before) = (Instant::now(), fs.reads());
        while fs.reads() < before + 2000 && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(11));
        cap.set(1500);
    }
    JudgedRun::of(child)
}

/// Honest runs of varied size, mix, depth and file system; counts the rules that failed.
fn honest_runs(lab: &Lab, count: u64, seconds: u64) -> bool {
    let (mut failed, mut verdicts) = (Vec::new(), std::collections::BTreeMap::new());
    let systems = ["ext4", "xfs", "btrfs"].map(|kind| (kind, LoopFs::new(&lab.root, kind)));
    for run in 0..count {
        if lab.is_stopped() {
            failed.push(format!("{} runs were not begun", count - run));
            break;
        }
        let pick =
            |from: &[&'static str], step: u64| from[((run / step) % from.len() as u64) as usize];
        let (kind, fs) = &systems[(run % 3) as usize];
        let size = pick(&["4KiB", "16KiB", "64KiB", "256KiB"], 1);
        let reads = pick(&["100", "70", "50", "0"], 3);
        let depth = pick(&["1", "4", "16", "32"], 2);
        let pattern = pick(&["random", "sequential", "random", "zipf"], 5);
        let claims = match reads {
            "100" => "\"media-read\"",
            "0" => "\"sustained-write\"",
            _ => "\"media-read\", \"sustained-write\"",
        };
        // Btrfs takes no direct I/O on compressed files: there the run says what it is, buffered or
        // not.
        let direct = if *kind == "btrfs" { "auto" } else { "required" };
        let text = format!(
            "version = 1\nname = \"honest-{run}\"\n[requirement]\nclaims = \
             [{claims}]\n[target]\npath = \".\"\n[workload.matrix]\nfile_size = \"512MiB\"\nsizes = \
             \"{size}\"\nreads = {reads}\nqueue_depth = {depth}\npatterns = \"{pattern}\"\ndirect = \
             \"{direct}\"\n[phases]\nwarm_up = \"3s\"\nmeasure = \
             \"{seconds}s\"\n[evidence]\nmin_measure = \"{}s\"\ninterval = \"100ms\"\n",
            seconds.min(10)
        );
        let judged = lab.run(&format!("honest-{run}"), &text, &fs.mount);
        *verdicts.entry(judged.verdict.clone()).or_insert(0u64) += 1;
        let what = format!("{kind} {size} {reads} % reads, depth {depth}, {pattern}");
        eprintln!("{run}: {what}: {} {:?}", judged.verdict, judged.failed);
        if !judged.failed.is_empty() || judged.verdict == "NO VERDICT" {
            failed.push(format!("{what}: {} ({})", judged.failed.join(", "), judged.reason));
        }
    }
    println!(
        "{count} honest runs of {seconds} s: {} with a failed rule; {verdicts:?}",
        failed.len()
    );
    failed.iter().for_each(|line| println!("  {line}"));
    failed.is_empty()
}
