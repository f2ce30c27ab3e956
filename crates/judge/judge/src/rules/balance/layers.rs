//! Compares each layer, from the top layer down to the disks, with the next lower layer.

use plimsoll_evidence::environment::Device;
use plimsoll_evidence::observed::{BackingFile, DeviceTotals};

use super::{BalanceResult, Scale};
use crate::location;

/// Allowed difference between layers, as a share of a busy device's bytes. A difference arises
/// because the counters of the layers are read one after the other.
const SKEW: f64 = 0.01;
/// I/O to a backing file counts as direct if at most this share of the file is cached.
const RESIDENT_MAX: f64 = 0.05;

impl Scale<'_> {
    fn device_totals(&self, name: &str) -> Option<&DeviceTotals> {
        self.bundle.observed.devices.iter().find(|device| device.name == name)
    }

    /// Compares each layer with the next lower layer.
    pub(super) fn judge_layers(&self) -> Vec<BalanceResult> {
        let devices = self.bundle.environment.devices.iter();
        let resting = devices.filter(|device| !device.below.is_empty());
        resting.filter_map(|device| self.layer(device)).collect()
    }

    fn layer(&self, device: &Device) -> Option<BalanceResult> {
        let upper = self.totals(self.device_totals(&device.name)?);
        // If a device moved only a small part of the load, it cannot explain the missing bytes.
        if upper < self.requested - self.requested.min(self.least) {
            return None;
        }
        let backing = self.bundle.observed.backing_files.iter().find(|b| b.device == device.name);
        let is_file = device.kind == "loop";
        let below: Vec<&DeviceTotals> = if is_file {
            self.devices_under_file(device)
                .iter()
                .filter_map(|name| self.device_totals(name))
                .collect()
        } else {
            device.below.iter().filter_map(|name| self.device_totals(name)).collect()
        };
        if below.is_empty() {
            // An old bundle may list layers without their counters.
            let unseen = is_file && backing.is_some();
            return unseen.then(|| {
                let says = format!("the storage below {}'s file is not visible", device.name);
                BalanceResult::Open(says)
            });
        }
        let copies = if self.is_read { 1 } else { copies(device) };
        let beside = |d: &&DeviceTotals| d.beside.map_or(0, |moved| self.pick(moved));
        let lower: u64 = below
            .iter()
            .map(
                |d| if is_file { self.totals(d) } else { self.totals(d).saturating_sub(beside(d)) },
            )
            .sum::<u64>()
            / copies;
        let names: Vec<&str> = below.iter().map(|device| device.name.as_str()).collect();
        let beside = below.iter().map(beside).fold(0, u64::saturating_add);
        let step = Step { device, backing, upper, lower, beside, names: names.join(", ") };
        Some(if is_file { self.judge_backing_file(&step) } else { self.judge_mapping(&step) })
    }

    /// Returns the devices on which a loop device's file is stored.
    fn devices_under_file(&self, device: &Device) -> Vec<String> {
        let below = &self.bundle.environment.below;
        let of_file = below.iter().find(|mount| device.below.contains(&mount.path));
        let of_backing = || {
            let backing = &self.bundle.observed.backing_files;
            let file = backing.iter().find(|file| file.device == device.name)?;
            below.iter().find(|mount| mount.path == file.path)
        };
        of_file.or_else(of_backing).map_or_else(
            // Older bundles do not record the devices on which the file is stored. The disks are
            // used instead.
            || {
                let disks = location::disks(self.bundle);
                disks.into_iter().map(|(disk, _)| disk.name.clone()).collect()
            },
            |mount| mount.on.clone(),
        )
    }

    /// Returns the number of bytes by which two layers may differ without a finding.
    fn slack(&self, upper: u64) -> u64 {
        (self.requested - self.requested.min(self.least)) + (upper as f64 * SKEW) as u64
    }

    fn judge_mapping(&self, step: &Step<'_>) -> BalanceResult {
        let missing = step.upper.saturating_sub(step.lower);
        if missing <= self.slack(step.upper) {
            return self.judge_direct_access(step);
        }
        // Other processes may have requested the missing bytes from the upper device.
        let others = self.own().filter(|_| self.counts_own());
        let others = others.map_or(step.upper, |own| step.upper.saturating_sub(own));
        if missing > self.slack(step.upper) + others {
            return BalanceResult::Short(step.says(self));
        }
        BalanceResult::Open(format!(
            "{}; it is also unknown which process requested the other bytes",
            step.says(self)
        ))
    }

    /// Subtracts the bytes that other processes may have requested directly from the lower devices.
    /// Returns `Open` if too few bytes remain.
    fn judge_direct_access(&self, step: &Step<'_>) -> BalanceResult {
        let through = self.own().filter(|_| self.counts_own());
        let through = through.map_or(0, |own| step.upper.saturating_sub(own));
        let elsewhere = self.bundle.observed.other_disks.map_or(0, |moved| self.pick(moved.disks));
        let known = through.saturating_add(step.beside).saturating_add(elsewhere);
        let directly = self.other_processes_bytes().map(|others| others.saturating_sub(known));
        let surely = directly.map(|directly| step.lower.saturating_sub(directly));
        match surely {
            Some(surely) if step.upper.saturating_sub(surely) > self.slack(step.upper) => {
                BalanceResult::Open(format!(
                    "{} were requested from {}, but it is unknown how much of this was moved by {}: \
                     the lower layer moved {} in total, and other processes may have accessed it \
                     directly",
                    self.size(step.upper),
                    step.device.name,
                    step.names,
                    self.size(step.lower)
                ))
            }
            _ => BalanceResult::Moved,
        }
    }

    fn judge_backing_file(&self, step: &Step<'_>) -> BalanceResult {
        if step.lower < self.least {
            return BalanceResult::Short(step.says(self));
        }
        // Kernel threads do the I/O of loop devices. If these threads did not move the bytes, they
        // did not read or write the storage of the backing file.
        let kernel = self.bundle.observed.kernel.map(|moved| self.pick(moved));
        let kernel = kernel.map(|moved| moved.saturating_sub(step.dirty_bytes(self.is_read)));
        if let Some(kernel) = kernel.filter(|kernel| *kernel < self.least) {
            let says = format!(
                "of {} requested from {}, the kernel moved only {} between the backing file and {}, \
                 and other processes moved the other bytes: the page cache of the backing file \
                 served the I/O",
                self.size(step.upper),
                step.device.name,
                self.size(kernel),
                step.names
            );
            return BalanceResult::Short(says);
        }
        let beside = kernel.map_or(0, |kernel| kernel.saturating_sub(step.upper));
        let others = self.other_processes_bytes().map(|others| others.saturating_add(beside));
        let surely = others.map(|others| step.lower.saturating_sub(others));
        let missing = surely.map(|surely| step.upper.saturating_sub(surely));
        // The direct-I/O flag of a loop device is believed only if the bytes of the kernel threads
        // are known.
        let past_cache = step.is_past_cache() && kernel.is_some();
        if missing.is_some_and(|missing| missing <= self.slack(step.upper)) || past_cache {
            return BalanceResult::Moved;
        }
        BalanceResult::Open(format!(
            "{} were requested from {}, but it is unknown how much of this was moved by {}: the \
             lower layer moved {} in total, which may include I/O of other processes",
            self.size(step.upper),
            step.device.name,
            step.names,
            self.size(step.lower)
        ))
    }
}

