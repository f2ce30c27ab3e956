//! `plimsoll fleet add` and `remove`: adds hosts to a fleet, or removes them.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_fleet::setup::{self, FleetChange};
use serde_json::json;

use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `fleet add`.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    of: HostSelection,
    /// Directory that plans may use on the new hosts. May be given several times.
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Directory that contains the certificate authority's key, if the key was moved out of the
    /// fleet's directory.
    #[arg(long, value_name = "DIR")]
    authority: Option<PathBuf>,
}

/// Shared options.
#[derive(Debug, Args)]
pub struct HostSelection {
    /// The directory that `plimsoll fleet init` created.
    #[arg(value_name = "FLEET")]
    directory: PathBuf,
    /// Names of the agents to add or remove.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Adds agents and prints the next steps.
///
/// # Errors
/// The errors of [`setup::add`].
pub fn add(options: &Add, common: &Globals) -> Result<Exit, CliError> {
    let HostSelection { directory, names } = &options.of;
    let changed = setup::add(directory, names, &options.allow_path, options.authority.as_deref())?;
    let hosts = "on each host     copy the host's file from {} to it, and run: plimsoll agent \
        NAME.toml";
    let hosts = hosts.replace("{}", &shown(&directory.join("agents")));
    reported("added", &changed, names, &hosts, common)
}

/// Removes agents and prints the next steps.
///
/// # Errors
/// The errors of [`setup::remove`].
pub fn remove(of: &HostSelection, common: &Globals) -> Result<Exit, CliError> {
    let changed = setup::remove(&of.directory, &of.names)?;
    let left: Vec<String> = changed.agents.iter().map(|path| shown(path)).collect();
    let hosts = format!(
        "here     delete {}: the keys of removed hosts are no longer valid",
        left.join(", ")
    );
    reported("removed", &changed, &of.names, &hosts, common)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn reported(
    word: &str,
    changed: &FleetChange,
    names: &[String],
    hosts: &str,
    common: &Globals,
) -> Result<Exit, CliError> {
    if common.json {
        let agents: Vec<String> = changed.agents.iter().map(|path| shown(path)).collect();
        let all = json!({word: names, "users": shown(&changed.users), "agents": agents});
        bundle::print(&bundle::json(&all)?)?;
        return Ok(Exit::Ok);
    }
    bundle::print(&format!(
        "{word}: {}. Update the server:\n\non {}     copy {} to this server, and run: nats-server \
         --signal reload=PID\n{hosts}\n",
        names.join(", "),
        changed.server,
        shown(&changed.users),
    ))?;
    Ok(Exit::Ok)
}
