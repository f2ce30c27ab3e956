//! Checks whether later passes over the same data were faster than the first.

use plimsoll_evidence::tool_result::{Figure, Pass, ToolResult};

use super::super::{DeclaredFacts, Finding, Rule, RuleResult, Severity, format};
use super::usable;

/// The mean rate of the later passes may exceed the rate of the first pass by this share. In MLPerf
/// Storage 1.0 (662 training results), the difference is below 1 % in half of the results and below
/// 4 % in nine of ten.
const FASTER_MAX: f64 = 0.10;
/// Passes count as equally busy if their busy times differ by at most this many percentage points.
const BUSY_POINTS: f64 = 2.0;

pub const RULE: Rule = Rule {
    id: "later-passes-faster",
    asks: "were later passes over the same data faster than the first?",
    explains: "During the first pass over a data set, none of its data is in a cache. If later \
     passes are more than 10 % faster than the first pass, data was cached in the memory of the \
     hosts or of the storage. The mean over all passes is then neither the cold nor the warm rate. \
     If the consumers were equally busy in all passes, there is another possible cause: the first \
     pass includes the start of the run.",
    needs: "the rates or times of two or more passes over the same data",
    check,
};

fn check(reported: &ToolResult, _: &DeclaredFacts) -> RuleResult {
    let mut outcome = RuleResult::default();
    let rates: Vec<(&Pass, &Figure, f64)> = speeds(&reported.passes);
    if let [(_, first, slow), later @ ..] = &rates[..]
        && !later.is_empty()
    {
        let mean = later.iter().map(|(.., speed)| speed).sum::<f64>() / later.len() as f64;
        let faster = mean / slow - 1.0;
        outcome.check((faster > FASTER_MAX).then(|| {
            let shown = |speed: f64, figure: &Figure| {
                let by_time = speed != figure.value;
                if by_time {
                    format::time(figure.value)
                } else {
                    format!("{}/s", format::number(speed))
                }
            };
            let later_says: Vec<String> =
                later.iter().take(6).map(|(_, f, s)| shown(*s, f)).collect();
            let mut says = format!(
                "the first pass has {}, and the {} after it {}: {} faster",
                shown(*slow, first),
                if later.len() == 1 { "one".to_owned() } else { later.len().to_string() },
                later_says.join(", "),
                format::percent(faster)
            );
            says.push_str(busy(&reported.passes));
            Finding::new(Severity::Doubtful, says).with_fields([&first.field]).with_request(
                "the sizes of the data and of the memory of hosts and storage, and the media's \
                 own read counters",
            )
        }));
    }
    outcome
}

/// Returns the passes with their speeds: their rates, or the reciprocals of their times.
fn speeds(passes: &[Pass]) -> Vec<(&Pass, &Figure, f64)> {
    let positive = |figure: &&Figure| usable(figure) && figure.value > 0.0;
    let by_rate = |pass| -> Option<(&Pass, &Figure, f64)> {
        let pass: &Pass = pass;
        let rate = pass.rate_per_s.as_ref().filter(positive)?;
        Some((pass, rate, rate.value))
    };
    let by_time = |pass| -> Option<(&Pass, &Figure, f64)> {
        let pass: &Pass = pass;
        let time = pass.duration_ns.as_ref().filter(positive)?;
        Some((pass, time, 1.0 / time.value))
    };
    let rates: Vec<_> = passes.iter().filter_map(by_rate).collect();
    if rates.len() == passes.len() { rates } else { passes.iter().filter_map(by_time).collect() }
}

fn busy(passes: &[Pass]) -> &'static str {
    let shares: Vec<f64> =
        passes.iter().filter_map(|p| p.busy_percent.as_ref().map(|b| b.value)).collect();
    let [first, later @ ..] = &shares[..] else { return "" };
    let mean = later.iter().sum::<f64>() / later.len().max(1) as f64;
    if later.is_empty() {
        ""
    } else if mean - first > BUSY_POINTS {
        "; the consumers waited less in later passes, so data came from a cache"
    } else {
        "; the consumers were equally busy in the first pass, which may include the start of the \
         run"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(rates: &[f64], busy: &[f64]) -> Option<String> {
        let pass = |(rate, busy): (&f64, &f64)| Pass {
            rate_per_s: Some(Figure::exact(*rate, "rate")),
            busy_percent: Some(Figure::exact(*busy, "busy")),
            ..Pass::default()
        };
        let passes = rates.iter().zip(busy).map(pass).collect();
        let outcome =
            check(&ToolResult { passes, ..ToolResult::default() }, &DeclaredFacts::default());
        assert_eq!(outcome.checked, usize::from(rates.len() > 1));
        outcome.findings.first().map(|finding| finding.says.clone())
    }

    #[test]
    fn a_warm_cache_shows_from_the_second_pass_on() {
        assert_eq!(says(&[100.0, 108.0, 109.0], &[90.0, 91.0, 91.0]), None);
        let cached = says(&[100.0, 120.0, 125.0], &[77.0, 96.0, 97.0]).unwrap_or_default();
        assert!(cached.contains("22.5 % faster") && cached.contains("cache"), "{cached}");
        let start = says(&[100.0, 120.0], &[90.4, 90.9]).unwrap_or_default();
        assert!(start.contains("the start of the run"), "{start}");
        assert_eq!(says(&[100.0], &[90.0]), None);
    }

    #[test]
    fn times_serve_where_there_are_no_rates() {
        let pass = |ns| Pass { duration_ns: Some(Figure::exact(ns, "time")), ..Pass::default() };
        let passes = vec![pass(130e9), pass(100e9), pass(101e9)];
        let outcome =
            check(&ToolResult { passes, ..ToolResult::default() }, &DeclaredFacts::default());
        assert!(outcome.findings[0].says.contains("130 s"), "{:?}", outcome.findings);
    }
}
