//! `plimsoll fleet init`: creates keys, certificates and configuration for the server and each
//! host.

use std::path::PathBuf;

use clap::Args;
use plimsoll_fleet::setup::{AGENTS_MAX, Setup, set_up};
use serde_json::json;

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `fleet init`.
#[derive(Debug, Args)]
pub struct Options {
    /// Directory for all files. It must be empty, or must not exist yet.
    directory: PathBuf,
    /// Name or address at which the hosts reach the NATS server.
    #[arg(long, value_name = "HOST")]
    server_name: String,
    /// Port of the NATS server.
    #[arg(long, default_value_t = 4222)]
    port: u16,
    /// Names of the agents, separated by commas, or the number of agents. With a number, the names
    /// are node1, node2 and so on. A run requires all agents, except those excluded by `--without
    /// NAME`.
    #[arg(long, value_name = "NAMES|N")]
    agents: String,
    /// Directory that plans may use on each host. The file of each host lists it. May be given
    /// several times.
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Delete the key of the certificate authority. After that, `fleet add` can no longer add
    /// hosts.
    #[arg(long)]
    forget_authority: bool,
}

/// Sets up a fleet and prints the next steps.
///
/// # Errors
/// The errors of [`set_up`].
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
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
        allow_paths: options.allow_path.clone(),
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
            "afterwards     move {} to offline storage; only `plimsoll fleet add` needs this \
             file\n",
            shown(path)
        )
    });
    let allow = if options.allow_path.is_empty() { " --allow-path DIR" } else { "" };
    let fleet = shown(&made.coordinator.join("fleet.toml"));
    bundle::print(&format!(
        "created files for a server, a user who runs plans, and {} agents. All these files are \
         secret.\n\non {}     copy {} there, and run in it: nats-server -c nats.conf\non each \
         host     copy the host's file from {} to it, and run: plimsoll agent \
         NAME.toml{allow}\nhere     plimsoll run PLAN --fleet {fleet}\n{authority}",
        made.agents.len(),
        options.server_name,
        shown(&made.server),
        shown(&options.directory.join("agents")),
    ))?;
    Ok(Exit::Ok)
}
