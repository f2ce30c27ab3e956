//! `plimsoll sweep`: I/O size × read share × pattern × depth, as one table and charts.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{Sweep, SweepPoint, remember};
use plimsoll_plan::{
    DurationNs, MatrixPoint, Plan, ResolvedPlan, SizeBytes, SweepRequest, sizes_from_text,
    sweep_plan,
};
use plimsoll_report::{markdown, sweep_csv, sweep_document, text};

use super::bundle;
use crate::arguments::Common;
use crate::custody::{Loaded, Reader};
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{self, Experiment};
use crate::interrupt;
use crate::kept_data::DataSlot;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::session::{Request, run_once};

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
    let mut sweeping = Sweeping::begin(&resolved, &points, &bundles, &places, options)?;
    if options.told {
        if sweeping.sweep.points.is_empty() {
            let says = format!("there is no sweep of this plan in {}", bundles.display());
            return Err(CliError::usage(says).hint("sweep first, or name its directory with --out"));
        }
        show(&sweeping, options.format, common)?;
        return Ok(exit(&sweeping.sweep));
    }
    let left: Vec<&MatrixPoint> = points.iter().filter(|p| !sweeping.has(&p.label)).collect();
    progress.say(&promise(&resolved, points.len(), left.len()));
    if options.dry_run {
        return Ok(Exit::Ok);
    }
    let data = DataSlot::handed_on();
    let mut ended = None;
    for point in left {
        progress.say(&format!("point {} of {}: {}", point.index + 1, points.len(), point.label));
        let place = sweeping.open(&resolved, &bundles, &places)?.next(&point.label);
        let directory = sweeping.open(&resolved, &bundles, &places)?.directory().to_path_buf();
        let request = Request {
            plan: &plan,
            resolved: &point.plan,
            keep: options.keep,
            witness: None,
            destroy: &options.destroy,
            bundles: &directory,
            places: &places,
            interrupt: &interrupt,
            experiment: Some(place),
            data: &data,
        };
        let finished = match run_once(&request, &mut progress) {
            Ok(finished) => finished,
            Err(error) => {
                data.finish(options.keep)?;
                return Err(error);
            }
        };
        let completed = finished.evidence.run.end.kind == EndKind::Completed;
        if completed {
            sweeping.take(&finished.evidence, &finished.verdict, &points)?;
            progress.say(&told(sweeping.sweep.points.iter().find(|p| p.label == point.label)));
        }
        if !completed || interrupt.load(Ordering::Relaxed) {
            ended = Some(if completed { Exit::Interrupted } else { finished.exit() });
            break;
        }
    }
    for directory in data.finish(options.keep)? {
        progress.say(&format!("the data was kept in {directory}"));
    }
    show(&sweeping, options.format, common)?;
    Ok(ended.unwrap_or_else(|| exit(&sweeping.sweep)))
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

fn told(point: Option<&SweepPoint>) -> String {
    let Some(point) = point else { return String::new() };
    let rate = point.rate_per_s.map_or("nothing measured".to_owned(), |r| format!("{r:.0}/s"));
    let latency = point.latency_ns_avg.map_or(String::new(), |ns| {
        format!(", {} on average", plimsoll_report::elapsed(ns as f64))
    });
    format!("        {rate}{latency}, {}", point.verdict)
}

/// A sweep under way, with what an earlier part of it left.
struct Sweeping {
    sweep: Sweep,
    experiment: Option<Experiment>,
}

