//! Detects pauses of this process. A thread that only sleeps checks the clocks each time it wakes
//! up. If the process is stopped (SIGSTOP, a freezer, a debugger) or suspended with its machine,
//! the thread wakes up late, although it was not waiting for a CPU. This distinguishes a stop from
//! a busy host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_evidence::observed::{ClockWatch, Pause, PauseKind};
use plimsoll_sys::clock;
use plimsoll_sys::cpu::thread_wait_ns;
use signal_hook::SigId;
use signal_hook::consts::SIGCONT;

use crate::cpu::CpuReading;
use crate::host;

/// Interval between clock checks.
const PERIOD_NS: u64 = 50_000_000;
/// Minimum duration of a pause that is reported individually. A busy host has many shorter pauses.
const PAUSE_NS_MIN: u64 = 1_000_000_000;
/// Minimum duration of a short stop. Short stops are reported together if the sum of their
/// durations reaches the minimum duration of a pause.
const SHORT_NS_MIN: u64 = 200_000_000;
/// Minimum duration of a stop after which the process received SIGCONT. Without this signal, a
/// shorter delay may be the scheduler's.
const CONTINUED_NS_MIN: u64 = 10_000_000;
/// Minimum duration of a suspension. A shorter suspended time may be a rounding error between two
/// clock readings.
const SUSPENDED_NS_MIN: u64 = 100_000_000;
/// Interval at which the counters of stolen time and throttled time are read. They are read less
/// often than the clocks, because reading them is slower.
const COUNTERS_NS: u64 = 1_000_000_000;
/// Maximum number of pauses that are reported individually.
const PAUSES_MAX: usize = 100;

/// Pause detector. It runs until [`PauseDetector::end`] is called or the value is dropped.
pub(crate) struct PauseDetector {
    /// The thread, and a sender. Dropping the sender ends the thread.
    watching: Option<(Sender<()>, JoinHandle<Pauses>)>,
    continued: SigId,
}

impl Drop for PauseDetector {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.continued);
    }
}

/// Detected pauses.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    stopped_ns: u64,
    pauses: Vec<Pause>,
    /// Sum of the stops that are too short to be reported individually.
    short_ns: u64,
    short: Vec<Pause>,
}

/// Values of the clocks and counters at one moment.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    monotonic_ns: u64,
    /// Lower and upper bound of the difference between the boot clock and the monotonic clock.
    ahead_ns: (u64, u64),
    cpu_ns: u64,
    /// Time for which this thread was runnable but had no CPU; `None` if the kernel does not count
    /// this time.
    waited_ns: Option<u64>,
}

/// Counters that are read less often than the clocks.
struct Counters {
    at_ns: u64,
    cpu: Option<CpuReading>,
    throttled_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LateWakeUp {
    late_ns: u64,
    /// CPU time of the whole process during the pause.
    ran_ns: u64,
    /// Maximum CPU time that the process can have used just before the actual pause and just after
    /// it.
    ran_aside_ns: u64,
    /// Time for which the thread was runnable but had no CPU, or for which its CPU was stolen or
    /// throttled; `None` if unknown.
    withheld_ns: Option<u64>,
    /// True if the process received SIGCONT during the pause.
    continued: bool,
}

impl PauseDetector {
    /// Starts the detector; `None` if the thread or the signal handler cannot be created. `now_ns`
    /// is the time since the start of the run.
    pub(crate) fn begin(now_ns: u64) -> Option<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let continued = signal_hook::flag::register(SIGCONT, Arc::clone(&flag)).ok()?;
        let start_ns = clock::monotonic_ns().saturating_sub(now_ns);
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("pulse".into())
            .spawn(move || watch(start_ns, &stopped, &flag));
        let Ok(thread) = thread else {
            signal_hook::low_level::unregister(continued);
            return None;
        };
        Some(Self { watching: Some((stop, thread)), continued })
    }

    /// Stops the detector. Returns `None` if its thread did not end normally.
    pub(crate) fn end(mut self) -> Option<Pauses> {
        let (stop, thread) = self.watching.take()?;
        drop(stop);
        thread.join().ok()
    }
}

impl Pauses {
    /// Removes pauses that ended before `from_ns`. If a pause started before `from_ns` and ended
    /// after it, removes only the part before `from_ns`.
    pub(crate) fn since(mut self, from_ns: u64) -> Self {
        self.pauses.retain_mut(|pause| {
            let end_ns = pause.at_ns.saturating_add(pause.duration_ns);
            let before_ns = from_ns.saturating_sub(pause.at_ns).min(pause.duration_ns);
            if pause.kind.is_stop() {
                self.stopped_ns = self.stopped_ns.saturating_sub(before_ns);
            }
            pause.at_ns += before_ns;
            pause.duration_ns -= before_ns;
            end_ns > from_ns
        });
        self
    }

