//! Misleading storage: real file systems on memory, on the page cache, or on each other. Needs
//! root. If this machine cannot create a stack, the test prints this on stderr; tests of the rules
//! then check the case with stored evidence.

use std::path::Path;

use crate::support::made::{TestResource, journal_in, overlay, zram};
use crate::support::neighbour::Neighbour;
use crate::support::{self, CommandOutput, Sandbox, found, is_not_acquitted, json, tool};
use serde_json::Value;

/// Runs a plan that reads and writes on `path`, with a requirement that any storage satisfies and
/// with further lines.
fn run(sandbox: &Sandbox, path: &Path, requirement: &str, workload: &str) -> Value {
    let text = format!(
        "version = 1\nname = \"stack\"\n[requirement]\niops = 1\n{requirement}\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"32MiB\"\nqueue_depth = \
         8\n{workload}\n[phases]\nwarm_up = \"200ms\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \
         \"500ms\"\ninterval = \"20ms\"\n",
        path.display().to_string()
    );
    let plan = sandbox.path("plan.toml");
    std::fs::write(&plan, text).unwrap();
    sandbox.run(&["run", plan.to_str().unwrap(), "--json", "-q"]).json()
}

#[track_caller]
fn is_invalid_by(verdict: &Value, rule: &str) {
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
    assert_eq!(found(verdict, rule), "fail", "{verdict:#}");
    assert_eq!(verdict["claims"]["requirement"], "refuted", "{verdict:#}");
}

/// Checks the same as [`is_invalid_by`], if the run moved enough bytes to decide. If other
/// processes use the disk, a run may only make a few writes, which really reached the disk, or read
/// each block from the disk once. Such a run must not pass either.
#[track_caller]
fn is_invalid_by_enough(sandbox: &Sandbox, verdict: &Value, rule: &str, enough_bytes: u64) {
    let bundle = sandbox.bundles().pop().unwrap();
    let run = json(&bundle.join("run.json"));
    let classes = run["classes"].as_array().unwrap().iter();
    let requested: u64 = classes.filter_map(|class| class["size_bytes"].as_u64()).sum();
    if requested >= enough_bytes {
        is_invalid_by(verdict, rule);
        return;
    }
    eprintln!("not tested here: the disk carried {requested} bytes of it, beside others");
    let word = verdict["verdict"].as_str().unwrap();
    assert!(matches!(word, "INVALID" | "INCONCLUSIVE"), "{verdict:#}");
}

/// Number of bytes that is sufficient for a decision about writes: a quarter of the file.
const ENOUGH_WRITTEN_BYTES: u64 = 8 << 20;

/// Number of bytes that is sufficient for a decision about reads: four times the file. Even with a
/// cold cache, each block is read from the disk only once.
const ENOUGH_READ_BYTES: u64 = 128 << 20;

const DIRECT: &str = "reads = 50\ndirect = \"required\"";

#[test]
fn a_file_system_in_memory_meets_no_requirement_unless_it_is_claimed() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let at = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=200m", "tmpfs"], &at);
    let verdict = run(&sandbox, &at, "", DIRECT);
    is_invalid_by(&verdict, "memory-target");
    let claims =
        "claims = [\"requirement\", \"in-memory\", \"sustained-write\", \"durable-write\"]";
    let verdict = run(&sandbox, &at, claims, DIRECT);
    assert_eq!(verdict["claims"]["in-memory"], "believable", "{verdict:#}");
    assert_eq!(verdict["claims"]["sustained-write"], "refuted", "{verdict:#}");
    assert_eq!(verdict["claims"]["durable-write"], "refuted", "{verdict:#}");
}

#[test]
fn a_loop_device_on_a_file_in_memory_is_memory() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let memory = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=300m", "tmpfs"], &memory);
    let device = made.loop_on(&memory.join("image"), 160, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    is_invalid_by(&run(&sandbox, &at, "", DIRECT), "memory-target");
}

#[test]
fn an_overlay_whose_upper_directory_lies_in_memory_is_memory() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let memory = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=200m", "tmpfs"], &memory);
    let at = sandbox.path("overlay");
    overlay(&mut made, &memory, &sandbox.path("lower"), &at);
    is_invalid_by(&run(&sandbox, &at, "", DIRECT), "memory-target");
}

