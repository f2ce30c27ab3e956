//! `plimsoll model run PLAN`: a plan on a model, and what the model knows of itself.

use std::path::PathBuf;

use clap::Args;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_judge::inside::{bottleneck, contributions, shares, stations};
use plimsoll_plan::{Plan, Target, TargetKind};
use plimsoll_report::document::Depth;
use plimsoll_runner::asked::{Asked, Request};
use plimsoll_runner::finished::Finished;
use plimsoll_runner::session::run_once;
use serde_json::{Value, json};
use toml::Table;

use super::settings;
use crate::commands::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::kept_data::DataSlot;
use crate::keys::{self, Sign};
use crate::modelled;
use crate::progress::StderrProgress;

/// Options of `model run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model run exchange-1000-heavy.toml --model adsf-hybrid \
    --explain\n  plimsoll model run plan.toml --set cache.capacity_bytes=0 --explain"
)]
pub struct Options {
    /// The plan. Its target may be anything: with --model it is replaced.
    plan: PathBuf,
    /// The model to run it on: name of a shipped one, or path of a model file.
    #[arg(long)]
    model: Option<String>,
    /// A parameter that differs from the model file.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// Name the bottleneck, and show what each station contributes to latency.
    #[arg(long)]
    explain: bool,
    /// Directory to make the bundle in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Runs once, whatever the plan says of repeats.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = on_model(crate::commands::plan::load(&options.plan)?, options)?;
    let resolved = plan.resolve();
    let places = keys::places(&options.sign)?;
    let interrupt = interrupt::flag_on_signal()?;
    let mut progress = StderrProgress::new(common.quiet);
    let data = DataSlot::fresh();
    let request = Request {
        asked: Asked {
            plan: &plan,
            resolved: &resolved,
            keep: false,
            witness: None,
            destroy: &[],
            bundles: &places.bundles(options.out.as_deref())?,
            places: &places,
            interrupt: &interrupt,
        },
        experiment: None,
        data: &data,
    };
    let finished = run_once(&request, &mut progress)?;
    show(&finished, options.explain, common)?;
    Ok(finished.exit())
}

/// The plan with its target replaced or its model's parameters changed, as a plan of its own: what is kept
/// of it says what was run.
fn on_model(plan: Plan, options: &Options) -> Result<Plan, CliError> {
    let set: Table = settings(&options.set)?.into_iter().map(of_text).collect();
    let resolved = plan.resolve();
    let (model, set) = match (&options.model, modelled::named(&resolved)) {
        (Some(model), _) => (model.clone(), set),
        (None, Some(_)) if set.is_empty() => return Ok(plan),
        (None, Some(TargetKind::Model { model, set: stated })) => {
            let stated = stated.clone().into_iter().map(of_text);
            (model.clone(), stated.chain(set).collect())
        }
        (None, _) => {
            let kind = resolved.targets.first().map_or("nothing", Target::kind_word);
            return Err(CliError::usage(format!("the plan's target is {kind}, not a model"))
                .hint("say which model: --model NAME; `plimsoll model list` lists them"));
        }
    };
    let mut target = Table::from_iter([("model".to_owned(), toml::Value::String(model))]);
    if !set.is_empty() {
        target.insert("set".to_owned(), toml::Value::Table(set));
    }
    plan.on_target(target).map_err(|errors| CliError::usage(errors.to_string()))
}

/// A parameter with its value as a plan has it: a number where it is one, else a word.
fn of_text((path, text): (String, String)) -> (String, toml::Value) {
    let read = format!("value = {text}").parse::<Table>().ok();
    let value = read.and_then(|mut table| table.remove("value"));
    (path, value.unwrap_or(toml::Value::String(text)))
}

fn show(finished: &Finished, explain: bool, common: &Common) -> Result<(), CliError> {
    let Finished { directory, evidence, verdict, .. } = finished;
    if !explain || evidence.observed.inside.is_none() {
        return bundle::show(directory, evidence, verdict, common);
    }
    if common.json {
        let explained = explained(evidence);
        return bundle::print(&bundle::json(&json!({ "verdict": verdict, "explain": explained }))?);
    }
    bundle::show(directory, evidence, verdict, common)?;
    if evidence.run.end.kind == EndKind::Completed {
        let document = plimsoll_report::document::Document {
            sections: vec![plimsoll_report::run::explain(evidence, Depth::Brief)],
            ..Default::default()
        };
        super::show_sections(&document, common)?;
    }
    Ok(())
}

fn explained(evidence: &Bundle) -> Value {
    let Some(inside) = &evidence.observed.inside else { return Value::Null };
    let window_ns = evidence.run.measure().map_or(0, |phase| phase.duration_ns);
    let share = |writes| -> Value {
        shares(inside, writes).into_iter().map(|(place, _, share)| (place, json!(share))).collect()
    };
    let station = |group: &plimsoll_judge::inside::Stations| {
        json!({
            "name": group.name, "stations": group.stations, "servers": group.servers,
            "utilisation": group.utilisation, "utilisation_max": group.utilisation_max,
            "busiest": group.busiest, "customers": group.customers,
            "visits_per_s": group.visits_per_s, "time_ns": group.time_ns,
        })
    };
    let path = |path: &plimsoll_evidence::inside::Path| {
        let (latency_ns, parts) = contributions(path);
        let parts: Vec<Value> = parts
            .iter()
            .map(|part| {
                json!({"station": part.station, "waited_ns": part.waited_ns,
                    "served_ns": part.served_ns, "share": part.share})
            })
            .collect();
        json!({"operation": path.operation, "traced": path.traced, "latency_ns": latency_ns,
            "parts": parts})
    };
    json!({
        "model": inside.model,
        "bottleneck": bottleneck(inside, window_ns).as_ref().map(station),
        "reads_from": share(false),
        "writes_to": share(true),
        "paths": inside.paths.iter().map(path).collect::<Vec<_>>(),
        "stations": stations(inside, window_ns).iter().map(station).collect::<Vec<_>>(),
    })
}
