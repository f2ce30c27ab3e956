//! Converts measurements of the stream driver to evidence: rows of the series, histograms, totals.

use plimsoll_evidence::latency::Interval as Histogram;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_evidence::series::{Data, Row, drained_class, drained_name, errors_name};
use plimsoll_workload::step::Class;

use crate::cells::Sums;
use crate::collect::{Collector, GroupTotals, Interval};
use crate::histogram::Totals;
use crate::recording::{Recording, empty_totals};

/// Maximum number of histograms over the measured phase.
const HISTOGRAMS_MAX: u64 = 600;
const SECOND_NS: u64 = 1_000_000_000;

/// Converts a driver's intervals to rows and histograms of a recording.
#[derive(Debug)]
pub struct Scribe {
    classes: Vec<Class>,
    interval_ns: u64,
    histogram_ns: u64,
    /// Latency and service times by class since the last histograms.
    open: Vec<(Totals, Totals)>,
    open_from_ns: Option<u64>,
    open_to_ns: u64,
    open_warm: bool,
}

/// Phases of the rows.
#[derive(Clone, Copy, Debug)]
pub struct Phases {
    /// Warm-up, if any.
    pub warm_up: Option<u32>,
    /// Measured phase.
    pub measure: u32,
    /// Start of the measured phase, on the driver's clock.
    pub measure_from_ns: u64,
}

impl Scribe {
    /// Creates a scribe for a phase of `measure_ns` in intervals of `interval_ns`.
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
        // Operations after the stop belong to the last histogram of the measurement, never to that
        // of the warm-up: a stop may cut the first measured interval.
        if warm != self.open_warm || !row.drain && lasts_ns >= self.histogram_ns {
            self.close(recording);
        }
        if self.open_from_ns.is_none() {
            // If nothing completed during the measurement (a stopped process), operations after the
            // stop need their own histogram. It starts with the measurement, so that it belongs to
            // a phase.
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
        let start_ns = recording.since_start_ns(from_ns);
        let within = row.within_ns_max.iter().zip(&row.drained);
        for ((class, totals), (longest_ns, late)) in
            self.classes.iter().zip(&row.classes).zip(within)
        {
            let drained = &late.sums;
            let within = totals.sums.operations - drained.operations;
            if let Some(phase) = recording.phases.get_mut(phase as usize) {
                let bytes =
                    if class.is_read { &mut phase.read_bytes } else { &mut phase.written_bytes };
                *bytes += totals.sums.bytes;
            }
            let duration_ns = self.interval_ns;
            if within > 0 {
                let data = Data::Class {
                    count: within,
                    sum_ns: totals.sums.latency_ns - drained.latency_ns,
                    bytes: totals.sums.bytes - drained.bytes,
                    max_ns: *longest_ns,
                };
                let name = class.name.clone();
                recording.series.push(Row { phase, start_ns, duration_ns, name, data });
            }
            if totals.sums.errors > 0 {
                let (name, data) =
                    (errors_name(&class.name), Data::Gauge(totals.sums.errors as f64));
                recording.series.push(Row { phase, start_ns, duration_ns, name, data });
            }
            if drained.counted() > 0 {
                let data = Data::Class {
                    count: drained.counted(),
                    sum_ns: drained.latency_ns,
                    bytes: drained.bytes,
                    max_ns: late.latency_ns_max,
                };
                let name = drained_name(&class.name);
                recording.series.push(Row { phase, start_ns, duration_ns, name, data });
            }
        }
    }

    /// Writes the open histograms; to be called once after the last interval.
    pub fn close(&mut self, recording: &mut Recording) {
        let Some(from_ns) = self.open_from_ns.take() else { return };
        let start_ns = recording.since_start_ns(from_ns);
        let duration_ns = self.open_to_ns.saturating_sub(from_ns);
        for ((latency, service), class) in self.open.iter_mut().zip(&self.classes) {
            let tags = [class.name.clone(), format!("{}.service", class.name)];
            for (tag, totals) in tags.into_iter().zip([latency, service]) {
                if totals.count() > 0 {
                    let histogram = (&totals.to_hdr()).into();
                    recording.intervals.push(Histogram { tag, start_ns, duration_ns, histogram });
                    totals.clear();
                }
            }
        }
    }
}

/// Writes the totals of the measured phase.
pub fn totals(recording: &mut Recording, classes: &[Class], collected: &Collector) {
    for ((class, totals), window) in classes.iter().zip(&collected.totals).zip(&collected.window) {
        let Sums { bytes, latency_ns, service_ns, abandoned, never_started, errors, .. } =
            totals.sums;
        let counted = totals.sums.counted();
        if counted == 0 && errors == 0 {
            continue;
        }
        let mut out = empty_totals(class);
        (out.count, out.size_bytes, out.errors) = (counted, bytes, errors);
        (out.abandoned, out.never_started) = (Some(abandoned), Some(never_started));
        (out.latency_ns_sum, out.service_ns_sum) = (latency_ns, service_ns);
        out.latency_ns_max = totals.latency.max_ns().unwrap_or(0);
        out.service_ns_max = totals.service.max_ns().unwrap_or(0);
        out.drained = counted - window.operations;
        out.drained_bytes = bytes - window.bytes;
        recording.classes.push(out);
    }
}

/// Writes the latencies of each client of a group, if they were recorded separately: for each
/// class, a histogram of the measured phase with the tag `CLASS.client-N`. `numbers`: client
/// numbers in their stream; the classes of the stream begin with `first_class`.
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

/// Ends rows at the end of their phase.
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
    use crate::collect::ClassTotals;

    #[test]
    fn an_interval_that_is_measured_and_cut_is_no_part_of_the_warm_up() {
        let (starts, longest) = taken(0);
        assert_eq!(starts, [500, 1_000], "each phase has its own");
        assert_eq!(longest, [7, 9]);
    }

    /// A process that was stopped for the whole measurement: all due operations complete after the
    /// measurement.
    #[test]
    fn what_ended_after_a_measurement_in_which_nothing_did_is_in_its_histogram() {
        assert_eq!(taken(10).0, [500, 1_000]);
    }

    /// Returns the starts of histograms and the longest latency of each row: a row of the warm-up,
    /// and a row that drained in interval `number` of a measurement of ten intervals.
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
            let mut totals = ClassTotals::default();
            let mut times = crate::histogram::Tally::new();
            times.record(latency_ns);
            times.drain_into(&mut [&mut totals.latency]);
            totals.sums.operations = 1;
            let row = Interval {
                number,
                drain,
                classes: vec![totals],
                within_ns_max: vec![latency_ns],
                drained: vec![Default::default()],
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
