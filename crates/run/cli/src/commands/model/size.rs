//! `plimsoll model size MODEL`: finds the smallest number of nodes (or disks) for a mail store.

use std::path::PathBuf;

use clap::Args;
use plimsoll_fitting::sizing::Question;
use plimsoll_model::size::{MailLoad, SizeRequest};
use plimsoll_plan::{DurationNs, SizeBytes};

use super::count::count;
use super::{settings, show};
use crate::commands::audit::write;
use crate::commands::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `model size`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model size adsf-hybrid --mailboxes 10000 --iops 0.2 \
        --mailbox-size 1GiB\n  plimsoll model size adsf-hybrid --mailboxes 10k --field \
        hdd.count --html size.html\n  plimsoll model size adsf-hybrid --mailboxes 10k --failed-nodes \
        2 --set replicate.copies=3\n\nThe result is modelled, not \
        measured. It shows how much the model's figures differ from published measurements.\nExit \
        codes: 0 a size passes, 1 no size in the range passes (with --failed-nodes: or none with \
        failed nodes)."
)]
pub struct Options {
    /// Name of a built-in model, or path of a model file.
    model: String,
    /// Number of mailboxes: 10000, 10,000 or 10k.
    #[arg(long, value_parser = count)]
    mailboxes: u64,
    /// Database I/Os per second for each mailbox.
    #[arg(long, default_value_t = 0.2)]
    iops: f64,
    /// Size of a mailbox.
    #[arg(long, default_value = "1GiB")]
    mailbox_size: SizeBytes,
    /// Number of databases. Default: one database for every 250 mailboxes.
    #[arg(long)]
    databases: Option<u32>,
    /// Maximum mean latency of database reads.
    #[arg(long, default_value = "20ms")]
    read_latency: DurationNs,
    /// Maximum mean latency of log writes.
    #[arg(long, default_value = "10ms")]
    log_latency: DurationNs,
    /// Parameter to vary in the search. Default: the first sizing parameter of the model.
    #[arg(long, value_name = "BLOCK.FIELD")]
    field: Option<String>,
    /// Smallest size to try. An invalid size, such as fewer nodes than copies, counts as too
    /// small.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Largest size to try.
    #[arg(long, default_value_t = 64)]
    to: u64,
    /// Number of failed nodes in a second search, which follows the search without failed nodes.
    /// 0: no second search. Default: 1 if the system still works after the loss of a node.
    #[arg(long, value_name = "NODES")]
    failed_nodes: Option<u64>,
    /// Change a parameter, such as model.failed_nodes=1.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// Seed of the simulations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a chart to this SVG file: latency against load, with one curve for each size.
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Write the result and charts as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Searches for the smallest size and shows the result.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let (from, to) = (options.from, options.to);
    if from > to {
        let says = format!("--from {from} is larger than --to {to}: there is no size between them");
        return Err(CliError::usage(says)
            .hint("--from must be the smallest size to try, and --to the largest"));
    }
    if options.mailboxes == 0 || options.iops == 0.0 {
        return Err(CliError::usage("the load is 0, so every size is large enough")
            .hint("set --mailboxes and --iops to values above 0"));
    }
    if !(options.iops > 0.0 && options.iops.is_finite()) {
        return Err(CliError::usage(format!("--iops {}: not a number above 0", options.iops)));
    }
    let databases = options.databases.unwrap_or_else(|| options.mailboxes.div_ceil(250) as u32);
    if databases == 0 {
        return Err(CliError::usage("--databases 0: a mail store has at least one database"));
    }
    // Below this rate, a simulation of 12,000 operations contains no database reads.
    let rate = options.mailboxes as f64 * options.iops;
    if rate < 1.0 {
        return Err(CliError::usage(format!(
            "{rate} I/Os/s for all mailboxes together: a sizing needs at least 1 I/O/s"
        ))
        .hint("set --mailboxes or --iops to a larger value"));
    }
    let bytes = options.mailboxes.saturating_mul(options.mailbox_size.0);
    let load =
        MailLoad { databases, database_bytes: bytes / u64::from(databases), rate_ios_per_s: rate };
    let request = SizeRequest {
        load,
        read_ns_max: options.read_latency.0,
        log_ns_max: options.log_latency.0,
        field: options.field.clone(),
        range: (from, to),
        seed: options.seed,
    };
    let (set, failed_nodes) = (settings(&options.set)?, options.failed_nodes);
    let answer = Question { model: &options.model, set, failed_nodes, request }.answer()?;
    if let Some(path) = &options.chart {
        write(path, &answer.chart().svg_document())?;
    }
    if let Some(path) = &options.html {
        write(path, &bundle::document_html(&answer.page())?)?;
    }
    match common.json {
        true => bundle::print(&bundle::json(&answer.as_json())?)?,
        false => show(&answer.document(), common)?,
    }
    Ok(if answer.is_found() { Exit::Ok } else { Exit::Fail })
}
