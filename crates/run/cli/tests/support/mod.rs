//! Shared support for tests of commands: a program with its own directories, small plans, loop
//! devices.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod browser;
pub mod draw;
pub mod made;
pub mod memory_limit;
pub mod metrics;
pub mod neighbour;
#[path = "../../../../measure/nfs/tests/support/port.rs"]
#[allow(clippy::duplicate_mod)] // several of these are in one file of tests
pub mod port;
pub mod postgres;
pub mod server;
pub mod throttle;
pub mod tricks;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A sandbox with its own ledger, bundles and data.
pub struct Sandbox {
    pub root: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        // Do not use /tmp, which may be in memory: the tests need a file system on a device.
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(root.path().join("data")).unwrap();
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command
            .args(arguments)
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_DATA_HOME", self.path("share"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            // Without this setting, each sandbox would calibrate the host, which takes 10 s. A
            // separate test calibrates it.
            .env("PLIMSOLL_CALIBRATE", "never")
            .env_remove("NO_COLOR")
            .current_dir(self.root.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::from(self.command(arguments).output().unwrap())
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Writes a plan. Returns its path.
    pub fn plan(&self, plan: &SmallPlan) -> String {
        let path = self.path("plan.toml");
        std::fs::write(&path, plan.text()).unwrap();
        path.display().to_string()
    }

    /// Returns the only bundle in the catalogue.
    pub fn bundle(&self) -> PathBuf {
        let mut bundles = self.bundles();
        assert_eq!(bundles.len(), 1, "{bundles:?}");
        bundles.remove(0)
    }

    pub fn bundles(&self) -> Vec<PathBuf> {
        let runs = self.path("share/plimsoll/runs");
        let mut bundles: Vec<PathBuf> =
            std::fs::read_dir(runs).into_iter().flatten().flatten().map(|e| e.path()).collect();
        bundles.sort();
        bundles
    }

    /// Returns the names in the data directory.
    pub fn left_in_data(&self) -> Vec<String> {
        names(&self.data())
    }
}

pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A finished command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Rules that fail because the hypervisor or other processes used the resources of the test
/// machine.
pub const OF_THE_HOST: [&str; 3] = ["cpu-steal", "noisy-neighbour", "was-stopped"];

/// Returns the failed rules of a verdict, without those in [`OF_THE_HOST`].
pub fn failed_rules(verdict: &Value) -> Vec<&str> {
    let findings = verdict["findings"].as_array().unwrap().iter();
    let failed = findings.filter(|f| f["outcome"] == "fail").filter_map(|f| f["rule"].as_str());
    failed.filter(|rule| !OF_THE_HOST.contains(rule)).collect()
}

impl CommandOutput {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks a run on a server on this host. If the server's page cache served reads, the verdict
    /// reports this, and no other finding may fail.
    #[track_caller]
    pub fn measured_on_this_host(self) -> Self {
        let verdict = self.json();
        let mut failed = failed_rules(&verdict);
        failed.retain(|rule| *rule != "bytes-balance");
        assert!([0, 3].contains(&self.code), "{}\n{}", self.stdout, self.stderr);
        assert!(failed.is_empty(), "{failed:?}\n{}\n{}", self.stdout, self.stderr);
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }

    /// Checks that the output contains this text, regardless of line breaks: they depend on the
    /// length of paths.
    #[track_caller]
    pub fn says(&self, text: &str) {
        let all = format!("{}{}", self.stdout, self.stderr);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&all).contains(&words(text)), "{text:?} is not in:\n{all}");
    }
}

pub fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A plan that takes a few seconds and has little data.
#[derive(Clone)]
pub struct SmallPlan {
    pub name: String,
    pub target: String,
    pub mailboxes: u32,
    pub mailbox_size: String,
    pub databases: u32,
    pub mailbox: String,
    pub phases: String,
    pub warm_up: String,
    pub measure: String,
    pub more: String,
}

impl SmallPlan {
    pub fn on(path: &Path) -> Self {
        Self {
            name: "small".into(),
            target: format!("path = {:?}", path.display().to_string()),
            mailboxes: 16,
            mailbox_size: "4MiB".into(),
            databases: 2,
            mailbox: String::new(),
            phases: String::new(),
            warm_up: "1s".into(),
            measure: "3s".into(),
            more: String::new(),
        }
    }

    /// With this small cache, fast storage does not leave enough clean pages. Stalls are therefore
    /// counted here, but have no limit.
    pub fn text(&self) -> String {
        let Self { name, target, mailboxes, mailbox_size, databases, .. } = self;
        let Self { mailbox, phases, warm_up, measure, more, .. } = self;
        format!(
            "version = 1\nname = \"{name}\"\ndemonstration = true\n[requirement]\nlatency_max_of = \
             \"1s\"\npage_fault_stalls_max = \
             1000000\n[target]\n{target}\n[workload.mailbox]\nmailboxes = \
             {mailboxes}\niops_per_mailbox = 0.2\nmailbox_size = \"{mailbox_size}\"\ndatabases = \
             {databases}\nthreads = 4\ncache = \"8MiB\"\ncheckpoint_depth = \
             \"2MiB\"\n{mailbox}\n[phases]\nwarm_up = \"{warm_up}\"\nmeasure = \
             \"{measure}\"\n{phases}\n[evidence]\nmin_measure = \"1s\"\ninterval = \
             \"100ms\"\n{more}\n"
        )
    }
}

