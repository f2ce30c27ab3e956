//! `plimsoll serve`: the web page.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use plimsoll_serve::{ServeError, ServeOptions, Tokens, TokensError, serve};
use serde_json::json;

use super::bundle;
use crate::catalogue;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::notes;
use crate::places::Places;

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll serve                      look at this user's runs: \
    http://127.0.0.1:7460\n  plimsoll serve --listen 0           on a port that is free\n  plimsoll serve \
    --listen 192.0.2.7:7460 --token-file /etc/plimsoll/tokens\n  ssh -L 7460:127.0.0.1:7460 HOST     to look \
    from elsewhere without opening a port\n\nA line of the token file is `view TOKEN` or `run TOKEN`. The page is \
    plain HTTP: put a proxy with TLS before\nit where others share the network. docs/serve.md says more."
)]
pub struct Options {
    /// Where the page answers; port 0 takes a free one. Without an address this host alone can reach it.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:7460", value_parser = super::listen_address)]
    listen: SocketAddr,
    /// Who may look and who may change something: a file with a role and a token on each line.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A name that this host is called by, beside its addresses. May be given several times.
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// Serve on an address that others reach without asking for a token.
    #[arg(long, conflicts_with = "token_file")]
    insecure: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// An address that is taken or that others reach, a token file that is none.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let places = Places::from_environment()?;
    let tokens = options.token_file.as_deref().map(Tokens::read).transpose().map_err(no_tokens)?;
    let interrupt = interrupt::flag_on_signal()?;
    if options.insecure && !options.listen.ip().is_loopback() {
        notes::tell(&format!(
            "warning: whoever reaches {} can read all evidence and note something on it: it asks \
             for no token",
            options.listen
        ));
    }
    let of = places.clone();
    let serving = ServeOptions {
        listen: options.listen,
        tokens,
        names: options.name.clone(),
        places,
        roots: Box::new(move || catalogue::roots(&of)),
    };
    let mut unsaid = None;
    let told = |at: SocketAddr| unsaid = say(at, common).err();
    serve(serving, options.insecure, &interrupt, told).map_err(|error| {
        let says = CliError::environment(error.to_string());
        match error {
            ServeError::Listen { .. } => says.hint("choose another port: 0 takes a free one"),
            ServeError::Open(_) => CliError::usage(error.to_string())
                .hint("name a file of tokens: --token-file FILE")
                .hint("or say that everybody may do everything: --insecure"),
            ServeError::Template(_) => CliError::new(Exit::Defect, error.to_string()),
            ServeError::System(_) => says,
        }
    })?;
    unsaid.map_or(Ok(Exit::Ok), Err)
}

fn no_tokens(error: TokensError) -> CliError {
    let says = CliError::usage(error.to_string());
    match error {
        TokensError::Unreadable { .. } => CliError::environment(error.to_string()),
        TokensError::Public(path) => says.hint(format!("chmod 600 {}", path.display())),
        TokensError::Line { .. } | TokensError::Empty(_) => {
            says.hint("a line is `view TOKEN` or `run TOKEN`")
        }
    }
}

/// Says where it answers, on stdout, so that scripts can wait for it.
fn say(at: SocketAddr, common: &Common) -> Result<(), CliError> {
    if common.json {
        return bundle::print(&bundle::json(&json!({"url": format!("http://{at}/")}))?);
    }
    bundle::print(&format!("the page is at http://{at}/\n"))
}
