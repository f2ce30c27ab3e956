//! Figures derived from the evidence, such as rates, mean latencies and the largest mean latency of
//! an interval. Every mean is computed from sums and counts, never from other means.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{ClassTotals, Driver, Phase, PhaseKind};
use plimsoll_evidence::series::Data;
use plimsoll_plan::{LatencyClass, Stream, Workload};

use crate::stats::Parts;

/// Nanoseconds in a second.
pub const NS_PER_S: f64 = 1e9;

/// Classes of operations that a figure includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Operations that count for the achieved rate: database reads and writes; in a matrix, all
    /// reads, writes and metadata operations.
    Transactional,
    /// Operations that a matrix issues: reads, writes, metadata operations and flushes.
    Issued,
    /// Reads and writes of data, without operations on names and attributes: the operations of
    /// `iops`.
    Data,
    /// Database reads; if an instance is given, only those of this instance.
    DatabaseReads(Option<u32>),
    /// Database writes; if an instance is given, only those of this instance.
    DatabaseWrites(Option<u32>),
    /// Log writes; if an instance is given, only those of this instance.
    LogWrites(Option<u32>),
    /// Reads of a matrix; if a stream is given, only those of this stream.
    Reads(Option<u32>),
    /// Writes of a matrix; if a stream is given, only those of this stream.
    Writes(Option<u32>),
    /// Metadata operations; if a stream is given, only those of this stream.
    Metadata(Option<u32>),
    /// Reads, writes and metadata operations; if a stream is given, only those of this stream.
    All(Option<u32>),
    /// Flushes of a matrix; if a stream is given, only those of this stream.
    Flushes(Option<u32>),
    /// Writes that are followed by a flush, timed until the end of this flush; if a stream is
    /// given, only those of this stream.
    Durable(Option<u32>),
    /// Reads from an object store, timed until their first byte; if a stream is given, only those
    /// of this stream.
    FirstBytes(Option<u32>),
    /// All operations of streams that flush. Each write is timed until the end of its flush.
    AllDurable(Option<u32>),
}

impl Pick {
    /// Returns true if the class is included.
    pub fn includes(self, class: &ClassTotals) -> bool {
        let of = |instance: Option<u32>| instance.is_none_or(|i| i == class.instance);
        match self {
            Self::Transactional => matches!(class.group.as_str(), "transactional" | "metadata"),
            Self::Issued => {
                matches!(class.group.as_str(), "transactional" | "metadata" | "sync")
            }
            Self::Data => class.group == "transactional",
            Self::DatabaseReads(i) | Self::Reads(i) => {
                class.group == "transactional" && class.is_read && of(i)
            }
            Self::DatabaseWrites(i) | Self::Writes(i) => {
                class.group == "transactional" && !class.is_read && of(i)
            }
            Self::LogWrites(i) => class.group == "log" && !class.is_read && of(i),
            Self::Metadata(i) => class.group == "metadata" && of(i),
            Self::All(i) => Self::Transactional.includes(class) && of(i),
            Self::Flushes(i) => class.group == "sync" && of(i),
            Self::Durable(i) => class.group == DURABLE && of(i),
            Self::FirstBytes(i) => class.group == FIRST_BYTE && of(i),
            Self::AllDurable(i) => {
                let durable = Self::Durable(i).includes(class);
                durable || Self::Reads(i).includes(class) || Self::Metadata(i).includes(class)
            }
        }
    }
}

/// Group of writes timed until the end of their flush. The transactional group also contains these
/// writes, with their bytes and the time of the write call only.
pub const DURABLE: &str = "durable";

/// Group of reads timed until their first byte. The transactional group also contains these reads,
/// with their bytes and the time until the last byte.
pub const FIRST_BYTE: &str = "first_byte";

/// Returns true if other classes already count the operations of this class. Such a class only uses
/// a different end for the latency of these operations.
pub fn is_counted_elsewhere(class: &ClassTotals) -> bool {
    matches!(class.group.as_str(), DURABLE | FIRST_BYTE)
}

