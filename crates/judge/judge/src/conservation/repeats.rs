//! Results that repeat the same measurement, and the comparison of two sides of such results.
//!
//! Results repeat each other if the same tool did the same work: their parts have the same names,
//! kinds, sizes, access patterns, depths and threads. Within one study, their paths must also
//! match, except for numbers (`run-1/randread.json`, `run-2/randread.json`), because results do not
//! name the system under test. If a result does not state a setting, this setting cannot be
//! compared.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{Figure, Part, ToolResult};
use serde::Serialize;

use super::{Audit, Credibility, Headline, format, headline};
use crate::stats::welch::{RUNS_MIN, compare_at};
use crate::stats::{Repeats, repeats};

/// Confidence level of the interval of a ratio.
const CONFIDENCE: f64 = 0.95;

/// Kind of figure that is compared between repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Operations per second.
    RatePerS,
    /// Bytes per second.
    BandwidthBytesPerS,
    LatencyNsMean,
}

impl FigureKind {
    /// All kinds of figures. The rate and the bandwidth of the same result convey the same
    /// information.
    const ALL: [Self; 3] = [Self::RatePerS, Self::BandwidthBytesPerS, Self::LatencyNsMean];

    fn value(self, figures: &Headline) -> Option<f64> {
        match self {
            Self::RatePerS => figures.rate_per_s,
            Self::BandwidthBytesPerS => figures.bandwidth_per_s,
            Self::LatencyNsMean => figures.latency_ns,
        }
    }

    /// Returns true if a higher value of this figure is better.
    pub fn more_is_better(self) -> bool {
        self != Self::LatencyNsMean
    }
}

/// Results that repeat each other.
#[derive(Clone, Debug)]
pub struct Group<'r> {
    /// Description of the work.
    pub label: String,
    pub results: Vec<&'r ToolResult>,
    /// Positions of these results in the list that the caller passed.
    pub at: Vec<usize>,
}

/// Statistics of one figure over a group of repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    pub figure: FigureKind,
    /// Value of the figure in each result that contains it.
    pub values: Vec<f64>,
    /// Mean of the values with its confidence interval, and the spread of the values.
    pub repeats: Repeats,
}

/// Groups results of a study that repeat each other. Each group has at least two results.
pub fn groups<'r>(results: impl IntoIterator<Item = &'r ToolResult>) -> Vec<Group<'r>> {
    let mut groups: BTreeMap<(String, String), Vec<(usize, &ToolResult)>> = BTreeMap::new();
    for (at, result) in results.into_iter().enumerate() {
        let headlines = headline(result);
        if FigureKind::ALL.iter().all(|kind| kind.value(&headlines).is_none()) {
            continue;
        }
        groups
            .entry((without_numbers(&result.label()), key(result)))
            .or_default()
            .push((at, result));
    }
    let more = groups.into_iter().filter(|(_, results)| results.len() > 1);
    let group = |((path, _), results): ((String, String), Vec<(usize, &'r ToolResult)>)| {
        let (at, results): (Vec<usize>, Vec<&ToolResult>) = results.into_iter().unzip();
        let done = label(results.first().copied());
        Group { label: format!("{path} ({done})"), results, at }
    };
    more.map(group).collect()
}

impl Group<'_> {
    /// Returns the spread of each figure that all of these results contain.
    pub fn spreads(&self) -> Vec<Spread> {
        let headlines: Vec<Headline> = self.results.iter().map(|result| headline(result)).collect();
        FigureKind::ALL.iter().filter_map(|kind| spread(*kind, &headlines)).collect()
    }
}

fn spread(figure: FigureKind, headlines: &[Headline]) -> Option<Spread> {
    let values: Vec<f64> = headlines.iter().filter_map(|figures| figure.value(figures)).collect();
    let whole = values.len() == headlines.len() && values.len() > 1;
    let repeats = whole.then(|| repeats(&values)).and_then(Result::ok)?;
    Some(Spread { figure, values, repeats })
}

/// Replaces each number in a path by `#`, because the paths of repeats differ only in their
/// numbers.
pub(super) fn without_numbers(text: &str) -> String {
    let mut short = String::new();
    for letter in text.chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !short.ends_with('#') {
            short.push(letter);
        }
    }
    short
}

/// Replaces long numbers in a name. Such numbers are timestamps or process ids.
fn name(text: &str) -> String {
    let is_long = |word: &str| word.len() >= 5 && word.bytes().all(|b| b.is_ascii_digit());
    let words = text.split_inclusive(|c: char| !c.is_ascii_digit());
    words
        .map(
            |word| {
                if is_long(word.trim_end_matches(|c: char| !c.is_ascii_digit())) {
                    "#"
                } else {
                    word
                }
            },
        )
        .collect()
}

/// Returns a description of the work. Results that repeat each other have the same description.
fn key(result: &ToolResult) -> String {
    let mut parts: Vec<String> =
        result.parts.iter().filter(|part| !part.is_total).map(part_key).collect();
    parts.sort_unstable();
    format!("{}|{}", result.source.tool, parts.join("\n"))
}

