//! Observes a command from outside: its processes, the files that the processes open, and their
//! storage I/O. The observer only reads `/proc`, so it does not trace the processes or slow them
//! down.
//!
//! When a process ends, the kernel adds its counters to the counters of the parent that reaps it
//! (kernel/exit.c, `wait_task_zombie`). The counters are finally added to those of this process, so
//! the total I/O includes short-lived processes. This process adopts orphans
//! (`PR_SET_CHILD_SUBREAPER`), so that background processes of the command are also counted. The
//! open files of a process are visible only until the process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use plimsoll_evidence::observed::{Command, CommandProcess, IoBytes, OpenedFile};
use procfs::process::{FDTarget, Process};
use rustix::process::{Pid, WaitOptions};

use crate::{interposition, mapped_files, mount, stack};

mod proc_files;

use proc_files::ProcFiles;

/// Minimum size of a data file. Smaller files are settings, libraries and logs.
const DATA_BYTES_MIN: u64 = 4 << 10;
/// Assumed maximum time between the last I/O of a tool and the end of its process. During this
/// time, the tool computes and writes its result.
const END_NS: u64 = 2_000_000_000;
/// Maximum number of processes in the list, and maximum number of files in the list. The lists
/// contain the processes with the most I/O, and the largest files.
const KEPT_MAX: usize = 256;
/// Maximum number of mapped files in the list. The list contains only files that are not from the
/// distribution.
const FOREIGN_MAX: usize = 64;
/// Number of samples of a new process that all list the files of the process. After them, only one
/// sample in [`LATE_EVERY`] lists the files.
const EARLY_LOOKS: u32 = 25;
/// After the first [`EARLY_LOOKS`] samples of a process, only one sample in this number lists the
/// process's files.
const LATE_EVERY: u32 = 10;
/// Minimum pause after a sample, as a multiple of the duration of this sample. The pause limits
/// sampling to 2 % of one CPU.
const REST_TIMES: u64 = 50;
/// Interval at which the total I/O is recorded.
const SUM_EVERY_NS: u64 = 250_000_000;

#[derive(Clone, Debug, Default)]
struct ObservedProcess {
    name: String,
    moved: Option<IoBytes>,
    cancelled: u64,
    files: BTreeSet<(u64, u64)>,
    looks: u32,
    alive: bool,
    /// True if, at the last full sample, the process had ended but its parent had not reaped it.
    ended: bool,
}

/// Observer of a command's processes.
#[derive(Debug)]
pub struct CommandWatch {
    root: i32,
    /// Open `/proc` files of Plimsoll's own process.
    own: Option<ProcFiles>,
    /// Open `/proc` files of the command's live processes, and the start times of these processes.
    proc_files: BTreeMap<i32, (ProcFiles, Option<u64>)>,
    processes: BTreeMap<(i32, u64), ObservedProcess>,
    files: BTreeMap<(u64, u64), OpenedFile>,
    unreadable: BTreeSet<i32>,
    preloaded: BTreeSet<String>,
    foreign: BTreeSet<String>,
    remote: BTreeSet<IpAddr>,
    before: Option<IoBytes>,
    cancelled_before: u64,
    /// Total I/O since the start, recorded at several times. Cancelled writes are not included.
    sums: Vec<(u64, IoBytes)>,
    due_ns: u64,
}

/// Returns the I/O of this process and its reaped children, and the bytes of their cancelled
/// writes.
fn own() -> Option<(IoBytes, u64)> {
    let io = Process::myself().ok()?.io().ok()?;
    let moved = IoBytes { read_bytes: io.read_bytes, written_bytes: io.write_bytes };
    Some((moved, io.cancelled_write_bytes))
}

