//! Observes devices outside the target's stack: other partitions, volumes and loop devices that use
//! the target's devices, and the other disks of the host.

use std::collections::BTreeMap;

use plimsoll_evidence::environment::Transport;
use plimsoll_evidence::observed::{DeviceTotals, IoBytes, OtherDisks};

use crate::device::{self, DeviceNumber};
use crate::sysfs::{Sysfs, names_in};

/// Devices outside the target's stack. They are devices whose I/O also appears in the counters of
/// the target's devices, and disks that do not store the target.
#[derive(Clone, Debug, Default)]
pub struct OutsideDevices {
    /// Pairs of devices: a device of the stack, and an outside device directly above it. Each pair
    /// also contains the number of devices among which the I/O of the outside device is divided.
    beside: Vec<(DeviceNumber, DeviceNumber, u64)>,
    /// Disks that do not store the target, each with a flag that is true if the disk is in memory.
    other_disks: Vec<(DeviceNumber, bool)>,
    before: BTreeMap<DeviceNumber, IoBytes>,
    /// Last reading of the devices in `beside`.
    beside_after: BTreeMap<DeviceNumber, IoBytes>,
}

impl OutsideDevices {
    /// Finds the devices outside the stack. `stack` contains the underlying devices of the target.
    #[must_use]
    pub fn of(sysfs: &Sysfs, stack: &[DeviceNumber]) -> Self {
        let mut found = Self::default();
        for number in sysfs.all() {
            if stack.contains(&number) {
                for above in above(sysfs, number).into_iter().filter(|n| !stack.contains(n)) {
                    let shared = device::describe(sysfs, above).map_or(1, |d| d.below.len() as u64);
                    found.beside.push((number, above, shared.max(1)));
                }
                continue;
            }
            let Some(described) = device::describe(sysfs, number) else { continue };
            let is_disk = described.device.kind == "disk" && described.below.is_empty();
            if is_disk && described.device.size_bytes != Some(0) {
                use Transport::{Pmem, Ram, Test, Zram};
                let memory = matches!(described.device.transport, Some(Zram | Ram | Pmem | Test));
                found.other_disks.push((number, memory));
            }
        }
        found
    }

    /// Starts counting. The caller must have read the counters of the target's devices before.
    /// Outside I/O is subtracted from the I/O of these devices, so it must not be counted over a
    /// longer period than theirs.
    pub fn begin(&mut self) {
        let other_disks = self.other_disks.iter().map(|(number, _)| *number);
        self.before = read(self.beside().chain(other_disks));
        self.beside_after.clear();
    }

    /// Reads the counters of the outside devices. Afterwards, the caller must read the counters of
    /// the target's devices.
    pub fn sample(&mut self) {
        self.beside_after = read(self.beside());
    }

    /// Returns the I/O that other disks have done since the start.
    #[must_use]
    pub fn other_disks(&self) -> OtherDisks {
        let now = read(self.other_disks.iter().map(|(number, _)| *number));
        let mut sum = OtherDisks::default();
        for (number, memory) in &self.other_disks {
            let moved = self.rise(&now, *number);
            let part = if *memory { &mut sum.memory } else { &mut sum.disks };
            *part = part.plus(moved);
        }
        sum
    }

    /// To the totals of a device, adds the I/O that outside devices caused on it up to the last
    /// sample.
    pub fn note(&self, number: DeviceNumber, totals: &mut DeviceTotals) {
        let beside = self.beside.iter().filter(|(below, ..)| *below == number);
        let sum = beside.fold(IoBytes::default(), |sum, (_, above, shared)| {
            let all = self.rise(&self.beside_after, *above);
            sum.plus(IoBytes {
                read_bytes: all.read_bytes / shared,
                written_bytes: all.written_bytes / shared,
            })
        });
        totals.beside = Some(sum);
    }

    fn rise(&self, now: &BTreeMap<DeviceNumber, IoBytes>, number: DeviceNumber) -> IoBytes {
        match (now.get(&number), self.before.get(&number)) {
            (Some(now), Some(before)) => now.minus(*before),
            _ => IoBytes::default(),
        }
    }

    fn beside(&self) -> impl Iterator<Item = DeviceNumber> {
        self.beside.iter().map(|(_, above, _)| *above)
    }
}

fn read(numbers: impl Iterator<Item = DeviceNumber>) -> BTreeMap<DeviceNumber, IoBytes> {
    let read = |number: DeviceNumber| {
        let counters = number.counters()?;
        let moved =
            IoBytes { read_bytes: counters.read_bytes, written_bytes: counters.written_bytes };
        Some((number, moved))
    };
    numbers.filter_map(read).collect()
}

/// Returns the devices directly above a device. These are the holders and the partitions of the
/// device.
fn above(sysfs: &Sysfs, number: DeviceNumber) -> Vec<DeviceNumber> {
    let directory = sysfs.directory(number);
    let holders = names_in(&directory.join("holders"));
    let partitions = names_in(&directory)
        .into_iter()
        .filter(|name| directory.join(name).join("partition").exists());
    holders.into_iter().chain(partitions).filter_map(|name| sysfs.number(&name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_after_the_last_sample_is_not_beside_the_target() {
        let (disk, other) =
            (DeviceNumber { major: 8, minor: 0 }, DeviceNumber { major: 8, minor: 2 });
        let at = |read_bytes, written_bytes| {
            BTreeMap::from([(other, IoBytes { read_bytes, written_bytes })])
        };
        let mut outside = OutsideDevices {
            beside: vec![(disk, other, 1)],
            before: at(100, 1000),
            beside_after: at(150, 1700),
            ..OutsideDevices::default()
        };
        let mut totals = DeviceTotals::default();
        outside.note(disk, &mut totals);
        assert_eq!(totals.beside, Some(IoBytes { read_bytes: 50, written_bytes: 700 }));
        outside.begin();
        outside.note(disk, &mut totals);
        assert_eq!(totals.beside, Some(IoBytes::default()), "no sample was taken yet");
    }
}
