//! Report of a model: its description, and all parameters with their units and sources.

use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::spec::{Field, Spec, unit_of};
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::table::{Cell, Column, Table};
use serde::Serialize;
use serde_json::{Map, Value, json};

#[derive(Serialize)]
struct Parameter {
    path: String,
    value: f64,
    unit: &'static str,
    from: String,
    note: String,
    free: Option<(f64, f64)>,
}

/// Returns the report.
pub fn document(model: &ConfiguredModel) -> Document {
    let spec = model.spec();
    let mut sections = Vec::new();
    if !spec.about.trim().is_empty() {
        let paragraphs = spec.about.trim().split("\n\n").map(|p| p.replace('\n', " "));
        let section = Section::brief("about", "Description");
        sections.push(paragraphs.fold(section, |s, p| s.with(Block::Words(p))));
    }
    if !spec.missing.trim().is_empty() {
        let missing = spec.missing.split_whitespace().collect::<Vec<_>>().join(" ");
        sections.push(Section::brief("missing", "Limits of the model").with(Block::Words(missing)));
    }
    for name in table_names(spec) {
        if let Some(table) = table(spec, &name) {
            sections.push(Section::brief(&name, &name).with(Block::Table(table)));
        }
    }
    Document {
        title: spec.name.clone(),
        headline: Headline {
            word: spec.name.clone(),
            reason: format!("{} ({})", spec.title, model.origin()),
            ..Headline::default()
        },
        sections,
        ..Document::default()
    }
}

fn table_names(spec: &Spec) -> Vec<String> {
    let mut names = vec!["model".to_owned()];
    names.extend(spec.blocks.keys().cloned());
    names.extend(["load", "size"].into_iter().filter(|p| spec.table(p).is_some()).map(Into::into));
    names
}

fn parameters(spec: &Spec) -> Vec<Parameter> {
    let parameter = |(path, fact): (String, &plimsoll_model::spec::Fact)| Parameter {
        value: fact.value,
        unit: unit_of(&path),
        from: fact.from.to_string(),
        note: fact.note.clone(),
        free: fact.free,
        path,
    };
    spec.facts().into_iter().map(parameter).collect()
}

pub fn as_json(model: &ConfiguredModel) -> Value {
    let spec = model.spec();
    let mut words = Map::new();
    for name in table_names(spec) {
        for (field, value) in &spec.table(&name).map(|t| t.fields.clone()).unwrap_or_default() {
            let value = match value {
                Field::Text(text) => json!(text),
                Field::List(list) => json!(list),
                Field::Flag(flag) => json!(flag),
                Field::Fact(_) => continue,
            };
            words.insert(format!("{name}.{field}"), value);
        }
    }
    json!({
        "name": spec.name,
        "title": spec.title,
        "about": spec.about,
        "missing": spec.missing,
        "origin": model.origin(),
        "text_sha256": model.text_sha256(),
        "words": words,
        "parameters": parameters(spec),
    })
}

fn table(spec: &Spec, name: &str) -> Option<Table> {
    let fields = &spec.table(name)?.fields;
    let mut table = Table::new(
        "",
        vec![
            Column::words("parameter", "parameter"),
            Column::numbers("value", "value"),
            Column::words("unit", "unit"),
            Column::remarks("source", "source"),
        ],
    );
    for (name, field) in fields {
        let (value, unit, source) = match field {
            Field::Fact(fact) => {
                let free = fact.free.map(|(low, high)| format!("; free in {low} to {high}"));
                let note =
                    if fact.note.is_empty() { String::new() } else { format!(": {}", fact.note) };
                let source = format!("{}{note}{}", fact.from, free.unwrap_or_default());
                (number(fact.value), unit_of(name).to_owned(), source)
            }
            Field::Text(text) => (text.clone(), String::new(), String::new()),
            Field::List(list) => (list.join(", "), String::new(), String::new()),
            Field::Flag(flag) => (flag.to_string(), String::new(), String::new()),
        };
        let cells = [name.clone(), value, unit, source];
        table.rows.push(cells.into_iter().map(Cell::text).collect());
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Formats large whole numbers in groups of three digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() >= 1e4 {
        return plimsoll_report::number::group_thousands(&format!("{value:.0}"));
    }
    value.to_string()
}
