//! Input of the page's template: texts and class names, without further decisions.

use minijinja::context;
use minijinja::value::Value;

use crate::document::{Block, Fact, FindingLine, Headline, Section};
use crate::escape;
use crate::number::Letters;
use crate::table::{Align, Cell, Table, Tone};

const LETTERS: Letters = Letters::Unicode;

/// Tables with at least this many columns use a smaller font, and may be wider than the text.
const WIDE: usize = 10;

/// Words in a cell that are longer than this (paths, hashes, plan fields) may be broken anywhere.
const WORD_MAX: usize = 28;

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
        Tone::Faint => "faint",
        Tone::Strong => "strong",
    }
}

fn align(align: Align) -> &'static str {
    match align {
        Align::Left => "left",
        Align::Right => "right",
    }
}

/// Escapes a sentence for HTML, and marks text in backticks as code.
pub(super) fn prose(text: &str) -> Value {
    Value::from_safe_string(escape::html_prose(text))
}

pub(super) fn pairs(pairs: &[(String, String)]) -> Vec<Value> {
    pairs
        .iter()
        .map(|(name, text)| context! { name => name.as_str(), text => text.as_str() })
        .collect()
}

pub(super) fn headline(headline: &Headline) -> Value {
    context! {
        word => headline.word.as_str(),
        tone => tone(headline.tone),
        reason => prose(&headline.reason),
        figures => headline.figures.iter().map(fact).collect::<Vec<_>>(),
    }
}

fn fact(fact: &Fact) -> Value {
    context! {
        name => fact.name.as_str(),
        text => fact.cell.show(None, LETTERS),
        tone => tone(fact.cell.tone),
        note => prose(&fact.note),
    }
}

/// Converts a section for the template. Tables without rows and blocks for the terminal are
/// omitted.
pub(super) fn section(section: &Section) -> Value {
    context! {
        id => section.id.as_str(),
        title => section.title.as_str(),
        blocks => section.blocks.iter().filter_map(block).collect::<Vec<_>>(),
    }
}

/// Number of findings that are visible without a click. They are the worst findings, which
/// determine the verdict.
const FINDINGS_OPEN: usize = 3;

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Words(words) => context! { kind => "words", words => prose(words) },
        Block::List(items) => {
            context! { kind => "list", items => items.iter().map(|item| prose(item)).collect::<Vec<_>>() }
        }
        Block::Table(t) if t.rows.is_empty() && t.totals.is_empty() => return None,
        Block::Table(t) => context! { kind => "table", table => table(t) },
        Block::Chart(plot) => {
            context! { kind => "chart", figure => Value::from_safe_string(plot.figure()) }
        }
        Block::Facts(list) => {
            context! { kind => "facts", facts => list.iter().map(fact).collect::<Vec<_>>() }
        }
        Block::Findings(list) => {
            let (open, folded) = list.split_at(list.len().min(FINDINGS_OPEN));
            let all = |list: &[FindingLine]| list.iter().map(finding).collect::<Vec<_>>();
            context! { kind => "findings", findings => all(open), folded => all(folded) }
        }
        Block::Listing { caption, text } => {
            context! { kind => "listing", words => caption.as_str(), text => text.as_str() }
        }
        Block::Spark { .. } | Block::Line(_) => return None,
    })
}

fn finding(finding: &FindingLine) -> Value {
    let evidence: Vec<String> =
        finding.evidence.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    context! {
        outcome => finding.outcome.as_str(),
        tone => tone(finding.tone),
        rule => finding.rule.as_str(),
        says => prose(&finding.says),
        advice => prose(&finding.advice),
        evidence => evidence.join(", "),
    }
}

fn table(table: &Table) -> Value {
    let table = &table.without_empty_columns();
    let scales: Vec<_> = (0..table.columns.len()).map(|i| table.scale(i, LETTERS)).collect();
    let headings: Vec<Value> = table
        .columns
        .iter()
        .zip(&scales)
        .map(|(column, scale)| {
            let unit = column.unit_name(*scale);
            context! { title => column.title.as_str(), align => align(column.align), unit }
        })
        .collect();
    // Titles that are shown inside the cells when a row is shown without the table's headings.
    let titles: Vec<String> = table
        .columns
        .iter()
        .zip(&scales)
        .map(|(column, scale)| {
            let unit = column.unit_name(*scale);
            let parts = [column.group.as_str(), column.title.as_str(), unit];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
        })
        .collect();
    let cell = |(i, cell): (usize, &Cell)| {
        let text = cell.show(scales.get(i).copied().flatten(), LETTERS);
        let long = text.split_whitespace().any(|word| word.chars().count() > WORD_MAX);
        context! {
            text => prose(&text),
            long => long,
            tone => tone(cell.tone),
            align => table.columns.get(i).map_or("left", |column| align(column.align)),
            title => titles.get(i).map_or("", String::as_str),
        }
    };
    let rows = |rows: &[Vec<Cell>]| -> Vec<Vec<Value>> {
        rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect()
    };
    context! {
        caption => table.caption.as_str(),
        note => prose(&table.note),
        wide => table.columns.len() >= WIDE,
        groups => groups(table),
        headings,
        rows => rows(&table.rows),
        totals => rows(&table.totals),
    }
}

/// Returns the headings that neighbouring columns share, each with its number of columns. The list
/// is empty if no columns share a heading.
fn groups(table: &Table) -> Vec<Value> {
    if table.columns.iter().all(|column| column.group.is_empty()) {
        return Vec::new();
    }
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for column in &table.columns {
        match groups.last_mut() {
            Some((title, columns)) if *title == column.group => *columns += 1,
            _ => groups.push((&column.group, 1)),
        }
    }
    groups.into_iter().map(|(title, columns)| context! { title, columns }).collect()
}
