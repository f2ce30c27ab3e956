//! Bytes in flight at the start of the measurement. A device may have moved them before the start,
//! although their operations completed during the measurement.

use super::Scale;
use crate::figures::measured;
use crate::rules::evidence;

impl Scale<'_> {
    /// Returns the mean number of bytes in flight (Little's law), limited to the number that the
    /// plan allows.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        let Some(phase) = measured(self.bundle) else { return 0 };
        let classes = self.bundle.run.classes.iter();
        let of_side = classes.filter(|class| class.is_read == self.is_read && class.count > 0);
        let bytes: f64 = of_side
            .map(|class| {
                let in_flight = class.latency_ns_sum as f64 / phase.duration_ns.max(1) as f64;
                in_flight * class.size_bytes as f64 / class.count as f64
            })
            .sum();
        let streams = evidence::streams(self.bundle).iter().map(|stream| {
            let sizes = stream.sizes.iter().chain(&stream.write_sizes);
            let largest = sizes.map(|size| size.size_bytes).max().unwrap_or(0);
            stream.outstanding().saturating_mul(largest)
        });
        let possible = streams.fold(0, u64::saturating_add);
        // A mail store has no streams.
        if possible > 0 { (bytes as u64).min(possible) } else { bytes as u64 }
    }

    /// Returns the balance under the assumption that the device moved all bytes in flight before
    /// the start of the measurement.
    pub(super) fn without_in_flight(&self) -> Self {
        let left = self.requested.saturating_sub(self.in_flight_bytes());
        let least = self.least as f64 * left as f64 / self.requested as f64;
        Self { least: least as u64, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::Bundle;

    use super::super::{BalanceResult, side};
    use crate::rules::fixtures;

    /// A case of the adversary on a busy host: a small number of 64 KiB reads, compared with a
    /// queue of 8 MiB.
    fn with_few_reads(count: u64, latency_ns: u64, moved_bytes: u64) -> BalanceResult {
        let plan = "sizes = \"64KiB\"\nqueue_depth = 128";
        let mut bundle: Bundle = fixtures::reads_with("queue_depth = 8", plan);
        let class = &mut bundle.run.classes[0];
        (class.count, class.size_bytes) = (count, count * 65_536);
        class.latency_ns_sum = count * latency_ns;
        bundle.observed.devices[0].read_bytes = moved_bytes;
        bundle.observed.generator.storage_read_bytes = Some(moved_bytes);
        side(&bundle, true).map_or(BalanceResult::Moved, |side| side.result)
    }

    #[test]
    fn bytes_in_flight_may_have_moved_before() {
        let short = |result: &BalanceResult| matches!(result, BalanceResult::Short(_));
        let moved = 120 * 65_536 * 7 / 10;
        // The measurement takes 60 s, and each of the 120 reads takes 20 s: on average 40 reads
        // were in flight.
        let open = with_few_reads(120, 20_000_000_000, moved);
        let says = |result: &BalanceResult| format!("{result:?}");
        assert!(matches!(&open, BalanceResult::Open(_)), "{open:?}");
        assert!(says(&open).contains("2.5 MiB were in flight"), "{open:?}");
        assert!(short(&with_few_reads(120, 1_000_000, moved)));
        // The queue contains at most 8 MiB, regardless of the latency.
        assert!(short(&with_few_reads(240, 200_000_000_000, 4096)));
    }
}
