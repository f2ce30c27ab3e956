//! Waits for completions on a driving thread. The thread polls for a limited time and then sleeps.
//!
//! The kernel has to wake a thread that sleeps. On a device with a latency of 20 µs in a virtual
//! machine, the wake-up takes longer than the operation, and the run would report it as latency of
//! the storage. The polling time adapts to recent waits, so a slow device costs no CPU.
//!
//! While the thread polls, it sometimes yields its CPU, because the kernel thread that executes the
//! operation may be waiting for the same CPU. The thread does not yield at every step. If other
//! programs use all CPUs, each yield would last for the whole time slices of these programs.
//!
//! On some targets, a polling thread delays the storage itself. An example is a loop device on a
//! virtual disk: the kernel's threads and interrupts need the CPU on which the thread polls. Reads
//! of such a device took 46 µs with polling, but 34 µs without polling. The thread therefore tries
//! both methods, polling and sleeping, and uses the method with the shorter latency.

use plimsoll_evidence::run::Polling;
use plimsoll_sys::SysError;

use super::Queue;
use crate::timer::Timer;

/// Maximum time for which a thread polls before it sleeps.
pub const SPIN_NS_MAX: u64 = 200_000;
/// Minimum time for which a thread polls. This time is shorter than a wake-up takes.
const SPIN_NS_MIN: u64 = 20_000;
/// Polling time as a multiple of the mean wait. If four operations at depth 4 complete together,
/// three of the four waits are short, and the remaining wait is four times as long as the mean.
const MEAN_TIMES: u64 = 8;
/// Time for which the thread polls between two yields.
const YIELD_NS: u64 = 2_000;
/// Longest gap between two clock readings that counts as polling time. If the gap is longer,
/// another thread used the CPU in the meantime.
const LOOK_NS_MAX: u64 = 2 * YIELD_NS;
/// Minimum duration of a block. In one block, all waits use the same method: polling or sleeping.
const BLOCK_NS: u64 = 60_000_000;
/// Minimum number of completions in a block. Completions in the first 20 ms of the block are not
/// counted.
const BLOCK_COMPLETIONS_MIN: u64 = 100;
/// Time from the start of a block to the start of its measurement. During this time, the effects of
/// the previous block end.
const SETTLING_NS: u64 = 20_000_000;
/// Number of blocks with which a thread begins. These blocks alternate between polling and
/// sleeping.
const FIRST_BLOCKS: u32 = 4;
/// Number of alternating blocks with which a thread begins if polling and sleeping have similar
/// latencies, which differ by less than 10 %.
const FIRST_BLOCKS_MAX: u32 = 16;
/// After this number of blocks, the thread uses for one block the method that it had rejected,
/// polling or sleeping. The trial takes 0.25 % of the time, which does not change a p99.
const TRIAL_BLOCKS: u32 = 400;
/// A thread polls if the latency with polling is at most this percentage of the latency with
/// sleeping. A reduction of 1 % must justify the CPU time of polling. If the thread slept despite a
/// larger reduction, the run would report the wake-up as latency of the storage.
const POLLED_PERCENT_MAX: u64 = 99;
/// Upper limit for the time between the ends of two waits, as it is counted. With this limit, one
/// long stall does not decide between polling and sleeping.
const COUNTED_NS_MAX: u64 = 4_000_000;
/// After this number of waits, the thread polls for the maximum time in one wait. It does this even
/// if the mean wait is too long for polling, because most of the mean may be wake-up time.
const PROBE_WAITS: u32 = 64;

/// How long a thread polls, and the statistics of recent waits that determine this time.
#[derive(Clone, Debug, Default)]
pub struct Spin {
    /// Longest time for which a wait polls; 0 turns polling off.
    longest_ns: u64,
    /// Mean duration of the recent waits, in ns.
    mean_ns: u64,
    waits: u32,
    /// Time at which the latest wait ended; 0 if the queue has been empty since then.
    ended_ns: u64,
    /// Number of the current block. The next field contains the start time of the block.
    block: u32,
    block_start_ns: u64,
    polled: MeanLatency,
    slept: MeanLatency,
    /// Total time that the thread spent polling without receiving a completion.
    pub spun_ns: u64,
    /// Number of completions that the thread reaped since the last wait.
    reaped: u64,
}

/// Mean latency of the operations during one kind of wait (polling or sleeping). It is computed
/// with Little's law.
#[derive(Clone, Copy, Debug, Default)]
struct MeanLatency {
    /// Weighted mean of the latencies in the earlier blocks. The weight of the most recent block is
    /// one half. The value is 0 during the first block.
    mean_ns: u64,
    /// Sum, over the current block, of the number of operations in flight multiplied by the time
    /// for which it lasted, in ns.
    in_flight_ns: u64,
    /// Number of completions in the current block.
    completions: u64,
}

