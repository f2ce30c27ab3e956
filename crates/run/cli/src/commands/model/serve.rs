//! `plimsoll model serve MODEL --nfs ADDR`: serves a modelled system as a real NFS server.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use plimsoll_live::counters::CounterPoller;
use plimsoll_live::process_status;
use plimsoll_live::state_listener::StateListener;
use plimsoll_live::status_server::StatusServer;
use plimsoll_model::run::ConfiguredModel;
use plimsoll_model_serve::{Metrics, ServeError, ServeOptions, serve};
use serde_json::json;

use super::{model_error, settings};
use crate::address;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt;
use crate::metrics::serve_text;
use crate::notes;
use crate::places::Places;

/// Options of `model serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model serve zfs-flash --nfs 127.0.0.1:2049 --metrics \
        127.0.0.1:9464\n  mount -t nfs -o vers=3,tcp,nolock,port=2049,mountport=2049 127.0.0.1:/ \
        /mnt\n\nAll paths lead to the same export. The data is in memory and is lost when the \
        server ends."
)]
pub struct Options {
    /// Name of a built-in model, or path of a model file.
    model: String,
    /// Address at which NFS and MOUNT share one port. Port 0 selects a free port. If only a port is
    /// given, only this host can connect.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:2049", value_parser = address::listen)]
    nfs: SocketAddr,
    /// Address at which the model's statistics are served over HTTP, in the Prometheus text format.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = address::listen)]
    metrics: Option<SocketAddr>,
    /// Change a parameter. Use the names in the model file.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// Seed of the model's random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum memory for the stored data, in MiB.
    #[arg(long, default_value_t = 4096, value_name = "MIB")]
    memory: u64,
}

/// Serves until a signal ends it.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let model = ConfiguredModel::load(&options.model, &settings(&options.set)?)
        .map_err(|error| model_error(&error))?;
    let interrupt = interrupt::flag_on_signal()?;
    for at in std::iter::once(options.nfs).chain(options.metrics) {
        if !at.ip().is_loopback() {
            notes::tell(&format!(
                "warning: anyone who can reach {at} can read and write all served data, because no \
                 password is required and clients of every address are accepted"
            ));
        }
    }
    let serving =
        ServeOptions { nfs: options.nfs, seed: options.seed, memory_bytes: options.memory << 20 };
    let mut unsaid = None;
    let gauges = Arc::<Metrics>::default();
    let texts = Arc::clone(&gauges);
    let server = options.metrics.map(|at| serve_text(at, move || texts.text())).transpose()?;
    let metrics = server.as_ref().and_then(StatusServer::address);
    let reported = |nfs: SocketAddr| unsaid = say(&model, nfs, metrics, common).err();
    // Show the model on this user's web page.
    let _publication = publish_to_page(&model, &gauges);
    serve(&model, serving, gauges, &interrupt, reported).map_err(|error| match error {
        ServeError::Model(error) => model_error(&error),
        ServeError::Listen { .. } => {
            CliError::environment(error.to_string()).hint("use another port, or 0 for a free port")
        }
        ServeError::Thread(_) => CliError::environment(error.to_string()),
    })?;
    unsaid.map_or(Ok(Exit::Ok), Err)
}

/// Publishes the model's activity to this user's web page until the returned value is dropped.
fn publish_to_page(
    model: &ConfiguredModel,
    gauges: &Arc<Metrics>,
) -> Option<(CounterPoller, StatusServer)> {
    let reported = StateListener::new(&format!("model {}", model.spec().name));
    let door = process_status::serve(&Places::from_environment().ok()?, &reported).ok()?;
    let gauges = Arc::clone(gauges);
    let read = move || gauges.gauges().into_iter().map(|one| (one.name, one.value)).collect();
    Some((CounterPoller::begin(reported, read).ok()?, door))
}

/// Prints the address on stdout, for scripts that wait for it.
fn say(
    model: &ConfiguredModel,
    nfs: SocketAddr,
    metrics: Option<SocketAddr>,
    common: &Globals,
) -> Result<(), CliError> {
    let name = &model.spec().name;
    let url = format!("nfs://{}/model?nfsport={}&mountport={}", nfs.ip(), nfs.port(), nfs.port());
    if common.json {
        let metrics = metrics.map(|at| format!("http://{at}/metrics"));
        return bundle::print(&bundle::json(
            &json!({"model": name, "nfs": url, "metrics": metrics}),
        )?);
    }
    let mut text = format!("{name} answers at {url}\n");
    if let Some(at) = metrics {
        text.push_str(&format!("statistics are at http://{at}/metrics\n"));
    }
    bundle::print(&text)
}
