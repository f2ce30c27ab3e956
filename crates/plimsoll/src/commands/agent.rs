//! `plimsoll agent`: this host's part of a fleet. It carries out plans that a trusted key signed, on what is allowed.

use std::path::PathBuf;

use clap::Args;
use plimsoll_evidence::signature;
use plimsoll_fleet::agent;
use plimsoll_fleet::broker::Server;
use plimsoll_runner::allow::Allow;

use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::notes;

/// How the NATS server is reached.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub struct Access {
    /// Credentials for the NATS server, as `nsc` writes them.
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// The seed of an nkey for the NATS server.
    #[arg(long, value_name = "FILE", conflicts_with = "creds")]
    nkey: Option<PathBuf>,
    /// Authorities to check the NATS server's certificate against, beside those of this host.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// This host's certificate for the NATS server.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of this host's certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Access {
    /// The server at this address, reached so.
    pub fn server(&self, url: &str) -> Server {
        Server {
            url: url.to_owned(),
            credentials: self.creds.clone(),
            nkey: self.nkey.clone(),
            authorities: self.tls_ca.clone(),
            certificate: self.tls_cert.clone().zip(self.tls_key.clone()),
        }
    }
}

/// Options of `agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll agent --server nats://10.0.0.5 --trust fleet.key.pub --allow-path \
    /mnt/test\n  plimsoll agent --server tls://nats.example --creds node1.creds --trust RWQ... --allow-device \
    /dev/nvme1n1\n\n`plimsoll run PLAN --fleet nats://10.0.0.5 --sign fleet.key` runs a plan on all agents."
)]
pub struct Options {
    /// The NATS server with JetStream, nats://host:4222 or tls://host:4222.
    #[arg(long, value_name = "URL")]
    server: String,
    /// Name of this agent in the fleet, in place of the host's. A plan's {host} stands for it.
    #[arg(long)]
    name: Option<String>,
    /// Take plans that this public key signed: the key or its file. May be given several times.
    #[arg(long, value_name = "KEY", required = true)]
    trust: Vec<String>,
    /// Directory in which plans may work; links that lead out of it are refused. May be given several times.
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// Block device that plans may work on. One that holds anything is refused all the same.
    #[arg(long, value_name = "DEVICE")]
    allow_device: Vec<PathBuf>,
    /// NFS export below which plans may work, nfs://host/export.
    #[arg(long, value_name = "EXPORT")]
    allow_nfs: Vec<String>,
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
    let trust = options.trust.iter().map(|key| signature::public_key(key));
    let trust = trust.collect::<Result<Vec<_>, _>>()?;
    let allow = Allow::new(&options.allow_path, &options.allow_device, &options.allow_nfs)?;
    let host = || {
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy();
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
    };
    let own = agent::Options {
        server: options.access.server(&options.server),
        name: options.name.clone().unwrap_or_else(host),
        trust,
        allow,
        places: keys::places(&options.sign)?,
        bundles: options.out.clone(),
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
