//! Collects snapshots of all threads, adds them to totals and produces one row per interval.
//!
//! A row is complete when every thread has reported up to its end. A blocked thread delays rows by
//! at most [`PENDING_MAX`] intervals; its later snapshots become supplements to these rows. Memory
//! stays bounded, and no snapshot is lost.

use std::collections::BTreeMap;

use crate::cells::{Snapshot, Sums};
use crate::histogram::Totals;

/// Maximum number of open intervals.
const PENDING_MAX: usize = 8;

/// Operations of one class that were in flight or due at the stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainTotals {
    /// Exact sums.
    pub sums: Sums,
    /// Longest latency or wait.
    pub latency_ns_max: u64,
}

/// Totals of one class over some time.
#[derive(Clone, Debug, Default)]
pub struct ClassTotals {
    /// Exact sums.
    pub sums: Sums,
    /// Times from the intended start to the completion.
    pub latency: Totals,
    /// Times from the submission to the completion.
    pub service: Totals,
}

/// Creates tables one by one: cloning a table would touch all of its memory.
fn empty(count: usize) -> Vec<ClassTotals> {
    (0..count).map(|_| ClassTotals::default()).collect()
}

impl ClassTotals {
    fn clear(&mut self) {
        self.sums = Sums::default();
        self.latency.clear();
        self.service.clear();
    }
}

/// One interval of the run, over all groups and clients.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Number; negative during the warm-up.
    pub number: i64,
    /// The interval is wholly or partly after the stop.
    pub drain: bool,
    /// Supplement to an earlier row of the same number.
    pub supplement: bool,
    /// By class.
    pub classes: Vec<ClassTotals>,
    /// By class: longest latency of an operation that completed before the stop.
    pub within_ns_max: Vec<u64>,
    /// By class: operations that completed after the stop, or never.
    pub drained: Vec<DrainTotals>,
    /// User processor time of the threads.
    pub cpu_user_ns: u64,
    /// System processor time.
    pub cpu_system_ns: u64,
    /// System calls that submitted or waited.
    pub calls: u64,
}

/// Totals of one group.
#[derive(Clone, Debug, Default)]
pub struct GroupTotals {
    /// By client and class (`client × classes + class`), if recorded; only for the measurement.
    pub cells: Vec<ClassTotals>,
    /// The generator's own lateness.
    pub lag_own: Totals,
    /// Sum of the generator's lateness.
    pub lag_own_ns_sum: u64,
    /// Lateness of operations that waited for a full queue.
    pub lag_full: Totals,
    /// Sum of that lateness.
    pub lag_full_ns_sum: u64,
    /// User processor time of the thread in the measurement.
    pub cpu_user_ns: u64,
    /// System processor time of the thread in the measurement.
    pub cpu_system_ns: u64,
    /// Time spent spinning on the clock before a start, in the measurement.
    pub spun_ns: u64,
    /// System calls that submitted or waited.
    pub calls: u64,
}

/// Totals of a run, and open rows.
#[derive(Debug)]
pub struct Collector {
    classes: usize,
    per_client: bool,
    pending: BTreeMap<i64, Interval>,
    spare: Vec<Interval>,
    /// Per group: all intervals below this number have been reported.
    reached: Vec<i64>,
    emitted_below: i64,
    /// By class: totals of measurement and drain.
    pub totals: Vec<ClassTotals>,
    /// By class: operations that completed in the measurement, which count for the rate.
    pub window: Vec<Sums>,
    /// By class: totals before the measurement.
    pub warm_up: Vec<Sums>,
    /// By group.
    pub groups: Vec<GroupTotals>,
}

impl Collector {
    /// Creates a collector of `classes` classes from groups with `cells` cells each.
    #[must_use]
    pub fn new(classes: usize, cells: &[usize], per_client: bool) -> Self {
        let group = |cells: &usize| GroupTotals {
            cells: empty(if per_client { *cells } else { 0 }),
            ..GroupTotals::default()
        };
        Self {
            classes,
            per_client,
            pending: BTreeMap::new(),
            spare: Vec::new(),
            reached: vec![i64::MIN; cells.len()],
            emitted_below: i64::MIN,
            totals: empty(classes),
            window: vec![Sums::default(); classes],
            warm_up: vec![Sums::default(); classes],
            groups: cells.iter().map(group).collect(),
        }
    }

