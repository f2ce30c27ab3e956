//! Runs the targets of a plan alternately and compares them. Each round runs every target once, in
//! random order. Drift over time therefore affects all targets equally.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::Verdict;
use plimsoll_judge::compare::{Comparison, Side};
use plimsoll_plan::ResolvedPlan;
use plimsoll_report::comparison_document;

use crate::compare::{Exemptions, compare_runs_of_arms};
use crate::custody::Reader;
use crate::data_slot::DataSlot;
use crate::error::RunnerError;
use crate::experiment::{Experiment, find_resumable};
use crate::finished_run::FinishedRun;
use crate::listener::Listener;
use crate::render;
use crate::run_request::RunConfig;
use crate::search;

/// Result of comparing a plan's targets, and the runs that were compared.
pub struct ArmComparison {
    /// Comparison of the targets.
    pub comparison: Comparison,
    /// All runs, in the order in which they ran.
    pub finished: Vec<FinishedRun>,
    /// Directories in which data was kept.
    pub kept: Vec<String>,
    pub report: PathBuf,
}

/// What to do with an earlier, interrupted comparison of the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierComparison {
    /// Use its finished runs, and execute only the remaining runs.
    Resume,
    /// Start again.
    Ignore,
}

/// An interrupted comparison and its completed runs.
struct InterruptedComparison {
    directory: PathBuf,
    /// Target, evidence and verdict of each run, in the order in which the runs were executed.
    runs: Vec<(usize, Bundle, Verdict)>,
}

/// Finds the latest comparison of these targets that has fewer completed runs than planned.
fn find_earlier(
    bundles: &Path,
    names: &[String],
    arms: &[ResolvedPlan],
    order: &[usize],
) -> Option<InterruptedComparison> {
    let directory = find_resumable(bundles, ExperimentKind::Compare, |result| {
        result["names"].as_array().is_some_and(|all| {
            all.iter().map(serde_json::Value::as_str).eq(names.iter().map(|n| Some(n.as_str())))
        })
    })?;
    let reader = Reader::new();
    let entries = std::fs::read_dir(&directory).ok()?.flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|run| run.join("SHA256SUMS").is_file() && run.join("run.json").is_file());
    found.sort();
    let mut runs: Vec<(usize, Bundle, Verdict)> = Vec::new();
    for run in found {
        // A run is repeated if its bundle cannot be read or was changed.
        let Ok(loaded) = reader.load(&run) else { continue };
        let (bundle, verdict) = (loaded.bundle, loaded.verdict);
        let arm = bundle.run.experiment.as_ref().map(|place| place.arm.clone());
        let arm = names.iter().position(|name| Some(name) == arm.as_ref())?;
        if bundle.plan.sha256_hex().ok() != arms[arm].sha256_hex().ok() {
            return None;
        }
        runs.push((arm, bundle, verdict));
    }
    let done = completed(&runs).count();
    (done > 0 && done < order.len()).then_some(InterruptedComparison { directory, runs })
}

/// Returns the targets of the completed runs.
fn completed(runs: &[(usize, Bundle, Verdict)]) -> impl Iterator<Item = usize> {
    let is_completed = |(_, bundle, _): &&(_, Bundle, _)| bundle.run.end.kind == EndKind::Completed;
    runs.iter().filter(is_completed).map(|(arm, ..)| *arm)
}

/// Returns the targets of the remaining runs, in order.
fn remaining(order: &[usize], done: &[(usize, Bundle, Verdict)]) -> Vec<usize> {
    let mut done: Vec<usize> = completed(done).collect();
    let is_left = |arm: &usize| match done.iter().position(|known| known == arm) {
        Some(at) => {
            done.swap_remove(at);
            false
        }
        None => true,
    };
    order.iter().copied().filter(is_left).collect()
}

