//! Renders reports as text for a terminal.
//!
//! Width, colour and character set are parameters: the command line detects the terminal and
//! `NO_COLOR`.

mod grid;
mod paint;
mod spark;
mod wrap;

use std::fmt::Write as _;

pub use grid::grid;
pub use paint::{Colour, paint};
pub use spark::spark;
pub use wrap::{width, wrap};

use crate::document::{Block, Depth, Document, Fact, FindingLine};
use crate::escape::terminal;
use crate::number::Letters;
use crate::table::Tone;

/// Style of text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Number of columns of the terminal.
    pub width: usize,
    /// True to use escape sequences for colour and weight.
    pub colour: bool,
    /// Character set.
    pub letters: Letters,
    /// True to print all sections, not only the summary.
    pub full: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 100, colour: false, letters: Letters::Unicode, full: false }
    }
}

/// Minimum width for tables.
const WIDTH_MIN: usize = 40;
/// Minimum width of a value next to its name. If there is less space, the value is printed on the
/// next line.
const FACT_MIN: usize = 20;
/// Minimum width of a sparkline.
const SPARK_MIN: usize = 16;
/// Maximum width of a sparkline.
const SPARK_MAX: usize = 60;
/// Maximum width of running text.
const WIDTH_MAX: usize = 140;

impl Style {
    fn columns(&self) -> usize {
        self.width.clamp(WIDTH_MIN, WIDTH_MAX)
    }

    fn clean(&self, text: &str) -> String {
        let text = terminal(text, self.letters == Letters::Unicode);
        match self.letters {
            Letters::Unicode => text,
            Letters::Ascii => ascii(&text),
        }
    }
}

/// Replaces the non-ASCII characters of Plimsoll's own texts. Any other non-ASCII character becomes
/// `?`.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '–' | '—' | '−' => out.push('-'),
            'µ' | 'μ' => out.push('u'),
            '×' => out.push('x'),
            '±' => out.push_str("+-"),
            '≥' => out.push_str(">="),
            '≤' => out.push_str("<="),
            '…' => out.push_str("..."),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            '·' | '•' => out.push('*'),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

/// Renders the report.
pub fn document(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    let columns = style.columns();
    if let Some(why) = &document.demonstration {
        for line in wrap(&style.clean(&format!("Demonstration: {why}")), columns) {
            let _ = writeln!(out, "{}", paint(&line, Colour::of(Tone::Warn), style.colour));
        }
        out.push('\n');
    }
    headline(document, style, &mut out);
    for section in &document.sections {
        let shown = match section.depth {
            Depth::Brief => true,
            Depth::Full => style.full,
            Depth::Terminal => !style.full,
        };
        if !shown {
            continue;
        }
        let body: String = section.blocks.iter().map(|b| block(b, style)).collect();
        if body.is_empty() {
            continue;
        }
        let title = style.clean(&section.title);
        let _ = write!(out, "\n{}\n{body}", paint(&title, Colour::Bold, style.colour));
    }
    out
}

fn headline(document: &Document, style: &Style, out: &mut String) {
    let head = &document.headline;
    let word = paint(&head.word, Colour::loud(head.tone), style.colour);
    let _ = writeln!(out, "{word}  {}", style.clean(&document.title));
    for line in wrap(&style.clean(&head.reason), style.columns()) {
        let _ = writeln!(out, "{line}");
    }
    if !head.figures.is_empty() {
        let pairs: Vec<(String, String)> = head
            .figures
            .iter()
            .map(|fact| (fact.name.clone(), fact.cell.show(None, style.letters)))
            .collect();
        out.push('\n');
        line(&pairs, style, out);
    }
}

