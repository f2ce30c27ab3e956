//! Runs the points of a plan. Each point is a run on the same data. An interrupted sweep can be
//! resumed.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{Sweep, SweepPoint, key_figures};
use plimsoll_plan::{MatrixPoint, ResolvedPlan, SizeBytes, Workload};
use plimsoll_report::sweep_document;

use crate::custody::{LoadedBundle, Reader, RunSet};
use crate::data_slot::DataSlot;
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::{self, Experiment};
use crate::listener::Listener;
use crate::places::Places;
use crate::render;
use crate::run_request::RunConfig;

/// What to do with an earlier sweep of the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierSweep {
    /// Ignore it and start a new sweep.
    Ignore,
    /// Resume it if it is incomplete.
    Resume,
    /// Resume it even if it is complete.
    ResumeComplete,
}

impl EarlierSweep {
    /// Converts the flags `restart` (start again) and `show_only` (measure nothing).
    pub fn from_flags(restart: bool, show_only: bool) -> Self {
        match (restart, show_only) {
            (true, _) => Self::Ignore,
            (_, true) => Self::ResumeComplete,
            _ => Self::Resume,
        }
    }
}

pub struct SweepEnd {
    /// Directories with data that was kept.
    pub kept: Vec<String>,
    /// Exit code of the point that ended the sweep early.
    pub early_exit: Option<Exit>,
}

/// Returns the points of a plan.
///
/// # Errors
/// The plan has no points.
pub fn points(plan: &ResolvedPlan) -> Result<Vec<MatrixPoint>, RunnerError> {
    let points = plan.points();
    if points.is_empty() {
        return Err(RunnerError::usage("only a plan with [workload.matrix] can be swept")
            .hint("use a plan that lists several sizes, read shares, patterns or queue depths"));
    }
    Ok(points)
}

/// Returns true if a plan has several points.
#[must_use]
pub fn is_sweep(plan: &ResolvedPlan) -> bool {
    matches!(&plan.workload, Workload::Matrix(matrix) if matrix.point_count() > 1)
}

/// Measures the remaining points.
///
/// # Errors
/// The target is unusable, or a bundle cannot be written.
pub fn carry_out(
    config: &RunConfig<'_>,
    points: &[MatrixPoint],
    progress: &mut SweepProgress,
    listener: &mut dyn Listener,
) -> Result<SweepEnd, RunnerError> {
    let remaining: Vec<&MatrixPoint> = points.iter().filter(|p| !progress.has(&p.label)).collect();
    let data = DataSlot::reused();
    let mut early_exit = None;
    for point in remaining {
        listener.part(&format!("point {} of {}: {}", point.index + 1, points.len(), point.label));
        let experiment = progress.open(config.resolved, config.bundles, config.places)?;
        let membership = Some(experiment.next_membership(&point.label));
        let directory = experiment.directory().to_path_buf();
        let point_config = RunConfig { resolved: &point.plan, ..*config };
        let finished = match config
            .driver
            .run_once(&point_config.request(&directory, membership, &data), listener)
        {
            Ok(finished) => finished,
            Err(error) => {
                data.finish(config.keep)?;
                return Err(error);
            }
        };
        listener.finished(&finished);
        let completed = finished.evidence.run.end.kind == EndKind::Completed;
        if completed {
            progress.take(&finished.evidence, &finished.verdict, points)?;
            listener
                .say(&point_line(progress.sweep.points.iter().find(|p| p.label == point.label)));
        }
        // The sweep ends here, because the data that could not be removed would affect the next
        // point.
        let is_well = completed && finished.removal_error.is_none();
        if !is_well || config.interrupt.load(Ordering::Relaxed) {
            early_exit = Some(if is_well { Exit::Interrupted } else { finished.exit() });
            break;
        }
    }
    config.driver.release(listener)?;
    Ok(SweepEnd { kept: data.finish(config.keep)?, early_exit })
}

