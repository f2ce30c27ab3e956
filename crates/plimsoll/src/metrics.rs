//! `--metrics`: what is known of a run under way, for whoever asks over HTTP.

use std::net::SocketAddr;

use clap::Args;
use plimsoll_runner::live::door::{Door, Given};
use plimsoll_runner::live::metrics;
use plimsoll_runner::live::told::Told;

use crate::common::Common;
use crate::error::CliError;
use crate::listen;
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
        let progress = StderrProgress::new(common.quiet);
        let Some(at) = self.metrics else { return Ok(progress) };
        let told = Told::new(plan);
        let of = told.clone();
        let answers = move |path: &str| {
            let content_type = "text/plain; version=0.0.4; charset=utf-8";
            let known = path.split('?').next() == Some("/metrics");
            known.then(|| Given { content_type, body: metrics::text(&of.now()) })
        };
        let door = Door::open(at, Box::new(answers)).map_err(|error| {
            CliError::environment(format!("--metrics: cannot listen on {at}: {error}"))
                .hint("choose another port: 0 takes a free one")
        })?;
        let at = door.address();
        progress.say(&format!("metrics are at http://{at}/metrics"));
        if !at.ip().is_loopback() {
            progress.warn(&format!(
                "warning: whoever reaches {at} can read how the run goes: it asks for no password"
            ));
        }
        Ok(progress.telling(told, door))
    }
}
