//! The points of a plan, each a run on the same data. What was interrupted goes on where it stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::sweep::{Sweep, SweepPoint, remember};
use plimsoll_plan::{MatrixPoint, ResolvedPlan, SizeBytes, Workload};
use plimsoll_report::sweep_document;

use crate::asked::Asked;
use crate::custody::{Loaded, Reader, Together};
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::{self, Experiment};
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::places::Places;
use crate::render;

/// What becomes of an earlier sweep of the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It is left as it is, and another begun.
    Left,
    /// It goes on where it was interrupted.
    Unfinished,
    /// It is taken up even where it has every point.
    Whole,
}

impl Earlier {
    /// From what was asked for: to begin anew, or to measure nothing.
    pub fn asked(anew: bool, told: bool) -> Self {
        match (anew, told) {
            (true, _) => Self::Left,
            (_, true) => Self::Whole,
            _ => Self::Unfinished,
        }
    }
}

/// How a sweep ended.
pub struct Swept {
    /// Where the data was kept.
    pub kept: Vec<String>,
    /// The exit code of the point that ended it early.
    pub ended: Option<Exit>,
}

/// The points of a plan.
///
/// # Errors
/// A plan that has none.
pub fn points(plan: &ResolvedPlan) -> Result<Vec<MatrixPoint>, RunnerError> {
    let points = plan.points();
    if points.is_empty() {
        return Err(RunnerError::usage("only a plan with [workload.matrix] can be swept")
            .hint("name a plan with lists of sizes, reads, patterns or queue depths"));
    }
    Ok(points)
}

/// Whether a plan has several points.
#[must_use]
pub fn is_one(plan: &ResolvedPlan) -> bool {
    matches!(&plan.workload, Workload::Matrix(matrix) if matrix.point_count() > 1)
}

/// Measures the points that are left.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn carry_out(
    asked: &Asked<'_>,
    points: &[MatrixPoint],
    sweeping: &mut Sweeping,
    listener: &mut dyn Listener,
) -> Result<Swept, RunnerError> {
    let left: Vec<&MatrixPoint> = points.iter().filter(|p| !sweeping.has(&p.label)).collect();
    let data = DataSlot::handed_on();
    let mut ended = None;
    for point in left {
        listener.part(&format!("point {} of {}: {}", point.index + 1, points.len(), point.label));
        let experiment = sweeping.open(asked.resolved, asked.bundles, asked.places)?;
        let place = Some(experiment.next(&point.label));
        let directory = experiment.directory().to_path_buf();
        let of_point = Asked { resolved: &point.plan, ..*asked };
        let finished =
            match asked.driver.run_once(&of_point.request(&directory, place, &data), listener) {
                Ok(finished) => finished,
                Err(error) => {
                    data.finish(asked.keep)?;
                    return Err(error);
                }
            };
        listener.finished(&finished);
        let completed = finished.evidence.run.end.kind == EndKind::Completed;
        if completed {
            sweeping.take(&finished.evidence, &finished.verdict, points)?;
            listener.say(&told(sweeping.sweep.points.iter().find(|p| p.label == point.label)));
        }
        // Data that cannot be removed is told, and the next point would meet it.
        let is_well = completed && finished.not_removed.is_none();
        if !is_well || asked.interrupt.load(Ordering::Relaxed) {
            ended = Some(if is_well { Exit::Interrupted } else { finished.exit() });
            break;
        }
    }
    asked.driver.release(listener)?;
    Ok(Swept { kept: data.finish(asked.keep)?, ended })
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
pub struct Sweeping {
    /// What is known so far.
    pub sweep: Sweep,
    /// Its directory, once a point has been begun.
    pub experiment: Option<Experiment>,
}

impl Sweeping {
    /// Goes on with an earlier sweep of the same plan, or begins one.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn begin(
        plan: &ResolvedPlan,
        points: &[MatrixPoint],
        bundles: &Path,
        places: &Places,
        earlier: Earlier,
    ) -> Result<Self, RunnerError> {
        let sha256 = plan.sha256_hex().map_err(|error| RunnerError::usage(error.to_string()))?;
        let mut sweep = Sweep {
            name: plan.name.clone(),
            plan_sha256: sha256.clone(),
            points_planned: points.len(),
            points: Vec::new(),
            remember: Vec::new(),
            conditions: conditions(plan),
        };
        let found = match earlier {
            Earlier::Left => None,
            _ => experiment::unfinished(bundles, ExperimentKind::Sweep, |result| {
                let same = result["plan_sha256"] == sha256.as_str();
                let done = result["points"].as_array().map_or(0, Vec::len);
                same && (earlier == Earlier::Whole || done < points.len())
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

    /// Whether a point has been measured.
    pub fn has(&self, label: &str) -> bool {
        self.sweep.points.iter().any(|point| point.label == label)
    }

    /// Whether anything was measured before, in `bundles`.
    ///
    /// # Errors
    /// Nothing was.
    pub fn is_there(&self, bundles: &Path) -> Result<(), RunnerError> {
        if self.sweep.points.is_empty() {
            let says = format!("there is no sweep of this plan in {}", bundles.display());
            return Err(
                RunnerError::usage(says).hint("sweep first, or name its directory with --out")
            );
        }
        Ok(())
    }

    /// How many points are still to be measured.
    pub fn left(&self, points: &[MatrixPoint]) -> u64 {
        points.iter().filter(|point| !self.has(&point.label)).count() as u64
    }

    /// Which points there are, and which of them have been measured: a line each.
    pub fn listed(&self, points: &[MatrixPoint]) -> Vec<String> {
        let line = |point: &MatrixPoint| {
            let done = if self.has(&point.label) { ", measured already" } else { "" };
            format!("point {}: {}{done}", point.index + 1, point.label)
        };
        points.iter().map(line).collect()
    }

    /// How long it will take, up front.
    pub fn promise(&self, plan: &ResolvedPlan, points: &[MatrixPoint]) -> String {
        let (left, points) = (self.left(points) as usize, points.len());
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

    /// What all points come to.
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
            // It was just made.
            RunnerError::new(Exit::Defect, "the sweep's experiment is not there".to_owned())
        })
    }

    /// Takes a point in, and writes what is known so far.
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
        self.sweep.remember = remember(&self.sweep.points);
        if let Some(experiment) = &mut self.experiment {
            experiment.note(evidence);
            let html = render::document_html(&sweep_document(&self.sweep))?;
            experiment.write(&self.sweep, &html)?;
        }
        Ok(())
    }
}

/// A sweep from its directory: what it is from its record, its points from their bundles, judged anew.
///
/// # Errors
/// A directory without bundles, or with one that cannot be read.
pub fn again(directory: &Path) -> Result<(Sweep, Together), RunnerError> {
    let before: Sweep = experiment::result_of(directory)?;
    let order: Vec<String> = before.points.iter().map(|point| point.label.clone()).collect();
    let together = Reader::new().load_all(directory)?;
    let judged = together.runs.iter().map(|run| SweepPoint::of(&run.bundle, &run.verdict));
    let points = judged.flatten().filter(|point| order.contains(&point.label));
    let mut sweep = Sweep { points: points.collect(), ..before };
    // A point may have been measured again after its bundle was damaged: the latest counts.
    let latest: Vec<usize> = order
        .iter()
        .filter_map(|label| sweep.points.iter().rposition(|point| point.label == *label))
        .collect();
    sweep.points = latest.into_iter().map(|at| sweep.points[at].clone()).collect();
    sweep.remember = remember(&sweep.points);
    Ok((sweep, together))
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
