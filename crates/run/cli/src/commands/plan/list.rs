//! `plimsoll plan list`: the built-in plans.

use plimsoll_plan::gallery;
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::table::{Cell, Column, Table};
use plimsoll_report::text;
use serde::Serialize;

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Serialize)]
struct PlanRow {
    name: &'static str,
    aliases: Vec<&'static str>,
    description: String,
    needs: String,
    takes: String,
    sources: String,
}

/// Lists the plans.
///
/// # Errors
/// A built-in plan is invalid. A test ensures that this cannot happen.
pub fn carry_out(common: &Globals) -> Result<Exit, CliError> {
    let mut all = Vec::new();
    for ready in gallery() {
        let plan = plimsoll_plan::Plan::parse(ready.text, ready.name)
            .map_err(|errors| crate::commands::plan_changes::plan_error(&errors))?;
        all.push(PlanRow {
            name: ready.name,
            aliases: ready.aliases().collect(),
            description: plan.resolve().description,
            needs: ready.says("Needs"),
            takes: ready.says("Takes"),
            sources: ready.says("Sources"),
        });
    }
    if common.json {
        bundle::print(&bundle::json(&all)?)?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(
        "",
        vec![
            Column::words("plan", "plan"),
            Column::words("also", "aliases"),
            Column::words("data", "data"),
            Column::words("time", "time"),
            Column::remarks("description", "description"),
        ],
    );
    for plan in &all {
        table.rows.push(vec![
            Cell::text(plan.name),
            Cell::text(plan.aliases.join(", ")),
            Cell::text(plan.needs.clone()),
            Cell::text(plan.takes.clone()),
            Cell::text(plan.description.clone()),
        ]);
    }
    table.note =
        "`plimsoll plan show NAME` prints a plan with its sources. `plimsoll plan new NAME --path \
         DIR` creates your own copy. `plimsoll run NAME --path DIR` runs the plan. The listed time \
         does not include the creation of the data"
            .to_owned();
    let document = Document {
        title: "plans".to_owned(),
        headline: Headline {
            word: format!("{} plans", all.len()),
            reason: "These plans are built in: use the name of a plan in place of a plan file."
                .to_owned(),
            ..Headline::default()
        },
        sections: vec![Section::brief("plans", "").with(Block::Table(table))],
        ..Document::default()
    };
    bundle::print(&text::document(&document, &bundle::style(common)))?;
    Ok(Exit::Ok)
}
