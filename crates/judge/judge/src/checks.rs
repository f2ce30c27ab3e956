//! Checks: one row per limit of the requirement, compared with the measured value.

pub(crate) mod rate;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{Driver, PhaseKind};
use plimsoll_plan::{LatencyClass, LatencyLimit, LatencyStatistic, Pace, Requirement, Workload};

use crate::capacity_use;
use crate::figures::{self, NS_PER_S, Pick, measured};
use crate::hidden_latency::{self, HiddenLatency};
use crate::stats::{self, Parts};
use crate::tail::Tail;
use crate::verdict::{Check, Quantity};
use crate::words::span;

/// Maximum number of intervals into which a measurement is divided for its statistics.
const INTERVALS_MAX: u64 = 1_000;

/// Name of the counter for page-fault stalls. The check of this counter has the same name.
pub const STALLS: &str = "page_fault_stalls";

/// Name of the check for damaged pages.
pub const CHECKSUMS: &str = "checksum_errors";

/// Returns all checks of the requirement. Each field of the requirement has its own check, or a
/// comment that says which check uses the field.
pub fn all(bundle: &Bundle, requirement: &Requirement, accepts_hidden_latency: bool) -> Vec<Check> {
    // The pattern lists every field and has no `..`, so the compiler reports a new field without a
    // check.
    let Requirement {
        iops_per_s,
        iops_from_workload: _, // source of `iops_per_s`
        metadata_ops_per_s,
        bandwidth_bytes_per_s,
        capacity_bytes,
        latency_max_of_ns,
        page_fault_stalls_max_per_s,
        limit_set: _, // source of `limits`
        limits,
        windows: _, // checked by `events`
        streams: _, // checked by `events`
    } = requirement;
    let mut checks = Vec::new();
    checks.extend(iops_per_s.map(|limit| rate::iops(bundle, limit)));
    checks.extend(metadata_ops_per_s.map(|limit| rate::metadata_ops(bundle, limit)));
    checks.extend(bandwidth_bytes_per_s.map(|limit| rate::bandwidth(bundle, limit)));
    checks.extend(capacity_bytes.map(|limit| capacity(bundle, limit)));
    checks.extend(
        limits
            .iter()
            .map(|limit| latency(bundle, *latency_max_of_ns, limit, accepts_hidden_latency)),
    );
    checks.extend(page_fault_stalls_max_per_s.map(|limit| stalls(bundle, limit)));
    // A simulated storage system stores no data that could be checked.
    let has_data = bundle.run.driver != Driver::Model;
    if has_data && matches!(bundle.plan.workload, Workload::Mailbox(_)) {
        checks.push(checksum_errors(bundle));
    }
    checks
}

/// Returns true if operations were due at a fixed rate. In a closed loop, sessions issue operations
/// as fast as they can.
pub fn open_loop(bundle: &Bundle) -> bool {
    !bundle.run.engine.closed_loop
        || bundle.plan.workload.mailbox().is_some_and(|store| store.pace == Pace::Target)
}

fn interval_ns(bundle: &Bundle) -> u64 {
    let measured_ns = measured(bundle).map_or(0, |phase| phase.duration_ns);
    bundle.plan.evidence.interval_ns.max(measured_ns / INTERVALS_MAX).max(1)
}

/// Confidence level for the decision whether a mean meets its limit.
struct LimitConfidence {
    interval: Option<[f64; 2]>,
    /// `None` if the samples are not sufficient for a decision.
    within: Option<bool>,
}

/// Decides whether a mean meets its limit. The mean meets the limit if its confidence interval
/// excludes the limit, or if all ten batch means meet the limit. A mean that exceeds its limit
/// fails if the whole interval exceeds the limit, or if there are too few samples for an interval.
/// Otherwise the check is undecided.
fn confidence(parts: &[Parts], mean: f64, keeps: impl Fn(f64) -> bool) -> LimitConfidence {
    let interval = stats::ratio_of_totals(parts).ok();
    // A rate or a latency is never negative.
    let ends = interval.map(|i| [i.low.max(0.0), i.high]);
    let within = if keeps(mean) {
        let clear = ends.is_some_and(|ends| ends.into_iter().all(&keeps));
        let all_ten = stats::ten_batch_ratios(parts).is_some_and(|ten| ten.into_iter().all(&keeps));
        (clear || all_ten).then_some(true)
    } else {
        let straddles = ends.is_some_and(|ends| ends.into_iter().any(&keeps));
        (!straddles).then_some(false)
    };
    LimitConfidence { interval: ends, within }
}

