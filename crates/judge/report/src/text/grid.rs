//! Renders a table as text. If aligned columns do not fit, text columns are wrapped. If these do
//! not fit either, each row becomes a list of named values.

use super::Style;
use super::paint::{Colour, paint};
use super::wrap::{width, wrap};
use crate::number::Letters;
use crate::table::{Align, Cell, Table};

/// Space between columns.
const GAP: usize = 2;
/// Space before the first column.
const INDENT: usize = 2;
/// Minimum width of a value next to its name in a list. If there is less space, the value is
/// printed on the next line.
const RECORD_MIN: usize = 16;
/// Text columns are wrapped to this width. A column is wider if one of its words is slightly
/// longer.
const FOLDED_MIN: usize = 14;
/// Words longer than this (paths, hashes) are broken.
const WORD_MAX: usize = 24;

/// Renders a table. A table without rows becomes an empty text.
pub fn grid(table: &Table, style: &Style) -> String {
    if table.rows.is_empty() && table.totals.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    if !table.caption.is_empty() {
        for line in wrap(&style.clean(&table.caption), style.columns() - INDENT) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    let mut shown: Vec<usize> = (0..table.columns.len()).collect();
    loop {
        let cells = Cells::of(table, &shown, style);
        if let Some(widths) = cells.fit(style.columns()) {
            cells.draw(&widths, table, style, &mut out);
            break;
        }
        // Of the columns with the highest rank, the last one is omitted.
        let least = shown.iter().copied().filter(|i| table.columns[*i].rank > 0);
        let Some(least) = least.max_by_key(|i| (table.columns[*i].rank, *i)) else {
            Cells::of(table, &(0..table.columns.len()).collect::<Vec<_>>(), style)
                .draw_records(style, &mut out);
            shown = (0..table.columns.len()).collect();
            break;
        };
        shown.retain(|i| *i != least);
    }
    if shown.len() < table.columns.len() {
        let left_out = (0..table.columns.len()).filter(|i| !shown.contains(i));
        let names: Vec<String> =
            left_out.map(|i| table.columns[i].heading(None)).filter(|n| !n.is_empty()).collect();
        let line = format!("Columns left out to save width: {}.", names.join(", "));
        for line in wrap(&style.clean(&line), style.columns() - INDENT) {
            out.push_str(&format!("  {}\n", paint(&line, Colour::Faint, style.colour)));
        }
    }
    if !table.note.is_empty() {
        for line in wrap(&style.clean(&table.note), style.columns() - INDENT) {
            out.push_str(&format!("  {}\n", paint(&line, Colour::Faint, style.colour)));
        }
    }
    out
}

struct Cells {
    headings: Vec<String>,
    aligns: Vec<Align>,
    rows: Vec<Vec<(String, Colour)>>,
    /// Remarks of each row, which are printed after the row.
    below: Vec<Vec<String>>,
}

impl Cells {
    fn of(table: &Table, shown: &[usize], style: &Style) -> Self {
        let scales: Vec<_> =
            (0..table.columns.len()).map(|i| table.scale(i, style.letters)).collect();
        let show = |cell: &Cell, i: usize| {
            let text = style.clean(&cell.show(scales.get(i).copied().flatten(), style.letters));
            (text, Colour::of(cell.tone))
        };
        let (below, beside): (Vec<usize>, Vec<usize>) =
            shown.iter().copied().partition(|i| table.columns[*i].below);
        let pick = |row: &[Cell], which: &[usize]| -> Vec<(String, Colour)> {
            which.iter().filter_map(|i| Some(show(row.get(*i)?, *i))).collect()
        };
        let remarks = |row: &Vec<Cell>| {
            let texts = pick(row, &below).into_iter().map(|(text, _)| text);
            texts.filter(|text| !text.is_empty()).collect()
        };
        let heading = |i: &usize| style.clean(&table.columns[*i].heading(scales[*i]));
        Self {
            headings: beside.iter().map(heading).collect(),
            aligns: beside.iter().map(|i| table.columns[*i].align).collect(),
            rows: table.all_rows().map(|row| pick(row, &beside)).collect(),
            below: table.all_rows().map(remarks).collect(),
        }
    }

    /// Returns column widths that fit into `room` columns; `None` if even wrapped text does not
    /// fit.
    fn fit(&self, room: usize) -> Option<Vec<usize>> {
        let cell_width = |i: usize| {
            self.rows.iter().filter_map(|row| row.get(i)).map(|(text, _)| width(text)).max()
        };
        // A heading can be wrapped to the width of its longest word or of the widest cell.
        let mut widths: Vec<usize> = self
            .headings
            .iter()
            .enumerate()
            .map(|(i, heading)| {
                let longest = heading.split_whitespace().map(width).max().unwrap_or(0);
                cell_width(i).unwrap_or(0).max(longest)
            })
            .collect();
        let least = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i));
            let words = cells.flat_map(|(text, _)| text.split_whitespace()).map(width);
            words.filter(|word| *word <= WORD_MAX).fold(FOLDED_MIN, usize::max)
        };
        let least: Vec<usize> = (0..widths.len()).map(least).collect();
        let total = |widths: &[usize]| {
            INDENT + widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
        };
        while total(&widths) > room {
            let widest = (0..widths.len())
                .filter(|i| self.aligns[*i] == Align::Left && widths[*i] > least[*i])
                .max_by_key(|i| widths[*i])?;
            let over = total(&widths) - room;
            widths[widest] = widths[widest].saturating_sub(over).max(least[widest]);
        }
        Some(widths)
    }

    fn draw(&self, widths: &[usize], table: &Table, style: &Style, out: &mut String) {
        let headings: Vec<_> = self.headings.iter().map(|h| (h.clone(), Colour::Faint)).collect();
        // Headings are bottom-aligned: the last line of a wrapped heading is just above the rule.
        self.draw_row(&headings, widths, true, style, out);
        for (i, row) in self.rows.iter().enumerate() {
            if i == table.rows.len() && i > 0 {
                let dash = if style.letters == Letters::Unicode { "─" } else { "-" };
                let length = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
                let rule = dash.repeat(length);
                out.push_str(&format!("  {}\n", paint(&rule, Colour::Faint, style.colour)));
            }
            self.draw_row(row, widths, false, style, out);
            self.draw_remarks(i, style, out);
        }
    }

    fn draw_remarks(&self, row: usize, style: &Style, out: &mut String) {
        for line in self.below[row].iter().flat_map(|text| wrap(text, style.columns() - 6)) {
            out.push_str(&format!("      {}\n", paint(&line, Colour::Faint, style.colour)));
        }
    }

    fn draw_row(
        &self,
        row: &[(String, Colour)],
        widths: &[usize],
        from_below: bool,
        style: &Style,
        out: &mut String,
    ) {
        let folded: Vec<Vec<String>> =
            row.iter().zip(widths).map(|((text, _), width)| wrap(text, *width)).collect();
        let height = folded.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut drawn = " ".repeat(INDENT);
            let mut pending = 0;
            for (i, lines) in folded.iter().enumerate() {
                let skip = if from_below { height - lines.len() } else { 0 };
                let text = line.checked_sub(skip).and_then(|at| lines.get(at));
                let text = text.map_or("", String::as_str);
                let pad = widths[i].saturating_sub(width(text));
                let (before, after) = match self.aligns[i] {
                    Align::Left => (0, pad),
                    Align::Right => (pad, 0),
                };
                // Trailing spaces are omitted.
                if !text.is_empty() {
                    drawn.push_str(&" ".repeat(pending + before));
                    drawn.push_str(&paint(text, row[i].1, style.colour));
                    pending = 0;
                } else {
                    pending += before;
                }
                pending += after + GAP;
            }
            out.push_str(drawn.trim_end_matches(' '));
            out.push('\n');
        }
    }

    fn draw_records(&self, style: &Style, out: &mut String) {
        let names = self.headings.iter().map(|h| width(h)).max().unwrap_or(0).min(30);
        for (at, row) in self.rows.iter().enumerate() {
            for (i, (text, colour)) in row.iter().enumerate().filter(|(_, c)| !c.0.is_empty()) {
                let lead = if i == 0 { "- " } else { "  " };
                let name = &self.headings[i];
                if names + GAP + 4 + RECORD_MIN > style.columns() {
                    out.push_str(&format!("  {lead}{name}\n"));
                    for line in wrap(text, style.columns() - 8) {
                        let line = paint(&line, *colour, style.colour);
                        out.push_str(&format!("        {line}\n"));
                    }
                    continue;
                }
                let pad = " ".repeat(names.saturating_sub(width(name)) + GAP);
                let room = style.columns().saturating_sub(names + GAP + 4).max(10);
                for (n, line) in wrap(text, room).iter().enumerate() {
                    let line = paint(line, *colour, style.colour);
                    match n {
                        0 => out.push_str(&format!("  {lead}{name}{pad}{line}\n")),
                        _ => out.push_str(&format!("    {}{line}\n", " ".repeat(names + GAP))),
                    }
                }
            }
            self.draw_remarks(at, style, out);
        }
    }
}
