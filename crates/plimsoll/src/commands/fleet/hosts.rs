//! `plimsoll fleet add` and `remove`: hosts come to a fleet that was set up, or go.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_fleet::setup::{self, FleetChange};
use serde_json::json;

use crate::commands::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `fleet add`.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    of: Of,
    /// Where the authority's key is kept, if not in the fleet's directory.
    #[arg(long, value_name = "DIR")]
    authority: Option<PathBuf>,
}

/// Options of both.
#[derive(Debug, Args)]
pub struct Of {
    /// The directory that `plimsoll fleet init` wrote.
    #[arg(value_name = "FLEET")]
    directory: PathBuf,
    /// The agents' names.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Adds agents, and says what to do with them.
///
/// # Errors
/// As [`setup::add`].
pub fn add(options: &Add, common: &Common) -> Result<Exit, CliError> {
    let Of { directory, names } = &options.of;
    let changed = setup::add(directory, names, options.authority.as_deref())?;
    let hosts = "on each host     copy its directory of {} there, and: plimsoll agent --config agent.toml --allow-path DIR";
    let hosts = hosts.replace("{}", &shown(&directory.join("agents")));
    told("added", &changed, names, &hosts, common)
}

/// Takes agents out, and says what to do then.
///
/// # Errors
/// As [`setup::remove`].
pub fn remove(of: &Of, common: &Common) -> Result<Exit, CliError> {
    let changed = setup::remove(&of.directory, &of.names)?;
    let left: Vec<String> = changed.agents.iter().map(|path| shown(path)).collect();
    let hosts = format!("here     {} can be removed: the keys there open nothing", left.join(", "));
    told("removed", &changed, &of.names, &hosts, common)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn told(
    word: &str,
    changed: &FleetChange,
    names: &[String],
    hosts: &str,
    common: &Common,
) -> Result<Exit, CliError> {
    if common.json {
        let agents: Vec<String> = changed.agents.iter().map(|path| shown(path)).collect();
        let all = json!({word: names, "users": shown(&changed.users), "agents": agents});
        bundle::print(&bundle::json(&all)?)?;
        return Ok(Exit::Ok);
    }
    bundle::print(&format!(
        "{word}: {}. The server has to know:\n\n\
         on {}     copy {} there, and: nats-server --signal reload=PID\n{hosts}\n",
        names.join(", "),
        changed.server,
        shown(&changed.users),
    ))?;
    Ok(Exit::Ok)
}