fn note_of(bundle: &Bundle, confidence: &LimitConfidence, mean: f64, limit: f64) -> String {
    let says = match (confidence.within, confidence.interval) {
        (Some(_), _) => return String::new(),
        (None, None) => "the samples are too few or too unsteady",
        (None, Some(_)) => "the confidence interval includes the limit",
    };
    let measured_ns = measured(bundle).map_or(0, |phase| phase.duration_ns);
    match confidence.interval.and_then(|ends| deciding_time_ns(measured_ns, ends, mean, limit)) {
        Some(ns) => format!(
            "{says}: a measurement of about {} would be enough, if the rate does not change",
            span(ns)
        ),
        None => format!("{says}; measure longer"),
    }
}

/// Maximum factor by which Plimsoll advises to measure longer. If a larger factor is needed, the
/// mean is practically equal to its limit.
const TIMES_LONGER_MAX: f64 = 1_000.0;

/// Returns the measurement time after which the interval would exclude the limit. Intervals shrink
/// with the square root of the time. The intervals of dependent samples shrink more slowly, hence
/// "about".
fn deciding_time_ns(measured_ns: u64, ends: [f64; 2], mean: f64, limit: f64) -> Option<u64> {
    // One end of the interval is on the wrong side of the limit. A longer measurement must move it
    // back to the limit.
    let half = if limit > mean { ends[1] - mean } else { mean - ends[0] };
    let times = (half / (limit - mean)).powi(2);
    (times > 1.0 && times <= TIMES_LONGER_MAX).then(|| (measured_ns as f64 * times).ceil() as u64)
}

/// Returns the measurement time that yields enough I/Os for a percentile. A percentile requires ten
/// I/Os that are slower.
fn enough_ns(bundle: &Bundle, count: u64, statistic: LatencyStatistic) -> Option<u64> {
    let needed = 10.0 / (1.0 - statistic.quantile()?);
    let measured_ns = measured(bundle)?.duration_ns;
    Some((measured_ns as f64 * needed / count as f64).ceil() as u64)
}

/// Checks the number of bytes that the run laid out, used, and read back completely at its end.
fn capacity(bundle: &Bundle, limit_bytes: u64) -> Check {
    let checks = &bundle.run.checks;
    let verify = bundle.run.phases.iter().find(|p| p.kind == PhaseKind::Verify && p.reached);
    let whole = verify.filter(|_| checks.pages_checked.is_some() && checks.errors == 0);
    let held_bytes: u64 = bundle.run.instances.iter().map(|i| i.size_bytes_final).sum();
    // Several streams may share one device, so the sum of their sizes can exceed the size of the
    // device.
    let kept_bytes = whole.map(|phase| phase.read_bytes.min(held_bytes));
    let used = capacity_use::used_capacity(bundle, limit_bytes, held_bytes);
    let measured_bytes = kept_bytes.zip(used.bytes).map(|(kept, used)| kept.min(used));
    let ok = measured_bytes.map(|bytes| bytes >= limit_bytes);
    let note = match kept_bytes {
        Some(_) => format!("laid out and read back in full at the end{}", used.note),
        None => {
            "not checked: the final check of all data did not finish, or found errors".to_owned()
        }
    };
    let quantity = Quantity::Capacity { limit_bytes, measured_bytes };
    Check::undecided("capacity", quantity, true).with_result(ok).with_note(note)
}

/// Returns the classes of operations that must each meet the limit. If one percentile included all
/// classes, fast reads or metadata operations could hide slow writes.
fn classes_of(class: LatencyClass) -> &'static [LatencyClass] {
    use LatencyClass::{All, DbRead, DbWrite, FirstByte, LogWrite, Metadata, Read, Sync, Write};
    match class {
        All => &[Read, Write, Metadata],
        Sync => &[Sync],
        FirstByte => &[FirstByte],
        Read => &[Read],
        Write => &[Write],
        Metadata => &[Metadata],
        DbRead => &[DbRead],
        DbWrite => &[DbWrite],
        LogWrite => &[LogWrite],
    }
}