impl Sweeping {
    /// Goes on with an interrupted sweep of the same plan, or begins one.
    fn begin(
        plan: &ResolvedPlan,
        points: &[MatrixPoint],
        bundles: &Path,
        places: &Places,
        options: &Options,
    ) -> Result<Self, CliError> {
        let sha256 = plan.sha256_hex().map_err(|error| CliError::usage(error.to_string()))?;
        let mut sweep = Sweep {
            name: plan.name.clone(),
            plan_sha256: sha256.clone(),
            points_planned: points.len(),
            points: Vec::new(),
            remember: Vec::new(),
            conditions: conditions(plan),
        };
        let found = match options.anew {
            true => None,
            false => experiment::unfinished(bundles, ExperimentKind::Sweep, |result| {
                let same = result["plan_sha256"] == sha256.as_str();
                let done = result["points"].as_array().map_or(0, Vec::len);
                same && (options.told || done < points.len())
            }),
        };
        let Some(directory) = found else { return Ok(Self { sweep, experiment: None }) };
        let mut experiment =
            Experiment::resume(ExperimentKind::Sweep, &plan.name, &directory, places)?;
        let reader = Reader::new();
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        runs.sort();
        for run in runs.into_iter().filter(|run| run.join("SHA256SUMS").is_file()) {
            // A bundle that can't be read, or that was changed, is measured again.
            let Ok(loaded) = reader.load(&run) else { continue };
            let Loaded { bundle: evidence, verdict, .. } = &loaded;
            if evidence.run.end.kind == EndKind::Completed
                && let Some(point) = SweepPoint::of(evidence, verdict)
            {
                experiment.note(evidence);
                sweep.points.retain(|known| known.label != point.label);
                sweep.points.push(point);
            }
        }
        let at = |label: &str| points.iter().position(|point| point.label == label);
        sweep.points.sort_by_key(|point| at(&point.label));
        sweep.remember = remember(&sweep.points);
        Ok(Self { sweep, experiment: Some(experiment) })
    }

    fn has(&self, label: &str) -> bool {
        self.sweep.points.iter().any(|point| point.label == label)
    }

    fn open(
        &mut self,
        plan: &ResolvedPlan,
        bundles: &Path,
        places: &Places,
    ) -> Result<&Experiment, CliError> {
        if self.experiment.is_none() {
            let begun = Experiment::begin(ExperimentKind::Sweep, &plan.name, bundles, places)?;
            self.experiment = Some(begun);
        }
        self.experiment.as_ref().ok_or_else(|| {
            // It was just made.
            CliError::new(Exit::Defect, "the sweep's experiment is not there".to_owned())
        })
    }

    /// Takes a point in, and writes what is known so far.
    fn take(
        &mut self,
        evidence: &Bundle,
        verdict: &plimsoll_judge::Verdict,
        order: &[MatrixPoint],
    ) -> Result<(), CliError> {
        let Some(point) = SweepPoint::of(evidence, verdict) else { return Ok(()) };
        self.sweep.points.push(point);
        let at = |label: &str| order.iter().position(|point| point.label == label);
        self.sweep.points.sort_by_key(|point| at(&point.label));
        self.sweep.remember = remember(&self.sweep.points);
        if let Some(experiment) = &mut self.experiment {
            experiment.note(evidence);
            let html = bundle::document_html(&sweep_document(&self.sweep))?;
            experiment.write(&self.sweep, &html)?;
        }
        Ok(())
    }
}

/// What holds for every point.
fn conditions(plan: &ResolvedPlan) -> Vec<String> {
    let mut all = Vec::new();
    for target in &plan.targets {
        all.push(format!("target: {} ({})", target.name, target.kind_word()));
    }
    for stream in plan.workload.matrix().iter().flat_map(|matrix| &matrix.streams) {
        let files = &stream.files;
        let size = files.file_size_bytes.map_or("the whole device".to_owned(), |bytes| {
            let (shares, each) = (files.shares, files.files_per_share);
            let leaves = match files.leaves() {
                1 => String::new(),
                leaves => format!(" in {leaves} directories"),
            };
            format!("{shares} × {each} files of {}{leaves}", SizeBytes(bytes))
        });
        all.push(format!("{} clients, {size}", stream.clients));
        all.push(format!(
            "{} % metadata operations, content that compresses {} to 1",
            stream.metadata_percent, stream.content.compressibility
        ));
    }
    if plan.demonstration {
        all.push("a first look: points this short cannot show steady figures".to_owned());
    }
    all
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
