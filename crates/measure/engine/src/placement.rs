//! Places the threads of a load on CPUs.
//!
//! A disk reports a completion by an interrupt. If the interrupt arrives on the CPU on which the
//! thread waits, the thread continues immediately. Otherwise another CPU must wake up first. In
//! virtual machines, such a wake-up often takes longer than an I/O. The engine therefore pins each
//! thread to a CPU that receives interrupts of the disk, if there are enough such CPUs. Otherwise
//! the scheduler chooses their CPUs. It moves a thread towards the CPU from which it is woken.
//!
//! The following rates were measured with 4 KiB operations on a virtual disk that has one queue.
//! Each rate is a multiple of the rate that fio 3.33 reached. The scheduler placed the threads of
//! fio. Runs of fio and of Plimsoll alternated:
//!
//! - One thread at depth 1. The rate was 1.11 if the thread was pinned to the CPU of the interrupt,
//!   0.90 if it was pinned to the other CPU, and 0.99 if it was not pinned.
//! - One thread at depth 4. The rate was 1.05 to 1.18 if the thread was pinned to the CPU of the
//!   interrupt, 0.98 if it was pinned to the other CPU, and 1.02 if it was not pinned.
//! - Two threads at depth 1. The rate was 1.02 to 1.16 if each thread was pinned to a different
//!   CPU, and 1.04 to 1.07 if the threads were not pinned.
//! - Two threads at depth 1, which were both pinned to the CPU of the interrupt. The rate was 1.13
//!   to 1.35. However, the threads then share this CPU, and a load that generates and checks
//!   content needs both CPUs.

use std::path::{Path, PathBuf};

use plimsoll_observe::completion::{self, Completion, Line};
use plimsoll_observe::stack;

/// CPU on which a thread runs, and the reason for this choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// CPU to which the thread is pinned; `None` if the scheduler chooses the CPU.
    pub cpu: Option<usize>,
    /// Reason for this choice, in words.
    pub why: String,
}

impl Placement {
    /// Pins a thread to a CPU.
    #[must_use]
    pub fn pinned(cpu: usize, why: impl Into<String>) -> Self {
        Self { cpu: Some(cpu), why: why.into() }
    }

    /// Returns the placement of a thread if `workers` other threads execute its operations.
    #[must_use]
    pub fn with_workers(workers: u32) -> Self {
        Self::unpinned(format!(
            "{workers} worker threads execute the operations, so the scheduler chooses the CPU of \
             each thread"
        ))
    }

    fn unpinned(why: impl Into<String>) -> Self {
        Self { cpu: None, why: why.into() }
    }
}

/// Where the wake-ups of a load's threads come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeSource {
    /// The threads are never woken, because each operation completes in the thread that submits it.
    Nothing,
    /// Replies that arrive over the network wake the threads.
    Network,
    /// Other threads execute the I/O and wake the driving threads. They belong to this process, to
    /// the kernel or to another process. The value is the name of these threads.
    Threads(String),
    /// The disks of this host wake the threads with interrupts.
    Disks(Vec<Completion>),
    Unknown,
}

/// Determines where the wake-ups come from for a load on these paths.
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
    // Threads of the kernel execute the I/O of these devices.
    let carried = |name: &str| ["loop", "nbd", "zram"].iter().any(|kind| name.starts_with(kind));
    if let Some(layer) = stack.layers.iter().find(|layer| carried(&layer.device.name)) {
        return WakeSource::Threads(format!("the kernel threads of {}", layer.device.name));
    }
    let lowest = stack.layers.iter().filter(|layer| layer.device.below.is_empty());
    let disks: Option<Vec<Completion>> =
        lowest.map(|layer| completion::read_host(layer.number)).collect();
    disks.filter(|disks| !disks.is_empty()).map_or(WakeSource::Unknown, WakeSource::Disks)
}

/// Chooses the placement of `threads` threads. Only the CPUs in `allowed` may be used.
#[must_use]
pub fn place_threads(
    wake_source: &WakeSource,
    threads: usize,
    allowed: &[usize],
) -> Vec<Placement> {
    let all = |why: String| vec![Placement::unpinned(why); threads];
    if threads > allowed.len() {
        return all(format!(
            "there are {threads} threads but only {} CPUs, so the scheduler chooses the CPU of each \
             thread",
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
            let says = "replies arrive over the network, so the scheduler chooses the CPU of each \
                        thread";
            all(says.to_owned())
        }
        WakeSource::Threads(whose) => {
            let says = format!(
                "the thread waits for {whose}, so the scheduler chooses the CPUs of all these \
                 threads"
            );
            all(says)
        }
        WakeSource::Unknown => {
            let says = "it is unknown which CPU handles the I/O completions of the target, so the \
                        scheduler chooses the CPU of each thread";
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

/// Places the threads on the CPUs that receive interrupts of the disks. If there are fewer such
/// CPUs than threads, the scheduler chooses the CPUs of the threads.
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
            "it is unknown which CPU handles the I/O completions of {names}, so the scheduler \
             chooses the CPU of each thread"
        ));
    }
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let list = list.join(", ");
    if each.any(|other| other != cpus) {
        return free(format!(
            "the I/O completions of {names} arrive on different CPUs, so the scheduler chooses the \
             CPU of each thread"
        ));
    }
    if !cpus.iter().all(|cpu| allowed.contains(cpu)) {
        return free(format!(
            "the I/O completions of {names} arrive on CPU {list}, but this process is not allowed \
             to run there, so the scheduler chooses the CPU of each thread"
        ));
    }
    if threads > cpus.len() {
        return free(format!(
            "there are {threads} threads, but the I/O completions of {names} arrive only on CPU \
             {list}, so the scheduler chooses the CPU of each thread"
        ));
    }
    on(&cpus, &format!("interrupts of {names} arrive on CPU {list}"))
}

/// Returns true if each allowed CPU has its own hardware queue of the disk. Each operation then
/// completes on the CPU that submitted it.
fn has_queue_for_each(disk: &Completion, allowed: &[usize]) -> bool {
    let alone = |cpu: &usize| disk.queues.iter().any(|queue| queue[..] == [*cpu as u32]);
    allowed.iter().all(alone)
}

/// Returns the CPUs that receive interrupts of a disk.
fn interrupted(disk: &Completion) -> Vec<usize> {
    let count = |line: &Line| line.taken.values().sum::<u64>();
    let most = disk.lines.iter().map(count).max().unwrap_or(0);
    // Some interrupt lines are only used for configuration changes and administration. They have
    // few interrupts, so this function ignores them.
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

/// Sorts the CPUs. CPUs that are near the controllers of the disks come first.
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
        // The threads are not pinned if there are more threads than CPUs that receive interrupts,
        // or if a CPU that receives interrupts is not allowed.
        assert_eq!(cpus(&disk, 2, &[0, 1]), [None, None]);
        assert_eq!(cpus(&disk, 1, &[0, 2]), [None]);
        // The threads are not pinned if the interrupts of two disks arrive on different CPUs.
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
        // Here, eight CPUs share four queues. The placement therefore only depends on the
        // interrupts.
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