impl MeanLatency {
    /// Ends the current block. Returns true if the mean of this block is more than twice or less
    /// than half the mean of the earlier blocks: the device has then changed.
    fn end_block(&mut self) -> bool {
        let block_ns = self.in_flight_ns / self.completions.max(1);
        let earlier_ns = self.mean_ns;
        let mean_ns = if earlier_ns == 0 { block_ns } else { u64::midpoint(earlier_ns, block_ns) };
        *self = Self { mean_ns, ..Self::default() };
        earlier_ns > 0 && (block_ns > 2 * earlier_ns || 2 * block_ns < earlier_ns)
    }
}

impl Spin {
    /// Creates the state of a thread that polls for at most `longest_ns`; 0 turns polling off.
    #[must_use]
    pub fn new(longest_ns: u64) -> Self {
        Self { longest_ns, ..Self::default() }
    }

    /// Submits all queued operations, and waits until an operation completes or the timeout
    /// expires.
    ///
    /// # Errors
    /// Fails if the queue itself fails.
    // If this function were inlined, it would slow down the loop on targets that never wait.
    #[inline(never)]
    pub fn wait<Q: Queue, T: Timer>(
        &mut self,
        queue: &mut Q,
        clock: &mut T,
        timeout_ns: Option<u64>,
    ) -> Result<(), SysError> {
        if self.longest_ns == 0 || queue.in_flight() == 0 {
            // If nothing is in flight, only the timeout can end the wait.
            let completions_min =
                if timeout_ns.is_some() { 1 } else { 1.min(queue.in_flight() as u32) };
            return queue.submit_and_wait(completions_min, timeout_ns);
        }
        let from_ns = clock.now_ns();
        if self.block_start_ns == 0 {
            self.block_start_ns = from_ns;
        }
        let polls = self.polls();
        let in_flight = queue.in_flight() as u64;
        let length_ns = if polls { self.length_ns() } else { 0 };
        let length_ns = length_ns.min(timeout_ns.unwrap_or(u64::MAX));
        if length_ns > 0 {
            queue.hand_over()?;
            self.poll(queue, clock, from_ns, length_ns)?;
        }
        let mut now_ns = clock.now_ns();
        if queue.arrived() == 0 {
            let waited_ns = now_ns.saturating_sub(from_ns);
            let left_ns = timeout_ns.map(|timeout_ns| timeout_ns.saturating_sub(waited_ns));
            queue.submit_and_wait(1, left_ns)?;
            now_ns = clock.now_ns();
        }
        // The time that the thread worked since the last wait also delays operations.
        let began_ns = if self.ended_ns == 0 { from_ns } else { self.ended_ns };
        let counted_ns = now_ns.saturating_sub(began_ns).min(COUNTED_NS_MAX);
        let reaped = std::mem::take(&mut self.reaped);
        self.learn(polls, now_ns, in_flight * counted_ns, reaped);
        self.learn_wait(now_ns.saturating_sub(from_ns));
        self.ended_ns = now_ns;
        Ok(())
    }

    /// Counts the completions that the thread reaped. `in_flight` is the number of operations that
    /// are still in flight.
    #[inline(always)]
    pub fn count_reaped(&mut self, reaped: usize, in_flight: usize) {
        self.reaped += reaped as u64;
        if in_flight == 0 {
            // No operation is in flight. The time until the next operation starts is therefore not
            // latency.
            self.ended_ns = 0;
        }
    }

    fn poll<Q: Queue, T: Timer>(
        &mut self,
        queue: &mut Q,
        clock: &mut T,
        from_ns: u64,
        length_ns: u64,
    ) -> Result<(), SysError> {
        let (mut looked_ns, mut yielded_ns) = (clock.now_ns(), from_ns);
        while queue.arrived() == 0 {
            let now_ns = clock.now_ns();
            let look_ns = now_ns.saturating_sub(looked_ns);
            self.spun_ns += if look_ns <= LOOK_NS_MAX { look_ns } else { 0 };
            looked_ns = now_ns;
            if now_ns.saturating_sub(from_ns) >= length_ns {
                break;
            }
            if now_ns.saturating_sub(yielded_ns) >= YIELD_NS {
                std::thread::yield_now();
                yielded_ns = clock.now_ns();
            }
            std::hint::spin_loop();
            queue.hand_over()?;
        }
        Ok(())
    }

    /// Returns true if the next wait polls, and false if it sleeps immediately.
    fn polls(&self) -> bool {
        let (polled_ns, slept_ns) = (self.polled.mean_ns, self.slept.mean_ns);
        let is_close = 10 * polled_ns.abs_diff(slept_ns) < slept_ns;
        if self.block < FIRST_BLOCKS || is_close && self.block < FIRST_BLOCKS_MAX {
            return self.block.is_multiple_of(2);
        }
        let is_trial = self.block.is_multiple_of(TRIAL_BLOCKS);
        let is_better = 100 * polled_ns <= POLLED_PERCENT_MAX * slept_ns;
        is_better != is_trial
    }

