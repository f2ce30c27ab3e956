//! Control groups that limit the operations of a block device.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::made::TestResource;
use super::tool;

/// Control group that limits the operations of its processes on one device. It is removed when this
/// value is dropped.
pub struct Throttle {
    group: PathBuf,
    numbers: String,
    _made: TestResource,
}

impl Throttle {
    pub fn new(device: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let numbers = tool("lsblk", &["-dno", "MAJ:MIN", device]);
        let first = Path::new("/sys/fs/cgroup/blkio");
        let root = if first.is_dir() { first } else { Path::new("/sys/fs/cgroup") };
        let group = root.join(format!("plimsoll-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&group).unwrap();
        let mut made = TestResource::default();
        made.undo(&["rmdir", group.to_str().unwrap()]);
        Self { group, numbers, _made: made }
    }

    /// Limits reads and writes separately to this number of operations per second; `None` removes
    /// the limit.
    pub fn limit(&self, rate: Option<u32>) {
        if self.group.join("io.max").exists() {
            let word = rate.map_or("max".to_owned(), |rate| rate.to_string());
            let line = format!("{} riops={word} wiops={word}", self.numbers);
            std::fs::write(self.group.join("io.max"), line).unwrap();
            return;
        }
        for direction in ["read", "write"] {
            let file = self.group.join(format!("blkio.throttle.{direction}_iops_device"));
            std::fs::write(file, format!("{} {}", self.numbers, rate.unwrap_or(0))).unwrap();
        }
    }

    /// Moves a process into the group; returns false if it has ended.
    pub fn take_in(&self, process: u32) -> bool {
        std::fs::write(self.group.join("cgroup.procs"), process.to_string()).is_ok()
    }
}

/// Speed of a device during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSpeed {
    Full,
    /// Limit in operations per second. It applies to reads and to writes separately.
    Limited(u32),
    /// Alternates between full speed for `fast_ms` and `rate` operations per second for `slow_ms`.
    Stalling {
        fast_ms: u64,
        slow_ms: u64,
        rate: u32,
    },
}

/// Time after which the device no longer stalls, so that a failing test does not wait forever.
const STALLS_MAX: Duration = Duration::from_secs(120);

/// Changes a device's speed for the processes in its group until this value is dropped.
pub struct SpeedControl {
    throttle: Arc<Throttle>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SpeedControl {
    /// Starts to change the speed. Returns `None` if the device keeps its full speed.
    pub fn start(speed: DeviceSpeed, device: &str) -> Option<Self> {
        if speed == DeviceSpeed::Full {
            return None;
        }
        let throttle = Arc::new(Throttle::new(device));
        let stop = Arc::new(AtomicBool::new(false));
        let mut thread = None;
        match speed {
            DeviceSpeed::Full => {}
            DeviceSpeed::Limited(rate) => throttle.limit(Some(rate)),
            DeviceSpeed::Stalling { fast_ms, slow_ms, rate } => {
                let (throttle, stop) = (throttle.clone(), stop.clone());
                thread = Some(std::thread::spawn(move || {
                    let start = Instant::now();
                    let ends = || stop.load(Ordering::Relaxed) || start.elapsed() > STALLS_MAX;
                    while !ends() {
                        throttle.limit(None);
                        std::thread::sleep(Duration::from_millis(fast_ms));
                        throttle.limit(Some(rate));
                        std::thread::sleep(Duration::from_millis(slow_ms));
                    }
                    throttle.limit(None);
                }));
            }
        }
        Some(Self { throttle, stop, thread })
    }

    /// Moves a process into the control group; returns false if it has ended.
    pub fn take_in(&self, process: u32) -> bool {
        self.throttle.take_in(process)
    }
}

impl Drop for SpeedControl {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
