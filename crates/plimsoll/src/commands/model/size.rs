//! `plimsoll model size MODEL`: how many nodes (or disks) a mail store needs.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::run::Modelled;
use plimsoll_model::size::{Asked, MailLoad, SizeError, Sizing, Tried, size};
use plimsoll_plan::{DurationNs, SizeBytes};
use plimsoll_report::chart::plot::Dot;
use plimsoll_report::chart::{Axis, Mark, Plot, Rule};
use plimsoll_report::document::{Block, Document, Headline, Section};
use plimsoll_report::number::Unit;
use plimsoll_report::table::{Cell, Column, Table, Tone};
use serde_json::{Value, json};

use super::{model_error, settings, show};
use crate::commands::bundle;
use crate::common::Common;
use crate::error::CliError;
use crate::exit::Exit;

/// Options of `model size`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll model size adsf-hybrid --mailboxes 10000 --iops 0.2 \
    --mailbox-size 1GiB\n  plimsoll model size adsf-hybrid --mailboxes 10000 --set model.failed_nodes=1 \
    --field model.storage_nodes --chart line.svg\n\nExit codes: 0 a size passes, 1 none in the range does."
)]
pub struct Options {
    /// Name of a shipped model, or path of a model file.
    model: String,
    /// Mailboxes in all.
    #[arg(long)]
    mailboxes: u64,
    /// Database I/Os per second and mailbox.
    #[arg(long, default_value_t = 0.2)]
    iops: f64,
    /// Size of a mailbox.
    #[arg(long, default_value = "1GiB")]
    mailbox_size: SizeBytes,
    /// Databases; one for 250 mailboxes if not stated.
    #[arg(long)]
    databases: Option<u32>,
    /// Mean latency that database reads may have.
    #[arg(long, default_value = "20ms")]
    read_latency: DurationNs,
    /// Mean latency that log writes may have.
    #[arg(long, default_value = "10ms")]
    log_latency: DurationNs,
    /// The field that is searched; the model's first sizing field if not stated.
    #[arg(long, value_name = "BLOCK.FIELD")]
    field: Option<String>,
    /// Smallest size that is tried.
    #[arg(long, default_value_t = 3)]
    from: u64,
    /// Largest size that is tried.
    #[arg(long, default_value_t = 64)]
    to: u64,
    /// A parameter that differs from the model file, such as model.failed_nodes=1.
    #[arg(long, value_name = "BLOCK.FIELD=VALUE")]
    set: Vec<String>,
    /// Seed of the simulations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the chart of the load line against the size to this SVG file.
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
}

