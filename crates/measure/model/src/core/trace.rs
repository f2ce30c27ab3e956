//! Traces the critical paths of some I/Os, to compute the contribution of each station to the
//! latency.

use super::program::StepKind;
use super::sim::Sim;

/// Time that a traced I/O spent at a station on its critical path, or the sum of these times over
/// several traced I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedTime {
    /// Number of visits on the critical path.
    pub visits: u64,
    /// Time that the I/O waited in the queue of the station.
    pub waited_ns: u64,
    /// Time for which the station served the I/O.
    pub served_ns: u64,
}

/// Times at which a traced I/O reached a step, started to be served there, and left the step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) enter_ns: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl Sim {
    /// Traces the critical path of one in `every` I/Os, separately for `classes` classes. If
    /// `every` is 0, no I/O is traced.
    pub fn trace_one_in(&mut self, every: u32, classes: usize) {
        self.trace_every = every;
        self.traced = vec![TracedTime::default(); classes * self.stations.len()];
        self.traced_ios = vec![(0, 0); classes];
    }

    /// Returns three values for the traced I/Os of a class: their number, the sum of their
    /// latencies, and the total time at each station. The times at all stations add up exactly to
    /// the sum of the latencies.
    pub fn traced(&self, class: usize) -> (u64, u64, &[TracedTime]) {
        let n = self.stations.len();
        let (ios, latency_ns) = self.traced_ios.get(class).copied().unwrap_or_default();
        (ios, latency_ns, self.traced.get(class * n..(class + 1) * n).unwrap_or(&[]))
    }

    /// Adds the critical path of a finished I/O to the sums of its class.
    pub(super) fn add_trace(&mut self, io: u32) {
        let slot = &self.slots[io];
        let n = self.stations.len();
        let base = usize::from(slot.class) * n;
        let Some(sums) = self.traced.get_mut(base..base + n) else { return };
        let total = &mut self.traced_ios[usize::from(slot.class)];
        total.0 += 1;
        total.1 += self.now_ns - slot.submitted_ns;
        // Step ranges whose times are still to be added: first the main program, then the branch
        // that completed each fork. The join has recorded the end step of this branch.
        let mut walks = vec![(0usize, slot.steps.len() - 1)];
        while let Some((mut pc, end)) = walks.pop() {
            while pc < end {
                let step = &slot.steps[pc];
                match step.kind {
                    StepKind::Visit => {
                        let mark = slot.marks[pc];
                        let sum = &mut sums[step.target as usize];
                        sum.visits += 1;
                        sum.waited_ns += mark.start_ns - mark.enter_ns;
                        sum.served_ns += mark.end_ns - mark.start_ns;
                        pc += 1;
                    }
                    StepKind::Fork => {
                        let last_end = slot.marks[pc].enter_ns as usize;
                        let mut head = pc + 1;
                        for _ in 0..step.count {
                            let length = usize::from(slot.steps[head].count);
                            if step.extra > 0 && head + length == last_end {
                                walks.push((head + 1, last_end));
                            }
                            head += length + 1;
                        }
                        pc = head;
                    }
                    _ => pc += 1,
                }
            }
        }
    }
}
