//! Disturbances that a test causes while a plan runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::program::Going;
use crate::stack::Stack;
use crate::support::draw::Draw;
use crate::support::made::TestResource;
use crate::support::neighbour::Neighbour;
use crate::support::throttle::Throttle;
use crate::support::{Sandbox, tool};

/// Kind of disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nothing,
    /// Another process reads and writes the disk.
    Neighbour,
    /// The file system is frozen during the measurement, so writes hang.
    Stall,
    /// The file system is frozen shortly before the measurement ends, and thawed long after it has
    /// ended.
    HangAtTheEnd,
    /// The program is stopped for 600 ms and then continued.
    Stopped,
    /// The program receives SIGINT.
    Interrupted,
    /// The program receives SIGKILL.
    Killed,
    /// Random bytes overwrite all test data.
    Overwritten,
    /// The device is limited to a number of operations per second.
    Throttled,
    /// The host's page cache is dropped.
    CacheDropped,
}

/// Limit of a throttled device, in operations per second. Reads and writes are limited separately.
pub const THROTTLE: u32 = 300;
/// Time for which a file system stays frozen.
pub const FROZEN: Duration = Duration::from_millis(1200);

impl Kind {
    /// Chooses a random disturbance that is possible on this storage.
    pub fn drawn(draw: &mut Draw, stack: crate::stack::Kind) -> Self {
        let kind = draw.one_of(&[
            Self::Nothing,
            Self::Nothing,
            Self::Nothing,
            Self::Neighbour,
            Self::Stall,
            Self::HangAtTheEnd,
            Self::Stopped,
            Self::Interrupted,
            Self::Killed,
            Self::Overwritten,
            Self::Throttled,
            Self::CacheDropped,
        ]);
        let can = match kind {
            Self::Stall | Self::HangAtTheEnd | Self::Throttled => stack.can_freeze(),
            Self::Overwritten => !stack.is_remote() && !is_device(stack),
            _ => true,
        };
        if can { kind } else { Self::Nothing }
    }

    /// Returns the name of the disturbance in the tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Neighbour => ", a neighbour",
            Self::Stall => ", a stall",
            Self::HangAtTheEnd => ", a hang at the end",
            Self::Stopped => ", stopped",
            Self::Interrupted => ", interrupted",
            Self::Killed => ", killed",
            Self::Overwritten => ", overwritten",
            Self::Throttled => ", throttled",
            Self::CacheDropped => ", cache dropped",
        }
    }
}

fn is_device(stack: crate::stack::Kind) -> bool {
    matches!(stack, crate::stack::Kind::Device | crate::stack::Kind::DeviceOnMemory)
}

/// Effect of a disturbance on the run.
#[derive(Default)]
pub struct DisturbanceEffect {
    /// True if the disturbance took effect during the run.
    pub in_time: bool,
    /// Wall-clock time at which writes stopped. On a busy disk, freezing takes some time.
    pub frozen_at_unix_ns: Option<u64>,
    throttle: Option<Throttle>,
    _neighbour: Option<Neighbour>,
}

/// Sets up the resources of a disturbance before the load starts.
pub fn before(kind: Kind, sandbox: &Sandbox, stack: &Stack) -> DisturbanceEffect {
    let mut done = DisturbanceEffect::default();
    match kind {
        Kind::Neighbour => done._neighbour = Some(Neighbour::on(sandbox.root.path())),
        Kind::Throttled => {
            let (_, device) = stack.mount.as_ref().unwrap();
            let throttle = Throttle::new(device);
            throttle.limit(Some(THROTTLE));
            done.throttle = Some(throttle);
        }
        _ => {}
    }
    done
}

/// Starts the disturbance when the load has run a little longer than the plan's warm-up.
pub fn during(
    kind: Kind,
    going: &mut Going,
    stack: &Stack,
    measure: Duration,
    done: &mut DisturbanceEffect,
) {
    if kind == Kind::Throttled {
        let joined = done.throttle.as_ref().is_some_and(|throttle| throttle.take_in(going.id()));
        done.in_time = joined && !going.has_ended();
        return;
    }
    if matches!(kind, Kind::Nothing | Kind::Neighbour) || !load_began(going, stack) {
        return;
    }
    let id = going.id().to_string();
    let nap = |millis| std::thread::sleep(Duration::from_millis(millis));
    // The load starts with a warm-up of 200 ms.
    nap(500);
    match kind {
        Kind::Stall => done.frozen_at_unix_ns = frozen(stack),
        Kind::HangAtTheEnd => {
            std::thread::sleep(measure.saturating_sub(Duration::from_millis(800)));
            let went_on = !going.has_ended();
            done.frozen_at_unix_ns = frozen(stack).filter(|_| went_on);
        }
        Kind::Stopped => {
            tool("kill", &["-STOP", &id]);
            nap(600);
            tool("kill", &["-CONT", &id]);
        }
        Kind::Interrupted | Kind::Killed => {
            if !going.has_ended() {
                tool("kill", &[if kind == Kind::Killed { "-KILL" } else { "-INT" }, &id]);
                done.in_time = true;
            }
        }
        Kind::Overwritten => {
            let place = stack.place.as_ref().unwrap();
            let (files, began) = (large_files(place), Instant::now());
            for path in &files {
                overwrite(path);
            }
            // A disturbance after the last read has no effect.
            let soon = began.elapsed() < Duration::from_secs(2);
            done.in_time = !files.is_empty() && soon && !going.has_ended();
        }
        Kind::CacheDropped => {
            done.in_time = std::fs::write("/proc/sys/vm/drop_caches", "1").is_ok();
        }
        Kind::Nothing | Kind::Neighbour | Kind::Throttled => {}
    }
}

/// Freezes the file system for the time [`FROZEN`] and then thaws it, even after an error. Returns
/// the time at which the file system was frozen, or `None` if freezing failed.
fn frozen(stack: &Stack) -> Option<u64> {
    let (mount, _) = stack.mount.as_ref()?;
    let mount = mount.to_str().unwrap();
    let mut thaw = TestResource::default();
    thaw.undo(&["fsfreeze", "-u", mount]);
    let frozen = Command::new("fsfreeze").args(["-f", mount]).output();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    std::thread::sleep(FROZEN);
    frozen.ok().filter(|output| output.status.success())?;
    u64::try_from(since.as_nanos()).ok()
}

/// Waits until the manifest of the data contains the state `in-use`. Returns false if the run ends
/// first.
fn load_began(going: &mut Going, stack: &Stack) -> bool {
    // Only targets with a directory on this host have a manifest with a state.
    let Some(place) = &stack.place else {
        std::thread::sleep(Duration::from_millis(700));
        return !going.has_ended();
    };
    let in_use = || {
        let below = std::fs::read_dir(place.join("plimsoll-adversary"));
        below.into_iter().flatten().flatten().any(|entry| {
            let json = entry.path().extension().is_some_and(|ending| ending == "json");
            json && std::fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("in-use"))
        })
    };
    while !going.has_ended() {
        if in_use() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn large_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(large_files(&path));
        } else if entry.metadata().is_ok_and(|about| about.len() >= 1 << 20) {
            found.push(path);
        }
    }
    found
}

fn overwrite(path: &Path) {
    let mib = std::fs::metadata(path).map_or(0, |about| about.len() >> 20);
    let (of, count) = (format!("of={}", path.display()), format!("count={mib}"));
    let arguments = ["if=/dev/urandom", &of, "bs=1M", &count, "oflag=direct", "conv=notrunc"];
    let _ = Command::new("dd").args(arguments).output();
}
