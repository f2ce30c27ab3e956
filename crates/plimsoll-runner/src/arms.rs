//! Several targets of one plan, run in turns: each round takes every target once, in random order, so
//! that what changes with time does not fall on one of them.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::compare::{Comparison, Side, compare_for};
use plimsoll_plan::ResolvedPlan;
use plimsoll_report::comparison_document;

use crate::asked::Asked;
use crate::error::RunnerError;
use crate::experiment::Experiment;
use crate::finished::Finished;
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::render;
use crate::search;

/// What the runs of all targets come to.
pub struct Compared {
    /// The targets against each other.
    pub comparison: Comparison,
    /// The runs, in their order.
    pub finished: Vec<Finished>,
    /// Where the data was kept.
    pub kept: Vec<String>,
    /// The report's path.
    pub report: PathBuf,
}

/// Runs every target of a plan as often as it says, and compares them. Differences of the conditions that
/// `accept` names are accepted; those that `factors` name are what is asked about.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn carry_out(
    asked: &Asked<'_>,
    accept: &[String],
    factors: &[String],
    listener: &mut dyn Listener,
) -> Result<Compared, RunnerError> {
    let resolved = asked.resolved;
    search::refuse_auto(resolved)?;
    let arms: Vec<ResolvedPlan> =
        (0..resolved.targets.len()).filter_map(|i| resolved.for_target(i)).collect();
    let names: Vec<String> = resolved.targets.iter().map(|target| target.name.clone()).collect();
    let mut experiment =
        Experiment::begin(ExperimentKind::Compare, &resolved.name, asked.bundles, asked.places)?;
    let hands_on = !resolved.repeat.fresh;
    let slot = || if hands_on { DataSlot::handed_on() } else { DataSlot::fresh() };
    let data: Vec<DataSlot> = arms.iter().map(|_| slot()).collect();
    let order = order(arms.len(), resolved.repeat.runs.max(1), resolved.seed);
    let mut finished: Vec<(usize, Finished)> = Vec::new();
    let mut failure = None;
    for (number, &arm) in order.iter().enumerate() {
        listener.part(&format!("run {} of {}: {}", number + 1, order.len(), names[arm]));
        let of_arm = Asked { resolved: &arms[arm], ..*asked };
        let place = Some(experiment.next(&names[arm]));
        let request = of_arm.request(experiment.directory(), place, &data[arm]);
        match asked.driver.run_once(&request, listener) {
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
        let compared = compared(&names, &finished, accept, factors);
        let page = render::document_html(&comparison_document(&compared))?;
        experiment.write(&compared, &page)?;
        let interrupted = asked.interrupt.load(Ordering::Relaxed);
        if interrupted || latest.evidence.run.end.kind != EndKind::Completed {
            break;
        }
    }
    let mut kept = Vec::new();
    for slot in &data {
        kept.extend(slot.finish(asked.keep)?);
    }
    asked.driver.release(listener)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let comparison = compared(&names, &finished, accept, factors);
    kept.extend(finished.iter().flat_map(|(_, run)| run.kept.clone()));
    let finished = finished.into_iter().map(|(_, run)| run).collect();
    Ok(Compared { comparison, finished, kept, report: experiment.report() })
}

fn compared(
    names: &[String],
    finished: &[(usize, Finished)],
    accept: &[String],
    factors: &[String],
) -> Comparison {
    let side = |(arm, name): (usize, &String)| {
        let of = finished.iter().filter(|(of, _)| *of == arm);
        Side {
            name: name.clone(),
            runs: of.map(|(_, run)| (&run.evidence, &run.verdict)).collect(),
        }
    };
    compare_for(&names.iter().enumerate().map(side).collect::<Vec<_>>(), accept, factors)
}

/// Which arm each run is of: `rounds` times all of them, each time in another random order.
pub fn order(arms: usize, rounds: u32, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut order = Vec::new();
    for _ in 0..rounds {
        let mut round: Vec<usize> = (0..arms).collect();
        // Fisher and Yates; with so few arms the modulo's bias is far below 1e-17.
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
