//! `plimsoll model size MODEL`: how many nodes (or disks) a mail store needs.

use std::path::PathBuf;

use clap::Args;
use plimsoll_model::run::Modelled;
use plimsoll_model::size::{Asked, Band, MailLoad, SizeError, Sizing, Tried, size};
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
    --mailbox-size 1GiB\n  plimsoll model size adsf-hybrid --mailboxes 10k --field model.storage_nodes \
    --failed-nodes 2 --chart line.svg\n\nThe answer is a model's: it says how far that model lay from published \
    systems.\nExit codes: 0 a size passes, 1 none in the range does."
)]
pub struct Options {
    /// Name of a shipped model, or path of a model file.
    model: String,
    /// Mailboxes in all: 10000, 10,000 or 10k.
    #[arg(long, value_parser = count)]
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
    /// Nodes that have failed in the question that is asked beside that of the whole system; 0: it is not asked.
    #[arg(long, default_value_t = 1, value_name = "NODES")]
    failed_nodes: u64,
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

/// A count as people write it: `10000`, `10,000`, `10k`, `1.5k`, `2M`.
fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text} is no count: write 10000, 10,000 or 10k");
    let (number, times) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000.0),
        None => match text.strip_suffix(['m', 'M']) {
            Some(number) => (number, 1_000_000.0),
            None => (text, 1.0),
        },
    };
    let mut groups = number.split(',');
    let first = groups.next().unwrap_or_default();
    let grouped = number.contains(',');
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    if grouped && (!(1..=3).contains(&first.len()) || !groups.all(is_group)) {
        return Err(wrong());
    }
    let plain = number.replace(',', "");
    if !plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let value = plain.parse::<f64>().map_err(|_| wrong())? * times;
    // Up to 2^53 every whole number is one of these.
    let whole = value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value);
    if whole { Ok(value as u64) } else { Err(wrong()) }
}

