//! Places the threads of a load on CPUs.
//!
//! A disk reports a completion by an interrupt. If the interrupt arrives on the CPU on which the
//! thread waits, the thread continues immediately. Otherwise another CPU must wake up first, which
//! in virtual machines often costs more than an I/O. The engine therefore pins threads to the CPUs
//! of the disk's interrupts, if there is such a CPU for each thread. Otherwise the scheduler places
//! them; it moves a thread towards the source of its wake-ups.
//!
//! These rates were measured on a virtual disk with one queue, with 4 KiB operations. Each rate is
//! given as a multiple of the rate of fio 3.33. The scheduler placed fio's threads, and the runs of
//! fio and Plimsoll alternated:
//!
//! - One thread at depth 1: 1.11 if pinned to the CPU of the interrupt, 0.90 if pinned to the other
//!   CPU, 0.99 if not pinned.
//! - One thread at depth 4: 1.05 to 1.18 if pinned to the CPU of the interrupt, 0.98 if pinned to
//!   the other CPU, 1.02 if not pinned.
//! - Two threads at depth 1, each pinned to its own CPU: 1.02 to 1.16. Without pinning: 1.04 to
//!   1.07.
//! - Both threads pinned to the CPU of the interrupt: 1.13 to 1.35. They then share this CPU, but a
//!   load that generates and checks content needs both CPUs.

use std::path::{Path, PathBuf};

use plimsoll_observe::completion::{self, Completion, Line};
use plimsoll_observe::stack;

/// Placement of a thread, and the reason for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// CPU that the thread is pinned to; `None` if the scheduler places it.
    pub cpu: Option<usize>,
    /// Reason for the placement.
    pub why: String,
}

impl Placement {
    /// Pins a thread to a CPU.
    #[must_use]
    pub fn pinned(cpu: usize, why: impl Into<String>) -> Self {
        Self { cpu: Some(cpu), why: why.into() }
    }

    /// Returns the placement of a thread whose operations are executed by `workers` other threads.
    #[must_use]
    pub fn with_workers(workers: u32) -> Self {
        Self::unpinned(format!(
            "{workers} worker threads execute the operations: the scheduler places all threads"
        ))
    }

    fn unpinned(why: impl Into<String>) -> Self {
        Self { cpu: None, why: why.into() }
    }
}

/// Source of the wake-ups of a load's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeSource {
    /// No wake-ups: operations complete in the thread that submits them.
    Nothing,
    /// Replies that arrive over the network.
    Network,
    /// Other threads execute the I/O: threads of this process, of the kernel or of another process.
    /// The value is their name.
    Threads(String),
    /// Disks of this host.
    Disks(Vec<Completion>),
    /// Unknown source.
    Unknown,
}

/// Returns the source of wake-ups for a load on these paths.
#[must_use]
pub fn wake_source(paths: &[PathBuf]) -> WakeSource {
    let mut disks: Vec<Completion> = Vec::new();
    for path in paths {
        match wake_source_of(path) {
            WakeSource::Disks(more) => {
                for disk in more {
                    if !disks.iter().any(|known| known.device == disk.device) {
                        disks.push(disk);
                    }
                }
            }
            other => return other,
        }
    }
    if disks.is_empty() { WakeSource::Unknown } else { WakeSource::Disks(disks) }
}

fn wake_source_of(path: &Path) -> WakeSource {
    let stack = stack::read(path);
    if !stack.fuse_connections.is_empty() {
        return WakeSource::Threads("the process that serves a FUSE file system".to_owned());
    }
    // Devices whose I/O is executed by threads of the kernel.
    let carried = |name: &str| ["loop", "nbd", "zram"].iter().any(|kind| name.starts_with(kind));
    if let Some(layer) = stack.layers.iter().find(|layer| carried(&layer.device.name)) {
        return WakeSource::Threads(format!("the kernel threads of {}", layer.device.name));
    }
    let lowest = stack.layers.iter().filter(|layer| layer.device.below.is_empty());
    let disks: Option<Vec<Completion>> =
        lowest.map(|layer| completion::read_host(layer.number)).collect();
    disks.filter(|disks| !disks.is_empty()).map_or(WakeSource::Unknown, WakeSource::Disks)
}

