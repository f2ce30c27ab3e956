//! Merges the evidence of several hosts: adds up counts and sums, adds histograms bucket by bucket,
//! and aligns series on the common clock. It never averages values of several hosts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hdrhistogram::Histogram;

use super::{Class, CommonWindow};
use crate::bundle::Bundle;
use crate::error::EvidenceError;
use crate::latency::{self, Interval, Packed, histogram};
use crate::run::Phase;
use crate::series::{Data, Row, drained_class, errors_class};

/// Evidence of one host, which is merged with that of other hosts.
#[derive(Clone, Debug)]
pub struct Part {
    /// The host's bundle.
    pub bundle: Bundle,
    /// Intervals of `latency.hlog` that are within the measured phase.
    pub spans: Vec<Interval>,
    /// Start of the host's run on the fleet's clock.
    pub start_ns: u64,
    /// Error bound of `start_ns`.
    pub error_ns: u64,
}

impl Part {
    /// Reads a host's bundle and checks its seal.
    ///
    /// # Errors
    /// See [`Bundle::read`].
    pub fn read(directory: &Path, start_ns: u64, error_ns: u64) -> Result<Self, EvidenceError> {
        let bundle = Bundle::read(directory)?;
        let path = directory.join("latency.hlog");
        let text = fs::read(&path).map_err(|error| EvidenceError::io("read", &path, error))?;
        let spans = match bundle.run.measure() {
            Some(phase) => {
                let window = latency::Window::new(phase.start_ns, phase.duration_ns);
                let measured = latency::read_measured(&text, window, |_| true);
                measured.map_err(|reason| EvidenceError::Malformed { path, reason })?.spans
            }
            None => Vec::new(),
        };
        Ok(Self { bundle, spans, start_ns, error_ns })
    }
}

/// Merged evidence of all hosts.
#[derive(Clone, Debug, Default)]
pub struct MergedEvidence {
    /// For each host, in the order of the parts: its totals within the window, and its measured
    /// time.
    pub hosts: Vec<(Vec<Class>, u64)>,
    /// Totals of all hosts.
    pub classes: Vec<Class>,
    /// Latency histogram of each tag, merged over all hosts and intervals.
    pub latency: BTreeMap<String, Histogram<u64>>,
    /// Latency histograms of each tag in each interval, merged over all hosts.
    pub intervals: Vec<Interval>,
    /// Rows of the classes, and rows of the gauges that count failed I/Os. The rows are summed over
    /// all hosts. In these rows, phase 0 is the window.
    pub series: Vec<Row>,
}

/// Returns two times: when a host's measured phase started and when it ended, on the fleet's clock.
fn measured_span(part: &Part) -> Option<(u64, u64)> {
    let phase: &Phase = part.bundle.run.measure()?;
    let start_ns = part.start_ns + phase.start_ns;
    Some((start_ns, start_ns + phase.duration_ns))
}

/// Computes the window in which all hosts measured at the same time. An interval is included or
/// removed as a whole, because the exact time at which an I/O completed within an interval is
/// unknown.
fn common_window(parts: &[Part], interval_ns: u64) -> Option<CommonWindow> {
    let spans: Vec<(u64, u64)> = parts.iter().map(measured_span).collect::<Option<_>>()?;
    let start = |pick: fn(u64, u64) -> u64| spans.iter().map(|s| s.0).reduce(pick);
    let end = |pick: fn(u64, u64) -> u64| spans.iter().map(|s| s.1).reduce(pick);
    let (first_ns, start_ns) = (start(u64::min)?, start(u64::max)?);
    let (end_ns, last_ns) = (end(u64::min)?, end(u64::max)?);
    let duration_ns = end_ns.checked_sub(start_ns).filter(|duration_ns| *duration_ns > 0)?;
    let (start_skew_ns, end_skew_ns) = (start_ns - first_ns, last_ns - end_ns);
    let mut errors: Vec<u64> = parts.iter().map(|part| part.error_ns).collect();
    errors.sort_unstable();
    Some(CommonWindow {
        start_ns,
        duration_ns,
        start_skew_ns,
        start_skew_error_ns: errors.iter().rev().take(2).sum(),
        end_skew_ns,
        intervals: (duration_ns.saturating_add(interval_ns / 2) / interval_ns).max(1),
        cut: start_skew_ns.max(end_skew_ns) >= interval_ns / 2,
    })
}