    /// Adds the pauses to the evidence.
    pub(crate) fn note(self, clock: &mut ClockWatch) {
        clock.stopped_ns = Some(self.stopped_ns);
        clock.pauses = self.pauses;
    }

    fn add(&mut self, pause: Pause) {
        if pause.duration_ns < PAUSE_NS_MIN && pause.kind != PauseKind::Suspended {
            if pause.kind.is_stop() {
                self.short_ns = self.short_ns.saturating_add(pause.duration_ns);
                self.short.extend((self.short.len() < PAUSES_MAX).then_some(pause));
            }
            return;
        }
        if pause.kind.is_stop() {
            self.stopped_ns = self.stopped_ns.saturating_add(pause.duration_ns);
        }
        if self.pauses.len() < PAUSES_MAX {
            self.pauses.push(pause);
        }
    }

    /// Returns the final result. It includes the short stops if the sum of their durations is long
    /// enough. If the process received SIGCONT after each of them, a shorter sum is enough.
    fn finish(mut self) -> Self {
        let mut short = self.short.iter();
        let least_ns = match short.all(|pause| pause.kind == PauseKind::Signalled) {
            true => SHORT_NS_MIN,
            false => PAUSE_NS_MIN,
        };
        if self.short_ns >= least_ns {
            self.stopped_ns = self.stopped_ns.saturating_add(self.short_ns);
            self.pauses.append(&mut self.short);
            self.pauses.sort_by_key(|pause| pause.at_ns);
            self.pauses.truncate(PAUSES_MAX);
        }
        self
    }
}

fn watch(start_ns: u64, stopped: &Receiver<()>, continued: &AtomicBool) -> Pauses {
    let mut pauses = Pauses::default();
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut counters = Counters::now();
    let mut last = ClockReading::now();
    loop {
        let ends = !matches!(
            stopped.recv_timeout(Duration::from_nanos(PERIOD_NS)),
            Err(RecvTimeoutError::Timeout)
        );
        let now = ClockReading::now();
        let at_ns = last.monotonic_ns.saturating_sub(start_ns);
        let suspended_ns = now.suspended_ns_since(last);
        if suspended_ns >= SUSPENDED_NS_MIN {
            pauses.add(Pause {
                at_ns,
                duration_ns: suspended_ns,
                kind: PauseKind::Suspended,
                withheld_ns: None,
            });
        }
        let late_ns = (now.monotonic_ns - last.monotonic_ns).saturating_sub(PERIOD_NS);
        let was_continued = continued.load(Ordering::Relaxed);
        if late_ns >= if was_continued { CONTINUED_NS_MIN } else { SHORT_NS_MIN } {
            // The kernel may deliver the signal to any thread, and that thread may run later than
            // this thread.
            std::thread::sleep(Duration::from_nanos(PERIOD_NS));
            let fresh = Counters::now();
            let late = LateWakeUp {
                late_ns,
                ran_ns: now.cpu_ns.saturating_sub(last.cpu_ns),
                ran_aside_ns: 2 * PERIOD_NS * cpus,
                withheld_ns: fresh.withheld_ns_since(&counters, now, last),
                continued: continued.load(Ordering::Relaxed),
            };
            counters = fresh;
            pauses.add(late.pause(at_ns));
        } else if now.monotonic_ns - counters.at_ns >= COUNTERS_NS {
            counters = Counters::now();
        }
        continued.store(false, Ordering::Relaxed);
        if ends {
            return pauses.finish();
        }
        last = now;
    }
}

impl LateWakeUp {
    fn pause(self, at_ns: u64) -> Pause {
        let (kind, duration_ns) = self.kind();
        Pause { at_ns, duration_ns, kind, withheld_ns: self.withheld_ns }
    }