/// Returns the classes that a latency of `pick` includes. If a write waits for a flush, its latency
/// lasts until the end of that flush. Bundles of older versions have no class for such writes, so
/// the latency of a write ends with its call. The same applies to all streams together if only some
/// of them flush.
pub fn latency_pick(bundle: &Bundle, pick: Pick) -> Pick {
    let classes = &bundle.run.classes;
    if matches!(bundle.plan.workload, Workload::Mailbox(_)) {
        return match pick {
            Pick::LogWrites(i)
                if classes.iter().any(|c| Pick::Durable(i).includes(c) && c.count > 0) =>
            {
                Pick::Durable(i)
            }
            pick => pick,
        };
    }
    let durable = |i: u32| classes.iter().any(|class| Pick::Durable(Some(i)).includes(class));
    let mut writers = classes.iter().filter(|class| Pick::Writes(None).includes(class)).peekable();
    let all = writers.peek().is_some() && writers.all(|class| durable(class.instance));
    match pick {
        Pick::Writes(i) if i.map_or(all, durable) => Pick::Durable(i),
        Pick::All(i) if i.map_or(all, durable) => Pick::AllDurable(i),
        Pick::Transactional if all => Pick::AllDurable(None),
        Pick::DatabaseWrites(i) if i.map_or(all, durable) => Pick::Durable(i),
        pick => pick,
    }
}

/// Counts and sums of classes over a period of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of I/Os.
    pub count: u64,
    /// Summed latency.
    pub latency_ns: u64,
    /// Bytes transferred.
    pub size_bytes: u64,
    /// Number of I/Os that completed after the end of the phase. They are not included in a rate.
    pub drained: u64,
    /// Bytes of the I/Os that completed after the end of the phase.
    pub drained_bytes: u64,
}

impl Sums {
    /// Returns the mean latency. `None` if there were no I/Os.
    pub fn mean_ns(self) -> Option<u64> {
        (self.count > 0).then(|| self.latency_ns / self.count)
    }

    /// Returns the I/Os that completed within the phase.
    pub fn count_within(self) -> u64 {
        self.count.saturating_sub(self.drained)
    }

    /// Returns the bytes of the I/Os that completed within the phase.
    pub fn bytes_within(self) -> u64 {
        self.size_bytes.saturating_sub(self.drained_bytes)
    }
}

/// Returns the totals of the measured phase.
pub fn totals(bundle: &Bundle, pick: Pick) -> Sums {
    let picked = bundle.run.classes.iter().filter(|class| pick.includes(class));
    picked.fold(Sums::default(), |sums, class| Sums {
        count: sums.count + class.count,
        latency_ns: sums.latency_ns.saturating_add(class.latency_ns_sum),
        size_bytes: sums.size_bytes + class.size_bytes,
        drained: sums.drained + class.drained,
        drained_bytes: sums.drained_bytes + class.drained_bytes,
    })
}

/// Returns the I/Os per second over the measured phase; `None` if nothing was measured.
pub fn rate_per_s(bundle: &Bundle, pick: Pick) -> Option<f64> {
    let measure = measured(bundle).filter(|_| has_figures(bundle))?;
    Some(totals(bundle, pick).count_within() as f64 * NS_PER_S / measure.duration_ns as f64)
}

/// Returns the bytes per second over the measured phase; `None` if nothing was measured.
pub fn bytes_per_s(bundle: &Bundle, pick: Pick) -> Option<f64> {
    let measure = measured(bundle).filter(|_| has_figures(bundle))?;
    Some(totals(bundle, pick).bytes_within() as f64 * NS_PER_S / measure.duration_ns as f64)
}

/// Returns false if the operations were not counted. This is the case if another tool issued them
/// and its result is missing.
pub fn has_figures(bundle: &Bundle) -> bool {
    bundle.run.driver != Driver::Foreign || !bundle.run.classes.is_empty()
}

/// Returns the measured phase, if its duration is not zero.
pub fn measured(bundle: &Bundle) -> Option<&Phase> {
    bundle.run.measure().filter(|phase| phase.duration_ns > 0)
}

