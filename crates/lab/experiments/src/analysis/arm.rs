//! Analysis of one arm: the figures over all its runs, next to the published figures.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::EndKind;
use plimsoll_judge::finding::Outcome;
use plimsoll_judge::metrics;
use plimsoll_judge::stats::repeats;
use plimsoll_judge::sweep::IoShape;
use plimsoll_judge::verdict::VerdictKind;
use serde::{Deserialize, Serialize};

use super::failure::{Failure, failure};
use super::front::{Front, front};
use super::servers::{Server, servers};
use super::{Arm, Input, Role, mechanism};

/// Key of the rate of transactional I/Os, shown per server.
pub(super) const RATE: &str = "achieved_iops_per_s";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureAnalysis {
    pub key: String,
    /// Values of the completed runs.
    pub values: Vec<f64>,
    /// Mean of these values.
    pub mean: Option<f64>,
    /// 95 % interval of the mean by Student's t; `None` for fewer than two runs.
    pub interval: Option<[f64; 2]>,
    pub published: Option<f64>,
    /// Role of the published figure in the fit; `None` if no figure was published.
    pub role: Option<Role>,
    /// Mean divided by the published figure.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio. The interval reflects only the variation between the runs,
    /// because the error of the published figure is unknown.
    pub ratio_interval: Option<[f64; 2]>,
    /// Ratio of this figure to the same figure of the reference arm.
    pub over_reference: Option<f64>,
    /// The same ratio, computed from the published figures.
    pub published_over_reference: Option<f64>,
}