/// Returns the I/Os that a limit applies to, for one instance or for all.
fn pick_of(class: LatencyClass, instance: Option<u32>) -> Pick {
    match class {
        LatencyClass::DbRead => Pick::DatabaseReads(instance),
        LatencyClass::DbWrite => Pick::DatabaseWrites(instance),
        LatencyClass::LogWrite => Pick::LogWrites(instance),
        LatencyClass::Read => Pick::Reads(instance),
        LatencyClass::Write => Pick::Writes(instance),
        LatencyClass::Sync => Pick::Flushes(instance),
        LatencyClass::FirstByte => Pick::FirstBytes(instance),
        LatencyClass::Metadata => Pick::Metadata(instance),
        LatencyClass::All => Pick::All(instance),
    }
}

struct InstanceResult {
    name: String,
    count: u64,
    measured_ns: Option<u64>,
    within: Option<bool>,
    interval: Option<[f64; 2]>,
    note: String,
    /// Reason why the limit is undecided, if stalls may have hidden slow operations; otherwise
    /// `None`. A plan can accept this uncertainty.
    hidden_latency: Option<String>,
}

impl InstanceResult {
    /// Returns the rank of the instance. The instance with the highest rank determines the result
    /// of the check. Instances that exceed the limit have the highest rank, then undecided
    /// instances, then the slowest instance.
    fn rank(&self) -> (u8, u64) {
        let rank = match (self.within, self.measured_ns) {
            (Some(false), _) => 3,
            (None, None) => 2,
            (None, Some(_)) => 1,
            (Some(true), _) => 0,
        };
        (rank, self.measured_ns.unwrap_or(0))
    }

    fn describe_slowest(&self) -> String {
        let Self { name, note, measured_ns, .. } = self;
        match (measured_ns, note.as_str()) {
            (None, note) => format!("{name}: {note}"),
            (Some(_), "") => format!("worst: {name}"),
            (Some(_), note) => format!("worst: {name}; {note}"),
        }
    }

    /// Describes the instance that determines the result of the check although another instance is
    /// slower.
    fn describe_deciding(&self, limit_ns: u64) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        let measured = self.measured_ns.map_or(0.0, ms);
        match self.within {
            Some(_) => {
                format!(
                    "{} has {measured:.3} ms, above the limit of {:.3} ms",
                    self.name,
                    ms(limit_ns)
                )
            }
            None => format!("{} has {measured:.3} ms: {}", self.name, self.note),
        }
    }
}