    /// Returns the kind of the pause, and how much of the pause is attributed to this kind.
    fn kind(self) -> (PauseKind, u64) {
        let withheld_ns = self.withheld_ns.unwrap_or(0).min(self.late_ns);
        let rest_ns = self.late_ns - withheld_ns;
        let least_ns = match self.late_ns {
            _ if self.continued => CONTINUED_NS_MIN,
            late_ns if late_ns < PAUSE_NS_MIN => SHORT_NS_MIN,
            _ => PAUSE_NS_MIN,
        };
        if rest_ns < least_ns || self.ran_ns > self.ran_aside_ns.max(self.late_ns / 2) {
            return (PauseKind::Busy, self.late_ns);
        }
        if self.continued {
            return (PauseKind::Signalled, rest_ns);
        }
        if self.withheld_ns.is_none() || withheld_ns > rest_ns {
            return (PauseKind::Unknown, self.late_ns);
        }
        (PauseKind::Frozen, rest_ns)
    }
}

impl ClockReading {
    fn now() -> Self {
        let before_ns = clock::monotonic_ns();
        let boottime_ns = clock::boottime_ns();
        let monotonic_ns = clock::monotonic_ns();
        // A delay between the clock readings widens the bounds, so the delay cannot appear as
        // suspended time.
        let ahead_ns =
            (boottime_ns.saturating_sub(monotonic_ns), boottime_ns.saturating_sub(before_ns));
        let cpu_ns = clock::process_cpu_ns();
        Self { monotonic_ns, ahead_ns, cpu_ns, waited_ns: thread_wait_ns() }
    }

    fn suspended_ns_since(self, before: Self) -> u64 {
        self.ahead_ns.0.saturating_sub(before.ahead_ns.1)
    }
}

impl Counters {
    fn now() -> Self {
        Self {
            at_ns: clock::monotonic_ns(),
            cpu: CpuReading::now(),
            throttled_ns: host::throttled_ns(),
        }
    }

    /// Returns the time for which the thread was runnable but had no CPU, or for which its CPU was
    /// stolen or throttled.
    fn withheld_ns_since(
        &self,
        before: &Self,
        now: ClockReading,
        last: ClockReading,
    ) -> Option<u64> {
        let cpu = self.cpu.as_ref()?;
        if is_virtual() && !cpu.has_reported_steal() {
            return None;
        }
        let waited_ns = now.waited_ns?.saturating_sub(last.waited_ns?);
        let stolen_ns = cpu.stolen_ns_since(before.cpu.as_ref()?);
        // Control groups of version 2 always have this counter. If the counter is missing, the
        // quota cannot be read.
        let throttled_ns = match (self.throttled_ns, before.throttled_ns) {
            (Some(now), Some(then)) => now.saturating_sub(then),
            _ => 0,
        };
        Some(waited_ns.saturating_add(stolen_ns.max(throttled_ns)))
    }
}

