//! What a run leaves: phases, series, histograms, totals. Snapshots of the driving threads go in.

use std::collections::BTreeMap;

use plimsoll_evidence::latency::Interval;
use plimsoll_evidence::observed::Observed;
use plimsoll_evidence::run::{
    Checks, ClassTotals, End, EndKind, Engine, Instance, Phase, PhaseKind,
};
use plimsoll_evidence::series::{Data, Row, drained_name};
use plimsoll_workload::step::Class;

use crate::generator::Measured;
use crate::progress::Watcher;
use crate::recorder::{ClassSums, Latencies, Snapshot};

/// An error that a run can end with.
pub trait Failure {
    /// How a run ends that meets it.
    fn end_kind(&self) -> EndKind;
    /// What happened, and what to do.
    fn says(&self) -> String;
    /// Whether a thread waits in a call to the target that does not return.
    fn leaves_a_call(&self) -> bool;
}

/// The evidence of a run while it is made.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Start of the run on the driver's clock.
    pub start_ns: u64,
    /// How it ended.
    pub end: End,
    /// How I/O was issued.
    pub engine: Engine,
    /// Phases, in the order carried out; the last may be under way.
    pub phases: Vec<Phase>,
    /// Totals of the measured phase by class.
    pub classes: Vec<ClassTotals>,
    /// The databases.
    pub instances: Vec<Instance>,
    /// Counters of the workload over the measured phase.
    pub counters: BTreeMap<String, u64>,
    /// What checks of data found.
    pub checks: Checks,
    /// All rows.
    pub series: Vec<Row>,
    /// All histograms.
    pub intervals: Vec<Interval>,
    /// What the system beneath did while measuring.
    pub observed: Observed,
    /// What the threads of a stateful workload said of themselves while measuring.
    pub generator: Measured,
    /// A thread waits in a call to the target that does not return: who touches the target may, too.
    pub left_behind: bool,
    /// Rows that were told, and histograms.
    told: (usize, usize),
}

impl Recording {
    /// An empty recording that starts now.
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
            series: Vec::new(),
            intervals: Vec::new(),
            observed: Observed::default(),
            generator: Measured::default(),
            left_behind: false,
            told: (0, 0),
        }
    }

    /// Time of a run's clock from the driver's.
    pub fn since_start_ns(&self, driver_ns: u64) -> u64 {
        driver_ns.saturating_sub(self.start_ns)
    }

    /// Begins a phase; returns its index.
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

    /// Has a phase that has begun, and was held back since, begin then.
    pub fn put_off(&mut self, phase: u32, driver_ns: u64) {
        let start_ns = self.since_start_ns(driver_ns);
        if let Some(phase) = self.phases.get_mut(phase as usize) {
            phase.start_ns = start_ns;
        }
    }

    /// Ends a phase.
    pub fn finish(&mut self, phase: u32, driver_ns: u64, reached: bool, note: impl Into<String>) {
        let now_ns = self.since_start_ns(driver_ns);
        if let Some(phase) = self.phases.get_mut(phase as usize) {
            phase.duration_ns = now_ns.saturating_sub(phase.start_ns);
            phase.reached = reached;
            phase.note = note.into();
        }
    }

    /// Tells the rows and histograms that have come about since the last call.
    pub fn tell(&mut self, watcher: &mut dyn Watcher) {
        let rows = self.series.get(self.told.0..).unwrap_or_default();
        if !rows.is_empty() {
            watcher.rows(rows);
        }
        let latencies = self.intervals.get(self.told.1..).unwrap_or_default();
        if !latencies.is_empty() {
            watcher.latencies(latencies);
        }
        self.told = (self.series.len(), self.intervals.len());
    }

    /// Notes why the run ends early. The first reason stays, but that a defect comes before all others.
    pub fn fail(&mut self, kind: EndKind, says: impl Into<String>) {
        let first = self.end.kind == EndKind::Completed;
        if first || kind == EndKind::Defect && self.end.kind != EndKind::Defect {
            self.end = End { kind, says: says.into() };
        }
    }

    /// Notes an error as why the run ends.
    pub fn fail_with(&mut self, error: &impl Failure) {
        self.left_behind |= error.leaves_a_call();
        self.fail(error.end_kind(), error.says());
    }

    /// Whether nothing has gone wrong so far.
    pub fn is_well(&self) -> bool {
        self.end.kind == EndKind::Completed
    }

    /// Takes a thread's interval in. `classes` are that thread's.
    pub fn take(&mut self, snapshot: &Snapshot, classes: &[Class]) {
        let Some(phase) = self.phases.get_mut(snapshot.phase as usize) else { return };
        let measured = phase.kind == PhaseKind::Measure;
        for (sums, class) in snapshot.classes.iter().zip(classes) {
            let bytes =
                if class.is_read { &mut phase.read_bytes } else { &mut phase.written_bytes };
            *bytes += sums.size_bytes;
        }
        let start_ns = self.since_start_ns(snapshot.start_ns);
        let duration_ns = snapshot.end_ns.saturating_sub(snapshot.start_ns);
        for (sums, class) in snapshot.classes.iter().zip(classes) {
            if sums.counted() > 0 {
                let name = class.name.clone();
                self.series.push(Row {
                    phase: snapshot.phase,
                    start_ns,
                    duration_ns,
                    name: if snapshot.drained { drained_name(&name) } else { name },
                    data: Data::Class {
                        count: sums.counted(),
                        sum_ns: sums.latency_ns_sum,
                        bytes: sums.size_bytes,
                        max_ns: sums.latency_ns_max,
                    },
                });
            }
            if measured {
                self.add_to_totals(class, sums, snapshot.drained);
            }
        }
        for (latencies, class) in snapshot.latencies.iter().zip(classes) {
            self.add_histograms(snapshot, class, latencies);
        }
        if measured {
            let from_ns = self.since_start_ns(snapshot.histogram_start_ns);
            let time = (from_ns, snapshot.end_ns.saturating_sub(snapshot.histogram_start_ns));
            let said = (&snapshot.waits, snapshot.cpu, snapshot.spun_ns);
            self.generator.take(snapshot.thread, said, time, &mut self.intervals);
        }
    }

    fn add_to_totals(&mut self, class: &Class, sums: &ClassSums, drained: bool) {
        let at = self.classes.iter().position(|totals| totals.name == class.name);
        let at = at.unwrap_or_else(|| {
            self.classes.push(empty_totals(class));
            self.classes.len() - 1
        });
        let totals = &mut self.classes[at];
        totals.count += sums.counted();
        totals.size_bytes += sums.size_bytes;
        if drained {
            totals.drained += sums.counted();
            totals.drained_bytes += sums.size_bytes;
        }
        let add = |into: &mut Option<u64>, count| *into = Some(into.unwrap_or(0) + count);
        add(&mut totals.abandoned, sums.abandoned);
        add(&mut totals.never_started, sums.never_started);
        totals.latency_ns_sum = totals.latency_ns_sum.saturating_add(sums.latency_ns_sum);
        totals.latency_ns_max = totals.latency_ns_max.max(sums.latency_ns_max);
        totals.service_ns_sum = totals.service_ns_sum.saturating_add(sums.service_ns_sum);
        totals.service_ns_max = totals.service_ns_max.max(sums.service_ns_max);
        totals.errors += sums.errors;
    }

    fn add_histograms(&mut self, snapshot: &Snapshot, class: &Class, latencies: &Latencies) {
        let start_ns = self.since_start_ns(snapshot.histogram_start_ns);
        let duration_ns = snapshot.end_ns.saturating_sub(snapshot.histogram_start_ns);
        let both = [
            (class.name.clone(), &latencies.latency),
            (format!("{}.service", class.name), &latencies.service),
        ];
        for (tag, histogram) in both {
            if !histogram.is_empty() {
                let histogram = histogram.clone();
                self.intervals.push(Interval { tag, start_ns, duration_ns, histogram });
            }
        }
    }
}