/// Formats a size for the key. Sizes that are derived from other figures vary from run to run
/// because of rounding.
fn size(figure: &Figure) -> String {
    format!("{:.3e}", figure.value)
}

fn part_key(part: &Part) -> String {
    let setting = &part.setting;
    let value = |figure: Option<&Figure>| figure.map(|figure| figure.value);
    let operations: Vec<String> = part
        .operations
        .iter()
        .map(|o| format!("{} {:?}", o.kind.word(), o.size_bytes.as_ref().map(size)))
        .collect();
    format!(
        "{} {operations:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        name(&part.name),
        value(setting.outstanding.as_ref().map(|o| &o.most)),
        value(setting.outstanding_of_each.as_ref()),
        value(setting.threads.as_ref()),
        value(setting.read_percent.as_ref()),
        setting.pattern,
        setting.direct,
        setting.durability,
    )
}

/// Returns a label such as `randread: read of 4 KiB, 32 in flight`.
fn label(result: Option<&ToolResult>) -> String {
    let Some(result) = result else { return String::new() };
    let parts: Vec<&Part> = result.parts.iter().filter(|part| !part.is_total).collect();
    let Some(first) = parts.first() else { return result.source.tool.clone() };
    let kinds = first.operations.iter().map(|o| match &o.size_bytes {
        Some(size) => format!("{} of {}", o.kind.word(), format::transfer(size.value)),
        None => o.kind.word().to_owned(),
    });
    let mut label = kinds.collect::<Vec<_>>().join(" and ");
    if !first.name.is_empty() {
        label = format!("{}: {label}", name(&first.name));
    }
    let flight = parts
        .iter()
        .filter_map(|part| part.setting.outstanding.as_ref())
        .map(|o| o.most.value)
        .sum::<f64>();
    if flight > 0.0 {
        label.push_str(&format!(", {} in flight", format::number(flight)));
    }
    label
}

/// Outcome of comparing one figure of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The second side of the comparison is better, by more than the scatter of the runs.
    Better,
    /// The second side of the comparison is worse, by more than the scatter of the runs.
    Worse,
    /// The difference is no larger than the scatter of the runs.
    NotShown,
    /// The sides of the comparison have too few runs for a decision.
    TooFew,
    /// A result of one side is impossible, so the comparison is not valid.
    Impossible,
}

/// One figure, compared between two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    #[serde(rename = "of")]
    pub figure: FigureKind,
    /// Values of the figure in the results of the first and of the second side of the comparison.
    pub values: [Vec<f64>; 2],
    /// Mean of each side of the comparison.
    pub means: [f64; 2],
    /// Difference between maximum and minimum, divided by the mean, for each side of the comparison
    /// with more than one result.
    pub spreads: [Option<f64>; 2],
    /// Mean of the second side of the comparison divided by the mean of the first.
    pub ratio: f64,
    /// 95 % confidence interval of the ratio, if each side of the comparison has at least two
    /// results.
    pub ratio_interval: Option<(f64, f64)>,
    /// Outcome of the comparison.
    pub says: Difference,
}

/// One workload that both sides of the comparison ran, with its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Description of the work.
    pub label: String,
    /// Figures of the work.
    pub pairs: Vec<Pair>,
}

/// Comparison of two sides of repeated results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sides {
    /// Workloads that both sides of the comparison ran.
    pub rows: Vec<Row>,
    /// Workloads that only one side of the comparison ran, each with the number of that side.
    pub alone: Vec<(usize, String)>,
    /// Results whose figures are impossible.
    pub impossible: Vec<String>,
}

