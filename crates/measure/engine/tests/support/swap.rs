//! Simulates an attacker: the owner of the target directory replaces the directory and its content
//! while a run prepares its data.
//!
//! If the test runs as root, the attacker is a thread of user 65534, who owns the allowed directory
//! and everything in it. Otherwise, the attacker is a thread of the same user.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use rustix::process::{Gid, Uid};

const NOBODY: u32 = 65534;
const SECRET: &[u8] = b"what nobody may overwrite";

/// Returns true if the attacker is another user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Directory of the attacker, next to files that a run must not change.
pub struct Scene {
    root: tempfile::TempDir,
    /// Names of the run's files that the attacker replaces by links.
    traps: Vec<String>,
    /// Name of the directory that the run creates.
    own_name: String,
    watch: rustix::fd::OwnedFd,
    before: Vec<(PathBuf, SystemTime, u64)>,
    /// Block device that a run must not write to; `None` if this host has no loop devices.
    device: Option<DecoyDevice>,
}

/// Loop device whose backing file has known content.
struct DecoyDevice {
    name: String,
    backing: PathBuf,
}

impl DecoyDevice {
    const SIZE_BYTES: usize = 4 << 20;

    /// Attaches a loop device and creates its node at `node`. Returns `None` if not run as root, or
    /// without loop devices.
    fn attach(backing: PathBuf, node: &Path) -> Option<Self> {
        fs::write(&backing, vec![0xA5; Self::SIZE_BYTES]).unwrap();
        let output = Command::new("losetup").args(["-f", "--show"]).arg(&backing).output().ok()?;
        let name = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        if !is_root() || name.is_empty() {
            return None;
        }
        let device = Self { name, backing };
        let number = fs::metadata(&device.name).unwrap().rdev();
        mknodat(CWD, node, FileType::BlockDevice, Mode::from_raw_mode(0o600), number).ok()?;
        Some(device)
    }

    fn assert_untouched(&self) {
        let flushed = Command::new("blockdev").args(["--flushbufs", &self.name]).status();
        assert!(flushed.unwrap().success());
        assert!(fs::read(&self.backing).unwrap().iter().all(|byte| *byte == 0xA5));
    }
}

impl Drop for DecoyDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.name]).status();
    }
}

impl Scene {
    /// Creates a scene. `own_name` is the directory that the run creates, and `traps` are files
    /// that it creates in this directory.
    pub fn new(own_name: &str, traps: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), SECRET).unwrap();
        let backing = root.path().join("device.img");
        let device = DecoyDevice::attach(backing, &outside.join("device"));
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let written = WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ATTRIB;
        inotify::add_watch(&watch, &outside, written).unwrap();
        let traps = traps.iter().map(|name| (*name).to_owned()).collect();
        let own_name = own_name.to_owned();
        let mut scene = Self { root, traps, own_name, watch, before: Vec::new(), device };
        scene.before = scene.outside();
        scene.lay_out();
        scene
    }

    /// Returns the directory on the list of allowed targets.
    pub fn allowed(&self) -> PathBuf {
        self.root.path().join("allowed")
    }

    /// Returns the directory that the plan names.
    pub fn target(&self) -> PathBuf {
        self.allowed().join("target")
    }

    /// Returns the state directory of the run, which is outside the target.
    #[allow(dead_code)] // not every test uses it
    pub fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Recreates the allowed directory and everything that the attacker has prepared in it.
    pub fn lay_out(&self) {
        let allowed = self.allowed();
        match fs::remove_dir_all(&allowed) {
            Err(error) if error.kind() != ErrorKind::NotFound => panic!("{error}"),
            _ => {}
        }
        let trap = allowed.join("target/trap");
        fs::create_dir_all(&trap).unwrap();
        let outside = self.root.path().join("outside");
        let mut made = vec![allowed.clone(), self.target(), trap.clone()];
        let mut link = |to: &Path, at: PathBuf| {
            symlink(to, &at).unwrap();
            made.push(at);
        };
        link(&outside, allowed.join("target-link"));
        link(&outside, allowed.join("target/trap-link"));
        for (at, name) in self.traps.iter().enumerate() {
            // Every second link points to the device. If a run opened it for writing, it would
            // write to a device of the host.
            let victim = if self.device.is_some() && at % 2 == 1 { "device" } else { "secret" };
            match name.split_once('/') {
                Some((directory, _)) if trap.join(directory).symlink_metadata().is_ok() => {}
                Some((directory, _)) => link(&outside, trap.join(directory)),
                None => link(&outside.join(victim), trap.join(name)),
            }
        }
        if is_root() {
            for path in made {
                lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            chown(&allowed, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Starts the attack on the content of the target directory. If `target_too` is true, also
    /// replaces the directory itself.
    pub fn attack(&self, target_too: bool) -> Attack {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let attacker = Attacker {
            target: self.target(),
            link: self.allowed().join("target-link"),
            own_name: self.own_name.clone(),
            target_too,
            stop: Arc::clone(&stop),
            swaps: Arc::clone(&swaps),
        };
        let thread = std::thread::spawn(move || attacker.go_on());
        Attack { stop, swaps, thread: Some(thread) }
    }

    /// Returns all files outside the target, with their times and sizes.
    fn outside(&self) -> Vec<(PathBuf, SystemTime, u64)> {
        let outside = self.root.path().join("outside");
        let mut all = vec![outside.clone()];
        all.extend(fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().path()));
        let seen = |path: PathBuf| {
            let metadata = fs::symlink_metadata(&path).unwrap();
            (path, metadata.modified().unwrap(), metadata.len())
        };
        all.into_iter().map(seen).collect()
    }

    /// Asserts that the run opened no file outside the target for writing, and created, removed or
    /// changed no such file.
    pub fn assert_untouched(&self) {
        let mut room = [const { std::mem::MaybeUninit::uninit() }; 4096];
        let mut events = Reader::new(&self.watch, &mut room);
        match events.next() {
            Err(rustix::io::Errno::AGAIN) => {}
            Ok(event) => panic!("outside: {event:?}; now {:?}", self.outside()),
            Err(errno) => panic!("{errno}"),
        }
        assert_eq!(self.outside(), self.before);
        assert_eq!(fs::read(self.root.path().join("outside/secret")).unwrap(), SECRET);
        self.device.iter().for_each(DecoyDevice::assert_untouched);
    }
}

/// Running attack. Dropping it ends the attack.
pub struct Attack {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Attack {
    /// Ends the attack. Returns how often the attacker replaced a directory.
    pub fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Attacker {
    target: PathBuf,
    link: PathBuf,
    own_name: String,
    target_too: bool,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
}

impl Attacker {
    fn go_on(&self) {
        become_nobody();
        let own = self.target.join(&self.own_name);
        let (trap, trap_link) = (self.target.join("trap"), self.target.join("trap-link"));
        let mut number = 0u64;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            // Some runs must succeed, so the time between the swaps varies.
            let stays = Duration::from_micros(number * 37 % 400);
            match number % 3 {
                0 if self.target_too => self.swap(&self.target, &self.link, stays),
                1 => self.swap(&own, &trap_link, stays),
                _ => self.swap(&own, &trap, stays),
            }
        }
    }

    /// Exchanges two names, waits, and exchanges them back.
    fn swap(&self, one: &Path, other: &Path, stays: Duration) {
        if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
            return;
        }
        self.swaps.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(stays);
        let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    }
}

/// Changes the user of this thread, if permitted.
fn become_nobody() {
    if is_root() {
        let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        rustix::thread::set_thread_groups(&[gid]).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
    }
}
