//! Renders the report as Markdown, for issue trackers and wikis. Heat maps become tables; other
//! charts are omitted.

use std::fmt::Write as _;

use crate::document::{Block, Depth, Document, Fact, FindingLine};
use crate::escape::markdown as escape;
use crate::number::Letters;
use crate::table::{Align, Cell, Scale, Table};

const LETTERS: Letters = Letters::Unicode;

/// Renders the report as Markdown (CommonMark with GitHub's tables).
pub fn document(document: &Document) -> String {
    let mut out = String::new();
    let head = &document.headline;
    let _ = writeln!(out, "# {}: {}\n", escape(&head.word), escape(&document.title));
    if let Some(why) = &document.demonstration {
        let _ = writeln!(out, "> **Demonstration.** {}\n", escape(why));
    }
    let _ = writeln!(out, "{}\n", escape(&head.reason));
    facts(&head.figures, &mut out);
    if !document.description.is_empty() {
        let _ = writeln!(out, "{}\n", escape(&document.description));
    }
    for (name, text) in &document.identity {
        let _ = writeln!(out, "- {}: {}", escape(name), escape(text));
    }
    for section in document.sections.iter().filter(|s| s.depth != Depth::Terminal) {
        let mut blocks = String::new();
        section.blocks.iter().for_each(|b| block(b, &mut blocks));
        if blocks.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n## {}\n", escape(&section.title));
        out.push_str(&blocks);
    }
    out
}

fn block(block: &Block, out: &mut String) {
    match block {
        Block::Words(words) => {
            let _ = writeln!(out, "{}\n", escape(words));
        }
        Block::List(items) => {
            items.iter().for_each(|item| {
                let _ = writeln!(out, "- {}", escape(item));
            });
            out.push('\n');
        }
        Block::Table(t) => table(t, out),
        Block::Facts(list) => facts(list, out),
        Block::Findings(list) => list.iter().for_each(|f| finding(f, out)),
        Block::Listing { caption, text } => {
            let _ = writeln!(out, "{}:\n", escape(caption));
            // The content is indented, not fenced: a fence in the content would end a fenced block.
            text.lines().for_each(|line| {
                let _ = writeln!(out, "    {}", crate::escape::terminal(line, true));
            });
            out.push('\n');
        }
        Block::Chart(plot) => {
            if let Some(grid) = plot.grid() {
                table(&grid, out);
            }
        }
        Block::Spark { .. } | Block::Line(_) => {}
    }
}

fn facts(list: &[Fact], out: &mut String) {
    for fact in list {
        let value = escape(&fact.cell.show(None, LETTERS));
        let note = match fact.note.is_empty() {
            true => String::new(),
            false => format!(" ({})", escape(&fact.note)),
        };
        let _ = writeln!(out, "- {}: {value}{note}", escape(&fact.name));
    }
    if !list.is_empty() {
        out.push('\n');
    }
}

fn finding(finding: &FindingLine, out: &mut String) {
    let _ = writeln!(
        out,
        "- **{}** {}: {}",
        escape(&finding.outcome),
        escape(&finding.rule),
        escape(&finding.says)
    );
    if !finding.advice.is_empty() {
        let _ = writeln!(out, "  - What to do: {}", escape(&finding.advice));
    }
    out.push('\n');
}

/// Renders a table; writes nothing if it has no rows.
pub fn table(table: &Table, out: &mut String) {
    if table.rows.is_empty() && table.totals.is_empty() {
        return;
    }
    if !table.caption.is_empty() {
        let _ = writeln!(out, "{}\n", escape(&table.caption));
    }
    let scales: Vec<Option<Scale>> =
        (0..table.columns.len()).map(|i| table.scale(i, LETTERS)).collect();
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    };
    line(table.columns.iter().zip(&scales).map(|(c, s)| escape(&c.heading(*s))).collect());
    line(
        table
            .columns
            .iter()
            .map(|column| match column.align {
                Align::Left => "---".to_owned(),
                Align::Right => "---:".to_owned(),
            })
            .collect(),
    );
    let show =
        |(i, cell): (usize, &Cell)| escape(&cell.show(scales.get(i).copied().flatten(), LETTERS));
    for row in &table.rows {
        line(row.iter().enumerate().map(show).collect());
    }
    for row in &table.totals {
        let bold = |text: String| if text.is_empty() { text } else { format!("**{text}**") };
        line(row.iter().enumerate().map(show).map(bold).collect());
    }
    out.push('\n');
    if !table.note.is_empty() {
        let _ = writeln!(out, "{}\n", escape(&table.note));
    }
}