/// Places `threads` threads on the CPUs in `allowed`.
#[must_use]
pub fn place_threads(
    wake_source: &WakeSource,
    threads: usize,
    allowed: &[usize],
) -> Vec<Placement> {
    let all = |why: String| vec![Placement::unpinned(why); threads];
    if threads > allowed.len() {
        return all(format!(
            "there are {threads} threads but only {} CPUs: the scheduler places the threads",
            allowed.len()
        ));
    }
    let on = |cpus: &[usize], why: &str| -> Vec<Placement> {
        cpus.iter().take(threads).map(|cpu| Placement::pinned(*cpu, why)).collect()
    };
    match wake_source {
        WakeSource::Nothing => on(
            allowed,
            "each operation completes in the thread that submits it: each thread is pinned to a CPU",
        ),
        WakeSource::Network => {
            all("replies come over the network: the scheduler places the thread".to_owned())
        }
        WakeSource::Threads(whose) => {
            all(format!("the thread waits for {whose}: the scheduler places all of these threads"))
        }
        WakeSource::Unknown => {
            let says = "the CPU that handles completions of the target is unknown: the scheduler \
                        places the thread";
            all(says.to_owned())
        }
        WakeSource::Disks(disks) => {
            let names: Vec<&str> = disks.iter().map(|disk| disk.device.as_str()).collect();
            let names = names.join(", ");
            if disks.iter().all(|disk| has_queue_for_each(disk, allowed)) {
                let cpus = nearest_first(disks, allowed);
                return on(&cpus, &format!("each CPU has its own hardware queue on {names}"));
            }
            by_interrupts(disks, &names, threads, allowed, &on)
        }
    }
}

/// Places threads on the CPUs that receive the disks' interrupts, if there is such a CPU for each
/// thread.
fn by_interrupts(
    disks: &[Completion],
    names: &str,
    threads: usize,
    allowed: &[usize],
    on: &dyn Fn(&[usize], &str) -> Vec<Placement>,
) -> Vec<Placement> {
    let free = |why: String| vec![Placement::unpinned(why); threads];
    let mut each = disks.iter().map(interrupted);
    let cpus = each.next().unwrap_or_default();
    if cpus.is_empty() {
        return free(format!(
            "the CPU that handles completions of {names} is unknown: the scheduler places the \
             thread"
        ));
    }
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let list = list.join(", ");
    if each.any(|other| other != cpus) {
        return free(format!(
            "completions of {names} arrive on different CPUs: the scheduler places the thread"
        ));
    }
    if !cpus.iter().all(|cpu| allowed.contains(cpu)) {
        return free(format!(
            "completions of {names} arrive on CPU {list}, where this process may not run: the \
             scheduler places the thread"
        ));
    }
    if threads > cpus.len() {
        return free(format!(
            "there are {threads} threads, but completions of {names} arrive only on CPU {list}: \
             the scheduler places the threads"
        ));
    }
    on(&cpus, &format!("interrupts of {names} arrive on CPU {list}"))
}

/// Returns true if each allowed CPU has its own hardware queue. An operation then completes on the
/// CPU that submitted it.
fn has_queue_for_each(disk: &Completion, allowed: &[usize]) -> bool {
    let alone = |cpu: &usize| disk.queues.iter().any(|queue| queue[..] == [*cpu as u32]);
    allowed.iter().all(alone)
}

