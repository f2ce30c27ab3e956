//! Checks that rate, size, bandwidth, amounts and time agree.

use plimsoll_evidence::tool_result::{
    Figure, Kind, Operation, Part, SampleStatistics, Stage, ToolResult,
};

use super::super::equation::{Equation, failures};
use super::super::format::ValueFormatter;
use super::super::{DeclaredFacts, Rule, RuleResult, Severity, Span, format};
use super::{counter_reset, first, per_s, usable, whose, window};

pub const RULE: Rule = Rule {
    id: "rate-size-bandwidth",
    asks: "do rate, size, bandwidth, amounts and time agree?",
    explains: "Bandwidth is rate × size, bytes are operations × size, and a rate is the number of \
               operations or bytes divided by the run time. A figure that is printed twice must \
               have the same value. The tolerance is the rounding of the printed digits, plus the \
               operations in flight when the tool reset its counters (for example at the end of a \
               warm-up), because the tool counts their bytes but not the operations. If the two \
               sides differ by the ratio of two units that are often confused (8, 1.024, 1.048576, \
               1000), the finding names these units. The finding lists first those figures of a \
               failed equation that occur in no correct equation.",
    needs: "a rate, a size and a bandwidth, or the run time and a count of operations or bytes",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    for (part, operation) in reported.operations() {
        let mut equations = equations(part, operation);
        let products = with_size(part, operation);
        outcome.checked += equations.len() + products.len();
        let cause = cause_of_missing_bytes(part, operation);
        let lacks_bytes =
            |e: &Equation<'_>| cause.is_some() && !e.holds() && e.left.value > e.right.value;
        let (doubted, certain): (Vec<_>, Vec<_>) = products.into_iter().partition(lacks_bytes);
        equations.extend(certain);
        let complete = |e: &Equation<'_>| doubted.is_empty() || e.left.value <= e.right.value;
        let samples = of_samples(part, operation).filter(complete);
        outcome.checked += usize::from(samples.is_some());
        equations.extend(samples);
        let mut findings = failures(&equations);
        // One finding is sufficient for the amount and the bandwidth.
        findings.extend(doubted.first().zip(cause).map(|(equation, cause)| {
            let mut finding = equation.failure();
            finding.severity = Severity::Doubtful;
            finding.says.push_str(&format!(". {cause}"));
            finding
        }));
        outcome.findings.extend(findings.into_iter().map(|mut finding| {
            finding.says.insert_str(0, &whose(part, operation));
            finding.with_request("the tool's own output, and the unit of each figure")
        }));
    }
    outcome
}

/// Returns a possible reason why operations, which the tool counts at once, moved fewer bytes than
/// their number × their size.
fn cause_of_missing_bytes(part: &Part, operation: &Operation) -> Option<&'static str> {
    // fio adds the bytes of a job only when the job finishes.
    if part.setting.threads.as_ref().is_some_and(|threads| threads.most > 1.0) {
        return Some(
            "A process may have ended without reporting its bytes. The rate counts its operations",
        );
    }
    let maybe_short = operation.short.as_ref().is_some_and(|short| short.most > 0.0);
    maybe_short
        .then_some("Reads at the end of a file may have moved no data. The rate counts these reads")
}

fn equations<'r>(part: &'r Part, operation: &'r Operation) -> Vec<Equation<'r>> {
    let mut equations = Vec::new();
    for (figures, says, format_value) in [
        (&operation.count, "the number of operations", format::number as ValueFormatter),
        (&operation.bytes, "the amount", format::bytes),
        (&operation.rate_per_s, "the rate", per_s),
        (&operation.bandwidth_per_s, "the bandwidth", format::bytes_per_s),
    ] {
        restated(&mut equations, figures, says, format_value);
    }
    if let Some(window) = window(part, operation) {
        let amounts: [(_, _, _, ValueFormatter, _, ValueFormatter); 2] = [
            (&operation.count, &operation.rate_per_s, "rate", per_s, "operations", format::number),
            (
                &operation.bytes,
                &operation.bandwidth_per_s,
                "bandwidth",
                format::bytes_per_s,
                "",
                format::bytes,
            ),
        ];
        for (amount, rates, word, format_value, unit, format_amount) in amounts {
            let Some(amount) = first(amount) else { continue };
            let Some(quotient) = Span::from(amount).over(Span::from(window).scaled(1e-9)) else {
                continue;
            };
            let left =
                format!("{} {unit} in {}", format_amount(amount.value), format::time(window.value));
            equations.extend(rates.iter().filter(|rate| usable(rate)).map(|rate| Equation {
                left_says: left.replace("  ", " "),
                left: quotient,
                right_says: format!("the {word}"),
                right: rate.into(),
                format_value,
                figures: vec![rate, amount, window],
            }));
        }
    }
    equations.extend(with_latencies(part, operation));
    equations
}

