//! Publishes the live state of a run: over HTTP (`--metrics`), and to this user's other processes.

use std::net::SocketAddr;

use clap::Args;
use plimsoll_live::state_listener::StateListener;
use plimsoll_live::status_server::{Response, StatusServer};
use plimsoll_live::{metrics, process_status};

use crate::address;
use crate::common::Globals;
use crate::error::CliError;
use crate::places::Places;
use crate::progress::StderrProgress;

/// Option that every command that runs plans accepts.
#[derive(Clone, Debug, Default, Args)]
pub struct Metrics {
    /// Serve metrics of the run over HTTP, in the Prometheus text format. If only a port is given,
    /// only this host can connect. Port 0 selects a free port.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = address::listen)]
    metrics: Option<SocketAddr>,
}

impl Metrics {
    /// Returns true if metrics are requested.
    pub fn is_requested(&self) -> bool {
        self.metrics.is_some()
    }

    /// Returns the progress display for a plan. The display also publishes the live state of the
    /// run.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn progress(&self, plan: &str, common: &Globals) -> Result<StderrProgress, CliError> {
        let listener = StateListener::new(plan);
        let places = Places::from_environment().ok();
        // If the socket cannot be created, the run is not shown on the page. This has no other
        // effect.
        let server = places.and_then(|places| process_status::serve(&places, &listener).ok());
        let progress = StderrProgress::new(common.quiet);
        let Some(at) = self.metrics else {
            return Ok(match server {
                Some(server) => progress.publishing(listener, vec![server]),
                None => progress,
            });
        };
        let of = listener.clone();
        let metrics = serve_text(at, move || metrics::text(&of.state()))?;
        let at = metrics.address().unwrap_or(at);
        progress.say(&format!("metrics are at http://{at}/metrics"));
        if !at.ip().is_loopback() {
            progress.warn(&format!(
                "warning: anyone who can reach {at} can read the metrics, because no password is \
                 required"
            ));
        }
        Ok(progress.publishing(listener, server.into_iter().chain([metrics]).collect()))
    }
}

/// Serves the text that a function returns at `/metrics`, until the returned server is dropped.
///
/// # Errors
/// The address cannot be used.
pub fn serve_text(
    at: SocketAddr,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> Result<StatusServer, CliError> {
    let handler = move |path: &str| {
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        let known = path.split('?').next() == Some("/metrics");
        known.then(|| Response { content_type, body: text() })
    };
    StatusServer::open(at, Box::new(handler)).map_err(|error| {
        CliError::environment(format!("--metrics: cannot listen on {at}: {error}"))
            .hint("use another port, or 0 for a free port")
    })
}