/// Searches and shows.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    if options.mailboxes == 0 || !(options.iops > 0.0 && options.iops.is_finite()) {
        return Err(CliError::usage("there is no load to size for")
            .hint("state mailboxes and I/Os per second and mailbox above 0"));
    }
    let model = Modelled::load(&options.model, &settings(&options.set)?)
        .map_err(|error| model_error(&error))?;
    let databases = options.databases.unwrap_or_else(|| options.mailboxes.div_ceil(250) as u32);
    let databases = databases.max(1);
    let bytes = options.mailboxes.saturating_mul(options.mailbox_size.0);
    let load = MailLoad {
        databases,
        database_bytes: bytes / u64::from(databases),
        rate_ios_per_s: options.mailboxes as f64 * options.iops,
    };
    let asked = Asked {
        load,
        read_ns_max: options.read_latency.0,
        log_ns_max: options.log_latency.0,
        field: options.field.clone(),
        range: (options.from, options.to.max(options.from)),
        seed: options.seed,
    };
    let sizing = size(&model, &asked).map_err(|error| match error {
        SizeError::Model(error) => model_error(&error),
        SizeError::NoField { .. } => CliError::usage(error.to_string()).hint("--field BLOCK.FIELD"),
    })?;
    if let Some(path) = &options.chart {
        std::fs::write(path, chart(&sizing, &asked).svg_document()).map_err(|error| {
            CliError::environment(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    if common.json {
        bundle::print(&bundle::json(&as_json(&sizing, &asked))?)?;
    } else {
        show(&document(&model, &sizing, &asked), common)?;
    }
    Ok(if sizing.smallest.is_some() { Exit::Ok } else { Exit::Fail })
}

fn smallest(sizing: &Sizing) -> Option<&Tried> {
    sizing.tried.iter().find(|tried| Some(tried.size) == sizing.smallest)
}

fn headroom(tried: &Tried, asked: &Asked) -> Option<f64> {
    tried.load_line_ios_per_s.map(|line| line / asked.load.rate_ios_per_s - 1.0)
}

fn as_json(sizing: &Sizing, asked: &Asked) -> Value {
    let tried = |tried: &Tried| {
        json!({
            "size": tried.size, "passes": tried.passes, "why": tried.why,
            "read_latency_ns": tried.read_ns, "log_latency_ns": tried.log_ns,
            "utilisation": tried.utilisation, "bottleneck": tried.bottleneck,
            "load_line_ios_per_s": tried.load_line_ios_per_s, "headroom": headroom(tried, asked),
        })
    };
    json!({
        "field": sizing.field,
        "required_ios_per_s": asked.load.rate_ios_per_s,
        "smallest": sizing.smallest,
        "headroom": smallest(sizing).and_then(|t| headroom(t, asked)),
        "next_bottleneck": smallest(sizing).map(|t| t.bottleneck.clone()),
        "tried": sizing.tried.iter().map(tried).collect::<Vec<_>>(),
    })
}

fn document(model: &Modelled, sizing: &Sizing, asked: &Asked) -> Document {
    let required = asked.load.rate_ios_per_s;
    let (word, tone, reason) = match smallest(sizing) {
        Some(least) => {
            let headroom = headroom(least, asked).unwrap_or(0.0);
            let says = format!(
                "modelled: the smallest that carries {required:.0} I/Os/s, with {:.0} % headroom; the \
                 next bottleneck is {}, now at {:.0} %.",
                100.0 * headroom,
                least.bottleneck,
                100.0 * least.utilisation.unwrap_or(0.0)
            );
            (format!("{} = {}", sizing.field, least.size), Tone::Good, says)
        }
        None => {
            let (low, high) = asked.range;
            let why = sizing.tried.last().map(|t| t.why.clone()).unwrap_or_default();
            let says = format!("modelled: none from {low} to {high} carries it; at {high}: {why}.");
            (format!("no {}", sizing.field), Tone::Bad, says)
        }
    };
    let mut table = Table::new(
        "",
        vec![
            Column::numbers(&sizing.field, "size"),
            Column::words("passes", "passes"),
            Column::of(Unit::Latency, "reads", "read_latency_ns"),
            Column::of(Unit::Latency, "log writes", "log_latency_ns"),
            Column::of(Unit::Share, "busiest", "utilisation"),
            Column::words("station", "bottleneck"),
            Column::of(Unit::Rate, "load line", "load_line_ios_per_s"),
            Column::remarks("why not", "why"),
        ],
    );
    for tried in &sizing.tried {
        let passes = if tried.passes { ("yes", Tone::Good) } else { ("no", Tone::Bad) };
        table.rows.push(vec![
            Cell::count(tried.size),
            Cell::text(passes.0).tone(passes.1),
            Cell::maybe(Unit::Latency, tried.read_ns),
            Cell::maybe(Unit::Latency, tried.log_ns),
            Cell::maybe(Unit::Share, tried.utilisation),
            Cell::text(tried.bottleneck.clone()),
            Cell::maybe(Unit::Rate, tried.load_line_ios_per_s),
            Cell::text(tried.why.clone()),
        ]);
    }
    table.note =
        "each size is simulated over 12,000 operations of a mail store's steady state, with \
        caches as they begin; load lines to about 5 %"
            .to_owned();
    Document {
        title: model.spec().name.clone(),
        headline: Headline { word, tone, reason, ..Headline::default() },
        sections: vec![Section::brief("sizes", "Sizes").with(Block::Table(table))],
        ..Document::default()
    }
}

/// Load line against size, with what is required.
fn chart(sizing: &Sizing, asked: &Asked) -> Plot {
    let dot = |tried: &Tried| {
        let y = tried.load_line_ios_per_s?;
        let label = if Some(tried.size) == sizing.smallest { "smallest that passes" } else { "" };
        Some(Dot { x: tried.size as f64, y, label: label.to_owned(), ..Dot::default() })
    };
    let dots = sizing.tried.iter().filter_map(dot).collect();
    let name = "load line".to_owned();
    Plot::new(
        "size",
        "Load line against size (modelled)",
        Axis::linear(&sizing.field, Unit::Count),
        Axis::linear("I/Os", Unit::Rate),
    )
    .mark(Mark::Dots { name, colour: 0, dots, joined: true })
    .rule(Rule::target(asked.load.rate_ios_per_s, "required"))
}
