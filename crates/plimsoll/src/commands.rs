//! One file per command.

pub mod after;
pub mod agent;
pub mod arms;
pub mod audit;
pub mod bundle;
pub mod calibrate;
pub mod chosen;
pub mod clean;
pub mod compare;
pub mod compare_reported;
pub mod compare_sweeps;
pub mod completions;
pub mod experiment;
pub mod job;
pub mod judge;
pub mod ledger;
pub mod man;
pub mod model;
pub mod observe;
pub mod plan;
pub mod quickstart;
pub mod report;
pub mod run;
pub mod runs;
pub mod serve;
pub mod sides;
pub mod sweep;
pub mod tune;
pub mod verify;

use std::net::SocketAddr;

/// An address with its port, or a port of this host's own (127.0.0.1).
///
/// # Errors
/// Neither is written there.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let own = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let port = text.parse().map(own);
    port.or_else(|_| text.parse())
        .map_err(|_| "write a port, or an address with its port such as 192.0.2.7:2049".to_owned())
}