/// Checks a latency limit for each database, as Jetstress does. The check shows the figure of the
/// slowest database. It fails if any instance certainly exceeds the limit, and is undecided if any
/// instance is undecided. Such an instance determines the result of the check even if another
/// instance is slower.
fn latency(
    bundle: &Bundle,
    max_of_ns: u64,
    limit: &LatencyLimit,
    accepts_hidden_latency: bool,
) -> Check {
    let limit_ns = limit.limit_ns;
    let open = |measured_ns| {
        let quantity = Quantity::Latency { limit_ns, measured_ns };
        Check::undecided(&limit.name, quantity, false)
    };
    let of_class = |class: &LatencyClass| {
        let limit = LatencyLimit { class: *class, ..limit.clone() };
        let instances = figures::expected_instances(bundle, *class).into_iter();
        let results = instances.map(|i| {
            let mut result = instance(bundle, max_of_ns, &limit, i);
            if !accepts_hidden_latency && result.hidden_latency.is_some() {
                result.within = None;
                result.note = result.hidden_latency.take().unwrap_or_default();
            }
            result
        });
        results.collect::<Vec<_>>()
    };
    let mut results: Vec<InstanceResult> =
        classes_of(limit.class).iter().flat_map(of_class).collect();
    if limit.class == LatencyClass::All {
        // Removes classes without operations if at least one class has operations. In a mix of 99.9
        // : 0.1, the rare class may have none.
        let some = results.iter().any(|result| result.count > 0);
        results.retain(|result| result.count > 0 || !some);
    }
    let Some(decides) = results.iter().max_by_key(|result| result.rank()) else {
        return open(None).with_note("no operation of this kind was measured");
    };
    // If an instance was not measured, the check has no figure, and the note names the instance.
    let slowest = results.iter().max_by_key(|result| result.measured_ns);
    let worst = slowest.filter(|_| decides.measured_ns.is_some()).unwrap_or(decides);
    let mut check = open(worst.measured_ns).with_result(decides.within);
    check.interval = worst.interval;
    let single_ns = figures::expected_instances(bundle, limit.class)
        .into_iter()
        .map(|i| figures::latency_pick(bundle, pick_of(limit.class, Some(i))))
        .filter_map(|pick| figures::latency_ns_max(bundle, pick))
        .max();
    let mut notes = vec![worst.describe_slowest()];
    if worst.name != decides.name {
        notes.push(decides.describe_deciding(limit_ns));
    }
    if limit.statistic == LatencyStatistic::Max
        && let Some(single_ns) = single_ns
    {
        let (of, single_ms) = (max_of_ns as f64 / NS_PER_S, single_ns as f64 / 1e6);
        notes.push(format!(
            "largest mean of an interval of {of} s; the largest latency of a single I/O, \
             {single_ms:.1} ms, is not judged"
        ));
    }
    check.with_note(notes.join("; "))
}

fn instance(
    bundle: &Bundle,
    max_of_ns: u64,
    limit: &LatencyLimit,
    instance: u32,
) -> InstanceResult {
    let pick = figures::latency_pick(bundle, pick_of(limit.class, Some(instance)));
    let name = bundle.run.instances.get(instance as usize).map_or("", |i| i.name.as_str());
    let measured_ns = measure(bundle, max_of_ns, limit, pick);
    let count = figures::totals(bundle, pick).count;
    let mut result = InstanceResult {
        name: name.to_owned(),
        count,
        measured_ns,
        within: measured_ns.map(|ns| ns <= limit.limit_ns),
        interval: None,
        note: String::new(),
        hidden_latency: None,
    };
    match measured_ns {
        None if count == 0 => result.note = "no operation of this kind was measured".to_owned(),
        None if breaks_with_few_samples(bundle, pick, limit, &mut result) => {}
        None => {
            let longer = enough_ns(bundle, count, limit.statistic).map_or(String::new(), |ns| {
                format!(": a measurement of {} would be long enough", span(ns))
            });
            result.note =
                format!("{count} I/Os are too few for the {}{longer}", limit.statistic.word());
        }
        Some(mean_ns) if limit.statistic == LatencyStatistic::Avg => {
            let parts = figures::latency_parts(bundle, pick, interval_ns(bundle));
            let keeps = |ns: f64| ns <= limit.limit_ns as f64;
            let confidence = confidence(&parts, mean_ns as f64, keeps);
            let (mean, limit) = (mean_ns as f64, limit.limit_ns as f64);
            result.note = note_of(bundle, &confidence, mean, limit);
            (result.within, result.interval) = (confidence.within, confidence.interval);
        }
        Some(_) => {
            let tail = Tail::of(bundle, |class| pick.includes(class));
            if let Some((tail, quantile)) = tail.zip(limit.statistic.quantile()) {
                let limit_check = tail.check_limit(quantile, limit.limit_ns);
                (result.within, result.interval) = (limit_check.within, limit_check.interval_ns);
                result.note = limit_check.note;
                if result.within == Some(true) {
                    check_hidden_latency(
                        bundle,
                        instance,
                        limit.limit_ns,
                        (&tail, quantile),
                        &mut result,
                    );
                }
            }
        }
    }
    result
}

