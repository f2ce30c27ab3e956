//! Reads the storage I/O of the host's other processes, from `read_bytes` and `write_bytes` in
//! `/proc/PID/io`. Processes are identified by id, never by name. Only root (CAP_SYS_PTRACE) can
//! read the counters of other users' processes.

use std::collections::BTreeMap;

use plimsoll_evidence::observed::Neighbours;
use procfs::process::all_processes;

use crate::namespace;

/// Storage I/O counters of all other processes.
#[derive(Clone, Debug, Default)]
pub struct NeighbourReading {
    processes: BTreeMap<i32, ProcessIo>,
    unreadable: u64,
}

#[derive(Clone, Debug)]
struct ProcessIo {
    name: String,
    /// Start time of the process, in ticks since boot. It distinguishes processes with the same id,
    /// because ids are reused.
    started: u64,
    /// Parent process id. When a parent reaps a child, the kernel adds the child's counters to
    /// those of the parent.
    parent: i32,
    read: u64,
    written: u64,
}

impl NeighbourReading {
    /// Reads the counters of all processes except this process and the processes `mine`.
    pub fn now(mine: &[i32]) -> Self {
        let mut reading = Self::default();
        let own = std::process::id();
        for process in all_processes().into_iter().flatten().flatten() {
            if process.pid as u32 == own || mine.contains(&process.pid) {
                continue;
            }
            // The process ended while its files were read.
            let Ok(stat) = process.stat() else { continue };
            // Kernel threads are skipped, because they perform I/O for other processes.
            if stat.flags & PF_KTHREAD != 0 {
                continue;
            }
            let Ok(io) = process.io() else {
                reading.unreadable += 1;
                continue;
            };
            let (name, started) = (stat.comm, stat.starttime);
            let (parent, read, written) = (stat.ppid, io.read_bytes, io.write_bytes);
            let moved = ProcessIo { name, started, parent, read, written };
            reading.processes.insert(process.pid, moved);
        }
        reading
    }

    /// Returns the I/O since an earlier reading. I/O of processes that started and ended between
    /// the two readings is not included.
    pub fn since(&self, before: &Self) -> Neighbours {
        let (mut read, mut written) = (0u64, 0u64);
        let mut largest: Option<(u64, String)> = None;
        for (pid, now) in &self.processes {
            let then = before.processes.get(pid).filter(|then| then.started == now.started);
            // When a child process ends, the kernel adds its counters to those of its parent. The
            // earlier reading already counted a part of the child's I/O, so this part is
            // subtracted.
            let gone = before
                .processes
                .iter()
                .filter(|(child, then)| then.parent == *pid && !self.processes.contains_key(child));
            let (old_read, old_written) = then
                .into_iter()
                .chain(gone.map(|(_, child)| child))
                .fold((0, 0), |(read, written), t| (read + t.read, written + t.written));
            let moved_read = now.read.saturating_sub(old_read);
            let moved_written = now.written.saturating_sub(old_written);
            read += moved_read;
            written += moved_written;
            let moved = moved_read + moved_written;
            if moved > 0 && largest.as_ref().is_none_or(|(most, _)| moved > *most) {
                largest = Some((moved, format!("process {pid} ({})", now.name)));
            }
        }
        let known = !self.processes.is_empty() || self.unreadable == 0;
        Neighbours {
            storage_read_bytes: known.then_some(read),
            storage_written_bytes: known.then_some(written),
            largest: largest.map(|(_, name)| name),
            unreadable: self.unreadable,
            outside_unseen: namespace::hides_processes(),
        }
    }
}

/// Flag that marks a kernel thread (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(processes: &[(i32, u64, u64)]) -> NeighbourReading {
        let moved = |started, read| ProcessIo {
            name: "backup".into(),
            started,
            parent: 1,
            read,
            written: 1,
        };
        let processes =
            processes.iter().map(|(pid, started, read)| (*pid, moved(*started, *read))).collect();
        NeighbourReading { processes, unreadable: 0 }
    }

    #[test]
    fn reports_the_io_of_others_and_the_largest() {
        let moved = reading(&[(7, 1, 900), (8, 1, 50)]).since(&reading(&[(7, 1, 100), (8, 1, 50)]));
        assert_eq!(moved.storage_read_bytes, Some(800));
        assert_eq!(moved.largest.as_deref(), Some("process 7 (backup)"));
    }

    #[test]
    fn a_reused_id_is_another_process() {
        let moved = reading(&[(7, 2, 90)]).since(&reading(&[(7, 1, 100)]));
        assert_eq!(moved.storage_read_bytes, Some(90));
    }

    #[test]
    fn reaped_children_do_not_inflate_the_parents_io() {
        let before = reading(&[(1, 1, 100), (9, 1, 5000)]);
        let moved = reading(&[(1, 1, 5150)]).since(&before);
        assert_eq!(moved.storage_read_bytes, Some(50));
    }

    #[test]
    fn without_a_readable_process_io_is_unknown() {
        let hidden = NeighbourReading { unreadable: 5, ..NeighbourReading::default() };
        assert_eq!(hidden.since(&hidden).storage_read_bytes, None);
        assert_eq!(hidden.since(&hidden).unreadable, 5);
    }
}
