//! A set of magnetic disks. [`super::hdd`] models the arm of each disk.
//!
//! Extents of `extent_bytes` are laid out contiguously. A hash selects the disk of each extent, and
//! the extent's position on the disk. Only the outer `used_share` of the capacity is used, so a
//! disk that is half full seeks over half of its surface.

use super::context::{Block, Blocks, Builder, Context};
use super::inside::Source;
use super::request::{ANY_DEVICE, Action, Request, scatter};
use crate::core::hdd::{Arm, HddSpec};
use crate::core::{Order, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Disks {
    devices: Vec<StationId>,
    extent_bytes: u64,
    /// Number of extents that fit on one disk, in the share of its capacity that is used.
    places: u64,
    capacity_bytes: f64,
}

/// Default seek times to the next track and across the full stroke, relative to the mean.
const SEEK_MIN: f64 = 0.08;
const SEEK_FULL: f64 = 2.0;

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let count = reader.count_or("count", 1, 1, 100_000)?;
    let mean = reader.number("seek_ms_mean", 0.01, 100.0, "the average seek time")?;
    let outer =
        reader.number("outer_bytes_per_s", 1e6, 1e9, "the media rate of the outer tracks")?;
    let spec = HddSpec {
        capacity_bytes: reader.number("capacity_bytes", 1e9, 1e15, "formatted capacity")?,
        rotation_rpm: reader.number("rotation_rpm", 1000.0, 50_000.0, "revolutions a minute")?,
        seek_ms_min: reader.number_or("seek_ms_min", SEEK_MIN * mean, 0.0, 100.0)?,
        seek_ms_mean: mean,
        seek_ms_full: reader.number_or("seek_ms_full", SEEK_FULL * mean, 0.01, 200.0)?,
        outer_bytes_per_s: outer,
        inner_bytes_per_s: reader.number_or("inner_bytes_per_s", 0.5 * outer, 1e6, outer)?,
        overhead_us: reader.number_or("overhead_us", 50.0, 0.0, 1e5)?,
        write_settle_ms: reader.number_or("write_settle_ms", 0.5, 0.0, 100.0)?,
        queue_depth: reader.count_or("queue_depth", 32, 1, 1024)? as usize,
        age_weight: reader.number_or("age_weight", 0.01, 0.0, 10.0)?,
        background_wait_ms: reader.number_or("background_wait_ms", 1000.0, 0.0, 1e6)?,
    };
    check_seeks(reader, &spec)?;
    let extent_bytes = reader.count_or("extent_bytes", 4 << 20, 4096, 1 << 40)?;
    let used = reader.number_or("used_share", 1.0, 0.001, 1.0)?;
    let devices = (0..count)
        .map(|d| builder.station(&format!("{d}"), 1, Order::Disk(Box::new(Arm::new(spec)))))
        .collect();
    let places = ((spec.capacity_bytes * used) as u64 / extent_bytes).max(1);
    let capacity_bytes = count as f64 * spec.capacity_bytes;
    Ok(Box::new(Disks { devices, extent_bytes, places, capacity_bytes }))
}

/// Checks that the seek curve has the stated mean. Otherwise a changed mean would have no effect.
fn check_seeks(reader: &Reader<'_>, spec: &HddSpec) -> Result<(), ModelError> {
    // Values that were computed from one another may differ by rounding errors.
    const ROUNDING: f64 = 1e-6;
    let HddSpec { seek_ms_min: min, seek_ms_mean: mean, seek_ms_full: full, .. } = *spec;
    if min > full * (1.0 + ROUNDING) {
        let reason = format!("is {min}, but must be at most `seek_ms_full`, which is {full}");
        return Err(reader.bad("seek_ms_min", &reason));
    }
    let (low, high) = spec.seek_ms_mean_range();
    if mean < low * (1.0 - ROUNDING) || mean > high * (1.0 + ROUNDING) {
        let reason = format!(
            "is {mean}, but must be from {low:.2} to {high:.2} if `seek_ms_min` is {min} and \
             `seek_ms_full` is {full}; change them together, for example to {:.2} and {:.2}",
            SEEK_MIN * mean,
            SEEK_FULL * mean
        );
        return Err(reader.bad("seek_ms_mean", &reason));
    }
    Ok(())
}