#[test]
fn a_file_system_on_compressed_memory_is_memory() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let Some(device) = zram(&mut made, "200M") else { return };
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    // If the declared cache is smaller than the working set, it does not explain that memory served
    // the reads.
    let claims = "claims = [\"requirement\", \"media-read\"]";
    let workload = format!("{DIRECT}\n[observe]\narray_cache = \"1MiB\"");
    let verdict = run(&sandbox, &at, claims, &workload);
    is_invalid_by(&verdict, "memory-target");
    assert_eq!(verdict["claims"]["media-read"], "refuted", "{verdict:#}");
}

/// The file system accepts O_DIRECT but still buffers the data, because its journal contains the
/// data.
#[test]
fn a_journal_of_data_buffers_what_was_to_be_direct() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let device = made.loop_on(&sandbox.path("image"), 256, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "data=journal", &at);
    for (reads, enough) in [(0, ENOUGH_WRITTEN_BYTES), (100, ENOUGH_READ_BYTES)] {
        let workload = format!("reads = {reads}\ndirect = \"required\"");
        let verdict = run(&sandbox, &at, "", &workload);
        is_invalid_by_enough(&sandbox, &verdict, "bytes-balance", enough);
    }
}

#[test]
fn a_loop_device_on_the_page_cache_is_caught_while_others_use_the_disk() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let device = made.loop_on(&sandbox.path("image"), 256, false);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    is_not_acquitted(&run(&sandbox, &at, "", DIRECT));
    let _neighbour = Neighbour::on(sandbox.root.path());
    is_not_acquitted(&run(&sandbox, &at, "", DIRECT));
}

#[test]
fn writes_that_stay_in_the_page_cache_are_no_burst() {
    let sandbox = Sandbox::new();
    for claims in ["claims = [\"burst-write\"]", "claims = [\"durable-write\"]"] {
        let verdict = run(&sandbox, &sandbox.data(), claims, "reads = 0\ndirect = \"off\"");
        assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
        // On a busy host, the counters are read late, and the rule cannot decide.
        let balance = found(&verdict, "bytes-balance");
        assert!(balance == "fail" || balance == "unknown", "{verdict:#}");
    }
}

#[test]
fn a_reduction_that_nobody_has_is_not_believed_where_it_is_declared() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let device = made.loop_on(&sandbox.path("image"), 512, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "btrfs", "compress-force=zstd:3", &at);
    let workload = "reads = 50\ncompressibility = 40.0\n[observe]\ndata_reduction = 40.0";
    is_invalid_by(&run(&sandbox, &at, "", workload), "data-reduced");
}

/// Honest runs fail no rule, neither alone nor together with other load. Each report shows the
/// bytes that the device moved.
#[test]
fn honest_runs_keep_their_balance_while_others_use_the_disk() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let mut places = vec![sandbox.data()];
    for kind in ["ext4", "xfs", "btrfs"] {
        let device = made.loop_on(&sandbox.path(kind), 384, true);
        let at = sandbox.path(&format!("{kind}-mount"));
        made.file_system(&device, kind, "defaults", &at);
        places.push(at);
    }
    let at = sandbox.path("overlay");
    overlay(&mut made, &sandbox.path("upper"), &sandbox.path("lower"), &at);
    places.push(at);
    let mut neighbour = None;
    for busy in [false, true] {
        for place in &places {
            let verdict = run(&sandbox, place, "", DIRECT);
            // If the hypervisor withheld CPU time or the host was busy, counters are read late. The
            // rule may then be unknown.
            let balance = found(&verdict, "bytes-balance");
            let is_late = verdict["findings"].as_array().unwrap().iter().any(|finding| {
                let says = finding["says"].as_str().unwrap();
                finding["rule"] == "bytes-balance" && says.contains("the counters were first read")
            });
            let late = is_late || found(&verdict, "cpu-steal") == "fail";
            let holds = balance == "pass" || late && balance == "unknown";
            assert!(holds, "{busy} {place:?}: {verdict:#}");
            let fails = verdict["findings"].as_array().unwrap().iter();
            let fails: Vec<&Value> = fails.filter(|f| f["outcome"] == "fail").collect();
            // Effects of this machine's hypervisor are not caused by the stack.
            let of_the_host =
                |f: &&Value| support::OF_THE_HOST.iter().any(|rule| f["rule"] == *rule);
            let others = fails.iter().all(of_the_host);
            assert!(others, "{busy} {place:?}: {fails:#?}");
        }
        neighbour.get_or_insert_with(|| Neighbour::on(sandbox.root.path()));
    }
}

