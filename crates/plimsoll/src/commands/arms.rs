//! Several targets of one plan, run in turns: each round takes every target once, in random order, so
//! that what changes with time does not fall on one of them.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_evidence::run::{EndKind, ExperimentKind};
use plimsoll_judge::compare::{Comparison, Side, compare};
use plimsoll_plan::{Plan, ResolvedPlan};
use plimsoll_report::comparison_document;

use super::compare::{exit_of, show};
use super::run::After;
use super::{bundle, tune};
use crate::arguments::Common;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::kept_data::DataSlot;
use crate::keys;
use crate::progress::StderrProgress;
use crate::session::{Finished, Request, run_once, worst};

/// Runs every target of a plan as often as it says, and compares them.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn run_arms(
    plan: &Plan,
    after: &After,
    accept: &[String],
    common: &Common,
    progress: &mut StderrProgress,
    interrupt: &AtomicBool,
) -> Result<Exit, CliError> {
    let places = keys::places(&after.sign)?;
    let resolved = plan.resolve();
    tune::refuse_auto(&resolved)?;
    let arms: Vec<ResolvedPlan> =
        (0..resolved.targets.len()).filter_map(|i| resolved.for_target(i)).collect();
    let names: Vec<String> = resolved.targets.iter().map(|target| target.name.clone()).collect();
    let bundles = &places.bundles(after.out.as_deref())?;
    let mut experiment =
        Experiment::begin(ExperimentKind::Compare, &resolved.name, bundles, &places)?;
    let hands_on = !resolved.repeat.fresh;
    let slot = || if hands_on { DataSlot::handed_on() } else { DataSlot::fresh() };
    let data: Vec<DataSlot> = arms.iter().map(|_| slot()).collect();
    let order = order(arms.len(), resolved.repeat.runs.max(1), resolved.seed);
    let mut finished: Vec<(usize, Finished)> = Vec::new();
    let mut failure = None;
    for (number, &arm) in order.iter().enumerate() {
        progress.say(&format!("run {} of {}: {}", number + 1, order.len(), names[arm]));
        let request = Request {
            plan,
            resolved: &arms[arm],
            keep: after.keep,
            witness: after.witness.as_deref(),
            destroy: &after.destroy,
            bundles: experiment.directory(),
            places: &places,
            interrupt,
            experiment: Some(experiment.next(&names[arm])),
            data: &data[arm],
        };
        match run_once(&request, progress) {
            Ok(run) => finished.push((arm, run)),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        let Some((_, latest)) = finished.last() else { break };
        experiment.note(&latest.evidence);
        let compared = compared(&names, &finished, accept);
        let page = bundle::document_html(&comparison_document(&compared))?;
        experiment.write(&compared, &page)?;
        if interrupt.load(Ordering::Relaxed) || latest.evidence.run.end.kind != EndKind::Completed {
            break;
        }
    }
    let mut kept = Vec::new();
    for slot in &data {
        kept.extend(slot.finish(after.keep)?);
    }
    if let Some(error) = failure {
        return Err(error);
    }
    let compared = compared(&names, &finished, accept);
    show(&compared, common)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", experiment.report().display()))?;
    }
    kept.extend(finished.iter().flat_map(|(_, run)| run.kept.clone()));
    for directory in &kept {
        progress.say(&format!("the data was kept in {directory}"));
    }
    // What went wrong in a run comes before what the comparison says; a FAIL of one side is its result.
    let runs: Vec<Finished> = finished.into_iter().map(|(_, run)| run).collect();
    Ok(match worst(&runs) {
        exit @ (Exit::Defect | Exit::Interrupted | Exit::Corruption | Exit::Environment) => exit,
        _ => exit_of(&compared),
    })
}

fn compared(names: &[String], finished: &[(usize, Finished)], accept: &[String]) -> Comparison {
    let side = |(arm, name): (usize, &String)| {
        let of = finished.iter().filter(|(of, _)| *of == arm);
        Side {
            name: name.clone(),
            runs: of.map(|(_, run)| (&run.evidence, &run.verdict)).collect(),
        }
    };
    compare(&names.iter().enumerate().map(side).collect::<Vec<_>>(), accept)
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
