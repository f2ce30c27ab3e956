//! `plimsoll fleet init`: what each host needs to reach the fleet's server as itself and nobody else.

use std::path::PathBuf;

use clap::Args;
use plimsoll_fleet::setup::{AGENTS_MAX, Setup, set_up};
use serde_json::json;

use crate::commands::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `fleet init`.
#[derive(Debug, Args)]
pub struct Options {
    /// Directory to write all of it to; not there yet, or empty.
    directory: PathBuf,
    /// The NATS server's name or address, as hosts reach it.
    #[arg(long, value_name = "HOST")]
    server_name: String,
    /// Its port.
    #[arg(long, default_value_t = 4222)]
    port: u16,
    /// The agents' names, with commas, or how many: node1, node2 and so on. A name without a host costs nothing.
    #[arg(long, value_name = "NAMES|N")]
    agents: String,
    /// Forget the authority's key: nobody can make another host of this fleet, and `fleet add` can't either.
    #[arg(long)]
    forget_authority: bool,
}

/// Sets a fleet up, and says what to do with it.
///
/// # Errors
/// As [`set_up`].
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let agents = match options.agents.parse::<u32>() {
        Ok(count) => (1..=count.min(AGENTS_MAX + 1)).map(|at| format!("node{at}")).collect(),
        Err(_) => options.agents.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    let (directory, server_name) = (options.directory.clone(), options.server_name.clone());
    let made = set_up(&Setup {
        directory,
        server_name,
        port: options.port,
        agents,
        forgets_authority: options.forget_authority,
    })?;
    let shown = |path: &std::path::Path| path.display().to_string();
    if common.json {
        let agents: Vec<String> = made.agents.iter().map(|path| shown(path)).collect();
        let all = json!({"server": shown(&made.server), "coordinator": shown(&made.coordinator), "agents": agents,
            "authority": made.authority.as_deref().map(shown)});
        bundle::print(&bundle::json(&all)?)?;
        return Ok(Exit::Ok);
    }
    let authority = made.authority.as_deref().map_or(String::new(), |path| {
        format!(
            "offline     move {} there, which no host gets: `plimsoll fleet add` needs it\n",
            shown(path)
        )
    });
    let fleet = shown(&made.coordinator.join("fleet.toml"));
    bundle::print(&format!(
        "set up: a server, who runs plans, and {} agents. Every directory holds keys: hand them on as such.\n\n\
         on {}     copy {} there, and in it: nats-server -c nats.conf\n\
         on each host     copy its directory of {} there, and: plimsoll agent --config agent.toml --allow-path DIR\n\
         here     plimsoll fleet status {fleet}\n\
         here     plimsoll run PLAN --fleet {fleet}\n{authority}",
        made.agents.len(),
        options.server_name,
        shown(&made.server),
        shown(&options.directory.join("agents")),
    ))?;
    Ok(Exit::Ok)
}
