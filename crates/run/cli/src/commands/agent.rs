//! `plimsoll agent`: runs plans that a trusted key has signed, on allowed targets only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plimsoll_evidence::signature;
use plimsoll_fleet::access::Access as FleetAccess;
use plimsoll_fleet::agent;
use plimsoll_fleet::broker::Server;
use plimsoll_plan::DurationNs;

use super::allow_flags::Allowed;
use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::notes;

/// Options of `agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll agent node1.toml\n  plimsoll agent /etc/plimsoll/node1.toml --print-unit > /etc/systemd/system/plimsoll-agent.service\n  plimsoll agent --server nats://10.0.0.5 --trust fleet.key.pub --allow-path \
    /mnt/test\n\n`plimsoll run PLAN --fleet nats://10.0.0.5 --sign fleet.key` runs a plan on all agents."
)]
pub struct Options {
    /// File that `plimsoll fleet init` created for this host. It contains the server, the agent's
    /// name, keys, the certificate, trusted keys and allowed directories.
    #[arg(value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a hardened systemd unit that runs the agent with this file, and exit.
    #[arg(long, requires = "config")]
    print_unit: bool,
    /// The NATS server with JetStream: nats://host:4222 or tls://host:4222.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    server: Option<String>,
    /// Name of this agent in the fleet. Default: the name of the host. In plans, this name replaces
    /// {host}.
    #[arg(long)]
    name: Option<String>,
    /// Label by which plans can select this agent, such as rack=1. May be given several times.
    #[arg(long)]
    label: Vec<String>,
    /// Accept plans signed with this public key: the key itself or its file. May be given several
    /// times.
    #[arg(long, value_name = "KEY", required_unless_present = "config")]
    trust: Vec<String>,
    #[command(flatten)]
    allowed: Allowed,
    /// If a run waits for the coordinator and the coordinator is silent for this time, stop the run
    /// (default: 10m). The evidence of the run is kept.
    #[arg(long, value_name = "TIME")]
    alone_max: Option<DurationNs>,
    /// Store bundles in this directory instead of in the catalogue.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Runs the agent until a signal stops it.
///
/// # Errors
/// The server is unreachable, or a key or directory is invalid.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let config = options.config.as_deref().map(FleetAccess::read).transpose()?;
    if let (Some(file), Some(config), true) = (&options.config, &config, options.print_unit) {
        bundle::print(&plimsoll_fleet::unit::of_file(file, &config.allow_paths)?)?;
        return Ok(Exit::Ok);
    }
    let config = config.unwrap_or_default();
    let trust = config.trust.iter().chain(&options.trust).map(|key| signature::public_key(key));
    let trust = trust.collect::<Result<Vec<_>, _>>()?;
    let allow = options.allowed.read_with(&config.allow_paths)?;
    let host = || {
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy();
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
    };
    let own = agent::Options {
        server: match (&options.server, options.config.is_some()) {
            (None, _) => config.to_server()?,
            (Some(url), true) => Server { url: url.clone(), ..config.to_server()? },
            (Some(url), false) => Server { url: url.clone(), ..Server::default() },
        },
        name: options.name.clone().or(config.name).unwrap_or_else(host),
        labels: config.labels.iter().chain(&options.label).cloned().collect(),
        trust,
        allow,
        places: keys::places(&options.sign)?,
        bundles: options.out.clone(),
        coordinator_timeout: options
            .alone_max
            .map_or(agent::COORDINATOR_TIMEOUT, |longest| Duration::from_nanos(longest.0)),
    };
    let interrupt = interrupt::flag_on_signal_with(interrupt::STOPS_SERVING)?;
    let mut say = |text: &str| {
        if !common.quiet {
            notes::tell(text);
        }
    };
    agent::run(&own, &interrupt, &mut say)?;
    Ok(Exit::Ok)
}
