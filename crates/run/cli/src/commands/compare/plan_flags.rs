//! Flags for running a plan whose targets are compared.

use std::path::PathBuf;

use clap::Args;
use plimsoll_plan::{Change, Plan};
use toml::Value;

use crate::commands::load_hosts::LoadHosts;
use crate::commands::plan_changes::Changes;
use crate::commands::run_options::RunOptions;
use crate::error::CliError;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// Flags for running a plan.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparisons that are run from a plan")]
pub struct PlanFlags {
    /// Target of the comparison, in place of the plan's: NAME=DIR, NAME=/dev/…,
    /// NAME=nfs://host/export or NAME=model:MODEL. One per side.
    #[arg(long, value_name = "NAME=PLACE")]
    target: Vec<String>,
    /// A field of the plan to change, such as `repeat.runs=4`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Run a plan with too few runs per side for a significant difference.
    #[arg(long)]
    pub few: bool,
    /// Show what would be done, run by run, and check every target and server, but run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Accept a comparison that measures for more than 30 days.
    #[arg(long)]
    yes: bool,
    /// Keep the data after the runs.
    #[arg(long)]
    keep: bool,
    /// Block device of the plan that may be overwritten, with its full path.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory for the experiment of a plan, in place of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub metrics: Metrics,
    #[command(flatten)]
    hosts: LoadHosts,
}

impl PlanFlags {
    /// Returns the first flag that was given.
    pub fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--target", !self.target.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--few", self.few),
            ("--dry-run", self.dry_run),
            ("--yes", self.yes),
            ("--keep", self.keep),
            ("--destroy", !self.destroy.is_empty()),
            ("--out", self.out.is_some()),
            ("--metrics", self.metrics.is_requested()),
            ("--fleet", self.hosts.uses_fleet()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Returns the plan on the named targets.
    ///
    /// # Errors
    /// All errors of the plan.
    pub fn plan(&self, name: &str) -> Result<Plan, CliError> {
        let targets: Result<Vec<Value>, CliError> =
            self.target.iter().map(|given| target(given)).collect();
        let mut fields = Vec::new();
        match targets? {
            none if none.is_empty() => {}
            targets => fields.push(Change::set("target", Value::Array(targets))),
        }
        let changes = Changes { set: self.set.clone(), ..Changes::default() };
        changes.plan_with(name, fields)
    }

    /// Returns the options for data and evidence.
    pub fn run_options(&self, sign: &Sign) -> RunOptions {
        RunOptions {
            out: self.out.clone(),
            destroy: self.destroy.clone(),
            sign: sign.clone(),
            keep: self.keep,
            dry_run: self.dry_run,
            yes: self.yes,
            hosts: self.hosts.clone(),
            ..RunOptions::default()
        }
    }
}

/// Parses a target of a comparison.
fn target(given: &str) -> Result<Value, CliError> {
    let Some((name, place)) = given
        .split_once('=')
        .filter(|(name, place)| !name.trim().is_empty() && !place.trim().is_empty())
    else {
        return Err(CliError::usage(format!("--target {given}: a name and a path are required"))
            .hint("for example: --target ext4=/mnt/a --target btrfs=/mnt/b"));
    };
    let text = |text: &str| Value::String(text.to_owned());
    let (kind, place) = match place.strip_prefix("model:") {
        Some(model) => ("model", text(model)),
        None if place.starts_with("nfs://") => ("nfs", Value::Array(vec![text(place)])),
        None if place.starts_with("/dev/") => ("device", text(place)),
        None => ("path", text(place)),
    };
    let fields = [("name".to_owned(), text(name)), (kind.to_owned(), place)];
    Ok(Value::Table(fields.into_iter().collect()))
}