/// Searches and shows.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let (from, to) = (options.from, options.to);
    if from == 0 || from > to {
        let says = if from == 0 {
            "a size of 0 carries nothing".to_owned()
        } else {
            format!("--from {from} is larger than --to {to}: there is no size between them")
        };
        return Err(CliError::usage(says)
            .hint("--from is the smallest size that is tried, --to the largest"));
    }
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
        range: (from, to),
        seed: options.seed,
    };
    let sizing = size(&model, &asked).map_err(told)?;
    let failed = with_failed_nodes(options, &sizing, &asked)?;
    let band = Band::of(&model);
    if let Some(path) = &options.chart {
        std::fs::write(path, chart(&sizing, &asked).svg_document()).map_err(|error| {
            CliError::environment(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    if common.json {
        let mut told = as_json(&sizing, &asked);
        told["failed"] = failed.as_ref().map_or(Value::Null, |(nodes, sizing)| {
            let mut told = as_json(sizing, &asked);
            told["failed_nodes"] = json!(nodes);
            told
        });
        told["modelled_over_published"] = band.map_or(Value::Null, |band| {
            json!({ "settings": band.settings, "least": band.ratio.0, "largest": band.ratio.1 })
        });
        bundle::print(&bundle::json(&told)?)?;
    } else {
        show(&document(&model, &sizing, failed.as_ref(), band, &asked), common)?;
    }
    Ok(if sizing.smallest.is_some() { Exit::Ok } else { Exit::Fail })
}

fn told(error: SizeError) -> CliError {
    match error {
        SizeError::Model(error) => model_error(&error),
        SizeError::NoField { .. } => CliError::usage(error.to_string()).hint("--field BLOCK.FIELD"),
    }
}

/// The same question with nodes that failed, from the size on that carries it without; `None`: the model has no
/// nodes that could, nothing carries it, or it was asked with `--set`.
fn with_failed_nodes(
    options: &Options,
    whole: &Sizing,
    asked: &Asked,
) -> Result<Option<(u64, Sizing)>, CliError> {
    const FIELD: &str = "model.failed_nodes";
    let set = options.set.iter().any(|set| set.starts_with(FIELD));
    let (Some(smallest), false, 1..) = (whole.smallest, set, options.failed_nodes) else {
        return Ok(None);
    };
    let with = format!("{FIELD}={}", options.failed_nodes);
    let set: Vec<String> = options.set.iter().cloned().chain([with]).collect();
    // A model without nodes has no such field.
    let Ok(model) = Modelled::load(&options.model, &settings(&set)?) else { return Ok(None) };
    let asked = Asked { range: (smallest, asked.range.1), ..asked.clone() };
    // A system of one node can't be built without it: then there is nothing to ask.
    Ok(size(&model, &asked).ok().map(|sizing| (options.failed_nodes, sizing)))
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

/// What is said of how far the load line may be off.
fn band_says(line: f64, required: f64, band: Option<Band>) -> String {
    let Some(band) = band else {
        return "How far this model lies from a real system is not known: it has no record of published ones.".to_owned();
    };
    let (low, high) = band.about(line);
    let (least, largest) = band.ratio;
    let sure =
        if low >= required { "also at the low end" } else { "not at the low end: plan for more" };
    format!(
        "The load line of {line:.0} I/Os/s may be {low:.0} to {high:.0}: in {} published settings the model gave \
         {least:.2} to {largest:.2} times what was published. It carries the load {sure}.",
        band.settings
    )
}

fn document(
    model: &Modelled,
    sizing: &Sizing,
    failed: Option<&(u64, Sizing)>,
    band: Option<Band>,
    asked: &Asked,
) -> Document {
    let required = asked.load.rate_ios_per_s;
    let mut said = Vec::new();
    let (word, reason) = match smallest(sizing) {
        Some(least) => {
            let headroom = headroom(least, asked).unwrap_or(0.0);
            let says = format!(
                "modelled: the smallest that carries {required:.0} I/Os/s, with {:.0} % headroom; the \
                 next bottleneck is {}, now at {:.0} %.",
                100.0 * headroom,
                least.bottleneck,
                100.0 * least.utilisation.unwrap_or(0.0)
            );
            said.extend(least.load_line_ios_per_s.map(|line| band_says(line, required, band)));
            (format!("MODELLED: {} = {}", sizing.field, least.size), says)
        }
        None => {
            let (low, high) = asked.range;
            let why = sizing.tried.last().map(|t| t.why.clone()).unwrap_or_default();
            let says = format!("modelled: none from {low} to {high} carries it; at {high}: {why}.");
            (format!("MODELLED: no {}", sizing.field), says)
        }
    };
    if let Some((nodes, sizing)) = failed {
        let nodes = if *nodes == 1 { "a node".to_owned() } else { format!("{nodes} nodes") };
        said.push(match sizing.smallest {
            Some(size) => format!("With {nodes} failed it takes {} = {size}.", sizing.field),
            None => format!(
                "With {nodes} failed no {} up to {} carries it.",
                sizing.field, asked.range.1
            ),
        });
    }
    let mut sections = Vec::new();
    if !said.is_empty() {
        sections.push(Section::brief("sure", "How sure that is").with(Block::List(said)));
    }
    sections.push(Section::brief("sizes", "Sizes").with(Block::Table(sizes(sizing))));
    if let Some((_, sizing)) = failed {
        let section = Section::brief("failed", "Sizes with what failed");
        sections.push(section.with(Block::Table(sizes(sizing))));
    }
    // Neither green nor red: nothing was measured, and nobody shall take it for a verdict.
    let headline = Headline { word, tone: Tone::Plain, reason, ..Headline::default() };
    Document { title: model.spec().name.clone(), headline, sections, ..Document::default() }
}

fn sizes(sizing: &Sizing) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::numbers(&sizing.field, "size"),
            Column::words("modelled", "passes"),
            Column::of(Unit::Latency, "reads", "read_latency_ns"),
            Column::of(Unit::Latency, "log writes", "log_latency_ns"),
            Column::of(Unit::Share, "busiest", "utilisation"),
            Column::words("station", "bottleneck"),
            Column::of(Unit::Rate, "load line", "load_line_ios_per_s"),
            Column::remarks("why not", "why"),
        ],
    );
    for tried in &sizing.tried {
        let passes =
            if tried.passes { ("carries it", Tone::Strong) } else { ("does not", Tone::Faint) };
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
    table
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_understood_as_people_write_them_or_refused_in_words() {
        for (text, value) in [
            ("10000", 10_000),
            ("10,000", 10_000),
            ("10k", 10_000),
            ("1.5k", 1_500),
            ("2M", 2_000_000),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["10,00", "1,0000", ",000", "-1", "1.5", "10 k", "", "k", "1e3", "ten", "10kk"]
        {
            assert!(count(text).is_err_and(|says| says.contains("10,000 or 10k")), "{text}");
        }
    }

    #[test]
    fn the_band_is_that_of_the_models_own_record() {
        let model = Modelled::load("adsf-hybrid", &Default::default()).ok();
        let band = model
            .and_then(|model| Band::of(&model))
            .map(|band| (band.settings, band.about(1_110.0)));
        assert_eq!(band.map(|(settings, _)| settings), Some(7));
        let (low, high) = band.map(|(_, band)| band).unwrap_or_default();
        assert!((low - 1_000.0).abs() < 0.5 && (high - 1_563.4).abs() < 0.5, "{low} {high}");
        assert!(band_says(1_110.0, 1_050.0, None).contains("not known"));
    }
}