fn point_line(point: Option<&SweepPoint>) -> String {
    let Some(point) = point else { return String::new() };
    let rate = point.rate_per_s.map_or("nothing measured".to_owned(), |r| format!("{r:.0}/s"));
    let latency = point.latency_ns_avg.map_or(String::new(), |ns| {
        format!(", {} on average", plimsoll_report::elapsed(ns as f64))
    });
    format!("        {rate}{latency}, {}", point.verdict)
}

/// A running sweep, with the points that were measured before it was interrupted.
pub struct SweepProgress {
    /// Measured points.
    pub sweep: Sweep,
    /// Experiment of the sweep. `None` until the first point has started.
    pub experiment: Option<Experiment>,
}

impl SweepProgress {
    /// Resumes an earlier sweep of the same plan, or prepares a new one.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn begin(
        plan: &ResolvedPlan,
        points: &[MatrixPoint],
        bundles: &Path,
        places: &Places,
        earlier: EarlierSweep,
    ) -> Result<Self, RunnerError> {
        let sha256 = plan.sha256_hex().map_err(|error| RunnerError::usage(error.to_string()))?;
        let mut sweep = Sweep {
            name: plan.name.clone(),
            plan_sha256: sha256.clone(),
            points_planned: points.len(),
            points: Vec::new(),
            key_figures: Vec::new(),
            conditions: conditions(plan),
        };
        let found = match earlier {
            EarlierSweep::Ignore => None,
            _ => experiment::find_resumable(bundles, ExperimentKind::Sweep, |result| {
                let same = result["plan_sha256"] == sha256.as_str();
                let done = result["points"].as_array().map_or(0, Vec::len);
                same && (earlier == EarlierSweep::ResumeComplete || done < points.len())
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
            // A point with an unreadable or changed bundle is measured again.
            let Ok(loaded) = reader.load(&run) else { continue };
            let LoadedBundle { bundle: evidence, verdict, .. } = &loaded;
            experiment.note(evidence);
            if evidence.run.end.kind == EndKind::Completed
                && let Some(point) = SweepPoint::of(evidence, verdict)
            {
                sweep.points.retain(|known| known.label != point.label);
                sweep.points.push(point);
            }
        }
        let at = |label: &str| points.iter().position(|point| point.label == label);
        sweep.points.sort_by_key(|point| at(&point.label));
        sweep.key_figures = key_figures(&sweep.points);
        Ok(Self { sweep, experiment: Some(experiment) })
    }

    /// Returns true if the point has been measured.
    pub fn has(&self, label: &str) -> bool {
        self.sweep.points.iter().any(|point| point.label == label)
    }

    /// Fails if no point was measured in `bundles`.
    ///
    /// # Errors
    /// No point was measured.
    pub fn require_points(&self, bundles: &Path) -> Result<(), RunnerError> {
        if self.sweep.points.is_empty() {
            let says = format!("found no sweep of this plan in {}", bundles.display());
            return Err(RunnerError::usage(says)
                .hint("run the sweep first, or specify its directory with --out"));
        }
        Ok(())
    }

    pub fn remaining(&self, points: &[MatrixPoint]) -> u64 {
        points.iter().filter(|point| !self.has(&point.label)).count() as u64
    }

    /// Lists the points, one in each line, and marks those that are already measured.
    pub fn list_points(&self, points: &[MatrixPoint]) -> Vec<String> {
        let line = |point: &MatrixPoint| {
            let done = if self.has(&point.label) { ", already measured" } else { "" };
            format!("point {}: {}{done}", point.index + 1, point.label)
        };
        points.iter().map(line).collect()
    }

    /// Returns the estimated duration of the remaining points as text.
    pub fn estimate(&self, plan: &ResolvedPlan, points: &[MatrixPoint]) -> String {
        let (left, points) = (self.remaining(points) as usize, points.len());
        let phases = &plan.phases;
        let each_ns = phases.warm_up_ns + phases.measure_ns;
        let total = plimsoll_report::elapsed(each_ns as f64 * left as f64);
        let all = if left < points {
            format!("{left} of {points} points remaining")
        } else {
            format!("{points} points")
        };
        let each = plimsoll_report::elapsed(each_ns as f64);
        let bytes = plan.workload.matrix().and_then(|matrix| {
            let each = matrix.streams.iter().map(|stream| stream.files.total_bytes());
            each.sum::<Option<u64>>()
        });
        let data = match bytes {
            Some(bytes) => format!("creating {} of data once", SizeBytes(bytes).about()),
            None => "filling the device once".to_owned(),
        };
        let verify =
            if phases.verify { " and checking all of the data after each point" } else { "" };
        format!("{all} of {each}: {total}, plus the time for {data}{verify}")
    }

    /// Returns the exit code of all points.
    pub fn exit(&self) -> Exit {
        let any = |kind| self.sweep.points.iter().any(|point| point.verdict == kind);
        if any(VerdictKind::Invalid) || any(VerdictKind::Inconclusive) {
            Exit::NoVerdict
        } else if any(VerdictKind::Fail) {
            Exit::Fail
        } else {
            Exit::Ok
        }
    }

    fn open(
        &mut self,
        plan: &ResolvedPlan,
        bundles: &Path,
        places: &Places,
    ) -> Result<&Experiment, RunnerError> {
        if self.experiment.is_none() {
            let begun = Experiment::begin(ExperimentKind::Sweep, &plan.name, bundles, places)?;
            self.experiment = Some(begun);
        }
        self.experiment.as_ref().ok_or_else(|| {
            // `open` has already created the experiment.
            RunnerError::new(Exit::Defect, "the sweep has no experiment".to_owned())
        })
    }

    /// Adds a point and writes the result.
    fn take(
        &mut self,
        evidence: &Bundle,
        verdict: &plimsoll_judge::Verdict,
        order: &[MatrixPoint],
    ) -> Result<(), RunnerError> {
        let Some(point) = SweepPoint::of(evidence, verdict) else { return Ok(()) };
        self.sweep.points.push(point);
        let at = |label: &str| order.iter().position(|point| point.label == label);
        self.sweep.points.sort_by_key(|point| at(&point.label));
        self.sweep.key_figures = key_figures(&self.sweep.points);
        if let Some(experiment) = &mut self.experiment {
            experiment.note(evidence);
            let html = render::document_html(&sweep_document(&self.sweep))?;
            experiment.write(&self.sweep, &html)?;
        }
        Ok(())
    }
}

/// Reads a sweep from its directory and judges the bundles again.
///
/// # Errors
/// The directory has no bundles, or one of its bundles cannot be read.
pub fn reload(directory: &Path) -> Result<(Sweep, RunSet), RunnerError> {
    let before: Sweep = experiment::result_of(directory)?;
    let order: Vec<String> = before.points.iter().map(|point| point.label.clone()).collect();
    let run_set = Reader::new().load_all(directory)?;
    let judged = run_set.runs.iter().map(|run| SweepPoint::of(&run.bundle, &run.verdict));
    let points = judged.flatten().filter(|point| order.contains(&point.label));
    let mut sweep = Sweep { points: points.collect(), ..before };
    // A point may have been measured again after its bundle was damaged. In this case, the latest
    // bundle counts.
    let latest: Vec<usize> = order
        .iter()
        .filter_map(|label| sweep.points.iter().rposition(|point| point.label == *label))
        .collect();
    sweep.points = latest.into_iter().map(|at| sweep.points[at].clone()).collect();
    sweep.key_figures = key_figures(&sweep.points);
    Ok((sweep, run_set))
}

/// Returns the conditions that all points share.
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
            "{} % of the operations are on metadata; the content compresses {} to 1",
            stream.metadata_percent, stream.content.compressibility
        ));
    }
    if plan.demonstration {
        all.push("a demonstration: each point is too short for steady results".to_owned());
    }
    all
}