/// From now on, this process adopts orphaned descendants.
pub fn adopt_orphans() {
    // If the kernel refuses, background processes are not observed.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

impl CommandWatch {
    /// Starts observing the process that was just started.
    #[must_use]
    pub fn begin(root: i32) -> Self {
        let own = own();
        let mut watch = Self {
            root,
            own: i32::try_from(std::process::id()).ok().and_then(|own| ProcFiles::open(own).ok()),
            proc_files: BTreeMap::new(),
            processes: BTreeMap::new(),
            files: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            preloaded: BTreeSet::new(),
            foreign: BTreeSet::new(),
            remote: BTreeSet::new(),
            before: own.map(|own| own.0),
            cancelled_before: own.map_or(0, |own| own.1),
            sums: vec![(0, IoBytes::default())],
            due_ns: 0,
        };
        watch.look();
        watch
    }

    /// Takes a sample if the pause since the last sample is long enough, relative to the duration
    /// of that sample. `now_ns` is the time since the start of the command.
    pub fn sample_when_due(&mut self, now_ns: u64) {
        if now_ns < self.due_ns {
            return;
        }
        let began = Instant::now();
        self.sample_all(false);
        if now_ns >= self.sums.last().map_or(0, |(at_ns, _)| at_ns + SUM_EVERY_NS) {
            let sum = self.sum();
            self.sums.extend(sum.map(|sum| (now_ns, sum)));
        }
        let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.due_ns = now_ns.saturating_add(took_ns.saturating_mul(REST_TIMES));
    }

    /// Returns the I/O of live and reaped processes, without cancelled writes.
    fn sum(&self) -> Option<IoBytes> {
        let (ended, cancelled) = own()?;
        let alive = || self.processes.values().filter(|process| process.alive);
        let moved = alive().filter_map(|process| process.moved);
        let moved = moved.fold(ended.minus(self.before?), IoBytes::plus);
        let cancelled = cancelled.saturating_sub(self.cancelled_before)
            + alive().map(|process| process.cancelled).sum::<u64>();
        Some(moved.minus(IoBytes { read_bytes: 0, written_bytes: cancelled }))
    }

    /// Returns the ids of the live processes.
    #[must_use]
    pub fn pids(&self) -> Vec<i32> {
        self.processes.iter().filter(|(_, p)| p.alive).map(|((pid, _), _)| *pid).collect()
    }

    /// Returns true if processes of the command opened data files in these paths for writing.
    /// Returns false if they opened data files in these paths only for reading, and `None` if they
    /// opened no data file there.
    #[must_use]
    pub fn writes_data(&self, paths: &[PathBuf]) -> Option<bool> {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let paths: Vec<PathBuf> = paths.iter().map(real).collect();
        let is_data = |file: &&OpenedFile| {
            let large = file.device || file.size_bytes >= Some(DATA_BYTES_MIN);
            large && paths.iter().any(|path| Path::new(&file.path).starts_with(path))
        };
        let all = self.files.values().filter(is_data);
        all.map(|file| file.written).reduce(|one, other| one || other)
    }

    /// Takes a full sample of the processes and their files.
    pub fn look(&mut self) {
        self.sample_all(true);
    }

    fn sample_all(&mut self, closely: bool) {
        let (mut of_this, mut alive) = (Vec::new(), Vec::new());
        if let Some(own) = &mut self.own {
            own.children(&mut of_this);
        }
        let mut fresh = of_this.clone();
        while let Some(pid) = fresh.pop() {
            alive.push(pid);
            let there = self
                .proc_files
                .get_mut(&pid)
                .is_some_and(|(proc_files, _)| proc_files.children(&mut fresh));
            if !there {
                self.proc_files.remove(&pid);
                if let Ok(mut proc_files) = ProcFiles::open(pid) {
                    proc_files.children(&mut fresh);
                    self.proc_files.insert(pid, (proc_files, None));
                }
            }
        }
        let living: BTreeSet<i32> = alive.iter().copied().collect();
        self.proc_files.retain(|pid, _| living.contains(pid));
        self.processes.values_mut().for_each(|process| process.alive = false);
        for pid in alive {
            if closely || !self.refresh_process(pid) {
                self.sample_process(pid);
            }
        }
        // Reaps orphans that have ended, so that their counters are not lost. The root process is
        // reaped by the caller.
        for pid in of_this.into_iter().filter(|pid| *pid != self.root) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
    }

    /// Updates the I/O counters of a known process. Returns false if a full sample of the process
    /// is needed.
    fn refresh_process(&mut self, pid: i32) -> bool {
        let Some((proc_files, Some(began))) = self.proc_files.get(&pid) else { return false };
        let Some(known) = self.processes.get_mut(&(pid, *began)) else { return false };
        if known.looks < EARLY_LOOKS || (known.looks + 1).is_multiple_of(LATE_EVERY) {
            return false;
        }
        known.looks += 1;
        known.alive = !known.ended;
        match proc_files.io() {
            Ok((moved, cancelled)) => (known.moved, known.cancelled) = (Some(moved), cancelled),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && known.alive => {
                self.unreadable.insert(pid);
            }
            Err(_) => {}
        }
        true
    }

    fn sample_process(&mut self, pid: i32) {
        let Ok(process) = Process::new(pid) else { return };
        let Ok(stat) = process.stat() else { return };
        if let Some((_, began)) = self.proc_files.get_mut(&pid) {
            *began = Some(stat.starttime);
        }
        let known = self.processes.entry((pid, stat.starttime)).or_default();
        // A zombie process still has an id, but its `/proc` files are empty.
        let ended = stat.state == 'Z';
        (known.name, known.alive, known.ended) = (stat.comm, !ended, ended);
        match process.io() {
            Ok(io) => {
                let moved = IoBytes { read_bytes: io.read_bytes, written_bytes: io.write_bytes };
                (known.moved, known.cancelled) = (Some(moved), io.cancelled_write_bytes);
            }
            Err(procfs::ProcError::PermissionDenied(_)) if !ended => {
                self.unreadable.insert(pid);
            }
            Err(_) => {}
        }
        known.looks += 1;
        if known.looks > EARLY_LOOKS && !known.looks.is_multiple_of(LATE_EVERY) {
            return;
        }
        let libraries = interposition::preloaded(&pid.to_string()).into_iter();
        let of = self.processes.get(&(pid, stat.starttime)).map_or("", |known| known.name.as_str());
        let libraries = libraries.map(|library| format!("{library} was loaded into {of}"));
        self.preloaded.extend(libraries);
        let mapped = mapped_files::read(&pid.to_string()).unwrap_or_default().into_iter();
        let foreign = mapped.filter_map(|file| Some((file.path, file.foreign?)));
        let foreign = foreign.map(|(path, why)| format!("{path} was mapped into {of} ({why})"));
        self.foreign.extend(foreign);
        let Ok(files) = process.fd() else { return };
        let mut connected = false;
        for fd in files.flatten() {
            match fd.target {
                FDTarget::Path(path) => {
                    if let Some(key) = self.read_file(pid, fd.fd, path)
                        && let Some(known) = self.processes.get_mut(&(pid, stat.starttime))
                    {
                        known.files.insert(key);
                    }
                }
                FDTarget::Socket(_) => connected = true,
                _ => {}
            }
        }
        if connected {
            self.read_connections(&process);
        }
    }

    fn read_file(&mut self, pid: i32, fd: i32, path: PathBuf) -> Option<(u64, u64)> {
        let link = format!("/proc/{pid}/fd/{fd}");
        let stat = fs::metadata(&link).ok()?;
        let is_device = stat.file_type().is_block_device();
        if !is_device && !stat.file_type().is_file() {
            return None;
        }
        let key = if is_device { (0, stat.rdev()) } else { (stat.dev(), stat.ino()) };
        let flags = open_flags(pid, fd).unwrap_or(0);
        let (mode, direct) = (flags & 0o3, flags & (libc_o_direct() as u64) != 0);
        let file = self.files.entry(key).or_insert_with(|| OpenedFile {
            path: path.display().to_string().trim_end_matches(GONE).to_owned(),
            device: is_device,
            ..OpenedFile::default()
        });
        file.read |= mode != 1;
        file.written |= mode != 0;
        // If the command opened the file for buffered I/O at any time, not all I/O on the file was
        // direct.
        file.direct = Some(file.direct.unwrap_or(true) && direct);
        if !is_device {
            file.size_bytes = file.size_bytes.max(Some(stat.len()));
            file.allocated_bytes = Some(stat.blocks().saturating_mul(512));
        }
        Some(key)
    }

    /// Collects the remote addresses of a process's connections.
    fn read_connections(&mut self, process: &Process) {
        let Ok(files) = process.fd() else { return };
        let sockets: BTreeSet<u64> = files
            .flatten()
            .filter_map(|fd| match fd.target {
                FDTarget::Socket(inode) => Some(inode),
                _ => None,
            })
            .collect();
        let rows = process.tcp().into_iter().flatten().chain(process.tcp6().into_iter().flatten());
        let far = rows
            .filter(|row| row.state == procfs::net::TcpState::Established)
            .filter(|row| sockets.contains(&row.inode))
            .map(|row| {
                (row.local_address.ip().to_canonical(), row.remote_address.ip().to_canonical())
            })
            .filter(|(local, remote)| !remote.is_loopback() && local != remote)
            .map(|(_, remote)| remote);
        self.remote.extend(far);
    }

    /// Returns the results. The command must have ended, and its root process must have been
    /// reaped.
    ///
    /// `measured_ns` is the duration of the measurement, as reported in the result of the command.
    /// The measurement is assumed to have ended when the command ended. I/O that was done more than
    /// two seconds before the start of the measurement counts as preparation.
    #[must_use]
    pub fn end(mut self, ran_ns: u64, measured_ns: Option<u64>) -> Command {
        self.look();
        let after = own();
        let left: Vec<String> = self
            .processes
            .iter()
            .filter(|((pid, _), process)| process.alive && *pid != self.root)
            .map(|((pid, _), process)| format!("{} ({pid})", process.name))
            .collect();
        let moved = after.zip(self.before).map(|((after, _), before)| after.minus(before));
        let moved_measured = measured_ns.zip(self.sum()).map(|(measured_ns, all)| {
            let begun_ns = ran_ns.saturating_sub(measured_ns.saturating_add(END_NS));
            let prepared = self.sums.iter().rev().find(|(at_ns, _)| *at_ns <= begun_ns);
            all.minus(prepared.map_or(IoBytes::default(), |(_, sum)| *sum))
        });
        let cancelled = after.map(|(_, cancelled)| cancelled.saturating_sub(self.cancelled_before));
        let mut keys: Vec<(u64, u64)> = self
            .files
            .iter()
            .filter(|(_, file)| file.device || file.size_bytes >= Some(DATA_BYTES_MIN))
            .map(|(key, _)| *key)
            .collect();
        keys.sort_by_key(|key| std::cmp::Reverse(self.files[key].size_bytes));
        let named = keys.len() as u64;
        keys.truncate(KEPT_MAX);
        let files = keys.iter().map(|key| add_location(self.files[key].clone())).collect();
        let mut processes: Vec<CommandProcess> = self
            .processes
            .iter()
            .map(|((pid, _), process)| CommandProcess {
                name: format!("{} ({pid})", process.name),
                moved: process.moved,
                files: (0..keys.len() as u64)
                    .filter(|at| process.files.contains(&keys[*at as usize]))
                    .collect(),
            })
            .collect();
        let seen = processes.len() as u64;
        processes.sort_by_key(|process| {
            let moved = process.moved.unwrap_or_default();
            std::cmp::Reverse((!process.files.is_empty(), moved.read_bytes + moved.written_bytes))
        });
        processes.truncate(KEPT_MAX);
        Command {
            processes_seen: seen,
            processes,
            unreadable: self.unreadable.len() as u64,
            left_running: left,
            preloaded: self.preloaded.into_iter().collect(),
            foreign: self.foreign.into_iter().take(FOREIGN_MAX).collect(),
            moved,
            moved_measured,
            cancelled_bytes: cancelled,
            files_seen: named,
            files,
            remote: self.remote.iter().map(ToString::to_string).collect(),
            ..Command::default()
        }
    }
}

/// Value of `O_DIRECT` on this architecture, as shown in `/proc/PID/fdinfo`.
fn libc_o_direct() -> u32 {
    rustix::fs::OFlags::DIRECT.bits()
}

/// Reads the `flags` line of an open file, in octal.
fn open_flags(pid: i32, fd: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u64::from_str_radix(line.trim(), 8).ok()
}

/// Suffix that the kernel adds to the path of a deleted file.
const GONE: &str = " (deleted)";

/// Adds the file system that stores a file, and the devices of this file system.
fn add_location(mut file: OpenedFile) -> OpenedFile {
    let path = Path::new(&file.path);
    file.there = path.exists();
    // For a deleted file, use the file system of its directory.
    let path = path.ancestors().find(|at| at.exists()).unwrap_or(path);
    let rest = mount::underlying_storage(path);
    file.mount_point = rest.mount.mount_point;
    file.on = match rest.mount.on.is_empty() {
        false => rest.mount.on,
        // An overlay stores its data on the file system of its upper directory.
        true => {
            let layers = stack::read(path).layers.into_iter().filter(|layer| layer.top);
            layers.map(|layer| layer.device.name).collect()
        }
    };
    file.file_system = rest.mount.file_system;
    file
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Stdio;

    #[test]
    fn observes_files_and_bytes_of_grandchildren() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = folder.path().join("data");
        // Syncs the file first, because writing to a page that is already dirty would not be
        // counted as another write.
        let mut made = fs::File::create(&file).unwrap();
        std::io::Write::write_all(&mut made, &vec![7u8; 4 << 20]).unwrap();
        made.sync_all().unwrap();
        // A grandchild process opens the file and keeps it open until it receives a line.
        let script = format!(
            "sh -c 'exec 3<>{0}; echo ready; read line; dd if=/dev/urandom of={0} bs=1M count=4 \
             conv=fsync,notrunc 2>/dev/null' & wait",
            file.display()
        );
        let mut child = std::process::Command::new("sh")
            .args(["-c", &format!("exec 4<&0; {}", script.replace("read line", "read line <&4"))])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut watch = CommandWatch::begin(i32::try_from(child.id()).unwrap());
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        watch.look();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"go\n").unwrap();
        child.wait().unwrap();
        let command = watch.end(1, None);
        let file = file.canonicalize().unwrap();
        let seen = command.files.iter().find(|f| Path::new(&f.path) == file).unwrap();
        assert!(seen.read && seen.written && seen.direct == Some(false), "{seen:?}");
        assert_eq!(seen.size_bytes, Some(4 << 20));
        assert!(command.processes_seen >= 2, "{command:?}");
        if let Some(moved) = command.moved {
            assert!(moved.written_bytes >= 4 << 20, "{command:?}");
        }
        assert!(command.left_running.is_empty(), "{command:?}");
    }

    #[test]
    fn flags_are_read_as_the_kernel_writes_them() {
        let file = fs::File::open("/dev/null").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(open_flags(own, fd).unwrap() & 0o3, 0);
    }
}