/// Compares the number of operations with the number of their completion latencies.
fn with_latencies<'r>(part: &'r Part, operation: &'r Operation) -> Option<Equation<'r>> {
    let mut latencies = operation.latencies.iter();
    let latency = latencies.find(|l| l.stage == Stage::Completion && !l.sampled)?;
    let latencies = latency.count.as_ref().filter(|count| usable(count))?;
    let count = first(&operation.count).filter(|_| operation.kind != Kind::Sync)?;
    // At the end, an unknown number of operations may be in flight.
    part.setting.outstanding.as_ref()?;
    let in_flight = counter_reset::in_flight(part, operation).most;
    let requeued = operation.short.as_ref().map_or(0.0, |short| short.value);
    let counted = Span::from(count);
    Some(Equation {
        left_says: format!("the number of operations ({})", count.field),
        left: Span {
            least: (counted.least - requeued).max(0.0),
            most: counted.most + in_flight,
            ..counted
        },
        right_says: "the number of completion latencies".into(),
        right: latencies.into(),
        format_value: format::number,
        figures: vec![count, latencies],
    })
}

fn restated<'r>(
    equations: &mut Vec<Equation<'r>>,
    figures: &'r [Figure],
    says: &str,
    format_value: ValueFormatter,
) {
    let Some(once) = first(figures) else { return };
    let again = figures.iter().filter(|figure| usable(figure) && !std::ptr::eq(*figure, once));
    equations.extend(again.map(|again| Equation {
        left_says: format!("{} ({})", says, once.field),
        left: once.into(),
        right_says: format!("the same figure in {}", again.field),
        right: again.into(),
        format_value,
        figures: vec![again, once],
    }));
}

/// Returns the size of all transfers. A transfer that ended early moved fewer bytes than its size.
fn constant_size(operation: &Operation) -> Option<&Figure> {
    let short = operation.short.as_ref().is_some_and(|short| short.value > 0.0);
    operation.size_bytes.as_ref().filter(|size| usable(size) && !short)
}

/// Tolerance of samples: they are not taken at exactly the same time.
const SAMPLES_SLACK: f64 = 0.05;

/// Compares the mean samples of the rate and of the bandwidth. fio truncates each sample of each
/// thread to whole operations and KiB (`__add_samples` in stat.c).
fn of_samples<'r>(part: &'r Part, operation: &'r Operation) -> Option<Equation<'r>> {
    let size = constant_size(operation)?;
    let (rate, bandwidth) =
        (operation.rate_sampled.as_ref()?, operation.bandwidth_sampled.as_ref()?);
    let samples = rate.samples.as_ref().zip(bandwidth.samples.as_ref());
    samples.filter(|(rate, bandwidth)| rate.value == bandwidth.value)?;
    let threads = part.setting.threads.as_ref().filter(|threads| usable(threads))?.most;
    let mean = |sampled: &'r SampleStatistics| sampled.mean.as_ref().filter(|mean| usable(mean));
    let (rate, bandwidth) = (mean(rate)?, mean(bandwidth)?);
    let (of_rate, of_bandwidth) = (Span::from(rate), Span::from(bandwidth));
    let cut = |span: Span, unit: f64| Span { most: span.most + threads * unit, ..span };
    Some(Equation {
        left_says: format!("{} on average × {}", per_s(rate.value), format::transfer(size.value)),
        left: cut(of_rate, 1.0).times(size.into()).widened(SAMPLES_SLACK),
        right_says: "the mean of the bandwidth samples".into(),
        right: cut(of_bandwidth, 1024.0),
        format_value: format::bytes_per_s,
        figures: vec![rate, bandwidth, size],
    })
}

