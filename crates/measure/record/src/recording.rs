//! The recording of a run: phases, series, histograms and totals, built from snapshots of threads.

use std::collections::BTreeMap;

use plimsoll_evidence::events::EventRecord;
use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::observed::Observed;
use plimsoll_evidence::run::{
    Checks, ClassTotals, End, EndKind, Engine, Instance, Phase, PhaseKind,
};
use plimsoll_evidence::series::{Data, Row, drained_name, errors_name};
use plimsoll_workload::step::Class;

use crate::generator::GeneratorFigures;
use crate::histogram::Latencies;
use crate::progress::Watcher;
use crate::snapshot::IntervalSnapshot;
use crate::spool::{Batch, Spool};
use crate::totals::OperationTotals;

/// Minimum number of rows that are moved to the spool together.
const BATCH_ROWS: usize = 1024;
/// Rows stay in memory up to this age.
const AGE_NS: u64 = 60_000_000_000;

/// An error that ends a run.
pub trait Failure {
    /// Returns how this error makes the run end.
    fn end_kind(&self) -> EndKind;
    /// Returns the error message with its hints.
    fn says(&self) -> String;
    /// Returns true if, because of the failure, a thread is still blocked in a call to the target.
    fn leaves_a_call(&self) -> bool;
}

/// Evidence of a running plan.
#[derive(Debug)]
pub struct Recording {
    /// Start of the run on the driver's clock.
    pub start_ns: u64,
    /// End of the run.
    pub end: End,
    /// I/O engine.
    pub engine: Engine,
    /// Phases in order. The last phase may still be running.
    pub phases: Vec<Phase>,
    /// Totals of each class in the measured phase.
    pub classes: Vec<ClassTotals>,
    /// Databases of the workload, or its other instances.
    pub instances: Vec<Instance>,
    /// Counters of the workload for the measured phase.
    pub counters: BTreeMap<String, u64>,
    /// Results of data checks.
    pub checks: Checks,
    /// Events of the plan, with the times at which they happened.
    pub events: Vec<EventRecord>,
    /// Rows that are not in the spool.
    pub series: Vec<Row>,
    /// Histograms that are not in the spool.
    pub intervals: Vec<Interval>,
    /// Observed activity of the underlying system during the measurement.
    pub observed: Observed,
    /// Figures about the threads of a stateful workload during the measurement.
    pub generator: GeneratorFigures,
    /// True if a thread is blocked in a call to the target, so that further calls may also block.
    pub left_behind: bool,
    /// Start of the oldest row that the driver still reads; `u64::MAX` if it reads no rows.
    pub needed_from_ns: u64,
    /// Numbers of rows and histograms that were already reported to the watcher.
    reported: (usize, usize),
    /// Optional file for older rows and histograms.
    spool: Option<Spool>,
    /// Number of rows in memory at which older rows are moved to the spool.
    spool_from: usize,
}

impl Recording {
    /// Creates an empty recording of a run that starts at `start_ns`.
    pub fn new(start_ns: u64) -> Self {
        Self {
            start_ns,
            end: End { kind: EndKind::Completed, says: String::new() },
            engine: Engine::default(),
            phases: Vec::new(),
            classes: Vec::new(),
            instances: Vec::new(),
            counters: BTreeMap::new(),
            checks: Checks::default(),
            events: Vec::new(),
            series: Vec::new(),
            intervals: Vec::new(),
            observed: Observed::default(),
            generator: GeneratorFigures::default(),
            left_behind: false,
            needed_from_ns: u64::MAX,
            reported: (0, 0),
            spool: None,
            spool_from: BATCH_ROWS,
        }
    }

    /// From now on, moves older rows and histograms to a spool.
    #[must_use]
    pub fn with_spool(self, spool: Option<Spool>) -> Self {
        Self { spool, ..self }
    }

    /// Converts the driver's clock to time since the start of the run.
    pub fn since_start_ns(&self, driver_ns: u64) -> u64 {
        driver_ns.saturating_sub(self.start_ns)
    }

