//! How a plan whose targets are compared is run, as flags.

use std::path::PathBuf;

use clap::Args;
use plimsoll_plan::{Change, Plan};
use toml::Value;

use crate::commands::after::After;
use crate::commands::chosen::Changes;
use crate::commands::load_hosts::LoadHosts;
use crate::error::CliError;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// How a plan is run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparisons that are run from a plan")]
pub struct Ran {
    /// A target of the comparison in place of the plan's: NAME=DIR, NAME=/dev/…, NAME=nfs://host/export or
    /// NAME=model:MODEL. Given once for each side.
    #[arg(long, value_name = "NAME=PLACE")]
    target: Vec<String>,
    /// A field of the plan with another value, as in `repeat.runs=4`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Run a plan although it asks for fewer runs a side than a difference can be told by.
    #[arg(long)]
    pub few: bool,
    /// Say what would be done, run by run, look at every place and server, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on where the comparison would measure for more than 30 days.
    #[arg(long)]
    yes: bool,
    /// Keep the data after the runs.
    #[arg(long)]
    keep: bool,
    /// A block device that the plan names and whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment of a plan in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub metrics: Metrics,
    #[command(flatten)]
    hosts: LoadHosts,
}

impl Ran {
    /// The first of these that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--target", !self.target.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--few", self.few),
            ("--dry-run", self.dry_run),
            ("--yes", self.yes),
            ("--keep", self.keep),
            ("--destroy", !self.destroy.is_empty()),
            ("--out", self.out.is_some()),
            ("--metrics", self.metrics.is_asked()),
            ("--fleet", self.hosts.is_asked_for()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The plan of this name, on the targets that were named.
    ///
    /// # Errors
    /// Everything that is wrong with it.
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

    /// What becomes of the data and the evidence.
    pub fn after(&self, sign: &Sign) -> After {
        After {
            out: self.out.clone(),
            destroy: self.destroy.clone(),
            sign: sign.clone(),
            keep: self.keep,
            dry_run: self.dry_run,
            yes: self.yes,
            hosts: self.hosts.clone(),
            ..After::default()
        }
    }
}

/// A target of a comparison, as a flag names it.
fn target(given: &str) -> Result<Value, CliError> {
    let Some((name, place)) = given
        .split_once('=')
        .filter(|(name, place)| !name.trim().is_empty() && !place.trim().is_empty())
    else {
        return Err(CliError::usage(format!("--target {given}: which name, and which place?"))
            .hint("write such as --target ext4=/mnt/a --target btrfs=/mnt/b"));
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