impl Block for Disks {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let write = match request.action {
            Action::Read => {
                cx.serve(Source::Hdd);
                false
            }
            Action::Write => {
                cx.land(Source::Hdd);
                true
            }
            // The write cache is off. Each write waits until the platter has rotated to the sector
            // to be written, and a flush takes no time.
            Action::Flush | Action::Meta => return,
        };
        let end = request.offset_bytes + request.size_bytes.max(1);
        let mut at = request.offset_bytes;
        while at < end {
            let extent = at / self.extent_bytes;
            let stop = end.min((extent + 1) * self.extent_bytes);
            let hash = scatter(request.key(extent));
            let device = match request.device {
                ANY_DEVICE => (hash >> 40) as usize,
                device => device as usize,
            };
            let place = (hash & 0xff_ffff_ffff) % self.places;
            let address = place * self.extent_bytes + at % self.extent_bytes;
            let mut station = self.devices[device % self.devices.len()];
            if let Some(loss) = cx.station_loss(station) {
                let others = (1..self.devices.len()).map(|other| device + other);
                let mut others = others.map(|other| self.devices[other % self.devices.len()]);
                // A write for a lost disk goes to another disk that is not lost. A read from the
                // lost disk fails.
                match others.find(|other| write && cx.station_loss(*other).is_none()) {
                    Some(other) => {
                        cx.wait_for_notice(loss);
                        station = other;
                    }
                    None => return cx.refuse_lost(loss),
                }
            }
            let bytes = ((stop - at) as f64 * request.stored_share) as u64;
            cx.program.visit_disk(station, address, bytes.max(1), write);
            at = stop;
        }
    }

    fn capacity_bytes(&self, _node: u16, _blocks: &Blocks) -> Option<f64> {
        Some(self.capacity_bytes)
    }

    fn is_lost(&self, request: &Request, blocks: &Blocks) -> bool {
        let Some(losses) = &blocks.losses else { return false };
        request.units(self.extent_bytes).any(|extent| {
            let device = (scatter(request.key(extent)) >> 40) as usize % self.devices.len();
            losses.device(self.devices[device]).is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::system::System;

    fn built(seeks: &str) -> Result<(), String> {
        let text = format!(
            "[model]\nname = \"t\"\nentry = \"hdd\"\n[block.hdd]\nkind = \"hdd\"\nfrom = \
             \"chosen\"\ncapacity_bytes = \"4 TB\"\nrotation_rpm = 15000\nouter_bytes_per_s = \
             \"180 MB/s\"\n{seeks}\n"
        );
        System::parse("t", &text, 1).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mean_seek_time_that_the_curve_cannot_have_is_rejected() {
        for mean in ["0.01", "3.4", "100"] {
            assert_eq!(built(&format!("seek_ms_mean = {mean}")), Ok(()), "the defaults follow it");
        }
        let own = "seek_ms_min = 0.6\nseek_ms_full = 16.5\n";
        for mean in ["5.9", "8.2", "9.08"] {
            assert_eq!(built(&format!("{own}seek_ms_mean = {mean}")), Ok(()), "{mean}");
        }
        let says = built(&format!("{own}seek_ms_mean = 3.4")).unwrap_err();
        assert!(
            says.contains("`hdd.seek_ms_mean` is 3.4, but must be from 5.90 to 9.08"),
            "{says}"
        );
        assert!(says.contains("change them together, for example to 0.27 and 6.80"), "{says}");
        assert!(built(&format!("{own}seek_ms_mean = 9.1")).is_err());
        let says = built("seek_ms_min = 10\nseek_ms_mean = 8\nseek_ms_full = 0.5").unwrap_err();
        assert!(says.contains("`hdd.seek_ms_min` is 10, but must be at most"), "{says}");
        assert_eq!(built("seek_ms_min = 5\nseek_ms_mean = 5\nseek_ms_full = 5"), Ok(()));
    }
}