/// A file system whose journal is in memory is reported as memory. Mount options do not show a
/// journal on a separate device. If that device is in memory, every flush ends in memory.
#[test]
fn a_journal_that_lies_in_memory_is_memory_below() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let memory = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=100m", "tmpfs"], &memory);
    let at = sandbox.path("mount");
    journal_in(&mut made, &memory, &sandbox.path("image"), &at);
    let verdict = run(&sandbox, &at, "", "reads = 0\nsync = \"fdatasync\"");
    is_invalid_by(&verdict, "memory-target");
}

/// If a layer does not pass flushes on, every claim must be refuted or unproven, because missing
/// flushes change the load.
#[test]
fn flushes_that_a_layer_keeps_to_itself_meet_no_requirement() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let device = made.loop_on(&sandbox.path("image"), 256, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "nobarrier", &at);
    let verdict = run(&sandbox, &at, "", "reads = 0\nsync = \"fdatasync\"");
    is_invalid_by(&verdict, "flush-lost");
}

/// The counters of another device must not count as known. Here, they are mounted over the counters
/// of a loop device in memory.
#[test]
fn an_account_of_another_device_acquits_nobody() {
    let (sandbox, mut made) = (Sandbox::new(), TestResource::default());
    let memory = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=300m", "tmpfs"], &memory);
    let device = made.loop_on(&memory.join("image"), 256, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    // Counters of the sandbox's device.
    let of = |device: &str| {
        let name = tool("lsblk", &["-dno", "MAJ:MIN", device]);
        std::fs::canonicalize(format!("/sys/dev/block/{}", name.trim())).unwrap()
    };
    let disk = tool("findmnt", &["-nvo", "SOURCE", "-T", sandbox.root.path().to_str().unwrap()]);
    let (account, over) = (of(disk.trim()), of(&device));
    made.mount(&["--bind", account.to_str().unwrap()], &over);
    let _neighbour = Neighbour::on(sandbox.root.path());
    let verdict = run(&sandbox, &at, "", DIRECT);
    assert_eq!(found(&verdict, "stands-between"), "unknown", "{verdict:#}");
    assert!(verdict["verdict"] == "INVALID" || verdict["verdict"] == "INCONCLUSIVE", "{verdict:#}");
    for (claim, standing) in verdict["claims"].as_object().unwrap() {
        assert!(!standing.as_str().unwrap().starts_with("believable"), "{claim}: {verdict:#}");
    }
}

/// A preloaded library that halves the speed of the clock doubles every rate. The kernel's own time
/// stamps contradict it.
#[test]
fn a_clock_that_a_library_slows_down_shows() {
    let sandbox = Sandbox::new();
    let (source, library) = (sandbox.path("slow.c"), sandbox.path("slow.so"));
    std::fs::write(&source, SLOW_CLOCK).unwrap();
    let paths = [source.to_str().unwrap(), library.to_str().unwrap()];
    tool("cc", &["-shared", "-fPIC", "-o", paths[1], paths[0]]);
    let text = format!(
        "version = 1\nname = \"slow\"\n[requirement]\niops = 1\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"32MiB\"\nreads = 100\n[phases]\nwarm_up = \
         \"200ms\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \"500ms\"\n",
        sandbox.data().display().to_string()
    );
    std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    let mut command = sandbox.command(&["run", "plan.toml", "--json", "-q"]);
    command.env("LD_PRELOAD", &library);
    let verdict = CommandOutput::from(command.output().unwrap()).json();
    assert_eq!(found(&verdict, "clock-rate"), "fail", "{verdict:#}");
    assert_eq!(found(&verdict, "stands-between"), "unknown", "{verdict:#}");
    assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
}

/// Source of a library that halves the speed of all clocks, except the clocks of CPU time.
const SLOW_CLOCK: &str = r"
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
static struct timespec first[16];
int clock_gettime(clockid_t id, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, id, now);
    if (failed || id < 0 || id >= 16 || id == 2 || id == 3) return (int)failed;
    if (!first[id].tv_sec && !first[id].tv_nsec) first[id] = *now;
    long long since = (now->tv_sec - first[id].tv_sec) * 1000000000LL + now->tv_nsec - first[id].tv_nsec;
    long long at = first[id].tv_nsec + since / 2;
    now->tv_sec = first[id].tv_sec + at / 1000000000;
    now->tv_nsec = at % 1000000000;
    return 0;
}
";