impl FigureAnalysis {
    /// Returns true if the ratio to the published figure differs from 1 by at most `tolerance`.
    pub fn within(&self, tolerance: f64) -> bool {
        self.ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= tolerance)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmAnalysis {
    /// Short name of the arm, as in the published figures.
    pub name: String,
    /// Descriptive title.
    pub title: String,
    /// Name of the table to which the experiment's arm belongs.
    pub group: String,
    /// Number of servers; reports show the achieved rate per server.
    pub servers: u32,
    /// Settings that differ from those of the previous arm of the experiment.
    pub changes: Vec<(String, String)>,
    /// Planned number of runs.
    pub planned: u32,
    /// Number of completed runs.
    pub completed: u32,
    pub run_ids: Vec<String>,
    /// Verdicts of the runs, in the order of the runs.
    pub verdicts: Vec<VerdictKind>,
    /// Reason for the first run's verdict.
    pub reason: String,
    /// Rules that failed in any of the runs.
    pub failed_rules: Vec<String>,
    pub expects: Option<VerdictKind>,
    /// Rules that must detect the trick of the experiment's arm.
    pub caught_by: Vec<String>,
    /// Smallest headroom of any run above the requirement.
    pub headroom: Option<f64>,
    pub figures: Vec<FigureAnalysis>,
    /// Bottleneck and breakdown of latency, as sentences.
    pub mechanism: Vec<String>,
    /// Front-end I/O and drive I/O of the experiment's arm.
    pub front: Option<Front>,
    /// Figures of each server in the first run; empty if there are fewer than two servers.
    pub per_server: Vec<Server>,
    /// I/O size and read share, which are the position in the group's table.
    #[serde(default)]
    pub point: Option<IoShape>,
    /// Number of threads of the mail stores of all servers together.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Failure of a node during the measurement, if there was one.
    #[serde(default)]
    pub failure: Option<Failure>,
}

impl ArmAnalysis {
    pub fn figure(&self, key: &str) -> Option<&FigureAnalysis> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// Returns true if every run has the expected verdict because of the expected rules.
    pub fn is_as_expected(&self) -> bool {
        let Some(expects) = self.expects else { return true };
        // Without privileges, the result of some rules is unknown. For an arm of the experiment
        // without a trick, only a failed rule is therefore unexpected.
        let verdict = |kind: &VerdictKind| match expects {
            VerdictKind::Invalid => *kind == VerdictKind::Invalid,
            _ => *kind != VerdictKind::Invalid,
        };
        !self.verdicts.is_empty()
            && self.verdicts.iter().all(verdict)
            && self.caught_by.iter().all(|rule| self.failed_rules.contains(rule))
    }
}

pub(super) fn arm_analysis(input: &Input<'_>, arm: &Arm<'_>) -> ArmAnalysis {
    let completed: Vec<&Bundle> = arm
        .runs
        .iter()
        .map(|(bundle, _)| *bundle)
        .filter(|bundle| bundle.run.end.kind == EndKind::Completed)
        .collect();
    let mut failed_rules: Vec<String> = Vec::new();
    for (_, verdict) in &arm.runs {
        for finding in verdict.findings.iter().filter(|f| f.outcome == Outcome::Fail) {
            if !failed_rules.contains(&finding.rule) {
                failed_rules.push(finding.rule.clone());
            }
        }
    }
    let headrooms: Option<Vec<f64>> =
        arm.runs.iter().map(|(_, verdict)| verdict.headroom).collect();
    ArmAnalysis {
        name: arm.name.clone(),
        title: arm.title.clone(),
        group: arm.group.clone(),
        servers: arm.servers.max(1),
        changes: arm.changes.clone(),
        planned: arm.planned,
        completed: completed.len() as u32,
        run_ids: arm.runs.iter().map(|(bundle, _)| bundle.run.run_id.clone()).collect(),
        verdicts: arm.runs.iter().map(|(_, verdict)| verdict.verdict).collect(),
        reason: arm.runs.first().map_or(String::new(), |(_, verdict)| verdict.reason.clone()),
        failed_rules,
        expects: arm.expects,
        caught_by: arm.caught_by.clone(),
        headroom: headrooms.and_then(|all| all.into_iter().reduce(f64::min)),
        figures: figures(input, arm, &completed),
        mechanism: completed.first().map_or_else(Vec::new, |bundle| mechanism::sentences(bundle)),
        front: completed.first().and_then(|bundle| front(bundle)),
        per_server: completed.first().map_or_else(Vec::new, |bundle| servers(bundle)),
        point: completed.first().and_then(|bundle| io_shape(bundle)),
        threads: completed.first().and_then(|bundle| Some(bundle.plan.workload.mailbox()?.threads)),
        failure: completed.first().and_then(|bundle| failure(bundle, arm.servers)),
    }
}

/// Returns the I/O size and read share of an arm of the experiment, if its plan has a single stream
/// with a single size.
fn io_shape(bundle: &Bundle) -> Option<IoShape> {
    let [stream] = &bundle.plan.workload.matrix()?.streams[..] else { return None };
    (stream.sizes.len() == 1).then(|| IoShape::of(stream))
}

fn figures(input: &Input<'_>, arm: &Arm<'_>, completed: &[&Bundle]) -> Vec<FigureAnalysis> {
    let Some(first) = completed.first() else { return Vec::new() };
    let one = |figure: &metrics::Figure| {
        let parts = if figure.key == RATE { f64::from(arm.servers.max(1)) } else { 1.0 };
        let values: Vec<f64> =
            completed.iter().filter_map(|bundle| Some((figure.of)(bundle)? / parts)).collect();
        let together = repeats(&values).ok();
        let given = input.given.iter().find(|g| g.arm == arm.name && g.figure == figure.key);
        let published = given.map(|given| given.value);
        let mean = together.as_ref().map(|t| t.mean);
        let interval = together.as_ref().and_then(|t| t.interval);
        let interval = interval.map(|i| figure.unit.possible([i.low, i.high]));
        let over = |value: f64| published.filter(|p| *p > 0.0).map(|p| value / p);
        FigureAnalysis {
            key: figure.key.to_owned(),
            values,
            mean,
            interval,
            published,
            role: given.map(|given| given.role),
            ratio: mean.and_then(over),
            ratio_interval: interval.and_then(|[low, high]| Some([over(low)?, over(high)?])),
            over_reference: None,
            published_over_reference: None,
        }
    };
    let all = metrics::of(&first.plan.workload).iter().map(one);
    all.filter(|figure| !figure.values.is_empty() || figure.published.is_some()).collect()
}

/// Computes the ratios of results to the reference arm's results, and the same ratios of the
/// published figures.
pub(super) fn form_ratios(input: &Input<'_>, arms: &mut [ArmAnalysis]) {
    let Some(reference) = input.reference.as_ref() else { return };
    let Some(at) = arms.iter().position(|arm| arm.name == *reference) else { return };
    let base = arms[at].figures.clone();
    for figure in arms.iter_mut().flat_map(|arm| &mut arm.figures) {
        let Some(of) = base.iter().find(|base| base.key == figure.key) else { continue };
        let over = |value: Option<f64>, base: Option<f64>| {
            let base = base.filter(|base| *base > 0.0)?;
            value.map(|value| value / base)
        };
        figure.over_reference = over(figure.mean, of.mean);
        figure.published_over_reference = over(figure.published, of.published);
    }
}