pub(crate) fn empty_totals(class: &Class) -> ClassTotals {
    let group = class.group.to_string();
    ClassTotals {
        abandoned: Some(0),
        never_started: Some(0),
        ..ClassTotals::empty(class.name.clone(), group, class.instance, class.is_read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workload::step::ClassGroup;

    fn class(name: &str, is_read: bool) -> Class {
        Class { name: name.into(), group: ClassGroup::Transactional, is_read, instance: 0 }
    }

    fn snapshot(phase: u32, count: u64) -> Snapshot {
        let sums = ClassSums { count, size_bytes: count * 10, ..ClassSums::default() };
        Snapshot {
            thread: 0,
            phase,
            start_ns: 1_000,
            end_ns: 2_000,
            classes: vec![sums, sums],
            latencies: Vec::new(),
            histogram_start_ns: 1_000,
            waits: crate::recorder::Waits::default(),
            cpu: plimsoll_sys::cpu::CpuTime::default(),
            spun_ns: 0,
            counters: Vec::new(),
            progress_bytes: (0, 0),
            ready: false,
            drained: false,
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
    fn what_the_end_of_the_phase_cut_off_is_in_its_latencies_and_not_in_its_rate() {
        let mut recording = Recording::new(500);
        let classes = [class("db0.read", true), class("db0.write", false)];
        let measure = recording.begin(PhaseKind::Measure, 1_000);
        recording.take(&snapshot(measure, 5), &classes);
        let late = ClassSums {
            count: 2,
            size_bytes: 20,
            latency_ns_sum: 900,
            latency_ns_max: 500,
            abandoned: 1,
            ..ClassSums::default()
        };
        let mut drained = snapshot(measure, 0);
        (drained.start_ns, drained.end_ns, drained.drained) = (2_000, 9_000, true);
        drained.classes = vec![late, ClassSums::default()];
        recording.take(&drained, &classes);
        let read = &recording.classes[0];
        assert_eq!((read.count, read.drained, read.drained_bytes), (8, 3, 20));
        assert_eq!((read.abandoned, read.never_started), (Some(1), Some(0)));
        assert_eq!((read.latency_ns_max, recording.classes[1].drained), (500, 0));
        let row = recording.series.last().unwrap();
        assert_eq!((row.name.as_str(), row.start_ns), ("db0.read.drained", 1_500));
    }

    #[test]
    fn the_first_reason_to_end_stays() {
        let mut recording = Recording::new(0);
        recording.fail(EndKind::NoSpace, "full");
        recording.fail(EndKind::Interrupted, "asked");
        assert_eq!(recording.end.kind, EndKind::NoSpace);
    }
}