/// Returns true if this machine may be virtual.
fn is_virtual() -> bool {
    may_be_virtual(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// Checks the processor flag. Only x86 processors have this flag, so a machine with any other
/// processor may be virtual.
fn may_be_virtual(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_none_or(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const S: u64 = 1_000_000_000;

    fn kind(late_s: u64, ran_s: u64, withheld_ns: Option<u64>, continued: bool) -> PauseKind {
        let (late_ns, ran_ns) = (late_s * S, ran_s * S);
        LateWakeUp { late_ns, ran_ns, ran_aside_ns: S / 5, withheld_ns, continued }.kind().0
    }

    #[test]
    fn distinguishes_a_stop_from_a_busy_host() {
        // During the pause, the thread was neither running nor runnable.
        assert_eq!(kind(3, 0, Some(0), true), PauseKind::Signalled);
        assert_eq!(kind(3, 0, Some(0), false), PauseKind::Frozen);
        // During the whole pause, the thread was runnable, or its CPU time was stolen.
        assert_eq!(kind(3, 0, Some(3 * S), false), PauseKind::Busy);
        assert_eq!(kind(3, 0, Some(3 * S), true), PauseKind::Busy);
        assert_eq!(kind(3, 0, Some(5 * S / 2), false), PauseKind::Busy);
        // Other threads of the process ran during the pause.
        assert_eq!(kind(3, 2, Some(0), false), PauseKind::Busy);
        // Either the pause has several causes, or the counters are missing.
        assert_eq!(kind(5, 0, Some(3 * S), false), PauseKind::Unknown);
        assert_eq!(kind(3, 0, None, false), PauseKind::Unknown);
        assert_eq!(kind(3, 0, None, true), PauseKind::Signalled);
    }

    #[test]
    fn runnable_time_does_not_count_as_stopped() {
        let late = LateWakeUp {
            late_ns: 5 * S,
            withheld_ns: Some(S),
            ran_aside_ns: S / 5,
            ..LateWakeUp::default()
        };
        let mut pauses = Pauses::default();
        pauses.add(late.pause(7));
        pauses.add(LateWakeUp { withheld_ns: Some(5 * S), ..late }.pause(8));
        let mut clock = ClockWatch::default();
        pauses.note(&mut clock);
        assert_eq!(clock.stopped_ns, Some(4 * S));
        assert_eq!(clock.pauses.len(), 2);
        assert_eq!((clock.pauses[0].at_ns, clock.pauses[0].duration_ns), (7, 4 * S));
        assert_eq!(clock.pauses[1].kind, PauseKind::Busy);
    }

    #[test]
    fn counts_only_the_part_of_a_stop_within_the_phase() {
        let late = LateWakeUp {
            late_ns: 5 * S,
            withheld_ns: Some(0),
            continued: true,
            ..LateWakeUp::default()
        };
        let mut pauses = Pauses::default();
        [S, 10 * S, 20 * S].into_iter().for_each(|at_ns| pauses.add(late.pause(at_ns)));
        let mut clock = ClockWatch::default();
        pauses.since(12 * S).note(&mut clock);
        let pauses: Vec<(u64, u64)> =
            clock.pauses.iter().map(|pause| (pause.at_ns, pause.duration_ns)).collect();
        assert_eq!(pauses, [(12 * S, 3 * S), (20 * S, 5 * S)]);
        assert_eq!(clock.stopped_ns, Some(8 * S));
    }

    #[test]
    fn short_stops_count_if_their_sum_is_long() {
        let late = |late_ns, withheld_ns| LateWakeUp {
            late_ns,
            withheld_ns: Some(withheld_ns),
            ran_aside_ns: S / 5,
            ..LateWakeUp::default()
        };
        let found = |times: u64, withheld_ns| {
            let mut pauses = Pauses::default();
            (0..times).for_each(|at| pauses.add(late(2 * S / 5, withheld_ns).pause(at)));
            let mut clock = ClockWatch::default();
            pauses.finish().note(&mut clock);
            (clock.stopped_ns, clock.pauses.len())
        };
        assert_eq!(found(2, 0), (Some(0), 0));
        assert_eq!(found(3, 0), (Some(6 * S / 5), 3));
        assert_eq!(found(200, 0), (Some(80 * S), PAUSES_MAX));
        let signalled = |times: u64| {
            let stop = LateWakeUp { continued: true, ..late(S / 10, 0) };
            let mut pauses = Pauses::default();
            (0..times).for_each(|at| pauses.add(stop.pause(at)));
            pauses.finish().stopped_ns
        };
        assert_eq!((signalled(1), signalled(2)), (0, S / 5));
        // The thread was runnable during the whole pause.
        assert_eq!(found(200, 2 * S / 5), (Some(0), 0));
        assert_eq!(found(200, S / 4), (Some(0), 0));
    }

    #[test]
    fn suspended_time_is_what_only_the_boot_clock_counts() {
        let beat = |least_ns, most_ns| ClockReading {
            monotonic_ns: S,
            ahead_ns: (least_ns, most_ns),
            cpu_ns: 0,
            waited_ns: None,
        };
        assert_eq!(beat(12 * S, 12 * S).suspended_ns_since(beat(2 * S, 2 * S)), 10 * S);
        assert_eq!(beat(2 * S, 2 * S).suspended_ns_since(beat(2 * S, 2 * S)), 0);
        // Two seconds passed between the readings of the two clocks. This happened either in the
        // later check or in the earlier check.
        assert_eq!(beat(0, 2 * S).suspended_ns_since(beat(2 * S, 2 * S)), 0);
        assert_eq!(beat(2 * S, 2 * S).suspended_ns_since(beat(0, 2 * S)), 0);
    }

    #[test]
    fn a_processor_that_does_not_say_so_may_be_virtual() {
        assert!(!may_be_virtual("processor\t: 0\nflags\t\t: fpu vme sse2\n"));
        assert!(may_be_virtual("processor\t: 0\nflags\t\t: fpu vme hypervisor\n"));
        assert!(may_be_virtual("processor\t: 0\nFeatures\t: fp asimd\n"));
        assert!(may_be_virtual(""));
    }

    #[test]
    fn a_process_that_ran_was_not_stopped() {
        let pulse = PauseDetector::begin(0).unwrap();
        std::thread::sleep(Duration::from_millis(120));
        let pauses = pulse.end().unwrap();
        assert_eq!(pauses.stopped_ns, 0);
    }
}