    /// Starts a phase. Returns its index.
    pub fn begin(&mut self, kind: PhaseKind, driver_ns: u64) -> u32 {
        let start_ns = self.since_start_ns(driver_ns);
        self.phases.push(Phase {
            kind,
            start_ns,
            duration_ns: 0,
            read_bytes: 0,
            written_bytes: 0,
            reached: false,
            note: String::new(),
            boundary_error_ns: None,
        });
        (self.phases.len() - 1) as u32
    }

    /// Moves the start of a phase that was delayed after it was announced.
    pub fn put_off(&mut self, phase: u32, driver_ns: u64) {
        let start_ns = self.since_start_ns(driver_ns);
        if let Some(phase) = self.phases.get_mut(phase as usize) {
            phase.start_ns = start_ns;
        }
    }

    /// Ends a phase. A run can be stopped before the announced start of a phase. The start of this
    /// phase is then set to its end, and earlier phases are shortened.
    pub fn finish(&mut self, phase: u32, driver_ns: u64, reached: bool, note: impl Into<String>) {
        let now_ns = self.since_start_ns(driver_ns);
        let Some((last, before)) =
            self.phases.get_mut(..=phase as usize).and_then(<[Phase]>::split_last_mut)
        else {
            return;
        };
        last.start_ns = last.start_ns.min(now_ns);
        last.duration_ns = now_ns - last.start_ns;
        last.reached = reached;
        last.note = note.into();
        for earlier in before {
            earlier.start_ns = earlier.start_ns.min(last.start_ns);
            earlier.duration_ns = earlier.duration_ns.min(last.start_ns - earlier.start_ns);
        }
    }

    /// Reports new rows and histograms to the watcher, and moves older rows and histograms to the
    /// spool.
    pub fn tell(&mut self, watcher: &mut dyn Watcher) {
        let rows = self.series.get(self.reported.0..).unwrap_or_default();
        if !rows.is_empty() {
            watcher.rows(rows);
        }
        let latencies = self.intervals.get(self.reported.1..).unwrap_or_default();
        if !latencies.is_empty() {
            watcher.latencies(latencies);
        }
        self.reported = (self.series.len(), self.intervals.len());
        self.move_to_spool();
    }

    fn move_to_spool(&mut self) {
        let (Some(spool), Some(last)) = (&self.spool, self.series.last()) else { return };
        let before_ns = last.start_ns.saturating_sub(AGE_NS).min(self.needed_from_ns);
        let is_old = |start_ns: u64| start_ns < before_ns;
        let is_enough = self.series.get(BATCH_ROWS).is_some_and(|row| is_old(row.start_ns));
        if !is_enough || self.series.len() < self.spool_from {
            return;
        }
        let rows = self.series.iter().take_while(|row| is_old(row.start_ns)).count();
        let histograms = self.intervals.iter().take_while(|one| is_old(one.start_ns)).count();
        let batch = Batch {
            rows: self.series.drain(..rows).collect(),
            intervals: self.intervals.drain(..histograms).collect(),
        };
        self.spool_from = BATCH_ROWS;
        if let Err(batch) = spool.push(batch) {
            // The disk is slow. Each attempt moves all old rows, so the next attempt is made only
            // when the number of rows has doubled.
            self.prepend(batch);
            self.spool_from = 2 * self.series.len();
        }
        self.reported = (self.series.len(), self.intervals.len());
    }

    fn prepend(&mut self, batch: Batch) {
        self.series.splice(..0, batch.rows);
        self.intervals.splice(..0, batch.intervals);
    }

    /// Moves all rows and histograms back into memory. Call it once, after the last phase.
    pub fn recall(&mut self) {
        match self.spool.take().map(Spool::recall) {
            Some(Ok(batch)) => self.prepend(batch),
            Some(Err(error)) => {
                let says = format!(
                    "cannot read the rows and histograms that the run had moved to disk: {error}"
                );
                if self.is_well() {
                    self.fail(EndKind::Environment, says);
                } else {
                    self.end.says.push_str("; ");
                    self.end.says.push_str(&says);
                }
            }
            None => {}
        }
    }

