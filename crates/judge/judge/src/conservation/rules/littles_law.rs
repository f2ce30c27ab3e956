//! Checks that rate, latency and the number of operations in flight agree.

use plimsoll_evidence::tool_result::{
    Durability, Figure, Kind, Latency, Operation, Part, Stage, ToolResult,
};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, Span, format};
use super::{concurrent, counter_reset, rate, usable};

/// Minimum share of the stated depth that rate and latency must explain. If the share is lower, the
/// latency omits most of the time. A generator also spends time on each operation that the latency
/// does not include, but the share is still 0.5 or more. (The lowest measured share is that of
/// buffered reads with one thread: fio itself uses half of each cycle. Engines that only copy memory
/// have a lower share, so their depth is not `kept`.)
const SHARE_MIN: f64 = 0.5;
/// Tolerance for the start and the end of a run, which may increase the mean number in flight by
/// this share. Threads start and stop at different times, but their rates are computed with the
/// longest of their run times.
const ENDS: f64 = 0.01;
/// If each slot runs at least this number of operations, the start and the end of the run have only
/// a small effect.
const ROUNDS_MIN: f64 = 10.0;
/// A time without operations counts as missing load if it is at least this long. On a busy host or
/// with a CPU limit, a generator can get no CPU for 100 ms at a time, which can be most of a short
/// run.
const IDLE_S_MIN: f64 = 0.5;

pub const RULE: Rule = Rule {
    id: "littles-law",
    asks: "do rate, latency and the number of operations in flight agree?",
    explains: "The mean number of operations in flight is rate × mean latency, regardless of their \
               order and distribution (J. D. C. Little, 1961). It cannot be larger than the depth: \
               otherwise the rate, the latency or the depth is wrong. If the tool replaces each \
               completed operation immediately, a number below half of the depth means that the \
               latency omits most of the operations' time, or that a part of the load was missing \
               for some time. Reads and writes with different run times ran in separate phases and \
               are checked separately. A thread that flushes has no other operation in flight, so \
               the time of flushes counts as busy. The tolerance is the rounding of the figures, \
               plus 1 % for threads that do not end at the same time. If there may have been a \
               warm-up before the run, the longest latency divided by the length of the run is \
               added, because operations in flight at the end of the warm-up are counted with their \
               full latency.",
    needs: "a rate, a mean latency and the number of operations in flight",
    check,
};

fn check(reported: &ToolResult, declared: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let mut stated = false;
    for part in reported.parts.iter().filter(|part| !part.is_total) {
        let each = part.setting.outstanding_of_each.as_ref().filter(|each| usable(each));
        let unknown = part.setting.outstanding.is_none() && declared.outstanding.is_none();
        if let Some((each, flight)) = each.filter(|_| unknown).zip(Flight::of([part])) {
            outcome.check(flight.check_depth_per_issuer(each));
        }
    }
    for part in reported.parts.iter().filter(|part| !part.is_total) {
        let Some(outstanding) = part.setting.outstanding.as_ref().filter(|o| usable(&o.most))
        else {
            continue;
        };
        stated = true;
        for phase in phases(part) {
            if let Some(flight) = Flight::of([&phase]) {
                outcome.check(flight.check_in_flight(&outstanding.most, outstanding.kept));
            }
        }
    }
    // A depth that the user declares applies to the whole result. It is used only if the result
    // itself states no depth.
    if let Some(most) = declared.outstanding.filter(|_| !stated) {
        let most = Figure::exact(most, "--outstanding");
        for group in concurrent(reported.parts.iter().filter(|part| !part.is_total)) {
            let split: Vec<Vec<Part>> = group.into_iter().map(phases).collect();
            for at in 0..split.iter().map(Vec::len).max().unwrap_or_default() {
                if let Some(flight) = Flight::of(split.iter().filter_map(|part| part.get(at))) {
                    outcome.check(flight.check_in_flight(&most, false));
                }
            }
        }
    }
    outcome
}

