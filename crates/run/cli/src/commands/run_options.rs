//! Options for data, evidence and reporting that all running commands share.

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
    /// Write each acknowledged durable commit to this file or pipe, for durability tests. `plimsoll
    /// verify --witness` checks that each of these commits exists.
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// Block device that may be overwritten (full path): `--destroy /dev/sdx`.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Vec<PathBuf>,
    /// Directory for the bundle, instead of the catalogue.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Also write the verdict with its reasons to this file, in at most 4 KiB: for the termination
    /// message of a container.
    #[arg(long, value_name = "FILE")]
    pub verdict_to: Option<PathBuf>,
    /// Show the planned runs and check every target and server, but run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Accept a plan that takes more than 30 days of measuring.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub sign: Sign,
    #[command(flatten)]
    pub metrics: Metrics,
    /// Fleet options; only set by commands that support fleets.
    #[arg(skip)]
    pub hosts: LoadHosts,
}

impl RunOptions {
    /// Returns the information for the checks before the runs of a plan start.
    pub fn preflight(&self, plan: &ResolvedPlan) -> Preflight {
        Preflight::runs(plan, self.yes, self.dry_run).with_data(&self.destroy, self.keep)
    }

    /// Returns the configuration of runs with this driver.
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