/// Compares two sides' results of the same workload. A difference is significant if it exceeds the
/// scatter of the repeats.
pub fn compare(sides: [&[(&ToolResult, Audit)]; 2]) -> Sides {
    type Side<'s> = Vec<&'s (&'s ToolResult, Audit)>;
    let mut work: BTreeMap<String, [Side<'_>; 2]> = BTreeMap::new();
    for (index, side) in sides.iter().enumerate() {
        for result in *side {
            work.entry(key(result.0)).or_default()[index].push(result);
        }
    }
    let is_bad = |(_, audit): &&&(&ToolResult, Audit)| audit.verdict == Credibility::Impossible;
    let mut all = Sides::default();
    for side in sides {
        all.impossible.extend(side.iter().filter(|r| is_bad(&r)).map(|(result, _)| result.label()));
    }
    for (_, [first, second]) in work {
        let done = label(first.first().or(second.first()).map(|(result, _)| *result));
        match (first.is_empty(), second.is_empty()) {
            (false, true) => all.alone.push((0, done)),
            (true, false) => all.alone.push((1, done)),
            _ => {
                let bad = first.iter().chain(&second).any(|result| is_bad(&result));
                let headlines = [&first, &second].map(|side| {
                    side.iter().map(|(result, _)| headline(result)).collect::<Vec<_>>()
                });
                let pairs = FigureKind::ALL
                    .iter()
                    .filter_map(|kind| pair(*kind, &headlines, bad))
                    .collect::<Vec<_>>();
                if pairs.is_empty() {
                    continue;
                }
                all.rows.push(Row { label: done, pairs });
            }
        }
    }
    all
}

fn pair(figure: FigureKind, headlines: &[Vec<Headline>; 2], impossible: bool) -> Option<Pair> {
    let values = [0, 1]
        .map(|side| headlines[side].iter().filter_map(|f| figure.value(f)).collect::<Vec<f64>>());
    let [a, b] = [repeats(&values[0]).ok()?, repeats(&values[1]).ok()?];
    if a.mean <= 0.0 || b.mean <= 0.0 {
        return None;
    }
    let compared = compare_at(&values[0], &values[1], CONFIDENCE).ok();
    let few = values.iter().any(|values| values.len() < RUNS_MIN);
    let ratio = compared.as_ref().map_or(b.mean / a.mean, |compared| compared.ratio.mean);
    let says = match &compared {
        _ if impossible => Difference::Impossible,
        _ if few => Difference::TooFew,
        Some(compared) if compared.significant && (ratio > 1.0) == figure.more_is_better() => {
            Difference::Better
        }
        Some(compared) if compared.significant => Difference::Worse,
        _ => Difference::NotShown,
    };
    let ratio_interval = compared.map(|compared| (compared.ratio.low, compared.ratio.high));
    Some(Pair {
        figure,
        values,
        means: [a.mean, b.mean],
        spreads: [a.spread, b.spread],
        ratio,
        ratio_interval,
        says,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::tool_result::{Kind, Operation, Source};

    use super::super::{DeclaredFacts, audit};
    use super::*;

    fn result(file: &str, rate: f64, size: f64) -> ToolResult {
        let operation = Operation {
            rate_per_s: vec![Figure::exact(rate, "iops")],
            size_bytes: Some(Figure::exact(size, "bs")),
            bandwidth_per_s: vec![Figure::exact(rate * size, "bw")],
            ..Operation::of(Kind::Read)
        };
        let part = Part { name: "randread".into(), operations: vec![operation], ..Part::default() };
        let source = Source { tool: "fio".into(), file: file.into(), ..Source::default() };
        ToolResult { parts: vec![part], ..ToolResult::new(source) }
    }

    fn judged(results: &[ToolResult]) -> Vec<(&ToolResult, Audit)> {
        results.iter().map(|result| (result, audit(result, &DeclaredFacts::default()))).collect()
    }

    #[test]
    fn repeats_did_the_same_and_lie_alike() {
        let all = [
            result("a/run-1.json", 100.0, 4096.0),
            result("a/run-02.json", 110.0, 4096.0),
            result("a/run-3.json", 90.0, 8192.0),
            result("b/run-1.json", 500.0, 4096.0),
        ];
        let found = groups(&all);
        assert_eq!(found.len(), 1, "another size and another directory are no repeats: {found:?}");
        assert_eq!(found[0].label, "a/run-#.json (randread: read of 4 KiB)");
        let spreads = found[0].spreads();
        assert_eq!(spreads[0].values, [100.0, 110.0]);
        assert!((spreads[0].repeats.spread.unwrap() - 10.0 / 105.0).abs() < 1e-12);
        assert_eq!(spreads.len(), 2, "no latency is told");
    }

    #[test]
    fn a_difference_is_told_from_the_scatter_of_enough_runs() {
        let results = |rates: &[f64]| -> Vec<ToolResult> {
            let numbered = rates.iter().enumerate();
            numbered.map(|(i, rate)| result(&i.to_string(), *rate, 4096.0)).collect()
        };
        let says = |a: &[f64], b: &[f64]| {
            let sides = [results(a), results(b)];
            let judged = [0, 1].map(|side: usize| judged(&sides[side]));
            compare([&judged[0], &judged[1]]).rows[0].pairs[0].says
        };
        assert_eq!(
            says(&[100.0, 101.0, 99.0, 100.0], &[120.0, 121.0, 119.0, 120.0]),
            Difference::Better
        );
        assert_eq!(
            says(&[120.0, 121.0, 119.0, 120.0], &[100.0, 101.0, 99.0, 100.0]),
            Difference::Worse
        );
        assert_eq!(
            says(&[100.0, 140.0, 80.0, 110.0], &[105.0, 90.0, 150.0, 100.0]),
            Difference::NotShown
        );
        assert_eq!(says(&[100.0, 101.0], &[200.0, 202.0]), Difference::TooFew);
    }

    #[test]
    fn what_one_side_did_alone_and_impossible_results_decide_nothing() {
        let (one, other) = (result("a", 100.0, 4096.0), result("b", 100.0, 8192.0));
        let mut bad = result("c", 100.0, 4096.0);
        bad.parts[0].operations[0].bandwidth_per_s[0] = Figure::exact(9e9, "bw");
        let [one, other, bad] = [[one], [other], [bad]];
        let sides = compare([&judged(&one), &judged(&other)]);
        assert_eq!((sides.rows.len(), sides.alone.len()), (0, 2));
        let sides = compare([&judged(&one), &judged(&bad)]);
        assert_eq!(sides.rows[0].pairs[0].says, Difference::Impossible);
        assert_eq!(sides.impossible, ["c"]);
    }
}
