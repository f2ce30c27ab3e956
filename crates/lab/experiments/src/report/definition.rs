//! Describes an experiment before it is run.

use plimsoll_report::comparison::unit;
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::table::{Cell, Column, Table};
use plimsoll_runner::error::RunnerError;
use serde_json::json;

use super::one_line;
use crate::definition::{Definition, Overrides, StorageKind};
use crate::experiment_file::Arm;

/// Returns an experiment as JSON.
///
/// # Errors
/// A plan is invalid.
pub fn definition_json(definition: &Definition) -> Result<serde_json::Value, RunnerError> {
    let text = &definition.text;
    let mut planned = definition.arms(StorageKind::Model, &Overrides::default())?;
    let published = definition.published(&planned);
    planned.extend(definition.searches(StorageKind::Model, &Overrides::default())?);
    let arms: Vec<_> = planned
        .iter()
        .map(|arm| {
            json!({"name": arm.name, "title": arm.of.title, "plan": arm.of.plan,
                "repeats": arm.repeats, "changes": arm.changes, "search": arm.of.search.is_some()})
        })
        .collect();
    Ok(json!({
        "name": definition.files.name, "title": text.title, "about": text.about,
        "source": text.source, "servers": text.servers, "arms": arms,
        "real_arms": text.real.iter().map(|arm| &arm.name).collect::<Vec<_>>(),
        "published": published, "taught": text.taught,
        "questions": text.question, "claims": text.claim,
    }))
}

/// Returns the description of an experiment: its method, published figures, arms and questions.
pub fn definition_document(definition: &Definition) -> Document {
    let text = &definition.text;
    let questions: Vec<String> = text
        .question
        .iter()
        .map(|question| question.text.clone())
        .chain(text.claim.iter().map(|claim| claim.text.clone()))
        .collect();
    let mut sections = vec![
        Section::brief("about", "Description").with(Block::Words(one_line(&text.about))),
        Section::brief("questions", "Questions").with(Block::List(questions)),
        Section::brief("arms", "Arms of the experiment on the model")
            .with(Block::Table(arms(&text.arm))),
    ];
    if !text.real.is_empty() {
        let mut section = Section::brief("real", "Arms of the experiment on real storage");
        if !text.real_about.is_empty() {
            section = section.with(Block::Words(one_line(&text.real_about)));
        }
        sections.push(section.with(Block::Table(arms(&text.real))));
    }
    if !definition.given.is_empty() {
        let section = Section::brief("published", "Published figures");
        sections.push(section.with(Block::Table(published(definition))));
    }
    if !text.taught.is_empty() {
        let section = Section::brief("taught", "Lessons");
        sections.push(section.with(Block::List(text.taught.clone())));
    }
    Document {
        title: definition.files.name.clone(),
        headline: Headline {
            word: definition.files.name.to_uppercase(),
            reason: text.title.clone(),
            ..Headline::default()
        },
        sections,
        ..Document::default()
    }
}

fn arms(arms: &[Arm]) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("arm", "arm"),
            Column::words("plan", "plan"),
            Column::words("places", "places"),
            Column::remarks("description and changes", "title"),
        ],
    );
    for arm in arms {
        let changes = arm.change.to_string().replace('\n', " ");
        table.rows.push(vec![
            Cell::text(arm.name.clone()),
            Cell::text(arm.plan.clone()),
            Cell::text(arm.places.join(", ")),
            Cell::text(format!("{}  {}", arm.title, changes.trim()).trim().to_owned()),
        ]);
    }
    if table.rows.iter().all(|row| row[2] == Cell::text("")) {
        table.columns.remove(2);
        table.rows.iter_mut().for_each(|row| {
            row.remove(2);
        });
    }
    table
}

fn published(definition: &Definition) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("arm", "arm"),
            Column::words("figure", "figure"),
            Column::numbers("published", "value"),
            Column::words("role in the fit", "role"),
        ],
    );
    const SHOWN: usize = 60;
    for given in definition.given.iter().take(SHOWN) {
        table.rows.push(vec![
            Cell::text(given.arm.clone()),
            Cell::text(given.figure.clone()),
            Cell::number(unit(&given.figure), given.value),
            Cell::text(given.role.label()),
        ]);
    }
    let more = definition.given.len().saturating_sub(SHOWN);
    if more > 0 {
        table.note = format!(
            "and {more} more figures; to see them, use `--json`, or read published.csv after \
             `--export DIR`"
        );
    }
    table
}
