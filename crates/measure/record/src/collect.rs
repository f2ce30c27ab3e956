//! Collects the snapshots of all threads, adds them to totals and produces one row per interval.
//!
//! A row is complete when every thread has reported its part of the interval. A blocked thread
//! delays rows by at most [`PENDING_MAX`] intervals. If its snapshots arrive after that, they
//! become supplements to these rows. The memory is therefore limited, and no snapshot is lost.

use std::collections::BTreeMap;

use plimsoll_sys::cpu::CpuTime;

use crate::generator::WaitTotals;
use crate::histogram::{HistogramTotals, WaitKind};
use crate::snapshot::IntervalRecorder;
use crate::totals::OperationTotals;

/// Maximum number of intervals that are not complete yet.
const PENDING_MAX: usize = 8;

/// Totals and histograms of one class of operations over a period.
#[derive(Clone, Debug, Default)]
pub struct ClassRecord {
    /// Exact sums.
    pub totals: OperationTotals,
    /// Times from the intended start to the completion.
    pub latency: HistogramTotals,
    /// Times from the submission to the completion.
    pub service: HistogramTotals,
}

/// Creates the tables one by one, because cloning a table would touch all of its memory.
fn empty(count: usize) -> Vec<ClassRecord> {
    (0..count).map(|_| ClassRecord::default()).collect()
}

impl ClassRecord {
    fn clear(&mut self) {
        self.totals = OperationTotals::default();
        self.latency.clear();
        self.service.clear();
    }

    /// Adds totals, but not their histograms.
    fn add(&mut self, totals: &OperationTotals) {
        self.totals.add(totals);
        self.latency.note_max(totals.latency_ns_max);
        self.service.note_max(totals.service_ns_max);
    }
}

/// One interval of the run, for all groups and clients.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Number of the interval; negative during the warm-up.
    pub number: i64,
    /// True if at least a part of the interval is after the end of the measurement.
    pub drain: bool,
    /// True if this is a supplement to an earlier row with the same number.
    pub supplement: bool,
    /// By class.
    pub classes: Vec<ClassRecord>,
    /// For each class, the operations that completed before the end of the measurement.
    pub within: Vec<OperationTotals>,
    /// For each class, the operations that completed after the end of the measurement, or never.
    pub drained: Vec<OperationTotals>,
}

/// Totals of one group.
#[derive(Clone, Debug, Default)]
pub struct GroupTotals {
    /// Records of the measurement for each client and class; the index is `client × classes +
    /// class`. Empty if clients are not recorded separately.
    pub cells: Vec<ClassRecord>,
    /// The generator's own lateness ([`WaitKind::Own`]).
    pub own: WaitTotals,
    /// Lateness of operations that waited because the queue was full ([`WaitKind::Held`]).
    pub held: WaitTotals,
    /// Processor time of the thread during the measurement.
    pub cpu: CpuTime,
    /// Time that the thread spent polling during the measurement.
    pub spun_ns: u64,
}

/// Totals of a run, and rows that are not complete yet.
#[derive(Debug)]
pub struct Collector {
    classes: usize,
    pending: BTreeMap<i64, Interval>,
    spare: Vec<Interval>,
    /// Number of the first interval that each group has not reported completely.
    reached: Vec<i64>,
    emitted_below: i64,
    /// Totals of each class over the measurement and the drain.
    pub totals: Vec<ClassRecord>,
    /// Operations of each class that completed during the measurement. Rates are computed from
    /// these operations.
    pub window: Vec<OperationTotals>,
    /// For each class, the operations that completed after the end of the measurement, or never.
    pub drained: Vec<OperationTotals>,
    /// Totals of each class before the measurement.
    pub warm_up: Vec<OperationTotals>,
    /// By group.
    pub groups: Vec<GroupTotals>,
}

impl Collector {
    /// Creates a collector for `classes` classes. `cells` contains the number of cells of each
    /// group.
    #[must_use]
    pub fn new(classes: usize, cells: &[usize], per_client: bool) -> Self {
        let group = |cells: &usize| GroupTotals {
            cells: empty(if per_client { *cells } else { 0 }),
            ..GroupTotals::default()
        };
        Self {
            classes,
            pending: BTreeMap::new(),
            spare: Vec::new(),
            reached: vec![i64::MIN; cells.len()],
            emitted_below: i64::MIN,
            totals: empty(classes),
            window: vec![OperationTotals::default(); classes],
            drained: vec![OperationTotals::default(); classes],
            warm_up: vec![OperationTotals::default(); classes],
            groups: cells.iter().map(group).collect(),
        }
    }

