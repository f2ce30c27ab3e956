//! CPU utilisation of the host, from `/proc/stat`.

use procfs::{CpuTime, CurrentSI, KernelStats};

/// CPU ticks since boot. Offline CPUs are not listed, and the list does not contain the numbers of
/// the CPUs. The CPUs of two readings can therefore be matched only if both readings list the same
/// number of CPUs.
#[derive(Clone, Debug)]
pub struct CpuReading {
    total: Ticks,
    cpus: Vec<Ticks>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    busy: u64,
    steal: u64,
    all: u64,
}

/// Shares of CPU time between two readings, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuShare {
    /// Busy share of the time of all CPUs. Time that the hypervisor stole does not count as busy.
    pub busy: f64,
    /// Share of the time of all CPUs that the hypervisor stole.
    pub steal: f64,
    /// Busy share of the busiest CPU. If the number of CPUs changed, the busy share of all CPUs.
    pub busiest: f64,
}

impl Ticks {
    fn of(time: &CpuTime) -> Self {
        let steal = time.steal.unwrap_or(0);
        // The counter `user` already includes `guest`, and `nice` already includes `guest_nice`.
        let busy =
            time.user + time.nice + time.system + time.irq.unwrap_or(0) + time.softirq.unwrap_or(0);
        Self { busy, steal, all: busy + steal + time.idle + time.iowait.unwrap_or(0) }
    }

    fn shares_since(self, before: Self) -> Option<(f64, f64)> {
        let all = self.all.checked_sub(before.all).filter(|&ticks| ticks > 0)? as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all;
        Some((share(self.busy, before.busy), share(self.steal, before.steal)))
    }
}

impl CpuReading {
    /// Reads the counters; `None` if they are not readable.
    pub fn now() -> Option<Self> {
        let stats = KernelStats::current().ok()?;
        let cpus = stats.cpu_time.iter().map(Ticks::of).collect();
        Some(Self { total: Ticks::of(&stats.total), cpus })
    }

    /// Returns the shares since an earlier reading; `None` if less than one tick has passed.
    pub fn since(&self, before: &Self) -> Option<CpuShare> {
        let (busy, steal) = self.total.shares_since(before.total)?;
        let busiest = self
            .matched(before)
            .filter_map(|(now, then)| now.shares_since(*then))
            .map(|(busy, _)| busy)
            .fold(busy, f64::max);
        Some(CpuShare { busy, steal, busiest })
    }

    /// Pairs each CPU of this reading with the same CPU of an earlier reading. Returns no pairs if
    /// the number of CPUs changed.
    fn matched<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (&'a Ticks, &'a Ticks)> {
        let same = self.cpus.len() == before.cpus.len();
        self.cpus.iter().zip(&before.cpus).filter(move |_| same)
    }

    /// Returns the time that the hypervisor stole since an earlier reading from the CPU that lost
    /// the most. If the number of CPUs changed, returns the total of all CPUs.
    pub fn stolen_ns_since(&self, before: &Self) -> u64 {
        let stolen = |(now, then): (&Ticks, &Ticks)| now.steal.saturating_sub(then.steal);
        let all = || stolen((&self.total, &before.total));
        let ticks = self.matched(before).map(stolen).max().unwrap_or_else(all);
        ticks.saturating_mul(1_000_000_000 / procfs::ticks_per_second().max(1))
    }

    /// Returns true if the hypervisor has reported stolen time since boot. Some hypervisors steal
    /// time but never report it.
    pub fn has_reported_steal(&self) -> bool {
        self.total.steal > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(busy: u64, steal: u64, all: u64) -> CpuReading {
        let ticks = Ticks { busy, steal, all };
        CpuReading { total: ticks, cpus: vec![ticks] }
    }

    #[test]
    fn reports_shares_of_the_elapsed_time() {
        let share = reading(60, 10, 200).since(&reading(10, 0, 100)).unwrap();
        assert_eq!((share.busy, share.steal, share.busiest), (0.5, 0.1, 0.5));
    }

    #[test]
    fn cpus_are_not_matched_after_one_went_off() {
        let ticks = |busy, all| Ticks { busy, steal: 1, all };
        let of = |cpus: Vec<Ticks>, busy, all| CpuReading { total: ticks(busy, all), cpus };
        let before = of(vec![ticks(10, 100), ticks(900, 1_000)], 910, 1_100);
        // The first CPU went offline, so the list contains only the second CPU.
        let now = of(vec![ticks(905, 1_050)], 915, 1_150);
        let share = now.since(&before).unwrap();
        assert_eq!((share.busy, share.busiest), (0.1, 0.1));
        assert_eq!(now.stolen_ns_since(&before), 0);
    }

    #[test]
    fn shares_without_elapsed_time_are_unknown() {
        assert!(reading(1, 1, 5).since(&reading(1, 1, 5)).is_none());
    }

    #[test]
    fn the_host_can_be_read() {
        assert!(CpuReading::now().is_some_and(|reading| reading.total.all > 0));
    }
}