/// Splits a part whose reads and writes did not run at the same time, such as writes and their
/// verification.
fn phases(part: &Part) -> Vec<Part> {
    let moves: Vec<&Operation> = part.operations.iter().filter(|o| o.kind.moves_data()).collect();
    let windows: Vec<Span> =
        moves.iter().filter_map(|o| super::window(part, o)).map(Span::from).collect();
    let alike = windows.iter().all(|a| windows.iter().all(|b| a.widened(ENDS).meets(*b)));
    // A write-only job with verification also has reads, which follow the writes.
    let of_one = part.setting.read_percent.as_ref();
    let of_one = of_one.is_some_and(|percent| percent.value <= 0.0 || percent.value >= 100.0);
    if moves.len() < 2 || alike && !of_one {
        return vec![part.clone()];
    }
    let of = |operation: &&Operation| {
        let apart = |o: &&Operation| o.kind == operation.kind || !o.kind.moves_data();
        let operations = part.operations.iter().filter(apart).cloned().collect();
        Part { operations, ..part.clone() }
    };
    let is_timed = |operation: &&&Operation| !counter_reset::may_verify_meanwhile(part, operation);
    let mut of_kinds: Vec<&Operation> = Vec::new();
    for operation in moves.iter().filter(is_timed) {
        if of_kinds.iter().all(|other| other.kind != operation.kind) {
            of_kinds.push(operation);
        }
    }
    of_kinds.iter().map(of).collect()
}

/// Average number of operations in flight, with the terms of the sum.
struct Flight {
    mean: Span,
    says: Vec<String>,
    fields: Vec<String>,
    /// True if the latencies include the whole time of an operation.
    whole: bool,
    longest_share: f64,
    /// True if operations may have started before the run, in a warm-up.
    began_before: bool,
    /// Mean number of flushes in progress.
    flushing: f64,
    /// True if flushes are part of the load but the result has no figures for them.
    flushes_unknown: bool,
    /// Number of operations of all parts. `None` if the result does not count them.
    count: Option<f64>,
    /// Share of the run in which a new operation started whenever an operation completed. At the
    /// end of the run, the tool only waits for the last operations.
    issuing_share: f64,
    /// Longest run time of the operations, if it is known.
    window_s: Option<f64>,
}

/// Returns the latency that includes the whole operation, or otherwise the latency of the longest
/// part of it.
fn mean(operation: &Operation) -> Option<(&Latency, &Figure)> {
    let of = |stage: Stage| {
        let mut latencies =
            operation.latencies.iter().filter(move |l| l.stage == stage && !l.sampled);
        latencies.find_map(|l| l.mean_ns.as_ref().filter(|mean| usable(mean)).map(|mean| (l, mean)))
    };
    of(Stage::Total).or_else(|| of(Stage::Unstated)).or_else(|| of(Stage::Completion))
}

