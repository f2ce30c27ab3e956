//! `plimsoll model run PLAN`: runs a plan on a model and shows the model's internal figures.

use std::path::PathBuf;

use clap::Args;
use plimsoll_evidence::run::EndKind;
use plimsoll_report::document::Depth;
use plimsoll_runner::driver::ThisHost;
use plimsoll_runner::finished_run::FinishedRun;
use plimsoll_runner::run_request::{RunConfig, RunRequest};
use plimsoll_runner::session::run_once;
use serde_json::json;

use super::settings;
use super::target::on_model;
use crate::commands::bundle;
use crate::common::Globals;
use crate::data_slot::DataSlot;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::progress::StderrProgress;

/// Options of `model run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll model run exchange-1000-heavy --model adsf-hybrid \
    --explain\n  plimsoll model run plan.toml --set cache.capacity_bytes=0 --explain")]
pub struct Options {
    /// The plan. The model of --model replaces the plan's target.
    plan: PathBuf,
    /// Name of a built-in model, or path of a model file.
    #[arg(long)]
    model: Option<String>,
    /// Change a parameter. Use the names in the model file.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// Show the bottleneck, and how much each station (device, link, CPU) adds to the latency.
    #[arg(long)]
    explain: bool,
    /// Store the bundle in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Runs the plan once, without repeats.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let plan = crate::commands::plan::load(&options.plan)?;
    let plan = on_model(plan, options.model.as_deref(), settings(&options.set)?)?;
    let resolved = plan.resolve();
    let places = keys::places(&options.sign)?;
    let interrupt = interrupt::flag_on_signal()?;
    let mut progress = StderrProgress::new(common.quiet);
    let data = DataSlot::fresh();
    let request = RunRequest {
        config: RunConfig {
            plan: &plan,
            resolved: &resolved,
            keep: false,
            witness: None,
            destroy: &[],
            bundles: &places.bundles(options.out.as_deref())?,
            places: &places,
            interrupt: &interrupt,
            driver: &ThisHost,
        },
        experiment: None,
        data: &data,
    };
    let finished = run_once(&request, &mut progress)?;
    show(&finished, options.explain, common)?;
    Ok(finished.exit())
}

fn show(finished: &FinishedRun, explain: bool, common: &Globals) -> Result<(), CliError> {
    let FinishedRun { directory, evidence, verdict, .. } = finished;
    if !explain || evidence.observed.inside.is_none() {
        return bundle::show(directory, evidence, verdict, common);
    }
    if common.json {
        let explained = plimsoll_report::run::explained_json(evidence);
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
