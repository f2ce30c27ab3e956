//! Flags for comparisons that run a plan on several targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_judge::stats::welch::RUNS_MIN;
use plimsoll_plan::{Change, is_device_path};
use plimsoll_runner::arms::EarlierComparison;
use toml::Value;

use crate::commands::load_flags::{LoadFlags, LoadPlan};
use crate::commands::load_hosts::LoadHosts;
use crate::commands::plan_changes::{Changes, plan_error, with_changes};
use crate::commands::run_options::RunOptions;
use crate::error::CliError;
use crate::keys::Sign;
use crate::metrics::Metrics;

#[derive(Debug, Args)]
#[command(next_help_heading = "Comparisons that run a plan")]
pub struct PlanFlags {
    /// Target to compare, instead of the plan's targets: NAME=DIR, NAME=/dev/…,
    /// NAME=nfs://host/export or NAME=model:MODEL. Pass this once for each side of the comparison.
    #[arg(long, value_name = "NAME=PLACE")]
    target: Vec<String>,
    /// Directory of one side, instead of --target. The last part of the path becomes the name of
    /// the side. Pass this once for each side.
    #[arg(long, value_name = "DIR", visible_alias = "directory", conflicts_with = "target")]
    path: Vec<String>,
    /// Change a field of the plan, such as `repeat.runs=4`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Run the plan even if it has too few runs on each side to show a significant difference.
    #[arg(long)]
    pub few: bool,
    /// Start a new comparison instead of resuming an interrupted comparison of the same plan.
    #[arg(long, alias = "anew")]
    restart: bool,
    /// List all planned runs and check every target and server, but run nothing.
    #[arg(long)]
    dry_run: bool,
    /// Accept a comparison that measures for more than 30 days.
    #[arg(long)]
    yes: bool,
    /// Keep the test data on the targets after the runs.
    #[arg(long)]
    keep: bool,
    /// Allow this block device (full path) of the plan to be overwritten.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Store the experiment in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub metrics: Metrics,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    hosts: LoadHosts,
}

impl PlanFlags {
    /// Returns the first of these flags that was given.
    pub fn first_flag(&self) -> Option<&'static str> {
        let given = [
            ("--target", !self.target.is_empty()),
            ("--path", !self.path.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--few", self.few),
            ("--restart", self.restart),
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

    /// Returns a plan with the given targets. It is the named plan, or a plan for the load that the
    /// flags describe.
    ///
    /// # Errors
    /// The plan is invalid. The error lists all problems.
    pub fn plan(&self, name: Option<&str>) -> Result<LoadPlan, CliError> {
        let named = self.target.iter().map(|given| target(given));
        let paths = side_names(&self.path).into_iter().zip(&self.path);
        let paths = paths.map(|(name, path)| Ok(side(&name, "path", text(path))));
        let targets: Vec<Value> = named.chain(paths).collect::<Result<_, CliError>>()?;
        let mut fields = Vec::new();
        if !targets.is_empty() {
            fields.push(Change::set("target", Value::Array(targets)));
        }
        let changes = Changes { set: self.set.clone(), ..Changes::default() };
        if let Some(name) = name {
            let plan = self.load.changes_of_plan(&changes)?.plan_with(name, fields)?;
            return Ok(LoadPlan { plan, meanings: Vec::new() });
        }
        // The targets of the comparison replace this directory.
        let changes = Changes { path: vec!["/".to_owned()], ..changes };
        let load = self.load.with_default_runs(RUNS_MIN as u32);
        let LoadPlan { plan, meanings } = load.plan("plimsoll compare", &changes)?;
        let plan = with_changes(&plan, &fields).map_err(|errors| plan_error(&errors))?;
        Ok(LoadPlan { plan, meanings })
    }

    /// Returns how to treat an interrupted comparison of the same plan.
    pub fn earlier(&self) -> EarlierComparison {
        if self.restart { EarlierComparison::Ignore } else { EarlierComparison::Resume }
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
    let (kind, place) = match place.strip_prefix("model:") {
        Some(model) => ("model", text(model)),
        None if place.starts_with("nfs://") => ("nfs", Value::Array(vec![text(place)])),
        None if is_device_path(place) => ("device", text(place)),
        None => ("path", text(place)),
    };
    Ok(side(name, kind, place))
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn side(name: &str, kind: &str, place: Value) -> Value {
    let fields = [("name".to_owned(), text(name)), (kind.to_owned(), place)];
    Value::Table(fields.into_iter().collect())
}

/// Returns side names: the last part of each path, or the complete paths if two names are equal.
fn side_names(paths: &[String]) -> Vec<String> {
    let last = |path: &String| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        name.map_or_else(|| path.clone(), str::to_owned)
    };
    let short: BTreeSet<String> = paths.iter().map(last).collect();
    let unique = short.len() == paths.len();
    paths.iter().map(|path| if unique { last(path) } else { path.clone() }).collect()
}
