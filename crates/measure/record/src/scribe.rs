//! Converts measurements of the stream driver to evidence: rows of the series, histograms and
//! totals.

use plimsoll_evidence::latency::Interval as Histogram;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::series::drained_class;
use plimsoll_workload::step::Class;

use crate::collect::{Collector, GroupTotals, Interval};
use crate::histogram::{HistogramTotals, Latencies};
use crate::recording::Recording;

/// Maximum number of histograms per class for the measured phase.
const HISTOGRAMS_MAX: u64 = 600;
const SECOND_NS: u64 = 1_000_000_000;

/// Converts a driver's intervals to rows and histograms of a recording.
#[derive(Debug)]
pub struct Scribe {
    classes: Vec<Class>,
    interval_ns: u64,
    histogram_ns: u64,
    /// Latencies and service times of each class since the last histograms.
    open: Vec<(HistogramTotals, HistogramTotals)>,
    open_from_ns: Option<u64>,
    open_to_ns: u64,
    open_warm: bool,
}

/// Phases to which rows belong.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// Warm-up; `None` if there is no warm-up.
    pub warm_up: Option<u32>,
    /// Measured phase.
    pub measure: u32,
    /// Start of the measured phase, on the driver's clock.
    pub measure_from_ns: u64,
}

impl Scribe {
    /// Creates a scribe for a measured phase of `measure_ns`, with intervals of `interval_ns`.
    #[must_use]
    pub fn new(classes: Vec<Class>, interval_ns: u64, measure_ns: u64) -> Self {
        let histogram_ns = (measure_ns / HISTOGRAMS_MAX).max(interval_ns).max(SECOND_NS);
        let open = classes.iter().map(|_| Default::default()).collect();
        Self {
            classes,
            interval_ns,
            histogram_ns,
            open,
            open_from_ns: None,
            open_to_ns: 0,
            open_warm: false,
        }
    }

    /// Returns the classes.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Adds an interval.
    pub fn take(&mut self, row: &Interval, phases: &Phases, recording: &mut Recording) {
        let from_ns = i128::from(phases.measure_from_ns)
            + i128::from(row.number) * i128::from(self.interval_ns);
        let from_ns = u64::try_from(from_ns).unwrap_or(0);
        let warm = row.number < 0;
        let phase = if warm { phases.warm_up.unwrap_or(phases.measure) } else { phases.measure };
        self.rows(row, phase, from_ns, recording);
        let lasts_ns = from_ns.saturating_sub(self.open_from_ns.unwrap_or(from_ns));
        // Operations that complete after the end of the measurement belong to its last histogram,
        // even if the measurement ends in its first interval. These operations never belong to the
        // histogram of the warm-up.
        if warm != self.open_warm || !row.drain && lasts_ns >= self.histogram_ns {
            self.close(recording);
        }
        if self.open_from_ns.is_none() {
            // If no operation completed during the measurement (for example, because the process
            // was suspended), operations that complete after its end need a separate histogram.
            // This histogram starts with the measurement, so that it belongs to a phase.
            let alone = row.drain && !warm;
            let from_ns = if alone { phases.measure_from_ns } else { from_ns };
            (self.open_from_ns, self.open_warm) = (Some(from_ns), warm);
        }
        self.open_to_ns = from_ns + self.interval_ns;
        for ((latency, service), class) in self.open.iter_mut().zip(&row.classes) {
            latency.merge(&class.latency);
            service.merge(&class.service);
        }
    }

    fn rows(&self, row: &Interval, phase: u32, from_ns: u64, recording: &mut Recording) {
        let time = (recording.since_start_ns(from_ns), self.interval_ns);
        let parts = row.within.iter().zip(&row.drained);
        for ((class, record), (within, drained)) in self.classes.iter().zip(&row.classes).zip(parts)
        {
            recording.add_row(phase, time, class, within, false);
            recording.add_errors_row(phase, time, class, record.totals.errors);
            recording.add_row(phase, time, class, drained, true);
        }
    }

    /// Adds the current histograms to the recording. This must also be called once after the last
    /// interval.
    pub fn close(&mut self, recording: &mut Recording) {
        let Some(from_ns) = self.open_from_ns.take() else { return };
        let start_ns = recording.since_start_ns(from_ns);
        let time = (start_ns, self.open_to_ns.saturating_sub(from_ns));
        for ((latency, service), class) in self.open.iter_mut().zip(&self.classes) {
            let (packed, packed_service) = (latency.to_hdr(), service.to_hdr());
            let latencies =
                Latencies { latency: (&packed).into(), service: (&packed_service).into() };
            recording.add_histograms(time, class, latencies);
            latency.clear();
            service.clear();
        }
    }
}

