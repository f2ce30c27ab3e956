//! Reads the completion path of a disk: its hardware queues, the interrupts of its controller and
//! the CPUs that handle these interrupts (kernel: Documentation/ABI/stable/sysfs-block `mq`,
//! Documentation/core-api/irq/irq-affinity.rst, Documentation/filesystems/proc.rst `interrupts`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::device::{DeviceNumber, disk_directory};
use crate::sysfs::{Sysfs, names_in, text};

/// Interrupt line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub number: u32,
    /// Name of the handler, such as `virtio1-req.0` or `nvme0q1`; empty if unknown.
    pub name: String,
    /// CPUs to which the interrupt is currently delivered.
    pub cpus: Vec<u32>,
    /// For each CPU: how often it has handled the interrupt since boot. CPUs that never handled the
    /// interrupt are not listed.
    pub taken: BTreeMap<u32, u64>,
}

/// Completion path of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Kernel name of the disk.
    pub device: String,
    /// For each hardware queue: the CPUs that submit to it; empty if unknown.
    pub queues: Vec<Vec<u32>>,
    /// Interrupts of the disk's controller, which may also serve other disks.
    pub lines: Vec<Line>,
    /// CPUs that are local to the disk's controller; empty if unknown.
    pub local_cpus: Vec<u32>,
}

/// Reads the completion path of a disk. For a partition, reads the path of its disk. `proc` is the
/// `/proc` directory of the host.
#[must_use]
pub fn of(sysfs: &Sysfs, proc: &Path, number: DeviceNumber) -> Option<Completion> {
    let directory = disk_directory(sysfs, number);
    let device = directory.file_name()?.to_string_lossy().into_owned();
    let mq = directory.join("mq");
    let mut queues: Vec<(u32, Vec<u32>)> = names_in(&mq)
        .iter()
        .filter_map(|name| {
            let cpus = text(&mq.join(name).join("cpu_list"))?;
            Some((name.parse().ok()?, cpu_list(&cpus)))
        })
        .collect();
    queues.sort();
    let controller = controller(&directory);
    let numbers = controller.as_deref().map(interrupts_of).unwrap_or_default();
    let known = interrupts(&fs::read_to_string(proc.join("interrupts")).unwrap_or_default());
    let line = |number: u32| {
        let (name, taken) = known.get(&number).cloned().unwrap_or_default();
        let affinity = |file: &str| text(&proc.join(format!("irq/{number}/{file}")));
        let cpus = affinity("effective_affinity_list").filter(|list| !list.is_empty());
        let cpus = cpus.or_else(|| affinity("smp_affinity_list")).unwrap_or_default();
        Line { number, name, cpus: cpu_list(&cpus), taken }
    };
    let local = controller.and_then(|controller| text(&controller.join("local_cpulist")));
    Some(Completion {
        device,
        queues: queues.into_iter().map(|(_, cpus)| cpus).collect(),
        lines: numbers.into_iter().map(line).collect(),
        local_cpus: cpu_list(&local.unwrap_or_default()),
    })
}

/// Reads the completion path of a disk on this host.
#[must_use]
pub fn read_host(number: DeviceNumber) -> Option<Completion> {
    of(&Sysfs::host(), Path::new("/proc"), number)
}

/// Returns the directory of the device that raises the disk's interrupts. This device is the disk's
/// nearest ancestor that has interrupts.
fn controller(disk: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(disk).ok()?;
    let has = |directory: &&Path| !interrupts_of(directory).is_empty();
    if let Some(found) = real.ancestors().find(has) {
        return Some(found.to_path_buf());
    }
    // With NVMe multipathing, the disk is a child of a subsystem. The directory of the subsystem
    // contains links to its controllers.
    let subsystem = real.ancestors().find(|directory| {
        directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with("nvme-subsys"))
    })?;
    let links = names_in(subsystem).into_iter().map(|name| subsystem.join(name));
    let mut controllers = links.filter(|place| place.is_symlink());
    controllers.find_map(|link| {
        let real = fs::canonicalize(link).ok()?;
        real.ancestors().find(has).map(Path::to_path_buf)
    })
}

/// Returns the interrupt numbers of a device.
fn interrupts_of(directory: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> =
        names_in(&directory.join("msi_irqs")).iter().filter_map(|n| n.parse().ok()).collect();
    if numbers.is_empty() {
        let line = text(&directory.join("irq")).and_then(|text| text.parse().ok());
        numbers.extend(line.filter(|number: &u32| *number > 0));
    }
    numbers.sort_unstable();
    numbers
}

/// Parses `/proc/interrupts`. Returns the handler name and the count of each CPU for each interrupt
/// number.
fn interrupts(text: &str) -> BTreeMap<u32, (String, BTreeMap<u32, u64>)> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let one = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let mut fields = rest.split_ascii_whitespace();
        let counts: Vec<u64> =
            fields.by_ref().take(cpus.len()).map_while(|field| field.parse().ok()).collect();
        let taken = cpus.iter().copied().zip(counts).filter(|(_, count)| *count > 0).collect();
        let name = fields.last().unwrap_or_default().to_owned();
        Some((number.trim().parse().ok()?, (name, taken)))
    };
    lines.filter_map(one).collect()
}

/// Parses a list of CPUs such as `0-3,8` or `0, 1, 2`.
fn cpu_list(text: &str) -> Vec<u32> {
    let mut cpus = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last.min(first.saturating_add(8191)));
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1\n \
        36:          0      68001 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n \
        37:          5          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n\
        NMI:         0          0   Non-maskable interrupts\n\
        ERR:         7\n";

    #[test]
    fn reads_interrupts_with_their_cpus() {
        let known = interrupts(INTERRUPTS);
        assert_eq!(known.len(), 2);
        assert_eq!(known[&36], ("virtio1-req.0".to_owned(), BTreeMap::from([(1, 68001)])));
        assert_eq!(known[&37].1, BTreeMap::from([(0, 5)]));
        assert!(interrupts("").is_empty());
    }

    #[test]
    fn parses_both_forms_of_cpu_lists() {
        assert_eq!(cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpu_list("0, 1, 5"), [0, 1, 5]);
        assert!(cpu_list("").is_empty() && cpu_list("x").is_empty());
    }
}