/// Merges the hosts' totals over their common window. Returns `None` if there is no common window
/// or no host.
///
/// # Errors
/// A histogram value does not fit the merged histogram.
pub fn merge(
    parts: &[Part],
    interval_ns: u64,
) -> Result<Option<(CommonWindow, MergedEvidence)>, String> {
    let interval_ns = interval_ns.max(1);
    let Some(window) = common_window(parts, interval_ns) else { return Ok(None) };
    let mut merged = MergedEvidence::default();
    let mut rows: BTreeMap<(u64, String), (u64, u64, u64, u64)> = BTreeMap::new();
    let mut errors: BTreeMap<(u64, String), f64> = BTreeMap::new();
    let mut spans: BTreeMap<(u64, String), Histogram<u64>> = BTreeMap::new();
    let per_span = intervals_per_span(parts, interval_ns);
    for part in parts {
        let grid = Grid { window, interval_ns, part };
        let (classes, measured_ns) = grid.classes();
        for class in &classes {
            match merged.classes.iter_mut().find(|known| known.name == class.name) {
                Some(known) => known.add(class),
                None => merged.classes.push(class.clone()),
            }
        }
        merged.hosts.push((classes, measured_ns));
        for (number, row) in grid.rows() {
            let key = (number, row.name.clone());
            match row.data {
                Data::Class { count, sum_ns, bytes, max_ns } => {
                    let sums = rows.entry(key).or_default();
                    *sums = (sums.0 + count, sums.1 + sum_ns, sums.2 + bytes, sums.3.max(max_ns));
                }
                Data::Gauge(failed) => *errors.entry(key).or_default() += failed,
            }
        }
        for (number, span) in grid.spans() {
            let values = span.histogram.unpack();
            let key = (number / per_span * per_span, span.tag.clone());
            let into = spans.entry(key).or_insert_with(histogram);
            into.add(&values).map_err(|error| error.to_string())?;
            let whole = merged.latency.entry(span.tag.clone()).or_insert_with(histogram);
            whole.add(&values).map_err(|error| error.to_string())?;
        }
    }
    let start = |number: u64| window.start_ns + number * interval_ns;
    merged.series = rows
        .into_iter()
        .map(|((number, name), (count, sum_ns, bytes, max_ns))| Row {
            phase: 0,
            start_ns: start(number),
            duration_ns: interval_ns,
            name,
            data: Data::Class { count, sum_ns, bytes, max_ns },
        })
        .collect();
    merged.series.extend(errors.into_iter().map(|((number, name), failed)| Row {
        phase: 0,
        start_ns: start(number),
        duration_ns: interval_ns,
        name,
        data: Data::Gauge(failed),
    }));
    merged.intervals = spans
        .into_iter()
        .map(|((number, tag), histogram)| Interval {
            tag,
            start_ns: start(number),
            duration_ns: per_span.min(window.intervals - number) * interval_ns,
            histogram: Packed::from(&histogram),
        })
        .collect();
    Ok(Some((window, merged)))
}

/// Returns the number of intervals that a histogram usually spans. If the intervals of a host are
/// shorter than a second, each of its histograms spans one second.
fn intervals_per_span(parts: &[Part], interval_ns: u64) -> u64 {
    let spans = parts.iter().flat_map(|part| &part.spans);
    let mut lengths: Vec<u64> = spans.map(|span| span.duration_ns).collect();
    lengths.sort_unstable();
    let usual_ns = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
    (usual_ns.saturating_add(interval_ns / 2) / interval_ns).max(1)
}

/// Assigns the intervals of a host to intervals of the window.
struct Grid<'p> {
    window: CommonWindow,
    interval_ns: u64,
    part: &'p Part,
}

