//! Storage that is something else than it looks: real file systems on memory, on the page cache, on each
//! other. Needs root. What this machine cannot make is said on stderr; the rules' own tests cover it from
//! evidence.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Sandbox, found, tool};

/// Mounts and loop devices of a test, undone in reverse order when dropped.
#[derive(Default)]
struct Made {
    undo: Vec<Vec<String>>,
}

impl Made {
    fn undo(&mut self, command: &[&str]) {
        self.undo.push(command.iter().map(|word| (*word).to_owned()).collect());
    }

    fn mount(&mut self, arguments: &[&str], at: &Path) {
        std::fs::create_dir_all(at).unwrap();
        let at = at.to_str().unwrap();
        tool("mount", &[arguments, &[at]].concat());
        self.undo(&["umount", "-l", at]);
    }

    /// A loop device on a file of `size_mib`, whose space is reserved.
    fn loop_on(&mut self, file: &Path, size_mib: u64, direct: bool) -> String {
        let file = file.to_str().unwrap();
        tool("fallocate", &["-l", &format!("{size_mib}MiB"), file]);
        let direct = format!("--direct-io={}", if direct { "on" } else { "off" });
        let device = tool("losetup", &["-f", "--show", &direct, file]);
        self.undo(&["losetup", "-d", &device]);
        device
    }

    /// A file system on a device, mounted.
    fn file_system(&mut self, device: &str, kind: &str, options: &str, at: &Path) {
        match kind {
            "ext4" => {
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                tool("mkfs.ext4", &["-q", "-E", lazy, device])
            }
            other => tool(&format!("mkfs.{other}"), &["-q", device]),
        };
        self.mount(&["-o", options, device], at);
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for command in self.undo.iter().rev() {
            let _ = Command::new(&command[0]).args(&command[1..]).output();
        }
    }
}

/// Reads and writes on `path` with a requirement that anything keeps, and more lines of the plan.
fn run(sandbox: &Sandbox, path: &Path, requirement: &str, workload: &str) -> Value {
    let text = format!(
        "version = 1\nname = \"stack\"\n[requirement]\niops = 1\n{requirement}\n[target]\npath = {:?}\n\
         [workload.matrix]\nfile_size = \"32MiB\"\nqueue_depth = 8\n{workload}\n[phases]\nwarm_up = \
         \"200ms\"\nmeasure = \"1s\"\n[evidence]\nmin_measure = \"500ms\"\ninterval = \"20ms\"\n",
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

const DIRECT: &str = "reads = 50\ndirect = \"required\"";

#[test]
fn a_file_system_in_memory_meets_no_requirement_unless_it_is_claimed() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
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
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
    let memory = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=300m", "tmpfs"], &memory);
    let device = made.loop_on(&memory.join("image"), 160, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    is_invalid_by(&run(&sandbox, &at, "", DIRECT), "memory-target");
}

#[test]
fn an_overlay_whose_upper_directory_lies_in_memory_is_memory() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
    let memory = sandbox.path("memory");
    made.mount(&["-t", "tmpfs", "-o", "size=200m", "tmpfs"], &memory);
    let at = sandbox.path("overlay");
    overlay(&mut made, &memory, &sandbox.path("lower"), &at);
    is_invalid_by(&run(&sandbox, &at, "", DIRECT), "memory-target");
}

fn overlay(made: &mut Made, upper: &Path, lower: &Path, at: &Path) {
    let (data, work) = (upper.join("data"), upper.join("work"));
    for directory in [&data, &work, &lower.to_path_buf()] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let [lower, data, work] = [lower, &data, &work].map(Path::display);
    let options = format!("lowerdir={lower},upperdir={data},workdir={work}");
    made.mount(&["-t", "overlay", "-o", &options, "overlay"], at);
}

/// A device of compressed memory; `None`, and a word about it, where the kernel has none.
fn zram(made: &mut Made, size: &str) -> Option<String> {
    let control = PathBuf::from("/sys/class/zram-control");
    let Ok(number) = std::fs::read_to_string(control.join("hot_add")) else {
        eprintln!("not tested here: this kernel has no zram");
        return None;
    };
    let number = number.trim();
    let block = format!("/sys/block/zram{number}");
    let remove =
        format!("echo 1 > {block}/reset; echo {number} > /sys/class/zram-control/hot_remove");
    made.undo(&["sh", "-c", &remove]);
    std::fs::write(format!("{block}/disksize"), size).unwrap();
    let device = format!("/dev/zram{number}");
    support::wait_until("the device", || Path::new(&device).exists());
    Some(device)
}

#[test]
fn a_file_system_on_compressed_memory_is_memory() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
    let Some(device) = zram(&mut made, "200M") else { return };
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    // A declared cache that the working set exceeds proves nothing of memory.
    let claims = "claims = [\"requirement\", \"media-read\"]";
    let workload = format!("{DIRECT}\n[observe]\narray_cache = \"1MiB\"");
    let verdict = run(&sandbox, &at, claims, &workload);
    is_invalid_by(&verdict, "memory-target");
    assert_eq!(verdict["claims"]["media-read"], "refuted", "{verdict:#}");
}

