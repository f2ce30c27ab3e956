//! `plimsoll fleet`: sets up a fleet, adds and removes hosts, shows and drains agents.

mod check;
mod hosts;
mod init;
pub mod page;
pub mod status;

use clap::{Args, Subcommand};

use super::plan_changes::Changes;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys::Sign;

/// Options of `fleet`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll fleet init ./fleet --server-name nats.example --agents \
        node1,node2\n  plimsoll fleet add ./fleet node3\n  plimsoll fleet status \
        ./fleet/coordinator/fleet.toml\n  plimsoll fleet drain ./fleet/coordinator/fleet.toml \
        node2\n  plimsoll fleet check ./fleet/coordinator/fleet.toml plan.toml\n\nTo select a \
        fleet, pass the fleet.toml that `init` created, or the address of its NATS server."
)]
pub struct Options {
    #[command(subcommand)]
    what: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Create keys, certificates, the NATS server's configuration and a file for each host.
    Init(init::Options),
    /// Add hosts to a fleet: create a file for each host, and a new user list for the server.
    Add(hosts::Add),
    /// Remove hosts from a fleet permanently: the server rejects their keys after it loads the new
    /// user list.
    Remove(hosts::HostSelection),
    /// List the agents with their hosts, allowed targets, current runs and clock errors.
    Status(FleetArgument),
    /// Drain agents: they finish their current run and get no new runs.
    Drain {
        #[command(flatten)]
        of: FleetArgument,
        /// Names of the agents.
        #[arg(required_unless_present = "all")]
        agents: Vec<String>,
        /// Select all connected agents.
        #[arg(long, conflicts_with = "agents")]
        all: bool,
        /// Stop draining: send runs to these agents again.
        #[arg(long)]
        undo: bool,
    },
    /// Show for each agent whether it would accept a plan, and if it would not, show the reason.
    /// Nothing is run.
    Check {
        #[command(flatten)]
        of: FleetArgument,
        /// The plan.
        plan: String,
        #[command(flatten)]
        sign: Sign,
        #[command(flatten)]
        changes: Box<Changes>,
    },
}

/// The fleet.
#[derive(Debug, Args)]
pub struct FleetArgument {
    /// The fleet.toml that `plimsoll fleet init` created, or the NATS server's address.
    #[arg(value_name = "FLEET")]
    fleet: String,
}

/// Runs a subcommand.
///
/// # Errors
/// The fleet cannot be reached or set up.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.what {
        FleetCommand::Init(options) => init::carry_out(options, common),
        FleetCommand::Add(options) => hosts::add(options, common),
        FleetCommand::Remove(of) => hosts::remove(of, common),
        FleetCommand::Status(of) => status::status(of, common),
        FleetCommand::Drain { of, agents, undo, .. } => status::drain(of, agents, *undo, common),
        FleetCommand::Check { of, plan, sign, changes } => {
            check::check(of, sign, &changes.plan(plan)?, common)
        }
    }
}
