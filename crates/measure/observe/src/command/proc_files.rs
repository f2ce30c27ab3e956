//! Keeps files of `/proc` open. Reading a file that is already open needs one system call; opening,
//! reading and closing it would need ten.
//!
//! An open `/proc` file always refers to the same process. After the process has ended, reads of
//! the file fail, even if the process id is reused (fs/proc/base.c, `get_proc_task`).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use plimsoll_evidence::observed::IoBytes;

/// Maximum number of threads of a process whose files stay open. If a process has more threads,
/// each read opens their files again. A process can usually have 1,024 open files.
const THREADS_MAX: usize = 8;
/// Link count of a `task` directory in which no thread is listed.
const LINKS: u64 = 2;

/// Open `/proc` files of one process.
#[derive(Debug)]
pub(super) struct ProcFiles {
    pid: i32,
    io: Option<File>,
    tasks: File,
    /// The file `children` of each thread. It lists only the children that this thread started.
    children: Vec<File>,
}

impl ProcFiles {
    /// Opens the files of a process.
    pub(super) fn open(pid: i32) -> io::Result<Self> {
        let tasks = File::open(format!("/proc/{pid}/task"))?;
        let io = File::open(format!("/proc/{pid}/io")).ok();
        let mut kept = Self { pid, io, tasks, children: Vec::new() };
        kept.list();
        Ok(kept)
    }

    /// Returns the number of threads of the process; 0 after the process was reaped.
    /// `proc_task_getattr` counts threads as links.
    fn threads(&self) -> usize {
        let links = self.tasks.metadata().map_or(0, |about| about.nlink());
        usize::try_from(links.saturating_sub(LINKS)).unwrap_or(usize::MAX)
    }

    fn list(&mut self) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        let open = |task: fs::DirEntry| File::open(task.path().join("children")).ok();
        self.children = tasks.flatten().take(THREADS_MAX).filter_map(open).collect();
    }

    /// Adds the ids of the process's live children to the list. Returns false if the process has
    /// ended.
    pub(super) fn children(&mut self, found: &mut Vec<i32>) -> bool {
        let threads = self.threads();
        if threads == 0 {
            return false;
        }
        if threads > THREADS_MAX {
            found.extend(list_children(self.pid));
            return true;
        }
        if threads != self.children.len() {
            self.list();
        }
        let before = found.len();
        if !self.read_children(found) {
            // One thread has ended, and another thread has started.
            found.truncate(before);
            self.list();
            self.read_children(found);
        }
        true
    }

    fn read_children(&self, found: &mut Vec<i32>) -> bool {
        self.children.iter().all(|file| {
            let Ok(text) = text(file) else { return false };
            found.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
            true
        })
    }

    /// Returns the storage I/O of the process, and the bytes of its cancelled writes.
    ///
    /// # Errors
    /// Either the process has ended, or this user may not read its counters.
    pub(super) fn io(&self) -> io::Result<(IoBytes, u64)> {
        let Some(file) = &self.io else { return Err(io::ErrorKind::NotFound.into()) };
        let text = text(file)?;
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse::<u64>().ok()
        };
        let counted = (of("read_bytes"), of("write_bytes"), of("cancelled_write_bytes"));
        match counted {
            (Some(read_bytes), Some(written_bytes), Some(cancelled)) => {
                Ok((IoBytes { read_bytes, written_bytes }, cancelled))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Reads a `/proc` file again from the start.
fn text(file: &File) -> io::Result<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match file.read_at(&mut buffer, text.len() as u64)? {
            0 => break,
            read => text.extend_from_slice(&buffer[..read]),
        }
        // A read that returns less than a page has reached the end.
        if text.len() % buffer.len() != 0 {
            break;
        }
    }
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns the children of all threads of a process.
fn list_children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn finds_children_of_all_threads_and_detects_an_ended_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut kept = ProcFiles::open(own).unwrap();
        assert!(kept.io().is_ok());
        for threads in [0, 3, THREADS_MAX + 4] {
            let stay = std::sync::Arc::new(std::sync::Barrier::new(threads + 2));
            let other = |stay: std::sync::Arc<std::sync::Barrier>| {
                std::thread::spawn(move || {
                    stay.wait();
                    stay.wait();
                })
            };
            let all: Vec<_> = (0..threads).map(|_| other(std::sync::Arc::clone(&stay))).collect();
            // The thread that was created last starts a process.
            let (reported, started) = std::sync::mpsc::channel();
            let parent = std::thread::spawn({
                let stay = std::sync::Arc::clone(&stay);
                move || {
                    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
                    reported.send(i32::try_from(child.id()).unwrap()).unwrap();
                    stay.wait();
                    stay.wait();
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            });
            let child = started.recv().unwrap();
            let mut of_child = ProcFiles::open(child).unwrap();
            stay.wait();
            let mut found = Vec::new();
            assert!(kept.children(&mut found));
            assert!(found.contains(&child), "{threads} threads: {found:?}");
            let mut none = Vec::new();
            assert!(of_child.children(&mut none) && none.is_empty());
            stay.wait();
            parent.join().unwrap();
            all.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(!of_child.children(&mut none) && of_child.io().is_err());
        }
    }
}