fn block(block: &Block, style: &Style) -> String {
    let mut out = String::new();
    match block {
        Block::Words(words) => {
            for line in wrap(&style.clean(words), style.columns() - 2) {
                let _ = writeln!(out, "  {line}");
            }
        }
        Block::List(items) => {
            let bullet = if style.letters == Letters::Unicode { "·" } else { "-" };
            for item in items {
                for (i, line) in wrap(&style.clean(item), style.columns() - 4).iter().enumerate() {
                    let _ = writeln!(out, "  {} {line}", if i == 0 { bullet } else { " " });
                }
            }
        }
        Block::Table(table) => out.push_str(&grid(table, style)),
        Block::Line(pairs) => line(pairs, style, &mut out),
        Block::Facts(list) => facts(list, style, &mut out),
        Block::Findings(list) => findings(list, style, &mut out),
        Block::Spark { values, .. } if values.is_empty() => {}
        Block::Spark { name, values, note } => {
            let (name, note) = (style.clean(name), style.clean(note));
            let room = |taken: usize| style.columns().saturating_sub(taken + 6);
            let beside = room(width(&name) + width(&note));
            if beside >= SPARK_MIN {
                let drawn = spark(values, beside.min(SPARK_MAX), style.letters);
                let _ = writeln!(out, "  {name}  {drawn}  {note}");
            } else {
                let _ = writeln!(out, "  {name}");
                let drawn = spark(values, room(width(&note)).min(SPARK_MAX), style.letters);
                let _ = writeln!(out, "  {drawn}  {note}");
            }
        }
        Block::Listing { caption, text } => {
            for line in wrap(&style.clean(caption), style.columns() - 2) {
                let _ = writeln!(out, "  {line}");
            }
            for line in text.lines() {
                let _ = writeln!(out, "    {}", style.clean(line));
            }
        }
        // Only the page shows charts.
        Block::Chart(_) => {}
    }
    out
}

/// Prints pairs of name and value. Each line contains as many pairs as fit.
fn line(pairs: &[(String, String)], style: &Style, out: &mut String) {
    let mut used = 0;
    for (name, text) in pairs {
        let (name, text) = (style.clean(name), style.clean(text));
        let needed = width(&name) + 1 + width(&text);
        let gap = if used == 0 { 2 } else { 4 };
        if used > 0 && used + gap + needed > style.columns() {
            out.push('\n');
            used = 0;
        }
        let gap = if used == 0 { 2 } else { gap };
        let _ =
            write!(out, "{}{name} {}", " ".repeat(gap), paint(&text, Colour::Bold, style.colour));
        used += gap + needed;
    }
    if used > 0 {
        out.push('\n');
    }
}

fn facts(list: &[Fact], style: &Style, out: &mut String) {
    let names = list.iter().map(|fact| width(&fact.name)).max().unwrap_or(0);
    for fact in list {
        let value = style.clean(&fact.cell.show(None, style.letters));
        let name = style.clean(&fact.name);
        let note = style.clean(&fact.note);
        let pad = " ".repeat(names.saturating_sub(width(&name)) + 2);
        let text = if note.is_empty() { value } else { format!("{value}  ({note})") };
        if names + 4 + FACT_MIN > style.columns() {
            let _ = writeln!(out, "  {name}");
            for line in wrap(&text, style.columns() - 6) {
                let line = paint(&line, Colour::of(fact.cell.tone), style.colour);
                let _ = writeln!(out, "      {line}");
            }
            continue;
        }
        let room = style.columns().saturating_sub(names + 4).max(20);
        for (i, line) in wrap(&text, room).iter().enumerate() {
            let line = paint(line, Colour::of(fact.cell.tone), style.colour);
            let _ = match i {
                0 => writeln!(out, "  {name}{pad}{line}"),
                _ => writeln!(out, "  {}{line}", " ".repeat(names + 2)),
            };
        }
    }
}

fn findings(list: &[FindingLine], style: &Style, out: &mut String) {
    let widest = list.iter().map(|f| width(&f.outcome)).max().unwrap_or(0);
    let room = style.columns().saturating_sub(widest + 4).max(20);
    let indent = " ".repeat(widest + 4);
    for finding in list {
        let outcome = paint(&finding.outcome, Colour::of(finding.tone), style.colour);
        let pad = " ".repeat(widest.saturating_sub(width(&finding.outcome)) + 2);
        let text = style.clean(&format!("{}: {}", finding.rule, finding.says));
        for (i, line) in wrap(&text, room).iter().enumerate() {
            let _ = match i {
                0 => writeln!(out, "  {outcome}{pad}{line}"),
                _ => writeln!(out, "{indent}{line}"),
            };
        }
        let arrow = if style.letters == Letters::Unicode { "→" } else { "->" };
        if !finding.advice.is_empty() {
            let advice = format!("{arrow} {}", style.clean(&finding.advice));
            for line in wrap(&advice, room) {
                let _ = writeln!(out, "{indent}{}", paint(&line, Colour::Faint, style.colour));
            }
        }
    }
}