/// Reads and writes the disk that `path` lies on past the page cache until dropped: somebody else's load.
struct Neighbour {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Neighbour {
    fn on(path: &Path) -> Self {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (seen, file) = (stop.clone(), path.join("neighbour"));
        let file = file.display().to_string();
        let make = ["if=/dev/urandom", "bs=1M", "count=64", "conv=fsync"];
        tool("dd", &[&make[..], &[&format!("of={file}")]].concat());
        let thread = std::thread::spawn(move || {
            use std::sync::atomic::Ordering;
            while !seen.load(Ordering::Relaxed) {
                // Processes of their own, so that they are counted apart from the test.
                let read = [&format!("if={file}"), "of=/dev/null", "bs=1M", "iflag=direct"];
                let write =
                    ["if=/dev/zero", &format!("of={file}"), "bs=1M", "count=64", "oflag=direct"];
                for arguments in [&read[..], &write[..]] {
                    let _ = Command::new("dd").args(arguments).arg("conv=notrunc").output();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// O_DIRECT is taken and the file system buffers: its journal holds the data.
#[test]
fn a_journal_of_data_buffers_what_was_to_be_direct() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
    let device = made.loop_on(&sandbox.path("image"), 256, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "data=journal", &at);
    for reads in [0, 100] {
        let workload = format!("reads = {reads}\ndirect = \"required\"");
        let verdict = run(&sandbox, &at, "", &workload);
        is_invalid_by(&verdict, "bytes-balance");
    }
}

#[test]
fn a_loop_device_on_the_page_cache_is_caught_while_others_use_the_disk() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
    let device = made.loop_on(&sandbox.path("image"), 256, false);
    let at = sandbox.path("mount");
    made.file_system(&device, "ext4", "defaults", &at);
    is_invalid_by(&run(&sandbox, &at, "", DIRECT), "bytes-balance");
    let _neighbour = Neighbour::on(sandbox.root.path());
    let verdict = run(&sandbox, &at, "", DIRECT);
    // Where this machine is too busy to tell the two apart it stays open; it never acquits.
    let balance = found(&verdict, "bytes-balance");
    assert!(balance == "fail" || balance == "unknown", "{verdict:#}");
    assert!(verdict["verdict"] == "INVALID" || verdict["verdict"] == "INCONCLUSIVE", "{verdict:#}");
}

#[test]
fn writes_that_stay_in_the_page_cache_are_no_burst() {
    let sandbox = Sandbox::new();
    for claims in ["claims = [\"burst-write\"]", "claims = [\"durable-write\"]"] {
        let verdict = run(&sandbox, &sandbox.data(), claims, "reads = 0\ndirect = \"off\"");
        assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}");
        assert_eq!(found(&verdict, "bytes-balance"), "fail", "{verdict:#}");
    }
}

#[test]
fn a_reduction_that_nobody_has_is_not_believed_where_it_is_declared() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
    let device = made.loop_on(&sandbox.path("image"), 512, true);
    let at = sandbox.path("mount");
    made.file_system(&device, "btrfs", "compress-force=zstd:3", &at);
    let workload = "reads = 50\ncompressibility = 40.0\n[observe]\ndata_reduction = 40.0";
    is_invalid_by(&run(&sandbox, &at, "", workload), "data-reduced");
}

/// Honest runs, alone and beside somebody else: none is accused, and each shows what its device moved.
#[test]
fn honest_runs_keep_their_balance_while_others_use_the_disk() {
    let (sandbox, mut made) = (Sandbox::new(), Made::default());
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
            // On a host whose CPUs were taken away, counters are read late: that may leave it open.
            let balance = found(&verdict, "bytes-balance");
            let taken = found(&verdict, "cpu-steal") == "fail";
            let holds = balance == "pass" || taken && balance == "unknown";
            assert!(holds, "{busy} {place:?}: {verdict:#}");
            let fails = verdict["findings"].as_array().unwrap().iter();
            let fails: Vec<&Value> = fails.filter(|f| f["outcome"] == "fail").collect();
            // What the hypervisor of this machine takes is no fault of a stack.
            let of_the_host = ["noisy-neighbour", "cpu-steal"];
            let others = fails.iter().all(|f| of_the_host.iter().any(|rule| f["rule"] == *rule));
            assert!(others, "{busy} {place:?}: {fails:#?}");
        }
        neighbour.get_or_insert_with(|| Neighbour::on(sandbox.root.path()));
    }
}