/// If enough operations exceed the limit, the percentile must exceed it too. In this case the
/// function sets the result to failed and returns true, even if there are too few samples for the
/// percentile itself.
fn breaks_with_few_samples(
    bundle: &Bundle,
    pick: Pick,
    limit: &LatencyLimit,
    result: &mut InstanceResult,
) -> bool {
    let tail = Tail::of(bundle, |class| pick.includes(class));
    let Some((tail, quantile)) = tail.zip(limit.statistic.quantile()) else { return false };
    if !tail.breaks_by_a_factor(quantile, limit.limit_ns) {
        return false;
    }
    result.within = Some(false);
    result.measured_ns = Some(tail.merged().value_at_quantile(quantile));
    result.note = format!(
        "{:.0} % of {} I/Os were slower than the limit, but only {} % may be slower; the value of \
         the percentile itself is uncertain",
        100.0 * tail.slow_share(limit.limit_ns),
        result.count,
        (100.0 - quantile * 100.0).max(0.0)
    );
    true
}

/// Checks a percentile of a closed loop again, including the operations that were not issued during
/// stalls ([`crate::hidden_latency`]).
fn check_hidden_latency(
    bundle: &Bundle,
    instance: u32,
    limit_ns: u64,
    (tail, quantile): (&Tail<'_>, f64),
    result: &mut InstanceResult,
) {
    let Some(found) = hidden_latency::find(bundle, instance, limit_ns, tail, quantile) else {
        return;
    };
    let ms = |ns: u64| ns as f64 / 1e6;
    let recorded_ms = result.measured_ns.map_or(0.0, ms);
    let percentile = quantile * 100.0;
    match found {
        HiddenLatency::BreaksLimit { percentile_ns, interval_share } => {
            result.within = Some(false);
            result.interval = None;
            result.measured_ns = Some(percentile_ns);
            result.note = format!(
                "operations were slower than the limit during {:.1} % of the time; the recorded \
                 p{percentile} of {recorded_ms:.3} ms hides this, because a closed loop issues few \
                 operations while the storage stalls",
                interval_share * 100.0
            );
        }
        HiddenLatency::Unclear { corrected_ns } => {
            result.hidden_latency = Some(format!(
                "the recorded p{percentile} meets the limit, but it would be {:.2} ms including the \
                 operations that this closed loop did not issue during stalls: use an open loop \
                 (`arrival = \"poisson\"`), or set accept_unknown = [\"coordinated-omission\"] in \
                 [evidence]",
                ms(corrected_ns)
            ));
        }
    }
}

fn measure(bundle: &Bundle, max_of_ns: u64, limit: &LatencyLimit, pick: Pick) -> Option<u64> {
    match limit.statistic {
        LatencyStatistic::Avg => figures::totals(bundle, pick).mean_ns(),
        LatencyStatistic::Max => figures::latency_ns_max_of_means(bundle, pick, max_of_ns),
        statistic => figures::percentile_ns(bundle, pick, statistic.quantile()?),
    }
}

fn stalls(bundle: &Bundle, limit_per_s: f64) -> Check {
    let seconds = measured(bundle).map(|phase| phase.duration_ns as f64 / NS_PER_S);
    let counted = bundle.run.counters.get(STALLS).copied();
    let measured_per_s = counted.zip(seconds).map(|(count, seconds)| count as f64 / seconds);
    let quantity = Quantity::Rate { limit_per_s, measured_per_s };
    let ok = measured_per_s.map(|rate| rate <= limit_per_s);
    Check::undecided(STALLS, quantity, false).with_result(ok)
}

/// Checks the errors that the final verification of all data found. The rule `check-failed` reports
/// errors of reads.
fn checksum_errors(bundle: &Bundle) -> Check {
    let checks = &bundle.run.checks;
    // Detected errors count even if the verification of all pages did not finish.
    let checked = checks.pages_checked.is_some_and(|pages| pages > 0);
    let measured_count = (checked || checks.errors > 0).then_some(checks.errors);
    let note = match checks.pages_checked {
        Some(0) => "not checked: the final check found no page".to_owned(),
        Some(pages) => format!("{pages} pages checked"),
        None if bundle.plan.phases.verify => "the final check did not finish".to_owned(),
        None => "not checked: the plan disables the final check".to_owned(),
    };
    let quantity = Quantity::Count { limit_count: 0, measured_count };
    let ok = measured_count.map(|count| count == 0);
    Check::undecided(CHECKSUMS, quantity, false).with_result(ok).with_note(note)
}

#[cfg(test)]
mod tests;