impl Flight {
    fn of<'r>(parts: impl IntoIterator<Item = &'r Part>) -> Option<Self> {
        let mut flight = Self {
            mean: Span::exact(0.0),
            says: Vec::new(),
            fields: Vec::new(),
            whole: true,
            longest_share: 0.0,
            began_before: false,
            flushing: 0.0,
            flushes_unknown: false,
            count: None,
            issuing_share: 1.0,
            window_s: None,
        };
        for part in parts {
            flight.take_flushes(part);
            let divided = part.operations.iter().any(|o| o.kind.moves_data() && mean(o).is_some());
            // A flush waits for other operations, so it does not use a slot of the queue. If the
            // result has separate figures for reads and writes, the figures for all operations
            // already include these.
            let counts = |o: &&Operation| o.kind != Kind::Sync && !(divided && o.kind == Kind::All);
            for operation in part.operations.iter().filter(counts) {
                let Some((latency, mean)) = mean(operation) else { continue };
                let Some((rate, fields)) = rate(part, operation) else { continue };
                flight.mean = flight.mean.plus(rate.times(Span::from(mean).scaled(1e-9)));
                flight.says.push(format!(
                    "{} {}/s × {}",
                    operation.kind.word(),
                    format::number(rate.value),
                    format::time(mean.value)
                ));
                flight.fields.push(mean.field.clone());
                flight.fields.extend(fields);
                flight.whole &= latency.stage == Stage::Total;
                flight.began_before |= part.setting.warm_up_ns.is_some()
                    || counter_reset::may_begin_before(part, operation);
                let window = super::window(part, operation);
                let window_s = window.map(|window| window.value / 1e9);
                flight.window_s = flight.window_s.into_iter().chain(window_s).reduce(f64::max);
                if let Some((length, window)) = part.setting.duration_ns.as_ref().zip(window)
                    && usable(length)
                    && window.value > 0.0
                {
                    flight.issuing_share = flight.issuing_share.min(length.value / window.value);
                }
                if let Some(count) = operation.count.iter().find(|count| usable(count)) {
                    flight.count = Some(flight.count.unwrap_or(0.0) + count.value);
                }
                if let Some((longest, window)) =
                    latency.max_ns.as_ref().zip(super::window(part, operation))
                {
                    flight.longest_share = flight.longest_share.max(longest.value / window.value);
                }
            }
        }
        (!flight.says.is_empty()).then_some(flight)
    }

    /// Adds the time spent in flushes. While a thread flushes, it has no other operation in flight.
    fn take_flushes(&mut self, part: &Part) {
        let flushes: Vec<f64> = part
            .operations
            .iter()
            .filter(|operation| operation.kind == Kind::Sync)
            .filter_map(|operation| {
                let (rate, _) = rate(part, operation)?;
                Some(rate.value * mean(operation)?.1.value / 1e9)
            })
            .collect();
        let flushed = part.setting.durability == Some(Durability::Flushed)
            || part.operations.iter().any(|operation| operation.kind == Kind::Sync);
        self.flushes_unknown |= flushed && flushes.is_empty();
        self.flushing += flushes.iter().sum::<f64>();
    }

    fn terms(&self) -> String {
        match &self.says[..] {
            [first, second, third, rest @ ..] if !rest.is_empty() => {
                format!("{first} + {second} + {third} and {} more", rest.len())
            }
            terms => terms.join(" + "),
        }
    }

    /// Compares the sum with the depth of one issuer, if the number of issuers is unknown.
    fn check_depth_per_issuer(&self, each: &Figure) -> Option<Finding> {
        self.mean.is_above(Span::from(each).scaled(1.0 + ENDS)).then(|| {
            let says = format!(
                "{} = {} operations in flight, but the stated depth is {}: this requires {} issuers \
                 with this depth, and the result does not state the number of issuers",
                self.terms(),
                format::number(self.mean.value),
                format::number(each.value),
                format::number((self.mean.value / each.value).ceil())
            );
            let fields = self.fields.iter().cloned().chain([each.field.clone()]);
            Finding::new(Severity::Doubtful, says)
                .with_fields(fields)
                .with_request("the number of issuers, and the depth of each issuer")
        })
    }

    fn check_in_flight(&self, most: &Figure, kept: bool) -> Option<Finding> {
        let edge = if self.began_before { self.longest_share } else { 0.0 };
        let allowed = Span::from(most).scaled(1.0 + ENDS + edge);
        let sum =
            format!("{} = {} operations in flight", self.terms(), format::number(self.mean.value));
        let depth = format::number(most.value);
        let fields = self.fields.iter().cloned().chain([most.field.clone()]);
        if self.mean.is_above(allowed) {
            let says = format!(
                "{sum}, but at most {depth} can be in flight: this is {} the depth",
                format::times(self.mean.value / most.value)
            );
            return Some(
                Finding::new(Severity::Impossible, says).with_fields(fields).with_request(
                    "the number of operations in flight, and which operations the mean latency \
                     includes",
                ),
            );
        }
        let busy = self.mean.plus(Span::exact(self.flushing));
        let least = SHARE_MIN * self.issuing_share;
        let short = Span::from(most).scaled(least).is_above(busy) && !self.flushes_unknown;
        // If each slot ran only a few operations, the start and the end of the run dominate, and
        // the load was never constant.
        let few = self.count.is_some_and(|count| count < most.value * ROUNDS_MIN);
        let idle_share = 1.0 - busy.value / most.value;
        let brief = self.window_s.is_some_and(|window_s| window_s * idle_share < IDLE_S_MIN);
        (kept && self.whole && short && !few && !brief).then(|| {
            let says = format!(
                "{sum}, but {depth} must be in flight at all times: the latency omits {} of the \
                 time, or a part of the load was missing",
                format::percent(1.0 - self.mean.value / most.value)
            );
            Finding::new(Severity::Doubtful, says).with_fields(fields).with_request(
                "the rate over time, and the part of each operation that the latency omits",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::Outstanding;

    use super::*;

    fn result(rate: f64, mean_ns: f64, kept: bool) -> ToolResult {
        let mut operation = Operation::of(Kind::Read);
        operation.rate_per_s = vec![Figure::exact(rate, "iops")];
        operation.window_ns = Some(Figure::exact(60e9, "runtime"));
        operation.latencies = vec![Latency {
            mean_ns: Some(Figure::exact(mean_ns, "lat.mean")),
            max_ns: Some(Figure::exact(6e9, "lat.max")),
            ..Latency::default()
        }];
        let mut part = Part { operations: vec![operation], ..Part::default() };
        part.setting.outstanding = Some(Outstanding { most: Figure::exact(8.0, "iodepth"), kept });
        ToolResult { parts: vec![part], ..ToolResult::default() }
    }

    fn severity(reported: &ToolResult, declared: &DeclaredFacts) -> Option<Severity> {
        let outcome = check(reported, declared);
        assert_eq!(outcome.checked, 1);
        outcome.findings.first().map(|finding| finding.severity)
    }

    #[test]
    fn eight_in_flight_are_eight_and_nine_are_impossible() {
        let none = DeclaredFacts::default();
        assert_eq!(severity(&result(10_000.0, 800_000.0, true), &none), None);
        assert_eq!(severity(&result(10_000.0, 820_000.0, true), &none), Some(Severity::Impossible));
        assert_eq!(severity(&result(10_000.0, 380_000.0, true), &none), Some(Severity::Doubtful));
        assert_eq!(severity(&result(10_000.0, 380_000.0, false), &none), None);
    }

    #[test]
    fn a_declared_depth_applies_to_each_phase() {
        let declared = DeclaredFacts { outstanding: Some(8.0), ..DeclaredFacts::default() };
        let found = |groups: [&str; 2]| {
            let mut reported = result(10_000.0, 800_000.0, false);
            reported.parts[0].setting.outstanding = None;
            reported.parts.push(reported.parts[0].clone());
            for (part, group) in reported.parts.iter_mut().zip(groups) {
                part.group = Some(group.into());
            }
            check(&reported, &declared).findings.len()
        };
        assert_eq!((found(["0", "0"]), found(["0", "1"])), (1, 0));
        // A job writes and then verifies its writes.
        let mut verified = result(10_000.0, 800_000.0, false);
        let part = &mut verified.parts[0];
        part.setting.outstanding = None;
        part.setting.read_percent = Some(Figure::exact(0.0, "rw"));
        part.operations.push(Operation { kind: Kind::Write, ..part.operations[0].clone() });
        assert_eq!(check(&verified, &declared).findings.len(), 0);
    }

    #[test]
    fn a_kind_of_operation_has_one_phase() {
        let mut part = result(10_000.0, 800_000.0, true).parts.remove(0);
        let read = part.operations[0].clone();
        let write = Operation { kind: Kind::Write, ..read.clone() };
        part.operations = [vec![read; 50], vec![write; 50]].concat();
        part.setting.read_percent = Some(Figure::exact(100.0, "rw"));
        let counts: Vec<usize> = phases(&part).iter().map(|p| p.operations.len()).collect();
        assert_eq!(counts, [50, 50]);
    }

    #[test]
    fn a_long_end_of_a_short_run_lowers_the_mean() {
        let mut reported = result(10_000.0, 380_000.0, true);
        // The job issued for 50 s, and its last operations ended 10 s later.
        reported.parts[0].setting.duration_ns = Some(Figure::exact(50e9, "runtime"));
        assert_eq!(severity(&reported, &DeclaredFacts::default()), None);
    }

    #[test]
    fn a_handful_of_operations_keeps_nothing_up() {
        let mut reported = result(10_000.0, 380_000.0, true);
        reported.parts[0].operations[0].count = vec![Figure::exact(8.0, "entries")];
        assert_eq!(severity(&reported, &DeclaredFacts::default()), None);
        reported.parts[0].operations[0].count = vec![Figure::exact(80.0, "entries")];
        assert_eq!(severity(&reported, &DeclaredFacts::default()), Some(Severity::Doubtful));
    }

    #[test]
    fn a_generator_that_did_not_run_for_some_milliseconds_is_not_doubted() {
        let severity_of = |window_ns: f64| {
            let mut reported = result(10_000.0, 380_000.0, true);
            reported.parts[0].operations[0].window_ns = Some(Figure::exact(window_ns, "runtime"));
            severity(&reported, &DeclaredFacts::default())
        };
        assert_eq!(severity_of(20e6), None);
        assert_eq!(severity_of(900e6), None);
        assert_eq!(severity_of(1e9), Some(Severity::Doubtful));
    }

    #[test]
    fn what_was_in_flight_after_a_warm_up_is_allowed_for() {
        let mut reported = result(10_000.0, 820_000.0, true);
        reported.parts[0].setting.warm_up_ns = Some(Figure::exact(1e9, "ramp_time"));
        assert_eq!(severity(&reported, &DeclaredFacts::default()), None);
    }

    #[test]
    fn a_declared_depth_holds_for_the_whole_result() {
        let mut reported = result(10_000.0, 800_000.0, false);
        reported.parts[0].setting.outstanding = None;
        reported.parts[0].group = Some("0".into());
        reported.parts.push(reported.parts[0].clone());
        let declared = |n: f64| DeclaredFacts { outstanding: Some(n), ..DeclaredFacts::default() };
        assert_eq!(severity(&reported, &declared(16.0)), None);
        assert_eq!(severity(&reported, &declared(12.0)), Some(Severity::Impossible));
        assert_eq!(check(&reported, &DeclaredFacts::default()).checked, 0);
    }

    #[test]
    fn a_depth_that_may_be_of_each_issuer_is_doubted_and_not_accused() {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(100_000.0, "iops")],
            latencies: vec![Latency {
                mean_ns: Some(Figure::exact(1e6, "lat")),
                ..Latency::default()
            }],
            ..Operation::of(Kind::Read)
        };
        // Figures for all operations are not added to those for reads.
        let all = Operation { kind: Kind::All, ..operation.clone() };
        let severity = |each: f64| {
            let mut part =
                Part { operations: vec![all.clone(), operation.clone()], ..Part::default() };
            part.setting.outstanding_of_each = Some(Figure::exact(each, "QD"));
            let reported = ToolResult { parts: vec![part], ..ToolResult::default() };
            let outcome = check(&reported, &DeclaredFacts::default());
            assert_eq!(outcome.checked, 1);
            outcome.findings.first().map(|finding| (finding.severity, finding.says.clone()))
        };
        assert_eq!(severity(100.0), None);
        let (doubt, says) = severity(32.0).unwrap();
        assert_eq!(doubt, Severity::Doubtful);
        assert!(says.contains("requires 4 issuers"), "{says}");
    }
}
