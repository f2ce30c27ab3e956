//! `plimsoll sweep`: I/O size × read share × pattern × depth, as one table and charts.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{Sweep, SweepPoint, remember};
use plimsoll_plan::{
    DurationNs, Plan, ResolvedPlan, SizeBytes, SweepRequest, sizes_from_text, sweep_plan,
};
use plimsoll_report::{markdown, sweep_csv, sweep_document, text};
use plimsoll_runner::session::Asked;
use plimsoll_runner::sweep::{self, Earlier, Sweeping};

use super::bundle;
use crate::arguments::Common;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::progress::StderrProgress;

/// Options of `sweep`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll sweep matrix.toml\n  plimsoll sweep --path /mnt/x --sizes \
    4KiB..128KiB --reads 100,75,50,25,0\n  plimsoll sweep --nfs nfs://10.0.0.5/e1 --nfs \
    nfs://10.0.0.5/e2 --metadata 5 --queue-depths 4,1 --quick\n\nEach point is a run with a bundle of \
    its own, on the same data. A sweep that was interrupted goes on where\nit stopped when the same \
    one is asked for again."
)]
pub struct Options {
    /// The plan; without one, the flags say what is swept over what.
    plan: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Begin anew where an earlier sweep of the same plan was interrupted.
    #[arg(long)]
    anew: bool,
    /// Say what would be done and how long it takes, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Measure nothing: tell again what the latest sweep of this plan found.
    #[arg(long, conflicts_with_all = ["anew", "dry_run"])]
    told: bool,
    /// Keep the data after the last point.
    #[arg(long)]
    keep: bool,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    /// In which form the result is printed.
    #[arg(long, default_value = "text")]
    format: Format,
}

/// A sweep without a plan.
#[derive(Debug, Args)]
struct Flags {
    /// A directory to make files in.
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    path: Option<String>,
    /// A block device.
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["plan", "path"])]
    device: Option<String>,
    /// An NFS export, nfs://host/export; each is a share.
    #[arg(long, value_name = "EXPORT", conflicts_with_all = ["plan", "path", "device"])]
    nfs: Vec<String>,
    /// Sizes of one transfer: 4KiB..128KiB doubles, or a list.
    #[arg(long, value_name = "SIZES", conflicts_with = "plan")]
    sizes: Option<String>,
    /// Read shares in percent.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', conflicts_with = "plan")]
    reads: Vec<f64>,
    /// Patterns: random, sequential, zipf, hot-cold…
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', conflicts_with = "plan")]
    patterns: Vec<String>,
    /// Operations that each client keeps outstanding.
    #[arg(long, value_name = "DEPTH", value_delimiter = ',', conflicts_with = "plan")]
    queue_depths: Vec<u32>,
    /// Share of metadata operations in percent (directories, NFS).
    #[arg(long, value_name = "PERCENT", conflicts_with = "plan")]
    metadata: Option<f64>,
    /// Clients; one per share unless said otherwise.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    clients: Option<u32>,
    /// Files per share.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    files: Option<u32>,
    /// Size of a file.
    #[arg(long, value_name = "SIZE", conflicts_with = "plan")]
    file_size: Option<SizeBytes>,
    /// Length of a point; ten minutes unless said otherwise.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["plan", "quick"])]
    measure: Option<DurationNs>,
    /// A first look: five seconds a point, which cannot show steady figures.
    #[arg(long, conflicts_with = "plan")]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Html,
    Markdown,
    Csv,
}

/// Sweeps.
///
/// # Errors
/// A plan or flags that are wrong, a target that cannot be used.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = match &options.plan {
        Some(path) => super::plan::load(path)?,
        None => from_flags(&options.flags)?,
    };
    let resolved = plan.resolve();
    let points = resolved.points();
    if points.is_empty() {
        return Err(CliError::usage("only a plan with [workload.matrix] can be swept")
            .hint("name a plan with lists of sizes, reads, patterns or queue depths"));
    }
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let places = keys::places(&options.sign)?;
    let bundles = places.bundles(options.out.as_deref())?;
    let which = match (options.anew, options.told) {
        (true, _) => Earlier::Left,
        (_, true) => Earlier::Whole,
        _ => Earlier::Unfinished,
    };
    let mut sweeping = Sweeping::begin(&resolved, &points, &bundles, &places, which)?;
    if options.told {
        if sweeping.sweep.points.is_empty() {
            let says = format!("there is no sweep of this plan in {}", bundles.display());
            return Err(CliError::usage(says).hint("sweep first, or name its directory with --out"));
        }
        show(&sweeping, options.format, common)?;
        return Ok(exit(&sweeping.sweep));
    }
    let left = points.iter().filter(|point| !sweeping.has(&point.label)).count();
    progress.say(&promise(&resolved, points.len(), left));
    if options.dry_run {
        return Ok(Exit::Ok);
    }
    let asked = Asked {
        plan: &plan,
        resolved: &resolved,
        keep: options.keep,
        witness: None,
        destroy: &options.destroy,
        bundles: &bundles,
        places: &places,
        interrupt: &interrupt,
    };
    let swept = sweep::carry_out(&asked, &points, &mut sweeping, &mut progress)?;
    for directory in swept.kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    show(&sweeping, options.format, common)?;
    Ok(swept.ended.unwrap_or_else(|| exit(&sweeping.sweep)))
}

