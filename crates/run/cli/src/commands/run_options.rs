//! Options for data, evidence and reports that all commands that run plans share.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_runner::preflight::Preflight;
use plimsoll_runner::run_request::RunConfig;

use super::load_hosts::{HostDriver, LoadHosts};
use crate::error::CliError;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// Options for data and evidence.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Data and evidence")]
pub struct RunOptions {
    /// Keep the data after the run, for `plimsoll verify`.
    #[arg(long)]
    pub keep: bool,
    /// Record each acknowledged durable commit in this file or pipe, for durability tests.
    /// `plimsoll verify --witness` checks that each of these commits exists.
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Allow this block device (full path) to be overwritten: `--destroy /dev/sdx`.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Vec<PathBuf>,
    /// Store the bundle in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the verdict and its reasons (at most 4 KiB) to this file, for example for the
    /// termination message of a container.
    #[arg(long, value_name = "FILE")]
    pub verdict_to: Option<PathBuf>,
    /// Show the planned runs and check every target and server, but run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Accept a plan that measures for more than 30 days.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub sign: Sign,
    #[command(flatten)]
    pub metrics: Metrics,
    /// Fleet options. Only commands that support fleets set them.
    #[arg(skip)]
    pub hosts: LoadHosts,
}

impl RunOptions {
    /// Returns the input for the checks that are made before the first run of a plan.
    pub fn preflight(&self, plan: &ResolvedPlan) -> Preflight {
        Preflight::runs(plan, self.yes, self.dry_run).with_data(&self.destroy, self.keep)
    }

    /// Returns the configuration of runs on these hosts.
    pub fn config<'a>(
        &'a self,
        plan: &'a Plan,
        resolved: &'a ResolvedPlan,
        hosts: &'a HostDriver,
        bundles: &'a Path,
        interrupt: &'a AtomicBool,
    ) -> RunConfig<'a> {
        RunConfig {
            plan,
            resolved,
            keep: self.keep,
            witness: self.witness.as_deref(),
            destroy: &self.destroy,
            bundles,
            places: &hosts.places,
            interrupt,
            driver: &*hosts.driver,
        }
    }

    /// Rejects options that a fleet does not support.
    ///
    /// # Errors
    /// An option is not supported.
    pub fn refuse_with_fleet(&self) -> Result<(), CliError> {
        let requested = [
            ("--keep", self.keep),
            ("--witness", self.witness.is_some()),
            ("--destroy", !self.destroy.is_empty()),
        ];
        match requested.into_iter().find(|(_, requested)| self.hosts.uses_fleet() && *requested) {
            Some((option, _)) => {
                Err(CliError::usage(format!("{option} cannot be used with --fleet"))
                    .hint("remove it, or run the plan on one host"))
            }
            None => Ok(()),
        }
    }
}