/// Returns sums over consecutive intervals of `width_ns` of the measured phase. If the last
/// interval is shorter than half of `width_ns`, it is merged into the previous interval.
/// Completions after the end are excluded.
pub fn intervals(bundle: &Bundle, pick: Pick, width_ns: u64) -> Vec<Sums> {
    let Some(measure) = measured(bundle) else { return Vec::new() };
    let width_ns = width_ns.clamp(1, measure.duration_ns);
    let count = ((measure.duration_ns + width_ns / 2) / width_ns).max(1) as usize;
    let mut sums = vec![Sums::default(); count];
    let index = bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure));
    for row in &bundle.series {
        let Data::Class { count: rows, sum_ns, bytes, .. } = row.data else { continue };
        if Some(row.phase as usize) != index {
            continue;
        }
        let Some(class) = bundle.run.class(&row.name) else {
            continue;
        };
        if !pick.includes(class) {
            continue;
        }
        // An interval belongs to the place that contains its middle, so rounding at its ends does
        // not matter.
        let middle_ns = (row.start_ns + row.duration_ns / 2).saturating_sub(measure.start_ns);
        let at = ((middle_ns / width_ns) as usize).min(count - 1);
        sums[at].count += rows;
        sums[at].latency_ns = sums[at].latency_ns.saturating_add(sum_ns);
        sums[at].size_bytes += bytes;
    }
    sums
}

/// Returns the bytes transferred in the measured phase before `at_ns`. If this time is inside an
/// interval, a proportional part of the interval's bytes counts.
pub fn bytes_before(bundle: &Bundle, pick: Pick, at_ns: u64) -> f64 {
    let Some(measure) = measured(bundle) else { return 0.0 };
    let index = bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure));
    let picked = |name: &str| {
        bundle.run.classes.iter().any(|class| class.name == name && pick.includes(class))
    };
    let rows = bundle.series.iter().filter(|row| Some(row.phase as usize) == index);
    let bytes = rows.filter(|row| picked(&row.name)).map(|row| {
        let Data::Class { bytes, .. } = row.data else { return 0.0 };
        let before_ns = at_ns.saturating_sub(row.start_ns).min(row.duration_ns);
        bytes as f64 * before_ns as f64 / row.duration_ns.max(1) as f64
    });
    bytes.sum()
}

/// Returns the operations of a class in intervals of the measured phase that start at or after
/// `from_ns`.
pub fn count_since(bundle: &Bundle, class: &str, from_ns: u64) -> u64 {
    let Some(measure) = measured(bundle) else { return 0 };
    let index = bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure));
    let rows = bundle.series.iter().filter(|row| Some(row.phase as usize) == index);
    let counts = rows
        .filter(|row| row.name == class && row.start_ns >= from_ns)
        .map(|row| if let Data::Class { count, .. } = row.data { count } else { 0 });
    counts.sum()
}

/// Returns [`intervals`] plus the operations that were in flight or due at the end. These
/// operations are included in the last interval. If they took at least half of `width_ns` to
/// complete, they form a separate interval.
fn intervals_and_drained(bundle: &Bundle, pick: Pick, width_ns: u64) -> Vec<Sums> {
    let mut sums = intervals(bundle, pick, width_ns);
    let all = totals(bundle, pick);
    if all.drained > 0 {
        let counted_ns = sums.iter().fold(0u64, |sum, one| sum.saturating_add(one.latency_ns));
        let late = Sums {
            count: all.drained,
            latency_ns: all.latency_ns.saturating_sub(counted_ns),
            ..Sums::default()
        };
        match sums.last_mut() {
            Some(last) if drain_ns(bundle) < width_ns / 2 => {
                last.count += late.count;
                last.latency_ns = last.latency_ns.saturating_add(late.latency_ns);
            }
            _ => sums.push(late),
        }
    }
    sums
}

/// Returns the largest of the mean latencies in intervals of `width_ns`, including completions
/// after the end. Jetstress calls this value the maximum latency.
pub fn latency_ns_max_of_means(bundle: &Bundle, pick: Pick, width_ns: u64) -> Option<u64> {
    intervals_and_drained(bundle, pick, width_ns).into_iter().filter_map(Sums::mean_ns).max()
}

/// Returns the time from the end of the measurement until the last operation in flight had
/// completed.
pub(crate) fn drain_ns(bundle: &Bundle) -> u64 {
    let mut after = bundle.run.phases.iter().skip_while(|phase| phase.kind != PhaseKind::Measure);
    after.nth(1).filter(|phase| phase.kind == PhaseKind::Close).map_or(0, |p| p.duration_ns)
}

/// Returns the rate per second in each interval of `width_ns`.
pub fn rates_per_s(bundle: &Bundle, pick: Pick, width_ns: u64) -> Vec<f64> {
    let parts = rate_parts(bundle, pick, width_ns);
    parts.into_iter().map(|part| part.numerator / part.denominator).collect()
}

