//! A rate limit with burst credit, like that of cloud volumes.
//!
//! The limit is modelled as two token buckets in series (the generic cell rate algorithm, ITU-T
//! I.371). Credit accumulates at the baseline rate, up to `credit_ops`. While credit remains,
//! operations pass at up to the burst rate. A large operation counts as one operation for each
//! `op_bytes` of its size. The byte rate may also be limited. (AWS documents for EBS gp2: 3 IOPS
//! for each GiB, a burst of 3,000 IOPS, 5.4 million credits; operations of up to 256 KiB count
//! once.)

use super::context::{Block, BlockRef, Blocks, Builder, Context, SteadyWrites};
use super::request::{Action, Request};
use crate::core::{Order, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Limit {
    below: BlockRef,
    credit: StationId,
    peak: StationId,
    bytes: Option<StationId>,
    op_bytes: u64,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block("below", "the block that is limited")?;
    let baseline = reader.number("baseline_ops_per_s", 0.01, 1e9, "the sustained rate")?;
    let peak = reader.number_or("burst_ops_per_s", baseline, 0.01, 1e9)?;
    let credit = reader.number_or("credit_ops", 1.0, 1.0, 1e15)?;
    let bytes = match reader.has("rate_bytes_per_s") {
        true => Some(reader.number("rate_bytes_per_s", 1.0, 1e13, "")?),
        false => None,
    };
    let bucket = |rate_per_s, burst| Order::Bucket { rate_per_s, burst };
    Ok(Box::new(Limit {
        below: builder.find(below),
        // The bucket of the peak rate stores at most the credit for 10 ms of operations.
        peak: builder.station("peak", 1, bucket(peak, (peak / 100.0).max(1.0))),
        credit: builder.station("credit", 1, bucket(baseline, credit)),
        bytes: bytes.map(|rate| builder.station("bytes", 1, bucket(rate, (rate / 100.0).max(1e6)))),
        op_bytes: reader.count_or("op_bytes", 256 << 10, 512, 1 << 30)?,
    }))
}

impl Block for Limit {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        if matches!(request.action, Action::Read | Action::Write) {
            let ops = request.size_bytes.div_ceil(self.op_bytes).max(1);
            cx.program.take(self.credit, ops);
            cx.program.take(self.peak, ops);
            if let Some(bytes) = self.bytes {
                cx.program.take(bytes, request.size_bytes);
            }
        }
        cx.route(self.below, request);
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        cx.lay(self.below, request);
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below, node)
    }

    fn settle(&mut self, _writes: &[SteadyWrites], take: &mut dyn FnMut(StationId, u64)) {
        let buckets = [Some(self.credit), Some(self.peak), self.bytes];
        buckets.into_iter().flatten().for_each(|bucket| take(bucket, u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use crate::blocks::{Action, Request};
    use crate::core::NS_PER_S;
    use crate::system::{Event, System};

    #[test]
    fn credit_is_spent_at_the_burst_rate_and_then_the_baseline_rules() {
        let text = "[model]\nname = \"t\"\nentry = \"limit\"\n[block.limit]\nkind = \"limit\"\nfrom \
                    = \"chosen\"\nbelow = \"drive\"\nbaseline_ops_per_s = 100\nburst_ops_per_s = \
                    1000\ncredit_ops = 5000\n[block.drive]\nkind = \"drive\"\nfrom = \
                    \"chosen\"\nread_us = 1\nread_bytes_per_s = \"1 TB/s\"\nwrite_bytes_per_s = \"1 \
                    TB/s\"\n";
        let mut system = System::parse("t", text, 1).unwrap();
        let request = Request::new(Action::Read, 0, 0, 4096);
        (0..8).for_each(|i| system.submit(i, 0, &request));
        let mut per_second = vec![0u64; 21];
        while let Some(Event::Done { tag, .. }) = system.next() {
            let second = (system.now_ns() / NS_PER_S) as usize;
            if second > 20 {
                break;
            }
            per_second[second] += 1;
            system.submit(tag, 0, &request);
        }
        // The burst uses up 5,000 credits at a net rate of 900 a second (1,000 - 100), so it lasts
        // 5.6 s.
        assert!((per_second[2] as f64 / 1000.0 - 1.0).abs() < 0.02, "{per_second:?}");
        assert!((per_second[15] as f64 / 100.0 - 1.0).abs() < 0.02, "{per_second:?}");
        assert!(per_second[5] > 400 && per_second[6] < 200, "{per_second:?}");
    }
}