    /// Returns true if every thread has reported its last snapshot.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reached.iter().all(|reached| *reached == i64::MAX)
    }

    /// Produces the remaining rows, although they are not complete yet.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Interval)) {
        self.flush(i64::MAX, each);
    }

    /// Adds the records of a thread's interval to the totals, and empties the records.
    pub fn take(&mut self, records: &mut IntervalRecorder, each: &mut dyn FnMut(&Interval)) {
        let number = records.snapshot.interval;
        let supplement = number < self.emitted_below;
        let mut row = match self.pending.remove(&number) {
            Some(row) => row,
            None => self.blank(number, supplement),
        };
        row.drain |= records.snapshot.drained;
        self.fold(records, &mut row);
        if supplement {
            self.give(row, each);
        } else {
            self.pending.insert(number, row);
        }
        if let Some(reached) = self.reached.get_mut(records.snapshot.thread as usize) {
            *reached = if records.snapshot.last { i64::MAX } else { number };
        }
        // A second snapshot with the same number may follow, because the stop divides an interval
        // in two. The interval is complete only when a snapshot with a later number has arrived.
        let complete_below = self.reached.iter().copied().min().unwrap_or(i64::MAX);
        self.flush(complete_below, each);
        while self.pending.len() > PENDING_MAX {
            if let Some((_, row)) = self.pending.pop_first() {
                self.give(row, each);
            }
        }
    }

    fn fold(&mut self, records: &mut IntervalRecorder, row: &mut Interval) {
        let IntervalRecorder { snapshot, histograms } = records;
        let measured = snapshot.interval >= 0;
        let Some(group) = self.groups.get_mut(snapshot.thread as usize) else { return };
        let cpu = std::mem::take(&mut snapshot.cpu);
        let spun_ns = std::mem::take(&mut snapshot.spun_ns);
        if measured && !snapshot.drained {
            group.cpu.add(&cpu);
            group.spun_ns += spun_ns;
        }
        for (kind, waits, into) in [
            (WaitKind::Own, &mut snapshot.own, &mut group.own),
            (WaitKind::Held, &mut snapshot.held, &mut group.held),
        ] {
            let (waits, mut into) = (std::mem::take(waits), Some(into).filter(|_| measured));
            histograms.take_waits(kind, &mut |bucket, count| {
                if let Some(into) = &mut into {
                    into.times.add(bucket, count);
                }
            });
            if let Some(into) = into {
                into.add(&waits);
            }
        }
        for (at, totals) in snapshot.totals.iter_mut().enumerate() {
            let class = at % self.classes;
            let totals = std::mem::take(totals);
            let part = if snapshot.drained { &mut row.drained } else { &mut row.within };
            part[class].add(&totals);
            let mut into = [Some(&mut row.classes[class]), None, None];
            if measured {
                let part = if snapshot.drained { &mut self.drained } else { &mut self.window };
                part[class].add(&totals);
                into[1] = Some(&mut self.totals[class]);
                into[2] = group.cells.get_mut(at);
            } else {
                self.warm_up[class].add(&totals);
            }
            into.iter_mut().flatten().for_each(|record| record.add(&totals));
            histograms.take(at, &mut |bucket, latencies, services| {
                for record in into.iter_mut().flatten() {
                    record.latency.add(bucket, latencies);
                    record.service.add(bucket, services);
                }
            });
        }
    }

    fn blank(&mut self, number: i64, supplement: bool) -> Interval {
        let mut row = self.spare.pop().unwrap_or_else(|| Interval {
            classes: empty(self.classes),
            within: vec![OperationTotals::default(); self.classes],
            drained: vec![OperationTotals::default(); self.classes],
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
        row.within.fill(OperationTotals::default());
        row.drained.fill(OperationTotals::default());
        row.drain = false;
        self.spare.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::HistogramTable;

    fn records(group: u32, interval: i64, latencies: &[u64]) -> IntervalRecorder {
        let mut records = IntervalRecorder::new(group, 2, HistogramTable::sparse(2));
        records.snapshot.interval = interval;
        for latency in latencies {
            records.record(1, 4096, *latency, latency / 2);
        }
        records
    }

    fn run(all: Vec<IntervalRecorder>, groups: usize) -> (Collector, Vec<(i64, u64, bool)>) {
        let mut collector = Collector::new(2, &vec![2; groups], true);
        let mut rows = Vec::new();
        for mut records in all {
            collector.take(&mut records, &mut |row| {
                let operations = row.classes[1].totals.operations;
                assert_eq!(row.classes[1].latency.count(), operations);
                assert_eq!(row.classes[0].totals, OperationTotals::default());
                rows.push((row.number, operations, row.supplement));
            });
            assert_eq!(records.snapshot.totals, [OperationTotals::default(); 2]);
            records.histograms.take(1, &mut |_, _, _| panic!("a count is left"));
        }
        collector.flush(i64::MAX, &mut |row| {
            rows.push((row.number, row.classes[1].totals.operations, row.supplement));
        });
        (collector, rows)
    }

    #[test]
    fn rows_wait_for_every_group() {
        let (collector, rows) = run(
            vec![
                records(0, -1, &[1]),
                records(1, -1, &[1, 1]),
                records(0, 0, &[10]),
                records(0, 1, &[10, 10]),
                records(1, 0, &[30]),
                records(1, 1, &[]),
            ],
            2,
        );
        assert_eq!(rows, [(-1, 3, false), (0, 2, false), (1, 2, false)]);
        assert_eq!(collector.warm_up[1].operations, 3);
        assert_eq!(collector.totals[1].totals.operations, 4);
        assert_eq!(collector.totals[1].latency.max_ns(), Some(30));
        assert_eq!(collector.window[1].bytes, 4 * 4096);
        assert_eq!(collector.groups[1].cells[1].service.max_ns(), Some(15));
    }

    #[test]
    fn a_stuck_group_holds_rows_back_only_so_far_and_loses_nothing() {
        let mut all: Vec<_> = (0..20).map(|k| records(0, k, &[5])).collect();
        all.push(records(1, 0, &[7, 7]));
        all.push(records(1, 15, &[7]));
        let (collector, rows) = run(all, 2);
        assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 23);
        assert!(rows.contains(&(0, 2, true)), "{rows:?}");
        assert!(rows.contains(&(15, 2, false)), "still open: {rows:?}");
        assert_eq!(collector.totals[1].totals.operations, 23);
    }

    #[test]
    fn what_comes_after_the_stop_counts_in_latency_but_not_in_the_rate() {
        let mut late = records(0, 3, &[900]);
        late.snapshot.drained = true;
        let (collector, rows) = run(vec![records(0, 3, &[5, 6]), late], 1);
        assert_eq!(rows, [(3, 3, false)], "the stop cut one interval in two");
        assert_eq!(collector.window[1].operations, 2);
        assert_eq!(collector.totals[1].latency.max_ns(), Some(900));
    }

    #[test]
    fn an_interval_that_the_stop_cut_has_the_longest_latency_of_each_part() {
        let mut collector = Collector::new(2, &[2], false);
        let mut late = records(0, 3, &[900]);
        (late.snapshot.drained, late.snapshot.last) = (true, true);
        let mut seen = None;
        let mut keep = |row: &Interval| seen = Some((row.within[1], row.drained[1]));
        collector.take(&mut records(0, 3, &[5, 6]), &mut keep);
        collector.take(&mut late, &mut keep);
        collector.flush(i64::MAX, &mut keep);
        let (within, drained) = seen.unwrap();
        assert_eq!((within.latency_ns_max, drained.latency_ns_max), (6, 900));
    }

    #[test]
    fn what_never_came_back_is_in_latency_and_in_no_rate() {
        let mut collector = Collector::new(2, &[2], false);
        let mut late = records(0, 3, &[]);
        (late.snapshot.drained, late.snapshot.last) = (true, true);
        late.abandon(1, 5_000, 4_000);
        late.never_start(1, 3_000);
        let mut seen = None;
        collector.take(&mut records(0, 3, &[5, 6]), &mut |_| ());
        collector.take(&mut late, &mut |row| seen = Some(row.drained[1]));
        collector.flush(i64::MAX, &mut |row| seen = Some(row.drained[1]));
        let drained = seen.unwrap();
        assert_eq!((drained.latency_ns_max, drained.counted()), (5_000, 2));
        let total = &collector.totals[1];
        assert_eq!((total.totals.operations, total.totals.counted()), (2, 4));
        assert_eq!((total.latency.count(), total.service.count()), (4, 3));
        assert_eq!(total.totals.latency_ns_sum, 8_011);
        assert_eq!(collector.window[1].counted(), 2);
    }
}