fn with_size<'r>(part: &'r Part, operation: &'r Operation) -> Vec<Equation<'r>> {
    let mut equations = Vec::new();
    let Some(size) = constant_size(operation) else { return equations };
    let transfer = format::transfer(size.value);
    let uncounted = counter_reset::in_flight(part, operation).most;
    let seconds = window(part, operation).map(|window| window.least / 1e9);
    // If the length of the run is unknown, the error of the rate is unknown too.
    let uncounted_per_s = match seconds.filter(|seconds| *seconds > 0.0) {
        Some(seconds) => uncounted / seconds,
        None if uncounted > 0.0 => f64::INFINITY,
        None => 0.0,
    };
    let pairs: [(_, _, _, ValueFormatter, ValueFormatter, f64); 2] = [
        (
            &operation.count,
            &operation.bytes,
            "the amount",
            format::number,
            format::bytes,
            uncounted,
        ),
        (
            &operation.rate_per_s,
            &operation.bandwidth_per_s,
            "the bandwidth",
            per_s,
            format::bytes_per_s,
            uncounted_per_s,
        ),
    ];
    for (counts, sums, says, format_count, format_value, edge) in pairs {
        let (Some(count), Some(sum)) = (first(counts), first(sums)) else { continue };
        if edge.is_infinite() {
            continue;
        }
        let counted = Span::from(count);
        let counted =
            Span { least: (counted.least - edge).max(0.0), most: counted.most + edge, ..counted };
        equations.push(Equation {
            left_says: format!("{} × {transfer}", format_count(count.value)),
            left: counted.times(size.into()),
            right_says: says.into(),
            right: sum.into(),
            format_value,
            figures: vec![sum, count, size],
        });
    }
    equations
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::{Latency, Outstanding};

    use super::*;

    fn reads() -> ToolResult {
        let mut operation = Operation::of(Kind::Read);
        operation.count = vec![Figure::exact(600_000.0, "total_ios")];
        operation.bytes = vec![Figure::exact(2_457_600_000.0, "io_bytes")];
        operation.size_bytes = Some(Figure::exact(4096.0, "bs"));
        operation.rate_per_s = vec![Figure::rounded(10_000.0, 0.01, "iops")];
        operation.bandwidth_per_s = vec![
            Figure::truncated(40_960_000.0, 1.0, "bw_bytes"),
            Figure::truncated(40_000.0, 1.0, "bw").scaled(1024.0),
        ];
        operation.window_ns = Some(Figure::exact(60e9, "runtime"));
        ToolResult {
            parts: vec![Part { operations: vec![operation], ..Part::default() }],
            ..ToolResult::default()
        }
    }

    fn found(reported: &ToolResult) -> Vec<String> {
        let outcome = check(reported, &DeclaredFacts::default());
        assert!(outcome.findings.iter().all(|f| f.severity == Severity::Impossible));
        outcome.findings.into_iter().map(|f| f.fields[0].clone()).collect()
    }

    #[test]
    fn figures_that_fit_are_not_accused() {
        assert!(found(&reads()).is_empty());
        assert_eq!(check(&reads(), &DeclaredFacts::default()).checked, 6);
    }

    #[test]
    fn the_field_that_was_changed_is_named_first() {
        let mut reported = reads();
        let operation = &mut reported.parts[0].operations[0];
        operation.rate_per_s[0] = Figure::rounded(12_000.0, 0.01, "iops");
        assert_eq!(found(&reported), ["iops", "iops"]);
        let mut reported = reads();
        reported.parts[0].operations[0].bandwidth_per_s[1] =
            Figure::truncated(40_960.0, 1.0, "bw").scaled(1024.0);
        assert_eq!(found(&reported), ["bw", "bw"]);
        let mut reported = reads();
        reported.parts[0].operations[0].window_ns = Some(Figure::exact(50e9, "runtime"));
        assert!(found(&reported).iter().all(|field| field == "runtime"));
    }

    #[test]
    fn a_transfer_that_was_short_excuses_the_product() {
        let mut reported = reads();
        let operation = &mut reported.parts[0].operations[0];
        operation.size_bytes = Some(Figure::exact(8192.0, "bs"));
        assert_eq!(found(&reported), ["bs", "bs"]);
        reported.parts[0].operations[0].short = Some(Figure::exact(1.0, "short_ios"));
        assert!(found(&reported).is_empty());
    }

    #[test]
    fn missing_bytes_are_doubted_if_they_have_a_cause() {
        let says = |change: &dyn Fn(&mut Part), bytes: f64| {
            let mut reported = reads();
            let operation = &mut reported.parts[0].operations[0];
            operation.bytes = vec![Figure::exact(bytes, "io_bytes")];
            operation.bandwidth_per_s = vec![Figure::truncated(bytes / 60.0, 1.0, "bw_bytes")];
            change(&mut reported.parts[0]);
            let outcome = check(&reported, &DeclaredFacts::default());
            outcome.findings.iter().map(|f| (f.severity, f.says.clone())).collect::<Vec<_>>()
        };
        let several = |part: &mut Part| part.setting.threads = Some(Figure::exact(4.0, "jobs"));
        let short = Some(Figure { most: 600_000.0, ..Figure::exact(0.0, "short") });
        let at_end = |part: &mut Part| part.operations[0].short = short.clone();
        for (change, words) in [
            (&several as &dyn Fn(&mut Part), "A process may have ended"),
            (&at_end, "Reads at the end of a file"),
        ] {
            let doubts = says(change, 1.8e9);
            assert!(doubts.len() == 1 && doubts[0].1.contains(words), "{doubts:?}");
            assert_eq!(doubts[0].0, Severity::Doubtful);
            // No cause adds bytes.
            let faults = says(change, 2.8e9);
            assert!(faults.len() == 2 && faults[0].0 == Severity::Impossible, "{faults:?}");
        }
        assert_eq!(says(&|_| (), 1.8e9)[0].0, Severity::Impossible);
    }

    #[test]
    fn each_operation_has_a_completion_latency() {
        let with = |count: f64, in_flight: f64| {
            let mut reported = reads();
            let part = &mut reported.parts[0];
            part.operations[0].count[0].least -= in_flight;
            let count = Some(Figure::exact(count, "N"));
            part.operations[0].latencies =
                vec![Latency { stage: Stage::Completion, count, ..Latency::default() }];
            part.setting.outstanding =
                Some(Outstanding { most: Figure::exact(64.0, "iodepth"), kept: true });
            found(&reported)
        };
        assert!(with(600_000.0, 0.0).is_empty() && with(599_936.0, 64.0).is_empty());
        assert_eq!(with(599_936.0, 0.0), ["N"]);
        assert_eq!(with(300_000.0, 64.0), ["N"]);
    }

    #[test]
    fn the_samples_of_rate_and_bandwidth_agree() {
        let with = |rate: f64, samples: f64| {
            let mut reported = reads();
            let part = &mut reported.parts[0];
            part.setting.threads = Some(Figure::exact(1.0, "numjobs"));
            let sampled = |mean: f64, samples: f64| {
                let (mean, samples) = (Figure::exact(mean, "mean"), Figure::exact(samples, "n"));
                Some(SampleStatistics {
                    mean: Some(mean),
                    samples: Some(samples),
                    ..SampleStatistics::default()
                })
            };
            part.operations[0].rate_sampled = sampled(rate, samples);
            part.operations[0].bandwidth_sampled = sampled(40_960_000.0, 120.0);
            found(&reported).len()
        };
        assert_eq!([with(10_000.0, 120.0), with(9600.0, 120.0), with(7000.0, 9.0)], [0; 3]);
        assert_eq!([with(7000.0, 120.0), with(14_000.0, 120.0)], [1; 2]);
    }

    #[test]
    fn what_was_in_flight_when_a_warm_up_ended_is_allowed_for() {
        let mut reported = reads();
        let part = &mut reported.parts[0];
        part.operations[0].bytes = vec![Figure::exact(2_457_862_144.0, "io_bytes")];
        part.operations[0].bandwidth_per_s.clear();
        part.setting.outstanding =
            Some(Outstanding { most: Figure::exact(64.0, "iodepth"), kept: true });
        assert_eq!(found(&reported), ["io_bytes"]);
        reported.parts[0].setting.warm_up_ns = Some(Figure::exact(2e9, "ramp_time"));
        assert!(found(&reported).is_empty());
        reported.parts[0].operations[0].bytes[0].most += 4096.0 * 64.0;
        reported.parts[0].operations[0].bytes[0].least += 4096.0 * 64.0;
        assert_eq!(found(&reported), ["io_bytes"], "that is twice what was in flight");
    }

    #[test]
    fn without_figures_nothing_is_checked() {
        assert_eq!(check(&ToolResult::default(), &DeclaredFacts::default()), RuleResult::default());
    }
}
