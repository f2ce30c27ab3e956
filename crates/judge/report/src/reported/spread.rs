//! Spread of repeated results, and comparison of the results of two sides.

use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_judge::conservation::Audit;
use plimsoll_judge::conservation::repeats::{Difference, FigureKind, Pair, Sides, groups};
use serde_json::json;

use crate::document::{Block, Document, Headline, Section};
use crate::number::Unit;
use crate::table::{Cell, Column, Table, Tone};

/// Maximum number of groups of repeats that a terminal shows. The page and CSV contain all groups.
const GROUPS_MAX: usize = 30;
/// A cell is highlighted if the spread of the repeats is greater than this.
const SPREAD_WARN: f64 = 0.10;

fn unit(kind: FigureKind) -> Unit {
    match kind {
        FigureKind::RatePerS => Unit::Rate,
        FigureKind::BandwidthBytesPerS => Unit::Bandwidth,
        FigureKind::LatencyNsMean => Unit::Latency,
    }
}

fn word(kind: FigureKind) -> &'static str {
    match kind {
        FigureKind::RatePerS => "rate",
        FigureKind::BandwidthBytesPerS => "bandwidth",
        FigureKind::LatencyNsMean => "mean latency",
    }
}

/// Returns a section with the spread of repeated results; `None` if no result was repeated.
pub(super) fn section(judged: &[(&ToolResult, Audit)]) -> Option<Section> {
    let columns = vec![
        Column::words("repeats of", "repeats_of"),
        Column::words("figure", "figure"),
        Column::numbers("results", "results"),
        Column::numbers("least", "least"),
        Column::numbers("mean", "mean"),
        Column::numbers("largest", "largest"),
        Column::of(Unit::Share, "spread", "spread_share"),
        Column::of(Unit::Share, "deviation", "deviation_share").rank(3),
    ];
    let mut table = Table::new("", columns);
    let mut rows = Vec::new();
    for group in groups(judged.iter().map(|(result, _)| *result)) {
        let spreads = group.spreads();
        let rate = spreads.iter().any(|spread| spread.figure == FigureKind::RatePerS);
        // If there is only one I/O size, the bandwidth adds no information to the rate.
        for spread in
            spreads.into_iter().filter(|s| !(rate && s.figure == FigureKind::BandwidthBytesPerS))
        {
            let extreme = |of: fn(f64, f64) -> f64| spread.values.iter().copied().reduce(of);
            let number = |value: Option<f64>| Cell::maybe(unit(spread.figure), value);
            let apart = spread.repeats.spread;
            let tone =
                if apart.is_some_and(|s| s > SPREAD_WARN) { Tone::Warn } else { Tone::Plain };
            let row = vec![
                Cell::text(group.label.clone()),
                Cell::text(word(spread.figure)),
                Cell::count(spread.values.len() as u64),
                number(extreme(f64::min)),
                number(Some(spread.repeats.mean)),
                number(extreme(f64::max)),
                Cell::maybe(Unit::Share, apart).tone(tone),
                Cell::maybe(Unit::Share, spread.repeats.variation),
            ];
            rows.push((apart.unwrap_or(0.0), row));
        }
    }
    if rows.is_empty() {
        return None;
    }
    // Groups are sorted by spread, the largest first.
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = rows.len().saturating_sub(GROUPS_MAX);
    table.rows = rows.into_iter().take(GROUPS_MAX).map(|(_, row)| row).collect();
    let title = "Repeated results, sorted by their spread: (maximum − minimum) / mean";
    let mut section = Section::brief("repeats", title).with(Block::Table(table));
    if more > 0 {
        section = section
            .with(Block::Words(format!("and {more} more groups of repeats with a smaller spread")));
    }
    Some(section)
}

/// Compares the results of other tools on two sides, and returns the report.
pub fn sides_document(names: [&str; 2], sides: &Sides) -> Document {
    let [first, second] = names;
    let columns = vec![
        Column::words("workload", "work"),
        Column::words("figure", "figure"),
        Column::numbers(first, "first_mean"),
        Column::numbers("runs", "first_runs").rank(3),
        Column::of(Unit::Share, "spread", "first_spread_share").rank(2),
        Column::numbers(second, "second_mean"),
        Column::numbers("runs", "second_runs").rank(3),
        Column::of(Unit::Share, "spread", "second_spread_share").rank(2),
        Column::numbers("ratio", "ratio"),
        Column::words("95 % interval", "ratio_interval"),
        Column::remarks("difference", "says"),
    ];
    let mut table = Table::new("", columns);
    for row in &sides.rows {
        for pair in &row.pairs {
            table.rows.push(cells(&row.label, pair, second));
        }
    }
    let mut sections = vec![Section::brief("figures", "Figures").with(Block::Table(table))];
    if !sides.alone.is_empty() {
        let list = sides.alone.iter().map(|(side, label)| format!("{}: {label}", names[*side]));
        sections.push(
            Section::brief(
                "alone",
                "Workloads that were measured on only one side of the comparison",
            )
            .with(Block::List(list.collect())),
        );
    }
    if !sides.impossible.is_empty() {
        let list = Block::List(sides.impossible.clone());
        sections
            .push(Section::brief("impossible", "Results whose figures are impossible").with(list));
    }
    Document {
        title: format!("{first} and {second}"),
        headline: headline(names, sides),
        sections,
        ..Document::default()
    }
}

