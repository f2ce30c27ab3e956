//! `plimsoll model list`.

use plimsoll_model::spec::Spec;
use plimsoll_model::spec::shipped;
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::table::{Cell, Column, Table};
use serde::Serialize;

use super::{model_error, show};
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Serialize)]
struct ModelRow {
    name: String,
    title: String,
    nodes: u64,
    blocks: usize,
    parameters: usize,
    free_parameters: usize,
}

/// Lists the built-in models.
pub fn carry_out(common: &Globals) -> Result<Exit, CliError> {
    let mut all = Vec::new();
    for model in shipped() {
        let spec = Spec::load(model.name).map_err(|error| model_error(&error))?;
        let facts = spec.facts();
        all.push(ModelRow {
            name: spec.name.clone(),
            title: spec.title.clone(),
            nodes: spec.value("model.nodes").unwrap_or(1.0) as u64,
            blocks: spec.blocks.len(),
            parameters: facts.len(),
            free_parameters: facts.iter().filter(|(_, fact)| fact.free.is_some()).count(),
        });
    }
    if common.json {
        bundle::print(&bundle::json(&all)?)?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(
        "",
        vec![
            Column::words("model", "model"),
            Column::numbers("nodes", "nodes"),
            Column::numbers("blocks", "blocks"),
            Column::remarks("represents", "title"),
        ],
    );
    for model in &all {
        table.rows.push(vec![
            Cell::text(model.name.clone()),
            Cell::count(model.nodes),
            Cell::count(model.blocks as u64),
            Cell::text(model.title.clone()),
        ]);
    }
    table.note =
        "these models are built into the program; to edit a copy: `plimsoll model show MODEL --toml \
         > my.toml`"
            .to_owned();
    let document = Document {
        title: "models".to_owned(),
        headline: Headline {
            word: format!("{} models", all.len()),
            reason: "These models simulate storage systems in virtual time. To use a model, set \
                     `target.model` in a plan."
                .to_owned(),
            ..Headline::default()
        },
        sections: vec![Section::brief("models", "").with(Block::Table(table))],
        ..Document::default()
    };
    show(&document, common)?;
    Ok(Exit::Ok)
}
