//! Remarks on the result of a search, as sentences.

use super::Tuning;
use crate::stats::tune::{MeasuredLoad, Outcome};
use crate::verdict::VerdictKind;

/// The curve counts as falling if the throughput after its maximum is lower by at least this
/// fraction.
const FALLS: f64 = 0.05;

pub(super) fn remarks(tuning: &Tuning, outcome: &Outcome) -> Vec<String> {
    let mut remarks = Vec::new();
    let name = tuning.knob.load_name();
    let ran: Vec<(u64, f64)> =
        tuning.steps.iter().filter_map(|step| Some((step.load, step.rate_per_s?))).collect();
    let top = ran.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let last = ran.iter().copied().max_by_key(|(load, _)| *load);
    if let (Some(top), Some(last)) = (top, last) {
        let lost = 1.0 - last.1 / top.1;
        if last.0 > top.0 && lost > FALLS {
            remarks.push(format!(
                "The curve falls: the rate at {name} {} is {:.0} % lower than at {}.",
                last.0,
                lost * 100.0,
                top.0
            ));
        } else if last.0 > top.0 {
            remarks.push(format!(
                "The curve flattens: above {name} {}, throughput does not increase.",
                top.0
            ));
        }
    }
    remarks.extend(outcome.bend.map(|bend| bend.sentence(name)));
    let unsettled = tuning.unsettled_step();
    let none_steady =
        !tuning.steps.is_empty() && tuning.steps.iter().all(|step| step.steady != Some(true));
    if none_steady {
        remarks.push(
            "No step was steady, so it is unknown which load the storage can sustain. Measure each \
             step for longer (--for 10m) after a longer warm-up (--set phases.warm_up=2m). If the \
             rate still changes, look for other load on this host or storage, for caches that \
             become full, and for burst credit that runs out."
                .to_owned(),
        );
    }
    let said = unsettled.filter(|_| !none_steady);
    if let Some((step, rate_per_s)) = said.and_then(|step| Some((step, step.rate_per_s?))) {
        remarks.push(format!(
            "At {name} {}, {rate_per_s:.0} I/Os per second met every latency ceiling, but the rate \
             never became steady, so the long-term rate is unknown. Measure each step for longer, \
             after a longer warm-up.",
            step.load
        ));
    }
    if let Some(line) = tuning.load_line.filter(|_| unsettled.is_none()) {
        remarks.push(confirmation(tuning, line));
    }
    if tuning.required_load.is_some() && !tuning.required_load_checked {
        remarks.push(format!(
            "It is unknown whether a smaller load ({name}) is enough: the search had too few steps."
        ));
    }
    if let (Some(required), None, false, None) =
        (tuning.required_per_s, tuning.required_load, tuning.knob.is_open(), unsettled)
    {
        remarks
            .push(format!("No measured load achieves the required {required:.1} I/Os per second."));
    }
    let undecided =
        tuning.sufficient_steps().find(|step| step.verdict == VerdictKind::Inconclusive);
    if let (VerdictKind::Inconclusive, true, Some(step)) =
        (tuning.verdict(), tuning.complete && unsettled.is_none(), undecided)
    {
        let (load, reason) = (step.load, &step.reason);
        remarks
            .push(format!("{name} {load} would be enough, but its run is INCONCLUSIVE: {reason}."));
    }
    remarks
}

/// States whether the load line was measured repeatedly, with lower and higher loads beside it.
fn confirmation(tuning: &Tuning, line: MeasuredLoad) -> String {
    let is_measured = |beside: &dyn Fn(u64) -> bool| tuning.steps.iter().any(|s| beside(s.load));
    let is_last = !is_measured(&|load| load > line.load);
    let beside = match is_measured(&|load| load < line.load) {
        true => "a lower and a higher load were",
        false => "a higher load was",
    };
    match tuning.confirmed {
        true => {
            let times = line.measurements;
            format!("The load line was measured {times} times; {beside} measured too.")
        }
        false if is_last => "The load line is the highest load that was measured, so it is only a \
                             lower bound: search a range with higher loads (--max)."
            .to_owned(),
        false => "The load line is not confirmed: the search had too few steps.".to_owned(),
    }
}
