//! Several runs of one plan: mean, confidence interval and spread of each figure. The main figure
//! is never that of the best run. A single run does not show repeatability.

use plimsoll_evidence::Bundle;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Outcome};
use crate::metrics;
use crate::rules;
use crate::stats::repeats;
use crate::verdict::{Verdict, VerdictKind};

/// Summary of an experiment: the runs of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Name of the plan.
    pub name: String,
    /// Runs in the order of execution.
    pub runs: Vec<ExperimentRun>,
    /// Summary of each figure over the runs that measured it.
    pub metrics: Vec<Metric>,
    /// Findings of the rules that judge several runs together, with the worst first. Results with
    /// `pass` are left out.
    pub findings: Vec<Finding>,
    /// Identifiers of the rules that passed.
    pub passed: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRun {
    /// Identifier of the run.
    pub run_id: String,
    pub verdict: VerdictKind,
    /// Reason of the verdict.
    pub reason: String,
}

/// One metric over all runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name such as `achieved_iops_per_s` or `db_read_latency_ns_avg`.
    pub name: String,
    /// True if higher values are better.
    pub higher_is_better: bool,
    /// Value in each run, in the order of the runs; `None` if the run did not measure it.
    pub values: Vec<Option<f64>>,
    /// Mean over the runs that measured it.
    pub mean: Option<f64>,
    /// 95 % confidence interval of the mean (Student's t); `None` if there are fewer than two runs.
    pub interval: Option<[f64; 2]>,
    /// Relative spread of the runs: largest minus smallest value, divided by the mean.
    pub spread: Option<f64>,
}

/// Summarises the runs of one plan.
pub fn summarise(runs: &[(&Bundle, &Verdict)]) -> Experiment {
    let metric = |figure: &metrics::Figure| {
        let values: Vec<Option<f64>> = runs.iter().map(|(bundle, _)| (figure.of)(bundle)).collect();
        let measured: Vec<f64> = values.iter().flatten().copied().collect();
        let together = repeats(&measured).ok();
        Metric {
            name: figure.key.to_owned(),
            higher_is_better: figure.higher_is_better,
            mean: together.as_ref().map(|t| t.mean),
            interval: together
                .as_ref()
                .and_then(|t| t.interval)
                .map(|i| figure.unit.possible([i.low, i.high])),
            spread: together.and_then(|t| t.spread),
            values,
        }
    };
    let figures = runs.first().map_or(&[][..], |(bundle, _)| metrics::of(&bundle.plan.workload));
    let all = figures.iter().map(metric);
    let metrics: Vec<Metric> = all
        .filter(|metric| metric.name == "achieved_iops_per_s" || metric.mean.is_some())
        .collect();
    let bundles: Vec<&Bundle> = runs.iter().map(|(bundle, _)| *bundle).collect();
    let (passed, findings): (Vec<_>, Vec<_>) = rules::experiment::findings(&bundles)
        .into_iter()
        .partition(|finding| finding.outcome == Outcome::Pass);
    Experiment {
        name: runs.first().map(|(bundle, _)| bundle.run.name.clone()).unwrap_or_default(),
        runs: runs
            .iter()
            .map(|(bundle, verdict)| ExperimentRun {
                run_id: bundle.run.run_id.clone(),
                verdict: verdict.verdict,
                reason: verdict.reason.clone(),
            })
            .collect(),
        metrics,
        findings,
        passed: passed.into_iter().map(|finding| finding.rule).collect(),
    }
}
