//! Selects the hosts that run a plan: this host, or the agents of a fleet (`--fleet`).

use std::sync::atomic::AtomicBool;

use clap::Args;
use plimsoll_fleet::broker::Server;
use plimsoll_fleet::coordinator::Options as FleetOptions;
use plimsoll_fleet::driver::FleetDriver;
use plimsoll_fleet::local::LocalFleet;
use plimsoll_plan::ResolvedPlan;
use plimsoll_runner::driver::ThisHost;
use plimsoll_runner::preflight::{self, Preflight};
use plimsoll_runner::run_request::Driver;

use super::access::reached;
use super::local_fleet::{Scratch, start};
use crate::common::Globals;
use crate::error::CliError;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;

const LOCAL: &str = "local:";
/// Options of a fleet.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Many hosts")]
pub struct LoadHosts {
    /// Run on the agents of a fleet. Pass the address of its NATS server (nats://host:4222,
    /// tls://host:4222) or its fleet.toml. For trials, `local:4` starts a private server and four
    /// agents on this host.
    #[arg(long, value_name = "SERVER")]
    fleet: Option<String>,
    /// Number of agents to use. Agents are chosen in the order of their names. Default: all
    /// connected agents.
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..))]
    agents: Option<u32>,
    /// Do not use this host of the fleet. May be given several times.
    #[arg(long, value_name = "HOST", requires = "fleet")]
    without: Vec<String>,
}

/// Driver that executes runs, with the directories of this user and the key that signs plans.
pub struct HostDriver {
    pub places: Places,
    pub driver: Box<dyn Driver>,
    /// Local fleet, which stops when this value is dropped.
    _local: Option<(LocalFleet, Scratch)>,
}

impl LoadHosts {
    pub fn uses_fleet(&self) -> bool {
        self.fleet.is_some()
    }

    /// Shows estimates and checks the targets on this host. In a fleet, the agents check their
    /// targets later.
    ///
    /// # Errors
    /// A target cannot be used, or `--dry-run` was combined with a fleet.
    pub fn check(
        &self,
        plan: &ResolvedPlan,
        before: &Preflight,
        common: &Globals,
        progress: &mut StderrProgress,
    ) -> Result<bool, CliError> {
        if !self.uses_fleet() {
            return progress.check(before.dry_run, common, |to| preflight::check(plan, before, to));
        }
        if before.dry_run {
            let hint = "`plimsoll fleet check FLEET PLAN` shows which agents would accept the plan";
            return Err(CliError::usage("--dry-run cannot be used with --fleet").hint(hint));
        }
        Ok(true)
    }

    /// Returns the server of agents that are already running, to resume a run.
    ///
    /// # Errors
    /// The fleet is local, or a file or key cannot be read.
    pub fn reached(&self, sign: &Sign) -> Result<(Server, Places), CliError> {
        let named = self.fleet.as_deref().unwrap_or_default();
        if named.starts_with(LOCAL) {
            let error = CliError::usage("a local fleet ends when the command that started it ends");
            return Err(error.hint("pass the agents' server: --fleet nats://host:4222"));
        }
        reached(named, sign)
    }

    /// Returns the driver for a plan.
    ///
    /// # Errors
    /// There are too few agents, or the server or a key cannot be used.
    pub fn select(
        &self,
        plan: &ResolvedPlan,
        sign: &Sign,
        progress: &mut StderrProgress,
        interrupt: &AtomicBool,
    ) -> Result<HostDriver, CliError> {
        let Some(named) = &self.fleet else {
            let (places, driver) = (keys::places(sign)?, Box::new(ThisHost));
            return Ok(HostDriver { places, driver, _local: None });
        };
        let (server, agents, places, local) = match named.strip_prefix(LOCAL) {
            None => {
                let (mut server, places) = reached(named, sign)?;
                server.without.clone_from(&self.without);
                (server, self.agents, places, None)
            }
            Some(count) => {
                let local = start(count, plan, sign, progress, interrupt)?;
                let (local, scratch, count, places) = local;
                (local.server(), Some(count), places, Some((local, scratch)))
            }
        };
        let (bundles, own) = (places.runs.clone(), places.clone());
        let options = FleetOptions { server, agents, names: Vec::new(), places: own, bundles };
        Ok(HostDriver { places, driver: Box::new(FleetDriver::new(options, plan)?), _local: local })
    }
}
