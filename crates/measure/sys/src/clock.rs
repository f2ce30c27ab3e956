//! Low-cost monotonic clock that agrees with `CLOCK_MONOTONIC`.
//!
//! [`monotonic_ns`] calls the kernel's vDSO. [`Clock`] reads the processor's cycle counter if the
//! counter has a constant rate and never stops. The clock is anchored to `CLOCK_MONOTONIC` every
//! few milliseconds, so that it follows the kernel's slewing. The clocks of two threads therefore
//! differ by no more than the cost of one reading. The rate is derived from anchors that are at
//! least [`BASELINE_NS`] apart. Even if the rate is wrong by 1 part in 10⁵, the error between
//! anchors is less than 100 ns. If the counter is not trusted, [`Clock`] also uses the vDSO.

/// Maximum age of an anchor. When an anchor is older, the kernel's clock is read again.
const ANCHOR_NS: u64 = 10_000_000;
/// Minimum time between two anchors from which a new rate is computed.
const BASELINE_NS: u64 = 200_000_000;
/// Duration of the initial calibration.
const CALIBRATION_NS: u64 = 2_000_000;

/// Returns `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the wall-clock time in nanoseconds since 1970. Use it only for labels.
#[must_use]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns `CLOCK_BOOTTIME` in nanoseconds. Unlike [`monotonic_ns`] it includes suspended time.
#[must_use]
pub fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// Returns the CPU time of all threads of this process, in nanoseconds.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
pub(crate) fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill; these clocks always exist on Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `deadline_ns`, or a signal arrives.
pub fn sleep_until_ns(deadline_ns: u64) {
    let time = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is valid for the call; the remaining time is not requested.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            core::ptr::null_mut(),
        )
    };
}

/// Source of clock readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's cycle counter, anchored to `CLOCK_MONOTONIC`.
    CycleCounter,
    /// The kernel's vDSO; a system call if the kernel's clock source is not usable in the vDSO.
    Kernel,
}

