//! The web server: shows running and finished runs and their reports, for browsers and programs.
//!
//! | file | what |
//! |---|---|
//! | `server` | listens, bounds connections, and brings the one asynchronous runtime of this program |
//! | `connections` | limits of connections per address |
//! | `routes` | every route with the role that it asks for: the router is made of this table |
//! | `request`, `response` | a request as pages get it, and what they give back |
//! | `access`, `tokens` | who may ask for what: roles, sessions, forged requests, names of this host |
//! | `live` | the one run that this server carries out, and what is known of it |
//! | `events` | what is sent to those who watch it |
//! | `draft` | a plan from a form: what is wrong with it, whether it may be started here, what it will take |
//! | `catalogue` | the catalogue, by which alone a request reaches a file |
//! | `fleet` | the hosts of a fleet, asked every few seconds |
//! | `team` | the team's catalogue, asked every few seconds |
//! | `reports` | reports that were drawn, so that they are not drawn for each viewer |
//! | `tls` | the certificate that the page is served with |
//! | `sizing` | a question to a model, from a form |
//! | `site` | the frame around every page, and its templates |
//! | `pages` | a page a file; `api` gives the same to programs |
//!
//! Pages are created by ordinary functions on threads that may block. Only connections are
//! asynchronous.
//!
//! # Where to change what
//!
//! - a page or route: a file in `pages` with its template, and a line in `routes.rs`, which the
//!   access tests also use; `pages/openapi.json` must match
//! - starting runs: `draft.rs` (forms), `draft/check.rs` (checks), `draft/job.rs` (fio jobs),
//!   `draft/on_hosts.rs` (fleets), `draft/model_limits.rs` (limits of models)
//! - access: `access.rs`, `tokens.rs`; connection limits: `connections.rs`
//! - runs of other processes: `live/other_processes.rs`
//! - browser tests: `run/cli/tests/page` (`PLIMSOLL_SCREENSHOTS=DIR` saves pictures); Grafana:
//!   `contrib/grafana/plimsoll.json`, checked by `run/cli/tests/serve/serve.rs`

mod access;
mod catalogue;
mod connections;
mod draft;
mod events;
mod fleet;
mod live;
mod pages;
mod reports;
mod request;
mod response;
mod routes;
mod server;
mod site;
mod sizing;
mod team;
mod tls;
mod tokens;

use std::net::SocketAddr;

use plimsoll_catalogue::{Roots, TeamClient};
use plimsoll_runner::allow::Allow;
use plimsoll_runner::places::Places;

pub use access::WriteLog;
pub use fleet::{FindHosts, FleetRunner};
pub use server::serve;
pub use tls::{Tls, TlsError};
pub use tokens::{Tokens, TokensError};

/// Function that returns the current locations of a user's runs.
pub type FindRoots = Box<dyn Fn() -> Roots + Send + Sync>;

/// Options of the server.
pub struct ServeOptions {
    /// Address of the server; port 0 selects a free port.
    pub listen: SocketAddr,
    /// Accepted tokens; `None` grants every request the role `run`.
    pub tokens: Option<Tokens>,
    /// Certificate of the server; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// Additional names of this host, besides `localhost` and addresses.
    pub names: Vec<String>,
    /// Targets that plans may use. If the list is empty, no plan that writes can be started.
    pub allow: Allow,
    /// Ledger and bundles.
    pub places: Places,
    /// Locations of runs.
    pub roots: FindRoots,
    /// The team's catalogue: receives this user's runs, and provides those of others.
    pub team: Option<TeamClient>,
    /// The hosts of a fleet, which the overview shows.
    pub hosts: Option<FindHosts>,
    /// Starts plans on the hosts of the fleet; `None` if this is not allowed.
    pub fleet_runner: Option<Box<dyn FleetRunner>>,
    /// Function that writes a line of the log. Logins, wrong tokens, starts and changes are logged,
    /// each with its user.
    pub log: WriteLog,
}

/// Reason why the server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used for listening.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// Other hosts can reach the address, no token is required, and `--insecure` was not given.
    #[error("cannot serve on {0}: other hosts can reach this address, and no token is required")]
    Open(SocketAddr),
    /// Other hosts can reach the address, TLS is off, and `--insecure` was not given.
    #[error(
        "cannot serve on {0}: other hosts can reach this address, and the connection is not \
        encrypted"
    )]
    Plain(SocketAddr),
    /// Threads or random numbers are not available.
    #[error("{0}")]
    System(String),
    /// A template of this program has a defect.
    #[error("cannot read the template of a page: {0}")]
    Template(String),
}
