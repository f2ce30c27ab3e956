//! The web server: shows running and finished runs and their reports, for browsers and programs.
//!
//! | module | contents |
//! |---|---|
//! | `server` | listens for and limits connections; has the only asynchronous runtime |
//! | `connections` | limits on the number of connections per address |
//! | `routes` | all routes with the role that each requires; the router is built from them |
//! | `request`, `response` | the request that a page receives, and the response that it returns |
//! | `access`, `tokens` | access control: roles, sessions, forged requests, names of this host |
//! | `live` | the run that this server executes, and its current state |
//! | `events` | events that are sent to the viewers of a run |
//! | `draft` | checks a plan from a form: errors, permission to start it, expected cost |
//! | `catalogue` | the catalogue, the only module that converts names in requests to files |
//! | `fleet` | the hosts of a fleet, polled every few seconds |
//! | `team` | the team's catalogue, synchronised every few seconds |
//! | `reports` | cache of rendered reports |
//! | `tls` | certificate of the server |
//! | `sizing` | sizing requests to a model, from a form |
//! | `site` | the frame around every page, and the templates |
//! | `pages` | the pages, one per file; `api` returns the same contents as JSON |
//!
//! Pages are created by ordinary functions on threads that may block. Only connections are
//! asynchronous.
//!
//! # Where to change what
//!
//! - to add a page or route: a file in `pages` with its template, and a line in `routes.rs`. The
//!   access tests also use this line, and `pages/openapi.json` must match
//! - starting runs: `draft.rs` (forms), `draft/check.rs` (checks), `draft/job.rs` (fio jobs),
//!   `draft/on_hosts.rs` (fleets), `draft/model_limits.rs` (limits of models)
//! - access: `access.rs`, `tokens.rs`; limits on connections: `connections.rs`
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
    /// Names of this host, in addition to `localhost` and its addresses.
    pub names: Vec<String>,
    /// Targets that plans may use. If the list is empty, no plan that writes can be started.
    pub allow: Allow,
    /// Ledger and bundles.
    pub places: Places,
    /// Locations of runs.
    pub roots: FindRoots,
    /// The team's catalogue. It receives this user's runs and provides the runs of other users.
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