    /// Records the reason for an early end. The first reason is preserved, but a defect replaces
    /// any other reason.
    pub fn fail(&mut self, kind: EndKind, says: impl Into<String>) {
        let first = self.end.kind == EndKind::Completed;
        if first || kind == EndKind::Defect && self.end.kind != EndKind::Defect {
            self.end = End { kind, says: says.into() };
        }
    }

    /// Records an error as the reason for the end of the run.
    pub fn fail_with(&mut self, error: &impl Failure) {
        self.left_behind |= error.leaves_a_call();
        self.fail(error.end_kind(), error.says());
    }

    /// Returns true if no reason for an early end was recorded.
    pub fn is_well(&self) -> bool {
        self.end.kind == EndKind::Completed
    }

    /// Adds a thread's interval. `classes` are the classes of that thread.
    pub fn take(&mut self, snapshot: &IntervalSnapshot, classes: &[Class]) {
        let Some(phase) = self.phases.get(snapshot.phase as usize) else { return };
        let measured = phase.kind == PhaseKind::Measure;
        let start_ns = self.since_start_ns(snapshot.start_ns);
        let time = (start_ns, snapshot.end_ns.saturating_sub(snapshot.start_ns));
        for (totals, class) in snapshot.totals.iter().zip(classes) {
            self.add_row(snapshot.phase, time, class, totals, snapshot.drained);
            self.add_errors_row(snapshot.phase, time, class, totals.errors);
            if measured {
                self.add_to_totals(class, totals, snapshot.drained);
            }
        }
        let start_ns = self.since_start_ns(snapshot.histogram_start_ns);
        let time = (start_ns, snapshot.end_ns.saturating_sub(snapshot.histogram_start_ns));
        for (latencies, class) in snapshot.latencies.iter().zip(classes) {
            self.add_histograms(time, class, latencies.clone());
        }
        if measured {
            self.generator.take(snapshot, start_ns, &mut self.intervals);
        }
    }

    /// Adds one interval (start and length) of a class. Its bytes are added to the phase. A row is
    /// added if operations were counted.
    pub(crate) fn add_row(
        &mut self,
        phase: u32,
        (start_ns, duration_ns): (u64, u64),
        class: &Class,
        totals: &OperationTotals,
        drained: bool,
    ) {
        if let Some(phase) = self.phases.get_mut(phase as usize) {
            let bytes =
                if class.is_read { &mut phase.read_bytes } else { &mut phase.written_bytes };
            *bytes += totals.bytes;
        }
        if totals.counted() > 0 {
            let name = if drained { drained_name(&class.name) } else { class.name.clone() };
            let data = Data::Class {
                count: totals.counted(),
                sum_ns: totals.latency_ns_sum,
                bytes: totals.bytes,
                max_ns: totals.latency_ns_max,
            };
            self.series.push(Row { phase, start_ns, duration_ns, name, data });
        }
    }

    /// If operations of a class failed in an interval (start and length), adds a row with their
    /// number.
    pub(crate) fn add_errors_row(
        &mut self,
        phase: u32,
        (start_ns, duration_ns): (u64, u64),
        class: &Class,
        errors: u64,
    ) {
        if errors > 0 {
            let (name, data) = (errors_name(&class.name), Data::Gauge(errors as f64));
            self.series.push(Row { phase, start_ns, duration_ns, name, data });
        }
    }