/// Returns the operations and the seconds of each interval of `width_ns`. The rate is the ratio of
/// their totals.
pub fn rate_parts(bundle: &Bundle, pick: Pick, width_ns: u64) -> Vec<Parts> {
    parts_over_time(bundle, pick, width_ns, |sums| sums.count)
}

/// Returns the bytes and the seconds of each interval of `width_ns`. The bandwidth is the ratio of
/// their totals.
pub fn bandwidth_parts(bundle: &Bundle, pick: Pick, width_ns: u64) -> Vec<Parts> {
    parts_over_time(bundle, pick, width_ns, |sums| sums.size_bytes)
}

fn parts_over_time(
    bundle: &Bundle,
    pick: Pick,
    width_ns: u64,
    of: impl Fn(&Sums) -> u64,
) -> Vec<Parts> {
    let Some(measure) = measured(bundle) else { return Vec::new() };
    let sums = intervals(bundle, pick, width_ns);
    let width_ns = width_ns.clamp(1, measure.duration_ns);
    let last = sums.len().saturating_sub(1) as u64;
    let lasts_ns = |index: u64| {
        if index == last { measure.duration_ns - last * width_ns } else { width_ns }
    };
    let part = |(index, sums): (u64, &Sums)| Parts {
        numerator: of(sums) as f64,
        denominator: lasts_ns(index) as f64 / NS_PER_S,
    };
    (0..).zip(&sums).map(part).collect()
}

/// Returns the summed latency and the number of I/Os in each interval of `width_ns` that has I/Os,
/// including completions after the end. The mean latency is the ratio of their totals.
pub fn latency_parts(bundle: &Bundle, pick: Pick, width_ns: u64) -> Vec<Parts> {
    intervals_and_drained(bundle, pick, width_ns)
        .into_iter()
        .filter(|sums| sums.count > 0)
        .map(|sums| Parts { numerator: sums.latency_ns as f64, denominator: sums.count as f64 })
        .collect()
}

/// Returns the largest single latency of the measured phase.
pub fn latency_ns_max(bundle: &Bundle, pick: Pick) -> Option<u64> {
    let picked = bundle.run.classes.iter().filter(|class| pick.includes(class) && class.count > 0);
    picked.map(|class| class.latency_ns_max).max()
}

/// Returns the instances to which a limit on this latency applies. These are the instances whose
/// plan contains such operations, and all others that executed such operations.
pub fn expected_instances(bundle: &Bundle, class: LatencyClass) -> Vec<u32> {
    use LatencyClass::{All, DbRead, DbWrite, FirstByte, LogWrite, Metadata, Read, Sync, Write};
    let pick = |instance| match class {
        DbRead | Read => Pick::Reads(instance),
        DbWrite | Write => Pick::Writes(instance),
        LogWrite => Pick::LogWrites(instance),
        Sync => Pick::Flushes(instance),
        FirstByte => Pick::FirstBytes(instance),
        Metadata => Pick::Metadata(instance),
        All => Pick::All(instance),
    };
    let planned: Vec<bool> = match &bundle.plan.workload {
        Workload::Mailbox(store) => vec![true; store.databases as usize],
        Workload::Matrix(matrix) => {
            let has = |stream: &Stream| match class {
                DbRead | Read | FirstByte => {
                    stream.read_percent > 0.0 && stream.metadata_percent < 100.0
                }
                DbWrite | Write => stream.read_percent < 100.0 && stream.metadata_percent < 100.0,
                Sync => stream.sync.kind.flushes(),
                Metadata => stream.metadata_percent > 0.0,
                LogWrite => false,
                All => true,
            };
            matrix.streams.iter().map(has).collect()
        }
    };
    let last = bundle.run.classes.iter().map(|class| class.instance as usize + 1).max();
    let count = planned.len().max(last.unwrap_or(0)) as u32;
    let planned = |instance: u32| planned.get(instance as usize).copied().unwrap_or(false);
    let has_some = |instance| totals(bundle, pick(Some(instance))).count > 0;
    (0..count).filter(|instance| planned(*instance) || has_some(*instance)).collect()
}