/// Runs every target as often as the plan says, and compares them. `accept`: conditions that may
/// differ. `factors`: conditions whose effect the comparison measures.
///
/// # Errors
/// The target is unusable, or a bundle cannot be written.
pub fn carry_out(
    config: &RunConfig<'_>,
    accept: &[String],
    factors: &[String],
    earlier: EarlierComparison,
    listener: &mut dyn Listener,
) -> Result<ArmComparison, RunnerError> {
    let resolved = config.resolved;
    search::refuse_auto(resolved)?;
    let arms: Vec<ResolvedPlan> =
        (0..resolved.targets.len()).filter_map(|i| resolved.for_target(i)).collect();
    let names: Vec<String> = resolved.targets.iter().map(|target| target.name.clone()).collect();
    let reuses_data = !resolved.repeat.fresh;
    let slot = || if reuses_data { DataSlot::reused() } else { DataSlot::fresh() };
    let data: Vec<DataSlot> = arms.iter().map(|_| slot()).collect();
    let order = order(arms.len(), resolved.repeat.runs.max(1), resolved.seed);
    let earlier = match earlier {
        EarlierComparison::Resume => find_earlier(config.bundles, &names, &arms, &order),
        EarlierComparison::Ignore => None,
    };
    let (kind, name) = (ExperimentKind::Compare, &resolved.name);
    let mut experiment = match &earlier {
        Some(earlier) => Experiment::resume(kind, name, &earlier.directory, config.places)?,
        None => Experiment::begin(kind, name, config.bundles, config.places)?,
    };
    let done = earlier.map_or_else(Vec::new, |earlier| earlier.runs);
    let done_count = completed(&done).count();
    if done_count > 0 {
        let (done, all) = (done_count, order.len());
        listener.say(&format!(
            "resuming an interrupted comparison of the same plan: {done} of {all} runs are done \
             (pass --restart to start again)"
        ));
    }
    done.iter().for_each(|(_, bundle, _)| experiment.note(bundle));
    let left = remaining(&order, &done);
    let planned = order.len() / arms.len().max(1);
    let taken = Exemptions { accept, factors };
    let mut finished: Vec<(usize, FinishedRun)> = Vec::new();
    let mut failure = None;
    for (number, &arm) in left.iter().enumerate() {
        let number = done_count + number + 1;
        listener.part(&format!("run {number} of {}: {}", order.len(), names[arm]));
        let arm_config = RunConfig { resolved: &arms[arm], ..*config };
        let membership = Some(experiment.next_membership(&names[arm]));
        let request = arm_config.request(experiment.directory(), membership, &data[arm]);
        match config.driver.run_once(&request, listener) {
            Ok(run) => {
                listener.finished(&run);
                finished.push((arm, run));
            }
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        let Some((_, latest)) = finished.last() else { break };
        experiment.note(&latest.evidence);
        let comparison = compare_finished(&names, &done, &finished, planned, taken);
        let page = render::document_html(&comparison_document(&comparison))?;
        experiment.write(&comparison, &page)?;
        let interrupted = config.interrupt.load(Ordering::Relaxed);
        if interrupted || latest.evidence.run.end.kind != EndKind::Completed {
            break;
        }
    }
    let mut kept = Vec::new();
    for slot in &data {
        kept.extend(slot.finish(config.keep)?);
    }
    config.driver.release(listener)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let comparison = compare_finished(&names, &done, &finished, planned, taken);
    kept.extend(finished.iter().flat_map(|(_, run)| run.kept.clone()));
    kept.sort();
    kept.dedup();
    let finished = finished.into_iter().map(|(_, run)| run).collect();
    Ok(ArmComparison { comparison, finished, kept, report: experiment.report() })
}

fn compare_finished(
    names: &[String],
    done: &[(usize, Bundle, Verdict)],
    finished: &[(usize, FinishedRun)],
    planned: usize,
    taken: Exemptions<'_>,
) -> Comparison {
    let side = |(arm, name): (usize, &String)| {
        let before = done.iter().filter(|(run_arm, ..)| *run_arm == arm);
        let own = finished.iter().filter(|(run_arm, _)| *run_arm == arm);
        let own = own.map(|(_, run)| (&run.evidence, &run.verdict));
        let runs = before.map(|(_, bundle, verdict)| (bundle, verdict)).chain(own).collect();
        Side { name: name.clone(), runs }
    };
    compare_runs_of_arms(names.iter().enumerate().map(side).collect(), planned, taken)
}

/// Returns the target of each run: `rounds` rounds of all targets, with a new random order in each
/// round.
pub fn order(arms: usize, rounds: u32, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut order = Vec::new();
    for _ in 0..rounds {
        let mut round: Vec<usize> = (0..arms).collect();
        // Fisher-Yates shuffle. With so few arms, the modulo bias is far below 1e-17.
        for i in (1..arms).rev() {
            let at = (random(&mut state) % (i as u64 + 1)) as usize;
            round.swap(i, at);
        }
        order.extend(round);
    }
    order
}

/// SplitMix64 (G. L. Steele et al., *Fast Splittable Pseudorandom Number Generators*, 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_each_arm_once_and_the_order_changes() {
        let order = order(3, 20, 42);
        for round in order.chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        let mut firsts = [0; 3];
        order.chunks(3).for_each(|round| firsts[round[0]] += 1);
        assert!(firsts.iter().all(|&count| count > 0), "{firsts:?}");
        assert_eq!(order, super::order(3, 20, 42));
    }
}
