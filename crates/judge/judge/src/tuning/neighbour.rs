//! Search for the highest load of some streams (the neighbour) with which the other streams still
//! meet the requirement.
//!
//! A step passes if its run meets all limits, including those of windows and streams, and if the
//! neighbour achieved its load. The load line is the highest load whose step passes.

use plimsoll_evidence::Bundle;
use plimsoll_plan::{ResolvedPlan, Stream};
use serde::{Deserialize, Serialize};

use super::{Latency, TuneStep, Tuning};
use crate::events::checks::stream_rate_per_s;
use crate::stats::tune::Point;
use crate::verdict::VerdictKind;

/// Minimum share of its offered rate that a neighbour must achieve. If the share is smaller, the
/// run did not contain the offered load.
const ACHIEVED_MIN: f64 = 0.97;

/// The only latency ceiling of this search. The strain of a step that passes is `HOLDS`; the strain
/// of a step that fails is `FAILS`, so that growth ends at this step.
pub(super) const CEILING: f64 = 1.0;
const HOLDS: f64 = 0.25;
const FAILS: f64 = 4.0;

/// Streams of a plan, divided into those with a fixed load and those that the search varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Streams with a fixed load.
    pub fixed: Vec<String>,
    /// Word for the operations of the varied streams: `reads`, `writes` or `I/Os`.
    pub operations: String,
    /// Number of clients of the varied streams.
    pub clients: u64,
}

impl Neighbour {
    /// Describes the streams of a plan; `None` if the load of all streams is varied.
    ///
    /// # Errors
    /// The plan has no requirement.
    pub(super) fn of(plan: &ResolvedPlan, vary: &[String]) -> Result<Option<Self>, String> {
        let Some(matrix) = plan.workload.matrix().filter(|_| !vary.is_empty()) else {
            return Ok(None);
        };
        if plan.requirement.is_none() {
            return Err("the plan has no requirement that its streams could meet".to_owned());
        }
        let (varied, fixed): (Vec<&Stream>, Vec<&Stream>) =
            matrix.streams.iter().partition(|stream| vary.contains(&stream.name));
        let all = |percent: f64| {
            varied.iter().all(|s| s.read_percent == percent && s.metadata_percent == 0.0)
        };
        let operations = match () {
            () if all(100.0) => "reads",
            () if all(0.0) => "writes",
            () => "I/Os",
        };
        Ok(Some(Self {
            fixed: fixed.iter().map(|stream| stream.name.clone()).collect(),
            operations: operations.to_owned(),
            clients: varied.iter().map(|stream| u64::from(stream.clients)).sum(),
        }))
    }
}

/// Returns all latencies that have limits in the requirement, including the limits for windows and
/// streams.
pub(super) fn latencies(plan: &ResolvedPlan) -> Vec<Latency> {
    let Some(required) = &plan.requirement else { return Vec::new() };
    let named = |name: String, ceiling_ns: Option<u64>| Latency {
        name,
        ceiling_ns: ceiling_ns.map(|ns| ns as f64),
    };
    let whole = required.limits.iter().map(|limit| named(limit.name.clone(), Some(limit.limit_ns)));
    let windows = required.windows.iter().flat_map(|one| {
        let limits = one.limits.latencies.iter();
        limits.map(|limit| {
            named(format!("{}_{}", one.window.word(), limit.name), Some(limit.limit_ns))
        })
    });
    let streams = required.streams.iter().flat_map(|one| {
        let stream = plan.workload.matrix().and_then(|m| m.streams.get(one.stream as usize));
        let name = stream.map_or("", |stream| stream.name.as_str());
        let limits = one.limits.latencies.iter();
        limits.map(move |limit| named(format!("{name}: {}", limit.name), Some(limit.limit_ns)))
    });
    whole.chain(windows).chain(streams).collect()
}

/// Returns the sum of the rates of the varied streams, in operations per second. The rate of a
/// stream is its mean over the time during which the stream ran.
pub(super) fn rate_per_s(bundle: &Bundle, vary: &[String]) -> Option<f64> {
    let streams = bundle.plan.workload.matrix()?.streams.iter().zip(0..);
    let varied = streams.filter(|(stream, _)| vary.contains(&stream.name));
    varied.map(|(_, number)| stream_rate_per_s(bundle, number)).sum()
}

impl Tuning {
    /// Returns true if the neighbour achieved its load. A closed loop always achieves its queue
    /// depth.
    pub(super) fn achieved(&self, load: u64, rate_per_s: Option<f64>) -> bool {
        let offered_per_s = load as f64 * f64::from(self.range.hosts);
        !self.knob.is_open() || rate_per_s.is_some_and(|rate| rate >= offered_per_s * ACHIEVED_MIN)
    }

    /// Returns a step of this search as a point of the curve. The throughput to maximise is the
    /// load itself. The search repeats an undecided run once.
    pub(super) fn neighbour_point(&self, step: &TuneStep) -> Point {
        Point {
            load: step.load,
            throughput_per_s: step.load as f64,
            latencies_ns: vec![if step.within == Some(false) { FAILS } else { HOLDS }],
            steady: self.is_settled(step),
        }
    }

    /// Returns the name of the varied parameter. It includes the names of the varied streams.
    pub fn load_name(&self) -> String {
        self.knob.load_name_of(&self.range.vary)
    }

    /// Describes a load of the varied streams in words, such as `180 reads/s of backup`.
    pub fn neighbour_load(&self, neighbour: &Neighbour, load: u64) -> String {
        let Neighbour { operations, clients, .. } = neighbour;
        let names = self.range.vary.join(" and ");
        if self.knob.is_open() {
            return format!("{load} {operations}/s of {names}");
        }
        let outstanding = load.saturating_mul(*clients);
        format!(
            "{outstanding} outstanding {operations} of {names} ({clients} clients × depth {load})"
        )
    }

    /// Returns the smallest load above the load line whose run did not pass.
    pub fn first_failure(&self) -> Option<&TuneStep> {
        let line = self.load_line.map_or(0, |line| line.load);
        let failed = |step: &&TuneStep| step.load > line && step.within != Some(true);
        self.steps.iter().filter(failed).min_by_key(|step| step.load)
    }

    /// Returns true if a step is decided: it was steady or, if the search varies a neighbour, its
    /// run passed or failed.
    pub(super) fn is_settled(&self, step: &TuneStep) -> bool {
        match self.neighbour {
            Some(_) => matches!(step.verdict, VerdictKind::Pass | VerdictKind::Fail),
            None => step.steady == Some(true),
        }
    }

    /// Returns remarks for a search that varies only some streams.
    pub(super) fn neighbour_remarks(&self) -> Vec<String> {
        let mut remarks = vec![format!(
            "Each rate is the rate of {} only, measured while they ran.",
            self.range.vary.join(" and ")
        )];
        let line = self.load_line;
        if let Some(line) = line {
            let times = line.measurements;
            let highest = self.steps.iter().map(|step| step.load).max() <= Some(line.load);
            remarks.push(match (self.confirmed, highest) {
                (_, true) => "No higher load was measured: pass a higher --max.".to_owned(),
                (true, _) => {
                    format!("The load was measured {times} times; a higher load was measured too.")
                }
                (false, _) => "The load is not confirmed: the search had too few steps.".to_owned(),
            });
        }
        remarks
    }
}