    /// Adds a class's operations to the totals of the measured phase.
    pub(crate) fn add_to_totals(&mut self, class: &Class, new: &OperationTotals, drained: bool) {
        let at = self.classes.iter().position(|totals| totals.name == class.name);
        let at = at.unwrap_or_else(|| {
            let (name, group) = (class.name.clone(), class.group.to_string());
            self.classes.push(ClassTotals {
                abandoned: Some(0),
                never_started: Some(0),
                ..ClassTotals::empty(name, group, class.instance, class.is_read)
            });
            self.classes.len() - 1
        });
        let totals = &mut self.classes[at];
        totals.count += new.counted();
        totals.size_bytes += new.bytes;
        if drained {
            totals.drained += new.counted();
            totals.drained_bytes += new.bytes;
        }
        let add = |into: &mut Option<u64>, count| *into = Some(into.unwrap_or(0) + count);
        add(&mut totals.abandoned, new.abandoned);
        add(&mut totals.never_started, new.never_started);
        totals.latency_ns_sum = totals.latency_ns_sum.saturating_add(new.latency_ns_sum);
        totals.latency_ns_max = totals.latency_ns_max.max(new.latency_ns_max);
        totals.service_ns_sum = totals.service_ns_sum.saturating_add(new.service_ns_sum);
        totals.service_ns_max = totals.service_ns_max.max(new.service_ns_max);
        totals.errors += new.errors;
    }