    /// Returns how long the next wait polls, if it polls.
    fn length_ns(&self) -> u64 {
        match self.waits % PROBE_WAITS {
            0 => self.longest_ns,
            _ => spin_ns(self.mean_ns, self.longest_ns),
        }
    }

    /// Moves the mean towards the duration of the latest wait, by one eighth of the difference.
    /// This duration is capped, so that one stall does not end polling.
    fn learn_wait(&mut self, wait_ns: u64) {
        self.mean_ns = (7 * self.mean_ns + wait_ns.min(2 * self.longest_ns)) / 8;
        self.waits = self.waits.wrapping_add(1);
    }

    /// Adds the latency of the operations up to the end of a wait. If `polls` is true, the latency
    /// is added to the mean for polling, and otherwise to the mean for sleeping.
    fn learn(&mut self, polls: bool, now_ns: u64, in_flight_ns: u64, completions: u64) {
        let way = if polls { &mut self.polled } else { &mut self.slept };
        let block_ns = now_ns.saturating_sub(self.block_start_ns);
        if block_ns >= SETTLING_NS {
            way.in_flight_ns += in_flight_ns;
            way.completions += completions;
        }
        if block_ns >= BLOCK_NS && way.completions >= BLOCK_COMPLETIONS_MIN {
            (self.block, self.block_start_ns) = (self.block.wrapping_add(1), now_ns);
            if way.end_block() {
                // The mean for the other method was measured before the device changed. The thread
                // therefore tries both methods again.
                (self.block, self.polled, self.slept) = Default::default();
            }
        }
    }
}

/// Returns how long a wait should poll if the mean duration of a wait is `mean_ns`.
fn spin_ns(mean_ns: u64, longest_ns: u64) -> u64 {
    match mean_ns <= longest_ns {
        true => (MEAN_TIMES * mean_ns).clamp(SPIN_NS_MIN.min(longest_ns), longest_ns),
        false => 0,
    }
}

