//! A cheap monotonic clock that agrees with `CLOCK_MONOTONIC`.
//!
//! [`monotonic_ns`] asks the kernel's vDSO. [`Clock`] counts processor cycles where the time-stamp
//! counter is constant and never stops, anchored to `CLOCK_MONOTONIC` every few milliseconds, so that
//! it follows the kernel's own slewing and threads agree within the cost of one reading. The slope is
//! learnt from anchors at least [`BASELINE_NS`] apart; at a fault of 1 part in 10⁵ between anchors
//! the error stays below 100 ns. Where the counter can't be trusted, both are the same.

/// How long a counter reading is extrapolated before the kernel is asked again.
const ANCHOR_NS: u64 = 10_000_000;
/// Least distance between two anchors whose slope replaces the present one.
const BASELINE_NS: u64 = 200_000_000;
/// Length of the first calibration.
const CALIBRATION_NS: u64 = 2_000_000;

/// `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Wall-clock time in nanoseconds since 1970, for labels only.
#[must_use]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// `CLOCK_BOOTTIME` in nanoseconds: as [`monotonic_ns`], and it goes on while the machine is suspended.
#[must_use]
pub fn boottime_ns() -> u64 {
    read(libc::CLOCK_BOOTTIME)
}

/// CPU time of this process, of all its threads, in nanoseconds.
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
    // SAFETY: `time` is valid for the call; a remaining time isn't asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            core::ptr::null_mut(),
        )
    };
}

/// Where readings come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// Processor cycles, anchored to `CLOCK_MONOTONIC`.
    CycleCounter,
    /// The kernel's vDSO (or system call, where its own source is slow).
    Kernel,
}

/// Whether this processor's counter runs at one rate and never stops, by what the kernel says.
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
    // SAFETY: RDTSC is in every x86-64 processor; it reads a counter and touches no memory.
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
    /// The tightest of three readings: an interrupt between the two sources widens one, not all.
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

/// A monotonic clock for one thread. See the module for its model.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
    anchor: Anchor,
    baseline: Anchor,
    /// Nanoseconds per cycle, in units of 2⁻³².
    slope: u64,
    /// Cycles after which the anchor is renewed.
    renew_cycles: u64,
    last_ns: u64,
}

impl Clock {
    /// The cheapest clock this machine allows. Takes about 2 ms to calibrate.
    #[must_use]
    pub fn new() -> Self {
        let source = if cycle_counter_is_trusted() {
            ClockSource::CycleCounter
        } else {
            ClockSource::Kernel
        };
        Self::with_source(source)
    }

    /// A clock on a given source.
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

    /// Nanoseconds on `CLOCK_MONOTONIC`'s scale; never less than an earlier reading.
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

    /// Where readings come from.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source
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

    /// Takes the slope between the baseline and `next`, and starts a new baseline there.
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

/// What a clock costs and how fine it is, measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockQuality {
    /// Where readings come from.
    pub source: ClockSource,
    /// Mean cost of one reading, in hundredths of a nanosecond.
    pub cost_ns_hundredths: u64,
    /// Least step above zero seen between consecutive readings.
    pub resolution_ns: u64,
    /// Greatest distance from the kernel's clock seen, beyond the reading's own width.
    pub error_ns_max: u64,
}

/// Measures a clock with `readings` readings (100,000 take about a millisecond).
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
            // 50 µs allows for a first slope learnt in a short calibration on a busy machine.
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