/// One device and the devices of the next lower layer.
struct Step<'a> {
    device: &'a Device,
    backing: Option<&'a BackingFile>,
    upper: u64,
    lower: u64,
    /// Bytes that reached the lower devices without passing through the upper device. The field
    /// `lower` does not include them.
    beside: u64,
    names: String,
}

impl Step<'_> {
    fn says(&self, scale: &Scale<'_>) -> String {
        format!(
            "of {} {} through {}, {} moved only {}: a layer between them served the other bytes",
            scale.size(self.upper),
            scale.verb(),
            self.device.name,
            self.names,
            scale.size(self.lower)
        )
    }

    /// Returns the number of bytes in the page cache under a loop device that are still dirty.
    fn dirty_bytes(&self, is_read: bool) -> u64 {
        let Some(backing) = self.backing.filter(|_| !is_read) else { return 0 };
        let after = backing.dirty_bytes_after.unwrap_or(0);
        after.saturating_sub(backing.dirty_bytes_before.unwrap_or(0))
    }

    /// Returns true if the loop device bypasses the page cache, according to its flag and to the
    /// cached share of its file.
    fn is_past_cache(&self) -> bool {
        let Some(backing) = self.backing else { return false };
        let resident = backing.resident_bytes_before.max(backing.resident_bytes_after);
        let share = resident.zip(backing.size_bytes);
        self.device.direct_io == Some(true)
            && backing.direct_align_bytes != Some(0)
            && share.is_some_and(|(held, size)| held as f64 <= size as f64 * RESIDENT_MAX)
    }
}

/// Returns the number of copies that a RAID mapping writes of each byte. Returns 1 if this number
/// is unknown.
fn copies(device: &Device) -> u64 {
    match device.mapping.as_deref() {
        Some("raid1") => device.below.len().max(1) as u64,
        Some("raid10") => 2,
        _ => 1,
    }
}
