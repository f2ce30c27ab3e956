//! `plimsoll agent`: this host's part of a fleet. It carries out plans that a trusted key signed, on what is allowed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plimsoll_evidence::signature;
use plimsoll_fleet::access::Access as FleetAccess;
use plimsoll_fleet::agent;
use plimsoll_fleet::broker::Server;
use plimsoll_plan::DurationNs;

use super::access::Access;
use super::allowed::Allowed;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::notes;

/// Options of `agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll agent --config node1/agent.toml --allow-path /mnt/test\n  plimsoll agent --server nats://10.0.0.5 --trust fleet.key.pub --allow-path \
    /mnt/test\n  plimsoll agent --server tls://nats.example --creds node1.creds --trust RWQ... --allow-device \
    /dev/nvme1n1\n\n`plimsoll run PLAN --fleet nats://10.0.0.5 --sign fleet.key` runs a plan on all agents."
)]
pub struct Options {
    /// What `plimsoll fleet init` wrote for this host: server, name, keys, certificate, and whom to trust.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["creds", "nkey", "tls_ca", "tls_cert"])]
    config: Option<PathBuf>,
    /// The NATS server with JetStream, nats://host:4222 or tls://host:4222.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    server: Option<String>,
    /// Name of this agent in the fleet, in place of the host's. A plan's {host} stands for it.
    #[arg(long)]
    name: Option<String>,
    /// A word that plans may choose this host by, such as rack=1. May be given several times.
    #[arg(long)]
    label: Vec<String>,
    /// Take plans that this public key signed: the key or its file. May be given several times.
    #[arg(long, value_name = "KEY", required_unless_present = "config")]
    trust: Vec<String>,
    #[command(flatten)]
    allowed: Allowed,
    /// End a run that waits while whoever coordinates says nothing for so long; 10m unless stated. Its evidence is kept.
    #[arg(long, value_name = "TIME")]
    alone_max: Option<DurationNs>,
    /// Directory to make bundles in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    sign: Sign,
}

/// Is an agent until a signal ends it.
///
/// # Errors
/// A server that can't be reached, a key or directory that is none.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let config = options.config.as_deref().map(FleetAccess::read).transpose()?;
    let config = config.unwrap_or_default();
    let trust = config.trust.iter().chain(&options.trust).map(|key| signature::public_key(key));
    let trust = trust.collect::<Result<Vec<_>, _>>()?;
    let allow = options.allowed.read()?;
    let host = || {
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy();
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
    };
    let own = agent::Options {
        server: match (&options.server, options.config.is_some()) {
            (None, _) => config.to_server()?,
            (Some(url), true) => Server { url: url.clone(), ..config.to_server()? },
            (Some(url), false) => options.access.server(url),
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
    let interrupt = interrupt::flag_on_signal()?;
    let mut say = |text: &str| {
        if !common.quiet {
            notes::tell(text);
        }
    };
    agent::run(&own, &interrupt, &mut say)?;
    Ok(Exit::Ok)
}