impl Grid<'_> {
    /// Returns the interval of the window that contains the middle of a host's interval. If no
    /// intervals are removed, an interval outside the window counts as part of the first or last
    /// interval of the window.
    fn number(&self, start_ns: u64, duration_ns: u64) -> Option<u64> {
        let middle_ns = self.part.start_ns + start_ns + duration_ns / 2;
        let number = middle_ns.checked_sub(self.window.start_ns).map(|ns| ns / self.interval_ns);
        match number {
            Some(number) if number < self.window.intervals => Some(number),
            _ if self.window.cut => None,
            Some(_) => Some(self.window.intervals - 1),
            None => Some(0),
        }
    }

    /// Returns two kinds of rows of the measured phase: the rows of classes, and the gauges that
    /// count failed I/Os. Rows of drained I/Os are omitted.
    fn rows(&self) -> impl Iterator<Item = (u64, &Row)> {
        let run = &self.part.bundle.run;
        let phase = run.phases.iter().position(|p| p.kind == crate::run::PhaseKind::Measure);
        let ours = move |row: &&Row| {
            let of_class = match row.data {
                Data::Class { .. } => drained_class(&row.name).is_none().then_some(&*row.name),
                Data::Gauge(_) => errors_class(&row.name),
            };
            Some(row.phase as usize) == phase
                && of_class.is_some_and(|name| run.classes.iter().any(|class| class.name == name))
        };
        let rows = self.part.bundle.series.iter().filter(ours);
        rows.filter_map(|row| Some((self.number(row.start_ns, row.duration_ns)?, row)))
    }

    /// Returns the histograms of the measured phase.
    fn spans(&self) -> impl Iterator<Item = (u64, &Interval)> {
        let spans = self.part.spans.iter();
        spans.filter_map(|span| Some((self.number(span.start_ns, span.duration_ns)?, span)))
    }

    /// Returns the totals of the host for each class, and the length of the time that these totals
    /// describe.
    fn classes(&self) -> (Vec<Class>, u64) {
        let run = &self.part.bundle.run;
        let whole_ns = run.measure().map_or(0, |phase| phase.duration_ns);
        let mut classes: Vec<Class> = run
            .classes
            .iter()
            .map(|totals| Class {
                name: totals.name.clone(),
                group: totals.group.clone(),
                is_read: totals.is_read,
                count: totals.count_within(),
                size_bytes: totals.bytes_within(),
                latency_count: totals.count,
                latency_ns_sum: totals.latency_ns_sum,
                latency_ns_max: totals.latency_ns_max,
                errors: totals.errors,
            })
            .collect();
        if !self.window.cut {
            return (classes, whole_ns);
        }
        for class in &mut classes {
            (class.count, class.size_bytes, class.latency_ns_sum) = (0, 0, 0);
            class.latency_ns_max = 0;
        }
        for (_, row) in self.rows() {
            let Data::Class { count, sum_ns, bytes, max_ns } = row.data else { continue };
            let Some(class) = classes.iter_mut().find(|class| class.name == row.name) else {
                continue;
            };
            class.count += count;
            class.size_bytes += bytes;
            class.latency_ns_sum = class.latency_ns_sum.saturating_add(sum_ns);
            class.latency_ns_max = class.latency_ns_max.max(max_ns);
        }
        classes.iter_mut().for_each(|class| class.latency_count = class.count);
        (classes, whole_ns.min(self.window.intervals * self.interval_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::observed::Observed;
    use crate::run::fixtures::run;
    use crate::run::{ClassTotals, PhaseKind};

    const SECOND: u64 = 1_000_000_000;
    const PLAN: &str = "version = 1\nname = \"p\"\n[target]\npath = \
                        \"/x\"\n[workload.matrix]\nfile_size = \"1GiB\"\n[phases]\nmeasure = \
                        \"60s\"\n[evidence]\nmin_measure = \"10s\"\n";

    /// Returns a host that makes `per_second` reads each second for `seconds` seconds, with a
    /// latency of `latency_ns`.
    fn part(start_ns: u64, seconds: u64, per_second: u64, latency_ns: u64) -> Part {
        let mut run = run();
        run.phases = vec![Phase {
            kind: PhaseKind::Measure,
            start_ns: SECOND,
            duration_ns: seconds * SECOND,
            read_bytes: 0,
            written_bytes: 0,
            reached: true,
            note: String::new(),
            boundary_error_ns: None,
        }];
        let count = seconds * per_second;
        run.classes = vec![ClassTotals {
            count,
            size_bytes: count * 10,
            latency_ns_sum: count * latency_ns,
            latency_ns_max: latency_ns,
            ..ClassTotals::empty("load.read".into(), "transactional".into(), 0, true)
        }];
        let at = |second: u64| (1 + second) * SECOND;
        let series = (0..seconds).map(|second| Row {
            phase: 0,
            start_ns: at(second),
            duration_ns: SECOND,
            name: "load.read".into(),
            data: Data::Class {
                count: per_second,
                sum_ns: per_second * latency_ns,
                bytes: per_second * 10,
                max_ns: latency_ns,
            },
        });
        let spans = (0..seconds).map(|second| {
            let mut values = histogram();
            values.record_n(latency_ns, per_second).unwrap();
            Interval {
                tag: "load.read".into(),
                start_ns: at(second),
                duration_ns: SECOND,
                histogram: Packed::from(&values),
            }
        });
        let plan = plimsoll_plan::Plan::parse(PLAN, "p").unwrap();
        let bundle = Bundle {
            run,
            plan_text: PLAN.into(),
            job_text: None,
            plan: plan.resolve(),
            environment: Environment::default(),
            series: series.collect(),
            observed: Observed::default(),
            latency: BTreeMap::new(),
            latency_spans: Vec::new(),
            seal_sha256: None,
        };
        Part { bundle, spans: spans.collect(), start_ns, error_ns: 1_000 }
    }

    #[test]
    fn adds_hosts_that_measured_together_completely() {
        let parts = [part(0, 4, 100, 2_000_000), part(3_000_000, 4, 50, 9_000_000)];
        let (window, merged) = merge(&parts, SECOND).unwrap().unwrap();
        assert!(!window.cut);
        assert_eq!((window.start_skew_ns, window.start_skew_error_ns), (3_000_000, 2_000));
        assert_eq!((window.intervals, window.duration_ns), (4, 4 * SECOND - 3_000_000));
        let all = &merged.classes[0];
        assert_eq!((all.count, all.size_bytes, all.latency_count), (600, 6_000, 600));
        assert_eq!(all.latency_ns_max, 9_000_000);
        let read = &merged.latency["load.read"];
        assert_eq!(read.len(), 600);
        // A third of all I/Os are from the slow host, and each of them is slower than all I/Os of
        // the fast host. The merged percentile is neither the percentile of a host nor the mean of
        // the two percentiles.
        assert!(read.equivalent(read.value_at_quantile(0.6), 2_000_000));
        assert!(read.equivalent(read.value_at_quantile(0.7), 9_000_000));
        assert_eq!(merged.series.len(), 4);
        assert!(merged.series.iter().all(|row| matches!(row.data, Data::Class { count: 150, .. })));
        assert_eq!(merged.hosts.iter().map(|host| host.1).collect::<Vec<_>>(), [4 * SECOND; 2]);
    }

    #[test]
    fn adds_failed_operations_and_keeps_the_length_of_histograms() {
        let mut parts = [part(0, 4, 100, 2_000_000), part(3_000_000, 4, 50, 9_000_000)];
        for part in &mut parts {
            let failed = crate::series::errors_name("load.read");
            for (name, value) in [(failed.as_str(), 2.0), ("queue", 7.0)] {
                let (phase, start_ns, duration_ns) = (0, SECOND * 5 / 2, SECOND / 4);
                let (name, data) = (name.to_owned(), Data::Gauge(value));
                part.bundle.series.push(Row { phase, start_ns, duration_ns, name, data });
            }
        }
        // An interval lasts 250 ms, and a histogram spans one second.
        let (window, merged) = merge(&parts, SECOND / 4).unwrap().unwrap();
        assert_eq!(window.intervals, 16);
        let gauges: Vec<&Row> =
            merged.series.iter().filter(|row| matches!(row.data, Data::Gauge(_))).collect();
        assert_eq!(gauges.len(), 1, "{gauges:?}");
        assert_eq!((&*gauges[0].name, gauges[0].data), ("errors.load.read", Data::Gauge(4.0)));
        let spans: Vec<(u64, u64)> =
            merged.intervals.iter().map(|span| (span.start_ns, span.duration_ns)).collect();
        let second = |at: u64| (window.start_ns + at * SECOND, SECOND);
        assert_eq!(spans, [second(0), second(1), second(2), second(3)]);
    }

    #[test]
    fn counts_only_the_common_intervals_of_skewed_hosts() {
        let parts = [part(0, 4, 100, 2_000_000), part(SECOND + 5_000_000, 4, 50, 9_000_000)];
        let (window, merged) = merge(&parts, SECOND).unwrap().unwrap();
        assert!(window.cut);
        assert_eq!(window.intervals, 3);
        assert_eq!(merged.classes[0].count, 3 * 150);
        assert_eq!(merged.latency["load.read"].len(), 3 * 150);
        let counts: Vec<u64> = merged.hosts.iter().map(|host| host.0[0].count).collect();
        assert_eq!(counts, [300, 150]);
        assert!(merged.hosts.iter().all(|host| host.1 == 3 * SECOND));
    }

    #[test]
    fn hosts_without_a_common_window_have_no_sum() {
        let parts = [part(0, 4, 100, 2_000_000), part(9 * SECOND, 4, 50, 9_000_000)];
        assert!(merge(&parts, SECOND).unwrap().is_none());
        assert!(merge(&[], SECOND).unwrap().is_none());
        let mut never = part(0, 4, 100, 2_000_000);
        never.bundle.run.phases.clear();
        assert!(merge(&[parts[0].clone(), never], SECOND).unwrap().is_none());
    }
}