/// Returns the CPUs that receive a disk's interrupts.
fn interrupted(disk: &Completion) -> Vec<usize> {
    let count = |line: &Line| line.taken.values().sum::<u64>();
    let most = disk.lines.iter().map(count).max().unwrap_or(0);
    // Interrupts for configuration changes and administration are rare, so their lines are ignored.
    let used = |line: &&Line| match most {
        0 => !line.name.ends_with("config"),
        most => count(line) >= most / 100 && count(line) > 0,
    };
    let mut cpus: Vec<usize> = Vec::new();
    for line in disk.lines.iter().filter(used) {
        cpus.extend(line.cpus.iter().map(|cpu| *cpu as usize));
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Sorts the CPUs, so that CPUs near the disks' controllers come first.
fn nearest_first(disks: &[Completion], allowed: &[usize]) -> Vec<usize> {
    let near =
        |cpu: &usize| disks.iter().all(|disk| disk.local_cpus.iter().any(|c| *c as usize == *cpu));
    let (mut cpus, rest): (Vec<usize>, Vec<usize>) = allowed.iter().copied().partition(near);
    cpus.extend(rest);
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn line(name: &str, cpus: &[u32], count: u64) -> Line {
        let taken = BTreeMap::from([(cpus[0], count)]);
        Line { number: 1, name: name.to_owned(), cpus: cpus.to_vec(), taken }
    }

    fn virtual_disk(name: &str, cpu: u32) -> Completion {
        Completion {
            device: name.to_owned(),
            queues: vec![vec![0, 1, 2, 3]],
            lines: vec![line("virtio1-config", &[0], 0), line("virtio1-req.0", &[cpu], 5_000)],
            local_cpus: vec![0, 1, 2, 3],
        }
    }

    fn cpus(wake_source: &WakeSource, threads: usize, allowed: &[usize]) -> Vec<Option<usize>> {
        let places = place_threads(wake_source, threads, allowed);
        assert!(places.iter().all(|place| !place.why.is_empty()));
        places.iter().map(|place| place.cpu).collect()
    }

    #[test]
    fn one_thread_goes_where_the_disks_only_queue_interrupts() {
        let disk = WakeSource::Disks(vec![virtual_disk("vda", 1)]);
        assert_eq!(cpus(&disk, 1, &[0, 1]), [Some(1)]);
        let why = &place_threads(&disk, 1, &[0, 1])[0].why;
        assert_eq!(why, "interrupts of vda arrive on CPU 1");
        // There are more threads than CPUs that receive interrupts, or a CPU is not in the allowed
        // set.
        assert_eq!(cpus(&disk, 2, &[0, 1]), [None, None]);
        assert_eq!(cpus(&disk, 1, &[0, 2]), [None]);
        // The interrupts of the two disks arrive on different CPUs.
        let two = vec![virtual_disk("vda", 1), virtual_disk("vdb", 2)];
        assert_eq!(cpus(&WakeSource::Disks(two), 1, &[0, 1, 2]), [None]);
        let alike = vec![virtual_disk("vda", 1), virtual_disk("vdb", 1)];
        assert_eq!(cpus(&WakeSource::Disks(alike), 1, &[0, 1, 2]), [Some(1)]);
    }

    #[test]
    fn threads_of_a_disk_with_a_queue_for_each_cpu_are_near_it() {
        let disk = Completion {
            device: "nvme0n1".to_owned(),
            queues: (0..4).map(|cpu| vec![cpu]).collect(),
            lines: Vec::new(),
            local_cpus: vec![2, 3],
        };
        let disks = WakeSource::Disks(vec![disk.clone()]);
        assert_eq!(cpus(&disks, 3, &[0, 1, 2, 3]), [Some(2), Some(3), Some(0)]);
        assert_eq!(cpus(&disks, 5, &[0, 1, 2, 3]), [None; 5]);
        // There are four queues for eight CPUs, so only the interrupts determine the placement.
        let fewer = Completion {
            queues: (0..4).map(|cpu| vec![cpu, cpu + 4]).collect(),
            lines: (0..4).map(|cpu| line("nvme0q", &[cpu + 4], 900)).collect(),
            ..disk
        };
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(cpus(&WakeSource::Disks(vec![fewer]), 2, &all), [Some(4), Some(5)]);
    }

    #[test]
    fn lines_that_are_seldom_used_say_nothing() {
        let mut disk = virtual_disk("vda", 3);
        disk.lines.push(line("nvme0q0", &[0], 12));
        assert_eq!(interrupted(&disk), [3]);
        for line in &mut disk.lines {
            line.taken.clear();
        }
        assert_eq!(interrupted(&disk), [0, 3], "before the first use, all but configuration");
        disk.lines.clear();
        assert_eq!(cpus(&WakeSource::Disks(vec![disk]), 1, &[0, 1, 2, 3]), [None]);
    }

    #[test]
    fn what_no_interrupt_tells_of_is_left_to_the_scheduler() {
        assert_eq!(cpus(&WakeSource::Network, 2, &[0, 1]), [None, None]);
        assert_eq!(cpus(&WakeSource::Threads("a pool".to_owned()), 1, &[0, 1]), [None]);
        assert_eq!(cpus(&WakeSource::Unknown, 1, &[0, 1]), [None]);
        assert_eq!(cpus(&WakeSource::Nothing, 2, &[4, 5, 6]), [Some(4), Some(5)]);
    }
}