/// Adds the totals of the measured phase to the recording.
pub fn totals(recording: &mut Recording, classes: &[Class], collected: &Collector) {
    let parts = collected.window.iter().zip(&collected.drained);
    for (class, (window, drained)) in classes.iter().zip(parts) {
        if window.counted() + drained.counted() + window.errors + drained.errors > 0 {
            recording.add_to_totals(class, window, false);
            recording.add_to_totals(class, drained, true);
        }
    }
}

/// Adds the latencies of each client of a group to the recording, if they were recorded separately.
/// Each client has a histogram of the measured phase for each class, with the tag `CLASS.client-N`.
/// `numbers` are the numbers of the clients in their stream, and `first_class` is the first class
/// of the stream.
pub fn clients(
    recording: &mut Recording,
    classes: &[Class],
    numbers: &[u32],
    first_class: u16,
    group: &GroupTotals,
) {
    let Some(phase) = recording.phases.iter().find(|phase| phase.kind == PhaseKind::Measure) else {
        return;
    };
    let (start_ns, duration_ns) = (phase.start_ns, phase.duration_ns);
    for (client, cells) in numbers.iter().zip(group.cells.chunks(classes.len().max(1))) {
        for (class, cell) in classes.iter().zip(cells).skip(first_class.into()) {
            if cell.latency.count() > 0 {
                let tag = format!("{}.client-{client}", class.name);
                let histogram = (&cell.latency.to_hdr()).into();
                recording.intervals.push(Histogram { tag, start_ns, duration_ns, histogram });
            }
        }
    }
}

/// Shortens rows that extend beyond the end of their phase.
pub fn clip(recording: &mut Recording) {
    let ends: Vec<(PhaseKind, u64)> = recording
        .phases
        .iter()
        .map(|phase| (phase.kind, phase.start_ns + phase.duration_ns))
        .collect();
    for row in &mut recording.series {
        let Some((PhaseKind::Measure, end_ns)) = ends.get(row.phase as usize).copied() else {
            continue;
        };
        if drained_class(&row.name).is_some() {
            // The interval that contains the end of the phase becomes two rows, one before and one
            // after the end.
            let to_ns = row.start_ns + row.duration_ns;
            row.start_ns = row.start_ns.max(end_ns);
            row.duration_ns = to_ns.saturating_sub(row.start_ns).max(1);
        } else if row.start_ns < end_ns {
            row.duration_ns = row.duration_ns.min(end_ns - row.start_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::collect::ClassRecord;
    use crate::totals::OperationTotals;
    use plimsoll_evidence::series::Data;

    #[test]
    fn an_interval_that_is_measured_and_cut_is_no_part_of_the_warm_up() {
        let (starts, longest) = taken(0);
        assert_eq!(starts, [500, 1_000], "each phase has its own");
        assert_eq!(longest, [7, 9]);
    }

    /// The process was stopped during the whole measurement, so all due operations complete after
    /// it.
    #[test]
    fn what_ended_after_a_measurement_in_which_nothing_did_is_in_its_histogram() {
        assert_eq!(taken(10).0, [500, 1_000]);
    }

    /// Records two rows: one of the warm-up, and one of operations that completed in interval
    /// `number` after the end of the measurement. The measurement has ten intervals. Returns the
    /// start and the longest latency of each histogram.
    fn taken(number: i64) -> (Vec<u64>, Vec<u64>) {
        let classes = vec![Class {
            name: "matrix.read".into(),
            group: plimsoll_workload::step::ClassGroup::Transactional,
            instance: 0,
            is_read: true,
        }];
        let mut scribe = Scribe::new(classes, 500, 5_000);
        let mut recording = Recording::new(0);
        let warm_up = recording.begin(PhaseKind::WarmUp, 500);
        let measure = recording.begin(PhaseKind::Measure, 1_000);
        let phases = Phases { warm_up: Some(warm_up), measure, measure_from_ns: 1_000 };
        for (number, drain, latency_ns) in [(-1, false, 7), (number, true, 9)] {
            let totals = OperationTotals {
                operations: 1,
                latency_ns_sum: latency_ns,
                latency_ns_max: latency_ns,
                ..OperationTotals::default()
            };
            let mut record = ClassRecord { totals, ..ClassRecord::default() };
            record.latency.add(latency_ns as usize, 1);
            let none = OperationTotals::default();
            let (within, drained) = if drain { (none, totals) } else { (totals, none) };
            let row = Interval {
                number,
                drain,
                classes: vec![record],
                within: vec![within],
                drained: vec![drained],
                ..Interval::default()
            };
            scribe.take(&row, &phases, &mut recording);
        }
        scribe.close(&mut recording);
        let starts = recording.intervals.iter().map(|one| one.start_ns).collect();
        let longest = recording.series.iter().map(|row| match row.data {
            Data::Class { max_ns, .. } => max_ns,
            _ => 0,
        });
        (starts, longest.collect())
    }
}