/// Returns a percentile of latency over the measured phase, from the merged histograms. `None` if
/// there are too few samples for that percentile ([`crate::stats::percentile_gate`]).
pub fn percentile_ns(bundle: &Bundle, pick: Pick, quantile: f64) -> Option<u64> {
    let merged = histogram(bundle, pick)?;
    let n = merged.len();
    crate::stats::percentile_gate(n as usize, n as f64, quantile).ok()?;
    Some(merged.value_at_quantile(quantile))
}

/// Returns the CPU time of the load generator, including kernel time, per operation of the measured
/// phase. `None` if the CPU time or the number of operations is unknown.
pub fn cpu_ns_per_op(bundle: &Bundle) -> Option<f64> {
    let generator = &bundle.observed.generator;
    let cpu_ns = generator.user_ns?.checked_add(generator.system_ns?)?;
    let count = totals(bundle, Pick::Transactional).count;
    (count > 0).then(|| cpu_ns as f64 / count as f64)
}

/// Returns the merged latency histogram of the classes.
pub fn histogram(bundle: &Bundle, pick: Pick) -> Option<hdrhistogram::Histogram<u64>> {
    let mut merged = plimsoll_evidence::latency::histogram();
    for class in bundle.run.classes.iter().filter(|class| pick.includes(class)) {
        if let Some(histogram) = bundle.latency.get(&class.name) {
            merged.add(histogram).ok()?;
        }
    }
    (!merged.is_empty()).then_some(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixtures;

    #[test]
    fn compared_writes_end_with_their_flush_if_all_streams_flush() {
        let mut bundle = fixtures::writes();
        let all = [Pick::Writes(None), Pick::All(None), Pick::Transactional];
        assert_eq!(all.map(|pick| latency_pick(&bundle, pick)), all);
        let mut durable = bundle.run.classes[0].clone();
        (durable.name, durable.group) = ("matrix.durable".into(), DURABLE.into());
        durable.latency_ns_sum *= 3;
        bundle.run.classes.push(durable);
        let picked = all.map(|pick| latency_pick(&bundle, pick));
        let both = Pick::AllDurable(None);
        assert_eq!(picked, [Pick::Durable(None), both, both]);
        let means = [all[0], picked[0]].map(|pick| totals(&bundle, pick).mean_ns().unwrap());
        assert_eq!(means[1], 3 * means[0]);
        let compared = crate::metrics::of(&bundle.plan.workload).iter();
        let mut of_writes = compared.filter(|figure| figure.key == "write_latency_ns_avg");
        assert_eq!((of_writes.next().unwrap().of)(&bundle), Some(means[1] as f64));
        // A second stream writes but never flushes, so all streams together have no durable
        // latency.
        let mut other = bundle.run.classes[0].clone();
        (other.name, other.instance) = ("other.write".into(), 1);
        bundle.run.classes.push(other);
        assert_eq!(all.map(|pick| latency_pick(&bundle, pick)), all);
        assert_eq!(latency_pick(&bundle, Pick::Writes(Some(0))), Pick::Durable(Some(0)));
    }

    #[test]
    fn a_log_write_that_is_flushed_ends_with_the_flush() {
        let mailbox =
            "[workload.mailbox]\nmailboxes = 10\nmailbox_size = \"1GiB\"\ndatabases = 1\n";
        let at = fixtures::PLAN.find("[workload.matrix]").unwrap();
        let end = at + fixtures::PLAN[at..].find("\n[").unwrap() + 1;
        let plan = format!("{}{mailbox}{}", &fixtures::PLAN[..at], &fixtures::PLAN[end..]);
        let mut bundle = fixtures::writes();
        bundle.plan = plimsoll_plan::Plan::parse(&plan, "store.toml").unwrap().resolve();
        bundle.run.classes[0].group = "log".into();
        let [log, database] = [Pick::LogWrites(None), Pick::DatabaseWrites(None)];
        assert_eq!(latency_pick(&bundle, log), log);
        let written = bundle.run.classes.iter().find(|class| log.includes(class)).unwrap();
        let mut durable = written.clone();
        (durable.name, durable.group) = ("db0.log_durable".into(), DURABLE.into());
        bundle.run.classes.push(durable);
        assert_eq!(latency_pick(&bundle, log), Pick::Durable(None));
        assert_eq!(latency_pick(&bundle, database), database);
        // If the log is never flushed, the class remains empty.
        bundle.run.classes.last_mut().unwrap().count = 0;
        assert_eq!(latency_pick(&bundle, log), log);
    }
}
