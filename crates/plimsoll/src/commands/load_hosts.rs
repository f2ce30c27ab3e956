//! Who carries a plan out: this host, or the agents of a fleet (`--fleet`).

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

use super::access::{Access, reached};
use super::local_fleet::{Scratch, start};
use crate::error::CliError;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;

/// What stands before the number of agents of a local fleet.
const LOCAL: &str = "local:";
/// Options of a fleet.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Many hosts")]
pub struct LoadHosts {
    /// Run the plan on the agents of this NATS server, nats://host:4222 or tls://host:4222, or of the fleet.toml that `plimsoll
    /// fleet init` wrote; `local:4` starts a private server and four agents on this host, to try it.
    #[arg(long, value_name = "SERVER")]
    fleet: Option<String>,
    /// How many agents, the first by name; without it all that are there.
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..))]
    agents: Option<u32>,
    #[command(flatten)]
    access: Access,
}

/// Who carries runs out, and where Plimsoll keeps its own files meanwhile.
pub struct Carried {
    /// This user's own files, with the key that plans are signed with.
    pub places: Places,
    /// Who carries them out.
    pub driver: Box<dyn Driver>,
    /// A fleet of this host alone, which ends with this.
    _local: Option<(LocalFleet, Scratch)>,
}

impl LoadHosts {
    /// Whether a fleet is asked for.
    pub fn is_asked_for(&self) -> bool {
        self.fleet.is_some()
    }

    /// Whether a run begins: this host says what it will take and looks at every place; agents look at theirs when they are asked.
    ///
    /// # Errors
    /// A place that can't be used, and `--dry-run` with a fleet.
    pub fn begins(
        &self,
        plan: &ResolvedPlan,
        before: &Preflight,
        progress: &mut StderrProgress,
    ) -> Result<bool, CliError> {
        if !self.is_asked_for() {
            return preflight::check(plan, before, progress);
        }
        if before.dry_run {
            return Err(CliError::usage("--dry-run does not go with --fleet").hint(
                "`plimsoll fleet check FLEET PLAN` asks the agents whether they would take it",
            ));
        }
        Ok(true)
    }

    /// The server of agents that are there already, to take a run up again.
    ///
    /// # Errors
    /// None named, a local fleet, a file or key that can't be read.
    pub fn reached(&self, sign: &Sign) -> Result<(Server, Places), CliError> {
        let named = self.fleet.as_deref().unwrap_or_default();
        if named.starts_with(LOCAL) {
            return Err(CliError::usage("a local fleet ended with the command that started it")
                .hint("name the server of the agents: --fleet nats://host:4222"));
        }
        reached(named, &self.access, sign)
    }

    /// Who carries a plan out.
    ///
    /// # Errors
    /// Too few agents, a server that can't be reached, a key that can't be read.
    pub fn carried(
        &self,
        plan: &ResolvedPlan,
        sign: &Sign,
        progress: &mut StderrProgress,
        interrupt: &AtomicBool,
    ) -> Result<Carried, CliError> {
        let Some(named) = &self.fleet else {
            let places = keys::places(sign)?;
            return Ok(Carried { places, driver: Box::new(ThisHost), _local: None });
        };
        let (server, agents, places, local) = match named.strip_prefix(LOCAL) {
            None => {
                let (server, places) = reached(named, &self.access, sign)?;
                (server, self.agents, places, None)
            }
            Some(count) => {
                let (local, scratch, count, places) =
                    start(count, plan, sign, progress, interrupt)?;
                (local.server(), Some(count), places, Some((local, scratch)))
            }
        };
        let (bundles, own, names) = (places.runs.clone(), places.clone(), Vec::new());
        let options = FleetOptions { server, agents, names, places: own, bundles };
        Ok(Carried { places, driver: Box::new(FleetDriver::new(options, plan)?), _local: local })
    }
}
