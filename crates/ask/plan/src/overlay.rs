//! Changes single fields of a plan. On a command line, such a change has the form
//! `phases.measure=10m`.
//!
//! The text is edited in place where possible, so that comments are preserved and errors refer to
//! the original lines. The same change is also applied to the parsed tables of the plan. If the
//! edited text does not parse to these tables, the tables are printed and become the new text.

mod edit;

use toml::{Table, Value};

use crate::display_text::one_line;
use crate::error::{PlanError, PlanErrors};

/// A change of a field: the field gets a new value or is removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    path: Vec<String>,
    value: Option<Value>,
}

/// Fields of `[target]` that are kept if the kind of the target changes.
const TARGET_STAYS: [&str; 2] = ["name", "outage_max"];

impl Change {
    /// Parses the argument of a flag, `field=value`. An empty value removes the field. The value is
    /// parsed as TOML (`4`, `true`, `["a", "b"]`). If this fails, the value is treated as text, so
    /// text needs no quotes (`10m`, `8KiB`). The same applies to each entry of a list (`[4KiB,
    /// 8KiB]`).
    ///
    /// # Errors
    /// The text is not a valid change. The error states the reason in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown = one_line(text);
        let (field, value) = text
            .split_once('=')
            .ok_or_else(|| format!("\"{shown}\" has no value: write field=value"))?;
        let path: Vec<String> =
            field.trim().split('.').map(|part| part.trim().to_owned()).collect();
        let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if path.iter().any(|part| part.is_empty() || !part.chars().all(bare)) {
            return Err(format!(
                "\"{}\" is not a field name: use a full name, as in phases.measure=10m",
                one_line(field)
            ));
        }
        let value = value.trim();
        Ok(Self { path, value: (!value.is_empty()).then(|| read_value(value)) })
    }

    /// Creates a change that removes the field or section of this name.
    #[must_use]
    pub fn remove(field: &str) -> Self {
        Self { path: field.split('.').map(str::to_owned).collect(), value: None }
    }

    /// Creates a change that sets the field of this name.
    #[must_use]
    pub fn set(field: &str, value: Value) -> Self {
        Self { path: field.split('.').map(str::to_owned).collect(), value: Some(value) }
    }
}

fn read_value(text: &str) -> Value {
    let read = format!("v = {text}").parse::<Table>().ok().filter(|table| table.len() == 1);
    match read.and_then(|mut table| table.remove("v")) {
        Some(Value::Datetime(_)) | None => {}
        Some(value) => return value,
    }
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(list) => Value::Array(list.split(',').map(|part| read_value(part.trim())).collect()),
        None => Value::String(text.to_owned()),
    }
}

/// Returns the text of a plan with the changes applied. `name` identifies the plan in messages.
///
/// # Errors
/// The text is not TOML, or a change treats a plain value as a table.
pub fn overlay(text: &str, name: &str, changes: &[Change]) -> Result<String, PlanErrors> {
    let fault = |message: String, help: &str| {
        let error = PlanError::new(text, &(0..0), String::new(), message, help.to_owned());
        PlanErrors { source_name: name.to_owned(), errors: vec![error] }
    };
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        let message = format!("is not TOML: {}", one_line(error.message()));
        let help = "correct the syntax here (https://toml.io)".to_owned();
        let error = PlanError::new(text, &span, String::new(), message, help);
        PlanErrors { source_name: name.to_owned(), errors: vec![error] }
    })?;
    let mut edited = text.to_owned();
    for change in changes {
        for one in with_removed_fields(&table, change) {
            apply(&mut table, &one).map_err(|says| {
                fault(says, "use a field name from `plimsoll plan show` or docs/plan.md")
            })?;
            let done = edit::edit(&edited, &one).filter(|new| is_table(new, &table));
            edited = done.unwrap_or_else(|| table.to_string());
        }
    }
    Ok(edited)
}

fn is_table(text: &str, table: &Table) -> bool {
    text.parse::<Table>().is_ok_and(|read| read == *table)
}

/// If the change sets a different kind of target, this function also removes the fields of the
/// previous kind.
fn with_removed_fields(table: &Table, change: &Change) -> Vec<Change> {
    let mut all = Vec::new();
    if let [top, kind] = &change.path[..]
        && top == "target"
        && crate::merge::TARGET_KINDS.contains(&kind.as_str())
        && let Some(Value::Table(target)) = table.get("target")
        && !target.contains_key(kind)
    {
        let gone = target.keys().filter(|field| !TARGET_STAYS.contains(&field.as_str()));
        all.extend(
            gone.map(|field| Change { path: vec![top.clone(), field.clone()], value: None }),
        );
    }
    all.push(change.clone());
    all
}