    /// Adds the histograms of a class for one interval (start and length).
    pub(crate) fn add_histograms(
        &mut self,
        (start_ns, duration_ns): (u64, u64),
        class: &Class,
        Latencies { latency, service }: Latencies,
    ) {
        let tags = [class.name.clone(), format!("{}.service", class.name)];
        for (tag, histogram) in tags.into_iter().zip([latency, service]) {
            if !histogram.is_empty() {
                self.intervals.push(Interval { tag, start_ns, duration_ns, histogram });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::progress::Progress;
    use plimsoll_evidence::latency::Packed;
    use plimsoll_workload::step::ClassGroup;

    fn class(name: &str, is_read: bool) -> Class {
        Class { name: name.into(), group: ClassGroup::Transactional, is_read, instance: 0 }
    }

    fn snapshot(phase: u32, operations: u64) -> IntervalSnapshot {
        let totals =
            OperationTotals { operations, bytes: operations * 10, ..OperationTotals::default() };
        IntervalSnapshot {
            phase,
            start_ns: 1_000,
            end_ns: 2_000,
            totals: vec![totals; 2],
            histogram_start_ns: 1_000,
            ..IntervalSnapshot::default()
        }
    }

    #[test]
    fn totals_are_of_the_measured_phase_and_bytes_of_each() {
        let mut recording = Recording::new(500);
        let classes = [class("db0.read", true), class("db0.write", false)];
        let warm_up = recording.begin(PhaseKind::WarmUp, 600);
        recording.take(&snapshot(warm_up, 3), &classes);
        recording.finish(warm_up, 2_000, true, "");
        let measure = recording.begin(PhaseKind::Measure, 2_000);
        recording.take(&snapshot(measure, 5), &classes);
        assert_eq!(recording.phases[0].read_bytes, 30);
        assert_eq!(recording.phases[0].duration_ns, 1_400);
        assert_eq!(recording.phases[1].written_bytes, 50);
        let counts: Vec<u64> = recording.classes.iter().map(|c| c.count).collect();
        assert_eq!(counts, [5, 5]);
        assert_eq!(recording.series[0].start_ns, 500);
    }

    #[test]
    fn a_stop_before_an_announced_boundary_leaves_no_overlap() {
        let mut recording = Recording::new(0);
        let warm_up = recording.begin(PhaseKind::WarmUp, 1_000);
        recording.finish(warm_up, 5_000, true, "");
        let measure = recording.begin(PhaseKind::Measure, 5_000);
        recording.finish(measure, 3_000, false, "");
        let close = recording.begin(PhaseKind::Close, 3_000);
        recording.finish(close, 2_500, true, "");
        let times: Vec<_> = recording.phases.iter().map(|p| (p.start_ns, p.duration_ns)).collect();
        assert_eq!(times, [(1_000, 1_500), (2_500, 0), (2_500, 0)]);
    }

    #[test]
    fn what_the_end_of_the_phase_cut_off_is_in_its_latencies_and_not_in_its_rate() {
        let mut recording = Recording::new(500);
        let classes = [class("db0.read", true), class("db0.write", false)];
        let measure = recording.begin(PhaseKind::Measure, 1_000);
        recording.take(&snapshot(measure, 5), &classes);
        let late = OperationTotals {
            operations: 2,
            bytes: 20,
            latency_ns_sum: 900,
            latency_ns_max: 500,
            abandoned: 1,
            ..OperationTotals::default()
        };
        let mut drained = snapshot(measure, 0);
        (drained.start_ns, drained.end_ns, drained.drained) = (2_000, 9_000, true);
        drained.totals = vec![late, OperationTotals::default()];
        recording.take(&drained, &classes);
        let read = &recording.classes[0];
        assert_eq!((read.count, read.drained, read.drained_bytes), (8, 3, 20));
        assert_eq!((read.abandoned, read.never_started), (Some(1), Some(0)));
        assert_eq!((read.latency_ns_max, recording.classes[1].drained), (500, 0));
        let row = recording.series.last().unwrap();
        assert_eq!((row.name.as_str(), row.start_ns), ("db0.read.drained", 1_500));
    }

    struct Ignore;

    impl Watcher for Ignore {
        fn begin(&mut self, _kind: PhaseKind) {}
        fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
        fn end(&mut self, _phase: &Phase) {}
    }

    /// Records two classes for 2,000 s. Returns the maximum number of rows that were in memory, and
    /// the complete recording.
    fn long_run(spool: Option<Spool>, needed_from_ns: u64) -> (usize, Recording) {
        let mut recording = Recording::new(0).with_spool(spool);
        recording.needed_from_ns = needed_from_ns;
        let classes = [class("db0.read", true), class("db0.write", false)];
        let measure = recording.begin(PhaseKind::Measure, 0);
        let mut rows_max = 0;
        for second in 0..2_000 {
            let latency = Packed::from_buckets([(second + 1, 1)]);
            let latencies = Latencies { latency: latency.clone(), service: latency };
            let start_ns = second * 1_000_000_000;
            let snapshot = IntervalSnapshot {
                start_ns,
                end_ns: start_ns + 1_000_000_000,
                histogram_start_ns: start_ns,
                latencies: vec![latencies; 2],
                ..snapshot(measure, second + 1)
            };
            recording.take(&snapshot, &classes);
            recording.tell(&mut Ignore);
            rows_max = rows_max.max(recording.series.len());
        }
        recording.recall();
        (rows_max, recording)
    }

    #[test]
    fn a_spool_bounds_the_memory_and_changes_no_evidence() {
        let directory = tempfile::tempdir().unwrap();
        let spool = || Some(Spool::create(directory.path()).unwrap());
        let (all, without) = long_run(None, u64::MAX);
        let (some, with) = long_run(spool(), u64::MAX);
        assert_eq!((all, some), (4_000, BATCH_ROWS + 2 * 61));
        assert!(with.series == without.series);
        assert!(format!("{:?}", with.intervals) == format!("{:?}", without.intervals));
        assert!(with.is_well());
        let (needed, with) = long_run(spool(), 1_000_000_000_000);
        assert!(needed >= 2_000, "the driver still reads these rows");
        assert!(with.series == without.series);
    }

    #[test]
    fn a_lost_spool_ends_the_run_with_its_reason() {
        // The spool accepts no batch, so all rows stay in memory.
        let (all, recording) = long_run(Some(Spool::broken()), u64::MAX);
        assert_eq!((all, recording.end.kind), (4_000, EndKind::Environment));
        assert!(recording.series == long_run(None, u64::MAX).1.series);
        let mut interrupted = Recording::new(0).with_spool(Some(Spool::broken()));
        interrupted.fail(EndKind::Interrupted, "stopped");
        interrupted.recall();
        assert_eq!(interrupted.end.kind, EndKind::Interrupted);
        assert!(interrupted.end.says.contains("moved to disk"), "{}", interrupted.end.says);
    }

    #[test]
    fn the_first_reason_to_end_stays() {
        let mut recording = Recording::new(0);
        recording.fail(EndKind::NoSpace, "full");
        recording.fail(EndKind::Interrupted, "asked");
        assert_eq!(recording.end.kind, EndKind::NoSpace);
    }
}