/// True if, according to the kernel, the processor's counter has a constant rate and never stops.
#[must_use]
pub fn cycle_counter_is_trusted() -> bool {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let is_source = std::fs::read_to_string(source).is_ok_and(|text| text.trim() == "tsc");
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |name: &str| flags.split_ascii_whitespace().any(|flag| flag == name);
    cfg!(target_arch = "x86_64") && is_source && has("constant_tsc") && has("nonstop_tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has RDTSC; it reads a counter and accesses no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn cycles() -> u64 {
    0
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    cycles: u64,
    ns: u64,
}

impl Anchor {
    /// Reads both clocks three times, and returns the pair with the smallest distance. An interrupt
    /// between the two clocks increases the distance of only one pair.
    fn take() -> Self {
        let one = || {
            let before = cycles();
            let ns = monotonic_ns();
            let after = cycles();
            (after.wrapping_sub(before), Self { cycles: before + (after - before) / 2, ns })
        };
        let mut best = one();
        for _ in 0..2 {
            let next = one();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }
}

/// Monotonic clock for one thread. See the module documentation.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
    anchor: Anchor,
    baseline: Anchor,
    /// Nanoseconds per cycle, in units of 2⁻³².
    slope: u64,
    /// Number of cycles after which the anchor is renewed.
    renew_cycles: u64,
    last_ns: u64,
}

impl Clock {
    /// Creates the cheapest clock that this machine supports. The calibration takes about 2 ms.
    #[must_use]
    pub fn new() -> Self {
        let source = if cycle_counter_is_trusted() {
            ClockSource::CycleCounter
        } else {
            ClockSource::Kernel
        };
        Self::with_source(source)
    }

    /// Creates a clock with the given source.
    #[must_use]
    pub fn with_source(source: ClockSource) -> Self {
        let anchor = Anchor::take();
        let mut clock =
            Self { source, anchor, baseline: anchor, slope: 1 << 32, renew_cycles: 0, last_ns: 0 };
        if source == ClockSource::CycleCounter {
            while monotonic_ns() < anchor.ns + CALIBRATION_NS {
                core::hint::spin_loop();
            }
            clock.learn(Anchor::take());
        }
        clock.last_ns = monotonic_ns();
        clock
    }

    /// Returns the time of `CLOCK_MONOTONIC` in nanoseconds. It is never less than an earlier
    /// reading.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        let ns = match self.source {
            ClockSource::Kernel => monotonic_ns(),
            ClockSource::CycleCounter => {
                let since = cycles().wrapping_sub(self.anchor.cycles);
                if since >= self.renew_cycles {
                    self.renew()
                } else {
                    self.anchor.ns + ((since as u128 * self.slope as u128) >> 32) as u64
                }
            }
        };
        self.last_ns = self.last_ns.max(ns);
        self.last_ns
    }

    #[cold]
    fn renew(&mut self) -> u64 {
        let next = Anchor::take();
        if next.ns.saturating_sub(self.baseline.ns) >= BASELINE_NS {
            self.learn(next);
        }
        self.anchor = next;
        next.ns
    }

    /// Computes the rate between the baseline and `next`, which becomes the new baseline.
    fn learn(&mut self, next: Anchor) {
        let cycles = next.cycles.wrapping_sub(self.baseline.cycles).max(1);
        let ns = next.ns.saturating_sub(self.baseline.ns).max(1);
        self.slope = ((u128::from(ns) << 32) / u128::from(cycles)) as u64;
        self.renew_cycles = ((u128::from(ANCHOR_NS) << 32) / u128::from(self.slope.max(1))) as u64;
        self.anchor = next;
        self.baseline = next;
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Measured cost and resolution of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockQuality {
    /// Source of the readings.
    pub source: ClockSource,
    /// Mean cost of one reading, in hundredths of a nanosecond.
    pub cost_ns_hundredths: u64,
    /// Smallest non-zero step between consecutive readings.
    pub resolution_ns: u64,
    /// Largest deviation from the kernel's clock that the duration of the reading itself does not
    /// explain.
    pub error_ns_max: u64,
}

/// Measures a clock with this number of readings (100,000 readings take about 1 ms).
#[must_use]
pub fn measure(clock: &mut Clock, readings: u32) -> ClockQuality {
    let readings = readings.max(2);
    let (mut resolution_ns, mut error_ns_max) = (u64::MAX, 0);
    let start_ns = monotonic_ns();
    let mut sink = 0;
    for _ in 0..readings {
        sink ^= clock.now_ns();
    }
    let cost_ns = (monotonic_ns() - start_ns) * 100 / u64::from(readings);
    core::hint::black_box(sink);
    let mut last_ns = clock.now_ns();
    for _ in 0..readings {
        let now_ns = clock.now_ns();
        if now_ns > last_ns {
            resolution_ns = resolution_ns.min(now_ns - last_ns);
        }
        last_ns = now_ns;
    }
    for _ in 0..readings.min(1000) {
        let (before, own, after) = (monotonic_ns(), clock.now_ns(), monotonic_ns());
        let error = before.saturating_sub(own).max(own.saturating_sub(after));
        error_ns_max = error.max(error_ns_max);
    }
    let resolution_ns = if resolution_ns == u64::MAX { 0 } else { resolution_ns };
    ClockQuality { source: clock.source, cost_ns_hundredths: cost_ns, resolution_ns, error_ns_max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_runs_backwards() {
        let mut clock = Clock::new();
        let mut last = 0;
        for _ in 0..200_000 {
            let now = clock.now_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn follows_the_kernels_clock_across_renewals() {
        let mut clock = Clock::new();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(7));
            let before = monotonic_ns();
            let own = clock.now_ns();
            let after = monotonic_ns();
            // The limit is 50 µs, because the initial rate may be inaccurate after a short
            // calibration on a busy machine.
            assert!(own + 50_000 >= before && own <= after + 50_000, "{before} {own} {after}");
        }
    }

    #[test]
    fn a_kernel_clock_measures_itself() {
        let quality = measure(&mut Clock::with_source(ClockSource::Kernel), 1000);
        assert_eq!(quality.source, ClockSource::Kernel);
        assert_eq!(quality.error_ns_max, 0);
    }

    #[test]
    fn sleeps_at_least_until_the_deadline() {
        let deadline_ns = monotonic_ns() + 2_000_000;
        sleep_until_ns(deadline_ns);
        assert!(monotonic_ns() >= deadline_ns);
    }
}