    /// Returns true if every thread has reported its last snapshot.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reached.iter().all(|reached| *reached == i64::MAX)
    }

    /// Produces the rows that are still open.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Interval)) {
        self.flush(i64::MAX, each);
    }

    /// Adds a snapshot and empties it.
    pub fn take(&mut self, snapshot: &mut Snapshot, each: &mut dyn FnMut(&Interval)) {
        let number = snapshot.interval;
        let supplement = number < self.emitted_below;
        let mut row = match self.pending.remove(&number) {
            Some(row) => row,
            None => self.blank(number, supplement),
        };
        row.drain |= snapshot.drain;
        row.cpu_user_ns += snapshot.cpu_user_ns;
        row.cpu_system_ns += snapshot.cpu_system_ns;
        row.calls += snapshot.calls;
        self.fold(snapshot, &mut row);
        if supplement {
            self.give(row, each);
        } else {
            self.pending.insert(number, row);
        }
        if let Some(reached) = self.reached.get_mut(snapshot.group as usize) {
            *reached = if snapshot.last { i64::MAX } else { number };
        }
        (snapshot.cpu_user_ns, snapshot.cpu_system_ns, snapshot.calls) = (0, 0, 0);
        snapshot.spun_ns = 0;
        // A snapshot of the same number may follow, because the stop cuts an interval in two. The
        // number is complete only when a later number has arrived.
        let complete_below = self.reached.iter().copied().min().unwrap_or(i64::MAX);
        self.flush(complete_below, each);
        while self.pending.len() > PENDING_MAX {
            if let Some((_, row)) = self.pending.pop_first() {
                self.give(row, each);
            }
        }
    }

    fn fold(&mut self, snapshot: &mut Snapshot, row: &mut Interval) {
        let measured = snapshot.interval >= 0;
        let Some(group) = self.groups.get_mut(snapshot.group as usize) else { return };
        group.calls += snapshot.calls;
        if measured && !snapshot.drain {
            group.cpu_user_ns += snapshot.cpu_user_ns;
            group.cpu_system_ns += snapshot.cpu_system_ns;
            group.spun_ns += snapshot.spun_ns;
        }
        let (own, full) = (&mut snapshot.lag.own, &mut snapshot.lag.full);
        if measured {
            own.times.drain_into(&mut [&mut group.lag_own]);
            full.times.drain_into(&mut [&mut group.lag_full]);
            group.lag_own_ns_sum += own.sum_ns;
            group.lag_full_ns_sum += full.sum_ns;
        } else {
            own.times.drain_into(&mut []);
            full.times.drain_into(&mut []);
        }
        (own.sum_ns, full.sum_ns) = (0, 0);
        let Interval { classes, within_ns_max, drained, .. } = row;
        for (at, cell) in snapshot.cells.iter_mut().enumerate() {
            let class = at % self.classes;
            let row = &mut classes[class];
            row.sums.add(&cell.sums);
            let longest_ns = cell.latency.max_ns().unwrap_or(0);
            if snapshot.drain {
                drained[class].sums.add(&cell.sums);
                drained[class].latency_ns_max = drained[class].latency_ns_max.max(longest_ns);
            } else {
                within_ns_max[class] = within_ns_max[class].max(longest_ns);
            }
            if !measured {
                self.warm_up[class].add(&cell.sums);
                cell.latency.drain_into(&mut [&mut row.latency]);
                cell.service.drain_into(&mut [&mut row.service]);
                cell.sums = Sums::default();
                continue;
            }
            if !snapshot.drain {
                self.window[class].add(&cell.sums);
            }
            let total = &mut self.totals[class];
            total.sums.add(&cell.sums);
            if self.per_client {
                let own = &mut group.cells[at];
                own.sums.add(&cell.sums);
                let into = &mut [&mut row.latency, &mut total.latency, &mut own.latency];
                cell.latency.drain_into(into);
                let into = &mut [&mut row.service, &mut total.service, &mut own.service];
                cell.service.drain_into(into);
            } else {
                cell.latency.drain_into(&mut [&mut row.latency, &mut total.latency]);
                cell.service.drain_into(&mut [&mut row.service, &mut total.service]);
            }
            cell.sums = Sums::default();
        }
    }

    fn blank(&mut self, number: i64, supplement: bool) -> Interval {
        let mut row = self.spare.pop().unwrap_or_else(|| Interval {
            classes: empty(self.classes),
            within_ns_max: vec![0; self.classes],
            drained: vec![DrainTotals::default(); self.classes],
            ..Interval::default()
        });
        (row.number, row.supplement) = (number, supplement);
        row
    }

    fn flush(&mut self, below: i64, each: &mut dyn FnMut(&Interval)) {
        while let Some(entry) = self.pending.first_entry() {
            if *entry.key() >= below {
                break;
            }
            let row = entry.remove();
            self.give(row, each);
        }
    }

    fn give(&mut self, mut row: Interval, each: &mut dyn FnMut(&Interval)) {
        each(&row);
        self.emitted_below = self.emitted_below.max(row.number.saturating_add(1));
        for class in &mut row.classes {
            class.clear();
        }
        row.within_ns_max.fill(0);
        row.drained.fill(DrainTotals::default());
        (row.drain, row.cpu_user_ns, row.cpu_system_ns, row.calls) = (false, 0, 0, 0);
        self.spare.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(group: u32, interval: i64, latencies: &[u64]) -> Snapshot {
        let mut snapshot = Snapshot::new(group, 2);
        snapshot.interval = interval;
        for latency in latencies {
            snapshot.cells[1].record(*latency, latency / 2, 4096);
        }
        snapshot
    }

    fn run(snapshots: Vec<Snapshot>, groups: usize) -> (Collector, Vec<(i64, u64, bool)>) {
        let mut collector = Collector::new(2, &vec![2; groups], true);
        let mut rows = Vec::new();
        for mut snapshot in snapshots {
            collector.take(&mut snapshot, &mut |row| {
                let operations = row.classes[1].sums.operations;
                assert_eq!(row.classes[1].latency.count(), operations);
                assert_eq!(row.classes[0].sums, Sums::default());
                rows.push((row.number, operations, row.supplement));
            });
            assert!(snapshot.cells.iter().all(|cell| cell.latency.is_empty()));
        }
        collector.flush(i64::MAX, &mut |row| {
            rows.push((row.number, row.classes[1].sums.operations, row.supplement));
        });
        (collector, rows)
    }

    #[test]
    fn rows_wait_for_every_group() {
        let (collector, rows) = run(
            vec![
                snapshot(0, -1, &[1]),
                snapshot(1, -1, &[1, 1]),
                snapshot(0, 0, &[10]),
                snapshot(0, 1, &[10, 10]),
                snapshot(1, 0, &[30]),
                snapshot(1, 1, &[]),
            ],
            2,
        );
        assert_eq!(rows, [(-1, 3, false), (0, 2, false), (1, 2, false)]);
        assert_eq!(collector.warm_up[1].operations, 3);
        assert_eq!(collector.totals[1].sums.operations, 4);
        assert_eq!(collector.totals[1].latency.max_ns(), Some(30));
        assert_eq!(collector.window[1].bytes, 4 * 4096);
        assert_eq!(collector.groups[1].cells[1].service.max_ns(), Some(15));
    }

    #[test]
    fn a_stuck_group_holds_rows_back_only_so_far_and_loses_nothing() {
        let mut all: Vec<_> = (0..20).map(|k| snapshot(0, k, &[5])).collect();
        all.push(snapshot(1, 0, &[7, 7]));
        all.push(snapshot(1, 15, &[7]));
        let (collector, rows) = run(all, 2);
        assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 23);
        assert!(rows.contains(&(0, 2, true)), "{rows:?}");
        assert!(rows.contains(&(15, 2, false)), "still open: {rows:?}");
        assert_eq!(collector.totals[1].sums.operations, 23);
    }

    #[test]
    fn what_comes_after_the_stop_counts_in_latency_but_not_in_the_rate() {
        let mut late = snapshot(0, 3, &[900]);
        late.drain = true;
        let (collector, rows) = run(vec![snapshot(0, 3, &[5, 6]), late], 1);
        assert_eq!(rows, [(3, 3, false)], "the stop cut one interval in two");
        assert_eq!(collector.window[1].operations, 2);
        assert_eq!(collector.totals[1].latency.max_ns(), Some(900));
    }

    #[test]
    fn an_interval_that_the_stop_cut_has_the_longest_latency_of_each_part() {
        let mut collector = Collector::new(2, &[2], false);
        let mut late = snapshot(0, 3, &[900]);
        (late.drain, late.last) = (true, true);
        let mut seen = None;
        let mut keep = |row: &Interval| seen = Some((row.within_ns_max[1], row.drained[1]));
        collector.take(&mut snapshot(0, 3, &[5, 6]), &mut keep);
        collector.take(&mut late, &mut keep);
        collector.flush(i64::MAX, &mut keep);
        let (within, drained) = seen.unwrap();
        assert_eq!((within, drained.latency_ns_max), (6, 900));
    }

    #[test]
    fn what_never_came_back_is_in_latency_and_in_no_rate() {
        let mut collector = Collector::new(2, &[2], false);
        let mut late = Snapshot::new(0, 2);
        (late.interval, late.drain, late.last) = (3, true, true);
        late.cells[1].abandon(5_000, 4_000);
        late.cells[1].leave(3_000);
        let mut seen = None;
        collector.take(&mut snapshot(0, 3, &[5, 6]), &mut |_| ());
        collector.take(&mut late, &mut |row| seen = Some(row.drained[1]));
        collector.flush(i64::MAX, &mut |row| seen = Some(row.drained[1]));
        let drained = seen.unwrap();
        assert_eq!((drained.latency_ns_max, drained.sums.counted()), (5_000, 2));
        let total = &collector.totals[1];
        assert_eq!((total.sums.operations, total.sums.counted()), (2, 4));
        assert_eq!((total.latency.count(), total.service.count()), (4, 3));
        assert_eq!(total.sums.latency_ns, 8_011);
        assert_eq!(collector.window[1].counted(), 2);
    }
}