fn cells(label: &str, pair: &Pair, second: &str) -> Vec<Cell> {
    let number = |value: f64| Cell::number(unit(pair.figure), value);
    let (says, tone) = match pair.says {
        Difference::Better => (format!("{second} is better"), Tone::Good),
        Difference::Worse => (format!("{second} is worse"), Tone::Bad),
        Difference::NotShown => ("not larger than the spread of the runs".to_owned(), Tone::Plain),
        Difference::TooFew => {
            ("too few runs: each side needs at least four".to_owned(), Tone::Warn)
        }
        Difference::Impossible => {
            ("not computed: the figures of a result are impossible".to_owned(), Tone::Bad)
        }
    };
    let interval = pair.ratio_interval.map_or_else(Cell::not_applicable, |(low, high)| {
        Cell::text(format!("{low:.3} to {high:.3}"))
    });
    vec![
        Cell::text(label),
        Cell::text(word(pair.figure)),
        number(pair.means[0]),
        Cell::count(pair.values[0].len() as u64),
        Cell::maybe(Unit::Share, pair.spreads[0]),
        number(pair.means[1]),
        Cell::count(pair.values[1].len() as u64),
        Cell::maybe(Unit::Share, pair.spreads[1]),
        Cell::number(Unit::Plain, pair.ratio),
        interval,
        Cell::text(says).tone(tone),
    ]
}

fn headline(names: [&str; 2], sides: &Sides) -> Headline {
    let count = |says: Difference| {
        sides.rows.iter().flat_map(|row| &row.pairs).filter(|p| p.says == says).count()
    };
    let (better, worse) = (count(Difference::Better), count(Difference::Worse));
    let all: usize = sides.rows.iter().map(|row| row.pairs.len()).sum();
    let (word, tone) = match () {
        () if all == 0 => ("NOT ALIKE", Tone::Warn),
        () if !sides.impossible.is_empty() => ("IMPOSSIBLE", Tone::Bad),
        () if better + worse > 0 => ("DIFFERENT", Tone::Plain),
        () if count(Difference::TooFew) == all => ("TOO FEW RUNS", Tone::Warn),
        () => ("NO DIFFERENCE SHOWN", Tone::Plain),
    };
    let reason = match all {
        0 => "no workload was measured on both sides of the comparison".to_owned(),
        _ => format!(
            "by more than the spread of the runs, {} is better in {better} and worse in {worse} of \
             {all} figures",
            names[1]
        ),
    };
    Headline { word: word.into(), tone, reason, figures: Vec::new() }
}

/// Returns the comparison of two sides as JSON.
pub fn sides_json(names: [&str; 2], sides: &Sides) -> serde_json::Value {
    json!({ "sides": names, "rows": sides.rows, "alone": sides.alone, "impossible": sides.impossible })
}

#[cfg(test)]
mod tests {
    use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Source};
    use plimsoll_judge::conservation::repeats::compare;
    use plimsoll_judge::conservation::{DeclaredFacts, audit};

    use super::*;
    use crate::text::{self, Style};

    fn results(rates: &[f64]) -> Vec<ToolResult> {
        let result = |(index, rate): (usize, &f64)| {
            let operation = Operation {
                rate_per_s: vec![Figure::exact(*rate, "iops")],
                ..Operation::of(Kind::Read)
            };
            let part =
                Part { name: "randread".into(), operations: vec![operation], ..Part::default() };
            let source = Source { file: format!("run-{index}.json"), ..Source::default() };
            ToolResult { parts: vec![part], ..ToolResult::new(source) }
        };
        rates.iter().enumerate().map(result).collect()
    }

    fn judged(results: &[ToolResult]) -> Vec<(&ToolResult, Audit)> {
        results.iter().map(|result| (result, audit(result, &DeclaredFacts::default()))).collect()
    }

    #[test]
    fn repeats_are_told_with_their_spread() {
        let all = results(&[90.0, 100.0, 110.0]);
        let document = super::super::study_document(&judged(&all), &[], 0);
        let text = text::document(&document, &Style::default());
        assert!(text.contains("run-#.json (randread: read)"), "{text}");
        assert!(text.contains("20"), "{text}");
        assert!(section(&judged(&all[..1])).is_none());
    }

    #[test]
    fn sides_are_told_with_what_follows() {
        let (a, b) = (results(&[100.0, 101.0, 99.0, 100.0]), results(&[50.0, 51.0, 49.0, 50.0]));
        let sides = compare([&judged(&a), &judged(&b)]);
        let text = text::document(&sides_document(["old", "new"], &sides), &Style::default());
        for words in ["DIFFERENT", "new is worse", "0.5"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert_eq!(sides_json(["old", "new"], &sides)["rows"][0]["pairs"][0]["says"], "worse");
        let none = compare([&judged(&a), &[]]);
        assert_eq!(sides_document(["old", "new"], &none).headline.word, "NOT ALIKE");
    }
}
