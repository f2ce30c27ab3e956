//! Applies a change to the text of a plan by replacing a value or adding a line.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::Change;

/// Returns the text with one field changed, or `None` if this code cannot edit the text. The caller
/// must check the result.
pub(super) fn edit(text: &str, change: &Change) -> Option<String> {
    let root = DeTable::parse(text).ok()?;
    let (last, above) = change.path.split_last()?;
    let mut places = Vec::new();
    find(root.get_ref(), above, &mut places);
    let Some(value) = &change.value else {
        let [table] = &places[..] else { return None };
        return Some(removed(text, entry(table, last)?.0));
    };
    if places.is_empty() {
        let blank = if text.ends_with("\n\n") || text.is_empty() { "" } else { "\n" };
        let newline = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        let header = above.join(".");
        return Some(format!("{text}{newline}{blank}[{header}]\n{last} = {value}\n"));
    }
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for table in places {
        match entry(table, last) {
            Some((_, span)) => edits.push((span, value.to_string())),
            None => {
                let before = last_entry(text, table).or_else(|| header(text, above))?;
                let end = line_end(text, before);
                let newline = if text[..end].ends_with('\n') { "" } else { "\n" };
                edits.push((end..end, format!("{newline}{last} = {value}\n")));
            }
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut edited = text.to_owned();
    for (span, new) in edits.into_iter().rev() {
        edited.get(span.clone())?;
        edited.replace_range(span, &new);
    }
    Some(edited)
}

/// Collects the tables at a path. In a list of tables, a name in the path selects one table.
fn find<'t, 'i>(table: &'t DeTable<'i>, path: &[String], places: &mut Vec<&'t DeTable<'i>>) {
    let Some((first, rest)) = path.split_first() else {
        places.push(table);
        return;
    };
    match table.get(first.as_str()).map(|value| value.get_ref()) {
        Some(DeValue::Table(inner)) => find(inner, rest, places),
        Some(DeValue::Array(items)) => {
            let tables: Vec<&DeTable<'_>> =
                items.iter().filter_map(|item| item.get_ref().as_table()).collect();
            let named = |table: &DeTable<'_>, name: &String| {
                table.get("name").and_then(|n| n.get_ref().as_str()) == Some(name.as_str())
            };
            let picked = rest.first().filter(|name| tables.iter().any(|t| named(t, name)));
            for inner in tables {
                match picked {
                    Some(name) if named(inner, name) => find(inner, &rest[1..], places),
                    Some(_) => {}
                    None => find(inner, rest, places),
                }
            }
        }
        _ => {}
    }
}

/// Returns two text ranges: the range of the whole entry `name = value`, and the range of the
/// value.
fn entry(table: &DeTable<'_>, name: &str) -> Option<(Range<usize>, Range<usize>)> {
    let (key, value) = table.get_key_value(name)?;
    Some((key.span().start..value.span().end, value.span()))
}

/// Returns the end of the last value in a table. Subtables that have their own header are ignored.
fn last_entry(text: &str, table: &DeTable<'_>) -> Option<usize> {
    let own = table.iter().filter(|(key, value)| {
        // Skips subtables that have their own header.
        let between = text.get(key.span().end..value.span().start);
        between.is_some_and(|between| between.trim() == "=")
    });
    own.map(|(_, value)| value.span().end).max()
}

/// Returns the position of the header of a table. The position is used if the table has no fields.
fn header(text: &str, path: &[String]) -> Option<usize> {
    let header = format!("[{}]", path.join("."));
    let mut lines = text.match_indices(&header).map(|(at, _)| at);
    let is_whole = |at: &usize| text[..*at].is_empty() || text[..*at].ends_with('\n');
    lines.find(is_whole)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |found| at + found + 1)
}

fn removed(text: &str, entry: Range<usize>) -> String {
    let start = text[..entry.start].rfind('\n').map_or(0, |found| found + 1);
    format!("{}{}", &text[..start], &text[line_end(text, entry.end)..])
}
