//! What is known of a run under way, for whoever asks: over HTTP (`--metrics`), and this user's other processes.

use std::net::SocketAddr;

use clap::Args;
use plimsoll_runner::live::state_listener::StateListener;
use plimsoll_runner::live::status_server::{Response, StatusServer};
use plimsoll_runner::live::{metrics, process_status};

use crate::common::Common;
use crate::error::CliError;
use crate::listen;
use crate::places::Places;
use crate::progress::StderrProgress;

/// The option of commands that run.
#[derive(Clone, Debug, Default, Args)]
pub struct Metrics {
    /// Serve what is known of the run over HTTP while it goes on, in the Prometheus text format. Without an address this host
    /// alone can reach it; port 0 takes a free one.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen::address)]
    metrics: Option<SocketAddr>,
}

impl Metrics {
    /// Whether they are asked for.
    pub fn is_asked(&self) -> bool {
        self.metrics.is_some()
    }

    /// Progress of a plan on stderr, and to those who ask where they may.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn progress(&self, plan: &str, common: &Common) -> Result<StderrProgress, CliError> {
        let told = StateListener::new(plan);
        let places = Places::from_environment().ok();
        // Where there is no place for it the page can't show the run meanwhile, and all else is as it would be.
        let door = places.and_then(|places| process_status::serve(&places, &told).ok());
        let progress = StderrProgress::new(common.quiet);
        let Some(at) = self.metrics else {
            return Ok(match door {
                Some(door) => progress.telling(told, vec![door]),
                None => progress,
            });
        };
        let of = told.clone();
        let answers = move |path: &str| {
            let content_type = "text/plain; version=0.0.4; charset=utf-8";
            let known = path.split('?').next() == Some("/metrics");
            known.then(|| Response { content_type, body: metrics::text(&of.state()) })
        };
        let metrics = StatusServer::open(at, Box::new(answers)).map_err(|error| {
            CliError::environment(format!("--metrics: cannot listen on {at}: {error}"))
                .hint("choose another port: 0 takes a free one")
        })?;
        let at = metrics.address().unwrap_or(at);
        progress.say(&format!("metrics are at http://{at}/metrics"));
        if !at.ip().is_loopback() {
            progress.warn(&format!(
                "warning: whoever reaches {at} can read how the run goes: it asks for no password"
            ));
        }
        Ok(progress.telling(told, door.into_iter().chain([metrics]).collect()))
    }
}