fn apply(table: &mut Table, change: &Change) -> Result<(), String> {
    let Some((last, above)) = change.path.split_last() else { return Ok(()) };
    let several = table.get("target").and_then(Value::as_array).is_some_and(|all| all.len() > 1);
    if several && above == ["target"] && crate::merge::TARGET_KINDS.contains(&last.as_str()) {
        return Err(format!(
            "target.{last}: the plan has several targets, so this single value cannot replace them"
        ));
    }
    within(table, above, &change.path, &mut |table| match &change.value {
        Some(value) => drop(table.insert(last.clone(), value.clone())),
        None => drop(table.remove(last)),
    })
}

/// Calls `act` for the table at a path, and creates the table if it is missing. If the path refers
/// to a list of tables, such as streams or targets, a name in the path selects one table. If the
/// path contains no name, `act` is called for each table of the list.
fn within(
    table: &mut Table,
    path: &[String],
    whole: &[String],
    act: &mut dyn FnMut(&mut Table),
) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else {
        act(table);
        return Ok(());
    };
    match table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => within(inner, rest, whole, act),
        Value::Array(items) => {
            let named = |item: &Value, name: &String| {
                item.get("name").and_then(Value::as_str) == Some(name.as_str())
            };
            let picked = rest.first().filter(|name| items.iter().any(|item| named(item, name)));
            for item in items.iter_mut() {
                let meant = picked.is_none_or(|name| named(item, name));
                let rest = if picked.is_some() { &rest[1..] } else { rest };
                match item {
                    Value::Table(inner) if meant => within(inner, rest, whole, act)?,
                    Value::Table(_) => {}
                    _ => return Err(no_fields(first, whole)),
                }
            }
            Ok(())
        }
        _ => Err(no_fields(first, whole)),
    }
}

fn no_fields(part: &str, whole: &[String]) -> String {
    format!("{}: `{part}` is a value, not a table of fields", whole.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A head.\nname = \"a\"\n\n[target]\npath = \"/a\" # \
                        where\n\n[[workload.matrix]]\nname = \"data\"\nsizes = \
                        \"4KiB\"\n\n[[workload.matrix]]\nname = \"log\"\nsizes = \
                        \"8KiB\"\n\n[phases]\nmeasure = \"1h\"\n";

    fn changed(changes: &[&str]) -> String {
        let changes: Vec<Change> = changes.iter().map(|c| Change::parse(c).unwrap()).collect();
        overlay(TEXT, "t", &changes).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn an_empty_value_removes_a_field() {
        let text = changed(&["phases.measure=", "workload.matrix.log.sizes= ", "phases.gone="]);
        let table: Table = text.parse().unwrap();
        assert!(!text.contains("1h") && !text.contains("8KiB"), "{text}");
        assert_eq!(table["workload"]["matrix"][0]["sizes"].as_str(), Some("4KiB"));
    }

    #[test]
    fn comments_and_lines_stay_where_a_field_is_changed_or_added() {
        let text =
            changed(&["phases.measure=10m", "phases.warm_up=5s", "evidence.min_measure=10m"]);
        let expected = TEXT.replace("\"1h\"", "\"10m\"\nwarm_up = \"5s\"")
            + "\n[evidence]\nmin_measure = \"10m\"\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_target_of_another_kind_replaces_the_old_one() {
        let text = changed(&["target.device=/dev/x"]);
        let table: Table = text.parse().unwrap();
        assert_eq!(table["target"].as_table().unwrap().len(), 1, "{text}");
        assert_eq!(table["target"]["device"].as_str(), Some("/dev/x"));
        assert!(text.contains("# A head."), "{text}");
    }

    #[test]
    fn selects_a_stream_by_name_or_all_of_them() {
        let text = changed(&["workload.matrix.log.sizes=16KiB"]);
        assert_eq!(text, TEXT.replace("8KiB", "16KiB"));
        let text = changed(&["workload.matrix.file_size=64MiB"]);
        let table: Table = text.parse().unwrap();
        let streams = table["workload"]["matrix"].as_array().unwrap();
        assert!(streams.iter().all(|s| s["file_size"].as_str() == Some("64MiB")), "{text}");
    }

    #[test]
    fn values_need_no_quotes_and_keep_their_kind() {
        let value = |text: &str| Change::parse(&format!("a={text}")).unwrap().value.unwrap();
        assert_eq!(value("10m"), Value::String("10m".into()));
        assert_eq!(value("4"), Value::Integer(4));
        assert_eq!(value("true"), Value::Boolean(true));
        assert_eq!(value("\"4\""), Value::String("4".into()));
        assert_eq!(value("a\nb = 2"), Value::String("a\nb = 2".into()));
        let list = ["4KiB", "8KiB"].map(|size| Value::String(size.into())).to_vec();
        assert_eq!(value("[4KiB, 8KiB]"), Value::Array(list));
        assert!(Change::parse("phases.measure").is_err());
        assert!(Change::parse("phases..measure=1").is_err());
        let error = overlay(TEXT, "t", &[Change::parse("name.x=1").unwrap()]).unwrap_err();
        assert!(error.to_string().contains("`name` is a value"), "{error}");
    }
}
