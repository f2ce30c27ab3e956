//! `plimsoll serve`: the web page.

mod errors;
mod exposures;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::private_file;
use plimsoll_serve::{ServeOptions, Tls, Tokens, serve};
use serde_json::json;

use super::allow_flags::Allowed;
use super::bundle;
use super::fleet::page;
use crate::catalogue;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::notes;
use crate::places::Places;
use crate::team;

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  plimsoll serve                      show this user's runs: \
        http://127.0.0.1:7460\n  plimsoll serve --listen 0           use a free port\n  plimsoll \
        serve --listen 192.0.2.7:7460 --token-file /etc/plimsoll/tokens --tls-cert page.pem \
        --tls-key page.key\n  plimsoll serve --allow-path /mnt/test     the page may start runs \
        there\n  plimsoll serve --fleet fleet.toml --allow-fleet     the page may start runs on a \
        fleet\n  ssh -L 7460:127.0.0.1:7460 HOST     view the page remotely without an open \
        port\n\nA line of the token file is `view TOKEN NAME` or `run TOKEN NAME`; the log on \
        stderr shows the name.\ndocs/serve.md describes roles and protections.")]
pub struct Options {
    /// Address of the page. Port 0 selects a free port. If only a port is given, only this host can
    /// connect.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:7460", value_parser = crate::address::listen)]
    listen: SocketAddr,
    /// File with access tokens. Each line contains a role, a token and a name.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// TLS certificate of the server, followed by intermediate certificates (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the TLS certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Host name that browsers may use to open the page, in addition to the server's addresses. May
    /// be given several times.
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    #[command(flatten)]
    allowed: Allowed,
    /// Show the hosts of a fleet. Pass the fleet.toml from `plimsoll fleet init`, or the address of
    /// the NATS server.
    #[arg(long, value_name = "FLEET")]
    fleet: Option<String>,
    /// Allow the page to start runs on the hosts of the fleet. Each agent checks the targets of
    /// these runs against its list of allowed targets.
    #[arg(long, requires = "fleet")]
    allow_fleet: bool,
    /// Allow a publicly reachable address without tokens or without TLS.
    #[arg(long)]
    insecure: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// The address is in use or publicly reachable, or the token file is invalid.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    for secret in options.token_file.iter().chain(&options.tls_key) {
        private_file::check(secret)?;
    }
    let tokens =
        options.token_file.as_deref().map(Tokens::read).transpose().map_err(errors::tokens)?;
    let allow = options.allowed.read()?;
    let files = options.tls_cert.as_deref().zip(options.tls_key.as_deref());
    let tls = files.map(|(certificate, key)| Tls::read(certificate, key)).transpose();
    let tls = tls.map_err(|error| CliError::environment(error.to_string()))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let interrupt = interrupt::flag_on_signal_with(interrupt::STOPS_SERVING)?;
    if options.insecure && !options.listen.ip().is_loopback() {
        for says in exposures::exposures(tokens.is_some(), tls.is_some()) {
            notes::tell(&format!("warning: {}: {says}", options.listen));
        }
    }
    let of = places.clone();
    let (hosts, fleet_runner) = page::fleet(options.fleet.as_deref(), options.allow_fleet)?;
    let serving = ServeOptions {
        listen: options.listen,
        tokens,
        tls,
        names: options.name.clone(),
        allow,
        places,
        roots: Box::new(move || catalogue::roots(&of)),
        team: team::client().cloned(),
        hosts,
        fleet_runner,
        log: Box::new(notes::tell),
    };
    let mut unsaid = None;
    let reported = |at: SocketAddr| unsaid = say(scheme, at, common).err();
    serve(serving, options.insecure, &interrupt, reported).map_err(errors::page)?;
    unsaid.map_or(Ok(Exit::Ok), Err)
}

/// Prints the address on stdout, for scripts that wait for it.
fn say(scheme: &str, at: SocketAddr, common: &Globals) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&json!({"url": format!("{scheme}://{at}/")}))?);
    }
    bundle::print(&format!("the page is at {scheme}://{at}/\n"))
}
