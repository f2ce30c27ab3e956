//! Table of experiments, one per row.

use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::table::{Cell, Column, Table};
use plimsoll_runner::error::RunnerError;
use serde::Serialize;

use crate::definition::{Definition, Overrides, StorageKind};

#[derive(Clone, Debug, Serialize)]
pub struct ExperimentSummary {
    name: String,
    title: String,
    arms: usize,
    real_arms: usize,
    published_figures: usize,
    questions: Vec<String>,
}

impl ExperimentSummary {
    /// Returns the counts of an experiment.
    ///
    /// # Errors
    /// The plan of an arm of the experiment is invalid.
    pub fn new(definition: &Definition) -> Result<Self, RunnerError> {
        let text = &definition.text;
        let arms = definition.arms(StorageKind::Model, &Overrides::default())?;
        Ok(Self {
            name: definition.files.name.clone(),
            title: text.title.clone(),
            arms: text.arm.len(),
            real_arms: text.real.len(),
            published_figures: definition.published(&arms).len(),
            questions: text.question.iter().map(|question| question.text.clone()).collect(),
        })
    }
}

/// Returns the list as a table.
pub fn list_document(all: &[ExperimentSummary]) -> Document {
    let mut table = Table::new(
        "",
        vec![
            Column::words("experiment", "experiment"),
            Column::numbers("arms on a model", "arms"),
            Column::numbers("arms on real storage", "real_arms"),
            Column::numbers("published figures", "published_figures"),
            Column::remarks("description", "title"),
        ],
    );
    for one in all {
        table.rows.push(vec![
            Cell::text(one.name.clone()),
            Cell::count(one.arms as u64),
            Cell::count(one.real_arms as u64),
            Cell::count(one.published_figures as u64),
            Cell::text(one.title.clone()),
        ]);
    }
    table.note =
        "`plimsoll experiment show NAME` shows details, `plimsoll experiment run NAME` runs it"
            .to_owned();
    Document {
        title: "experiments".to_owned(),
        headline: Headline {
            word: format!("{} experiments", all.len()),
            reason: "Published storage experiments. One command repeats each of them.".to_owned(),
            ..Headline::default()
        },
        sections: vec![Section::brief("experiments", "").with(Block::Table(table))],
        ..Document::default()
    }
}