/// Tells a sweep again from its directory: what it is from its record, its points from their bundles, judged
/// anew.
///
/// # Errors
/// A directory without bundles, or with one that cannot be read.
pub fn tell_again(directory: &Path, common: &Common) -> Result<Exit, CliError> {
    let told: Sweep = experiment::result_of(directory)?;
    let order: Vec<String> = told.points.iter().map(|point| point.label.clone()).collect();
    let together = Reader::new().load_all(directory)?;
    let judged = together.runs.iter().map(|run| SweepPoint::of(&run.bundle, &run.verdict));
    let points = judged.flatten().filter(|point| order.contains(&point.label));
    let mut sweep = Sweep { points: points.collect(), ..told };
    // A point may have been measured again after its bundle was damaged: the latest counts.
    let latest: Vec<usize> = order
        .iter()
        .filter_map(|label| sweep.points.iter().rposition(|point| point.label == *label))
        .collect();
    sweep.points = latest.into_iter().map(|at| sweep.points[at].clone()).collect();
    sweep.remember = remember(&sweep.points);
    if common.json {
        bundle::print(&bundle::json(&sweep)?)?;
    } else {
        bundle::print(&text::document(&sweep_document(&sweep), &bundle::style(common)))?;
    }
    bundle::print_custody(&together.lines(), common)?;
    Ok(together.weigh(Exit::Ok))
}

/// What all points come to.
fn exit(sweep: &Sweep) -> Exit {
    let any = |kind| sweep.points.iter().any(|point| point.verdict == kind);
    if any(VerdictKind::Invalid) || any(VerdictKind::Inconclusive) {
        Exit::NoVerdict
    } else if any(VerdictKind::Fail) {
        Exit::Fail
    } else {
        Exit::Ok
    }
}

fn from_flags(flags: &Flags) -> Result<Plan, CliError> {
    let default = SweepRequest::default();
    let mut targets: Vec<String> = flags.nfs.clone();
    targets.extend(flags.path.clone());
    targets.extend(flags.device.clone());
    if targets.is_empty() {
        return Err(CliError::usage("there is nothing to sweep over")
            .hint("name a plan, or a target with --path, --device or --nfs"));
    }
    let sizes = match &flags.sizes {
        Some(text) => sizes(text)?,
        None => default.sizes,
    };
    let or = |given: &[f64], default: Vec<f64>| {
        if given.is_empty() { default } else { given.to_vec() }
    };
    let request = SweepRequest {
        targets,
        sizes,
        read_percents: or(&flags.reads, default.read_percents),
        patterns: if flags.patterns.is_empty() { default.patterns } else { flags.patterns.clone() },
        queue_depths: if flags.queue_depths.is_empty() {
            default.queue_depths
        } else {
            flags.queue_depths.clone()
        },
        metadata_percent: flags.metadata.unwrap_or(default.metadata_percent),
        clients: flags.clients,
        files: flags.files.unwrap_or(default.files),
        file_size: flags.file_size,
        measure: flags.measure.or(default.measure),
        quick: flags.quick,
    };
    sweep_plan(&request).map_err(|errors| CliError::usage(errors.to_string()))
}

/// Sizes separated by commas, each a size or a range that doubles.
fn sizes(given: &str) -> Result<Vec<SizeBytes>, CliError> {
    let mut all = Vec::new();
    for part in given.split(',') {
        let sizes = sizes_from_text(part.trim())
            .map_err(|error| CliError::usage(format!("--sizes {part}: {error}")))?;
        all.extend(sizes);
    }
    Ok(all)
}

/// How long it will take, up front.
fn promise(plan: &ResolvedPlan, points: usize, left: usize) -> String {
    let phases = &plan.phases;
    let each_ns = phases.warm_up_ns + phases.measure_ns;
    let total = plimsoll_report::elapsed(each_ns as f64 * left as f64);
    let all = if left < points {
        format!("{left} of {points} points are left")
    } else {
        format!("{points} points")
    };
    let each = plimsoll_report::elapsed(each_ns as f64);
    let bytes = plan.workload.matrix().and_then(|matrix| {
        let each = matrix.streams.iter().map(|stream| stream.files.total_bytes());
        each.sum::<Option<u64>>()
    });
    let data = match bytes {
        Some(bytes) => format!("making {} of data once", SizeBytes(bytes)),
        None => "filling the device once".to_owned(),
    };
    let verify = if phases.verify { ", and checking all of it after each point" } else { "" };
    format!("{all} of {each}: {total}, beside {data}{verify}")
}

fn show(sweeping: &Sweeping, format: Format, common: &Common) -> Result<(), CliError> {
    let sweep = &sweeping.sweep;
    if common.json {
        return bundle::print(&bundle::json(sweep)?);
    }
    let document = sweep_document(sweep);
    let out = match format {
        Format::Text => {
            let mut text = text::document(&document, &bundle::style(common));
            if let Some(experiment) = &sweeping.experiment {
                text.push_str(&format!("\nreport: {}\n", experiment.report().display()));
            }
            text
        }
        Format::Html => bundle::document_html(&document)?,
        Format::Markdown => markdown::document(&document),
        Format::Csv => sweep_csv(sweep),
    };
    bundle::print(&out)
}