/// Decides whether and how long each of `threads` driving threads polls on a host with `cpus` CPUs.
#[must_use]
pub fn polling(required: bool, threads: usize, cpus: f64) -> Polling {
    // One CPU must remain free for the kernel's threads, which may execute the operations.
    let why_not = match (required, threads as f64 + 1.0 <= cpus) {
        (true, true) => return Polling { longest_ns: SPIN_NS_MAX, ..Polling::default() },
        (false, _) => "the plan turns polling off".to_owned(),
        (true, false) => format!("no CPU is free: {threads} threads on {cpus} CPUs"),
    };
    Polling { longest_ns: 0, why_not }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Law, RandomLatencyDevice, VirtualClock};
    use plimsoll_sys::op::{OpKind, RingOp};

    const US: u64 = 1_000;

    #[test]
    fn polling_time_follows_the_mean_wait_within_bounds() {
        let of = |mean_ns| spin_ns(mean_ns, SPIN_NS_MAX);
        assert_eq!([0, US, 10 * US].map(of), [20 * US, 20 * US, 80 * US]);
        assert_eq!([50 * US, 200 * US].map(of), [SPIN_NS_MAX; 2]);
        assert_eq!([201 * US, 5_000 * US].map(of), [0; 2]);
        assert_eq!(spin_ns(10 * US, 7 * US), 0);
        assert_eq!(spin_ns(0, 0), 0);
    }

    #[test]
    fn a_stall_does_not_end_polling_and_a_slow_device_does() {
        let mut spin = Spin::new(SPIN_NS_MAX);
        (0..100).for_each(|_| spin.learn_wait(30 * US));
        spin.learn_wait(10_000 * US);
        assert!(spin.length_ns() > 30 * US);
        (0..63).for_each(|_| spin.learn_wait(5_000 * US));
        assert_eq!(spin.length_ns(), 0);
        // One wait in 64 polls, so that the driver notices when the device is fast again.
        while !spin.waits.is_multiple_of(PROBE_WAITS) {
            spin.learn_wait(5_000 * US);
        }
        assert_eq!(spin.length_ns(), SPIN_NS_MAX);
        (0..8).for_each(|_| spin.learn_wait(30 * US));
        assert!(spin.length_ns() > 30 * US);
        // If operations complete in groups of four, only one wait of four takes any time.
        (0..100).for_each(|number| spin.learn_wait(if number % 4 == 0 { 50 * US } else { 0 }));
        assert!(spin.length_ns() > 60 * US);
    }

    /// Simulates a target for `seconds`. The target's latency is `polled_ns` for waits that poll,
    /// and `slept_ns` for waits that sleep. Returns the fraction of the waits that polled.
    fn polled_share(spin: &mut Spin, seconds: f64, polled_ns: u64, slept_ns: u64) -> f64 {
        let until_ns = spin.ended_ns + (seconds * 1e9) as u64;
        let (mut polled, mut waits) = (0, 0);
        while spin.ended_ns < until_ns {
            let polls = spin.polls();
            let latency_ns = if polls { polled_ns } else { slept_ns };
            spin.ended_ns += latency_ns;
            spin.learn(polls, spin.ended_ns, latency_ns, 1);
            (polled, waits) = (polled + u32::from(polls), waits + 1);
        }
        f64::from(polled) / f64::from(waits)
    }

    #[test]
    fn the_way_with_the_shorter_latency_is_kept() {
        let rare = 2.0 / f64::from(TRIAL_BLOCKS);
        let mut spin = Spin::new(SPIN_NS_MAX);
        let first = polled_share(&mut spin, 0.24, 46 * US, 34 * US);
        assert!((0.4..0.5).contains(&first), "{first}");
        assert!(polled_share(&mut spin, 60.0, 46 * US, 34 * US) <= rare);
        // The device stalls and then recovers. Afterwards, the driver must choose the same method
        // as before the stall.
        polled_share(&mut spin, 10.0, 4_000 * US, 4_000 * US);
        polled_share(&mut spin, 1.0, 46 * US, 34 * US);
        assert!(polled_share(&mut spin, 60.0, 46 * US, 34 * US) <= rare);
        // If the latencies differ only slightly, the thread compares the methods for a longer time.
        let mut close = Spin::new(SPIN_NS_MAX);
        let first = polled_share(&mut close, 0.96, 100 * US, 103 * US);
        assert!((0.4..0.6).contains(&first), "{first}");
        assert!(polled_share(&mut close, 20.0, 100 * US, 103 * US) >= 1.0 - rare);
        // Now polling is faster than sleeping, and the trial blocks must detect this.
        polled_share(&mut spin, 100.0, 10 * US, 40 * US);
        assert!(polled_share(&mut spin, 60.0, 10 * US, 40 * US) >= 1.0 - 4.0 * rare);
    }

    #[test]
    fn threads_poll_only_where_a_cpu_stays_free() {
        for (threads, cpus) in [(1, 2.0), (7, 8.0)] {
            assert_eq!(polling(true, threads, cpus).longest_ns, SPIN_NS_MAX);
            assert_eq!(polling(false, threads, cpus).longest_ns, 0);
        }
        // In the last two of these cases, a control group limits the CPU time.
        for (threads, cpus) in [(1, 1.0), (2, 2.0), (16, 4.0), (1, 0.5), (1, 1.5)] {
            let polling = polling(true, threads, cpus);
            assert_eq!(polling.longest_ns, 0);
            assert!(polling.why_not.contains("no CPU is free"), "{polling:?}");
        }
    }

    #[test]
    fn with_nothing_in_flight_a_wait_sleeps_until_its_timeout() {
        for longest_ns in [0, SPIN_NS_MAX] {
            let mut world = VirtualClock::default();
            let (mut queue, _) = RandomLatencyDevice::queue(&world, 1, Law::Constant(30 * US), 1);
            Spin::new(longest_ns).wait(&mut queue, &mut world, Some(500 * US)).unwrap();
            assert!(world.now_ns() >= 500 * US, "{}", world.now_ns());
        }
    }

    #[test]
    fn a_wait_that_polls_pays_no_wake_up_and_counts_its_time() {
        let waited_ns = |longest_ns| {
            let mut world = VirtualClock::default();
            let (mut queue, _) = RandomLatencyDevice::queue(&world, 1, Law::Constant(30 * US), 1);
            (queue.costs.call_ns, queue.costs.wake_ns) = (100, 40 * US);
            let op = RingOp {
                kind: OpKind::Read,
                file: 0,
                offset_bytes: 0,
                size_bytes: 4096,
                buffer_offset_bytes: 0,
                user_data: 0,
            };
            queue.push(&op).unwrap();
            let mut spin = Spin::new(longest_ns);
            spin.wait(&mut queue, &mut world, None).unwrap();
            assert_eq!(queue.arrived(), 1);
            (world.now(), spin.spun_ns)
        };
        let (polled_ns, spun_ns) = waited_ns(SPIN_NS_MAX);
        assert!((30 * US..31 * US).contains(&polled_ns), "{polled_ns}");
        assert!((29 * US..31 * US).contains(&spun_ns), "{spun_ns}");
        assert_eq!(waited_ns(0), (70 * US + 100, 0));
        // The operation takes longer than the polling time, so the thread sleeps.
        assert!(waited_ns(10 * US).0 > 70 * US);
    }
}