/// Runs a tool and panics if it fails.
#[track_caller]
pub fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device on a fully allocated image. It is removed when this value is dropped.
pub struct LoopDevice {
    pub name: String,
}

impl LoopDevice {
    /// Creates a device of `size_mib` MiB with direct I/O, on an image in `root`.
    pub fn new(root: &Path, size_mib: u64) -> Self {
        let image = root.join("device.image").display().to_string();
        tool("fallocate", &["-l", &format!("{size_mib}MiB"), &image]);
        Self { name: tool("losetup", &["-f", "--show", "--direct-io=on", &image]) }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.name).output();
    }
}

/// A file system on a loop device. It is removed when this value is dropped.
pub struct LoopFs {
    pub device: String,
    pub mount: PathBuf,
    pub image: PathBuf,
}

impl LoopFs {
    /// Creates a `mkfs.KIND` file system of `size_mib` MiB with direct I/O, on a fully written
    /// image in `root`.
    pub fn new(root: &Path, kind: &str, size_mib: u64, options: &str) -> Self {
        let (image, mount) = (root.join("image"), root.join("mount"));
        std::fs::create_dir(&mount).unwrap();
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(size_mib << 20).unwrap();
        let image_text = image.display().to_string();
        tool("fallocate", &["-l", &format!("{size_mib}MiB"), &image_text]);
        let device = tool("losetup", &["-f", "--show", "--direct-io=on", &image_text]);
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
        tool("mount", &["-o", options, &fs.device, &fs.mount.display().to_string()]);
        fs
    }

    /// Returns counters of the device: bytes read, bytes written, flushes.
    pub fn counters(&self) -> (u64, u64, u64) {
        let name = self.device.trim_start_matches("/dev/");
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<u64> =
            text.split_ascii_whitespace().map(|field| field.parse().unwrap()).collect();
        (fields[2] * 512, fields[6] * 512, fields[15])
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.mount).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

/// Waits until a condition is true.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what} did not come about");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn signal(child: &Child, signal: &str) {
    tool("kill", &[signal, &child.id().to_string()]);
}

/// A model with one core and an unknown core time per read.
pub const TINY_MODEL: &str = "[model]\nname = \"tiny\"\nentry = \"path\"\nfrom = \
                              \"chosen\"\n[load]\nfrom = \"chosen\"\nclients = 8\ndepth = 2\nfiles \
                              = 8\nfile_bytes = \"1 GB\"\n[block.path]\nkind = \"path\"\nbelow = \
                              \"drive\"\ncpu = \"cpu\"\nfrom = \"assumed\"\nread_us = { value = 60, \
                              from = \"fitted\", free = [10, 400] }\nwrite_us = 50\nmeta_us = \
                              20\n[block.cpu]\nkind = \"cpu\"\nfrom = \"assumed\"\ncores = \
                              1\n[block.drive]\nkind = \"drive\"\nfrom = \"assumed\"\ncount = \
                              4\nread_us = 20\nwrite_us = 20\nread_bytes_per_s = \
                              1e9\nwrite_bytes_per_s = 1e9\n";

/// Returns the outcome of a rule in the verdict.
pub fn found(verdict: &Value, rule: &str) -> Value {
    if verdict["passed"].as_array().unwrap().iter().any(|name| name == rule) {
        return "pass".into();
    }
    let findings = verdict["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["rule"] == rule)
        .map_or(Value::Null, |f| f["outcome"].clone())
}

/// Checks that the byte balance fails, or is unknown because the underlying disk moved more bytes
/// than the run requested. This happens if pages of an earlier test are still being written.
/// Unknown is not a pass.
#[track_caller]
pub fn is_not_acquitted(verdict: &Value) {
    match found(verdict, "bytes-balance").as_str() {
        Some("fail") => assert_eq!(verdict["verdict"], "INVALID", "{verdict:#}"),
        Some("unknown") => {
            let findings = verdict["findings"].as_array().unwrap();
            let balance = findings.iter().find(|f| f["rule"] == "bytes-balance").unwrap();
            assert!(
                balance["says"].as_str().unwrap().contains("worked for other processes"),
                "{verdict:#}"
            );
            // The result of another tool has no requirement.
            let open = if verdict["tier"] == "T2" { "MEASURED" } else { "INCONCLUSIVE" };
            assert_eq!(verdict["verdict"], open, "{verdict:#}");
            assert_ne!(verdict["claims"]["requirement"], "believable", "{verdict:#}");
        }
        other => panic!("bytes-balance: {other:?}: {verdict:#}"),
    }
}
