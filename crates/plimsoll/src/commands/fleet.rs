//! `plimsoll fleet`: set a fleet up, add hosts, look at its agents, take some out.

mod hosts;
mod init;
pub mod status;

use clap::{Args, Subcommand};

use super::access::Access;
use super::chosen::Changes;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys::Sign;

/// Options of `fleet`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll fleet init ./fleet --server-name nats.example --agents node1,node2\n  plimsoll fleet \
    add ./fleet node3\n  plimsoll fleet status ./fleet/coordinator/fleet.toml\n  plimsoll fleet drain ./fleet/coordinator/fleet.toml node2\n  plimsoll fleet check \
    ./fleet/coordinator/fleet.toml plan.toml\n\nA fleet is named by the fleet.toml that `init` wrote, or by its NATS server's address."
)]
pub struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write keys, certificates, the NATS server's configuration and a directory for each host.
    Init(init::Options),
    /// Add hosts to a fleet that `init` set up: a directory for each, and the server's users anew.
    Add(hosts::Add),
    /// Take hosts out of a fleet for good: the server knows their keys no more once it has its users anew.
    Remove(hosts::Of),
    /// List the agents: where they are, what they allow, what they do, how well their clocks are known.
    Status(Of),
    /// Choose these agents no more; what they carry out goes on to its end.
    Drain {
        #[command(flatten)]
        of: Of,
        /// The agents.
        #[arg(required_unless_present = "all")]
        agents: Vec<String>,
        /// All that are there.
        #[arg(long, conflicts_with = "agents")]
        all: bool,
        /// Choose them again.
        #[arg(long)]
        undo: bool,
    },
    /// Say of each agent whether it would take a plan, and why not. Nothing is run.
    Check {
        #[command(flatten)]
        of: Of,
        /// The plan.
        plan: String,
        #[command(flatten)]
        changes: Box<Changes>,
    },
}

/// Which fleet.
#[derive(Debug, Args)]
pub struct Of {
    /// The fleet.toml that `plimsoll fleet init` wrote, or the NATS server's address.
    #[arg(value_name = "FLEET")]
    fleet: String,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    sign: Sign,
}

/// Carries one of them out.
///
/// # Errors
/// A fleet that can't be reached or set up.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    match &options.what {
        What::Init(options) => init::carry_out(options, common),
        What::Add(options) => hosts::add(options, common),
        What::Remove(of) => hosts::remove(of, common),
        What::Status(of) => status::status(of, common),
        What::Drain { of, agents, undo, .. } => status::drain(of, agents, *undo, common),
        What::Check { of, plan, changes } => status::check(of, &changes.plan(plan)?, common),
    }
}
