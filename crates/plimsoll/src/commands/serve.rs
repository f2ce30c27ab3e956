//! `plimsoll serve`: the web page.

mod password;
mod refused;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plimsoll_serve::{ServeOptions, Tls, Tokens, serve};
use serde_json::json;

use super::allowed::Allowed;
use super::bundle;
use super::fleet::status::hosts;
use crate::catalogue;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::notes;
use crate::places::Places;
use crate::team;

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll serve                      look at this user's runs: \
    http://127.0.0.1:7460\n  plimsoll serve --listen 0           on a port that is free\n  plimsoll serve \
    --listen 192.0.2.7:7460 --token-file /etc/plimsoll/tokens --tls-cert page.pem --tls-key page.key\n  plimsoll serve \
    --allow-path /mnt/test     runs may be started there from the page\n  ssh -L 7460:127.0.0.1:7460 HOST     to look \
    from elsewhere without opening a port\n\nA line of the token file is `view TOKEN` or `run TOKEN`; in a token's \
    place may stand what `plimsoll serve --hash-password`\nprints for a password. docs/serve.md says more."
)]
pub struct Options {
    /// Where the page answers; port 0 takes a free one. Without an address this host alone can reach it.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:7460", value_parser = crate::listen::address)]
    listen: SocketAddr,
    /// Who may look and who may change something: a file with a role and a token on each line.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serve over TLS with this certificate, those of authorities between it and a root after it (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A name that this host is called by, beside its addresses. May be given several times.
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    #[command(flatten)]
    allowed: Allowed,
    /// Show the hosts of this fleet: the fleet.toml of `plimsoll fleet init`, or the NATS server's address.
    #[arg(long, value_name = "FLEET")]
    fleet: Option<String>,
    /// Serve on an address that others reach without asking for a token, or without TLS.
    #[arg(long)]
    insecure: bool,
    /// Read a password from standard input, print its hash for the token file, and end.
    #[arg(long, exclusive = true)]
    hash_password: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// An address that is taken or that others reach, a token file that is none.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    if options.hash_password {
        return password::print_hash();
    }
    let places = Places::from_environment()?;
    let tokens =
        options.token_file.as_deref().map(Tokens::read).transpose().map_err(refused::tokens)?;
    let allow = options.allowed.read()?;
    let files = options.tls_cert.as_deref().zip(options.tls_key.as_deref());
    let tls = files.map(|(certificate, key)| Tls::read(certificate, key)).transpose();
    let tls = tls.map_err(|error| CliError::environment(error.to_string()))?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let interrupt = interrupt::flag_on_signal()?;
    if options.insecure && !options.listen.ip().is_loopback() {
        let open = "can read all evidence, note something on it and start what is allowed: it asks for \
                    no token";
        let plain = "is not protected from those on the way, who can read tokens and evidence";
        let says = if tokens.is_none() { open } else { plain };
        notes::tell(&format!("warning: whoever reaches {} {says}", options.listen));
    }
    let of = places.clone();
    let serving = ServeOptions {
        listen: options.listen,
        tokens,
        tls,
        names: options.name.clone(),
        allow,
        places,
        roots: Box::new(move || catalogue::roots(&of)),
        team: team::asked().cloned(),
        hosts: options.fleet.as_deref().map(hosts).transpose()?,
    };
    let mut unsaid = None;
    let told = |at: SocketAddr| unsaid = say(scheme, at, common).err();
    serve(serving, options.insecure, &interrupt, told).map_err(refused::page)?;
    unsaid.map_or(Ok(Exit::Ok), Err)
}

/// Says where it answers, on stdout, so that scripts can wait for it.
fn say(scheme: &str, at: SocketAddr, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&json!({"url": format!("{scheme}://{at}/")}))?);
    }
    bundle::print(&format!("the page is at {scheme}://{at}/\n"))
}
